//! A queue that is inactive (badmin qinact), or closed by its DISPATCH_WINDOW or RUN_WINDOW, starts
//! no job.

use crate::batch::sched::policy::{Policy, Question, Room};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::usage::limits_ledger::ConsumerLimits;

#[derive(Debug)]
pub(super) struct Windows;

impl Policy for Windows {
    fn answers(&self) -> &'static [Question] {
        &[Question::Queue]
    }

    fn queue(&self, view: &View, queue: &Queue) -> Room {
        view.queue_closed(queue.id).map_or(Room::ANY, Room::none)
    }

    fn further_of_user(&self, _view: &View, _queue: &Queue, _limits: &ConsumerLimits) -> u64 {
        u64::MAX
    }
}
