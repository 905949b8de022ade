//! bswitch, btop, bbot, brequeue: a job goes to another queue, to another place in the order of
//! dispatch, or back to the queue (commands.md §2).
//!
//! An array changes as a whole. A user moves jobs among the own ones of the same queue and
//! priority, an administrator among all of them: the job is put right before (or behind) the one
//! that holds the position, so that nobody else's jobs change places among themselves.

use super::perm::Caller;
use super::state::{ElemState, Job, View};
use super::{Cx, Mbd};
use crate::model::JobRef;
use crate::model::event::{Event, Spot};
use crate::model::reason::{err, pend, term};
use crate::proto::client::{Outcome, Requeue, Verb};
use crate::proto::sbd::Act;

/// Which part of the room between two places a moved job leaves to those moved there later.
const ROOM: u64 = 1024;

impl Mbd {
    /// A change that concerns the whole job; the caller may control it.
    pub(crate) fn change_whole(
        &mut self,
        cx: &mut Cx,
        who: &Caller,
        verb: &Verb,
        job: u32,
    ) -> Outcome {
        let at = JobRef { job, idx: 0 };
        let done = match verb {
            Verb::Switch { queue } => self.switch(cx, who, job, queue).map(|()| 0),
            Verb::Move { top, position } => self.move_job(cx, who, job, *top, *position),
            _ => Ok(0),
        };
        match done {
            Ok(place) => Outcome { id: at, code: 0, place },
            Err(code) => Outcome::new(at, code),
        }
    }

    fn switch(&mut self, cx: &mut Cx, who: &Caller, id: u32, to: &str) -> Result<(), i32> {
        let pol = self.pol.clone();
        let queue = pol.find_queue(to).ok_or(err::BAD_QUEUE)?;
        let job = self.st.job(id).ok_or(err::NO_JOB)?;
        if job.tally.unfinished() == 0 {
            return Err(err::JOB_FINISH);
        }
        if **self.st.names.text(job.queue) == *to {
            return Ok(());
        }
        let owner = self.owner(id).map_err(|r| r.code)?;
        self.queue_takes(to, &owner).map_err(|r| r.code)?;
        let pending = job.tally.pend + job.tally.psusp > 0;
        let mut spec = (*job.spec).clone();
        spec.queue = to.to_string();
        self.fit(&mut spec, queue).map_err(|r| r.code)?;
        let (uid, user) = (who.uid, who.user.clone());
        self.sched.drop_entry(id);
        self.emit(cx, Event::JobSwitch { job: id, queue: to.to_string(), uid, user });
        // What the new queue gives and the old one gave.
        if pending && self.st.job(id).is_some_and(|j| *j.spec != spec) {
            self.record_modified(cx, who, id, spec, Vec::new());
        }
        Ok(())
    }

    /// Returns the position reached.
    fn move_job(
        &mut self,
        cx: &mut Cx,
        who: &Caller,
        id: u32,
        top: bool,
        position: u32,
    ) -> Result<u32, i32> {
        let job = self.st.job(id).ok_or(err::NO_JOB)?;
        if job.tally.pend + job.tally.psusp == 0 {
            let over = job.tally.unfinished() == 0;
            return Err(if over { err::JOB_FINISH } else { err::JOB_STARTED });
        }
        let roles = self.roles(who, "", self.st.names.text(job.queue));
        let all = roles.admin || roles.root || roles.queue_admin;
        if !all && self.pol.params().job_position_control_by_admin {
            return Err(err::PERMISSION);
        }
        let (mut spots, mut rivals) = (Vec::new(), Vec::new());
        for other in self.st.jobs.values().filter(|o| o.id != id && alike(job, o)) {
            let spot = self.st.spot(other);
            spots.push(spot);
            if all || other.user == job.user {
                rivals.push(spot);
            }
        }
        if !top {
            spots = spots.into_iter().map(mirrored).collect();
            rivals = rivals.into_iter().map(mirrored).collect();
        }
        spots.sort_unstable();
        rivals.sort_unstable();
        let position = position.clamp(1, rivals.len() as u32 + 1);
        let place = match rivals.get(position as usize - 1) {
            Some(next) => before(*next, &spots),
            // Behind the last rival.
            None => match rivals.last() {
                Some(last) => spots
                    .iter()
                    .find(|s| *s > last)
                    .map_or_else(|| behind(*last), |next| before(*next, &spots)),
                None => Some(self.st.spot(job)).map(|s| if top { s } else { mirrored(s) }),
            },
        };
        let place = place.ok_or(err::BAD_ARG)?;
        let place = Some(if top { place } else { mirrored(place) });
        let (uid, user) = (who.uid, who.user.clone());
        self.sched.drop_entry(id);
        self.emit(cx, Event::JobMove { job: id, position, top, uid, user, place });
        Ok(position)
    }

    /// One job or element goes back to the queue: at once when it is over, else after its end.
    pub(crate) fn requeue_one(
        &mut self,
        cx: &mut Cx,
        who: &Caller,
        which: Requeue,
        at: JobRef,
        by_admin: bool,
    ) -> i32 {
        let Some(view) = self.st.job(at.job).and_then(|j| j.view(at.idx)) else {
            return err::NO_JOB;
        };
        let run = which.run || !(which.done || which.exit || which.pend);
        let stop = if by_admin { pend::ADMIN_STOP } else { pend::USER_STOP };
        let held = if which.hold { stop } else { 0 };
        match view {
            View::Fresh => err::NOT_STARTED,
            View::Own(e) => match &e.state {
                ElemState::Pend(p) if p.reason == pend::REQUEUED => err::REQUEUED,
                ElemState::Pend(_) => err::NOT_STARTED,
                ElemState::End(e) if (e.done && which.done) || (!e.done && which.exit) => {
                    self.back_to_queue(cx, at, held);
                    0
                }
                ElemState::End(_) => err::JOB_FINISH,
                ElemState::Run(r) if r.requeue.is_some() => err::REQUEUED,
                ElemState::Run(_) if !run => err::JOB_STARTED,
                ElemState::Run(r) => {
                    let key = r.key;
                    let signal = match (which.hold, by_admin) {
                        (false, _) => "REQUEUE_PEND",
                        (true, false) => "REQUEUE_PSUSP_USER",
                        (true, true) => "REQUEUE_PSUSP_ADMIN",
                    };
                    self.signal_event(cx, who, at, signal, key, by_admin);
                    let info = if by_admin { term::REQUEUE_ADMIN } else { term::REQUEUE_OWNER };
                    self.act_on(cx, key, Act::Terminate { exit_info: info });
                    0
                }
            },
        }
    }
}

/// Do both wait in the same queue with the same priority?
fn alike(a: &Job, b: &Job) -> bool {
    b.queue == a.queue && b.spec.priority == a.spec.priority && b.tally.pend + b.tally.psusp > 0
}

/// The order counted from its other end.
fn mirrored(s: Spot) -> Spot {
    Spot { base: u64::MAX - s.base, between: u32::MAX - s.between }
}

/// A place right before `next` and behind whatever lies before it; `None`: there is no room left.
fn before(next: Spot, spots: &[Spot]) -> Option<Spot> {
    let low = match spots.partition_point(|s| *s < next).checked_sub(1).map(|i| spots[i]) {
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
            let new = before(spots[1], &spots).unwrap();
            assert!(spots[0] < new && new < spots[1], "{new:?}");
            spots.insert(1, new);
        }
        assert!(before(a, &spots).unwrap() < a && behind(b).unwrap() > b);
        let tight = [Spot { base: 7, between: 3 }, Spot { base: 7, between: 4 }];
        assert_eq!(before(tight[1], &tight), None);
        assert_eq!(mirrored(mirrored(a)), a);
        assert!(mirrored(a) > mirrored(b));
    }
}
