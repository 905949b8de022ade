//! Counters of limits as jobs start, end and change.

use super::*;
use crate::batch::site::rules::{Amount, Hosts, Members, Rules, Scope, Users};
use crate::batch::tests::cluster::{Cluster, ClusterBuilder as Files, cluster, element};
use crate::conf::Pos;
use crate::model::JobRef;
use crate::model::reason::PendReason;
use crate::proto::client::Verb;

/// Two hosts of 8 slots, and a queue with each of its limits.
fn files() -> Files {
    let lines = "PRIORITY = 30; QJOB_LIMIT = 12; UJOB_LIMIT = 11; HJOB_LIMIT = 8; PJOB_LIMIT = 1";
    let other = "PRIORITY = 20; QJOB_LIMIT = 12; HJOB_LIMIT = 8";
    cluster().hosts(2, 8).queue("normal", lines).queue("other", other)
}

/// The amounts that are counted, as messages show their counters.
fn counters(c: &Cluster) -> Vec<String> {
    let (ledger, state, site) = c.limits();
    let mut all: Vec<String> = ledger
        .counters(site)
        .iter()
        .map(|(counter, n)| {
            let shown = shown(state, site, *counter);
            let (name, of) = shown.split_once(" of ").unwrap();
            let member = of.split_once(", ").map_or("all", |(_, member)| member);
            format!("{name} {member}: {n}")
        })
        .collect();
    all.sort();
    all
}

#[test]
fn start_touches_the_counters_of_its_rules_and_the_end_leaves_none() {
    let mut c = files().up();
    let job = c.submit("ann", "-n 3 -m h1");
    assert_eq!(c.started(), [job]);
    let of_queue = ["HJOB_LIMIT host h1: 3", "MXJ host h1: 3", "PJOB_LIMIT host h1: 3"];
    let all = [&of_queue[..], &["QJOB_LIMIT all: 3", "UJOB_LIMIT user ann: 3"]].concat();
    assert_eq!(counters(&c), all);
    // suspended jobs hold their slots
    c.stop("ann", job);
    assert_eq!(counters(&c), all);
    c.resume("ann", job);
    c.end(job, 0);
    assert_eq!(counters(&c), Vec::<String>::new());
}

/// Jobs of a queue go to another one, by what bswitch is told of them.
fn switched(options: &str, which: impl Fn(JobRef) -> JobRef, left: u64) {
    let mut c = files().up();
    let job = c.submit("ann", options);
    let count = c.started().len() as u64;
    let switch = Verb::Switch { queue: "other".into() };
    assert_eq!(c.control("ann", switch, which(job)), [0]);
    let (ledger, state, site) = c.limits();
    let of_queue = |name: &str| {
        let queue = state.names().find_queue(name).unwrap();
        ledger.used(site.queue(queue).unwrap().limits[0])
    };
    assert_eq!((of_queue("normal"), of_queue("other")), (left, count - left), "{options}");
}

#[test]
fn started_jobs_that_are_switched_are_counted_in_their_new_queue() {
    switched("", |job| job, 0);
    switched("-J 'a[1-4]'", |job| job, 0);
    switched("-J 'a[1-4]'", |job| element(job, 2), 3);
}

#[test]
fn configuration_that_is_read_again_has_everything_counted_anew() {
    let mut c = files().up();
    c.submit("ann", "-n 2 -m h1");
    c.reconfigure(cluster().hosts(2, 8).queue("normal", "PRIORITY = 30; UJOB_LIMIT = 3"));
    assert_eq!(counters(&c), ["MXJ host h1: 2", "UJOB_LIMIT user ann: 2"]);
    let [one, two] = [c.submit("ann", "-m h2"), c.submit("ann", "-m h2")];
    assert_eq!(c.running_on(one), ["h2"]);
    assert!(c.waits_for(two, PendReason::QueueUserJobLimit), "{:?}", c.reasons(two));
}

/// A cluster with the rule that each user has so many jobs on the hosts.
fn jobs_of_each_user(hosts: Members<Hosts>, most: u64) -> Cluster {
    let mut c = cluster().hosts(2, 8).up();
    let scope = Scope { users: Members::Each(Users::Any), hosts, ..Scope::default() };
    let (what, amount, reason) =
        (LimitedQuantity::Jobs, Amount::Fixed(most), PendReason::UserJobLimit);
    let (name, pos) = ("Limit", Pos::default());
    let rule = Rule {
        name,
        scope,
        what,
        amount,
        reason,
        with_given_up: false,
        ignores_preempted: false,
        pos,
        limit: None,
        ineligible: false,
    };
    c.use_rules(Rules::new(vec![rule]));
    c
}

#[test]
fn rule_about_jobs_counts_jobs_whatever_slots_they_have() {
    let mut c = jobs_of_each_user(Members::All, 2);
    let jobs = ["-n 5", "-n 4", ""].map(|options| c.submit("ann", options));
    let other = c.submit("bob", "-n 2");
    assert_eq!(c.started(), [jobs[0], jobs[1], other]);
    assert!(c.waits_for(jobs[2], PendReason::UserJobLimit), "{:?}", c.reasons(jobs[2]));
    c.end(jobs[0], 0);
    assert_eq!(c.started(), [jobs[2]]);
}

#[test]
fn rule_about_jobs_on_each_host_leaves_other_hosts_alone() {
    let mut c = jobs_of_each_user(Members::Each(Hosts::Any), 1);
    let jobs = ["-n 2 -m h1", "-m h1", "-m h2"].map(|options| c.submit("ann", options));
    assert_eq!(c.started(), [jobs[0], jobs[2]]);
    assert!(c.waits_for(jobs[1], PendReason::UserJobLimit), "{:?}", c.reasons(jobs[1]));
}

#[test]
fn consumer_has_the_counters_of_its_own_limits_alone() {
    let section = |lines: String| format!("Begin Limit\n{lines}\nEnd Limit\n");
    let others = (0..40).map(|n| section(format!("USERS = u{n}\nSLOTS = 1\nMEM = 9")));
    let own = section("USERS = ann\nSLOTS = 2".to_owned());
    let files = cluster().hosts(2, 8).file("lsb.resources", &(others.collect::<String>() + &own));
    let mut c = files.up();
    let job = c.submit("ann", "-R 'rusage[mem=5]'");
    assert_eq!(c.started(), [job]);
    let (ledger, state, site) = c.limits();
    let (names, user) = (state.names(), state.names().find_user("ann").unwrap());
    let consumer = Consumer::new(names.find_queue("normal").unwrap(), user);
    let limits = ledger.limits_of(state, site, consumer);
    let lists = [limits.demand.len(), limits.host.len(), limits.joint.len()];
    assert_eq!((limits.user.len(), lists), (1, [0, 0, 0]));
    assert_eq!(ledger.used_by(&limits, 0), 1);
}

#[test]
#[should_panic(expected = "2 given back of 1")]
fn counter_that_would_fall_below_zero_is_a_bug_that_says_so() {
    let mut c = files().up();
    c.submit("ann", "-m h1");
    let host = c.host_id("h1");
    let (ledger, state, site) = c.limits_mut();
    let job = state.each_job().next().unwrap();
    let consumer = Consumer::new(job.queue, job.user);
    ledger.add_element((state, site), consumer, &[(host, 2)], false);
}

#[test]
fn audit_names_the_counter_that_is_not_what_the_jobs_hold() {
    let mut c = files().up();
    c.submit("ann", "-m h1");
    let (ledger, state, site) = c.limits_mut();
    let named = |name: &str, counter: &Counter| site.rules.get(counter.rule).name == name;
    let counter = *ledger.used.keys().find(|k| named("HJOB_LIMIT", k)).unwrap();
    for (before, after, name) in [(1, 2, "HJOB_LIMIT"), (1, 3, "MXJ")] {
        match name {
            "MXJ" => ledger.cells[0] = after,
            _ => drop(ledger.used.insert(counter, after)),
        }
        let why = ledger.audit(state, site).unwrap_err();
        assert!(why.starts_with(&format!("{name} of ")), "{why}");
        let told = format!("host h1: counted Some({after}), the jobs hold Some({before})");
        assert!(why.ends_with(&told), "{why}");
        match name {
            "MXJ" => ledger.cells[0] = before,
            _ => drop(ledger.used.insert(counter, before)),
        }
        assert_eq!(ledger.audit(state, site), Ok(()));
    }
}
