//! The listing of the limits of lsb.resources, their names in pending reasons, and the limits
//! of started jobs that are changed.

use super::cluster::{Cluster, ClusterBuilder, cluster, element};
use super::{Col, JobRef};
use crate::model::reason::{LimitOf, LimitOn, PendReason, err};
use crate::model::specfield::SpecField;
use crate::proto::Msg;
use crate::proto::client::ClientMsg;
use crate::proto::limit_rows::{LimitQuery, LimitUsage};

fn with(limits: &[&str]) -> ClusterBuilder {
    let section = |lines: &&str| format!("Begin Limit\n{}\nEnd Limit\n", lines.replace("; ", "\n"));
    let text: String = limits.iter().map(section).collect();
    cluster().hosts(2, 8).file("lsb.resources", &text)
}

/// The rows in a few words: the members, and `SLOTS 1/3`.
fn rows(c: &mut Cluster, query: LimitQuery) -> Vec<String> {
    let row = |row: &LimitUsage| {
        let members = [&row.users, &row.queues, &row.hosts, &row.projects, &row.apps];
        let members: Vec<&str> =
            members.into_iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let amounts = row.amounts.iter().map(|of| format!("{} {}/{}", of.what, of.used, of.limit));
        let amounts: Vec<String> = amounts.collect();
        format!("{}: {}: {}", row.name, members.join(" "), amounts.join(" "))
    };
    c.limit_listing(query).rows.iter().map(row).collect()
}

fn all() -> LimitQuery {
    LimitQuery { all: true, ..LimitQuery::default() }
}

#[test]
fn use_of_a_limit_is_listed_for_each_who_has_it() {
    let mut c = with(&[
        "NAME = few; USERS = ann bob; SLOTS = 3; JOBS = 9",
        "NAME = each; PER_USER = all; PER_HOST = all; SLOTS = 4; MEM = 1000",
        "NAME = idle; QUEUES = normal; PROJECTS = chip; TMP = 50",
    ])
    .up();
    assert_eq!(rows(&mut c, LimitQuery::default()), Vec::<String>::new());
    c.submit("ann", "-n 2 -m h1 -R 'rusage[mem=300]'");
    c.submit("bob", "-m h2");
    let used = rows(&mut c, LimitQuery::default());
    let want = [
        "few: ann bob: SLOTS 3/3 JOBS 2/9",
        "each: ann h1: SLOTS 2/4 MEM 300/1000",
        "each: bob h2: SLOTS 1/4 MEM 0/1000",
    ];
    assert_eq!(used, want);
    let idle = "idle: normal chip: TMP 0/50";
    assert_eq!(rows(&mut c, all()), [&want[..], &[idle]].concat());
    let of_user = |user: &str| LimitQuery { users: vec![user.into()], ..all() };
    assert_eq!(rows(&mut c, of_user("bob")), [want[0], want[2]]);
    let of_host = LimitQuery { hosts: vec!["h1".into()], ..all() };
    assert_eq!(rows(&mut c, of_host), [want[1]]);
    let of_project = LimitQuery { projects: vec!["chip".into()], ..all() };
    assert_eq!(rows(&mut c, of_project), [idle]);
    let of_queue = LimitQuery { queues: vec!["normal".into()], ..all() };
    assert_eq!(rows(&mut c, of_queue), [idle]);
    let named = LimitQuery { names: vec!["idle".into()], ..all() };
    let of_name = c.limit_listing(named);
    assert_eq!(of_name.limits.len(), 1);
    let params: Vec<(&str, &str)> =
        of_name.limits[0].params.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let want = [("NAME", "idle"), ("QUEUES", "normal"), ("PROJECTS", "chip"), ("TMP", "50")];
    assert_eq!(params, want);
}

#[test]
fn unknown_names_in_a_listing_of_limits_are_refused() {
    let mut c = with(&["NAME = few; USERS = ann; SLOTS = 3"]).up();
    let names = || vec!["nosuch".to_owned()];
    let queries = [
        (LimitQuery { names: names(), ..all() }, err::NO_LIMIT),
        (LimitQuery { queues: names(), ..all() }, err::BAD_QUEUE),
        (LimitQuery { hosts: names(), ..all() }, err::BAD_HOST),
        (LimitQuery { apps: names(), ..all() }, err::NO_APP),
    ];
    for (query, code) in queries {
        match c.ask("ann", ClientMsg::Limits(Box::new(query))).pop() {
            Some(Msg::Refused(refusal)) => assert_eq!(refusal.code, code),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn percentage_is_listed_in_mb_of_the_host() {
    let mut c = with(&["NAME = half; PER_HOST = all; MEM = 50%"]).up();
    assert_eq!(rows(&mut c, all()), ["half: all: MEM% 0/50"]);
    c.submit("ann", "-m h1 -R 'rusage[mem=300]'");
    assert_eq!(rows(&mut c, LimitQuery::default()), ["half: h1: MEM 300/32000"]);
}

#[test]
fn reason_names_the_limit_and_its_value() {
    let mut c = with(&["NAME = L1; QUEUES = normal; SLOTS = 1"]).up();
    c.submit("ann", "");
    let waits = c.submit("bob", "");
    let reasons = c.column(waits, Col::PendReasons);
    assert_eq!(reasons[0][0], 3501);
    assert_eq!((&reasons[0][4], &reasons[0][5]), (&"L1".into(), &"1".into()));
    let PendReason::Limit(about) = c.reason(waits) else { panic!("no limit") };
    assert_eq!((about.on, about.of), (LimitOn::Queue, LimitOf::Slots));
    assert_eq!(
        about.told("slot", "L1", "1"),
        "Resource limit defined on queue has been reached (Resource: slot, Limit Name: L1, \
         Limit Value: 1)"
    );
}

/// A started job whose requirement is changed.
fn change_requirement(c: &mut Cluster, job: JobRef, requirement: &str) {
    let options = format!("-R '{requirement}'");
    assert_eq!(c.try_modify("ann", job, &[SpecField::ResReq], &options), Ok(0));
}

#[test]
fn changed_requirement_of_a_started_job_counts() {
    let site = with(&["NAME = memory; MEM = 500"]).lsf_conf("LSB_MOD_ALL_JOBS=Y");
    let mut c = site.up();
    let job = c.submit("ann", "-R 'rusage[mem=300]'");
    let waits = c.submit("bob", "-R 'rusage[mem=300]'");
    assert_eq!(c.started(), [job]);
    change_requirement(&mut c, job, "rusage[mem=200]");
    assert_eq!(c.started(), [waits]);
    assert_eq!(rows(&mut c, all()), ["memory: : MEM 500/500"]);
    // all elements of an array at once
    c.end(job, 0);
    c.end(waits, 0);
    let array = c.submit("ann", "-J 'a[1-3]' -R 'rusage[mem=100]'");
    assert_eq!(c.started(), [1, 2, 3].map(|idx| element(array, idx)));
    change_requirement(&mut c, array, "rusage[mem=50]");
    assert_eq!(rows(&mut c, all()), ["memory: : MEM 150/500"]);
}

#[test]
fn duration_of_a_reservation_does_not_end_its_count() {
    let mut c = with(&["NAME = memory; MEM = 500"]).up();
    let job = c.submit("ann", "-R 'rusage[mem=300:duration=1]'");
    assert_eq!(c.started(), [job]);
    c.advance(600);
    let waits = c.submit("ann", "-R 'rusage[mem=300]'");
    assert_eq!(c.state(waits), "PEND");
    c.end(job, 0);
    assert_eq!(c.started(), [waits]);
}

#[test]
fn jobs_of_other_projects_are_of_one_class_where_no_limit_looks_at_projects() {
    let classes = |limits: &[&str]| {
        let mut c = with(limits).up();
        c.badmin("qinact normal");
        for project in ["a", "b", "c", "d"] {
            c.submit("ann", &format!("-P {project}"));
        }
        c.classes()
    };
    assert_eq!(classes(&["USERS = ann; SLOTS = 3"]), 1);
    assert_eq!(classes(&["PER_PROJECT = all; SLOTS = 3"]), 4);
}

#[test]
fn class_that_a_shared_limit_stopped_is_looked_at_when_the_limit_falls() {
    let mut c = with(&["PROJECTS = chip; JOBS = 1"]).up();
    let first = c.submit("ann", "-P chip -m h1");
    let other = c.submit("bob", "-P chip -m h2");
    assert_eq!(c.started(), [first]);
    // the host on which room is made takes no job: no host has changed for the other one
    c.badmin("hclose h1");
    c.end(first, 0);
    assert_eq!(c.started(), [other]);
}

#[test]
fn growing_job_takes_no_more_than_a_limit_of_its_hosts_leaves() {
    let mut c = with(&["HOSTS = h1 h2; SLOTS = 5"]).up();
    let blocks = c.submit("bob", "-n 3 -m h2");
    let job = c.submit("ann", "-ar -n 2,8 -m 'h1 h2'");
    assert_eq!(c.running_on(job).len(), 2);
    c.end(blocks, 0);
    assert_eq!(c.running_on(job).len(), 5);
}

#[test]
fn pending_time_under_a_limit_with_ineligible_is_not_eligible() {
    let eligible = |line: &str| {
        let limit = format!("QUEUES = normal; JOBS = 1{line}");
        let mut c = with(&[limit.as_str()]).param("TRACK_ELIGIBLE_PENDINFO = Y").up();
        let first = c.submit("ann", "");
        let waits = c.submit("bob", "");
        c.advance(50);
        let ineligible = c.column(waits, Col::IneligibleTime).as_u64().unwrap();
        c.end(first, 0);
        assert_eq!(c.started(), [first, waits]);
        ineligible
    };
    assert_eq!((eligible(""), eligible("; INELIGIBLE = Y")), (0, 50));
}
