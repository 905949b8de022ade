//! Finds the elements that are scheduled by themselves (see `lone`), and those of them that are
//! ready.

use crate::batch::sched::Sched;
use crate::batch::sched::dispatch_key::{ClassEntry, DispatchKey};
use crate::batch::sched::lone::{Lone, barred, bars};
use crate::batch::sched::readiness::ReadinessQuery;
use crate::batch::sched::view::View;
use crate::batch::state::{ElemState, Tries};
use crate::model::{JobRef, Now};
use std::collections::BTreeSet;

impl Sched {
    /// Looks again at an element; idx 0 of an array: at all of it.
    pub(super) fn refresh_lones(&mut self, view: &View, at: JobRef) {
        let left = view.unreached.barred_of(at.job).next().is_some();
        let chunked = view.state.job_chunks().of_job(at.job).next().is_some();
        if view.state.tries().is_empty() && self.lone.all.is_empty() && !left && !chunked {
            return;
        }
        let Some(job) = view.state.job(at.job) else { return };
        // where a limit bounds how many are started, what one does may concern all
        let full = job.is_array() && job.at_limit();
        let turned = match full {
            true => self.lone.at_limit.insert(at.job),
            false => self.lone.at_limit.remove(&at.job),
        };
        if !job.is_array() || at.idx != 0 {
            self.refresh_lone(view, at);
            if turned {
                let others: Vec<JobRef> = self.lone.placed_of(at.job).collect();
                others.into_iter().for_each(|at| self.refresh_lone(view, at));
            }
            return;
        }
        self.lone.look_from(at);
        let mut all: BTreeSet<JobRef> = self.lone.of_job(at.job).collect();
        all.extend(view.state.tries().of_job(at.job).map(|(at, _)| at));
        all.extend(view.unreached.barred_of(at.job).map(|idx| JobRef { idx, ..at }));
        all.extend(view.state.job_chunks().of_job(at.job));
        all.into_iter().for_each(|at| self.refresh_lone(view, at));
    }

    fn refresh_lone(&mut self, view: &View, at: JobRef) {
        self.place_lone(view, at);
        if !self.lone.has(at) {
            self.lone.look_from(at);
        }
    }

    fn place_lone(&mut self, view: &View, at: JobRef) {
        #[cfg(test)]
        {
            self.lone.looks += 1;
        }
        if let Some(was) = self.lone.remove(at) {
            self.classes.get_mut(was.class).pending -= 1;
            if was.ready {
                self.set_ready(was.class, was.place, at.job, false);
            }
        }
        let none = Tries::default();
        let tries = view.state.tries().of(at).unwrap_or(&none);
        let pending = |state: &ElemState| matches!(state, ElemState::Pend(p) if p.held.is_none());
        if !view.state.elem(at).is_some_and(|e| pending(&e.state)) {
            return;
        }
        let now = Some(view.now).filter(|now| now.wall_us != 0);
        let secs = now.map(|now| now.secs());
        let waits = secs.map_or(tries.wait.1 > 0, |secs| tries.waits(secs));
        let left = view.unreached.bars(at);
        let chunked = view.state.job_chunks().waits(at);
        let barred = barred(tries, secs);
        if !waits && !left && !chunked && barred.is_empty() {
            return;
        }
        let next = bars(tries, secs).map(|bar| bar.until).chain(waits.then_some(tries.wait.1));
        let next = next.min().map(|next| now.map_or(0, |now| now.mono_of_wall(next)));
        let Some(job) = view.state.job(at.job) else { return };
        let part = job.part_no(at.idx);
        let ready = self.readiness(view, job, ReadinessQuery::Element(at.idx)).is_ok();
        let (priority, spot) = (view.place_priority(job, part), view.state.spot_of(job, part));
        let entry = (!waits && !left && !chunked).then(|| {
            let place = DispatchKey::new(priority, spot, at.idx, part);
            let class = self.class_of(view, (job, part), &barred);
            self.classes.get_mut(class).pending += 1;
            if ready {
                self.set_ready(class, place, at.job, true);
            }
            ClassEntry { class, place, ready }
        });
        self.lone.insert(at, Lone { part, entry, next });
    }

    /// The next element whose wait is over.
    pub(crate) fn next_lone(&mut self, now: Now) -> Option<JobRef> {
        let due = self.lone.due.first().copied();
        let (_, at) = due.filter(|due| due.0 <= now.mono_us)?;
        self.lone.due.pop_first();
        Some(at)
    }
}
