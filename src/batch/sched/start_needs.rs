//! The smallest changes after which a pending job could start at once: for `bjobs -l`.
//!
//! Each policy is asked about each host by itself, where a pass stops at the first refusal. So all
//! that keeps a job from a host is known, and the hosts from which least keeps it are named. Hosts
//! that the queue, the job or select[] rule out are named only where there is no other way.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::sched::Sched;
use crate::batch::sched::joint_room::JointRoom;
use crate::batch::sched::place::{Compiled, HostMatch, Requirement};
use crate::batch::sched::policy::{HostNow, Leaving, resource_shortages};
use crate::batch::sched::view::{SharesHeld, View};
use crate::batch::site::Queue;
use crate::batch::state::names::{HostId, ResourceId};
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::model::JobRef;
use crate::model::reason::PendReason;
use std::rc::Rc;

/// Ways that are told of one job.
const MAX_WAYS: usize = 3;
/// Hosts that one way may be about.
const MAX_HOSTS_OF_WAY: usize = 16;

/// A thing that a job lacks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Need {
    /// Free slots.
    Slots(u64),
    /// An amount of a resource that it reserves; MB of memory, swap space or disk.
    Resource(ResourceId, f64),
    /// This no longer holds.
    Without(PendReason),
}

/// Changes that suffice together: of the queue and its users where no host is named.
pub(crate) type Way = Vec<(Option<HostId>, Vec<Need>)>;

impl Need {
    /// The unlikelihood of the change: slots and resources become free, windows open;
    /// an administrator must act for other things, and the requests of a job stay.
    fn weight(&self) -> u32 {
        match self {
            Need::Slots(_) | Need::Resource(..) => 1,
            Need::Without(reason) => match reason {
                PendReason::JustStarted | PendReason::Load(_) | PendReason::LoadExternal(_) => 2,
                PendReason::HostWindow | PendReason::QueueWindow | PendReason::ExclusiveJob => 3,
                PendReason::Requirement | PendReason::QueueRequirement => 50,
                PendReason::NotQueueHost
                | PendReason::NotAskedHost
                | PendReason::NotReservedHost => 1000,
                _ => 10,
            },
        }
    }
}

fn weight(needs: &[Need]) -> u32 {
    needs.iter().map(Need::weight).sum()
}

impl Sched {
    /// The ways in which a job that is ready could start now, the best first.
    pub(crate) fn ways_to_start(&self, view: &View, at: JobRef, group: u32) -> Vec<Way> {
        let entry = match self.lone.get(at) {
            Some(lone) => lone.entry,
            None => self.entry(at.job, group).copied(),
        };
        let Some(entry) = entry else { return Vec::new() };
        let kind = self.classes.get(entry.class).kind.clone();
        let view = &View { shares_held: SharesHeld::NotLent, ..*view };
        let Some(queue) = view.site.queue(kind.queue) else { return Vec::new() };
        let limits = view.limits_of(kind.consumer);
        let mut common = self.needs_of_consumer(view, queue, &limits, kind.min.into());
        common.extend(view.reservations.closed(&kind.reservation).map(Need::Without));
        let compiled = self.classes.kept(entry.class).cloned().unwrap_or_else(|| {
            let requirement = Rc::new(Requirement::new(view, &kind));
            Rc::new(Compiled::new(view, &kind, requirement))
        });
        let mut best: Vec<(u32, Way)> = Vec::new();
        for req in &compiled.requirement.alternatives {
            let looks = self.explained.looks.get() + view.hosts.len();
            self.explained.looks.set(looks);
            let look = HostMatch::new(
                (view, queue, u64::MAX),
                (&kind, &limits),
                &compiled.asked,
                req.as_deref(),
            );
            // hosts that are to suit each other have no smallest change host by host
            let compound = req.as_deref().is_some_and(|req| req.is_compound());
            if !compound && !look.is_placed_by_groups() {
                best.extend(self.ways_of(&look));
            }
        }
        best.sort_by_key(|way| way.0);
        best.truncate(MAX_WAYS);
        let mut ways: Vec<Way> = best.into_iter().map(|(_, way)| way).collect();
        // what a whole queue or user lacks is lacking whichever host it is
        if !common.is_empty() {
            ways.iter_mut().for_each(|way| way.insert(0, (None, common.clone())));
        }
        ways.retain(|way| !way.is_empty());
        if ways.is_empty() && !common.is_empty() {
            ways.push(vec![(None, common)]);
        }
        ways.dedup();
        ways
    }

    /// Slots that the limits of the queue and of the user leave too few, and windows.
    fn needs_of_consumer(
        &self,
        view: &View,
        queue: &Queue,
        limits: &ConsumerLimits,
        min: u64,
    ) -> Vec<Need> {
        let rooms = self.policies.each_of_consumer(view, queue, limits);
        let short = rooms.filter(|room| room.slots < min);
        short.map(|room| Need::Without(room.reason)).collect()
    }

    /// The ways by one form of the requirement, with their weights.
    fn ways_of(&self, look: &HostMatch) -> Vec<(u32, Way)> {
        let (one, min) = (look.any_slot() || look.one_host(), u64::from(look.min_slots()));
        let all = look.view.hosts.ids().map(|host| (host, self.needs_on(look, host, min)));
        let mut hosts: Vec<(u32, HostId, Vec<Need>)> =
            all.map(|(host, needs)| (weight(&needs), host, needs)).collect();
        hosts.sort_by_key(|(weight, host, _)| (*weight, *host));
        if one {
            let way = |(weight, host, needs): (u32, HostId, Vec<Need>)| match needs.is_empty() {
                true => (0, Way::new()),
                false => (weight, vec![(Some(host), needs)]),
            };
            return hosts.into_iter().take(MAX_WAYS).map(way).collect();
        }
        self.way_by_several(look, hosts).into_iter().collect()
    }

    /// One way by as many hosts as the slots of a parallel job need: those first that lack least.
    fn way_by_several(
        &self,
        look: &HostMatch,
        hosts: Vec<(u32, HostId, Vec<Need>)>,
    ) -> Option<(u32, Way)> {
        let (mut slots, min) = (0, u64::from(look.min_slots()));
        let (mut all, mut way) = (0, Way::new());
        for (weight, host, needs) in hosts {
            let most = look.view.host_max(host).unwrap_or(u64::MAX);
            let missing = min.saturating_sub(slots);
            if missing == 0 || way.len() >= MAX_HOSTS_OF_WAY {
                break;
            }
            let free = self.policies.host(look, host).unwrap_or(0);
            let offered = look.capacity_of_host(
                host,
                most.min(missing.max(free)).min(u64::from(u32::MAX)) as u32,
            );
            if offered == 0 {
                continue;
            }
            slots += offered;
            let others = needs.into_iter().filter(|need| !matches!(need, Need::Slots(_)));
            let mut needs: Vec<Need> = others.collect();
            if let Some(lacking) = offered.checked_sub(free).filter(|lacking| *lacking > 0) {
                needs.insert(0, Need::Slots(lacking));
            }
            all += weight;
            if !needs.is_empty() {
                way.push((Some(host), needs));
            }
        }
        (slots >= min).then_some((all, way))
    }

    /// All that keeps a job from a host, which is to give it so many slots.
    fn needs_on(&self, look: &HostMatch, host: HostId, min: u64) -> Vec<Need> {
        let view = &look.view;
        if let Err(reason) = look.preference(host) {
            return vec![Need::Without(reason)];
        }
        let mut needs: Vec<Need> = view.closures(host).into_iter().map(Need::Without).collect();
        let used = view.host_used(host);
        let snapshot = look.sight(host, (HostStatus::Ok, used));
        let (id, status) = (host, HostStatus::Ok);
        let now = HostNow { id, status, used, snapshot, leaving: Leaving::NONE, backfills: true };
        let wanted = if look.any_slot() || look.one_host() { min } else { 1 };
        for room in self.policies.each_on_host(look, &now) {
            if room.slots >= wanted {
                continue;
            }
            let need = match room.reason {
                PendReason::HostFull => Need::Slots(wanted - room.slots),
                // told by their amounts, below
                PendReason::Reserve(_) | PendReason::ReserveExternal(_) => continue,
                reason => Need::Without(reason),
            };
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
        let mut joint = JointRoom::new(look);
        if joint.slots(host, wanted) < wanted {
            needs.extend(joint.why().map(Need::Without));
        }
        let short = resource_shortages(look, (host, &now.snapshot), wanted);
        needs.extend(short.into_iter().map(|(id, amount)| Need::Resource(id, amount)));
        needs
    }
}
