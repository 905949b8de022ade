//! The slots and memory that pending jobs keep, as hosts have them now: a job that
//! backfills may run on some.

use crate::batch::sched::view::View;
use crate::batch::state::names::{HostId, ResourceId};
use crate::batch::state::slot_reservations::{ReservedHost, SlotReservation};
use crate::batch::usage::reserve::ledger::left;
use crate::proto::lim::MEMORY_INDEX;

/// The part of a reservation on a host, unless that of the other job is older.
fn kept_against<'a>(
    (of, host): (&'a SlotReservation, HostId),
    own: Option<&SlotReservation>,
) -> impl Iterator<Item = &'a ReservedHost> {
    let older = own.is_some_and(|own| own.place() < of.place());
    of.hosts.iter().filter(move |on| !older && on.host == host)
}

impl View<'_> {
    /// Slots of a host that no job runs on.
    pub(crate) fn free_slots(&self, host: HostId) -> u64 {
        match self.hosts.contains(host) {
            true => {
                self.host_max(host).map_or(u64::MAX, |max| max.saturating_sub(self.host_used(host)))
            }
            false => 0,
        }
    }

    /// The memory of a host that no job reserves, MB.
    pub(crate) fn free_memory(&self, host: HostId) -> u64 {
        let load = self.hosts.contains(host).then(|| self.hosts[host].load.as_ref()).flatten();
        let memory = ResourceId::of_load_index(MEMORY_INDEX);
        let told = load.map(|load| f64::from(load.index[MEMORY_INDEX]));
        let free = told.map(|told| left(self.reserve.on(host), memory, told, false));
        free.unwrap_or(0.0).max(0.0) as u64
    }

    /// The slots that reservations hold on a host.
    pub(crate) fn reserved_slots(&self, host: HostId) -> u64 {
        match self.state.slot_reservations().is_empty() {
            true => 0,
            false => self.state.slot_reservations().kept_on(host).min(self.free_slots(host)),
        }
    }

    /// The slots that a reservation holds on a host against a pending job with this reservation:
    /// none, where that is older.
    pub(crate) fn held_against(
        &self,
        (of, host): (&SlotReservation, HostId),
        own: Option<&SlotReservation>,
    ) -> u64 {
        kept_against((of, host), own).map(|on| u64::from(on.kept)).sum()
    }

    /// The memory that a reservation holds on a host against a pending job with this reservation,
    /// MB: none, where that is older, or while the other has no slot there.
    pub(crate) fn memory_held_against(
        &self,
        (of, host): (&SlotReservation, HostId),
        own: Option<&SlotReservation>,
    ) -> u64 {
        kept_against((of, host), own).filter(|on| on.kept > 0).map(|on| on.memory).sum()
    }

    /// The slots that some reservations hold on all hosts.
    pub(crate) fn reserved_by(&self, of: impl Fn(&SlotReservation) -> bool) -> u64 {
        let all = self.state.slot_reservations();
        let held = |of| all.held(of, |host| self.free_slots(host)).map(|on| on.1).sum::<u64>();
        all.iter().filter(|r| of(r)).map(held).sum()
    }
}
