//! The smallest changes after which a pending job could start (`bjobs -l`).

use super::JobRef;
use super::cluster::{Cluster, cluster};
use crate::model::reason::PendReason;
use crate::proto::client::Col;
use serde_json::{Value, json};

fn needs(c: &mut Cluster, at: JobRef) -> Value {
    c.column(at, Col::StartNeeds)
}

fn without(reason: PendReason) -> Value {
    json!([-f64::from(reason.number()), ""])
}

#[test]
fn job_on_full_hosts_needs_one_slot_of_any() {
    let mut c = cluster().hosts(2, 1).up();
    c.submit("ann", "");
    c.submit("ann", "");
    let waits = c.submit("ann", "");
    assert_eq!(needs(&mut c, waits), json!([[["h1", [[1.0, ""]]]], [["h2", [[1.0, ""]]]]]));
}

#[test]
fn job_that_lacks_memory_is_told_how_much() {
    let mut c = cluster().hosts(2, 4).up();
    c.load("h1", "mem=500");
    c.load("h2", "mem=900");
    let waits = c.submit("ann", "-R 'rusage[mem=1000]'");
    let ways = json!([[["h2", [[100.0, "mem"]]]], [["h1", [[500.0, "mem"]]]]]);
    assert_eq!(needs(&mut c, waits)[0].as_array().map(Vec::len), Some(1));
    let told = needs(&mut c, waits);
    let both = [told[0].clone(), told[1].clone()];
    assert!(both.contains(&ways[0]) && both.contains(&ways[1]), "{told}");
}

#[test]
fn host_that_lacks_least_is_told_first_and_foreign_hosts_last() {
    let site = cluster().hosts(3, 1).queue("own", "PRIORITY = 40; HOSTS = h1 h2");
    let mut c = site.up();
    c.badmin("hclose h1");
    let running = c.submit("ann", "-q own");
    assert_eq!(c.running_on(running), ["h2"]);
    let waits = c.submit("ann", "-q own");
    let ways = json!([
        [["h2", [[1.0, ""]]]],
        [["h1", [without(PendReason::HostClosed)]]],
        [["h3", [without(PendReason::NotQueueHost)]]]
    ]);
    assert_eq!(needs(&mut c, waits), ways);
}

#[test]
fn all_that_keeps_a_job_from_a_host_is_told_together() {
    let mut c = cluster().hosts(1, 1).up();
    c.submit("ann", "");
    c.badmin("hclose h1");
    c.load("h1", "mem=10");
    let waits = c.submit("ann", "-R 'rusage[mem=50]'");
    let all = json!([[["h1", [without(PendReason::HostClosed), [1.0, ""], [40.0, "mem"]]]]]);
    assert_eq!(needs(&mut c, waits), all);
}

#[test]
fn limit_of_the_queue_is_told_apart_from_hosts() {
    let mut c = cluster().hosts(1, 4).queue("normal", "PRIORITY = 30; QJOB_LIMIT = 1").up();
    c.submit("ann", "");
    let waits = c.submit("ann", "");
    let way = json!([[[null, [without(PendReason::QueueJobLimit)]]]]);
    assert_eq!(needs(&mut c, waits), way);
}

#[test]
fn parallel_job_is_told_the_slots_that_it_lacks_on_each_host() {
    let mut c = cluster().hosts(3, 4).up();
    let first = c.submit("ann", "-n 4");
    let second = c.submit("ann", "-n 2");
    let third = c.submit("ann", "-n 3");
    assert_eq!(c.started(), [first, second, third]);
    let waits = c.submit("ann", "-n 6");
    let told = needs(&mut c, waits);
    let lacking = told[0].as_array().unwrap().iter().map(|part| part[1][0][0].as_f64().unwrap());
    assert_eq!(lacking.sum::<f64>(), 3.0, "{told}");
}

#[test]
fn job_that_is_not_ready_needs_an_end_of_that() {
    let mut c = cluster().hosts(1, 4).up();
    let first = c.submit("ann", "");
    let waits = c.submit("ann", &format!("-w done({})", first.job));
    assert_eq!(needs(&mut c, waits), json!([[[null, [without(PendReason::Dependency)]]]]));
    assert_eq!(needs(&mut c, first), json!([]));
}
