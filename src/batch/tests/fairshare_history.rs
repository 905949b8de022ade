//! The use of ended jobs outlives mbatchd and its log: lsb.queues(5), FAIRSHARE; lsb.events(5),
//! LSF_SHARE_USED.

use super::cluster::{Cluster, cluster};
use crate::model::event::Event;

const QUEUE: &str = "PRIORITY = 30; FAIRSHARE = USER_SHARES[[ann, 3] [bob, 1] [default, 1]]; \
                     ENABLE_HIST_RUN_TIME = Y";

/// Users with jobs that have ended and others that run.
fn busy() -> Cluster {
    let mut c = cluster().hosts(2, 2).queue("normal", QUEUE).param("CLEAN_PERIOD = 600").up();
    for (user, cpu) in [("ann", 3000), ("bob", 100), ("cid", 777), ("ann", 0), ("bob", 3600)] {
        let job = c.submit(user, "");
        c.advance(3600);
        c.ends_after_cpu(job, cpu);
    }
    c.submit("ann", "");
    c.submit("dan", "-W 60");
    c.advance(300);
    c
}

/// Every account as it is listed.
fn listed(c: &mut Cluster) -> Vec<String> {
    let queue = c.queue("normal");
    let rows = queue.shares.iter().flat_map(|table| &table.rows);
    let row = |row: &crate::proto::client::ShareRow| {
        let used = format!("{:.3} {:.3}", row.cpu_secs, row.run_secs);
        format!("{} {} {:.6} {} {used}", row.name, row.shares, row.priority, row.started)
    };
    rows.map(row).collect()
}

#[test]
fn priorities_are_the_same_after_a_restart() {
    let mut c = busy();
    let before = listed(&mut c);
    assert!(before.len() == 4 && before[0].starts_with("ann 3 "), "{before:?}");
    let used = c.share("normal/bob");
    assert!(used.cpu_secs > 100.0 && used.run_secs > 1000.0, "{used:?}");
    c.restart();
    c.advance(0);
    assert_eq!(listed(&mut c), before);
    // once more, as a master that takes over reads it
    assert_eq!(listed(&mut c.recovered()), before);
}

#[test]
fn priorities_are_the_same_after_a_switch_of_the_log() {
    let mut c = busy();
    let before = listed(&mut c);
    // some jobs have left memory, and their records the log
    let used = |event: &Event| matches!(event, Event::ShareUsed(_));
    assert_eq!(c.logged(used), 0);
    c.switch_log();
    assert_eq!(c.logged(used), 3);
    c.restart();
    assert_eq!(listed(&mut c), before);
    // and after another one, with what has left memory since
    c.advance(3600);
    let before = listed(&mut c);
    c.switch_log();
    c.switch_log();
    c.restart();
    assert_eq!(listed(&mut c), before);
}

#[test]
fn use_stays_with_users_when_other_shares_are_configured() {
    let mut c = busy();
    let before = c.share("normal/bob");
    let more = "PRIORITY = 30; FAIRSHARE = USER_SHARES[[others, 2] [bob, 4]]; \
                ENABLE_HIST_RUN_TIME = Y";
    c.reconfigure(cluster().hosts(2, 2).queue("normal", more).param("CLEAN_PERIOD = 600"));
    let after = c.share("normal/bob");
    assert_eq!(after.shares, 4);
    assert!((after.cpu_secs - before.cpu_secs).abs() < 1e-6, "{before:?} {after:?}");
    assert!((after.run_secs - before.run_secs).abs() < 1e-6);
    assert!(c.share("normal/others").cpu_secs > 500.0);
}
