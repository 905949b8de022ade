//! Guaranteed pools (lsb.resources(5), GuaranteedResourcePool): the slots, hosts, packages and
//! resources that service classes are guaranteed are kept from other jobs, but for those that may
//! borrow. The room of a pool on several hosts together is the matter of `sched::joint_room`.
//!
//! Jobs of advance reservations run on what is reserved, whatever pools the hosts are in, and jobs
//! of queues with SLA_GUARANTEES_IGNORE on whatever is free.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::batch::site::guarantees::Pool;
use crate::batch::usage::limits_ledger::Demand;
use crate::batch::usage::pool_room::PoolNeed;
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct Guarantee;

impl Policy for Guarantee {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let (view, job) = (&class.view, class.kind.pool_job());
        let pools = &view.site.pools;
        if pools.is_empty() || !class.kind.obeys_pools(view.site) {
            return Room::ANY;
        }
        let all = pools.of_host(host.id).iter().chain(pools.of_resources());
        all.fold(Room::ANY, |room, id| {
            let of = (*id, host.id);
            let Some(here) = view.guarantees.on_host(view.site, of, job) else { return room };
            let here = here.with_vacated(view.vacated_in_pools(host.id, host.used));
            let here = here.with_need(need(class, pools.get(*id)));
            let slots = view.guarantees.left(view.site, *id, job).slots(here);
            room.and(Room { slots, reason: PendReason::Guaranteed, rule: None })
        })
    }

    fn further(&self, class: &HostMatch, host: &HostNow) -> u64 {
        let pools = &class.view.site.pools;
        let concerned = !pools.of_resources().is_empty() || !pools.of_host(host.id).is_empty();
        if concerned { 0 } else { u64::MAX }
    }
}

/// The memory, or the resource, of a pool that a job of a class takes on one host.
fn need(class: &HostMatch, pool: &Pool) -> PoolNeed {
    let Some(resource) = pool.drawn else { return PoolNeed::default() };
    let demand = Demand::of_requirement(class.view.site, class.simple, resource);
    let fixed = demand.per_job.saturating_add(demand.per_host);
    PoolNeed { fixed, per_slot: demand.per_slot }
}
