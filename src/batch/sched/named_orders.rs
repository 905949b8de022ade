//! The orders of the hosts that jobs (bsub -m) or queues (HOSTS) prefer to others, kept for a walk:
//! a job does not have all of them put in order again that the job before it has.

use crate::batch::state::names::{HostId, QueueId};
use crate::lang::resreq::HostOrder;
use crate::model::idmap::IdMap;
use std::rc::Rc;

/// Hosts in the orders of classes that name some themselves, all together; beyond it they are
/// put in order anew.
const MAX_OWN_HOSTS: usize = 1 << 20;
/// Orders of hosts of queues; beyond it they are made anew.
const MAX_OF_QUEUES: usize = 64;

/// The hosts that a class prefers to others, best first.
#[derive(Debug)]
pub(super) struct NamedHosts {
    pub(super) hosts: Rc<[HostId]>,
    /// The hosts before this one have nothing for the class.
    pub(super) reached: usize,
}

/// The hosts of a queue in one order.
#[derive(Debug)]
struct OfQueue {
    queue: QueueId,
    order: Option<HostOrder>,
    hosts: Rc<[HostId]>,
}

/// The orders of a walk.
#[derive(Debug, Default)]
pub(super) struct NamedOrders {
    /// The hosts by class and alternative of its requirement.
    classes: IdMap<(u32, usize), NamedHosts>,
    queues: Vec<OfQueue>,
    /// Hosts in orders that are no queue's.
    own: usize,
}

impl NamedOrders {
    /// The hosts of a class, by an alternative of its requirement.
    pub(super) fn of_class(&mut self, of: (u32, usize)) -> Option<&mut NamedHosts> {
        self.classes.get_mut(&of)
    }

    /// The hosts of a queue in an order.
    pub(super) fn of_queue(
        &self,
        queue: QueueId,
        order: Option<&HostOrder>,
    ) -> Option<Rc<[HostId]>> {
        let meant = |known: &&OfQueue| known.queue == queue && known.order.as_ref() == order;
        self.queues.iter().find(meant).map(|known| known.hosts.clone())
    }

    /// Keeps the hosts of a queue in an order.
    pub(super) fn keep_of_queue(
        &mut self,
        queue: QueueId,
        order: Option<&HostOrder>,
        hosts: Rc<[HostId]>,
    ) {
        if self.queues.len() >= MAX_OF_QUEUES {
            self.queues.clear();
        }
        self.queues.push(OfQueue { queue, order: order.cloned(), hosts });
    }

    /// Keeps the hosts of a class; `own`: those that it names itself.
    pub(super) fn keep(&mut self, of: (u32, usize), hosts: Rc<[HostId]>, own: bool) {
        if own && self.own + hosts.len() > MAX_OWN_HOSTS {
            self.classes.clear();
            self.own = 0;
        }
        self.own += if own { hosts.len() } else { 0 };
        self.classes.insert(of, NamedHosts { hosts, reached: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::Id;

    #[test]
    fn hosts_that_classes_name_themselves_are_kept_up_to_a_number() {
        let mut orders = NamedOrders::default();
        let many = |hosts: usize| -> Rc<[HostId]> { (0..hosts).map(HostId::from_index).collect() };
        let half = many(MAX_OWN_HOSTS / 2);
        orders.keep((0, 0), half.clone(), true);
        orders.keep((1, 0), half.clone(), true);
        // those of a queue are shared
        (2..9).for_each(|class| orders.keep((class, 0), half.clone(), false));
        assert!((0..9).all(|class| orders.of_class((class, 0)).is_some()));
        orders.keep((9, 0), many(1), true);
        assert!((0..9).all(|class| orders.of_class((class, 0)).is_none()));
        assert!(orders.of_class((9, 0)).is_some());
    }
}
