//! Without span[]: hosts are filled one after the other. Also span[block=]: whole blocks of tasks.

use crate::batch::sched::place::host_match::{Free, Placed, Tasks};
use crate::batch::sched::place::shared::SharedRoom;

/// Hosts filled one after the other.
pub(super) fn filled(free: Free, tasks: Tasks, room: &mut SharedRoom) -> Option<Placed> {
    let mut left = tasks.max;
    let mut out = Placed::new();
    for &(host, slots) in free {
        let take = slots.min(left).min(room.slots(host));
        if take > 0 {
            room.take(host, take);
            out.push((host, take));
            left -= take;
        }
        if left == 0 {
            break;
        }
    }
    (tasks.max - left >= tasks.min).then_some(out)
}

/// Takes as many whole blocks on each host as it has slots for, each host once; the last block may
/// have fewer tasks where the job has no more. The most tasks are tried first, then the least.
pub(super) fn in_blocks(
    free: Free,
    tasks: Tasks,
    block: u32,
    room: &mut SharedRoom,
) -> Option<Placed> {
    let block = block.max(1);
    let mut tried = room.clone();
    let (whole, got) = blocks_for(free, tasks.max, block, &mut tried);
    if got >= tasks.min {
        *room = tried;
        return Some(whole);
    }
    let (least, got) = blocks_for(free, tasks.min, block, room);
    (got >= tasks.min).then_some(least)
}

fn blocks_for(free: Free, wanted: u32, block: u32, room: &mut SharedRoom) -> (Placed, u32) {
    let mut left = wanted;
    let mut out = Placed::new();
    for &(host, slots) in free {
        let slots = slots.min(room.slots(host));
        let whole = (slots / block * block).min(left / block * block);
        let rest = left - whole;
        let take = if rest < block && slots - whole >= rest { left } else { whole };
        if take > 0 {
            room.take(host, take);
            out.push((host, take));
            left -= take;
        }
        if left == 0 {
            break;
        }
    }
    if left > 0 && left < block {
        left -= last_block(free, &mut out, left, room);
    }
    (out, wanted - left)
}

/// The last block, of fewer tasks, goes to the first host that has slots left for it.
fn last_block(free: Free, out: &mut Placed, tasks: u32, room: &mut SharedRoom) -> u32 {
    for &(host, slots) in free {
        let place = out.iter().position(|placed| placed.0 == host);
        let has = place.map_or(0, |place| out[place].1);
        // of resources that hosts share only a new host is counted
        let fits = match place {
            Some(_) => room.is_unlimited(),
            None => room.slots(host) >= tasks,
        };
        if slots - has < tasks || !fits {
            continue;
        }
        room.take(host, tasks);
        match place {
            Some(place) => out[place].1 += tasks,
            None => out.push((host, tasks)),
        }
        return tasks;
    }
    0
}
