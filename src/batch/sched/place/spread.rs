//! How the tasks of a job are spread over hosts that have slots, by span[].

use crate::batch::sched::place::host_match::{Free, HostMatch, Placed, Tasks};
use crate::batch::sched::place::shared::SharedRoom;
use crate::batch::sched::place::{fill, one_host, stripe, tile};
use crate::batch::state::names::HostId;
use crate::lang::resreq::Span;

impl HostMatch<'_> {
    /// Hosts for tasks as span[] asks for them, however many.
    pub(super) fn spread_over(
        &self,
        free: Free,
        tasks: Tasks,
        room: &mut SharedRoom,
    ) -> Option<Placed> {
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

    /// The slots of a host that a job may use, as its span[] has it: those for the rest of a job
    /// in tiles, too.
    pub fn counting_at_most(&self, host: HostId, slots: u32) -> u64 {
        let counting = match self.simple.and_then(|simple| simple.span.as_ref()) {
            Some(span) if span.ptile.is_some() => slots.min(self.tile(span, host, slots)),
            Some(Span { stripe: Some(limit), .. }) => slots.min(limit.unwrap_or(u32::MAX)),
            Some(Span { block: Some(block), .. }) => slots / block * block,
            _ => slots,
        };
        u64::from(counting)
    }
}
