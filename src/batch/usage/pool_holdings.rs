//! The parts of guaranteed pools that started elements hold: slots on hosts, packages, amounts of
//! resources.

use crate::batch::site::Site;
use crate::batch::site::guarantees::{Loans, Pool, PoolId};
use crate::batch::site::rules::parts;
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, State};
use crate::batch::usage::pool_room::{PoolJob, SlotsAndMemory};
use crate::batch::usage::reserve::ledger::Reserve;
use crate::model::JobRef;
use std::collections::BTreeMap;

/// A kind of started elements, as pools see them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) class: Option<ServiceClassId>,
    /// The pools that lend to these.
    pub(super) borrows: Vec<PoolId>,
}

/// A started element that is of a service class or borrows, on hosts of pools.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) holder: Holder,
    pub(super) hosts: Vec<(HostId, u64)>,
    pub(super) amounts: Vec<HeldAmount>,
    pub(super) aside: Vec<(PoolId, HostId, Aside)>,
}

/// Slots and memory of a host beside those that are free and those that are used for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Aside {
    /// The slots and memory that a pool of packages has lent.
    pub(super) lent: SlotsAndMemory,
    /// The parts of packages that jobs of classes occupy and do not use.
    pub(super) rest: SlotsAndMemory,
}

impl Aside {
    /// With these more, or fewer.
    pub(super) fn and(self, other: Aside, add: bool) -> Aside {
        let step = |n: u64, by: u64| if add { n + by } else { n.saturating_sub(by) };
        let both = |a: SlotsAndMemory, b: SlotsAndMemory| (step(a.0, b.0), step(a.1, b.1));
        Aside { lent: both(self.lent, other.lent), rest: both(self.rest, other.rest) }
    }
}

/// The packages that an element of a class occupies on a host, or its part of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldAmount {
    pub(super) pool: PoolId,
    pub(super) host: Option<HostId>,
    pub(super) amount: u64,
}

/// Does a pool lend to a job, by its queue and its length? True: whatever the other conditions.
pub(super) fn lends(loans: &Loans, job: PoolJob) -> Option<bool> {
    let marked = loans.queue(job.queue)?;
    let is_short = |most: u64| job.seconds.is_some_and(|seconds| seconds <= most);
    (marked || loans.duration.is_none_or(is_short)).then_some(marked)
}

/// The slots that a started element holds, where it is of a class or borrows, and on a host of a
/// pool.
pub(super) fn holding_of(
    state: &State,
    site: &Site,
    reserve: &Reserve,
    at: JobRef,
) -> Option<Holding> {
    let job = state.job(at.job)?;
    let ElemState::Run(run) = &job.elem(at.idx)?.state else { return None };
    let of_pool = |of: &&(HostId, u32)| !site.pools.of_host(of.0).is_empty();
    let hosts: Vec<(HostId, u64)> =
        run.hosts.iter().filter(of_pool).map(|of| (of.0, of.1.into())).collect();
    if hosts.is_empty() && site.pools.of_resources().is_empty() {
        return None;
    }
    let part = job.part_no(at.idx);
    let spec = job.spec_of(part);
    let class = site.service_classes.id(&spec.further.service_class);
    let mut slots_on: BTreeMap<HostId, u64> = BTreeMap::new();
    hosts.iter().for_each(|(host, slots)| *slots_on.entry(*host).or_default() += slots);
    let amounts =
        class.map_or(Vec::new(), |class| amounts_of(site, reserve, (at, class), &slots_on));
    let of = PoolJob { class, queue: job.queue_of(part), seconds: spec.limits.run };
    let lends = |of_pool: &Pool| of_pool.loans.as_ref().is_some_and(|l| lends(l, of).is_some());
    let pools = site.pools.iter().filter(|(_, pool)| pool.of_hosts() && lends(pool));
    let holder = Holder { class, borrows: pools.map(|(id, _)| id).collect() };
    let aside = aside_of(site, reserve, (at, of), &slots_on);
    let holds = !hosts.is_empty() && (class.is_some() || !holder.borrows.is_empty());
    let some = holds || !amounts.is_empty() || !aside.is_empty();
    some.then_some(Holding { holder, hosts, amounts, aside })
}

/// The memory of a host that an element has of a pool of packages, in parts of a MB.
pub(super) fn memory_of(reserve: &Reserve, (at, host): (JobRef, HostId), pool: &Pool) -> u64 {
    pool.drawn.map_or(0, |mem| parts(reserve.amount_on(at, host, mem)))
}

/// The slots and memory that pools of packages have lent to an element that is of none of their
/// classes; the rests of the packages of one that is of a class.
fn aside_of(
    site: &Site,
    reserve: &Reserve,
    (at, of): (JobRef, PoolJob),
    slots_on: &BTreeMap<HostId, u64>,
) -> Vec<(PoolId, HostId, Aside)> {
    let mut all = Vec::new();
    for (&host, &slots) in slots_on {
        for id in site.pools.of_host(host) {
            let pool = site.pools.get(*id);
            let Some(size) = pool.package() else { continue };
            let mem = memory_of(reserve, (at, host), pool);
            let lends = pool.loans.as_ref().is_some_and(|loans| lends(loans, of).is_some());
            let aside = match pool.member(of.class) {
                Some(_) => {
                    let whole = size.rounded(slots, mem);
                    Aside { rest: (whole.0 - slots, whole.1 - mem), ..Aside::default() }
                }
                None if lends => Aside { lent: (slots, mem), ..Aside::default() },
                None => Aside::default(),
            };
            if aside != Aside::default() {
                all.push((*id, host, aside));
            }
        }
    }
    all
}

/// The packages that an element of a class occupies, and its parts of resources of pools.
fn amounts_of(
    site: &Site,
    reserve: &Reserve,
    (at, class): (JobRef, ServiceClassId),
    slots_on: &BTreeMap<HostId, u64>,
) -> Vec<HeldAmount> {
    let is_member = |id: &&PoolId| site.pools.get(**id).member(Some(class)).is_some();
    let mut all = Vec::new();
    for (&host, &slots) in slots_on {
        for id in site.pools.of_host(host).iter().filter(is_member) {
            let pool = site.pools.get(*id);
            let Some(size) = pool.package() else { continue };
            let amount = size.occupied(slots, memory_of(reserve, (at, host), pool));
            all.push(HeldAmount { pool: *id, host: Some(host), amount });
        }
    }
    for id in site.pools.of_resources().iter().filter(is_member) {
        let Some(resource) = site.pools.get(*id).resource() else { continue };
        let amount = parts(reserve.amount_of(at, resource.id));
        if amount > 0 {
            all.push(HeldAmount { pool: *id, host: None, amount });
        }
    }
    all
}
