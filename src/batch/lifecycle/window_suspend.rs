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
use crate::batch::state::names::HostMap;
use crate::batch::state::{ElemState, Phase};
use crate::batch::usage::windows::ClosedByWindows;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::window::Windows;
use crate::model::JobRef;
use crate::model::reason::susp;
use crate::proto::machine::Effect;
use jiff::tz::TimeZone;

/// Longest time between two looks, seconds: clocks may be set, and zones changed.
const LOOK_SECS: u64 = 600;

impl Mbatchd {
    /// Sets the time zone of windows.
    pub fn with_zone(mut self, zone: TimeZone) -> Self {
        self.windows.zone = zone;
        self
    }

    /// Looks at the windows when one may have opened or closed.
    pub(crate) fn windows_due(&mut self, context: &mut StepContext) {
        let (now, s) = (context.now.secs(), &self.windows);
        let passed = s.next.is_some_and(|t| t <= now) || now < s.looked;
        if !s.stale && !passed && s.timer.is_none_or(|t| t > context.now.mono_us) {
            return;
        }
        let (zone, site) = (s.zone.clone(), self.site.clone());
        let mut next: Option<i64>;
        let mut asked = s.asked;
        match site.conf.changes {
            // A new branch of `#if time(...)`; where it was refused, it is tried again.
            Some(t) if t <= now => {
                if asked < t || now >= asked.saturating_add(LOOK_SECS as i64) {
                    asked = now;
                    context.out.push(Effect::LoadConfig);
                }
                next = Some(asked.saturating_add(LOOK_SECS as i64));
            }
            edge => next = edge,
        }
        let mut shut = |w: &Windows| {
            let edge = w.next_change(now, &zone);
            next = [next, edge].into_iter().flatten().min();
            !w.open_at(now, &zone)
        };
        let queues: Vec<_> =
            site.queues.iter().map(|q| (shut(&q.run_window), shut(&q.dispatch_window))).collect();
        let mut hosts = HostMap::default();
        for (id, host) in site.hosts.iter() {
            hosts.insert(id, shut(&host.window));
        }
        let changed = s.stale || queues != s.queues || hosts != s.hosts;
        let timer = next.map(|t| {
            context.now.mono_of_wall(t).clamp(context.now.mono_us + 1, context.now.after(LOOK_SECS))
        });
        let zone = self.windows.zone.clone();
        let stale = false;
        self.windows =
            ClosedByWindows { zone, queues, hosts, stale, looked: now, next, timer, asked };
        if changed {
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
