//! btop, bbot: a job, or elements of an array, get another place in the order of dispatch. A user
//! moves jobs among the own ones of the same queue and priority, an administrator among all of
//! them: the job is put right before (or behind) the one that holds the position, so that nobody
//! else's jobs change places among themselves.
//!
//! The place lies among the places of all that waits in the same queue with the same priority, so
//! that very many jobs may have to be looked at: that is done unit by unit, and what changes
//! meanwhile is looked at again at the end.
//!
//! Places found are kept in order, so that none is looked for among all of them at the end.
//!
//! Invariant: one request looks at a time (`Works::begin_scan`). Places that were found are kept
//! for the further jobs of that request: memory and time are those of one look.

use crate::batch::lifecycle::meant_elements::{Meant, named};
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::place_scan::{PlaceScan, Placed};
use crate::batch::state::Job;
use crate::batch::state::names::{QueueId, UserId};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Event, QueuePosition};
use crate::model::reason::err;
use crate::proto::client::IdSel;
use std::collections::BTreeSet;
use std::ops::Bound;

/// The part of the room between two places that a moved job leaves to later moves: one in so many.
const ROOM: u64 = 1024;

/// A move that may be made.
struct Move {
    meant: Vec<Meant>,
    alike: (QueueId, u32),
    /// Among all jobs, not the user's alone.
    all: bool,
}

/// The outcome of a move: a position, an error, or it goes on later.
pub(crate) enum Moved {
    To(u32),
    Refused(i32),
    Later,
}

impl Mbatchd {
    /// Moves what an operand means, or looks on for its place.
    pub(crate) fn reposition(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        sel: &IdSel,
        (top, position): (bool, u32),
        scan: &mut Option<PlaceScan>,
        looks: &mut usize,
    ) -> Moved {
        let to = match self.movable(who, sel) {
            Ok(to) => to,
            Err(code) => return Moved::Refused(code),
        };
        let user = self.state.job(sel.job).map(|job| job.user).filter(|_| !to.all);
        if scan.as_ref().is_none_or(|s| (s.alike, s.user) != (to.alike, user)) {
            if scan.is_none() && !self.works.begin_scan() {
                *looks = 0;
                return Moved::Later;
            }
            self.works.old_scans.extend(scan.take());
            *scan = Some(PlaceScan::new(to.alike, user));
        }
        let Some(scan) = scan else { return Moved::Later };
        if !self.scan_places(scan, looks) {
            return Moved::Later;
        }
        self.scan_changed(scan);
        let Some(job) = self.state.job(sel.job) else { return Moved::Refused(err::NO_JOB) };
        let own = self.state.spot_of(job, to.meant[0].part);
        // what moves is no rival
        let whole =
            |m: &&Meant| sel.elems.is_empty() || job.pending(m.part) as usize <= m.elems.len();
        let moves: Vec<(UserId, Placed)> = to
            .meant
            .iter()
            .filter(whole)
            .map(|m| Placed { spot: self.state.spot_of(job, m.part), job: job.id, part: m.part })
            .filter(|placed| scan.all.contains(placed))
            .map(|placed| (job.user, placed))
            .collect();
        moves.iter().for_each(|(_, placed)| scan.remove(placed));
        let place = place_at(scan, own, top, position);
        moves.into_iter().for_each(|(user, placed)| scan.put(user, placed));
        let (position, place) = match place {
            Ok(place) => place,
            Err(code) => return Moved::Refused(code),
        };
        for idx in named(sel, &to.meant) {
            let (uid, user) = (who.uid, who.user.clone());
            let (at, place) = (JobRef { job: sel.job, idx }, Some(place));
            self.sched.drop_entry(sel.job);
            self.emit(context, Event::JobMove { at, position, top, uid, user, place });
        }
        Moved::To(position)
    }

    /// The elements that are meant, and the jobs among which they may be moved.
    fn movable(&self, who: &Caller, sel: &IdSel) -> Result<Move, i32> {
        let job = self.state.job(sel.job).ok_or(err::NO_JOB)?;
        if !sel.elems.is_empty() && !job.is_array() {
            return Err(err::NO_JOB);
        }
        let (mut meant, not) = match sel.elems.is_empty() {
            true => (vec![Meant { part: 0, elems: Vec::new() }], Vec::new()),
            false => self.meant(job, sel),
        };
        if sel.elems.is_empty() {
            let parts = (1..=job.parts().len() as u32).filter(|part| job.pending(*part) > 0);
            meant.extend(parts.map(|part| Meant { part, elems: Vec::new() }));
        }
        for m in &mut meant {
            m.elems.retain(|idx| job.view(*idx).is_some_and(|v| v.stat().is_pending()));
        }
        meant.retain(|m| !m.elems.is_empty() || sel.elems.is_empty());
        if job.tally.pend + job.tally.psusp == 0 || meant.is_empty() {
            let all_over = not.first().map(|n| n.1);
            let over = job.tally.unfinished() == 0;
            let count = crate::batch::query::selection::elements(&sel.elems).count();
            return Err(match all_over {
                Some(code) if meant.is_empty() && not.len() == count => code,
                _ if over => err::JOB_FINISH,
                _ => err::JOB_STARTED,
            });
        }
        self.room_for_parts(job, sel, meant.len())?;
        let part = meant[0].part;
        let queue = job.queue_of(part);
        let roles = self.site.roles(who, "", self.state.names().queue(queue));
        let all = roles.admin || roles.root || roles.queue_admin;
        if !all && self.site.params().job_position_control_by_admin {
            return Err(err::PERMISSION);
        }
        Ok(Move { meant, alike: (queue, self.view().priority(job.spec_of(part))), all })
    }

    /// Looks at some more jobs; whether all were looked at.
    fn scan_places(&self, scan: &mut PlaceScan, looks: &mut usize) -> bool {
        let Some(from) = scan.next else { return true };
        for job in self.state.jobs_from(from) {
            if *looks == 0 {
                scan.next = Some(job.id);
                return false;
            }
            *looks -= 1;
            for placed in self.places_of(job, scan.alike) {
                // it takes as long as several that are passed over
                *looks = looks.saturating_sub(1);
                scan.found.push(placed);
                scan.put(job.user, placed);
            }
        }
        scan.next = None;
        true
    }

    fn places_of(&self, job: &Job, alike: (QueueId, u32)) -> Vec<Placed> {
        if job.tally.pend + job.tally.psusp == 0 {
            return Vec::new();
        }
        let parts = (0..=job.parts().len() as u32).filter(|part| job.pending(*part) > 0);
        let same =
            |part: &u32| (job.queue_of(*part), self.view().priority(job.spec_of(*part))) == alike;
        let placed = |part| Placed { spot: self.state.spot_of(job, part), job: job.id, part };
        parts.filter(same).map(placed).collect()
    }

    /// Looks again at what has changed since the scan began.
    fn scan_changed(&mut self, scan: &mut PlaceScan) {
        for id in self.works.take_changed() {
            scan.forget(id);
            let Some(job) = self.state.job(id) else { continue };
            let places = self.places_of(job, scan.alike);
            places.iter().for_each(|placed| scan.put(job.user, *placed));
            scan.again.insert(id, places);
        }
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

/// The place before what holds the position among the rivals, with the position that this is;
/// counted from the bottom: behind it.
fn place_at(
    scan: &PlaceScan,
    own: QueuePosition,
    top: bool,
    position: u32,
) -> Result<(u32, QueuePosition), i32> {
    let rivals = scan.rivals();
    let turned = |spot| if top { spot } else { mirrored(spot) };
    let place = position.max(1) as usize - 1;
    let next = match top {
        true => rivals.iter().nth(place),
        false => rivals.iter().nth_back(place),
    };
    let last = if top { rivals.last() } else { rivals.first() };
    let to = |next| before(turned(next), beside(&scan.all, next, top).map(turned));
    let (position, found) = match (next, last) {
        (Some(next), _) => (position.max(1), to(next.spot)),
        // Behind the last rival.
        (None, Some(last)) => {
            let behind = || behind(turned(last.spot));
            let found = beside(&scan.all, last.spot, !top).map_or_else(behind, to);
            (rivals.len() as u32 + 1, found)
        }
        (None, None) => (1, Some(turned(own))),
    };
    Ok((position, turned(found.ok_or(err::BAD_ARG)?)))
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
            assert_eq!(place_at(&scan, own, top, position), want, "{scan:?} {top} {position}");
        }
    }
}
