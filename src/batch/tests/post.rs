//! Post-execution: its end is recorded apart from the job's, and other jobs may wait for it.

use super::*;
use crate::model::further::Further;
use crate::model::job::opt2;
use crate::proto::sbd::Post;

impl Rig {
    /// The host tells of an attempt that is over, and of what runs after it.
    fn over(&mut self, conn: ConnId, key: JobKey, status: i32, post: Post) {
        let phase = AttemptPhase::Ended { end: End::Status(status), exit_info: 0 };
        let time = self.now.secs();
        let t = TaskState { key, phase, pid: 7, time, post, ..TaskState::default() };
        self.sent.clear();
        self.step(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(t))) });
    }

    fn forgets(&self, of: JobKey) -> bool {
        let is = |m: &Msg| matches!(m, Msg::Sbd(SbdMsg::Forget { key, .. }) if *key == of);
        self.sent.iter().any(|(_, m)| is(m))
    }

    /// Status bits of the records of the job, the last first.
    fn statuses(&self, job: u32) -> Vec<u32> {
        let of = |r: &Record| match &r.event {
            Event::JobStatus(s) if s.at.job == job => Some(s.status.bits()),
            _ => None,
        };
        self.log.iter().rev().filter_map(of).collect()
    }

    fn waits_for(&mut self, cond: &str) -> u32 {
        self.submit(JobSpec { depend: cond.into(), ..spec("next") }).unwrap()
    }
}

#[test]
fn the_end_of_what_runs_after_a_job_is_recorded_and_waited_for() {
    for (post, bits, ready) in [(Post::Done, 0xc0, 0), (Post::Failed, 0x140, 1)] {
        let mut r = Rig::new();
        let id = r.submit(spec("x")).unwrap();
        let (conn, key) = r.starts()[0];
        let next = ["post_done", "post_err"].map(|f| r.waits_for(&format!("{f}({id})")));
        r.report(conn, key, AttemptPhase::Running);
        for _ in 0..2 {
            r.over(conn, key, 0, Post::Running);
            assert_eq!((r.stat(id, 0), r.acct.len()), ("DONE", 1));
            assert!(!r.forgets(key) && r.starts().is_empty());
        }
        for again in [false, true] {
            r.over(conn, key, 0, post);
            assert!(r.forgets(key));
            assert_eq!(r.statuses(id), [bits, 0x40]);
            let started: Vec<u32> = r.starts().iter().map(|s| s.1.job).collect();
            assert_eq!(started, if again { vec![] } else { vec![next[ready]] });
        }
        assert_eq!((r.stat(id, 0), r.acct.len()), ("DONE", 1));
        let never = r.mbd.deps.value(next[1 - ready]);
        assert_eq!(never, DepValue::Never);
        assert_eq!(
            r.restarted().state.job(id).unwrap().tally(),
            r.mbd.state.job(id).unwrap().tally()
        );
    }
}

#[test]
fn post_done_without_a_command_holds_with_the_end_of_a_job_that_ran() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    let next = r.waits_for(&format!("post_done({id})"));
    r.report(conn, key, AttemptPhase::Running);
    r.over(conn, key, 3 << 8, Post::None);
    assert!(r.forgets(key));
    assert_eq!(r.statuses(id), [0x20]);
    assert_eq!(r.starts_of(next).len(), 1);
    let held = r.submit(JobSpec { options2: opt2::HOLD, ..spec("x") }).unwrap();
    let next = r.waits_for(&format!("post_done({held})"));
    assert_eq!(r.mbd.deps.value(next), DepValue::False);
    r.kill(USER, held);
    assert_eq!(r.mbd.deps.value(next), DepValue::Never);
}

#[test]
fn a_restart_still_waits_and_a_host_that_does_not_know_of_it_has_failed() {
    let mut r = Rig::new();
    let id = r.submit(JobSpec { name: "a[1-2]".into(), ..spec("x") }).unwrap();
    let starts = r.starts();
    for &(conn, key) in &starts {
        r.report(conn, key, AttemptPhase::Running);
        r.over(conn, key, 0, Post::Running);
    }
    r.over(starts[0].0, starts[0].1, 0, Post::Done);
    let again = r.restarted();
    assert_eq!(again.state.posts().iter().collect::<Vec<_>>(), [starts[1].1]);
    let tally = again.state.job(id).unwrap().tally();
    assert_eq!((tally.done, tally.post_done, tally.post_err), (2, 1, 0));
    // the hosts of the rig know of nothing
    let r = Rig::with(again, r.now);
    let tally = r.mbd.state.job(id).unwrap().tally();
    assert_eq!((tally.done, tally.post_done, tally.post_err), (2, 1, 1));
    assert!(r.mbd.state.posts().is_empty());
    assert_eq!(r.statuses(id), [0x140]);
}

#[test]
fn post_execution_of_a_requeued_run_does_not_concern_the_next_run() {
    let mut r = Rig::new();
    let id = r.submit(JobSpec { further: Further::from_iter([("Q", "3")]), ..spec("x") }).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let phase = AttemptPhase::Ended { end: End::Status(3 << 8), exit_info: 0 };
    let t = TaskState { key, phase, pid: 7, post: Post::Running, ..TaskState::default() };
    r.step(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(t))) });
    r.later(1);
    let (_, second) = r.starts()[0];
    assert_eq!(second.attempt, 2);
    r.over(conn, key, 3 << 8, Post::Failed);
    assert!(r.forgets(key) && !r.forgets(second));
    assert_eq!((r.stat(id, 0), r.statuses(id).len()), ("RUN", 0));
    // one that ended and goes back because somebody asks
    let id = r.submit(spec("y")).unwrap();
    let (conn, key) = r.starts_of(id)[0];
    r.report(conn, key, AttemptPhase::Running);
    r.over(conn, key, 0, Post::Running);
    let how = Requeue { done: true, ..Requeue::default() };
    assert_eq!(r.does(USER, Verb::Requeue(how), id).code, 0);
    r.over(conn, key, 0, Post::Done);
    assert!(r.forgets(key));
    assert_eq!(r.statuses(id), [0x40]);
    assert!(r.mbd.state.posts().is_empty());
}

#[test]
fn the_host_is_told_what_the_site_wants_of_what_runs_after_jobs() {
    let mut c = conf();
    c.batch.params.job_include_postproc = true;
    c.batch.params.command_timeouts.post = Some(120);
    let mut r = Rig::of(c);
    r.submit(spec("x")).unwrap();
    let told = r.sent.iter().find_map(|(_, m)| match m {
        Msg::Sbd(SbdMsg::Start(s)) => Some((s.include_post, s.post_timeout, s.key)),
        _ => None,
    });
    let (part, timeout, key) = told.unwrap();
    assert_eq!((part, timeout), (true, 120));
    // both ends in one word of the host
    let conn = r.starts()[0].0;
    let next = r.waits_for("post_done(1)");
    r.report(conn, key, AttemptPhase::Running);
    r.over(conn, key, 3 << 8, Post::Done);
    assert_eq!(r.statuses(1), [0xa0, 0x20]);
    assert!(r.forgets(key));
    assert_eq!(r.starts_of(next).len(), 1);
}
