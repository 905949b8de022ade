//! Compiles a limit of lsb.resources to rules: one for each amount.

use super::{Amount, ConsumerNames, Hosts, LimitedQuantity, Members, RESOURCE_PARTS, Rule, Scope};
use super::{Set, Users};
use crate::batch::state::names::{HostId, HostSet, QueueId, ResourceId};
use crate::conf::types::{LimitAmount, LimitConf, LimitMembers, LimitNumber, Limited, UserTerm};
use crate::model::reason::{LimitOf, LimitOn, LimitReason, PendReason};
use std::collections::BTreeSet;

/// The meaning of the words of a limit.
pub struct Lookup<'a> {
    pub queue: &'a dyn Fn(&str) -> Option<QueueId>,
    /// The server hosts of a host, a group or a pattern.
    pub hosts: &'a dyn Fn(&str) -> BTreeSet<HostId>,
    pub resource: &'a dyn Fn(&str) -> Option<ResourceId>,
}

/// Adds the rules of the limit at a position of lsb.resources.
pub(super) fn of_limit(
    position: u32,
    limit: &LimitConf,
    (lookup, names): (&Lookup, &ConsumerNames),
    all: &mut Vec<Rule>,
) {
    // a limit on jobs of some clusters is none on those of this cluster alone
    if limit.of_clusters {
        return;
    }
    let on = limited_on(limit);
    for amount in &limit.amounts {
        let Some((name, what, of)) = quantity(&amount.what, lookup) else { continue };
        let reason = LimitReason { on, of, limit: Some(position) };
        all.push(Rule {
            name,
            scope: scope(limit, lookup, names),
            what,
            amount: number(amount, what),
            reason: PendReason::Limit(reason),
            with_given_up: false,
            ignores_preempted: false,
            pos: amount.pos.clone(),
            limit: Some(position),
            ineligible: limit.ineligible,
        });
    }
}

/// The consumer that the reason names: of several, the first in this order.
fn limited_on(limit: &LimitConf) -> LimitOn {
    let LimitConf { users, queues, projects, apps, lic_projects, hosts, .. } = limit;
    let all = [
        (users, LimitOn::User),
        (queues, LimitOn::Queue),
        (projects, LimitOn::Project),
        (apps, LimitOn::Application),
        (lic_projects, LimitOn::LicenseProject),
        (hosts, LimitOn::Host),
    ];
    let first = all.into_iter().find(|(members, _)| members.is_some());
    first.map_or(LimitOn::Cluster, |(_, on)| on)
}

fn quantity(what: &Limited, lookup: &Lookup) -> Option<(&'static str, LimitedQuantity, LimitOf)> {
    let index = |name: &'static str, of: &str| {
        let id = (lookup.resource)(of)?;
        let position = id.load_index()? as u8;
        Some((name, LimitedQuantity::Resource(id), LimitOf::Index(position)))
    };
    match what {
        Limited::Slots => Some(("SLOTS", LimitedQuantity::Slots, LimitOf::Slots)),
        Limited::Jobs => Some(("JOBS", LimitedQuantity::Jobs, LimitOf::Jobs)),
        Limited::Mem => index("MEM", "mem"),
        Limited::Tmp => index("TMP", "tmp"),
        Limited::Swp => index("SWP", "swp"),
        Limited::Resource(name) => {
            let id: ResourceId = (lookup.resource)(name)?;
            let of = LimitOf::Resource(id.of_reason());
            Some(("RESOURCE", LimitedQuantity::Resource(id), of))
        }
    }
}

fn number(amount: &LimitAmount, what: LimitedQuantity) -> Amount {
    match (amount.number, what) {
        // rounded down, as what is counted is rounded up
        (LimitNumber::Fixed(n), LimitedQuantity::Resource(_)) => {
            Amount::Fixed((n * RESOURCE_PARTS) as u64)
        }
        (LimitNumber::Fixed(n), _) => Amount::Fixed(n as u64),
        (LimitNumber::PerProcessor(n), _) => Amount::PerProcessor(n),
        (LimitNumber::Percent(n), _) => Amount::Percent(n),
    }
}

fn scope(limit: &LimitConf, lookup: &Lookup, names: &ConsumerNames) -> Scope {
    Scope {
        users: members(&limit.users, |words| Users::Named(words.to_vec())),
        queues: members(&limit.queues, |words| set(words, |name| (lookup.queue)(name))),
        projects: members(&limit.projects, |words| set(words, |name| names.project_id(name))),
        hosts: match &limit.hosts {
            // of all hosts together: whatever hosts the jobs get
            Some(all) if !all.each && is_all(&all.words) => Members::All,
            hosts => members(hosts, |words| named_hosts(words, lookup)),
        },
        applications: members(&limit.apps, |words| set(words, |name| names.application_id(name))),
        license_projects: members(&limit.lic_projects, |words| {
            set(words, |name| names.license_project_id(name))
        }),
    }
}

fn members<S>(list: &Option<LimitMembers>, set: impl FnOnce(&[UserTerm]) -> S) -> Members<S> {
    match list {
        None => Members::All,
        Some(list) if list.each => Members::Each(set(&list.words)),
        Some(list) => Members::Shared(set(&list.words)),
    }
}

fn is_all(words: &[UserTerm]) -> bool {
    matches!(words, [one] if one.name == "all" && !one.exclude)
}

fn set<I: Ord>(words: &[UserTerm], id: impl Fn(&str) -> Option<I>) -> Set<I> {
    let named = |exclude: bool| -> BTreeSet<I> {
        let words = words.iter().filter(|word| word.exclude == exclude && word.name != "all");
        words.filter_map(|word| id(&word.name)).collect()
    };
    let all = words.iter().any(|word| word.name == "all" && !word.exclude);
    let (these, except) = (named(false), named(true));
    match (all, except.is_empty()) {
        (true, true) => Set::Any,
        (true, false) => Set::Except(except),
        (false, _) => Set::These(these.into_iter().filter(|id| !except.contains(id)).collect()),
    }
}

fn named_hosts(words: &[UserTerm], lookup: &Lookup) -> Hosts {
    if is_all(words) {
        return Hosts::Any;
    }
    let of = |exclude: bool| {
        let words = words.iter().filter(move |word| word.exclude == exclude);
        words.flat_map(|word| (lookup.hosts)(&word.name)).collect::<BTreeSet<_>>()
    };
    let (named, except) = (of(false), of(true));
    let mut hosts = HostSet::default();
    for host in named.difference(&except) {
        hosts.insert(*host);
    }
    Hosts::These(hosts)
}
