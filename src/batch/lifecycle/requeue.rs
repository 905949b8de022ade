//! Changes of jobs that nobody asked for: exit values that send them back to their queue (-Q,
//! REQUEUE_EXIT_VALUES), pre-execution commands that fail too often, dependencies that can never
//! hold (-ti).

use crate::batch::lifecycle::control_work::Cursor;
use crate::batch::lifecycle::retry::pause;
use crate::batch::lifecycle::works::{ElementDeed, ElementWork, Left, UNIT};
use crate::batch::site::Queue;
use crate::batch::state::{ElemState, Job};
use crate::batch::{Mbatchd, StepContext};
use crate::lang::depend::DepValue;
use crate::lang::exitcodes::ExitCodes;
use crate::model::JobRef;
use crate::model::event::{Event, JobStatus};
use crate::model::job::exit_code;
use crate::model::job::{End, JobSpec, extra, stat};
use crate::model::reason::{pend, term};
use crate::model::time::US;
use crate::proto::sbd::TaskState;
use std::sync::Arc;

/// LOCAL_MAX_PREEXEC_RETRY where nobody set it.
const PREEXEC_RETRIES: u32 = i32::MAX as u32;

impl Mbatchd {
    /// A parameter of the queue, else of lsb.params, as written.
    fn param<'a>(&'a self, queue: Option<&'a Queue>, name: &str) -> Option<&'a str> {
        let own = queue.and_then(|q| q.conf.raw.get(name));
        let all = || self.site.params().raw.get(name);
        own.or_else(all).map(|v| v.text.trim())
    }

    fn queue_at(&self, at: JobRef) -> Option<&Queue> {
        let job = self.state.job(at.job)?;
        self.site.queue(job.queue_at(at.idx))
    }

    /// The submission as a host is told it: with the exit values of its queue where it has none
    /// of its own.
    pub(crate) fn with_exit_codes(
        &self,
        spec: &Arc<JobSpec>,
        queue: Option<&Queue>,
    ) -> Arc<JobSpec> {
        let of_queue = queue.and_then(|q| q.conf.requeue_exit_values.as_deref());
        let mut spec = spec.clone();
        if let Some(codes) = of_queue.filter(|_| spec.given(extra::REQUEUE).is_empty()) {
            let own = Arc::make_mut(&mut spec);
            own.extra.push((extra::REQUEUE.to_string(), codes.to_string()));
        }
        spec
    }

    /// Sends an element that ended by one of its exit values back to the queue; held where it
    /// came back too often (MAX_JOB_REQUEUE). False: it has ended.
    pub(crate) fn requeued_by_exit(
        &mut self,
        cx: &mut StepContext,
        t: &TaskState,
        end: End,
    ) -> bool {
        let at = t.key.job_ref();
        let End::Status(status) = end else { return false };
        let Some(code) = exit_code(Some(status)) else { return false };
        let queue = self.queue_at(at);
        let Some(job) = self.state.job(at.job) else { return false };
        let own = job.spec_at(at.idx).given(extra::REQUEUE);
        let of_queue = queue.and_then(|q| q.conf.requeue_exit_values.as_deref());
        let words = if own.is_empty() { of_queue.unwrap_or("") } else { own };
        let Some(codes) = ExitCodes::parse(words) else { return false };
        if !codes.has(code) {
            return false;
        }
        let before = self.state.tries.get(&at).map_or(0, |t| t.requeues);
        let held = if before >= self.most_requeues(queue) { pend::REQUEUE_LIMIT } else { 0 };
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { return false };
        let started = run.start_time;
        let mut passed = self.passed(at);
        if codes.excludes(code)
            && let Some(i) = self.first_host(run)
        {
            passed.push(self.links.hosts[i].name.clone());
            passed.sort_unstable();
            passed.dedup();
        }
        let until = self.requeued_until(cx, started, before + 1);
        let (uncounted, exit, request) = (false, Some(code), String::new());
        self.send_back(cx, Event::JobRequeue { at, held, uncounted, passed, until, exit, request });
        true
    }

    /// How often a job of the queue goes back to it by its exit value.
    fn most_requeues(&self, queue: Option<&Queue>) -> u32 {
        self.param(queue, "MAX_JOB_REQUEUE").and_then(|n| n.parse().ok()).unwrap_or(u32::MAX)
    }

    /// If it goes back by its exit value this time, is it held?
    pub(crate) fn requeued_enough(&self, at: JobRef, queue: Option<&Queue>) -> bool {
        let before = self.state.tries.get(&at).map_or(0, |t| t.requeues);
        before >= self.most_requeues(queue)
    }

    /// When a job that went back for the `n`th time may start, seconds since the epoch: in the
    /// next scheduling interval at the earliest, and so long after its last start as the pause
    /// that doubles each time says. A job that ran for long has waited already.
    fn requeued_until(&self, cx: &StepContext, started: i64, n: u32) -> i64 {
        let interval = self.site.params().sched_interval_min_ms.div_ceil(1000).max(1);
        let secs = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let next = cx.now.secs().saturating_add(secs(interval));
        next.max(started.saturating_add(secs(pause(interval, n))))
    }

    /// A pre-execution command has failed once more: it was asked often enough?
    pub(crate) fn tried_enough(&mut self, cx: &mut StepContext, at: JobRef) {
        let queue = self.queue_at(at);
        let number = |name: &str| self.param(queue, name).and_then(|n| n.parse::<u32>().ok());
        let most = number("LOCAL_MAX_PREEXEC_RETRY").unwrap_or(PREEXEC_RETRIES);
        let exits = self
            .param(queue, "LOCAL_MAX_PREEXEC_RETRY_ACTION")
            .is_some_and(|action| action.eq_ignore_ascii_case("exit"));
        if self.state.tries.get(&at).is_none_or(|t| t.pre_exec <= most) {
            return;
        }
        if exits {
            return self.exit_unstarted(cx, at, term::PRE_EXEC_FAIL);
        }
        let status = stat::PSUSP;
        let s = JobStatus { at, status, reason: pend::PREEXEC_LIMIT, ..JobStatus::default() };
        self.emit(cx, Event::JobStatus(Box::new(s)));
    }

    /// Ends elements whose condition can never hold: with -ti at once, else where
    /// ORPHAN_JOB_TERM_GRACE_PERIOD is over.
    pub(crate) fn end_orphans(&mut self, cx: &mut StepContext, id: u32) {
        let graced = self.site.params().orphan_grace.is_some();
        let whole = JobRef { job: id, idx: 0 };
        let known = self.deps.watched(id).then(|| self.state.job(id)).flatten();
        let Some(job) = known.filter(|j| j.depend.is_some()) else {
            return self.deps.set_orphan(whole, 0, false);
        };
        // those that are on their way to their end are looked at no more
        if self.works.ends(id) {
            return;
        }
        let parts = job.parts().len() as u32;
        if !graced && !(0..=parts).any(|part| ends_at_once(job, part)) {
            return self.deps.no_orphans(id);
        }
        let never = self.deps.value(id) == DepValue::Never;
        let mut now: Vec<u32> = Vec::new();
        if let Some(turned) = self.deps.turned(id) {
            for (idx, never) in turned {
                let orphan = never && self.waits_at(JobRef { job: id, idx });
                let Some(job) = self.state.job(id) else { return };
                let at_once = orphan && ends_at_once(job, job.part_no(idx));
                now.extend(at_once.then_some(idx));
                let later = orphan && !at_once && graced;
                self.deps.set_orphan(JobRef { job: id, idx }, cx.now.mono_us, later);
            }
        } else if never && job.tally.total as usize > UNIT {
            let later = graced && !(0..=parts).all(|part| ends_at_once(job, part));
            if (0..=parts).any(|part| ends_at_once(job, part)) {
                let left = Left::All(Cursor::default());
                let deed = ElementDeed::EndOrphans { at_once: true };
                self.works.put_elements(ElementWork { job: id, left, deed });
            }
            return self.deps.set_orphan(whole, cx.now.mono_us, later);
        } else {
            let all = if never { job.indices() } else { Vec::new() };
            let waits = |idx: &u32| self.waits_at(JobRef { job: id, idx: *idx });
            let (ends, later): (Vec<u32>, Vec<u32>) =
                all.into_iter().filter(waits).partition(|idx| ends_at_once(job, job.part_no(*idx)));
            now = ends;
            self.deps.set_orphan(whole, cx.now.mono_us, graced && !later.is_empty());
        }
        if now.len() > UNIT {
            now.reverse();
            let deed = ElementDeed::EndOrphans { at_once: false };
            self.works.put_elements(ElementWork { job: id, left: Left::These(now), deed });
            return;
        }
        for idx in now {
            self.end_orphan(cx, JobRef { job: id, idx }, false);
        }
        self.orphans_due(cx);
    }

    fn waits_at(&self, at: JobRef) -> bool {
        let view = self.state.job(at.job).and_then(|j| j.view(at.idx));
        view.is_some_and(|v| v.stat() & (stat::PEND | stat::PSUSP) != 0)
    }

    /// An orphan ends, if it waits still, and for what can never be.
    pub(crate) fn end_orphan(&mut self, cx: &mut StepContext, at: JobRef, at_once: bool) {
        let asked = |job: &Job| !at_once || ends_at_once(job, job.part_no(at.idx));
        let never = self.waits_at(at) && self.deps.never(at);
        if never && self.state.job(at.job).is_some_and(asked) {
            self.exit_unstarted(cx, at, term::ORPHAN_SYSTEM);
        }
    }

    pub(crate) fn orphan_deadline(&self) -> Option<u64> {
        let grace = self.site.params().orphan_grace?;
        Some(self.deps.first_orphan()?.saturating_add(grace.saturating_mul(US)))
    }

    /// Orphans whose time is over end.
    pub(crate) fn orphans_due(&mut self, cx: &mut StepContext) {
        let now = cx.now.mono_us;
        if self.orphan_deadline().is_none_or(|at| at > now) {
            return;
        }
        let grace = self.site.params().orphan_grace.unwrap_or_default().saturating_mul(US);
        for at in self.deps.orphans_by(now.saturating_sub(grace), UNIT) {
            self.deps.set_orphan(at, 0, false);
            match self.state.job(at.job) {
                Some(job) if at.idx == 0 && job.is_array() => {
                    let (left, deed) =
                        (Left::All(Cursor::default()), ElementDeed::EndOrphans { at_once: false });
                    self.works.put_elements(ElementWork { job: at.job, left, deed });
                }
                _ => self.end_orphan(cx, at, false),
            }
        }
    }

    /// At a start, or when the log can be written again: orphans that nobody has ended.
    pub(crate) fn end_all_orphans(&mut self, cx: &mut StepContext) {
        let some = self.state.each_job().filter(|job| job.depend.is_some());
        let ids: Vec<u32> = some.map(|job| job.id).collect();
        ids.into_iter().for_each(|id| self.end_orphans(cx, id));
    }
}

/// Do elements of this part end as soon as they are orphans (-ti)?
fn ends_at_once(job: &Job, part: u32) -> bool {
    !job.spec_of(part).given(extra::ORPHAN).is_empty()
}
