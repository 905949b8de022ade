//! How far a walk through the classes has come: it may take more than one turn.

use crate::batch::cluster::nlb_lists::NlbList;
use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::sched::named_orders::NamedOrders;
use crate::batch::sched::open_hosts::{OrderNo, Rank};
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::site::shares::TreeId;
use crate::batch::state::names::{HostId, HostSet, QueueId};
use crate::batch::usage::fairshare::account::AccountId;
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

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
    /// The classes of jobs that goals want to be started, with their service classes; none: they
    /// were not gathered yet.
    pub(super) for_goals: Option<VecDeque<(ServiceClassId, u32)>>,
    /// The first jobs of the classes that are given slots whatever the shares of slot pools, once
    /// all queues are done; none: they were not gathered yet.
    pub(super) lent: Option<BinaryHeap<Reverse<ClassHead>>>,
    /// How far these two have come in the orders of hosts.
    pub(super) goal_looks: QueueWalk,
    /// The queues of the group with something to be done, in the order of their positions.
    pub(super) here: Vec<QueueWalk>,
    /// A job of this class was given hosts last, in one of them.
    pub(super) started: Option<StartedClass>,
    /// The pending jobs of the group are done: the started ones that want further slots are next,
    /// those of this one of its queues first.
    pub(super) growing: Option<usize>,
    /// The last of these that the walk came to.
    pub(super) grower: Option<JobRef>,
}

/// A class a job of which was given hosts: the position of its queue among those of the walk, its
/// place and its user.
pub(super) type StartedClass = (usize, (ClassHead, Bidder));

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
    pub(super) heads: Heads,
    /// In a queue with FAIRSHARE, whose users are not in `heads`.
    pub(super) fair: Option<FairWalk>,
    /// The share account through which the walk has come to a class.
    pub(super) account: Option<AccountId>,
    pub(super) users: IdMap<Bidder, UserWalk>,
    /// The last user that was added to `heads`.
    pub(super) pulled: Option<(ClassHead, Bidder)>,
    /// The user behind, as of so many `DispatchOrder::advances`.
    pub(super) upcoming: Option<(u64, Option<(ClassHead, Bidder)>)>,
    /// How far a class has come in an order: the hosts up to there have nothing for it.
    pub(super) reached: IdMap<(u32, usize), (OrderNo, Rank)>,
    /// How far a class has come in a list of the load balancer that orders its hosts.
    pub(super) listed: IdMap<(u32, usize), ListedHosts>,
    /// Hosts on which a limit leaves no job of a queue a slot. Looks for goals come to several
    /// queues: the hosts are those of the last one.
    pub(super) full: (QueueId, HostSet),
    /// The orders of hosts that jobs or their queue prefer to others.
    pub(super) named: NamedOrders,
    /// The first of `heads` is the next class of the queue.
    pub(super) gathered: bool,
}

/// The hosts of a list of the load balancer for a class, best first.
#[derive(Debug)]
pub(super) struct ListedHosts {
    pub(super) list: Rc<NlbList>,
    /// The hosts, where they are others or in another order than in the list.
    pub(super) preferred: Option<Vec<HostId>>,
    /// The hosts before this one have nothing for the class.
    pub(super) reached: usize,
}

/// Classes, of which the first one is always next. Mostly the class that was taken is followed by
/// one of the same user that is first again: it is put in its place, and nothing is moved.
#[derive(Debug, Default)]
pub(super) struct Heads {
    all: BinaryHeap<Reverse<(ClassHead, Bidder)>>,
    /// The first of `all` was taken.
    taken: bool,
}

impl Heads {
    /// The first class.
    pub fn first(&mut self) -> Option<(ClassHead, Bidder)> {
        self.settle();
        self.all.peek().map(|first| first.0)
    }

    /// Takes the first class out.
    pub fn take_first(&mut self) -> Option<(ClassHead, Bidder)> {
        let first = self.first();
        self.taken = first.is_some();
        first
    }

    /// Adds a class.
    pub fn put(&mut self, head: (ClassHead, Bidder)) {
        if std::mem::take(&mut self.taken)
            && let Some(mut first) = self.all.peek_mut()
        {
            *first = Reverse(head);
            return;
        }
        self.all.push(Reverse(head));
    }

    /// Keeps the classes of these users.
    pub fn keep(&mut self, of: impl Fn(&Bidder) -> bool) {
        self.settle();
        self.all.retain(|Reverse((_, bidder))| of(bidder));
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.all.pop();
        }
    }
}

/// A queue whose users are in the order of a share tree.
#[derive(Debug)]
pub(super) struct FairWalk {
    /// The position of its group, whose order `DispatchOrder` has.
    pub(super) group: usize,
    pub(super) tree: TreeId,
    /// PRIORITY of the queue.
    pub(super) priority: u32,
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
    /// The queues of a group are done.
    pub(super) fn leave_queues(&mut self) {
        self.here.clear();
        self.started = None;
    }

    /// A host takes no further job.
    pub fn closed(&mut self, host: HostId) {
        self.changed.remove(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::sched::dispatch_key::DispatchKey;
    use crate::batch::state::names::{Id, UserId};
    use crate::model::event::QueuePosition;
    use proptest::prelude::*;

    fn head(n: u32) -> (ClassHead, Bidder) {
        let position = QueuePosition { base: u64::from(n), between: 0 };
        let bidder = Bidder { user: UserId::from_index(n as usize % 7), group: 0 };
        ((DispatchKey::new(0, position, 0, 0), n), bidder)
    }

    proptest! {
        /// Classes that come and go in any order are taken as from an ordered set.
        #[test]
        fn first_class_taken_is_the_first_of_all(
            steps in prop::collection::vec((0u32..6, 0u32..400), 0..200),
        ) {
            let (mut heads, mut model) = (Heads::default(), std::collections::BTreeSet::new());
            for (what, n) in steps {
                match what {
                    0 => prop_assert_eq!(heads.first(), model.first().copied()),
                    1 => {
                        heads.keep(|bidder| bidder.user.index() != n as usize % 7);
                        model.retain(|(_, bidder): &(ClassHead, Bidder)| {
                            bidder.user.index() != n as usize % 7
                        });
                    }
                    2 | 3 => prop_assert_eq!(heads.take_first(), model.pop_first()),
                    _ if model.insert(head(n)) => heads.put(head(n)),
                    _ => {}
                }
            }
            while let Some(first) = model.pop_first() {
                prop_assert_eq!(heads.take_first(), Some(first));
            }
            prop_assert_eq!(heads.take_first(), None);
        }
    }
}
