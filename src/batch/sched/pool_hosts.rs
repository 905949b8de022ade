//! Hosts as guaranteed pools see them.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::sched::view::View;
use crate::batch::site::guarantees::PoolId;
use crate::batch::site::requirements::Req;
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
        let pools = self.site.pools.of_host(host).iter().filter(chosen).copied().collect();
        HostFacts { pools, max, used, exclusive }
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
