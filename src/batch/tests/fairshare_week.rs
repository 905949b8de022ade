//! Over a week of jobs, each share account gets its share of the slots within two percent, as long
//! as its users have jobs that wait: FAIRSHARE of a queue, of groups and their members, of the
//! hosts of a partition, and of several queues together (lsb.queues(5), lsb.hosts(5)).

use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::model::JobRef;
use std::collections::BTreeMap;

const HOURS: i64 = 7 * 24;
/// Jobs that each user has waiting in each queue.
const WAITING: u32 = 2;
/// Shortest job and longest, seconds.
const LENGTHS: (u64, u64) = (600, 4200);
/// Run time counts alone, and does not decay: lines of lsb.queues and of lsb.params.
const FACTORS: [&str; 5] = [
    "RUN_JOB_FACTOR = 0.05",
    "ENABLE_HIST_RUN_TIME = Y",
    "CPU_TIME_FACTOR = 0",
    "HIST_HOURS = 0",
    "CLEAN_PERIOD = 60",
];

fn with_factors(site: ClusterBuilder) -> ClusterBuilder {
    FACTORS.iter().fold(site, |site, line| site.param(line))
}

/// A user, and the options of the user's jobs.
type Source = (&'static str, &'static str);

/// Random jobs of users who always have some waiting: the run time of each user, and the order of
/// starts.
pub(super) fn simulated(
    mut c: Cluster,
    sources: &[Source],
    seed: u64,
    hours: i64,
) -> (BTreeMap<&'static str, u64>, Vec<JobRef>) {
    let mut state = seed;
    let mut random = move |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut ends, mut order, mut used) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
    let mut waiting = vec![0; sources.len()];
    let mut source_of = BTreeMap::new();
    let end = c.secs() + hours * 3600;
    while c.secs() < end {
        for (n, (user, options)) in sources.iter().enumerate() {
            while waiting[n] < WAITING {
                source_of.insert(c.submit(user, options), n);
                waiting[n] += 1;
            }
        }
        for job in c.started() {
            let secs = LENGTHS.0 + random(LENGTHS.1 - LENGTHS.0);
            ends.insert((c.secs() + secs as i64, job), secs);
            waiting[source_of[&job]] -= 1;
            order.push(job);
        }
        let Some(((at, job), secs)) = ends.pop_first() else { panic!("nothing runs") };
        c.advance(u64::try_from(at - c.secs()).unwrap_or(0));
        *used.entry(sources[source_of[&job]].0).or_default() += secs;
        c.ends_after_cpu(job, secs);
    }
    (used, order)
}

/// After a week each user has this share of all that was used, give or take two percent of it.
fn shares_are_kept(site: ClusterBuilder, sources: &[Source], shares: &[(&str, f64)]) {
    let mut c = with_factors(site).up();
    c.audit_seldom();
    let (used, _) = simulated(c, sources, 7, HOURS);
    let all: u64 = used.values().sum();
    assert_eq!(used.len(), shares.len());
    for (user, share) in shares {
        let got = used[user] as f64 / all as f64;
        println!("{user} {got:.4} of {share}");
        assert!((got - share).abs() <= 0.02 * share, "{user}: {got:.4} of {all} s, not {share}");
    }
}

#[test]
fn users_of_a_fairshare_queue_get_their_shares_over_a_week() {
    let fair = "PRIORITY = 30; FAIRSHARE = USER_SHARES[[ann, 5] [bob, 3] [cid, 2]]";
    let site = cluster().hosts(1, 2).queue("normal", fair);
    let shares = [("ann", 0.5), ("bob", 0.3), ("cid", 0.2)];
    shares_are_kept(site, &[("ann", ""), ("bob", ""), ("cid", "")], &shares);
}

#[test]
fn groups_and_their_members_get_their_shares_over_a_week() {
    let groups = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER USER_SHARES\n\
                  chip (ann bob) ([ann,3] [bob,1])\nsoft (cid dan) ([default,1])\n\
                  hard (chip zoe) ([chip,2] [zoe,1])\nEnd UserGroup\n";
    let fair = "PRIORITY = 30; FAIRSHARE = USER_SHARES[[hard, 3] [soft, 2]]";
    let site = cluster().hosts(1, 4).queue("normal", fair).lsb_users(groups);
    // of 3/5 two thirds are chip's, of which three quarters are ann's
    let shares = [("ann", 0.3), ("bob", 0.1), ("zoe", 0.2), ("cid", 0.2), ("dan", 0.2)];
    let sources = shares.map(|(user, _)| (user, ""));
    shares_are_kept(site, &sources, &shares);
}

#[test]
fn users_of_a_host_partition_get_their_shares_over_a_week() {
    let hosts = "Begin Host\nHOST_NAME MXJ\nh1 1\nh2 1\nEnd Host\n\
                 Begin HostPartition\nHPART_NAME = p1\nHOSTS = all\n\
                 USER_SHARES = [ann, 5] [bob, 3] [cid, 2]\nEnd HostPartition\n";
    let site = cluster().hosts(2, 1).lsb_hosts(hosts);
    // queues of one priority are served together, by what is used in both
    let site = site.queue("normal", "PRIORITY = 30").queue("other", "PRIORITY = 30");
    let shares = [("ann", 0.5), ("bob", 0.3), ("cid", 0.2)];
    let sources = [("ann", "-q other"), ("bob", ""), ("cid", ""), ("cid", "-q other")];
    shares_are_kept(site, &sources, &shares);
}

#[test]
fn users_of_several_queues_get_their_shares_over_a_week() {
    let fair = "FAIRSHARE = USER_SHARES[[ann, 2] [bob, 3] [cid, 5]]";
    let site = cluster()
        .hosts(2, 1)
        .queue("high", &format!("PRIORITY = 40; {fair}; FAIRSHARE_QUEUES = low"))
        .queue("low", "PRIORITY = 20");
    // jobs always wait in the queue of the larger priority: without DISPATCH_ORDER the user decides
    let sources = [("ann", "-q low"), ("bob", "-q high"), ("cid", "-q high"), ("cid", "-q low")];
    shares_are_kept(site, &sources, &[("ann", 0.2), ("bob", 0.3), ("cid", 0.5)]);
}

#[test]
fn the_same_input_gives_the_same_decisions() {
    let fair = "PRIORITY = 30; FAIRSHARE = USER_SHARES[[ann, 5] [bob, 3] [cid, 2]]";
    let run = || {
        let c = with_factors(cluster().hosts(1, 4).queue("normal", fair)).up();
        simulated(c, &[("ann", ""), ("bob", ""), ("cid", "")], 11, 8)
    };
    assert_eq!(run(), run());
}
