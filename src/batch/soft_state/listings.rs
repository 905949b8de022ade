//! Listings of jobs under way. Jobs are found in steps, each sorted by itself; rows are taken from
//! the sorted steps in order.

use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::cursor::Cursor;
use crate::batch::state::names::QueueId;
use crate::model::JobRef;
use crate::model::event::QueuePosition;
use crate::model::idmap::IdMap;
use crate::proto::client::{Col, IdSel, JobQuery};
use crate::proto::machine::ConnId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The jobs found before rows are sent: all jobs are gone through in steps, by ID.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) q: JobQuery,
    pub(crate) who: Caller,
    /// The jobs that are named, with their elements; `None`: all.
    pub(crate) ids: Option<BTreeMap<u32, IdSel>>,
    pub(crate) from: u32,
    /// The job under way, as far as its elements were looked at.
    pub(crate) job: Option<(IdSel, Cursor)>,
    pub(crate) named: Vec<(u32, u32, u32)>,
    pub(crate) hosts: Option<BTreeSet<String>>,
    /// The queue of the job before, and its rank.
    pub(crate) ranked: Option<(QueueId, i64)>,
}

/// The jobs that one step found, sorted; the first is taken next.
pub(crate) type SortedRows = std::vec::IntoIter<(RowOrder, JobRef)>;

#[derive(Debug)]
pub(crate) struct Listing {
    /// The search, until all jobs are found.
    pub(crate) finding: Option<Finding>,
    pub(crate) runs: Vec<SortedRows>,
    /// The first row of each step.
    pub(crate) heads: BinaryHeap<Reverse<(RowOrder, JobRef, usize)>>,
    /// The row that was taken last.
    pub(crate) last: Option<JobRef>,
    pub(crate) cols: Vec<Col>,
    pub(crate) arrays: bool,
    /// Rows, IDs and ranges that it holds.
    pub(crate) held: usize,
}

#[derive(Debug, Default)]
pub struct Listings {
    pub(crate) open: IdMap<ConnId, Listing>,
    /// The bytes held by all listings.
    pub(crate) held: usize,
}

/// The key that sorts rows: kind, then host, queue or end, priority, place, element.
pub(crate) type RowOrder = (u8, i64, u32, QueuePosition, u32);

impl Listings {
    pub fn close(&mut self, conn: ConnId) {
        self.take(conn);
    }

    pub(crate) fn take(&mut self, conn: ConnId) -> Option<Listing> {
        let l = self.open.remove(&conn)?;
        self.held -= l.held;
        Some(l)
    }

    pub(crate) fn put(&mut self, conn: ConnId, l: Listing) {
        self.held += l.held;
        self.open.insert(conn, l);
    }
}

impl Listing {
    pub(crate) fn next(&mut self) -> Option<JobRef> {
        loop {
            let Reverse((_, at, run)) = self.heads.pop()?;
            self.push_head(run);
            self.held = self.held.saturating_sub(1);
            // an element that was named twice
            if self.last.replace(at) != Some(at) {
                return Some(at);
            }
        }
    }

    pub(crate) fn push_head(&mut self, run: usize) {
        match self.runs[run].next() {
            Some((order, at)) => self.heads.push(Reverse((order, at, run))),
            // its memory is given back
            None => self.runs[run] = Vec::new().into_iter(),
        }
    }

    /// Takes what a step found, sorted.
    pub(crate) fn add(&mut self, found: Vec<(RowOrder, JobRef)>) {
        self.held += found.len();
        self.runs.push(found.into_iter());
        self.push_head(self.runs.len() - 1);
    }
}
