//! How long job groups have been without jobs, for bgdel -d. A group that was empty before mbatchd
//! started counts from there, so that none is taken too early.

use crate::model::job_group::is_within;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct IdleGroups {
    /// When mbatchd started, monotonic microseconds.
    start: u64,
    /// When a group was made, or its last job left it, since then.
    since: BTreeMap<Box<str>, u64>,
}

impl IdleGroups {
    pub fn begin(&mut self, now: u64) {
        self.start = now;
    }

    /// A group is made, or its last job has left it.
    pub fn note(&mut self, path: &str, now: u64) {
        self.since.insert(path.into(), now);
    }

    /// A group is gone, with all below it.
    pub fn forget(&mut self, path: &str) {
        let from = (std::ops::Bound::Included(path), std::ops::Bound::Unbounded);
        let after = self.since.range::<str, _>(from).map(|(at, _)| at);
        let below = after.take_while(|at| at.starts_with(path)).filter(|at| is_within(at, path));
        for path in below.cloned().collect::<Vec<_>>() {
            self.since.remove(&path);
        }
    }

    /// How long a group without jobs has been so, microseconds.
    pub fn idle_for(&self, path: &str, now: u64) -> u64 {
        now.saturating_sub(self.since.get(path).copied().unwrap_or(self.start))
    }
}
