//! Attempts that were left behind on hosts out of reach, and the elements that wait for them. Soft
//! state; `lifecycle::unreached_hosts` keeps it.

use crate::model::{JobKey, JobRef};
use std::collections::{BTreeSet, HashSet};

/// Hosts out of reach, and the elements that wait for attempts left behind there.
#[derive(Debug)]
pub struct Unreached {
    /// Something has changed that decides on it.
    pub look: bool,
    /// When a host has been out of reach for long enough next.
    pub next: Option<u64>,
    /// Attempts left behind of which their hosts have said that they are over.
    pub gone: HashSet<JobKey>,
    /// Pending elements that wait for attempts left behind.
    pub barred: BTreeSet<JobRef>,
}

impl Default for Unreached {
    fn default() -> Self {
        let (gone, barred) = (HashSet::new(), BTreeSet::new());
        Unreached { look: true, next: None, gone, barred }
    }
}

impl Unreached {
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
