//! The limits of the configuration ([`crate::batch::site::rules`]): QJOB_LIMIT, UJOB_LIMIT,
//! HJOB_LIMIT and PJOB_LIMIT of lsb.queues, MAX_JOBS and JL/P of lsb.users, MXJ and JL/U of
//! lsb.hosts.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Room};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::site::rules::{Counter, LimitedQuantity, Rule};
use crate::batch::usage::limits_ledger::ConsumerLimits;

#[derive(Debug)]
pub(super) struct Limits;

impl Policy for Limits {
    fn queue(&self, view: &View, queue: &Queue) -> Room {
        queue.limits.iter().fold(Room::ANY, |room, counter| {
            let rule = view.site.rules.get(counter.rule);
            room.and(left(rule, || 1, view.limits.used(*counter)))
        })
    }

    fn user(&self, view: &View, _queue: &Queue, limits: &ConsumerLimits) -> Room {
        limits.user.iter().enumerate().fold(Room::ANY, |room, (at, (id, _))| {
            let used = view.limits.used_by(limits, at);
            room.and(left(view.site.rules.get(*id), || 1, used))
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
            room = room.and(left(rule, processors, used));
        }
        for &id in &own.host {
            let rule = rules.get(id);
            if rule.counts_on(host.id) {
                let member = rule.member(&own.consumer, host.id);
                let used = view.limits.used(Counter { rule: id, member });
                room = room.and(left(rule, processors, used));
            }
        }
        room
    }
}

/// The room that a rule leaves while so much is used, on a host of so many processors.
fn left(rule: &Rule, processors: impl FnOnce() -> u32, used: u64) -> Room {
    let left = rule.amount.on(processors).saturating_sub(used);
    match rule.what {
        LimitedQuantity::Slots => Room { slots: left, reason: rule.reason },
        LimitedQuantity::Jobs if left > 0 => Room::ANY,
        LimitedQuantity::Jobs => Room::none(rule.reason),
    }
}
