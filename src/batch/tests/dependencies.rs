//! bjdepinfo: parents and children of jobs, level by level.

use super::cluster::{Cluster, cluster, element};
use super::*;
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::dependency::{Dependencies, DependencyRequest};

fn found(c: &mut Cluster, request: DependencyRequest) -> Result<Dependencies, Refusal> {
    match c.ask("bob", ClientMsg::Dependencies(Box::new(request))).pop() {
        Some(Msg::Refused(refusal)) => Err(refusal),
        Some(Msg::Client(ClientMsg::DependencyRows(found))) => Ok(*found),
        other => panic!("{other:?}"),
    }
}

/// `job other state level`.
fn rows(c: &mut Cluster, request: DependencyRequest) -> Vec<String> {
    let all = found(c, request).unwrap().rows;
    all.iter().map(|r| format!("{} {} {} {}", r.job, r.other, r.stat, r.level)).collect()
}

fn parents(at: JobRef, level: u32) -> DependencyRequest {
    DependencyRequest { at, level, ..DependencyRequest::default() }
}

#[test]
fn parents_and_children_are_found_level_by_level() {
    let mut c = cluster().hosts(1, 1).up();
    let [a, b] = ["-J a", "-J b"].map(|options| c.submit("ann", options));
    let array = c.submit("ann", &format!("-J 'x[1-2]' -w 'done({a}) && ended({b})'"));
    let last = c.submit("ann", &format!("-w 'ended({array}) || exit({a},3)'"));
    let level = |c: &mut Cluster, at, level| rows(c, parents(at, level));
    assert_eq!(level(&mut c, array, 1), ["3 1 RUN 1", "3 2 PEND 1"]);
    assert_eq!(level(&mut c, last, 1), ["4 3 PEND 1", "4 1 RUN 1"]);
    let want = ["4 3 PEND 1", "4 1 RUN 1", "3 1 RUN 2", "3 2 PEND 2"];
    assert_eq!(level(&mut c, last, 9), want);
    let children = |at, level| DependencyRequest { children: true, ..parents(at, level) };
    assert_eq!(rows(&mut c, children(b, 1)), ["2 3 PEND 1"]);
    assert_eq!(rows(&mut c, children(b, 2)), ["2 3 PEND 1", "3 4 PEND 2"]);
    assert_eq!(rows(&mut c, children(last, 5)), [""; 0]);
    let info = found(&mut c, parents(last, 2)).unwrap();
    let told: Vec<_> = info.conditions.iter().map(|c| (c.text.clone(), c.satisfied)).collect();
    let text = format!("ended({array}) || exit({a},3)");
    assert_eq!(told, [(text, false), (format!("done({a}) && ended({b})"), false)]);
    c.end(a, 0);
    let unmet = DependencyRequest { unmet: true, ..parents(array, 1) };
    assert_eq!(rows(&mut c, unmet), ["3 2 RUN 1"]);
    let none = parents(JobRef { job: 99, idx: 0 }, 1);
    assert_eq!(found(&mut c, none).unwrap_err().code, err::NO_JOB);
    let no_element = parents(element(array, 3), 1);
    assert_eq!(found(&mut c, no_element).unwrap_err().code, err::NO_JOB);
}

#[test]
fn element_that_waits_for_its_like_names_that_element_as_its_parent() {
    let mut c = cluster().hosts(1, 1).up();
    let first = c.submit("ann", "-J 'a[1-2]'");
    let second = c.submit("ann", "-J 'b[1-2]' -w 'done(a[*])'");
    assert_eq!(rows(&mut c, parents(element(second, 2), 1)), ["2[2] 1[2] PEND 1"]);
    c.end(element(first, 1), 0);
    assert_eq!(rows(&mut c, parents(element(second, 1), 1)), ["2[1] 1[1] DONE 1"]);
    assert_eq!(rows(&mut c, parents(second, 1)), ["2 1 RUN 1"]);
}

#[test]
fn jobs_in_a_circle_of_names_are_followed_once() {
    let mut c = cluster().hosts(1, 1).up();
    let first = c.submit("ann", "-H -J a");
    let second = c.submit("ann", "-J b -w 'done(a)'");
    assert_eq!(c.modify("ann", first, &[SpecField::Depend], &format!("-w done({second})")), 0);
    assert_eq!(rows(&mut c, parents(first, 100)), ["1 2 PEND 1", "2 1 PSUSP 2"]);
}
