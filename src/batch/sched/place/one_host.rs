//! span[hosts=1]: all tasks on one host.

use crate::batch::sched::place::host_match::{Free, Placed, Tasks};
use crate::batch::sched::place::shared::SharedRoom;

/// The first host with slots for the most tasks, else the one with most of at least the least.
pub(super) fn one_host(free: Free, tasks: Tasks, room: &mut SharedRoom) -> Option<Placed> {
    let mut best: Option<(_, u32)> = None;
    for &(host, slots) in free {
        let slots = slots.min(room.slots(host)).min(tasks.max);
        if slots >= tasks.min && best.is_none_or(|best| slots > best.1) {
            best = Some((host, slots));
        }
        if slots == tasks.max {
            break;
        }
    }
    let (host, slots) = best?;
    room.take(host, slots);
    Some(vec![(host, slots)])
}
