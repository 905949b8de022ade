//! loadStop: what runs where a load index is beyond it is suspended, and goes on once every index
//! is within loadSched again; likewise where STOP_COND holds, until RESUME_COND does.
//! TERMINATE_WHEN has jobs ended instead.
//!
//! One job is suspended or resumed on a host in SBD_SLEEP_TIME, so that the load can follow: of
//! those to be suspended the one of the lowest queue first, of those to be resumed the one of the
//! highest. A job that is alone on its host is suspended only if somebody sits at the host. As
//! for run windows, the suspension is logged before the host is told.

use crate::batch::sched::host_snapshot::HostSnapshot;
use crate::batch::site::requirements::Req;
use crate::batch::site::{Bounds, External, Queue};
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, Phase};
use crate::batch::usage::reserve::ledger::Reserved;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::resreq::SelectContext;
use crate::model::event::SIGNAL_BY_LOAD;
use crate::model::job::stat;
use crate::model::reason::{susp, term};
use crate::model::{JobKey, JobRef};
use crate::proto::sbd::Act;

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
    pub(crate) fn overload_due(&mut self, cx: &mut StepContext) {
        let now = cx.now.mono_us;
        let due = self.overload.timer.is_some_and(|t| t <= now);
        if !(self.site.stops || self.overload.some) {
            self.overload.timer = None;
            return;
        }
        if !(self.overload.look || due) {
            return;
        }
        self.overload.look = false;
        self.overload.timer = None;
        self.overload.some = false;
        let ids: Vec<HostId> = self.links.hosts.ids().collect();
        for i in ids {
            let jobs = self.stirred_on(i);
            self.overload.some |= jobs.iter().any(|c| by_load(c.phase));
            let rest = self.overload.rest.get(&i).copied().unwrap_or(0);
            if rest > now {
                if !jobs.is_empty() {
                    let timer = self.overload.timer.map_or(rest, |t| t.min(rest));
                    self.overload.timer = Some(timer);
                }
            } else if self.host_by_load(cx, i, jobs) {
                let rest = cx.now.after(self.site.params().sbd_sleep_time.max(1));
                self.overload.rest.insert(i, rest);
                self.overload.timer.get_or_insert(rest);
                self.overload.some = true;
            }
        }
    }

    /// What runs on a host or was suspended there for its load.
    fn stirred_on(&self, i: HostId) -> Vec<Candidate> {
        let jobs = self.state.counts.host.get(&i).map(|h| &h.jobs);
        let one = |at: &JobRef| {
            let ElemState::Run(run) = &self.state.elem(*at)?.state else { return None };
            let busy = run.killed.is_some() || run.soft.asked.is_some() || run.unknown;
            if busy || !(run.phase == Phase::Running || by_load(run.phase)) {
                return None;
            }
            let queue = self.queue_of(*at)?;
            let priority = self.site.queues[queue].conf.priority;
            let (key, start, phase) = (run.key, run.start_time, run.phase);
            Some(Candidate { key, queue, priority, start, phase })
        };
        jobs.map_or(Vec::new(), |jobs| jobs.iter().filter_map(one).collect())
    }

    /// Acts on one job of a host at most; says whether it did.
    fn host_by_load(&mut self, cx: &mut StepContext, i: HostId, jobs: Vec<Candidate>) -> bool {
        let site = self.site.clone();
        let host = &site.hosts[i];
        let running = jobs.iter().filter(|c| c.phase == Phase::Running).count();
        let stop = |m: &Mbatchd, c: &Candidate| {
            let q = &site.queues[c.queue];
            let over = m.stop_over(i, &q.bounds, &q.external);
            let over = over.or_else(|| m.stop_over(i, &host.bounds, &host.external));
            let cond = || q.stop_cond.as_ref().is_some_and(|r| m.cond_holds(i, r));
            let over = over.or_else(|| cond().then_some(susp::STOP_COND));
            over.filter(|_| running > 1 || m.in_use(i))
        };
        let mut worst: Option<(&Candidate, u32)> = None;
        for c in jobs.iter().filter(|c| c.phase == Phase::Running) {
            let Some(why) = stop(self, c) else { continue };
            let before = |w: &Candidate| (c.priority, w.start) < (w.priority, c.start);
            if worst.as_ref().is_none_or(|(w, _)| before(w)) {
                worst = Some((c, why));
            }
        }
        if let Some((c, why)) = worst {
            if site.queues[c.queue].end_by_load {
                self.end_for(cx, c.key, SIGNAL_BY_LOAD, term::LOAD);
                return true;
            }
            let at = c.key.job_ref();
            self.phase_event(cx, at, c.key.attempt, stat::SSUSP, why);
            self.act(cx, c.key, i, Act::Suspend);
            return true;
        }
        let stays =
            |m: &Mbatchd, q: &Queue| q.resume_cond.as_ref().is_some_and(|r| !m.cond_holds(i, r));
        let fits = |m: &Mbatchd, c: &&Candidate| {
            let q = &site.queues[c.queue];
            m.view().load_over(i, &q.bounds).is_none()
                && m.view().load_over(i, &host.bounds).is_none()
                && m.view().external_over(i, &q.external).is_none()
                && m.view().external_over(i, &host.external).is_none()
                && m.stop_over(i, &q.bounds, &q.external).is_none()
                && m.stop_over(i, &host.bounds, &host.external).is_none()
                && !q.stop_cond.as_ref().is_some_and(|r| m.cond_holds(i, r))
                && !m.run_shut(c.key.job_ref())
        };
        let held = jobs.iter().filter(|c| by_load(c.phase)).filter(|c| fits(self, c));
        let (stay, held): (Vec<_>, Vec<_>) = held.partition(|c| stays(self, &site.queues[c.queue]));
        for c in stay.into_iter().filter(|c| c.phase != Phase::Ssusp(susp::RESUME_COND)) {
            let at = c.key.job_ref();
            self.phase_event(cx, at, c.key.attempt, stat::SSUSP, susp::RESUME_COND);
        }
        let best = held.into_iter().max_by_key(|c| (c.priority, std::cmp::Reverse(c.start)));
        if let Some(c) = best {
            self.resume_job(cx, c.key);
        }
        best.is_some()
    }

    /// Does a condition on the load, as it is measured, hold on a host?
    fn cond_holds(&self, i: HostId, cond: &Req) -> bool {
        if self.links.hosts[i].load.as_ref().is_none_or(|l| l.unavailable()) {
            return false;
        }
        let sight = HostSnapshot { taken: Reserved::default(), ..self.view().snapshot(i) };
        let (local_type, local_model) = (sight.host_type(), sight.model());
        let cx = SelectContext { local_type, local_model };
        cond.0.first().is_some_and(|s| s.selects(&sight, &cx))
    }

    /// Does somebody sit at a host?
    fn in_use(&self, i: HostId) -> bool {
        let load = self.links.hosts[i].load.as_ref();
        load.is_some_and(|l| !l.unavailable() && l.index[IT] < 1.0)
    }

    /// The suspending reason of the first index beyond its loadStop.
    fn stop_over(&self, i: HostId, bounds: &Bounds, external: &External) -> Option<u32> {
        let load = self.links.hosts[i].load.as_ref().filter(|l| !l.unavailable())?;
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
        let over = external.iter().any(|b| match (b.stop, value(&b.name)) {
            (Some(stop), Some(v)) => {
                if b.up {
                    v > stop
                } else {
                    v < stop
                }
            }
            _ => false,
        });
        over.then_some(susp::LOAD_EXTERNAL)
    }
}

/// Is it suspended for load?
pub fn by_load(phase: Phase) -> bool {
    matches!(phase, Phase::Ssusp(why) if (susp::LOAD..=susp::RESUME_COND).contains(&why))
}
