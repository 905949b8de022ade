//! JOB_MODIFY2 (lsb.events(5): the order of the API's structure; that on LSF's disk is not
//! confirmed). Ours hold the whole submission as it is from then on, in the classic fields for
//! readers of the log, exactly in the spool. Without that mark a record is another LSF's, and
//! nothing is done about it.

use super::new::{
    checkpoint_dir, checkpoint_secs, first_checkpoint_secs, get_bytes, get_limits, get_place,
    put_copies, put_limit, put_limits, put_place, warn_action, warn_period,
};
use super::options::{OPT2, UNSET_SIGNAL, lsb_options, lsb_options2, lsb_options3};
use super::record::{put_job_file, put_list};
use super::record_error::RecordError;
use super::text::{Fields, Tail, find_tail, put_int, put_str};
use crate::lang::jobname::IndexList;
use crate::model::event::{ElementRange, Event, JobModify};
use crate::model::further;
use crate::model::job::{JobSpec, SpoolRef};
use crate::model::specfield::SpecField;

/// Everything after the record's head.
pub fn put_job_modify(out: &mut Vec<u8>, m: &JobModify) {
    put_request(out, m);
    put_files(out, m);
    put_options(out, &m.spec);
    put_tail(out, m);
}

/// Job, user, times, hosts, requirement and limits.
fn put_request(out: &mut Vec<u8>, m: &JobModify) {
    let s = &m.spec;
    put_str(out, job_text(m).as_bytes());
    put_int(out, lsb_options(s));
    put_int(out, lsb_options2(s));
    // delOptions delOptions2
    out.extend_from_slice(b" 0 0");
    put_int(out, m.uid);
    put_str(out, m.user.as_bytes());
    put_int(out, m.submit_time);
    put_int(out, s.umask);
    put_int(out, s.min_slots);
    put_int(out, s.begin_time);
    put_int(out, s.term_time);
    put_int(out, UNSET_SIGNAL);
    // restartPid
    put_int(out, 0);
    put_str(out, s.name.as_bytes());
    put_str(out, s.queue.as_bytes());
    put_list(out, &s.hosts);
    put_str(out, s.res_req.as_bytes());
    put_limits(out, &s.limits);
    put_str(out, s.limit_spec.as_bytes());
    put_str(out, s.depend.as_bytes());
    // timeEvent
    put_str(out, b"");
}

/// Files, commands and directories.
fn put_files(out: &mut Vec<u8>, m: &JobModify) {
    let s = &m.spec;
    for text in [&s.home, &s.in_file, &s.out_file, &s.err_file, &s.command] {
        put_str(out, text.as_bytes());
    }
    // inFileSpool commandSpool
    out.extend_from_slice(b" \"\" \"\"");
    put_int(out, checkpoint_secs(s));
    put_str(out, checkpoint_dir(s).as_bytes());
    put_copies(out, s);
    put_job_file(out, m.submit_time, m.job);
    put_str(out, s.from_host.as_bytes());
    put_str(out, s.cwd.as_bytes());
    put_str(out, s.pre_exec.as_bytes());
    put_str(out, s.mail_user.as_bytes());
    put_str(out, s.project.as_bytes());
}

/// The fields behind the project.
fn put_options(out: &mut Vec<u8>, s: &JobSpec) {
    // niosPort
    put_int(out, 0);
    put_int(out, s.max_slots);
    put_str(out, s.login_shell.as_bytes());
    // schedHostType
    put_str(out, b"");
    put_str(out, s.user_group.as_bytes());
    // exceptList
    put_str(out, b"");
    put_int(out, if s.priority == 0 { -1 } else { i64::from(s.priority) });
    // rsvId extsched, warningTimePeriod, warningAction
    out.extend_from_slice(b" \"\" \"\"");
    put_int(out, warn_period(s));
    put_str(out, warn_action(s).as_bytes());
    put_str(out, s.further.job_group.as_bytes());
    // sla licenseProject
    out.extend_from_slice(b" \"\" \"\"");
    put_int(out, lsb_options3(s));
    // delOptions3
    out.extend_from_slice(b" 0");
    put_str(out, s.further.application.as_bytes());
    put_str(out, s.further.text(further::APS).as_deref().unwrap_or_default().as_bytes());
    put_str(out, s.post_exec.as_bytes());
    // runtimeEstimation, requeueEValues, initChkpntPeriod, migThreshold notifyCmd
    out.extend_from_slice(b" -1");
    put_str(out, s.further.requeue.as_bytes());
    put_int(out, first_checkpoint_secs(s));
    out.extend_from_slice(b" -1 \"\"");
    put_str(out, s.description.as_bytes());
    // submitExt, src and dst cluster, options4 delOptions4
    out.extend_from_slice(b" 0 \"\" -1 \"\" -1 0 0");
    // no field of its own
    put_limit(out, s.limits.thread);
}

/// The pairs that are ours.
fn put_tail(out: &mut Vec<u8>, m: &JobModify) {
    let s = &m.spec;
    let mut tail = Tail::begin(out);
    put_place(&mut tail, out, "lsf.exact", m.exact);
    let words: Vec<&str> = m.fields.iter().map(|f| f.word()).collect();
    tail.text(out, "lsf.fields", words.join(" ").as_bytes());
    tail.nums(out, "lsf.options", b' ', &[u64::from(s.options), u64::from(s.options2)]);
    if m.alike {
        tail.nums(out, "lsf.alike", b' ', &[1]);
    }
    if !m.eff_res_req.is_empty() {
        tail.text(out, "lsf.eff", m.eff_res_req.as_bytes());
    }
    for (key, at) in [("lsf.script", m.script), ("lsf.env", m.env)] {
        if at != SpoolRef::default() {
            put_place(&mut tail, out, key, at);
        }
    }
    tail.end(out);
}

/// Reads what follows the record's head.
pub fn get_job_modify(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let foreign = || Event::Foreign { name: "JOB_MODIFY2".to_string() };
    let mut m = JobModify::default();
    let id = f.text()?;
    let mut ahead = f.clone();
    let read = get_fields(&mut ahead, &mut m);
    let Some(pairs) = find_tail(f) else { return Ok(foreign()) };
    for (key, value) in &pairs {
        match &**key {
            b"lsf.exact" => m.exact = get_place(value),
            b"lsf.script" => m.script = get_place(value),
            b"lsf.env" => m.env = get_place(value),
            b"lsf.fields" => {
                let words = String::from_utf8_lossy(value);
                let field = |w: &str| SpecField::ALL.iter().find(|f| f.word() == w).copied();
                m.fields = words.split(' ').filter_map(field).collect();
            }
            b"lsf.alike" => m.alike = &**value == b"1",
            b"lsf.eff" => m.eff_res_req = String::from_utf8_lossy(value).into_owned(),
            b"lsf.options" => {
                let bits = super::text::nums(value, ' ').unwrap_or_default();
                if let [one, two] = bits[..] {
                    (m.spec.options, m.spec.options2) = (one as u32, two as u32);
                }
            }
            _ => {}
        }
    }
    match read_job_text(&id) {
        Some((job, elems)) if m.exact != SpoolRef::default() => {
            read?;
            (m.job, m.elems) = (job, elems);
            Ok(Event::JobModify(Box::new(m)))
        }
        _ => Ok(foreign()),
    }
}

/// `29`, `29[1-3,7]`.
fn job_text(m: &JobModify) -> String {
    let mut text = m.job.to_string();
    for (i, &(first, last, step)) in m.elems.iter().enumerate() {
        text.push(if i == 0 { '[' } else { ',' });
        text.push_str(&first.to_string());
        if last > first {
            text.push_str(&format!("-{last}"));
        }
        if last > first && step > 1 {
            text.push_str(&format!(":{step}"));
        }
    }
    text.push_str(if m.elems.is_empty() { "" } else { "]" });
    text
}

/// Elements that were changed alike before are written as they are: there may be more ranges than
/// an operand of a command may have.
fn read_job_text(text: &str) -> Option<(u32, Vec<ElementRange>)> {
    let Some((id, list)) = text.split_once('[') else {
        return Some((text.parse().ok()?, Vec::new()));
    };
    let one = |text: &str| match IndexList::parse(text, false).ok()?.ranges[..] {
        [r] => Some((r.start, r.last(), r.step.max(1))),
        _ => None,
    };
    let elems = list.strip_suffix(']')?.split(',').map(one).collect::<Option<_>>()?;
    Some((id.parse().ok()?, elems))
}

fn get_fields(f: &mut Fields<'_>, m: &mut JobModify) -> Result<(), RecordError> {
    let s = &mut m.spec;
    f.skip(1)?;
    let lsb2: u32 = f.num()?;
    for (ours, theirs) in OPT2 {
        s.options2 |= if lsb2 & theirs != 0 { ours } else { 0 };
    }
    f.skip(2)?;
    m.uid = f.num()?;
    m.user = f.text()?;
    m.submit_time = f.num()?;
    s.umask = f.num()?;
    s.min_slots = f.num()?;
    s.begin_time = f.num()?;
    s.term_time = f.num()?;
    f.skip(2)?;
    s.name = f.text()?;
    s.queue = f.text()?;
    s.hosts = f.list()?;
    s.res_req = f.text()?;
    s.limits = get_limits(f)?;
    s.limit_spec = f.text()?;
    s.depend = f.text()?;
    f.skip(1)?;
    s.home = get_bytes(f)?;
    s.in_file = get_bytes(f)?;
    s.out_file = get_bytes(f)?;
    s.err_file = get_bytes(f)?;
    s.command = get_bytes(f)?;
    // inFileSpool commandSpool chkpntPeriod chkpntDir
    f.skip(4)?;
    let nxf: usize = f.num()?;
    // subFn execFn opt of each, jobFile
    f.skip(3 * nxf + 1)?;
    s.from_host = f.text()?;
    s.cwd = get_bytes(f)?;
    s.pre_exec = get_bytes(f)?;
    s.mail_user = f.text()?;
    s.project = f.text()?;
    f.skip(1)?;
    s.max_slots = f.num()?;
    s.login_shell = get_bytes(f)?;
    f.skip(1)?;
    s.user_group = f.text()?;
    f.skip(1)?;
    let priority: i64 = f.num()?;
    s.priority = priority.try_into().unwrap_or(0);
    get_further(f, s)?;
    // initChkpntPeriod migThreshold notifyCmd
    f.skip(3)?;
    s.description = f.text()?;
    f.skip(7)?;
    s.limits.thread = f.limit()?;
    Ok(())
}

/// The fields from the reservation to the requeue exit values, and the post-execution command
/// between them.
fn get_further(f: &mut Fields<'_>, s: &mut JobSpec) -> Result<(), RecordError> {
    // rsvId extsched
    f.skip(2)?;
    let warn_secs: i64 = f.num()?;
    let warn_action = f.text()?;
    let job_group = f.text()?;
    // sla licenseProject options3 delOptions3
    f.skip(4)?;
    let application = f.text()?;
    let aps = f.text()?;
    s.post_exec = get_bytes(f)?;
    // runtimeEstimation
    f.skip(1)?;
    let requeue = f.text()?;
    // what is empty leaves the submission without further options
    let warn_secs = if warn_secs > 0 { warn_secs.to_string() } else { String::new() };
    let texts = [
        ("wt", warn_secs),
        ("wa", warn_action),
        ("g", job_group),
        ("app", application),
        ("Q", requeue),
        (further::APS, aps),
    ];
    for (key, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
        s.further.put_text(key, text);
    }
    Ok(())
}
