//! Lines without checksum entry that say once more what a record before them says: doubled by
//! damage, and not to be acted on twice.
//!
//! Two records of one text may both be true, where they are of one second and of a kind that can
//! happen again (killed, put back, killed again). A record was doubled where its event happens once
//! in an attempt, where it is older than the record before it, or where it stands behind such a
//! line.

use super::super::checksums::Entry;
use crate::model::event::{Event, Record};
use crate::model::job::stat;
use std::collections::HashSet;

/// Entries before a line among which the record of the same second is looked for.
pub(super) const RECENT: usize = 4096;

/// The records read so far.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// Length and CRC-32 of the record before.
    last: (u32, u32),
    /// The record before was a repetition; and the one before that.
    was: bool,
    before: bool,
    /// Of all entries, made when it is asked for.
    all: Option<HashSet<(u32, u32)>>,
}

impl Repeats {
    /// A record that an entry covers.
    pub(super) fn told(&mut self, entry: Entry) {
        self.last = (entry.len, entry.crc);
    }

    /// Is a record without entry one of those before it once more? `entries`: those of the log.
    pub(super) fn again(
        &mut self,
        entry: Entry,
        record: &Record,
        entries: &[Entry],
        newest: i64,
    ) -> bool {
        let key = (entry.len, entry.crc);
        self.before = self.was;
        let same = std::mem::replace(&mut self.last, key) == key;
        self.was = same || self.known(key, (entry.at, record), entries, newest);
        self.was
    }

    /// Was the record before this one there twice?
    pub(super) fn behind_one(&self) -> bool {
        self.before
    }

    fn known(
        &mut self,
        key: (u32, u32),
        (at, r): (u64, &Record),
        entries: &[Entry],
        newest: i64,
    ) -> bool {
        if r.time < newest {
            let all = || entries.iter().map(|e| (e.len, e.crc)).collect();
            return self.all.get_or_insert_with(all).contains(&key);
        }
        let before = &entries[..entries.partition_point(|e| e.end() <= at)];
        let recent = &before[before.len().saturating_sub(RECENT)..];
        r.time == newest
            && (once(&r.event) || self.was)
            && recent.iter().any(|e| (e.len, e.crc) == key)
    }
}

/// Does it happen once only?
fn once(event: &Event) -> bool {
    match event {
        Event::JobNew(_)
        | Event::JobStart(_)
        | Event::JobStartAccept { .. }
        | Event::JobExecute { .. }
        | Event::JobClean { .. } => true,
        Event::JobStatus(s) => s.attempt > 0 && s.status & (stat::DONE | stat::EXIT) != 0,
        _ => false,
    }
}
