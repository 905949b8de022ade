//! The limits of the configuration ([`crate::batch::site::rules`]): QJOB_LIMIT, UJOB_LIMIT,
//! HJOB_LIMIT and PJOB_LIMIT of lsb.queues, MAX_JOBS and JL/P of lsb.users, MXJ and JL/U of
//! lsb.hosts, and the limits of lsb.resources. Amounts that several hosts have together are the
//! matter of `sched::joint_room`.
//! Slots that other pending jobs keep count as in use, but on a host where the job ends before they
//! are needed (BACKFILL).

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::site::rules::{Consumer, Counter, LimitedQuantity, Rule, RuleId};
use crate::batch::state::names::HostId;
use crate::batch::state::slot_reservations::SlotReservation;
use crate::batch::usage::limits_ledger::{ConsumerLimits, Demand, Draw};
use crate::model::JobRef;

#[derive(Debug)]
pub(super) struct Limits;

impl Policy for Limits {
    fn answers(&self) -> &'static [Question] {
        &[Question::Queue, Question::User, Question::Host]
    }

    fn queue(&self, view: &View, queue: &Queue) -> Room {
        queue.limits.iter().fold(Room::ANY, |room, counter| {
            let (rule, host) = (view.site.rules.get(counter.rule), counter.member.host);
            let used = view.limits.used(*counter);
            room.and(left(counter.rule, rule, view.allowed(rule, host).saturating_sub(used)))
        })
    }

    fn user(&self, view: &View, queue: &Queue, limits: &ConsumerLimits) -> Room {
        limits.user.iter().enumerate().fold(Room::ANY, |room, (at, (id, _))| {
            let rule = view.site.rules.get(*id);
            let used = view.limits.used_by(limits, at) + claimed_by_users(view, queue, limits, at);
            room.and(left(*id, rule, rule.amount.on(|| 1).saturating_sub(used)))
        })
    }

    fn user_after(&self, view: &View, _queue: &Queue, limits: &ConsumerLimits) -> Room {
        limits.user.iter().enumerate().fold(Room::ANY, |room, (at, (id, _))| {
            let rule = view.site.rules.get(*id);
            let counts = !rule.ignores_preempted;
            let used = if counts { view.limits.used_by(limits, at) } else { 0 };
            room.and(left(*id, rule, rule.amount.on(|| 1).saturating_sub(used)))
        })
    }

    fn further_of_user(&self, view: &View, queue: &Queue, limits: &ConsumerLimits) -> u64 {
        let of_queue = queue.limits.iter().map(|counter| {
            let (rule, host) = (view.site.rules.get(counter.rule), counter.member.host);
            let used = view.limits.used(*counter);
            further_under(rule, view.allowed(rule, host).saturating_sub(used))
        });
        let of_user = limits.user.iter().enumerate().map(|(at, (id, _))| {
            let rule = view.site.rules.get(*id);
            let used = view.limits.used_by(limits, at) + claimed_by_users(view, queue, limits, at);
            further_under(rule, rule.amount.on(|| 1).saturating_sub(used))
        });
        of_queue.chain(of_user).min().unwrap_or(u64::MAX)
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let (view, rules, own) = (&class.view, &class.view.site.rules, class.limits);
        let processors = || view.hosts[host.id].ncpus();
        let mut room = Room::ANY;
        for of_host in rules.on_host(host.id) {
            let rule = rules.get(of_host.rule);
            let member = || rule.member(&own.consumer, host.id);
            let used = match rule.with_given_up {
                true => host.used,
                false => view.limits.used_on(*of_host, member),
            };
            let kept = kept_under(rule, class, host, |_| true);
            let used = used.saturating_sub(leaving_under(of_host.rule, class, host));
            let used = used + claimed_on(view, class.queue, (of_host.rule, &own.consumer), host.id);
            let left_here = rule.amount.on(processors).saturating_sub(used + kept);
            room = room.and(left(of_host.rule, rule, left_here));
        }
        for &id in &own.each_host {
            let rule = rules.get(id);
            if rule.counts_on(host.id) {
                let member = rule.member(&own.consumer, host.id);
                let used = view.limits.used(Counter { rule: id, member });
                let used = used.saturating_sub(leaving_under(id, class, host));
                let used = used + claimed_on(view, class.queue, (id, &own.consumer), host.id);
                let kept = kept_under(rule, class, host, |other| other.each_host.contains(&id));
                let left_here = view.allowed(rule, host.id).saturating_sub(used + kept);
                room = room.and(match rule.what {
                    LimitedQuantity::Resource(_) => {
                        resource_left(class, (id, rule), host, left_here)
                    }
                    _ => left(id, rule, left_here),
                });
            }
        }
        room
    }

    fn further(&self, class: &HostMatch, host: &HostNow) -> u64 {
        let (view, rules, own) = (&class.view, &class.view.site.rules, class.limits);
        if !view.state.slot_reservations().is_empty() {
            return 0;
        }
        let processors = || view.hosts[host.id].ncpus();
        let mut least = u64::MAX;
        for of_host in rules.on_host(host.id) {
            let rule = rules.get(of_host.rule);
            let used = match rule.with_given_up {
                true => host.used,
                false => view.limits.used_on(*of_host, || rule.member(&own.consumer, host.id)),
            };
            let left = rule.amount.on(processors).saturating_sub(used);
            least = least.min(further_under(rule, left));
        }
        for &id in own.each_host.iter().filter(|id| rules.get(**id).counts_on(host.id)) {
            let rule = rules.get(id);
            let member = rule.member(&own.consumer, host.id);
            let used = view.limits.used(Counter { rule: id, member });
            let left = view.allowed(rule, host.id).saturating_sub(used);
            least = least.min(further_under(rule, left));
        }
        least
    }
}

/// Does a limit that counts all jobs of a queue alike leave none of them a slot on a host? Where
/// jobs reserve slots or are preempted, it may leave other jobs some.
pub(in crate::batch::sched) fn queue_is_full(class: &HostMatch, host: HostId) -> bool {
    let (view, rules, own) = (&class.view, &class.view.site.rules, class.limits);
    if view.site.preempts || !view.state.slot_reservations().is_empty() {
        return false;
    }
    own.each_host.iter().any(|&id| {
        let rule = rules.get(id);
        let used =
            || view.limits.used(Counter { rule: id, member: rule.member(&own.consumer, host) });
        rule.counts_queues_alone() && rule.counts_on(host) && used() >= view.allowed(rule, host)
    })
}

/// The further jobs of one slot that a rule lets start after one, where a rule of slots or jobs
/// leaves this many.
fn further_under(rule: &Rule, left: u64) -> u64 {
    match rule.what {
        LimitedQuantity::Resource(_) => 0,
        _ => left.saturating_sub(1),
    }
}

/// The slots that pending jobs of queues above one claim, as far as a rule counts them under which
/// preempted jobs do not: these would have been preempted in vain if others took what they gave up.
fn claimed(
    (view, queue): (&View, &Queue),
    rule: &Rule,
    counts: impl Fn(&ConsumerLimits) -> bool,
    on: impl Fn(HostId) -> bool,
) -> u64 {
    if !rule.ignores_preempted {
        return 0;
    }
    let above = view.preemptions.claims().filter(|claim| {
        let of = view.site.queue(claim.queue);
        of.is_some_and(|of| of.conf.priority > queue.conf.priority)
            && counts(&view.limits_of(Consumer::new(claim.queue, claim.user)))
    });
    let hosts = above.flat_map(|claim| &claim.hosts).filter(|host| on(host.host));
    hosts.map(|host| u64::from(host.slots)).sum()
}

/// The slots that are claimed above a queue, under a rule about users by its position.
fn claimed_by_users(view: &View, queue: &Queue, limits: &ConsumerLimits, at: usize) -> u64 {
    let own = limits.user[at];
    let rule = view.site.rules.get(own.0);
    claimed((view, queue), rule, |other| other.user.contains(&own), |_| true)
}

/// The slots of a host that are claimed above a queue, under a rule about each host.
fn claimed_on(view: &View, queue: &Queue, (id, mine): (RuleId, &Consumer), host: HostId) -> u64 {
    let rule = view.site.rules.get(id);
    let of_host = || view.site.rules.on_host(host).iter().any(|own| own.rule == id);
    let counts = |other: &ConsumerLimits| {
        rule.member(&other.consumer, host) == rule.member(mine, host)
            && (other.each_host.contains(&id) || of_host())
    };
    claimed((view, queue), rule, counts, |on| on == host)
}

/// The slots of a host that do not count under a rule any more once jobs there are preempted.
fn leaving_under(id: RuleId, class: &HostMatch, host: &HostNow) -> u64 {
    let view = &class.view;
    let rule = view.site.rules.get(id);
    if !rule.ignores_preempted {
        return 0;
    }
    let Some(jobs) = host.leaving.jobs else { return u64::MAX };
    let mine = rule.member(&class.limits.consumer, host.id);
    let slots = |at: &JobRef| -> u64 {
        let Some(consumer) = counting_consumer(view, *at) else { return 0 };
        let of_host = view.site.rules.on_host(host.id).iter().any(|own| own.rule == id);
        let concerned = of_host || view.limits_of(consumer).each_host.contains(&id);
        if !concerned || rule.member(&consumer, host.id) != mine {
            return 0;
        }
        let here = view.preemptions.hosts_of(*at).iter().filter(|on| on.0 == host.id);
        here.map(|on| u64::from(on.1)).sum()
    };
    jobs.iter().map(slots).sum()
}

/// The consumer of an element that counts under each of its limits; `None`: it is preempted.
fn counting_consumer(view: &View, at: JobRef) -> Option<Consumer> {
    let job = view.state.job(at.job)?;
    let run = job.elem(at.idx)?.run().filter(|run| !run.is_preempted())?;
    let of = (job.queue_at(run.key.idx), job.user);
    Some(view.site.rules.consumer(of, job.spec_at(at.idx)))
}

/// The slots that the limits of the user, under which preempted jobs do not count, leave a class
/// once these are preempted.
pub(super) fn room_once_preempted(class: &HostMatch, victims: &[JobRef]) -> u64 {
    let (view, limits) = (&class.view, class.limits);
    let rules = limits.user.iter().enumerate();
    rules.fold(u64::MAX, |room, (at, own)| {
        let rule = view.site.rules.get(own.0);
        if !rule.ignores_preempted {
            return room;
        }
        let given_up: u64 = victims.iter().map(|at| given_up_under(view, *own, *at)).sum();
        let used = view.limits.used_by(limits, at).saturating_sub(given_up);
        let used = used + claimed_by_users(view, class.queue, limits, at);
        room.min(rule.amount.on(|| 1).saturating_sub(used))
    })
}

/// The slots of a job that do not count under a rule of users any more once it is preempted.
fn given_up_under(view: &View, own: (RuleId, u32), at: JobRef) -> u64 {
    let Some(consumer) = counting_consumer(view, at) else { return 0 };
    // it counts until it has ended
    let ends = view.site.queue(consumer.queue).is_none_or(|queue| queue.end_by_preemption);
    match !ends && view.limits_of(consumer).user.contains(&own) {
        true => view.preemptions.hosts_of(at).iter().map(|on| u64::from(on.1)).sum(),
        false => 0,
    }
}

/// Does a job give slots up under some limit of the user of a class once it is preempted?
pub(super) fn helps_under_limits(class: &HostMatch, at: JobRef) -> bool {
    let rules = &class.view.site.rules;
    let mut own = class.limits.user.iter().filter(|own| rules.get(own.0).ignores_preempted);
    own.any(|own| given_up_under(&class.view, *own, at) > 0)
}

/// Do the limits under which preempted jobs do not count let a suspended job go on?
pub(in crate::batch::sched) fn may_count_again(view: &View, at: JobRef) -> bool {
    if !view.site.rules.ignore_preempted() {
        return true;
    }
    let Some(job) = view.state.job(at.job) else { return true };
    let Some(run) = job.elem(at.idx).and_then(|elem| elem.run()) else { return true };
    let counts = !run.is_preempted();
    let of = (job.queue_at(at.idx), job.user);
    let consumer = view.site.rules.consumer(of, job.spec_at(at.idx));
    let (limits, rules) = (view.limits_of(consumer), &view.site.rules);
    let Some(queue) = view.site.queue(consumer.queue) else { return true };
    let fits = |used: u64, own: u64, most: u64| {
        let others = if counts { used.saturating_sub(own) } else { used };
        // of a limit that has become lower than the job alone there is nothing to wait for
        others == 0 || others.saturating_add(own) <= most
    };
    let in_all = u64::from(run.slots());
    let of_user = limits.user.iter().enumerate().all(|(position, (id, _))| {
        let rule = rules.get(*id);
        let claimed = || claimed_by_users(view, queue, &limits, position);
        let used = || view.limits.used_by(&limits, position) + claimed();
        !rule.ignores_preempted || fits(used(), in_all, rule.amount.on(|| 1))
    });
    let on_host = |host: HostId, slots: u32| {
        let own = u64::from(slots);
        rules.on_host(host).iter().all(|of_host| {
            let rule = rules.get(of_host.rule);
            let claimed = || claimed_on(view, queue, (of_host.rule, &consumer), host);
            let member = || rule.member(&consumer, host);
            let used = || view.limits.used_on(*of_host, member) + claimed();
            !rule.ignores_preempted || fits(used(), own, view.allowed(rule, host))
        }) && limits.each_host.iter().all(|id| {
            let rule = rules.get(*id);
            let member = rule.member(&consumer, host);
            let claimed = || claimed_on(view, queue, (*id, &consumer), host);
            let used = || view.limits.used(Counter { rule: *id, member }) + claimed();
            let concerned = rule.ignores_preempted && rule.counts_on(host);
            !concerned || fits(used(), own, view.allowed(rule, host))
        })
    };
    of_user && run.hosts.iter().all(|(host, slots)| on_host(*host, *slots))
}

/// The slots of a host that count under a rule because other jobs keep them; `concerns`: is the
/// rule about the jobs that have these limits?
fn kept_under(
    rule: &Rule,
    class: &HostMatch,
    host: &HostNow,
    concerns: impl Fn(&ConsumerLimits) -> bool,
) -> u64 {
    let view = &class.view;
    if view.state.slot_reservations().is_empty() || rule.what != LimitedQuantity::Slots {
        return 0;
    }
    let mine = rule.member(&class.limits.consumer, host.id);
    let counts = |of: &SlotReservation| {
        let other = view.limits_of(Consumer::new(of.queue, of.user));
        rule.member(&other.consumer, host.id) == mine && concerns(&other)
    };
    let kept = class.kept_by_others(host.id, host.backfills);
    kept.filter(|(of, _)| counts(of)).map(|(_, kept)| kept).sum()
}

/// The room that the limits of a queue and of a user leave, where the slots that other jobs than
/// `own` keep count, younger reservations aside. No job backfills under these.
pub(super) fn beside_reservations(
    view: &View,
    queue: &Queue,
    limits: &ConsumerLimits,
    own: Option<JobRef>,
) -> Room {
    let all = view.state.slot_reservations();
    let place = own.and_then(|own| all.get(own)).map(SlotReservation::place);
    let others = || {
        let older = |of: &&SlotReservation| place.is_none_or(|own| of.place() < own);
        all.iter().filter(|of| Some(of.at) != own).filter(older)
    };
    let slots = |id| Some(view.site.rules.get(id)).filter(|r| r.what == LimitedQuantity::Slots);
    let mut room = Room::ANY;
    for counter in &queue.limits {
        let Some(rule) = slots(counter.rule) else { continue };
        let counts = |of: &&SlotReservation| {
            view.site.queue(of.queue).is_some_and(|queue| queue.limits.contains(counter))
        };
        let kept: u64 = others().filter(counts).map(SlotReservation::kept).sum();
        let used = view.limits.used(*counter) + kept;
        let allowed = view.allowed(rule, counter.member.host);
        room = room.and(left(counter.rule, rule, allowed.saturating_sub(used)));
    }
    for (at, of_user) in limits.user.iter().enumerate() {
        let Some(rule) = slots(of_user.0) else { continue };
        let counts = |of: &&SlotReservation| {
            view.limits_of(Consumer::new(of.queue, of.user)).user.contains(of_user)
        };
        let kept: u64 = others().filter(counts).map(SlotReservation::kept).sum();
        let used = view.limits.used_by(limits, at) + kept;
        room = room.and(left(of_user.0, rule, rule.amount.on(|| 1).saturating_sub(used)));
    }
    room
}

/// The room that a rule leaves of slots or jobs.
fn left(id: RuleId, rule: &Rule, left: u64) -> Room {
    let (reason, rule_id) = (rule.reason, Some(id));
    match rule.what {
        LimitedQuantity::Slots => Room { slots: left, reason, rule: rule_id },
        _ if left > 0 => Room::ANY,
        _ => Room { slots: 0, reason, rule: rule_id },
    }
}

/// The slots for which a rule of a host leaves enough of a resource.
fn resource_left(
    class: &HostMatch,
    (id, rule): (RuleId, &Rule),
    host: &HostNow,
    left: u64,
) -> Room {
    let LimitedQuantity::Resource(resource) = rule.what else { return Room::ANY };
    let demand = Demand::of_requirement(class.view.site, class.simple, resource);
    if demand.is_nothing() {
        return Room::ANY;
    }
    let draw = Draw::new(demand, None);
    let slots = match left.checked_sub(draw.fixed(host.id)) {
        None => 0,
        Some(rest) => rest.checked_div(draw.per_slot()).unwrap_or(u64::MAX),
    };
    Room { slots, reason: rule.reason, rule: Some(id) }
}
