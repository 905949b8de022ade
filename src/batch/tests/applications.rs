//! Application profiles: a job belongs to one by -app or DEFAULT_APPLICATION, and what its own
//! options leave open comes from it, within the limits of its queue.

use super::cluster::{Cluster, ClusterBuilder, cluster, elements};
use super::*;
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::client::ApplicationInfo;

fn profiles(c: &mut Cluster, names: &[&str]) -> Result<Vec<ApplicationInfo>, Refusal> {
    let names = names.iter().map(|name| name.to_string()).collect();
    match c.ask("ann", ClientMsg::Applications { names }).pop() {
        Some(Msg::Client(ClientMsg::ApplicationRows { rows })) => Ok(rows),
        Some(Msg::Refused(refusal)) => Err(refusal),
        other => panic!("{other:?}"),
    }
}

/// Pending, running and suspended slots of a profile.
fn slots(c: &mut Cluster, name: &str) -> [u64; 3] {
    let row = profiles(c, &[name]).unwrap().remove(0);
    [row.pend, row.run, row.ssusp + row.ususp]
}

fn limited() -> ClusterBuilder {
    cluster().hosts(1, 4).queue("normal", "RUNLIMIT = 20 100; MEMLIMIT = 1000")
}

/// The run limit of a started job, minutes.
fn run_limit(c: &mut Cluster, options: &str) -> Option<u64> {
    let job = c.submit("ann", options);
    let order = c.start_orders().into_iter().find(|order| order.key.job_ref() == job);
    c.end(job, 0);
    order.unwrap().limits.run.map(|secs| secs / 60)
}

fn code(refused: Result<JobRef, Refusal>) -> i32 {
    refused.expect_err("submitted").code
}

#[test]
fn submission_to_an_unknown_profile_is_refused() {
    let mut c = limited().application("sim", "").up();
    let refused = c.try_submit("ann", "-app sin").unwrap_err();
    assert_eq!(refused.words(), "sin: Application profile does not exist");
    assert_eq!(refused.code, err::NO_APP);
    assert_eq!(code(c.try_submit("ann", "-app sim -q no")), err::BAD_QUEUE);
    assert_eq!(profiles(&mut c, &["sim", "x"]).unwrap_err().code, err::NO_APP);
}

#[test]
fn limits_come_from_the_job_then_the_profile_then_the_queue() {
    let mut c = limited()
        .application("sim", "RUNLIMIT = 30")
        .application("both", "RUNLIMIT = 30 40")
        .application("bare", "DESCRIPTION = x")
        .application("large", "RUNLIMIT = 101")
        .application("memory", "MEMLIMIT = 2000")
        .up();
    for (options, minutes) in [
        ("", 20),
        ("-app bare", 20),
        ("-app sim", 30),
        ("-app both", 30),
        ("-app sim -W 50", 50),
        ("-app both -W 40", 40),
    ] {
        assert_eq!(run_limit(&mut c, options), Some(minutes), "{options}");
    }
    assert_eq!(code(c.try_submit("ann", "-app sim -W 101")), err::OVER_LIMIT);
    assert_eq!(code(c.try_submit("ann", "-app both -W 41")), err::OVER_APP_LIMIT);
    let refused = c.try_submit("ann", "-app large").unwrap_err();
    assert_eq!(refused.words(), "RUNLIMIT: Application profile exceeds the queue's hard limit(s)");
    assert_eq!(code(c.try_submit("ann", "-app memory")), err::APP_OVER_LIMIT);
    assert_eq!(run_limit(&mut c, "-app large -W 99"), Some(99));
}

#[test]
fn task_limits_of_profile_and_queue_both_hold() {
    let mut c = cluster()
        .hosts(4, 8)
        .queue("normal", "TASKLIMIT = 2 2 8")
        .application("wide", "TASKLIMIT = 3 4 6")
        .application("huge", "TASKLIMIT = 9 9 9")
        .application("top", "TASKLIMIT = 5")
        .up();
    for (options, tasks) in [("", 2), ("-app wide", 4), ("-app wide -n 6", 6), ("-app top -n 3", 3)]
    {
        let job = c.submit("ann", options);
        assert_eq!(c.running_on(job).len(), tasks, "{options}");
    }
    assert_eq!(code(c.try_submit("ann", "-app wide -n 7")), err::PROC_APP);
    assert_eq!(code(c.try_submit("ann", "-app wide -n 2")), err::PROC_APP);
    assert_eq!(code(c.try_submit("ann", "-app huge")), err::PROC_APP_QUEUE);
    assert_eq!(code(c.try_submit("ann", "-app huge -n 9")), err::PROC_NUM);
    // one task is less than the queue takes
    assert_eq!(code(c.try_submit("ann", "-app top")), err::PROC_APP_QUEUE);
}

#[test]
fn jobs_without_app_belong_to_the_default_profile() {
    let site = limited().param("DEFAULT_APPLICATION = sim").application("sim", "RUNLIMIT = 30");
    let mut c = site.application("other", "RUNLIMIT = 40").up();
    assert_eq!(run_limit(&mut c, ""), Some(30));
    assert_eq!(run_limit(&mut c, "-app other"), Some(40));
    assert!(profiles(&mut c, &["sim"]).unwrap()[0].is_default);
    c.submit("ann", "-b +100 -app other");
    let later = c.submit("ann", "-b +100 -app other");
    assert_eq!(c.modify("ann", later, &[SpecField::App], ""), 0);
    assert_eq!((slots(&mut c, "sim")[0], slots(&mut c, "other")[0]), (1, 1));
}

#[test]
fn profile_of_a_pending_job_can_be_changed_with_what_it_gave() {
    let mut c = limited().application("sim", "RUNLIMIT = 30; TASKLIMIT = 2 2 4").up();
    let job = c.submit("ann", "-app sim -b +60");
    assert_eq!(slots(&mut c, "sim"), [2, 0, 0]);
    assert_eq!(c.modify("ann", job, &[SpecField::App], "-app sin"), err::NO_APP);
    assert_eq!(c.modify("ann", job, &[SpecField::App], ""), 0);
    assert_eq!(slots(&mut c, "sim"), [0, 0, 0]);
    c.advance(61);
    let order = c.start_orders().pop().unwrap();
    assert_eq!((order.limits.run, order.hosts[0].1), (Some(20 * 60), 1));
}

#[test]
fn slots_of_a_profile_are_counted_by_state() {
    let mut c = limited().application("sim", "").application("idle", "").up();
    let array = c.submit("ann", "-app sim -J a[1-6]");
    let alone = c.submit("ann", "-app sim -b +60 -n 2");
    c.submit("ann", "-b +60");
    assert_eq!(slots(&mut c, "sim"), [4, 4, 0]);
    c.stop("ann", super::cluster::element(array, 1));
    assert_eq!(slots(&mut c, "sim"), [4, 3, 1]);
    let some = elements(array, 5, 6);
    assert_eq!(c.modify("ann", some, &[SpecField::App], "-app idle"), 0);
    assert_eq!((slots(&mut c, "sim"), slots(&mut c, "idle")), ([2, 3, 1], [2, 0, 0]));
    c.restart();
    assert_eq!((slots(&mut c, "sim"), slots(&mut c, "idle")), ([2, 3, 1], [2, 0, 0]));
    c.kill("ann", alone);
    assert_eq!(slots(&mut c, "sim"), [0, 3, 1]);
}

#[test]
fn jobs_of_a_removed_profile_keep_running() {
    let with = limited().application("sim", "RUNLIMIT = 30");
    let mut c = with.up();
    let running = c.submit("ann", "-app sim");
    c.reconfigure(limited());
    assert_eq!(c.state(running), "RUN");
    assert_eq!(profiles(&mut c, &[]).unwrap(), []);
    assert_eq!(code(c.try_submit("ann", "-app sim")), err::NO_APP);
    c.end(running, 0);
    assert_eq!(c.state(running), "DONE");
}
