//! How long a job may run on a host: its run limit, normalised to the speed of the host.

use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::{ElemState, Job, Phase, Run};
use crate::model::JobRef;
use crate::model::job::JobSpec;

/// Seconds of a limit that was given for a host of one CPU factor, on a host of another.
pub(crate) fn normalised(secs: u64, limit_factor: f64, host_factor: f64) -> u64 {
    let scale = limit_factor / host_factor.max(f64::MIN_POSITIVE);
    ((secs as f64 * scale).round() as u64).max(1)
}

/// A run limit, and the CPU factor that it was given for; `None`: it is the same on all hosts
/// (ABS_RUNLIMIT).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunLimit {
    secs: u64,
    factor: Option<f64>,
}

impl RunLimit {
    /// Seconds that a job may run on a host of this CPU factor.
    pub fn on(self, host_factor: f64) -> i64 {
        i64::try_from(self.secs_on(host_factor)).unwrap_or(i64::MAX)
    }

    fn secs_on(self, host_factor: f64) -> u64 {
        self.factor.map_or(self.secs, |own| normalised(self.secs, own, host_factor))
    }
}

impl View<'_> {
    /// The CPU factor of what a time limit was given for: the host or model named, the default one
    /// of the queue or cluster, else the submission host.
    pub(crate) fn limit_factor(&self, queue: Option<&Queue>, spec: &str, from_host: &str) -> f64 {
        let by_queue = queue.and_then(|q| q.conf.default_host_spec.as_deref());
        let by_cluster = self.site.params().default_host_spec.as_deref();
        let spec = match spec {
            "" => by_queue.or(by_cluster).unwrap_or(from_host),
            s => s,
        };
        let host = self.site.canonical(spec).and_then(|h| self.site.host_id(h));
        let model = || {
            let models = &self.site.conf.base.shared.models;
            models.iter().find(|m| m.name == spec).map(|m| m.cpu_factor)
        };
        host.map(|i| self.hosts[i].cpu_factor()).or_else(model).unwrap_or(1.0)
    }

    /// The run limit of a submission to a queue.
    pub(crate) fn run_limit_of(&self, queue: &Queue, spec: &JobSpec) -> Option<RunLimit> {
        self.own_limit(Some(queue), spec)
    }

    fn own_limit(&self, queue: Option<&Queue>, spec: &JobSpec) -> Option<RunLimit> {
        let secs = spec.limits.run?;
        let absolute = self.site.settings(spec, queue).absolute_run_limit();
        let factor = || self.limit_factor(queue, &spec.limit_spec, &spec.from_host);
        Some(RunLimit { secs, factor: (!absolute).then(factor) })
    }

    /// Seconds that a started element may run where it is by its own limit (-W, RUNLIMIT of its
    /// profile or queue) and by the gap that it was started in: the limit that its host enforces.
    pub(crate) fn run_limit_on_host(&self, job: &Job, idx: u32, run: &Run) -> Option<u64> {
        let part = job.part_no(idx);
        let queue = self.site.queue(job.queue_of(part));
        let own = self.own_limit(queue, job.spec_of(part)).map(|own| own.secs_on(run.host_factor));
        own.into_iter().chain(Some(run.slice).filter(|slice| *slice > 0)).min()
    }

    /// Seconds that a started element may run where it is by all that limits it,
    /// EXTENDABLE_RUNLIMIT as well; `None`: nothing does.
    pub(crate) fn run_limit_now(&self, job: &Job, idx: u32, run: &Run) -> Option<u64> {
        let queue = self.site.queue(job.queue_at(idx));
        let rule = queue.and_then(|queue| queue.conf.extendable);
        let extendable = rule.map(|rule| run.extendable_limit(rule).secs);
        self.run_limit_on_host(job, idx, run).into_iter().chain(extendable).min()
    }

    /// The run limit of the jobs of a class; `None`: they have none, or nothing depends on it.
    pub(super) fn run_limit(&self, queue: &Queue, kind: &ClassKey) -> Option<RunLimit> {
        let time = kind.time.as_deref()?;
        let secs = time.run?;
        let factor = (!time.absolute)
            .then(|| self.limit_factor(Some(queue), &time.limit_spec, &kind.from_host));
        Some(RunLimit { secs, factor })
    }

    /// When a started element gives its slots back by its run limit, and which these are; `None`:
    /// it has no limit, is suspended, or cannot be asked.
    pub(crate) fn end_of(&self, at: JobRef) -> Option<(i64, &JobHosts)> {
        let ElemState::Run(run) = &self.state.elem(at)?.state else { return None };
        if run.unknown {
            return None;
        }
        Some((self.run_limit_end(at)?, &run.hosts))
    }

    /// When a started element reaches its run limit, seconds since the epoch; `None`: it has none,
    /// or is suspended.
    pub(crate) fn run_limit_end(&self, at: JobRef) -> Option<i64> {
        let job = self.state.job(at.job)?;
        let ElemState::Run(run) = &job.elem(at.idx)?.state else { return None };
        if !matches!(run.phase, Phase::Starting | Phase::Running) {
            return None;
        }
        Some(run.has_run_for(self.run_limit_now(job, at.idx, run)?))
    }
}
