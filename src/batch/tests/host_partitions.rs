//! Fairshare of hosts (lsb.hosts(5), HostPartition) and of several queues (lsb.queues(5),
//! FAIRSHARE_QUEUES).

use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::model::reason::{PendReason, err};
use crate::proto::client::ShareRow;

/// h1 and h2 of two slots each; what is in a partition.
fn site(hosts: &str, shares: &str) -> ClusterBuilder {
    let file = format!(
        "Begin Host\nHOST_NAME MXJ\nh1 2\nh2 2\nEnd Host\n\n\
         Begin HostPartition\nHPART_NAME = p1\nHOSTS = {hosts}\nUSER_SHARES = {shares}\n\
         End HostPartition\n"
    );
    cluster().hosts(2, 2).lsb_hosts(&file)
}

fn account(c: &mut Cluster, name: &str) -> ShareRow {
    let all = c.partitions(&["p1"]).unwrap();
    let row = all[0].shares[0].rows.iter().find(|row| row.name == name);
    row.unwrap_or_else(|| panic!("{all:?}")).clone()
}

#[test]
fn users_of_a_partition_have_one_priority_in_all_queues() {
    let site = site("all", "[ann, 1] [bob, 1] [zoe, 1]");
    let site = site.queue("high", "PRIORITY = 40").queue("low", "PRIORITY = 20");
    let mut c = site.up();
    let first = c.submit("ann", "-q low -n 3");
    let blocker = c.submit("zoe", "-q high");
    assert_eq!(c.started(), [first, blocker]);
    // in the queue of lower priority ann has used more than bob, who came later
    let jobs = [c.submit("ann", "-q low"), c.submit("bob", "-q low")];
    c.end(blocker, 0);
    assert_eq!(c.started(), [jobs[1]]);
    // of queues the one of higher priority comes first
    let of_high = c.submit("ann", "-q high");
    c.end(jobs[1], 0);
    assert_eq!(c.started(), [of_high]);
    assert_eq!((account(&mut c, "ann").started, account(&mut c, "bob").started), (4, 0));
    assert_eq!(format!("{:.3}", account(&mut c, "ann").priority), "0.067");
}

#[test]
fn a_user_without_a_share_gets_no_slot_of_a_partition() {
    let mut c = site("h1", "[ann, 1]").up();
    let job = c.submit("bob", "-m h1");
    assert!(c.started().is_empty());
    assert!(c.reasons(job).contains(&(PendReason::NoShare, vec!["h1".to_string()])));
    let elsewhere = c.submit("bob", "");
    assert_eq!(c.running_on(elsewhere), ["h2"]);
    let own = c.submit("ann", "-m h1");
    assert_eq!(c.running_on(own), ["h1"]);
    assert_eq!(account(&mut c, "ann").started, 1);
}

#[test]
fn bhpart_names_each_partition_once_and_refuses_others() {
    let mut c = site("h1 h2", "[default, 1]").up();
    let rows = c.partitions(&["p1", "p1"]).unwrap();
    assert_eq!((rows.len(), rows[0].name.as_str()), (1, "p1"));
    assert_eq!(rows[0].hosts, ["h1", "h2"]);
    assert_eq!(rows[0].shares[0].path, "p1/");
    assert_eq!(c.partitions(&["p2"]), Err(err::BAD_HPART));
    assert_eq!(cluster().hosts(1, 1).up().partitions(&[]), Ok(Vec::new()));
}

#[test]
fn use_of_a_partition_outlives_a_restart_and_a_switch_of_the_log() {
    let mut c = site("all", "[ann, 1] [bob, 1]").param("CLEAN_PERIOD = 60").up();
    let job = c.submit("ann", "-n 2");
    c.advance(3600);
    c.ends_after_cpu(job, 5000);
    c.advance(600);
    let before = account(&mut c, "ann");
    assert!(before.cpu_secs > 3000.0, "{before:?}");
    c.restart();
    assert_eq!(account(&mut c, "ann"), before);
    c.switch_log();
    c.restart();
    let after = account(&mut c, "ann");
    assert!((after.cpu_secs - before.cpu_secs).abs() < 1e-6, "{before:?} {after:?}");
}

#[test]
fn queues_under_another_one_share_by_its_tree() {
    let fair = "PRIORITY = 40; FAIRSHARE = USER_SHARES[[ann, 1] [bob, 1] [zoe, 1]]; \
                FAIRSHARE_QUEUES = low; DISPATCH_ORDER = QUEUE";
    let site = cluster().hosts(1, 3).queue("high", fair).queue("low", "PRIORITY = 20");
    let mut c = site.up();
    let of_high = c.submit("ann", "-q high -n 2");
    let blocker = c.submit("zoe", "-q high");
    assert_eq!(c.started(), [of_high, blocker]);
    // what ann has in one queue counts in the other
    let jobs = [c.submit("ann", "-q low"), c.submit("bob", "-q low")];
    c.end(blocker, 0);
    assert_eq!(c.started(), [jobs[1]]);
    assert_eq!(c.queue("low").shares[0].path, "high/");
    assert_eq!(c.share("high/bob").started, 1);
    // users without a share are refused there, too
    assert_eq!(c.try_submit("cid", "-q low").unwrap_err().code, err::QUEUE_USE);
}
