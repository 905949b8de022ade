//! Suspended jobs that others than the scheduler resume (bresume, run windows that open, a load
//! that falls): a job whose slots were given to jobs that preempt it stays suspended, or is from
//! now on, for that reason.

use crate::batch::site::Queue;
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, Phase};
use crate::batch::{Mbatchd, StepContext};
use crate::model::event::Forced;
use crate::model::job_state::JobState;
use crate::model::reason::susp;
use crate::model::{JobKey, JobRef};

impl Mbatchd {
    /// Are the slots of a suspended job in use, by jobs that preempted it, or that started in them
    /// while it was suspended for another reason? A job that brun started is preempted by none: it
    /// may have more slots than its host has.
    pub(crate) fn waits_for_preemptors(&self, at: JobRef) -> bool {
        if !self.site.preempts && self.preemptions.is_idle() {
            return false;
        }
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|elem| &elem.state) else {
            return false;
        };
        if run.forced != Forced::No {
            return false;
        }
        let job = self.state.job(at.job);
        let queue = job.and_then(|job| self.site.queue(job.queue_at(at.idx)));
        let preempted = self.preemptions.is_suspended(at);
        let leaves = |queue: &Queue| queue.preemptable || queue.gives_stopped;
        let preemptable = preempted || queue.is_some_and(leaves);
        // one that came out of a preemptable queue while it was suspended
        (preemptable || run.hosts.iter().any(|(host, _)| self.has_too_many_jobs(*host)))
            && !self.sched.has_room_again(&self.view(), at)
    }

    /// Have the jobs of a host more slots than it has, without those that brun started?
    fn has_too_many_jobs(&self, host: HostId) -> bool {
        let view = self.view();
        if !view.hosts.contains(host) {
            return false;
        }
        let slots = |at: JobRef| -> Option<u64> {
            let run = self.state.elem(at)?.run().filter(|run| run.forced != Forced::No)?;
            Some(run.hosts.iter().filter(|on| on.0 == host).map(|on| u64::from(on.1)).sum())
        };
        let used = view.host_used(host);
        view.host_max(host).is_some_and(|max| {
            used > max && {
                let forced: u64 = self.state.counts().started_on(host).filter_map(slots).sum();
                used.saturating_sub(forced) > max
            }
        })
    }

    /// An order to a suspended job was given, or is not open any more: whether it counts as
    /// preempted, or leaves its slots to others, follows.
    pub(crate) fn follow_order(&mut self, at: JobRef) {
        for host in self.preemptions.refresh(&self.state, &self.site, at) {
            self.sched.host_changed(host);
        }
        self.follow_vacated(at);
        self.limits.refresh_preempted(&self.state, &self.site, at);
        self.note_limits();
    }

    /// The host has done what an attempt was ordered, or that was taken back.
    pub(crate) fn close_order(&mut self, key: JobKey) {
        self.state.no_order_open(key);
        let phase = self.state.running(key).map(|run| run.phase);
        if matches!(phase, Some(Phase::Ssusp(_) | Phase::Ususp(_))) {
            self.follow_order(key.job_ref());
        }
    }

    /// A job that somebody else resumes is preempted still, or again: it goes on when its slots are
    /// free.
    pub(crate) fn stay_preempted(&mut self, context: &mut StepContext, key: JobKey) {
        // the record also takes an order back that the log knows of
        let run = self.state.running(key);
        let open = run.is_some_and(|run| run.soft.asked.is_some());
        if open || run.map(|run| run.phase) != Some(Phase::Ssusp(susp::PREEMPTED)) {
            let at = key.job_ref();
            self.phase_event(context, at, key.attempt, JobState::Ssusp, susp::PREEMPTED);
        }
        self.state.no_order_open(key);
        self.follow_order(key.job_ref());
    }
}
