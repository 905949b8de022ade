//! A queue that is inactive (badmin qinact), or closed by its DISPATCH_WINDOW or RUN_WINDOW, starts
//! no job.

use crate::batch::sched::policy::{Policy, Question, Room};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;

#[derive(Debug)]
pub(super) struct Windows;

impl Policy for Windows {
    fn answers(&self) -> &'static [Question] {
        &[Question::Queue]
    }

    fn queue(&self, view: &View, queue: &Queue) -> Room {
        view.queue_closed(queue.id).map_or(Room::ANY, Room::none)
    }
}
