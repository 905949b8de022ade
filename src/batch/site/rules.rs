//! The limits of the configuration as rules: how much of something the started jobs of a scope may
//! hold. A rule is compiled from one parameter (`compile`) when the configuration is read.
//!
//! A job is subject to every rule whose scope it is in. Rules about a queue as a whole are known by
//! queue; rules about users, and rules of a queue about its hosts, are worked out once for each
//! [`Consumer`]; rules of hosts about anybody are known by host. `usage::limits_ledger` counts what
//! is held under each rule.

mod compile;
mod consumer;
mod limits;

pub use compile::{HostRows, Lookup};
use consumer::pair;
pub use consumer::{Consumer, ConsumerNames};

use crate::batch::state::names::{
    ApplicationId, HostId, HostMap, HostSet, LicenseProjectId, ProjectId, QueueId, ResourceId,
    UserId,
};
use crate::conf::Pos;
use crate::conf::types::UserTerm;
use crate::model::idmap::IdMap;
use crate::model::job::JobSpec;
use crate::model::reason::PendReason;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

/// Limits of lsb.hosts.
const MXJ: &str = "MXJ";
const JL_U: &str = "JL/U";

/// The members of one dimension (users, hosts, ...) that a rule is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Members<S> {
    /// The rule does not look at this dimension.
    #[default]
    All,
    /// The members of the set have the amount together.
    Shared(S),
    /// Each member of the set has the amount for itself.
    Each(S),
}

impl<S> Members<S> {
    fn set(&self) -> Option<&S> {
        match self {
            Members::All => None,
            Members::Shared(set) | Members::Each(set) => Some(set),
        }
    }

    fn is_each(&self) -> bool {
        matches!(self, Members::Each(_))
    }
}

/// A set of ids.
#[derive(Clone, Debug, PartialEq)]
pub enum Set<I> {
    Any,
    These(BTreeSet<I>),
    /// All but these.
    Except(BTreeSet<I>),
}

impl<I: Ord> Set<I> {
    pub fn contains(&self, id: &I) -> bool {
        match self {
            Set::Any => true,
            Set::These(ids) => ids.contains(id),
            Set::Except(ids) => !ids.contains(id),
        }
    }
}

/// A set of users.
#[derive(Clone, Debug, PartialEq)]
pub enum Users {
    Any,
    /// The users to whom this row of section User of lsb.users applies, by its position.
    Row(usize),
    /// The users that these words mean.
    Named(Vec<UserTerm>),
}

/// A set of hosts.
#[derive(Clone, Debug, PartialEq)]
pub enum Hosts {
    Any,
    These(HostSet),
}

/// The jobs that a rule is about, and how they divide the amount: a job is in the scope where it is
/// among the members of every dimension.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    pub users: Members<Users>,
    pub queues: Members<Set<QueueId>>,
    pub projects: Members<Set<ProjectId>>,
    pub hosts: Members<Hosts>,
    pub applications: Members<Set<ApplicationId>>,
    pub license_projects: Members<Set<LicenseProjectId>>,
}

/// The thing that a rule limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedQuantity {
    Slots,
    /// Started jobs and elements of arrays.
    Jobs,
    /// The amount that started jobs were given by rusage[], in [`RESOURCE_PARTS`] of its unit.
    Resource(ResourceId),
}

/// Parts of the unit of a resource that a limit counts.
pub const RESOURCE_PARTS: f64 = 1000.0;
/// Largest amount of a resource that one element counts with, in these parts.
const MAX_PARTS: f64 = 1e15;

/// An amount of a resource in parts, rounded up: a limit is never exceeded by what was rounded off.
pub fn parts(amount: f64) -> u64 {
    (amount * RESOURCE_PARTS).ceil().clamp(0.0, MAX_PARTS) as u64
}

/// The largest amount that a rule allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Fixed(u64),
    /// The amount for each processor of a host; a fraction is rounded up.
    PerProcessor(f64),
    /// A part of what the host has of the resource, percent.
    Percent(f64),
}

impl Amount {
    /// The amount on a host of so many processors.
    pub fn on(self, processors: impl FnOnce() -> u32) -> u64 {
        self.on_host(processors, || 0.0)
    }

    /// The amount on a host of so many processors, which has so much of the resource.
    pub fn on_host(self, processors: impl FnOnce() -> u32, has: impl FnOnce() -> f64) -> u64 {
        match self {
            Amount::Fixed(n) => n,
            Amount::PerProcessor(n) => (n * f64::from(processors())).ceil() as u64,
            Amount::Percent(n) => (has() * n / 100.0 * RESOURCE_PARTS) as u64,
        }
    }
}

/// One limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The parameter that it was compiled from.
    pub name: &'static str,
    pub scope: Scope,
    pub what: LimitedQuantity,
    pub amount: Amount,
    /// The pending reason where too little is left ([`crate::model::reason::pend`]).
    pub reason: PendReason,
    /// Attempts that were given up with their host, and may still run there, count as well.
    pub with_given_up: bool,
    /// Preempted jobs do not count (PREEMPT_FOR of lsb.params).
    pub ignores_preempted: bool,
    /// The parameter's section or row.
    pub pos: Pos,
    /// The limit of lsb.resources that it belongs to, by its position.
    pub limit: Option<u32>,
    /// Pending time of jobs that it keeps is not eligible.
    pub ineligible: bool,
}

/// The members that have the amount of a rule for themselves; `MAX` in a dimension by which the
/// rule does not divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub user: UserId,
    pub queue: QueueId,
    pub host: HostId,
    pub project: ProjectId,
    pub application: ApplicationId,
    pub license_project: LicenseProjectId,
}

impl Hash for Member {
    fn hash<H: Hasher>(&self, to: &mut H) {
        to.write_u64(pair(self.user, self.host));
        // hardly any rule divides by more than users and hosts
        let rest = (self.queue, self.project, self.application, self.license_project);
        if rest != (QueueId::MAX, ProjectId::MAX, ApplicationId::MAX, LicenseProjectId::MAX) {
            to.write_u64(pair(self.queue, self.project));
            to.write_u64(pair(self.application, self.license_project));
        }
    }
}

/// The position of a rule among all [`Rules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(u32);

impl RuleId {
    /// The position.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A counter of the ledger: a rule and one that has its amount for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Counter {
    pub rule: RuleId,
    pub member: Member,
}

/// The last dimension of a job that a rule needs to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Queue,
    Consumer,
    /// The resources that the job asks for.
    Demand,
    Host,
}

impl Rule {
    fn level(&self) -> Level {
        let Scope { users, projects, hosts, applications, license_projects, .. } = &self.scope;
        let queue_alone = users.set().is_none()
            && projects.set().is_none()
            && applications.set().is_none()
            && license_projects.set().is_none();
        match (hosts.set(), self.what, queue_alone) {
            (Some(_), ..) => Level::Host,
            (None, LimitedQuantity::Resource(_), _) => Level::Demand,
            (None, _, false) => Level::Consumer,
            // those whom it keeps are looked at one by one
            (None, _, true) if self.ineligible => Level::Consumer,
            (None, _, true) => Level::Queue,
        }
    }

    /// Do several hosts have the amount together, or all of them? Slots that a job is given on one
    /// host leave less for it on the next.
    pub fn joins_hosts(&self) -> bool {
        match self.level() {
            Level::Queue | Level::Consumer => false,
            Level::Demand => true,
            Level::Host => !self.scope.hosts.is_each(),
        }
    }

    /// Are those that it leaves too little told when it leaves more? Of the others they learn as a
    /// host changes, or a job of their own user ends.
    pub fn has_waiters(&self) -> bool {
        let Scope { users, projects, applications, license_projects, .. } = &self.scope;
        match self.level() {
            Level::Queue => false,
            Level::Consumer => {
                !users.is_each()
                    || projects.set().is_some()
                    || applications.set().is_some()
                    || license_projects.set().is_some()
            }
            Level::Demand => true,
            Level::Host => !self.scope.hosts.is_each(),
        }
    }

    /// Does its count need more of an element than its queue, its user and its slots?
    fn looks_closely(&self) -> bool {
        let Scope { projects, applications, license_projects, .. } = &self.scope;
        projects.set().is_some()
            || applications.set().is_some()
            || license_projects.set().is_some()
            || self.ignores_preempted
            || matches!(self.what, LimitedQuantity::Resource(_))
            || (self.what == LimitedQuantity::Jobs && self.joins_hosts())
    }

    /// Is every job in the scope that runs on one of its hosts?
    fn about_anybody(&self) -> bool {
        let Scope { users, queues, projects, applications, license_projects, .. } = &self.scope;
        matches!(users.set(), None | Some(Users::Any))
            && matches!(queues.set(), None | Some(Set::Any))
            && matches!(projects.set(), None | Some(Set::Any))
            && matches!(applications.set(), None | Some(Set::Any))
            && matches!(license_projects.set(), None | Some(Set::Any))
    }

    /// Is a job of this consumer in the scope, on some host? `means`: do these words mean the user?
    pub fn concerns(
        &self,
        consumer: &Consumer,
        row: Option<usize>,
        means: impl FnOnce(&[UserTerm]) -> bool,
    ) -> bool {
        fn among<I: Ord>(members: &Members<Set<I>>, id: Option<I>) -> bool {
            members.set().is_none_or(|set| id.is_some_and(|id| set.contains(&id)))
        }
        let scope = &self.scope;
        among(&scope.queues, Some(consumer.queue))
            && among(&scope.projects, consumer.project)
            && among(&scope.applications, consumer.application)
            && among(&scope.license_projects, consumer.license_project)
            && match scope.users.set() {
                None | Some(Users::Any) => true,
                Some(Users::Row(own)) => row == Some(*own),
                Some(Users::Named(words)) => means(words),
            }
    }

    /// Has each host the amount for itself, of slots or of jobs?
    fn counts_on_each_host(&self) -> bool {
        self.scope.hosts.is_each() && !matches!(self.what, LimitedQuantity::Resource(_))
    }

    /// Has each host the amount for itself, of slots or of jobs, for whatever jobs of its queues?
    pub fn counts_queues_alone(&self) -> bool {
        let Scope { users, projects, applications, license_projects, .. } = &self.scope;
        let together = matches!(
            (users, projects, applications, license_projects),
            (Members::All, Members::All, Members::All, Members::All)
        );
        together && self.counts_on_each_host()
    }

    /// Does it divide its amount by hosts alone?
    fn by_host_alone(&self) -> bool {
        let Scope { users, queues, projects, applications, license_projects, hosts } = &self.scope;
        let others = users.is_each()
            || queues.is_each()
            || projects.is_each()
            || applications.is_each()
            || license_projects.is_each();
        hosts.is_each() && !others
    }

    /// Does it look at slots and jobs on this host?
    pub fn counts_on(&self, host: HostId) -> bool {
        match self.scope.hosts.set() {
            None | Some(Hosts::Any) => true,
            Some(Hosts::These(hosts)) => hosts.contains(host),
        }
    }

    /// The member of a consumer, on a host where the rule divides by hosts.
    pub fn member(&self, consumer: &Consumer, host: HostId) -> Member {
        fn own<S, I>(members: &Members<S>, id: Option<I>, none: I) -> I {
            if members.is_each() { id.unwrap_or(none) } else { none }
        }
        let scope = &self.scope;
        Member {
            user: own(&scope.users, Some(consumer.user), UserId::MAX),
            queue: own(&scope.queues, Some(consumer.queue), QueueId::MAX),
            host: own(&scope.hosts, Some(host), HostId::MAX),
            project: own(&scope.projects, consumer.project, ProjectId::MAX),
            application: own(&scope.applications, consumer.application, ApplicationId::MAX),
            license_project: own(
                &scope.license_projects,
                consumer.license_project,
                LicenseProjectId::MAX,
            ),
        }
    }
}

/// The rules that the jobs of a consumer are subject to, but those about the queue as a whole
/// ([`Queue::limits`](super::Queue::limits)) and those of hosts about anybody
/// ([`Rules::on_host`]). Each list is in the order in which rules name their reasons.
#[derive(Debug, Default)]
pub struct ConsumerRules {
    pub consumer: Consumer,
    /// Rules about the user, whatever hosts the jobs get.
    pub user: Vec<Counter>,
    /// Rules about resources that the jobs ask for, whatever hosts they get.
    pub demand: Vec<Counter>,
    /// Rules about each host, or some hosts.
    pub host: Vec<RuleId>,
}

/// A rule of a host about anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRule {
    pub rule: RuleId,
    /// The number of its counter on this host among all such, where it divides by hosts alone: that
    /// of MXJ is looked at for each host that a pass comes to.
    pub cell: Option<u32>,
}

/// The rules of one host about anybody.
#[derive(Debug, Default)]
struct HostRules {
    all: Vec<HostRule>,
    /// MXJ, and the number of its counter.
    slots: Option<(Amount, u32)>,
    /// JL/U.
    slots_of_each_user: Option<Amount>,
}

/// All rules of a configuration.
#[derive(Debug, Default)]
pub struct Rules {
    all: Vec<Rule>,
    /// Rules that name queues.
    by_queue: IdMap<QueueId, Vec<RuleId>>,
    /// Rules of a row of lsb.users that name no queue.
    by_row: IdMap<usize, Vec<RuleId>>,
    /// Rules of named hosts about anybody.
    by_host: HostMap<HostRules>,
    /// All other rules.
    others: Vec<RuleId>,
    /// How many counters have a number.
    cells: u32,
    /// Some rule needs more of an element than its queue, its user and its slots.
    closely: bool,
    /// Pending time of jobs that some rule keeps is not eligible.
    ineligible: bool,
    /// Under some rule preempted jobs do not count.
    ignores_preempted: bool,
    names: ConsumerNames,
}

impl Rules {
    #[cfg(test)]
    pub(crate) fn new(all: Vec<Rule>) -> Rules {
        Rules::of(all, ConsumerNames::default())
    }

    fn of(all: Vec<Rule>, mut names: ConsumerNames) -> Rules {
        for rule in &all {
            let Scope { projects, applications, license_projects, .. } = &rule.scope;
            names.looks_at_projects |= projects.set().is_some();
            names.looks_at_applications |= applications.set().is_some();
            names.looks_at_license_projects |= license_projects.set().is_some();
        }
        let closely = names.looks_at_user_groups || all.iter().any(Rule::looks_closely);
        let ineligible = all.iter().any(|rule| rule.ineligible);
        let ignores_preempted = all.iter().any(|rule| rule.ignores_preempted);
        let mut rules =
            Rules { all, closely, ineligible, ignores_preempted, names, ..Rules::default() };
        for (i, rule) in rules.all.iter().enumerate() {
            let id = RuleId(i as u32);
            let Scope { users, queues, hosts, .. } = &rule.scope;
            match (queues.set(), users.set(), hosts.set()) {
                (Some(Set::These(queues)), ..) => {
                    for queue in queues {
                        rules.by_queue.entry(*queue).or_default().push(id);
                    }
                }
                (_, Some(Users::Row(row)), _) => rules.by_row.entry(*row).or_default().push(id),
                (.., Some(Hosts::These(hosts)))
                    if rule.about_anybody() && rule.counts_on_each_host() =>
                {
                    for host in hosts.iter() {
                        if !rules.by_host.contains(host) {
                            rules.by_host.insert(host, HostRules::default());
                        }
                        let of_host = &mut rules.by_host[host];
                        let cell = rule.by_host_alone().then_some(rules.cells);
                        rules.cells += u32::from(cell.is_some());
                        of_host.all.push(HostRule { rule: id, cell });
                        match rule.name {
                            MXJ => of_host.slots = cell.map(|cell| (rule.amount, cell)),
                            JL_U => of_host.slots_of_each_user = Some(rule.amount),
                            _ => {}
                        }
                    }
                }
                _ => rules.others.push(id),
            }
        }
        rules
    }

    /// Rules about a queue as a whole.
    pub fn of_queue(&self, queue: QueueId) -> Vec<Counter> {
        // at this level no rule looks at the user
        let consumer = Consumer::new(queue, UserId::MAX);
        let near = self.by_queue.get(&queue).into_iter().flatten().chain(&self.others);
        let rules = near.map(|id| (*id, self.get(*id)));
        let own = rules.filter(|(_, rule)| {
            rule.level() == Level::Queue && rule.concerns(&consumer, None, |_| false)
        });
        let counter = |(id, rule): (RuleId, &Rule)| Counter {
            rule: id,
            member: rule.member(&consumer, HostId::MAX),
        };
        own.map(counter).collect()
    }

    /// All rules and their ids.
    pub fn iter(&self) -> impl Iterator<Item = (RuleId, &Rule)> {
        (0..).map(RuleId).zip(&self.all)
    }

    /// Does some rule need more of an element than its queue, its user and its slots?
    pub fn look_closely(&self) -> bool {
        self.closely
    }

    /// Is the pending time of jobs that some rule keeps not eligible?
    pub fn make_ineligible(&self) -> bool {
        self.ineligible
    }

    /// Are there rules under which preempted jobs do not count?
    pub fn ignore_preempted(&self) -> bool {
        self.ignores_preempted
    }

    /// Does some rule count this resource?
    pub fn counts_resource(&self, id: ResourceId) -> bool {
        self.closely && self.all.iter().any(|rule| rule.what == LimitedQuantity::Resource(id))
    }

    /// The consumer of the jobs of a submission, as far as rules look.
    pub fn consumer(&self, (queue, user): (QueueId, UserId), spec: &JobSpec) -> Consumer {
        self.names.consumer((queue, user), spec)
    }

    /// The names behind the ids of consumers.
    pub fn consumer_names(&self) -> &ConsumerNames {
        &self.names
    }

    pub fn get(&self, id: RuleId) -> &Rule {
        &self.all[id.index()]
    }

    /// The rules of a host about anybody.
    pub fn on_host(&self, host: HostId) -> &[HostRule] {
        self.by_host.get(host).map_or(&[], |of_host| &of_host.all)
    }

    /// How many counters have a number ([`HostRule::cell`]).
    pub fn cells(&self) -> usize {
        self.cells as usize
    }

    /// The slots that all jobs have together on a host (MXJ), and the number of the counter of
    /// these; `None`: any number.
    pub fn slots_of_host(&self, host: HostId) -> Option<(Amount, u32)> {
        self.by_host.get(host)?.slots
    }

    /// The slots that each user has on a host (JL/U); `None`: any number.
    pub fn slots_of_each_user(&self, host: HostId) -> Option<Amount> {
        self.by_host.get(host)?.slots_of_each_user
    }

    /// The rules of a consumer, whose user has this row of lsb.users; `user_in` says whether the
    /// user is one of those that a rule names. The time grows with the number of rules: callers
    /// that need them often keep them.
    pub(super) fn of_consumer(
        &self,
        consumer: Consumer,
        row: Option<usize>,
        mut user_in: impl FnMut(RuleId, &[UserTerm]) -> bool,
    ) -> ConsumerRules {
        let of_queue = self.by_queue.get(&consumer.queue);
        let of_row = row.and_then(|row| self.by_row.get(&row));
        let near = [of_queue, of_row].into_iter().flatten().chain([&self.others]);
        let mut found = ConsumerRules { consumer, ..ConsumerRules::default() };
        for id in near.flatten().copied() {
            let rule = self.get(id);
            if !rule.concerns(&consumer, row, |words| user_in(id, words)) {
                continue;
            }
            let counter = || Counter { rule: id, member: rule.member(&consumer, HostId::MAX) };
            match rule.level() {
                Level::Queue => {}
                Level::Consumer => found.user.push(counter()),
                Level::Demand => found.demand.push(counter()),
                Level::Host => found.host.push(id),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
