//! Users and classes that a limit leaves too little, by the counter of the limit: they are looked
//! at again when it falls. Other limits need no such list: they are asked about in each pass (those
//! of a queue as a whole), when a host has changed, or when a job of the user has ended.

use crate::batch::sched::joint_room::Short;
use crate::batch::site::Site;
use crate::batch::site::rules::{Consumer, Counter, RuleId};
use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::model::idmap::IdMap;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) users: BTreeSet<(QueueId, UserId)>,
    pub(super) classes: BTreeSet<u32>,
}

/// All that wait.
#[derive(Debug, Default)]
pub(super) struct LimitWaits {
    all: IdMap<Counter, Waiting>,
    /// Users and classes whose pending time may have become eligible by a limit, or not.
    touched: Waiting,
}

impl LimitWaits {
    fn of(&mut self, site: &Site, rule: RuleId, consumer: &Consumer) -> Option<&mut Waiting> {
        let of = site.rules.get(rule);
        let member = || of.member(consumer, HostId::MAX);
        of.has_waiters().then(|| self.all.entry(Counter { rule, member: member() }).or_default())
    }

    fn tracks(site: &Site, rule: RuleId) -> bool {
        site.params().track_eligible && site.rules.get(rule).ineligible
    }

    /// A class waits until a rule leaves its jobs more.
    pub fn class(&mut self, site: &Site, rule: RuleId, consumer: &Consumer, class: u32) {
        if let Some(waiting) = self.of(site, rule, consumer) {
            waiting.classes.insert(class);
        }
        if LimitWaits::tracks(site, rule) {
            self.touched.classes.insert(class);
        }
    }

    /// A class waits until each of these rules leaves its jobs more.
    pub fn classes(&mut self, site: &Site, short: &Short, consumer: &Consumer, class: u32) {
        short.rules.iter().for_each(|rule| self.class(site, *rule, consumer, class));
    }

    /// All classes of a user in a queue wait.
    pub fn user(&mut self, site: &Site, rule: RuleId, consumer: &Consumer) {
        if let Some(waiting) = self.of(site, rule, consumer) {
            waiting.users.insert((consumer.queue, consumer.user));
        }
        if LimitWaits::tracks(site, rule) {
            self.touched.users.insert((consumer.queue, consumer.user));
        }
    }

    /// A counter fell: those who waited for that.
    pub fn fell(&mut self, site: &Site, counter: Counter) -> Option<Waiting> {
        let waiting = self.all.remove(&counter)?;
        if LimitWaits::tracks(site, counter.rule) {
            self.touched.users.extend(&waiting.users);
            self.touched.classes.extend(&waiting.classes);
        }
        Some(waiting)
    }

    /// Users and classes whose pending time may be eligible, or not, other than before.
    pub fn take_touched(&mut self) -> Waiting {
        std::mem::take(&mut self.touched)
    }
}
