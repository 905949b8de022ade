//! Dispatch: the next job and its host, by slots, priorities, limits of arrays. Waiting for other
//! jobs is in depend.rs, waiting for a time of day in windows.rs.

use super::cluster::{cluster, element};
use crate::model::reason::PendReason;

#[test]
fn freed_slot_goes_to_the_queue_of_higher_priority() {
    let mut c = cluster().hosts(2, 2).queue("high", "PRIORITY = 40").up();
    let running: Vec<_> = (0..4).map(|_| c.submit("ann", "")).collect();
    assert_eq!(c.started(), running);
    let low = c.submit("ann", "");
    let high = c.submit("ann", "-q high");
    assert_eq!(c.started(), []);
    c.end(running[0], 0);
    assert_eq!(c.started(), [high]);
    assert_eq!((c.state(high), c.state(low)), ("RUN".into(), "PEND".into()));
}

#[test]
fn first_host_asked_for_is_the_first_execution_host() {
    let mut c = cluster().hosts(2, 2).up();
    let one = c.submit("ann", "-m 'h1 h2!'");
    assert_eq!(c.running_on(one), ["h2"]);
    let two = c.submit("ann", "-n 2 -m 'h1+9 h2!'");
    assert_eq!(c.running_on(two), ["h2", "h1"]);
    // h2 is full, and what is free of h1 does not do
    let none = c.submit("ann", "-m 'h1 h2!'");
    assert_eq!(c.running_on(none), [""; 0]);
    assert_eq!(c.reason(none), PendReason::FirstHost);
}

#[test]
fn array_at_its_limit_starts_the_next_element_when_one_ends() {
    let mut c = cluster().hosts(2, 2).up();
    let array = c.submit("ann", "-J 'a[1-3]%2'");
    let dependent = c.submit("ann", "-w 'done(a)'");
    assert_eq!(c.started(), [element(array, 1), element(array, 2)]);
    c.end(element(array, 1), 0);
    c.end(element(array, 2), 0);
    assert_eq!(c.started(), [element(array, 3)]);
    assert_eq!(c.state(dependent), "PEND");
    c.end(element(array, 3), 0);
    assert_eq!(c.started(), [dependent]);
}

#[test]
fn host_that_a_reconfiguration_adds_takes_waiting_jobs() {
    let mut c = cluster().hosts(1, 1).up();
    let first = c.submit("ann", "");
    let second = c.submit("ann", "");
    assert_eq!((c.running_on(first), c.queue("normal").run), (vec!["h1".into()], 1));
    c.reconfigure(cluster().hosts(2, 1));
    assert_eq!((c.running_on(second), c.queue("normal").run), (vec!["h2".into()], 2));
}

#[test]
fn job_beyond_a_user_limit_of_its_queue_starts_when_another_ends() {
    let lines = "PRIORITY = 40; UJOB_LIMIT = 2";
    let mut c = cluster().hosts(2, 4).queue("night", lines).up();
    let job = c.submit("ann", "-q night -n 2 -R 'span[hosts=1] rusage[mem=100]'");
    assert_eq!(c.running_on(job), ["h1", "h1"]);
    let next = c.submit("ann", "-q night");
    assert_eq!(c.reason(next), PendReason::QueueUserJobLimit);
    c.advance(60);
    c.end(job, 0);
    assert_eq!(c.state(next), "RUN");
}
