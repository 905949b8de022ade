//! Slots that no queue of a slot pool uses by its share: where the pool has USE_PRIORITY_IN_POOL,
//! a walk gives them at its end to the ready jobs of all its queues, by job priority and then first
//! come, first served, whatever the shares.

use crate::batch::sched::Sched;
use crate::batch::sched::decision::{Decision, Fuel};
use crate::batch::sched::dispatch_key::ClassHead;
use crate::batch::sched::view::{SharesHeld, View};
use crate::batch::sched::walk_state::Walk;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

impl Sched {
    /// The next job that starts in slots that its queue has no share of.
    pub(super) fn next_lent(
        &mut self,
        view: &View,
        walk: &mut Walk,
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        if !view.site.slot_pools.lend() {
            return None;
        }
        let mut heads = match walk.lent.take() {
            Some(heads) => heads,
            None => self.heads_to_lend_to(view, fuel),
        };
        let view = &View { shares_held: SharesHeld::NotLent, ..*view };
        let mut decision = None;
        while decision.is_none()
            && !fuel.is_empty()
            && let Some(Reverse((place, class))) = heads.pop()
        {
            fuel.spend(1);
            match self.classes.head(class) {
                Some((now, _)) if now == place => {
                    decision = self.hold_lent(view, (place, class), walk, fuel);
                    // a class of which a job has started may have another
                    if matches!(decision, Some(Decision::Start(_))) {
                        heads.push(Reverse((place, class)));
                    }
                }
                // its first job is another one now
                Some((now, _)) => heads.push(Reverse((now, class))),
                None => {}
            }
        }
        walk.lent = Some(heads);
        decision
    }

    /// The classes to which their share leaves too few slots.
    fn heads_to_lend_to(&self, view: &View, fuel: &mut Fuel) -> BinaryHeap<Reverse<ClassHead>> {
        let mut heads = BinaryHeap::new();
        let lending = view.site.slot_pools.iter().filter(|(_, pool)| pool.by_priority);
        for member in lending.flat_map(|(_, pool)| &pool.members) {
            let Some(queue) = view.site.queue(member.queue) else { continue };
            let room = self.policies.queue(view, queue).slots;
            for class in self.order.by_user(member.queue).flat_map(|(_, classes)| classes) {
                fuel.spend(1);
                let short = u64::from(self.classes.get(class).kind.min) > room;
                heads.extend(
                    self.classes.head(class).filter(|_| short).map(|of| Reverse((of.0, class))),
                );
            }
        }
        heads
    }

    fn hold_lent(
        &mut self,
        view: &View,
        head: ClassHead,
        walk: &mut Walk,
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        let class = self.classes.get(head.1);
        let (id, bidder, unseen) = (class.kind.queue, class.bidder, class.unseen);
        let queue = view.site.queue(id)?;
        let changed = self.changed_for(view, queue, (&walk.changed, &walk.touched));
        if !self.may_find(view, queue) || (!unseen && changed.is_empty()) {
            return None;
        }
        let only = (!unseen).then_some(changed);
        self.hold_next(view, queue, (head, bidder), &mut walk.goal_looks, only, fuel)
    }
}
