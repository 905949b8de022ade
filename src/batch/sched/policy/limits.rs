//! The limits of the configuration ([`crate::batch::site::rules`]): QJOB_LIMIT, UJOB_LIMIT,
//! HJOB_LIMIT and PJOB_LIMIT of lsb.queues, MAX_JOBS and JL/P of lsb.users, MXJ and JL/U of
//! lsb.hosts.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Room};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::site::rules::{ConsumerRules, Counter, Rule, What};
use crate::batch::state::names::HostId;

#[derive(Debug)]
pub(super) struct Limits;

impl Policy for Limits {
    fn queue(&self, view: &View, queue: &Queue) -> Room {
        left_of_all(view, view.site.rules.of_queue(queue.id))
    }

    fn user(&self, view: &View, _queue: &Queue, rules: &ConsumerRules) -> Room {
        left_of_all(view, &rules.user)
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let (view, rules) = (&class.view, &class.view.site.rules);
        let mut room = Room::ANY;
        for &id in rules.on_host(host.id).iter().chain(&class.limits.host) {
            let rule = rules.get(id);
            if rule.counts_on(host.id) {
                let member = rule.member(&class.limits.consumer, host.id);
                let used = view.limits.used(Counter { rule: id, member });
                room = room.and(left(view, rule, Some(host.id), used));
            }
        }
        room
    }
}

/// The room that rules leave that look at no host.
fn left_of_all(view: &View, counters: &[Counter]) -> Room {
    counters.iter().fold(Room::ANY, |room, counter| {
        let rule = view.site.rules.get(counter.rule);
        room.and(left(view, rule, None, view.limits.used(*counter)))
    })
}

/// The room that a rule leaves.
fn left(view: &View, rule: &Rule, host: Option<HostId>, used: u64) -> Room {
    let processors = host.map_or(1, |host| view.hosts[host].ncpus());
    let given_up = host.filter(|_| rule.with_given_up).map_or(0, |host| view.given_up(host));
    let left = rule.amount.on(processors).saturating_sub(used + given_up);
    match rule.what {
        What::Slots => Room { slots: left, reason: rule.reason },
        What::Jobs if left > 0 => Room::ANY,
        What::Jobs => Room::none(rule.reason),
    }
}
