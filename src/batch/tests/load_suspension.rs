//! Jobs that wait for the load of their hosts: after bresume, on several hosts, beside forced ones.

use super::cluster::{ADMINISTRATOR, Cluster, cluster};
use super::*;
use crate::model::reason::susp;
use crate::proto::force::Force;

fn site(hosts: usize) -> Cluster {
    let lines = "PRIORITY = 20; r1m = 1/3";
    cluster()
        .hosts(hosts, 9)
        .queue("lo", lines)
        .queue("free", "PRIORITY = 30")
        .param("SBD_SLEEP_TIME = 15")
        .up()
}

/// The element is in this state for this suspending reason.
fn stands(c: &mut Cluster, at: JobRef, state: &str, why: u32) -> bool {
    c.state(at) == state && (state == "RUN" || c.suspended_for(at) == why)
}

#[test]
fn job_that_bresume_lets_go_waits_until_the_load_allows_it() {
    let mut c = site(1);
    let jobs: Vec<JobRef> = (0..2).map(|_| c.submit("ann", "-q lo")).collect();
    c.load("h1", "r1m=2");
    c.stop("ann", jobs[0]);
    c.orders();
    c.resume("ann", jobs[0]);
    assert!(stands(&mut c, jobs[0], "SSUSP", susp::RESUMED));
    assert_eq!(c.orders(), []);
    assert_eq!(c.recovered().state(jobs[0]), "SSUSP");
    c.advance(40);
    c.load("h1", "r1m=2");
    assert!(stands(&mut c, jobs[0], "SSUSP", susp::RESUMED));
    c.load("h1", "r1m=0");
    assert_eq!((c.state(jobs[0]), c.state(jobs[1])), ("RUN".into(), "RUN".into()));
    // within its thresholds it goes on at once
    c.advance(20);
    c.stop("ann", jobs[1]);
    c.resume("ann", jobs[1]);
    assert_eq!(c.state(jobs[1]), "RUN");
}

#[test]
fn owner_cannot_resume_against_the_load_what_the_load_has_suspended() {
    let mut c = site(1);
    let jobs: Vec<JobRef> = (0..2).map(|_| c.submit("ann", "-q lo")).collect();
    c.load("h1", "r1m=5");
    let suspended = jobs.into_iter().find(|job| c.state(*job) == "SSUSP").unwrap();
    c.load("h1", "r1m=2");
    c.advance(20);
    c.orders();
    c.resume("ann", suspended);
    assert_eq!((c.state(suspended).as_str(), c.orders()), ("SSUSP", vec![]));
}

#[test]
fn jobs_that_no_threshold_concerns_are_resumed_all_at_once() {
    let mut c = site(1);
    let jobs: Vec<JobRef> = (0..3).map(|_| c.submit("ann", "-q free")).collect();
    c.load("h1", "r1m=9");
    jobs.iter().for_each(|job| c.stop("ann", *job));
    jobs.iter().for_each(|job| c.resume("ann", *job));
    assert!(jobs.iter().all(|job| c.state(*job) == "RUN"));
}

#[test]
fn job_on_several_hosts_goes_on_when_the_load_of_all_of_them_allows_it() {
    for overloaded in ["h1", "h2"] {
        let mut c = site(2);
        c.submit("ann", "-q free -m h1");
        c.submit("ann", "-q free -m h2");
        let wide = c.submit("ann", "-q lo -n 2 -R span[ptile=1]");
        assert_eq!(c.state(wide), "RUN");
        c.load(overloaded, "r1m=5");
        assert_eq!(c.state(wide), "SSUSP", "{overloaded}");
        c.orders();
        for _ in 0..4 {
            c.advance(20);
            c.load("h1", if overloaded == "h1" { "r1m=5" } else { "r1m=0" });
            c.load("h2", if overloaded == "h2" { "r1m=5" } else { "r1m=0" });
        }
        assert_eq!((c.state(wide).as_str(), c.orders()), ("SSUSP", vec![]), "{overloaded}");
        c.advance(20);
        c.load(overloaded, "r1m=0");
        c.advance(20);
        assert_eq!(c.state(wide), "RUN", "{overloaded}");
    }
}

#[test]
fn job_beside_a_forced_one_is_not_alone_on_its_host() {
    let mut c = site(1);
    let job = c.submit("ann", "-q lo");
    let forced = c.submit("ann", "-q lo -H");
    let how = Force { hosts: vec![("h1".into(), 0)], never_suspended: true, ..Force::default() };
    assert_eq!(c.control(ADMINISTRATOR, Verb::Force(how), forced), [0]);
    // nobody sits there
    c.load("h1", "r1m=5 it=100");
    assert_eq!((c.state(job).as_str(), c.state(forced).as_str()), ("SSUSP", "RUN"));
}
