//! The next user of a queue in a walk, where the queue has FAIRSHARE: by the share tree
//! (`fair_order`), of all queues of the group. A start lowers the priority of an account at once,
//! so that the user after it is found by what all of them have then.

use crate::batch::sched::Sched;
use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::sched::fair_order::{self, FairOrder};
use crate::batch::sched::view::View;
use crate::batch::sched::walk_state::{FairWalk, QueueWalk};
use crate::batch::site::Queue;
use crate::batch::site::shares::TreeId;
use crate::batch::state::names::QueueId;
use crate::batch::usage::fairshare::Leaves;
use std::collections::BTreeSet;

impl Sched {
    /// The accounts of a user's jobs; none: the user has no share.
    fn leaves(&self, view: &View, tree: TreeId, bidder: Bidder) -> Option<Leaves> {
        let group = self.classes.share_group(bidder.group);
        view.fairshare.leaves(tree, bidder.user, group).cloned()
    }

    /// Begins with a queue that has FAIRSHARE: with all its users, or those that the walk adds.
    pub(super) fn begin_fair(
        &mut self,
        view: &View,
        queue: &Queue,
        every: bool,
    ) -> Option<FairWalk> {
        let tree = queue.tree.filter(|_| queue.aps.is_none())?;
        self.rerank(view, &mut []);
        let now = view.now.secs();
        if every {
            let classes = &self.classes;
            let leaves = |bidder: Bidder| {
                let group = classes.share_group(bidder.group);
                view.fairshare.leaves(tree, bidder.user, group).cloned()
            };
            self.order.begin_fair(view.fairshare, now, (queue.id, tree), leaves);
        }
        Some(FairWalk { tree, some: (!every).then(|| FairOrder::new(now)) })
    }

    /// Gives accounts whose use has changed their new place, in these walks too.
    pub(super) fn rerank(&mut self, view: &View, all: &mut [QueueWalk]) {
        if self.accounts.is_empty() {
            return;
        }
        for account in std::mem::take(&mut self.accounts) {
            self.order.rerank(view.fairshare, account);
            self.rank_account(view, account);
            for some in all.iter_mut().filter_map(|here| here.fair.as_mut()?.some.as_mut()) {
                some.rerank(view.fairshare, account, &mut None);
            }
        }
    }

    /// The next class of a user in this walk.
    pub(super) fn push_head(
        &mut self,
        view: &View,
        queue: QueueId,
        here: &mut QueueWalk,
        (head, bidder): (ClassHead, Bidder),
    ) {
        let Some(fair) = &mut here.fair else {
            return here.heads.put((head, bidder));
        };
        let Some(leaves) = self.leaves(view, fair.tree, bidder) else { return };
        match &mut fair.some {
            Some(some) => some.put(view.fairshare, bidder, head, &leaves),
            None => self.order.put_fair(view.fairshare, queue, bidder, head, &leaves),
        }
    }

    /// Takes the user out whose turn it is in the queues of a group that share by one tree, also
    /// one to whom the walk has not come before, with the position of the queue in the group.
    pub(super) fn next_by_shares(
        &mut self,
        view: &View,
        all: &mut [QueueWalk],
    ) -> Option<(usize, (ClassHead, Bidder))> {
        self.rerank(view, all);
        let mut orders = Vec::with_capacity(all.len());
        for (member, here) in all.iter().enumerate() {
            let queue = view.site.queues.get(here.position)?;
            let order = match &here.fair.as_ref()?.some {
                Some(some) => Some(some),
                None => self.order.fair_order(queue.id),
            };
            if let Some(order) = order.filter(|_| self.may_find(view, queue)) {
                orders.push((member, queue.conf.priority, order));
            }
        }
        let (member, next, account) = fair_order::first_of(&orders)?;
        let here = all.get_mut(member)?;
        here.account = Some(account);
        match &mut here.fair.as_mut()?.some {
            Some(some) => some.take(view.fairshare, next.1),
            None => {
                let queue = view.site.queues.get(here.position)?;
                self.order.take_fair(view.fairshare, queue.id, next.1);
            }
        }
        Some((member, next))
    }

    /// Goes on, in a queue with FAIRSHARE, with those users alone that the walk has come to and all
    /// of whose classes count as unseen.
    pub(super) fn keep_fresh(&mut self, view: &View, queue: QueueId, here: &mut QueueWalk) {
        let Some(fair) = &mut here.fair else { return };
        let fresh = here.users.iter().filter(|(_, of_user)| of_user.fresh);
        let known: BTreeSet<Bidder> = fresh.map(|(bidder, _)| *bidder).collect();
        let before = fair.some.take();
        let head = |bidder: Bidder| match &before {
            Some(some) => some.head(bidder),
            None => self.order.fair_head(queue, bidder),
        };
        let heads: Vec<(ClassHead, Bidder)> =
            known.into_iter().filter_map(|bidder| Some((head(bidder)?, bidder))).collect();
        fair.some = Some(FairOrder::new(view.now.secs()));
        for next in heads {
            self.push_head(view, queue, here, next);
        }
    }
}
