//! Read access of the scheduler and the queries: to the state, the configuration and the reports of
//! hosts.

use crate::batch::cluster::hosts::{HostRuntime, HostStatus, beyond};
use crate::batch::cluster::nlb_lists::NlbLists;
use crate::batch::cluster::unreached::Unreached;
use crate::batch::sched::host_snapshot::HostSnapshot;
use crate::batch::sched::vacancy::Vacancy;
use crate::batch::site::requirements::Req;
use crate::batch::site::rules::{Consumer, LimitedQuantity, Rule};
use crate::batch::site::{Bound, Bounds, External, Queue, Site};
use crate::batch::state::names::{HostId, HostMap, QueueId, ResourceId};
use crate::batch::state::{Job, State};
use crate::batch::usage::advance_reservations::AdvanceReservations;
use crate::batch::usage::dependencies::Deps;
use crate::batch::usage::exclusive_units::ExclusiveUnits;
use crate::batch::usage::fairshare::Fairshare;
use crate::batch::usage::guarantees::Guarantees;
use crate::batch::usage::job_group_counts::JobGroupCounts;
use crate::batch::usage::limits_ledger::{ConsumerLimits, LimitsLedger};
use crate::batch::usage::preemptions::Preemptions;
use crate::batch::usage::processor_units::ProcessorUnits;
use crate::batch::usage::reserve::ledger::{Reserve, left};
use crate::batch::usage::service_goals::ServiceGoals;
use crate::batch::usage::slot_pools::{HostOffer, SlotShares};
use crate::batch::usage::timeline::Timeline;
use crate::batch::usage::windows::ClosedByWindows;
use crate::lang::resreq::ResReqError;
use crate::model::Now;
use crate::model::job::JobSpec;
use crate::model::reason::PendReason;
use crate::proto::lim::{INDEX_NAMES, increasing, status};
use std::rc::Rc;

/// The instant from which steps of escalation are counted where jobs are compared: any would do,
/// and one of about now leaves the numbers small. 2026-01-01.
const ESCALATION_ORIGIN: i64 = 1_767_225_600;

/// The shares of slot pools that hold for a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharesHeld {
    /// The shares of all pools.
    All,
    /// The shares of pools without USE_PRIORITY_IN_POOL: slots of others go to whoever is next.
    NotLent,
    /// No share, nor MAX_SLOTS_IN_POOL.
    None,
}

/// The parts of mbatchd below the scheduler, for reading.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The instant of the step.
    pub now: Now,
    pub state: &'a State,
    pub site: &'a Site,
    pub hosts: &'a HostMap<HostRuntime>,
    /// How often the facts of hosts have changed.
    pub facts_changes: u64,
    pub nlb_lists: &'a NlbLists,
    pub reserve: &'a Reserve,
    pub exclusive_units: &'a ExclusiveUnits,
    pub processor_units: &'a ProcessorUnits,
    /// When started elements give their slots back.
    pub timeline: &'a Timeline,
    pub limits: &'a LimitsLedger,
    pub fairshare: &'a Fairshare,
    pub group_counts: &'a JobGroupCounts,
    pub goals: &'a ServiceGoals,
    pub windows: &'a ClosedByWindows,
    pub depends: &'a Deps,
    pub unreached: &'a Unreached,
    pub preemptions: &'a Preemptions,
    pub reservations: &'a AdvanceReservations,
    pub guarantees: &'a Guarantees,
    pub slot_shares: &'a SlotShares,
    pub shares_held: SharesHeld,
}

impl<'a> View<'a> {
    /// Slots of a host; `None` unlimited.
    pub fn host_max(&self, i: HostId) -> Option<u64> {
        self.site.rules.slots_of_host(i).map(|(amount, _)| amount.on(|| self.hosts[i].ncpus()))
    }

    /// The slots of a host that can be reserved at all: those of MXJ, or one a processor.
    pub fn reservable(&self, i: HostId) -> u64 {
        match self.hosts.contains(i) {
            true => self.host_max(i).unwrap_or_else(|| self.hosts[i].ncpus().into()),
            false => 0,
        }
    }

    /// The slots of a host as slot pools count them: of one that takes no job none are free.
    pub(crate) fn slot_offer(&self, i: HostId) -> HostOffer {
        if !self.hosts.contains(i) {
            return HostOffer::default();
        }
        let slots = self.reservable(i);
        let free = match self.host_status(i) {
            HostStatus::Ok => slots.saturating_sub(self.host_used(i)),
            _ => 0,
        };
        HostOffer { slots, free }
    }

    /// Slots of a host in use, without those of jobs that are suspended for a reservation.
    pub fn host_used(&self, i: HostId) -> u64 {
        let counted = || self.state.counts().host(i).map_or(0, |h| h.slots.started());
        let under_limit = self.site.rules.slots_of_host(i);
        let used = under_limit.map_or_else(counted, |(_, cell)| self.limits.cell(cell));
        let used = used.saturating_sub(self.reservations.given(i));
        let left = &self.hosts[i].zombies;
        match left.is_empty() {
            true => used,
            false => used + left.values().map(|n| u64::from(*n)).sum::<u64>(),
        }
    }

    /// Has a host fewer free slots than this for jobs of no advance reservation, whatever else
    /// keeps them from it? Slots that preemption vacates are free for some alone.
    pub(super) fn has_fewer_free(&self, host: HostId, slots: u64) -> bool {
        let free = |most: u64| most.saturating_sub(self.host_used(host));
        !self.site.preempts && self.host_max(host).is_some_and(|most| free(most) < slots)
    }

    /// The limits of the jobs of a consumer.
    pub fn limits_of(&self, consumer: Consumer) -> Rc<ConsumerLimits> {
        self.limits.limits_of(self.state, self.site, consumer)
    }

    /// Does a limit with INELIGIBLE=Y keep jobs of a consumer that need so many slots?
    pub fn ineligible_by_limit(&self, consumer: Consumer, slots: u32) -> bool {
        if !self.site.rules.make_ineligible() {
            return false;
        }
        let limits = self.limits_of(consumer);
        limits.user.iter().enumerate().any(|(at, (id, _))| {
            let rule = self.site.rules.get(*id);
            let need = if rule.what == LimitedQuantity::Slots { slots.into() } else { 1 };
            let left = rule.amount.on(|| 1).saturating_sub(self.limits.used_by(&limits, at));
            rule.ineligible && left < need
        })
    }

    /// The amount that a rule allows; of one that divides by hosts, on this host.
    pub fn allowed(&self, rule: &Rule, host: HostId) -> u64 {
        let processors = || self.hosts.get(host).map_or(1, HostRuntime::ncpus);
        rule.amount.on_host(processors, || {
            let facts = self.hosts.get(host).and_then(|host| host.load.as_ref()?.facts.as_ref());
            facts.map_or(0.0, |facts| match rule.what {
                LimitedQuantity::Resource(id) => match id.load_index().map(|k| INDEX_NAMES[k]) {
                    Some("mem") => facts.max_mem as f64,
                    Some("swp") => facts.max_swp as f64,
                    Some("tmp") => facts.max_tmp as f64,
                    _ => 0.0,
                },
                _ => 0.0,
            })
        })
    }

    pub fn host_closed(&self, i: HostId) -> bool {
        self.state.host_control(i).is_some_and(|c| c.shut())
    }

    /// The first built-in index beyond a loadSched threshold of the host.
    pub fn load_over(&self, i: HostId, bounds: &Bounds) -> Option<usize> {
        if !bounds.keep_jobs_away() {
            return None;
        }
        let load = self.hosts[i].load.as_ref()?;
        let taken = self.reserve.on(i);
        let value = |k: usize| {
            left(taken, ResourceId::of_load_index(k), f64::from(load.index[k]), increasing(k))
        };
        (0..bounds.len()).find(|&k| bounds[k].0.is_some_and(|b| beyond(k, value(k), b)))
    }

    /// The first external index beyond a loadSched threshold on a host; an index that is not
    /// reported there is beyond none.
    pub fn external_over<'b>(&self, i: HostId, bounds: &'b External) -> Option<&'b Bound> {
        if bounds.is_empty() {
            return None;
        }
        let load = self.hosts[i].load.as_ref()?;
        let taken = self.reserve.on(i);
        bounds.iter().find(|b| {
            let pair = load.external.iter().find(|(n, _)| *n == b.name);
            let value = pair.and_then(|(_, v)| v.parse::<f64>().ok());
            let value = value.map(|v| left(taken, b.id, v, b.up));
            match (value, b.sched) {
                (Some(v), Some(sched)) => {
                    if b.up {
                        v > sched
                    } else {
                        v < sched
                    }
                }
                _ => false,
            }
        })
    }

    /// The reason for which thresholds of a host or queue keep jobs from a host.
    pub fn load_reason(
        &self,
        i: HostId,
        bounds: &Bounds,
        external: &External,
    ) -> Option<PendReason> {
        let built_in = self.load_over(i, bounds).map(|k| PendReason::Load(k as u8));
        let own = || self.external_over(i, external);
        built_in.or_else(|| own().map(|b| PendReason::LoadExternal(b.id.of_reason())))
    }

    /// The reason for which a busy host takes no job: the thresholds of lsb.hosts, else those of
    /// lsf.cluster, which LIM knows.
    pub fn busy_reason(&self, i: HostId) -> PendReason {
        let host = &self.site.hosts[i];
        let by_lim = || {
            let load = self.hosts[i].load.as_ref().filter(|l| l.over != 0);
            let (load, k) = load.map(|l| (l, l.over.trailing_zeros() as usize))?;
            Some(match k.checked_sub(INDEX_NAMES.len()) {
                None => PendReason::Load(k as u8),
                Some(at) => {
                    let id = self.site.names.id(&load.external.get(at)?.0);
                    PendReason::LoadExternal(id.and_then(ResourceId::of_reason))
                }
            })
        };
        let by_hosts = self.load_reason(i, &host.bounds, &host.external);
        by_hosts.or_else(by_lim).unwrap_or(PendReason::LoadExternal(None))
    }

    /// Does an exclusive job (bsub -x) run there?
    pub fn held_alone(&self, i: HostId) -> bool {
        if self.state.exclusive().is_empty() {
            return false;
        }
        let here = self.state.counts().host(i);
        here.is_some_and(|here| here.jobs.iter().any(|at| self.state.exclusive().contains(at)))
    }

    /// Why a locked host takes no job: by whom it is locked, the administrator's own lock first.
    pub fn lock_reason(&self, i: HostId) -> PendReason {
        let lim = self.hosts[i].load.as_ref().map_or(0, |l| l.status);
        if lim & status::LOCK_U != 0 {
            PendReason::HostLocked
        } else if lim & status::LOCK_M != 0 {
            PendReason::HostLockedMaster
        } else {
            PendReason::HostLockedWindow
        }
    }

    pub fn host_status(&self, i: HostId) -> HostStatus {
        self.host_status_at(i, self.host_used(i))
    }

    /// The status of a host and its slots in use as a queue counts them: without those that
    /// preemption has vacated for it, nor further ones, but with those that are kept for jobs of
    /// higher queues. A job of an advance reservation counts none that are vacated: no preempted
    /// job goes on in its slots.
    pub(super) fn host_for(
        &self,
        (queue, reserved): (&Queue, bool),
        i: HostId,
        vacated: u64,
    ) -> (HostStatus, u64) {
        let used = self.host_used(i);
        if !self.site.preempts {
            return (self.host_status_at(i, used), used);
        }
        let for_queue = match reserved {
            true => self.preemptions.vacated_slots(i),
            false => self.preemptions.vacated_for(i, queue),
        };
        let kept = self.preemptions.kept_from(i, queue, self.site);
        let used = used.saturating_sub(for_queue.saturating_add(vacated)).saturating_add(kept);
        (self.host_status_at(i, used), used)
    }

    /// May a host take a job of some queue? A full host may where preemption has vacated slots.
    pub(super) fn may_take(&self, i: HostId) -> bool {
        match self.host_status(i) {
            HostStatus::Ok => true,
            HostStatus::ClosedFull | HostStatus::ClosedExcl
                if self.site.preempts && self.preemptions.any_vacated_on(i) =>
            {
                let vacated = self.preemptions.vacated_for_some(i);
                let used = self.host_used(i).saturating_sub(vacated);
                self.host_status_at(i, used) == HostStatus::Ok
            }
            _ => false,
        }
    }

    /// The status of a host where so many slots are in use.
    fn host_status_at(&self, i: HostId, used: u64) -> HostStatus {
        let h = &self.hosts[i];
        let lim = h.load.as_ref().map_or(status::UNAVAIL, |l| l.status);
        if lim & status::UNAVAIL != 0 {
            HostStatus::Unavail
        } else if h.up().is_none() {
            HostStatus::Unreach
        } else if self.host_closed(i) {
            HostStatus::ClosedAdm
        } else if lim & (status::LOCK_U | status::LOCK_W | status::LOCK_M) != 0 {
            HostStatus::ClosedLock
        } else if self.windows.host(i) {
            HostStatus::ClosedWind
        } else if used > 0 && self.held_alone(i) {
            HostStatus::ClosedExcl
        } else if self.host_max(i).is_some_and(|m| used >= m) {
            HostStatus::ClosedFull
        } else if lim & status::BUSY != 0
            || self.load_over(i, &self.site.hosts[i].bounds).is_some()
            || self.external_over(i, &self.site.hosts[i].external).is_some()
        {
            HostStatus::ClosedBusy
        } else {
            HostStatus::Ok
        }
    }

    /// Every condition but its slots for which a host takes no job at all now, where
    /// [`View::host_status`] tells the first one.
    pub fn closures(&self, i: HostId) -> Vec<PendReason> {
        let lim = self.hosts[i].load.as_ref().map_or(status::UNAVAIL, |l| l.status);
        if lim & status::UNAVAIL != 0 {
            return vec![PendReason::LoadUnavailable];
        }
        let busy = lim & status::BUSY != 0
            || self.load_over(i, &self.site.hosts[i].bounds).is_some()
            || self.external_over(i, &self.site.hosts[i].external).is_some();
        let locked = lim & (status::LOCK_U | status::LOCK_W | status::LOCK_M) != 0;
        let all = [
            self.hosts[i].up().is_none().then_some(PendReason::SbatchdUnreachable),
            self.host_closed(i).then_some(PendReason::HostClosed),
            locked.then(|| self.lock_reason(i)),
            self.windows.host(i).then_some(PendReason::HostWindow),
            self.held_alone(i).then_some(PendReason::ExclusiveJob),
            busy.then(|| self.busy_reason(i)),
        ];
        all.into_iter().flatten().collect()
    }

    /// The host as a requirement sees it.
    pub fn snapshot(&self, i: HostId) -> HostSnapshot<'a> {
        self.snapshot_of(i, self.host_status(i), self.host_used(i))
    }

    /// The host as a requirement sees it, where its status and the slots in use are known.
    pub fn snapshot_of(&self, i: HostId, status: HostStatus, used: u64) -> HostSnapshot<'a> {
        let used = used as f64;
        let limit = self.host_max(i);
        let max = limit.map_or(f64::MAX, |m| m as f64);
        let status = match status {
            HostStatus::Ok => "ok",
            HostStatus::Unavail | HostStatus::Unreach => "unavail",
            HostStatus::ClosedBusy => "busy",
            HostStatus::ClosedLock => "lockU",
            _ => "ok",
        };
        HostSnapshot {
            def: &self.site.hosts[i].def,
            rt: &self.hosts[i],
            slots: (max - used).max(0.0),
            max_slots: max,
            by_slot: limit.is_some() && self.site.params().scheduler.parallel_by_slot,
            status,
            taken: self.reserve.on(i),
            vacancy: None,
            names: &self.site.names,
        }
    }

    /// The resources that preemption leaves to a queue on a host.
    pub(super) fn vacancy(&self, queue: &'a Queue, host: HostId) -> Option<Vacancy<'a>> {
        let (site, reserve, preemptions) = (self.site, self.reserve, self.preemptions);
        let any = || !reserve.vacates_nothing() || preemptions.claims_resources();
        let asked = site.names.preempts_resources() && any();
        asked.then_some(Vacancy { host, queue, site, reserve, preemptions })
    }

    /// Does this queue start no jobs now, by its windows?
    pub fn queue_shut(&self, queue: QueueId) -> bool {
        self.site.queue_position(queue).is_some_and(|i| self.windows.queue(i))
    }

    /// The reason for which a queue starts no job now: it is inactive or not configured any more,
    /// or its windows are closed.
    pub fn queue_closed(&self, queue: QueueId) -> Option<PendReason> {
        let position = self.site.queue_position(queue);
        let inactive = self.state.queue_control(queue).is_some_and(|c| c.inactive);
        match position {
            None => Some(PendReason::QueueInactive),
            Some(_) if inactive => Some(PendReason::QueueInactive),
            Some(i) => self.windows.queue(i).then_some(PendReason::QueueWindow),
        }
    }

    /// The priority of a job among those of its queue (bsub -sp); larger goes first.
    pub fn priority(&self, spec: &JobSpec) -> u32 {
        match spec.priority {
            0 => self.site.params().max_user_priority.map_or(0, |max| max / 2),
            given => given,
        }
    }

    /// How often JOB_PRIORITY_OVER_TIME has raised the priority of a job that was submitted at this
    /// time, until now, times its increment; it raises all pending jobs at the same instants.
    fn escalation(&self, submit_time: i64, until: i64) -> i64 {
        let params = self.site.params();
        let over_time =
            params.job_priority_over_time.filter(|_| params.max_user_priority.is_some());
        over_time.map_or(0, |(increment, minutes)| {
            let interval = i64::try_from(minutes).unwrap_or(i64::MAX).saturating_mul(60).max(1);
            let steps = until.div_euclid(interval) - submit_time.div_euclid(interval);
            i64::from(increment).saturating_mul(steps)
        })
    }

    /// The priority of a pending job now, escalated; larger goes first.
    pub fn escalated_priority(&self, job: &Job, spec: &JobSpec) -> u32 {
        let raised = self.escalation(job.submit_time, self.now.secs()).max(0);
        i64::from(self.priority(spec)).saturating_add(raised).min(i64::from(u32::MAX)) as u32
    }

    /// The position of a pending job by its escalated priority: it does not change while the job
    /// pends, as every step of the escalation raises all jobs of the queue alike.
    pub fn dispatch_priority(&self, job: &Job, spec: &JobSpec) -> u32 {
        let own = self.priority(spec);
        if self.site.params().job_priority_over_time.is_none() {
            return own;
        }
        let raised = self.escalation(job.submit_time, ESCALATION_ORIGIN);
        let middle = i64::from(u32::MAX / 2) + i64::from(own);
        middle.saturating_add(raised).clamp(0, i64::from(u32::MAX)) as u32
    }

    /// The priority by which the jobs of one class are ordered: none where the class as a whole has
    /// one (APS_PRIORITY).
    pub fn place_priority(&self, job: &Job, part: u32) -> u32 {
        let of_class = |queue: &Queue| queue.aps.is_some();
        match self.site.queue(job.queue_of(part)).is_some_and(of_class) {
            true => 0,
            false => self.dispatch_priority(job, job.spec_of(part)),
        }
    }

    /// The requirement that acts for a job: its own over those of its application profile and its
    /// queue, with defaults.
    pub fn combined_req(
        &self,
        (queue, application): (QueueId, &str),
        res_req: &str,
        hosts_asked: bool,
    ) -> Result<Req, ResReqError> {
        let of_queue = self.site.queue(queue).and_then(|q| q.req.as_deref());
        let of_application = self.site.applications.get(application);
        let levels = [of_application.and_then(|a| a.req.as_deref()), of_queue];
        Req::combined(res_req, levels, hosts_asked, &self.site.names)
    }
}
