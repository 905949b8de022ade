//! Lines without checksum entry that say once more what a record before them says: doubled by
//! damage, and not to be acted on twice.
//!
//! Two records of one text may both be true, where they are of one second and of a kind that can
//! happen again (killed, put back, killed again). A record was doubled where its event happens once
//! in an attempt, where it is older than the record before it, or where it stands behind such a
//! line; and among lines with entries, where every true record has one. The record before it
//! counts, not the newest one of the log: a clock that is set back makes true records older than
//! that.
//!
//! The lines behind the last entry are the newest ones, whose entries a loss of power took: an
//! equal pair among them is true.

use super::super::checksums::ChecksumEntry;
use crate::model::event::{Event, Record};
use std::collections::HashSet;

/// Entries before a line that are searched for the record of the same second.
pub(super) const RECENT: usize = 4096;

/// The times of the records that were taken for true so far, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordTimes {
    /// The time of the last one. A record behind damage that is older is not taken for true.
    pub(super) last: i64,
    /// The time of the newest one: later than `last` where the clock was set back.
    pub(super) newest: i64,
}

impl RecordTimes {
    pub(super) fn add(&mut self, time: i64) {
        (self.last, self.newest) = (time, self.newest.max(time));
    }
}

/// The records read so far.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// Length and CRC-32 of the record before, and whether an entry covers it.
    last: (u32, u32),
    covered: bool,
    /// The record before was a repetition; and the one before that.
    was: bool,
    before: bool,
    /// The keys of all entries, collected at the first request.
    all: Option<HashSet<(u32, u32)>>,
}

impl Repeats {
    /// A record that an entry covers.
    pub(super) fn told(&mut self, entry: ChecksumEntry) {
        (self.last, self.covered) = ((entry.len, entry.crc), true);
    }

    /// A line behind all entries with which mbatchd begins a run.
    pub(super) fn run_begins(&mut self) {
        *self = Repeats { all: self.all.take(), ..Repeats::default() };
    }

    /// Is a record without entry one of those before it once more? `entries`: those of the log;
    /// `times`: of the records before it; `tail`: the record lies behind all entries.
    pub(super) fn again(
        &mut self,
        entry: ChecksumEntry,
        record: &Record,
        entries: &[ChecksumEntry],
        times: RecordTimes,
        tail: bool,
    ) -> bool {
        let key = (entry.len, entry.crc);
        self.before = self.was;
        let equal = std::mem::replace(&mut self.last, key) == key;
        let covered = std::mem::replace(&mut self.covered, false);
        let may_be_true = tail && !self.before && record.time == times.last && !once(&record.event);
        if equal && may_be_true {
            // behind the last entry either may be so: the record is passed over, for its event
            // changes nothing the second time, and the next ones are not doubted for it
            self.was = false;
            return covered;
        }
        self.was = equal || self.known(key, (entry.at, record), entries, times);
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
        entries: &[ChecksumEntry],
        times: RecordTimes,
    ) -> bool {
        // of before the clock was set back, or of the same second after it
        let older_clock = r.time > times.last && r.time <= times.newest;
        let may_not_recur = once(&r.event) || self.was;
        if r.time < times.last || older_clock && may_not_recur {
            let all = || entries.iter().map(|e| (e.len, e.crc)).collect();
            return self.all.get_or_insert_with(all).contains(&key);
        }
        let before = &entries[..entries.partition_point(|e| e.end() <= at)];
        let recent = &before[before.len().saturating_sub(RECENT)..];
        r.time == times.last && may_not_recur && recent.iter().any(|e| (e.len, e.crc) == key)
    }
}

/// Is it one of those with which each run of mbatchd begins? They change nothing the second time,
/// and are never taken for a repetition behind all entries: a machine without a clock of its own
/// starts in the same second each time, and what the run then acknowledged is older than the
/// record before it.
pub(super) fn begins_a_run(event: &Event) -> bool {
    matches!(event, Event::LoadIndex { .. } | Event::MbdStart { .. })
}

/// Does it happen once only? A JOB_EXECUTE does not: its record has no attempt number, and the next
/// attempt of one second may get the process ID of the one before.
fn once(event: &Event) -> bool {
    match event {
        Event::JobNew(_)
        | Event::JobStart(_)
        | Event::JobStartAccept { .. }
        | Event::JobClean { .. } => true,
        Event::JobStatus(s) => s.attempt > 0 && s.status.is_finished(),
        _ => false,
    }
}
