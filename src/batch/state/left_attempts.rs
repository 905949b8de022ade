//! Attempts that mbatchd cannot see end: those given up with their hosts, which may still run
//! there, and those that have ended while commands after them still run.

use crate::batch::state::names::HostId;
use crate::model::{JobKey, JobRef};
use std::collections::{BTreeMap, BTreeSet};

/// An attempt whose host could not be asked when its job was requeued or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAttempt {
    pub key: JobKey,
    /// The first host of the attempt.
    pub host: HostId,
    /// Slots that it holds there for as long as it runs.
    pub slots: u32,
}

/// Attempts that were given up with their hosts, by element.
#[derive(Debug, Default)]
pub struct LeftAttempts(BTreeMap<JobRef, Vec<LeftAttempt>>);

impl LeftAttempts {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The attempts that an element has left behind.
    pub fn of(&self, at: JobRef) -> &[LeftAttempt] {
        self.0.get(&at).map_or(&[], Vec::as_slice)
    }

    pub fn find(&self, key: JobKey) -> Option<&LeftAttempt> {
        self.of(key.job_ref()).iter().find(|left| left.key == key)
    }

    /// The attempts that a job and its elements have left behind.
    pub fn of_job(&self, job: u32) -> impl Iterator<Item = &LeftAttempt> {
        self.0.range(JobRef::all_of(job)).flat_map(|(_, all)| all)
    }

    /// The elements that have left attempts behind.
    pub fn elements(&self) -> impl Iterator<Item = JobRef> + '_ {
        self.0.keys().copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = &LeftAttempt> {
        self.0.values().flatten()
    }

    pub(super) fn note(&mut self, left: LeftAttempt) {
        self.0.entry(left.key.job_ref()).or_default().push(left);
    }

    /// The element leaves memory.
    pub(super) fn forget(&mut self, at: JobRef) {
        self.0.remove(&at);
    }

    /// The job leaves memory.
    pub(super) fn forget_job(&mut self, job: u32) {
        let gone: Vec<JobRef> = self.0.range(JobRef::all_of(job)).map(|(at, _)| *at).collect();
        gone.iter().for_each(|at| self.forget(*at));
    }
}

/// Ended attempts after which commands still run.
#[derive(Debug, Default)]
pub struct RunningPosts(BTreeSet<JobKey>);

impl RunningPosts {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, key: JobKey) -> bool {
        self.0.contains(&key)
    }

    pub fn iter(&self) -> impl Iterator<Item = JobKey> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn insert(&mut self, key: JobKey) {
        self.0.insert(key);
    }

    pub(super) fn remove(&mut self, key: JobKey) {
        self.0.remove(&key);
    }

    /// Forgets the attempts of an element: their post-execution no longer matters.
    pub(super) fn forget(&mut self, at: JobRef) {
        let gone: Vec<JobKey> = self.within(at, at).collect();
        gone.into_iter().for_each(|key| self.remove(key));
    }

    /// The job leaves memory.
    pub(super) fn forget_job(&mut self, job: u32) {
        let gone: Vec<JobKey> = self.of_job(job).collect();
        gone.into_iter().for_each(|key| self.remove(key));
    }

    /// The attempts of a job and its elements after which commands still run.
    pub fn of_job(&self, job: u32) -> impl Iterator<Item = JobKey> + '_ {
        let elements = JobRef::all_of(job);
        self.within(*elements.start(), *elements.end())
    }

    fn within(&self, first: JobRef, last: JobRef) -> impl Iterator<Item = JobKey> + '_ {
        let key = |at: JobRef, attempt| JobKey { job: at.job, idx: at.idx, attempt };
        self.0.range(key(first, 0)..=key(last, u32::MAX)).copied()
    }
}
