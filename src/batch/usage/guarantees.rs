//! Guaranteed pools as of now: their slots or hosts, how many of these are free, and how many the
//! jobs of each service class hold. From that follows what a pool leaves a job.
//!
//! A pool keeps what its classes are guaranteed and do not use. A class gets its guarantee, and
//! besides what is free beyond the guarantees of the others; any other job gets the latter alone,
//! and what the pool lends (LOAN_POLICIES).
//!
//! A host of a pool of hosts that only borrowers use is lent: it comes back to the classes. A job
//! that joins the borrowers takes the host from the pool like an idle one, if it does not borrow
//! itself. Invariant: the hosts that are idle or lent are as many as the unused guarantees, but
//! for what members borrow themselves.
//!
//! Invariant: the sums of a pool are those of its hosts. With no pool nothing here costs anything.

use crate::batch::site::Site;
use crate::batch::site::guarantees::{Loans, Pool, PoolId, amount_of};
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::state::change::{Change, ChangeKind};
use crate::batch::state::names::{HostId, QueueId};
use crate::batch::state::{Elem, ElemState, State};
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::collections::{BTreeMap, BTreeSet};

/// A host as pools see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// The pools that have it: its status is one that counts, and RES_SELECT chooses it.
    pub pools: Vec<PoolId>,
    /// The slots of the host.
    pub max: u64,
    /// The slots in use.
    pub used: u64,
    /// A job has the host for itself: no other is started there, whatever slots are free.
    pub exclusive: bool,
}

impl HostFacts {
    fn free(&self) -> u64 {
        if self.exclusive { 0 } else { self.max.saturating_sub(self.used) }
    }

    /// The free slots that are of a pool.
    fn free_of(&self, pool: &Pool) -> u64 {
        let free = self.free();
        pool.conf.slots_per_host.map_or(free, |most| free.min(most.into()))
    }

    fn total_of(&self, pool: &Pool) -> u64 {
        pool.conf.slots_per_host.map_or(self.max, |most| self.max.min(most.into()))
    }
}

/// A kind of started elements, as pools see them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    class: Option<ServiceClassId>,
    /// The pools that lend to these.
    borrows: Vec<PoolId>,
}

/// A started element that is of a service class or borrows, on hosts of pools.
#[derive(Debug, PartialEq, Eq)]
struct Holding {
    holder: Holder,
    hosts: Vec<(HostId, u64)>,
}

/// The kind of jobs that use a host of a pool of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tenure {
    Idle,
    /// Only borrowers use it, of several classes or of none.
    Lent,
    /// A member's: only jobs of it use the host beside borrowers; or `lent`, jobs of it alone,
    /// all of which may borrow.
    Of {
        member: usize,
        lent: bool,
    },
    /// Jobs of others use it.
    Shared,
}

/// The sums of a pool, of slots or of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolNow {
    pub total: u64,
    pub free: u64,
    /// Hosts that only borrowers use; of a pool of hosts.
    pub lent: u64,
    /// The slots or hosts that each member holds.
    pub used: Vec<u64>,
    /// The guarantees of the members.
    pub guaranteed: Vec<u64>,
    /// The sum of what members are guaranteed and do not hold.
    pub unused: u64,
}

impl PoolNow {
    /// The amount that a member is guaranteed and does not hold.
    pub fn unused_of(&self, member: usize) -> u64 {
        self.guaranteed[member].saturating_sub(self.used[member])
    }

    /// The amounts that the guarantees leave a job of a member, or of none, without a loan.
    fn left(&self, member: Option<usize>) -> PoolLeft {
        let own = member.map_or(0, |at| self.unused_of(at));
        let others = self.unused - own;
        let beyond = |amount: u64| own.max(amount.saturating_sub(others));
        PoolLeft { free: beyond(self.free), all: beyond(self.free.saturating_add(self.lent)) }
    }

    /// Have borrowers, those of the members too, what the guarantees would need?
    fn is_short(&self) -> bool {
        self.free.saturating_add(self.lent) < self.unused
    }

    /// May a job of a member go to any host that is its own? Hosts beyond its guarantee may be
    /// borrowed.
    fn opens_own(&self, member: usize) -> bool {
        self.used[member] <= self.guaranteed[member] || !self.is_short()
    }

    fn settle(&mut self, pool: &Pool) {
        let total = self.total;
        let guaranteed = |of: &(ServiceClassId, _)| amount_of(of.1, total);
        self.guaranteed = pool.members.iter().map(guaranteed).collect();
        self.unused = (0..pool.members.len()).map(|at| self.unused_of(at)).sum();
    }
}

/// The jobs that wait for a pool to have more, by their class: `None`, those that are guaranteed
/// nothing there.
pub type PoolWait = (PoolId, Option<ServiceClassId>);

/// A job as pools look at it.
#[derive(Clone, Copy, Debug)]
pub struct PoolJob {
    pub class: Option<ServiceClassId>,
    pub queue: QueueId,
    /// How long it may run, seconds.
    pub seconds: Option<u64>,
}

/// The amounts that a pool leaves a job: slots, or hosts of whatever number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLeft {
    /// Slots, or idle hosts.
    free: u64,
    /// Hosts that are idle or lent; more than this the job is not given together.
    all: u64,
}

/// The slots of a host of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolRoom {
    Slots {
        /// Slots that take nothing of the pool.
        beside: u64,
        /// Slots of the host that the pool may give, as long as it has some.
        slots: u64,
    },
    /// A host that counts as one, whatever number of slots.
    Idle,
    /// A host that borrowers use: it counts as one, and is not idle.
    Lent,
    /// A host that takes nothing of the pool.
    Open,
    /// A host that is not for this job.
    Shut,
}

impl PoolRoom {
    /// The room of a host where preemption has vacated so many slots more: the pool counts them as
    /// used.
    pub fn with_vacated(self, vacated: u64) -> PoolRoom {
        match self {
            PoolRoom::Slots { beside, slots } => {
                PoolRoom::Slots { beside: beside.saturating_add(vacated), slots }
            }
            other => other,
        }
    }
}

impl PoolLeft {
    /// The slots of a host for this job.
    pub fn slots(self, of: PoolRoom) -> u64 {
        let whole = |hosts: u64| if hosts > 0 { u64::MAX } else { 0 };
        match of {
            PoolRoom::Slots { beside, slots } => beside.saturating_add(slots.min(self.free)),
            PoolRoom::Idle => whole(self.free.min(self.all)),
            PoolRoom::Lent => whole(self.all),
            PoolRoom::Open => u64::MAX,
            PoolRoom::Shut => 0,
        }
    }

    /// The job gets so many slots of a host.
    pub fn take(&mut self, of: PoolRoom, slots: u64) {
        let (free, all) = match of {
            PoolRoom::Slots { beside, .. } => (slots.saturating_sub(beside), 0),
            PoolRoom::Idle => (1, 1),
            PoolRoom::Lent => (0, 1),
            PoolRoom::Open | PoolRoom::Shut => (0, 0),
        };
        if slots > 0 {
            self.free = self.free.saturating_sub(free);
            self.all = self.all.saturating_sub(all);
        }
    }

    /// Is it enough for a job of so many slots, whatever hosts it is given?
    pub fn suffices(self, slots: u64) -> bool {
        self.free >= slots && self.all >= slots
    }
}

#[derive(Debug, Default)]
pub struct Guarantees {
    hosts: IdMap<HostId, HostFacts>,
    /// Slots of each kind of elements on each host.
    holders: IdMap<HostId, BTreeMap<Holder, u64>>,
    elements: BTreeMap<JobRef, Holding>,
    pools: Vec<PoolNow>,
    /// Pending jobs of each class, not held, by its name.
    pending: BTreeMap<ServiceClassId, u64>,
    /// Hosts of pools whose facts may be others than before.
    stale: BTreeSet<HostId>,
    all_stale: bool,
    /// The pools that have changed, as they were when growth was asked for last.
    before: BTreeMap<PoolId, PoolNow>,
    /// The pools of hosts one of whose hosts is another's than when growth was asked for last.
    opened: BTreeSet<PoolId>,
    /// The jobs to which a pool lends again.
    grown: BTreeSet<PoolWait>,
    pending_of: IdMap<u32, Vec<(ServiceClassId, u64)>>,
}

impl Guarantees {
    /// Everything anew, with another state or another configuration; the hosts are looked at next.
    pub(crate) fn of_all(state: &State, site: &Site) -> Guarantees {
        let mut all = Guarantees::default();
        if site.pools.is_empty() {
            return all;
        }
        for (_, pool) in site.pools.iter() {
            let mut now = PoolNow { used: vec![0; pool.members.len()], ..PoolNow::default() };
            now.settle(pool);
            all.pools.push(now);
        }
        state.counts().started().for_each(|at| all.refresh(state, site, at));
        state.each_job().for_each(|job| all.note_pending(state, site, job.id));
        all.all_stale = true;
        all
    }

    /// The sums of a pool.
    pub fn now(&self, pool: PoolId) -> &PoolNow {
        &self.pools[pool.position()]
    }

    /// The hosts that a pool has now.
    pub fn hosts_of(&self, site: &Site, pool: PoolId) -> Vec<HostId> {
        let has = |host: &HostId| self.hosts.get(host).is_some_and(|h| h.pools.contains(&pool));
        site.pools.get(pool).hosts.iter().copied().filter(has).collect()
    }

    /// Slots of a pool that others than its members use.
    pub fn used_by_others(&self, pool: PoolId) -> u64 {
        let now = self.now(pool);
        now.total.saturating_sub(now.free).saturating_sub(now.used.iter().sum())
    }

    /// A host may be another than before.
    pub(crate) fn note_host(&mut self, host: HostId) {
        self.stale.insert(host);
    }

    /// All hosts may.
    pub(crate) fn note_all_hosts(&mut self) {
        self.all_stale = true;
    }

    /// The hosts to be looked at, since this was asked last.
    pub(crate) fn take_stale(&mut self, site: &Site) -> BTreeSet<HostId> {
        let some = std::mem::take(&mut self.stale);
        match std::mem::take(&mut self.all_stale) {
            true => site.pools.hosts().collect(),
            false => some,
        }
    }

    /// The jobs that may find more than before, since this was asked last.
    pub(crate) fn take_grown(&mut self, site: &Site) -> BTreeSet<PoolWait> {
        for (id, before) in std::mem::take(&mut self.before) {
            self.note_growth(id, site.pools.get(id), &before);
        }
        self.opened.clear();
        std::mem::take(&mut self.grown)
    }

    /// The facts of a host as of now.
    pub(crate) fn set_host(&mut self, site: &Site, host: HostId, facts: HostFacts) {
        if self.hosts.get(&host) == Some(&facts) {
            return;
        }
        let none = HostFacts::default();
        let touched: Vec<PoolId> = {
            let before = self.hosts.get(&host).unwrap_or(&none);
            before.pools.iter().chain(&facts.pools).copied().collect()
        };
        self.change(site, host, &touched, |all| {
            all.hosts.insert(host, facts);
        });
    }

    /// Changes a host and, with it, the sums of these pools.
    fn change(
        &mut self,
        site: &Site,
        host: HostId,
        touched: &[PoolId],
        change: impl FnOnce(&mut Guarantees),
    ) {
        let pools: BTreeSet<PoolId> = touched.iter().copied().collect();
        for id in &pools {
            let now = &self.pools[id.position()];
            self.before.entry(*id).or_insert_with(|| now.clone());
        }
        let tenures = |all: &Guarantees| -> Vec<Option<Tenure>> {
            pools.iter().map(|id| all.tenure(site, *id, host)).collect()
        };
        let before = tenures(self);
        pools.iter().for_each(|id| self.count(site, *id, host, false));
        change(self);
        // a start is no change of its host, and may open it to others
        let now = tenures(self);
        let moved = pools.iter().zip(before.iter().zip(&now)).filter(|(_, (was, is))| was != is);
        self.opened.extend(moved.map(|(id, _)| *id));
        pools.iter().for_each(|id| self.count(site, *id, host, true));
        pools.iter().for_each(|id| self.pools[id.position()].settle(site.pools.get(*id)));
    }

    /// The tenure of a host; `None`: it is not of the pool, or that is one of slots.
    fn tenure(&self, site: &Site, id: PoolId, host: HostId) -> Option<Tenure> {
        let pool = site.pools.get(id);
        let facts = self.hosts.get(&host).filter(|h| pool.of_hosts() && h.pools.contains(&id))?;
        Some(tenure((id, pool), facts, self.holders.get(&host)))
    }

    /// Adds a host to the sums of a pool, or takes it out.
    fn count(&mut self, site: &Site, id: PoolId, host: HostId, add: bool) {
        let Some(facts) = self.hosts.get(&host).filter(|h| h.pools.contains(&id)) else { return };
        let pool = site.pools.get(id);
        let here = self.holders.get(&host);
        let now = &mut self.pools[id.position()];
        let step = |n: &mut u64, by: u64| {
            *n = if add { n.saturating_add(by) } else { n.saturating_sub(by) };
        };
        if pool.of_hosts() {
            step(&mut now.total, 1);
            match tenure((id, pool), facts, here) {
                Tenure::Idle => step(&mut now.free, 1),
                Tenure::Lent => step(&mut now.lent, 1),
                Tenure::Of { member, .. } => step(&mut now.used[member], 1),
                Tenure::Shared => {}
            }
            return;
        }
        step(&mut now.total, facts.total_of(pool));
        step(&mut now.free, facts.free_of(pool));
        for (at, (class, _)) in pool.members.iter().enumerate() {
            let own = |of: &(&Holder, &u64)| of.0.class == Some(*class);
            let slots: u64 = here.into_iter().flatten().filter(own).map(|of| of.1).sum();
            step(&mut now.used[at], slots.min(facts.total_of(pool)));
        }
    }

    fn note_growth(&mut self, id: PoolId, pool: &Pool, before: &PoolNow) {
        let now = &self.pools[id.position()];
        let served = |at| now.unused_of(at) == 0 && before.unused_of(at) > 0;
        let lent = pool.loans.as_ref().is_some_and(|loans| {
            let opens = loans.close_on_demand && (0..pool.members.len()).any(served);
            opens || now.free > before.free || now.unused < before.unused
        });
        // a host is kept for the class that has it where that is guaranteed something
        let other = now.total != before.total || lent || self.opened.contains(&id);
        let grew = |member: Option<usize>| {
            let (left, had) = (now.left(member), before.left(member));
            let opens = |at| now.opens_own(at) && !before.opens_own(at);
            left.free > had.free || left.all > had.all || member.is_some_and(opens)
        };
        let members = (0..pool.members.len()).map(Some).chain([None]);
        let grown = members.filter(|member| other || grew(*member));
        let class = |member: Option<usize>| member.map(|at| pool.members[at].0);
        self.grown.extend(grown.map(|member| (id, class(member))));
    }

    /// Follows a change of a job; the hosts whose slots it has taken or given back are stale then.
    pub(crate) fn follow(&mut self, state: &State, site: &Site, change: &Change) {
        if site.pools.is_empty() {
            return;
        }
        let at = change.at;
        self.note_pending(state, site, at.job);
        let array = state.job(at.job).and_then(|job| job.array());
        let all: Vec<JobRef> = match (&change.kind, array) {
            (ChangeKind::Modified { .. }, Some(array)) => {
                array.started().map(|idx| JobRef { job: at.job, idx }).collect()
            }
            _ => vec![at],
        };
        all.into_iter().for_each(|at| self.refresh(state, site, at));
        if let ChangeKind::Element { held, .. } = &change.kind {
            let now = state.elem(at).and_then(Elem::run).map(|run| &run.hosts);
            let hosts = held.iter().map(|held| &held.hosts).chain(now);
            for (host, _) in hosts.flat_map(|of| of.iter()) {
                if !site.pools.of_host(*host).is_empty() {
                    self.stale.insert(*host);
                }
            }
        }
    }

    /// Notes what an element that changed holds for its class.
    fn refresh(&mut self, state: &State, site: &Site, at: JobRef) {
        let holding = holding_of(state, site, at);
        if self.elements.get(&at) == holding.as_ref() {
            return;
        }
        if let Some(old) = self.elements.remove(&at) {
            self.hold(site, &old, false);
        }
        if let Some(new) = holding {
            self.hold(site, &new, true);
            self.elements.insert(at, new);
        }
    }

    fn hold(&mut self, site: &Site, of: &Holding, add: bool) {
        for &(host, slots) in &of.hosts {
            let touched = site.pools.of_host(host);
            self.change(site, host, touched, |all| {
                let here = all.holders.entry(host).or_default();
                let held = here.entry(of.holder.clone()).or_default();
                *held = if add { *held + slots } else { held.saturating_sub(slots) };
                if *held == 0 {
                    here.remove(&of.holder);
                }
            });
        }
    }

    /// Notes the pending jobs that a job has in service classes.
    fn note_pending(&mut self, state: &State, site: &Site, id: u32) {
        let mut now: Vec<(ServiceClassId, u64)> = Vec::new();
        if let Some(job) = state.job(id).filter(|job| job.tally.pend > 0) {
            for part in 0..=job.parts().len() as u32 {
                let class = site.service_classes.id(&job.spec_of(part).further.service_class);
                let waiting = u64::from(job.waiting(part));
                now.extend(class.filter(|_| waiting > 0).map(|class| (class, waiting)));
            }
        }
        let before = match now.is_empty() {
            true if self.pending_of.is_empty() => return,
            true => self.pending_of.remove(&id),
            false => self.pending_of.insert(id, now.clone()),
        };
        for (class, jobs) in now {
            *self.pending.entry(class).or_default() += jobs;
        }
        for (class, jobs) in before.into_iter().flatten() {
            let left = self.pending.entry(class).or_default();
            *left = left.saturating_sub(jobs);
            if *left == 0 {
                self.pending.remove(&class);
                self.note_no_demand(site, class);
            }
        }
    }

    /// No job of a class waits any more: pools may lend again.
    fn note_no_demand(&mut self, site: &Site, class: ServiceClassId) {
        for (id, pool) in site.pools.iter() {
            let closes = pool.loans.as_ref().is_some_and(|loans| loans.close_on_demand);
            if closes && pool.member(Some(class)).is_some() {
                self.grown.insert((id, None));
                self.grown.extend(pool.members.iter().map(|of| (id, Some(of.0))));
            }
        }
    }

    /// Does a job of a member wait that its guarantee has room for?
    fn has_demand(&self, pool: &Pool, now: &PoolNow) -> bool {
        let waits = |class| self.pending.get(class).is_some_and(|jobs| *jobs > 0);
        let mut members = pool.members.iter().enumerate();
        members.any(|(at, (class, _))| waits(class) && now.unused_of(at) > 0)
    }

    /// The amounts that a pool leaves a job.
    pub fn left(&self, site: &Site, id: PoolId, job: PoolJob) -> PoolLeft {
        let (pool, now) = (site.pools.get(id), self.now(id));
        let left = now.left(pool.member(job.class));
        match self.lent(pool, now, job) {
            Some(lent) => PoolLeft { free: left.free.max(lent), all: u64::MAX },
            None if pool.of_hosts() => left,
            None => PoolLeft { all: u64::MAX, ..left },
        }
    }

    /// The amount that a pool lends a job; `None`: nothing is lent to it, whatever is free.
    fn lent(&self, pool: &Pool, now: &PoolNow, job: PoolJob) -> Option<u64> {
        let loans = pool.loans.as_ref()?;
        let marked = lends(loans, job)?;
        if marked {
            return Some(now.free);
        }
        if loans.close_on_demand && self.has_demand(pool, now) {
            return None;
        }
        let retain = loans.retain.map_or(0, |part| amount_of(part, now.total));
        Some(now.free.saturating_sub(retain.min(now.unused)))
    }

    /// The slots of a host that a pool may give a job; `None`: it has no say there.
    pub fn on_host(
        &self,
        site: &Site,
        (id, host): (PoolId, HostId),
        job: PoolJob,
    ) -> Option<PoolRoom> {
        let facts = self.hosts.get(&host).filter(|h| h.pools.contains(&id))?;
        let pool = site.pools.get(id);
        if !pool.of_hosts() {
            let slots = facts.free_of(pool);
            let beside = facts.free().saturating_sub(slots);
            return Some(PoolRoom::Slots { beside, slots });
        }
        let (now, own) = (self.now(id), pool.member(job.class));
        Some(match tenure((id, pool), facts, self.holders.get(&host)) {
            Tenure::Idle => PoolRoom::Idle,
            Tenure::Lent => PoolRoom::Lent,
            Tenure::Shared => PoolRoom::Open,
            Tenure::Of { member, .. } if own == Some(member) => {
                match now.opens_own(member) || self.lent(pool, now, job).is_some() {
                    true => PoolRoom::Open,
                    false => PoolRoom::Shut,
                }
            }
            Tenure::Of { member, .. } if now.guaranteed[member] > 0 => PoolRoom::Shut,
            Tenure::Of { lent: true, .. } => PoolRoom::Lent,
            Tenure::Of { lent: false, .. } => PoolRoom::Open,
        })
    }

    /// Would the class of a started element use less than a pool guarantees it, without the element
    /// and without these others?
    pub fn is_needed(&self, site: &Site, at: JobRef, gone: impl Iterator<Item = JobRef>) -> bool {
        let Some(own) = self.elements.get(&at) else { return false };
        let Some(class) = own.holder.class else { return false };
        let of_class =
            |at: JobRef| self.elements.get(&at).filter(|of| of.holder.class == Some(class));
        let gone: BTreeSet<JobRef> = gone.filter(|other| *other != at).collect();
        let others = gone.into_iter().filter_map(of_class);
        let mut given: BTreeMap<HostId, u64> = BTreeMap::new();
        for (host, slots) in others.chain([own]).flat_map(|of| &of.hosts) {
            *given.entry(*host).or_default() += slots;
        }
        let pools: BTreeSet<PoolId> =
            own.hosts.iter().flat_map(|of| site.pools.of_host(of.0)).copied().collect();
        pools.into_iter().any(|id| self.takes_guarantee(site, id, class, &given))
    }

    /// Does a class have less of a pool than it is guaranteed without these slots of it?
    fn takes_guarantee(
        &self,
        site: &Site,
        id: PoolId,
        class: ServiceClassId,
        given: &BTreeMap<HostId, u64>,
    ) -> bool {
        let (pool, now) = (site.pools.get(id), self.now(id));
        let Some(member) = pool.member(Some(class)) else { return false };
        let lost = |(host, slots): (&HostId, &u64)| -> u64 {
            let Some(facts) = self.hosts.get(host).filter(|h| h.pools.contains(&id)) else {
                return 0;
            };
            let own = |of: &(&Holder, &u64)| of.0.class == Some(class);
            let here = self.holders.get(host).into_iter().flatten();
            let held: u64 = here.filter(own).map(|of| of.1).sum();
            let left = held.saturating_sub(*slots);
            match pool.of_hosts() {
                true => u64::from(left == 0),
                false => held.min(facts.total_of(pool)) - left.min(facts.total_of(pool)),
            }
        };
        let all: u64 = given.iter().map(lost).sum();
        now.used[member].saturating_sub(all) < now.guaranteed[member].min(now.used[member])
    }

    /// Is what is counted what the hosts and the started elements are? For tests and the
    /// simulator: it looks at every started element.
    pub fn audit(&self, state: &State, site: &Site) -> Result<(), String> {
        let mut anew = Guarantees::of_all(state, site);
        if self.elements != anew.elements {
            return Err(format!("classes hold {:?}, not {:?}", self.elements, anew.elements));
        }
        if self.pending != anew.pending {
            return Err(format!("{:?} wait for guarantees, not {:?}", self.pending, anew.pending));
        }
        for (host, facts) in &self.hosts {
            anew.set_host(site, *host, facts.clone());
        }
        match self.pools == anew.pools {
            true => Ok(()),
            false => Err(format!("pools have {:?}, not {:?}", self.pools, anew.pools)),
        }
    }
}

/// Does a pool lend to a job, by its queue and its length? True: whatever the other conditions.
fn lends(loans: &Loans, job: PoolJob) -> Option<bool> {
    let marked = loans.queue(job.queue)?;
    let is_short = |most: u64| job.seconds.is_some_and(|seconds| seconds <= most);
    (marked || loans.duration.is_none_or(is_short)).then_some(marked)
}

/// The kind of jobs that use a host of a pool of hosts.
fn tenure(
    (id, pool): (PoolId, &Pool),
    facts: &HostFacts,
    here: Option<&BTreeMap<Holder, u64>>,
) -> Tenure {
    if facts.used == 0 {
        return Tenure::Idle;
    }
    let borrowers = || {
        let all = here.into_iter().flatten();
        all.filter(|of| of.0.borrows.contains(&id))
    };
    let borrowed: u64 = borrowers().map(|of| of.1).sum();
    let firm = facts.used.saturating_sub(borrowed);
    if firm == 0 {
        let first = borrowers().next().map(|of| of.0.class);
        let alone = first.filter(|class| borrowers().all(|of| of.0.class == *class));
        let member = alone.and_then(|class| pool.member(class));
        return member.map_or(Tenure::Lent, |member| Tenure::Of { member, lent: true });
    }
    let all = here.into_iter().flatten();
    let mut firms = all.filter(|of| !of.0.borrows.contains(&id));
    // jobs of a class that borrow from another pool are a kind of their own
    let Some(class) = firms.next().map(|of| of.0.class) else { return Tenure::Shared };
    let slots = |class| {
        let all = here.into_iter().flatten();
        let own = all.filter(|of| of.0.class == class && !of.0.borrows.contains(&id));
        own.map(|of| of.1).sum::<u64>()
    };
    let member = pool.member(class).filter(|_| slots(class) >= firm);
    member.map_or(Tenure::Shared, |member| Tenure::Of { member, lent: false })
}

/// The slots that a started element holds, where it is of a class or borrows, and on a host of a
/// pool.
fn holding_of(state: &State, site: &Site, at: JobRef) -> Option<Holding> {
    let job = state.job(at.job)?;
    let ElemState::Run(run) = &job.elem(at.idx)?.state else { return None };
    let of_pool = |of: &&(HostId, u32)| !site.pools.of_host(of.0).is_empty();
    let hosts: Vec<(HostId, u64)> =
        run.hosts.iter().filter(of_pool).map(|of| (of.0, of.1.into())).collect();
    if hosts.is_empty() {
        return None;
    }
    let part = job.part_no(at.idx);
    let spec = job.spec_of(part);
    let class = site.service_classes.id(&spec.further.service_class);
    let of = PoolJob { class, queue: job.queue_of(part), seconds: spec.limits.run };
    let lends = |of_pool: &Pool| of_pool.loans.as_ref().is_some_and(|l| lends(l, of).is_some());
    let pools = site.pools.iter().filter(|(_, pool)| pool.of_hosts() && lends(pool));
    let holder = Holder { class, borrows: pools.map(|(id, _)| id).collect() };
    (class.is_some() || !holder.borrows.is_empty()).then_some(Holding { holder, hosts })
}
