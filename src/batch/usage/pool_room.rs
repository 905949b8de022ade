//! The amounts that a guaranteed pool leaves a job, and those that a host has for it: slots, whole
//! hosts, packages of slots and memory, or a resource that hosts share.

use crate::batch::site::guarantees::Package;
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::state::names::QueueId;

/// A job as pools look at it.
#[derive(Clone, Copy, Debug)]
pub struct PoolJob {
    pub class: Option<ServiceClassId>,
    pub queue: QueueId,
    /// How long it may run, seconds.
    pub seconds: Option<u64>,
}

/// The amounts that a pool leaves a job: slots, packages, parts of a resource, or hosts of whatever
/// number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLeft {
    /// Slots, packages, parts of the resource, or idle hosts.
    pub(super) free: u64,
    /// Hosts that are idle or lent, or packages together with those that are lent; more than this
    /// the job is not given together.
    pub(super) all: u64,
}

/// The memory or the resource of a pool that a job takes on a host, in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolNeed {
    /// Besides that for its slots.
    pub fixed: u64,
    pub per_slot: u64,
}

impl PoolNeed {
    fn of(self, slots: u64) -> u64 {
        self.fixed.saturating_add(self.per_slot.saturating_mul(slots))
    }

    /// The slots for which so much suffices.
    fn slots(self, amount: u64) -> u64 {
        match amount.checked_sub(self.fixed) {
            None => 0,
            Some(rest) => rest.checked_div(self.per_slot).unwrap_or(u64::MAX),
        }
    }
}

/// Slots, and memory in parts of a MB.
pub type SlotsAndMemory = (u64, u64);

/// The slots and memory of a host of a pool of packages that are free, and no part of packages that
/// jobs of classes occupy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackageRoom {
    pub(super) size: Package,
    pub(super) slots: u64,
    /// Parts of a MB.
    pub(super) mem: u64,
    /// The slots and the memory that the pool has lent to jobs there.
    pub(super) lent: SlotsAndMemory,
    /// Some of what is free there is of packages that jobs of classes occupy.
    pub(super) occupied: bool,
    /// The job occupies whole packages.
    pub(super) rounds: bool,
    /// Slots besides these that preemption has vacated: they take nothing of the pool.
    pub(super) vacated: u64,
    pub(super) need: PoolNeed,
}

impl PackageRoom {
    /// The host once the pool has back what it has lent there.
    fn given_back(self) -> PackageRoom {
        let slots = self.slots.saturating_add(self.lent.0);
        PackageRoom { slots, mem: self.mem.saturating_add(self.lent.1), ..self }
    }

    /// The slots of a job that leave all packages of the host but so many.
    fn slots_for(&self, packages: u64) -> u64 {
        let keep = self.whole().saturating_sub(packages);
        if keep == 0 && !self.occupied && !self.rounds {
            return u64::MAX;
        }
        let beside = |all: u64, one: u64| match self.rounds {
            true => self.whole().min(packages).saturating_mul(one),
            false => all.saturating_sub(keep.saturating_mul(one)),
        };
        let slots = match self.size.slots {
            0 => u64::MAX,
            one => beside(self.slots, one).saturating_add(self.vacated),
        };
        let by_mem = match self.size.mem {
            0 => u64::MAX,
            one => self.need.slots(beside(self.mem, one)),
        };
        slots.min(by_mem)
    }

    /// The packages that are free.
    pub(super) fn whole(&self) -> u64 {
        self.size.whole(self.slots, self.mem)
    }

    /// The packages that are free, or lent.
    pub(super) fn whole_or_lent(self) -> u64 {
        self.given_back().whole()
    }

    /// The packages that are not there any more when a job has so many slots.
    fn taken(&self, slots: u64) -> u64 {
        let (mut of_pool, mut mem) = (slots.saturating_sub(self.vacated), self.need.of(slots));
        if self.rounds {
            (of_pool, mem) = self.size.rounded(of_pool, mem);
        }
        let left = (self.slots.saturating_sub(of_pool), self.mem.saturating_sub(mem));
        self.whole().saturating_sub(self.size.whole(left.0, left.1))
    }
}

/// The room of a host for a job, in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolRoom {
    Slots {
        /// Slots that take nothing of the pool.
        beside: u64,
        /// Slots of the host that the pool may give, as long as it has some.
        slots: u64,
    },
    Packages(PackageRoom),
    /// A host of a job that takes so much of the resource of a pool.
    Resource(PoolNeed),
    /// A host that counts as one, whatever number of slots.
    Idle,
    /// A host that borrowers use: it counts as one, and is not idle.
    Lent,
    /// A host that takes nothing of the pool.
    Open,
    /// A host that is not for this job.
    Shut,
}

impl PoolRoom {
    /// The room of a host where preemption has vacated so many slots more: the pool counts them as
    /// used.
    pub fn with_vacated(self, vacated: u64) -> PoolRoom {
        match self {
            PoolRoom::Slots { beside, slots } => {
                PoolRoom::Slots { beside: beside.saturating_add(vacated), slots }
            }
            PoolRoom::Packages(room) => PoolRoom::Packages(PackageRoom { vacated, ..room }),
            other => other,
        }
    }

    /// The room for a job that takes so much of the memory, or of the resource, of the pool.
    pub fn with_need(self, need: PoolNeed) -> PoolRoom {
        match self {
            PoolRoom::Packages(room) => PoolRoom::Packages(PackageRoom { need, ..room }),
            PoolRoom::Resource(_) => PoolRoom::Resource(need),
            other => other,
        }
    }
}

impl PoolLeft {
    /// The slots of a host for this job.
    pub fn slots(self, of: PoolRoom) -> u64 {
        let whole = |hosts: u64| if hosts > 0 { u64::MAX } else { 0 };
        match of {
            PoolRoom::Slots { beside, slots } => beside.saturating_add(slots.min(self.free)),
            PoolRoom::Packages(room) => {
                room.slots_for(self.free).min(room.given_back().slots_for(self.all))
            }
            PoolRoom::Resource(need) => need.slots(self.free),
            PoolRoom::Idle => whole(self.free.min(self.all)),
            PoolRoom::Lent => whole(self.all),
            PoolRoom::Open => u64::MAX,
            PoolRoom::Shut => 0,
        }
    }

    /// The job gets so many slots of a host.
    pub fn take(&mut self, of: PoolRoom, slots: u64) {
        let (free, all) = match of {
            PoolRoom::Slots { beside, .. } => (slots.saturating_sub(beside), 0),
            PoolRoom::Packages(room) => (room.taken(slots), room.given_back().taken(slots)),
            PoolRoom::Resource(need) => (need.of(slots), 0),
            PoolRoom::Idle => (1, 1),
            PoolRoom::Lent => (0, 1),
            PoolRoom::Open | PoolRoom::Shut => (0, 0),
        };
        if slots > 0 {
            self.free = self.free.saturating_sub(free);
            self.all = self.all.saturating_sub(all);
        }
    }

    /// Is it enough for a job of so many slots, whatever hosts it is given?
    pub(super) fn suffices(self, slots: u64) -> bool {
        self.free >= slots && self.all >= slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(slots: u64, mem: u64, need: (u64, u64)) -> PackageRoom {
        let need = PoolNeed { fixed: need.0, per_slot: need.1 };
        let size = Package { slots: 2, mem: 10 };
        let (lent, vacated, occupied, rounds) = ((0, 0), 0, false, false);
        PackageRoom { size, slots, mem, lent, occupied, rounds, vacated, need }
    }

    fn left(free: u64) -> PoolLeft {
        PoolLeft { free, all: 1000 }
    }

    #[test]
    fn package_is_kept_by_its_slots_and_by_its_memory() {
        // 7 slots and 38 of memory are three packages, one slot and eight of memory beside them
        for (free, need, slots) in [
            (3, (0, 0), u64::MAX),
            (2, (0, 0), 5),
            (1, (0, 0), 3),
            (0, (0, 0), 1),
            (0, (8, 0), 1),
            (0, (9, 0), 0),
            (2, (0, 7), 4),
            (2, (14, 7), 2),
        ] {
            let of = PoolRoom::Packages(room(7, 38, need));
            assert_eq!(left(free).slots(of), slots, "{free} {need:?}");
        }
    }

    #[test]
    fn job_takes_the_packages_that_are_no_longer_whole() {
        for (need, slots, taken) in [
            ((0, 0), 1, 0),
            ((0, 0), 2, 1),
            ((0, 0), 3, 1),
            ((8, 0), 1, 0),
            ((9, 0), 1, 1),
            ((0, 19), 1, 2),
            ((0, 0), 7, 3),
        ] {
            let mut of = left(5);
            of.take(PoolRoom::Packages(room(7, 38, need)), slots);
            let all = 1000 - taken;
            assert_eq!(of, PoolLeft { free: 5 - taken, all }, "{need:?} {slots}");
        }
    }

    #[test]
    fn job_of_a_class_takes_whole_packages() {
        let of = |need| PoolRoom::Packages(PackageRoom { rounds: true, ..room(7, 38, need) });
        for (need, slots, taken) in [((0, 0), 1, 1), ((0, 0), 3, 2), ((11, 0), 1, 2)] {
            let mut all = left(5);
            all.take(of(need), slots);
            assert_eq!(all.free, 5 - taken, "{need:?} {slots}");
        }
        // of seven slots one is of no package
        assert_eq!((left(1).slots(of((0, 0))), left(2).slots(of((0, 0)))), (2, 4));
        assert_eq!(left(1).slots(of((0, 9))), 1);
        assert_eq!(left(9).slots(of((0, 0))), 6);
    }

    #[test]
    fn rest_of_an_occupied_package_is_for_nobody() {
        let of = PoolRoom::Packages(PackageRoom { occupied: true, ..room(1, 38, (0, 0)) });
        assert_eq!(left(5).slots(of), 1);
    }

    #[test]
    fn vacated_slots_take_nothing_of_the_packages() {
        let of = PoolRoom::Packages(room(4, 100, (0, 0))).with_vacated(2);
        assert_eq!(left(1).slots(of), 4);
        let mut all = left(1);
        all.take(of, 4);
        assert_eq!(all, PoolLeft { free: 0, all: 999 });
    }

    #[test]
    fn rest_of_a_lent_package_is_not_free_to_all() {
        // three slots, one of which is lent
        let of = PoolRoom::Packages(PackageRoom { lent: (2, 0), ..room(1, 100, (0, 0)) });
        assert_eq!(PoolLeft { free: 0, all: 0 }.slots(of), 1);
        let of = PoolRoom::Packages(PackageRoom { lent: (1, 0), ..room(1, 100, (0, 0)) });
        assert_eq!(PoolLeft { free: 0, all: 0 }.slots(of), 0);
        assert_eq!(PoolLeft { free: 0, all: u64::MAX }.slots(of), u64::MAX);
    }

    #[test]
    fn resource_of_a_pool_suffices_for_so_many_slots() {
        let of = |fixed, per_slot| PoolRoom::Resource(PoolNeed { fixed, per_slot });
        assert_eq!(left(10).slots(of(0, 0)), u64::MAX);
        assert_eq!(left(10).slots(of(11, 0)), 0);
        assert_eq!(left(10).slots(of(1, 4)), 2);
    }
}
