//! cu[]: compute units in the place of hosts. Here is which units a job takes, in which order, and
//! how its tasks are shared among them.

use crate::batch::sched::place::host_match::{Free, HostMatch, Placed, Tasks};
use crate::batch::sched::place::shared::SharedRoom;
use crate::batch::site::units::UnitKind;
use crate::batch::state::names::HostId;
use crate::lang::resreq::Cu;
use crate::model::reason::PendReason;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The units of a started job.
pub(in crate::batch::sched) struct OwnUnits<'a> {
    /// The units asked for; `None`: the job asks for no units.
    kind: Option<&'a UnitKind>,
    units: BTreeSet<usize>,
}

impl OwnUnits<'_> {
    /// Is a host within these units?
    pub fn allow(&self, host: HostId) -> bool {
        self.kind
            .is_none_or(|kind| kind.unit_of(host).is_some_and(|unit| self.units.contains(&unit)))
    }
}

/// A unit that a job may use.
#[derive(Debug)]
struct UsableUnit {
    /// The hosts of the unit with slots, best first.
    free: Placed,
    /// The tasks that there is room for.
    slots: u64,
}

impl<'a> HostMatch<'a> {
    /// The units of the type that cu[] asks for; `None`: nothing is asked for.
    fn units(&self) -> Option<(&'a Cu, Option<&'a UnitKind>)> {
        let cu = self.simple?.cu.as_ref()?;
        Some((cu, self.view.site.units.kind(cu.kind.as_deref())))
    }

    /// Why a host does not do, whatever its slots: it is in no unit of the type, or jobs run in a
    /// unit that is wanted for one job alone.
    pub(in crate::batch::sched) fn unit_reason(&self, host: HostId) -> Option<PendReason> {
        let (cu, kind) = self.units()?;
        let Some((kind, unit)) = kind.and_then(|kind| Some((kind, kind.unit_of(host)?))) else {
            return Some(PendReason::NotInUnit);
        };
        let used =
            |host: &HostId| self.view.hosts.contains(*host) && self.view.host_used(*host) > 0;
        (cu.excl && kind.hosts(unit).iter().any(used)).then_some(PendReason::UnitOccupied)
    }

    /// The units of these hosts, which a job that grows does not leave.
    pub(in crate::batch::sched) fn units_of(&self, hosts: &[(HostId, u32)]) -> OwnUnits<'a> {
        let kind = self.units().and_then(|(_, kind)| kind);
        let units = hosts.iter().filter_map(|host| kind?.unit_of(host.0)).collect();
        OwnUnits { kind, units }
    }

    /// Tasks that a host with so many slots can have by span[].
    pub(in crate::batch::sched) fn capacity_of_host(&self, host: HostId, slots: u32) -> u64 {
        let span = self.simple.and_then(|simple| simple.span.as_ref());
        match span.and_then(|span| span.stripe) {
            Some(limit) => u64::from(slots.min(limit.unwrap_or(u32::MAX))),
            None => self.counting(host, slots),
        }
    }

    /// The units with enough slots, in the order of preference.
    fn usable_units(&self, cu: &Cu, kind: &UnitKind, free: Free) -> Vec<UsableUnit> {
        let mut all: BTreeMap<usize, UsableUnit> = BTreeMap::new();
        for &(host, slots) in free {
            let Some(unit) = kind.unit_of(host) else { continue };
            let unit = all.entry(unit).or_insert(UsableUnit { free: Placed::new(), slots: 0 });
            unit.free.push((host, slots));
            unit.slots += self.capacity_of_host(host, slots);
        }
        let least = u64::from(cu.usablepercu.unwrap_or(1));
        let mut all: Vec<UsableUnit> = all.into_values().filter(|u| u.slots >= least).collect();
        match cu.pref.as_deref() {
            Some("maxavail") => all.sort_by_key(|unit| Reverse(unit.slots)),
            Some("minavail" | "bestfit") => all.sort_by_key(|unit| unit.slots),
            _ => {}
        }
        // the unit of the first execution host is the first one
        all.sort_by_key(|unit| !unit.free.iter().any(|host| self.begins(host.0)));
        all
    }

    /// Hosts for tasks as cu[] and span[] ask for them.
    pub(super) fn in_units(
        &self,
        free: Free,
        tasks: Tasks,
        room: &SharedRoom,
    ) -> Result<Placed, PendReason> {
        let Some((cu, kind)) = self.units() else {
            let placed = self.spread(free, tasks, &mut room.clone());
            return placed.ok_or(PendReason::NotEnoughSlots);
        };
        let Some(kind) = kind else { return Err(PendReason::NotInUnit) };
        let units = self.usable_units(cu, kind, free);
        if units.is_empty() {
            return Err(PendReason::UnitTooSmall);
        }
        let most = cu.maxcus.map_or(units.len(), |most| units.len().min(most as usize));
        if cu.balance {
            return self.balanced(&units, most, tasks.min, room).ok_or(PendReason::UnitBalance);
        }
        let slots: Vec<u64> = units.iter().map(|unit| unit.slots).collect();
        let largest = sum_of_largest(&slots, most);
        if largest < u64::from(tasks.min) {
            return Err(match sum_of_largest(&slots, units.len()) < u64::from(tasks.min) {
                true => PendReason::NotEnoughSlots,
                false => PendReason::UnitMaximum,
            });
        }
        let wanted = largest.min(u64::from(tasks.max));
        let most = match cu.pref.as_deref() {
            Some("bestfit") => fewest(&slots, wanted),
            _ => most,
        };
        let hosts: Placed = chosen(&slots, most, wanted)
            .into_iter()
            .flat_map(|at| &units[at].free)
            .copied()
            .collect();
        self.spread(&hosts, tasks, &mut room.clone()).ok_or(PendReason::Span)
    }

    /// Does span[] hold for tasks that were placed unit by unit: is there one host, or no more than
    /// one with less than a tile or a whole block?
    fn span_holds(&self, placed: Free) -> bool {
        let Some(span) = self.simple.and_then(|simple| simple.span.as_ref()) else { return true };
        if span.one_host() {
            return placed.len() == 1;
        }
        let short = |host: &&(HostId, u32)| match (span.ptile, span.block) {
            (Some(_), _) => {
                let free = self.view.host_max(host.0).map_or(host.1, |max| max as u32);
                host.1 < self.tile(span, host.0, free)
            }
            (None, Some(block)) => !host.1.is_multiple_of(block.max(1)),
            (None, None) => false,
        };
        placed.iter().filter(short).count() <= 1
    }

    /// Tasks shared evenly among the fewest units, the numbers differing by one at most.
    fn balanced(
        &self,
        units: &[UsableUnit],
        most: usize,
        tasks: u32,
        room: &SharedRoom,
    ) -> Option<Placed> {
        (1..=most.min(tasks as usize)).find_map(|count| {
            let shares = shares(units, count, tasks)?;
            let mut room = room.clone();
            let placed = shares.into_iter().map(|(unit, share)| {
                self.spread(&units[unit].free, Tasks { min: share, max: share }, &mut room)
            });
            let placed = placed.collect::<Option<Vec<Placed>>>()?.concat();
            self.span_holds(&placed).then_some(placed)
        })
    }
}

/// The first units, so many of them, in which so many tasks can be shared evenly; each with its
/// tasks. The larger shares come first.
fn shares(units: &[UsableUnit], count: usize, tasks: u32) -> Option<Vec<(usize, u32)>> {
    let (least, larger) = (tasks / count as u32, (tasks as usize) % count);
    let takes_larger = |at: &usize| units[*at].slots > u64::from(least);
    let all: Vec<usize> =
        (0..units.len()).filter(|at| units[*at].slots >= u64::from(least)).collect();
    let mut large: Vec<usize> = all.iter().copied().filter(takes_larger).take(larger).collect();
    if large.len() < larger {
        return None;
    }
    let rest: Vec<usize> =
        all.into_iter().filter(|at| !large.contains(at)).take(count - larger).collect();
    if rest.len() < count - larger {
        return None;
    }
    large.extend(rest);
    let share = |(n, unit)| (unit, if n < larger { least + 1 } else { least });
    Some(large.into_iter().enumerate().map(share).collect())
}

/// The sum of so many of the largest numbers.
fn sum_of_largest(slots: &[u64], count: usize) -> u64 {
    if count >= slots.len() {
        return slots.iter().sum();
    }
    let mut all = slots.to_vec();
    all.sort_unstable_by_key(|slots| Reverse(*slots));
    all.iter().take(count).sum()
}

/// The fewest units that have so many slots.
fn fewest(slots: &[u64], wanted: u64) -> usize {
    let mut all = slots.to_vec();
    all.sort_unstable_by_key(|slots| Reverse(*slots));
    let mut sum = 0;
    let enough = |slots: &u64| {
        sum += slots;
        sum >= wanted
    };
    all.iter().position(enough).map_or(slots.len(), |at| at + 1)
}

/// The first units in the order of preference, no more than `most`, that together have so many
/// slots: a unit is passed over where the others allowed could not make up for it.
fn chosen(slots: &[u64], most: usize, wanted: u64) -> Vec<usize> {
    let (mut left, mut out) = (wanted, Vec::new());
    for (at, own) in slots.iter().enumerate() {
        if left == 0 || out.len() == most {
            break;
        }
        let others = sum_of_largest(&slots[at + 1..], most - out.len() - 1);
        if own + others >= left {
            out.push(at);
            left = left.saturating_sub(*own);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(slots: &[u64]) -> Vec<UsableUnit> {
        slots.iter().map(|slots| UsableUnit { free: Placed::new(), slots: *slots }).collect()
    }

    #[test]
    fn chosen_units_are_the_first_that_suffice_within_their_most() {
        assert_eq!(chosen(&[1, 8, 3], 3, 4), [0, 1]);
        assert_eq!(chosen(&[1, 8, 3], 1, 4), [1]);
        assert_eq!(chosen(&[4, 2, 4, 4], 2, 8), [0, 2]);
        assert_eq!(chosen(&[2, 2, 8], 2, 10), [0, 2]);
        assert_eq!((fewest(&[2, 2, 8], 9), fewest(&[2, 2, 8], 8)), (2, 1));
    }

    #[test]
    fn shares_differ_by_one_at_most_and_go_to_units_that_have_room() {
        assert_eq!(shares(&units(&[4, 4]), 2, 7), Some(vec![(0, 4), (1, 3)]));
        assert_eq!(shares(&units(&[3, 4]), 2, 7), Some(vec![(1, 4), (0, 3)]));
        assert_eq!(shares(&units(&[3, 3]), 2, 7), None);
        assert_eq!(shares(&units(&[1, 5, 5]), 2, 8), Some(vec![(1, 4), (2, 4)]));
    }
}
