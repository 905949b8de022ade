//! Failed starts: the hosts and users concerned, the time of the next try, the last try.

use super::cluster::{Cluster, ClusterBuilder, cluster, element, elements};
use super::*;
use crate::batch::lifecycle::retry::START_TRIES;
use crate::model::event::JobStatus;
use crate::model::reason::PendReason;
use crate::model::specfield::SpecField;

/// One host with one slot, that does nothing by itself.
fn one_host() -> ClusterBuilder {
    cluster().hosts(1, 1)
}

fn silent(site: ClusterBuilder) -> Cluster {
    let mut c = site.up();
    c.hosts_wait();
    c
}

/// A queue that takes jobs of exit value 5 back.
fn takes_back() -> ClusterBuilder {
    cluster().hosts(2, 2).queue("normal", "PRIORITY = 30; REQUEUE_EXIT_VALUES = 5")
}

/// The text of the first reason of a waiting job beyond its code.
fn note(c: &mut Cluster, at: JobRef) -> String {
    let why = c.reason(at);
    c.reason_about(at, why).unwrap_or_default()
}

impl Rig {
    /// The pending reasons of an element: each with the number of hosts.
    pub fn why_at(&self, at: JobRef) -> Vec<(PendReason, usize)> {
        self.mbd.sched.reasons(&self.mbd.view(), at, 0).iter().map(|r| (r.0, r.1.len())).collect()
    }

    /// A start that its host could not make.
    fn fails(&mut self, conn: ConnId, key: JobKey, why: PendReason, note: &str) {
        let phase = AttemptPhase::Failed { reason: why.number() };
        let t = TaskState { key, phase, note: note.into(), ..TaskState::default() };
        self.step(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(t))) });
    }
}

const MISSING: &str = "input file </root/in>: Permission denied";

/// sbatchd would take an order with a known attempt number for a repeated one.
#[test]
fn attempt_number_of_a_lost_job_start_is_not_given_again() {
    let c = || {
        let mut c = silent(one_host());
        let job = c.submit("ann", "");
        assert_eq!(c.start_orders()[0].key.attempt, 1);
        (c, job)
    };
    let next = |c: &mut Cluster| {
        c.lose_records(|event| matches!(event, Event::JobStart(_)));
        c.restart();
        c.advance(100);
        c.start_orders().iter().map(|order| order.key.attempt).collect::<Vec<_>>()
    };
    // the record that puts it back, and the one of its processes, know the number
    let (mut c1, job) = c();
    c1.start_fails(job, PendReason::JobOpenFiles, MISSING);
    assert_eq!(next(&mut c1), [2]);
    let (mut c2, job) = c();
    c2.runs(job);
    assert_eq!(next(&mut c2), [2]);
    // an element that nothing else is known of
    let mut c3 = silent(cluster().hosts(1, 2));
    let array = c3.submit("ann", "-J a[1-2]");
    c3.start_fails(element(array, 1), PendReason::JobOpenFiles, MISSING);
    assert!(next(&mut c3).contains(&2));
}

#[test]
fn ended_job_with_an_incomplete_history_is_held_once_it_is_requeued() {
    let mut c = silent(one_host());
    let job = c.submit("ann", "");
    c.runs(job);
    c.end(job, 3);
    c.complaints();
    c.restart_after_damage(&[job]);
    let text = format!("job <{job}> has ended; a requeue will hold it: its JOB_START is lost");
    assert_eq!(c.complaints(), [text]);
    assert_eq!(c.state(job), "EXIT");
    c.started();
    let requeue = Verb::Requeue(Requeue { exit: true, ..Requeue::default() });
    assert_eq!(c.control("ann", requeue, job), [0]);
    assert_eq!((c.reason(job), c.started()), (PendReason::Damaged, vec![]));
    // and after a restart, which finds the record of it
    c.restart();
    assert_eq!((c.reason(job), c.started()), (PendReason::Damaged, vec![]));
    c.resume("admin", job);
    assert_eq!(c.started(), [job]);
}

#[test]
fn job_that_cannot_start_holds_back_none_of_its_likes() {
    for reason in
        [PendReason::JobOpenFiles, PendReason::JobEnv, PendReason::ExecInit, PendReason::PreExec]
    {
        let mut c = silent(one_host());
        let bad = c.submit("ann", "");
        let like = c.submit("ann", "");
        assert_eq!(c.started(), [bad]);
        c.start_fails(bad, reason, MISSING);
        assert_eq!(c.started(), [like], "{reason:?}");
        // nor are those that wait told its reason
        let third = c.submit("ann", "");
        assert_eq!(c.reasons(third), [(PendReason::HostFull, vec!["h1".into()])]);
        assert!(note(&mut c, bad).contains(MISSING), "{}", note(&mut c, bad));
        assert_eq!(note(&mut c, third), "");
    }
}

#[test]
fn element_that_cannot_start_holds_back_none_of_its_array() {
    for parts in [false, true] {
        let mut c = silent(one_host());
        let hold = c.submit("ann", "");
        let array = c.submit("ann", "-J 'a[1-4]'");
        if parts {
            let all = elements(array, 1, 4);
            assert_eq!(c.modify("ann", all, &[SpecField::Project], "-P p"), 0);
        }
        c.runs(hold);
        c.started();
        c.end(hold, 0);
        for idx in 1..=4 {
            let at = element(array, idx);
            assert_eq!(c.started(), [at], "{parts}");
            if idx % 2 == 1 {
                c.start_fails(at, PendReason::JobOpenFiles, MISSING);
            } else {
                c.runs(at);
                c.end(at, 0);
            }
        }
        assert_eq!(c.started(), []);
        // on the one host after twice the first pause, in their order
        c.advance(9);
        assert_eq!(c.started(), []);
        c.advance(1);
        let orders = c.start_orders();
        let attempts: Vec<_> = orders.iter().map(|o| (o.key.idx, o.key.attempt)).collect();
        assert_eq!(attempts, [(1, 2)], "{parts}");
        c.runs(element(array, 1));
        c.end(element(array, 1), 0);
        assert_eq!(c.started(), [element(array, 3)]);
        let states = [1, 3].map(|idx| c.state(element(array, idx)));
        assert_eq!(states, ["DONE", "RUN"]);
    }
}

#[test]
fn start_that_failed_is_tried_on_another_host_first() {
    let mut c = conf();
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(1);
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let (first, key) = r.starts()[0];
    r.fails(first, key, PendReason::ExecInit, "Too many open files");
    assert!(r.starts().is_empty());
    r.later(4);
    assert!(r.starts().is_empty());
    r.later(1);
    let (second, key) = r.starts()[0];
    assert!(first != second);
    // it runs there: what failed before is not counted on
    r.report(second, key, AttemptPhase::Running);
    assert_eq!((r.stat(id, 0), r.mbd.state.tries().is_empty()), ("RUN", true));
}

#[test]
fn job_that_never_starts_is_held_with_a_mail_after_growing_pauses() {
    let mut c = silent(one_host());
    let job = c.submit("ann", "");
    let mut pauses = Vec::new();
    for n in 1..=START_TRIES {
        let mut waited = 0;
        let attempt = loop {
            match c.start_orders().first() {
                Some(order) => break order.key.attempt,
                None => {
                    c.advance(1);
                    waited += 1;
                }
            }
            assert!(waited < 2000, "try {n}");
        };
        pauses.push(waited);
        assert_eq!(attempt, n);
        assert_eq!(c.mails(), [""; 0]);
        c.start_fails(job, PendReason::JobOpenFiles, MISSING);
        if n == 4 {
            // a restart of mbatchd in between counts on, and waits on
            c.restart();
            assert_eq!(c.started(), []);
        }
    }
    assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
    assert_eq!((c.state(job), c.reason(job)), ("PSUSP".into(), PendReason::StartLimit));
    let mails = c.mails();
    assert_eq!(mails.len(), 1, "{mails:?}");
    assert!(mails[0].contains(MISSING) && mails[0].contains(&format!("bresume {job}")));
    assert!(note(&mut c, job).contains(MISSING), "{}", note(&mut c, job));
    // who resumes it has it tried as often again
    c.resume("ann", job);
    assert_eq!(c.started(), [job]);
    c.start_fails(job, PendReason::JobOpenFiles, MISSING);
    assert_eq!(c.state(job), "PEND");
}

#[test]
fn restart_within_a_pause_waits_for_the_rest_of_it() {
    let mut c = silent(one_host());
    let job = c.submit("ann", "");
    c.start_fails(job, PendReason::JobOpenFiles, MISSING);
    c.advance(6);
    c.started();
    c.restart();
    assert!(note(&mut c, job).contains(MISSING), "{}", note(&mut c, job));
    c.advance(3);
    assert_eq!(c.started(), []);
    c.advance(1);
    assert_eq!(c.started(), [job]);
}

#[test]
fn job_that_cannot_start_is_tried_at_once_when_it_is_changed() {
    let mut c = silent(one_host());
    let job = c.submit("ann", "");
    c.start_fails(job, PendReason::JobOpenFiles, MISSING);
    c.started();
    assert_eq!(c.modify("ann", job, &[SpecField::InFile], "-i /tmp/in"), 0);
    assert_eq!(c.started(), [job]);
}

#[test]
fn clock_that_is_put_back_does_not_keep_a_job_waiting() {
    let mut c = silent(one_host());
    let job = c.submit("ann", "");
    c.start_fails(job, PendReason::JobOpenFiles, MISSING);
    c.started();
    c.clock_back(86_400);
    c.advance(11);
    assert_eq!(c.started(), [job]);
}

/// LSF asks for a pre-execution command again and again, and no pause grows.
#[test]
fn pre_execution_command_that_fails_is_asked_again_at_a_steady_pace() {
    let mut c = silent(one_host().param("MBD_SLEEP_TIME = 10"));
    let job = c.submit("ann", "");
    for n in 1..=2 * START_TRIES {
        let orders = c.start_orders();
        assert_eq!(orders.iter().map(|o| o.key.attempt).collect::<Vec<_>>(), [n]);
        c.start_fails(job, PendReason::PreExec, "pre-execution command: exit status 1");
        c.advance(9);
        assert_eq!(c.started(), []);
        c.advance(1);
    }
    assert_eq!((c.state(job), c.mails()), ("RUN".into(), vec![]));
}

/// PREEXEC_EXCLUDE_HOST_EXIT_VALUES: until mbatchd is started again, for this job alone.
#[test]
fn host_is_excluded_by_the_exit_value_of_the_pre_execution_command() {
    let site = cluster().hosts(2, 2).param("MBD_SLEEP_TIME = 1");
    let mut c = silent(site.param("PREEXEC_EXCLUDE_HOST_EXIT_VALUES = all ~7"));
    let job = c.submit("ann", "");
    let mut hosts = Vec::new();
    for code in [7, 3, 7, 4] {
        hosts.push(c.running_on(job)[0].clone());
        c.pre_exec_fails(job, PendReason::QueuePreExec, code, "exit status");
        c.advance(1);
    }
    let [again, first, other, last] = <[String; 4]>::try_from(hosts).unwrap();
    assert!(first != other && other == last && [&first, &other].contains(&&again));
    let on_both = (PendReason::Excluded, vec!["h1".into(), "h2".into()]);
    assert!(c.reasons(job).contains(&on_both), "{:?}", c.reasons(job));
    let excluded = |event: &Event| {
        let retry = |s: &JobStatus| s.retry.as_ref().map(|r| (r.pre_exit, r.excluded));
        matches!(event, Event::JobStatus(s) if retry(s) == Some((4, true)))
    };
    assert_eq!(c.logged(excluded), 1);
    let like = c.submit("ann", "");
    c.started();
    assert_eq!(c.state(like), "RUN");
    c.advance(100);
    assert_eq!(c.state(job), "PEND");
    c.restart();
    c.advance(1);
    assert_eq!(c.state(job), "RUN");
}

#[test]
fn job_that_goes_back_by_its_exit_value_waits_longer_each_time() {
    let mut c = takes_back().up();
    let job = c.submit("ann", "");
    let mut pauses = Vec::new();
    for n in 1..=13 {
        let mut waited = 0;
        while c.started().is_empty() {
            c.advance(1);
            waited += 1;
            assert!(waited < 2000, "run {n}");
        }
        pauses.push(waited);
        c.end(job, 5);
    }
    assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
    // its likes do not wait for it
    let like = c.submit("ann", "");
    assert_eq!(c.started(), [like]);
    let back = |event: &Event| matches!(event, Event::JobRequeue { exit: Some(5), .. });
    assert_eq!(c.logged(back), 13);
}

/// The start lies an hour ahead then, and the pause would begin there.
#[test]
fn job_that_goes_back_after_the_clock_was_set_back_waits_no_longer_for_that() {
    let mut c = takes_back().up();
    let job = c.submit("ann", "");
    assert_eq!(c.started(), [job]);
    c.clock_back(3600);
    c.end(job, 5);
    c.advance(1);
    assert_eq!(c.started(), [job]);
}

#[test]
fn job_that_ran_for_long_goes_back_in_the_next_interval() {
    let mut c = takes_back().param("JOB_SCHEDULING_INTERVAL = 2500ms").up();
    let job = c.submit("ann", "");
    for _ in 0..10 {
        assert_eq!(c.started(), [job]);
        c.advance(601);
        c.end(job, 5);
        c.advance(2);
        assert_eq!(c.started(), []);
        c.advance(1);
    }
    assert_eq!(c.started(), [job]);
}

/// The host is told with which run nothing follows any more by itself.
#[test]
fn last_run_before_a_job_is_held_is_told_to_its_host() {
    let mut c = takes_back().param("MAX_JOB_REQUEUE = 1").up();
    let job = c.submit("ann", "-Q 5");
    let mut last = Vec::new();
    for _ in 0..2 {
        last.extend(c.start_orders().iter().map(|order| order.last_requeue));
        c.end(job, 5);
        c.advance(1);
    }
    assert_eq!(last, [false, true]);
}

#[test]
fn elements_whose_start_fails_are_not_all_looked_at_for_each_of_them() {
    const N: u32 = 400;
    for limit in [25, 50] {
        let mut c = conf();
        c.base.cluster.hosts.pop();
        c.batch.hosts.hosts[0].mxj = Mxj::Slots(25);
        let mut r = Rig::of(c);
        let array = r.submit(JobSpec { name: format!("a[1-{N}]%{limit}"), ..spec("x") }).unwrap();
        let mut failed = 0;
        while failed < N {
            for (conn, key) in r.starts() {
                r.fails(conn, key, PendReason::JobOpenFiles, MISSING);
                failed += 1;
            }
        }
        let looks = r.mbd.sched.lone_looks();
        assert!(looks < 10 * N as usize, "%{limit}: {looks} looks");
        // as many as the limit has it go again when their pause is over
        r.later(10);
        assert_eq!(r.starts().len(), 25, "%{limit}");
        assert_eq!(r.mbd.state.job(array).unwrap().tally().run, 25);
    }
}

#[test]
fn a_job_killed_before_a_start_that_fails_never_ran_in_its_record_of_accounting() {
    let mut c = cluster().hosts(1, 1).up();
    c.hosts_wait();
    let job = c.submit("ann", "");
    c.kill("ann", job);
    c.start_fails(job, PendReason::ExecInit, "no room");
    assert_eq!(c.state(job), "EXIT");
    let ends = c.accounted();
    // what a recovery would derive from the log
    let [end] = &ends[..] else { panic!("{ends:?}") };
    assert_eq!((end.attempt, end.start_time, end.exec_hosts.len()), (0, 0, 0));
    assert_eq!(c.column(job, Col::StartTime), 0);
}
