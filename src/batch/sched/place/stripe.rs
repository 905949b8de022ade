//! span[stripe]: tasks are dealt round the hosts, one at a time.

use crate::batch::sched::place::host_match::{Free, Placed, Tasks};
use crate::batch::sched::place::shared::SharedRoom;

/// Tasks dealt round the hosts, no more than `limit` to each.
pub(super) fn striped(
    free: Free,
    tasks: Tasks,
    limit: Option<u32>,
    room: &mut SharedRoom,
) -> Option<Placed> {
    let limit = limit.unwrap_or(u32::MAX);
    let mut out: Placed = free.iter().map(|(host, _)| (*host, 0)).collect();
    let mut open: Vec<usize> = (0..free.len()).collect();
    let mut left = tasks.max;
    while left > 0 && !open.is_empty() {
        open.retain(|at| {
            let (host, dealt) = &mut out[*at];
            let takes = *dealt < free[*at].1.min(limit) && room.further(*host, *dealt);
            if takes && left > 0 {
                room.take_one(*host, *dealt);
                *dealt += 1;
                left -= 1;
            }
            takes
        });
    }
    out.retain(|(_, dealt)| *dealt > 0);
    (tasks.max - left >= tasks.min).then_some(out)
}
