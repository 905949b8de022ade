//! Jobs of each job group and all groups below it, by state: counted job by job as these change, so
//! that neither a listing nor a limit walks through the jobs of a group.
//!
//! Invariant: the counters of a group are the sums of the tallies of the jobs in it and below it.

use crate::batch::state::{Job, State};
use crate::lang::depend::DepCounts;
use crate::model::idmap::IdMap;
use crate::model::job_group::{is_within, lineage};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Jobs, each element of an array as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupTally {
    pub jobs: u64,
    /// Suspended pending ones included.
    pub pend: u64,
    /// The suspended ones among them.
    pub held: u64,
    pub run: u64,
    pub ssusp: u64,
    pub ususp: u64,
    pub finished: u64,
    /// The finished jobs that ended well.
    pub done: u64,
    /// Slots that the pending ones ask for.
    pub pend_slots: u64,
}

impl GroupTally {
    fn of(job: &Job) -> GroupTally {
        let t = &job.tally();
        let slots = |part: u32| {
            u64::from(job.pending(part)) * u64::from(job.spec_of(part).min_slots.max(1))
        };
        GroupTally {
            jobs: u64::from(t.total - t.cleaned),
            pend: u64::from(t.pend + t.psusp),
            held: t.psusp.into(),
            run: t.run.into(),
            ssusp: t.ssusp.into(),
            ususp: t.ususp.into(),
            finished: u64::from(t.done + t.exit),
            done: t.done.into(),
            pend_slots: (0..=job.parts().len() as u32).map(slots).sum(),
        }
    }

    /// Jobs that a limit of the group counts.
    pub fn started(&self) -> u64 {
        self.run + self.ssusp + self.ususp
    }

    /// The counters as dependency conditions ask for them.
    pub fn of_conditions(&self) -> DepCounts {
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        DepCounts {
            total: count(self.jobs),
            pend: count(self.pend - self.held),
            held: count(self.held),
            run: count(self.run),
            susp: count(self.ssusp + self.ususp),
            done: count(self.done),
            exit: count(self.finished - self.done),
            ..DepCounts::default()
        }
    }

    fn change(&mut self, by: &GroupTally, add: bool) {
        let step = |n: &mut u64, by: u64| {
            *n = if add { *n + by } else { n.saturating_sub(by) };
        };
        step(&mut self.jobs, by.jobs);
        step(&mut self.pend, by.pend);
        step(&mut self.held, by.held);
        step(&mut self.run, by.run);
        step(&mut self.ssusp, by.ssusp);
        step(&mut self.ususp, by.ususp);
        step(&mut self.finished, by.finished);
        step(&mut self.done, by.done);
        step(&mut self.pend_slots, by.pend_slots);
    }
}

#[derive(Debug, Default)]
pub struct JobGroupCounts {
    groups: HashMap<Box<str>, GroupTally>,
    /// The group of each job that is in one, and its part of the counters.
    jobs: IdMap<u32, (Box<str>, GroupTally)>,
    /// Groups that the last job has left.
    emptied: BTreeSet<Box<str>>,
}

impl JobGroupCounts {
    /// The jobs of a group and of all below it.
    pub fn tally(&self, path: &str) -> GroupTally {
        self.groups.get(path).copied().unwrap_or_default()
    }

    /// The group of a job that is in one.
    pub fn group_of(&self, job: u32) -> Option<&str> {
        self.jobs.get(&job).map(|(path, _)| &**path)
    }

    /// The jobs of a group and of all below it, ascending. Looks at all jobs in groups.
    pub(crate) fn jobs_within(&self, path: &str) -> Vec<u32> {
        let within = self.jobs.iter().filter(|(_, (of, _))| is_within(of, path));
        let mut all: Vec<u32> = within.map(|(id, _)| *id).collect();
        all.sort_unstable();
        all
    }

    /// Has a group on the way to this one as many started jobs as its limit allows?
    pub fn is_full(&self, state: &State, path: &str) -> bool {
        let groups = state.job_groups();
        groups.has_limits()
            && groups.limits(path).any(|(path, most)| self.tally(path).started() >= most.into())
    }

    /// The oldest job of each group that is meant, or below it. Looks at all jobs in groups.
    pub(crate) fn oldest_jobs(&self, meant: impl Fn(&str) -> bool) -> BTreeMap<Box<str>, u32> {
        let mut oldest: BTreeMap<Box<str>, u32> = BTreeMap::new();
        for (&id, (path, _)) in &self.jobs {
            for path in lineage(path).filter(|path| meant(path)) {
                match oldest.get_mut(path) {
                    Some(known) => *known = id.min(*known),
                    None => drop(oldest.insert(path.into(), id)),
                }
            }
        }
        oldest
    }

    /// Counts all jobs.
    pub(crate) fn recount(state: &State) -> JobGroupCounts {
        let mut all = JobGroupCounts::default();
        for job in state.each_job() {
            all.follow(state, job.id);
        }
        all
    }

    /// A job has changed. Is there room in its group that was not?
    pub(crate) fn follow(&mut self, state: &State, id: u32) -> bool {
        let job = state.job(id).filter(|job| !job.spec.further.job_group.is_empty());
        if job.is_none() && !self.jobs.contains_key(&id) {
            return false;
        }
        let now = job.map(|job| (job.spec.further.job_group.clone(), GroupTally::of(job)));
        let before = match &now {
            Some(now) => self.jobs.insert(id, now.clone()),
            None => self.jobs.remove(&id),
        };
        if before == now {
            return false;
        }
        let started = |of: &Option<(Box<str>, GroupTally)>, path: &str| {
            of.as_ref().filter(|of| &*of.0 == path).map_or(0, |of| of.1.started())
        };
        let room = before.as_ref().is_some_and(|of| of.1.started() > started(&now, &of.0));
        if let Some((path, tally)) = &now {
            self.change(path, tally, true);
        }
        if let Some((path, tally)) = &before {
            self.change(path, tally, false);
        }
        room
    }

    fn change(&mut self, path: &str, by: &GroupTally, add: bool) {
        for path in lineage(path) {
            let tally = self.groups.entry(path.into()).or_default();
            tally.change(by, add);
            if tally.jobs == 0 {
                self.groups.remove(path);
                self.emptied.insert(path.into());
            }
        }
    }

    /// A group that the last job has left, the lowest of its path first.
    pub(crate) fn take_emptied(&mut self) -> Option<Box<str>> {
        self.emptied.pop_last()
    }

    /// Are there groups that the last job has left?
    pub(crate) fn has_emptied(&self) -> bool {
        !self.emptied.is_empty()
    }

    /// A group has no group below it any more.
    pub(crate) fn note_emptied(&mut self, path: &str) {
        self.emptied.insert(path.into());
    }

    /// Is each counter what the jobs are? Looks at every job.
    pub fn audit(&self, state: &State) -> Result<(), String> {
        let counted = JobGroupCounts::recount(state);
        for path in counted.groups.keys().chain(self.groups.keys()) {
            let (kept, is) = (self.tally(path), counted.tally(path));
            if kept != is {
                return Err(format!("job group {path}: counted {kept:?}, its jobs are {is:?}"));
            }
        }
        Ok(())
    }

    /// Is there each group that has jobs?
    pub fn groups_exist(&self, state: &State) -> Result<(), String> {
        match self.groups.keys().find(|path| state.job_groups().get(path).is_none()) {
            Some(path) => Err(format!("job group {path} has jobs and does not exist")),
            None => Ok(()),
        }
    }
}
