//! SLOT_RESERVE and RESOURCE_RESERVE: a job that finds too few slots keeps those that are free,
//! until it has enough or MAX_RESERVE_TIME is over (lsb.queues(5)).
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
use crate::batch::sched::forecast::{FreeSlots, Need, first_place};
use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{BlockedJob, Policy, Question};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::state::names::{HostId, HostSet};
use crate::batch::state::slot_reservations::{ReservedHost, SlotReservation};
use crate::lang::resreq::{Span, Tile};
use crate::model::JobRef;
use crate::model::event::JobReserve;
use crate::model::idmap::IdMap;
use std::cmp::Reverse;

/// Ends of started jobs that are looked at for one job, earliest first.
const MOST_ENDS: usize = 16_384;

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
        // a limit leaves it too few slots, or there is nothing to gather
        if class.room < u64::from(class.kind.min) || class.kind.min < 2 {
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
        let mut planner = Planner::new(class, at, own);
        let plan = planner.plan(free);
        if own.is_none() && plan.start == 0 && plan.hosts.iter().all(|on| on.kept == 0) {
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
        Some(Decision::Reserve(Box::new(JobReserve { at, since, until, start, end, hosts })))
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
    class: &'a HostMatch<'b>,
    at: JobRef,
    own: Option<&'a SlotReservation>,
    /// The slots of hosts that older reservations have now.
    owed: IdMap<HostId, i64>,
    eligible: IdMap<HostId, bool>,
    /// The slots of others that are still in use, where the job wants its hosts for itself.
    in_use: IdMap<HostId, i64>,
}

impl<'a, 'b> Planner<'a, 'b> {
    fn new(class: &'a HostMatch<'b>, at: JobRef, own: Option<&'a SlotReservation>) -> Self {
        let (eligible, in_use) = (IdMap::default(), IdMap::default());
        let owed = IdMap::default();
        let mut planner = Planner { class, at, own, owed, eligible, in_use };
        let all = class.view.state.slot_reservations();
        for of in all.iter().filter(|of| of.at != at) {
            for on in &of.hosts {
                *planner.owed.entry(on.host).or_default() += planner.share(of, *on);
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
            now.add(host, i64::from(slots).min(self.slack(host)));
        }
        for on in self.own.map_or(&[][..], |own| &own.hosts) {
            if !now.has(on.host) && !self.class.kind.exclusive && self.is_eligible(on.host) {
                now.add(on.host, self.slack(on.host));
            }
        }
        let class = self.class;
        let need = Need {
            slots: u64::from(class.kind.min),
            one_host: class.one_host(),
            counting: |host, slots| class.counting(host, slots),
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
            let free = if now.has(host) { now.get(host) } else { self.slack(host) };
            let free = u32::try_from(free.max(0)).unwrap_or(u32::MAX);
            // a job that backfills has some of what was kept: it gives it back in time
            let before = self.own.and_then(|own| has(own, host)).map_or(0, |on| on.kept);
            ReservedHost { host, planned, kept: planned.min(free.max(before)) }
        };
        let hosts: Vec<ReservedHost> = hosts.iter().map(keep).collect();
        let run = class.run.filter(|_| start > 0).zip(hosts.first());
        let end = run.map_or(0, |(run, first)| {
            start.saturating_add(run.on(class.view.hosts[first.host].cpu_factor()))
        });
        Plan { hosts, start, end }
    }

    /// Is the reservation as good as a plan? It stays then, though the plan has other hosts: two
    /// plans of one worth would take turns without end.
    fn is_as_good(&mut self, own: &SlotReservation, plan: &Plan) -> bool {
        if (&own.hosts, own.start, own.end) == (&plan.hosts, plan.start, plan.end) {
            return true;
        }
        let sum = |hosts: &[ReservedHost], slots: fn(&ReservedHost) -> u32| -> u64 {
            hosts.iter().map(|on| u64::from(slots(on))).sum()
        };
        own.start == plan.start
            && sum(&own.hosts, |on| on.kept) >= sum(&plan.hosts, |on| on.kept)
            && sum(&own.hosts, |on| on.planned) >= sum(&plan.hosts, |on| on.planned)
            && own.hosts.iter().all(|on| self.is_eligible(on.host))
    }

    /// The slots of a host that are in no use, less what other reservations have.
    fn slack(&self, host: HostId) -> i64 {
        let view = &self.class.view;
        let Some(max) = view.host_max(host) else { return i64::from(u32::MAX) };
        let free = max.saturating_sub(view.host_used(host));
        let owed = self.owed.get(&host).copied().unwrap_or(0);
        i64::try_from(free).unwrap_or(i64::MAX).saturating_sub(owed)
    }

    /// The slots of a host that other reservations have at some time.
    fn owed_at(&self, host: HostId, time: i64) -> i64 {
        let all = self.class.view.state.slot_reservations().on_host(host);
        let others = all.filter(|(of, _)| of.at != self.at && (of.end == 0 || of.end > time));
        others.map(|(of, on)| self.share(of, on)).sum()
    }

    /// The slots of a host that another reservation takes: all that is planned for it where it is
    /// older; else none.
    fn share(&self, of: &SlotReservation, on: ReservedHost) -> i64 {
        match self.own {
            Some(own) if own.place() < of.place() => 0,
            _ => on.planned.into(),
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
            .filter(|of| of.2 > 0);
        let mut of_others: Vec<(i64, HostId, i64)> = ends.collect();
        of_others.sort_unstable();
        let mut of_others = of_others.into_iter().peekable();
        let mut of_jobs = view.timeline.ends().take(MOST_ENDS).peekable();
        let (mut known, mut told) = (IdMap::<HostId, i64>::default(), HostSet::default());
        std::iter::from_fn(move || {
            loop {
                let job_first = match (of_jobs.peek(), of_others.peek()) {
                    (Some(job), Some(other)) => job.0 <= other.0,
                    (job, _) => job.is_some(),
                };
                let (time, host, slots) = match job_first {
                    true => of_jobs.next().map(|(end, host, n)| (end, host, i64::from(n))),
                    false => of_others.next(),
                }?;
                if !self.is_eligible(host) {
                    continue;
                }
                let gain = match self.class.kind.exclusive {
                    true => self.emptied(time, host, slots, job_first),
                    // slots that the host owes to others are no gain
                    false => {
                        let before = known.entry(host).or_insert_with(|| match now.has(host) {
                            true => now.get(host).min(0),
                            // a job of one host is not told of hosts that are too small now
                            false if self.class.one_host() => self.slack(host),
                            false => self.slack(host).min(0),
                        });
                        let gain = before.saturating_add(slots).max(0) - (*before).max(0);
                        // the gain of a host that it was not told of: all that it has then
                        let first = !now.has(host) && told.insert(host);
                        let gain = if first { gain + (*before).max(0) } else { gain };
                        *before = before.saturating_add(slots);
                        gain
                    }
                };
                if gain > 0 {
                    return Some((time, host, gain));
                }
            }
        })
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
        let of_host = match span {
            Some(Span { ptile: Some(Tile::Tasks(tile)), .. }) => (*tile).max(1),
            _ => u32::MAX,
        };
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
}

fn has(of: &SlotReservation, host: HostId) -> Option<ReservedHost> {
    of.hosts.iter().find(|on| on.host == host).copied()
}
