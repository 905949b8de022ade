//! Deadlines: jobs that could not end before the run window of their queue closes, or before their
//! own termination deadline, are not started.

use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::model::reason::PendReason;

/// Tests begin at 22:13:20: these windows close 46 minutes and 40 seconds later.
const RUN_WINDOW: &str = "RUN_WINDOW = 22:00-23:00";

fn with(lines: &str) -> ClusterBuilder {
    cluster().hosts(1, 4).queue("normal", &format!("PRIORITY = 30; {lines}"))
}

#[track_caller]
fn waits_on_h1(c: &mut Cluster, options: &str, why: PendReason) {
    let job = c.submit("ann", options);
    assert_eq!(c.reasons(job), [(why, vec!["h1".to_owned()])], "{options}");
}

#[test]
fn job_that_would_outlast_the_run_window_waits_until_it_opens_again() {
    let mut c = with(RUN_WINDOW).up();
    let short = c.submit("ann", "-W 46");
    let long = c.submit("ann", "-W 47");
    let unlimited = c.submit("ann", "");
    assert_eq!(c.started(), [short, unlimited]);
    let why = (PendReason::WindowCloses, vec!["h1".to_owned()]);
    assert_eq!(c.reasons(long), [why]);
    c.end(short, 0);
    assert_eq!(c.state(long), "PEND");
    // 22:00 on the next day
    c.advance(2800 + 23 * 3600);
    assert_eq!(c.state(long), "RUN");
}

#[test]
fn run_limit_of_the_queue_counts_as_that_of_its_jobs() {
    let mut c = with(&format!("{RUN_WINDOW}; RUNLIMIT = 10 50")).up();
    let of_default = c.submit("ann", "");
    assert_eq!(c.state(of_default), "RUN");
    waits_on_h1(&mut c, "-W 50", PendReason::WindowCloses);
}

#[test]
fn queue_that_ignores_deadlines_starts_all() {
    let mut c = with(&format!("{RUN_WINDOW}; IGNORE_DEADLINE = Y")).up();
    for options in ["-W 47", "-W 10 -t 300"] {
        let job = c.submit("ann", options);
        assert_eq!(c.state(job), "RUN", "{options}");
    }
}

#[test]
fn job_that_would_outlast_its_own_deadline_is_not_started() {
    let mut c = with("").up();
    waits_on_h1(&mut c, "-W 10 -t 599", PendReason::PastDeadline);
    for options in ["-W 10 -t 600", "-t 60", "-W 10"] {
        let job = c.submit("ann", options);
        assert_eq!(c.state(job), "RUN", "{options}");
    }
}

#[test]
fn dispatch_window_that_closes_is_no_deadline() {
    let mut c = with("DISPATCH_WINDOW = 22:00-23:00").up();
    let job = c.submit("ann", "-W 90");
    assert_eq!(c.state(job), "RUN");
}

#[test]
fn faster_host_takes_a_job_that_would_not_end_in_time_on_a_slow_one() {
    let mut c = with(RUN_WINDOW).hosts(1, 4).up();
    c.cpu_factor("h1", 1.0);
    c.cpu_factor("h2", 2.0);
    // given for a host of factor 1: half an hour on h2
    let job = c.submit("ann", "-W 60");
    assert_eq!(c.running_on(job), ["h2"]);
}

#[test]
fn absolute_run_limit_is_the_same_on_a_fast_host() {
    let mut c = with(RUN_WINDOW).hosts(1, 4).param("ABS_RUNLIMIT = Y").up();
    c.cpu_factor("h2", 2.0);
    let job = c.submit("ann", "-W 60");
    assert!(c.waits_for(job, PendReason::WindowCloses));
}

#[test]
fn job_whose_run_limit_is_changed_fits_before_the_window_closes() {
    let mut c = with(RUN_WINDOW).up();
    let job = c.submit("ann", "-W 60");
    assert!(c.waits_for(job, PendReason::WindowCloses));
    let fields = [crate::model::specfield::SpecField::RunLimit];
    assert_eq!(c.modify("ann", job, &fields, "-W 30"), 0);
    assert_eq!(c.state(job), "RUN");
}
