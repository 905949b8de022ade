//! The text of lsb.events and lsb.acct (lsb.events(5), lsb.acct(5)): one record a line, written in
//! the layout of LSF 9.1.3/10.1, read back exactly; files of other versions and of the openlava
//! family are read as far as their fields go.
//!
//! What LSF's records have no field for goes into a key-value tail at the very end,
//! `<n> "lsf.key" "value" ...`, so that readers by field number are undisturbed, or into records
//! named `LSF_*`. Text fields cannot forge a record ([`text`]); where they lose something the
//! machine spools the exact submission and names the place in `JobNew::exact`
//! (`JobSpec::text_loses`).

mod alike;
mod brief;
mod finish;
mod modify;
mod new;
mod read;
mod task;
#[cfg(test)]
mod tests;
pub mod text;
mod write;

pub use alike::Alike;
pub use brief::{Brief, Late, read_brief};
pub use finish::{read_finish, write_finish};
pub use new::NO_GID;
pub use read::read_record;
pub use task::{put_task, read_task};
pub use write::write_record;

use crate::model::JobRef;
use crate::model::event::{Event, Finish};
use crate::model::job::{JobSpec, Usage};
use std::fmt;
use text::Fields;

/// Version written into every record.
pub const VERSION: &str = "10.1";

/// Longest record that is read, bytes: far beyond any that is written (an environment or a
/// script is spooled, not logged).
pub const MAX_RECORD: usize = 16 << 20;

/// Why a line is not a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// It does not begin with `"TYPE" "version" time`.
    NotARecord,
    /// A string without its closing quote.
    OpenString { field: u32 },
    /// It ends where a field is needed.
    Short { field: u32 },
    /// A field is not what it must be.
    Field { field: u32, want: &'static str },
    /// A record of ours that this version does not know: start-up must stop.
    Newer { name: String },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::NotARecord => f.write_str("not a record"),
            RecordError::OpenString { field } => write!(f, "field {field}: no closing quote"),
            RecordError::Short { field } => write!(f, "ends before field {field}"),
            RecordError::Field { field, want } => write!(f, "field {field}: wanted {want}"),
            RecordError::Newer { name } => {
                write!(f, "record {name} was written by a newer version of this program")
            }
        }
    }
}
impl std::error::Error for RecordError {}

/// The submission spooled for `JobNew::exact` and `JobModify::exact` (its JSON).
pub fn read_exact_spec(bytes: &[u8]) -> Result<JobSpec, serde_json::Error> {
    serde_json::from_slice(bytes)
}

/// The job or element that an event concerns; job 0 when none.
pub fn job_of(event: &Event) -> JobRef {
    match event {
        Event::JobNew(new) => JobRef { job: new.job, idx: 0 },
        Event::JobModify(m) => JobRef { job: m.job, idx: 0 },
        Event::JobStart(start) => start.at,
        Event::JobStatus(status) => status.at,
        Event::JobSignal(signal) => signal.at,
        Event::JobStartAccept { at, .. }
        | Event::JobExecute { at, .. }
        | Event::JobRequeue { at, .. }
        | Event::JobClean { at }
        | Event::JobSwitch { at, .. }
        | Event::JobMove { at, .. }
        | Event::Hold { at, .. }
        | Event::Eligible { at, .. }
        | Event::Release { at, .. } => *at,
        Event::QueueCtrl { .. }
        | Event::HostCtrl { .. }
        | Event::GroupHost { .. }
        | Event::MbdStart { .. }
        | Event::MbdDie { .. }
        | Event::LogSwitch { .. }
        | Event::LoadIndex { .. }
        | Event::Carried { .. }
        | Event::Foreign { .. } => JobRef::default(),
    }
}

/// The record's name, as it stands in the log.
pub fn name_of(event: &Event) -> &str {
    match event {
        Event::JobNew(_) => "JOB_NEW",
        Event::JobStart(_) => "JOB_START",
        Event::JobStartAccept { .. } => "JOB_START_ACCEPT",
        Event::JobExecute { .. } => "JOB_EXECUTE",
        Event::JobStatus(_) => "JOB_STATUS",
        Event::JobSignal(_) => "JOB_SIGNAL",
        Event::JobRequeue { .. } => "JOB_REQUEUE",
        Event::JobClean { .. } => "JOB_CLEAN",
        Event::JobModify(_) => "JOB_MODIFY2",
        Event::JobSwitch { .. } => "JOB_SWITCH",
        Event::JobMove { .. } => "JOB_MOVE",
        Event::QueueCtrl { .. } => "QUEUE_CTRL",
        Event::HostCtrl { .. } => "HOST_CTRL",
        Event::MbdStart { .. } => "MBD_START",
        Event::MbdDie { .. } => "MBD_DIE",
        Event::LogSwitch { .. } => "LOG_SWITCH",
        Event::LoadIndex { .. } => "LOAD_INDEX",
        Event::Hold { .. } => "LSF_HOLD",
        Event::Release { .. } => "LSF_RELEASE",
        Event::Carried { .. } => "LSF_SWITCHED",
        Event::Eligible { .. } => "LSF_ELIGIBLE",
        Event::GroupHost { .. } => "LSF_GROUP_HOST",
        Event::Foreign { name } => name,
    }
}

/// lsbatch bits of options2 that are written (the numbers of lsbatch.h).
mod sub2 {
    pub const HOLD: u32 = 0x01;
    pub const BSUB_BLOCK: u32 = 0x04;
    /// HOST_UX, USE_DEF_PROCLIMIT and MODIFY_PEND_JOB: what a plain job of a Unix host has.
    pub const PLAIN: u32 = 0x10 | 0x400 | 0x1000;
    pub const JOB_PRIORITY: u32 = 0x200;
    pub const WARNING_TIME_PERIOD: u32 = 0x2000;
    pub const WARNING_ACTION: u32 = 0x4000;
    pub const USE_RSV: u32 = 0x8000;
    pub const JOB_GROUP: u32 = 0x40000;
    pub const SLA: u32 = 0x80000;
    pub const EXTSCHED: u32 = 0x100000;
    pub const LICENSE_PROJECT: u32 = 0x200000;
    pub const OVERWRITE_OUT_FILE: u32 = 0x400000;
    pub const OVERWRITE_ERR_FILE: u32 = 0x800000;
}

/// lsbatch bits of options3 that are written.
mod sub3 {
    pub const POST_EXEC: u32 = 0x10;
    pub const CWD: u32 = 0x40;
    pub const JOB_DESCRIPTION: u32 = 0x2000000;
}

/// lsbatch option bits beyond those that act today.
mod sub {
    /// niosPort is in the record only with it.
    pub const INTERACTIVE: u32 = 0x4000000;
    pub const HOST_SPEC: u32 = 0x10000;
    pub const OTHER_FILES: u32 = 0x80000;
}

/// The value of an option that was not given.
const UNSET_SIGNAL: i64 = -65535;

/// options as LSF's tools expect them: with the bits that the filled fields imply.
fn lsb_options(spec: &JobSpec) -> u32 {
    use crate::model::job::opt;
    let implied = [
        (!spec.name.is_empty(), opt::JOB_NAME),
        (!spec.hosts.is_empty(), opt::HOST),
        (!spec.in_file.is_empty(), opt::IN_FILE),
        (!spec.out_file.is_empty(), opt::OUT_FILE),
        (!spec.err_file.is_empty(), opt::ERR_FILE),
        (!spec.user_group.is_empty(), opt::USER_GROUP),
        (!spec.limit_spec.is_empty(), sub::HOST_SPEC),
        (!spec.given(crate::model::job::extra::FILE).is_empty(), sub::OTHER_FILES),
        (!spec.depend.is_empty(), opt::DEPEND_COND),
        (!spec.res_req.is_empty(), opt::RES_REQ),
        (!spec.pre_exec.is_empty(), opt::PRE_EXEC),
        (!spec.login_shell.is_empty(), opt::LOGIN_SHELL),
        (!spec.mail_user.is_empty(), opt::MAIL_USER),
        (!spec.project.is_empty(), opt::PROJECT_NAME),
    ];
    implied.iter().filter(|(given, _)| *given).fold(spec.options, |all, (_, bit)| all | bit)
}

/// options2 in LSF's numbering.
fn lsb_options2(spec: &JobSpec) -> u32 {
    let mut bits = sub2::PLAIN;
    for (ours, theirs) in OPT2 {
        if spec.options2 & ours != 0 {
            bits |= theirs;
        }
    }
    if !spec.given(crate::model::job::extra::GROUP).is_empty() {
        bits |= sub2::JOB_GROUP;
    }
    if new::warned(spec) {
        bits |= sub2::WARNING_ACTION | sub2::WARNING_TIME_PERIOD;
    }
    if spec.priority != 0 { bits | sub2::JOB_PRIORITY } else { bits }
}

/// options2 of ours and of LSF.
const OPT2: [(u32, u32); 4] = {
    use crate::model::job::opt2;
    [
        (opt2::HOLD, sub2::HOLD),
        (opt2::WAIT, sub2::BSUB_BLOCK),
        (opt2::OVERWRITE_OUT, sub2::OVERWRITE_OUT_FILE),
        (opt2::OVERWRITE_ERR, sub2::OVERWRITE_ERR_FILE),
    ]
};

/// options3 in LSF's numbering.
fn lsb_options3(spec: &JobSpec) -> u32 {
    let post = if spec.post_exec.is_empty() { 0 } else { sub3::POST_EXEC };
    let about = if spec.description.is_empty() { 0 } else { sub3::JOB_DESCRIPTION };
    sub3::CWD | post | about
}

/// The 19 usage fields of a job without usage.
const NO_USAGE: &[u8] = b" -1.000000 -1.000000 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1";

/// The 19 usage fields, in the order of lsb.acct(5). What was not measured is 0 or, where LSF
/// writes it so on this system, -1.
fn put_usage(out: &mut Vec<u8>, u: &Usage) {
    use text::{put_int, put_u64, put_us};
    put_us(out, u.utime_us);
    put_us(out, u.stime_us);
    put_u64(out, u.max_mem_kb);
    for n in [0, -1, 0, 0] {
        put_int(out, n);
    }
    put_u64(out, u.minflt);
    put_u64(out, u.majflt);
    put_int(out, 0);
    put_u64(out, u.inblock);
    put_u64(out, u.oublock);
    for n in [-1, 0, 0, 0] {
        put_int(out, n);
    }
    put_u64(out, u.nvcsw);
    put_u64(out, u.nivcsw);
    put_int(out, -1);
}

/// Reads the 19 usage fields; `None` where the job had none.
fn get_usage(f: &mut Fields<'_>) -> Result<Option<Usage>, RecordError> {
    let none = f.next_is("-1.000000") || f.next_is("-1");
    let mut u = Usage { utime_us: f.us()?, stime_us: f.us()?, ..Usage::default() };
    u.max_mem_kb = f.count()?;
    f.skip(4)?;
    u.minflt = f.count()?;
    u.majflt = f.count()?;
    f.skip(1)?;
    u.inblock = f.count()?;
    u.oublock = f.count()?;
    f.skip(4)?;
    u.nvcsw = f.count()?;
    u.nivcsw = f.count()?;
    f.skip(1)?;
    Ok(if none { None } else { Some(u) })
}

/// Usage facts that the 19 fields have no place for, in the order of the tail value.
fn more_usage(u: &Usage) -> [u64; 7] {
    let (t, p) = (u64::from(u.nthreads), u64::from(u.nprocs));
    [u.mem_kb, u.swap_kb, u.max_mem_kb, u.avg_mem_kb, u.max_swap_kb, t, p]
}

/// What is most processors used, and when: the tail value `lsf.peak`.
fn peak(u: &Usage) -> Option<[u64; 2]> {
    (u.cpu_peak > 0).then(|| [u64::from(u.cpu_peak), u64::from(u.cpu_peak_secs)])
}

fn set_peak(u: &mut Usage, v: &[u64]) {
    if let [peak, secs] = *v {
        u.cpu_peak = peak.try_into().unwrap_or(u32::MAX);
        u.cpu_peak_secs = secs.try_into().unwrap_or(u32::MAX);
    }
}

fn set_more_usage(u: &mut Usage, v: &[u64]) {
    if let [mem, swap, max_mem, avg, max_swap, threads, procs] = *v {
        (u.mem_kb, u.swap_kb, u.max_mem_kb) = (mem, swap, max_mem);
        (u.avg_mem_kb, u.max_swap_kb) = (avg, max_swap);
        u.nthreads = threads.try_into().unwrap_or(u32::MAX);
        u.nprocs = procs.try_into().unwrap_or(u32::MAX);
    }
}

/// The record's head.
fn put_head(out: &mut Vec<u8>, name: &str, time: i64) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\" \"");
    out.extend_from_slice(VERSION.as_bytes());
    out.push(b'"');
    text::put_int(out, time);
}

/// Hosts, one string a slot, after their number.
fn put_slots(out: &mut Vec<u8>, hosts: &[(String, u32)]) {
    let n: u64 = hosts.iter().map(|(_, slots)| u64::from(*slots)).sum();
    text::put_u64(out, n);
    for (host, slots) in hosts {
        for _ in 0..*slots {
            text::put_str(out, host.as_bytes());
        }
    }
}

/// A count and the strings.
fn put_list(out: &mut Vec<u8>, items: &[String]) {
    text::put_u64(out, items.len() as u64);
    for item in items {
        text::put_str(out, item.as_bytes());
    }
}

/// `submitTime.jobId`, LSF's name of a job file.
fn put_job_file(out: &mut Vec<u8>, submit_time: i64, job: u32) {
    out.extend_from_slice(b" \"");
    text::digits(out, submit_time.max(0) as u64);
    out.push(b'.');
    text::digits(out, u64::from(job));
    out.push(b'"');
}

/// Seconds that a job ran; 0 when it never started.
fn run_time(fin: &Finish) -> i64 {
    if fin.start_time > 0 { fin.event_time.saturating_sub(fin.start_time).max(0) } else { 0 }
}
