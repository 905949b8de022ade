//! The guaranteed pools, compiled (lsb.resources(5), GuaranteedResourcePool).

use crate::batch::site::requirements::{Names, Req};
use crate::batch::site::rules::RESOURCE_PARTS;
use crate::batch::site::service_classes::{ServiceClassId, ServiceClasses};
use crate::batch::state::names::{HostId, QueueId, ResourceId};
use crate::conf::types::{BaseConf, GuaranteedPoolConf, LoanConf, PoolAmount, PoolType};
use crate::lim::facts;
use crate::model::idmap::IdMap;
use std::collections::BTreeMap;

/// The position of a pool among those that act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(u16);

impl PoolId {
    pub fn position(self) -> usize {
        self.0.into()
    }
}

/// To whom a pool lends what its service classes do not use.
#[derive(Debug, Default)]
pub struct Loans {
    /// The jobs of every queue borrow; true: whatever the other conditions say.
    all: Option<bool>,
    /// The queues whose jobs borrow, likewise.
    queues: BTreeMap<QueueId, bool>,
    pub retain: Option<PoolAmount>,
    /// The longest run limit of jobs that borrow, seconds.
    pub duration: Option<u64>,
    pub close_on_demand: bool,
}

impl Loans {
    fn compile(conf: &LoanConf, queue: impl Fn(&str) -> Option<QueueId>) -> Loans {
        let (mut all, mut queues) = (None, BTreeMap::new());
        for word in &conf.queues {
            match queue(&word.name) {
                _ if word.name == "all" => all = Some(word.exclude),
                Some(id) => drop(queues.insert(id, word.exclude)),
                None => {}
            }
        }
        let duration = conf.duration.map(|minutes| u64::from(minutes) * 60);
        let close_on_demand = conf.close_on_demand;
        Loans { all, queues, retain: conf.retain, duration, close_on_demand }
    }

    /// Do the jobs of a queue borrow? True: whatever the other conditions say.
    pub fn queue(&self, queue: QueueId) -> Option<bool> {
        self.queues.get(&queue).copied().or(self.all)
    }
}

/// Slots and memory together on a host; 0: none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    pub slots: u64,
    /// Parts of a MB.
    pub mem: u64,
}

impl Package {
    /// The packages that these slots and this memory of a host are.
    pub fn whole(self, slots: u64, mem: u64) -> u64 {
        let of = |all: u64, one: u64| all.checked_div(one).unwrap_or(u64::MAX);
        of(slots, self.slots).min(of(mem, self.mem))
    }

    /// The slots and the memory of the packages that a job with these on a host occupies.
    pub fn rounded(self, slots: u64, mem: u64) -> (u64, u64) {
        let n = self.occupied(slots, mem);
        (n.saturating_mul(self.slots).max(slots), n.saturating_mul(self.mem).max(mem))
    }

    /// The packages that a job with these on a host occupies.
    pub fn occupied(self, slots: u64, mem: u64) -> u64 {
        let of = |all: u64, one: u64| if one == 0 { 0 } else { all.div_ceil(one) };
        of(slots, self.slots).max(of(mem, self.mem))
    }
}

/// A resource of lsf.shared of which a pool is.
#[derive(Debug)]
pub struct PoolResource {
    pub id: ResourceId,
    pub name: String,
    /// The hosts of each instance.
    pub rows: Vec<Vec<HostId>>,
}

/// The things of which a pool is.
#[derive(Debug)]
pub enum PoolKind {
    Slots,
    Hosts,
    Packages(Package),
    Resource(PoolResource),
}

/// A pool.
#[derive(Debug)]
pub struct Pool {
    pub conf: GuaranteedPoolConf,
    pub kind: PoolKind,
    /// The resource that jobs take of it: memory, or its own.
    pub drawn: Option<ResourceId>,
    /// The classes with their guarantees.
    pub members: Vec<(ServiceClassId, PoolAmount)>,
    pub loans: Option<Loans>,
    /// RES_SELECT.
    pub select: Option<Req>,
    /// The hosts of HOSTS, whether RES_SELECT chooses them or not.
    pub hosts: Vec<HostId>,
}

impl Pool {
    /// The position of a class among the members.
    pub fn member(&self, class: Option<ServiceClassId>) -> Option<usize> {
        let class = class?;
        self.members.iter().position(|of| of.0 == class)
    }

    /// Are whole hosts guaranteed?
    pub fn of_hosts(&self) -> bool {
        matches!(self.kind, PoolKind::Hosts)
    }

    /// The size of its packages, if it is of packages.
    pub fn package(&self) -> Option<Package> {
        match self.kind {
            PoolKind::Packages(size) => Some(size),
            _ => None,
        }
    }

    /// The resource of which it is.
    pub fn resource(&self) -> Option<&PoolResource> {
        match &self.kind {
            PoolKind::Resource(resource) => Some(resource),
            _ => None,
        }
    }

    /// The parts of a unit in which amounts of the pool are counted.
    pub fn parts(&self) -> u64 {
        if self.resource().is_some() { RESOURCE_PARTS as u64 } else { 1 }
    }

    /// A part of a total, in its parts; a percentage is rounded down to whole units.
    pub fn amount_of(&self, amount: PoolAmount, total: u64) -> u64 {
        let parts = self.parts();
        match amount {
            PoolAmount::Fixed(n) => u64::from(n).saturating_mul(parts),
            PoolAmount::Percent(percent) => {
                let units = (total / parts) as f64;
                ((units * percent / 100.0 + 1e-9) as u64).saturating_mul(parts)
            }
        }
    }
}

/// The parts of the configuration from which pools are made, beside their sections.
pub(super) struct PoolSources<'a> {
    pub(super) classes: &'a ServiceClasses,
    pub(super) names: &'a Names,
    pub(super) base: &'a BaseConf,
    /// The hosts of HOSTS.
    pub(super) hosts: &'a dyn Fn(&GuaranteedPoolConf) -> Vec<HostId>,
    pub(super) queue: &'a dyn Fn(&str) -> Option<QueueId>,
    pub(super) host: &'a dyn Fn(&str) -> Option<HostId>,
}

impl PoolSources<'_> {
    /// The things of which a pool is, and the resource that jobs take of it; `None`: nothing acts
    /// on it.
    fn kind(&self, conf: &GuaranteedPoolConf) -> Option<(PoolKind, Option<ResourceId>)> {
        Some(match &conf.kind {
            PoolType::Slots => (PoolKind::Slots, None),
            PoolType::Hosts => (PoolKind::Hosts, None),
            PoolType::Package(size) => {
                let unit_mb = self.base.lsf.requirement_unit_mb();
                let mem = (f64::from(size.mem) * unit_mb * RESOURCE_PARTS) as u64;
                let package = Package { slots: size.slots.into(), mem };
                (PoolKind::Packages(package), self.names.id("mem").filter(|_| size.mem > 0))
            }
            PoolType::Resource(name) => {
                let id = self.names.id(name)?;
                let instances = facts::all_instances(self.base, name);
                let ids =
                    |hosts: &Vec<String>| hosts.iter().filter_map(|h| (self.host)(h)).collect();
                let (name, rows) = (name.clone(), instances.iter().map(ids).collect());
                (PoolKind::Resource(PoolResource { id, name, rows }), Some(id))
            }
            PoolType::Unknown => return None,
        })
    }
}

/// The pools that act, in the order of the file.
#[derive(Debug, Default)]
pub struct Pools {
    all: Vec<Pool>,
    of_host: IdMap<HostId, Vec<PoolId>>,
    /// The pools of resources, which are of no host.
    of_resources: Vec<PoolId>,
    /// Some pool lends to jobs of short run limits alone.
    timed: bool,
}

impl Pools {
    pub(super) fn compile<'a>(
        conf: impl Iterator<Item = &'a GuaranteedPoolConf>,
        of: &PoolSources,
    ) -> Pools {
        let mut pools = Pools::default();
        let acting = conf.filter_map(|conf| Some((conf, of.kind(conf)?)));
        for (conf, (kind, drawn)) in acting.take(usize::from(u16::MAX)) {
            let id = PoolId(pools.all.len() as u16);
            let member = |guarantee: &crate::conf::types::GuaranteeConf| {
                Some((of.classes.id(&guarantee.class.text)?, guarantee.amount))
            };
            let of_resource = matches!(kind, PoolKind::Resource(_));
            let pool = Pool {
                kind,
                drawn,
                members: conf.distribution.iter().filter_map(member).collect(),
                loans: conf.loans.as_ref().map(|loans| Loans::compile(loans, of.queue)),
                select: match conf.res_select.is_empty() {
                    true => None,
                    false => Req::parse(&conf.res_select, of.names).ok(),
                },
                hosts: if of_resource { Vec::new() } else { (of.hosts)(conf) },
                conf: conf.clone(),
            };
            if of_resource {
                pools.of_resources.push(id);
            }
            for host in &pool.hosts {
                pools.of_host.entry(*host).or_default().push(id);
            }
            pools.timed |= pool.loans.as_ref().is_some_and(|loans| loans.duration.is_some());
            pools.all.push(pool);
        }
        pools
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Does the run limit of jobs say whether they may borrow?
    pub fn are_timed(&self) -> bool {
        self.timed
    }

    pub fn get(&self, id: PoolId) -> &Pool {
        &self.all[id.position()]
    }

    pub fn iter(&self) -> impl Iterator<Item = (PoolId, &Pool)> {
        self.all.iter().enumerate().map(|(at, pool)| (PoolId(at as u16), pool))
    }

    /// The pools that may have a host.
    pub fn of_host(&self, host: HostId) -> &[PoolId] {
        match self.all.is_empty() {
            true => &[],
            false => self.of_host.get(&host).map_or(&[], Vec::as_slice),
        }
    }

    /// The pools of resources.
    pub fn of_resources(&self) -> &[PoolId] {
        &self.of_resources
    }

    /// The hosts of all pools.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        self.of_host.keys().copied()
    }
}
