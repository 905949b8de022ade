//! The places of the pending jobs among which btop or bbot moves one, as far as they were looked
//! at. The places are kept in order, so that none is looked for among all of them at the end.

use crate::batch::state::names::{QueueId, UserId};
use crate::model::event::QueuePosition;
use crate::model::reason::err;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The part of the room between two places that a moved job leaves to later moves: one in so many.
const ROOM: u64 = 1024;

/// A pending job, or a part of one, at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Placed {
    pub(crate) spot: QueuePosition,
    pub(crate) job: u32,
    pub(crate) part: u32,
}

/// The places of what waits in one queue with one priority.
#[derive(Debug)]
pub struct PlaceScan {
    alike: (QueueId, u32),
    /// Jobs are moved among those of this user; none: among all.
    user: Option<UserId>,
    /// The next job to be looked at; `None`: all were.
    next: Option<u32>,
    all: BTreeSet<Placed>,
    /// The jobs of the user.
    own: BTreeSet<Placed>,
    /// The places of jobs as they were found; `again`: their places since they have changed, by
    /// job.
    found: Vec<Placed>,
    again: BTreeMap<u32, Vec<Placed>>,
}

impl PlaceScan {
    pub(crate) fn new(alike: (QueueId, u32), user: Option<UserId>) -> PlaceScan {
        let (all, own, found, again) = Default::default();
        PlaceScan { alike, user, next: Some(0), all, own, found, again }
    }

    pub(crate) fn put(&mut self, user: UserId, placed: Placed) {
        self.all.insert(placed);
        if self.user == Some(user) {
            self.own.insert(placed);
        }
    }

    /// Are the places looked at those that a move needs: of this queue and priority, and among the
    /// jobs of this user?
    pub(crate) fn is_for(&self, alike: (QueueId, u32), user: Option<UserId>) -> bool {
        (self.alike, self.user) == (alike, user)
    }

    /// The queue and the priority of the jobs.
    pub(crate) fn alike(&self) -> (QueueId, u32) {
        self.alike
    }

    /// The job to be looked at next; `None`: all were looked at.
    pub(crate) fn next_job(&self) -> Option<u32> {
        self.next
    }

    /// The look goes on at this job; `None`: all were looked at.
    pub(crate) fn stands_at(&mut self, next: Option<u32>) {
        self.next = next;
    }

    /// The look has come to a place, by the order of jobs.
    pub(crate) fn find(&mut self, user: UserId, placed: Placed) {
        self.found.push(placed);
        self.put(user, placed);
    }

    /// A job that has changed stands at these places now.
    pub(crate) fn find_again(&mut self, user: UserId, job: u32, places: Vec<Placed>) {
        places.iter().for_each(|placed| self.put(user, *placed));
        self.again.insert(job, places);
    }

    pub(crate) fn has(&self, placed: &Placed) -> bool {
        self.all.contains(placed)
    }

    pub(crate) fn remove(&mut self, placed: &Placed) {
        self.all.remove(placed);
        self.own.remove(placed);
    }

    /// Takes a job out that is about to be looked at again.
    pub(crate) fn forget(&mut self, job: u32) {
        let from = self.found.partition_point(|p| p.job < job);
        let to = self.found.partition_point(|p| p.job <= job);
        let again = self.again.remove(&job).unwrap_or_default();
        let old: Vec<Placed> = self.found[from..to].iter().copied().chain(again).collect();
        old.iter().for_each(|placed| self.remove(placed));
    }

    /// Forgets some of what was found; whether nothing is left.
    pub fn take_apart(&mut self, some: usize) -> bool {
        for _ in 0..some {
            self.all.pop_last();
            self.own.pop_last();
            self.again.pop_last();
        }
        self.all.is_empty() && self.own.is_empty() && self.again.is_empty()
    }

    /// The jobs among which one is moved.
    fn rivals(&self) -> &BTreeSet<Placed> {
        if self.user.is_some() { &self.own } else { &self.all }
    }
}

/// The next place before (or behind) one in a set.
fn beside(set: &BTreeSet<Placed>, spot: QueuePosition, before: bool) -> Option<QueuePosition> {
    let end = |n| Placed { spot, job: n, part: n };
    let found = match before {
        true => set.range(..end(0)).next_back(),
        false => set.range((Bound::Excluded(end(u32::MAX)), Bound::Unbounded)).next(),
    };
    found.map(|placed| placed.spot)
}

impl PlaceScan {
    /// The place before what holds the position among the rivals, with the position that this is;
    /// counted from the bottom: behind it. `own`: the place of the job that moves, where there is
    /// no rival.
    pub(crate) fn place_at(
        &self,
        own: QueuePosition,
        top: bool,
        position: u32,
    ) -> Result<(u32, QueuePosition), i32> {
        let rivals = self.rivals();
        let turned = |spot| if top { spot } else { mirrored(spot) };
        let place = position.max(1) as usize - 1;
        let next = match top {
            true => rivals.iter().nth(place),
            false => rivals.iter().nth_back(place),
        };
        let last = if top { rivals.last() } else { rivals.first() };
        let to = |next| before(turned(next), beside(&self.all, next, top).map(turned));
        let (position, found) = match (next, last) {
            (Some(next), _) => (position.max(1), to(next.spot)),
            // Behind the last rival.
            (None, Some(last)) => {
                let behind = || behind(turned(last.spot));
                let found = beside(&self.all, last.spot, !top).map_or_else(behind, to);
                (rivals.len() as u32 + 1, found)
            }
            (None, None) => (1, Some(turned(own))),
        };
        Ok((position, turned(found.ok_or(err::BAD_ARG)?)))
    }
}

/// The order counted from its other end.
fn mirrored(s: QueuePosition) -> QueuePosition {
    QueuePosition { base: u64::MAX - s.base, between: u32::MAX - s.between }
}

/// A place right before `next` and behind `last`, which lies before it; `None`: there is no room
/// left.
fn before(next: QueuePosition, last: Option<QueuePosition>) -> Option<QueuePosition> {
    let low = match last {
        Some(last) if last.base == next.base => u64::from(last.between) + 1,
        _ => 0,
    };
    let room = u64::from(next.between).checked_sub(low).filter(|r| *r > 0)?;
    let between = u64::from(next.between) - (room / ROOM).max(1);
    Some(QueuePosition { base: next.base, between: between as u32 })
}

/// A place behind the last one.
fn behind(last: QueuePosition) -> Option<QueuePosition> {
    let room = u64::from(u32::MAX - last.between);
    let between = u64::from(last.between) + (room / ROOM).max(u64::from(room > 0));
    (room > 0).then_some(QueuePosition { base: last.base, between: between as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_between_never_meet() {
        let (a, b) = (QueuePosition::submitted(100, 1), QueuePosition::submitted(100, 2));
        let mut spots = vec![a, b];
        for _ in 0..5000 {
            let new = before(spots[1], Some(spots[0])).unwrap();
            assert!(spots[0] < new && new < spots[1], "{new:?}");
            spots.insert(1, new);
        }
        assert!(before(a, None).unwrap() < a && behind(b).unwrap() > b);
        let tight = [QueuePosition { base: 7, between: 3 }, QueuePosition { base: 7, between: 4 }];
        assert_eq!(before(tight[1], Some(tight[0])), None);
        assert_eq!(mirrored(mirrored(a)), a);
        assert!(mirrored(a) > mirrored(b));
    }

    #[test]
    fn a_place_is_the_one_that_looking_through_all_finds() {
        let (mine, other) = (UserId::default(), None);
        let mut n = 7u64;
        let mut dice = |sides: u64| {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (n >> 33) % sides
        };
        for _ in 0..500 {
            let mut scan = PlaceScan::new((QueueId::default(), 0), Some(mine));
            for job in 1..1 + dice(12) as u32 {
                let spot = QueuePosition { base: 5 + dice(4), between: 1000 * dice(4) as u32 };
                let placed = Placed { spot, job, part: 0 };
                scan.all.insert(placed);
                if dice(2) == 0 {
                    scan.own.insert(placed);
                }
            }
            if dice(3) == 0 {
                scan.user = other;
            }
            let (top, position) = (dice(2) == 0, dice(8) as u32);
            let own = QueuePosition { base: 99, between: 1 };
            let turned = |spot| if top { spot } else { mirrored(spot) };
            let list = |set: &BTreeSet<Placed>| {
                let mut spots: Vec<QueuePosition> = set.iter().map(|p| turned(p.spot)).collect();
                spots.sort_unstable();
                spots
            };
            let (all, rivals) = (list(&scan.all), list(scan.rivals()));
            let to = |next: QueuePosition| before(next, all.iter().copied().rfind(|s| *s < next));
            let want = match (rivals.get(position.max(1) as usize - 1), rivals.last()) {
                (Some(next), _) => (position.max(1), to(*next)),
                (None, Some(last)) => {
                    let next = all.iter().copied().find(|s| s > last);
                    (rivals.len() as u32 + 1, next.map_or_else(|| behind(*last), to))
                }
                (None, None) => (1, Some(turned(own))),
            };
            let want = want.1.map(|spot| (want.0, turned(spot))).ok_or(err::BAD_ARG);
            assert_eq!(scan.place_at(own, top, position), want, "{scan:?} {top} {position}");
        }
    }
}
