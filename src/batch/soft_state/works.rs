//! Work that takes longer than one turn may, as it waits for its next unit, and the bounds on how
//! much of it there may be. `lifecycle::works` does the units.

use crate::batch::soft_state::control_work::ControlWork;
use crate::batch::soft_state::cursor::Cursor;
use crate::batch::soft_state::missing_attempts::Missing;
use crate::batch::soft_state::modify_work::ModifyWork;
use crate::batch::soft_state::place_scan::PlaceScan;
use crate::batch::state::Job;
use crate::batch::state::names::HostId;
use crate::model::JobRef;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::caps::MAX_LOG_BYTES;
use crate::proto::client::IdSel;
use crate::proto::machine::ConnId;
use std::collections::{BTreeSet, VecDeque};

/// Pieces of work of all users at a time.
pub const MAX_WORKS: usize = 256;

/// Pieces of work of one user at a time.
pub const MAX_WORKS_OF_USER: usize = 16;

/// Job IDs and ranges that all pieces of work hold together.
pub const MAX_WEIGHT: usize = 2_000_000;

/// Elements that are acted on in one unit.
pub const UNIT: usize = 32;

/// Pending elements of an array that a request stops, resumes or kills have a record each where
/// they are fewer, else one together.
const FEW: usize = 16;

/// Jobs and elements that are looked at in one unit.
pub const UNIT_LOOKS: usize = 1024;

/// The change made to each of very many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementDeed {
    /// The element ends, since its condition can never hold; with `at_once` only where it was
    /// submitted so (-ti).
    EndOrphans { at_once: bool },
    /// The element is suspended or resumed as the run windows of its queue want it.
    KeepRunWindow,
    /// The host of the element hears of its limits.
    TellLimits,
}

/// The elements that are left.
#[derive(Debug)]
pub enum RemainingElements {
    /// Chosen elements, in descending order.
    These(Vec<u32>),
    /// All in memory, from there on.
    All(Cursor),
    /// The started elements, from this index on.
    Started(u32),
}

/// The run windows of queues have opened or closed: hosts whose jobs are still to be suspended or
/// resumed, and the first such job of the last of them.
#[derive(Debug, Default)]
struct WindowWork {
    hosts: Vec<HostId>,
    from: JobRef,
}

impl WindowWork {
    /// The jobs of the last host were dealt with up to this one; `None`: all of them.
    fn went(&mut self, last: Option<JobRef>) {
        match last {
            Some(last) => {
                let idx = last.idx.checked_add(1);
                let job = if idx.is_some() { last.job } else { last.job.saturating_add(1) };
                self.from = JobRef { job, idx: idx.unwrap_or(0) };
            }
            None => {
                self.from = JobRef::default();
                self.hosts.pop();
            }
        }
    }
}

/// Something that is done to very many elements of a job.
#[derive(Debug)]
pub struct ElementWork {
    job: u32,
    left: RemainingElements,
    action: ElementDeed,
}

/// The element that is acted on next.
pub(crate) enum NextElement {
    This(u32),
    /// The job has no further one.
    Over,
    /// The turn has looked at as many as it may.
    Later,
}

impl ElementWork {
    pub(crate) fn new(job: u32, left: RemainingElements, action: ElementDeed) -> ElementWork {
        ElementWork { job, left, action }
    }

    pub(crate) fn job(&self) -> u32 {
        self.job
    }

    pub(crate) fn action(&self) -> ElementDeed {
        self.action
    }

    /// Are the elements named one by one?
    pub(crate) fn names_elements(&self) -> bool {
        matches!(self.left, RemainingElements::These(_))
    }

    pub(crate) fn next(&mut self, job: &Job, looks: &mut usize) -> NextElement {
        let whole = IdSel { job: self.job, elems: Vec::new() };
        let next = match &mut self.left {
            RemainingElements::These(left) => left.pop(),
            RemainingElements::All(cursor) => match cursor.next(job, &whole, looks) {
                None if !cursor.over(job, &whole) => return NextElement::Later,
                next => next,
            },
            RemainingElements::Started(from) => {
                let next = job.started_from(*from);
                *from = next.map_or(*from, |idx| idx.saturating_add(1));
                next
            }
        };
        next.map_or(NextElement::Over, NextElement::This)
    }
}

pub enum Work {
    Control(Box<ControlWork>),
    Modify(Box<ModifyWork>),
}

/// The count of records before a switch of the log.
#[derive(Debug)]
pub struct Count {
    from: u32,
    carried: u64,
    oldest: u32,
}

/// All work under way.
#[derive(Default)]
pub struct Works {
    queue: VecDeque<Work>,
    weight: usize,
    /// Changes of very many elements, at most one piece of a kind for a job: nobody waits for
    /// them, so that they are none of the pieces that are counted.
    elements: VecDeque<ElementWork>,
    /// Attempts that hosts have not named in their inventories.
    missing: VecDeque<Missing>,
    /// Jobs whose orphans are on their way to their end.
    ending: BTreeSet<u32>,
    /// The next job to be looked at after a reconfiguration.
    refill: Option<u32>,
    /// Finished jobs are to be taken out of memory.
    cleaning: bool,
    /// Before a switch of the log.
    count: Option<Count>,
    /// The work of the run windows that opened or closed last.
    windows: WindowWork,
    /// The kind of work whose turn it is.
    turn: usize,
    /// Looks at the places of pending jobs that are over, to be taken apart.
    old_scans: Vec<PlaceScan>,
    /// While a request looks at the places of pending jobs: the jobs that have changed since.
    changed: Option<BTreeSet<u32>>,
    /// The number that replaces [`FEW`]; 0: none.
    few: usize,
    /// The limit that replaces [`MAX_LOG_BYTES`].
    #[cfg(test)]
    log_bytes: Option<u64>,
}

impl Work {
    pub(crate) fn conn(&self) -> Option<ConnId> {
        match self {
            Work::Control(c) => c.conn(),
            Work::Modify(m) => m.conn(),
        }
    }
    pub(crate) fn uid(&self) -> u32 {
        match self {
            Work::Control(c) => c.who().uid,
            Work::Modify(m) => m.who().uid,
        }
    }
    pub(crate) fn weight(&self) -> usize {
        match self {
            Work::Control(c) => c.weight(),
            Work::Modify(m) => m.weight(),
        }
    }
    /// Does it look at the places of pending jobs?
    pub(crate) fn scans(&self) -> bool {
        matches!(self, Work::Control(c) if c.scans())
    }
    /// The client has not yet taken what it was told.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Work::Control(c) if c.waits())
    }
}

/// Kinds of work that have their turns one after the other.
pub(crate) const KINDS_OF_WORK: usize = 10;

impl Works {
    /// Is there work that can go on now?
    pub(crate) fn left(&self) -> bool {
        self.refill.is_some()
            || self.cleaning
            || self.count.is_some()
            || self.has_windows()
            || !self.old_scans.is_empty()
            || !self.elements.is_empty()
            || !self.missing.is_empty()
            || self.queue.iter().any(|w| !w.waits())
    }

    /// The number of the kind of work whose turn it is next.
    pub(crate) fn next_turn(&mut self) -> usize {
        self.turn = (self.turn + 1) % KINDS_OF_WORK;
        self.turn
    }

    /// After a reconfiguration: are jobs still to be looked at again?
    pub(crate) fn is_refilling(&self) -> bool {
        self.refill.is_some()
    }

    /// The job to be looked at next.
    pub(crate) fn refill_from(&self) -> Option<u32> {
        self.refill
    }

    /// The jobs from this one on are to be looked at again; `None`: all were.
    pub(crate) fn refill(&mut self, from: Option<u32>) {
        self.refill = from;
    }

    /// Finished jobs are to be taken out of memory, or none is left.
    pub(crate) fn set_cleaning(&mut self, on: bool) {
        self.cleaning = on;
    }

    pub(crate) fn is_cleaning(&self) -> bool {
        self.cleaning
    }

    /// Are records counted before a switch of the log?
    pub(crate) fn is_counting(&self) -> bool {
        self.count.is_some()
    }

    pub(crate) fn put_count(&mut self, count: Count) {
        self.count = Some(count);
    }

    pub(crate) fn take_count(&mut self) -> Option<Count> {
        self.count.take()
    }

    /// Run windows have opened or closed: the jobs of these hosts are looked at.
    pub(crate) fn begin_windows(&mut self, hosts: Vec<HostId>) {
        self.windows = WindowWork { hosts, from: JobRef::default() };
    }

    pub(crate) fn has_windows(&self) -> bool {
        !self.windows.hosts.is_empty()
    }

    /// The host whose jobs are looked at, and the first of these.
    pub(crate) fn window_host(&self) -> Option<(HostId, JobRef)> {
        Some((*self.windows.hosts.last()?, self.windows.from))
    }

    /// The jobs of that host were dealt with up to this one; `None`: all of them.
    pub(crate) fn windows_went(&mut self, last: Option<JobRef>) {
        self.windows.went(last);
    }

    /// The change of very many elements that goes on next.
    pub(crate) fn next_elements(&mut self) -> Option<ElementWork> {
        self.elements.pop_front()
    }

    /// A change that is not whole goes on after the others.
    pub(crate) fn put_back_elements(&mut self, work: ElementWork) {
        self.elements.push_back(work);
    }

    /// The orphans of a job have ended.
    pub(crate) fn orphans_ended(&mut self, job: u32) {
        self.ending.remove(&job);
    }

    /// Pending elements of an array that a request stops, resumes or kills have a record each where
    /// they are fewer.
    pub(crate) fn few(&self) -> usize {
        if self.few == 0 { FEW } else { self.few }
    }

    pub(crate) fn set_few(&mut self, few: usize) {
        self.few = few;
    }

    /// One request may write so many bytes.
    #[cfg(test)]
    pub(crate) fn set_log_most(&mut self, bytes: u64) {
        self.log_bytes = Some(bytes);
    }

    /// Bytes that one request may write.
    pub fn log_most(&self) -> u64 {
        #[cfg(test)]
        if let Some(most) = self.log_bytes {
            return most;
        }
        MAX_LOG_BYTES
    }

    pub fn put(&mut self, work: Work) {
        self.weight += work.weight();
        self.queue.push_back(work);
    }

    pub fn put_elements(&mut self, work: ElementWork) {
        if matches!(work.action, ElementDeed::EndOrphans { .. }) {
            if self.ending.insert(work.job) {
                self.elements.push_back(work);
            }
            return;
        }
        let like = |w: &&mut ElementWork| (w.job, w.action) == (work.job, work.action);
        match (self.elements.iter_mut().find(like).map(|w| &mut w.left), work.left) {
            (Some(RemainingElements::These(left)), RemainingElements::These(more)) => {
                left.extend(more);
                left.sort_unstable_by(|a, b| b.cmp(a));
                left.dedup();
            }
            // all that is started, from the first on again
            (Some(left @ RemainingElements::Started(_)), RemainingElements::These(_)) => {
                *left = RemainingElements::Started(0)
            }
            (Some(left), all) => *left = all,
            (None, left) => self.elements.push_back(ElementWork { left, ..work }),
        }
    }

    /// Beside those of other hosts; a host has one at most.
    pub fn put_missing(&mut self, work: Missing) {
        self.missing.push_back(work);
    }

    pub fn next_missing(&mut self) -> Option<Missing> {
        self.missing.pop_front()
    }

    /// The host tells anew what it knows of.
    pub fn drop_missing(&mut self, conn: ConnId) {
        self.missing.retain(|m| m.conn() != conn);
    }

    /// Is there room for one more of this user on this connection?
    pub fn room(&self, conn: ConnId, uid: u32, weight: usize) -> Result<(), Refusal> {
        // nearly always
        if self.queue.is_empty() {
            return Ok(());
        }
        let of_user = self.queue.iter().filter(|w| w.uid() == uid).count();
        let busy = self.queue.iter().any(|w| w.conn() == Some(conn));
        let full = self.queue.len() >= MAX_WORKS || self.weight + weight > MAX_WEIGHT;
        if busy || full || of_user >= MAX_WORKS_OF_USER {
            return Err(Refusal::new(err::BUSY));
        }
        Ok(())
    }

    /// Takes away the work of a request that is asked for again.
    pub fn forget_request(&mut self, uid: u32, request: &str) {
        if request.is_empty() || self.queue.is_empty() {
            return;
        }
        let same = |w: &Work| matches!(w, Work::Control(c) if c.is_request(uid, request));
        self.queue.retain(|w| !same(w));
        if !self.queue.iter().any(Work::scans) {
            self.changed = None;
        }
        self.weight = self.queue.iter().map(Work::weight).sum();
    }

    /// Begins a look at the places of pending jobs; false: another request has one under way.
    pub fn begin_scan(&mut self) -> bool {
        let free = !self.queue.iter().any(Work::scans);
        if free {
            self.changed = Some(BTreeSet::new());
        }
        free
    }

    /// A request is over.
    pub fn end_scan(&mut self, work: &mut ControlWork) {
        if let Some(scan) = work.take_scan() {
            self.changed = None;
            self.old_scans.push(scan);
        }
    }

    /// A look is over, its places are not needed any more.
    pub(crate) fn drop_scan(&mut self, scan: Option<PlaceScan>) {
        self.old_scans.extend(scan);
    }

    /// Takes apart some places of a look that is over; false: there is none.
    pub(crate) fn take_scans_apart(&mut self, looks: usize) -> bool {
        let Some(scan) = self.old_scans.last_mut() else { return false };
        if scan.take_apart(looks) {
            self.old_scans.pop();
        }
        true
    }

    /// The places of all jobs may be other ones: looks begin anew.
    pub fn drop_scans(&mut self) {
        self.changed = None;
        for work in &mut self.queue {
            if let Work::Control(c) = work {
                self.old_scans.extend(c.take_scan());
            }
        }
    }

    /// A job has changed.
    pub fn note_changed(&mut self, job: u32) {
        if let Some(changed) = &mut self.changed {
            changed.insert(job);
        }
    }

    /// Elements of a job were put into parts.
    pub fn note_parted(&mut self, job: u32) {
        for work in &mut self.queue {
            if let Work::Modify(m) = work {
                m.note_parted(job);
            }
        }
    }

    /// The jobs that have changed since this was asked last.
    pub fn take_changed(&mut self) -> BTreeSet<u32> {
        self.changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The client is gone: what it asked for is done all the same.
    pub fn close(&mut self, conn: ConnId) {
        for work in self.queue.iter_mut().filter(|w| w.conn() == Some(conn)) {
            match work {
                Work::Control(c) => c.forget_client(),
                Work::Modify(m) => m.forget_client(),
            }
        }
    }

    /// The client has taken what it was told.
    pub fn drained(&mut self, conn: ConnId) {
        for work in self.queue.iter_mut().filter(|w| w.conn() == Some(conn)) {
            if let Work::Control(c) = work {
                c.told();
            }
        }
    }

    /// Are orphans of a job on their way to their end?
    pub fn ends(&self, job: u32) -> bool {
        self.ending.contains(&job)
    }

    /// Drops all works, which can no longer be done, and returns the connections that wait for
    /// them.
    pub fn give_up(&mut self) -> Vec<ConnId> {
        let conns = self.queue.iter().filter_map(Work::conn).collect();
        *self = Works { refill: self.refill, few: self.few, ..Works::default() };
        conns
    }

    pub(crate) fn next(&mut self) -> Option<Work> {
        let at = self.queue.iter().position(|w| !w.waits())?;
        let work = self.queue.remove(at)?;
        self.weight = self.weight.saturating_sub(work.weight());
        Some(work)
    }
}

impl Count {
    pub fn begin(spool: u32) -> Count {
        Count { from: 0, carried: 0, oldest: spool }
    }

    /// The job to be counted next.
    pub(crate) fn from(&self) -> u32 {
        self.from
    }

    /// Counts a job with so many records, that needs this spool file and later ones.
    pub(crate) fn add(&mut self, records: u64, oldest: Option<u32>) {
        self.carried += records;
        self.oldest = oldest.map_or(self.oldest, |at| at.min(self.oldest));
    }

    /// The count goes on at this job.
    pub(crate) fn goes_on(self, from: u32) -> Count {
        Count { from, ..self }
    }

    /// The records counted.
    pub(crate) fn carried(&self) -> u64 {
        self.carried
    }

    /// The oldest spool file that is needed.
    pub(crate) fn oldest(&self) -> u32 {
        self.oldest
    }
}
