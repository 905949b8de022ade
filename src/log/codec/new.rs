//! JOB_NEW (lsb.events(5), checked against a record of LSF 9.1.3): 11 limits, sigValue -65535 when
//! unset, umask in decimal, niosPort only for interactive jobs, the fields of unused options left
//! out.

use super::options::{
    OPT2, UNSET_SIGNAL, lsb_options, lsb_options2, lsb_options3, sub, sub2, sub3, warned,
};
use super::record::{put_job_file, put_list};
use super::record_error::RecordError;
use super::text::{Fields, Pairs, Tail, find_tail, nums, put_int, put_str, put_u64};
use crate::model::ByteStr;
use crate::model::checkpoint::Checkpoint;
use crate::model::event::JobNew;
use crate::model::further::{WARN_ACTION, WarnTime};
use crate::model::job::{JobSpec, Limits, SpoolRef, opt2};
use std::borrow::Cow;
use std::sync::Arc;

/// gid of a job whose log does not tell it (another LSF's): nogroup.
pub const NO_GID: u32 = 65534;

pub(super) fn put_limit(out: &mut Vec<u8>, limit: Option<u64>) {
    match limit {
        Some(n) => put_u64(out, n),
        None => put_int(out, -1),
    }
}

/// The 11 limits that every version has.
pub(super) fn put_limits(out: &mut Vec<u8>, l: &Limits) {
    let files = None;
    for limit in
        [l.cpu, l.fsize, l.data, l.stack, l.core, l.rss, files, files, l.swap, l.run, l.process]
    {
        put_limit(out, limit);
    }
}

/// Everything after the record's head.
pub fn put_job_new(out: &mut Vec<u8>, new: &JobNew) {
    let s = &new.spec;
    put_int(out, new.job);
    put_int(out, new.uid);
    put_int(out, lsb_options(s));
    put_int(out, s.min_slots);
    put_int(out, new.submit_time);
    put_int(out, s.begin_time);
    put_int(out, s.term_time);
    put_int(out, UNSET_SIGNAL);
    put_int(out, checkpoint_secs(s));
    // restartPid
    put_int(out, 0);
    put_str(out, new.user.as_bytes());
    put_limits(out, &s.limits);
    put_str(out, s.limit_spec.as_bytes());
    out.extend_from_slice(b" 1.00");
    put_int(out, s.umask);
    put_str(out, s.queue.as_bytes());
    put_str(out, s.res_req.as_bytes());
    put_str(out, s.from_host.as_bytes());
    put_str(out, s.cwd.as_bytes());
    put_str(out, checkpoint_dir(s).as_bytes());
    for path in [&s.in_file, &s.out_file, &s.err_file, &s.home] {
        put_str(out, path.as_bytes());
    }
    put_job_file(out, new.submit_time, new.job);
    put_list(out, &s.hosts);
    put_str(out, s.depend.as_bytes());
    put_str(out, s.pre_exec.as_bytes());
    put_str(out, s.name.as_bytes());
    put_str(out, s.command.as_bytes());
    put_after_command(out, s);
    put_tail(out, new);
}

/// chkpntPeriod, seconds; 0: no periodic checkpoints.
pub(super) fn checkpoint_secs(s: &JobSpec) -> u32 {
    s.further.checkpoint.as_ref().and_then(|c| c.period).unwrap_or(0) * 60
}

pub(super) fn checkpoint_dir(s: &JobSpec) -> &str {
    s.further.checkpoint.as_ref().map_or("", |c| &c.dir)
}

/// initChkpntPeriod, seconds.
pub(super) fn first_checkpoint_secs(s: &JobSpec) -> u32 {
    s.further.checkpoint.as_ref().and_then(|c| c.init).unwrap_or(0) * 60
}

/// nxf, then subFn execFn opt of each.
pub(super) fn put_copies(out: &mut Vec<u8>, s: &JobSpec) {
    let copies = &s.further.copies;
    put_int(out, copies.len() as i64);
    for c in copies.iter() {
        put_str(out, c.local.as_bytes());
        put_str(out, c.remote.as_bytes());
        put_int(out, c.op.bits());
    }
}

/// The text of the warning action; empty: none.
pub(super) fn warn_action(s: &JobSpec) -> Cow<'_, str> {
    s.further.text(WARN_ACTION).unwrap_or_default()
}

/// Seconds before the control action; -1 where they are a share, which only the tail tells.
pub(super) fn warn_period(s: &JobSpec) -> i64 {
    match s.further.warn_time {
        Some(WarnTime::Seconds(seconds)) => i64::try_from(seconds).unwrap_or(-1),
        Some(WarnTime::Percent(_)) | None => -1,
    }
}

fn put_after_command(out: &mut Vec<u8>, s: &JobSpec) {
    put_copies(out, s);
    put_str(out, s.mail_user.as_bytes());
    put_str(out, s.project.as_bytes());
    if s.options & sub::INTERACTIVE != 0 {
        // niosPort
        put_int(out, 0);
    }
    put_int(out, s.max_slots);
    // schedHostType
    put_str(out, b"");
    put_str(out, s.login_shell.as_bytes());
    // timeEvent
    put_str(out, b"");
    put_str(out, s.user_group.as_bytes());
    // exceptList
    put_str(out, b"");
    put_int(out, lsb_options2(s));
    // idx inFileSpool commandSpool jobSpoolDir
    out.extend_from_slice(b" 0 \"\" \"\" \"\"");
    put_int(out, if s.priority == 0 { -1 } else { i64::from(s.priority) });
    let group = &s.further.job_group;
    if !group.is_empty() {
        put_str(out, group.as_bytes());
    }
    if warned(s) {
        put_str(out, warn_action(s).as_bytes());
        put_int(out, warn_period(s));
    }
    put_limit(out, s.limits.thread);
    // SLArunLimit
    put_int(out, -1);
    put_int(out, lsb_options3(s));
    put_str(out, s.further.application.as_bytes());
    put_str(out, s.post_exec.as_bytes());
    // runtimeEstimation, requeueEValues, initChkpntPeriod, migThreshold notifyCmd
    out.extend_from_slice(b" -1");
    put_str(out, s.further.requeue.as_bytes());
    put_int(out, first_checkpoint_secs(s));
    out.extend_from_slice(b" -1 \"\"");
    if !s.description.is_empty() {
        put_str(out, s.description.as_bytes());
    }
    // submitExt options4 numAskedClusters, src and dst cluster, flow_id
    out.extend_from_slice(b" 0 0 0 \"\" -1 \"\" -1 \"\"");
    // subcwd
    put_str(out, s.cwd.as_bytes());
    put_str(out, s.further.out_dir.as_bytes());
    // dcTmpls dcVmActions and seven not decoded
    out.extend_from_slice(b" \"\" \"\" 0 -1 0 \"\" \"\" 0 \"\"");
}

/// Our facts: `lsf.gid` is always there, and marks the record as ours.
fn put_tail(out: &mut Vec<u8>, new: &JobNew) {
    let s = &new.spec;
    let mut tail = Tail::begin(out);
    tail.nums(out, "lsf.gid", b' ', &[u64::from(new.gid)]);
    if s.options != lsb_options(s) {
        tail.nums(out, "lsf.options", b' ', &[u64::from(s.options)]);
    }
    if s.options2 != 0 {
        tail.nums(out, "lsf.options2", b' ', &[u64::from(s.options2)]);
    }
    if !new.request.is_empty() {
        tail.text(out, "lsf.request", new.request.as_bytes());
    }
    for (key, at) in [("lsf.env", new.env), ("lsf.script", new.script), ("lsf.exact", new.exact)] {
        if at != SpoolRef::default() {
            put_place(&mut tail, out, key, at);
        }
    }
    for (name, value) in s.further.texts() {
        tail.text_named(out, "lsf.x.", name.as_bytes(), value.as_bytes());
    }
    tail.end(out);
}

/// Reads what follows the record's head.
pub fn get_job_new(f: &mut Fields<'_>, openlava: bool) -> Result<JobNew, RecordError> {
    let mut new = JobNew::default();
    let mut spec = JobSpec::default();
    let s = &mut spec;
    new.job = f.num()?;
    new.uid = f.num()?;
    s.options = f.num()?;
    s.min_slots = f.num()?;
    new.submit_time = f.num()?;
    s.begin_time = f.num()?;
    s.term_time = f.num()?;
    // sigValue
    f.skip(1)?;
    let period: i64 = f.num()?;
    // restartPid
    f.skip(1)?;
    new.user = f.text()?;
    s.limits = get_limits(f)?;
    s.limit_spec = f.text()?;
    // hostFactor
    f.skip(1)?;
    s.umask = f.num()?;
    s.queue = f.text()?;
    s.res_req = f.text()?;
    s.from_host = f.text()?;
    s.cwd = get_bytes(f)?;
    let checkpoint = f.text()?;
    s.in_file = get_bytes(f)?;
    s.out_file = get_bytes(f)?;
    s.err_file = get_bytes(f)?;
    s.home = get_bytes(f)?;
    // jobFile
    f.skip(1)?;
    s.hosts = f.list()?;
    s.depend = f.text()?;
    s.pre_exec = get_bytes(f)?;
    s.name = f.text()?;
    s.command = get_bytes(f)?;
    let lsb2 = get_after_command(f, s, openlava)?;
    match find_tail(f) {
        Some(pairs) => get_tail(&mut new, s, &pairs),
        None => {
            set_foreign(&mut new, s, lsb2);
            let minutes = u32::try_from(period / 60).ok().filter(|n| *n > 0);
            s.further.checkpoint = Checkpoint::parse(&checkpoint).ok().map(Box::new);
            if let Some(checkpoint) = &mut s.further.checkpoint {
                checkpoint.period = minutes;
            }
            s.further.trim();
        }
    }
    new.spec = Arc::new(spec);
    Ok(new)
}

pub(super) fn get_bytes(f: &mut Fields<'_>) -> Result<ByteStr, RecordError> {
    Ok(ByteStr(f.bytes()?.into_owned()))
}

pub(super) fn get_limits(f: &mut Fields<'_>) -> Result<Limits, RecordError> {
    let mut l = Limits {
        cpu: f.limit()?,
        fsize: f.limit()?,
        data: f.limit()?,
        stack: f.limit()?,
        core: f.limit()?,
        rss: f.limit()?,
        ..Limits::default()
    };
    f.skip(2)?;
    l.swap = f.limit()?;
    l.run = f.limit()?;
    l.process = f.limit()?;
    Ok(l)
}

/// Reads up to exceptList and options2, which every version has, then on as far as the fields
/// are what this layout says. Returns options2 as LSF numbers it.
fn get_after_command(
    f: &mut Fields<'_>,
    s: &mut JobSpec,
    openlava: bool,
) -> Result<u32, RecordError> {
    let nxf: u32 = f.num()?;
    for _ in 0..nxf {
        // subFn execFn opt
        f.skip(3)?;
    }
    s.mail_user = f.text()?;
    s.project = f.text()?;
    if s.options & sub::INTERACTIVE != 0 {
        f.skip(1)?;
    }
    s.max_slots = f.num()?;
    // schedHostType
    f.skip(1)?;
    s.login_shell = get_bytes(f)?;
    if !openlava && f.next_is_string() {
        // timeEvent
        f.skip(1)?;
        s.user_group = f.text()?;
        // exceptList
        f.skip(1)?;
    }
    let lsb2: u32 = f.num()?;
    // idx inFileSpool commandSpool jobSpoolDir
    f.skip(4)?;
    let priority: i64 = f.num()?;
    s.priority = if priority < 0 { 0 } else { priority.try_into().unwrap_or(0) };
    if !openlava {
        // another version's further fields are not worth refusing a job for
        let mut ahead = f.clone();
        if get_after_priority(&mut ahead, s, lsb2).is_ok() {
            *f = ahead;
        }
    }
    Ok(lsb2)
}

fn get_after_priority(f: &mut Fields<'_>, s: &mut JobSpec, lsb2: u32) -> Result<(), RecordError> {
    for bit in [sub2::USE_RSV, sub2::JOB_GROUP, sub2::SLA, sub2::EXTSCHED] {
        f.skip(usize::from(lsb2 & bit != 0))?;
    }
    if lsb2 & (sub2::WARNING_ACTION | sub2::WARNING_TIME_PERIOD) != 0 {
        f.skip(2)?;
    }
    s.limits.thread = f.limit()?;
    // SLArunLimit
    f.skip(1 + usize::from(lsb2 & sub2::LICENSE_PROJECT != 0))?;
    let lsb3: u32 = f.num()?;
    // app
    f.skip(1)?;
    s.post_exec = get_bytes(f)?;
    // runtimeEstimation requeueEValues initChkpntPeriod migThreshold notifyCmd
    f.skip(5)?;
    if lsb3 & sub3::JOB_DESCRIPTION != 0 {
        s.description = f.text()?;
    }
    // submitExt: pairs
    let pairs: usize = f.num()?;
    for _ in 0..pairs {
        f.skip(2)?;
    }
    // options4, then the asked clusters
    f.skip(1)?;
    f.list()?;
    // src and dst cluster, flow_id, subcwd, outdir, dcTmpls, dcVmActions, seven not decoded
    f.skip(5 + 4 + 7)
}

fn get_tail(new: &mut JobNew, s: &mut JobSpec, pairs: &Pairs<'_>) {
    for (key, value) in pairs {
        let one = || nums(value, ' ').and_then(|v| v.first().copied()).unwrap_or(0);
        match &key[b"lsf.".len()..] {
            b"gid" => new.gid = one() as u32,
            b"options" => s.options = one() as u32,
            b"options2" => s.options2 = one() as u32,
            b"request" => new.request = String::from_utf8_lossy(value).into_owned(),
            b"env" => new.env = get_place(value),
            b"script" => new.script = get_place(value),
            b"exact" => new.exact = get_place(value),
            rest => {
                if let Some(name) = rest.strip_prefix(b"x.") {
                    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
                    s.further.put_text(&text(name), &text(value));
                }
            }
        }
    }
}

pub(super) fn put_place(tail: &mut Tail, out: &mut Vec<u8>, key: &str, at: SpoolRef) {
    tail.nums(out, key, b':', &[u64::from(at.spool), at.at, u64::from(at.len)]);
}

pub(super) fn get_place(value: &[u8]) -> SpoolRef {
    match nums(value, ':').as_deref() {
        Some(&[spool, at, len]) => SpoolRef { spool: spool as u32, at, len: len as u32 },
        _ => SpoolRef::default(),
    }
}

/// Converts the fields of another LSF's record: cwd is relative to the home directory, options2 has
/// other bits, environment and script are missing.
fn set_foreign(new: &mut JobNew, s: &mut JobSpec, lsb2: u32) {
    new.gid = NO_GID;
    for (ours, theirs) in OPT2 {
        if lsb2 & theirs != 0 {
            s.options2 |= ours;
        }
    }
    if s.cwd.is_empty() {
        s.cwd = s.home.clone();
    } else if s.cwd.as_bytes()[0] != b'/' && !s.home.is_empty() {
        let mut path = s.home.0.clone();
        path.push(b'/');
        path.extend_from_slice(s.cwd.as_bytes());
        s.cwd = ByteStr(path);
    }
    s.options2 &= !opt2::SCRIPT;
}
