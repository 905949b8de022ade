//! Guaranteed pools as of now: their slots or hosts, how many of these are free, and how many the
//! jobs of each service class hold. From that follows what a pool leaves a job.
//!
//! A pool keeps what its classes are guaranteed and do not use. A class gets its guarantee, and
//! besides what is free beyond the guarantees of the others; any other job gets the latter alone,
//! and what the pool lends (LOAN_POLICIES).
//!
//! Invariant: the sums of a pool are those of its hosts. With no pool nothing here costs anything.

use crate::batch::site::Site;
use crate::batch::site::guarantees::{Pool, PoolId, amount_of};
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
}

impl HostFacts {
    /// The free slots that are of a pool.
    fn free_of(&self, pool: &Pool) -> u64 {
        let free = self.max.saturating_sub(self.used);
        pool.conf.slots_per_host.map_or(free, |most| free.min(most.into()))
    }

    fn total_of(&self, pool: &Pool) -> u64 {
        pool.conf.slots_per_host.map_or(self.max, |most| self.max.min(most.into()))
    }
}

/// A started element of a service class.
#[derive(Debug, PartialEq, Eq)]
struct Holding {
    class: ServiceClassId,
    hosts: Vec<(HostId, u64)>,
}

/// The sums of a pool, of slots or of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolNow {
    pub total: u64,
    pub free: u64,
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

    /// The amount that is free beyond all guarantees.
    pub fn surplus(&self) -> u64 {
        self.free.saturating_sub(self.unused)
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

/// The slots of a host of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolRoom {
    /// Slots that take nothing of the pool.
    pub beside: u64,
    /// Slots of the host that the pool may give, as long as it has some.
    pub slots: u64,
    /// A host counts as one, whatever number of slots.
    pub whole: bool,
}

impl PoolRoom {
    /// The slots for a job that the pool leaves so many.
    pub fn slots(&self, left: u64) -> u64 {
        match self.whole {
            false => self.beside.saturating_add(self.slots.min(left)),
            true if left > 0 => self.beside.max(self.slots),
            true => self.beside,
        }
    }

    /// The amount that so many slots of the host take of the pool.
    pub fn takes(&self, slots: u64) -> u64 {
        match self.whole {
            false => slots.saturating_sub(self.beside),
            true => u64::from(slots > 0 && self.beside == 0),
        }
    }
}

#[derive(Debug, Default)]
pub struct Guarantees {
    hosts: IdMap<HostId, HostFacts>,
    /// Slots of each class on each host.
    classes: IdMap<HostId, BTreeMap<ServiceClassId, u64>>,
    elements: BTreeMap<JobRef, Holding>,
    pools: Vec<PoolNow>,
    /// Pending jobs of each class, not held, by its name.
    pending: BTreeMap<ServiceClassId, u64>,
    /// Hosts of pools whose facts may be others than before.
    stale: BTreeSet<HostId>,
    all_stale: bool,
    /// The pools that have changed, as they were when growth was asked for last.
    before: BTreeMap<PoolId, PoolNow>,
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
        pools.iter().for_each(|id| self.count(site, *id, host, false));
        change(self);
        pools.iter().for_each(|id| self.count(site, *id, host, true));
        pools.iter().for_each(|id| self.pools[id.position()].settle(site.pools.get(*id)));
    }

    /// Adds a host to the sums of a pool, or takes it out.
    fn count(&mut self, site: &Site, id: PoolId, host: HostId, add: bool) {
        let Some(facts) = self.hosts.get(&host).filter(|h| h.pools.contains(&id)) else { return };
        let pool = site.pools.get(id);
        let here = self.classes.get(&host);
        let now = &mut self.pools[id.position()];
        let step = |n: &mut u64, by: u64| {
            *n = if add { n.saturating_add(by) } else { n.saturating_sub(by) };
        };
        if pool.of_hosts() {
            step(&mut now.total, 1);
            step(&mut now.free, u64::from(facts.used == 0));
            if let Some(owner) = owner(pool, facts, here) {
                step(&mut now.used[owner], 1);
            }
            return;
        }
        step(&mut now.total, facts.total_of(pool));
        step(&mut now.free, facts.free_of(pool));
        for (at, (class, _)) in pool.members.iter().enumerate() {
            let slots = here.and_then(|here| here.get(class)).copied().unwrap_or(0);
            step(&mut now.used[at], slots.min(facts.total_of(pool)));
        }
    }

    fn note_growth(&mut self, id: PoolId, pool: &Pool, before: &PoolNow) {
        let now = &self.pools[id.position()];
        let lent = pool.loans.is_some() && now.free > before.free;
        // a host that is in use is open to all, but where it is its class's own
        let returned = now.free >= now.unused && before.free < before.unused;
        let opened = now.used != before.used || now.free < before.free || returned;
        let opened = pool.of_hosts() && opened;
        let served = |at| now.unused_of(at) == 0 && before.unused_of(at) > 0;
        let closes = pool.loans.as_ref().is_some_and(|loans| loans.close_on_demand);
        let lent = lent || closes && (0..pool.members.len()).any(served);
        let surplus = now.surplus() > before.surplus() || lent || opened;
        let mut grown = Vec::new();
        for (at, (class, _)) in pool.members.iter().enumerate() {
            if surplus || now.unused_of(at) > before.unused_of(at) || now.unused < before.unused {
                grown.push((id, Some(*class)));
            }
        }
        if surplus {
            grown.push((id, None));
        }
        self.grown.extend(grown);
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
                let here = all.classes.entry(host).or_default();
                let held = here.entry(of.class).or_default();
                *held = if add { *held + slots } else { held.saturating_sub(slots) };
                if *held == 0 {
                    here.remove(&of.class);
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

    /// The slots, or hosts that are idle, that a pool leaves a job.
    pub fn left(&self, site: &Site, id: PoolId, job: PoolJob) -> u64 {
        let (pool, now) = (site.pools.get(id), self.now(id));
        let own = pool.member(job.class).map_or(0, |at| now.unused_of(at));
        let left = own.max(now.free.saturating_sub(now.unused - own));
        left.max(self.lent(pool, now, job).unwrap_or(0))
    }

    /// The amount that a pool lends a job; `None`: nothing is lent to it, whatever is free.
    fn lent(&self, pool: &Pool, now: &PoolNow, job: PoolJob) -> Option<u64> {
        let loans = pool.loans.as_ref()?;
        if loans.queue(job.queue)? {
            return Some(now.free);
        }
        let is_short = |most: u64| job.seconds.is_some_and(|seconds| seconds <= most);
        let closed = loans.close_on_demand && self.has_demand(pool, now);
        if closed || !loans.duration.is_none_or(is_short) {
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
            let beside = facts.max.saturating_sub(facts.used).saturating_sub(slots);
            return Some(PoolRoom { beside, slots, whole: false });
        }
        let room = |beside, slots| Some(PoolRoom { beside, slots, whole: true });
        if facts.used == 0 {
            return room(0, u64::MAX);
        }
        let now = self.now(id);
        let (owner, own) = (owner(pool, facts, self.classes.get(&host)), pool.member(job.class));
        let kept = owner.is_some_and(|owner| now.guaranteed[owner] > 0);
        // who joins those that have borrowed a host keeps it from its class, too
        let borrowed = now.free < now.unused;
        let joins = || !borrowed || self.lent(pool, now, job).is_some();
        let own_host = own.filter(|own| owner == Some(*own));
        let guaranteed = own.is_some_and(|own| match own_host {
            Some(_) => now.used[own] <= now.guaranteed[own],
            None => now.unused_of(own) > 0,
        });
        match (own_host.is_some() || !kept) && (guaranteed || joins()) {
            true => room(u64::MAX, 0),
            false => room(0, 0),
        }
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

/// The member whose jobs alone are on a host.
fn owner(
    pool: &Pool,
    facts: &HostFacts,
    here: Option<&BTreeMap<ServiceClassId, u64>>,
) -> Option<usize> {
    let here = here.filter(|here| here.len() == 1)?;
    let (class, slots) = here.iter().next()?;
    pool.member(Some(*class)).filter(|_| *slots >= facts.used && facts.used > 0)
}

/// The slots that a started element holds, where it is of a class and on a host of a pool.
fn holding_of(state: &State, site: &Site, at: JobRef) -> Option<Holding> {
    let class = &state.job(at.job)?.spec_at(at.idx).further.service_class;
    let class = site.service_classes.id(class)?;
    let ElemState::Run(run) = &state.elem(at)?.state else { return None };
    let of_pool = |of: &&(HostId, u32)| !site.pools.of_host(of.0).is_empty();
    let hosts: Vec<(HostId, u64)> =
        run.hosts.iter().filter(of_pool).map(|of| (of.0, of.1.into())).collect();
    (!hosts.is_empty()).then_some(Holding { class, hosts })
}
