//! The next user of a queue in a walk: by the first class, or, where the queue has FAIRSHARE, by
//! the share tree (`fair_order`). A start lowers the priority of an account at once, so that the
//! user after it is found by what all of them have then.

use crate::batch::sched::Sched;
use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::sched::fair_order::FairOrder;
use crate::batch::sched::view::View;
use crate::batch::sched::walk_state::{FairWalk, QueueWalk};
use crate::batch::site::Queue;
use crate::batch::site::shares::TreeId;
use crate::batch::state::names::QueueId;
use crate::batch::usage::fairshare::Leaves;
use std::cmp::Reverse;
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
        self.rerank(view, None);
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

    /// Gives accounts whose use has changed their new place.
    pub(super) fn rerank(&mut self, view: &View, here: Option<&mut QueueWalk>) {
        if self.accounts.is_empty() {
            return;
        }
        let mut some = here.and_then(|here| here.fair.as_mut()?.some.as_mut());
        for account in std::mem::take(&mut self.accounts) {
            self.order.rerank(view.fairshare, account);
            self.rank_account(view, account);
            if let Some(some) = &mut some {
                some.rerank(view.fairshare, account);
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
            return here.heads.push(Reverse((head, bidder)));
        };
        let Some(leaves) = self.leaves(view, fair.tree, bidder) else { return };
        match &mut fair.some {
            Some(some) => some.put(view.fairshare, bidder, head, &leaves),
            None => self.order.put_fair(view.fairshare, queue, bidder, head, &leaves),
        }
    }

    /// Takes the user out whose turn it is; where the queue has FAIRSHARE, one to whom the walk has
    /// not come before, too.
    pub(super) fn pop_head(
        &mut self,
        view: &View,
        queue: QueueId,
        here: &mut QueueWalk,
    ) -> Option<(ClassHead, Bidder)> {
        if here.fair.is_none() {
            return here.heads.pop().map(|Reverse(next)| next);
        }
        self.rerank(view, Some(here));
        let (head, bidder, account) = match &mut here.fair.as_mut()?.some {
            None => self.order.take_fair(view.fairshare, queue)?,
            Some(some) => {
                let next = some.first()?;
                some.take(view.fairshare, next.1);
                next
            }
        };
        here.account = Some(account);
        Some((head, bidder))
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
