//! Retries of elements that went back to the queue without a request: failed starts, with the
//! hosts passed over for a while and the pause before the next try; exit values that sent a job
//! back (REQUEUE_EXIT_VALUES), with the hosts passed over until mbatchd is started again
//! (EXCLUDE()).

use crate::batch::state::element::{Bar, PreemptionHistory, Tries};
use crate::batch::state::names::HostId;
use crate::model::JobRef;
use crate::model::event::{JobStatus, Retry};
use crate::model::reason::PendReason;
use std::collections::BTreeMap;

/// Failed starts and requeues of elements that have not ended.
#[derive(Debug, Default)]
pub struct ElementTries(BTreeMap<JobRef, Tries>);

impl ElementTries {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn of(&self, at: JobRef) -> Option<&Tries> {
        self.0.get(&at)
    }

    /// The elements of a job of which something is kept.
    pub fn of_job(&self, job: u32) -> impl Iterator<Item = (JobRef, &Tries)> {
        self.0.range(JobRef::all_of(job)).map(|(at, tries)| (*at, tries))
    }

    /// The elements of which something is kept.
    pub fn elements(&self) -> impl Iterator<Item = JobRef> + '_ {
        self.0.keys().copied()
    }

    /// Pending again, or still: a start has failed, perhaps because of this host, or somebody
    /// resumed the element and has it begin anew. `started`: when mbatchd was started last.
    pub(super) fn note_pending(
        &mut self,
        (t, started): (i64, i64),
        s: &JobStatus,
        host: Option<HostId>,
    ) {
        let reason = PendReason::of_number(s.reason);
        if reason == PendReason::Resumed {
            return self.change(s.at, |tries| {
                tries.begin_anew();
                tries.requeues = 0;
            });
        }
        let pre_exec = matches!(reason, PendReason::PreExec | PendReason::QueuePreExec);
        if !pre_exec && s.retry.is_none() {
            return;
        }
        let retry = s.retry.as_deref().cloned().unwrap_or_default();
        let tries = self.0.entry(s.at).or_default();
        match pre_exec {
            true => tries.pre_exec += 1,
            false => tries.failed += 1,
        }
        let Retry { host_until, until, note, excluded, .. } = retry;
        if let Some(host) = host.filter(|_| excluded && t >= started) {
            tries.passed_at = t;
            if let Err(place) = tries.passed.binary_search(&host) {
                tries.passed.insert(place, host);
            }
        }
        (tries.wait, tries.note) = ((t, until), note);
        tries.bars.retain(|bar| bar.holds(t) && Some(bar.host) != host);
        let bar = |host| Bar { host, from: t, until: host_until, why: reason };
        tries.bars.extend(host.map(bar));
    }

    /// Changes what is kept of an element, if anything is; nothing worth keeping goes.
    fn change(&mut self, at: JobRef, change: impl FnOnce(&mut Tries)) {
        if let Some(tries) = self.0.get_mut(&at) {
            change(tries);
            if *tries == Tries::default() {
                self.0.remove(&at);
            }
        }
    }

    /// Somebody resumed elements of a job, those that `which` names, and has them begin anew.
    pub(super) fn resumed(&mut self, job: u32, which: impl Fn(u32) -> bool) {
        let all: Vec<JobRef> = self.of_job(job).map(|(at, _)| at).collect();
        for at in all.into_iter().filter(|at| which(at.idx)) {
            self.change(at, |tries| {
                tries.begin_anew();
                tries.requeues = 0;
            });
        }
    }

    /// The element runs: failed starts count no more.
    pub(super) fn begin_anew(&mut self, at: JobRef) {
        self.change(at, Tries::begin_anew);
    }

    /// bmod: what kept the elements of a job from starting may be mended.
    pub(super) fn begin_job_anew(&mut self, job: u32) {
        let all: Vec<JobRef> = self.of_job(job).map(|(at, _)| at).collect();
        all.into_iter().for_each(|at| self.begin_anew(at));
    }

    /// mbatchd is started: EXCLUDE() was remembered until then. A log that was switched since has
    /// the start at its head, and behind it older records of the jobs that were carried over.
    pub(super) fn mbatchd_started(&mut self, t: i64) {
        self.0.retain(|_, tries| {
            if tries.passed_at < t {
                (tries.passed, tries.passed_at) = Default::default();
            }
            *tries != Tries::default()
        });
    }

    /// The element goes back to the queue for its exit value.
    pub(super) fn count_requeue(&mut self, at: JobRef) {
        let tries = self.0.entry(at).or_default();
        (tries.requeues, tries.pre_exec) = (tries.requeues + 1, 0);
    }

    /// The element has a checkpoint to restart from, or is to begin anew.
    pub(super) fn set_checkpointed(&mut self, at: JobRef, checkpointed: bool) {
        match checkpointed {
            true => self.0.entry(at).or_default().checkpointed = true,
            false => self.change(at, |tries| tries.checkpointed = false),
        }
    }

    /// The run of an element that was preempted is over, and it goes back to its queue.
    pub(super) fn count_preempted(&mut self, at: JobRef, preempted: PreemptionHistory) {
        if preempted.times > 0 {
            self.0.entry(at).or_default().preempted.add(preempted);
        }
    }

    /// The element is back in the queue: it passes over these hosts, and waits until then.
    pub(super) fn requeued(&mut self, t: i64, at: JobRef, passed: Vec<HostId>, until: i64) {
        if !passed.is_empty() || until > 0 || self.0.contains_key(&at) {
            let tries = self.0.entry(at).or_default();
            tries.passed_at = if passed.is_empty() { 0 } else { t };
            (tries.passed, tries.wait) = (passed, (t, until));
        }
    }

    /// The element has ended.
    pub(super) fn forget(&mut self, at: JobRef) {
        self.0.remove(&at);
    }

    /// The job leaves memory.
    pub(super) fn forget_job(&mut self, job: u32) {
        let gone: Vec<JobRef> = self.of_job(job).map(|(at, _)| at).collect();
        gone.into_iter().for_each(|at| self.forget(at));
    }
}
