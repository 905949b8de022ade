//! Guaranteed pools as of now: their slots, hosts, packages or units of a resource, how many of
//! these are free, and how many the jobs of each service class hold. From that follows what a pool
//! leaves a job (`pool_room`).
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
//! A package is there as long as a host has its slots and its memory free. A job of a class
//! occupies whole packages on each of its hosts, the rests of which nobody gets; any job takes of a
//! host only so much that the packages are left that are kept.
//!
//! Invariant: the sums of a pool are those of its hosts; a pool of a resource has no hosts, and its
//! amounts are parts of a unit. With no pool nothing here costs anything.

use crate::batch::site::Site;
use crate::batch::site::guarantees::{Package, Pool, PoolId, PoolKind};
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::state::change::{Change, ChangeKind};
use crate::batch::state::names::HostId;
use crate::batch::state::{Elem, State};
use crate::batch::usage::limits_ledger::Instances;
use crate::batch::usage::pool_holdings::{Aside, HeldAmount, Holder, Holding, holding_of, lends};
use crate::batch::usage::pool_now::PoolNow;
use crate::batch::usage::pool_room::{PackageRoom, PoolJob, PoolLeft, PoolNeed, PoolRoom};
use crate::batch::usage::reserve::ledger::Reserve;
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
    /// The memory of the host, and the free part of it, in parts of a MB; of pools of packages.
    pub mem: u64,
    pub mem_free: u64,
    /// A job has the host for itself: no other is started there, whatever slots are free.
    pub exclusive: bool,
}

impl HostFacts {
    pub(super) fn free(&self) -> u64 {
        if self.exclusive { 0 } else { self.max.saturating_sub(self.used) }
    }

    /// The packages of such a size, and what is free besides.
    fn package_room(&self, size: Package, aside: Option<&Aside>) -> PackageRoom {
        let Aside { lent, rest } = aside.copied().unwrap_or_default();
        let mem = if self.exclusive { 0 } else { self.mem_free };
        let (slots, mem) = (self.free().saturating_sub(rest.0), mem.saturating_sub(rest.1));
        let (occupied, need) = (rest != (0, 0), PoolNeed::default());
        PackageRoom { size, slots, mem, lent, occupied, rounds: false, vacated: 0, need }
    }

    /// The free slots that are of a pool.
    fn free_of(&self, pool: &Pool) -> u64 {
        let free = self.free();
        pool.conf.slots_per_host.map_or(free, |most| free.min(most.into()))
    }

    fn total_of(&self, pool: &Pool) -> u64 {
        if let Some(size) = pool.package() {
            return size.whole(self.max, self.mem);
        }
        pool.conf.slots_per_host.map_or(self.max, |most| self.max.min(most.into()))
    }
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

/// The jobs that wait for a pool to have more, by their class: `None`, those that are guaranteed
/// nothing there.
pub type PoolWait = (PoolId, Option<ServiceClassId>);

#[derive(Debug, Default)]
pub struct Guarantees {
    hosts: IdMap<HostId, HostFacts>,
    /// Slots of each kind of elements on each host.
    holders: IdMap<HostId, BTreeMap<Holder, u64>>,
    elements: BTreeMap<JobRef, Holding>,
    /// The packages that the jobs of each class occupy on each host.
    packages: BTreeMap<(HostId, PoolId, ServiceClassId), u64>,
    /// The slots and memory of each host that a pool of packages has lent, or that are rests of
    /// occupied packages.
    aside: BTreeMap<(HostId, PoolId), Aside>,
    pools: Vec<PoolNow>,
    /// The instances of the resource of each pool that is of one.
    instances: BTreeMap<PoolId, Instances>,
    /// Pending jobs of each class, not held, by its name.
    pending: BTreeMap<ServiceClassId, u64>,
    /// Hosts of pools whose facts may be others than before.
    stale: BTreeSet<HostId>,
    all_stale: bool,
    /// The amounts of resources may be others.
    resources_stale: bool,
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
    pub(crate) fn of_all(state: &State, site: &Site, reserve: &Reserve) -> Guarantees {
        let mut all = Guarantees::default();
        if site.pools.is_empty() {
            return all;
        }
        for (id, pool) in site.pools.iter() {
            if let Some(resource) = pool.resource() {
                all.instances.insert(id, Instances::of_rows(&resource.rows));
            }
            let mut now = PoolNow { used: vec![0; pool.members.len()], ..PoolNow::default() };
            now.settle(pool);
            all.pools.push(now);
        }
        state.counts().started().for_each(|at| all.refresh(state, site, reserve, at));
        state.each_job().for_each(|job| all.note_pending(state, site, job.id));
        (all.all_stale, all.resources_stale) = (true, true);
        all
    }

    /// The sums of a pool.
    pub fn now(&self, pool: PoolId) -> &PoolNow {
        &self.pools[pool.position()]
    }

    /// The instances of the resource of a pool.
    pub fn instances(&self, pool: PoolId) -> Option<&Instances> {
        self.instances.get(&pool)
    }

    /// The hosts that a pool has now.
    pub fn hosts_of(&self, site: &Site, pool: PoolId) -> Vec<HostId> {
        let has = |host: &HostId| self.hosts.get(host).is_some_and(|h| h.pools.contains(&pool));
        site.pools.get(pool).hosts.iter().copied().filter(has).collect()
    }

    /// A host of pools.
    pub(super) fn facts(&self, host: HostId) -> Option<&HostFacts> {
        self.hosts.get(&host)
    }

    /// The started elements that hold parts of pools or borrow.
    pub(super) fn holdings(&self) -> impl Iterator<Item = (JobRef, &Holding)> {
        self.elements.iter().map(|(at, holding)| (*at, holding))
    }

    /// The amount of a pool that others than its members use.
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

    /// The amounts of resources may be others than before.
    pub(crate) fn note_resources(&mut self) {
        self.resources_stale = true;
    }

    /// May they be others than when this was asked last?
    pub(crate) fn take_stale_resources(&mut self) -> bool {
        std::mem::take(&mut self.resources_stale)
    }

    /// All that there is of the resource of a pool, and the free part of it.
    pub(crate) fn set_resource(&mut self, site: &Site, id: PoolId, (total, free): (u64, u64)) {
        let now = self.now(id);
        if (now.total, now.free) != (total, free) {
            self.note_before(id);
            let now = &mut self.pools[id.position()];
            (now.total, now.free) = (total, free);
            now.settle(site.pools.get(id));
        }
    }

    /// A pool changes.
    fn note_before(&mut self, id: PoolId) {
        let now = &self.pools[id.position()];
        self.before.entry(id).or_insert_with(|| now.clone());
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
        pools.iter().for_each(|id| self.note_before(*id));
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
        match pool.package() {
            None => step(&mut now.free, facts.free_of(pool)),
            Some(size) => {
                let room = facts.package_room(size, self.aside.get(&(host, id)));
                step(&mut now.free, room.whole());
                step(&mut now.lent, room.whole_or_lent().saturating_sub(room.whole()));
            }
        }
        for (at, (class, _)) in pool.members.iter().enumerate() {
            let own = |of: &(&Holder, &u64)| of.0.class == Some(*class);
            let held: u64 = match pool.package() {
                Some(_) => self.packages.get(&(host, id, *class)).copied().unwrap_or(0),
                None => here.into_iter().flatten().filter(own).map(|of| of.1).sum(),
            };
            step(&mut now.used[at], held.min(facts.total_of(pool)));
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
        // a start may leave slots of a host beside its packages
        let other = other || pool.package().is_some();
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
    pub(crate) fn follow(
        &mut self,
        state: &State,
        site: &Site,
        reserve: &Reserve,
        change: &Change,
    ) {
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
        all.into_iter().for_each(|at| self.refresh(state, site, reserve, at));
        self.resources_stale = true;
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
    fn refresh(&mut self, state: &State, site: &Site, reserve: &Reserve, at: JobRef) {
        let holding = holding_of(state, site, reserve, at);
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
        for &(pool, host, aside) in &of.aside {
            self.change(site, host, &[pool], |all| {
                let key = (host, pool);
                let now = all.aside.remove(&key).unwrap_or_default().and(aside, add);
                if now != Aside::default() {
                    all.aside.insert(key, now);
                }
            });
        }
        for &HeldAmount { pool, host, amount } in &of.amounts {
            let Some(class) = of.holder.class else { continue };
            let step = |n: u64| if add { n + amount } else { n.saturating_sub(amount) };
            match host {
                Some(host) => self.change(site, host, &[pool], |all| {
                    let key = (host, pool, class);
                    match step(all.packages.remove(&key).unwrap_or(0)) {
                        0 => {}
                        held => drop(all.packages.insert(key, held)),
                    }
                }),
                None => {
                    let Some(member) = site.pools.get(pool).member(Some(class)) else { continue };
                    self.note_before(pool);
                    let now = &mut self.pools[pool.position()];
                    now.used[member] = step(now.used[member]);
                    now.settle(site.pools.get(pool));
                }
            }
        }
    }

    /// Notes the pending jobs that a job has in service classes.
    fn note_pending(&mut self, state: &State, site: &Site, id: u32) {
        let mut now: Vec<(ServiceClassId, u64)> = Vec::new();
        if let Some(job) = state.job(id).filter(|job| job.tally().pend > 0) {
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
            None if pool.of_hosts() || pool.package().is_some() => left,
            None => PoolLeft { all: u64::MAX, ..left },
        }
    }

    /// Does a pool leave a job of so many slots enough, whatever hosts it is given? Of a resource
    /// that depends on the amount that the job asks for.
    pub fn suffices(&self, site: &Site, id: PoolId, left: PoolLeft, slots: u64) -> bool {
        match site.pools.get(id).kind {
            PoolKind::Slots | PoolKind::Hosts => left.suffices(slots),
            PoolKind::Packages(_) => {
                let now = self.now(id);
                left.suffices(now.free.saturating_add(now.lent))
            }
            PoolKind::Resource(_) => false,
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
        let retain = loans.retain.map_or(0, |part| pool.amount_of(part, now.total));
        Some(now.free.saturating_sub(retain.min(now.unused)))
    }

    /// The slots of a host that a pool may give a job; `None`: it has no say there.
    pub fn on_host(
        &self,
        site: &Site,
        (id, host): (PoolId, HostId),
        job: PoolJob,
    ) -> Option<PoolRoom> {
        let pool = site.pools.get(id);
        if pool.resource().is_some() {
            return Some(PoolRoom::Resource(PoolNeed::default()));
        }
        let facts = self.hosts.get(&host).filter(|h| h.pools.contains(&id))?;
        if let Some(size) = pool.package() {
            let rounds = pool.member(job.class).is_some();
            let room = facts.package_room(size, self.aside.get(&(host, id)));
            return Some(PoolRoom::Packages(PackageRoom { rounds, ..room }));
        }
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
        let given: Vec<&Holding> = others.chain([own]).collect();
        let of_hosts = own.hosts.iter().flat_map(|of| site.pools.of_host(of.0)).copied();
        let of_amounts = own.amounts.iter().map(|of| of.pool);
        let pools: BTreeSet<PoolId> = of_hosts.chain(of_amounts).collect();
        pools.into_iter().any(|id| self.takes_guarantee(site, id, class, &given))
    }

    /// Does a class have less of a pool than it is guaranteed without what these hold of it?
    fn takes_guarantee(
        &self,
        site: &Site,
        id: PoolId,
        class: ServiceClassId,
        given: &[&Holding],
    ) -> bool {
        let (pool, now) = (site.pools.get(id), self.now(id));
        let Some(member) = pool.member(Some(class)) else { return false };
        let lost = match pool.kind {
            PoolKind::Slots | PoolKind::Hosts => self.slots_of(site, id, class, given),
            PoolKind::Packages(_) | PoolKind::Resource(_) => {
                let counts = |of: &&HeldAmount| {
                    of.pool == id && of.host.is_none_or(|host| self.has(id, host))
                };
                given.iter().flat_map(|of| &of.amounts).filter(counts).map(|of| of.amount).sum()
            }
        };
        now.used[member].saturating_sub(lost) < now.guaranteed[member].min(now.used[member])
    }

    /// Does a pool have a host now?
    fn has(&self, id: PoolId, host: HostId) -> bool {
        self.hosts.get(&host).is_some_and(|facts| facts.pools.contains(&id))
    }

    /// The slots or hosts of a pool that a class would not hold without these.
    fn slots_of(&self, site: &Site, id: PoolId, class: ServiceClassId, given: &[&Holding]) -> u64 {
        let pool = site.pools.get(id);
        let mut slots_on: BTreeMap<HostId, u64> = BTreeMap::new();
        for (host, slots) in given.iter().flat_map(|of| &of.hosts) {
            *slots_on.entry(*host).or_default() += slots;
        }
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
        slots_on.iter().map(lost).sum()
    }

    /// Is what is counted what the hosts and the started elements are? For tests and the
    /// simulator: it looks at every started element.
    pub fn audit(&self, state: &State, site: &Site, reserve: &Reserve) -> Result<(), String> {
        let mut anew = Guarantees::of_all(state, site, reserve);
        if self.elements != anew.elements {
            return Err(format!("classes hold {:?}, not {:?}", self.elements, anew.elements));
        }
        if self.pending != anew.pending {
            return Err(format!("{:?} wait for guarantees, not {:?}", self.pending, anew.pending));
        }
        for (host, facts) in &self.hosts {
            anew.set_host(site, *host, facts.clone());
        }
        for id in site.pools.of_resources() {
            let now = self.now(*id);
            anew.set_resource(site, *id, (now.total, now.free));
        }
        match self.pools == anew.pools {
            true => Ok(()),
            false => Err(format!("pools have {:?}, not {:?}", self.pools, anew.pools)),
        }
    }
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
