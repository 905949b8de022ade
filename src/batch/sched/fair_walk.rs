//! The next user of a queue in a walk, where the queue has FAIRSHARE: by the share tree
//! (`fair_order`), of all queues of the group. A start lowers the priority of an account at once,
//! so that the user after it is found by what all of them have then.

use crate::batch::sched::Sched;
use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::sched::fair_order::QueueSet;
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

    /// Begins with a queue of a group, where it has FAIRSHARE: with all its users, or those that
    /// the walk adds.
    pub(super) fn begin_fair(
        &mut self,
        view: &View,
        (group, queue): (usize, &Queue),
        every: bool,
    ) -> Option<FairWalk> {
        let tree = queue.tree.filter(|_| queue.aps.is_none())?;
        self.rerank(view);
        let (now, priority) = (view.now.secs(), queue.conf.priority);
        if every {
            let classes = &self.classes;
            let leaves = |bidder: Bidder| {
                let group = classes.share_group(bidder.group);
                view.fairshare.leaves(tree, bidder.user, group).cloned()
            };
            let (as_of, of_queue) = ((view.fairshare, now), (queue.id, priority));
            self.order.begin_fair(as_of, (group, tree), of_queue, leaves);
        } else {
            self.order.begin_fair_partly(now, (group, tree), queue.id);
        }
        Some(FairWalk { group, tree, priority })
    }

    /// Gives accounts whose use has changed their new place.
    pub(super) fn rerank(&mut self, view: &View) {
        for account in std::mem::take(&mut self.accounts) {
            self.order.rerank(view.fairshare, account);
            self.rank_account(view, account);
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
        let Some(fair) = &here.fair else {
            return here.heads.put((head, bidder));
        };
        let Some(leaves) = self.leaves(view, fair.tree, bidder) else { return };
        let of = ((queue, bidder), fair.priority);
        self.order.put_fair(view.fairshare, fair.group, of, head, &leaves);
    }

    /// Takes the user out whose turn it is in the queues of a group that share by one tree, also
    /// one to whom the walk has not come before, with the position of the queue in the group.
    pub(super) fn next_by_shares(
        &mut self,
        view: &View,
        all: &mut [QueueWalk],
    ) -> Option<(usize, (ClassHead, Bidder))> {
        self.rerank(view);
        let group = all.first()?.fair.as_ref()?.group;
        // while hosts are open, something may be found for each queue
        let only = self.hosts.none_open().then(|| {
            let mut only = QueueSet::default();
            let queues = all.iter().filter_map(|here| view.site.queues.get(here.position));
            queues.filter(|queue| self.may_find(view, queue)).for_each(|queue| {
                only.insert(queue.id);
            });
            only
        });
        let next = self.order.next_by_shares(view.fairshare, group, only.as_ref())?;
        let position = view.site.queue_position(next.queue)?;
        let member = all.binary_search_by_key(&position, |here| here.position).ok()?;
        all[member].account = Some(next.account);
        Some((member, (next.head, next.bidder)))
    }

    /// Goes on, in a queue with FAIRSHARE, with those users alone that the walk has come to and all
    /// of whose classes count as unseen.
    pub(super) fn keep_fresh(&mut self, view: &View, queue: QueueId, here: &mut QueueWalk) {
        let Some(fair) = &here.fair else { return };
        let fresh = here.users.iter().filter(|(_, of_user)| of_user.fresh);
        let known: BTreeSet<Bidder> = fresh.map(|(bidder, _)| *bidder).collect();
        let heads = self.order.go_on_partly(fair.group, queue, known.into_iter());
        for next in heads {
            self.push_head(view, queue, here, next);
        }
    }
}
