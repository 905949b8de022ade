//! JOB_SIGACT of a checkpoint that was asked for, and CHKPNT of one that has ended
//! (lsb.events(5)).

use super::record_error::RecordError;
use super::text::{Fields, Tail, find_tail, nums, put_int, put_str};
use crate::model::JobRef;
use crate::model::checkpoint::{CheckpointEnd, CheckpointOrder};
use crate::model::event::{CheckpointStep, Event, JobCheckpoint};

/// The symbol of JOB_SIGACT.
pub(super) const SYMBOL: &str = "SIG_CHKPNT";
/// actStatus of an action that has begun.
const BEGUN: u32 = 1;
/// Bits of the flags, as lsbatch.h numbers them.
const KILL: u32 = 0x1;
const FORCE: u32 = 0x2;

fn bits(kill: bool, force: bool) -> u32 {
    (u32::from(kill) * KILL) | (u32::from(force) * FORCE)
}

pub(super) fn put_checkpoint(out: &mut Vec<u8>, c: &JobCheckpoint) {
    put_int(out, c.at.job);
    let mut tail_nums: Vec<(&str, Vec<u64>)> = vec![("lsf.attempt", vec![u64::from(c.attempt)])];
    match c.step {
        // period pid jStatus reasons flags actStatus signalSymbol idx
        CheckpointStep::Asked(order) => {
            put_int(out, i64::from(order.period.unwrap_or(0)) * 60);
            put_int(out, c.pid);
            out.extend_from_slice(b" 0 0");
            put_int(out, bits(order.kill, order.force));
            put_int(out, BEGUN);
            put_str(out, SYMBOL.as_bytes());
            if let Some(minutes) = order.period {
                tail_nums.push(("lsf.period", vec![u64::from(minutes)]));
            }
            tail_nums.push(("lsf.uid", vec![u64::from(c.uid)]));
        }
        // period pid ok flags idx
        CheckpointStep::Ended(end) => {
            put_int(out, i64::from(end.period.unwrap_or(0)) * 60);
            put_int(out, c.pid);
            put_int(out, u32::from(end.succeeded));
            put_int(out, bits(end.kill, false));
            tail_nums.push(("lsf.number", vec![u64::from(end.number), u64::from(end.asked)]));
            if let Some(minutes) = end.period {
                tail_nums.push(("lsf.period", vec![u64::from(minutes)]));
            }
        }
    }
    put_int(out, c.at.idx);
    let mut tail = Tail::begin(out);
    for (key, values) in tail_nums {
        tail.nums(out, key, b' ', &values);
    }
    for (key, text) in [("lsf.user", &c.user), ("lsf.request", &c.request)] {
        if !text.is_empty() {
            tail.text(out, key, text.as_bytes());
        }
    }
    tail.end(out);
}

/// `asked`: JOB_SIGACT; `None`: of another action.
pub(super) fn get_checkpoint(
    f: &mut Fields<'_>,
    asked: bool,
) -> Result<Option<Event>, RecordError> {
    let mut c = JobCheckpoint::default();
    let job = f.num()?;
    f.skip(1)?;
    c.pid = f.small()?;
    let mut order = CheckpointOrder::default();
    let mut end = CheckpointEnd::default();
    if asked {
        f.skip(2)?;
        let flags: u32 = f.num()?;
        (order.kill, order.force) = (flags & KILL != 0, flags & FORCE != 0);
        f.skip(1)?;
        if f.text()? != SYMBOL {
            return Ok(None);
        }
    } else {
        end.succeeded = f.num::<u32>()? != 0;
        end.kill = f.num::<u32>()? & KILL != 0;
    }
    c.at = JobRef { job, idx: f.num()? };
    for (key, value) in find_tail(f).unwrap_or_default() {
        let numbers = nums(&value, ' ').unwrap_or_default();
        let number = |i: usize| numbers.get(i).and_then(|n| u32::try_from(*n).ok()).unwrap_or(0);
        let text = || String::from_utf8_lossy(&value).into_owned();
        match &*key {
            b"lsf.attempt" => c.attempt = number(0),
            b"lsf.uid" => c.uid = number(0),
            b"lsf.period" => (order.period, end.period) = (Some(number(0)), Some(number(0))),
            b"lsf.number" => (end.number, end.asked) = (number(0), number(1) != 0),
            b"lsf.user" => c.user = text(),
            b"lsf.request" => c.request = text(),
            _ => {}
        }
    }
    c.step = if asked { CheckpointStep::Asked(order) } else { CheckpointStep::Ended(end) };
    Ok(Some(Event::JobCheckpoint(Box::new(c))))
}
