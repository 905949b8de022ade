//! The suspension of one started element for the run windows of its queue, its resumption, and its
//! end in the place of a suspension (TERMINATE_WHEN). The suspension is logged before the host is
//! told: whatever the host says later is compared with that.

use crate::batch::site::Queue;
use crate::batch::state::{ElemState, Phase};
use crate::batch::{Mbatchd, StepContext};
use crate::model::action::JobAction;
use crate::model::event::{Event, JobSignal};
use crate::model::further::SignalNumber;
use crate::model::job_state::JobState;
use crate::model::reason::{susp, term};
use crate::model::{JobKey, JobRef};
use crate::proto::sbd::Act;

impl Mbatchd {
    /// Are the run windows of an element's queue closed? To a job of brun -f they never are.
    pub(crate) fn run_shut(&self, at: JobRef) -> bool {
        if let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state)
            && run.is_never_suspended()
        {
            return false;
        }
        self.queue_of(at).is_some_and(|i| self.windows.run_windows_closed(i))
    }

    /// A job's queue, as the policy has it.
    pub(crate) fn queue_of(&self, at: JobRef) -> Option<usize> {
        let job = self.state.job(at.job)?;
        self.site.queue_position(job.queue_at(at.idx))
    }

    /// Suspends a job for its queue's run windows, unless somebody else has or is about to. A job
    /// whose start the host has not confirmed is suspended when it has.
    pub(crate) fn shut_job(&mut self, context: &mut StepContext, key: JobKey) {
        let Some(run) = self.state.running(key) else { return };
        let runs = match run.phase {
            Phase::Running => true,
            Phase::Ssusp(why) => why != susp::WINDOW,
            Phase::Starting | Phase::Ususp(_) => false,
        };
        // where the host cannot be asked, it follows when it can
        if !runs || run.unknown || run.killed.is_some() || run.soft.asked.is_some_and(|a| a != 0) {
            return;
        }
        if self.queue_of(key.job_ref()).is_some_and(|q| self.site.queues[q].end_by_window) {
            return self.end_for(context, key, JobAction::EndByWindow, term::WINDOW);
        }
        let job = self.state.job(key.job);
        let signal = job.and_then(|j| j.spec_at(key.idx).further.window_signal);
        if let Some(signal) = signal {
            return self.window_signal(context, key, signal);
        }
        self.phase_event(context, key.job_ref(), key.attempt, JobState::Ssusp, susp::WINDOW);
        self.close_order(key);
        self.act_on(context, key, Act::Suspend);
    }

    /// bsub -s: a job that asked for it is sent its signal instead of being suspended, once each
    /// time the windows close.
    pub(crate) fn window_signal(
        &mut self,
        context: &mut StepContext,
        key: JobKey,
        signal: SignalNumber,
    ) {
        let Some(run) = self.state.running(key).filter(|r| r.phase == Phase::Running) else {
            return;
        };
        let (sent, now) = (run.window_signal, context.now.secs());
        let queue = self.queue_of(key.job_ref()).map(|q| &self.site.queues[q]);
        let opened = |q: &Queue| q.run_window.next_change(sent, self.windows.zone());
        if sent != 0 && queue.and_then(opened).is_none_or(|t| t > now) {
            return;
        }
        let user = self.site.conf.base.cluster.admins.first().cloned().unwrap_or_default();
        let s = JobSignal {
            at: key.job_ref(),
            user,
            action: JobAction::WindowSignal(signal),
            run_count: key.attempt,
            by_admin: true,
            ..JobSignal::default()
        };
        self.emit(context, Event::JobSignal(Box::new(s)));
        self.act_on(context, key, Act::Signal { number: signal.0 });
    }

    pub(crate) fn resume_job(&mut self, context: &mut StepContext, key: JobKey) {
        if self.waits_for_preemptors(key.job_ref()) {
            return self.stay_preempted(context, key);
        }
        if self.state.running(key).is_some_and(|r| r.soft.asked != Some(0)) {
            self.order_resume(context, key);
        }
    }

    /// The host of a suspended job is told to resume it; from now on it has its slots again, for
    /// queues that preempt it, too.
    pub(crate) fn order_resume(&mut self, context: &mut StepContext, key: JobKey) {
        self.state.resume_ordered(key);
        self.act_on(context, key, Act::Resume);
        self.follow_order(key.job_ref());
    }

    /// Ends a job that TERMINATE_WHEN does not let be suspended.
    pub(crate) fn end_for(
        &mut self,
        context: &mut StepContext,
        key: JobKey,
        action: JobAction,
        why: u32,
    ) {
        let user = self.site.conf.base.cluster.admins.first().cloned().unwrap_or_default();
        let (at, run_count) = (key.job_ref(), key.attempt);
        let s = JobSignal { at, user, action, run_count, by_admin: true, ..JobSignal::default() };
        self.emit(context, Event::JobSignal(Box::new(s)));
        self.act_on(context, key, Act::Terminate { exit_info: why });
    }
}
