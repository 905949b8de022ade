//! Fairshare among groups of users, level by level: lsb.users(5), USER_SHARES; bsub(1), -G.

use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::model::JobRef;
use crate::model::reason::err;
use crate::proto::client::Col;

const GROUPS: &str = "Begin UserGroup\n\
    GROUP_NAME GROUP_MEMBER USER_SHARES\n\
    chip (ann bob) ([ann,3] [bob,1])\n\
    soft (cid dan eve) ()\n\
    both (bob fay) ([default,1])\n\
    End UserGroup\n";

fn site(hosts: u32, shares: &str) -> ClusterBuilder {
    let queue = format!("PRIORITY = 30; FAIRSHARE = USER_SHARES[{shares}]");
    let site = cluster().hosts(1, hosts).queue("normal", &queue).queue("first", "PRIORITY = 90");
    site.lsb_users(GROUPS)
}

/// All slots are taken while users submit their jobs; then all are free at once.
fn order_of(slots: u32, shares: &str, jobs: &[(&'static str, &str)]) -> (Cluster, Vec<String>) {
    let mut c = site(slots, shares).up();
    let blocker = c.submit("zoe", &format!("-q first -n {slots}"));
    c.started();
    let all: Vec<(JobRef, &str)> =
        jobs.iter().map(|(user, options)| (c.submit(user, options), *user)).collect();
    c.end(blocker, 0);
    let started = c.started();
    let user = |at: &JobRef| all.iter().find(|job| job.0 == *at).unwrap().1.to_string();
    let users = started.iter().map(user).collect();
    (c, users)
}

#[test]
fn groups_share_first_and_their_members_within_them() {
    let jobs = ["bob", "bob", "bob", "bob", "ann", "ann", "ann", "ann", "cid", "cid", "cid"];
    let jobs = jobs.map(|user| (user, ""));
    let (mut c, users) = order_of(8, "[chip,1] [soft,1]", &jobs);
    // both groups in turns, of chip ann with 3/3 and 3/6, then bob with 1/3, who came before her
    assert_eq!(users, ["ann", "cid", "ann", "cid", "bob", "cid", "ann", "ann"]);
    let row = |c: &mut Cluster, path: &str| {
        let row = c.share(path);
        format!("{} {} {:.3}", row.shares, row.started, row.priority)
    };
    // 1/(3*6), 1/(3*4), 3/(3*5), 1/(3*2)
    assert_eq!(row(&mut c, "normal/chip"), "1 5 0.056");
    assert_eq!(row(&mut c, "normal/soft"), "1 3 0.083");
    assert_eq!(row(&mut c, "normal/chip/ann"), "3 4 0.200");
    assert_eq!(row(&mut c, "normal/chip/bob"), "1 1 0.167");
}

#[test]
fn members_of_a_group_without_user_shares_are_served_in_the_order_of_their_jobs() {
    let jobs = ["cid", "cid", "dan", "cid", "eve"].map(|user| (user, ""));
    let (_, users) = order_of(5, "[soft,1]", &jobs);
    assert_eq!(users, ["cid", "cid", "dan", "cid", "eve"]);
    // each by an own account
    let (_, users) = order_of(5, "[soft@,1]", &jobs);
    assert_eq!(users, ["cid", "dan", "eve", "cid", "cid"]);
}

#[test]
fn default_is_for_each_other_user_and_others_for_all_together() {
    let jobs = ["gil", "gil", "hal", "ann"].map(|user| (user, ""));
    let (mut c, users) = order_of(4, "[chip,1] [default,1]", &jobs);
    assert_eq!(users, ["gil", "hal", "ann", "gil"]);
    assert_eq!(c.share("normal/gil").started, 2);
    let (mut c, users) = order_of(4, "[chip,1] [others,1]", &jobs);
    assert_eq!(users, ["gil", "ann", "gil", "hal"]);
    assert_eq!(c.share("normal/others").started, 3);
}

/// bob is in two groups: the one that has used less takes the job.
#[test]
fn a_user_in_two_groups_is_served_by_the_one_of_higher_priority() {
    let jobs = [("ann", ""), ("ann", ""), ("bob", ""), ("fay", ""), ("bob", "")];
    let (mut c, users) = order_of(5, "[chip,1] [both,1]", &jobs);
    assert_eq!(users, ["ann", "bob", "ann", "fay", "bob"]);
    assert_eq!([c.share("normal/chip").started, c.share("normal/both").started], [3, 2]);
    assert_eq!([c.share("normal/chip/bob").started, c.share("normal/both/bob").started], [1, 1]);
    // the log tells which
    c.restart();
    c.advance(10);
    assert_eq!([c.share("normal/chip/bob").started, c.share("normal/both/bob").started], [1, 1]);
}

#[test]
fn option_g_of_bsub_chooses_the_group_that_is_charged() {
    let jobs = [("bob", "-G chip"), ("bob", "-G chip"), ("bob", "-G both"), ("bob", "-G chip")];
    let (mut c, _) = order_of(4, "[chip,1] [both,1]", &jobs);
    assert_eq!([c.share("normal/chip/bob").started, c.share("normal/both/bob").started], [3, 1]);
    let job = c.submit("bob", "-G both -q normal");
    assert_eq!(c.column(job, Col::Charged), "");
    let first = JobRef { job: job.job - 4, idx: 0 };
    assert_eq!(c.column(first, Col::Charged), "/chip/bob");
    c.end(first, 0);
    assert_eq!(c.accounted().pop().unwrap().charged, "/chip/bob");
    assert_eq!(c.column(job, Col::Charged), "/both/bob");
    for (group, code) in [("soft", err::NOT_IN_USER_GROUP), ("nosuch", err::BAD_USER_GROUP)] {
        let refused = c.try_submit("bob", &format!("-G {group}")).unwrap_err();
        assert_eq!(refused.code, code);
    }
}

#[test]
fn default_user_group_is_charged_where_no_group_was_given() {
    let site = site(4, "[chip,1] [both,1]").param("DEFAULT_USER_GROUP = both");
    let mut c = site.up();
    for _ in 0..3 {
        c.submit("bob", "");
    }
    c.submit("bob", "-G chip");
    assert_eq!([c.share("normal/chip/bob").started, c.share("normal/both/bob").started], [1, 3]);
    // who is not in it is charged to the own group
    c.submit("ann", "");
    assert_eq!(c.share("normal/chip/ann").started, 0);
}

#[test]
fn a_group_that_waits_keeps_its_turn_while_others_start() {
    // soft asks for a host that is closed: chip is served, and soft first when it opens
    let mut c = site(2, "[chip,1] [soft,5]").host("h2", 1).up();
    c.badmin("hclose h2");
    let waits = c.submit("cid", "-m h2");
    let [first, second] = [c.submit("ann", ""), c.submit("bob", "")];
    assert_eq!(c.started(), [first, second]);
    let third = c.submit("ann", "");
    c.badmin("hopen h2");
    assert_eq!(c.started(), [waits]);
    c.end(first, 0);
    assert_eq!(c.started(), [third]);
}
