//! Work that takes longer than one turn may: it is done unit by unit, each small, as often as the
//! runner has time for ([`crate::proto::Machine::work`]), and requests of others are served in
//! between. Each unit changes the state by events of its own, so that what was done is durable
//! whatever becomes of the rest, and leaves the state whole.
//!
//! | work | what is left of it after a crash |
//! |---|---|
//! | control of many jobs (`lifecycle::control_work`) | a retry of the request completes it |
//! | bmod of many elements (`lifecycle::modify`) | the same |
//! | jobs that their host does not know of (`host_inventory`) | the host tells all again |
//! | the end of many orphans | found at the start, and when the log can be written again |
//! | run windows that opened or closed, or of an array that was switched | a start looks at all |
//! | limits of an array that was changed | hosts are told with the next change, or not |
//! | elements that wait for elements, jobs that wait for a name | a start looks at all |
//! | cleaning, the count before a switch of the log | due again |
//! | jobs looked at again after a reconfiguration | a start looks at all |

use crate::batch::lifecycle::control_work::{ControlWork, Cursor};
use crate::batch::lifecycle::host_inventory::Missing;
use crate::batch::lifecycle::modify::ModifyWork;
use crate::batch::lifecycle::reposition::PlaceScan;
use crate::batch::state::Body;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
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
    /// Its host hears of its limits.
    TellLimits,
}

/// The elements that are left.
#[derive(Debug)]
pub enum Left {
    /// In descending order.
    These(Vec<u32>),
    /// All in memory, from there on.
    All(Cursor),
    /// Those that are started, from this index on.
    Started(u32),
}

/// The run windows of queues have opened or closed: hosts whose jobs are still to be suspended or
/// resumed, and the first such job of the last of them.
#[derive(Debug, Default)]
pub struct WindowWork {
    pub hosts: Vec<HostId>,
    pub from: JobRef,
}

/// Something that is done to very many elements of a job.
#[derive(Debug)]
pub struct ElementWork {
    pub job: u32,
    pub left: Left,
    pub deed: ElementDeed,
}

pub enum Work {
    Control(Box<ControlWork>),
    Modify(Box<ModifyWork>),
}

/// The count of records before a switch of the log.
#[derive(Debug)]
pub struct Count {
    from: u32,
    pub carried: u64,
    pub oldest: u32,
}

/// All work under way.
#[derive(Default)]
pub struct Works {
    queue: VecDeque<Work>,
    weight: usize,
    /// Changes of very many elements, at most one piece of a kind for a job: nobody waits for
    /// them, so that they are none of the pieces that are counted.
    elements: VecDeque<ElementWork>,
    /// What hosts have not named in their inventories.
    missing: VecDeque<Missing>,
    /// Jobs whose orphans are on their way to their end.
    ending: BTreeSet<u32>,
    /// The next job to be looked at after a reconfiguration.
    pub refill: Option<u32>,
    /// Finished jobs are to be taken out of memory.
    pub cleaning: bool,
    /// Before a switch of the log.
    pub count: Option<Count>,
    /// Of the run windows that opened or closed last.
    pub windows: WindowWork,
    /// Whose turn it is.
    turn: usize,
    /// Looks at the places of pending jobs that are over, to be taken apart.
    pub old_scans: Vec<PlaceScan>,
    /// While a request looks at the places of pending jobs: the jobs that have changed since.
    changed: Option<BTreeSet<u32>>,
    /// In place of [`MAX_LOG_BYTES`].
    #[cfg(test)]
    pub log_bytes: Option<u64>,
}

impl Work {
    fn conn(&self) -> Option<ConnId> {
        match self {
            Work::Control(c) => c.conn,
            Work::Modify(m) => m.conn,
        }
    }
    fn uid(&self) -> u32 {
        match self {
            Work::Control(c) => c.who.uid,
            Work::Modify(m) => m.who.uid,
        }
    }
    fn weight(&self) -> usize {
        match self {
            Work::Control(c) => c.weight,
            Work::Modify(m) => 1 + m.m.id.elems.len(),
        }
    }
    /// Does it look at the places of pending jobs?
    fn scans(&self) -> bool {
        matches!(self, Work::Control(c) if c.scan.is_some())
    }
    /// The client has not yet taken what it was told.
    fn waits(&self) -> bool {
        matches!(self, Work::Control(c) if c.waits)
    }
}

impl Works {
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
        if matches!(work.deed, ElementDeed::EndOrphans { .. }) {
            if self.ending.insert(work.job) {
                self.elements.push_back(work);
            }
            return;
        }
        let like = |w: &&mut ElementWork| (w.job, w.deed) == (work.job, work.deed);
        match (self.elements.iter_mut().find(like).map(|w| &mut w.left), work.left) {
            (Some(Left::These(left)), Left::These(more)) => {
                left.extend(more);
                left.sort_unstable_by(|a, b| b.cmp(a));
                left.dedup();
            }
            // all that is started, from the first on again
            (Some(left @ Left::Started(_)), Left::These(_)) => *left = Left::Started(0),
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
        self.missing.retain(|m| m.conn != conn);
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
        let same =
            |w: &Work| matches!(w, Work::Control(c) if c.who.uid == uid && c.c.request == request);
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
        if let Some(scan) = work.scan.take() {
            self.changed = None;
            self.old_scans.push(scan);
        }
    }

    /// The places of all jobs may be other ones: looks begin anew.
    pub fn drop_scans(&mut self) {
        self.changed = None;
        for work in &mut self.queue {
            if let Work::Control(c) = work {
                self.old_scans.extend(c.scan.take());
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
                Work::Control(c) => (c.conn, c.waits) = (None, false),
                Work::Modify(m) => m.conn = None,
            }
        }
    }

    /// The client has taken what it was told.
    pub fn drained(&mut self, conn: ConnId) {
        for work in self.queue.iter_mut().filter(|w| w.conn() == Some(conn)) {
            if let Work::Control(c) = work {
                c.waits = false;
            }
        }
    }

    /// Are orphans of a job on their way to their end?
    pub fn ends(&self, job: u32) -> bool {
        self.ending.contains(&job)
    }

    /// Nothing of it can be done: who waits for it.
    pub fn give_up(&mut self) -> Vec<ConnId> {
        let conns = self.queue.iter().filter_map(Work::conn).collect();
        *self = Works { refill: self.refill, ..Works::default() };
        conns
    }

    fn next(&mut self) -> Option<Work> {
        let at = self.queue.iter().position(|w| !w.waits())?;
        let work = self.queue.remove(at)?;
        self.weight = self.weight.saturating_sub(work.weight());
        Some(work)
    }
}

impl Mbatchd {
    pub(crate) fn work_left(&self) -> bool {
        let w = &self.works;
        let windows = !w.windows.hosts.is_empty() || !w.old_scans.is_empty();
        let some = w.refill.is_some() || w.cleaning || w.count.is_some() || windows;
        let conditions =
            self.conditions_left() || self.deps.sweeps_left() || self.deps.groups.left();
        let rest = !self.state.remains.is_empty() || conditions || !w.elements.is_empty();
        let rest = rest || !w.missing.is_empty();
        self.started
            && self.log_failed.is_none()
            && (some || rest || w.queue.iter().any(|w| !w.waits()))
    }

    /// Does one unit of what is to be done.
    pub(crate) fn work_unit(&mut self, cx: &mut StepContext) {
        // classes and conditions are not whole before
        if self.works.refill.is_some() {
            return self.refill_unit(cx);
        }
        for _ in 0..10 {
            self.works.turn = (self.works.turn + 1) % 10;
            let done = match self.works.turn {
                0 => self.queued_unit(cx),
                1 => self.works.cleaning.then(|| self.clean_unit(cx)),
                2 => self.works.count.is_some().then(|| self.count_unit(cx)),
                3 => self.conditions_left().then(|| self.settle_unit(cx)),
                4 => self.elements_unit(cx),
                5 => self.deps.sweeps_left().then(|| self.sweep_unit(cx)),
                6 => (!self.works.windows.hosts.is_empty()).then(|| self.windows_unit(cx)),
                7 => self.missing_unit(cx),
                8 => self.deps.groups.left().then(|| self.deps.groups_unit(&self.state)),
                _ => self.remains_unit(),
            };
            if done.is_some() {
                break;
            }
        }
        self.settle(cx);
    }

    fn queued_unit(&mut self, cx: &mut StepContext) -> Option<()> {
        match self.works.next()? {
            Work::Control(work) => {
                if let Some(work) = self.control_unit(cx, work) {
                    self.works.put(Work::Control(work));
                }
            }
            Work::Modify(work) => {
                if let Some(work) = self.modify_unit(cx, work) {
                    self.works.put(Work::Modify(work));
                }
            }
        }
        Some(())
    }

    /// One unit of the changes of very many elements.
    fn elements_unit(&mut self, cx: &mut StepContext) -> Option<()> {
        let work = self.works.elements.pop_front()?;
        let (job, these) = (work.job, matches!(work.left, Left::These(_)));
        let ends = matches!(work.deed, ElementDeed::EndOrphans { .. });
        if let Some(left) = self.some_elements(cx, work) {
            self.works.elements.push_back(left);
        } else if ends {
            self.works.ending.remove(&job);
            // those that became orphans meanwhile; of a whole array all were looked at
            if these {
                self.end_orphans(cx, job);
            }
        }
        Some(())
    }

    /// Does what is to be done to some more elements; gives the work back unless it is whole.
    fn some_elements(
        &mut self,
        cx: &mut StepContext,
        mut work: ElementWork,
    ) -> Option<ElementWork> {
        let (mut looks, whole) = (UNIT_LOOKS, IdSel { job: work.job, elems: Vec::new() });
        for _ in 0..UNIT {
            let job = self.state.job(work.job)?;
            let idx = match &mut work.left {
                Left::These(left) => left.pop()?,
                Left::All(cursor) => match cursor.next(job, &whole, &mut looks) {
                    Some(idx) => idx,
                    None if cursor.over(job, &whole) => return None,
                    None => break,
                },
                Left::Started(from) => {
                    let idx = job.started_from(*from)?;
                    *from = idx.saturating_add(1);
                    idx
                }
            };
            let at = JobRef { job: work.job, idx };
            match work.deed {
                ElementDeed::EndOrphans { at_once } => self.end_orphan(cx, at, at_once),
                ElementDeed::KeepRunWindow => self.keep_run_window(cx, at),
                ElementDeed::TellLimits => self.tell_limits_of(cx, at),
            }
        }
        Some(work)
    }

    /// Does something to these elements of a job, the first of them at once.
    pub(crate) fn act_on_elements(
        &mut self,
        cx: &mut StepContext,
        job: u32,
        left: Left,
        deed: ElementDeed,
    ) {
        let left = self.some_elements(cx, ElementWork { job, left, deed });
        left.into_iter().for_each(|work| self.works.put_elements(work));
    }

    /// One unit of looking at jobs after a reconfiguration.
    fn refill_unit(&mut self, cx: &mut StepContext) {
        let Some(from) = self.works.refill else { return };
        let some: Vec<u32> = self.state.jobs.range(from..).map(|j| *j.0).take(UNIT_LOOKS).collect();
        let waits =
            |id: &u32| self.state.job(*id).is_some_and(|j| j.tally.pend + j.tally.psusp > 0);
        let pending: Vec<u32> = some.iter().copied().filter(waits).collect();
        for id in pending {
            self.watch_depend(id);
            if let Some(job) = self.state.job(id) {
                self.sched.begins_of(job);
            }
            self.refresh(id);
            self.end_orphans(cx, id);
        }
        self.works.refill = match some.len() < UNIT_LOOKS {
            true => None,
            false => some.last().and_then(|id| id.checked_add(1)),
        };
        if self.works.refill.is_none() {
            self.sched.changed();
            self.answer_reconfig(cx);
        }
    }

    /// A unit of the count before a switch of the log.
    fn count_unit(&mut self, cx: &mut StepContext) {
        let Some(mut count) = self.works.count.take() else { return };
        let (mut looked, mut last) = (0, None);
        for (id, job) in self.state.jobs.range(count.from..) {
            if looked >= UNIT_LOOKS as u64 {
                break;
            }
            let records = crate::batch::lifecycle::clean::records_of(job);
            looked += records;
            count.carried += records;
            count.oldest = self.oldest_of(job).map_or(count.oldest, |at| at.min(count.oldest));
            last = Some(*id);
        }
        match last.and_then(|id| id.checked_add(1)) {
            Some(next) => self.works.count = Some(Count { from: next, ..count }),
            None => self.switch_counted(cx, &count),
        }
    }

    /// Takes apart some of what has left memory.
    fn remains_unit(&mut self) -> Option<()> {
        if let Some(scan) = self.works.old_scans.last_mut() {
            if scan.take_apart(UNIT_LOOKS) {
                self.works.old_scans.pop();
            }
            return Some(());
        }
        let job = self.state.remains.last_mut()?;
        let left = match &mut job.body {
            Body::Array(a) => {
                for _ in 0..UNIT_LOOKS {
                    a.own.pop_first();
                }
                !a.own.is_empty()
            }
            Body::Single(_) => false,
        };
        if !left {
            self.state.remains.pop();
        }
        Some(())
    }
}

impl Count {
    pub fn begin(spool: u32) -> Count {
        Count { from: 0, carried: 0, oldest: spool }
    }
}
