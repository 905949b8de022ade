//! bswitch, btop, bbot, brequeue: a job goes to another queue, to another place in the order of
//! dispatch, or back to the queue.
//!
//! Of an array all of it changes, or the elements named ([`super::parts`]). A user moves jobs
//! among the own ones of the same queue and priority, an administrator among all of them: the job
//! is put right before (or behind) the one that holds the position, so that nobody else's jobs
//! change places among themselves.

use super::control::Asked;
use super::perm::Caller;
use super::state::{ElemState, Job, Part, View};
use super::{Cx, Mbd};
use crate::model::JobRef;
use crate::model::event::{Event, JobModify, Spot};
use crate::model::job::stat;
use crate::model::reason::{err, pend, term};
use crate::proto::client::{IdSel, Outcome, Requeue, Verb};
use crate::proto::sbd::Act;
use std::collections::BTreeMap;

/// Which part of the room between two places a moved job leaves to those moved there later.
const ROOM: u64 = 1024;

/// Parts of an array, at most: each is looked at whenever one of its elements changes.
const MAX_PARTS: usize = 1000;

/// The elements of a part that a request means; no element: the whole part 0.
pub(crate) struct Meant {
    pub part: u32,
    pub elems: Vec<u32>,
}

impl Mbd {
    /// A change of a job, or of the elements named; the caller may control it.
    pub(crate) fn change(
        &mut self,
        cx: &mut Cx,
        who: &Caller,
        verb: &Verb,
        sel: &IdSel,
        outcomes: &mut Vec<Outcome>,
    ) {
        let whole = JobRef { job: sel.job, idx: 0 };
        match verb {
            Verb::Switch { queue } => self.switch(cx, who, sel, queue, outcomes),
            Verb::Move { top, position } => {
                outcomes.push(match self.move_job(cx, who, sel, *top, *position) {
                    Ok(place) => Outcome { id: whole, code: 0, place },
                    Err(code) => Outcome::new(whole, code),
                });
            }
            _ => {}
        }
    }

    /// What an operand means of a job, part by part, without what is over; beside it what cannot
    /// be meant, with the reason.
    pub(crate) fn meant(&self, job: &Job, sel: &IdSel) -> (Vec<Meant>, Vec<(u32, i32)>) {
        let open = |idx: &u32| job.view(*idx).is_some_and(|v| !over(v.stat()));
        if sel.elems.is_empty() {
            let parts = job.parts().iter().zip(1..);
            let of = |p: &Part| p.elems.iter().copied().filter(open).collect::<Vec<u32>>();
            let parts = parts.map(|(p, part)| Meant { part, elems: of(p) });
            let mut all = vec![Meant { part: 0, elems: Vec::new() }];
            all.extend(parts.filter(|m| !m.elems.is_empty()));
            return (all, Vec::new());
        }
        let mut by_part: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut not = Vec::new();
        for idx in super::control::elements(&sel.elems) {
            match job.view(idx) {
                None => not.push((idx, err::NO_JOB)),
                Some(v) if over(v.stat()) => not.push((idx, err::JOB_FINISH)),
                Some(_) => by_part.entry(job.part_no(idx)).or_default().push(idx),
            }
        }
        (by_part.into_iter().map(|(part, elems)| Meant { part, elems }).collect(), not)
    }

    fn switch(
        &mut self,
        cx: &mut Cx,
        who: &Caller,
        sel: &IdSel,
        to: &str,
        outcomes: &mut Vec<Outcome>,
    ) {
        let id = sel.job;
        let Some(job) = self.st.job(id) else { return };
        // `5[3]` of a job that is no array means nothing
        if !sel.elems.is_empty() && !job.is_array() {
            return outcomes.push(Outcome::new(JobRef { job: id, idx: 0 }, err::NO_JOB));
        }
        let (meant, not) = self.meant(job, sel);
        outcomes.extend(not.iter().map(|&(idx, e)| Outcome::new(JobRef { job: id, idx }, e)));
        let named = named(sel, &meant);
        let code = match named.is_empty() {
            true => return,
            false => self.switch_parts(cx, who, sel, to, &meant).err().unwrap_or(0),
        };
        outcomes.extend(named.iter().map(|&idx| Outcome::new(JobRef { job: id, idx }, code)));
        outcomes.sort_by_key(|o| (o.id.job != id, o.id.idx));
    }

    fn switch_parts(
        &mut self,
        cx: &mut Cx,
        who: &Caller,
        sel: &IdSel,
        to: &str,
        meant: &[Meant],
    ) -> Result<(), i32> {
        let id = sel.job;
        let pol = self.pol.clone();
        let queue = pol.find_queue(to).ok_or(err::BAD_QUEUE)?;
        let job = self.st.job(id).ok_or(err::NO_JOB)?;
        if job.tally.unfinished() == 0 {
            return Err(err::JOB_FINISH);
        }
        let there = |m: &Meant| **self.st.names.text(job.queue_of(m.part)) == *to;
        if meant.iter().all(there) {
            return Ok(());
        }
        self.room_for_parts(job, sel, meant.len())?;
        let owner = self.owner(id).map_err(|r| r.code)?;
        self.queue_takes(to, &owner).map_err(|r| r.code)?;
        let mut specs = Vec::new();
        for m in meant {
            let mut spec = (**job.spec_of(m.part)).clone();
            spec.queue = to.to_string();
            self.fit(&mut spec, queue).map_err(|r| r.code)?;
            specs.push((m.elems.clone(), spec));
        }
        let switched = named(sel, meant);
        for &idx in &switched {
            let (uid, user) = (who.uid, who.user.clone());
            let at = JobRef { job: id, idx };
            self.sched.drop_entry(id);
            self.emit(cx, Event::JobSwitch { at, queue: to.to_string(), uid, user });
        }
        // What the new queue gives and the old one gave.
        for (elems, spec) in specs {
            let waits = |j: &Job| match elems.is_empty() {
                true => j.tally.pend + j.tally.psusp > 0,
                false => elems.iter().any(|idx| j.view(*idx).is_some_and(|v| waits(v.stat()))),
            };
            let now = self.st.job(id).filter(|j| waits(j));
            let first = elems.first().copied();
            if now.is_some_and(|j| **first.map_or(&j.spec, |idx| j.spec_at(idx)) != spec) {
                let elems = super::parts::ranges(elems);
                self.record_modified(
                    cx,
                    who,
                    JobModify { job: id, elems, spec, ..JobModify::default() },
                );
            }
        }
        self.queue_changed(cx, id, &switched);
        Ok(())
    }

    /// An array has a bounded number of parts.
    pub(crate) fn room_for_parts(&self, job: &Job, sel: &IdSel, more: usize) -> Result<(), i32> {
        let used = job.parts().iter().filter(|p| !p.elems.is_empty()).count();
        let full = !sel.elems.is_empty() && used + more > MAX_PARTS;
        if full { Err(err::ELEMENT) } else { Ok(()) }
    }

    /// Returns the position reached.
    fn move_job(
        &mut self,
        cx: &mut Cx,
        who: &Caller,
        sel: &IdSel,
        top: bool,
        position: u32,
    ) -> Result<u32, i32> {
        let id = sel.job;
        let job = self.st.job(id).ok_or(err::NO_JOB)?;
        if !sel.elems.is_empty() && !job.is_array() {
            return Err(err::NO_JOB);
        }
        let (mut meant, not) = self.meant(job, sel);
        for m in &mut meant {
            m.elems.retain(|idx| job.view(*idx).is_some_and(|v| waits(v.stat())));
        }
        meant.retain(|m| !m.elems.is_empty() || sel.elems.is_empty());
        if job.tally.pend + job.tally.psusp == 0 || meant.is_empty() {
            let all_over = not.first().map(|n| n.1);
            let over = job.tally.unfinished() == 0;
            return Err(match all_over {
                Some(code) if meant.is_empty() && not.len() == named_count(sel) => code,
                _ if over => err::JOB_FINISH,
                _ => err::JOB_STARTED,
            });
        }
        self.room_for_parts(job, sel, meant.len())?;
        let part = meant[0].part;
        let queue = job.queue_of(part);
        let roles = self.roles(who, "", self.st.names.text(queue));
        let all = roles.admin || roles.root || roles.queue_admin;
        if !all && self.pol.params().job_position_control_by_admin {
            return Err(err::PERMISSION);
        }
        let alike = (queue, self.priority(job.spec_of(part)));
        let (mut spots, mut rivals) = (Vec::new(), Vec::new());
        for other in self.st.jobs.values() {
            for p in 0..=other.parts().len() as u32 {
                let moving = match meant.iter().find(|m| other.id == id && m.part == p) {
                    Some(_) if sel.elems.is_empty() => continue,
                    Some(m) => m.elems.len() as u32,
                    None => 0,
                };
                let same = (other.queue_of(p), self.priority(other.spec_of(p))) == alike;
                if !same || pending(other, p) <= moving {
                    continue;
                }
                let spot = self.st.spot_of(other, p);
                spots.push(spot);
                if all || other.user == job.user {
                    rivals.push(spot);
                }
            }
        }
        let own = self.st.spot_of(job, part);
        let (position, place) = place_at(spots, rivals, own, top, position)?;
        for idx in named(sel, &meant) {
            let (uid, user) = (who.uid, who.user.clone());
            let (at, place) = (JobRef { job: id, idx }, Some(place));
            self.sched.drop_entry(id);
            self.emit(cx, Event::JobMove { at, position, top, uid, user, place });
        }
        Ok(position)
    }

    /// One job or element goes back to the queue: at once when it is over, else after its end.
    pub(crate) fn requeue_one(
        &mut self,
        cx: &mut Cx,
        a: &Asked,
        which: Requeue,
        at: JobRef,
    ) -> i32 {
        let by_admin = a.by_admin;
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
                    self.requeue_asked(cx, at, held, &a.c.request);
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
                    self.signal_event(cx, a, at, signal, key);
                    let info = if by_admin { term::REQUEUE_ADMIN } else { term::REQUEUE_OWNER };
                    self.act_on(cx, key, Act::Terminate { exit_info: info });
                    0
                }
            },
        }
    }
}

/// Has it finished?
fn over(st: u32) -> bool {
    st & (stat::DONE | stat::EXIT) != 0
}

pub(crate) fn waits(st: u32) -> bool {
    st & (stat::PEND | stat::PSUSP) != 0
}

/// The elements meant, in order; 0 for the whole job.
fn named(sel: &IdSel, meant: &[Meant]) -> Vec<u32> {
    if sel.elems.is_empty() {
        return vec![0];
    }
    let mut all: Vec<u32> = meant.iter().flat_map(|m| m.elems.iter().copied()).collect();
    all.sort_unstable();
    all
}

fn named_count(sel: &IdSel) -> usize {
    super::control::elements(&sel.elems).count()
}

/// Pending elements of a part, held ones too.
fn pending(job: &Job, part: u32) -> u32 {
    let of = |p: &Part| {
        let waits = |idx: &&u32| job.view(**idx).is_some_and(|v| waits(v.stat()));
        p.elems.iter().filter(waits).count() as u32
    };
    match job.part(part) {
        Some(p) => of(p),
        None => job.tally.pend + job.tally.psusp - job.parts().iter().map(of).sum::<u32>(),
    }
}

/// The place before (from the bottom: behind) what holds the position among the rivals, with the
/// position that this is.
fn place_at(
    mut spots: Vec<Spot>,
    mut rivals: Vec<Spot>,
    own: Spot,
    top: bool,
    position: u32,
) -> Result<(u32, Spot), i32> {
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
            None => Some(if top { own } else { mirrored(own) }),
        },
    };
    let place = place.ok_or(err::BAD_ARG)?;
    Ok((position, if top { place } else { mirrored(place) }))
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
