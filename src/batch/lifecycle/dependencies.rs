//! Acts on jobs whose dependency conditions have changed: they may be dispatched, or are orphans.
//! The conditions themselves are in `usage::dependencies`.

use crate::batch::mbatchd::counted_of;
use crate::batch::usage::dependencies::SETTLED_AT_ONCE;
use crate::batch::{Mbatchd, StepContext};
use crate::model::time::US;

impl Mbatchd {
    /// One unit of looking at the elements of arrays.
    pub(crate) fn sweep_unit(&mut self, context: &mut StepContext) {
        if let Some(id) = self.deps.sweep_unit(counted_of!(self)) {
            self.end_orphans(context, id);
            self.refresh(id);
            self.sched.need_pass();
        }
    }

    /// Looks at the conditions that name what has changed, EVALUATE_JOB_DEPENDENCY of them in
    /// one turn, and about as many as EVALUATE_JOB_DEPENDENCY_TIMEOUT has time for; at waits too.
    /// Where neither bounds it, those beyond [`SETTLED_AT_ONCE`] are looked at unit by unit.
    pub(crate) fn settle(&mut self, context: &mut StepContext) {
        let params = self.site.params();
        let bounded = params.evaluation.most.or(params.evaluation.timeout_ms.map(|_| u32::MAX));
        let mut left = bounded.unwrap_or(SETTLED_AT_ONCE);
        if let Some(ms) = params.evaluation.timeout_ms {
            let most = ms.saturating_mul(US / 1000);
            left = left.min(self.deps.share(context.now.mono_us, most));
        }
        self.settle_some(context, left);
    }

    /// Are conditions left that are looked at unit by unit?
    pub(crate) fn conditions_left(&self) -> bool {
        let params = self.site.params();
        let bounded = params.evaluation.most.is_some() || params.evaluation.timeout_ms.is_some();
        !bounded && self.deps.left()
    }

    /// One unit of the work with these jobs.
    pub(crate) fn settle_unit(&mut self, context: &mut StepContext) {
        self.settle_some(context, SETTLED_AT_ONCE);
    }

    fn settle_some(&mut self, context: &mut StepContext, mut left: u32) {
        loop {
            while let Some((job, elements)) = self.deps.next_changed() {
                self.settle_job(context, job, &elements);
            }
            while let Some(path) = self.deps.next_changed_group() {
                self.wait_group_changed(context, &path);
                self.deps.job_group_changed(counted_of!(self), &path);
            }
            if left == 0 {
                return self.deps.turn_over();
            }
            let Some((id, elements)) = self.deps.next_to_look_at() else { return };
            left -= 1;
            self.deps.named_changed(counted_of!(self), id, &elements);
            self.end_orphans(context, id);
            self.refresh(id);
            self.sched.need_pass();
        }
    }

    fn settle_job(&mut self, context: &mut StepContext, changed: u32, elements: &[u32]) {
        self.wait_changed(context, changed);
        self.watch_changed(context, changed);
        self.deps.forget_ended(&self.state, changed);
        // one that was held may have become an orphan meanwhile
        self.end_orphans(context, changed);
        self.deps.job_changed(&self.state, changed, elements);
    }
}
