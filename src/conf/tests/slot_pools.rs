//! Queue-based fairshare: SLOT_POOL and what goes with it.

use super::{BATCH, ENVDIR, MapFiles, load, placed, site};

/// The example site with further lines of queue `normal`, of queue `idle`, and a section of
/// lsb.hosts.
fn with(normal: &str, idle: &str, section: &str) -> MapFiles {
    let mut files = site();
    let path = format!("{BATCH}/lsb.queues");
    for (name, lines) in [("QUEUE_NAME     = normal", normal), ("QUEUE_NAME     = idle", idle)] {
        files.edit(&path, name, &format!("{name}\n{lines}"));
    }
    let begin = "Begin HostGroup";
    files.edit(&format!("{BATCH}/lsb.hosts"), begin, &format!("{section}\n{begin}"));
    files
}

/// A wrong configuration: lines of the two queues, and the words that are told.
const WRONG: [(&str, &str, &str); 16] = [
    ("SLOT_POOL = a b", "", "error lsb.queues SLOT_POOL:13 bad value <a b>"),
    ("SLOT_POOL = a.b\nSLOT_SHARE = 5", "", "error lsb.queues SLOT_POOL:13 bad value <a.b>"),
    ("SLOT_POOL = a\nSLOT_SHARE = 0", "", "a number from 1 to 100 is wanted"),
    ("SLOT_POOL = a\nSLOT_SHARE = 101", "", "a number from 1 to 100 is wanted"),
    ("SLOT_POOL = a\nSLOT_SHARE = 50%", "", "bad value <50%> of SLOT_SHARE"),
    ("SLOT_POOL = a\nSLOT_SHARE = 5\nMAX_SLOTS_IN_POOL = 0", "", "bad value <0> of MAX_SLOTS"),
    ("SLOT_POOL = a\nSLOT_SHARE = 5\nUSE_PRIORITY_IN_POOL = x", "", "Y or N is wanted"),
    ("SLOT_SHARE = 5", "", "warning lsb.queues SLOT_SHARE:14 SLOT_SHARE has no effect"),
    ("SLOT_POOL = a", "", "warning lsb.queues SLOT_POOL:13 SLOT_POOL has no effect"),
    ("MAX_SLOTS_IN_POOL = 5", "", "warning lsb.queues MAX_SLOTS_IN_POOL:21"),
    ("USE_PRIORITY_IN_POOL = Y", "", "warning lsb.queues USE_PRIORITY_IN_POOL:24"),
    (
        "SLOT_POOL = a\nSLOT_SHARE = 50\nHOSTS = alpha",
        "SLOT_POOL = a\nSLOT_SHARE = 50",
        "the queues of slot pool <a> must use the same hosts",
    ),
    (
        "SLOT_POOL = a\nSLOT_SHARE = 50",
        "SLOT_POOL = a\nSLOT_SHARE = 50\nMAX_SLOTS_IN_POOL = 4",
        "MAX_SLOTS_IN_POOL has no effect: the first queue of slot pool <a> is <normal>",
    ),
    (
        "SLOT_POOL = a\nSLOT_SHARE = 50",
        "SLOT_POOL = a\nSLOT_SHARE = 50\nUSE_PRIORITY_IN_POOL = Y",
        "USE_PRIORITY_IN_POOL has no effect: the first queue of slot pool <a> is <normal>",
    ),
    (
        "SLOT_POOL = a\nSLOT_SHARE = 50\nPREEMPTION = PREEMPTIVE",
        "",
        "jobs of queue <normal> preempt others only while its slot pool <a> has a free slot",
    ),
    ("SLOT_POOL =\nSLOT_SHARE = 5", "", "warning lsb.queues SLOT_SHARE:14 SLOT_SHARE has no"),
];

#[test]
fn wrong_slot_pools_are_told_with_their_place() {
    for (normal, idle, want) in WRONG {
        let files = with(normal, idle, "");
        let (conf, diags) = load(&files, ENVDIR);
        let told: Vec<String> = diags.iter().map(|d| placed(&files, d)).collect();
        let line = told.iter().find(|line| line.contains(want));
        let line = line.unwrap_or_else(|| panic!("{want}: {told:?}"));
        assert_eq!(conf.is_some(), line.starts_with("warning"), "{told:?}");
    }
}

#[test]
fn pool_on_hosts_of_a_partition_is_an_error() {
    let partition = "Begin HostPartition\nHPART_NAME = part\nHOSTS = alpha\n\
                     USER_SHARES = [default, 1]\nEnd HostPartition\n";
    let files = with("SLOT_POOL = a\nSLOT_SHARE = 50", "", partition);
    let (conf, diags) = load(&files, ENVDIR);
    let told: Vec<String> = diags.iter().map(|d| placed(&files, d)).collect();
    let want = "SLOT_POOL:13 queue <normal> is in a slot pool, and its host <alpha> is in host \
                partition <part>";
    assert!(told.iter().any(|line| line.contains(want)), "{told:?}");
    assert!(conf.is_none());
}

#[test]
fn shares_of_a_pool_may_add_up_to_more_than_100() {
    let pool = "SLOT_POOL = a\nSLOT_SHARE = 80";
    let files = with(pool, pool, "");
    let (conf, diags) = load(&files, ENVDIR);
    let told: Vec<String> = diags.iter().map(|d| placed(&files, d)).collect();
    assert!(told.iter().all(|line| !line.contains("SLOT_")), "{told:?}");
    let pools = conf.unwrap().batch.queues;
    let shares = pools
        .iter()
        .filter_map(|queue| queue.fairshare_queues.slot_pool.share())
        .collect::<Vec<_>>();
    assert_eq!(shares, [("a", 80), ("a", 80)]);
}
