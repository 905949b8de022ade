//! JOB_SIGNAL, and LSF_ARRAY_SIGNAL, LSF_ARRAY_SWITCH and LSF_ARRAY_MOVE for many elements at once
//! (lsb.events(5)).

use super::record_error::RecordError;
use super::text::{Fields, Tail, find_tail, one_number, put_int, put_str, put_u64};
use crate::model::JobRef;
use crate::model::action::JobAction;
use crate::model::event::{ArrayMove, ArraySignal, ElementRange, Event, JobSignal, QueuePosition};
use crate::model::job_state::LoggedStatus;

pub(super) fn put_signal(out: &mut Vec<u8>, s: &JobSignal) {
    put_fields(out, s);
    put_tail(out, s);
}

/// jobId userId runCount signalSymbol idx userName.
fn put_fields(out: &mut Vec<u8>, s: &JobSignal) {
    for n in [s.at.job, s.uid, s.run_count] {
        put_int(out, n);
    }
    put_str(out, s.action.word().as_bytes());
    put_int(out, s.at.idx);
    put_str(out, s.user.as_bytes());
}

fn put_tail(out: &mut Vec<u8>, s: &JobSignal) {
    let mut tail = Tail::begin(out);
    for (key, on) in [("lsf.by_admin", s.by_admin), ("lsf.done", s.done), ("lsf.bulk", s.bulk)] {
        if on {
            tail.nums(out, key, b' ', &[1]);
        }
    }
    let texts = [("lsf.host", &s.host), ("lsf.reason", &s.reason), ("lsf.request", &s.request)];
    for (key, text) in texts {
        if !text.is_empty() {
            tail.text(out, key, text.as_bytes());
        }
    }
    tail.end(out);
}

pub(super) fn get_signal(f: &mut Fields<'_>) -> Result<JobSignal, RecordError> {
    let mut s = get_fields(f)?;
    get_tail(f, &mut s);
    Ok(s)
}

fn get_fields(f: &mut Fields<'_>) -> Result<JobSignal, RecordError> {
    let (job, uid, run_count) = (f.num()?, f.num()?, f.num()?);
    let action = JobAction::of_word(&f.text()?);
    let idx = f.num()?;
    let user = f.text()?;
    let at = JobRef { job, idx };
    Ok(JobSignal { at, uid, user, action, run_count, ..JobSignal::default() })
}

fn get_tail(f: &Fields<'_>, s: &mut JobSignal) {
    for (key, value) in find_tail(f).unwrap_or_default() {
        let text = || String::from_utf8_lossy(&value).into_owned();
        match &*key {
            b"lsf.by_admin" => s.by_admin = one_number(&value) != 0,
            b"lsf.done" => s.done = one_number(&value) != 0,
            b"lsf.bulk" => s.bulk = one_number(&value) != 0,
            b"lsf.host" => s.host = text(),
            b"lsf.reason" => s.reason = text(),
            b"lsf.request" => s.request = text(),
            _ => {}
        }
    }
}

/// The fields of JOB_SIGNAL, then jStatus reason endTime exitInfo, and the elements.
pub(super) fn put_array_signal(out: &mut Vec<u8>, s: &ArraySignal) {
    put_fields(out, &s.signal);
    put_int(out, s.status.bits());
    put_int(out, s.reason);
    put_int(out, s.end_time);
    put_int(out, s.exit_info);
    put_ranges(out, &s.elems);
    put_tail(out, &s.signal);
}

/// The elements as `first-last:step`, after their number.
pub(super) fn put_ranges(out: &mut Vec<u8>, elems: &[ElementRange]) {
    put_u64(out, elems.len() as u64);
    for &(first, last, step) in elems {
        let text = match (first == last, step) {
            (true, _) => first.to_string(),
            (false, 0 | 1) => format!("{first}-{last}"),
            (false, step) => format!("{first}-{last}:{step}"),
        };
        put_str(out, text.as_bytes());
    }
}

fn get_ranges(f: &mut Fields<'_>) -> Result<Vec<ElementRange>, RecordError> {
    let elems = f.list()?.iter().map(|text| range(text)).collect::<Option<Vec<_>>>();
    elems.ok_or(RecordError::NotARecord)
}

/// The fields of JOB_SWITCH with idx 0, and the elements as in LSF_ARRAY_SIGNAL.
pub(super) fn get_array_switch(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let (uid, job, queue) = (f.num()?, f.num()?, f.text()?);
    let (_, user): (u32, String) = (f.num()?, f.text()?);
    Ok(Event::ArraySwitch { job, elems: get_ranges(f)?, queue, uid, user })
}

/// The fields of JOB_MOVE with idx 0, the place, and the elements as in LSF_ARRAY_SIGNAL.
pub(super) fn put_array_move(out: &mut Vec<u8>, m: &ArrayMove) {
    for n in [m.uid, m.job, m.position, if m.top { 1 } else { 2 }, 0] {
        put_int(out, n);
    }
    put_str(out, m.user.as_bytes());
    put_u64(out, m.place.base);
    put_int(out, m.place.between);
    put_ranges(out, &m.elems);
}

pub(super) fn get_array_move(f: &mut Fields<'_>) -> Result<ArrayMove, RecordError> {
    let (uid, job, position, base) = (f.num()?, f.num()?, f.num()?, f.num::<u32>()?);
    let (_, user): (u32, String) = (f.num()?, f.text()?);
    let place = QueuePosition { base: f.num()?, between: f.num()? };
    Ok(ArrayMove { job, elems: get_ranges(f)?, position, top: base == 1, uid, user, place })
}

pub(super) fn get_array_signal(f: &mut Fields<'_>) -> Result<ArraySignal, RecordError> {
    let signal = get_fields(f)?;
    let status = LoggedStatus::of_bits(f.num()?);
    let (reason, end_time, exit_info) = (f.num()?, f.num()?, f.num()?);
    let elems = get_ranges(f)?;
    let mut s = ArraySignal { elems, signal, status, reason, end_time, exit_info };
    get_tail(f, &mut s.signal);
    Ok(s)
}

/// Elements in ascending order; `None`: other text.
fn range(text: &str) -> Option<ElementRange> {
    let (span, step) = text.split_once(':').unwrap_or((text, "1"));
    let (first, last) = span.split_once('-').unwrap_or((span, span));
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    let step: u32 = step.parse().ok()?;
    (first > 0 && first <= last && step > 0).then_some((first, last, step))
}
