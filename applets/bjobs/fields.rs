//! The fields of bjobs -o: names, aliases, default widths (bjobs(1)), the columns each is made of,
//! and its value. A field that nothing can fill yet has no columns and is empty.

use super::figures::{EFFICIENCY_COLS, efficiency, eligible_secs, kept_secs, wait_limit};
use super::processes;
use super::reasons::{self, suspending_reason};
use super::show::{Show, host_words, is_finished, is_pending, is_suspended, push_hosts_joined};
use lsf::cli::clock::Clock;
use lsf::cli::columns::{Column, Fields, in_unit};
use lsf::cli::job_rows::{Cell, JobRow};
use lsf::cli::long_format::{Efficiency, mem_words, size_words};
use lsf::cli::submission::cwd_words;
use lsf::model::job::opt;
use lsf::model::job_state::JobState;
use lsf::model::reason::{PendReason, susp, term_text};
use lsf::proto::client::Col;
use std::fmt::Write;

/// Appends the value as it is; nothing where there is none.
type Value = fn(&mut String, &JobRow, &Show);

/// A field of -o.
pub struct Field {
    pub name: &'static str,
    /// Other names; empty none.
    pub alias: &'static [&'static str],
    /// Columns it takes when the format gives no width.
    pub width: usize,
    pub cols: &'static [Col],
    pub value: Value,
}

const fn f(
    name: &'static str,
    alias: &'static [&'static str],
    width: usize,
    cols: &'static [Col],
    value: Value,
) -> Field {
    Field { name, alias, width, cols, value }
}

/// A field that has no value today.
const fn empty(name: &'static str, alias: &'static [&'static str], width: usize) -> Field {
    Field { name, alias, width, cols: &[], value: |_, _, _| {} }
}

const EXTRA: &[Col] = &[Col::Extra];
const ISSUED: &[Col] = &[Col::Issued];
const SUSPENDED: &[Col] = &[Col::Stat, Col::SuspReason, Col::SuspIndex, Col::Issued];
/// The places of the actions in [`Col::Issued`].
const KILL: usize = 0;
const SUSPEND: usize = 1;
const RESUME: usize = 2;
const HOST: usize = 0;
const REASON: usize = 1;
/// The columns of the limits of pending time.
const WAIT_COLS: &[Col] =
    &[Col::Stat, Col::PendTime, Col::Extra, Col::PendLimits, Col::IneligibleTime];
/// The columns of eligible and ineligible pending time.
const KIND_COLS: &[Col] = &[Col::PendTime, Col::IneligibleTime];
/// The columns of time left, finish time and completion.
pub const LEFT_COLS: &[Col] =
    &[Col::Stat, Col::EndTime, Col::RunLimit, Col::RunTime, Col::StartTime, Col::Extra];
/// The columns of the run limit.
const RUN_LIMIT_COLS: &[Col] = &[Col::Limits, Col::LimitSpec, Col::RunLimit];
/// The columns that [`eligible`] needs.
pub const PENDSTATE_COLS: &[Col] = &[Col::Stat, Col::PendReasons];

/// Every field, in the order of `all`.
pub const FIELDS: &[Field] = &[
    f("jobid", &["id"], 7, &[Col::Job], |o, r, _| int(o, r.int(Col::Job))),
    f("jobindex", &[], 8, &[Col::Idx], |o, r, _| int(o, r.int(Col::Idx))),
    f("stat", &[], 5, &[Col::Stat], |o, r, _| o.push_str(&r.text(Col::Stat))),
    f("user", &[], 7, &[Col::User], |o, r, _| o.push_str(&r.text(Col::User))),
    f("user_group", &["ugroup"], 15, &[Col::UserGroup], |o, r, _| {
        o.push_str(&r.text(Col::UserGroup))
    }),
    f("queue", &[], 10, &[Col::Queue], |o, r, _| o.push_str(&r.text(Col::Queue))),
    f("job_name", &["name"], 10, &[Col::Name], |o, r, _| o.push_str(&r.text(Col::Name))),
    f("job_description", &["description"], 17, &[Col::Description], |o, r, _| {
        o.push_str(&r.text(Col::Description))
    }),
    f("proj_name", &["proj", "project"], 11, &[Col::Project], |o, r, _| {
        o.push_str(&r.text(Col::Project))
    }),
    f("application", &["app"], 13, EXTRA, |o, r, _| kept(o, r, "app")),
    f("service_class", &["sla"], 13, EXTRA, |o, r, _| kept(o, r, "sla")),
    f("job_group", &["group"], 10, EXTRA, |o, r, _| kept(o, r, "g")),
    f("job_priority", &["priority"], 12, &[Col::Priority], |o, r, _| given(o, r, Col::Priority)),
    f("rsvid", &[], 40, EXTRA, |o, r, _| kept(o, r, "U")),
    f("esub", &[], 20, EXTRA, |o, r, _| kept(o, r, "a")),
    f("kill_reason", &[], 50, ISSUED, |o, r, _| issued(o, r, KILL, REASON)),
    f("suspend_reason", &[], 50, SUSPENDED, suspend_reason),
    f("resume_reason", &[], 50, ISSUED, |o, r, _| issued(o, r, RESUME, REASON)),
    f("kill_issue_host", &[], 50, ISSUED, |o, r, _| issued(o, r, KILL, HOST)),
    f("suspend_issue_host", &[], 50, ISSUED, |o, r, _| issued(o, r, SUSPEND, HOST)),
    f("resume_issue_host", &[], 50, ISSUED, |o, r, _| issued(o, r, RESUME, HOST)),
    f("dependency", &[], 15, &[Col::Depend], |o, r, _| o.push_str(&r.text(Col::Depend))),
    f("pend_reason", &[], 11, &[Col::PendReasons], |o, r, _| reasons::key(o, r)),
    f("charged_saap", &["saap"], 50, &[Col::Charged], |o, r, _| o.push_str(&r.text(Col::Charged))),
    f("command", &["cmd"], 15, &[Col::Command], |o, r, _| o.push_str(&r.text(Col::Command))),
    f("pre_exec_command", &["pre_cmd"], 16, &[Col::PreExec], |o, r, _| {
        o.push_str(&r.text(Col::PreExec))
    }),
    f("post_exec_command", &["post_cmd"], 17, &[Col::PostExec], |o, r, _| {
        o.push_str(&r.text(Col::PostExec))
    }),
    f("resize_notification_command", &["resize_cmd"], 27, EXTRA, |o, r, _| kept(o, r, "rnc")),
    f("pids", &[], 20, &[Col::Pids], pids),
    f("exit_code", &[], 10, &[Col::ExitCode], |o, r, _| known(o, r, Col::ExitCode)),
    f("exit_reason", &[], 50, &[Col::Stat, Col::ExitInfo], exit_reason),
    f("interactive", &[], 11, &[Col::Options], |o, r, _| {
        o.extend((r.int(Col::Options) as u32 & opt::INTERACTIVE != 0).then_some('Y'))
    }),
    f("from_host", &[], 11, &[Col::FromHost], |o, r, _| o.push_str(&r.text(Col::FromHost))),
    f("first_host", &[], 11, &[Col::ExecHosts], |o, r, _| {
        if let Some((h, _)) = r.hosts(Col::ExecHosts).next() {
            o.push_str(&h);
        }
    }),
    f("exec_host", &[], 11, &[Col::ExecHosts], |o, r, _| push_hosts_joined(o, r, ':')),
    f("nexec_host", &[], 10, &[Col::ExecHosts], |o, r, _| {
        positive(o, r.hosts(Col::ExecHosts).count() as i64)
    }),
    f("ask_hosts", &[], 30, &[Col::AskedHosts], ask_hosts),
    f("alloc_slot", &[], 20, &[Col::ExecHosts], |o, r, s| {
        o.push_str(&host_words(r, s.short_hosts).join(":"));
    }),
    f("nalloc_slot", &[], 10, &[Col::ExecHosts], |o, r, _| positive(o, slots_held(r))),
    f("host_file", &[], 10, EXTRA, |o, r, _| kept(o, r, "hostfile")),
    f("exclusive", &[], 13, &[Col::Options], |o, r, _| {
        o.push(if r.int(Col::Options) as u32 & opt::EXCLUSIVE != 0 { 'Y' } else { 'N' })
    }),
    f("nreq_slot", &[], 10, &[Col::MinSlots], |o, r, _| int(o, r.int(Col::MinSlots).max(1))),
    f("submit_time", &[], 15, &[Col::SubmitTime], |o, r, s| time(o, r, s, Col::SubmitTime)),
    f("start_time", &[], 15, &[Col::StartTime], |o, r, s| time(o, r, s, Col::StartTime)),
    f("estimated_start_time", &["estart_time"], 20, &[Col::Reservation], |o, r, s| {
        let start = r.list(Col::Reservation).get(1).and_then(Cell::int);
        if let Some(start) = start.filter(|start| *start > 0) {
            s.clock.field(o, start);
        }
    }),
    f("specified_start_time", &["sstart_time"], 20, &[Col::BeginTime], |o, r, s| {
        time(o, r, s, Col::BeginTime)
    }),
    f("specified_terminate_time", &["sterminate_time"], 24, &[Col::TermTime], |o, r, s| {
        time(o, r, s, Col::TermTime)
    }),
    f("time_left", &[], 11, LEFT_COLS, time_left),
    f("finish_time", &[], 16, LEFT_COLS, |o, r, s| finish(o, r, s, Clock::field)),
    f("estimated_run_time", &["ertime"], 20, EXTRA, |o, r, _| seconds(o, estimate(r))),
    f("ru_utime", &[], 12, &[Col::Utime, Col::StartTime], |o, r, s| {
        cpu_seconds(o, r, s, Col::Utime)
    }),
    f("ru_stime", &[], 12, &[Col::Stime, Col::StartTime], |o, r, s| {
        cpu_seconds(o, r, s, Col::Stime)
    }),
    f("%complete", &[], 11, LEFT_COLS, complete),
    f("warning_action", &["warn_act"], 15, EXTRA, |o, r, _| kept(o, r, "wa")),
    f("action_warning_time", &["warn_time"], 19, EXTRA, warn_time),
    f("pend_time", &[], 12, &[Col::PendTime], |o, r, _| known(o, r, Col::PendTime)),
    f("ependtime", &[], 12, KIND_COLS, |o, r, _| whole(o, eligible_secs(r))),
    f("ipendtime", &[], 12, KIND_COLS, |o, r, _| known(o, r, Col::IneligibleTime)),
    f("pendstate", &[], 9, PENDSTATE_COLS, pendstate),
    empty("estimated_sim_start_time", &["esstart_time"], 24),
    f("effective_plimit", &[], 18, WAIT_COLS, |o, r, _| whole(o, wait_limit(r, "ptl"))),
    f("plimit_remain", &[], 15, WAIT_COLS, |o, r, _| whole(o, wait_rest(r, "ptl"))),
    f("effective_eplimit", &[], 19, WAIT_COLS, |o, r, _| whole(o, wait_limit(r, "eptl"))),
    f("eplimit_remain", &[], 16, WAIT_COLS, |o, r, _| whole(o, wait_rest(r, "eptl"))),
    f("cpu_used", &[], 10, &[Col::CpuUsed, Col::StartTime], |o, r, s| {
        if r.int(Col::StartTime) > 0 {
            let _ = write!(o, "{:.1} second(s)", s.cpu(r, Col::CpuUsed));
        }
    }),
    f("run_time", &[], 15, &[Col::RunTime, Col::StartTime], |o, r, _| {
        let _ = write!(o, "{} second(s)", r.int(Col::RunTime));
    }),
    f("idle_factor", &[], 11, &[Col::CpuUsed, Col::RunTime, Col::StartTime], |o, r, _| {
        if r.int(Col::StartTime) > 0 && r.int(Col::RunTime) > 0 {
            let _ = write!(o, "{:.2}", r.num(Col::CpuUsed) / r.num(Col::RunTime));
        }
    }),
    f("exception_status", &["except_stat"], 16, &[Col::Exceptions], |o, r, _| {
        o.push_str(&r.text(Col::Exceptions))
    }),
    f("slots", &[], 5, &[Col::ExecHosts, Col::MinSlots], |o, r, _| match slots_held(r) {
        0 => int(o, r.int(Col::MinSlots).max(1)),
        n => int(o, n),
    }),
    f("mem", &[], 10, &[Col::MemKb], |o, r, _| memory(o, r, Col::MemKb)),
    f("max_mem", &[], 10, &[Col::MaxMemKb], |o, r, _| memory(o, r, Col::MaxMemKb)),
    f("avg_mem", &[], 10, &[Col::AvgMemKb], |o, r, _| memory(o, r, Col::AvgMemKb)),
    f("memlimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "rss")),
    f("swap", &[], 10, &[Col::SwapKb], |o, r, _| memory(o, r, Col::SwapKb)),
    f("swaplimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "swap")),
    empty("gpu_num", &["gnum"], 10),
    empty("gpu_mode", &["gmode"], 20),
    empty("j_exclusive", &["j_excl"], 15),
    empty("gpu_alloc", &["galloc"], 30),
    f("nthreads", &[], 10, &[Col::NThreads], |o, r, _| given(o, r, Col::NThreads)),
    f("hrusage", &[], 50, &[Col::HostUsage, Col::StartTime], processes::in_field),
    f("min_req_proc", &[], 12, &[Col::MinSlots], |o, r, _| int(o, r.int(Col::MinSlots).max(1))),
    f("max_req_proc", &[], 12, &[Col::MaxSlots], |o, r, _| int(o, r.int(Col::MaxSlots).max(1))),
    f("effective_resreq", &["eresreq"], 17, &[Col::EffectiveResReq], |o, r, _| {
        o.push_str(&r.text(Col::EffectiveResReq))
    }),
    f("combined_resreq", &["cresreq"], 20, &[Col::CombinedResReq], |o, r, _| {
        o.push_str(&r.text(Col::CombinedResReq))
    }),
    f("network_req", &[], 15, EXTRA, |o, r, _| kept(o, r, "network")),
    f("filelimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "fsize")),
    f("corelimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "core")),
    f("stacklimit", &[], 10, &[Col::Limits], |o, r, _| size_limit(o, r, "stack")),
    f("processlimit", &[], 12, &[Col::Limits], |o, r, _| {
        if let Some(n) = limit(r, "process") {
            int(o, n);
        }
    }),
    f("runtimelimit", &[], 12, RUN_LIMIT_COLS, run_limit),
    f("plimit", &[], 10, EXTRA, |o, r, _| whole(o, kept_secs(r, "ptl"))),
    f("eplimit", &[], 10, EXTRA, |o, r, _| whole(o, kept_secs(r, "eptl"))),
    f("input_file", &[], 10, &[Col::InFile], |o, r, _| o.push_str(&r.text(Col::InFile))),
    f("output_file", &[], 11, &[Col::OutFile], |o, r, _| o.push_str(&r.text(Col::OutFile))),
    f("error_file", &[], 10, &[Col::ErrFile], |o, r, _| o.push_str(&r.text(Col::ErrFile))),
    f("output_dir", &[], 15, EXTRA, |o, r, _| kept(o, r, "outdir")),
    f("sub_cwd", &[], 10, &[Col::Cwd, Col::Home], |o, r, _| {
        o.push_str(&cwd_words(&r.text(Col::Cwd), &r.text(Col::Home)))
    }),
    f("exec_home", &[], 10, &[Col::ExecHome], |o, r, _| o.push_str(&r.text(Col::ExecHome))),
    f("exec_cwd", &[], 10, &[Col::ExecCwd], |o, r, _| o.push_str(&r.text(Col::ExecCwd))),
    f("licproject", &[], 20, EXTRA, |o, r, _| kept(o, r, "Lp")),
    empty("forward_cluster", &["fwd_cluster"], 15),
    empty("forward_time", &["fwd_time"], 15),
    empty("srcjobid", &[], 8),
    empty("dstjobid", &[], 8),
    empty("source_cluster", &["srcluster"], 15),
    empty("energy", &[], 10),
    empty("gpfsio", &[], 10),
    f("cpu_peak", &[], 10, EFFICIENCY_COLS, |o, r, _| {
        if let Some(e) = efficiency(r) {
            let _ = write!(o, "{:.2}", e.peak);
        }
    }),
    f("cpu_peak_efficiency", &["cpu_efficiency"], 10, EFFICIENCY_COLS, |o, r, _| {
        share(o, r, Efficiency::cpu_peak)
    }),
    f("average_cpu_efficiency", &[], 10, EFFICIENCY_COLS, |o, r, _| {
        share(o, r, Efficiency::cpu_average)
    }),
    f("mem_efficiency", &[], 10, EFFICIENCY_COLS, |o, r, _| share(o, r, Efficiency::mem)),
    f("cpu_peak_reached_duration", &[], 10, EFFICIENCY_COLS, |o, r, _| {
        if let Some(e) = efficiency(r) {
            let _ = write!(o, "{} second(s)", e.peak_secs);
        }
    }),
];

/// The place of `jobid`.
pub const JOBID: usize = 0;

/// [`FIELDS`] as the formats know it.
pub struct BjobsFields;

impl Fields for BjobsFields {
    fn count(&self) -> usize {
        FIELDS.len()
    }
    fn name(&self, field: usize) -> &str {
        FIELDS.get(field).map_or("", |f| f.name)
    }
    fn aliases(&self, field: usize) -> &[&str] {
        FIELDS.get(field).map_or(&[], |f| f.alias)
    }
    fn width(&self, field: usize) -> usize {
        FIELDS.get(field).map_or(1, |f| f.width)
    }
}

impl BjobsFields {
    /// The columns that a field is made of.
    pub fn cols(field: usize) -> &'static [Col] {
        FIELDS.get(field).map_or(&[], |f| f.cols)
    }

    /// Appends the value of a column of a format.
    pub fn value(out: &mut String, c: &Column, r: &JobRow, s: &Show) {
        let Some(f) = FIELDS.get(c.field) else { return };
        match (c.unit.or(s.unit), kilobytes(f.name, r)) {
            (Some(unit), Some(kb)) if kb > 0 => in_unit(out, kb as u64, unit),
            _ if s.hms => match duration(f.name, r, s) {
                Some(secs) => {
                    let (sign, secs) = (if secs < 0 { "-" } else { "" }, secs.abs());
                    let (m, rest) = (secs / 60 % 60, secs % 60);
                    let _ = write!(out, "{sign}{:02}:{m:02}:{rest:02}", secs / 3600);
                }
                None => (f.value)(out, r, s),
            },
            _ => (f.value)(out, r, s),
        }
    }
}

/// The seconds that a field shows which -hms concerns; parts of a second count as one.
fn duration(name: &str, r: &JobRow, s: &Show) -> Option<i64> {
    let started = r.int(Col::StartTime) > 0;
    match name {
        "cpu_used" if started => Some(s.cpu(r, Col::CpuUsed).ceil() as i64),
        "ru_utime" if started => Some(s.cpu(r, Col::Utime).ceil() as i64),
        "ru_stime" if started => Some(s.cpu(r, Col::Stime).ceil() as i64),
        "run_time" => Some(r.int(Col::RunTime)),
        "pend_time" => r.cell(Col::PendTime).int(),
        "runtimelimit" => shown_run_limit(r).map(|limit| limit.0),
        "estimated_run_time" => estimate(r),
        "plimit" => kept_secs(r, "ptl"),
        "eplimit" => kept_secs(r, "eptl"),
        "effective_plimit" => wait_limit(r, "ptl"),
        "effective_eplimit" => wait_limit(r, "eptl"),
        "plimit_remain" => wait_rest(r, "ptl"),
        "eplimit_remain" => wait_rest(r, "eptl"),
        "ependtime" => eligible_secs(r),
        "ipendtime" => r.cell(Col::IneligibleTime).int(),
        _ => None,
    }
}

/// The recorded text of an option.
fn kept(o: &mut String, r: &JobRow, option: &str) {
    if let Some(text) = r.cell(Col::Extra).key(option) {
        o.push_str(&text.text());
    }
}

/// The run time that was estimated at submission: it is kept as it was given.
fn estimate(r: &JobRow) -> Option<i64> {
    let text = r.cell(Col::Extra).key("We")?.text();
    i64::try_from(lsf::conf::units::time_limit(&text)?.seconds).ok()
}

/// The rest of that time; negative after the limit.
fn wait_rest(r: &JobRow, option: &str) -> Option<i64> {
    let waited = match option {
        "eptl" => eligible_secs(r)?,
        _ => r.cell(Col::PendTime).int()?,
    };
    Some(wait_limit(r, option)? - waited)
}

/// `2.0` minutes before the limit, or `10%` of it.
fn warn_time(o: &mut String, r: &JobRow, _: &Show) {
    match kept_secs(r, "wt") {
        Some(secs) => {
            let _ = write!(o, "{:.1}", secs as f64 / 60.0);
        }
        None => kept(o, r, "wt"),
    }
}

fn share(o: &mut String, r: &JobRow, of: fn(&Efficiency) -> f64) {
    if let Some(e) = efficiency(r) {
        let _ = write!(o, "{:.2}%", of(&e));
    }
}

fn whole(o: &mut String, n: Option<i64>) {
    if let Some(n) = n {
        int(o, n);
    }
}

fn seconds(o: &mut String, secs: Option<i64>) {
    if let Some(secs) = secs {
        let _ = write!(o, "{secs} second(s)");
    }
}

/// The size that a field shows, KB; `None` where it shows no size.
fn kilobytes(name: &str, r: &JobRow) -> Option<i64> {
    match name {
        "mem" => r.cell(Col::MemKb).int(),
        "max_mem" => r.cell(Col::MaxMemKb).int(),
        "avg_mem" => r.cell(Col::AvgMemKb).int(),
        "swap" => r.cell(Col::SwapKb).int(),
        "memlimit" => limit(r, "rss"),
        "swaplimit" => limit(r, "swap"),
        "filelimit" => limit(r, "fsize"),
        "corelimit" => limit(r, "core"),
        "stacklimit" => limit(r, "stack"),
        _ => None,
    }
}

fn int(o: &mut String, n: i64) {
    let _ = write!(o, "{n}");
}

fn positive(o: &mut String, n: i64) {
    if n > 0 {
        int(o, n);
    }
}

/// A count that is not known while 0.
fn given(o: &mut String, r: &JobRow, c: Col) {
    positive(o, r.int(c));
}

/// A number that may be 0, unless the value is null.
fn known(o: &mut String, r: &JobRow, c: Col) {
    if let Some(n) = r.cell(c).int() {
        int(o, n);
    }
}

fn time(o: &mut String, r: &JobRow, s: &Show, c: Col) {
    if r.int(c) > 0 {
        s.clock.field(o, r.int(c));
    }
}

fn cpu_seconds(o: &mut String, r: &JobRow, s: &Show, c: Col) {
    if r.int(Col::StartTime) > 0 && r.cell(c).num().is_some() {
        let _ = write!(o, "{:.2}", s.cpu(r, c));
    }
}

fn memory(o: &mut String, r: &JobRow, c: Col) {
    let kb = r.int(c);
    if kb > 0 {
        mem_words(o, kb as u64);
    }
}

fn slots_held(r: &JobRow) -> i64 {
    r.hosts(Col::ExecHosts).map(|(_, n)| n.max(1)).sum()
}

fn limit(r: &JobRow, key: &str) -> Option<i64> {
    r.cell(Col::Limits).key(key).and_then(Cell::int)
}

fn size_limit(o: &mut String, r: &JobRow, key: &str) {
    if let Some(kb) = limit(r, key).and_then(|n| u64::try_from(n).ok()) {
        o.push_str(&size_words(kb));
    }
}

/// Seconds that a started job may run where it runs; none: as long as it likes.
pub fn run_limit_in_force(r: &JobRow) -> Option<i64> {
    r.list(Col::RunLimit).first().and_then(Cell::int)
}

/// The limit of the submission in seconds, and true, or the one that is reached before it.
fn shown_run_limit(r: &JobRow) -> Option<(i64, bool)> {
    let is_own = r.list(Col::RunLimit).get(1).is_none_or(|own| own == &Cell::Bool(true));
    match is_own {
        true => Some((limit(r, "run")?, true)),
        false => Some((run_limit_in_force(r)?, false)),
    }
}

/// `60.0`, `60.0/hosta`.
fn run_limit(o: &mut String, r: &JobRow, _: &Show) {
    if let Some((secs, is_own)) = shown_run_limit(r) {
        let _ = write!(o, "{:.1}", secs as f64 / 60.0);
        let of = r.text(Col::LimitSpec);
        if is_own && !of.is_empty() {
            let _ = write!(o, "/{of}");
        }
    }
}

fn pids(o: &mut String, r: &JobRow, _: &Show) {
    for (i, p) in r.list(Col::Pids).iter().enumerate() {
        let _ = write!(o, "{}{}", if i > 0 { "," } else { "" }, p.int().unwrap_or(0));
    }
}

fn ask_hosts(o: &mut String, r: &JobRow, _: &Show) {
    for (i, h) in r.list(Col::AskedHosts).iter().enumerate() {
        if i > 0 {
            o.push(' ');
        }
        o.push_str(&h.text());
    }
}

/// The host on which bkill, bstop or bresume was last called for the job, or its reason.
fn issued(o: &mut String, r: &JobRow, deed: usize, what: usize) {
    let all = r.list(Col::Issued);
    if let Some(text) = all.get(deed).and_then(|pair| pair.list().get(what).map(Cell::text)) {
        o.push_str(&text);
    }
}

/// The reason given to bstop, unless LSF has suspended the job for another reason since.
fn suspend_reason(o: &mut String, r: &JobRow, _: &Show) {
    let code = r.int(Col::SuspReason) as u32;
    let from = o.len();
    if r.state() != Some(JobState::Ssusp) || code == susp::RESUMED {
        issued(o, r, SUSPEND, REASON);
    }
    if o.len() == from && is_suspended(r) {
        o.push_str(&suspending_reason(r));
    }
}

fn exit_reason(o: &mut String, r: &JobRow, _: &Show) {
    if r.state() == Some(JobState::Exit) && r.int(Col::ExitInfo) > 0 {
        let (name, text) = term_text(r.int(Col::ExitInfo) as u32);
        let _ = write!(o, "{name}: {text}");
    }
}

/// The time that a started job has, and by what that is known.
struct Given {
    secs: i64,
    /// `E` its estimate, `L` its run limit, `X` its estimate is over: then its run limit.
    by: char,
    /// The job has run longer than estimated, and no limit will end it.
    open: bool,
}

fn given_time(r: &JobRow) -> Option<Given> {
    if is_pending(r) || is_finished(r) || r.int(Col::StartTime) == 0 {
        return None;
    }
    let limit = run_limit_in_force(r);
    let (secs, by, open) = match estimate(r).filter(|e| limit.is_none_or(|l| *e <= l)) {
        None => (limit?, 'L', false),
        Some(secs) if r.int(Col::RunTime) <= secs => (secs, 'E', false),
        Some(secs) => (limit.unwrap_or(secs), 'X', limit.is_none()),
    };
    Some(Given { secs, by, open })
}

/// `hours:minutes L`.
pub fn time_left(o: &mut String, r: &JobRow, _: &Show) {
    if let Some(Given { secs, by, .. }) = given_time(r).filter(|g| !g.open) {
        let left = (secs - r.int(Col::RunTime)).max(0);
        let _ = write!(o, "{}:{} {by}", left / 3600, left / 60 % 60);
    }
}

/// The end; of a job that runs the one to expect, and by what.
fn finish(o: &mut String, r: &JobRow, s: &Show, form: fn(&Clock, &mut String, i64)) {
    if r.int(Col::EndTime) > 0 {
        form(&s.clock, o, r.int(Col::EndTime));
    } else if let Some(Given { secs, by, .. }) = given_time(r).filter(|_| !is_suspended(r)) {
        form(&s.clock, o, s.now + secs - r.int(Col::RunTime));
        let _ = write!(o, " {by}");
    }
}

/// Like [`finish`], without the year.
pub fn finish_time(o: &mut String, r: &JobRow, s: &Show) {
    finish(o, r, s, Clock::short);
}

pub fn complete(o: &mut String, r: &JobRow, _: &Show) {
    if let Some(Given { secs, by, .. }) = given_time(r).filter(|g| g.secs > 0) {
        let _ = write!(o, "{:.2}% {by}", r.num(Col::RunTime) * 100.0 / secs as f64);
    }
}

/// Could a waiting job be dispatched if there were room? A held job, one before its begin time, one
/// with an unmet condition and one in an inactive queue could not.
pub fn eligible(r: &JobRow) -> bool {
    let waits = |p: &Cell| {
        let number = p.list().first().and_then(Cell::int).and_then(|n| u32::try_from(n).ok());
        number.is_some_and(|n| PendReason::of_number(n).makes_ineligible())
    };
    r.state() == Some(JobState::Pend) && !r.list(Col::PendReasons).iter().any(waits)
}

fn pendstate(o: &mut String, r: &JobRow, _: &Show) {
    o.push_str(match (is_pending(r), eligible(r)) {
        (false, _) => "NOTPEND",
        (_, true) => "EPEND",
        (_, false) => "IPEND",
    });
}
