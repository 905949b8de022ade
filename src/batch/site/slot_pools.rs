//! Slot pools, compiled: the queues that share the slots of their hosts (lsb.queues(5), SLOT_POOL).

use crate::batch::state::names::{HostId, QueueId};
use crate::conf::types::QueueConf;
use crate::model::idmap::IdMap;
use std::collections::{BTreeMap, BTreeSet};

/// A queue of a slot pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub queue: QueueId,
    /// SLOT_SHARE, percent.
    pub share: u32,
}

/// The queues of one SLOT_POOL.
#[derive(Debug)]
pub struct SlotPool {
    /// In the order in which queues are served: by PRIORITY, equal ones in the order of lsb.queues.
    pub members: Vec<Member>,
    /// MAX_SLOTS_IN_POOL.
    pub max: Option<u64>,
    /// USE_PRIORITY_IN_POOL.
    pub by_priority: bool,
    /// The hosts of its queues; `None`: every host.
    hosts: Option<BTreeSet<HostId>>,
}

impl SlotPool {
    pub fn has_host(&self, host: HostId) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.contains(&host))
    }
}

/// All slot pools.
#[derive(Debug, Default)]
pub struct SlotPools {
    all: Vec<SlotPool>,
    /// The positions of pool and member.
    of_queue: IdMap<QueueId, (usize, usize)>,
    lends: bool,
}

impl SlotPools {
    /// `conf`: the queues in the order of lsb.queues; `queues`: as they are served, with their
    /// hosts, where not every host is one.
    pub fn compile<'a>(
        conf: &'a [QueueConf],
        queues: impl Iterator<Item = (QueueId, &'a QueueConf, Option<&'a BTreeMap<HostId, u32>>)>,
    ) -> SlotPools {
        let mut pools = SlotPools::default();
        let mut names: Vec<&str> = Vec::new();
        for first in conf {
            let Some((name, _)) = first.fairshare_queues.slot_pool.share() else { continue };
            if !names.contains(&name) {
                names.push(name);
                pools.lends |= first.fairshare_queues.slot_pool.by_priority;
                pools.all.push(SlotPool {
                    members: Vec::new(),
                    max: first.fairshare_queues.slot_pool.max.map(u64::from),
                    by_priority: first.fairshare_queues.slot_pool.by_priority,
                    hosts: Some(BTreeSet::new()),
                });
            }
        }
        for (id, queue, hosts) in queues {
            let Some((name, share)) = queue.fairshare_queues.slot_pool.share() else { continue };
            let Some(at) = names.iter().position(|of| *of == name) else { continue };
            let pool = &mut pools.all[at];
            pools.of_queue.insert(id, (at, pool.members.len()));
            pool.members.push(Member { queue: id, share });
            match (&mut pool.hosts, hosts) {
                (Some(all), Some(hosts)) => all.extend(hosts.keys().copied()),
                (all, None) => *all = None,
                (None, Some(_)) => {}
            }
        }
        pools
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Has some pool USE_PRIORITY_IN_POOL?
    pub fn lend(&self) -> bool {
        self.lends
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &SlotPool)> {
        self.all.iter().enumerate()
    }

    /// The pool of a queue, its position, and that of the queue among its members.
    pub fn of_queue(&self, queue: QueueId) -> Option<(&SlotPool, usize, usize)> {
        if self.all.is_empty() {
            return None;
        }
        let (pool, member) = *self.of_queue.get(&queue)?;
        Some((&self.all[pool], pool, member))
    }
}
