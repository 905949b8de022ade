//! How far a walk through the classes has come: it may take more than one turn.

use crate::batch::sched::open_hosts::{OrderNo, Rank};
use crate::batch::sched::order::ClassHead;
use crate::batch::state::names::{HostId, HostSet, UserId};
use crate::model::idmap::IdMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A walk under way.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The position of the next queue in dispatch order.
    pub queue: usize,
    /// Hosts that have changed since the walk before.
    pub changed: HostSet,
    pub here: Option<QueueWalk>,
}

/// A walk through one queue.
#[derive(Debug, Default)]
pub(super) struct QueueWalk {
    /// The walk comes to all classes, not to unseen ones alone.
    pub every: bool,
    /// All classes count as unseen.
    pub fresh: bool,
    /// The next class of each user that the walk has come to.
    pub heads: BinaryHeap<Reverse<(ClassHead, UserId)>>,
    pub users: IdMap<UserId, UserWalk>,
    /// The last user that was added to `heads`.
    pub pulled: Option<(ClassHead, UserId)>,
    /// How far a class has come in an order: the hosts up to there have nothing for it.
    pub reached: IdMap<(u32, usize), (OrderNo, Rank)>,
    /// A job of this class was given hosts last.
    pub started: Option<(ClassHead, UserId)>,
}

/// A walk through the classes of one user in one queue.
#[derive(Debug)]
pub(super) struct UserWalk {
    /// Classes that may still be held against hosts.
    pub left: usize,
    /// All classes count as unseen.
    pub fresh: bool,
    /// The walk comes to unseen classes alone.
    pub unseen_only: bool,
}

impl Walk {
    /// A host takes no further job.
    pub fn closed(&mut self, host: HostId) {
        self.changed.remove(host);
    }
}
