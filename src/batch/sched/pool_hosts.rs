//! Hosts as guaranteed pools see them.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::sched::view::View;
use crate::batch::site::guarantees::{PoolId, PoolResource};
use crate::batch::site::requirements::Req;
use crate::batch::site::rules::parts;
use crate::batch::state::names::HostId;
use crate::batch::usage::guarantees::HostFacts;
use crate::lang::resreq::SelectContext;

impl View<'_> {
    /// A host as pools see it: one that takes no job whatever is free on it is in none.
    pub(crate) fn pool_facts(&self, host: HostId) -> HostFacts {
        let view = self;
        if !view.hosts.contains(host) {
            return HostFacts::default();
        }
        let status = view.host_status(host);
        let counts = match status {
            HostStatus::Ok | HostStatus::ClosedBusy => true,
            HostStatus::ClosedExcl | HostStatus::ClosedFull => true,
            HostStatus::Unavail | HostStatus::Unreach => false,
            HostStatus::ClosedAdm | HostStatus::ClosedLock | HostStatus::ClosedWind => false,
        };
        if !counts {
            return HostFacts::default();
        }
        let max = view.reservable(host);
        let used = view.host_used(host).min(max);
        let exclusive = status == HostStatus::ClosedExcl;
        let chosen = |id: &&PoolId| {
            let select = self.site.pools.get(**id).select.as_ref();
            select.is_none_or(|select| self.chooses(host, select))
        };
        let pools: Vec<PoolId> =
            self.site.pools.of_host(host).iter().filter(chosen).copied().collect();
        let (mem, mem_free) = match pools.iter().any(|id| self.site.pools.get(*id).drawn.is_some())
        {
            true => self.pool_memory(host),
            false => (0, 0),
        };
        HostFacts { pools, max, used, mem, mem_free, exclusive }
    }

    /// The memory of a host and the free part of it, in parts of a MB: less what is reserved, as
    /// for rusage[mem].
    fn pool_memory(&self, host: HostId) -> (u64, u64) {
        let names = &self.site.names;
        let available = |name: &str| {
            let id = names.id(name)?;
            self.snapshot(host).available(id, name)
        };
        let free = parts(available("mem").unwrap_or(0.0));
        let all = available("maxmem").map_or(free, parts);
        (all, free.min(all))
    }

    /// All that there is of the resource of a pool, and the free part of it, in parts of a unit: of
    /// each instance as the first of its hosts tells it.
    pub(crate) fn pool_resource(&self, of: &PoolResource) -> (u64, u64) {
        let told = |host: &HostId| {
            let sight = self.hosts.contains(*host).then(|| self.snapshot(*host))?;
            let free = sight.available(of.id, &of.name)?;
            let all = sight.without_reservations().available(of.id, &of.name)?;
            Some((parts(all), parts(free)))
        };
        let rows = of.rows.iter().filter_map(|hosts| hosts.iter().find_map(told));
        rows.fold((0, 0), |sum: (u64, u64), row| {
            (sum.0.saturating_add(row.0), sum.1.saturating_add(row.1))
        })
    }

    /// The slots of a host that are free to a queue which counts so many as used, beyond those that
    /// are in no use: preemption has vacated them.
    pub(crate) fn vacated_in_pools(&self, host: HostId, used: u64) -> u64 {
        if !self.site.preempts {
            return 0;
        }
        let max = self.reservable(host);
        max.saturating_sub(used).saturating_sub(max.saturating_sub(self.host_used(host)))
    }

    /// Does a host match RES_SELECT?
    fn chooses(&self, host: HostId, select: &Req) -> bool {
        let sight = self.snapshot(host).without_reservations();
        let (local_type, local_model) = (sight.host_type(), sight.model());
        let context = SelectContext { local_type, local_model };
        select.0.first().is_some_and(|simple| simple.selects(&sight, &context))
    }
}
