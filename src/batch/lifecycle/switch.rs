//! bswitch, brequeue: a job goes to another queue, or back to the queue; what these share with btop
//! and bbot (`lifecycle::reposition`).
//!
//! A request for an array changes all of it, or the elements named (`state::element_groups`).

use crate::batch::lifecycle::meant_elements::{Meant, PARTS_PER_UNIT, named};
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::works::{ElementDeed, RemainingElements, UNIT};
use crate::batch::state::Job;
use crate::batch::state::element_groups::ranges;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Event, JobModify};
use crate::model::reason::err;
use crate::proto::client::{IdSel, Outcome};

impl Mbatchd {
    /// Switches a job, or the elements named; the caller may control it.
    pub(crate) fn switch(
        &mut self,
        context: &mut StepContext,
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
            false => self.switch_parts(context, who, sel, to, &meant).err().unwrap_or(0),
        };
        outcomes.extend(named.iter().map(|&idx| Outcome::new(JobRef { job: id, idx }, code)));
        outcomes.sort_by_key(|o| (o.id.job != id, o.id.idx));
    }

    fn switch_parts(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        sel: &IdSel,
        to: &str,
        meant: &[Meant],
    ) -> Result<(), i32> {
        let id = sel.job;
        let site = self.site.clone();
        let queue = site.find_queue(to).ok_or(err::BAD_QUEUE)?;
        let job = self.state.job(id).ok_or(err::NO_JOB)?;
        if job.tally().unfinished() == 0 {
            return Err(err::JOB_FINISH);
        }
        let there = |m: &Meant| **self.state.names().queue(job.queue_of(m.part)) == *to;
        if meant.iter().all(there) {
            return Ok(());
        }
        self.room_for_parts(job, sel, meant.len())?;
        let owner = self.owner(id).map_err(|r| r.code)?;
        self.queue_takes(to, &owner, &job.spec).map_err(|r| r.code)?;
        self.not_pipe_only(to).map_err(|r| r.code)?;
        let mut specs = Vec::new();
        for m in meant {
            let mut spec = (**job.spec_of(m.part)).clone();
            spec.switch(to, None);
            self.fit(&mut spec, queue).map_err(|r| r.code)?;
            if queue.conf.nqs.pipe.is_some() {
                spec.further.piped_at = u64::try_from(context.now.secs()).ok();
            }
            if m.part == 0 || !m.elems.is_empty() {
                specs.push((m.elems.clone(), spec));
            }
        }
        let switched = named(sel, meant);
        self.record_switched(context, who, (id, &switched), to);
        // The limits of the new queue replace those of the old one; whole groups follow one by one.
        for (elems, spec) in specs {
            let waits = |j: &Job| match elems.is_empty() {
                true => j.tally().pend + j.tally().psusp > 0,
                false => {
                    elems.iter().any(|idx| j.view(*idx).is_some_and(|v| v.stat().is_pending()))
                }
            };
            let now = self.state.job(id).filter(|j| waits(j));
            let first = elems.first().copied();
            if now.is_some_and(|j| **first.map_or(&j.spec, |idx| j.spec_at(idx)) != spec) {
                let elems = ranges(elems);
                self.record_modified(
                    context,
                    who,
                    JobModify { job: id, elems, spec, ..JobModify::default() },
                );
            }
        }
        self.switch_reserved(context, who, id, meant);
        self.queue_changed(context, id, &switched);
        Ok(())
    }

    /// The job, or these elements, are of another queue from now on; many elements by one record.
    fn record_switched(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        (job, switched): (u32, &[u32]),
        to: &str,
    ) {
        let (uid, user) = (who.uid, || who.user.clone());
        if switched.len() < self.works.few() {
            for &idx in switched {
                let (at, queue) = (JobRef { job, idx }, to.to_string());
                self.sched.drop_entry(job);
                self.emit(context, Event::JobSwitch { at, queue, uid, user: user(), route: None });
            }
            return;
        }
        let elems = ranges(switched.iter().copied());
        let queue = to.to_string();
        self.sched.drop_entry(job);
        self.emit(context, Event::ArraySwitch { job, elems, queue, uid, user: user() });
    }

    /// Gives the requirement of the queue to which a whole array was switched to its parts from
    /// `next` on; returns whether all have it. One part takes as much work as several elements.
    pub(crate) fn fit_parts(
        &mut self,
        context: &mut StepContext,
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
            let look = part.look();
            // unless it was switched once more meanwhile
            let there = **self.state.names().queue(look.queue) == *to;
            if there && part.pending() > 0 {
                let mut spec = (*look.spec).clone();
                if self.fit(&mut spec, queue).is_ok() && spec != *look.spec {
                    let change = JobModify { spec, ..job.change_of(*next) };
                    self.record_modified(context, who, change);
                    *fuel = fuel.saturating_sub(UNIT / PARTS_PER_UNIT);
                }
            }
            if there && self.site.params().bswitch_modify_rusage() {
                // a part may become one with another
                let started = self.state.job(id).map_or(Vec::new(), |job| job.started_in(*next));
                *fuel = fuel.saturating_sub(started.len());
                if self.switch_rusage(context, who, (id, *next), &[]) {
                    let these = RemainingElements::These(started);
                    self.act_on_elements(context, id, these, ElementDeed::TellLimits);
                }
            }
            *next += 1;
        }
        false
    }
}
