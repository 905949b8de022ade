//! LSF_RUN_LIMIT: the run limit of a started job by EXTENDABLE_RUNLIMIT (lsb.events(5)).

use super::record_error::RecordError;
use super::text::{Fields, put_int, put_u64};
use crate::model::JobRef;
use crate::model::event::{Event, RunLimitChange};

/// jobId idx attempt seconds hard.
pub(super) fn put_change(out: &mut Vec<u8>, r: &RunLimitChange) {
    for n in [r.at.job, r.at.idx, r.attempt] {
        put_int(out, n);
    }
    put_u64(out, r.secs);
    put_int(out, u32::from(r.hard));
}

pub(super) fn get_change(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let at = JobRef { job: f.num()?, idx: f.num()? };
    let (attempt, secs, hard) = (f.num()?, f.num()?, f.num::<u32>()? != 0);
    Ok(Event::RunLimit(RunLimitChange { at, attempt, secs, hard }))
}
