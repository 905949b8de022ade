//! bswitch, brequeue: a job goes to another queue, or back to the queue; what these share with btop
//! and bbot (`lifecycle::reposition`).
//!
//! Of an array all of it changes, or the elements named (`state::element_groups`).

use crate::batch::admin::permissions::Caller;
use crate::batch::lifecycle::control::Asked;
use crate::batch::lifecycle::works::UNIT;
use crate::batch::state::{ElemState, ElementView, Job};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Event, JobModify};
use crate::model::job::stat;
use crate::model::reason::{err, pend, term};
use crate::proto::client::{IdSel, Outcome, Requeue};
use crate::proto::sbd::Act;
use std::collections::BTreeMap;

/// Parts that are changed in one unit of work: all of them are looked at for each.
pub(crate) const PARTS_PER_UNIT: usize = 4;

/// Parts of an array, at most: each is looked at whenever one of its elements changes.
const MAX_PARTS: usize = 1000;

/// The elements of a part that a request means; no element: all of the part.
pub(crate) struct Meant {
    pub part: u32,
    pub elems: Vec<u32>,
}

impl Mbatchd {
    /// What an operand means of a job, part by part, without what is over; beside it what cannot
    /// be meant, with the reason.
    pub(crate) fn meant(&self, job: &Job, sel: &IdSel) -> (Vec<Meant>, Vec<(u32, i32)>) {
        if sel.elems.is_empty() {
            let parts = job.parts().iter().zip(1..).filter(|(p, _)| p.pend + p.started > 0);
            let all = [0].into_iter().chain(parts.map(|(_, part)| part));
            return (all.map(|part| Meant { part, elems: Vec::new() }).collect(), Vec::new());
        }
        let mut by_part: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut not = Vec::new();
        for idx in crate::batch::lifecycle::control::elements(&sel.elems) {
            match job.view(idx) {
                None => not.push((idx, err::NO_JOB)),
                Some(v) if over(v.stat()) => not.push((idx, err::JOB_FINISH)),
                Some(_) => by_part.entry(job.part_no(idx)).or_default().push(idx),
            }
        }
        (by_part.into_iter().map(|(part, elems)| Meant { part, elems }).collect(), not)
    }

    /// Switches a job, or the elements named; the caller may control it.
    pub(crate) fn switch(
        &mut self,
        cx: &mut StepContext,
        who: &Caller,
        sel: &IdSel,
        to: &str,
        outcomes: &mut Vec<Outcome>,
    ) {
        let id = sel.job;
        let Some(job) = self.state.job(id) else { return };
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
        cx: &mut StepContext,
        who: &Caller,
        sel: &IdSel,
        to: &str,
        meant: &[Meant],
    ) -> Result<(), i32> {
        let id = sel.job;
        let site = self.site.clone();
        let queue = site.find_queue(to).ok_or(err::BAD_QUEUE)?;
        let job = self.state.job(id).ok_or(err::NO_JOB)?;
        if job.tally.unfinished() == 0 {
            return Err(err::JOB_FINISH);
        }
        let there = |m: &Meant| **self.state.names.queue(job.queue_of(m.part)) == *to;
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
            if m.part == 0 || !m.elems.is_empty() {
                specs.push((m.elems.clone(), spec));
            }
        }
        let switched = named(sel, meant);
        for &idx in &switched {
            let (uid, user) = (who.uid, who.user.clone());
            let at = JobRef { job: id, idx };
            self.sched.drop_entry(id);
            self.emit(cx, Event::JobSwitch { at, queue: to.to_string(), uid, user });
        }
        // The limits of the new queue replace those of the old one; whole groups follow one by one.
        for (elems, spec) in specs {
            let waits = |j: &Job| match elems.is_empty() {
                true => j.tally.pend + j.tally.psusp > 0,
                false => elems.iter().any(|idx| j.view(*idx).is_some_and(|v| waits(v.stat()))),
            };
            let now = self.state.job(id).filter(|j| waits(j));
            let first = elems.first().copied();
            if now.is_some_and(|j| **first.map_or(&j.spec, |idx| j.spec_at(idx)) != spec) {
                let elems = crate::batch::state::element_groups::ranges(elems);
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

    /// What the queue gives, to which a whole array was switched: to its parts from `next` on;
    /// whether all have it. One part takes as much work as several elements.
    pub(crate) fn fit_parts(
        &mut self,
        cx: &mut StepContext,
        who: &Caller,
        (id, to): (u32, &str),
        next: &mut u32,
        fuel: &mut usize,
    ) -> bool {
        let site = self.site.clone();
        let Some(queue) = site.find_queue(to) else { return true };
        while *fuel > 0 {
            let Some(job) = self.state.job(id) else { return true };
            let Some(part) = job.part(*next) else { return true };
            let look = &part.look;
            // unless it was switched once more meanwhile
            if part.pend > 0 && **self.state.names.queue(look.queue) == *to {
                let mut spec = (*look.spec).clone();
                if self.fit(&mut spec, queue).is_ok() && spec != *look.spec {
                    let change = JobModify { spec, ..job.change_of(*next) };
                    self.record_modified(cx, who, change);
                    *fuel = fuel.saturating_sub(UNIT / PARTS_PER_UNIT);
                }
            }
            *next += 1;
        }
        false
    }

    /// An array has a bounded number of parts.
    pub(crate) fn room_for_parts(&self, job: &Job, sel: &IdSel, more: usize) -> Result<(), i32> {
        let used = job.parts().iter().filter(|p| !p.elems.is_empty()).count();
        let full = !sel.elems.is_empty() && used + more > MAX_PARTS;
        if full { Err(err::ELEMENT) } else { Ok(()) }
    }

    /// One job or element goes back to the queue: at once when it is over, else after its end.
    pub(crate) fn requeue_one(
        &mut self,
        cx: &mut StepContext,
        a: &Asked,
        which: Requeue,
        at: JobRef,
    ) -> i32 {
        let by_admin = a.by_admin;
        let Some(view) = self.state.job(at.job).and_then(|j| j.view(at.idx)) else {
            return err::NO_JOB;
        };
        let run = which.run || !(which.done || which.exit || which.pend);
        let stop = if by_admin { pend::ADMIN_STOP } else { pend::USER_STOP };
        let held = if which.hold { stop } else { 0 };
        match view {
            ElementView::Untouched(_) => err::NOT_STARTED,
            ElementView::Own(e) => match &e.state {
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

impl Job {
    /// The change of a whole part, to nothing yet; part 0: of the job.
    pub(crate) fn change_of(&self, part: u32) -> JobModify {
        let one = self.part(part).and_then(|p| p.elems.first());
        let elems = one.map(|idx| (*idx, *idx, 1)).into_iter().collect();
        JobModify { job: self.id, elems, alike: part != 0, ..JobModify::default() }
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
pub(crate) fn named(sel: &IdSel, meant: &[Meant]) -> Vec<u32> {
    if sel.elems.is_empty() {
        return vec![0];
    }
    let mut all: Vec<u32> = meant.iter().flat_map(|m| m.elems.iter().copied()).collect();
    all.sort_unstable();
    all
}
