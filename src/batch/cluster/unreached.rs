//! Attempts that were left behind on hosts out of reach, and the elements that wait for them. Soft
//! state; `lifecycle::unreached_hosts` keeps it.

use crate::model::{JobKey, JobRef};
use std::collections::{BTreeSet, HashSet};

/// Hosts out of reach, and the elements that wait for attempts left behind there.
#[derive(Debug)]
pub struct Unreached {
    /// Something has changed that decides on it.
    look: bool,
    /// When a host has been out of reach for long enough next.
    next: Option<u64>,
    /// Attempts left behind of which their hosts have said that they are over.
    gone: HashSet<JobKey>,
    /// Pending elements that wait for attempts left behind.
    barred: BTreeSet<JobRef>,
}

impl Default for Unreached {
    fn default() -> Self {
        let (gone, barred) = (HashSet::new(), BTreeSet::new());
        Unreached { look: true, next: None, gone, barred }
    }
}

impl Unreached {
    /// Something has changed that decides on hosts out of reach.
    pub fn look_again(&mut self) {
        self.look = true;
    }
    /// Is a look at the hosts due?
    pub fn is_due(&self, now_us: u64) -> bool {
        self.deadline().is_some_and(|t| t <= now_us)
    }
    /// The hosts were looked at, but for some (`left`); another one has been out of reach for long
    /// enough then.
    pub fn looked(&mut self, left: bool, next: Option<u64>) {
        (self.look, self.next) = (left, next);
    }
    /// A host has said that an attempt left behind is over.
    pub fn note_over(&mut self, key: JobKey) {
        self.gone.insert(key);
    }
    /// Has its host said that an attempt left behind is over?
    pub fn is_over(&self, key: JobKey) -> bool {
        self.gone.contains(&key)
    }
    /// Forgets the attempts that no element has left behind any more.
    pub fn keep_left(&mut self, is_left: impl Fn(JobKey) -> bool) {
        self.gone.retain(|key| is_left(*key));
    }
    /// A pending element waits for attempts left behind, or no longer; did that change?
    pub fn set_barred(&mut self, at: JobRef, bar: bool) -> bool {
        match bar {
            true => self.barred.insert(at),
            false => self.barred.remove(&at),
        }
    }
    /// The pending elements that wait for attempts left behind.
    pub fn barred(&self) -> impl Iterator<Item = JobRef> + '_ {
        self.barred.iter().copied()
    }
    pub fn has_barred(&self) -> bool {
        !self.barred.is_empty()
    }
    pub fn deadline(&self) -> Option<u64> {
        if self.look { Some(0) } else { self.next }
    }
    /// Does a pending element wait for an attempt left behind?
    pub fn bars(&self, at: JobRef) -> bool {
        self.barred.contains(&at)
    }
    /// How many elements of a job do so.
    pub fn barred_of(&self, job: u32) -> impl Iterator<Item = u32> + '_ {
        let all = JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX };
        self.barred.range(all).map(|at| at.idx)
    }
}
