//! Counters of the amount that started jobs hold under each limit: one for each rule
//! ([`crate::batch::site::rules`]) and each member that has the rule's amount for itself.
//!
//! Invariants: a counter is what the started elements in the scope of its rule hold; a start or an
//! end touches the counters of its own rules only.

mod audit;

use crate::batch::site::Site;
use crate::batch::site::rules::{
    Consumer, ConsumerRules, Counter, HostRule, LimitedQuantity, Member, Rule, RuleId,
};
use crate::batch::state::change::{Change, ChangeKind, Held, Stage};
use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::batch::state::started_elements::Share;
use crate::batch::state::{ElemState, State};
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::rc::Rc;

#[derive(Debug, Default)]
pub struct LimitsLedger {
    /// The amount held under each counter; never zero.
    used: IdMap<Counter, u64>,
    /// Counters that have a number: those of hosts ([`HostRule::cell`]), then those of users.
    cells: Vec<u64>,
    /// The rules of consumers, worked out when they are first asked for.
    consumers: RefCell<Consumers>,
    /// A counter was to fall below zero: which.
    fault: Option<String>,
    /// How often everything was counted anew: numbers of counters hold until then.
    recounts: u64,
}

/// The rules that the jobs of a consumer are subject to, as [`ConsumerRules`], with the numbers of
/// their counters. The numbers hold until the ledger is counted anew.
#[derive(Debug)]
pub struct ConsumerLimits {
    pub consumer: Consumer,
    /// Rules about the user, whatever hosts the jobs get.
    pub user: Vec<(RuleId, u32)>,
    /// Rules about each host, or some hosts.
    pub host: Vec<RuleId>,
    recounts: u64,
}

/// All consumers that were asked for.
#[derive(Debug, Default)]
struct Consumers {
    limits: IdMap<Consumer, Rc<ConsumerLimits>>,
    numbers: IdMap<Counter, u32>,
}

/// The part of a share that a rule counts.
fn counted(rule: &Rule, share: Share) -> u64 {
    match rule.what {
        LimitedQuantity::Slots => share.slots,
        LimitedQuantity::Jobs => share.jobs,
    }
}

fn share_of_host(&(host, slots): &(HostId, u32)) -> (HostId, Share) {
    (host, Share { slots: slots.into(), jobs: 1 })
}

/// The share of one element on all its hosts.
fn share_of_all(hosts: &[(HostId, u32)]) -> Share {
    Share { slots: hosts.iter().map(|host| u64::from(host.1)).sum(), jobs: 1 }
}

impl LimitsLedger {
    /// The amount held under a rule of a host about any user; `member`: by this one.
    pub fn used(&self, counter: Counter) -> u64 {
        self.used.get(&counter).copied().unwrap_or(0)
    }

    /// The amount held under a rule of a host about any user; `member`: by this one.
    pub fn cell(&self, cell: u32) -> u64 {
        self.cells.get(cell as usize).copied().unwrap_or(0)
    }

    /// The amount held under a rule of a host about any user; `member`: by this one.
    pub fn used_on(&self, own: HostRule, member: impl FnOnce() -> Member) -> u64 {
        match own.cell {
            Some(cell) => self.cell(cell),
            None => self.used(Counter { rule: own.rule, member: member() }),
        }
    }

    /// The amount held under a rule of a host about any user; `member`: by this one.
    pub fn used_by(&self, limits: &ConsumerLimits, at: usize) -> u64 {
        debug_assert_eq!(limits.recounts, self.recounts, "limits of an earlier configuration");
        self.cell(limits.user[at].1)
    }

    /// The limits of a consumer.
    pub fn limits_of(&self, state: &State, site: &Site, consumer: Consumer) -> Rc<ConsumerLimits> {
        if let Some(known) = self.consumers.borrow().limits.get(&consumer) {
            return known.clone();
        }
        let user = state.names().user(consumer.user);
        let ConsumerRules { user, host, .. } = site.consumer_rules(consumer, user);
        let mut known = self.consumers.borrow_mut();
        let mut number = |counter: Counter| {
            let next = site.rules.cells() + known.numbers.len();
            (counter.rule, *known.numbers.entry(counter).or_insert(next as u32))
        };
        let user = user.into_iter().map(&mut number).collect();
        let limits = Rc::new(ConsumerLimits { consumer, user, host, recounts: self.recounts });
        known.limits.insert(consumer, limits.clone());
        limits
    }

    /// Counts all started elements, with a new configuration or a new state.
    pub(crate) fn recount(&mut self, state: &State, site: &Site) {
        let (cells, recounts) = (vec![0; site.rules.cells()], self.recounts + 1);
        let mut all = LimitsLedger { cells, recounts, ..LimitsLedger::default() };
        for (host, here) in state.counts().hosts() {
            for at in &here.jobs {
                let Some(job) = state.job(at.job) else { continue };
                let Some(ElemState::Run(run)) = job.elem(at.idx).map(|e| &e.state) else {
                    continue;
                };
                // once, whatever number of hosts it has
                if run.hosts.first().is_some_and(|first| first.0 == host) {
                    let consumer = Consumer::new(job.queue_at(at.idx), job.user);
                    all.add_element((state, site), consumer, &run.hosts, true);
                }
            }
        }
        *self = all;
    }

    /// Follows a change of the state.
    pub(crate) fn follow(&mut self, state: &State, site: &Site, change: &Change) {
        let at = change.at;
        match &change.kind {
            ChangeKind::Element { before: Stage::Started, after: Stage::Started, held } => {
                self.follow_slots((state, site), at, held.as_ref());
            }
            ChangeKind::Element { held: Some(held), .. } => {
                let consumer = Consumer::new(held.queue, held.user);
                self.add_element((state, site), consumer, &held.hosts, false);
            }
            ChangeKind::Element { after: Stage::Started, .. } => {
                let Some(job) = state.job(at.job) else { return };
                if let Some(ElemState::Run(run)) = job.elem(at.idx).map(|e| &e.state) {
                    let consumer = Consumer::new(job.queue_at(at.idx), job.user);
                    self.add_element((state, site), consumer, &run.hosts, true);
                }
            }
            ChangeKind::Modified { switched } => {
                let Some(job) = state.job(at.job) else { return };
                for all in switched {
                    for (queue, adds) in [(all.from, false), (all.to, true)] {
                        let hosts = all.hosts.iter().map(|(host, share)| (*host, *share));
                        let consumer = Consumer::new(queue, job.user);
                        self.add_all((state, site), consumer, (all.all, hosts), adds);
                    }
                }
            }
            _ => {}
        }
    }

    /// Follows a change of a started element: its slots may be others than before.
    fn follow_slots(&mut self, of: (&State, &Site), at: JobRef, held: Option<&Held>) {
        let Some(job) = of.0.job(at.job) else { return };
        let Some(ElemState::Run(run)) = job.elem(at.idx).map(|e| &e.state) else { return };
        let Some(held) = held.filter(|held| held.hosts != run.hosts) else { return };
        // what comes first, so that no counter of both is empty between
        let consumer = Consumer::new(job.queue_at(at.idx), job.user);
        self.add_element(of, consumer, &run.hosts, true);
        let before = Consumer::new(held.queue, held.user);
        self.add_element(of, before, &held.hosts, false);
    }

    /// A counter was to fall below zero since this was asked last.
    pub(crate) fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    fn add_element(
        &mut self,
        of: (&State, &Site),
        consumer: Consumer,
        hosts: &[(HostId, u32)],
        adds: bool,
    ) {
        let share = share_of_all(hosts);
        self.add_all(of, consumer, (share, hosts.iter().map(share_of_host)), adds);
    }

    /// Counts started elements of a consumer in or out: all of them, and by host.
    fn add_all(
        &mut self,
        (state, site): (&State, &Site),
        consumer: Consumer,
        (all, hosts): (Share, impl Iterator<Item = (HostId, Share)>),
        adds: bool,
    ) {
        let limits = self.limits_of(state, site, consumer);
        for counter in site.queue(consumer.queue).map_or(&[][..], |queue| &queue.limits) {
            let n = counted(site.rules.get(counter.rule), all);
            self.add((state, site), *counter, n, adds);
        }
        for &(id, cell) in &limits.user {
            let rule = site.rules.get(id);
            let member = || rule.member(&consumer, HostId::MAX);
            let counter = || Counter { rule: id, member: member() };
            self.add_to_cell((state, site), (cell, counter), counted(rule, all), adds);
        }
        for (host, share) in hosts {
            for own in site.rules.on_host(host) {
                let rule = site.rules.get(own.rule);
                let n = counted(rule, share);
                let counter = || Counter { rule: own.rule, member: rule.member(&consumer, host) };
                match own.cell {
                    Some(cell) => self.add_to_cell((state, site), (cell, counter), n, adds),
                    None => self.add((state, site), counter(), n, adds),
                }
            }
            for &id in &limits.host {
                let rule = site.rules.get(id);
                if rule.counts_on(host) {
                    let counter = Counter { rule: id, member: rule.member(&consumer, host) };
                    self.add((state, site), counter, counted(rule, share), adds);
                }
            }
        }
    }

    fn add_to_cell(
        &mut self,
        of: (&State, &Site),
        (cell, counter): (u32, impl FnOnce() -> Counter),
        n: u64,
        adds: bool,
    ) {
        let cell = cell as usize;
        if cell >= self.cells.len() {
            self.cells.resize(cell + 1, 0);
        }
        let used = &mut self.cells[cell];
        let before = *used;
        let after = if adds { before.checked_add(n) } else { before.checked_sub(n) };
        *used = after.unwrap_or(0);
        if after.is_none() {
            self.below_zero(of, counter(), (before, n));
        }
    }

    fn add(&mut self, (state, site): (&State, &Site), counter: Counter, n: u64, adds: bool) {
        let mut used = match self.used.entry(counter) {
            Entry::Occupied(used) => used,
            Entry::Vacant(none) if adds && n > 0 => {
                none.insert(n);
                return;
            }
            Entry::Vacant(_) if n == 0 => return,
            Entry::Vacant(_) => return self.below_zero((state, site), counter, (0, n)),
        };
        let before = *used.get();
        match if adds { before.checked_add(n) } else { before.checked_sub(n) } {
            Some(0) => drop(used.remove()),
            Some(after) => *used.get_mut() = after,
            None => {
                used.remove();
                self.below_zero((state, site), counter, (before, n));
            }
        }
    }

    /// More is given back than was counted: nothing is counted any more.
    fn below_zero(
        &mut self,
        (state, site): (&State, &Site),
        counter: Counter,
        (before, n): (u64, u64),
    ) {
        let shown = shown(state, site, counter);
        let text = format!("{shown}: {n} given back of {before}: please report this bug");
        debug_assert!(false, "{text}");
        self.fault.get_or_insert(text);
    }
}

/// A counter as messages show it: the parameter, where it stands, and who has it.
fn shown(state: &State, site: &Site, Counter { rule, member }: Counter) -> String {
    let rule = site.rules.get(rule);
    let mut text = rule.name.to_owned();
    // a host without a row in lsb.hosts has limits all the same
    if !rule.pos.file.is_empty() {
        text += &format!(" of {}", rule.pos);
    }
    if member.user != UserId::MAX {
        text += &format!(", user {}", state.names().user(member.user));
    }
    if member.queue != QueueId::MAX {
        text += &format!(", queue {}", state.names().queue(member.queue));
    }
    if member.host != HostId::MAX {
        text += &format!(", host {}", state.names().host(member.host));
    }
    text
}

#[cfg(test)]
mod tests;
