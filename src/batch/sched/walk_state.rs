//! How far a walk through the classes has come: it may take more than one turn.

use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::sched::fair_order::FairOrder;
use crate::batch::sched::open_hosts::{OrderNo, Rank};
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::site::shares::TreeId;
use crate::batch::state::names::{HostId, HostSet};
use crate::batch::usage::fairshare::account::AccountId;
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A walk under way.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The position of the next group of queues that are dispatched together
    /// (`Site::dispatch_groups`).
    pub(super) group: usize,
    /// Hosts that have changed since the walk before.
    pub(super) changed: HostSet,
    /// Hosts that have changed, open or not; empty where no queue preempts jobs of another.
    pub(super) touched: HostSet,
    /// Does any queue do something for blocked classes? None: it was not asked yet.
    pub(super) acts: Option<bool>,
    /// The classes of jobs that goals want to be started, with their service classes; none: they
    /// were not gathered yet.
    pub(super) for_goals: Option<VecDeque<(ServiceClassId, u32)>>,
    /// How far these have come in the orders of hosts.
    pub(super) goal_looks: QueueWalk,
    /// The queues of the group with something to be done.
    pub(super) here: Vec<QueueWalk>,
    /// The pending jobs of the group are done: the started ones that want further slots are next,
    /// those of this one of its queues first.
    pub(super) growing: Option<usize>,
    /// The last of these that the walk came to.
    pub(super) grower: Option<JobRef>,
}

/// A walk through one queue.
#[derive(Debug, Default)]
pub(super) struct QueueWalk {
    /// The position of the queue.
    pub(super) position: usize,
    /// The walk comes to all classes, not to unseen ones alone.
    pub(super) every: bool,
    /// All classes count as unseen.
    pub(super) fresh: bool,
    /// The next class of each user that the walk has come to.
    pub(super) heads: BinaryHeap<Reverse<(ClassHead, Bidder)>>,
    /// In place of `heads` in a queue with FAIRSHARE.
    pub(super) fair: Option<FairWalk>,
    /// The share account through which the walk has come to a class.
    pub(super) account: Option<AccountId>,
    pub(super) users: IdMap<Bidder, UserWalk>,
    /// The last user that was added to `heads`.
    pub(super) pulled: Option<(ClassHead, Bidder)>,
    /// How far a class has come in an order: the hosts up to there have nothing for it.
    pub(super) reached: IdMap<(u32, usize), (OrderNo, Rank)>,
    /// The first of `heads` is the next class of the queue.
    pub(super) gathered: bool,
    /// A job of this class was given hosts last.
    pub(super) started: Option<(ClassHead, Bidder)>,
}

/// Users in the order of a share tree.
#[derive(Debug)]
pub(super) struct FairWalk {
    pub(super) tree: TreeId,
    /// The users that the walk has come to; none: all of the queue, as `DispatchOrder` has them.
    pub(super) some: Option<FairOrder>,
}

/// A walk through the classes of one user in one queue.
#[derive(Debug)]
pub(super) struct UserWalk {
    /// Classes that may still be held against hosts.
    pub(super) left: usize,
    /// All classes count as unseen.
    pub(super) fresh: bool,
    /// The walk comes to unseen classes alone.
    pub(super) unseen_only: bool,
}

impl Walk {
    /// A host takes no further job.
    pub fn closed(&mut self, host: HostId) {
        self.changed.remove(host);
    }
}
