//! Counters of the amount that started jobs hold under each limit: one for each rule
//! ([`crate::batch::site::rules`]) and each member that has the rule's amount for itself.
//!
//! Invariants: a counter is what the started elements in the scope of its rule hold; a start or an
//! end touches the counters of its own rules only.
//!
//! If rules look at no more than queues, users and slots, changes say what is to be counted.
//! Otherwise what each started element holds is kept ([`Holding`]), and compared with what it holds
//! after a change.

mod audit;
mod demand;

pub use demand::{Demand, Draw, Instances};
use demand::{Demands, ElementDemand};

use crate::batch::site::Site;
use crate::batch::site::rules::{
    Consumer, ConsumerRules, Counter, HostRule, LimitedQuantity, Member, Rule, RuleId,
};
use crate::batch::site::user_limits::LimitsAboutUser;
use crate::batch::state::change::{Change, ChangeKind, Held, Stage};
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::{
    ApplicationId, HostId, LicenseProjectId, ProjectId, QueueId, UserGroupId, UserId,
};
use crate::batch::state::started_elements::Share;
use crate::batch::state::{ElemState, Phase, State};
use crate::batch::usage::reserve::holder::slots_by_host;
use crate::model::JobRef;
use crate::model::idmap::IdMap;
use crate::model::reason::susp;
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::rc::Rc;

/// Consumers whose rules are kept, beside those that classes have.
const MAX_CONSUMERS: usize = 65_536;

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
    /// Holdings of each started element, where rules look closely ([`Rules::look_closely`]).
    ///
    /// [`Rules::look_closely`]: crate::batch::site::rules::Rules::look_closely
    holdings: IdMap<JobRef, Box<Holding>>,
    demands: Demands,
    /// Counters that fell, of rules for which classes, users or preempted jobs may wait.
    freed: Vec<Counter>,
    /// Elements that do not count under some rules since they are preempted.
    given_up: Vec<JobRef>,
}

/// Everything by which a started element counts under rules.
#[derive(Clone, Debug, PartialEq)]
struct Holding {
    consumer: Consumer,
    /// Each host once.
    hosts: JobHosts,
    demand: Option<Rc<ElementDemand>>,
    /// The element is preempted, and there are rules under which it does not count then.
    preempted: bool,
}

/// The rules that the jobs of a consumer are subject to, as [`ConsumerRules`], with the numbers of
/// their counters. The numbers hold until the ledger is counted anew.
#[derive(Debug)]
pub struct ConsumerLimits {
    pub consumer: Consumer,
    /// Rules about the user, whatever hosts the jobs get.
    pub user: Vec<(RuleId, u32)>,
    /// Rules about resources that the jobs ask for, whatever hosts they get.
    pub demand: Vec<(RuleId, u32)>,
    /// Rules about each host, or some hosts.
    pub host: Vec<RuleId>,
    /// Rules among them by which each host has an amount for itself.
    pub each_host: Vec<RuleId>,
    /// Rules under which several hosts have an amount together, with the numbers of their counters
    /// where they have some.
    pub joint: Vec<(RuleId, Option<u32>)>,
    recounts: u64,
}

/// All consumers that were asked for.
#[derive(Debug, Default)]
struct Consumers {
    limits: IdMap<Consumer, Rc<ConsumerLimits>>,
    /// Limits that are about the users of consumers, by the group of -G where that counts.
    users: IdMap<(UserId, Option<UserGroupId>), LimitsAboutUser>,
    /// The number of consumers at which those without a class are dropped next.
    crowded: usize,
    numbers: IdMap<Counter, u32>,
}

/// The part of a share that a rule counts.
fn counted(rule: &Rule, share: Share) -> u64 {
    match rule.what {
        LimitedQuantity::Slots => share.slots,
        LimitedQuantity::Jobs => share.jobs,
        // these are counted by what elements hold
        LimitedQuantity::Resource(_) => 0,
    }
}

fn share_of_host(&(host, slots): &(HostId, u32)) -> (HostId, Share) {
    (host, Share { slots: slots.into(), jobs: 1 })
}

/// The share of one element on all its hosts.
fn share_of_all(hosts: &[(HostId, u32)]) -> Share {
    Share { slots: hosts.iter().map(|host| u64::from(host.1)).sum(), jobs: 1 }
}

/// The consumer and the hosts of a job that starts by a change, where rules look at no more than
/// that.
fn start_of<'a>(state: &'a State, change: &Change) -> Option<(Consumer, &'a JobHosts)> {
    let ChangeKind::Element { before, after: Stage::Started, held: None } = &change.kind else {
        return None;
    };
    let at = change.at;
    let job = state.job(at.job).filter(|_| *before != Stage::Started)?;
    let run = job.elem(at.idx)?.run()?;
    Some((Consumer::new(job.queue_at(at.idx), job.user), &run.hosts))
}

impl LimitsLedger {
    /// The amount held under a counter without a number.
    pub fn used(&self, counter: Counter) -> u64 {
        self.used.get(&counter).copied().unwrap_or(0)
    }

    /// The amount held under the counter of a number.
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

    /// The amount held under a rule about the user of some limits, by its position.
    pub fn used_by(&self, limits: &ConsumerLimits, at: usize) -> u64 {
        debug_assert_eq!(limits.recounts, self.recounts, "limits of an earlier configuration");
        self.cell(limits.user[at].1)
    }

    /// The hosts that share an instance of what a rule limits.
    pub fn instances(&self, what: LimitedQuantity) -> Option<&Instances> {
        self.demands.instances(what)
    }

    /// The limits of a consumer.
    pub fn limits_of(&self, state: &State, site: &Site, consumer: Consumer) -> Rc<ConsumerLimits> {
        if let Some(known) = self.consumers.borrow().limits.get(&consumer) {
            return known.clone();
        }
        let user = state.names().user(consumer.user);
        let mut known = self.consumers.borrow_mut();
        let known = &mut *known;
        if known.users.len() >= MAX_CONSUMERS {
            known.users.clear();
        }
        let about = known.users.entry((consumer.user, consumer.user_group)).or_default();
        let ConsumerRules { user, host, demand, .. } = site.consumer_rules(consumer, user, about);
        if known.limits.len() >= known.crowded.max(MAX_CONSUMERS) {
            known.limits.retain(|_, limits| Rc::strong_count(limits) > 1);
            // if classes have nearly all of them, not each further one has all looked at
            known.crowded = 2 * known.limits.len();
        }
        let mut number = |counter: Counter| {
            let next = site.rules.cells() + known.numbers.len();
            (counter.rule, *known.numbers.entry(counter).or_insert(next as u32))
        };
        let user = user.into_iter().map(&mut number).collect();
        let demand: Vec<(RuleId, u32)> = demand.into_iter().map(&mut number).collect();
        let (shared, each_host): (Vec<RuleId>, Vec<RuleId>) =
            host.iter().partition(|id| site.rules.get(**id).joins_hosts());
        let joint = shared.into_iter().map(|id| (id, None));
        let joint = demand.iter().map(|(id, cell)| (*id, Some(*cell))).chain(joint).collect();
        let recounts = self.recounts;
        let limits = ConsumerLimits { consumer, user, demand, host, each_host, joint, recounts };
        let limits = Rc::new(limits);
        known.limits.insert(consumer, limits.clone());
        limits
    }

    /// Counts all started elements, with a new configuration or a new state.
    pub(crate) fn recount(&mut self, state: &State, site: &Site) {
        let (cells, recounts) = (vec![0; site.rules.cells()], self.recounts + 1);
        let demands = Demands::new(site);
        let mut all = LimitsLedger { cells, recounts, demands, ..LimitsLedger::default() };
        for (host, here) in state.counts().hosts() {
            for at in &here.jobs {
                let Some(job) = state.job(at.job) else { continue };
                let Some(ElemState::Run(run)) = job.elem(at.idx).map(|e| &e.state) else {
                    continue;
                };
                // once, whatever number of hosts it has
                if run.hosts.first().is_some_and(|first| first.0 == host) {
                    if site.rules.look_closely() {
                        all.refresh((state, site), *at);
                        continue;
                    }
                    let consumer = Consumer::new(job.queue_at(at.idx), job.user);
                    all.add_element((state, site), consumer, &run.hosts, true);
                }
            }
        }
        *self = all;
    }

    /// Follows changes of the state. Jobs of one consumer that start on the same hosts are counted
    /// together.
    pub(crate) fn follow_all(&mut self, state: &State, site: &Site, changes: &[Change]) {
        let mut rest = changes;
        while let Some(change) = rest.first() {
            let start = start_of(state, change).filter(|_| !site.rules.look_closely());
            let Some((consumer, hosts)) = start else {
                self.follow(state, site, change);
                rest = &rest[1..];
                continue;
            };
            let alike = |other: &&Change| start_of(state, other) == start;
            let count = rest.iter().take_while(alike).count();
            self.add_elements((state, site), consumer, (hosts, count as u64), true);
            rest = &rest[count..];
        }
    }

    /// Follows a change of the state.
    fn follow(&mut self, state: &State, site: &Site, change: &Change) {
        let at = change.at;
        if site.rules.look_closely() {
            return self.follow_closely((state, site), change);
        }
        match &change.kind {
            ChangeKind::Element { before: Stage::Started, after: Stage::Started, held } => {
                self.follow_slots((state, site), at, held.as_ref());
            }
            ChangeKind::Element { held: Some(held), .. } => {
                let consumer = Consumer::new(held.queue, held.user);
                self.add_element((state, site), consumer, &held.hosts, false);
            }
            ChangeKind::Element { after: Stage::Started, .. } => {
                if let Some((consumer, hosts)) = start_of(state, change) {
                    self.add_element((state, site), consumer, hosts, true);
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

    /// Counters that fell since this was asked last, of rules for which classes or users may wait.
    pub(crate) fn take_freed(&mut self) -> Vec<Counter> {
        std::mem::take(&mut self.freed)
    }

    /// Compares what a changed element holds with what it held, where rules look closely.
    fn follow_closely(&mut self, of: (&State, &Site), change: &Change) {
        let at = change.at;
        match &change.kind {
            ChangeKind::Element { .. } => self.refresh(of, at),
            ChangeKind::Modified { .. } => {
                let Some(job) = of.0.job(at.job) else { return };
                match job.array().filter(|_| at.idx == 0) {
                    None => self.refresh(of, at),
                    Some(array) => {
                        for idx in array.started() {
                            self.refresh(of, JobRef { job: at.job, idx });
                        }
                    }
                }
            }
            ChangeKind::Noted if of.1.rules.ignore_preempted() => self.refresh_noted(of, at),
            _ => {}
        }
    }

    /// A preempted element that is to end, or to stop, does not count as preempted any more; idx 0
    /// of an array: each of its elements.
    fn refresh_noted(&mut self, of: (&State, &Site), at: JobRef) {
        let Some(job) = of.0.job(at.job) else { return };
        let preempted = |idx: u32| {
            let run = job.elem(idx).and_then(|elem| elem.run());
            run.is_some_and(|run| run.phase == Phase::Ssusp(susp::PREEMPTED))
        };
        let last = if at.idx == 0 { u32::MAX } else { at.idx };
        let suspended = of.0.counts().suspended().range(at..=JobRef { idx: last, ..at });
        for at in suspended.filter(|at| preempted(at.idx)) {
            self.refresh(of, *at);
        }
    }

    /// An element is preempted, or is not any more.
    pub(crate) fn refresh_preempted(&mut self, state: &State, site: &Site, at: JobRef) {
        if site.rules.ignore_preempted() {
            self.refresh((state, site), at);
        }
    }

    /// The elements that do not count under some rules any more, as they are preempted, since this
    /// was asked last.
    pub(crate) fn take_given_up(&mut self) -> Vec<JobRef> {
        std::mem::take(&mut self.given_up)
    }

    /// Counts an element as it is now.
    fn refresh(&mut self, of: (&State, &Site), at: JobRef) {
        let holds = self.holding(of, at);
        if self.holdings.get(&at).map(Box::as_ref) == holds.as_ref() {
            return;
        }
        // what comes first, so that no counter of both is empty between
        if let Some(holds) = &holds {
            self.count(of, holds, true);
        }
        let preempted = holds.as_ref().is_some_and(|holds| holds.preempted);
        let before = match holds {
            Some(holds) => self.holdings.insert(at, Box::new(holds)),
            None => self.holdings.remove(&at),
        };
        if let Some(before) = before {
            self.count(of, &before, false);
            if preempted && !before.preempted {
                self.given_up.push(at);
            }
        }
    }

    fn holding(&mut self, (state, site): (&State, &Site), at: JobRef) -> Option<Holding> {
        let job = state.job(at.job)?;
        let elem = job.elem(at.idx)?;
        let ElemState::Run(run) = &elem.state else { return None };
        let of = (job.queue_at(at.idx), job.user);
        let consumer = site.rules.consumer(of, job.spec_at(at.idx));
        let hosts = slots_by_host(&run.hosts, |_| true);
        let demand = job.effective_requirement(elem).and_then(|text| self.demands.of(site, text));
        let preempted = site.rules.ignore_preempted() && run.is_preempted();
        Some(Holding { consumer, hosts, demand, preempted })
    }

    /// Counts what an element holds in or out.
    fn count(&mut self, of: (&State, &Site), holds: &Holding, adds: bool) {
        let (state, site) = of;
        let consumer = holds.consumer;
        let limits = self.limits_of(state, site, consumer);
        let all = share_of_all(&holds.hosts);
        for counter in site.queue(consumer.queue).map_or(&[][..], |queue| &queue.limits) {
            self.add(of, *counter, counted(site.rules.get(counter.rule), all), adds);
        }
        let left_out = |rule: &Rule| holds.preempted && rule.ignores_preempted;
        for &(id, cell) in limits.user.iter().chain(&limits.demand) {
            let rule = site.rules.get(id);
            if left_out(rule) {
                continue;
            }
            let counter = || Counter { rule: id, member: rule.member(&consumer, HostId::MAX) };
            let n = match rule.what {
                LimitedQuantity::Resource(_) => self.drawn(rule, holds, |_| true).sum(),
                _ => counted(rule, all),
            };
            self.add_to_cell(of, (cell, counter), n, adds);
        }
        for share in holds.hosts.iter().map(share_of_host) {
            self.add_on_host(of, (consumer, &[], holds.preempted), share, adds);
        }
        for &id in &limits.host {
            let rule = site.rules.get(id);
            if left_out(rule) {
                continue;
            }
            let shares: Vec<u64> = self.drawn(rule, holds, |host| rule.counts_on(host)).collect();
            for ((host, _), n) in holds.hosts.iter().zip(shares) {
                if n > 0 {
                    let counter = Counter { rule: id, member: rule.member(&consumer, *host) };
                    self.add(of, counter, n, adds);
                }
            }
        }
    }

    /// The amounts that a rule counts of an element, host by host; `among`: on these hosts.
    fn drawn<'a>(
        &'a self,
        rule: &'a Rule,
        holds: &'a Holding,
        among: impl Fn(HostId) -> bool + 'a,
    ) -> impl Iterator<Item = u64> + 'a {
        let demand = match rule.what {
            LimitedQuantity::Slots => Demand { per_slot: 1, ..Demand::default() },
            LimitedQuantity::Jobs if rule.joins_hosts() => {
                Demand { per_job: 1, ..Demand::default() }
            }
            LimitedQuantity::Jobs => Demand { per_host: 1, ..Demand::default() },
            LimitedQuantity::Resource(id) => {
                holds.demand.as_ref().map_or(Demand::default(), |demand| demand.of(id))
            }
        };
        let mut draw = Draw::new(demand, self.demands.instances(rule.what));
        // of an amount for the job its first host counts, or the first of the hosts of the rule
        let first = matches!(rule.what, LimitedQuantity::Resource(_));
        holds.hosts.iter().enumerate().map(move |(n, &(host, slots))| {
            if first && n > 0 {
                draw.began();
            }
            if among(host) { draw.take(host, slots.into()) } else { 0 }
        })
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
        self.add_elements(of, consumer, (hosts, 1), adds);
    }

    /// Counts so many elements of a consumer that have the same hosts in or out.
    fn add_elements(
        &mut self,
        of: (&State, &Site),
        consumer: Consumer,
        (hosts, count): (&[(HostId, u32)], u64),
        adds: bool,
    ) {
        let times = |share: Share| Share { slots: share.slots * count, jobs: share.jobs * count };
        let by_host = hosts.iter().map(share_of_host).map(|(host, share)| (host, times(share)));
        self.add_all(of, consumer, (times(share_of_all(hosts)), by_host), adds);
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
        for share in hosts {
            self.add_on_host((state, site), (consumer, &limits.host, false), share, adds);
        }
    }

    /// Counts the share of a host under the rules of the host, and under these.
    fn add_on_host(
        &mut self,
        of: (&State, &Site),
        (consumer, rules, preempted): (Consumer, &[RuleId], bool),
        (host, share): (HostId, Share),
        adds: bool,
    ) {
        let site = of.1;
        for own in site.rules.on_host(host) {
            let rule = site.rules.get(own.rule);
            if preempted && rule.ignores_preempted {
                continue;
            }
            let n = counted(rule, share);
            let counter = || Counter { rule: own.rule, member: rule.member(&consumer, host) };
            match own.cell {
                Some(cell) => self.add_to_cell(of, (cell, counter), n, adds),
                None => self.add(of, counter(), n, adds),
            }
        }
        for &id in rules {
            let rule = site.rules.get(id);
            if rule.counts_on(host) {
                let counter = Counter { rule: id, member: rule.member(&consumer, host) };
                self.add(of, counter, counted(rule, share), adds);
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
        } else if !adds && n > 0 {
            self.note_freed(of.1, counter());
        }
    }

    fn note_freed(&mut self, site: &Site, counter: Counter) {
        let rule = site.rules.get(counter.rule);
        if rule.has_waiters() || rule.ignores_preempted {
            self.freed.push(counter);
        }
    }

    fn add(&mut self, (state, site): (&State, &Site), counter: Counter, n: u64, adds: bool) {
        if !adds && n > 0 {
            self.note_freed(site, counter);
        }
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
    let limits = &site.conf.batch.resources.limits;
    let mut text = rule.name.to_owned();
    if let Some(limit) = rule.limit.and_then(|position| limits.get(position as usize)) {
        text += &format!(" of limit {}", limit.name);
    }
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
    let names = site.rules.consumer_names();
    if member.project != ProjectId::MAX {
        text += &format!(", project {}", names.project(member.project));
    }
    if member.application != ApplicationId::MAX {
        text += &format!(", application {}", names.application(member.application));
    }
    if member.license_project != LicenseProjectId::MAX {
        text += &format!(", license project {}", names.license_project(member.license_project));
    }
    text
}

#[cfg(test)]
mod tests;
