//! Which pending jobs are ready, and when a job with a start time becomes so.
//!
//! Each job, and each part of an array, has an [`Entry`] that says what class it is in, at what
//! place, and whether it is ready. Entries are looked at again when something about their job has
//! changed, and not before.

use crate::batch::sched::view::View;
use crate::batch::sched::{DUE_PER_TURN, DispatchKey, Entry, Sched};
use crate::batch::state::{Body, Job};
use crate::batch::{Mbd, StepContext};
use crate::lang::depend::DepValue;
use crate::model::JobRef;
use crate::model::event::QueuePosition;
use std::cmp::Reverse;

impl Sched {
    /// A job changed in what its class or its place is made of.
    pub(crate) fn drop_entry(&mut self, id: u32) {
        let mut gone: Vec<Entry> = self.entries.remove(&id).into_iter().collect();
        let parts: Vec<u32> = self.parts.range((id, 0)..=(id, u32::MAX)).map(|p| p.0.1).collect();
        gone.extend(parts.iter().filter_map(|part| self.parts.remove(&(id, *part))));
        gone.extend(self.lone.remove_all(id));
        for e in &gone {
            self.classes.get_mut(e.class).pending -= 1;
            if e.ready {
                self.set_ready(e.class, e.place, id, false);
            }
        }
    }
}

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
        let lone = self.lone.of_part(id, part);
        let alike = |idx: &u32| lone == 0 || !self.lone.has(at(*idx));
        if let Some(p) = job.part(part) {
            return p.waiting.iter().copied().find(alike).map(at);
        }
        let fresh = a.first_fresh();
        let own = match a.waiting.len() > lone as usize {
            true => a.waiting.iter().copied().find(alike),
            false => None,
        };
        [fresh, own].into_iter().flatten().min().map(at)
    }
}

impl Mbd {
    /// Looks again whether a job is ready, after anything about it has changed.
    pub(crate) fn refresh(&mut self, id: u32) {
        self.refresh_at(JobRef { job: id, idx: 0 });
    }

    /// The same, where one element has changed; idx 0 of an array: all of it.
    pub(crate) fn refresh_at(&mut self, at: JobRef) {
        let id = at.job;
        let Some(job) = self.st.jobs.get(&id) else {
            self.sched.drop_entry(id);
            return;
        };
        if job.tally.pend + job.tally.psusp == 0 {
            self.sched.drop_entry(id);
            return;
        }
        self.eligible_touched(id);
        self.refresh_lones(at);
        let Some(job) = self.st.jobs.get(&id) else { return };
        let parts = job.parts().len() as u32;
        for part in 0..=parts {
            self.refresh_part(id, part);
        }
    }

    fn refresh_part(&mut self, id: u32, part: u32) {
        let Some(job) = self.st.jobs.get(&id) else { return };
        let ready = self.ready(job, part);
        let next = match job.parts().is_empty() || !ready {
            true => 0,
            false => self.sched.next_element(&self.view(), id, part).map_or(0, |at| at.idx),
        };
        let known = self.sched.entry(id, part).copied();
        let entry = match known {
            Some(e) => e,
            None => {
                let priority = Reverse(self.view().priority(job.spec_of(part)));
                let QueuePosition { base, between } = self.st.spot_of(job, part);
                let place = DispatchKey { priority, base, between, next, part };
                let class = self.class_of(id, part, &[]);
                self.sched.classes.get_mut(class).pending += 1;
                Entry { class, place, ready: false }
            }
        };
        let place = DispatchKey { next, ..entry.place };
        if known.is_some() && (ready, place) == (entry.ready, entry.place) {
            return;
        }
        if entry.ready {
            self.sched.set_ready(entry.class, entry.place, id, false);
        }
        if ready {
            self.sched.set_ready(entry.class, place, id, true);
        }
        self.sched.keep(id, part, Entry { ready, place, ..entry });
    }

    fn ready(&self, job: &Job, part: u32) -> bool {
        if !self.may_start(job, part) || job.waiting(part) <= self.sched.lone.of_part(job.id, part)
        {
            return false;
        }
        if !job.depend.as_ref().is_some_and(|d| d.per_element()) {
            return self.deps.value(job.id) == DepValue::True;
        }
        self.sched.ready_element(&self.view(), job, part).is_some()
    }

    /// Does nothing keep all of a part from starting, but what it depends on?
    pub(super) fn may_start(&self, job: &Job, part: u32) -> bool {
        !job.damaged
            && job.tally.pend > 0
            && !job.at_limit()
            && !self.sched.begins.contains_key(&(job.spec_of(part).begin_time, job.id))
    }

    /// Puts a job with a start time ahead on the timer.
    pub(crate) fn watch_begin(&mut self, cx: &StepContext, id: u32) {
        let Some(job) = self.st.jobs.get(&id) else { return };
        let mut ahead = false;
        for begin in begins(job).filter(|begin| *begin > cx.now.secs()) {
            self.sched.begins.insert((begin, id), ());
            ahead = true;
        }
        if ahead {
            self.set_begin_timer(cx);
            self.refresh(id);
        }
    }

    /// Its start time is about to be another one.
    pub(crate) fn unwatch_begin(&mut self, cx: &StepContext, id: u32) {
        if let Some(job) = self.st.jobs.get(&id) {
            for begin in begins(job) {
                self.sched.begins.remove(&(begin, id));
            }
            self.set_begin_timer(cx);
        }
    }

    /// All start times, whether ahead or over, to be looked at in the next turn.
    pub(crate) fn begins_rebuilt(&mut self) {
        let pending = |j: &&Job| j.tally.pend + j.tally.psusp > 0 && has_begin(j);
        let ids: Vec<u32> = self.st.each_job().filter(pending).map(|j| j.id).collect();
        ids.into_iter().for_each(|id| self.begins_of(id));
    }

    /// The start times of one job, likewise.
    pub(crate) fn begins_of(&mut self, id: u32) {
        let Some(job) = self.st.jobs.get(&id) else { return };
        for begin in begins(job).filter(|begin| *begin > 0) {
            self.sched.begins.insert((begin, id), ());
            self.sched.begin_timer = Some(0);
        }
    }

    fn set_begin_timer(&mut self, cx: &StepContext) {
        let first = self.sched.begins.keys().next();
        self.sched.begin_timer = first.map(|(t, _)| cx.now.mono_of_wall(*t));
    }

    pub(super) fn begin_due(&mut self, cx: &StepContext) {
        for _ in 0..DUE_PER_TURN {
            let Some(&(t, id)) = self.sched.begins.keys().next() else { break };
            if t > cx.now.secs() {
                break;
            }
            self.sched.begins.remove(&(t, id));
            self.refresh(id);
            self.sched.needed = true;
        }
        self.set_begin_timer(cx);
    }
}

fn has_begin(job: &Job) -> bool {
    begins(job).any(|begin| begin > 0)
}

/// The start times of a job and its parts.
fn begins(job: &Job) -> impl Iterator<Item = i64> + '_ {
    (0..=job.parts().len() as u32).map(|part| job.spec_of(part).begin_time)
}
