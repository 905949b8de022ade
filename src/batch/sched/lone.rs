//! Elements that are scheduled by themselves: an element whose start has failed waits for its next
//! try, an element that its exit value sent back waits for the next interval, an element that has
//! left an attempt behind waits for the end of that attempt, a member of a chunk waits for its
//! turn, and some elements are kept from certain hosts. Such an element has no part in its job's
//! entry or its job's class: it has an entry and a class of its own, whose key names the hosts that
//! it is kept from. So no other element is held back by its reason, or told of it.
//!
//! Soft state: derived from `state::Tries`, `cluster::unreached::Unreached` and the time.

use crate::batch::sched::dispatch_key::ClassEntry;
use crate::batch::state::names::HostId;
use crate::batch::state::{Bar, Tries};
use crate::model::JobRef;
use crate::model::reason::PendReason;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// An element that waits by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lone {
    /// The part of its array.
    pub(super) part: u32,
    /// The element's place in a class; none: it waits for an instant.
    pub(super) entry: Option<ClassEntry>,
    /// When what keeps it changes by itself, microseconds of the monotonic clock.
    pub(super) next: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Lones {
    pub(super) all: BTreeMap<JobRef, Lone>,
    /// Elements that have a place in a class.
    placed: BTreeSet<JobRef>,
    /// The element groups, by job and number, that have such elements.
    parts: BTreeMap<(u32, u32), OfPart>,
    pub(super) due: BTreeSet<(u64, JobRef)>,
    /// Arrays with such elements that were at their limit when an element changed last.
    pub(super) at_limit: BTreeSet<u32>,
    /// How often an element was looked at.
    #[cfg(test)]
    pub(super) looks: usize,
    /// How often it was asked whether an element is one of these.
    #[cfg(test)]
    pub(super) asked: Cell<usize>,
}

/// The lone elements of a part of an array.
#[derive(Debug, Default)]
struct OfPart {
    count: u32,
    /// Every waiting element of the part with a lower index is one of them: there may be very many,
    /// and they are not gone through again for each element that is dispatched.
    from: Cell<u32>,
}

impl Lones {
    pub fn get(&self, at: JobRef) -> Option<Lone> {
        self.all.get(&at).copied()
    }

    pub fn has(&self, at: JobRef) -> bool {
        #[cfg(test)]
        self.asked.set(self.asked.get() + 1);
        self.all.contains_key(&at)
    }

    pub fn of_part(&self, job: u32, part: u32) -> u32 {
        self.parts.get(&(job, part)).map_or(0, |of| of.count)
    }

    /// The lowest of the waiting elements of a part that is none of these.
    pub fn first_other(&self, job: u32, part: u32, waiting: &BTreeSet<u32>) -> Option<u32> {
        let Some(of) = self.parts.get(&(job, part)) else { return waiting.first().copied() };
        let other = |idx: &u32| !self.has(JobRef { job, idx: *idx });
        let first = waiting.range(of.from.get()..).copied().find(other);
        of.from.set(first.unwrap_or(u32::MAX));
        first
    }

    /// An element, or with 0 any of the job, may wait as the others of its part do.
    pub fn look_from(&self, at: JobRef) {
        for (_, of) in self.parts.range((at.job, 0)..=(at.job, u32::MAX)) {
            of.from.set(of.from.get().min(at.idx));
        }
    }

    pub fn deadline(&self) -> Option<u64> {
        self.due.first().map(|due| due.0)
    }

    pub fn of_job(&self, job: u32) -> impl Iterator<Item = JobRef> + '_ {
        self.all.range(JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX }).map(|(at, _)| *at)
    }

    /// Elements of a job that have a place in a class.
    pub fn placed_of(&self, job: u32) -> impl Iterator<Item = JobRef> + '_ {
        self.placed.range(JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX }).copied()
    }

    pub fn insert(&mut self, at: JobRef, lone: Lone) {
        if lone.entry.is_some() {
            self.placed.insert(at);
        }
        self.parts.entry((at.job, lone.part)).or_default().count += 1;
        self.due.extend(lone.next.map(|next| (next, at)));
        self.all.insert(at, lone);
    }

    /// The entry that it had.
    pub fn remove(&mut self, at: JobRef) -> Option<ClassEntry> {
        let lone = self.all.remove(&at)?;
        self.placed.remove(&at);
        if let Some(next) = lone.next {
            self.due.remove(&(next, at));
        }
        let of_part = (at.job, lone.part);
        match self.parts.get_mut(&of_part) {
            Some(of) if of.count > 1 => of.count -= 1,
            _ => drop(self.parts.remove(&of_part)),
        }
        lone.entry
    }

    /// The entries of all elements of a job.
    pub fn remove_all(&mut self, job: u32) -> Vec<ClassEntry> {
        self.at_limit.remove(&job);
        let all: Vec<JobRef> = self.of_job(job).collect();
        all.into_iter().filter_map(|at| self.remove(at)).collect()
    }
}

/// The bars that hold. Before the first step nobody has told the time: all do.
pub(super) fn bars(tries: &Tries, now: Option<i64>) -> impl Iterator<Item = &Bar> {
    tries.bars.iter().filter(move |bar| now.is_none_or(|now| bar.holds(now)))
}

/// Hosts that an element is kept from, ascending, each with why.
pub(super) fn barred(tries: &Tries, now: Option<i64>) -> Vec<(HostId, PendReason)> {
    let passed = tries.passed.iter().map(|host| (*host, PendReason::Excluded));
    let bars = bars(tries, now).map(|bar| (bar.host, bar.why));
    let all: BTreeMap<HostId, PendReason> = bars.chain(passed).collect();
    all.into_iter().collect()
}
