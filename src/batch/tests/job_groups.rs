//! Job groups: made by bgadd and by submissions, counted with all below them, bounded by limits,
//! deleted by bgdel or when they are empty, and kept in the log.

use super::cluster::{Cluster, cluster, element};
use super::*;
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::job_group::{DeleteGroups, JobGroupInfo, JobGroupRequest, NewLimit};

fn ask(c: &mut Cluster, user: &str, request: JobGroupRequest) -> Result<Vec<String>, Refusal> {
    match c.ask(user, ClientMsg::JobGroup(Box::new(request))).pop() {
        Some(Msg::Refused(refusal)) => Err(refusal),
        Some(Msg::Client(ClientMsg::AdminDone { lines })) => {
            Ok(lines.into_iter().map(|line| line.about).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn add(c: &mut Cluster, user: &str, path: &str, limit: Option<u32>) -> Result<(), Refusal> {
    let request = JobGroupRequest::Add { path: path.into(), limit, sla: String::new() };
    ask(c, user, request).map(drop)
}

fn set_limit(c: &mut Cluster, user: &str, path: &str, limit: NewLimit) -> Result<(), Refusal> {
    let (path, limit, owner) = (path.into(), Some(limit), String::new());
    ask(c, user, JobGroupRequest::Modify { path, limit, owner }).map(drop)
}

fn delete(c: &mut Cluster, user: &str, path: &str) -> Result<Vec<String>, Refusal> {
    let delete = DeleteGroups { path: path.into(), ..DeleteGroups::default() };
    ask(c, user, JobGroupRequest::Delete(delete))
}

fn rows(c: &mut Cluster, path: &str) -> Vec<JobGroupInfo> {
    let request = JobGroupRequest::List { path: path.into(), slots: false };
    match c.ask("bob", ClientMsg::JobGroup(Box::new(request))).pop() {
        Some(Msg::Client(ClientMsg::JobGroups(rows))) => rows,
        other => panic!("{other:?}"),
    }
}

/// `/path jobs pend run ssusp ususp finish owner`.
fn shown(c: &mut Cluster) -> Vec<String> {
    let line = |r: JobGroupInfo| {
        let numbers = [r.njobs, r.pend, r.run, r.ssusp, r.ususp, r.finish];
        let numbers = numbers.map(|n| n.to_string()).join(" ");
        format!("{} {numbers} {}", r.path, r.owner)
    };
    rows(c, "").into_iter().map(line).collect()
}

#[test]
fn groups_of_submissions_are_made_and_counted_with_all_below_them() {
    let mut c = cluster().hosts(1, 2).up();
    let first = c.submit("ann", "-g /a/b -n 2");
    c.submit("bob", "-g /a/");
    c.submit("bob", "-J 'x[1-3]' -H -g /a/b/c");
    let want = ["/a 5 4 1 0 0 0 ann", "/a/b 4 3 1 0 0 0 ann", "/a/b/c 3 3 0 0 0 0 bob"];
    assert_eq!(shown(&mut c), want);
    c.stop("ann", first);
    assert_eq!(shown(&mut c)[1], "/a/b 4 3 0 0 1 0 ann");
    c.resume("ann", first);
    c.end(first, 0);
    c.restart();
    let want = ["/a 5 3 1 0 0 1 ann", "/a/b 4 3 0 0 0 1 ann", "/a/b/c 3 3 0 0 0 0 bob"];
    c.advance(5);
    assert_eq!(shown(&mut c), want);
    let slots = JobGroupRequest::List { path: "/a/b".into(), slots: true };
    match c.ask("bob", ClientMsg::JobGroup(Box::new(slots))).pop() {
        Some(Msg::Client(ClientMsg::JobGroups(rows))) => {
            assert_eq!(rows.iter().map(|r| (r.njobs, r.pend)).collect::<Vec<_>>(), [(3, 3); 2]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn limit_of_a_group_bounds_the_started_jobs_of_it_and_all_below() {
    let mut c = cluster().hosts(1, 20).up();
    add(&mut c, "ann", "/a", Some(3)).unwrap();
    add(&mut c, "ann", "/a/b", Some(1)).unwrap();
    let array = c.submit("ann", "-J 'x[1-4]' -g /a/b");
    let other = c.submit("bob", "-J 'y[1-4]' -n 2 -g /a/c");
    let free = c.submit("bob", "-g /z");
    let started = c.started();
    assert_eq!(started, [element(array, 1), element(other, 1), element(other, 2), free]);
    assert!(c.waits_for(element(array, 2), PendReason::GroupLimit), "{:?}", c.reasons(array));
    assert!(c.waits_for(element(other, 3), PendReason::GroupLimit));
    // a suspended job counts
    c.stop("bob", element(other, 1));
    assert_eq!(c.started(), []);
    c.end(element(other, 2), 0);
    // the group below has no room of its own: the other one takes what is free
    assert_eq!(c.started(), [element(other, 3)]);
    c.end(element(array, 1), 0);
    assert_eq!(c.started(), [element(array, 2)]);
    set_limit(&mut c, "ann", "/a", NewLimit::Most(4)).unwrap();
    assert_eq!(c.started(), [element(other, 4)]);
    set_limit(&mut c, "ann", "/a/b", NewLimit::None).unwrap();
    set_limit(&mut c, "ann", "/a", NewLimit::None).unwrap();
    assert_eq!(c.started(), [element(array, 3), element(array, 4)]);
    let [a, b] = [&rows(&mut c, "/a")[0], &rows(&mut c, "/a/b")[0]].map(|r| (r.started, r.limit));
    assert_eq!((a, b), ((6, None), (3, None)));
}

#[test]
fn limit_that_leaves_no_room_holds_jobs_after_a_restart_too() {
    let mut c = cluster().hosts(1, 9).up();
    add(&mut c, "ann", "/a", Some(0)).unwrap();
    let job = c.submit("bob", "-g /a/b");
    assert_eq!(c.started(), []);
    c.restart();
    c.advance(5);
    assert!(c.waits_for(job, PendReason::GroupLimit), "{:?}", c.reasons(job));
    assert_eq!(c.modify("bob", job, &[SpecField::Group], "-g /c"), 0);
    assert_eq!(c.started(), [job]);
    assert_eq!(shown(&mut c), ["/a 0 0 0 0 0 0 ann", "/a/b 0 0 0 0 0 0 bob", "/c 1 0 1 0 0 0 bob"]);
}

#[test]
fn job_leaves_its_group_with_bmod_gn_and_an_element_stays() {
    let mut c = cluster().hosts(1, 1).up();
    let array = c.submit("ann", "-J 'x[1-2]' -H -g /a");
    assert_eq!(c.modify("ann", element(array, 1), &[SpecField::Group], "-g /b"), err::ELEMENT);
    assert_eq!(c.modify("ann", array, &[SpecField::Group], "-g b"), err::BAD_JGRP);
    assert_eq!(shown(&mut c), ["/a 2 2 0 0 0 0 ann"]);
    assert_eq!(c.modify("ann", array, &[SpecField::Group], ""), 0);
    assert_eq!(shown(&mut c), ["/a 0 0 0 0 0 0 ann"]);
    assert_eq!(c.modify("ann", array, &[SpecField::Group], "-g /b/c"), 0);
    assert_eq!(shown(&mut c)[1..], ["/b 2 2 0 0 0 0 ann", "/b/c 2 2 0 0 0 0 ann"]);
}

#[test]
fn limits_that_contradict_those_above_or_below_are_refused() {
    let mut c = cluster().hosts(1, 1).up();
    add(&mut c, "ann", "/a", Some(5)).unwrap();
    let said = |refused: Result<(), Refusal>| refused.unwrap_err().words();
    let words = said(add(&mut c, "bob", "/a/b/c", Some(6)));
    assert_eq!(words, "the limit 6 is above that of job group </a>, 5");
    assert_eq!(shown(&mut c).len(), 1, "a group was made");
    add(&mut c, "bob", "/a/b/c", Some(4)).unwrap();
    let words = said(set_limit(&mut c, "ann", "/a", NewLimit::Most(3)));
    assert_eq!(words, "the limit 3 is below that of job group </a/b/c>, 4");
    assert_eq!(said(add(&mut c, "bob", "/a", None)), "Job group exists");
    for bad in ["", "/", "a", "/a//b", "/a b"] {
        assert_eq!(add(&mut c, "ann", bad, None).unwrap_err().code, err::BAD_JGRP, "{bad}");
    }
    let none = set_limit(&mut c, "ann", "/none", NewLimit::None).unwrap_err();
    assert_eq!(none.code, err::NO_JGRP);
}

#[test]
fn groups_are_changed_by_their_owners_those_of_groups_above_and_administrators() {
    let mut c = cluster().hosts(1, 1).up();
    add(&mut c, "ann", "/a", None).unwrap();
    add(&mut c, "bob", "/a/b", None).unwrap();
    let denied = |refused: Result<(), Refusal>| refused.unwrap_err().code;
    assert_eq!(denied(set_limit(&mut c, "bob", "/a", NewLimit::Most(1))), err::PERMISSION);
    set_limit(&mut c, "ann", "/a/b", NewLimit::Most(1)).unwrap();
    set_limit(&mut c, "admin", "/a/b", NewLimit::Most(2)).unwrap();
    let give = |owner: &str| JobGroupRequest::Modify {
        path: "/a".into(),
        limit: None,
        owner: owner.into(),
    };
    assert_eq!(ask(&mut c, "ann", give("bob")).unwrap_err().code, err::PERMISSION);
    ask(&mut c, "admin", give("bob")).unwrap();
    set_limit(&mut c, "bob", "/a", NewLimit::Most(7)).unwrap();
    assert_eq!(delete(&mut c, "ann", "/a").unwrap_err().code, err::PERMISSION);
    assert_eq!(delete(&mut c, "bob", "/a").unwrap(), ["/a/b", "/a"]);
    assert_eq!(delete(&mut c, "bob", "/a").unwrap_err().code, err::NO_JGRP);
}

#[test]
fn bgdel_takes_empty_groups_alone() {
    let mut c = cluster().hosts(1, 1).param("CLEAN_PERIOD = 10").up();
    for path in ["/a/b", "/a/c/d", "/x"] {
        add(&mut c, "ann", path, None).unwrap();
    }
    add(&mut c, "bob", "/y", None).unwrap();
    let job = c.submit("ann", "-g /a/b");
    assert_eq!(delete(&mut c, "ann", "/a").unwrap_err().code, err::JGRP_HASJOB);
    c.end(job, 0);
    assert_eq!(delete(&mut c, "ann", "/a/b").unwrap_err().code, err::JGRP_HASJOB);
    let below = DeleteGroups { path: "/a".into(), empty_only: true, ..DeleteGroups::default() };
    let gone = ask(&mut c, "ann", JobGroupRequest::Delete(below)).unwrap();
    assert_eq!(gone, ["/a/c/d", "/a/c"]);
    let all = |user: &str| {
        let user = user.into();
        JobGroupRequest::Delete(DeleteGroups { user, ..DeleteGroups::default() })
    };
    assert_eq!(ask(&mut c, "ann", all("all")).unwrap_err().code, err::PERMISSION);
    assert_eq!(ask(&mut c, "ann", all("")).unwrap(), ["/x"]);
    c.advance(30);
    assert_eq!(shown(&mut c), ["/a 0 0 0 0 0 0 ann", "/a/b 0 0 0 0 0 0 ann", "/y 0 0 0 0 0 0 bob"]);
    c.restart();
    assert_eq!(ask(&mut c, "admin", all("all")).unwrap(), ["/y", "/a/b", "/a"]);
    assert_eq!(ask(&mut c, "ann", all("")).unwrap(), [""; 0]);
}

#[test]
fn empty_groups_leave_as_job_group_clean_says() {
    for (clean, left) in
        [("N", vec!["/a", "/a/b", "/k", "/k/l"]), ("Y", vec!["/k"]), ("all", vec![])]
    {
        let site = cluster().hosts(1, 9).param("CLEAN_PERIOD = 10");
        let mut c = site.param(&format!("JOB_GROUP_CLEAN = {clean}")).up();
        add(&mut c, "ann", "/k", Some(5)).unwrap();
        let jobs = ["-g /a/b", "-g /a", "-g /k/l"].map(|group| c.submit("ann", group));
        jobs.into_iter().for_each(|job| c.end(job, 0));
        assert_eq!(shown(&mut c).len(), 4, "{clean}");
        c.advance(30);
        let paths: Vec<String> = rows(&mut c, "").into_iter().map(|row| row.path).collect();
        assert_eq!(paths, left, "{clean}");
        c.restart();
        assert_eq!(rows(&mut c, "").len(), left.len(), "{clean}");
    }
}

#[test]
fn default_group_takes_jobs_that_name_none() {
    let site = cluster().hosts(1, 9).param("DEFAULT_JOBGROUP = /all/%p/%u");
    let mut c = site.clone().up();
    c.submit("ann", "-P chip");
    c.submit("ann", "-g /own");
    let paths: Vec<String> = rows(&mut c, "").into_iter().map(|row| row.path).collect();
    assert_eq!(paths, ["/all", "/all/chip", "/all/chip/ann", "/own"]);
    // a project whose name makes no group
    assert_eq!(c.try_submit("ann", "-P 'a b'").unwrap_err().code, err::BAD_JGRP);
}

#[test]
fn groups_are_in_a_new_log_after_a_switch() {
    let mut c = cluster().hosts(1, 1).param("MAX_JOB_NUM = 1").param("CLEAN_PERIOD = 10").up();
    add(&mut c, "ann", "/a", Some(2)).unwrap();
    let job = c.submit("ann", "-g /a");
    c.end(job, 0);
    let head = c.switch_head();
    let added = |record: &&Record| {
        matches!(&record.event,
        Event::JobGroupAdd(group) if group.path == "/a" && group.limit == Some(2) && group.explicit)
    };
    assert_eq!(head.iter().filter(added).count(), 1);
}

#[test]
fn groups_whose_records_are_lost_are_made_again_for_their_jobs() {
    let mut c = cluster().hosts(1, 1).up();
    c.submit("ann", "-g /a/b");
    c.submit("bob", "-g /a");
    c.lose_records(|event| matches!(event, Event::JobGroupAdd(_)));
    c.restart();
    assert_eq!(shown(&mut c), ["/a 2 1 1 0 0 0 ann", "/a/b 1 0 1 0 0 0 ann"]);
    c.restart();
    assert_eq!(c.logged(|event| matches!(event, Event::JobGroupAdd(_))), 2);
}

#[test]
fn group_that_a_job_has_left_is_not_made_again_by_its_submission() {
    let mut c = cluster().hosts(1, 1).up();
    let job = c.submit("ann", "-H -g /a");
    assert_eq!(c.modify("ann", job, &[SpecField::Group], "-g /b"), 0);
    delete(&mut c, "ann", "/a").unwrap();
    c.restart();
    assert_eq!(shown(&mut c), ["/b 1 1 0 0 0 0 ann"]);
}

#[test]
fn started_job_is_counted_in_its_group_through_every_change() {
    let mut c = cluster().hosts(1, 4).queue("other", "PRIORITY = 50").up();
    add(&mut c, "ann", "/top", Some(2)).unwrap();
    let job = c.submit("ann", "-g /top/a");
    let moves =
        |c: &mut Cluster, at: JobRef, group: &str| c.modify("ann", at, &[SpecField::Group], group);
    // LSB_MOD_ALL_JOBS does not matter for it
    assert_eq!(moves(&mut c, job, "-g /top/b"), 0);
    assert_eq!(shown(&mut c)[1..], ["/top/a 0 0 0 0 0 0 ann", "/top/b 1 0 1 0 0 0 ann"]);
    let array = c.submit("ann", "-J 'x[1-3]' -g /top/b");
    assert_eq!(c.started().len(), 2, "the limit of the group above");
    assert_eq!(shown(&mut c)[2], "/top/b 4 2 2 0 0 0 ann");
    // no part of an array leaves the others
    assert_eq!(moves(&mut c, array, "-g /z"), err::RUNNING);
    assert_eq!(moves(&mut c, element(array, 3), "-g /z"), err::RUNNING);
    // one that leaves makes room, one that comes in takes none of the others'
    c.stop("ann", job);
    assert_eq!(moves(&mut c, job, ""), 0);
    assert_eq!(c.started(), [element(array, 2)]);
    assert_eq!(moves(&mut c, job, "-g /top/a"), 0);
    let row = &rows(&mut c, "/top")[0];
    assert_eq!((row.started, row.ususp, row.limit), (3, 1, Some(2)));
    c.end(element(array, 1), 0);
    assert_eq!(c.started(), []);
    c.switch("ann", job, "other");
    let all = ["/top 4 1 1 0 1 1 ann", "/top/a 1 0 0 0 1 0 ann", "/top/b 3 1 1 0 0 1 ann"];
    assert_eq!(shown(&mut c), all);
    c.restart();
    c.advance(5);
    assert_eq!(shown(&mut c), all);
    c.requeue("ann", job);
    let tally = |c: &mut Cluster| {
        let row = rows(c, "/top").swap_remove(0);
        (row.njobs, row.pend + row.started + row.finish)
    };
    assert_eq!(tally(&mut c), (4, 4));
    c.kill("ann", job);
    c.kill("ann", array);
    c.advance(5);
    assert_eq!(shown(&mut c)[0], "/top 4 0 0 0 0 4 ann");
    c.restart();
    c.advance(5);
    assert_eq!(shown(&mut c)[1..], ["/top/a 1 0 0 0 0 1 ann", "/top/b 3 0 0 0 0 3 ann"]);
}

#[test]
fn bgdel_d_takes_groups_that_have_been_empty_for_so_long() {
    let mut c = cluster().hosts(1, 4).param("CLEAN_PERIOD = 10").up();
    add(&mut c, "ann", "/old/below", None).unwrap();
    add(&mut c, "bob", "/bobs", None).unwrap();
    let job = c.submit("ann", "-g /used");
    c.advance(600);
    add(&mut c, "ann", "/old/new", None).unwrap();
    c.end(job, 0);
    let idle = |idle_secs: u64, user: &str| {
        let user = user.to_string();
        JobGroupRequest::Delete(DeleteGroups { idle_secs, user, ..DeleteGroups::default() })
    };
    assert_eq!(ask(&mut c, "ann", idle(300, "all")).unwrap_err().code, err::PERMISSION);
    // its group below is younger, the other one has a job
    assert_eq!(ask(&mut c, "ann", idle(300, "")).unwrap(), ["/old/below"]);
    c.advance(320);
    assert_eq!(ask(&mut c, "ann", idle(600, "")).unwrap(), [""; 0]);
    assert_eq!(ask(&mut c, "ann", idle(300, "")).unwrap(), ["/used", "/old/new", "/old"]);
    // the time begins anew with mbatchd
    c.restart();
    assert_eq!(ask(&mut c, "admin", idle(60, "all")).unwrap(), [""; 0]);
    c.advance(60);
    assert_eq!(ask(&mut c, "admin", idle(60, "all")).unwrap(), ["/bobs"]);
}
