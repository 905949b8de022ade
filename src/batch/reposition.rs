//! btop, bbot: a job, or elements of an array, get another place in the order of dispatch. A user
//! moves jobs among the own ones of the same queue and priority, an administrator among all of
//! them: the job is put right before (or behind) the one that holds the position, so that nobody
//! else's jobs change places among themselves.
//!
//! The place lies among the places of all that waits in the same queue with the same priority, so
//! that very many jobs may have to be looked at: that is done unit by unit, and what changes
//! meanwhile is looked at again at the end.
//!
//! Invariant: one request looks at a time ([`super::works::Works::begin_scan`]). What it has found
//! is kept for the further jobs of that request: memory and time are those of one look.

use super::change::{Meant, named, waits};
use super::names::{QueueId, UserId};
use super::perm::Caller;
use super::state::Job;
use super::{Cx, Mbd};
use crate::model::JobRef;
use crate::model::event::{Event, Spot};
use crate::model::idmap::IdMap;
use crate::model::reason::err;
use crate::proto::client::IdSel;

/// The part of the room between two places that a moved job leaves to later moves: one in so many.
const ROOM: u64 = 1024;

/// A pending job, or a part of one.
#[derive(Clone, Copy, Debug)]
struct Placed {
    spot: Spot,
    job: u32,
    part: u32,
    user: UserId,
}

/// The places of what waits in one queue with one priority.
#[derive(Debug)]
pub struct PlaceScan {
    alike: (QueueId, u32),
    /// The next job to be looked at; `None`: all were.
    next: Option<u32>,
    found: Vec<Placed>,
}

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

impl Mbd {
    /// Moves what an operand means, or looks on for its place.
    pub(crate) fn reposition(
        &mut self,
        cx: &mut Cx,
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
        if scan.as_ref().is_none_or(|s| s.alike != to.alike) {
            if scan.is_none() && !self.works.begin_scan() {
                *looks = 0;
                return Moved::Later;
            }
            let (alike, next, found) = (to.alike, Some(0), Vec::new());
            *scan = Some(PlaceScan { alike, next, found });
        }
        let Some(scan) = scan else { return Moved::Later };
        if !self.scan_places(scan, looks) {
            return Moved::Later;
        }
        self.scan_changed(scan);
        let Some(job) = self.st.job(sel.job) else { return Moved::Refused(err::NO_JOB) };
        let counts =
            |p: &&Placed| match to.meant.iter().find(|m| (sel.job, m.part) == (p.job, p.part)) {
                Some(_) if sel.elems.is_empty() => false,
                Some(m) => job.pending(p.part) as usize > m.elems.len(),
                None => true,
            };
        let own = self.st.spot_of(job, to.meant[0].part);
        let rival = |p: &&Placed| counts(p) && (to.all || p.user == job.user);
        let spots = || scan.found.iter().filter(counts).map(|p| p.spot);
        let rivals = || scan.found.iter().filter(rival).map(|p| p.spot);
        let place = match top {
            true => place_at(&spots, &rivals, own, position),
            false => {
                let from_bottom = place_at(
                    &|| spots().map(mirrored),
                    &|| rivals().map(mirrored),
                    mirrored(own),
                    position,
                );
                from_bottom.map(|(position, place)| (position, mirrored(place)))
            }
        };
        let (position, place) = match place {
            Ok(place) => place,
            Err(code) => return Moved::Refused(code),
        };
        for idx in named(sel, &to.meant) {
            let (uid, user) = (who.uid, who.user.clone());
            let (at, place) = (JobRef { job: sel.job, idx }, Some(place));
            self.sched.drop_entry(sel.job);
            self.emit(cx, Event::JobMove { at, position, top, uid, user, place });
        }
        Moved::To(position)
    }

    /// The elements that are meant, and the jobs among which they may be moved.
    fn movable(&self, who: &Caller, sel: &IdSel) -> Result<Move, i32> {
        let job = self.st.job(sel.job).ok_or(err::NO_JOB)?;
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
            m.elems.retain(|idx| job.view(*idx).is_some_and(|v| waits(v.stat())));
        }
        meant.retain(|m| !m.elems.is_empty() || sel.elems.is_empty());
        if job.tally.pend + job.tally.psusp == 0 || meant.is_empty() {
            let all_over = not.first().map(|n| n.1);
            let over = job.tally.unfinished() == 0;
            let count = super::control::elements(&sel.elems).count();
            return Err(match all_over {
                Some(code) if meant.is_empty() && not.len() == count => code,
                _ if over => err::JOB_FINISH,
                _ => err::JOB_STARTED,
            });
        }
        self.room_for_parts(job, sel, meant.len())?;
        let part = meant[0].part;
        let queue = job.queue_of(part);
        let roles = self.roles(who, "", self.st.names.queue(queue));
        let all = roles.admin || roles.root || roles.queue_admin;
        if !all && self.pol.params().job_position_control_by_admin {
            return Err(err::PERMISSION);
        }
        Ok(Move { meant, alike: (queue, self.priority(job.spec_of(part))), all })
    }

    /// Looks at some more jobs; whether all were looked at.
    fn scan_places(&self, scan: &mut PlaceScan, looks: &mut usize) -> bool {
        let Some(from) = scan.next else { return true };
        for (id, job) in self.st.jobs.range(from..) {
            if *looks == 0 {
                scan.next = Some(*id);
                return false;
            }
            *looks -= 1;
            self.places_of(job, scan.alike, &mut scan.found);
        }
        scan.next = None;
        true
    }

    fn places_of(&self, job: &Job, alike: (QueueId, u32), found: &mut Vec<Placed>) {
        if job.tally.pend + job.tally.psusp == 0 {
            return;
        }
        for part in 0..=job.parts().len() as u32 {
            let same = (job.queue_of(part), self.priority(job.spec_of(part))) == alike;
            if same && job.pending(part) > 0 {
                let spot = self.st.spot_of(job, part);
                found.push(Placed { spot, job: job.id, part, user: job.user });
            }
        }
    }

    /// Looks again at what has changed since the scan began.
    fn scan_changed(&mut self, scan: &mut PlaceScan) {
        let changed: IdMap<u32, ()> =
            self.works.take_changed().into_iter().map(|id| (id, ())).collect();
        if changed.is_empty() {
            return;
        }
        scan.found.retain(|p| !changed.contains_key(&p.job));
        let jobs = changed.keys().filter_map(|id| self.st.job(*id));
        jobs.for_each(|job| self.places_of(job, scan.alike, &mut scan.found));
    }
}

/// The place before what holds the position among the rivals, with the position that this is.
fn place_at<S: Iterator<Item = Spot>, R: Iterator<Item = Spot>>(
    spots: &dyn Fn() -> S,
    rivals: &dyn Fn() -> R,
    own: Spot,
    position: u32,
) -> Result<(u32, Spot), i32> {
    let next = match position {
        // nearly always
        0 | 1 => rivals().min(),
        _ => {
            let mut all: Vec<Spot> = rivals().collect();
            let place = position as usize - 1;
            (place < all.len()).then(|| *all.select_nth_unstable(place).1)
        }
    };
    let before = |next: Spot| before(next, spots().filter(|s| *s < next).max());
    let (position, place) = match next {
        Some(next) => (position.max(1), before(next)),
        // Behind the last rival.
        None => {
            let place = match rivals().max() {
                Some(last) => match spots().filter(|s| *s > last).min() {
                    Some(next) => before(next),
                    None => behind(last),
                },
                None => Some(own),
            };
            (rivals().count() as u32 + 1, place)
        }
    };
    Ok((position, place.ok_or(err::BAD_ARG)?))
}

/// The order counted from its other end.
fn mirrored(s: Spot) -> Spot {
    Spot { base: u64::MAX - s.base, between: u32::MAX - s.between }
}

/// A place right before `next` and behind `last`, which lies before it; `None`: there is no room
/// left.
fn before(next: Spot, last: Option<Spot>) -> Option<Spot> {
    let low = match last {
        Some(last) if last.base == next.base => u64::from(last.between) + 1,
        _ => 0,
    };
    let room = u64::from(next.between).checked_sub(low).filter(|r| *r > 0)?;
    let between = u64::from(next.between) - (room / ROOM).max(1);
    Some(Spot { base: next.base, between: between as u32 })
}

/// A place behind the last one.
fn behind(last: Spot) -> Option<Spot> {
    let room = u64::from(u32::MAX - last.between);
    let between = u64::from(last.between) + (room / ROOM).max(u64::from(room > 0));
    (room > 0).then_some(Spot { base: last.base, between: between as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_between_never_meet() {
        let (a, b) = (Spot::submitted(100, 1), Spot::submitted(100, 2));
        let mut spots = vec![a, b];
        for _ in 0..5000 {
            let new = before(spots[1], Some(spots[0])).unwrap();
            assert!(spots[0] < new && new < spots[1], "{new:?}");
            spots.insert(1, new);
        }
        assert!(before(a, None).unwrap() < a && behind(b).unwrap() > b);
        let tight = [Spot { base: 7, between: 3 }, Spot { base: 7, between: 4 }];
        assert_eq!(before(tight[1], Some(tight[0])), None);
        assert_eq!(mirrored(mirrored(a)), a);
        assert!(mirrored(a) > mirrored(b));
    }
}
