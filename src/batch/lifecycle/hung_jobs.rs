//! Jobs that hang: their first host does not come back, or does not end them at their run limit.
//! REMOVE_HUNG_JOBS_FOR of lsb.params removes them as bkill -r does, with TERM_REMOVE_HUNG_JOB
//! (lsb.params(5)).
//!
//! An attempt that may still run on the host is kept in mind, and killed when the host tells of it
//! (`unreached_hosts`). For how long a host is out of reach is soft state: it counts from the start
//! of mbatchd. A look walks all started jobs, once a minute, where the parameter is set, a bounded
//! number in each turn (`soft_state::started_walk`).

use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::HungJobs;
use crate::model::reason::term;
use crate::model::time::US;
use crate::model::{JobRef, Now};
use crate::proto::sbd::Act;

/// Seconds between two looks.
const PAUSE: u64 = 60;

impl Mbatchd {
    /// Removes the jobs that hang, where the site wants that and a look is due.
    pub(crate) fn remove_hung_jobs(&mut self, context: &mut StepContext) {
        let rules = self.site.params().removal.hung;
        if self.hung_checks.begin(context.now, PAUSE, rules != HungJobs::default()) {
            self.hung_walk.begin();
        }
        for (host, at) in self.hung_walk.slice(self.state.counts()) {
            if self.hangs(at, host, rules, context.now) {
                self.remove_hung(context, at);
            }
        }
    }

    /// Has the host been out of reach for the time of `host_unavail`?
    fn lost_for_too_long(&self, host: HostId, rules: HungJobs, now: Now) -> bool {
        let Some(wait) = rules.host_unavail else { return false };
        let hosts = self.links.hosts();
        let lost = hosts.contains(host).then(|| hosts[host].lost).flatten();
        lost.is_some_and(|since| now.mono_us >= since.saturating_add(wait.saturating_mul(US)))
    }

    /// Does a started element hang on this host, its first?
    fn hangs(&self, at: JobRef, host: HostId, rules: HungJobs, now: Now) -> bool {
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { return false };
        if run.hosts.first().map(|first| first.0) != Some(host) {
            return false;
        }
        run.unknown && self.lost_for_too_long(host, rules, now)
            || rules.runlimit.is_some_and(|wait| self.overdue(at, wait, now))
    }

    /// Has a started element been over its run limit for so many seconds?
    fn overdue(&self, at: JobRef, wait: u64, now: Now) -> bool {
        let wait = i64::try_from(wait).unwrap_or(i64::MAX);
        let end = self.view().run_limit_end(at);
        end.is_some_and(|end| now.secs() >= end.saturating_add(wait))
    }

    fn remove_hung(&mut self, context: &mut StepContext, at: JobRef) {
        let run = self.state.elem(at).and_then(|e| match &e.state {
            ElemState::Run(run) => Some(run),
            _ => None,
        });
        let Some(&Run { key, unknown, requeue, as_done, .. }) = run.map(|run| &**run) else {
            return;
        };
        let why = if unknown { "its host is out of reach" } else { "its run limit has passed" };
        context.say(log::Level::Warn, format!("{key} hangs and is removed: {why}"));
        self.act_on(context, key, Act::Terminate { exit_info: term::FORCE_ADMIN });
        match requeue {
            Some(held) => self.requeue(context, at, held, true),
            None => self.end_unasked(context, key, term::REMOVE_HUNG_JOB, as_done),
        }
    }
}
