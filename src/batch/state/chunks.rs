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

    /// An element that has ended and for which others still wait.
    pub fn next_ended(&self) -> Option<JobRef> {
        self.ended.first().copied()
    }

    /// These elements wait for a running one from now on, and no others do.
    pub(super) fn put(&mut self, runner: JobRef, members: Vec<JobRef>) {
        for at in self.waiting.remove(&runner).into_iter().flatten() {
            self.runner_of.remove(&at);
            self.turned.push(at);
        }
        self.ended.remove(&runner);
        for at in &members {
            self.leave(*at);
            self.runner_of.insert(*at, runner);
            self.turned.push(*at);
        }
        if !members.is_empty() {
            self.waiting.insert(runner, members);
        }
    }

    /// An element does not wait any more.
    pub(super) fn leave(&mut self, at: JobRef) {
        let Some(runner) = self.runner_of.remove(&at) else { return };
        self.turned.push(at);
        if let Some(waiting) = self.waiting.get_mut(&runner) {
            waiting.retain(|other| *other != at);
            if waiting.is_empty() {
                self.waiting.remove(&runner);
                self.ended.remove(&runner);
            }
        }
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

    /// The running elements of a job for which others wait.
    pub(super) fn runners_of(&self, job: u32) -> Vec<JobRef> {
        self.waiting.range(JobRef::all_of(job)).map(|(at, _)| *at).collect()
    }
}
