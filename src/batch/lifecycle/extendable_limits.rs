//! EXTENDABLE_RUNLIMIT of lsb.queues(5): a job that reaches its run limit goes on while no pending
//! job of a queue with the same or a higher priority wants what it has; else it has a time of grace
//! and ends then, or goes back to its queue.
//!
//! A limit that is extended or made hard is logged (LSF_RUN_LIMIT), so that a restart keeps it. The
//! look comes behind the pass of the scheduler: a job that found other hosts wants none.

use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, Phase, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::ExtendableRunLimit;
use crate::model::JobRef;
use crate::model::action::{JobAction, Requeued};
use crate::model::event::{Event, RunLimitChange};
use crate::model::reason::term;

/// Jobs that one turn decides about.
const MOST_DECIDED: usize = 8;
/// Seconds that a decision waits for a pass to come to its end, at most.
const PATIENCE: i64 = 5;

/// A started job of a queue with EXTENDABLE_RUNLIMIT.
struct Limited<'a> {
    run: &'a Run,
    rule: ExtendableRunLimit,
    priority: u32,
    /// When it reaches its limit, seconds since the epoch.
    end: i64,
}

impl Limited<'_> {
    fn secs(&self) -> u64 {
        self.run.extendable_limit(self.rule).secs
    }

    /// The seconds that it has run by now.
    fn ran(&self, now: i64) -> u64 {
        now.saturating_sub(self.end).saturating_add_unsigned(self.secs()).max(0).unsigned_abs()
    }

    /// The limit that it gets where nobody wants what it has.
    fn extended(&self, now: i64) -> u64 {
        let (secs, step) = (self.secs(), self.rule.increment_secs.max(1));
        // mbatchd may have been down when it reached the limit
        let steps = self.ran(now).saturating_sub(secs) / step + 1;
        secs.saturating_add(steps.saturating_mul(step))
    }
}

impl Mbatchd {
    /// Looks at the started jobs that have reached an extendable run limit.
    pub(crate) fn extendable_limits_due(&mut self, context: &mut StepContext) {
        let (now, wanted) = (context.now.secs(), self.site.extends_run_limits());
        let some = self.extendable.slice(context.now, wanted, self.state.counts());
        for (host, at) in some {
            let found =
                self.limited(at).filter(|job| job.run.hosts.first().map(|on| on.0) == Some(host));
            if let Some(end) = found.map(|job| job.end) {
                self.extendable.note(at, end, now);
            }
        }
        for _ in 0..MOST_DECIDED {
            let Some(at) = self.extendable.take(now) else { break };
            self.decide_on_limit(context, at);
        }
    }

    /// A job that runs and has an extendable run limit.
    fn limited(&self, at: JobRef) -> Option<Limited<'_>> {
        let job = self.state.job(at.job)?;
        let ElemState::Run(run) = &job.elem(at.idx)?.state else { return None };
        let queue = self.site.queue(job.queue_at(at.idx))?;
        let rule = queue.conf.extendable?;
        if run.killed.is_some() || !matches!(run.phase, Phase::Starting | Phase::Running) {
            return None;
        }
        let end = run.has_run_for(run.extendable_limit(rule).secs);
        Some(Limited { run, rule, priority: queue.conf.priority, end })
    }

    fn decide_on_limit(&mut self, context: &mut StepContext, at: JobRef) {
        let now = context.now.secs();
        let Some(job) = self.limited(at) else { return };
        let (key, rule, end) = (job.run.key, job.rule, job.end);
        if end > now {
            return self.extendable.note(at, end, now);
        }
        let hard = job.run.extendable_limit(rule).hard;
        if !hard && !self.sched.is_settled() && now < end.saturating_add(PATIENCE) {
            return self.extendable.note(at, now + 1, now);
        }
        let hosts: Vec<HostId> = job.run.hosts.iter().map(|on| on.0).collect();
        let wanted = hard || self.sched.are_wanted(&self.view(), job.priority, &hosts);
        let (ran, extended) = (job.ran(now), job.extended(now));
        let (secs, hard_now) = match wanted {
            true if hard || rule.grace_secs == 0 => {
                if !rule.requeue {
                    let action = JobAction::EndByRunLimit;
                    return self.end_for(context, key, action, term::RUNLIMIT);
                }
                // in its old place it would get the slots again that others want
                self.put_behind(context, at);
                let action = JobAction::Requeue(Requeued::Pending);
                return self.end_for(context, key, action, term::REQUEUE_ADMIN);
            }
            true => (ran.saturating_add(rule.grace_secs), true),
            false => (extended, false),
        };
        let change = RunLimitChange { at, attempt: key.attempt, secs, hard: hard_now };
        self.emit(context, Event::RunLimit(change));
        // jobs that wait for its slots may start at another time
        self.sched.reservation_changed();
        if let Some(end) = self.limited(at).map(|job| job.end) {
            self.extendable.note(at, end, now);
        }
    }
}
