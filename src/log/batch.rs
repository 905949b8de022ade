//! The contents of one commit: records, spooled bytes, accounting.

use super::checksums::ChecksumEntry;
use super::codec::{job_of, spooled_of, write_finish, write_record};
use super::codec::{write_reservation_finish, write_resize};
use super::element_ends::{ElementEnds, SLICE, UnwrittenEnds};
use crate::model::event::{ElementRange, Finish, Record, ResizeAccount};
use crate::model::job::SpoolRef;
use crate::model::reservation::ReservationFinish;

/// Spooled bytes that lie one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct SpoolRun {
    pub(super) spool: u32,
    pub(super) at: u64,
    pub(super) data: Vec<u8>,
    /// The checksum entries of the pieces.
    pub(super) entries: Vec<ChecksumEntry>,
}

/// The records of a commit as lines: first those of lsb.events, then those of lsb.acct.
#[derive(Debug, Default)]
pub struct CommittedLines {
    events: Vec<u8>,
    acct: Vec<u8>,
    ends: UnwrittenEnds,
}

impl CommittedLines {
    /// Lines of lsb.events.
    #[cfg(test)]
    pub fn of_events(events: Vec<u8>) -> CommittedLines {
        CommittedLines { events, ..CommittedLines::default() }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.events.len() + self.acct.len() + self.ends.bytes()
    }

    /// The number of its lines.
    pub fn records(&self) -> u64 {
        let lines = |piece: &[u8]| piece.iter().filter(|b| **b == b'\n').count() as u64;
        lines(&self.events) + lines(&self.acct) + self.ends.records()
    }

    /// The next whole lines; empty: none is left.
    pub fn next_piece(&mut self) -> Vec<u8> {
        for lines in [&mut self.events, &mut self.acct] {
            if !lines.is_empty() {
                return std::mem::take(lines);
            }
        }
        let mut lines = Vec::new();
        self.ends.write(SLICE, &mut lines);
        lines
    }
}

/// The contents of one commit.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Given by the caller, reported back.
    pub ticket: u64,
    pub(super) events: Vec<u8>,
    /// Places relative to the batch.
    pub(super) entries: Vec<ChecksumEntry>,
    pub(super) spool: Vec<SpoolRun>,
    pub(super) acct: Vec<u8>,
    /// Ends of many elements, whose records are made after the commit.
    pub(super) ends: Vec<ElementEnds>,
    pub(super) newest: i64,
    /// The batch has a record of no job.
    pub(super) control: bool,
}

impl Batch {
    /// Adds a record to lsb.events.
    pub fn append(&mut self, record: &Record) {
        let from = self.events.len();
        write_record(record, &mut self.events);
        if let Some((job, places)) = spooled_of(&record.event) {
            self.spooled_for(job, places);
        }
        if self.events.len() > from {
            let line = &self.events[from..];
            self.entries.push(ChecksumEntry::of(from as u64, line, &record.event));
            self.newest = self.newest.max(record.time);
            self.control |= job_of(&record.event).job == 0;
        }
    }

    /// Notes whose record refers to pieces of this batch.
    fn spooled_for(&mut self, job: u32, places: [SpoolRef; 3]) {
        let Some(run) = self.spool.last_mut() else { return };
        for at in places.iter().filter(|at| at.len > 0 && at.spool == run.spool) {
            // they were spooled just before
            let mut last = run.entries.iter_mut().rev().take(places.len());
            if let Some(entry) = last.find(|e| e.at == at.at) {
                entry.job.job = job;
            }
        }
    }

    /// Adds spooled bytes at their place.
    pub fn spool(&mut self, at: SpoolRef, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let (len, crc) = (data.len() as u32, crc32fast::hash(data));
        let entry = ChecksumEntry { at: at.at, len, crc, ..ChecksumEntry::default() };
        self.spool_run(at.spool, at.at, data, &[entry]);
    }

    fn spool_run(&mut self, spool: u32, at: u64, data: &[u8], entries: &[ChecksumEntry]) {
        match self.spool.last_mut() {
            Some(run) if run.spool == spool && run.at + run.data.len() as u64 == at => {
                run.data.extend_from_slice(data);
                run.entries.extend_from_slice(entries);
            }
            _ => {
                let (data, entries) = (data.to_vec(), entries.to_vec());
                self.spool.push(SpoolRun { spool, at, data, entries });
            }
        }
    }

    /// Adds a record to lsb.acct.
    pub fn account(&mut self, finish: &Finish) {
        write_finish(finish, &mut self.acct);
    }

    /// Adds the record of a change of slots to lsb.acct.
    pub fn account_resize(&mut self, resize: &ResizeAccount) {
        write_resize(resize, &mut self.acct);
    }

    /// Adds the record of a period of a reservation to lsb.acct.
    pub fn account_reservation(&mut self, finish: &ReservationFinish) {
        write_reservation_finish(finish, &mut self.acct);
    }

    /// Has a record for each of these elements, which ended alike, added to lsb.acct after the
    /// commit.
    pub fn account_elements(&mut self, finish: Finish, elems: Vec<ElementRange>) {
        self.ends.push(ElementEnds::new(finish, elems));
    }

    /// Is there nothing to make durable or to account?
    pub fn is_empty(&self) -> bool {
        let acct = self.acct.is_empty() && self.ends.is_empty();
        self.events.is_empty() && self.spool.is_empty() && acct
    }

    /// Bytes gathered, for a cap.
    pub fn bytes(&self) -> usize {
        let spooled: usize = self.spool.iter().map(|run| run.data.len()).sum();
        self.events.len() + self.acct.len() + spooled
    }

    /// The lines of it, for those who follow the log.
    pub(super) fn into_lines(self) -> CommittedLines {
        let mut ends = UnwrittenEnds::default();
        ends.put(&self.ends);
        CommittedLines { events: self.events, acct: self.acct, ends }
    }

    /// Puts a later batch behind this one.
    pub fn join(&mut self, later: Batch) {
        self.ticket = self.ticket.max(later.ticket);
        let base = self.events.len() as u64;
        self.events.extend_from_slice(&later.events);
        self.entries.extend(later.entries.iter().map(|e| ChecksumEntry { at: e.at + base, ..*e }));
        for run in later.spool {
            self.spool_run(run.spool, run.at, &run.data, &run.entries);
        }
        self.acct.extend_from_slice(&later.acct);
        self.ends.extend(later.ends);
        self.newest = self.newest.max(later.newest);
        self.control |= later.control;
    }
}
