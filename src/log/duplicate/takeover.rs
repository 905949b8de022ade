//! A master other than the first one opens the log in the shared directory, which is a copy.
//!
//! The copy may lack what the first master logged last: jobs whose IDs it gave to users, and
//! starts. So a gap of job IDs is left out, and the epoch of this run goes beyond all that the
//! first master may have had meanwhile. Where the copy ended is noted for the first master's
//! return, before anything is appended.

use super::notes::{CopyNote, Taken};
use crate::batch::Recovered;
use crate::log::EVENTS;
use crate::log::batch::Batch;
use crate::log::disk::Disk;
use crate::log::fail::{Fail, said};
use crate::log::owner::{Owner, Read};
use crate::log::store::Store;
use crate::model::event::{Event, Record};
use std::io;

/// Job IDs that are left out.
pub const GAP: u32 = 10_000;

/// Starts of mbatchd on the first host that the shared directory does not know of.
const STARTS: u64 = 1_000;

/// The note of a copy, and the lowest epoch of the run that takes it over.
pub fn look(disk: &mut dyn Disk, now: i64) -> io::Result<Option<(CopyNote, u64)>> {
    let Some(note) = CopyNote::read(disk)? else { return Ok(None) };
    let known = match Owner::read(disk)? {
        Read::Is(owner) => owner.epoch,
        _ => 0,
    };
    Ok(Some((note, (known + STARTS).max(now.max(1) as u64))))
}

/// Makes the copy a log of this host's, and says what it may lack.
pub fn take<D: Disk>(
    store: &mut Store<D>,
    found: &mut Recovered,
    note: &CopyNote,
    me: &str,
    now: i64,
) -> Result<String, Fail> {
    let host = &note.host;
    if note.complete {
        CopyNote::discard(store.disk()).map_err(said(EVENTS))?;
        return Ok(format!("{EVENTS} is the copy of host {host}, which ended in order"));
    }
    let taken = match Taken::read(store.disk()).map_err(said(EVENTS))? {
        // an earlier attempt of this host or another was interrupted
        Some(taken) if taken.host == *host => taken,
        _ => {
            let taken = ended(store, found, host, me, now);
            taken.write(store.disk()).map_err(said(EVENTS))?;
            taken
        }
    };
    let event = Event::Carried { next_job: taken.next, epoch: found.epoch };
    let newest = found.records.iter().map(|r| r.time).max();
    let record = Record { time: now.max(newest.unwrap_or(0)), event };
    let mut batch = Batch::default();
    batch.append(&record);
    store.commit(&batch, 0, &mut |_| {})?;
    found.records.push(record);
    CopyNote::discard(store.disk()).map_err(said(EVENTS))?;
    let age = newest.map_or(0, |time| now.saturating_sub(time).max(0));
    Ok(format!(
        "{EVENTS} is a copy of the log of host {host}: its last record is {age} seconds old, its \
         last job is <{}>. Later records of that host are missing until it returns with its disk. \
         Job IDs continue with <{}>",
        taken.last, taken.next
    ))
}

fn ended<D: Disk>(
    store: &mut Store<D>,
    found: &Recovered,
    host: &str,
    me: &str,
    now: i64,
) -> Taken {
    let carried = found.records.iter().filter_map(|record| match &record.event {
        Event::Carried { next_job, .. } => Some(next_job.saturating_sub(1)),
        Event::LogSwitch { last_job } => Some(*last_job),
        _ => None,
    });
    let last = carried.chain(found.seen_ids.iter().copied()).max().unwrap_or(0);
    Taken {
        host: host.to_owned(),
        by: me.to_owned(),
        time: now,
        last,
        next: last.saturating_add(1).saturating_add(GAP),
        spool: store.begun(),
    }
}
