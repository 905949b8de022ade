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
//! A job in a queue with APS_PRIORITY is not moved: its place is that of its absolute priority.
//!
//! Invariant: one request looks at a time (`Works::begin_scan`). Places that were found are kept
//! for the further jobs of that request: memory and time are those of one look.

use crate::batch::lifecycle::meant_elements::{Meant, named};
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::place_scan::{PlaceScan, Placed};
use crate::batch::state::Job;
use crate::batch::state::element_groups::ranges;
use crate::batch::state::names::{QueueId, UserId};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{ArrayMove, Event, QueuePosition};
use crate::model::reason::err;
use crate::proto::client::IdSel;

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
        if scan.as_ref().is_none_or(|s| !s.is_for(to.alike, user)) {
            if scan.is_none() && !self.works.begin_scan() {
                *looks = 0;
                return Moved::Later;
            }
            self.works.drop_scan(scan.take());
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
            .filter(|placed| scan.has(placed))
            .map(|placed| (job.user, placed))
            .collect();
        moves.iter().for_each(|(_, placed)| scan.remove(placed));
        let place = scan.place_at(own, top, position);
        moves.into_iter().for_each(|(user, placed)| scan.put(user, placed));
        let (position, place) = match place {
            Ok(place) => place,
            Err(code) => return Moved::Refused(code),
        };
        let moved = named(sel, &to.meant);
        self.record_moved(context, who, (sel.job, &moved), (top, position, place));
        Moved::To(position)
    }

    /// The job, or these elements, have another place from now on; many elements by one record.
    fn record_moved(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        (job, moved): (u32, &[u32]),
        (top, position, place): (bool, u32, QueuePosition),
    ) {
        let (uid, user) = (who.uid, || who.user.clone());
        if moved.len() < self.works.few() {
            for &idx in moved {
                let (at, place) = (JobRef { job, idx }, Some(place));
                self.sched.drop_entry(job);
                self.emit(context, Event::JobMove { at, position, top, uid, user: user(), place });
            }
            return;
        }
        let elems = ranges(moved.iter().copied());
        let moved = ArrayMove { job, elems, position, top, uid, user: user(), place };
        self.sched.drop_entry(job);
        self.emit(context, Event::ArrayMove(Box::new(moved)));
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
        if job.tally().pend + job.tally().psusp == 0 || meant.is_empty() {
            let all_over = not.first().map(|n| n.1);
            let over = job.tally().unfinished() == 0;
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
        if self.site.queue(queue).is_some_and(|queue| queue.aps.is_some()) {
            return Err(err::APS_QUEUE_JOB);
        }
        let roles = self.site.roles(who, "", self.state.names().queue(queue));
        let all = roles.admin || roles.root || roles.queue_admin;
        if !all && self.site.params().job_position_control_by_admin {
            return Err(err::PERMISSION);
        }
        Ok(Move {
            meant,
            alike: (queue, self.view().dispatch_priority(job, job.spec_of(part))),
            all,
        })
    }

    /// Looks at some more jobs; whether all were looked at.
    fn scan_places(&self, scan: &mut PlaceScan, looks: &mut usize) -> bool {
        let Some(from) = scan.next_job() else { return true };
        for job in self.state.jobs_from(from) {
            if *looks == 0 {
                scan.stands_at(Some(job.id));
                return false;
            }
            *looks -= 1;
            for placed in self.places_of(job, scan.alike()) {
                // it takes as long as several that are passed over
                *looks = looks.saturating_sub(1);
                scan.find(job.user, placed);
            }
        }
        scan.stands_at(None);
        true
    }

    fn places_of(&self, job: &Job, alike: (QueueId, u32)) -> Vec<Placed> {
        if job.tally().pend + job.tally().psusp == 0 {
            return Vec::new();
        }
        let parts = (0..=job.parts().len() as u32).filter(|part| job.pending(*part) > 0);
        let same = |part: &u32| {
            (job.queue_of(*part), self.view().dispatch_priority(job, job.spec_of(*part))) == alike
        };
        let placed = |part| Placed { spot: self.state.spot_of(job, part), job: job.id, part };
        parts.filter(same).map(placed).collect()
    }

    /// Looks again at what has changed since the scan began.
    fn scan_changed(&mut self, scan: &mut PlaceScan) {
        for id in self.works.take_changed() {
            scan.forget(id);
            let Some(job) = self.state.job(id) else { continue };
            let places = self.places_of(job, scan.alike());
            scan.find_again(job.user, id, places);
        }
    }
}
