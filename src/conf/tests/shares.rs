//! Fairshare in several files at once: queues that share, host partitions, groups.

use super::{BATCH, ENVDIR, MapFiles, load, placed, site};

const FAIR: &str = "FAIRSHARE = USER_SHARES[[default, 1]]";

/// The example site with further lines of queue `normal`, sections of lsb.hosts and rows of groups.
fn with(lines: &str, sections: &str, groups: &str) -> MapFiles {
    let mut files = site();
    let name = "QUEUE_NAME     = normal";
    files.edit(&format!("{BATCH}/lsb.queues"), name, &format!("{name}\n{lines}"));
    let begin = "Begin HostGroup";
    files.edit(&format!("{BATCH}/lsb.hosts"), begin, &format!("{sections}\n{begin}"));
    if !groups.is_empty() {
        let section = format!(
            "Begin UserGroup\nGROUP_NAME GROUP_MEMBER USER_SHARES\n{groups}\nEnd UserGroup\n"
        );
        files.put(&format!("{BATCH}/lsb.users"), section);
    }
    files
}

fn partition(name: &str, hosts: &str, shares: &str) -> String {
    let line = |key: &str, value: &str| match value.is_empty() {
        true => String::new(),
        false => format!("{key} = {value}\n"),
    };
    format!(
        "Begin HostPartition\n{}{}{}End HostPartition\n",
        line("HPART_NAME", name),
        line("HOSTS", hosts),
        line("USER_SHARES", shares)
    )
}

/// A wrong configuration: lines of the queue, sections of lsb.hosts, rows of groups, and the words
/// that are told.
type Wrong = (String, String, &'static str, &'static str);

fn all_are_told(rows: Vec<Wrong>) {
    for (lines, sections, groups, want) in rows {
        let files = with(&lines, &sections, groups);
        let (conf, diags) = load(&files, ENVDIR);
        let told: Vec<String> = diags.iter().map(|d| placed(&files, d)).collect();
        assert!(told.iter().any(|line| line.contains(want)), "{want}: {told:?}");
        assert_eq!(conf.is_some(), want.starts_with("warning"), "{told:?}");
    }
}

#[test]
fn wrong_queues_that_share_are_told_with_their_place() {
    all_are_told(vec![
        (
            format!("{FAIR}\nFAIRSHARE_QUEUES = bigg"),
            String::new(),
            "",
            "FAIRSHARE_QUEUES:20 FAIRSHARE_QUEUES: no queue <bigg>; did you mean <big>?",
        ),
        (
            "FAIRSHARE_QUEUES = big".into(),
            String::new(),
            "",
            "FAIRSHARE_QUEUES:20 queue <normal> has FAIRSHARE_QUEUES and no FAIRSHARE",
        ),
        (
            format!("{FAIR}\nFAIRSHARE_QUEUES = big big\nDISPATCH_ORDER = QUEUE"),
            String::new(),
            "",
            "queue <big> is under another queue already",
        ),
        (
            format!("{FAIR}\nFAIRSHARE_QUEUES = idle"),
            String::new(),
            "",
            "warning lsb.queues PRIORITY:18 the priority of queue <big> lies between those of the \
             group of queue <normal>",
        ),
        (
            format!("{FAIR}\nDISPATCH_ORDER = USER"),
            String::new(),
            "",
            "bad value <USER> of DISPATCH_ORDER: one of QUEUE is wanted",
        ),
    ]);
}

#[test]
fn wrong_partitions_and_groups_are_told_with_their_place() {
    let (all, some) = ("[default, 1]", "[ann, 2]");
    all_are_told(vec![
        (
            String::new(),
            partition("", "alpha", all),
            "",
            "error lsb.hosts Begin:7 host partition without HPART_NAME",
        ),
        (
            String::new(),
            partition("p", "", all),
            "",
            "error lsb.hosts Begin:7 host partition <p> has no hosts",
        ),
        (String::new(), partition("p", "nosuch", all), "", "host partition <p> has no hosts"),
        (String::new(), partition("p", "alpha", ""), "", "host partition <p> has no USER_SHARES"),
        (String::new(), partition("p", "alpha", "[ann 1]"), "", "bad value <ann 1> of USER_SHARES"),
        (
            String::new(),
            partition("p", "alpha", all) + &partition("p", "beta", some),
            "",
            "host partition <p> is given twice",
        ),
        (
            String::new(),
            partition("p", "alpha", all) + &partition("q", "all", some),
            "",
            "host <alpha> is in host partition <p> already, and in <q>",
        ),
        (
            String::new(),
            partition("p", "alpha", all),
            "",
            "warning lsb.queues Begin:7 queue <normal> uses hosts inside and outside",
        ),
        (
            String::new(),
            String::new(),
            "a (ann) ([b,1])\nb (bob) ([a,1])",
            "USER_SHARES of group <a> lead to itself",
        ),
        (
            String::new(),
            String::new(),
            "a (ann) ([a,1])",
            "USER_SHARES of group <a> lead to itself",
        ),
    ]);
}
