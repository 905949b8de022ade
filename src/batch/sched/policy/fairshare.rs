//! FAIRSHARE of lsb.queues(5): a user without a share does not get a slot of the queue. The order
//! of those who have one is in `sched::fair_order`.

use crate::batch::sched::policy::{Policy, Question, Room};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct Fairshare;

impl Policy for Fairshare {
    fn answers(&self) -> &'static [Question] {
        &[Question::User]
    }

    fn user(&self, view: &View, queue: &Queue, limits: &ConsumerLimits) -> Room {
        let tree = queue.tree.filter(|tree| !view.site.shares.get(*tree).is_partition());
        let Some(tree) = tree else { return Room::ANY };
        match view.fairshare.has_share(tree, limits.consumer.user) {
            true => Room::ANY,
            false => Room::none(PendReason::NoShare),
        }
    }

    fn further_of_user(&self, _view: &View, _queue: &Queue, _limits: &ConsumerLimits) -> u64 {
        u64::MAX
    }
}
