//! SLOT_RESERVE and RESOURCE_RESERVE: a job that finds too few slots keeps those that are free,
//! until it has enough or MAX_RESERVE_TIME is over (lsb.queues(5)).
//!
//! A job of a queue with RESOURCE_RESERVE keeps memory of its hosts, too: the slots of a host are
//! then those for which it has the memory.
//!
//! A forecast tells which slots these are: the hosts on which the job would start first, by
//! the run limits of started jobs. That instant is the promise which jobs of BACKFILL queues keep:
//! they take slots that others keep only where they end before it. Where no start is foreseen, the
//! job keeps free slots on as many hosts as it needs.
//!
//! A reservation respects all that is planned for older ones, and nothing of younger ones: it takes
//! the slots that they keep. So a plan depends on older ones alone: no two jobs wait for each
//! other's slots, a change is at rest when each younger one has been planned anew, and no job puts
//! off a start that was promised to one that reserved before it, whatever their queues.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::sched::decision::Decision;
use crate::batch::sched::forecast::{Counted, FreeSlots, Need, first_place};
use crate::batch::sched::place::{HostMatch, MemoryNeed};
use crate::batch::sched::policy::{BlockedJob, Leaving, Policy, Question};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::state::names::{HostId, HostSet};
use crate::batch::state::slot_reservations::{ReservedHost, SlotReservation};
use crate::lang::resreq::{Span, Tile};
use crate::model::JobRef;
use crate::model::event::JobReserve;
use crate::model::idmap::IdMap;
use crate::model::reason::PendReason;
use crate::proto::lim::MEMORY_INDEX;
use std::cmp::Ordering;
use std::cmp::Reverse;

/// Ends of started jobs that are looked at for one job, earliest first.
const MOST_ENDS: usize = 16_384;
/// The part of the memory of a plan that is too little to change a reservation for.
const LITTLE_MEMORY: u64 = 100;

#[derive(Debug)]
pub(super) struct SlotReserve;

impl Policy for SlotReserve {
    fn answers(&self) -> &'static [Question] {
        &[Question::Blocked]
    }

    fn acts_on_blocked(&self, _view: &View, queue: &Queue) -> bool {
        queue.conf.reserve.is_some()
    }

    fn blocked(&self, job: &BlockedJob) -> Option<Decision> {
        let (class, at, free) = (job.class, job.at, job.free);
        let reserve = class.queue.conf.reserve?;
        // a job that wants its hosts for itself finds their memory free
        let memory = || class.memory_need().filter(|_| !class.kind.exclusive);
        let memory = if reserve.memory { memory() } else { None };
        // a limit leaves it too few slots, or there is nothing to gather
        let gathers = class.kind.min > 1 || memory.is_some();
        if class.room < u64::from(class.kind.min) || !gathers {
            return None;
        }
        let (view, now) = (&class.view, class.view.now.secs());
        let all = view.state.slot_reservations();
        let own = all.get(at);
        let rests = own.is_some_and(|own| own.hosts.is_empty());
        // a host that has not reported yet, after a restart or a failure, may be back soon
        let lost = |on: &ReservedHost| {
            !view.hosts.contains(on.host)
                || matches!(view.host_status(on.host), HostStatus::Unavail | HostStatus::Unreach)
        };
        let waits = own.is_some_and(|own| own.hosts.iter().any(lost));
        if rests || waits || (own.is_none() && !all.has_room()) {
            return None;
        }
        let mut planner = Planner::new(job, own, memory);
        let plan = planner.plan(free);
        let waits_for_slots = plan.start > 0 && class.kind.min > 1;
        if own.is_none() && !waits_for_slots && plan.hosts.iter().all(|on| on.kept == 0) {
            return None;
        }
        if own.is_some_and(|own| planner.is_as_good(own, &plan)) {
            return None;
        }
        let secs = reserve.turns.saturating_mul(view.site.params().mbd_sleep_time);
        let until = now.saturating_add(i64::try_from(secs).unwrap_or(i64::MAX));
        let (since, until) = own.map_or((now, until), |own| (own.since, own.until));
        let until = if plan.hosts.is_empty() { 0 } else { until };
        let name =
            |on: &ReservedHost| (view.state.names().host(on.host).clone(), on.planned, on.kept);
        let hosts = plan.hosts.iter().map(name).collect();
        let (start, end) = (plan.start, plan.end);
        let amounts = |of: fn(&ReservedHost) -> u64| match memory {
            Some(_) => plan.hosts.iter().map(of).collect(),
            None => Vec::new(),
        };
        let (memory, kept_memory) = (amounts(|on| on.memory), amounts(|on| on.kept_memory));
        let reserve = JobReserve { at, since, until, start, end, hosts, memory, kept_memory };
        Some(Decision::Reserve(Box::new(reserve)))
    }
}

/// The slots that a job is to get, and when.
#[derive(Debug, Default)]
struct Plan {
    hosts: Vec<ReservedHost>,
    /// Seconds since the epoch; 0 unknown.
    start: i64,
    end: i64,
}

/// Plans the slots of one job.
struct Planner<'a, 'b> {
    job: &'a BlockedJob<'a, 'b>,
    class: &'a HostMatch<'b>,
    at: JobRef,
    own: Option<&'a SlotReservation>,
    /// The memory that the job waits for; `None`: slots alone count.
    memory: Option<MemoryNeed>,
    /// The slots of hosts that older reservations have now, and their memory in MB.
    owed: IdMap<HostId, (i64, f64)>,
    eligible: IdMap<HostId, bool>,
    /// The slots of others that are still in use, where the job wants its hosts for itself.
    in_use: IdMap<HostId, i64>,
}

impl<'a, 'b> Planner<'a, 'b> {
    fn new(
        job: &'a BlockedJob<'a, 'b>,
        own: Option<&'a SlotReservation>,
        memory: Option<MemoryNeed>,
    ) -> Self {
        let (class, at) = (job.class, job.at);
        let (eligible, in_use) = (IdMap::default(), IdMap::default());
        let owed = IdMap::default();
        let mut planner = Planner { job, class, at, own, memory, owed, eligible, in_use };
        let all = class.view.state.slot_reservations();
        for of in all.iter().filter(|of| of.at != at) {
            for on in &of.hosts {
                let (slots, memory) = planner.share(of, *on);
                let owed = planner.owed.entry(on.host).or_default();
                *owed = (owed.0 + slots, owed.1 + memory);
            }
        }
        planner
    }

    fn plan(&mut self, free: &[(HostId, u32)]) -> Plan {
        let mut now = FreeSlots::default();
        // what it had before comes first: a plan that is as good as another is not given up
        let mine = |host: HostId| self.own.is_some_and(|own| has(own, host).is_some());
        let mut ordered = free.to_vec();
        ordered.sort_by_key(|(host, _)| !mine(*host));
        for &(host, slots) in &ordered {
            now.add(host, i64::from(slots).min(self.room(host)));
        }
        for on in self.own.map_or(&[][..], |own| &own.hosts) {
            if !now.has(on.host) && !self.class.kind.exclusive && self.is_eligible(on.host) {
                now.add(on.host, self.room(on.host));
            }
        }
        let class = self.class;
        let need = Need {
            slots: u64::from(class.kind.min),
            one_host: class.one_host(),
            counting: |host, slots| Counted {
                sure: class.counting(host, slots),
                most: class.counting_at_most(host, slots),
            },
        };
        let mut later = FreeSlots::default();
        now.free().iter().for_each(|(host, slots)| later.add(*host, i64::from(*slots)));
        let gains = self.gains(&now);
        let found = first_place(&mut later, &need, gains, |free| class.lay_out(free));
        let (start, hosts) = match found {
            Some((start, hosts)) => (start, self.whole_hosts(hosts)),
            None => (0, self.gathered(&now.free())),
        };
        let keep = |&(host, planned): &(HostId, u32)| {
            let known = now.has(host) && self.memory.is_none();
            let free = if known { now.get(host) } else { self.slack(host) };
            let free = u32::try_from(free.max(0)).unwrap_or(u32::MAX);
            // a job that backfills has some of what was kept: it gives it back in time
            let before = self.own.and_then(|own| has(own, host));
            let kept = planned.min(free.max(before.map_or(0, |on| on.kept)));
            let memory = self.memory.map_or(0.0, |need| need.on_host(planned)).ceil() as u64;
            let free = self.memory_slack(host).max(0.0) as u64;
            let has = memory.min(free.max(before.map_or(0, |on| on.kept_memory)));
            let kept_memory = if kept > 0 { has } else { 0 };
            ReservedHost { host, planned, kept, memory, kept_memory }
        };
        let hosts: Vec<ReservedHost> = hosts.iter().map(keep).collect();
        let run = class.run.filter(|_| start > 0).zip(hosts.first());
        let end = run.map_or(0, |(run, first)| {
            start.saturating_add(run.on(class.view.hosts[first.host].cpu_factor()))
        });
        Plan { hosts, start, end }
    }

    /// Is the reservation as good as a plan? It stays then, though the plan has other hosts: two
    /// plans of one worth would take turns without end. A little more memory makes no plan better:
    /// the load of hosts changes all the time.
    fn is_as_good(&mut self, own: &SlotReservation, plan: &Plan) -> bool {
        if (&own.hosts, own.start, own.end) == (&plan.hosts, plan.start, plan.end) {
            return true;
        }
        let sum = |hosts: &[ReservedHost], of: fn(&ReservedHost) -> u64| -> u64 {
            hosts.iter().map(of).fold(0, u64::saturating_add)
        };
        let little = sum(&plan.hosts, |on| on.memory) / LITTLE_MEMORY;
        own.start == plan.start
            && sum(&own.hosts, |on| on.kept.into()) >= sum(&plan.hosts, |on| on.kept.into())
            && sum(&own.hosts, |on| on.planned.into()) >= sum(&plan.hosts, |on| on.planned.into())
            && sum(&own.hosts, |on| on.kept_memory).saturating_add(little)
                >= sum(&plan.hosts, |on| on.kept_memory)
            && own.hosts.iter().all(|on| self.is_eligible(on.host))
    }

    /// The slots of a host that are in no use, less what other reservations have.
    fn slack(&self, host: HostId) -> i64 {
        let view = &self.class.view;
        let Some(max) = view.host_max(host) else { return i64::from(u32::MAX) };
        let free = max.saturating_sub(view.host_used(host));
        let owed = self.owed.get(&host).map_or(0, |owed| owed.0);
        i64::try_from(free).unwrap_or(i64::MAX).saturating_sub(owed)
    }

    /// The memory of a host that nobody reserves, less what other reservations have, MB; 0 where
    /// the job waits for none.
    fn memory_slack(&self, host: HostId) -> f64 {
        let Some(need) = self.memory else { return 0.0 };
        let owed = self.owed.get(&host).map_or(0.0, |owed| owed.1);
        self.class.left_on(host, need.resource) - owed
    }

    /// The slots among these for which a host has so much memory.
    fn within(&self, slots: i64, memory: f64) -> i64 {
        self.memory.map_or(slots, |need| need.slots_within(slots, memory))
    }

    /// The slots of a host that the job could have now, beside other reservations.
    fn room(&self, host: HostId) -> i64 {
        self.within(self.slack(host), self.memory_slack(host))
    }

    /// The slots of a host that other reservations have at some time.
    fn owed_at(&self, host: HostId, time: i64) -> i64 {
        let all = self.class.view.state.slot_reservations().on_host(host);
        let others = all.filter(|(of, _)| of.at != self.at && (of.end == 0 || of.end > time));
        others.map(|(of, on)| self.share(of, on).0).sum()
    }

    /// The slots and the memory of a host that another reservation takes: all that is planned for
    /// it where it is older; else none.
    fn share(&self, of: &SlotReservation, on: ReservedHost) -> (i64, f64) {
        match self.own {
            Some(own) if own.place() < of.place() => (0, 0.0),
            _ => (on.planned.into(), on.memory as f64),
        }
    }

    /// The slots that the job gains, earliest first.
    fn gains<'c>(
        &'c mut self,
        now: &'c FreeSlots,
    ) -> impl Iterator<Item = (i64, HostId, i64)> + use<'c, 'a, 'b> {
        let view = self.class.view;
        let others = view.state.slot_reservations().iter().filter(|of| of.at != self.at);
        // what younger ones take is of no concern here, nor when they give it back
        let ends = others
            .filter(|of| of.end > 0)
            .flat_map(|of| of.hosts.iter().map(|on| (of.end, on.host, self.share(of, *on))))
            .filter(|of| of.2.0 > 0);
        let mut of_others: Vec<(i64, HostId, (i64, f64))> = ends.collect();
        of_others.sort_unstable_by_key(|of| (of.0, of.1, of.2.0));
        let mut of_others = of_others.into_iter().peekable();
        let mut of_jobs = view.timeline.ends().take(MOST_ENDS).peekable();
        let (mut known, mut told) = (IdMap::<HostId, (i64, f64)>::default(), HostSet::default());
        let one_host = self.class.one_host();
        std::iter::from_fn(move || {
            loop {
                let job_first = match (of_jobs.peek(), of_others.peek()) {
                    (Some(job), Some(other)) => job.0 <= other.0,
                    (job, _) => job.is_some(),
                };
                let (time, host, (slots, memory)) = match job_first {
                    true => of_jobs.next().map(|(end, at, host, n)| {
                        (end, host, (i64::from(n), self.memory_of(at, host)))
                    }),
                    false => of_others.next(),
                }?;
                if !self.is_eligible(host) {
                    continue;
                }
                let gain = match self.class.kind.exclusive {
                    true => self.emptied(time, host, slots, job_first),
                    // slots that the host owes to others are no gain
                    false => {
                        let has = known.entry(host).or_insert_with(|| {
                            let slots = match now.has(host) {
                                // what it has beside is not free for want of memory
                                _ if self.memory.is_some() => self.slack(host),
                                true => now.get(host).min(0),
                                // a job of one host is not told of hosts that are too small now
                                false if one_host => self.slack(host),
                                false => self.slack(host).min(0),
                            };
                            (slots, self.memory_slack(host))
                        });
                        let before = self.within(has.0, has.1).max(0);
                        *has = (has.0.saturating_add(slots), has.1 + memory);
                        let gain = self.within(has.0, has.1).max(0) - before;
                        // the gain of a host that it was not told of: all that it has then
                        let first = !now.has(host) && told.insert(host);
                        let untold = self.memory.is_none() || one_host;
                        if first && untold { gain + before } else { gain }
                    }
                };
                if gain > 0 {
                    return Some((time, host, gain));
                }
            }
        })
    }

    /// The memory that a started job gives back on a host, MB.
    fn memory_of(&self, at: JobRef, host: HostId) -> f64 {
        let reserve = self.class.view.reserve;
        self.memory.map_or(0.0, |need| reserve.amount_on(at, host, need.resource))
    }

    /// The slots of a host on which the last other job ends.
    fn emptied(&mut self, time: i64, host: HostId, slots: i64, ends: bool) -> i64 {
        let view = self.class.view;
        let used = || i64::try_from(view.host_used(host)).unwrap_or(i64::MAX);
        let left = self.in_use.entry(host).or_insert_with(used);
        let before = *left;
        *left -= if ends { slots } else { 0 };
        let max = view.host_max(host).map_or(i64::from(u32::MAX), |max| max as i64);
        match before > 0 && *left <= 0 {
            true => max - self.owed_at(host, time),
            false => 0,
        }
    }

    /// May the host take the job when others have left it?
    fn is_eligible(&mut self, host: HostId) -> bool {
        let class = self.class;
        *self.eligible.entry(host).or_insert_with(|| {
            let view = &class.view;
            if !view.hosts.contains(host) || class.preference(host).is_err() {
                return false;
            }
            let status = view.host_status(host);
            let open = matches!(
                status,
                HostStatus::Ok
                    | HostStatus::ClosedFull
                    | HostStatus::ClosedBusy
                    | HostStatus::ClosedExcl
            );
            let barred = class.kind.barred.iter().any(|bar| bar.0 == host);
            open && !barred && class.selects(host, &view.snapshot(host))
        })
    }

    /// A job that wants its hosts for itself keeps all slots of them.
    fn whole_hosts(&self, hosts: Vec<(HostId, u32)>) -> Vec<(HostId, u32)> {
        let all = |(host, slots)| match self.class.kind.exclusive {
            true => (host, self.class.view.host_max(host).map_or(slots, |max| max as u32)),
            false => (host, slots),
        };
        hosts.into_iter().map(all).collect()
    }

    /// The slots that are gathered while no start is foreseen.
    fn gathered(&mut self, free: &[(HostId, u32)]) -> Vec<(HostId, u32)> {
        let (class, need) = (self.class, self.class.kind.min);
        let view = &class.view;
        if !class.asked.fixed().is_empty() {
            return class.asked.fixed().to_vec();
        }
        if let Some(memory) = self.memory {
            return self.gathered_with_memory(memory);
        }
        let span = class.simple.and_then(|simple| simple.span.as_ref());
        if class.one_host() {
            let fits = |host: HostId| view.host_max(host).is_none_or(|max| max >= need.into());
            let mut best: Option<((i64, bool), HostId)> = None;
            for host in view.hosts.ids().filter(|host| fits(*host)) {
                let mine = self.own.is_some_and(|own| has(own, host).is_some());
                let rank = (self.slack(host), mine);
                if rank.0 > 0 && best.is_none_or(|b| b.0 < rank) && self.is_eligible(host) {
                    best = Some((rank, host));
                }
            }
            return self.whole_hosts(best.map(|(_, host)| (host, need)).into_iter().collect());
        }
        let of_host = tile(span);
        let mut hosts = free.to_vec();
        if of_host < u32::MAX {
            hosts.sort_by_key(|f| Reverse(f.1.min(of_host)));
        }
        let (mut left, mut out) = (need, Vec::new());
        for (host, slots) in hosts {
            let planned = if of_host < u32::MAX { of_host.min(left) } else { slots.min(left) };
            if planned > 0 {
                out.push((host, planned));
                left -= planned;
            }
        }
        self.whole_hosts(out)
    }

    /// All memory of a host, MB.
    fn most_memory(&self, host: HostId) -> f64 {
        let load = self.class.view.hosts[host].load.as_ref();
        let facts = load.and_then(|load| load.facts.as_ref()).filter(|facts| facts.max_mem > 0);
        facts.map_or(f64::MAX, |facts| facts.max_mem as f64)
    }

    /// The slots that are gathered of hosts which lack memory alone: on the hosts that it has
    /// already, then on those with the most memory.
    fn gathered_with_memory(&mut self, memory: MemoryNeed) -> Vec<(HostId, u32)> {
        let (class, need) = (self.class, self.class.kind.min);
        let view = &class.view;
        if let Some(own) = self.own.filter(|own| own.hosts.iter().all(|on| on.kept == on.planned)) {
            let hosts: Vec<(HostId, u32)> = own.hosts.iter().map(|on| (on.host, on.kept)).collect();
            let all = hosts.iter().map(|on| u64::from(on.1)).sum::<u64>() >= need.into();
            if all && hosts.iter().all(|on| self.is_eligible(on.0)) {
                return hosts;
            }
        }
        let lacks = |host: HostId| match (self.job.host_after)(host, Leaving::NONE) {
            Ok(_) => true,
            Err(why) => why == PendReason::Reserve(MEMORY_INDEX as u8),
        };
        let all = view.hosts.ids().filter(|host| self.slack(*host) > 0 && lacks(*host));
        let mut hosts: Vec<HostId> = all.collect();
        hosts.retain(|host| self.is_eligible(*host));
        let whole = class.one_host() || need == 1;
        let rank = |host: HostId| {
            let mine = self.own.is_some_and(|own| has(own, host).is_some());
            let slots = self.slack(host).min(need.into());
            ((whole.then_some(slots), mine, self.memory_slack(host)), host)
        };
        let mut hosts: Vec<_> = hosts.into_iter().map(rank).collect();
        hosts.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
        let of_host = tile(class.simple.and_then(|simple| simple.span.as_ref()));
        let (mut left, mut out) = (need, Vec::new());
        for (_, host) in hosts {
            let (most, all) = (self.most_memory(host), i64::from(need));
            let fits = || view.host_max(host).is_none_or(|max| max >= need.into());
            let planned = match whole {
                // slots that it lacks there are kept as they become free
                true if fits() && memory.slots_within(all, most) >= all => need,
                true => 0,
                false => {
                    let slots = memory.slots_within(self.slack(host), most);
                    u32::try_from(slots.max(0)).unwrap_or(u32::MAX).min(of_host).min(left)
                }
            };
            if planned > 0 {
                out.push((host, planned));
                left -= planned;
            }
            if left == 0 {
                break;
            }
        }
        out
    }
}

/// The most slots of a host that span[ptile] leaves.
fn tile(span: Option<&Span>) -> u32 {
    match span {
        Some(Span { ptile: Some(Tile::Tasks(tile)), .. }) => (*tile).max(1),
        _ => u32::MAX,
    }
}

fn has(of: &SlotReservation, host: HostId) -> Option<ReservedHost> {
    of.hosts.iter().find(|on| on.host == host).copied()
}
