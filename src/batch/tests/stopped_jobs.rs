//! Suspended jobs of queues that others preempt: their slots are free to these, whoever suspended
//! them, and they go on when nobody is in their slots.

use super::cluster::{ADMINISTRATOR, Cluster, ClusterBuilder, cluster};
use super::{Act, JobRef, Verb};
use crate::model::reason::susp;
use crate::proto::force::Force;

/// One host with so many slots, and queue `high` that preempts jobs of queue `low`, which has
/// further lines.
fn site(slots: u32, low: &str) -> ClusterBuilder {
    cluster()
        .hosts(1, slots)
        .queue("low", &format!("PRIORITY = 20; {low}"))
        .queue("normal", "PRIORITY = 30")
        .queue("high", "PRIORITY = 40; PREEMPTION = PREEMPTIVE[low]")
}

/// A job of queue `low` that its owner has stopped.
fn stopped(c: &mut Cluster) -> JobRef {
    let job = c.submit("ann", "-q low");
    c.stop("ann", job);
    assert_eq!(c.state(job), "USUSP");
    c.orders();
    job
}

#[test]
fn job_of_the_preemptive_queue_starts_in_the_slot_of_a_stopped_job_without_an_order_to_it() {
    let mut c = site(1, "").up();
    let low = stopped(&mut c);
    let normal = c.submit("bob", "-q normal");
    let high = c.submit("bob", "-q high");
    let next = c.submit("bob", "-q high");
    assert_eq!([normal, high, next].map(|job| c.state(job)), ["PEND", "RUN", "PEND"]);
    assert_eq!((c.state(low), c.suspended_for(low)), ("USUSP".into(), susp::USER));
    assert_eq!(c.orders(), []);
    c.resume("ann", low);
    assert_eq!((c.state(low), c.suspended_for(low)), ("SSUSP".into(), susp::PREEMPTED));
    assert_eq!(c.orders(), []);
    c.end(high, 0);
    assert_eq!([low, next].map(|job| c.state(job)), ["SSUSP", "RUN"]);
    c.end(next, 0);
    assert_eq!([low, normal].map(|job| c.state(job)), ["RUN", "PEND"]);
}

#[test]
fn pending_job_of_the_preemptive_queue_starts_when_a_job_is_stopped() {
    let mut c = site(1, "NO_PREEMPT_INTERVAL = 10").up();
    let low = c.submit("ann", "-q low");
    let high = c.submit("bob", "-q high");
    assert_eq!([low, high].map(|job| c.state(job)), ["RUN", "PEND"]);
    c.stop("ann", low);
    assert_eq!([low, high].map(|job| c.state(job)), ["USUSP", "RUN"]);
}

/// Two jobs of queue `low` on a host of two slots, which is told to suspend one of them for the
/// load.
fn suspended_for_the_load() -> (Cluster, [JobRef; 2], JobRef) {
    let mut c = site(2, "r1m = 1.0/2.0").up();
    let low = ["-q low"; 2].map(|options| c.submit("ann", options));
    c.hosts_wait();
    c.load("h1", "r1m=2.5");
    let orders = c.orders();
    let [(suspended, Act::Suspend)] = orders[..] else { panic!("{orders:?}") };
    (c, low, suspended)
}

#[test]
fn slot_of_a_job_suspended_for_the_load_is_free_when_its_host_has_told() {
    let (mut c, low, suspended) = suspended_for_the_load();
    assert_eq!(c.state(suspended), "SSUSP");
    let high = c.submit("bob", "-q high");
    c.advance(1);
    assert_eq!(c.state(high), "PEND");
    // nobody else is preempted for it meanwhile
    assert_eq!(c.orders(), []);
    c.suspends(suspended);
    c.runs(high);
    assert_eq!(c.state(high), "RUN");
    c.load("h1", "r1m=0");
    c.advance(60);
    assert_eq!((c.state(suspended), c.suspended_for(suspended)), ("SSUSP".into(), susp::PREEMPTED));
    assert_eq!(c.orders(), []);
    c.end(high, 0);
    assert_eq!(c.orders(), [(suspended, Act::Resume)]);
    c.runs(suspended);
    assert_eq!(low.map(|job| c.state(job)), ["RUN"; 2]);
}

#[test]
fn job_that_is_being_resumed_has_its_slot_again() {
    let mut c = site(1, "").up();
    let low = stopped(&mut c);
    c.hosts_wait();
    c.resume("ann", low);
    assert_eq!(c.orders(), [(low, Act::Resume)]);
    let high = c.submit("bob", "-q high");
    c.advance(1);
    assert_eq!(c.state(high), "PEND");
    c.runs(low);
    assert_eq!(c.orders(), [(low, Act::Suspend)]);
    c.suspends(low);
    assert_eq!(c.state(high), "RUN");
}

#[test]
fn job_switched_to_another_queue_while_it_was_stopped_waits_for_its_slot() {
    let mut c = site(1, "").up();
    let low = stopped(&mut c);
    let high = c.submit("bob", "-q high");
    c.switch("ann", low, "normal");
    c.resume("ann", low);
    assert_eq!([low, high].map(|job| c.state(job)), ["SSUSP", "RUN"]);
    c.end(high, 0);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn stopped_jobs_of_kinds_that_are_not_preempted_keep_their_slots() {
    for (lines, options) in [("EXCLUSIVE = Y", "-x"), ("BACKFILL = Y", "")] {
        let mut c = site(1, lines).up();
        let low = c.submit("ann", &format!("-q low {options}"));
        c.stop("ann", low);
        let high = c.submit("bob", "-q high");
        assert_eq!([low, high].map(|job| c.state(job)), ["USUSP", "PEND"], "{lines}");
        let mut c = site(1, lines).param("PREEMPT_JOBTYPE = EXCLUSIVE BACKFILL").up();
        let low = c.submit("ann", &format!("-q low {options}"));
        c.stop("ann", low);
        let high = c.submit("bob", "-q high");
        assert_eq!([low, high].map(|job| c.state(job)), ["USUSP", "RUN"], "{lines}");
    }
}

/// brun on the one host.
fn force(c: &mut Cluster, at: JobRef) {
    let force = Force { hosts: vec![("h1".to_owned(), 0)], ..Force::default() };
    assert_eq!(c.control(ADMINISTRATOR, Verb::Force(force), at), [0]);
}

#[test]
fn stopped_job_of_brun_keeps_its_slot() {
    let mut c = site(1, "NEW_JOB_SCHED_DELAY = 60").up();
    let forced = c.submit("ann", "-q low");
    force(&mut c, forced);
    c.stop("ann", forced);
    let high = c.submit("bob", "-q high");
    assert_eq!([forced, high].map(|job| c.state(job)), ["USUSP", "PEND"]);
}

#[test]
fn stopped_job_of_brun_goes_on_at_once() {
    let mut c = site(1, "").up();
    let running = c.submit("ann", "-q normal");
    let forced = c.submit("ann", "-q low");
    force(&mut c, forced);
    c.stop("ann", forced);
    assert_eq!([running, forced].map(|job| c.state(job)), ["RUN", "USUSP"]);
    c.resume("ann", forced);
    assert_eq!(c.state(forced), "RUN");
}

#[test]
fn stopped_jobs_are_known_after_a_restart_of_mbatchd() {
    let mut c = site(2, "").up();
    let low = [stopped(&mut c), stopped(&mut c)];
    let high = c.submit("bob", "-q high");
    c.restart();
    c.advance(1);
    assert_eq!(low.map(|job| c.state(job)), ["USUSP"; 2]);
    let next = c.submit("bob", "-q high");
    assert_eq!([high, next].map(|job| c.state(job)), ["RUN"; 2]);
    c.resume("ann", low[0]);
    assert_eq!(c.state(low[0]), "SSUSP");
    c.end(high, 0);
    assert_eq!(low.map(|job| c.state(job)), ["RUN", "USUSP"]);
}

#[test]
fn stopped_job_that_migrates_keeps_its_slot_until_it_has_ended() {
    // it goes on for the time of its checkpoint
    for options in ["-r", "-k /ck"] {
        let mut c = site(1, "").up();
        let low = c.submit("ann", &format!("-q low {options}"));
        c.stop("ann", low);
        c.hosts_wait();
        assert_eq!(c.control("ann", Verb::Migrate { force: false }, low), [0]);
        let high = c.submit("bob", "-q high");
        c.advance(1);
        assert_eq!([low, high].map(|job| c.state(job)), ["USUSP", "PEND"], "{options}");
        c.ends_by(low, 9, 0);
        assert_eq!(c.state(high), "RUN", "{options}");
    }
}

#[test]
fn slot_is_kept_when_the_host_of_a_suspended_job_tells_that_it_runs() {
    let (mut c, low, suspended) = suspended_for_the_load();
    c.suspends(suspended);
    // its host has lost that it was to be suspended
    c.runs(suspended);
    assert_eq!(c.orders(), [(suspended, Act::Suspend)]);
    let high = c.submit("bob", "-q high");
    c.advance(1);
    assert_eq!((c.state(high), c.orders()), ("PEND".into(), vec![]));
    c.suspends(suspended);
    assert_eq!(c.state(high), "RUN");
    assert_eq!(low.iter().filter(|job| c.state(**job) == "RUN").count(), 1);
}

#[test]
fn stopped_job_goes_on_beside_one_of_brun_in_its_slot() {
    let mut c = site(1, "").up();
    let normal = c.submit("ann", "-q normal");
    let forced = c.submit("ann", "-q normal");
    force(&mut c, forced);
    c.stop("ann", normal);
    assert_eq!([normal, forced].map(|job| c.state(job)), ["USUSP", "RUN"]);
    c.resume("ann", normal);
    assert_eq!(c.state(normal), "RUN");
}

#[test]
fn slot_is_free_again_when_a_job_is_stopped_before_it_was_resumed() {
    let mut c = site(1, "").up();
    let low = stopped(&mut c);
    c.hosts_wait();
    c.resume("ann", low);
    let high = c.submit("bob", "-q high");
    c.advance(1);
    assert_eq!(c.state(high), "PEND");
    c.stop("ann", low);
    assert_eq!(c.state(high), "RUN");
}

#[test]
fn slot_is_free_again_when_run_windows_close_before_a_job_was_resumed() {
    // the clock begins at 22:13:20
    let mut c = site(1, "RUN_WINDOW = 21:00-22:20").up();
    let low = stopped(&mut c);
    c.advance(300);
    c.hosts_wait();
    c.resume("ann", low);
    assert_eq!(c.orders(), [(low, Act::Resume)]);
    let high = c.submit("bob", "-q high");
    c.advance(1);
    assert_eq!(c.state(high), "PEND");
    c.advance(120);
    assert_eq!((c.state(low), c.suspended_for(low)), ("SSUSP".into(), susp::WINDOW));
    assert_eq!(c.state(high), "RUN");
}

#[test]
fn slot_is_free_again_when_the_load_rises_before_a_job_was_resumed() {
    let mut c = site(1, "r1m = 1.0/2.0").up();
    let low = stopped(&mut c);
    c.hosts_wait();
    c.resume("ann", low);
    assert_eq!(c.orders(), [(low, Act::Resume)]);
    c.load("h1", "r1m=2.5");
    let high = c.submit("bob", "-q high");
    c.advance(1);
    assert_eq!(c.state(high), "PEND");
    // it waits for the load from now on
    c.resume("ann", low);
    assert_eq!((c.state(low), c.state(high)), ("SSUSP".into(), "RUN".into()));
}

#[test]
fn job_whose_window_opened_while_mbatchd_was_away_waits_for_its_slot() {
    let mut c = site(1, "RUN_WINDOW = 23:00-22:20").up();
    let low = c.submit("ann", "-q low");
    c.advance(420);
    assert_eq!((c.state(low), c.suspended_for(low)), ("SSUSP".into(), susp::WINDOW));
    let high = c.submit("bob", "-q high");
    assert_eq!(c.state(high), "RUN");
    c.orders();
    c.restart_later(3600);
    c.advance(1);
    assert_eq!((c.state(low), c.suspended_for(low)), ("SSUSP".into(), susp::PREEMPTED));
    assert_eq!(c.orders().iter().filter(|order| order.1 == Act::Resume).count(), 0);
}
