//! Suspended jobs that others than the scheduler resume (bresume, run windows that open, a load
//! that falls): a job whose slots were given to jobs that preempt it stays suspended, or is from
//! now on, for that reason.

use crate::batch::state::{Elem, ElemState, Phase};
use crate::batch::{Mbatchd, StepContext};
use crate::model::event::Forced;
use crate::model::job_state::JobState;
use crate::model::reason::susp;
use crate::model::{JobKey, JobRef};

impl Mbatchd {
    /// Are the slots of a suspended job in use, by jobs that preempted it? A job that brun started
    /// is preempted by none: it may have more slots than its host has.
    pub(crate) fn waits_for_preemptors(&self, at: JobRef) -> bool {
        if !self.site.preempts && self.preemptions.is_idle() {
            return false;
        }
        let forced =
            |elem: &Elem| matches!(&elem.state, ElemState::Run(run) if run.forced != Forced::No);
        if self.state.elem(at).is_some_and(forced) {
            return false;
        }
        let job = self.state.job(at.job);
        let queue = job.and_then(|job| self.site.queue(job.queue_at(at.idx)));
        let preempted = self.preemptions.is_suspended(at);
        (preempted || queue.is_some_and(|queue| queue.preemptable))
            && !self.sched.has_room_again(&self.view(), at)
    }

    /// An order to a job that is suspended for a preemption was given, or is not open any more:
    /// whether it counts as preempted follows.
    pub(crate) fn follow_order(&mut self, at: JobRef) {
        self.preemptions.refresh(&self.state, &self.site, at);
        self.follow_vacated(at);
        self.limits.refresh_preempted(&self.state, &self.site, at);
        self.note_limits();
    }

    /// The host has done what an attempt of this phase was ordered, or that was taken back.
    pub(crate) fn close_order(&mut self, key: JobKey, phase: Phase) {
        self.state.no_order_open(key);
        if phase == Phase::Ssusp(susp::PREEMPTED) {
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
