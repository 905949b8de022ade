//! Whether a job is ready: pass, listing and account of pending time give one answer.

use super::cluster::{Cluster, ClusterBuilder, cluster, element};
use super::*;
use crate::model::reason::PendReason;

/// One host of this many slots, in a cluster that accounts for eligible pending time.
fn one_host(slots: u32) -> ClusterBuilder {
    cluster().hosts(1, slots).param("TRACK_ELIGIBLE_PENDINFO = Y")
}

/// Ineligible pending seconds of an element.
fn ineligible(c: &mut Cluster, at: JobRef) -> Option<i64> {
    c.column(at, Col::IneligibleTime).as_i64()
}

#[test]
fn job_of_a_queue_that_is_gone_says_that_its_queue_is_inactive() {
    let mut c = one_host(1).queue("night", "PRIORITY = 20").up();
    c.submit("ann", "");
    let job = c.submit("ann", "-q night");
    c.advance(3);
    c.reconfigure(one_host(1));
    c.advance(4);
    assert_eq!(c.reasons(job), [(PendReason::QueueInactive, vec![])]);
    assert_eq!(ineligible(&mut c, job), Some(4));
    c.reconfigure(one_host(1).queue("night", "PRIORITY = 20"));
    c.advance(2);
    assert_eq!(c.reason(job), PendReason::HostFull);
    assert_eq!(ineligible(&mut c, job), Some(4));
}

#[test]
fn element_that_can_never_start_says_so_while_others_of_its_array_wait() {
    let mut c = one_host(2).up();
    let first = c.submit("ann", "-J 'a[1-3]%2'");
    let second = c.submit("ann", &format!("-J 'b[1-3]' -w 'done({first}[*])'"));
    c.end(element(first, 1), 1);
    assert_eq!(c.reason(element(second, 1)), PendReason::DependencyNever);
    assert_eq!(c.reason(element(second, 2)), PendReason::Dependency);
    c.end(element(first, 2), 0);
    let told = [1, 2, 3].map(|idx| c.state(element(second, idx)));
    assert_eq!(told, ["PEND", "RUN", "PEND"]);
    assert_eq!(c.reason(element(second, 1)), PendReason::DependencyNever);
    assert_eq!(c.reason(element(second, 3)), PendReason::Dependency);
}

#[test]
fn array_at_its_limit_says_so_and_is_eligible() {
    let mut c = one_host(4).up();
    let array = c.submit("ann", "-J 'a[1-3]%1'");
    c.advance(5);
    assert_eq!(c.reasons(element(array, 2)), [(PendReason::ArrayLimit, vec![])]);
    assert_eq!(ineligible(&mut c, element(array, 2)), Some(0));
    // a held element is ineligible, whatever its array has reached
    c.stop("ann", element(array, 3));
    c.advance(5);
    assert_eq!(c.reason(element(array, 3)), PendReason::UserStop);
    assert_eq!(ineligible(&mut c, element(array, 3)), Some(5));
    // so is an array whose queue is closed
    c.badmin("qinact normal");
    c.advance(5);
    assert_eq!(ineligible(&mut c, element(array, 2)), Some(5));
    let both = [(PendReason::QueueInactive, vec![]), (PendReason::ArrayLimit, vec![])];
    assert_eq!(c.reasons(element(array, 2)), both);
}

#[test]
fn job_between_two_starts_gives_the_reason_of_the_last_and_is_eligible() {
    let mut c = one_host(1).up();
    c.hosts_wait();
    let job = c.submit("ann", "");
    assert_eq!(c.started(), [job]);
    c.start_fails(job, PendReason::JobEnv, "no such shell");
    assert_eq!(c.reasons(job), [(PendReason::JobEnv, vec![])]);
    assert_eq!(c.reason_about(job, PendReason::JobEnv).as_deref(), Some("no such shell"));
    c.advance(2);
    assert_eq!(ineligible(&mut c, job), Some(0));
    c.clock_back(3600);
    c.advance(1);
    assert_eq!(c.reason_about(job, PendReason::JobEnv).as_deref(), Some("no such shell"));
}

#[test]
fn start_time_that_is_over_stays_over_when_the_clock_is_set_back() {
    let mut c = one_host(1).up();
    let running = c.submit("ann", "");
    let job = c.submit("ann", "-b 30");
    c.advance(20);
    assert_eq!(c.reasons(job), [(PendReason::StartTime, vec![])]);
    c.advance(20);
    assert_eq!(c.reason(job), PendReason::HostFull);
    assert_eq!(ineligible(&mut c, job), Some(30));
    c.clock_back(25);
    c.stop("ann", job);
    c.resume("ann", job);
    assert_eq!(c.reason(job), PendReason::HostFull);
    c.end(running, 0);
    assert_eq!(c.state(job), "RUN");
}

#[test]
fn start_time_ahead_is_known_while_the_configuration_is_read_again() {
    let mut c = one_host(1).up();
    let job = c.submit("ann", "-b 30");
    c.advance(5);
    c.reconfigure(one_host(2));
    assert_eq!(c.reasons(job), [(PendReason::StartTime, vec![])]);
    c.restart();
    assert_eq!(c.reasons(job), [(PendReason::StartTime, vec![])]);
    c.advance(24);
    assert_eq!(c.state(job), "PEND");
    c.advance(1);
    assert_eq!(c.state(job), "RUN");
}

#[test]
fn log_that_failed_is_the_reason_of_every_pending_job() {
    let mut c = one_host(1).up();
    c.submit("ann", "");
    let waits = c.submit("ann", "");
    let held = c.submit("ann", "-H");
    c.log_fails();
    assert_eq!(c.reasons(waits), [(PendReason::LogFull, vec![])]);
    assert_eq!(c.reasons(held), [(PendReason::LogFull, vec![])]);
    c.log_is_back();
    assert_eq!(c.reason(waits), PendReason::HostFull);
    assert_eq!(c.reason(held), PendReason::UserStop);
}
