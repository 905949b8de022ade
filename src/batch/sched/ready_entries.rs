//! The entries of pending jobs: which of them are ready, and the next element of each.
//!
//! Each job, and each element group of an array, has a [`ClassEntry`]: its class, its place there,
//! and whether it is ready. Entries are examined again only when their job has changed.

use crate::batch::sched::Sched;
use crate::batch::sched::dispatch_key::{ClassEntry, DispatchKey};
use crate::batch::sched::readiness::ReadinessQuery;
use crate::batch::sched::view::View;
use crate::batch::state::Job;
use crate::model::JobRef;

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
        let Some(a) = job.array() else { return Some(at(0)) };
        if view.depends.ready_elements(id).is_some() {
            return self.ready_element(view, job, part).map(at);
        }
        if let Some(p) = job.part(part) {
            return self.lone.first_other(id, part, p.waiting()).map(at);
        }
        let fresh = a.first_fresh();
        let own = match a.waiting().len() > self.lone.of_part(id, part) as usize {
            true => self.lone.first_other(id, part, a.waiting()),
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
        if job.tally().pend + job.tally().psusp == 0 {
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
                let (priority, spot) =
                    (view.place_priority(job, part), view.state.spot_of(job, part));
                let place = DispatchKey::new(priority, spot, next, part);
                let class = self.class_of(view, (job, part), &[]);
                self.classes.get_mut(class).pending += 1;
                ClassEntry { class, place, ready: false }
            }
        };
        let place = entry.place.with_next(next);
        if known.is_some() && (ready, place) == (entry.ready, entry.place) {
            return;
        }
        if entry.ready {
            self.set_ready(entry.class, entry.place, id, false);
        }
        if ready {
            self.set_ready(entry.class, place, id, true);
        }
        self.keep(id, part, ClassEntry { ready, place, ..entry });
    }

    /// May an element of a group go that is not scheduled by itself?
    fn is_ready(&self, view: &View, job: &Job, group: u32) -> bool {
        job.tally().pend > 0
            && job.waiting(group) > self.lone.of_part(job.id, group)
            && self.readiness(view, job, ReadinessQuery::Group(group)).is_ok()
            && (view.depends.ready_elements(job.id).is_none()
                || self.ready_element(view, job, group).is_some())
    }
}

impl Sched {
    /// Is each entry ready exactly if its elements are? Else which is not. Looks at every pending
    /// job.
    pub(crate) fn audit_readiness(&self, view: &View) -> Result<(), String> {
        let pending = |job: &&Job| job.tally().pend + job.tally().psusp > 0;
        for job in view.state.each_job().filter(pending) {
            for group in 0..=job.parts().len() as u32 {
                let known = self.entry(job.id, group).is_some_and(|entry| entry.ready);
                if known != self.is_ready(view, job, group) {
                    return Err(format!("job {} group {group}: its entry says {known}", job.id));
                }
            }
        }
        for (at, lone) in &self.lone.all {
            let Some(job) = view.state.job(at.job) else { continue };
            let known = lone.entry.is_some_and(|entry| entry.ready);
            if known != self.readiness(view, job, ReadinessQuery::Element(at.idx)).is_ok() {
                return Err(format!("element {at}: its entry says {known}"));
            }
        }
        Ok(())
    }
}
