//! Fairshare between the users of a queue: lsb.queues(5), FAIRSHARE.

use super::cluster::{Cluster, cluster};
use crate::model::JobRef;
use crate::model::reason::err;

/// The users of jobs in the order in which they were started.
fn users_of(c: &mut Cluster, jobs: &[(JobRef, &'static str)]) -> Vec<&'static str> {
    let of = |at: &JobRef| jobs.iter().find(|job| job.0 == *at).map(|job| job.1);
    c.started().iter().filter_map(of).collect()
}

/// One host with a slot; `blocker` has it while others submit.
fn one_slot(queue: &str) -> (Cluster, JobRef) {
    let site = cluster().hosts(1, 1).queue("normal", queue).queue("first", "PRIORITY = 90");
    let mut c = site.up();
    let blocker = c.submit("zoe", "-q first");
    c.started();
    (c, blocker)
}

#[test]
fn users_of_equal_shares_take_turns() {
    let (mut c, blocker) = one_slot("PRIORITY = 30; FAIRSHARE = USER_SHARES[[default, 1]]");
    let mut jobs = Vec::new();
    for user in ["ann", "ann", "ann", "bob", "bob", "cid"] {
        jobs.push((c.submit(user, ""), user));
    }
    c.end(blocker, 0);
    let mut order = Vec::new();
    while order.len() < jobs.len() {
        c.advance(600);
        let started = c.started();
        for at in started {
            order.extend(jobs.iter().find(|job| job.0 == at).map(|job| job.1));
            c.advance(3600);
            // each job uses as much CPU time as it runs
            c.ends_after_cpu(at, 3600);
        }
    }
    assert_eq!(order, ["ann", "bob", "cid", "ann", "bob", "ann"]);
}

#[test]
fn starts_of_one_pass_follow_the_shares() {
    let queue = "PRIORITY = 30; FAIRSHARE = USER_SHARES[[ann, 2] [bob, 1]]";
    let site = cluster().hosts(1, 6).queue("normal", queue).queue("first", "PRIORITY = 90");
    let mut c = site.up();
    let blocker = c.submit("zoe", "-q first -n 6");
    c.started();
    let mut jobs: Vec<_> = (0..6).map(|_| (c.submit("bob", ""), "bob")).collect();
    jobs.extend((0..6).map(|_| (c.submit("ann", ""), "ann")));
    c.end(blocker, 0);
    // 2/3 : 1/3, 2/6 : 1/3 (bob came first), 2/6 : 1/6, 2/9 : 1/6, 2/12 : 1/6 (bob), 2/12 : 1/9
    assert_eq!(users_of(&mut c, &jobs), ["ann", "bob", "ann", "ann", "bob", "ann"]);
    assert_eq!([c.share("normal/ann").started, c.share("normal/bob").started], [4, 2]);
    assert_eq!([c.priority("normal/ann"), c.priority("normal/bob")], ["0.133", "0.111"]);
}

/// 1 / (0.7 CPU hours + 0.7 run hours + 3 (1 + jobs)); after HIST_HOURS a tenth of the CPU time.
#[test]
fn the_priority_is_that_of_the_formula() {
    let queue = "PRIORITY = 30; FAIRSHARE = USER_SHARES[[ann, 10] [others, 1]]";
    let mut c = cluster().hosts(1, 2).queue("normal", queue).up();
    assert_eq!(c.priority("normal/ann"), "3.333");
    let job = c.submit("ann", "");
    assert_eq!(c.priority("normal/ann"), "1.667");
    c.advance(2 * 3600);
    // 10 / (0.7 * 2 + 3 * 2)
    assert_eq!(c.priority("normal/ann"), "1.351");
    let row = c.share("normal/ann");
    assert_eq!((row.started, row.run_secs, row.cpu_secs), (1, 7200.0, 0.0));
    c.uses_cpu(job, 7200);
    // evenly used, 7200 s * (1 - 10^-0.4) / (0.4 ln 10) are left
    let row = c.share("normal/ann");
    assert_eq!(format!("{:.1}", row.cpu_secs), "4705.2");
    assert_eq!(format!("{:.3}", row.priority), "1.203");
    c.ends_after_cpu(job, 7200);
    let row = c.share("normal/ann");
    assert_eq!((row.started, row.run_secs), (0, 0.0));
    assert_eq!(format!("{:.1} {:.3}", row.cpu_secs, row.priority), "4705.2 2.554");
    c.advance(5 * 3600);
    assert_eq!(format!("{:.1}", c.share("normal/ann").cpu_secs), "470.5");
}

#[test]
fn a_user_without_a_share_is_refused() {
    let queue = "PRIORITY = 30; FAIRSHARE = USER_SHARES[[ann, 1] [staff@, 2]]";
    let users = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nstaff (bob)\nEnd UserGroup\n";
    let mut c = cluster().hosts(1, 2).queue("normal", queue).lsb_users(users).up();
    for user in ["ann", "bob"] {
        assert!(c.try_submit(user, "").is_ok());
    }
    for user in ["cid", "admin"] {
        assert_eq!(c.try_submit(user, "").unwrap_err().code, err::QUEUE_USE, "{user}");
    }
}
