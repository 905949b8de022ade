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

    fn user(&self, view: &View, _queue: &Queue, limits: &ConsumerLimits) -> Room {
        limits.user.iter().enumerate().fold(Room::ANY, |room, (at, (id, _))| {
            let used = view.limits.used_by(limits, at);
            let rule = view.site.rules.get(*id);
            room.and(left(*id, rule, rule.amount.on(|| 1).saturating_sub(used)))
        })
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
            let left_here = rule.amount.on(processors).saturating_sub(used + kept);
            room = room.and(left(of_host.rule, rule, left_here));
        }
        for &id in &own.each_host {
            let rule = rules.get(id);
            if rule.counts_on(host.id) {
                let member = rule.member(&own.consumer, host.id);
                let used = view.limits.used(Counter { rule: id, member });
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

/// The further jobs of one slot that a rule lets a host take after one, where a rule of slots or
/// jobs leaves this many.
fn further_under(rule: &Rule, left: u64) -> u64 {
    match rule.what {
        LimitedQuantity::Resource(_) => 0,
        _ => left.saturating_sub(1),
    }
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
