//! bchkpnt: a started job is checkpointed by its host, now or at intervals (bchkpnt(1)).
//!
//! A request is logged (JOB_SIGACT) before the host hears of it, and ordered again when the host
//! tells of the attempt, until the host has told of a checkpoint asked for (CHKPNT). So none is
//! lost with mbatchd, the host's agent or their connection; one may be carried out twice.

use crate::batch::site::permissions::Caller;
use crate::batch::state::ElemState;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::checkpoint::CheckpointOrder;
use crate::model::event::{CheckpointStep, Event, JobCheckpoint};
use crate::model::reason::err;
use crate::proto::sbd::{Act, AttemptPhase, TaskState};

impl Mbatchd {
    /// Does the job of an element have a checkpoint directory?
    pub(crate) fn checkpointable(&self, at: JobRef) -> bool {
        let job = self.state.job(at.job);
        job.is_some_and(|j| j.spec_at(at.idx).further.checkpoint.is_some())
    }

    /// Has one started job or element checkpointed; an lsberrno where it cannot be.
    pub(crate) fn checkpoint_one(
        &mut self,
        context: &mut StepContext,
        (who, request): (&Caller, &str),
        order: CheckpointOrder,
        at: JobRef,
    ) -> i32 {
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else {
            return err::NOT_STARTED;
        };
        let key = run.key;
        if run.migrates {
            return err::MIGRATING;
        } else if run.killed.is_some() {
            return err::IN_PROGRESS;
        } else if !self.checkpointable(at) {
            return err::NOT_CHKPNT;
        }
        let record = JobCheckpoint {
            at,
            attempt: key.attempt,
            pid: run.pid,
            uid: who.uid,
            user: who.user.clone(),
            request: request.to_string(),
            step: CheckpointStep::Asked(order),
        };
        self.emit(context, Event::JobCheckpoint(Box::new(record)));
        self.act_on(context, key, Act::Checkpoint(order));
        0
    }

    /// A host tells of an attempt that runs as mbatchd knows it, and of its last checkpoint.
    pub(crate) fn checkpoint_told(&mut self, context: &mut StepContext, i: HostId, t: &TaskState) {
        let Some(run) = self.state.running(t.key) else { return };
        let (known, pid) = (run.checkpoint, run.pid);
        if t.checkpoint.number > known.number {
            let record = JobCheckpoint {
                at: t.key.job_ref(),
                attempt: t.key.attempt,
                pid,
                step: CheckpointStep::Ended(t.checkpoint),
                ..JobCheckpoint::default()
            };
            self.emit(context, Event::JobCheckpoint(Box::new(record)));
        }
        let runs = matches!(t.phase, AttemptPhase::Running | AttemptPhase::Suspended);
        let Some(run) = self.state.running(t.key).filter(|r| runs && r.killed.is_none()) else {
            return;
        };
        let wanted = run.checkpoint;
        if wanted.period.is_some() && wanted.period != t.checkpoint.period {
            let order = CheckpointOrder { period: wanted.period, ..CheckpointOrder::default() };
            self.act(context, t.key, i, Act::Checkpoint(order));
        }
        if let Some(order) = wanted.asked {
            self.act(context, t.key, i, Act::Checkpoint(order));
        }
    }
}
