//! The places of the pending jobs among which btop or bbot moves one, as far as they were looked
//! at. The places are kept in order, so that none is looked for among all of them at the end.

use crate::batch::state::names::{QueueId, UserId};
use crate::model::event::QueuePosition;
use std::collections::{BTreeMap, BTreeSet};

/// A pending job, or a part of one, at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Placed {
    pub(crate) spot: QueuePosition,
    pub(crate) job: u32,
    pub(crate) part: u32,
}

/// The places of what waits in one queue with one priority.
#[derive(Debug)]
pub struct PlaceScan {
    pub(crate) alike: (QueueId, u32),
    /// Jobs are moved among those of this user; none: among all.
    pub(crate) user: Option<UserId>,
    /// The next job to be looked at; `None`: all were.
    pub(crate) next: Option<u32>,
    pub(crate) all: BTreeSet<Placed>,
    /// The jobs of the user.
    pub(crate) own: BTreeSet<Placed>,
    /// The places of jobs as they were found; `again`: their places since they have changed, by
    /// job.
    pub(crate) found: Vec<Placed>,
    pub(crate) again: BTreeMap<u32, Vec<Placed>>,
}

impl PlaceScan {
    pub(crate) fn new(alike: (QueueId, u32), user: Option<UserId>) -> PlaceScan {
        let (all, own, found, again) = Default::default();
        PlaceScan { alike, user, next: Some(0), all, own, found, again }
    }

    pub(crate) fn put(&mut self, user: UserId, placed: Placed) {
        self.all.insert(placed);
        if self.user == Some(user) {
            self.own.insert(placed);
        }
    }

    pub(crate) fn remove(&mut self, placed: &Placed) {
        self.all.remove(placed);
        self.own.remove(placed);
    }

    /// Takes a job out that is about to be looked at again.
    pub(crate) fn forget(&mut self, job: u32) {
        let from = self.found.partition_point(|p| p.job < job);
        let to = self.found.partition_point(|p| p.job <= job);
        let again = self.again.remove(&job).unwrap_or_default();
        let old: Vec<Placed> = self.found[from..to].iter().copied().chain(again).collect();
        old.iter().for_each(|placed| self.remove(placed));
    }

    /// Forgets some of what was found; whether nothing is left.
    pub fn take_apart(&mut self, some: usize) -> bool {
        for _ in 0..some {
            self.all.pop_last();
            self.own.pop_last();
            self.again.pop_last();
        }
        self.all.is_empty() && self.own.is_empty() && self.again.is_empty()
    }

    /// The jobs among which one is moved.
    pub(crate) fn rivals(&self) -> &BTreeSet<Placed> {
        if self.user.is_some() { &self.own } else { &self.all }
    }
}
