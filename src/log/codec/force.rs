//! JOB_FORCE: an administrator had a job started (lsb.events(5)).

use super::record::put_slots;
use super::record_error::RecordError;
use super::text::{Fields, Tail, find_tail, put_int, put_str};
use crate::model::JobRef;
use crate::model::event::{Event, JobForce};

/// jobId userId idx options numExecHosts execHosts userName queue.
pub(super) fn put_force(out: &mut Vec<u8>, force: &JobForce) {
    for n in [force.at.job, force.uid, force.at.idx, force.options] {
        put_int(out, n);
    }
    put_slots(out, &force.hosts);
    put_str(out, force.user.as_bytes());
    put_str(out, force.queue.as_bytes());
    let mut tail = Tail::begin(out);
    if !force.request.is_empty() {
        tail.text(out, "lsf.request", force.request.as_bytes());
    }
    tail.end(out);
}

pub(super) fn get_force(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let (job, uid, idx, options) = (f.num()?, f.num()?, f.num()?, f.num()?);
    let hosts = f.slots()?.into_iter().map(|(host, n)| (host.into(), n)).collect();
    let user = f.text()?;
    // an older record has no queue
    let queue = f.text().unwrap_or_default();
    let tail = find_tail(f).unwrap_or_default();
    let request = tail.iter().find(|(key, _)| &**key == b"lsf.request");
    let request = request.map_or(String::new(), |(_, v)| String::from_utf8_lossy(v).into_owned());
    let at = JobRef { job, idx };
    Ok(Event::JobForce(Box::new(JobForce { at, uid, user, options, hosts, queue, request })))
}
