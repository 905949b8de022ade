//! Facts that `bjobs` shows of a started job beside the options of its submission.

use crate::batch::Mbatchd;
use crate::batch::state::{Job, Run};
use crate::model::JobRef;
use crate::model::further;
use crate::model::run_limit::{SHOWN_RUN_LIMIT, ShownRunLimit};

impl Mbatchd {
    /// Names and texts, as the column of the further options has them.
    pub(super) fn started_options(
        &self,
        job: &Job,
        at: JobRef,
        run: &Run,
    ) -> Vec<(&'static str, String)> {
        let wanted = self.view().wanted_slots(job, run);
        let wanted = wanted.map(|w| (further::WANTED_SLOTS, format!("{},{}", w.least, w.most)));
        let rule = self.site.queue(job.queue_at(at.idx)).and_then(|queue| queue.conf.extendable);
        let limit = rule.map(|rule| {
            let now = run.extendable_limit(rule);
            ShownRunLimit { base_secs: rule.base_secs, secs: now.secs, hard: now.hard }
        });
        let limit = limit.map(|limit| (SHOWN_RUN_LIMIT, limit.to_string()));
        wanted.into_iter().chain(limit).collect()
    }

    /// The run limit in force, seconds, and whether it is that of `Limits`: of a started element
    /// where it is; of one that pends BASE of EXTENDABLE_RUNLIMIT, if its own limit is not lower.
    pub(super) fn run_limit_in_force(
        &self,
        job: &Job,
        at: JobRef,
        run: Option<&Run>,
    ) -> Option<(u64, bool)> {
        let (view, own) = (self.view(), job.spec_of(job.part_no(at.idx)).limits.run);
        let Some(run) = run else {
            let rule = self.site.queue(job.queue_at(at.idx))?.conf.extendable?;
            return (own.is_none_or(|own| rule.base_secs < own)).then_some((rule.base_secs, false));
        };
        let secs = view.run_limit_now(job, at.idx, run)?;
        let of_host = view.run_limit_on_host(job, at.idx, run);
        Some((secs, own.is_some() && run.slice == 0 && of_host == Some(secs)))
    }
}
