//! Amounts that several hosts have together by a limit of lsb.resources: what a job is given on one
//! host leaves less for it on the next. A limit on memory that is not about hosts is one of these,
//! too: the job draws from it on each of its hosts.
//!
//! Guaranteed pools are the same for what they leave a job together (lsb.resources(5)).
//!
//! A class without such a limit or pool costs nothing here.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::site::Site;
use crate::batch::site::guarantees::{Pool, PoolId};
use crate::batch::site::rules::{Counter, LimitedQuantity, Members, Rule, RuleId};
use crate::batch::state::names::HostId;
use crate::batch::usage::limits_ledger::{Demand, Draw};
use crate::batch::usage::pool_room::{PoolJob, PoolLeft, PoolNeed, PoolRoom};
use crate::model::reason::PendReason;

/// The hosts of a job, with its slots there.
type Hosts = Vec<(HostId, u32)>;

/// One rule, and what it leaves while hosts are gathered.
#[derive(Debug)]
struct JointRule<'a> {
    id: RuleId,
    rule: &'a Rule,
    left: u64,
    draw: Draw<'a>,
}

/// A guaranteed pool, and what it leaves while hosts are gathered.
struct JointPool<'a> {
    id: PoolId,
    job: PoolJob,
    view: View<'a>,
    queue: &'a Queue,
    left: PoolLeft,
    /// The memory or the resource that the job takes of it.
    draw: Draw<'a>,
}

impl JointPool<'_> {
    fn on_host(&self, host: HostId) -> Option<PoolRoom> {
        let view = &self.view;
        let room = view.guarantees.on_host(view.site, (self.id, host), self.job)?;
        let (_, used) = view.host_for((self.queue, false), host, 0);
        let need = PoolNeed { fixed: self.draw.fixed(host), per_slot: self.draw.per_slot() };
        Some(room.with_vacated(view.vacated_in_pools(host, used)).with_need(need))
    }
}

/// The rules and pools that left a job less than it could have had.
#[derive(Debug, Default)]
pub(super) struct Short {
    pub(super) rules: Vec<RuleId>,
    /// A guaranteed pool did.
    pub(super) pool: bool,
}

impl Short {
    pub fn of(rule: RuleId) -> Short {
        Short { rules: vec![rule], pool: false }
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.pool
    }

    /// The reasons of these.
    pub fn reasons(&self, site: &Site) -> Vec<PendReason> {
        let rules = self.rules.iter().map(|rule| site.rules.get(*rule).reason);
        rules.chain(self.pool.then_some(PendReason::Guaranteed)).collect()
    }
}

/// The amounts that the rules leave for one job of a class.
pub(super) struct JointRoom<'a> {
    rules: Vec<JointRule<'a>>,
    pools: Vec<JointPool<'a>>,
    short: Short,
}

impl<'a> JointRoom<'a> {
    pub fn new(look: &HostMatch<'a>) -> JointRoom<'a> {
        let (site, ledger) = (look.view.site, look.view.limits);
        let mut rules = Vec::new();
        for &(id, cell) in &look.limits.joint {
            let rule = site.rules.get(id);
            let demand = match rule.what {
                LimitedQuantity::Slots => Demand { per_slot: 1, ..Demand::default() },
                LimitedQuantity::Jobs => Demand { per_job: 1, ..Demand::default() },
                LimitedQuantity::Resource(resource) => {
                    Demand::of_requirement(site, look.simple, resource)
                }
            };
            if demand.is_nothing() {
                continue;
            }
            let member = || rule.member(&look.limits.consumer, HostId::MAX);
            let own = || ledger.used(Counter { rule: id, member: member() });
            let used = cell.map_or_else(own, |cell| ledger.cell(cell));
            let left = rule.amount.on(|| 1).saturating_sub(used);
            rules.push(JointRule {
                id,
                rule,
                left,
                draw: Draw::new(demand, ledger.instances(rule.what)),
            });
        }
        JointRoom { rules, pools: pools(look), short: Short::default() }
    }

    /// No rule is about this class, and no pool leaves it less than it could have.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.pools.is_empty()
    }

    /// A rule that leaves too little wherever the job may run, with its reason.
    pub fn full(&self, slots: u32) -> Option<(RuleId, PendReason)> {
        let least = |of: &JointRule| {
            let own = of.draw.per_slot().saturating_mul(slots.into());
            of.draw.fixed(HostId::MAX).saturating_add(own)
        };
        let mut anywhere = self.rules.iter().filter(|of| of.rule.scope.hosts == Members::All);
        anywhere.find(|of| least(of) > of.left).map(|of| (of.id, of.rule.reason))
    }

    /// The slots of these that a job may have on a host, besides those it was given.
    pub fn slots(&mut self, host: HostId, want: u64) -> u64 {
        let mut most = want;
        for of in self.rules.iter().filter(|of| of.rule.counts_on(host)) {
            let slots = match of.left.checked_sub(of.draw.fixed(host)) {
                None => 0,
                Some(rest) => rest.checked_div(of.draw.per_slot()).unwrap_or(u64::MAX),
            };
            if slots < want && !self.short.rules.contains(&of.id) {
                self.short.rules.push(of.id);
            }
            most = most.min(slots);
        }
        for of in &self.pools {
            let Some(here) = of.on_host(host) else { continue };
            let slots = of.left.slots(here);
            self.short.pool |= slots < want;
            most = most.min(slots);
        }
        most
    }

    /// The slots of a host that the rules leave a job for which so many count already; they are
    /// given to it where it would take them.
    pub fn gather(&mut self, look: &HostMatch, host: HostId, (slots, counted): (u64, u64)) -> u64 {
        if self.is_empty() {
            return slots;
        }
        let want = look.would_take(host, slots, counted);
        let slots = self.slots(host, want);
        // of hosts for the whole job each is looked at by itself; less than a tile may not be taken
        let alone = look.one_host() || look.is_placed_by_groups();
        let counts = |slots: u64| look.counting(host, slots.min(u64::from(u32::MAX)) as u32) > 0;
        if !alone && slots > 0 && counts(slots) {
            self.give(host, slots);
        }
        slots
    }

    /// The job gets so many slots of a host.
    pub fn give(&mut self, host: HostId, slots: u64) {
        for of in &mut self.rules {
            if of.rule.counts_on(host) {
                of.left = of.left.saturating_sub(of.draw.take(host, slots));
            } else if matches!(of.rule.what, LimitedQuantity::Resource(_)) {
                of.draw.began();
            }
        }
        for of in &mut self.pools {
            if let Some(here) = of.on_host(host) {
                of.left.take(here, slots);
            }
            of.draw.take(host, slots);
        }
    }

    /// A started job has these hosts already: it draws nothing for the job, nor for a host again.
    pub fn has(&mut self, hosts: &[(HostId, u32)]) {
        for of in &mut self.rules {
            for &(host, _) in hosts {
                of.draw.take(host, 0);
            }
        }
        for of in &mut self.pools {
            for (host, _) in hosts {
                of.draw.take(*host, 0);
            }
        }
    }

    /// May a job have all these slots? Asked of rules from which nothing was given yet.
    pub fn fits(mut self, hosts: &[(HostId, u32)]) -> Result<(), Short> {
        for &(host, slots) in hosts {
            if self.slots(host, slots.into()) < u64::from(slots) {
                return Err(self.short);
            }
            self.give(host, slots.into());
        }
        Ok(())
    }

    /// Hosts for a job among those with free slots, and the rules that leave too little for those
    /// that were found: the job is looked for again on the hosts that the rules allow of them, in
    /// their order, which suffice where it may have fewer slots. Asked of rules from which nothing
    /// was given yet; `None`: without regard to the rules the slots are too few.
    pub fn allocate(look: &HostMatch, free: &[(HostId, u32)]) -> Option<Result<Hosts, Short>> {
        let hosts = look.allocate(free)?;
        let mut room = JointRoom::new(look);
        let mut allowed = Vec::with_capacity(hosts.len());
        for &(host, slots) in &hosts {
            let left = room.slots(host, slots.into());
            if left > 0 {
                room.give(host, left);
                allowed.push(host);
            }
        }
        if room.short.is_empty() {
            return Some(Ok(hosts));
        }
        let rest: Hosts = free.iter().filter(|on| allowed.contains(&on.0)).copied().collect();
        let fewer = look.allocate(&rest).filter(|_| rest.len() < free.len());
        let fits = |hosts: &Hosts| JointRoom::new(look).fits(hosts).is_ok();
        Some(fewer.filter(fits).ok_or(room.short))
    }

    /// The rules and pools that left less than the job could have had.
    pub fn short(self) -> Short {
        self.short
    }

    /// The reason of the first of these.
    pub fn why(&self) -> Option<PendReason> {
        let Some(first) = self.short.rules.first() else {
            return self.short.pool.then_some(PendReason::Guaranteed);
        };
        self.rules.iter().find(|of| of.id == *first).map(|of| of.rule.reason)
    }
}

/// The pools that leave a job less than it could have.
fn pools<'a>(look: &HostMatch<'a>) -> Vec<JointPool<'a>> {
    let site = look.view.site;
    if site.pools.is_empty() || !look.kind.obeys_pools(site) {
        return Vec::new();
    }
    let job = look.kind.pool_job();
    let guarantees = look.view.guarantees;
    let pool = |(id, pool): (PoolId, &Pool)| {
        let left = guarantees.left(site, id, job);
        let demand = pool.drawn.map(|drawn| Demand::of_requirement(site, look.simple, drawn));
        let demand = demand.unwrap_or_default();
        let no_part = pool.resource().is_some() && demand.is_nothing();
        let enough = no_part || guarantees.suffices(site, id, left, look.max().into());
        let draw = Draw::new(demand, guarantees.instances(id));
        let (view, queue) = (look.view, look.queue);
        (!enough).then_some(JointPool { id, job, view, queue, left, draw })
    };
    site.pools.iter().filter_map(pool).collect()
}
