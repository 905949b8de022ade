//! The use of ended jobs outlives mbatchd and its log, and over time users get their shares:
//! lsb.queues(5), FAIRSHARE; lsb.events(5), LSF_SHARE_USED.

use super::cluster::{Cluster, cluster};
use crate::model::JobRef;
use crate::model::event::Event;
use std::collections::BTreeMap;

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

/// Random jobs of users who always have some waiting: the run time of each user, and the order of
/// starts.
fn simulated(seed: u64, hours: i64) -> (BTreeMap<&'static str, u64>, Vec<JobRef>) {
    let queue = "PRIORITY = 30; FAIRSHARE = USER_SHARES[[ann, 5] [bob, 3] [cid, 2]]; \
                 RUN_JOB_FACTOR = 0.05; ENABLE_HIST_RUN_TIME = Y; CPU_TIME_FACTOR = 0; \
                 HIST_HOURS = 0";
    let mut c = cluster().hosts(1, 4).queue("normal", queue).param("CLEAN_PERIOD = 60").up();
    let mut state = seed;
    let mut random = move |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let users = ["ann", "bob", "cid"];
    let (mut ends, mut order) = (BTreeMap::new(), Vec::new());
    let (mut used, mut waiting) = (BTreeMap::new(), BTreeMap::<&str, u32>::new());
    let mut owner = BTreeMap::new();
    let end = c.secs() + hours * 3600;
    while c.secs() < end {
        for user in users {
            while *waiting.entry(user).or_default() < 4 {
                let job = c.submit(user, "");
                owner.insert(job, user);
                *waiting.entry(user).or_default() += 1;
            }
        }
        for job in c.started() {
            let secs = 300 + random(3000);
            ends.insert((c.secs() + secs as i64, job), secs);
            *waiting.entry(owner[&job]).or_default() -= 1;
            order.push(job);
        }
        let Some(((at, job), secs)) = ends.pop_first() else { panic!("nothing runs") };
        c.advance(u64::try_from(at - c.secs()).unwrap_or(0));
        *used.entry(owner[&job]).or_default() += secs;
        c.ends_after_cpu(job, secs);
    }
    (used, order)
}

#[test]
fn use_follows_the_shares_within_two_percent_over_a_week() {
    let (used, _) = simulated(7, 7 * 24);
    let all: u64 = used.values().sum();
    for (user, share) in [("ann", 0.5), ("bob", 0.3), ("cid", 0.2)] {
        let got = used[user] as f64 / all as f64;
        assert!((got - share).abs() <= 0.02 * share, "{user}: {got:.4} of {all} s, not {share}");
    }
}

#[test]
fn the_same_input_gives_the_same_decisions() {
    assert_eq!(simulated(11, 8), simulated(11, 8));
}
