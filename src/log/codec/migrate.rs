//! MIG: a started job is to be migrated (lsb.events(5)).

use super::record::put_list;
use super::record_error::RecordError;
use super::text::{Fields, Tail, find_tail, nums, put_int, put_str};
use crate::model::JobRef;
use crate::model::checkpoint::CheckpointOrder;
use crate::model::event::{Event, JobMigrate};

/// jobId numAskedHosts askedHosts userId idx userName.
pub(super) fn put_migrate(out: &mut Vec<u8>, m: &JobMigrate) {
    put_int(out, m.at.job);
    put_list(out, &m.hosts);
    put_int(out, m.uid);
    put_int(out, m.at.idx);
    put_str(out, m.user.as_bytes());
    let mut tail = Tail::begin(out);
    tail.nums(out, "lsf.attempt", b' ', &[u64::from(m.attempt)]);
    if m.by_admin {
        tail.nums(out, "lsf.by_admin", b' ', &[1]);
    }
    if let Some(order) = m.checkpoint {
        tail.nums(out, "lsf.checkpoint", b' ', &[u64::from(order.force)]);
    }
    if !m.request.is_empty() {
        tail.text(out, "lsf.request", m.request.as_bytes());
    }
    tail.end(out);
}

pub(super) fn get_migrate(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let job = f.num()?;
    let hosts = f.list()?;
    let (uid, idx, user) = (f.num()?, f.num()?, f.text()?);
    let at = JobRef { job, idx };
    let mut m = JobMigrate { at, uid, user, hosts, ..JobMigrate::default() };
    for (key, value) in find_tail(f).unwrap_or_default() {
        let number = || nums(&value, ' ').and_then(|all| all.first().copied()).unwrap_or(0);
        match &*key {
            b"lsf.attempt" => m.attempt = u32::try_from(number()).unwrap_or(0),
            b"lsf.checkpoint" => {
                let force = number() == 1;
                m.checkpoint = Some(CheckpointOrder { kill: true, force, period: None });
            }
            b"lsf.by_admin" => m.by_admin = number() == 1,
            b"lsf.request" => m.request = String::from_utf8_lossy(&value).into_owned(),
            _ => {}
        }
    }
    Ok(Event::JobMigrate(Box::new(m)))
}
