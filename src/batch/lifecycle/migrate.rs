//! bmig, bsub -mig, and MIG of lsb.queues and lsb.hosts: a started job that may be run again is
//! ended and goes back to its queue, from which it is dispatched before all others of its priority
//! there. LSB_MIG2PEND keeps the place it was submitted at, with LSB_REQUEUE_TO_BOTTOM it goes
//! behind all.
//!
//! The job is one that is requeued (brequeue) until its end: what holds for those when hosts or
//! mbatchd are lost holds for it, too.

use crate::batch::site::permissions::Caller;
use crate::batch::state::{ElemState, Phase, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::checkpoint::CheckpointOrder;
use crate::model::event::{Event, JobMigrate};
use crate::model::reason::{err, susp, term};
use crate::proto::sbd::Act;

/// Seconds between two looks for jobs that were suspended for too long.
const PAUSE: u64 = 5;

impl Mbatchd {
    /// Has one started job or element migrated; an lsberrno where it cannot be.
    pub(crate) fn migrate_one(
        &mut self,
        context: &mut StepContext,
        (who, request, by_admin, force): (&Caller, &str, bool, bool),
        at: JobRef,
    ) -> i32 {
        if self.state.job_chunks().waits(at) {
            self.leave_chunk(context, at);
            return 0;
        }
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else {
            return err::NOT_STARTED;
        };
        let key = run.key;
        if run.migrates {
            return err::MIGRATING;
        } else if run.requeue.is_some() {
            return err::REQUEUED;
        } else if run.killed.is_some() {
            return err::IN_PROGRESS;
        }
        let order = CheckpointOrder { kill: true, force, period: None };
        let checkpoint = self.checkpointable(at).then_some(order);
        if checkpoint.is_none() && !self.rerunnable(at) {
            return err::NOT_CHKPNT;
        }
        let record = JobMigrate {
            at,
            uid: who.uid,
            user: who.user.clone(),
            attempt: key.attempt,
            by_admin,
            checkpoint,
            request: request.to_string(),
            ..JobMigrate::default()
        };
        self.emit(context, Event::JobMigrate(Box::new(record)));
        let exit_info = if by_admin { term::REQUEUE_ADMIN } else { term::REQUEUE_OWNER };
        let act = checkpoint.map_or(Act::Terminate { exit_info }, Act::Checkpoint);
        self.act_on(context, key, act);
        0
    }

    /// bsub -mig, and MIG of a queue, application profile or host: jobs that have been SSUSP for
    /// as many minutes, but not for their run window, migrate if they may be run again.
    pub(crate) fn migrate_suspended(&mut self, context: &mut StepContext) {
        let some = !self.state.counts().suspended().is_empty();
        if !self.migration_checks.begin(context.now, PAUSE, some) {
            return;
        }
        let all = self.state.counts().suspended().iter().copied();
        let due: Vec<JobRef> =
            all.filter(|at| self.suspended_too_long(context.now.secs(), *at)).collect();
        let user = self.site.conf.base.cluster.admins.first().cloned().unwrap_or_default();
        let (uid, gid, host) = (0, 0, String::new());
        let who = Caller { uid, gid, user, host };
        for at in due {
            self.migrate_one(context, (&who, "", true, false), at);
        }
    }

    /// Has a started element been suspended for longer than its threshold?
    fn suspended_too_long(&self, now: i64, at: JobRef) -> bool {
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { return false };
        let Some(minutes) = self.migration_threshold(at, run) else { return false };
        let may = self.rerunnable(at) || self.checkpointable(at);
        // no host would let it run outside the run window of its queue
        let helps = run.phase != Phase::Ssusp(susp::WINDOW);
        let open = helps && run.killed.is_none() && !run.migrates && !run.unknown && may;
        let since = now.saturating_sub(run.susp_since);
        open && since >= i64::try_from(minutes).unwrap_or(i64::MAX).saturating_mul(60)
    }

    /// Minutes of suspension after which a started element migrates, or less where a host of it
    /// says less.
    fn migration_threshold(&self, at: JobRef, run: &Run) -> Option<u64> {
        let own = self.settings_at(at).and_then(|settings| settings.migration());
        let hosts = run.hosts.iter().filter_map(|(host, _)| self.site.hosts.get(*host)?.mig);
        hosts.chain(own).min()
    }
}
