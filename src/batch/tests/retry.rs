//! What cannot be started: whom that concerns, when it is tried again, when no longer.

use super::requeue::{at, exit, param, with};
use super::*;
use crate::batch::retry::START_TRIES;
use crate::model::job::extra;
use crate::model::reason::pend;
use crate::model::specfield::SpecField;

/// Two hosts with one slot each.
fn narrow() -> ClusterConf {
    let mut c = conf();
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(1);
    c
}

/// One host with one slot.
fn one_host() -> ClusterConf {
    let mut c = narrow();
    c.base.cluster.hosts.pop();
    c
}

impl Rig {
    /// What the job's element is said to wait for: codes with the number of hosts.
    pub fn why_at(&self, at: JobRef) -> Vec<(u32, usize)> {
        self.mbd.sched.reasons_at(at, 0).iter().map(|r| (r.0, r.1.len())).collect()
    }

    /// A start that its host could not make.
    fn fails(&mut self, conn: ConnId, key: JobKey, reason: u32, note: &str) {
        let phase = Phase::Failed { reason };
        let t = TaskState { key, phase, note: note.into(), ..TaskState::default() };
        self.step(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(t))) });
    }

    /// Pending reasons as bjobs gets them.
    pub fn reasons_shown(&mut self, job: u32) -> String {
        let select = JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..JobSelect::default() };
        let q = JobQuery { select, cols: vec![Col::PendReasons], ..JobQuery::default() };
        match self.ask(USER, ClientMsg::Jobs(Box::new(q))) {
            Some(Msg::Client(ClientMsg::Rows { rows, .. })) => rows.get().to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn mails(&self) -> Vec<String> {
        let of = |(_, m): &(ConnId, Msg)| match m {
            Msg::Sbd(SbdMsg::Forget { mail, .. }) if !mail.is_empty() => Some(mail.clone()),
            _ => None,
        };
        self.sent.iter().filter_map(of).collect()
    }
}

const MISSING: &str = "input file </root/in>: Permission denied";

#[test]
fn a_job_that_cannot_start_holds_back_none_of_its_likes() {
    for reason in [pend::JOB_OPEN_FILES, pend::JOB_ENV, pend::EXEC_INIT, pend::PRE_EXEC] {
        let mut r = Rig::of(one_host());
        let bad = r.submit(spec("x")).unwrap();
        let (conn, key) = r.starts()[0];
        let like = r.submit(spec("x")).unwrap();
        assert!(r.starts().is_empty());
        r.fails(conn, key, reason, MISSING);
        let next = r.starts();
        assert_eq!(next.iter().map(|s| s.1.job).collect::<Vec<_>>(), [like], "{reason}");
        // nor are those that wait told its reason
        let third = r.submit(spec("x")).unwrap();
        assert_eq!(r.why_at(at(third)), [(pend::HOST_FULL, 1)]);
        assert!(r.reasons_shown(bad).contains(MISSING), "{}", r.reasons_shown(bad));
        assert!(!r.reasons_shown(third).contains(MISSING));
    }
}

#[test]
fn an_element_that_cannot_start_holds_back_none_of_its_array() {
    for parts in [false, true] {
        let mut r = Rig::of(one_host());
        let hold = r.submit(spec("first")).unwrap();
        let array = r.submit(JobSpec { name: "a[1-4]".into(), ..spec("x") }).unwrap();
        if parts {
            let sel = IdSel { job: array, elems: vec![(1, 4, 1)] };
            let p = JobSpec { project: "p".into(), ..JobSpec::default() };
            assert_eq!(r.modify_of(USER, sel, &[SpecField::Project], p), 0);
        }
        r.runs_of(hold, done());
        let mut seen = Vec::new();
        for _ in 0..4 {
            let (conn, key) = r.starts()[0];
            seen.push(key.idx);
            match key.idx % 2 {
                1 => r.fails(conn, key, pend::JOB_OPEN_FILES, MISSING),
                _ => {
                    r.report(conn, key, Phase::Running);
                    r.report(conn, key, done());
                }
            }
        }
        assert_eq!(seen, [1, 2, 3, 4], "{parts}");
        assert!(r.starts().is_empty());
        // on the one host after twice the first pause, in their order
        r.later(9);
        assert!(r.starts().is_empty());
        r.later(1);
        let (conn, key) = r.starts()[0];
        assert_eq!((key.idx, key.attempt), (1, 2), "{parts}");
        r.report(conn, key, Phase::Running);
        r.report(conn, key, done());
        assert_eq!(r.starts()[0].1.idx, 3);
        assert_eq!((r.stat(array, 1), r.stat(array, 3)), ("DONE", "RUN"));
    }
}

#[test]
fn another_host_is_asked_before_the_one_that_failed() {
    let mut r = Rig::of(narrow());
    let id = r.submit(spec("x")).unwrap();
    let (first, key) = r.starts()[0];
    r.fails(first, key, pend::EXEC_INIT, "Too many open files");
    assert!(r.starts().is_empty());
    r.later(4);
    assert!(r.starts().is_empty());
    r.later(1);
    let (second, key) = r.starts()[0];
    assert!(first != second);
    // it runs there: what failed before is not counted on
    r.report(second, key, Phase::Running);
    assert_eq!((r.stat(id, 0), r.mbd.st.tries.len()), ("RUN", 0));
}

#[test]
fn a_job_that_never_starts_is_held_with_a_mail_after_growing_pauses() {
    let mut r = Rig::of(one_host());
    let id = r.submit(spec("x")).unwrap();
    let mut pauses = Vec::new();
    for n in 1..=START_TRIES {
        let mut waited = 0;
        let (conn, key) = loop {
            match r.starts().first() {
                Some(start) => break *start,
                None => {
                    r.later(1);
                    waited += 1;
                }
            }
            assert!(waited < 2000, "try {n}");
        };
        pauses.push(waited);
        assert_eq!(key.attempt, n);
        assert!(r.mails().is_empty());
        r.fails(conn, key, pend::JOB_OPEN_FILES, MISSING);
        if n == 4 {
            // a restart of mbatchd in between counts on, and waits on
            let mut again = Rig::with(r.restarted(), r.now);
            again.mbd.reload(Recovered { records: r.read_back(), epoch: 2, ..<_>::default() });
            assert!(again.starts().is_empty());
            let tries = |m: &Mbd| m.st.tries[&at(id)].failed;
            assert_eq!((tries(&again.mbd), tries(&r.mbd)), (4, 4));
        }
    }
    assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
    assert_eq!((r.stat(id, 0), r.held(id)), ("PSUSP", Some(pend::START_LIMIT)));
    let mails = r.mails();
    assert_eq!(mails.len(), 1, "{mails:?}");
    assert!(mails[0].contains(MISSING) && mails[0].contains(&format!("bresume {id}")));
    assert!(r.reasons_shown(id).contains(MISSING), "{}", r.reasons_shown(id));
    // who resumes it has it tried as often again
    assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
    let (conn, key) = r.starts()[0];
    r.fails(conn, key, pend::JOB_OPEN_FILES, MISSING);
    assert_eq!(r.stat(id, 0), "PEND");
}

#[test]
fn a_restart_of_mbatchd_waits_for_the_rest_of_a_pause() {
    let mut r = Rig::of(one_host());
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.fails(conn, key, pend::JOB_OPEN_FILES, MISSING);
    r.later(6);
    let records = r.read_back();
    let found = Recovered { records, epoch: 2, ..Recovered::default() };
    let mut r = Rig::with(Mbd::new(one_host(), "h1", found), r.now);
    assert!(r.starts().is_empty());
    assert!(r.reasons_shown(id).contains(MISSING), "{}", r.reasons_shown(id));
    r.later(3);
    assert!(r.starts().is_empty());
    r.later(1);
    assert_eq!(r.starts().len(), 1);
}

#[test]
fn a_change_of_a_job_that_cannot_start_has_it_tried_at_once() {
    let mut r = Rig::of(one_host());
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.fails(conn, key, pend::JOB_OPEN_FILES, MISSING);
    let sel = IdSel { job: id, elems: vec![] };
    let p = JobSpec { in_file: "/tmp/in".into(), ..JobSpec::default() };
    assert_eq!(r.modify_of(USER, sel, &[SpecField::InFile], p), 0);
    assert_eq!(r.starts().len(), 1);
}

#[test]
fn a_clock_that_is_put_back_does_not_keep_a_job_waiting() {
    let mut r = Rig::of(one_host());
    r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.fails(conn, key, pend::JOB_OPEN_FILES, MISSING);
    r.now.wall_us -= 86_400_000_000;
    r.later(11);
    assert_eq!(r.starts().len(), 1);
}

/// LSF asks for a pre-execution command again and again, and no pause grows.
#[test]
fn a_pre_execution_command_is_asked_again_at_a_steady_pace() {
    let mut c = one_host();
    c.batch.params.mbd_sleep_time = 10;
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    for n in 1..=2 * START_TRIES {
        let (conn, key) = r.starts()[0];
        assert_eq!(key.attempt, n);
        r.fails(conn, key, pend::PRE_EXEC, "pre-execution command: exit status 1");
        r.later(9);
        assert!(r.starts().is_empty());
        r.later(1);
    }
    assert_eq!((r.stat(id, 0), r.mails().len()), ("RUN", 0));
}

#[test]
fn a_job_that_goes_back_by_its_exit_value_waits_longer_each_time() {
    let mut c = conf();
    c.batch.queues[0].requeue_exit_values = Some("5".into());
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let mut pauses = Vec::new();
    for n in 1..=13 {
        let mut waited = 0;
        while r.mbd.st.elem(at(id)).unwrap().attempts < n {
            r.later(1);
            waited += 1;
            assert!(waited < 2000, "run {n}");
        }
        pauses.push(waited);
        r.runs(exit(5));
    }
    assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
    // its likes do not wait for it
    let like = r.submit(spec("x")).unwrap();
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [like]);
    let exits =
        r.log.iter().filter(|rec| matches!(rec.event, Event::JobRequeue { exit: Some(5), .. }));
    assert_eq!(exits.count(), 13);
}

#[test]
fn a_job_that_ran_for_long_goes_back_in_the_next_interval() {
    let mut c = conf();
    c.batch.queues[0].requeue_exit_values = Some("5".into());
    c.batch.params.sched_interval_min_ms = 2500;
    let mut r = Rig::of(c);
    r.submit(spec("x")).unwrap();
    for _ in 0..10 {
        let (conn, key) = r.starts()[0];
        r.report(conn, key, Phase::Running);
        r.later(601);
        r.report(conn, key, exit(5));
        r.later(2);
        assert!(r.starts().is_empty());
        r.later(1);
    }
    assert_eq!(r.starts().len(), 1);
}

/// The host is told with which run nothing follows any more by itself.
#[test]
fn the_last_run_before_a_job_is_held_is_told_to_its_host() {
    let mut c = conf();
    c.batch.queues[0].requeue_exit_values = Some("5".into());
    param(&mut c, "MAX_JOB_REQUEUE", "1");
    let mut r = Rig::of(c);
    r.submit(with(extra::REQUEUE, "5")).unwrap();
    let mut last = Vec::new();
    for _ in 0..2 {
        let told = |(_, m): &(ConnId, Msg)| match m {
            Msg::Sbd(SbdMsg::Start(s)) => Some(s.last_requeue),
            _ => None,
        };
        last.extend(r.sent.iter().filter_map(told));
        r.runs(exit(5));
        r.later(1);
    }
    assert_eq!(last, [false, true]);
}

#[test]
fn elements_whose_start_fails_are_not_all_looked_at_for_each_of_them() {
    const N: u32 = 400;
    for limit in [25, 50] {
        let mut c = one_host();
        c.batch.hosts.hosts[0].mxj = Mxj::Slots(25);
        let mut r = Rig::of(c);
        let array = r.submit(JobSpec { name: format!("a[1-{N}]%{limit}"), ..spec("x") }).unwrap();
        let mut failed = 0;
        while failed < N {
            for (conn, key) in r.starts() {
                r.fails(conn, key, pend::JOB_OPEN_FILES, MISSING);
                failed += 1;
            }
        }
        let looks = r.mbd.sched.lone_looks();
        assert!(looks < 10 * N as usize, "%{limit}: {looks} looks");
        // as many as the limit has it go again when their pause is over
        r.later(10);
        assert_eq!(r.starts().len(), 25, "%{limit}");
        assert_eq!(r.mbd.st.job(array).unwrap().tally.run, 25);
    }
}
