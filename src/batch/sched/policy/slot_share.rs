//! Queue-based fairshare (lsb.queues(5), SLOT_POOL): a queue of a slot pool gets no more slots than
//! its share leaves it, and no more than MAX_SLOTS_IN_POOL leaves the pool. `usage::slot_pools`
//! shares the slots out; `sched::lent_walk` gives away those that no queue uses by its share.

use crate::batch::sched::policy::{Policy, Question, Room};
use crate::batch::sched::view::{SharesHeld, View};
use crate::batch::site::Queue;
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::batch::usage::slot_pools::used_in;
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct SlotShare;

impl Policy for SlotShare {
    fn answers(&self) -> &'static [Question] {
        &[Question::Queue]
    }

    fn queue(&self, view: &View, queue: &Queue) -> Room {
        let Some((pool, at, member)) = view.site.slot_pools.of_queue(queue.id) else {
            return Room::ANY;
        };
        let of_pool = match pool.max {
            Some(max) => {
                let slots = max.saturating_sub(used_in(view.state, pool));
                Room { slots, reason: PendReason::SlotPool, rule: None }
            }
            None => Room::ANY,
        };
        let by_share = || {
            let slots = view.slot_shares.left((at, member), view.state, queue.id);
            Room { slots, reason: PendReason::SlotShare, rule: None }
        };
        match view.shares_held {
            SharesHeld::None => Room::ANY,
            SharesHeld::NotLent if pool.by_priority => of_pool,
            SharesHeld::NotLent | SharesHeld::All => of_pool.and(by_share()),
        }
    }

    fn further_of_user(&self, view: &View, queue: &Queue, _limits: &ConsumerLimits) -> u64 {
        if view.site.slot_pools.of_queue(queue.id).is_none() { u64::MAX } else { 0 }
    }
}
