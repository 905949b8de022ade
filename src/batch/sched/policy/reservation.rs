//! rusage[]: a host takes as many jobs as it has resources left that they reserve. Memory that
//! other pending jobs keep (RESOURCE_RESERVE) is not left.

use crate::batch::sched::host_snapshot::HostSnapshot;
use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::batch::state::names::{HostId, ResourceId};
use crate::lang::resreq::RusageTerm;
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct Reservation;

impl Policy for Reservation {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn counts_draft(&self) -> bool {
        true
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let rusage = class.simple.and_then(|s| s.rusage.as_ref());
        let (site, names) = (class.view.site, &class.view.site.names);
        let mut room = Room::ANY;
        for term in rusage.map_or(&[][..], |rusage| rusage.terms()) {
            let Some(id) = names.reserved(term).filter(|id| !names.increasing(*id)) else {
                continue;
            };
            let free = host.snapshot.available(id, &term.res).unwrap_or(0.0);
            let free = free - class.drafted(host.id, id);
            let free = free - kept_for_others(class, (host.id, id), host.backfills);
            let amount = term.amount();
            let slots = match amount > 0.0 {
                false => u64::MAX,
                true if site.reserves_per_task(term) => (free.max(0.0) / amount) as u64,
                true if free >= amount => u64::MAX,
                true => 0,
            };
            if slots < room.slots {
                let own = || PendReason::ReserveExternal(id.of_reason());
                let reason = id.load_index().map_or_else(own, |k| PendReason::Reserve(k as u8));
                room = Room { slots, reason, rule: None };
            }
        }
        room
    }

    fn further(&self, class: &HostMatch, host: &HostNow) -> u64 {
        let rusage = class.simple.and_then(|s| s.rusage.as_ref());
        let names = &class.view.site.names;
        let mut least = u64::MAX;
        for term in rusage.map_or(&[][..], |rusage| rusage.terms()) {
            let Some(id) = names.reserved(term).filter(|id| !names.increasing(*id)) else {
                continue;
            };
            let free = host.snapshot.available(id, &term.res).unwrap_or(0.0);
            least = least.min(further_above(free, 0.0, class.reserved_by_slot(id)));
        }
        least
    }
}

/// The amount of a resource of a host that other pending jobs keep: of memory alone.
fn kept_for_others(class: &HostMatch, (host, id): (HostId, ResourceId), backfills: bool) -> f64 {
    let memory = || class.memory_need().is_some_and(|need| need.resource == id);
    match class.view.state.slot_reservations().is_empty() || !memory() {
        true => 0.0,
        false => class.memory_kept_by_others(host, backfills),
    }
}

/// Further jobs after a first one, each of which takes `amount` of what is free, that leave more
/// than `least`: one less than there should be, as these amounts are no whole numbers.
pub(super) fn further_above(free: f64, least: f64, amount: f64) -> u64 {
    match amount > 0.0 {
        true => (((free - least) / amount).max(0.0) as u64).saturating_sub(2),
        false => u64::MAX,
    }
}

/// The resources that a job of a class reserves and of which a host has too little for so many
/// slots, with the amounts that are lacking.
pub(in crate::batch::sched) fn resource_shortages(
    class: &HostMatch,
    (id, host): (HostId, &HostSnapshot),
    slots: u64,
) -> Vec<(ResourceId, f64)> {
    let rusage = class.simple.and_then(|s| s.rusage.as_ref());
    let (site, names) = (class.view.site, &class.view.site.names);
    let shortage = |term: &RusageTerm| {
        let resource = names.reserved(term).filter(|id| !names.increasing(*id))?;
        let free = host.available(resource, &term.res).unwrap_or(0.0);
        let free = free - kept_for_others(class, (id, resource), true);
        let tasks = if site.reserves_per_task(term) { slots as f64 } else { 1.0 };
        let lacking = term.amount() * tasks - free;
        (lacking > 0.0).then_some((resource, lacking))
    };
    rusage.map_or(&[][..], |rusage| rusage.terms()).iter().filter_map(shortage).collect()
}
