//! The guaranteed pools, compiled (lsb.resources(5), GuaranteedResourcePool).

use crate::batch::site::requirements::{Names, Req};
use crate::batch::site::service_classes::{ServiceClassId, ServiceClasses};
use crate::batch::state::names::{HostId, QueueId};
use crate::conf::types::{GuaranteedPoolConf, LoanConf, PoolAmount, PoolType};
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

/// A pool.
#[derive(Debug)]
pub struct Pool {
    pub conf: GuaranteedPoolConf,
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
        self.conf.kind == PoolType::Hosts
    }
}

/// A part of a total; a percentage is rounded down.
pub fn amount_of(amount: PoolAmount, total: u64) -> u64 {
    match amount {
        PoolAmount::Fixed(n) => n.into(),
        PoolAmount::Percent(percent) => (total as f64 * percent / 100.0 + 1e-9) as u64,
    }
}

/// The pools of slots and of hosts, in the order of the file.
#[derive(Debug, Default)]
pub struct Pools {
    all: Vec<Pool>,
    of_host: IdMap<HostId, Vec<PoolId>>,
    /// Some pool lends to jobs of short run limits alone.
    timed: bool,
}

impl Pools {
    pub fn compile<'a>(
        conf: impl Iterator<Item = &'a GuaranteedPoolConf>,
        classes: &ServiceClasses,
        names: &Names,
        hosts: impl Fn(&GuaranteedPoolConf) -> Vec<HostId>,
        queue: impl Fn(&str) -> Option<QueueId>,
    ) -> Pools {
        let mut pools = Pools::default();
        let acting = conf.filter(|pool| matches!(pool.kind, PoolType::Slots | PoolType::Hosts));
        for conf in acting.take(usize::from(u16::MAX)) {
            let id = PoolId(pools.all.len() as u16);
            let member = |of: &crate::conf::types::GuaranteeConf| {
                Some((classes.id(&of.class.text)?, of.amount))
            };
            let pool = Pool {
                members: conf.distribution.iter().filter_map(member).collect(),
                loans: conf.loans.as_ref().map(|loans| Loans::compile(loans, &queue)),
                select: match conf.res_select.is_empty() {
                    true => None,
                    false => Req::parse(&conf.res_select, names).ok(),
                },
                hosts: hosts(conf),
                conf: conf.clone(),
            };
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

    /// The hosts of all pools.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        self.of_host.keys().copied()
    }
}
