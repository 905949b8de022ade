//! Carries out the decisions about preemption: running jobs are suspended for jobs of higher
//! queues, or ended where TERMINATE_WHEN says so, and go on when nobody wants their slots any more.
//!
//! A suspension is logged before the host is told, as for run windows. Its slots are vacated when
//! the host has told that the job is suspended; until then the order is repeated after each
//! connect.

use crate::batch::sched::Preemption;
use crate::batch::state::ElemState;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::action::JobAction;
use crate::model::job_state::JobState;
use crate::model::reason::{susp, term};
use crate::proto::sbd::Act;

impl Mbatchd {
    /// Preempts jobs for a pending one.
    pub(crate) fn preempt(&mut self, context: &mut StepContext, preemption: Preemption) {
        let Preemption { at, victims, claim } = preemption;
        if self.preemptions.claim_by(at).is_none() {
            self.reserved_hosts_changed(at);
        }
        for host in self.preemptions.claim(at, claim, context.now.secs()) {
            self.sched.host_changed(host);
        }
        self.follow_vacated(at);
        for victim in victims {
            self.preempt_one(context, victim);
        }
        self.note_limits();
    }

    /// Preempted jobs may go on where a job keeps slots, as these are not kept from them when it
    /// has preempted others.
    fn reserved_hosts_changed(&mut self, at: JobRef) {
        let reserved = self.state.slot_reservations().get(at);
        for on in reserved.iter().flat_map(|reserved| &reserved.hosts) {
            self.sched.host_changed(on.host);
        }
    }

    fn preempt_one(&mut self, context: &mut StepContext, at: JobRef) {
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|elem| &elem.state) else { return };
        let key = run.key;
        if self.queue_of(at).is_some_and(|queue| self.site.queues[queue].end_by_preemption) {
            return self.end_for(context, key, JobAction::EndByPreemption, term::PREEMPT);
        }
        self.phase_event(context, at, key.attempt, JobState::Ssusp, susp::PREEMPTED);
        self.preemptions.vacates(at);
        self.follow_vacated(at);
        self.act_on(context, key, Act::Suspend);
    }

    /// The host of a preempted job has told that it is suspended.
    pub(crate) fn preemption_told(&mut self, at: JobRef) {
        for host in self.preemptions.vacated(at) {
            self.sched.host_changed(host);
        }
        self.follow_vacated(at);
    }

    /// A pending job does not want the slots any more that others were preempted for.
    pub(crate) fn release_claim(&mut self, context: &StepContext, at: JobRef) {
        for host in self.preemptions.give_up_claim(at, context.now.secs()) {
            self.sched.host_changed(host);
        }
        self.follow_vacated(at);
        self.note_limits();
    }

    /// A preempted job goes on.
    pub(crate) fn resume_preempted(&mut self, context: &mut StepContext, at: JobRef) {
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|elem| &elem.state) else { return };
        let key = run.key;
        self.order_resume(context, key);
    }

    /// Everything about preemption anew, with a new configuration or a new state, behind the
    /// reservations.
    pub(crate) fn rebuild_preemptions(&mut self) {
        self.preemptions = self.preemptions.anew(&self.state, &self.site);
        if self.site.names.preempts_resources() {
            let started: Vec<JobRef> = self.state.counts().started().collect();
            started.into_iter().for_each(|at| self.follow_vacated(at));
        }
    }
}
