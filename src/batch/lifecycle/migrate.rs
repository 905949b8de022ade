//! bmig: a started job that may be run again is ended and goes back to its queue, from which it is
//! dispatched before all others of its priority there. LSB_MIG2PEND keeps the place it was
//! submitted at, with LSB_REQUEUE_TO_BOTTOM it goes behind all.
//!
//! Until its end the job is one that is requeued (brequeue): what holds for those when hosts or
//! mbatchd are lost holds for it, too.

use crate::batch::site::permissions::Caller;
use crate::batch::state::ElemState;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Event, JobMigrate, QueuePosition};
use crate::model::reason::{err, term};
use crate::proto::sbd::Act;

/// The place of a migrating job, before all that were ever submitted or moved.
fn first_place(job: u32) -> QueuePosition {
    QueuePosition::submitted(0, job)
}

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

    /// Gives an element that goes back to its queue its place there.
    pub(crate) fn place_requeued(&mut self, context: &mut StepContext, at: JobRef) {
        let Some(job) = self.state.job(at.job) else { return };
        let migrates = matches!(
            self.state.elem(at).map(|e| &e.state), Some(ElemState::Run(run)) if run.migrates
        );
        let lsf = &self.site.conf.base.lsf;
        let (keeps, behind) = (lsf.yes("LSB_MIG2PEND"), lsf.yes("LSB_REQUEUE_TO_BOTTOM"));
        let now = self.state.spot_of(job, job.part_no(at.idx));
        let place = match migrates && !keeps {
            true => first_place(at.job),
            false if behind => QueuePosition::submitted(context.now.secs(), at.job),
            // a place of an earlier migration is not kept
            false if now == first_place(at.job) => {
                QueuePosition::submitted(job.submit_time, at.job)
            }
            false => return,
        };
        if place == now {
            return;
        }
        let (uid, user) = (job.uid, self.state.names().user(job.user).to_string());
        let top = place == first_place(at.job);
        self.sched.drop_entry(at.job);
        let place = Some(place);
        self.emit(context, Event::JobMove { at, position: 1, top, uid, user, place });
    }
}
