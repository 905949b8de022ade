//! The first instant at which a job finds its slots, from the slots that it has now on each host
//! and those that come later. Pure.

use crate::batch::state::names::HostId;
use crate::model::idmap::IdMap;

/// Gains that are looked at for one job, earliest first; a job that needs more of them has no
/// known start.
pub(super) const MOST_GAINS: usize = 4096;

/// The slots of hosts for a job. A host may have less than none: it owes slots to other jobs.
#[derive(Debug, Default)]
pub(super) struct FreeSlots {
    /// Hosts in the order in which they are taken.
    order: Vec<HostId>,
    slots: IdMap<HostId, i64>,
}

impl FreeSlots {
    pub fn has(&self, host: HostId) -> bool {
        self.slots.contains_key(&host)
    }

    /// Slots of a host; 0: nothing is known of it.
    pub fn get(&self, host: HostId) -> i64 {
        self.slots.get(&host).copied().unwrap_or(0)
    }

    pub fn add(&mut self, host: HostId, slots: i64) {
        let place = self.slots.entry(host).or_insert_with(|| {
            self.order.push(host);
            0
        });
        *place = place.saturating_add(slots);
    }

    /// Hosts with slots, in their order.
    pub fn free(&self) -> Vec<(HostId, u32)> {
        let some = |host: &HostId| {
            let slots = u32::try_from(self.get(*host)).ok()?;
            (slots > 0).then_some((*host, slots))
        };
        self.order.iter().filter_map(some).collect()
    }
}

/// Instants at which a job is laid out though it is not sure that its slots suffice.
const MOST_TRIES: usize = 64;

/// Slots of a host that count for a job before they are laid out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    /// The job takes so many wherever it finds them.
    pub(super) sure: u64,
    /// No more than these are of use to it.
    pub(super) most: u64,
}

/// The slots that are enough, before they are laid out.
pub(super) struct Need<F: Fn(HostId, u32) -> Counted> {
    pub(super) slots: u64,
    /// All of them on one host.
    pub(super) one_host: bool,
    /// The slots of a host that count.
    pub(super) counting: F,
}

/// When a job finds a place first, and which: `gains` are (time, host, slots), earliest first;
/// `place` lays the job out on hosts that have slots. `free` is as it is then.
pub(super) fn first_place<T, F: Fn(HostId, u32) -> Counted>(
    free: &mut FreeSlots,
    need: &Need<F>,
    gains: impl Iterator<Item = (i64, HostId, i64)>,
    mut place: impl FnMut(&[(HostId, u32)]) -> Option<T>,
) -> Option<(i64, T)> {
    let count = |host, slots: i64| match u32::try_from(slots.min(u32::MAX.into())) {
        Ok(slots) if slots > 0 => (need.counting)(host, slots),
        _ => Counted::default(),
    };
    let each = free.slots.iter().map(|(host, slots)| count(*host, *slots));
    let add = |sum: Counted, more: Counted| Counted {
        sure: sum.sure.saturating_add(more.sure),
        most: sum.most.saturating_add(more.most),
    };
    let mut total = each.fold(Counted::default(), add);
    let mut gains = gains.take(MOST_GAINS).peekable();
    let (mut sure, mut may, mut tries) = (false, false, 0);
    while let Some((time, host, slots)) = gains.next() {
        let before = count(host, free.get(host));
        free.add(host, slots);
        let after = count(host, free.get(host));
        total.sure = total.sure.saturating_sub(before.sure).saturating_add(after.sure);
        total.most = total.most.saturating_sub(before.most).saturating_add(after.most);
        let has = if need.one_host { after } else { total };
        sure |= after.sure > before.sure && has.sure >= need.slots;
        may |= after.most > before.most && has.most >= need.slots && tries < MOST_TRIES;
        // all that comes at one instant is there together
        if !(sure || may) || gains.peek().is_some_and(|next| next.0 == time) {
            continue;
        }
        if let Some(found) = place(&free.free()) {
            return Some((time, found));
        }
        tries += usize::from(!sure);
        (sure, may) = (false, false);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::Id;

    fn host(n: usize) -> HostId {
        HostId::from_index(n)
    }

    fn all(slots: u32) -> Counted {
        Counted { sure: slots.into(), most: slots.into() }
    }

    fn find(now: &[(usize, i64)], slots: u64, one_host: bool, gains: &[(i64, usize, i64)]) -> i64 {
        let mut free = FreeSlots::default();
        now.iter().for_each(|(n, slots)| free.add(host(*n), *slots));
        let need = Need { slots, one_host, counting: |_, n| all(n) };
        let gains = gains.iter().map(|(t, n, slots)| (*t, host(*n), *slots));
        first_place(&mut free, &need, gains, |_| Some(())).map_or(-1, |found| found.0)
    }

    #[test]
    fn job_starts_when_the_last_slot_that_it_needs_is_given_back() {
        assert_eq!(find(&[(0, 1)], 3, false, &[(10, 0, 1), (20, 1, 1), (30, 2, 5)]), 20);
        assert_eq!(find(&[(0, 1)], 9, false, &[(10, 0, 1)]), -1);
    }

    #[test]
    fn slots_that_a_host_owes_to_others_are_no_gain() {
        assert_eq!(find(&[(0, -2)], 1, false, &[(10, 0, 1), (20, 0, 1), (30, 0, 1)]), 30);
    }

    #[test]
    fn job_of_one_host_waits_for_a_host_with_all_its_slots() {
        assert_eq!(find(&[(0, 1), (1, 1)], 3, true, &[(10, 0, 1), (20, 1, 1), (30, 1, 1)]), 30);
    }

    #[test]
    fn job_that_needs_more_gains_than_are_looked_at_has_no_known_start() {
        let gains: Vec<_> = (0..=MOST_GAINS as i64).map(|t| (t, 0, 1)).collect();
        assert_eq!(find(&[], MOST_GAINS as u64, false, &gains), MOST_GAINS as i64 - 1);
        assert_eq!(find(&[], MOST_GAINS as u64 + 1, false, &gains), -1);
    }

    #[test]
    fn gains_of_one_instant_are_laid_out_together() {
        let mut free = FreeSlots::default();
        let need = Need { slots: 1, one_host: false, counting: |_, n| all(n) };
        let gains = [(10, host(0), 1), (10, host(1), 2)];
        let found = first_place(&mut free, &need, gains.into_iter(), |free| Some(free.to_vec()));
        assert_eq!(found, Some((10, vec![(host(0), 1), (host(1), 2)])));
    }

    #[test]
    fn job_is_laid_out_where_its_slots_may_suffice_so_many_times() {
        // tiles of two slots, and a rest on the last host
        let counting =
            |_: HostId, n: u32| Counted { sure: if n < 2 { 0 } else { 2 }, most: n.min(2).into() };
        let need = Need { slots: 5, one_host: false, counting };
        let first = [(10, host(0), 2), (10, host(1), 2), (10, host(2), 1)];
        let of = |first: &[(i64, HostId, i64)], fails: usize| {
            let (mut free, mut tries) = (FreeSlots::default(), 0);
            let later = (1..200).flat_map(|n| [(10 + n as i64, host(2 + n), 1)]);
            let found = first_place(&mut free, &need, first.iter().copied().chain(later), |_| {
                tries += 1;
                (tries > fails).then_some(())
            });
            (found.map(|found| found.0), tries)
        };
        assert_eq!(of(&first, 0), (Some(10), 1));
        assert_eq!(of(&first, 3), (Some(13), 4));
        assert_eq!(of(&first, MOST_TRIES), (None, MOST_TRIES));
    }
}
