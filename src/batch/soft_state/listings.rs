//! Listings of jobs under way. Jobs are found in steps, each sorted by itself; rows are taken from
//! the sorted steps in order.

use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::cursor::Cursor;
use crate::batch::soft_state::job_viewer::JobViewer;
use crate::batch::soft_state::named_elements::NamedElements;
use crate::batch::state::names::QueueId;
use crate::model::JobRef;
use crate::model::event::{ElementRange, QueuePosition};
use crate::model::idmap::IdMap;
use crate::proto::client::{Col, IdSel, JobQuery};
use crate::proto::machine::ConnId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Listings under way at a time.
pub const MAX_LISTINGS: usize = 4096;
/// Rows, job IDs and ranges that all listings under way hold together.
pub const MAX_HELD: usize = 8_000_000;

/// The jobs found before rows are sent: all jobs are gone through in steps, by ID.
#[derive(Debug)]
pub(crate) struct Finding {
    q: JobQuery,
    who: Caller,
    /// The caller, if there may be jobs that it does not see whole.
    viewer: Option<JobViewer>,
    /// The jobs that are named, with their elements; `None`: all.
    ids: Option<BTreeMap<u32, IdSel>>,
    from: u32,
    /// The job under way, as far as its elements were looked at.
    job: Option<(IdSel, Cursor)>,
    named: NamedElements,
    hosts: Option<BTreeSet<String>>,
    /// The queue of the job before, and its rank.
    ranked: Option<(QueueId, i64)>,
}

impl Finding {
    /// `hosts`: those that the filter names.
    pub(crate) fn new(
        (who, viewer): (Caller, Option<JobViewer>),
        mut q: JobQuery,
        named: Vec<ElementRange>,
        hosts: Option<BTreeSet<String>>,
    ) -> Finding {
        let ids = (!q.select.ids.is_empty()).then(|| by_job(std::mem::take(&mut q.select.ids)));
        // named jobs are shown whoever owns them
        if ids.is_some() && q.select.user.is_empty() {
            q.select.user = "all".to_string();
        }
        let named = NamedElements::new(named);
        Finding { q, who, viewer, ids, from: 0, job: None, named, hosts, ranked: None }
    }

    pub(crate) fn who(&self) -> &Caller {
        &self.who
    }

    pub(crate) fn viewer(&mut self) -> Option<&mut JobViewer> {
        self.viewer.as_mut()
    }

    pub(crate) fn query(&self) -> &JobQuery {
        &self.q
    }

    /// The hosts that the filter names.
    pub(crate) fn hosts(&self) -> Option<&BTreeSet<String>> {
        self.hosts.as_ref()
    }

    /// Are the jobs named by their IDs?
    pub(crate) fn is_by_id(&self) -> bool {
        self.ids.is_some()
    }

    /// The next job that is named, with its elements.
    pub(crate) fn next_named(&mut self) -> Option<(u32, IdSel)> {
        self.ids.as_mut()?.pop_first()
    }

    /// The ID from which on jobs are left, where all jobs are gone through.
    pub(crate) fn from(&self) -> u32 {
        self.from
    }

    /// All jobs up to this one were looked at.
    pub(crate) fn passed(&mut self, job: u32) {
        self.from = job.saturating_add(1);
    }

    /// The job of which not all elements were looked at, to be gone on with.
    pub(crate) fn take_job(&mut self) -> Option<(IdSel, Cursor)> {
        self.job.take()
    }

    pub(crate) fn put_job(&mut self, job: Option<(IdSel, Cursor)>) {
        self.job = job;
    }

    pub(crate) fn has_job(&self) -> bool {
        self.job.is_some()
    }

    /// About so many looks it takes to see whether -J names an element.
    pub(crate) fn looks_for_name(&self) -> usize {
        self.named.looks()
    }

    /// Does -J name an element?
    pub(crate) fn names(&self, idx: u32) -> bool {
        self.named.holds(idx)
    }

    /// The rank of a queue; the one of the job before is remembered.
    pub(crate) fn rank(&mut self, queue: QueueId, rank: impl FnOnce() -> i64) -> i64 {
        match self.ranked {
            Some((before, rank)) if before == queue => rank,
            _ => self.ranked.insert((queue, rank())).1,
        }
    }
}

/// The elements that operands name, by job.
fn by_job(ids: Vec<IdSel>) -> BTreeMap<u32, IdSel> {
    let mut all: BTreeMap<u32, IdSel> = BTreeMap::new();
    for id in ids {
        let whole = id.elems.is_empty();
        let sel = all.entry(id.job).or_insert_with(|| id.clone());
        // the job as a whole means each element that is named beside it
        if whole || sel.elems.is_empty() {
            sel.elems.clear();
        } else if *sel != id {
            sel.elems.extend(id.elems);
        }
    }
    all
}

/// The jobs that one step found, sorted; the first is taken next.
pub(crate) type SortedRows = std::vec::IntoIter<(RowOrder, JobRef)>;

#[derive(Debug)]
pub(crate) struct Listing {
    /// The search, until all jobs are found.
    finding: Option<Finding>,
    runs: Vec<SortedRows>,
    /// The first row of each step.
    heads: BinaryHeap<Reverse<(RowOrder, JobRef, usize)>>,
    /// The row that was taken last.
    last: Option<JobRef>,
    cols: Vec<Col>,
    /// The caller, if there may be jobs that it does not see whole.
    viewer: Option<JobViewer>,
    arrays: bool,
    /// Do pending reasons count hosts without naming them?
    reason_counts: bool,
    /// Rows, IDs and ranges that it holds.
    held: usize,
}

#[derive(Debug, Default)]
pub struct Listings {
    open: IdMap<ConnId, Listing>,
    /// The bytes held by all listings.
    held: usize,
}

/// The key that sorts rows: kind, then host, queue or end, priority, place, element.
pub(crate) type RowOrder = (u8, i64, u32, QueuePosition, u32);

impl Listings {
    /// May one more be open?
    pub(crate) fn has_room(&self) -> bool {
        self.open.len() < MAX_LISTINGS
    }

    /// Is there room for what this one holds, beside what the others hold?
    pub(crate) fn has_room_for(&self, listing: &Listing) -> bool {
        self.held + listing.held <= MAX_HELD
    }

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
    /// `held`: IDs and ranges of the query.
    pub(crate) fn new(finding: Finding, held: usize) -> Listing {
        let JobQuery { ref cols, arrays, reason_counts, .. } = finding.q;
        let cols = cols.clone();
        let (runs, heads) = (Vec::new(), BinaryHeap::new());
        let viewer = finding.viewer.as_ref().map(|viewer| JobViewer::new(viewer.who()));
        let (finding, last) = (Some(finding), None);
        Listing { finding, runs, heads, last, cols, viewer, arrays, reason_counts, held }
    }

    /// The jobs that are still to be found; `None`: all were.
    pub(crate) fn finding(&mut self) -> Option<&mut Finding> {
        self.finding.as_mut()
    }

    /// All jobs were found.
    pub(crate) fn end_finding(&mut self) {
        self.finding = None;
    }

    pub(crate) fn cols(&self) -> &[Col] {
        &self.cols
    }

    /// The caller, if there may be jobs that it does not see whole.
    pub(crate) fn viewer(&mut self) -> Option<&mut JobViewer> {
        self.viewer.as_mut()
    }

    /// Is a row a whole array?
    pub(crate) fn of_arrays(&self) -> bool {
        self.arrays
    }

    /// Do pending reasons count hosts without naming them?
    pub(crate) fn counts_reasons(&self) -> bool {
        self.reason_counts
    }

    /// Was the last row taken, of those that were found?
    pub(crate) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

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

    fn push_head(&mut self, run: usize) {
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
