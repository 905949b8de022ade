//! How the tasks of a job are spread over hosts that have slots: by span[], within hosts that are
//! alike by same[].

use crate::batch::sched::place::shared::SharedRoom;
use crate::batch::sched::place::{HostMatch, fill, one_host, same, stripe, tile};
use crate::batch::state::names::HostId;
use crate::lang::resreq::Span;
use crate::model::reason::PendReason;

/// Hosts with their free slots, best host first.
pub(super) type Free<'a> = &'a [(HostId, u32)];
/// Hosts with the slots that a job gets, in the order of its tasks.
pub(super) type Placed = Vec<(HostId, u32)>;

/// The number of tasks: the most where there are slots for them, and no fewer than the least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tasks {
    pub min: u32,
    pub max: u32,
}

impl HostMatch<'_> {
    /// Hosts for tasks as same[], cu[] and span[] ask for them, or why there are none.
    pub(super) fn placed(
        &self,
        free: Free,
        tasks: Tasks,
        room: &SharedRoom,
    ) -> Result<Placed, PendReason> {
        let same = self.simple.map_or(&[][..], |simple| &simple.same);
        if same.is_empty() || tasks.max == 1 {
            return self.in_units(free, tasks, room);
        }
        let mut best: Option<(u32, Placed)> = None;
        let mut refused = None;
        for group in same::groups(self, same, free) {
            if !group.iter().any(|host| self.begins(host.0)) {
                continue;
            }
            let placed = match self.in_units(&group, tasks, room) {
                Ok(placed) => placed,
                Err(reason) => {
                    refused.get_or_insert(reason);
                    continue;
                }
            };
            let slots = placed.iter().map(|host| host.1).sum();
            if slots == tasks.max {
                return Ok(placed);
            }
            if best.as_ref().is_none_or(|best| slots > best.0) {
                best = Some((slots, placed));
            }
        }
        let refused = || refused.unwrap_or(PendReason::NotEnoughSlots);
        best.map(|best| best.1).ok_or_else(refused)
    }

    /// Hosts for tasks as span[] asks for them.
    pub(super) fn spread(&self, free: Free, tasks: Tasks, room: &mut SharedRoom) -> Option<Placed> {
        let span = self.simple.and_then(|simple| simple.span.as_ref());
        match span {
            Some(span) if span.one_host() => one_host::one_host(free, tasks, room),
            Some(span) if span.ptile.is_some() => {
                tile::tiled(free, tasks, |host, free| self.tile(span, host, free), room)
            }
            Some(Span { block: Some(block), .. }) => fill::in_blocks(free, tasks, *block, room),
            Some(Span { stripe: Some(limit), .. }) => stripe::striped(free, tasks, *limit, room),
            _ => fill::filled(free, tasks, room),
        }
    }

    /// Slots of a host that count towards a job's, as its span[] has it, before the next host is
    /// looked at: hosts are gathered until these suffice.
    pub fn counting(&self, host: HostId, slots: u32) -> u64 {
        let counting = match self.simple.and_then(|simple| simple.span.as_ref()) {
            Some(span) if span.ptile.is_some() => {
                let tile = self.tile(span, host, slots);
                if slots < tile { 0 } else { tile }
            }
            Some(Span { block: Some(block), .. }) => slots / block * block,
            // each host gets one before any gets a second
            Some(Span { stripe: Some(_), .. }) => slots.min(1),
            _ => slots,
        };
        u64::from(counting)
    }
}
