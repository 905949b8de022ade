//! bmig: started jobs that go back to the queue and run again before the others.

use super::cluster::{ADMINISTRATOR, Cluster, cluster, element};
use super::*;
use crate::model::event::Event;
use crate::model::reason::err;

const MIGRATE: Verb = Verb::Migrate { force: false };

/// bmig with these filters, as this user; the jobs with the outcomes.
fn bmig(c: &mut Cluster, user: &str, select: JobSelect) -> Vec<(u32, i32)> {
    let said = c.ask(user, ClientMsg::Control(Box::new(Control::of(MIGRATE, select))));
    let [Msg::Client(ClientMsg::Controlled { outcomes, .. })] = &said[..] else {
        panic!("{said:?}")
    };
    outcomes.iter().map(|o| (o.id.job, o.code)).collect()
}

#[test]
fn a_migrating_job_runs_again_before_all_that_wait() {
    let mut c = cluster().hosts(2, 1).up();
    let job = c.submit("ann", "-r -m 'h1 h2'");
    let other = c.submit("bob", "-m h2");
    let waiting: Vec<JobRef> = ["-sp 0", "-sp 0"].map(|o| c.submit("ann", o)).into();
    assert_eq!((c.running_on(job), c.running_on(other)), (vec!["h1".into()], vec!["h2".into()]));
    c.badmin("hclose h1");
    assert_eq!(c.control("ann", MIGRATE, job), [0]);
    assert_eq!(c.state(job), "PEND");
    c.restart();
    c.end(other, 0);
    assert_eq!(c.running_on(job), ["h2"]);
    assert_eq!(c.state(waiting[0]), "PEND");
    let order = c.start_orders().into_iter().rfind(|o| o.key.job == job.job).unwrap();
    assert!(order.rerun && order.key.attempt == 2, "LSB_RESTART");
    // a place that was due to the migration is not kept for an exit value
    c.requeue("ann", job);
    assert_eq!(c.state(waiting[0]), "PEND");
    assert_eq!(c.running_on(job), ["h2"], "it was submitted before them");
}

#[test]
fn a_job_keeps_its_place_with_mig2pend_and_goes_behind_all_with_requeue_to_bottom() {
    for (bottom, first) in [(false, "old"), (true, "new")] {
        let mut site = cluster().hosts(1, 1).lsf_conf("LSB_MIG2PEND=1");
        if bottom {
            site = site.lsf_conf("LSB_REQUEUE_TO_BOTTOM=1");
        }
        let mut c = site.up();
        let before = c.submit("ann", "-H");
        c.advance(5);
        let job = c.submit("ann", "-r");
        c.advance(5);
        let after = c.submit("ann", "");
        c.badmin("hclose h1");
        c.advance(5);
        assert_eq!(c.control("ann", MIGRATE, job), [0]);
        c.resume("ann", before);
        c.badmin("hopen h1");
        assert_eq!(c.state(before), "RUN", "{bottom}");
        c.end(before, 0);
        let running = if c.state(job) == "RUN" { "old" } else { "new" };
        assert_eq!((running, c.state(after) == "RUN"), (first, bottom));
    }
}

#[test]
fn a_job_that_was_migrated_and_is_requeued_later_has_its_old_place() {
    let mut c = cluster().hosts(1, 1).up();
    let older = c.submit("ann", "-H");
    c.advance(5);
    let job = c.submit("ann", "-r");
    assert_eq!(c.control("ann", MIGRATE, job), [0]);
    assert_eq!(c.state(job), "RUN");
    c.resume("ann", older);
    c.requeue("ann", job);
    assert_eq!((c.state(older), c.state(job)), ("RUN".into(), "PEND".into()));
}

#[test]
fn jobs_that_cannot_migrate_are_refused_and_nothing_is_logged() {
    let mut c = cluster().hosts(1, 9).up();
    let held = c.submit("ann", "-H -r");
    let once = c.submit("ann", "");
    let over = c.submit("ann", "-r");
    c.end(over, 0);
    let nobody = JobRef { job: 99, idx: 0 };
    for (at, want) in [
        (held, err::NOT_STARTED),
        (once, err::NOT_CHKPNT),
        (over, err::JOB_FINISH),
        (nobody, err::NO_JOB),
    ] {
        assert_eq!(c.control("ann", MIGRATE, at), [want], "{at}");
    }
    let mine = c.submit("ann", "-r");
    assert_eq!(c.control("bob", MIGRATE, mine), [err::PERMISSION]);
    assert_eq!(c.logged(|e| matches!(e, Event::JobMigrate(_))), 0);
    // under way
    c.hosts_wait();
    assert_eq!(c.control(ADMINISTRATOR, MIGRATE, mine), [0]);
    assert_eq!(c.control("ann", MIGRATE, mine), [err::MIGRATING]);
    let again = c.submit("ann", "-r");
    c.runs(again);
    c.requeue("ann", again);
    assert_eq!(c.control("ann", MIGRATE, again), [err::REQUEUED]);
    let killed = c.submit("ann", "-r");
    c.runs(killed);
    c.kill("ann", killed);
    assert_eq!(c.control("ann", MIGRATE, killed), [err::IN_PROGRESS]);
}

#[test]
fn a_kill_takes_a_migration_back() {
    let mut c = cluster().hosts(1, 1).up();
    let job = c.submit("ann", "-r");
    c.hosts_wait();
    assert_eq!(c.control("ann", MIGRATE, job), [0]);
    c.kill("ann", job);
    c.restart();
    c.ends_by(job, 9, 14);
    assert_eq!(c.state(job), "EXIT");
}

#[test]
fn filters_choose_among_started_jobs_and_none_means_the_newest() {
    let mut c = cluster().hosts(3, 3).up();
    let on = |c: &mut Cluster, host: &str| c.submit("ann", &format!("-r -m {host}")).job;
    let jobs = [on(&mut c, "h1"), on(&mut c, "h2"), on(&mut c, "h3")];
    let other = c.submit("ann", "-m h1").job;
    let held = c.submit("ann", "-r -H").job;
    let all = JobSelect { all: true, ..JobSelect::default() };
    let hosts = JobSelect { host: "h1 h3".into(), ..all.clone() };
    let mut got = bmig(&mut c, "ann", hosts);
    got.sort_unstable();
    assert_eq!(got, [(jobs[0], 0), (jobs[2], 0)]);
    let mut got = bmig(&mut c, "ann", all);
    got.sort_unstable();
    assert_eq!(got, jobs.map(|job| (job, 0)), "neither {other} nor {held}");
    assert_eq!(bmig(&mut c, "ann", JobSelect::default()), [(jobs[2], 0)]);
    let stopped = JobRef { job: jobs[1], idx: 0 };
    c.stop("ann", stopped);
    assert_eq!(
        bmig(&mut c, ADMINISTRATOR, JobSelect { user: "ann".into(), ..<_>::default() }).len(),
        1
    );
    assert_eq!(c.control("ann", MIGRATE, stopped), [0]);
    assert_eq!(c.state(stopped), "RUN");
}

#[test]
fn elements_migrate_by_themselves_and_a_repeated_request_does_nothing_more() {
    let mut c = cluster().hosts(1, 3).up();
    let array = c.submit("ann", "-r -J a[1-5]");
    c.badmin("hclose h1");
    let ids = vec![IdSel { job: array.job, elems: vec![(2, 2, 1)] }];
    let select = JobSelect { ids, ..JobSelect::default() };
    let control = Control { request: "once".into(), ..Control::of(MIGRATE, select) };
    for _ in 0..2 {
        c.ask("ann", ClientMsg::Control(Box::new(control.clone())));
    }
    assert_eq!(c.logged(|e| matches!(e, Event::JobMigrate(_))), 1);
    assert_eq!(
        (c.state(element(array, 2)), c.state(element(array, 1))),
        ("PEND".into(), "RUN".into())
    );
    c.restart();
    c.badmin("hopen h1");
    assert_eq!(c.state(element(array, 2)), "RUN");
    assert_eq!(
        (c.state(element(array, 4)), c.state(element(array, 5))),
        ("PEND".into(), "PEND".into())
    );
}

#[test]
fn a_job_suspended_for_longer_than_mig_migrates_if_it_may_run_again() {
    let lines = "PRIORITY = 40; r1m = 1/2; MIG = 2";
    let site = || cluster().hosts(2, 9).queue("q", lines).queue("other", "r1m = 1/2");
    let mut c = site().param("SBD_SLEEP_TIME = 5").up();
    let jobs = ["-q q -r", "-q q", "-q other -r"].map(|options| {
        let job = c.submit("ann", &format!("{options} -m h1"));
        assert_eq!(c.state(job), "RUN");
        job
    });
    let stopped = c.submit("ann", "-q q -r -m h1");
    c.stop("ann", stopped);
    c.load("h1", "r1m=5");
    c.advance(60);
    assert_eq!(jobs.map(|job| c.state(job)), ["SSUSP"; 3]);
    c.restart();
    c.load("h1", "r1m=5");
    c.advance(40);
    assert_eq!(jobs.map(|job| c.state(job)), ["SSUSP"; 3], "not yet");
    c.advance(60);
    assert_eq!(c.state(jobs[0]), "PEND");
    assert_eq!([c.state(jobs[1]), c.state(jobs[2])], ["SSUSP"; 2]);
    assert_eq!(c.state(stopped), "USUSP");
    c.load("h1", "r1m=0");
    c.advance(60);
    assert_eq!(c.running_on(jobs[0]), ["h1"]);
    assert_eq!(c.logged(|e| matches!(e, Event::JobMigrate(_))), 1);
}

#[test]
fn a_preempted_job_migrates_to_another_host() {
    let site = cluster().hosts(2, 1).queue("high", "PRIORITY = 60; PREEMPTION = PREEMPTIVE");
    let mut c = site.queue("low", "PRIORITY = 20; MIG = 2").up();
    let preempted = c.submit("ann", "-q low -r");
    assert_eq!(c.running_on(preempted), ["h1"]);
    let filler = c.submit("ann", "-q high -m h2");
    let high = c.submit("bob", "-q high -m h1");
    assert_eq!((c.state(preempted), c.state(high)), ("SSUSP".into(), "RUN".into()));
    c.advance(90);
    c.end(filler, 0);
    assert_eq!(c.state(preempted), "SSUSP");
    c.advance(60);
    assert_eq!(c.running_on(preempted), ["h2"]);
    assert_eq!((c.state(preempted), c.state(high)), ("RUN".into(), "RUN".into()));
    assert_eq!(c.logged(|e| matches!(e, Event::JobMigrate(_))), 1);
}

#[test]
fn threshold_of_the_job_is_above_that_of_the_queue_and_the_least_of_hosts_counts() {
    let hosts = "Begin Host\nHOST_NAME MXJ MIG\nh1 9 2\nh2 9 ()\nEnd Host";
    let lines = "PRIORITY = 40; r1m = 1/2; MIG = 4";
    let site = cluster().hosts(2, 9).lsb_hosts(hosts).queue("q", lines);
    let mut c = site.param("SBD_SLEEP_TIME = 5").up();
    let mut on = |options: &str| c.submit("ann", &format!("-q q -r {options}"));
    let (host, queue) = (on("-m h1"), on("-m h2"));
    let (longer, shorter, never) = (on("-m h2 -mig 6"), on("-m h2 -mig 1"), on("-m h1 -mig 6"));
    for at in ["h1", "h2"] {
        c.load(at, "r1m=5");
    }
    let pending = |c: &mut Cluster, secs: u64| {
        c.advance(secs);
        let all = [("host", host), ("queue", queue), ("longer", longer), ("shorter", shorter)];
        let found = all.iter().filter(|(_, job)| c.state(*job) == "PEND");
        found.map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(pending(&mut c, 50), "");
    assert_eq!(pending(&mut c, 50), "shorter");
    assert_eq!(pending(&mut c, 60), "host shorter");
    assert_eq!(c.state(never), "PEND", "its host has the lower threshold");
    assert_eq!(pending(&mut c, 120), "host queue shorter");
    assert_eq!(pending(&mut c, 130), "host queue longer shorter");
}
