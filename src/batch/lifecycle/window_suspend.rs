//! Time windows: DISPATCH_WINDOW of queues and hosts hold dispatch back, RUN_WINDOW of queues also
//! suspends running jobs when it closes and resumes them when it opens.
//!
//! The edges of `#if time(...)` are handled here too: the configuration is read again there.
//!
//! Windows are evaluated at their edges, never while scheduling. The suspension of a job for a
//! window is logged before the host is told; later reports of the host are compared with that, so
//! that neither a crash nor a lost link leaves a job in the wrong state. A job that its user
//! stopped stays stopped.

use crate::batch::soft_state::works::UNIT;
use crate::batch::state::{ElemState, Phase};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::reason::susp;
use crate::proto::machine::Effect;
use jiff::tz::TimeZone;

impl Mbatchd {
    /// Sets the time zone of windows.
    pub fn with_zone(mut self, zone: TimeZone) -> Self {
        self.windows.set_zone(zone);
        self
    }

    /// Looks at the windows when one may have opened or closed.
    pub(crate) fn windows_due(&mut self, context: &mut StepContext) {
        let Some(look) = self.windows.look(context.now, &self.site) else { return };
        if look.reads_configuration {
            context.out.push(Effect::LoadConfig);
        }
        if look.changed {
            self.sched.changed();
            self.keep_run_windows(context);
            self.eligible_all();
        }
    }

    /// Begins to suspend and resume what is not as the run windows want it.
    fn keep_run_windows(&mut self, context: &mut StepContext) {
        let hosts = self.state.counts().hosts_in_use().collect();
        self.works.begin_windows(hosts);
        self.windows_unit(context);
    }

    /// Suspends and resumes some jobs. A job that holds several hosts is found on each, and is as
    /// it should be by then.
    pub(crate) fn windows_unit(&mut self, context: &mut StepContext) {
        let mut left = UNIT;
        while left > 0
            && let Some((host, from)) = self.works.window_host()
        {
            let all = self.state.counts().started_from(host, from);
            let some: Vec<JobRef> = all.take(left).collect();
            self.works.windows_went(some.last().copied().filter(|_| some.len() == left));
            // a host without jobs takes some time as well
            left = left.saturating_sub(some.len().max(1));
            some.into_iter().for_each(|at| self.keep_run_window(context, at));
        }
    }

    /// Suspends or resumes a job or element where its queue's run windows want it otherwise.
    pub(crate) fn keep_run_window(&mut self, context: &mut StepContext, at: JobRef) {
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { return };
        let (key, phase) = (run.key, run.phase);
        match self.run_shut(at) {
            true => self.shut_job(context, key),
            false if phase == Phase::Ssusp(susp::WINDOW) => self.resume_job(context, key),
            false => {}
        }
    }
}
