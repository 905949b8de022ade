//! LSF_RESERVE: the slots that a pending job keeps (lsb.events(5)).

use super::record_error::RecordError;
use super::text::{Fields, put_int, put_str, put_u64};
use crate::model::JobRef;
use crate::model::event::{Event, JobReserve};

/// duration4PreemptBackfill of a start that no time slice ends.
pub(super) const NO_SLICE: u64 = 2_147_483_647;
/// Most hosts of a record that room is made for before they are read.
const ROOM: usize = 1024;

/// jobId idx since until start end numHosts, and of each host its name, planned and kept slots;
/// behind these, where memory is kept, numHosts again and the MB planned on each, then likewise
/// the MB that are kept.
pub(super) fn put_reserve(out: &mut Vec<u8>, r: &JobReserve) {
    put_int(out, r.at.job);
    put_int(out, r.at.idx);
    for time in [r.since, r.until, r.start, r.end] {
        put_int(out, time);
    }
    put_u64(out, r.hosts.len() as u64);
    for (host, planned, kept) in &r.hosts {
        put_str(out, host.as_bytes());
        put_int(out, *planned);
        put_int(out, *kept);
    }
    if !r.memory.is_empty() {
        put_u64(out, r.memory.len() as u64);
        r.memory.iter().for_each(|mb| put_u64(out, *mb));
        if !r.kept_memory.is_empty() {
            put_u64(out, r.kept_memory.len() as u64);
            r.kept_memory.iter().for_each(|mb| put_u64(out, *mb));
        }
    }
}

pub(super) fn get_reserve(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let at = JobRef { job: f.num()?, idx: f.num()? };
    let (since, until, start, end) = (f.num()?, f.num()?, f.num()?, f.num()?);
    let count: usize = f.num()?;
    let mut hosts = Vec::with_capacity(count.min(ROOM));
    for _ in 0..count {
        hosts.push((f.text()?.into(), f.num()?, f.num()?));
    }
    let (memory, kept_memory) = (get_memory(f)?, get_memory(f)?);
    let reserve = JobReserve { at, since, until, start, end, hosts, memory, kept_memory };
    Ok(Event::JobReserve(Box::new(reserve)))
}

/// The MB of each host; older records do without.
fn get_memory(f: &mut Fields<'_>) -> Result<Vec<u64>, RecordError> {
    if f.at_end() {
        return Ok(Vec::new());
    }
    let count: usize = f.num()?;
    (0..count).map(|_| f.num()).collect()
}
