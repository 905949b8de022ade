//! Elements that are scheduled by themselves: an element whose start has failed waits for its next
//! try, an element that its exit value sent back waits for the next interval, an element that has
//! left an attempt behind waits for the end of that attempt, and some elements are kept from
//! certain hosts. Such an element has no part in its job's entry or its job's class: it has an
//! entry and a class of its own, whose key names the hosts that it is kept from. So no other
//! element is held back by its reason, or told of it.
//!
//! Soft state: derived from `state::Tries`, `cluster::unreached::Unreached` and the time.

use crate::batch::sched::view::View;
use crate::batch::sched::{DispatchKey, Entry, Reverse, Sched};
use crate::batch::state::names::HostId;
use crate::batch::state::{Bar, ElemState, Tries};
use crate::lang::depend::DepValue;
use crate::model::event::QueuePosition;
use crate::model::reason::pend;
use crate::model::{JobRef, Now};
use std::collections::{BTreeMap, BTreeSet};

/// An element that waits by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lone {
    /// The part of its array.
    part: u32,
    /// Its place in a class; none: it waits for an instant.
    pub entry: Option<Entry>,
    /// When what keeps it changes by itself, microseconds of the monotonic clock.
    next: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Lones {
    all: BTreeMap<JobRef, Lone>,
    /// Elements that have a place in a class.
    placed: BTreeSet<JobRef>,
    /// How many there are of (job, part).
    parts: BTreeMap<(u32, u32), u32>,
    due: BTreeSet<(u64, JobRef)>,
    /// Arrays with such elements that were at their limit when an element changed last.
    at_limit: BTreeSet<u32>,
    /// How often an element was looked at.
    #[cfg(test)]
    pub looks: usize,
}

impl Lones {
    pub fn get(&self, at: JobRef) -> Option<Lone> {
        self.all.get(&at).copied()
    }

    pub fn has(&self, at: JobRef) -> bool {
        self.all.contains_key(&at)
    }

    pub fn of_part(&self, job: u32, part: u32) -> u32 {
        self.parts.get(&(job, part)).copied().unwrap_or(0)
    }

    pub fn deadline(&self) -> Option<u64> {
        self.due.first().map(|due| due.0)
    }

    fn of_job(&self, job: u32) -> impl Iterator<Item = JobRef> + '_ {
        self.all.range(JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX }).map(|(at, _)| *at)
    }

    /// Elements of a job that have a place in a class.
    fn placed_of(&self, job: u32) -> impl Iterator<Item = JobRef> + '_ {
        self.placed.range(JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX }).copied()
    }

    fn insert(&mut self, at: JobRef, lone: Lone) {
        if lone.entry.is_some() {
            self.placed.insert(at);
        }
        *self.parts.entry((at.job, lone.part)).or_default() += 1;
        self.due.extend(lone.next.map(|next| (next, at)));
        self.all.insert(at, lone);
    }

    /// The entry that it had.
    fn remove(&mut self, at: JobRef) -> Option<Entry> {
        let lone = self.all.remove(&at)?;
        self.placed.remove(&at);
        if let Some(next) = lone.next {
            self.due.remove(&(next, at));
        }
        let of_part = (at.job, lone.part);
        match self.parts.get_mut(&of_part) {
            Some(n) if *n > 1 => *n -= 1,
            _ => drop(self.parts.remove(&of_part)),
        }
        lone.entry
    }

    /// The entries of all elements of a job.
    pub fn remove_all(&mut self, job: u32) -> Vec<Entry> {
        self.at_limit.remove(&job);
        let all: Vec<JobRef> = self.of_job(job).collect();
        all.into_iter().filter_map(|at| self.remove(at)).collect()
    }
}

/// The bars that hold. Before the first step nobody has told the time: all do.
fn bars(tries: &Tries, now: Option<i64>) -> impl Iterator<Item = &Bar> {
    tries.bars.iter().filter(move |bar| now.is_none_or(|now| bar.holds(now)))
}

/// Hosts that an element is kept from, ascending, each with why.
fn barred(tries: &Tries, now: Option<i64>) -> Vec<(HostId, u32)> {
    let passed = tries.passed.iter().map(|host| (*host, pend::EXCLUDED));
    let bars = bars(tries, now).map(|bar| (bar.host, bar.why));
    let all: BTreeMap<HostId, u32> = bars.chain(passed).collect();
    all.into_iter().collect()
}

fn depends_no_more(view: &View, at: JobRef) -> bool {
    match view.depends.ready_elements(at.job) {
        Some(ready) => ready.contains(&at.idx),
        None => view.depends.value(at.job) == DepValue::True,
    }
}

impl Sched {
    /// Looks again at an element; idx 0 of an array: at all of it.
    pub(super) fn refresh_lones(&mut self, view: &View, at: JobRef) {
        let left = view.unreached.barred_of(at.job).next().is_some();
        if view.state.tries.is_empty() && self.lone.all.is_empty() && !left {
            return;
        }
        let Some(job) = view.state.jobs.get(&at.job) else { return };
        // where a limit bounds how many are started, what one does may concern all
        let full = job.is_array() && job.at_limit();
        let turned = match full {
            true => self.lone.at_limit.insert(at.job),
            false => self.lone.at_limit.remove(&at.job),
        };
        if !job.is_array() || at.idx != 0 {
            self.refresh_lone(view, at);
            if turned {
                let others: Vec<JobRef> = self.lone.placed_of(at.job).collect();
                others.into_iter().for_each(|at| self.refresh_lone(view, at));
            }
            return;
        }
        let mut all: BTreeSet<JobRef> = self.lone.of_job(at.job).collect();
        all.extend(view.state.tried_of(at.job));
        all.extend(view.unreached.barred_of(at.job).map(|idx| JobRef { idx, ..at }));
        all.into_iter().for_each(|at| self.refresh_lone(view, at));
    }

    fn refresh_lone(&mut self, view: &View, at: JobRef) {
        #[cfg(test)]
        {
            self.lone.looks += 1;
        }
        if let Some(was) = self.lone.remove(at) {
            self.classes.get_mut(was.class).pending -= 1;
            if was.ready {
                self.set_ready(was.class, was.place, at.job, false);
            }
        }
        let none = Tries::default();
        let tries = view.state.tries.get(&at).unwrap_or(&none);
        let pending = |state: &ElemState| matches!(state, ElemState::Pend(p) if p.held.is_none());
        if !view.state.elem(at).is_some_and(|e| pending(&e.state)) {
            return;
        }
        let now = Some(view.now).filter(|now| now.wall_us != 0);
        let secs = now.map(|now| now.secs());
        let waits = secs.map_or(tries.wait.1 > 0, |secs| tries.waits(secs));
        let left = view.unreached.bars(at);
        let barred = barred(tries, secs);
        if !waits && !left && barred.is_empty() {
            return;
        }
        let next = bars(tries, secs).map(|bar| bar.until).chain(waits.then_some(tries.wait.1));
        let next = next.min().map(|next| now.map_or(0, |now| now.mono_of_wall(next)));
        let Some(job) = view.state.job(at.job) else { return };
        let part = job.part_no(at.idx);
        let ready = self.may_start(job, part) && depends_no_more(view, at);
        let priority = Reverse(view.priority(job.spec_of(part)));
        let QueuePosition { base, between } = view.state.spot_of(job, part);
        let entry = (!waits && !left).then(|| {
            let place = DispatchKey { priority, base, between, next: at.idx, part };
            let class = self.class_of(view, at.job, part, &barred);
            self.classes.get_mut(class).pending += 1;
            if ready {
                self.set_ready(class, place, at.job, true);
            }
            Entry { class, place, ready }
        });
        self.lone.insert(at, Lone { part, entry, next });
    }

    /// The next element whose wait is over.
    pub(crate) fn next_lone(&mut self, now: Now) -> Option<JobRef> {
        let due = self.lone.due.first().copied();
        let (_, at) = due.filter(|due| due.0 <= now.mono_us)?;
        self.lone.due.pop_first();
        Some(at)
    }
}
