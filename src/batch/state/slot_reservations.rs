//! Slots that pending jobs keep until they have enough to start (SLOT_RESERVE, RESOURCE_RESERVE of
//! lsb.queues(5)). The scheduler decides about them; records LSF_RESERVE tell of each change, so
//! that a restart goes on with the same reservations.
//!
//! Invariants: only pending elements have a reservation; what is kept on a host is no more than
//! what is planned there, and memory is kept beside a kept slot alone; `by_host` names the
//! reservations with slots on a host, in their order.

use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::collections::BTreeMap;

/// Jobs that have reservations at a time; further ones wait without.
pub const MOST_RESERVATIONS: usize = 256;

/// Slots of a host in a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedHost {
    pub host: HostId,
    /// The slots that the job is to get there.
    pub planned: u32,
    /// The slots among these that no other job may have from now on.
    pub kept: u32,
    /// The memory that the job is to get there, MB; 0: it waits for slots alone.
    pub memory: u64,
    /// The memory among it that no other job may have from now on, MB; none without a kept slot.
    pub kept_memory: u64,
}

/// The slots that a pending job keeps; without hosts: it keeps none before `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotReservation {
    pub at: JobRef,
    pub queue: QueueId,
    pub user: UserId,
    /// When it began, seconds since the epoch.
    pub since: i64,
    /// When it is given up, or where there are no hosts, when another may begin; likewise.
    pub until: i64,
    /// When the job starts at the latest, by the run limits of started jobs, likewise; 0: nobody
    /// knows.
    pub start: i64,
    /// When it ends then, by its own run limit, likewise; 0: nobody knows.
    pub end: i64,
    pub hosts: Vec<ReservedHost>,
}

impl SlotReservation {
    /// The place in the order of reservations: older ones come first, whatever their queues.
    pub fn place(&self) -> (i64, JobRef) {
        (self.since, self.at)
    }

    /// Does its job start before that of another one?
    fn is_before(&self, other: &SlotReservation) -> bool {
        let known = |start: i64| if start > 0 { start } else { i64::MAX };
        (known(self.start), self.at) < (known(other.start), other.at)
    }

    /// All slots that it keeps.
    pub fn kept(&self) -> u64 {
        self.hosts.iter().map(|on| u64::from(on.kept)).sum()
    }
}

/// All reservations of slots.
#[derive(Debug, Default)]
pub struct SlotReservations {
    all: BTreeMap<JobRef, SlotReservation>,
    by_host: IdMap<HostId, Vec<JobRef>>,
    /// Hosts of which something was given back since this was taken last, with the users.
    released: Vec<(HostId, UserId)>,
}

impl SlotReservations {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn get(&self, at: JobRef) -> Option<&SlotReservation> {
        self.all.get(&at)
    }

    pub fn iter(&self) -> impl Iterator<Item = &SlotReservation> {
        self.all.values()
    }

    /// The elements of a job that have reservations.
    pub(super) fn of_job(&self, job: u32) -> Vec<JobRef> {
        self.all.range(JobRef::all_of(job)).map(|(at, _)| *at).collect()
    }

    /// May one more job have a reservation?
    pub fn has_room(&self) -> bool {
        self.all.len() < MOST_RESERVATIONS
    }

    /// The reservations on a host.
    pub fn on_host(&self, host: HostId) -> impl Iterator<Item = (&SlotReservation, ReservedHost)> {
        let here = self.by_host.get(&host).into_iter().flatten();
        here.filter_map(move |at| {
            let reservation = self.all.get(at)?;
            let on = reservation.hosts.iter().find(|on| on.host == host)?;
            Some((reservation, *on))
        })
    }

    /// The slots that all reservations keep on a host. Jobs may run on some of them for a while.
    pub fn kept_on(&self, host: HostId) -> u64 {
        self.on_host(host).map(|(_, on)| u64::from(on.kept)).sum()
    }

    /// The slots that a reservation holds on each of its hosts now, where so many are free: on a
    /// host with too few, the job that starts first comes first.
    pub fn held<'a>(
        &'a self,
        of: &'a SlotReservation,
        free: impl Fn(HostId) -> u64 + 'a,
    ) -> impl Iterator<Item = (HostId, u64)> + 'a {
        of.hosts.iter().map(move |own| {
            let before = self.on_host(own.host).filter(|(other, _)| other.is_before(of));
            let taken: u64 = before.map(|(_, on)| u64::from(on.kept)).sum();
            (own.host, u64::from(own.kept).min(free(own.host).saturating_sub(taken)))
        })
    }

    /// The memory that a reservation holds on each of its hosts now, MB, where so much is free: the
    /// job that starts first comes first there.
    pub fn held_memory<'a>(
        &'a self,
        of: &'a SlotReservation,
        free: impl Fn(HostId) -> u64 + 'a,
    ) -> impl Iterator<Item = (HostId, u64)> + 'a {
        of.hosts.iter().map(move |own| {
            let before = self.on_host(own.host).filter(|(other, _)| other.is_before(of));
            let taken: u64 = before.map(|(_, on)| on.kept_memory).sum();
            (own.host, own.kept_memory.min(free(own.host).saturating_sub(taken)))
        })
    }

    /// When the next reservation is given up, or may begin, seconds since the epoch.
    pub fn next(&self) -> Option<i64> {
        self.all.values().map(|of| of.until).min()
    }

    /// Hosts of which something was given back, with the users, since this was asked last.
    pub(super) fn take_released(&mut self) -> Vec<(HostId, UserId)> {
        std::mem::take(&mut self.released)
    }

    pub(super) fn remove(&mut self, at: JobRef) -> Option<SlotReservation> {
        let gone = self.take(at)?;
        self.released.extend(gone.hosts.iter().map(|on| (on.host, gone.user)));
        Some(gone)
    }

    fn take(&mut self, at: JobRef) -> Option<SlotReservation> {
        let gone = self.all.remove(&at)?;
        for on in &gone.hosts {
            if let Some(here) = self.by_host.get_mut(&on.host) {
                here.retain(|other| *other != at);
                if here.is_empty() {
                    self.by_host.remove(&on.host);
                }
            }
        }
        Some(gone)
    }

    pub(super) fn put(&mut self, new: SlotReservation) {
        let before = self.take(new.at);
        // what is kept as before is not given back, unless it may be backfilled for longer
        let longer = |of: &SlotReservation| new.start > of.start;
        let stays =
            |on: &ReservedHost| new.hosts.contains(on) && !before.as_ref().is_some_and(longer);
        let changed = before.iter().flat_map(|of| &of.hosts).filter(|on| !stays(on));
        self.released.extend(changed.map(|on| (on.host, new.user)));
        for on in &new.hosts {
            self.by_host.entry(on.host).or_default().push(new.at);
        }
        self.all.insert(new.at, new);
    }

    /// Is what is known by host what the reservations say? For tests.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let mut by_host: IdMap<HostId, Vec<JobRef>> = IdMap::default();
        for of in self.all.values() {
            for on in &of.hosts {
                let without_slot = on.kept == 0 && on.kept_memory > 0;
                if on.kept > on.planned || on.kept_memory > on.memory || without_slot {
                    return Err(format!("job {} keeps {on:?}", of.at));
                }
                by_host.entry(on.host).or_default().push(of.at);
            }
        }
        let mut known = self.by_host.clone();
        known.values_mut().for_each(|here| here.sort_unstable());
        match known == by_host {
            true => Ok(()),
            false => Err(format!("reservations by host: {known:?}, not {by_host:?}")),
        }
    }
}
