//! Hosts that cannot be reached, and what becomes of their jobs (UNKWN, ZOMBI).
//!
//! | the host | its jobs, being those of which it is the first host |
//! |---|---|
//! | no link: bhosts says unreach | as they were |
//! | no link for MAX_SBD_FAIL tries | UNKWN; ZOMBI where somebody wants them killed |
//! | that, and LIM says unavail: given up | rerunnable ones are requeued; killed ones of them end |
//! | linked again, inventory told | as the host says |
//!
//! A try is 20 seconds, or MBD_SLEEP_TIME where that is shorter. An attempt of a job that was
//! requeued or ended meanwhile is kept in mind (`state::LeftAttempt`): the host may come back
//! with it. Until the host has said that it is over, or is given up once more, the job is not
//! started again; where it runs, it is killed, and holds its slots until then. A host's
//! word is soft state: after a restart every such job waits for its host, or for its giving up.

use crate::batch::cluster::hosts::PING_SECS;
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, LeftAttempt};
use crate::batch::step::RECORDS_PER_TURN;
use crate::batch::{Mbatchd, StepContext};
use crate::model::job::opt;
use crate::model::time::US;
use crate::model::{JobKey, JobRef};
use std::collections::HashSet;

impl Mbatchd {
    /// The time that a host is out of reach before its jobs are UNKWN, microseconds.
    fn reach_limit(&self) -> u64 {
        let p = self.site.params();
        let one = p.mbd_sleep_time.clamp(1, PING_SECS);
        (one * US).saturating_mul(u64::from(p.max_sbd_fail.max(1)))
    }

    /// Looks at the hosts without a link where that is due.
    pub(crate) fn unreached_due(&mut self, context: &mut StepContext) {
        let now = context.now.mono_us;
        if !self.unreached.is_due(now) {
            return;
        }
        self.unreached.looked(false, None);
        let limit = self.reach_limit();
        let mut budget = RECORDS_PER_TURN;
        let mut next: Option<u64> = None;
        let lost: Vec<HostId> = self.links.lost().collect();
        for i in lost {
            let Some(lost) = self.links.hosts()[i].lost else { continue };
            let due = lost.saturating_add(limit);
            if now < due {
                next = Some(next.map_or(due, |t: u64| t.min(due)));
                continue;
            }
            let down = self.links.hosts()[i].load.as_ref().is_some_and(|l| l.unavailable());
            let given_up = down && self.links.lim_linked();
            if given_up != self.links.hosts()[i].given_up {
                self.links.set_given_up(i, given_up);
                self.look_left();
            }
            self.lose_jobs(context, i, given_up, &mut budget);
        }
        self.lose_unlisted(context, &mut budget);
        self.unreached.looked(budget == 0, next);
    }

    /// Jobs on hosts that the configuration does not name any more cannot be asked for either.
    fn lose_unlisted(&mut self, context: &mut StepContext, budget: &mut usize) {
        let listed = |host: &HostId| self.links.hosts().contains(*host);
        let busy = self.state.counts().hosts_in_use();
        let off: Vec<_> = busy.filter(|host| !listed(host)).collect();
        for host in off {
            self.lose_jobs(context, host, false, budget);
        }
    }

    /// The jobs of a host that has been out of reach for long enough.
    fn lose_jobs(
        &mut self,
        context: &mut StepContext,
        host: HostId,
        given_up: bool,
        budget: &mut usize,
    ) {
        let here: Vec<JobRef> = self.state.counts().started_on(host).collect();
        let (mut unknown, mut rerun) = (0, 0);
        for at in here {
            let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { continue };
            if run.hosts.first().map(|h| h.0) != Some(host) {
                continue;
            }
            if *budget == 0 {
                break;
            }
            let (key, known) = (run.key, !run.unknown);
            let (killed, requeue, as_done) = (run.killed, run.requeue, run.as_done);
            if known {
                self.unknown_event(context, key);
                (unknown, *budget) = (unknown + 1, *budget - 1);
            }
            if !given_up || !self.rerunnable(at) {
                continue;
            }
            *budget = budget.saturating_sub(1);
            match (requeue, killed) {
                (Some(held), _) => self.requeue(context, at, held, true),
                (None, None) => self.requeue(context, at, None, true),
                (None, Some(why)) => self.end_unasked(context, key, why, as_done),
            }
            rerun += 1;
        }
        if unknown + rerun > 0 {
            let name = self.state.names().host(host);
            let is = if given_up { "is given up" } else { "cannot be reached" };
            let text = format!("{name} {is}: {unknown} jobs are UNKWN, {rerun} leave it");
            context.say(log::Level::Warn, text);
        }
    }

    /// bsub -r, or RERUNNABLE of its queue.
    pub(crate) fn rerunnable(&self, at: JobRef) -> bool {
        let job = self.state.job(at.job);
        job.is_some_and(|j| j.spec_at(at.idx).options & opt::RERUNNABLE != 0)
    }

    // ---- attempts left behind ----

    /// A host says that an attempt left behind there still runs: it holds its slots until it is
    /// killed.
    pub(crate) fn left_runs(&mut self, i: HostId, key: JobKey) {
        let left = self.state.left().find(key).map(|left| left.slots);
        let slots = left.or_else(|| self.slots_had(key, i)).unwrap_or(1);
        self.links.left_runs(i, key, slots);
        self.sched.host_changed(i);
    }

    /// A host says that an attempt left behind there is over.
    pub(crate) fn left_over(&mut self, i: HostId, key: JobKey) {
        if self.links.left_over(i, key) {
            self.sched.host_changed(i);
        }
        if self.state.left().find(key).is_some() {
            self.unreached.note_over(key);
            self.look_left_of(key.job_ref());
        }
    }

    /// The host has told all it has.
    pub(crate) fn left_told(&mut self, host: HostId, seen: &HashSet<JobKey>) {
        let all = self.state.left().iter();
        let over = all.filter(|l| l.host == host && !seen.contains(&l.key)).map(|l| l.key);
        over.for_each(|key| self.unreached.note_over(key));
    }

    /// Is a job, or an element of it, not over where it was left behind?
    pub(crate) fn left_alive(&self, job: u32) -> bool {
        let over =
            |l: &LeftAttempt| !self.links.hosts().contains(l.host) || self.unreached.is_over(l.key);
        !self.state.left().of_job(job).all(over)
    }
}
