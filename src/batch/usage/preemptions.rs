//! The started elements that may be preempted, those that are, and the slots that preemption has
//! vacated or is about to.
//!
//! A preempted element is suspended for that reason (`susp::PREEMPTED`), and its slots are
//! *vacated* once its host has told so: queues that may preempt it do not count them any more.
//! Until then the element is *vacating*; so is one that is ended in place of a suspension. An
//! element of such a queue that is suspended for any other reason (*stopped*) vacates its slots
//! likewise, and with USE_SUSP_SLOTS one of a queue that preempts others does so for these. The
//! *claim* of a pending job is the slots that it had others preempted for, with the free ones that
//! it needs besides.
//!
//! Invariants: an element is indexed where its queue may be preempted, as the state has it; which
//! elements are vacating or being resumed, and the claims, are known as long as mbatchd lives. A
//! claim whose elements are all vacated and whose job still finds no host is void.

use crate::batch::site::{Queue, Site};
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::{HostId, HostSet, QueueId, ResourceId, UserId};
use crate::batch::state::{ElemState, Job, Phase, Run, State};
use crate::batch::usage::preemption_claim::Claim;
use crate::batch::usage::reserve::PreemptedBy;
use crate::batch::usage::vain_preemptions::VainPreemptions;
use crate::model::JobRef;
use crate::model::event::Forced;
use crate::model::idmap::IdMap;
use crate::model::job::{JobSpec, opt};
use crate::model::reason::{susp, term};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The started elements of queues that may be preempted.
#[derive(Debug, Default)]
pub struct Preemptions {
    known: BTreeMap<JobRef, Known>,
    /// Running ones that may be preempted, by queue: the one that was started last, or that has run
    /// for the shortest time, comes first.
    running: IdMap<QueueId, BTreeSet<(Reverse<i64>, JobRef)>>,
    /// Preempted ones that are suspended and not being resumed, by host.
    suspended: BTreeMap<HostId, BTreeSet<JobRef>>,
    /// Elements that are suspended for another reason, by host.
    stopped: BTreeMap<HostId, BTreeSet<JobRef>>,
    /// How many preempted ones there are of each queue, where there are any.
    suspended_of: BTreeMap<QueueId, usize>,
    /// Elements whose slots are about to be vacated.
    vacating: BTreeSet<JobRef>,
    claims: BTreeMap<JobRef, Claim>,
    /// The claims on each host.
    claimed: BTreeMap<HostId, BTreeSet<JobRef>>,
    claim_of: BTreeMap<JobRef, JobRef>,
    /// The jobs whose claims are about resources, too.
    resource_claims: BTreeSet<JobRef>,
    /// Rows of resources that a claim leaves, not taken yet.
    freed_rows: Vec<usize>,
    /// A claim has been dropped since this was asked last.
    dropped: bool,
    vain: VainPreemptions,
}

/// An indexed element.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    queue: QueueId,
    hosts: JobHosts,
    kind: Kind,
}

/// The effect of preemption on an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Running, since this instant; suspensions put it off where PREEMPT_FOR=LEAST_RUN_TIME.
    Running(i64),
    Suspended,
    /// Suspended by its owner or an administrator, for the load or for run windows: its slots are
    /// vacated, too.
    Stopped,
    /// To be ended in place of a suspension (TERMINATE_WHEN=PREEMPT).
    Ending,
}

impl Kind {
    /// The kind of an element; `None`: it is not indexed. One whose host is told to resume it has
    /// its slots again.
    fn of(site: &Site, run: &Run) -> Option<Kind> {
        match (run.phase, run.killed) {
            (_, Some(term::PREEMPT)) => Some(Kind::Ending),
            (_, Some(_)) => None,
            (_, None) if run.is_preempted() => Some(Kind::Suspended),
            // one that migrates is of no use to others, unless its checkpoint fails
            (Phase::Running, None) if run.forced == Forced::No && !run.migrates => {
                let least = site.params().preemption.least_run_time;
                let since = run.start_time + if least { run.susp_total } else { 0 };
                Some(Kind::Running(since))
            }
            // those have given their slots to an advance reservation
            (Phase::Ssusp(susp::RESERVED), None) => None,
            (Phase::Ssusp(_) | Phase::Ususp(_), None)
                if run.forced == Forced::No && run.soft.asked != Some(0) && !run.migrates =>
            {
                Some(Kind::Stopped)
            }
            _ => None,
        }
    }
}

/// Does a stopped job leave its slots to queues that preempt it? Not where it is of a kind that
/// these do not preempt.
fn leaves_slots(site: &Site, queue: &Queue, spec: &JobSpec) -> bool {
    let kinds = &site.params().preemption;
    (kinds.exclusive || spec.options & opt::EXCLUSIVE == 0)
        && (kinds.backfill || !queue.conf.backfill)
        && spec.further.reservation.is_empty()
}

/// Have stopped jobs of a queue to find room again beside a job of another?
fn leave_slots_to(of: QueueId, queue: &Queue, site: &Site) -> bool {
    let preemptable = || site.queue(of).is_some_and(|of| of.preemptable);
    of == queue.id || queue.takes_stopped.contains(&of) || preemptable()
}

impl Preemptions {
    /// Everything anew, with a new configuration or a new state. Claims are void; the orders that
    /// hosts have not confirmed stay open as far as they are known.
    pub(crate) fn anew(&mut self, state: &State, site: &Site) -> Preemptions {
        let mut all = Preemptions::default();
        // a preempted job goes on even if its queue is not preempted any more
        let preempted = |at: &JobRef| match state.elem(*at).map(|elem| &elem.state) {
            Some(ElemState::Run(run)) => run.phase == Phase::Ssusp(susp::PREEMPTED),
            _ => false,
        };
        if site.preempts || state.counts().started().any(|at| preempted(&at)) {
            all.vacating = std::mem::take(&mut self.vacating);
            let started: BTreeSet<JobRef> = state.counts().started().collect();
            all.vacating.retain(|at| started.contains(at));
            for at in started {
                all.refresh_element(state, site, at);
            }
        }
        all
    }

    /// Is each element indexed as the state has it? Else which is not.
    pub(crate) fn audit(&self, state: &State, site: &Site) -> Result<(), String> {
        let all = Preemptions::default().anew(state, site);
        let wrong =
            |(at, known): (&JobRef, &Known)| (all.known.get(at) != Some(known)).then_some(*at);
        let missing = all.known.keys().find(|at| !self.known.contains_key(at)).copied();
        if let Some(at) = self.known.iter().find_map(wrong).or(missing) {
            let (own, want) = (self.known.get(&at), all.known.get(&at));
            return Err(format!("preemption knows element {at} as {own:?}, not as {want:?}"));
        }
        let running = |of: &Preemptions| -> Vec<_> {
            let mut all: Vec<_> = of.running.values().flatten().copied().collect();
            all.sort_unstable();
            all
        };
        match running(self) == running(&all)
            && (&self.suspended, &self.suspended_of) == (&all.suspended, &all.suspended_of)
            && self.stopped == all.stopped
        {
            true => Ok(()),
            false => Err("the preempted elements by queue and host are others".to_owned()),
        }
    }

    /// Looks at a job or element again; idx 0 of an array: all of its started elements. Gives the
    /// hosts of claims that are void, and those of elements that may be preempted from now on.
    pub(crate) fn refresh(&mut self, state: &State, site: &Site, at: JobRef) -> Vec<HostId> {
        if !site.preempts && self.known.is_empty() {
            return Vec::new();
        }
        let mut hosts = self.void_claims(state, at);
        let array = state.job(at.job).filter(|job| at.idx == 0 && job.is_array());
        match array.and_then(Job::array) {
            None => hosts.extend(self.refresh_element(state, site, at)),
            Some(array) => {
                for idx in array.started() {
                    hosts.extend(self.refresh_element(state, site, JobRef { job: at.job, idx }));
                }
            }
        }
        hosts
    }

    /// A claim is void when its job is not pending any more.
    fn void_claims(&mut self, state: &State, at: JobRef) -> Vec<HostId> {
        if self.claims.is_empty() {
            return Vec::new();
        }
        let over = |at: &JobRef| {
            let view = state.job(at.job).and_then(|job| job.view(at.idx));
            !view.is_some_and(|view| view.stat().is_pending() && view.held().is_none())
        };
        let of = |at: JobRef| match at.idx {
            0 => JobRef::all_of(at.job),
            _ => at..=at,
        };
        let gone: Vec<JobRef> =
            self.claims.range(of(at)).map(|claim| *claim.0).filter(over).collect();
        gone.into_iter().flat_map(|at| self.drop_claim(at)).collect()
    }

    /// Looks at an element again; its hosts where it may be preempted from now on.
    fn refresh_element(&mut self, state: &State, site: &Site, at: JobRef) -> Vec<HostId> {
        let before = self.known.remove(&at);
        if let Some(known) = &before {
            self.take(at, known);
        }
        let job = state.job(at.job);
        let run = match job.and_then(|job| job.elem(at.idx)).map(|elem| &elem.state) {
            Some(ElemState::Run(run)) => Some(run),
            _ => None,
        };
        let queue = job.map(|job| job.queue_at(at.idx)).and_then(|queue| site.queue(queue));
        let kind = run.and_then(|run| Kind::of(site, run));
        let queue = queue.filter(|queue| {
            queue.preemptable || queue.gives_stopped || kind == Some(Kind::Suspended)
        });
        let stops = |queue: &&Queue| {
            let spec = job.map(|job| job.spec_at(at.idx));
            kind != Some(Kind::Stopped) || spec.is_some_and(|spec| leaves_slots(site, queue, spec))
        };
        let queue = queue.filter(stops);
        let (Some(run), Some(queue), Some(kind)) = (run, queue, kind) else {
            self.forget(at);
            if run.is_none() {
                self.vain.forget(at);
            }
            return Vec::new();
        };
        let runs = |known: &Known| matches!(known.kind, Kind::Running(_));
        let was_running = before.as_ref().is_some_and(runs);
        match kind {
            Kind::Running(since) => {
                let of_queue = self.running.entry(queue.id).or_default();
                of_queue.insert((Reverse(since), at));
            }
            Kind::Suspended => {
                *self.suspended_of.entry(queue.id).or_default() += 1;
                for (host, _) in &run.hosts {
                    self.suspended.entry(*host).or_default().insert(at);
                }
            }
            Kind::Stopped => {
                for (host, _) in &run.hosts {
                    self.stopped.entry(*host).or_default().insert(at);
                }
                // a host is told to suspend it after that is known, but for its owner before
                if was_running && matches!(run.phase, Phase::Ssusp(_)) {
                    self.vacating.insert(at);
                }
            }
            Kind::Ending => drop(self.vacating.insert(at)),
        }
        if let Kind::Running(_) = kind {
            self.forget(at);
        }
        let known = Known { queue: queue.id, hosts: run.hosts.clone(), kind };
        let vacated = kind == Kind::Stopped && !self.vacating.contains(&at);
        let new = (runs(&known) && !was_running)
            || (vacated && before.is_none_or(|before| before.kind != Kind::Stopped));
        self.known.insert(at, known);
        match new {
            true => run.hosts.iter().map(|host| host.0).collect(),
            false => Vec::new(),
        }
    }

    fn forget(&mut self, at: JobRef) {
        self.vacating.remove(&at);
        self.claim_of.remove(&at);
    }

    fn take(&mut self, at: JobRef, known: &Known) {
        match known.kind {
            Kind::Running(since) => {
                if let Some(of_queue) = self.running.get_mut(&known.queue) {
                    of_queue.remove(&(Reverse(since), at));
                }
            }
            Kind::Suspended => {
                let left = self.suspended_of.remove(&known.queue).unwrap_or(0).saturating_sub(1);
                if left > 0 {
                    self.suspended_of.insert(known.queue, left);
                }
                take_from_hosts(&mut self.suspended, at, known);
            }
            Kind::Stopped => take_from_hosts(&mut self.stopped, at, known),
            Kind::Ending => {}
        }
    }

    /// The host of an element is told to suspend or to end it.
    pub(crate) fn vacates(&mut self, at: JobRef) {
        self.vacating.insert(at);
    }

    /// The host of an element has suspended it: the hosts where slots are vacated by that.
    pub(crate) fn vacated(&mut self, at: JobRef) -> Vec<HostId> {
        let suspended = |known: &&Known| matches!(known.kind, Kind::Suspended | Kind::Stopped);
        match self.known.get(&at).filter(suspended) {
            Some(known) if self.vacating.remove(&at) => {
                known.hosts.iter().map(|host| host.0).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Has a claim been dropped since this was asked last?
    pub(crate) fn take_dropped(&mut self) -> bool {
        std::mem::take(&mut self.dropped)
    }

    /// The end of the time for which jobs of a queue and user leave an element alone that they
    /// preempted in vain, seconds since the epoch.
    pub fn left_alone(&self, at: JobRef, by: (QueueId, UserId), now: i64) -> Option<i64> {
        self.vain.until(at, by, now)
    }

    /// Has a pending job a claim?
    pub fn has_claim(&self, at: JobRef) -> bool {
        self.claims.contains_key(&at)
    }

    /// Is a job preempted, and its host has not told yet that it is suspended?
    pub fn is_vacating(&self, at: JobRef) -> bool {
        self.vacating.contains(&at)
    }

    /// A pending job is to get slots on these hosts: gives those of an earlier claim of it, with
    /// which it could not start. `now`: seconds since the epoch.
    pub(crate) fn claim(&mut self, at: JobRef, claim: Claim, now: i64) -> Vec<HostId> {
        self.note_in_vain(at, &claim.victims, now);
        let before = self.drop_claim(at);
        for on in &claim.hosts {
            self.claimed.entry(on.host).or_default().insert(at);
        }
        for victim in &claim.victims {
            self.claim_of.insert(*victim, at);
        }
        if !claim.resources.is_empty() {
            self.resource_claims.insert(at);
        }
        self.claims.insert(at, claim);
        before
    }

    /// The job of a claim does not start after all: gives the hosts of the claim, as
    /// `drop_claim`. `now`: seconds since the epoch.
    pub(crate) fn give_up_claim(&mut self, at: JobRef, now: i64) -> Vec<HostId> {
        self.note_in_vain(at, &[], now);
        self.drop_claim(at)
    }

    /// The elements of a claim were preempted in vain, but for these.
    fn note_in_vain(&mut self, at: JobRef, but: &[JobRef], now: i64) {
        let Some(claim) = self.claims.get(&at) else { return };
        for victim in claim.victims.iter().filter(|victim| !but.contains(victim)) {
            self.vain.let_go(*victim, (claim.queue, claim.user), now);
        }
    }

    /// A claim is void: its hosts, on which preempted elements may go on.
    pub(crate) fn drop_claim(&mut self, at: JobRef) -> Vec<HostId> {
        let Some(claim) = self.claims.remove(&at) else { return Vec::new() };
        self.resource_claims.remove(&at);
        self.freed_rows.extend(claim.resources.iter().map(|claimed| claimed.row));
        self.dropped = true;
        let mut hosts: BTreeSet<HostId> = claim.hosts.iter().map(|on| on.host).collect();
        for host in &hosts {
            let Some(here) = self.claimed.get_mut(host) else { continue };
            here.remove(&at);
            if here.is_empty() {
                self.claimed.remove(host);
            }
        }
        for victim in &claim.victims {
            if self.claim_of.get(victim) == Some(&at) {
                self.claim_of.remove(victim);
            }
            let on = self.known.get(victim).map(|known| &known.hosts);
            hosts.extend(on.into_iter().flatten().map(|host| host.0));
        }
        hosts.into_iter().collect()
    }
}

/// An element leaves a list of those on each host.
fn take_from_hosts(lists: &mut BTreeMap<HostId, BTreeSet<JobRef>>, at: JobRef, known: &Known) {
    for (host, _) in &known.hosts {
        let Some(here) = lists.get_mut(host) else { continue };
        here.remove(&at);
        if here.is_empty() {
            lists.remove(host);
        }
    }
}

impl Preemptions {
    /// Is no element preempted, and no slot claimed?
    pub fn is_idle(&self) -> bool {
        self.suspended.is_empty() && self.claims.is_empty() && self.vacating.is_empty()
    }

    /// The running elements of a queue that may be preempted, the first to be preempted first.
    pub fn running(&self, queue: QueueId) -> impl Iterator<Item = JobRef> + '_ {
        self.running.get(&queue).into_iter().flatten().map(|place| place.1)
    }

    /// The place of a running element among those of its queue that may be preempted.
    pub fn runs(&self, at: JobRef) -> Option<(QueueId, Reverse<i64>)> {
        let known = self.known.get(&at)?;
        match known.kind {
            Kind::Running(since) => Some((known.queue, Reverse(since))),
            Kind::Suspended | Kind::Stopped | Kind::Ending => None,
        }
    }

    /// The preemption of an element that is suspended, or about to be.
    pub fn preempted_by(&self, at: JobRef) -> Option<PreemptedBy> {
        let known = self.known.get(&at).filter(|known| known.kind == Kind::Suspended)?;
        Some(PreemptedBy { queue: known.queue, told: !self.vacating.contains(&at) })
    }

    /// The elements that are preempted, or about to be, and not being resumed.
    pub fn preempted(&self) -> impl Iterator<Item = JobRef> + '_ {
        self.suspended.values().flatten().chain(&self.vacating).copied()
    }

    /// The rows of resources that claims have left since this was asked last.
    pub(crate) fn take_freed_rows(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.freed_rows)
    }

    /// Are resources claimed?
    pub fn claims_resources(&self) -> bool {
        !self.resource_claims.is_empty()
    }

    /// The amount of a resource in a row that is kept from a queue for jobs of queues of higher
    /// priority.
    pub fn resource_kept_from(
        &self,
        (row, resource): (usize, ResourceId),
        queue: &Queue,
        site: &Site,
    ) -> f64 {
        let higher = |claim: &&Claim| {
            let high = site.queue(claim.queue);
            high.is_some_and(|high| high.conf.priority > queue.conf.priority)
        };
        let claims = self.resource_claims.iter().filter_map(|at| self.claims.get(at));
        let all = claims.filter(higher).flat_map(|claim| &claim.resources);
        let here = all.filter(|on| (on.row, on.resource) == (row, resource));
        // of what is vacated it counts nothing where it may not preempt
        here.map(|on| if queue.preempts.is_empty() { on.free } else { on.amount }).sum()
    }

    /// The amount of a resource in a row that is claimed by jobs of which this is true.
    pub fn claimed_resource(
        &self,
        (row, resource): (usize, ResourceId),
        holds: impl Fn(JobRef) -> bool,
    ) -> f64 {
        let live = self.resource_claims.iter().filter(|at| holds(**at));
        let all = live.filter_map(|at| self.claims.get(at)).flat_map(|claim| &claim.resources);
        let here = all.filter(|on| (on.row, on.resource) == (row, resource));
        here.map(|on| on.amount).sum()
    }

    /// Is an element preempted?
    pub fn is_suspended(&self, at: JobRef) -> bool {
        self.known.get(&at).is_some_and(|known| known.kind == Kind::Suspended)
    }

    /// Is an element suspended for another reason, and leaves its slots to some queue?
    pub fn is_stopped(&self, at: JobRef) -> bool {
        self.known.get(&at).is_some_and(|known| known.kind == Kind::Stopped)
    }

    /// The slots of an indexed element.
    pub fn hosts_of(&self, at: JobRef) -> &[(HostId, u32)] {
        self.known.get(&at).map_or(&[], |known| &known.hosts)
    }

    /// The preempted elements on a host that are suspended and not being resumed, with their
    /// queues.
    pub fn suspended_on(&self, host: HostId) -> impl Iterator<Item = (JobRef, QueueId)> + '_ {
        let here = self.suspended.get(&host).into_iter().flatten();
        here.filter_map(|at| Some((*at, self.known.get(at)?.queue)))
    }

    /// The elements on a host that are suspended for another reason, with their queues.
    fn stopped_on(&self, host: HostId) -> impl Iterator<Item = (JobRef, QueueId)> + '_ {
        let here = self.stopped.get(&host).into_iter().flatten();
        here.filter_map(|at| Some((*at, self.known.get(at)?.queue)))
    }

    /// The slots of those that a suspended job of a queue does not wait for, also before their host
    /// has told that it has suspended them.
    pub fn stopped_slots(&self, host: HostId, queue: &Queue, site: &Site) -> u64 {
        let idle = self.stopped_on(host).filter(|(_, of)| leave_slots_to(*of, queue, site));
        idle.map(|(at, _)| self.slots_on(at, host)).sum()
    }

    /// The hosts with preempted elements, of these hosts.
    pub fn hosts_among(&self, some: &HostSet) -> Vec<HostId> {
        match some.len() < self.suspended.len() {
            true => some.iter().filter(|host| self.suspended.contains_key(host)).collect(),
            false => self.suspended.keys().copied().filter(|host| some.contains(*host)).collect(),
        }
    }

    /// The hosts with preempted elements.
    pub fn hosts_with_suspended(&self) -> impl Iterator<Item = HostId> + '_ {
        self.suspended.keys().copied()
    }

    /// Are elements of a queue preempted?
    pub fn any_of(&self, queue: QueueId) -> bool {
        self.suspended_of.contains_key(&queue)
    }

    /// Are there elements on a host whose slots queues that preempt them do not count?
    pub fn any_vacated_on(&self, host: HostId) -> bool {
        self.suspended.contains_key(&host) || self.stopped.contains_key(&host)
    }

    fn slots_on(&self, at: JobRef, host: HostId) -> u64 {
        self.hosts_of(at).iter().filter(|on| on.0 == host).map(|on| u64::from(on.1)).sum()
    }

    /// The slots of preempted elements on a host, vacated or about to be.
    pub fn suspended_slots(&self, host: HostId) -> u64 {
        self.suspended_on(host).map(|(at, _)| self.slots_on(at, host)).sum()
    }

    /// Slots on a host that preemption has vacated for some queue.
    pub fn vacated_slots(&self, host: HostId) -> u64 {
        let vacated = self.suspended_on(host).filter(|(at, _)| !self.vacating.contains(at));
        vacated.map(|(at, _)| self.slots_on(at, host)).sum()
    }

    /// Slots on a host that are vacated for some queue, also by jobs that are suspended for another
    /// reason.
    pub fn vacated_for_some(&self, host: HostId) -> u64 {
        let stopped = self.stopped_on(host).filter(|(at, _)| !self.vacating.contains(at));
        let slots: u64 = stopped.map(|(at, _)| self.slots_on(at, host)).sum();
        self.vacated_slots(host) + slots
    }

    /// Slots on a host that preemption has vacated for this queue, and those of jobs that are
    /// suspended for another reason.
    pub fn vacated_for(&self, host: HostId, queue: &Queue) -> u64 {
        if queue.preempts.is_empty() && queue.takes_stopped.is_empty() {
            return 0;
        }
        let vacated = self.left_to(host, queue).filter(|at| !self.vacating.contains(at));
        vacated.map(|at| self.slots_on(at, host)).sum()
    }

    /// The suspended elements on a host that leave their slots to a queue.
    fn left_to(&self, host: HostId, queue: &Queue) -> impl Iterator<Item = JobRef> {
        let stopped = self.stopped_on(host).map(|(at, of)| (at, of, true));
        let all = self.suspended_on(host).map(|(at, of)| (at, of, false)).chain(stopped);
        all.filter(|(_, of, stopped)| {
            queue.preempts.contains(of) || (*stopped && queue.takes_stopped.contains(of))
        })
        .map(|left| left.0)
    }

    /// The elements on a host that have vacated their slots for this queue, without those that a
    /// job of a queue of higher priority has had preempted.
    pub fn vacated_units(
        &self,
        host: HostId,
        queue: &Queue,
        site: &Site,
    ) -> impl Iterator<Item = JobRef> {
        let all = self.suspended_on(host).chain(self.stopped_on(host));
        let kept = move |at: &JobRef| {
            let claim = self.claim_of.get(at).and_then(|claimant| self.claims.get(claimant));
            let high = claim.and_then(|claim| site.queue(claim.queue));
            high.is_some_and(|high| high.conf.priority > queue.conf.priority)
        };
        let left = move |(at, of): &(JobRef, QueueId)| {
            queue.preempts.contains(of) && !self.vacating.contains(at) && !kept(at)
        };
        all.filter(left).map(|(at, _)| at)
    }

    /// Slots on a host that are kept from a queue for jobs of queues of higher priority.
    pub fn kept_from(&self, host: HostId, queue: &Queue, site: &Site) -> u64 {
        let Some(claims) = self.claimed.get(&host) else { return 0 };
        let claims = claims.iter().filter_map(|at| self.claims.get(at));
        let higher = |claim: &&Claim| {
            let high = site.queue(claim.queue);
            high.is_some_and(|high| high.conf.priority > queue.conf.priority)
        };
        let of_claim = |claim: &Claim| -> u64 {
            let here = claim.hosts.iter().filter(|on| on.host == host);
            // of the vacated slots it counts none where it may not preempt
            let all = !queue.preempts.is_empty() || !queue.takes_stopped.is_empty();
            here.map(|on| u64::from(if all { on.slots } else { on.free })).sum()
        };
        claims.filter(higher).map(of_claim).sum()
    }

    /// Slots on a host that are claimed by jobs of which this is true.
    pub fn claimed_slots(&self, host: HostId, holds: impl Fn(JobRef) -> bool) -> u64 {
        let claims = self.claimed.get(&host).into_iter().flatten();
        let live = claims.filter(|at| holds(**at)).filter_map(|at| self.claims.get(at));
        let here = live.flat_map(|claim| &claim.hosts).filter(|on| on.host == host);
        here.map(|on| u64::from(on.slots)).sum()
    }

    /// Slots of suspended elements on a host, but for one, that count as taken for a job of which
    /// this is true and that claims slots there: its queue does not preempt theirs. Of several such
    /// jobs, the most.
    pub fn kept_from_claimants(
        &self,
        (host, but): (HostId, JobRef),
        site: &Site,
        holds: impl Fn(JobRef) -> bool,
    ) -> u64 {
        let claims = self.claimed.get(&host).into_iter().flatten().filter(|at| holds(**at));
        let queues = claims.filter_map(|at| site.queue(self.claims.get(at)?.queue));
        let slots = |at: JobRef| if at == but { 0 } else { self.slots_on(at, host) };
        let all = self.suspended_on(host).chain(self.stopped_on(host));
        let all: u64 = all.map(|(at, _)| slots(at)).sum();
        let kept = queues.map(|queue| all - self.left_to(host, queue).map(slots).sum::<u64>());
        kept.max().unwrap_or(0)
    }

    /// The slots that other pending jobs of a queue, or of a user, claim.
    pub fn claimed_by_others(&self, at: JobRef, queue: QueueId, user: UserId) -> u64 {
        let others = self
            .claims
            .iter()
            .filter(|(other, claim)| **other != at && (claim.queue == queue || claim.user == user));
        others.flat_map(|(_, claim)| &claim.hosts).map(|on| u64::from(on.slots)).sum()
    }

    /// The pending jobs that claim slots.
    pub fn claimants(&self) -> impl Iterator<Item = JobRef> + '_ {
        self.claims.keys().copied()
    }

    /// All claims.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims.values()
    }

    /// The claim of a pending job.
    pub fn claim_by(&self, at: JobRef) -> Option<&Claim> {
        self.claims.get(&at)
    }

    /// The pending job for whose claim an element was preempted.
    pub fn claimant(&self, victim: JobRef) -> Option<JobRef> {
        self.claim_of.get(&victim).copied()
    }

    /// The elements of a claim whose slots are still about to be vacated.
    pub fn open_victims(&self, claim: &Claim) -> impl Iterator<Item = JobRef> {
        claim.victims.iter().copied().filter(|victim| self.vacating.contains(victim))
    }

    /// The elements whose slots are about to be vacated, for no claim.
    pub fn unclaimed(&self) -> impl Iterator<Item = (JobRef, QueueId)> + '_ {
        let free = self.vacating.iter().filter(|at| !self.claim_of.contains_key(at));
        free.filter_map(|at| Some((*at, self.known.get(at)?.queue)))
    }
}
