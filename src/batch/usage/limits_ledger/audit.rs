//! Counts the ledger of limits anew from the started elements, in the plainest way (each element
//! against each rule of the configuration), and compares.

use super::{LimitsLedger, shown};
use crate::batch::site::Site;
use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::site::rules::{Consumer, Counter, LimitedQuantity, Members, parts};
use crate::batch::state::names::{HostId, ResourceId, UserGroupId, UserId};
use crate::batch::state::{ElemState, Job, State};
use crate::batch::usage::reserve::instances;
use crate::model::JobRef;
use std::collections::{BTreeMap, BTreeSet};

impl LimitsLedger {
    /// All counters that are not zero.
    pub fn counters(&self, site: &Site) -> BTreeMap<Counter, u64> {
        let mut all: BTreeMap<Counter, u64> = self.used.iter().map(|(k, n)| (*k, *n)).collect();
        let consumers = self.consumers.borrow();
        let numbered = consumers.numbers.iter().map(|(counter, n)| (*counter, self.cell(*n)));
        all.extend(numbered.filter(|(_, n)| *n > 0));
        for host in site.hosts.ids() {
            for own in site.rules.on_host(host).iter().filter(|own| own.cell.is_some()) {
                // it does not divide by consumers
                let member = || site.rules.get(own.rule).member(&Consumer::default(), host);
                let n = self.used_on(*own, member);
                all.extend((n > 0).then(|| (Counter { rule: own.rule, member: member() }, n)));
            }
        }
        all
    }

    /// Is each counter what the started elements hold? Else which is not. Looks at every started
    /// element and every rule.
    pub fn audit(&self, state: &State, site: &Site) -> Result<(), String> {
        let mut counted: BTreeMap<Counter, u64> = BTreeMap::new();
        let mut rows: RowsOfUsers = BTreeMap::new();
        let started: BTreeSet<JobRef> = state.counts().started().collect();
        for at in started {
            let Some(job) = state.job(at.job) else { continue };
            let user = state.names().user(job.user);
            count(site, (job, at.idx), user, &mut rows, &mut counted);
        }
        counted.retain(|_, n| *n != 0);
        let kept = self.counters(site);
        for counter in counted.keys().chain(kept.keys()) {
            let of = |all: &BTreeMap<Counter, u64>| all.get(counter).copied();
            if of(&counted) != of(&kept) {
                let (shown, kept) = (shown(state, site, *counter), of(&kept));
                return Err(format!("{shown}: counted {kept:?}, the jobs hold {:?}", of(&counted)));
            }
        }
        Ok(())
    }
}

/// The rows of lsb.users by user, and by group of -G where its limits alone count.
type RowsOfUsers = BTreeMap<(UserId, Option<UserGroupId>), Option<usize>>;

/// Adds a started element.
fn count(
    site: &Site,
    (job, idx): (&Job, u32),
    user: &str,
    rows: &mut RowsOfUsers,
    counted: &mut BTreeMap<Counter, u64>,
) {
    let Some(elem) = job.elem(idx) else { return };
    let ElemState::Run(run) = &elem.state else { return };
    let consumer = site.rules.consumer((job.queue_at(idx), job.user), job.spec_at(idx));
    let groups = site.limiting_groups(consumer);
    let row = rows.entry((job.user, consumer.user_group));
    let row = *row.or_insert_with(|| site.user_row_position(user, &groups));
    let requirement = job.effective_requirement(elem).map_or("", |text| text);
    for (id, rule) in site.rules.iter() {
        if rule.ignores_preempted && run.is_preempted() {
            continue;
        }
        if !rule.concerns(&consumer, row, |words| site.limit_words_mean(words, user, &groups)) {
            continue;
        }
        let by_host = matches!(rule.scope.hosts, Members::Each(_));
        let mut there: Vec<HostId> = Vec::new();
        for (n, &(host, slots)) in run.hosts.iter().enumerate() {
            if !rule.counts_on(host) {
                continue;
            }
            let amount = match rule.what {
                LimitedQuantity::Slots => slots.into(),
                // of a rule that does not divide by hosts an element is one, whatever it has
                LimitedQuantity::Jobs => u64::from(by_host || there.is_empty()),
                LimitedQuantity::Resource(id) => {
                    let before = &run.hosts[..n];
                    asked(site, requirement, id, (host, slots), before)
                }
            };
            there.push(host);
            let counter = Counter { rule: id, member: rule.member(&consumer, host) };
            *counted.entry(counter).or_default() += amount;
        }
    }
}

/// The amount that a requirement takes of a resource on a host behind others.
fn asked(
    site: &Site,
    requirement: &str,
    id: ResourceId,
    (host, slots): (HostId, u32),
    before: &[(HostId, u32)],
) -> u64 {
    let req = site.names.parse(requirement).ok();
    let rusage = req.as_ref().and_then(|req| req.first()?.rusage.as_ref());
    let name = |host: HostId| site.hosts.get(host).map(|host| host.def.name.clone());
    let shares = |other: HostId| {
        let mut instances = instances(&site.conf.base);
        instances.any(|(resource, hosts)| {
            site.names.id(&resource) == Some(id)
                && [host, other].iter().all(|h| name(*h).is_some_and(|name| hosts.contains(&name)))
        })
    };
    let mut sum = 0;
    for term in rusage.map_or(&[][..], |rusage| rusage.terms()) {
        if site.names.reserved(term) != Some(id) {
            continue;
        }
        let amount = parts(term.amount());
        let again = || before.iter().any(|(other, _)| *other == host || shares(*other));
        sum += match site.reservation_method(term) {
            ReservationMethod::PerJob => {
                if before.is_empty() {
                    amount
                } else {
                    0
                }
            }
            ReservationMethod::PerTask => amount * u64::from(slots),
            _ => {
                if again() {
                    0
                } else {
                    amount
                }
            }
        };
    }
    sum
}
