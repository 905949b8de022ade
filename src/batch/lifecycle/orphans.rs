//! Orphans: pending jobs whose dependency condition can never hold. Orphans end at once (bsub -ti),
//! or after ORPHAN_JOB_TERM_GRACE_PERIOD.

use crate::batch::soft_state::cursor::Cursor;
use crate::batch::soft_state::works::{ElementDeed, ElementWork, RemainingElements, UNIT};
use crate::batch::state::Job;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::depend::DepValue;
use crate::model::JobRef;
use crate::model::reason::term;
use crate::model::time::US;

/// Do elements of this part end as soon as they are orphans (-ti)?
pub(crate) fn ends_at_once(job: &Job, part: u32) -> bool {
    job.spec_of(part).further.terminate_orphan.0
}

impl Mbatchd {
    /// Ends elements whose condition can never hold: with -ti at once, else where
    /// ORPHAN_JOB_TERM_GRACE_PERIOD is over.
    pub(crate) fn end_orphans(&mut self, context: &mut StepContext, id: u32) {
        let graced = self.site.params().removal.orphan_grace.is_some();
        let whole = JobRef { job: id, idx: 0 };
        let known = self.deps.watched(id).then(|| self.state.job(id)).flatten();
        let Some(job) = known.filter(|j| j.depend.is_some()) else {
            return self.deps.set_orphan(whole, 0, false);
        };
        // those that are on their way to their end are looked at no more
        if self.works.ends(id) {
            return;
        }
        let parts = job.parts().len() as u32;
        if !graced && !(0..=parts).any(|part| ends_at_once(job, part)) {
            return self.deps.no_orphans(id);
        }
        let never = self.deps.value(id) == DepValue::Never;
        let mut now: Vec<u32> = Vec::new();
        if let Some(turned) = self.deps.turned(id) {
            for (idx, never) in turned {
                let orphan = never && self.waits_at(JobRef { job: id, idx });
                let Some(job) = self.state.job(id) else { return };
                let at_once = orphan && ends_at_once(job, job.part_no(idx));
                now.extend(at_once.then_some(idx));
                let later = orphan && !at_once && graced;
                self.deps.set_orphan(JobRef { job: id, idx }, context.now.mono_us, later);
            }
        } else if never && job.tally().total as usize > UNIT {
            let later = graced && !(0..=parts).all(|part| ends_at_once(job, part));
            if (0..=parts).any(|part| ends_at_once(job, part)) {
                let left = RemainingElements::All(Cursor::default());
                let action = ElementDeed::EndOrphans { at_once: true };
                self.works.put_elements(ElementWork::new(id, left, action));
            }
            return self.deps.set_orphan(whole, context.now.mono_us, later);
        } else {
            let all = if never { job.indices() } else { Vec::new() };
            let waits = |idx: &u32| self.waits_at(JobRef { job: id, idx: *idx });
            let (ends, later): (Vec<u32>, Vec<u32>) =
                all.into_iter().filter(waits).partition(|idx| ends_at_once(job, job.part_no(*idx)));
            now = ends;
            self.deps.set_orphan(whole, context.now.mono_us, graced && !later.is_empty());
        }
        if now.len() > UNIT {
            now.reverse();
            let action = ElementDeed::EndOrphans { at_once: false };
            self.works.put_elements(ElementWork::new(id, RemainingElements::These(now), action));
            return;
        }
        for idx in now {
            self.end_orphan(context, JobRef { job: id, idx }, false);
        }
        self.orphans_due(context);
    }

    pub(crate) fn waits_at(&self, at: JobRef) -> bool {
        let view = self.state.job(at.job).and_then(|j| j.view(at.idx));
        view.is_some_and(|v| v.stat().is_pending())
    }

    /// An orphan ends, if it waits still, and for what can never be.
    pub(crate) fn end_orphan(&mut self, context: &mut StepContext, at: JobRef, at_once: bool) {
        let asked = |job: &Job| !at_once || ends_at_once(job, job.part_no(at.idx));
        let never = self.waits_at(at) && self.deps.never(at);
        if never && self.state.job(at.job).is_some_and(asked) {
            self.exit_unstarted(context, at, term::ORPHAN_SYSTEM);
        }
    }

    pub(crate) fn orphan_deadline(&self) -> Option<u64> {
        let grace = self.site.params().removal.orphan_grace?;
        Some(self.deps.first_orphan()?.saturating_add(grace.saturating_mul(US)))
    }

    /// Orphans whose time is over end.
    pub(crate) fn orphans_due(&mut self, context: &mut StepContext) {
        let now = context.now.mono_us;
        if self.orphan_deadline().is_none_or(|at| at > now) {
            return;
        }
        let grace = self.site.params().removal.orphan_grace.unwrap_or_default().saturating_mul(US);
        for at in self.deps.orphans_by(now.saturating_sub(grace), UNIT) {
            self.deps.set_orphan(at, 0, false);
            match self.state.job(at.job) {
                Some(job) if at.idx == 0 && job.is_array() => {
                    let (left, action) = (
                        RemainingElements::All(Cursor::default()),
                        ElementDeed::EndOrphans { at_once: false },
                    );
                    self.works.put_elements(ElementWork::new(at.job, left, action));
                }
                _ => self.end_orphan(context, at, false),
            }
        }
    }

    /// Ends all orphans, at a start or when the log can be written again.
    pub(crate) fn end_all_orphans(&mut self, context: &mut StepContext) {
        let some = self.state.each_job().filter(|job| job.depend.is_some());
        let ids: Vec<u32> = some.map(|job| job.id).collect();
        ids.into_iter().for_each(|id| self.end_orphans(context, id));
    }
}
