//! Interactive jobs that bsub joins: their owners, ends in every order, orphans of an earlier res.

use super::tests::{ANN, BOB, Rig, asked, conf};
use super::*;
use crate::model::JobKey;
use crate::model::job::{End, Usage};
use crate::proto::launch::TaskEnd;
use crate::proto::launch::TaskId;

const KEY: JobKey = JobKey { job: 7, idx: 0, attempt: 3 };

fn job(started: i64, status: Option<i32>) -> LaunchMsg {
    let ready = crate::proto::launch::Ready { interactive: true, ..Default::default() };
    let end = |status| TaskEnd {
        time: 9,
        end: End::Status(status),
        usage: Usage::default(),
        restarted: false,
    };
    let id = TaskId { key: KEY, step: TaskStep::Job };
    let (setup, ended) = (Some(Setup::Ready(Box::new(ready))), status.map(end));
    LaunchMsg::Task(Box::new(TaskInfo {
        uid: 1001,
        pid: 9,
        started,
        setup,
        ended,
        ..TaskInfo::new(id)
    }))
}

fn join(r: &mut Rig, conn: ConnId) -> Vec<Effect> {
    r.says(conn, ResMsg::Join { job: 7, pty: None })
}

fn told(r: &mut Rig, msg: LaunchMsg) -> Vec<Effect> {
    r.step(Input::Msg { conn: LAUNCHER, msg: Msg::Launch(msg) })
}

/// A job that has been joined by ann.
fn joined() -> Rig {
    let mut r = Rig::new(conf());
    let out = join(&mut r, ANN);
    let want = TaskOp::ExpectJob { uid: 1001, job: 7, pty: None };
    assert!(matches!(&out[..], [Effect::Task { n: 1, op }] if *op == want), "{}", out.len());
    let out = r.step(Input::Task { n: 1, news: TaskNews::Joined(KEY) });
    assert!(matches!(&out[..], [Effect::Send { conn: ANN, msg: Msg::Res(ResMsg::Joined) }]));
    r
}

#[test]
fn a_job_is_looked_for_among_those_of_the_caller_alone() {
    let mut r = joined();
    // a second bsub of the owner finds the terminal taken
    let peer = Peer::User { uid: 1001, gid: 1001, user: "ann".into(), host: "h3".into() };
    r.step(Input::Opened { conn: 99, peer });
    assert_eq!(asked(&join(&mut r, 99)), ["refused"]);
    // another user waits for a job of that number that is bob's own
    let out = join(&mut r, BOB);
    let want = TaskOp::ExpectJob { uid: 1002, job: 7, pty: None };
    assert!(matches!(&out[..], [Effect::Task { op, .. }] if *op == want));
    // and has no hold on ann's
    assert_eq!(asked(&r.says(BOB, ResMsg::Signal { signal: 9 })), [""; 0]);
    assert_eq!(asked(&r.says(ANN, ResMsg::Signal { signal: 9 })), ["kill"]);
}

#[test]
fn the_end_of_a_joined_job_is_told_after_all_output() {
    let mut r = joined();
    assert_eq!(asked(&told(&mut r, job(5, None))), [""; 0]);
    assert_eq!(asked(&told(&mut r, job(5, Some(768)))), ["drain"]);
    let read = TaskNews::Read(1, b"x".to_vec());
    assert_eq!(asked(&r.step(Input::Task { n: 1, news: read })), ["data"]);
    // sbatchd has the launcher forget it
    let drained = Input::Task { n: 1, news: TaskNews::Drained };
    assert_eq!(asked(&r.step(drained)), ["drop", "ended"]);
    assert_eq!(asked(&join(&mut r, ANN)), ["op"]);
}

#[test]
fn job_without_its_bsub_is_hung_up_and_killed() {
    let mut r = joined();
    assert_eq!(asked(&r.step(Input::Closed { conn: ANN })), ["drop", "hup", "signal"]);
    r.us = r.res.deadline().unwrap();
    assert_eq!(asked(&r.step(Input::Tick)), ["kill"]);
    assert_eq!(r.res.tasks.len(), 0);
    assert_eq!(asked(&told(&mut r, job(5, Some(9)))), [""; 0]);
}

#[test]
fn bsub_that_goes_before_its_job_comes_leaves_nothing() {
    let mut r = Rig::new(conf());
    join(&mut r, ANN);
    let out = r.step(Input::Closed { conn: ANN });
    assert!(asked(&out).iter().all(|o| *o == "drop"), "{:?}", asked(&out));
    assert_eq!((r.res.tasks.len(), r.res.deadline()), (0, None));
}

#[test]
fn jobs_joined_at_an_earlier_res_are_hung_up_and_killed() {
    let began = 1000;
    let list = |started| match job(started, None) {
        LaunchMsg::Task(info) => {
            LaunchMsg::Tasks { boot_id: "b".into(), tasks: vec![*info], more: false }
        }
        _ => unreachable!(),
    };
    let mut r = Rig::new(conf());
    r.res.began = began;
    assert_eq!(asked(&told(&mut r, list(began))), [""; 0]);
    assert_eq!(asked(&told(&mut r, list(began - 1))), ["hup", "signal"]);
    r.us = r.res.deadline().unwrap();
    assert_eq!(asked(&r.step(Input::Tick)), ["kill"]);
    assert_eq!(r.res.deadline(), None);
}
