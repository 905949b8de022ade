//! The slots and memory that pending jobs keep, as hosts have them now: a job that
//! backfills may run on some.

use crate::batch::sched::view::View;
use crate::batch::state::names::{HostId, ResourceId};
use crate::batch::state::slot_reservations::{ReservedHost, SlotReservation};
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

    /// The memory of a host that no job reserves, MB, and that which preempted jobs have vacated.
    fn free_and_vacated_memory(&self, host: HostId) -> (f64, f64) {
        let load = self.hosts.contains(host).then(|| self.hosts[host].load.as_ref()).flatten();
        let Some(load) = load else { return (0.0, 0.0) };
        let memory = ResourceId::of_load_index(MEMORY_INDEX);
        let told = f64::from(load.index[MEMORY_INDEX]);
        let reserved = self.reserve.on(host).unseen(memory);
        (told - reserved, self.reserve.vacated_unseen(host, memory))
    }

    /// The memory of a host beside running jobs, MB: that which preempted jobs have vacated, too.
    pub(crate) fn memory_beside_running(&self, host: HostId) -> u64 {
        let (free, vacated) = self.free_and_vacated_memory(host);
        (free + vacated).max(0.0) as u64
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

    /// The memory that some reservations hold on a host against a pending job with the
    /// reservation `own`, MB: what they keep, and what has become free for them since. None is held
    /// by a younger one, or without a slot; nor is memory that preempted jobs have vacated.
    pub(crate) fn memory_held_against<'a>(
        &self,
        (all, host): (impl Iterator<Item = &'a SlotReservation>, HostId),
        own: Option<&SlotReservation>,
    ) -> f64 {
        let here = all.flat_map(|of| kept_against((of, host), own)).filter(|on| on.kept > 0);
        let (planned, kept) =
            here.fold((0, 0), |sum: (u64, u64), on| (sum.0 + on.memory, sum.1 + on.kept_memory));
        match planned > kept {
            true => (planned as f64).min(self.free_and_vacated_memory(host).0.max(kept as f64)),
            false => kept as f64,
        }
    }

    /// The slots that some reservations hold on all hosts.
    pub(crate) fn reserved_by(&self, of: impl Fn(&SlotReservation) -> bool) -> u64 {
        let all = self.state.slot_reservations();
        let held = |of| all.held(of, |host| self.free_slots(host)).map(|on| on.1).sum::<u64>();
        all.iter().filter(|r| of(r)).map(held).sum()
    }
}
