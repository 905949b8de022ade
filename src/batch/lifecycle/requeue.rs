//! Changes of jobs that nobody asked for: exit values that send them back to their queue (-Q,
//! REQUEUE_EXIT_VALUES), pre-execution commands that fail too often, dependencies that can never
//! hold (-ti).

use crate::batch::site::settings::Settings;
use crate::batch::state::ElemState;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Event, JobStatus, QueuePosition};
use crate::model::job::{End, exit_code};
use crate::model::job_state::JobState;
use crate::model::reason::{PendReason, term};
use crate::proto::sbd::TaskState;

/// Longest pause, seconds.
pub const RETRY_MOST: u64 = 600;

/// A pause that doubles: `n` counts from 1.
pub fn pause(first: u64, n: u32) -> u64 {
    let factor = 1u64.checked_shl(n.saturating_sub(1)).unwrap_or(u64::MAX);
    first.max(1).saturating_mul(factor).min(RETRY_MOST)
}

/// The place of a migrating job, before all that were ever submitted or moved.
fn first_place(job: u32) -> QueuePosition {
    QueuePosition::submitted(0, job)
}

impl Mbatchd {
    /// The parameters that act for an element.
    pub(crate) fn settings_at(&self, at: JobRef) -> Option<Settings<'_>> {
        let job = self.state.job(at.job)?;
        Some(self.site.settings(job.spec_at(at.idx), self.site.queue(job.queue_at(at.idx))))
    }

    /// Sends an element that ended by one of its exit values back to the queue; held where it
    /// came back too often (MAX_JOB_REQUEUE). False: it has ended.
    pub(crate) fn requeued_by_exit(
        &mut self,
        context: &mut StepContext,
        t: &TaskState,
        end: End,
    ) -> bool {
        let at = t.key.job_ref();
        let End::Status(status) = end else { return false };
        let Some(code) = exit_code(Some(status)) else { return false };
        let Some(settings) = self.settings_at(at) else { return false };
        let Some(codes) = settings.requeue_codes() else { return false };
        if !codes.has(code) {
            return false;
        }
        let before = self.state.tries().of(at).map_or(0, |t| t.requeues);
        let enough = before >= settings.retry_limits().requeues;
        let held = enough.then_some(PendReason::RequeueLimit);
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { return false };
        let started = run.start_time;
        let mut passed = self.passed(at);
        if codes.excludes(code)
            && let Some(i) = self.first_host(run)
        {
            passed.push(self.links.hosts()[i].name.clone());
            passed.sort_unstable();
            passed.dedup();
        }
        let until = self.requeued_until(context, started, before + 1);
        let (uncounted, exit, request) = (false, Some(code), String::new());
        self.place_requeued(context, at, uncounted);
        self.send_back(
            context,
            Event::JobRequeue { at, held, uncounted, passed, until, exit, request },
        );
        true
    }

    /// When a job that went back for the `n`th time may start, seconds since the epoch: in the
    /// next scheduling interval at the earliest, and so long after its last start as the pause
    /// that doubles each time says. A job that ran for long has waited already.
    fn requeued_until(&self, context: &StepContext, started: i64, n: u32) -> i64 {
        let interval = self.site.params().sched_interval_min_ms.div_ceil(1000).max(1);
        let secs = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let now = context.now.secs();
        let next = now.saturating_add(secs(interval));
        // a clock that was set back makes the start lie ahead
        next.max(started.min(now).saturating_add(secs(pause(interval, n))))
    }

    /// A pre-execution command has failed once more: it was asked often enough?
    pub(crate) fn tried_enough(&mut self, context: &mut StepContext, at: JobRef) {
        let Some(limits) = self.settings_at(at).map(|settings| settings.retry_limits()) else {
            return;
        };
        if self.state.tries().of(at).is_none_or(|t| t.pre_exec <= limits.pre_exec) {
            return;
        }
        if limits.pre_exec_exits {
            return self.exit_unstarted(context, at, term::PRE_EXEC_FAIL);
        }
        let status = JobState::Psusp.into();
        let s = JobStatus {
            at,
            status,
            reason: PendReason::PreExecLimit.number(),
            ..JobStatus::default()
        };
        self.emit(context, Event::JobStatus(Box::new(s)));
    }

    pub(crate) fn back_to_queue(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        held: Option<PendReason>,
    ) {
        self.requeue(context, at, held, false);
    }

    /// Requeues an element. The dependency condition is watched again if the start ended that.
    /// Hosts that the element avoids (EXCLUDE()) stay avoided.
    pub(crate) fn requeue(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        held: Option<PendReason>,
        uncounted: bool,
    ) {
        self.requeue_for(context, at, (held, uncounted), String::new());
    }

    /// Sends an element back to its queue for the request of this id.
    pub(crate) fn requeue_asked(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        held: Option<PendReason>,
        request: &str,
    ) {
        self.requeue_for(context, at, (held, false), request.to_string());
    }

    pub(crate) fn requeue_for(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        (held, uncounted): (Option<PendReason>, bool),
        request: String,
    ) {
        self.place_requeued(context, at, uncounted);
        let passed = self.passed(at);
        let (until, exit) = (0, None);
        let event = Event::JobRequeue { at, held, uncounted, passed, until, exit, request };
        self.send_back(context, event);
    }

    /// The hosts that an element is not to go to.
    pub(crate) fn passed(&self, at: JobRef) -> Vec<String> {
        let name = |host: &HostId| self.state.names().host(*host).to_string();
        self.state.tries().of(at).map_or(Vec::new(), |t| t.passed.iter().map(name).collect())
    }

    fn migrates(&self, at: JobRef) -> bool {
        let state = self.state.elem(at).map(|e| &e.state);
        matches!(state, Some(ElemState::Run(run)) if run.migrates)
    }

    /// Gives an element that goes back to its queue its place there; `uncounted`: for the sake of
    /// its host.
    fn place_requeued(&mut self, context: &mut StepContext, at: JobRef, uncounted: bool) {
        let Some(job) = self.state.job(at.job) else { return };
        let migrates = self.migrates(at);
        let lsf = &self.site.conf.base.lsf;
        let (keeps, behind) = (lsf.yes("LSB_MIG2PEND"), lsf.yes("LSB_REQUEUE_TO_BOTTOM"));
        let now = self.state.spot_of(job, job.part_no(at.idx));
        let place = match migrates && !keeps {
            true => first_place(at.job),
            // by absolute priority it stands where it did, or as if it were submitted now
            false
                if self.counts_anew(at)
                    && (migrates || uncounted)
                    && now != first_place(at.job) =>
            {
                return;
            }
            false if self.counts_anew(at) => QueuePosition::submitted(context.now.secs(), at.job),
            false if behind => QueuePosition::submitted(context.now.secs(), at.job),
            // a place of an earlier migration is not kept
            false if now == first_place(at.job) => {
                QueuePosition::submitted(job.submit_time, at.job)
            }
            false => return,
        };
        if place != now {
            self.put_at(context, at, place);
        }
    }

    /// Puts an element that is started behind all that wait now, for when it goes back.
    pub(crate) fn put_behind(&mut self, context: &mut StepContext, at: JobRef) {
        self.put_at(context, at, QueuePosition::submitted(context.now.secs(), at.job));
    }

    fn put_at(&mut self, context: &mut StepContext, at: JobRef, place: QueuePosition) {
        let Some(job) = self.state.job(at.job) else { return };
        let (uid, user) = (job.uid, self.state.names().user(job.user).to_string());
        let top = place == first_place(at.job);
        self.sched.drop_entry(at.job);
        let place = Some(place);
        self.emit(context, Event::JobMove { at, position: 1, top, uid, user, place });
    }

    pub(crate) fn send_back(&mut self, context: &mut StepContext, event: Event) {
        let Event::JobRequeue { at, uncounted, .. } = event else { return };
        let anew = !uncounted && self.counts_anew(at) && !self.migrates(at);
        self.emit(context, event);
        if anew {
            self.forget_absolute_priority(context, at);
        }
        let depends = self.state.job(at.job).is_some_and(|job| job.depend.is_some());
        if depends && !self.deps.watched(at.job) {
            self.watch_depend(at.job);
            self.refresh(at.job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::lifecycle::retry::RETRY_FIRST;

    #[test]
    fn a_pause_doubles_up_to_the_longest() {
        let all: Vec<u64> = (1..=9).map(|n| pause(RETRY_FIRST, n)).collect();
        assert_eq!(all, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!((pause(1, 0), pause(0, 1), pause(3, u32::MAX)), (1, 1, RETRY_MOST));
    }
}
