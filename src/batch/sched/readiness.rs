//! The ready ones among the pending jobs, and when a job with a start time becomes ready.
//!
//! Each job, and each part of an array, has an [`Entry`] that says what class it is in, at what
//! place, and whether it is ready. Entries are looked at again when something about their job has
//! changed, and not before.

use crate::batch::sched::dispatch_key::{DispatchKey, Entry};
use crate::batch::sched::view::View;
use crate::batch::sched::{DUE_PER_TURN, Sched};
use crate::batch::state::{Body, Job};
use crate::lang::depend::DepValue;
use crate::model::event::QueuePosition;
use crate::model::{JobRef, Now};
use std::cmp::Reverse;

impl Sched {
    /// The first element of a part whose own condition holds, where elements wait one by one.
    fn ready_element(&self, view: &View, job: &Job, part: u32) -> Option<u32> {
        let mine = |idx: &&u32| {
            job.part_no(**idx) == part && !self.lone.has(JobRef { job: job.id, idx: **idx })
        };
        view.depends.ready_elements(job.id)?.iter().find(mine).copied()
    }

    /// The next element of a ready part of a job that may go: the lowest index.
    pub(super) fn next_element(&self, view: &View, id: u32, part: u32) -> Option<JobRef> {
        let job = view.state.job(id)?;
        let at = |idx| JobRef { job: id, idx };
        let Body::Array(a) = &job.body else { return Some(at(0)) };
        if view.depends.ready_elements(id).is_some() {
            return self.ready_element(view, job, part).map(at);
        }
        if let Some(p) = job.part(part) {
            return self.lone.first_other(id, part, &p.waiting).map(at);
        }
        let fresh = a.first_fresh();
        let own = match a.waiting.len() > self.lone.of_part(id, part) as usize {
            true => self.lone.first_other(id, part, &a.waiting),
            false => None,
        };
        [fresh, own].into_iter().flatten().min().map(at)
    }
}

impl Sched {
    /// Looks again whether a job is ready, after anything about it has changed.
    /// Where one element has changed, `at` names it; idx 0 of an array: all of it.
    pub(crate) fn refresh(&mut self, view: &View, at: JobRef) {
        let id = at.job;
        let Some(job) = view.state.job(id) else {
            self.drop_entry(id);
            return;
        };
        if job.tally.pend + job.tally.psusp == 0 {
            self.drop_entry(id);
            return;
        }
        self.refresh_lones(view, at);
        let parts = job.parts().len() as u32;
        for part in 0..=parts {
            self.refresh_part(view, id, part);
        }
    }

    fn refresh_part(&mut self, view: &View, id: u32, part: u32) {
        let Some(job) = view.state.job(id) else { return };
        let ready = self.is_ready(view, job, part);
        let next = match job.parts().is_empty() || !ready {
            true => 0,
            false => self.next_element(view, id, part).map_or(0, |at| at.idx),
        };
        let known = self.entry(id, part).copied();
        let entry = match known {
            Some(e) => e,
            None => {
                let priority = Reverse(view.priority(job.spec_of(part)));
                let QueuePosition { base, between } = view.state.spot_of(job, part);
                let place = DispatchKey { priority, base, between, next, part };
                let class = self.class_of(job, part, &[]);
                self.classes.get_mut(class).pending += 1;
                Entry { class, place, ready: false }
            }
        };
        let place = DispatchKey { next, ..entry.place };
        if known.is_some() && (ready, place) == (entry.ready, entry.place) {
            return;
        }
        if entry.ready {
            self.set_ready(entry.class, entry.place, id, false);
        }
        if ready {
            self.set_ready(entry.class, place, id, true);
        }
        self.keep(id, part, Entry { ready, place, ..entry });
    }

    fn is_ready(&self, view: &View, job: &Job, part: u32) -> bool {
        if !self.may_start(job, part) || job.waiting(part) <= self.lone.of_part(job.id, part) {
            return false;
        }
        if !job.depend.as_ref().is_some_and(|d| d.per_element()) {
            return view.depends.value(job.id) == DepValue::True;
        }
        self.ready_element(view, job, part).is_some()
    }

    /// Puts a job with a start time ahead on the timer. True: it is ahead.
    pub(crate) fn watch_begin(&mut self, view: &View, id: u32) -> bool {
        let Some(job) = view.state.job(id) else { return false };
        let mut ahead = false;
        for begin in begins(job).filter(|begin| *begin > view.now.secs()) {
            self.begins.insert((begin, id), ());
            ahead = true;
        }
        if ahead {
            self.set_begin_timer(view.now);
        }
        ahead
    }

    /// Takes the start time of a job off the timer, before it becomes another one.
    pub(crate) fn unwatch_begin(&mut self, view: &View, id: u32) {
        if let Some(job) = view.state.job(id) {
            for begin in begins(job) {
                self.begins.remove(&(begin, id));
            }
            self.set_begin_timer(view.now);
        }
    }

    /// All start times, whether ahead or over, to be looked at in the next turn.
    pub(crate) fn begins_rebuilt(&mut self, view: &View) {
        let pending = |j: &&Job| j.tally.pend + j.tally.psusp > 0 && has_begin(j);
        view.state.each_job().filter(pending).for_each(|job| self.begins_of(job));
    }

    /// The start times of one job, likewise.
    pub(crate) fn begins_of(&mut self, job: &Job) {
        for begin in begins(job).filter(|begin| *begin > 0) {
            self.begins.insert((begin, job.id), ());
            self.begin_timer = Some(0);
        }
    }

    fn set_begin_timer(&mut self, now: Now) {
        let first = self.begins.keys().next();
        self.begin_timer = first.map(|(t, _)| now.mono_of_wall(*t));
    }

    /// The jobs whose start time has come, as many as one turn takes.
    pub(crate) fn begun(&mut self, now: Now) -> Vec<u32> {
        let mut begun = Vec::new();
        if self.begin_timer.is_none_or(|t| t > now.mono_us) {
            return begun;
        }
        while begun.len() < DUE_PER_TURN
            && let Some(&(t, id)) = self.begins.keys().next()
            && t <= now.secs()
        {
            self.begins.remove(&(t, id));
            begun.push(id);
        }
        self.set_begin_timer(now);
        begun
    }
}

fn has_begin(job: &Job) -> bool {
    begins(job).any(|begin| begin > 0)
}

/// The start times of a job and its parts.
fn begins(job: &Job) -> impl Iterator<Item = i64> + '_ {
    (0..=job.parts().len() as u32).map(|part| job.spec_of(part).begin_time)
}
