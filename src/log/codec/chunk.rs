//! JOB_CHUNK: the members of a chunk job (lsb.events(5)).

use super::record::put_hosts;
use super::record_error::RecordError;
use super::text::{Fields, put_u64};
use crate::model::JobRef;
use crate::model::event::{Event, JobChunk};

/// Most members of a record that room is made for before they are read.
const ROOM: usize = 1024;

/// membSize membJobId... numExHosts execHosts...; an element's number is its index times 2^32 plus
/// the number of its job.
pub(super) fn put_chunk(out: &mut Vec<u8>, chunk: &JobChunk) {
    put_u64(out, chunk.members.len() as u64);
    for at in &chunk.members {
        put_u64(out, u64::from(at.idx) << 32 | u64::from(at.job));
    }
    put_hosts(out, &chunk.hosts, chunk.short_hosts);
}

pub(super) fn get_chunk(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let count: usize = f.num()?;
    let mut members = Vec::with_capacity(count.min(ROOM));
    for _ in 0..count {
        let id: u64 = f.num()?;
        members.push(JobRef { job: id as u32, idx: (id >> 32) as u32 });
    }
    let (hosts, short_hosts) = f.hosts_with_slots()?;
    let hosts = hosts.into_iter().map(|(host, slots)| (host.into(), slots)).collect();
    Ok(Event::JobChunk(Box::new(JobChunk { members, hosts, short_hosts })))
}
