//! Chunk jobs: pending elements that wait for the slots of one that runs (WAIT), and are started
//! there one after the other (CHUNK_JOB_SIZE of lsb.queues(5)).
//!
//! A member that waits is a pending element like any other but for this: nobody starts it
//! elsewhere. The host knows nothing of it. So a chunk that is forgotten costs its members their
//! turn and nothing else: each end in doubt (the host is lost, mbatchd starts again between two
//! members) has the members pending again.
//!
//! Invariants: an element waits in one chunk at most; the members of a chunk are pending and not
//! held; the element that they wait for is started, or has just ended (`ended`).

use crate::model::JobRef;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The chunks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    /// The elements that wait for each running one, in their order.
    waiting: BTreeMap<JobRef, Vec<JobRef>>,
    runner_of: BTreeMap<JobRef, JobRef>,
    /// The running ones of these that have ended: the next element is to be started.
    ended: BTreeSet<JobRef>,
    /// Elements that have begun or ceased to wait since these were taken last.
    turned: Vec<JobRef>,
}

/// An element, or with idx 0 all of its job.
fn meant(at: JobRef) -> RangeInclusive<JobRef> {
    if at.idx == 0 { JobRef::all_of(at.job) } else { at..=at }
}

impl Chunks {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The element for whose slots another one waits.
    pub fn runner(&self, member: JobRef) -> Option<JobRef> {
        self.runner_of.get(&member).copied()
    }

    /// Does an element wait in a chunk?
    pub fn waits(&self, at: JobRef) -> bool {
        self.runner_of.contains_key(&at)
    }

    /// The elements that wait for a running one, in their order.
    pub fn waiting(&self, runner: JobRef) -> &[JobRef] {
        self.waiting.get(&runner).map_or(&[], |waiting| waiting)
    }

    /// The running elements with those that wait for each.
    pub fn each(&self) -> impl Iterator<Item = (JobRef, &[JobRef])> {
        self.waiting.iter().map(|(runner, waiting)| (*runner, &**waiting))
    }

    /// The elements of a job that wait.
    pub fn of_job(&self, job: u32) -> impl Iterator<Item = JobRef> + '_ {
        self.runner_of.range(JobRef::all_of(job)).map(|(at, _)| *at)
    }

    /// The elements that have ended and for which others still wait.
    pub fn ended(&self) -> Vec<JobRef> {
        self.ended.iter().copied().collect()
    }

    /// These elements wait for a running one from now on, and no others do. Elements that waited
    /// for another one before have not turned: they go on waiting.
    pub(super) fn put(&mut self, runner: JobRef, members: Vec<JobRef>) {
        let kept: BTreeSet<JobRef> = members.iter().copied().collect();
        for at in self.waiting.remove(&runner).into_iter().flatten() {
            if !kept.contains(&at) {
                self.runner_of.remove(&at);
                self.turned.push(at);
            }
        }
        self.ended.remove(&runner);
        let mut left: BTreeSet<JobRef> = BTreeSet::new();
        for at in &members {
            match self.runner_of.insert(*at, runner) {
                None => self.turned.push(*at),
                Some(before) => left.extend((before != runner).then_some(before)),
            }
        }
        for before in left {
            self.retain(before, |at| !kept.contains(at));
        }
        if !members.is_empty() {
            self.waiting.insert(runner, members);
        }
    }

    /// Only these go on waiting for a running element.
    fn retain(&mut self, runner: JobRef, stays: impl FnMut(&JobRef) -> bool) {
        let Some(waiting) = self.waiting.get_mut(&runner) else { return };
        waiting.retain(stays);
        if waiting.is_empty() {
            self.waiting.remove(&runner);
            self.ended.remove(&runner);
        }
    }

    /// An element does not wait any more.
    pub(super) fn leave(&mut self, at: JobRef) {
        let Some(runner) = self.runner_of.remove(&at) else { return };
        self.turned.push(at);
        self.retain(runner, |other| *other != at);
    }

    /// A running element has ended: the next one is to be started.
    pub(super) fn end(&mut self, runner: JobRef) {
        if self.waiting.contains_key(&runner) {
            self.ended.insert(runner);
        }
    }

    /// The chunks whose running element has ended, taken.
    pub(super) fn take_ended(&mut self) -> BTreeSet<JobRef> {
        std::mem::take(&mut self.ended)
    }

    pub(super) fn take_turned(&mut self) -> Vec<JobRef> {
        std::mem::take(&mut self.turned)
    }

    /// The running elements for which others wait, among an element, or with idx 0 all of its job.
    pub(super) fn runners_among(&self, at: JobRef) -> Vec<JobRef> {
        self.waiting.range(meant(at)).map(|(at, _)| *at).collect()
    }

    /// The elements that wait, likewise.
    pub(super) fn members_among(&self, at: JobRef) -> Vec<JobRef> {
        self.runner_of.range(meant(at)).map(|(at, _)| *at).collect()
    }
}
