//! APS_PRIORITY and QUEUE_GROUP that are wrong, each told with its place.

use super::{BATCH, ENVDIR, load, placed, site};

/// Lines of the queue, and the words that are told.
const WRONG: [(&str, &str); 21] = [
    ("APS_PRIORITY = 5", "APS_PRIORITY:16 unknown word <5>"),
    (
        "APS_PRIORITY = WIGHT[[FS,1]]",
        "APS_PRIORITY:16 unknown word <WIGHT> in APS_PRIORITY ~WEIGHT",
    ),
    ("APS_PRIORITY = WEIGHT[[FSS,1]]", "APS_PRIORITY:24 unknown word <FSS> in APS_PRIORITY ~FS"),
    (
        "APS_PRIORITY = WEIGHT[[MEM,0]]",
        "APS_PRIORITY:28 bad value <0> of APS_PRIORITY: a weight other than 0",
    ),
    ("APS_PRIORITY = WEIGHT[[MEM,x]]", "APS_PRIORITY:28 bad value <x>"),
    (
        "APS_PRIORITY = WEIGHT[[MEM 1]]",
        "APS_PRIORITY:24 bad value <MEM 1> of APS_PRIORITY: [factor, value] is wanted",
    ),
    (
        "APS_PRIORITY = WEIGHT[[MEM,1]",
        "APS_PRIORITY:23 bad value <[MEM,1]> of APS_PRIORITY: the bracket is not closed",
    ),
    ("APS_PRIORITY = WEIGHT[]", "APS_PRIORITY:23 bad value <]>"),
    ("APS_PRIORITY = WEIGHT", "APS_PRIORITY:16 bad value <WEIGHT>"),
    (
        "APS_PRIORITY = WEIGHT[[MEM,1][MEM,2]]",
        "APS_PRIORITY:31 bad value <MEM> of APS_PRIORITY: the factor stands there already",
    ),
    (
        "APS_PRIORITY = WEIGHT[[MEM,1]] WEIGHT[[FS,1]]",
        "APS_PRIORITY:32 bad value <WEIGHT> of APS_PRIORITY: each keyword",
    ),
    (
        "APS_PRIORITY = WEIGHT[[ADMIN,1]]",
        "APS_PRIORITY:24 bad value <ADMIN> of APS_PRIORITY: ADMIN has neither",
    ),
    (
        "APS_PRIORITY = LIMIT[[MEM,1]]",
        "APS_PRIORITY:16 bad value <LIMIT[[MEM,1]]> of APS_PRIORITY: at least one WEIGHT",
    ),
    (
        "APS_PRIORITY = WEIGHT[[MEM,1]] LIMIT[[MEM,-1]]",
        "APS_PRIORITY:43 bad value <-1> of APS_PRIORITY: a limit above 0",
    ),
    (
        "APS_PRIORITY = WEIGHT[[MEM,1]] GRACE_PERIOD[[MEM,0]]",
        "APS_PRIORITY:50 bad value <0> of APS_PRIORITY: a period",
    ),
    ("APS_PRIORITY = WEIGHT[[MEM,1]] GRACE_PERIOD[[MEM,1d]]", "APS_PRIORITY:50 bad value <1d>"),
    ("QUEUE_GROUP = big", "QUEUE_GROUP:15 queue <normal> has QUEUE_GROUP and no APS_PRIORITY"),
    (
        "APS_PRIORITY = WEIGHT[[JPRIORITY, 1]]\nQUEUE_GROUP = bigg",
        "QUEUE_GROUP:15 QUEUE_GROUP: no queue <bigg>; did you mean <big>?",
    ),
    (
        "APS_PRIORITY = WEIGHT[[JPRIORITY, 1]]\nQUEUE_GROUP = big big",
        "QUEUE_GROUP:15 QUEUE_GROUP: queue <big> is in a group already",
    ),
    (
        "APS_PRIORITY = WEIGHT[[JPRIORITY, 1]]\nDISPATCH_ORDER = QUEUE",
        "DISPATCH_ORDER:18 APS_PRIORITY does not go together with DISPATCH_ORDER",
    ),
    (
        "APS_PRIORITY = WEIGHT[[FS,1]]",
        "warning lsb.queues APS_PRIORITY:16 factor FS of APS_PRIORITY counts for nothing",
    ),
];

#[test]
fn wrong_absolute_priorities_are_told_with_their_place() {
    for (lines, want) in WRONG {
        let mut files = site();
        let name = "QUEUE_NAME     = normal";
        files.edit(&format!("{BATCH}/lsb.queues"), name, &format!("{name}\n{lines}"));
        let (conf, diags) = load(&files, ENVDIR);
        let told: Vec<String> = diags.iter().map(|d| placed(&files, d)).collect();
        assert!(told.iter().any(|line| line.contains(want)), "{want}: {told:?}");
        assert_eq!(conf.is_some(), want.starts_with("warning"), "{told:?}");
    }
}
