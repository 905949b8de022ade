//! bmig: a started job that may be run again is ended and goes back to its queue, from which it is
//! dispatched before all others of its priority there. LSB_MIG2PEND keeps the place it was
//! submitted at, with LSB_REQUEUE_TO_BOTTOM it goes behind all.
//!
//! The job is one that is requeued (brequeue) until its end: what holds for those when hosts or
//! mbatchd are lost holds for it, too.

use crate::batch::site::permissions::Caller;
use crate::batch::state::ElemState;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Event, JobMigrate};
use crate::model::reason::{err, term};
use crate::proto::sbd::Act;

impl Mbatchd {
    /// Has one started job or element migrated; an lsberrno where it cannot be.
    pub(crate) fn migrate_one(
        &mut self,
        context: &mut StepContext,
        (who, request, by_admin): (&Caller, &str, bool),
        at: JobRef,
    ) -> i32 {
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
        } else if !self.rerunnable(at) {
            return err::NOT_CHKPNT;
        }
        let record = JobMigrate {
            at,
            uid: who.uid,
            user: who.user.clone(),
            attempt: key.attempt,
            by_admin,
            request: request.to_string(),
            ..JobMigrate::default()
        };
        self.emit(context, Event::JobMigrate(Box::new(record)));
        let exit_info = if by_admin { term::REQUEUE_ADMIN } else { term::REQUEUE_OWNER };
        self.act_on(context, key, Act::Terminate { exit_info });
        0
    }
}
