//! Retries of elements that went back to the queue without a request: failed starts, with the
//! hosts passed over for a while and the pause before the next try; exit values that sent a job
//! back (REQUEUE_EXIT_VALUES), with the hosts passed over until mbatchd is started again
//! (EXCLUDE()). Like everything that changes the state this is only reached through `apply`.

use crate::batch::state::change::Applied;
use crate::batch::state::{Bar, Elem, ElemState, Pend, State, Tries};
use crate::model::JobRef;
use crate::model::event::{JobStatus, Retry};
use crate::model::job::stat;
use crate::model::reason::PendReason;

impl State {
    /// Pending again, or still: a start has failed, or somebody resumed it and has it begin anew.
    pub(crate) fn note_pending(&mut self, t: i64, s: &JobStatus) {
        let reason = PendReason::of_number(s.reason);
        if reason == PendReason::Resumed {
            return self.tried(s.at, |tries| {
                tries.begin_anew();
                tries.requeues = 0;
            });
        }
        let pre_exec = matches!(reason, PendReason::PreExec | PendReason::QueuePreExec);
        if !pre_exec && s.retry.is_none() {
            return;
        }
        let retry = s.retry.as_deref().cloned().unwrap_or_default();
        let host = (!retry.host.is_empty()).then(|| self.names.hosts.id(&retry.host));
        let tries = self.tries.entry(s.at).or_default();
        match pre_exec {
            true => tries.pre_exec += 1,
            false => tries.failed += 1,
        }
        let Retry { host_until, until, note, .. } = retry;
        (tries.wait, tries.note) = ((t, until), note);
        tries.bars.retain(|bar| bar.holds(t) && Some(bar.host) != host);
        let bar = |host| Bar { host, from: t, until: host_until, why: reason };
        tries.bars.extend(host.map(bar));
    }

    /// Changes what is kept of an element, if anything is; nothing worth keeping goes.
    fn tried(&mut self, at: JobRef, change: impl FnOnce(&mut Tries)) {
        if let Some(tries) = self.tries.get_mut(&at) {
            change(tries);
            if *tries == Tries::default() {
                self.tries.remove(&at);
            }
        }
    }

    /// The element runs: failed starts count no more.
    pub(crate) fn retries_over(&mut self, at: JobRef) {
        self.tried(at, Tries::begin_anew);
    }

    /// bmod: what kept the elements of a job from starting may be mended.
    pub(crate) fn retry_modified(&mut self, job: u32) {
        for at in self.tried_of(job) {
            self.retries_over(at);
        }
    }

    /// The elements of a job of which something is kept.
    pub fn tried_of(&self, job: u32) -> Vec<JobRef> {
        let all = JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX };
        self.tries.range(all).map(|(at, _)| *at).collect()
    }

    /// mbatchd is started: EXCLUDE() was remembered until then. A log that was switched since has
    /// the start at its head, and behind it older records of the jobs that were carried over.
    pub(crate) fn started(&mut self, t: i64) {
        self.started_at = t;
        self.tries.retain(|_, tries| {
            if tries.passed_at < t {
                (tries.passed, tries.passed_at) = Default::default();
            }
            *tries != Tries::default()
        });
    }

    pub(crate) fn requeue(
        &mut self,
        t: i64,
        at: JobRef,
        held: Option<PendReason>,
        uncounted: bool,
        passed: &[String],
        until: i64,
    ) -> Applied {
        let over = |e: &Elem| matches!(&e.state, ElemState::Run(_) | ElemState::End(_));
        if !self.elem(at).is_some_and(over) {
            return Applied::Rejected("requeue of a job that is not started");
        }
        let unasked = |e: &Elem| matches!(&e.state, ElemState::Run(r) if r.requeue.is_none());
        if self.elem(at).is_some_and(unasked) && !uncounted {
            let tries = self.tries.entry(at).or_default();
            (tries.requeues, tries.pre_exec) = (tries.requeues + 1, 0);
        }
        if self.elem(at).is_some_and(|e| e.stat() == stat::UNKWN) {
            self.leave(at);
        }
        let passed = if t < self.started_at { &[] } else { passed };
        let passed: Vec<_> = passed.iter().map(|host| self.names.hosts.id(host)).collect();
        if !passed.is_empty() || until > 0 || self.tries.contains_key(&at) {
            let tries = self.tries.entry(at).or_default();
            tries.passed_at = if passed.is_empty() { 0 } else { t };
            (tries.passed, tries.wait) = (passed, (t, until));
        }
        // what still runs after it says nothing of its next run
        self.forget_posts(at, at);
        self.set(at, |e| {
            e.state = ElemState::Pend(Pend { since: t, held, reason: Some(PendReason::Requeued) });
        })
    }
}
