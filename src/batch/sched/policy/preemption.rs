//! PREEMPTION of lsb.queues: a job that finds no host has jobs of queues of lower priority
//! preempted, and starts in their slots once their hosts have told that they are suspended.
//!
//! Jobs are preempted in this order: of the queue with the larger preference, of the queue with the
//! lower priority, the one that was started last (PREEMPT_FOR in lsb.params changes the last). No
//! job is preempted whose slots are not needed: of the jobs found in that order those are left out
//! again without which the others do. Resources of PREEMPTABLE_RESOURCES that they reserve are
//! vacated with their slots; where the measured value does not show that yet, no others are
//! preempted before PREEMPTION_WAIT_TIME is over. All other conditions for the start (load,
//! requirement, limits) must hold as they are, so that no job is preempted in vain.
//!
//! Invariant: queues preempt queues of lower priority alone (`site::preemption`), and a preempted
//! job goes on only where no claim and no job of a higher queue wants its slots: no circle.

use crate::batch::sched::decision::{Decision, Preemption};
use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::protection::{Protection, is_guaranteed, protection};
use crate::batch::sched::policy::{BlockedJob, Leaving, Policy, Question, limits, rests_until};
use crate::batch::sched::view::{SharesHeld, View};
use crate::batch::site::Queue;
use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::state::ElemState;
use crate::batch::state::names::{HostId, HostSet, ResourceId};
use crate::batch::usage::preemption_claim::{Claim, ClaimedHost, ClaimedResource};
use crate::batch::usage::preemptions::Preemptions;
use crate::batch::usage::reserve::Supposing;
use crate::lang::resreq::RusageTerm;
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Most jobs that a plan is tried to do without, one by one.
const MOST_TRIED: usize = 1024;
/// The part of an amount that is left out where amounts are counted.
const SLACK: f64 = 1e-9;

#[derive(Debug)]
pub(super) struct PreemptionPolicy;

impl Policy for PreemptionPolicy {
    fn answers(&self) -> &'static [Question] {
        &[Question::Blocked]
    }

    fn acts_on_blocked(&self, _view: &View, queue: &Queue) -> bool {
        !queue.preempts.is_empty()
    }

    fn blocked(&self, job: &BlockedJob) -> Option<Decision> {
        let (class, view) = (job.class, &job.class.view);
        // slots that are lent out of a pool are free ones: nobody stops for them
        if class.queue.preempts.is_empty() || view.shares_held == SharesHeld::NotLent {
            return None;
        }
        let claim = view.preemptions.claim_by(job.at);
        let rests = |on: &ClaimedHost| rests_until(class, on.host).is_some();
        // of a host that does not answer nothing is to be expected
        let answers = |at: JobRef| match view.state.elem(at).map(|elem| &elem.state) {
            Some(ElemState::Run(run)) => !run.unknown,
            _ => false,
        };
        let open = |claim: &Claim| view.preemptions.open_victims(claim).any(answers);
        if claim.is_some_and(|claim| open(claim) || claim.hosts.iter().any(rests)) {
            return None;
        }
        if claim.is_some_and(|claim| waits_for_resources(job, claim)) {
            return None;
        }
        let release = claim.map(|_| Decision::Release { at: job.at });
        let enough = job.room_after >= u64::from(class.kind.min);
        let may = !class.kind.exclusive || view.site.params().preemption.exclusive;
        if !enough || !may || self.others_first(job) || job.waits(self.delay(job)) {
            return release;
        }
        let preemption = Plan::new(job).find();
        preemption.map(Decision::Preempt).or(release)
    }
}

/// Have the jobs of a claim been preempted lately (PREEMPTION_WAIT_TIME), and is all that is
/// lacking what they held of resources whose measured values may show it later?
fn waits_for_resources(job: &BlockedJob, claim: &Claim) -> bool {
    let names = &job.class.view.site.names;
    let measured = claim.resources.iter().any(|of| names.measured(of.resource));
    if !measured || claim.until <= job.class.view.now.secs() {
        return false;
    }
    let supposing = Supposing::new(job.class.view.reserve);
    let fits = |on: &ClaimedHost| {
        let room = supposing.with_all(|| (job.host_after)(on.host, Leaving::NONE));
        room.is_ok_and(|slots| slots >= u64::from(on.slots))
    };
    claim.hosts.iter().all(fits) && job.waits(claim.until)
}

impl PreemptionPolicy {
    /// Do other jobs claim slots, so that a limit may keep this one from starting? It is looked at
    /// again when they have started.
    fn others_first(&self, job: &BlockedJob) -> bool {
        let (kind, index) = (job.class.kind, job.class.view.preemptions);
        let limited = job.class.room < u64::MAX && {
            let claimed = index.claimed_by_others(job.at, kind.queue, kind.user);
            match job.class.room < u64::from(kind.min) {
                true => claimed > 0,
                false => job.class.room.saturating_sub(claimed) < u64::from(kind.min),
            }
        };
        let in_group = |at: JobRef| {
            let of = job.class.view.state.job(at.job);
            of.is_some_and(|of| of.spec_at(at.idx).further.job_group == kind.group)
        };
        let grouped =
            !kind.group.is_empty() && index.claimants().any(|at| at != job.at && in_group(at));
        (limited || grouped) && job.waits(job.class.view.now.secs() + 1)
    }

    /// When the job may have others preempted (PREEMPT_DELAY), seconds since the epoch.
    fn delay(&self, job: &BlockedJob) -> i64 {
        let view = &job.class.view;
        let Some(of) = view.state.job(job.at.job) else { return 0 };
        let settings = view.site.settings(of.spec_at(job.at.idx), Some(job.class.queue));
        let delay = settings.preemption_limits().delay_secs;
        of.submit_time.saturating_add_unsigned(delay)
    }
}

/// The jobs that are to be preempted for one, and the slots that it gets.
struct Plan<'a, 'b> {
    job: &'a BlockedJob<'a, 'b>,
    victims: Vec<JobRef>,
    /// Slots that are vacated on each host, or about to be for nobody, and the jobs that had them.
    released: IdMap<HostId, (u64, Vec<JobRef>)>,
    /// The hosts with slots for the job once these are vacated.
    free: BTreeMap<HostId, u32>,
    /// Whether a host would do if nothing ran there.
    usable: IdMap<HostId, bool>,
    /// The preemptable resources that the job reserves.
    wanted: Vec<WantedResource>,
    /// The amounts of these that are vacated too.
    supposing: Supposing<'b>,
}

/// A preemptable resource that a job reserves.
#[derive(Clone, Copy, Debug)]
struct WantedResource {
    resource: ResourceId,
    method: ReservationMethod,
    amount: f64,
}

/// The preemptable resources that a job of a class reserves.
fn wanted(class: &HostMatch) -> Vec<WantedResource> {
    let (site, names) = (class.view.site, &class.view.site.names);
    if !names.preempts_resources() {
        return Vec::new();
    }
    let rusage = class.simple.and_then(|simple| simple.rusage.as_ref());
    let terms = rusage.map_or(&[][..], |rusage| rusage.terms()).iter();
    let of = |term: &RusageTerm| {
        let resource = names.reserved(term).filter(|id| names.preemptable(*id))?;
        let (method, amount) = (site.reservation_method(term), term.amount());
        (amount > 0.0).then_some(WantedResource { resource, method, amount })
    };
    terms.filter_map(of).collect()
}

impl<'a, 'b> Plan<'a, 'b> {
    fn new(job: &'a BlockedJob<'a, 'b>) -> Plan<'a, 'b> {
        let mut plan = Plan {
            job,
            victims: Vec::new(),
            released: IdMap::default(),
            free: BTreeMap::new(),
            usable: IdMap::default(),
            wanted: wanted(job.class),
            supposing: Supposing::new(job.class.view.reserve),
        };
        let view = &job.class.view;
        match job.class.queue.conf.backfill && !view.state.slot_reservations().is_empty() {
            false => plan.free.extend(job.free.iter().copied()),
            // the slots in which it would backfill are not free for it once it preempts others
            true => job.free.iter().for_each(|on| plan.free_on(on.0)),
        }
        let preempts = &job.class.queue.preempts;
        let unclaimed = view.preemptions.unclaimed().filter(|(_, of)| preempts.contains(of));
        for (at, _) in unclaimed {
            plan.release(at, true);
        }
        plan
    }

    /// The jobs to be preempted, and the claim; `None`: preemption cannot help.
    fn find(mut self) -> Option<Preemption> {
        if let Some(hosts) = self.allocate() {
            return Some(self.whole(hosts));
        }
        for at in self.candidates() {
            self.job.looked();
            let hosts = self.job.class.view.preemptions.hosts_of(at);
            if self.is_limited() && !limits::helps_under_limits(self.job.class, at) {
                continue;
            }
            let helps = self.holds_wanted(at) || hosts.iter().any(|host| self.is_usable(host.0));
            if !helps || self.is_protected(at) {
                continue;
            }
            self.victims.push(at);
            self.release(at, true);
            if let Some(hosts) = self.allocate() {
                let hosts = self.fewest(hosts);
                return Some(self.whole(hosts));
            }
        }
        None
    }

    /// The running jobs that may be preempted, the first to be preempted first.
    fn candidates(&self) -> Box<dyn Iterator<Item = JobRef> + 'b> {
        let class = self.job.class;
        let (index, queue): (&'b Preemptions, &'b Queue) = (class.view.preemptions, class.queue);
        let apart = (class.any_slot() || class.one_host()) && !self.wants_shared();
        if let Some(hosts) = self.job.changed.filter(|_| apart) {
            return Box::new(self.candidates_on(hosts).into_iter());
        }
        let all = queue.preempts.iter().flat_map(|queue| index.running(*queue));
        if !class.view.site.params().preemption.fewest_jobs || class.max() == 1 {
            return Box::new(all);
        }
        let slots = |at: &JobRef| -> u32 { index.hosts_of(*at).iter().map(|on| on.1).sum() };
        let mut all: Vec<JobRef> = all.collect();
        all.sort_by_cached_key(|at| Reverse(slots(at)));
        Box::new(all.into_iter())
    }

    fn candidates_on(&self, hosts: &HostSet) -> Vec<JobRef> {
        let (class, view) = (self.job.class, &self.job.class.view);
        let place = |at: JobRef| {
            let (queue, since) = view.preemptions.runs(at)?;
            let position = class.queue.preempts.iter().position(|of| *of == queue)?;
            Some((position, since, at))
        };
        let on = hosts.iter().flat_map(|host| view.state.counts().started_on(host));
        let mut all: Vec<_> = on.filter_map(place).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(|place| place.2).collect()
    }

    /// Would a host do if nothing ran there?
    fn is_usable(&mut self, host: HostId) -> bool {
        let job = self.job;
        *self.usable.entry(host).or_insert_with(|| {
            job.looked();
            let rests = rests_until(job.class, host);
            rests.into_iter().for_each(|until| job.look_again(until));
            self.supposing.with_all(|| (job.host_after)(host, Leaving::ALL).is_ok())
        })
    }

    /// Is a job protected from preemption, now or for good?
    fn is_protected(&self, at: JobRef) -> bool {
        let class = self.job.class;
        let by = (class.queue.id, class.kind.user);
        let left_alone = class.view.preemptions.left_alone(at, by, class.view.now.secs());
        if left_alone.is_some_and(|until| self.job.waits(until)) {
            return true;
        }
        match protection(&self.job.class.view, at) {
            Protection::None if class.queue.conf.ignores.guarantees => false,
            Protection::None => is_guaranteed(&self.job.class.view, at, &self.victims),
            Protection::Until(secs) => self.job.waits(secs),
            Protection::ForGood => true,
        }
    }

    /// Does a job hold a preemptable resource that this one wants?
    fn holds_wanted(&self, at: JobRef) -> bool {
        let reserve = self.job.class.view.reserve;
        self.wanted.iter().any(|wanted| reserve.holds(at, wanted.resource))
    }

    /// Does the job want a resource that hosts share, so that others hold it anywhere?
    fn wants_shared(&self) -> bool {
        let reserve = self.job.class.view.reserve;
        self.wanted.iter().any(|wanted| reserve.is_shared(wanted.resource))
    }

    /// Preemptable resources of a job are vacated, or are not after all: the further hosts that
    /// have room for more jobs, or fewer, by that.
    fn release_resources(&self, at: JobRef, vacated: bool) -> BTreeSet<HostId> {
        let (class, reserve) = (self.job.class, self.job.class.view.reserve);
        let mut others = BTreeSet::new();
        for held in self.job.class.view.reserve.held(at) {
            let Some(of) = self.wanted.iter().find(|of| of.resource == held.resource) else {
                continue;
            };
            let times = || (class.left_on(held.host, held.resource) / of.amount + SLACK) as u64;
            let before = times();
            self.supposing.suppose(&held, vacated);
            if reserve.is_shared(held.resource) && times() != before {
                others.extend(reserve.hosts_of_row(held.row));
            }
        }
        others
    }

    /// Slots of a job are vacated, or are not after all.
    fn release(&mut self, at: JobRef, vacated: bool) {
        let others = match self.wanted.is_empty() {
            true => BTreeSet::new(),
            false => self.release_resources(at, vacated),
        };
        for &(host, n) in self.job.class.view.preemptions.hosts_of(at) {
            let released = self.released.entry(host).or_default();
            match vacated {
                true => released.1.push(at),
                false => released.1.retain(|other| *other != at),
            }
            released.0 = match vacated {
                true => released.0 + u64::from(n),
                false => released.0.saturating_sub(u64::from(n)),
            };
            self.free_on(host);
        }
        for host in others {
            if self.job.class.view.hosts.contains(host) && self.is_usable(host) {
                self.free_on(host);
            }
        }
    }

    /// Notes the slots of a host once those are vacated.
    fn free_on(&mut self, host: HostId) {
        let leaving = match self.released.get(&host) {
            Some((slots, jobs)) => Leaving { slots: *slots, jobs: Some(jobs) },
            None => Leaving::NONE,
        };
        let room = (self.job.host_after)(host, leaving);
        match room.map(|slots| slots.min(u64::from(self.job.class.max())) as u32) {
            Ok(slots) if slots > 0 => drop(self.free.insert(host, slots)),
            _ => drop(self.free.remove(&host)),
        }
    }

    /// Do limits under which preempted jobs do not count leave the user too few slots as it is?
    fn is_limited(&self) -> bool {
        self.job.class.room < u64::from(self.job.class.kind.min)
    }

    /// The slots of the job once those are vacated.
    fn allocate(&self) -> Option<Vec<(HostId, u32)>> {
        let class = self.job.class;
        let least = u64::from(class.kind.min);
        if self.is_limited() && limits::room_once_preempted(class, &self.victims) < least {
            return None;
        }
        if class.any_slot() {
            let host = self.free.keys().find(|host| class.begins(**host));
            return host.map(|host| vec![(*host, 1)]);
        }
        let counted =
            || self.free.iter().map(|(host, slots)| class.capacity_of_host(*host, *slots));
        let enough = match class.one_host() {
            true => counted().any(|slots| slots >= least),
            false => counted().sum::<u64>() >= least,
        };
        if !enough {
            return None;
        }
        let mut free: Vec<(HostId, u32)> = self.free.iter().map(|on| (*on.0, *on.1)).collect();
        free.sort_by_key(|on| Reverse(class.preference(on.0).unwrap_or_default()));
        class.allocate(&free)
    }

    /// Leaves out the jobs without which the others do, those found last first.
    fn fewest(&mut self, mut hosts: Vec<(HostId, u32)>) -> Vec<(HostId, u32)> {
        let index = self.job.class.view.preemptions;
        let helps = |hosts: &[(HostId, u32)], at: JobRef| {
            let there = |on: &(HostId, u32)| hosts.iter().any(|host| host.0 == on.0);
            let holds = index.hosts_of(at).iter().any(there) || self.holds_wanted(at);
            self.is_limited() || holds
        };
        let (needed, others): (Vec<_>, Vec<_>) =
            self.victims.iter().copied().partition(|at| helps(&hosts, *at));
        self.victims = needed;
        others.into_iter().for_each(|at| self.release(at, false));
        for at in self.victims.clone().into_iter().rev().take(MOST_TRIED) {
            let Some(place) = self.victims.iter().rposition(|victim| *victim == at) else {
                continue;
            };
            self.victims.remove(place);
            self.release(at, false);
            match self.allocate() {
                Some(without) => hosts = without,
                None => {
                    self.victims.insert(place, at);
                    self.release(at, true);
                }
            }
        }
        hosts
    }

    /// The amounts that the job is to get with slots on these hosts.
    fn claimed_resources(&self, hosts: &[(HostId, u32)]) -> Vec<ClaimedResource> {
        let (class, reserve) = (self.job.class, self.job.class.view.reserve);
        let mut all = Vec::new();
        for wanted in &self.wanted {
            let resource = wanted.resource;
            for (row, times) in reserve.rows_of(hosts, (resource, wanted.method)) {
                let amount = wanted.amount * times as f64;
                let host = hosts.iter().find(|host| reserve.row(host.0, resource) == row);
                let left = host.map_or(0.0, |host| class.left_on(host.0, resource));
                let free = (left - self.supposing.supposed(row, resource)).clamp(0.0, amount);
                all.push(ClaimedResource { row, resource, amount, free });
            }
        }
        all
    }

    /// The decision: with the jobs whose slots are about to be vacated for nobody.
    fn whole(self, hosts: Vec<(HostId, u32)>) -> Preemption {
        let (job, class) = (self.job, self.job.class);
        let index = class.view.preemptions;
        let on_hosts = |at: JobRef| {
            let there = |on: &(HostId, u32)| hosts.iter().any(|host| host.0 == on.0);
            index.hosts_of(at).iter().any(there) || self.holds_wanted(at)
        };
        let unclaimed = index.unclaimed().map(|(at, _)| at).filter(|at| on_hosts(*at));
        let victims = self.victims.iter().copied().chain(unclaimed).collect();
        let claimed = |&(host, slots): &(HostId, u32)| {
            let now = (job.host_after)(host, Leaving::NONE).unwrap_or(0);
            ClaimedHost { host, slots, free: now.min(u64::from(slots)) as u32 }
        };
        let resources = self.claimed_resources(&hosts);
        let hosts = hosts.iter().map(claimed).collect();
        let (queue, user) = (class.queue.id, class.kind.user);
        let wait = class.view.site.params().preemption.wait_secs;
        let until = class.view.now.secs().saturating_add_unsigned(wait);
        let claim = Claim { queue, user, victims, hosts, resources, until };
        Preemption { at: job.at, victims: self.victims, claim }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::sched::policy::{HostNow, Room};
    use crate::batch::tests::cluster::cluster;
    use crate::model::reason::PendReason;
    use crate::proto::sbd::Act;

    /// Keeps all jobs of the preemptive queue off hosts, but tells only when they are vacated.
    #[derive(Debug)]
    struct PromisesInVain;

    impl Policy for PromisesInVain {
        fn answers(&self) -> &'static [Question] {
            &[Question::Host]
        }

        fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
            match class.queue.preempts.is_empty() || host.leaving.slots > 0 {
                true => Room::ANY,
                false => Room::none(PendReason::HostUserLimit),
            }
        }
    }

    #[test]
    fn job_preempted_in_vain_is_left_alone_for_longer_each_time() {
        let high = "PRIORITY = 40; PREEMPTION = PREEMPTIVE[normal]";
        let site = cluster().hosts(1, 1).queue("normal", "PRIORITY = 30").queue("high", high);
        let mut c = site.up().with_policy(Box::new(PromisesInVain));
        let low = c.submit("ann", "-q normal");
        let begin = c.secs();
        c.submit("bob", "-q high");
        let mut times = Vec::new();
        for _ in 0..200 {
            let orders = c.orders();
            let stopped = orders.iter().filter(|order| **order == (low, Act::Suspend)).count();
            times.extend(std::iter::repeat_n(c.secs() - begin, stopped));
            c.advance(1);
        }
        assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 127, 191]);
        // another user's jobs were not in vain
        c.submit("eve", "-q high");
        assert!(c.orders().contains(&(low, Act::Suspend)));
    }
}
