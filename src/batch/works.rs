//! Work that takes longer than one turn may: it is done unit by unit, each small, as often as the
//! runner has time for ([`crate::proto::Machine::work`]), and requests of others are served in
//! between. Each unit changes the state by events of its own, so that what was done is durable
//! whatever becomes of the rest, and leaves the state whole.
//!
//! | work | what is left of it after a crash |
//! |---|---|
//! | control of many jobs ([`super::control_work`]) | a retry of the request completes it |
//! | bmod of many elements ([`super::modify`]) | the same |
//! | the end of many orphans | they are orphans still, and found at the start |
//! | cleaning, the count before a switch of the log | due again |
//! | jobs looked at again after a reconfiguration | a start looks at all |

use super::control_work::ControlWork;
use super::modify::ModifyWork;
use super::state::Body;
use super::{Cx, Mbd};
use crate::model::JobRef;
use crate::model::reason::err;
use crate::proto::Refusal;
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

/// Elements that end because they wait for what can never be.
#[derive(Debug)]
pub struct OrphanWork {
    pub job: u32,
    /// Elements left, in descending order.
    pub left: Vec<u32>,
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
    /// Orphans that end, at most one piece of work for a job, and their jobs: nobody asked for it,
    /// so that it is none of the pieces that are counted.
    orphans: VecDeque<OrphanWork>,
    ending: BTreeSet<u32>,
    /// The next job to be looked at after a reconfiguration.
    pub refill: Option<u32>,
    /// Finished jobs are to be taken out of memory.
    pub cleaning: bool,
    /// Before a switch of the log.
    pub count: Option<Count>,
    /// Whose turn it is.
    turn: usize,
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
    /// The client has not yet taken what it was told.
    fn waits(&self) -> bool {
        matches!(self, Work::Control(c) if c.waits)
    }
}

impl Works {
    pub fn put(&mut self, work: Work) {
        self.weight += work.weight();
        self.queue.push_back(work);
    }

    pub fn put_orphans(&mut self, work: OrphanWork) {
        if self.ending.insert(work.job) {
            self.orphans.push_back(work);
        }
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
        self.weight = self.queue.iter().map(Work::weight).sum();
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

impl Mbd {
    pub(crate) fn work_left(&self) -> bool {
        let w = &self.works;
        let some = w.refill.is_some() || w.cleaning || w.count.is_some();
        let rest = !self.st.remains.is_empty() || self.conditions_left();
        let rest = rest || !w.orphans.is_empty();
        self.started
            && self.log_failed.is_none()
            && (some || rest || w.queue.iter().any(|w| !w.waits()))
    }

    /// Does one unit of what is to be done.
    pub(crate) fn work_unit(&mut self, cx: &mut Cx) {
        // classes and conditions are not whole before
        if self.works.refill.is_some() {
            return self.refill_unit(cx);
        }
        for _ in 0..6 {
            self.works.turn = (self.works.turn + 1) % 6;
            let done = match self.works.turn {
                0 => self.queued_unit(cx),
                1 => self.works.cleaning.then(|| self.clean_unit(cx)),
                2 => self.works.count.is_some().then(|| self.count_unit(cx)),
                3 => self.conditions_left().then(|| self.settle_unit(cx)),
                4 => self.orphans_unit(cx),
                _ => (!self.st.remains.is_empty()).then(|| self.remains_unit()),
            };
            if done.is_some() {
                break;
            }
        }
        self.settle(cx);
    }

    fn queued_unit(&mut self, cx: &mut Cx) -> Option<()> {
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

    /// One unit of the end of orphans.
    fn orphans_unit(&mut self, cx: &mut Cx) -> Option<()> {
        let mut work = self.works.orphans.pop_front()?;
        for _ in 0..UNIT {
            let Some(idx) = work.left.pop() else { break };
            self.end_orphan(cx, JobRef { job: work.job, idx });
        }
        if !work.left.is_empty() {
            self.works.orphans.push_back(work);
            return Some(());
        }
        self.works.ending.remove(&work.job);
        // those that became orphans meanwhile
        self.end_orphans(cx, work.job);
        Some(())
    }

    /// One unit of looking at jobs after a reconfiguration.
    fn refill_unit(&mut self, cx: &mut Cx) {
        let Some(from) = self.works.refill else { return };
        let some: Vec<u32> = self.st.jobs.range(from..).map(|j| *j.0).take(UNIT_LOOKS).collect();
        let waits = |id: &u32| self.st.job(*id).is_some_and(|j| j.tally.pend + j.tally.psusp > 0);
        let pending: Vec<u32> = some.iter().copied().filter(waits).collect();
        for id in pending {
            self.watch_depend(id);
            self.begins_of(id);
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
    fn count_unit(&mut self, cx: &mut Cx) {
        let Some(mut count) = self.works.count.take() else { return };
        let (mut looked, mut last) = (0, None);
        for (id, job) in self.st.jobs.range(count.from..) {
            if looked >= UNIT_LOOKS as u64 {
                break;
            }
            let records = super::housekeep::records_of(job);
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
    fn remains_unit(&mut self) {
        let Some(job) = self.st.remains.last_mut() else { return };
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
            self.st.remains.pop();
        }
    }
}

impl Count {
    pub fn begin(spool: u32) -> Count {
        Count { from: 0, carried: 0, oldest: spool }
    }
}
