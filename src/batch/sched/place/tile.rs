//! span[ptile=]: so many tasks on each host, fewer only on the last.

use crate::batch::sched::place::host_match::{Free, HostMatch, Placed, Tasks};
use crate::batch::sched::place::shared::SharedRoom;
use crate::batch::state::names::HostId;
use crate::lang::resreq::{Span, Tile};

impl HostMatch<'_> {
    /// The tasks that a host with so many free slots gets by ptile: the number that the span gives
    /// for its name, model or type, else the general one; `'!'` stands for MXJ, and a host without
    /// MXJ is filled.
    pub(in crate::batch::sched) fn tile(&self, span: &Span, host: HostId, free: u32) -> u32 {
        let exception = || {
            let snapshot = self.view.snapshot(host);
            let is = |name: &str| {
                name == snapshot.def.name
                    || name == snapshot.model()
                    || name == snapshot.host_type()
            };
            span.ptile_by.iter().find(|(name, _)| is(name)).map(|(_, tasks)| *tasks)
        };
        let own = if span.ptile_by.is_empty() { None } else { exception() };
        let tasks = own.or_else(|| match span.ptile {
            Some(Tile::Tasks(tasks)) => Some(tasks),
            _ => self.view.host_max(host).map(|max| max.min(u64::from(u32::MAX)) as u32),
        });
        tasks.unwrap_or(free).max(1)
    }
}

/// Whole tiles on as many hosts as the job needs, and what is then missing on one more.
pub(super) fn tiled(
    free: Free,
    tasks: Tasks,
    tile: impl Fn(HostId, u32) -> u32,
    room: &mut SharedRoom,
) -> Option<Placed> {
    let mut left = tasks.max;
    let mut out = Placed::new();
    let mut rest: Option<(HostId, u32)> = None;
    for &(host, slots) in free {
        if left == 0 {
            break;
        }
        let own = tile(host, slots);
        let slots = slots.min(room.slots(host));
        let take = own.min(left);
        if slots >= take {
            room.take(host, take);
            out.push((host, take));
            left -= take;
        } else if slots > 0 && rest.is_none_or(|rest| slots > rest.1) {
            rest = Some((host, slots));
        }
    }
    if let Some((host, slots)) = rest {
        let take = slots.min(left).min(room.slots(host));
        if take > 0 {
            room.take(host, take);
            out.push((host, take));
            left -= take;
        }
    }
    (tasks.max - left >= tasks.min).then_some(out)
}
