//! Dependency conditions on job groups: numdone(/group, >= 10) and its kin.

use super::cluster::{Cluster, cluster, element};
use super::*;
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::client::{Wait, Waited};
use crate::proto::dependency::DependencyRequest;
use crate::proto::job_group::{DeleteGroups, JobGroupRequest};
use std::collections::BTreeSet;

fn delete(c: &mut Cluster, path: &str) {
    let delete = DeleteGroups { path: path.into(), ..DeleteGroups::default() };
    let request = ClientMsg::JobGroup(Box::new(JobGroupRequest::Delete(delete)));
    let told = c.ask("admin", request).pop();
    assert!(matches!(told, Some(Msg::Client(ClientMsg::AdminDone { .. }))), "{told:?}");
}

/// The answer to bwait, if it has come.
fn waited(told: &[Msg]) -> Option<Waited> {
    told.iter().find_map(|msg| match msg {
        Msg::Client(ClientMsg::Waited(answer)) => Some(answer.clone()),
        _ => None,
    })
}

fn wait(c: &mut Cluster, expr: &str) -> Vec<Msg> {
    c.ask("bob", ClientMsg::Wait(Wait { expr: expr.into(), ..Wait::default() }))
}

#[test]
fn job_starts_when_enough_jobs_of_a_group_and_below_it_are_done() {
    let mut c = cluster().hosts(1, 9).up();
    let array = c.submit("ann", "-J 'x[1-3]' -g /risk/eu");
    let other = c.submit("bob", "-g /risk");
    // permissions are those of bjgroup: the jobs of others count
    let waits = c.submit("ann", "-w 'numdone(/risk, >= 3)'");
    let all = c.submit("ann", "-w 'numended(/risk/eu, *)'");
    let bad = c.submit("ann", "-w 'numexit(/risk, 1) && numrun(/risk, < 2)'");
    c.started();
    assert!(c.waits_for(waits, PendReason::Dependency));
    c.end(element(array, 1), 0);
    c.end(element(array, 2), 0);
    assert_eq!(c.started(), []);
    c.end(element(array, 3), 3);
    assert_eq!(c.started(), [all, bad]);
    c.end(other, 0);
    assert_eq!(c.started(), [waits]);
}

#[test]
fn conditions_on_groups_are_the_same_after_a_restart() {
    let mut c = cluster().hosts(1, 9).up();
    let [a, b] = ["-g /g", "-g /g"].map(|options| c.submit("ann", options));
    let waits = c.submit("ann", "-w 'numdone(\"/g/\", 2)'");
    c.end(a, 0);
    c.restart();
    c.advance(5);
    assert!(c.waits_for(waits, PendReason::Dependency));
    c.end(b, 0);
    c.started();
    assert_eq!(c.state(waits), "RUN");
    let text = c.column(waits, Col::Depend);
    assert_eq!(text, "numdone(\"/g/\", 2)");
}

#[test]
fn jobs_that_come_to_a_group_and_leave_it_are_counted() {
    let mut c = cluster().hosts(1, 9).up();
    let [a, b] = ["-H -g /g/x", "-H -g /other"].map(|options| c.submit("ann", options));
    let two = c.submit("ann", "-w 'numhold(/g, == 2)'");
    let none = c.submit("ann", "-w 'numhold(/g, 0)'");
    assert_eq!(c.started(), []);
    assert_eq!(c.modify("ann", b, &[SpecField::Group], "-g /g/y"), 0);
    assert_eq!(c.started(), [two]);
    assert_eq!(c.modify("ann", a, &[SpecField::Group], "-g /elsewhere"), 0);
    assert_eq!(c.modify("ann", b, &[SpecField::Group], ""), 0);
    assert_eq!(c.started(), [none]);
    // a condition that is given later
    let late = c.submit("ann", "-H");
    c.resume("ann", late);
    let waits = c.submit("ann", "-w 'numrun(/elsewhere, 1)'");
    c.started();
    c.resume("ann", a);
    assert_eq!(c.started(), [a, waits]);
}

#[test]
fn condition_on_a_group_that_does_not_exist_is_refused_and_on_a_deleted_one_never_holds() {
    let mut c = cluster().hosts(1, 9).up();
    let refused = |c: &mut Cluster, condition: &str| {
        let refusal = c.try_submit("ann", &format!("-w '{condition}'")).unwrap_err();
        (refusal.code, refusal.words())
    };
    let none = (err::NO_JGRP, "/risk: Job group does not exist".to_string());
    assert_eq!(refused(&mut c, "numdone(/risk, 1)"), none);
    assert_eq!(refused(&mut c, "numdone(/risk//x, 1)").0, err::DEPEND_SYNTAX);
    let job = c.submit("ann", "-H -g /risk/eu");
    let waits = c.submit("ann", "-w 'numdone(/risk, 1)'");
    let empty = c.submit("ann", "-w 'numhold(/risk, 0)'");
    assert_eq!(c.modify("ann", job, &[SpecField::Group], ""), 0);
    assert_eq!(c.started(), [empty]);
    delete(&mut c, "/risk");
    assert!(c.waits_for(waits, PendReason::DependencyNever), "{:?}", c.reasons(waits));
    c.restart();
    c.advance(5);
    assert!(c.waits_for(waits, PendReason::DependencyNever));
    // a new job makes the group again
    let again = c.submit("ann", "-g /risk");
    assert!(c.waits_for(waits, PendReason::Dependency));
    c.started();
    c.end(again, 0);
    assert_eq!(c.started(), [waits]);
}

#[test]
fn finished_jobs_of_a_group_stay_while_a_condition_counts_them() {
    let mut c = cluster().hosts(1, 9).param("CLEAN_PERIOD = 10").up();
    let [a, b, free] = ["-g /g/x", "-g /g", "-g /z"].map(|options| c.submit("ann", options));
    let waits = c.submit("ann", "-w 'numdone(/g, >= 2)'");
    c.started();
    c.end(a, 0);
    c.end(free, 0);
    c.advance(1000);
    let known = |c: &mut Cluster| {
        let rows = c.listing(&[Col::Job]);
        rows.iter().map(|row| row[0].as_u64().unwrap() as u32).collect::<BTreeSet<_>>()
    };
    assert_eq!(known(&mut c), BTreeSet::from([a.job, b.job, waits.job]), "{free} is gone");
    c.end(b, 0);
    assert_eq!(c.started(), [waits]);
    c.advance(1000);
    assert_eq!(known(&mut c), BTreeSet::from([waits.job]));
}

#[test]
fn finished_jobs_of_a_group_stay_only_up_to_a_number() {
    let site = cluster().hosts(1, 1).param("CLEAN_PERIOD = 10");
    let mut c = site.param("MAX_JOB_ARRAY_SIZE = 200000").up();
    let few = c.submit("ann", "-H -g /g/few");
    let many = c.submit("ann", "-H -J 'x[1-100000]' -g /g/many");
    let waits = c.submit("bob", "-H -w 'numexit(/g, > 100000) && numexit(/g/few, 2)'");
    for job in [few, many] {
        c.kill("ann", job);
    }
    c.advance(1000);
    let rows = c.listing(&[Col::Job]);
    let known: BTreeSet<u64> = rows.iter().map(|row| row[0].as_u64().unwrap()).collect();
    assert_eq!(known, BTreeSet::from([few, waits].map(|job| u64::from(job.job))));
}

#[test]
fn condition_is_evaluated_only_when_its_answer_changes() {
    let mut c = cluster().hosts(1, 500).up();
    let array = c.submit("ann", "-J 'x[1-400]' -g /g");
    let all: Vec<JobRef> = (0..50).map(|_| c.submit("ann", "-w 'numdone(/g, >= 400)'")).collect();
    c.started();
    let before = c.conditions_looked_at();
    for idx in 1..400 {
        c.end(element(array, idx), 0);
    }
    assert_eq!(c.conditions_looked_at() - before, 0);
    c.end(element(array, 400), 0);
    assert_eq!(c.started(), all);
}

#[test]
fn bwait_and_bjdepinfo_know_conditions_on_groups() {
    let mut c = cluster().hosts(1, 9).up();
    let a = c.submit("ann", "-g /g/x");
    let waits = c.submit("ann", "-w 'numdone(/g, *)'");
    c.started();
    assert_eq!(waited(&wait(&mut c, "numrun(/g, 1)")), Some(Waited::True));
    assert!(waited(&wait(&mut c, "numexit(/g, 1)")).is_none());
    let refused = wait(&mut c, "numdone(/none, 1)").pop();
    assert!(matches!(refused, Some(Msg::Refused(r)) if r.code == err::NO_JGRP));
    let mut rows = |at, children| {
        let request = DependencyRequest { at, children, level: 1, ..DependencyRequest::default() };
        match c.ask("bob", ClientMsg::Dependencies(Box::new(request))).pop() {
            Some(Msg::Client(ClientMsg::DependencyRows(found))) => {
                found.rows.iter().map(|r| (r.other, r.stat.clone())).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(rows(waits, false), [(a, "RUN".to_string())]);
    assert_eq!(rows(a, true), [(waits, "PEND".to_string())]);
    c.end(a, 0);
    assert_eq!(c.started(), [waits]);
}
