//! Advance reservations (brsvadd(1)): the slots that an active one keeps are for its own jobs,
//! which run nowhere else. A job whose run limit reaches beyond the begin of a coming one does not
//! get the slots of that one either, unless its queue is one of the reservation's (brsvadd -q).
//!
//! Slots that other jobs hold are taken to be held until then: whether they end before is not
//! asked.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct AdvanceReservation;

impl Policy for AdvanceReservation {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let view = &class.view;
        let (all, own) = (view.reservations, &*class.kind.reservation);
        if !own.is_empty() {
            let Some(left) = all.left(own, host.id) else {
                return Room::none(PendReason::NotReservedHost);
            };
            let reserved = room(left, PendReason::NotEnoughReserved);
            return match view.host_max(host.id) {
                None => reserved,
                Some(max) => {
                    let free = max.saturating_sub(host.used);
                    let slots = free.saturating_sub(all.kept_now(host.id, own));
                    reserved.and(room(slots, PendReason::NotEnoughReserved))
                }
            };
        }
        if !all.on_host(host.id) {
            return Room::ANY;
        }
        let max = view.host_max(host.id).unwrap_or_else(|| view.hosts[host.id].ncpus().into());
        let free = max.saturating_sub(host.used);
        let kept = all.kept_now(host.id, "");
        let now = room(free.saturating_sub(kept), PendReason::ReservedSlots);
        let Some(limit) = class.kind.run_limit else { return now };
        let until = view.now.secs().saturating_add(i64::try_from(limit).unwrap_or(i64::MAX));
        let coming = all.kept_until(host.id, until, &class.queue.conf.name);
        if coming == 0 {
            return now;
        }
        let slots = free.saturating_sub(kept.saturating_add(coming));
        now.and(room(slots, PendReason::WholeDuration))
    }

    fn further(&self, class: &HostMatch, host: &HostNow) -> u64 {
        let concerned =
            !class.kind.reservation.is_empty() || class.view.reservations.on_host(host.id);
        if concerned { 0 } else { u64::MAX }
    }
}

/// The room of this many slots, with the reason where they are too few.
fn room(slots: u64, reason: PendReason) -> Room {
    Room { slots, reason, rule: None }
}
