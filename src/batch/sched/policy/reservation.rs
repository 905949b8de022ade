//! rusage[]: a host takes as many jobs as it has resources left that they reserve.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct Reservation;

impl Policy for Reservation {
    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let rusage = class.simple.and_then(|s| s.rusage.as_ref());
        let (site, names) = (class.view.site, &class.view.site.names);
        let mut room = Room::ANY;
        for term in rusage.map_or(&[][..], |rusage| rusage.terms()) {
            let Some(id) = names.reserved(term).filter(|id| !names.increasing(*id)) else {
                continue;
            };
            let free = host.snapshot.available(id, &term.res).unwrap_or(0.0);
            let amount = term.amount();
            let slots = match amount > 0.0 {
                false => u64::MAX,
                true if site.reserves_per_task(term) => (free / amount) as u64,
                true if free >= amount => u64::MAX,
                true => 0,
            };
            if slots < room.slots {
                let own = || PendReason::ReserveExternal(id.of_reason());
                let reason = id.load_index().map_or_else(own, |k| PendReason::Reserve(k as u8));
                room = Room { slots, reason };
            }
        }
        room
    }
}
