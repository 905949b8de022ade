//! loadStop: what runs where a load index is beyond it is suspended, and goes on once every index
//! is within loadSched again; likewise where STOP_COND holds, until RESUME_COND does.
//! TERMINATE_WHEN has jobs ended instead.
//!
//! One job is suspended or resumed on a host in SBD_SLEEP_TIME, so that the load can follow: of
//! those to be suspended the one of the lowest queue first, of those to be resumed the one of the
//! highest. A job that is alone on its host is suspended only if somebody sits at the host. As
//! for run windows, the suspension is logged before the host is told.
//!
//! A job on several hosts is suspended for the load of any of them; it goes on in the turn of its
//! first host, when the load of all of them allows it.
//!
//! A job that bresume lets go waits for the load in the same way where thresholds concern it.

use crate::batch::site::requirements::Req;
use crate::batch::site::{Bounds, External, Queue};
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, Phase};
use crate::batch::{Mbatchd, StepContext};
use crate::lang::resreq::SelectContext;
use crate::model::action::JobAction;
use crate::model::job_state::JobState;
use crate::model::reason::{susp, term};
use crate::model::{JobKey, JobRef};
use crate::proto::sbd::Act;
use std::collections::BTreeSet;

/// Positions of pg and it among the built-in indices.
const PG: usize = 4;
const IT: usize = 7;
/// Seconds in a minute of `it`.
const MINUTE: f64 = 60.0;

/// A job on a host, as it is chosen from.
struct Candidate {
    key: JobKey,
    queue: usize,
    priority: u32,
    start: i64,
    phase: Phase,
}

impl Mbatchd {
    /// Suspends and resumes by load where that is due.
    pub(crate) fn suspend_by_load(&mut self, context: &mut StepContext) {
        if !self.load_checks.begin(context.now, self.site.stops) {
            return;
        }
        for i in self.hosts_to_look_at() {
            #[cfg(test)]
            self.load_checks.count_host_looks(1);
            let Some(here) = self.state.counts().host(i) else { continue };
            let (runs, suspended) = (here.slots.started() > 0, !here.suspended_by_load.is_empty());
            if self.load_checks.may_act(context.now, i, runs, suspended)
                && self.host_by_load(context, i)
            {
                let secs = self.site.params().sbd_sleep_time.max(1);
                self.load_checks.acted(context.now, i, secs);
            }
        }
    }

    /// The hosts whose load may suspend a job, or on which jobs are suspended for it.
    fn hosts_to_look_at(&mut self) -> BTreeSet<HostId> {
        let heard: Vec<HostId> = match self.load_checks.take_heard() {
            Some(heard) => heard.iter().filter(|i| self.links.hosts().contains(*i)).collect(),
            None => self.links.hosts().ids().collect(),
        };
        #[cfg(test)]
        self.load_checks.count_host_looks(heard.len());
        for i in heard {
            let suspends = self.load_may_suspend(i);
            self.load_checks.set_suspending(i, suspends);
        }
        let suspended = self.state.counts().hosts_with_suspended();
        let suspended = suspended.iter().filter(|i| self.links.hosts().contains(**i));
        self.load_checks.suspending().iter().chain(suspended).copied().collect()
    }

    /// May the load of a host suspend jobs of some queue, whether there are any now or not?
    fn load_may_suspend(&self, i: HostId) -> bool {
        let over = |bounds, external| self.stop_over(i, bounds, external).is_some();
        let host = &self.site.hosts[i];
        over(&host.bounds, &host.external)
            || self
                .site
                .queues
                .iter()
                .filter(|queue| queue.stops())
                .any(|queue| queue.stop_cond.is_some() || over(&queue.bounds, &queue.external))
    }

    /// Acts on one job of a host at most; says whether it did. Jobs are gone through only where the
    /// load suspends or resumes those of a queue: a host may have very many.
    fn host_by_load(&mut self, context: &mut StepContext, i: HostId) -> bool {
        if let Some((job, why)) = self.first_to_suspend(i) {
            if self.site.queues[job.queue].end_by_load {
                self.end_for(context, job.key, JobAction::EndByLoad, term::LOAD);
                return true;
            }
            let at = job.key.job_ref();
            self.phase_event(context, at, job.key.attempt, JobState::Ssusp, why);
            self.act(context, job.key, i, Act::Suspend);
            return true;
        }
        let (stay, held): (Vec<_>, Vec<_>) = self.resumable_jobs(i).into_iter().partition(|job| {
            let resume = self.site.queues[job.queue].resume_cond.as_ref();
            resume.is_some_and(|cond| !self.cond_holds(i, cond))
        });
        for job in stay.iter().filter(|job| job.phase != Phase::Ssusp(susp::RESUME_COND)) {
            let at = job.key.job_ref();
            self.phase_event(context, at, job.key.attempt, JobState::Ssusp, susp::RESUME_COND);
        }
        let best = held.into_iter().max_by_key(|job| (job.priority, std::cmp::Reverse(job.start)));
        if let Some(job) = &best {
            self.resume_job(context, job.key);
        }
        best.is_some()
    }

    /// The running job of a host that its load suspends first, and why.
    fn first_to_suspend(&self, i: HostId) -> Option<(Candidate, u32)> {
        let over = self.overloaded_queues(i);
        if over.is_empty() {
            return None;
        }
        let here = self.state.counts().host(i)?;
        let running = || here.jobs.iter().filter_map(|at| self.running_job(*at));
        let busy = || here.jobs.iter().filter(|at| self.keeps_running(**at));
        if !self.in_use(i) && busy().nth(1).is_none() {
            return None;
        }
        let stops = |job: Candidate| {
            let why = over.iter().find(|(queue, _)| *queue == job.queue)?.1;
            Some((job, why))
        };
        // of equal ones the first
        let last = |worst: (Candidate, u32), next: (Candidate, u32)| {
            let key = |job: &Candidate| (std::cmp::Reverse(job.priority), job.start);
            if key(&next.0) > key(&worst.0) { next } else { worst }
        };
        running().filter_map(stops).reduce(last)
    }

    /// The queues whose jobs the load of a host suspends, by position, with the reason; queues
    /// without a started job are left out.
    fn overloaded_queues(&self, i: HostId) -> Vec<(usize, u32)> {
        let host = &self.site.hosts[i];
        let of_host = self.stop_over(i, &host.bounds, &host.external);
        let over = |(position, queue): (usize, &Queue)| {
            if !(of_host.is_some() || queue.stops()) || !self.has_started(queue) {
                return None;
            }
            let over = self.stop_over(i, &queue.bounds, &queue.external).or(of_host);
            let cond = || queue.stop_cond.as_ref().is_some_and(|cond| self.cond_holds(i, cond));
            Some((position, over.or_else(|| cond().then_some(susp::STOP_COND))?))
        };
        self.site.queues.iter().enumerate().filter_map(over).collect()
    }

    /// The jobs of a host that were suspended for its load, which suspends them no longer.
    fn resumable_jobs(&self, i: HostId) -> Vec<Candidate> {
        let suspended = self.state.counts().host(i).map(|here| &here.suspended_by_load);
        let Some(suspended) = suspended.filter(|all| !all.is_empty()) else { return Vec::new() };
        let queues = self.site.queues.iter().enumerate();
        let fit = queues.filter(|(_, queue)| self.has_started(queue) && self.fits(i, queue));
        let fit: Vec<usize> = fit.map(|(position, _)| position).collect();
        if fit.is_empty() {
            return Vec::new();
        }
        let resumable = |at: &JobRef| {
            let job = self.candidate(*at, Phase::suspended_by_load)?;
            let run = self.state.running(job.key)?;
            let (first, others) = run.hosts.split_first()?;
            let queue = &self.site.queues[job.queue];
            let allows = |host: HostId| {
                let holds = |cond| self.cond_holds(host, cond);
                self.fits(host, queue) && queue.resume_cond.as_ref().is_none_or(holds)
            };
            let here = first.0 == i && fit.contains(&job.queue) && !self.run_shut(*at);
            (here && others.iter().all(|(host, _)| *host == i || allows(*host))).then_some(job)
        };
        suspended.iter().filter_map(resumable).collect()
    }

    /// Does a job that may go on after bresume wait for the load of its hosts? Its turn comes with
    /// the next look at its first host, at once where that has had none lately.
    pub(crate) fn waits_for_load(&mut self, at: JobRef) -> bool {
        let waits = self.has_thresholds(at);
        if waits {
            self.load_checks.job_waits();
        }
        waits
    }

    /// Are there thresholds or conditions on the load for a started job, of its queue or a host?
    fn has_thresholds(&self, at: JobRef) -> bool {
        let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { return false };
        let Some(queue) = self.queue_of(at).map(|position| &self.site.queues[position]) else {
            return false;
        };
        let any = |bounds: &Bounds, external: &External| {
            !external.is_empty() || bounds.iter().any(|b| b.0.is_some() || b.1.is_some())
        };
        let of_host = |host: HostId| {
            self.site.hosts.get(host).is_some_and(|host| any(&host.bounds, &host.external))
        };
        !run.is_never_suspended()
            && (queue.stop_cond.is_some()
                || queue.resume_cond.is_some()
                || any(&queue.bounds, &queue.external)
                || run.hosts.iter().any(|(host, _)| of_host(*host)))
    }

    /// Does a job run on, whatever its kind, without being about to end or to stop?
    fn keeps_running(&self, at: JobRef) -> bool {
        matches!(self.state.elem(at).map(|e| &e.state), Some(ElemState::Run(run))
            if run.phase == Phase::Running && run.killed.is_none() && run.soft.asked.is_none())
    }

    /// Are there started jobs of a queue?
    fn has_started(&self, queue: &Queue) -> bool {
        self.state.counts().queue(queue.id).started() > 0
    }

    /// Is the load of a host known, and within all thresholds for jobs of a queue?
    fn fits(&self, i: HostId, queue: &Queue) -> bool {
        let known = self.links.hosts().get(i).and_then(|host| host.load.as_ref());
        let (view, host) = (self.view(), &self.site.hosts[i]);
        known.is_some_and(|load| !load.unavailable())
            && view.load_over(i, &queue.bounds).is_none()
            && view.load_over(i, &host.bounds).is_none()
            && view.external_over(i, &queue.external).is_none()
            && view.external_over(i, &host.external).is_none()
            && self.stop_over(i, &queue.bounds, &queue.external).is_none()
            && self.stop_over(i, &host.bounds, &host.external).is_none()
            && !queue.stop_cond.as_ref().is_some_and(|cond| self.cond_holds(i, cond))
    }

    fn running_job(&self, at: JobRef) -> Option<Candidate> {
        self.candidate(at, |phase| phase == Phase::Running)
    }

    /// A started job in a phase of these, of which nothing else is asked.
    fn candidate(&self, at: JobRef, among: impl Fn(Phase) -> bool) -> Option<Candidate> {
        #[cfg(test)]
        self.load_checks.count_look();
        let ElemState::Run(run) = &self.state.elem(at)?.state else { return None };
        if run.is_never_suspended() {
            return None;
        }
        let busy = run.killed.is_some() || run.soft.asked.is_some() || run.unknown;
        if busy || !among(run.phase) {
            return None;
        }
        let queue = self.queue_of(at)?;
        let priority = self.site.queues[queue].conf.priority;
        let (key, start, phase) = (run.key, run.start_time, run.phase);
        Some(Candidate { key, queue, priority, start, phase })
    }

    /// Does a condition on the load, as it is measured, hold on a host?
    fn cond_holds(&self, i: HostId, cond: &Req) -> bool {
        if self.links.hosts()[i].load.as_ref().is_none_or(|l| l.unavailable()) {
            return false;
        }
        let sight = self.view().snapshot(i).without_reservations();
        let (local_type, local_model) = (sight.host_type(), sight.model());
        let context = SelectContext { local_type, local_model };
        cond.0.first().is_some_and(|s| s.selects(&sight, &context))
    }

    /// Does somebody sit at a host?
    fn in_use(&self, i: HostId) -> bool {
        let load = self.links.hosts()[i].load.as_ref();
        load.is_some_and(|l| !l.unavailable() && l.index[IT] < 1.0)
    }

    /// The suspending reason of the first index beyond its loadStop.
    fn stop_over(&self, i: HostId, bounds: &Bounds, external: &External) -> Option<u32> {
        let load = self.links.hosts()[i].load.as_ref().filter(|l| !l.unavailable())?;
        let idle = f64::from(load.index[IT]) * MINUTE > self.site.params().pg_susp_it as f64;
        let over = |k: &usize| {
            let value = f64::from(load.index[*k]);
            let bound = bounds[*k].1.filter(|_| *k != PG || !idle);
            bound.is_some_and(|b| crate::batch::cluster::hosts::beyond(*k, value, b))
        };
        if let Some(k) = (0..bounds.len()).find(over) {
            return Some(susp::LOAD + k as u32);
        }
        let value = |name: &str| {
            let pair = load.external.iter().find(|(n, _)| n == name);
            pair.and_then(|(_, v)| v.parse::<f64>().ok())
        };
        let over = external.iter().find(|b| match (b.stop, value(&b.name)) {
            (Some(stop), Some(v)) => {
                if b.up {
                    v > stop
                } else {
                    v < stop
                }
            }
            _ => false,
        });
        over.map(|bound| bound.suspends_for)
    }
}
