//! Tasks that outlive their res: who may go on with them, ends in every order, those that nobody
//! comes back to.

use super::tests::{ANN, BOB, Rig, asked, conf};
use super::*;
use crate::model::JobKey;
use crate::model::job::{End, Usage};
use crate::proto::launch::{TaskEnd, TaskId};
use crate::proto::res::{KeptTask, TaskProgress};

pub(super) const OLD: TaskId =
    TaskId { key: JobKey { job: 5, idx: 1 << 31, attempt: 77 }, step: TaskStep::Task };
const JOB: TaskId = TaskId { key: JobKey { job: 7, idx: 0, attempt: 3 }, step: TaskStep::Job };

pub(super) fn kept(id: TaskId) -> KeptTask {
    KeptTask {
        id,
        uid: 1001,
        user: "ann".into(),
        from_host: "h2".into(),
        pty: false,
        note: None,
        cwd: "/tmp".into(),
        command: "sleep 9".into(),
    }
}

fn info(id: TaskId, status: Option<i32>) -> TaskInfo {
    let end = |status| TaskEnd {
        time: 9,
        end: End::Status(status),
        usage: Usage::default(),
        restarted: false,
    };
    let (setup, ended) = (Some(Setup::Ready(Box::default())), status.map(end));
    TaskInfo { uid: 1001, pid: 9, started: 4, setup, ended, ..TaskInfo::new(id) }
}

/// A res that has taken over these tasks, of which the launcher has listed `listed`.
fn taken_over(tasks: &[TaskId], listed: Vec<TaskInfo>) -> (Rig, Vec<Effect>) {
    let mut r = Rig::before(conf());
    for (at, id) in tasks.iter().enumerate() {
        assert_eq!(r.res.adopt(kept(*id)), at as u64 + 1);
    }
    let out = r.begin(listed);
    (r, out)
}

fn resume(r: &mut Rig, conn: ConnId, task: TaskId) -> Vec<&'static str> {
    let out = r.says(conn, ResMsg::Resume { task });
    asked(&out)
}

#[test]
fn task_of_an_earlier_res_goes_on_with_who_asked_for_it() {
    let (mut r, out) = taken_over(&[OLD], vec![info(OLD, None)]);
    assert_eq!(asked(&out), [""; 0], "it is not hung up");
    let (user, host) = ("ann".to_owned(), "h3".to_owned());
    r.step(Input::Opened { conn: 99, peer: Peer::User { uid: 1001, gid: 1001, user, host } });
    assert_eq!(resume(&mut r, BOB, OLD), ["refused"], "another user");
    assert_eq!(resume(&mut r, 99, OLD), ["refused"], "another host");
    assert_eq!(resume(&mut r, ANN, JOB), ["refused"], "another task");
    assert_eq!(resume(&mut r, ANN, OLD), ["op"]);
    let progress = TaskProgress { written: 3, read: [4, 5], in_doubt: [false; 2] };
    let out = r.step(Input::Task { n: 1, news: TaskNews::Resumed(progress) });
    let Effect::Send { conn: ANN, msg: Msg::Res(ResMsg::Resumed(told)) } = &out[0] else {
        panic!("{}", out.len())
    };
    assert_eq!(*told, progress);
    assert!(matches!(&out[2], Effect::Task { n: 1, op: TaskOp::Allow(WINDOW) }));
    assert_eq!(resume(&mut r, 99, OLD), ["refused"], "it has its command");
    // it is a task like any other now
    let out = r.says(ANN, ResMsg::Signal { signal: 15 });
    assert!(matches!(
        &out[..],
        [Effect::Send { msg: Msg::Launch(LaunchMsg::Signal { id: OLD, .. }), .. }]
    ));
    let told = LaunchMsg::Task(Box::new(info(OLD, Some(768))));
    let out = r.step(Input::Msg { conn: LAUNCHER, msg: Msg::Launch(told) });
    assert_eq!(asked(&out), ["drain"]);
    let out = r.step(Input::Task { n: 1, news: TaskNews::Drained });
    assert_eq!(asked(&out), ["drop", "forget", "ended"]);
    let Effect::Send { msg: Msg::Launch(LaunchMsg::Forget { key, .. }), .. } = &out[1] else {
        panic!("it is not forgotten")
    };
    assert_eq!(*key, OLD.key);
}

/// The task would lose its command, and nobody would hang it up.
#[test]
fn connection_that_waits_for_a_task_of_its_own_resumes_no_other() {
    let (mut r, _) = taken_over(&[OLD], vec![info(OLD, None)]);
    let job = Some(crate::model::JobRef { job: 7, idx: 0 });
    let run = RunTask { argv: vec!["true".into()], job, ..RunTask::default() };
    r.says(ANN, ResMsg::Run(Box::new(run)));
    assert_eq!(resume(&mut r, ANN, OLD), ["close"]);
}

#[test]
fn end_of_a_task_waits_for_the_command_that_comes_back() {
    for (id, last) in [(OLD, &["drop", "forget", "ended"][..]), (JOB, &["drop", "ended"])] {
        let (mut r, out) = taken_over(&[id], vec![info(id, Some(768))]);
        assert_eq!(asked(&out), [""; 0], "{id}");
        assert_eq!(resume(&mut r, ANN, id), ["op"]);
        let out = r.step(Input::Task { n: 1, news: TaskNews::Resumed(TaskProgress::default()) });
        assert_eq!(asked(&out), ["send", "send", "op", "drain"]);
        assert_eq!(asked(&r.step(Input::Task { n: 1, news: TaskNews::Drained })), last);
    }
}

#[test]
fn task_to_which_nobody_comes_back_is_hung_up_and_killed() {
    for id in [OLD, JOB] {
        let (mut r, _) = taken_over(&[id], vec![info(id, None)]);
        r.us += 14 * US;
        assert_eq!(asked(&r.step(Input::Tick)), [""; 0]);
        r.us += US;
        assert_eq!(asked(&r.step(Input::Tick)), ["drop", "hup", "signal"]);
        assert_eq!(resume(&mut r, ANN, id), ["refused"]);
        r.us += 2 * US;
        assert_eq!(asked(&r.step(Input::Tick)), ["kill"]);
    }
}

#[test]
fn end_of_a_task_that_the_launcher_does_not_know_is_unknown() {
    let (mut r, _) = taken_over(&[OLD], vec![]);
    assert_eq!(resume(&mut r, ANN, OLD), ["op"]);
    let out = r.step(Input::Task { n: 1, news: TaskNews::Resumed(TaskProgress::default()) });
    assert_eq!(asked(&out), ["send", "send", "op", "drain"]);
    let out = r.step(Input::Task { n: 1, news: TaskNews::Drained });
    let unknown = |e: &Effect| {
        matches!(e, Effect::Send { conn: ANN, msg: Msg::Res(ResMsg::Ended { status: None }) })
    };
    assert!(out.iter().any(unknown));
}

#[test]
fn nothing_goes_on_before_the_launcher_has_told_of_its_tasks() {
    let mut r = Rig::before(conf());
    r.res.adopt(kept(OLD));
    r.step(Input::Start);
    let (user, host) = ("ann".to_owned(), "h2".to_owned());
    r.step(Input::Opened { conn: ANN, peer: Peer::User { uid: 1001, gid: 1001, user, host } });
    let out = r.says(ANN, ResMsg::Resume { task: OLD });
    let busy =
        |e: &Effect| matches!(e, Effect::Send { msg: Msg::Refused(r), .. } if r.code == err::BUSY);
    assert!(out.iter().any(busy));
    r.us += 60 * US;
    assert_eq!(asked(&r.step(Input::Tick)), [""; 0], "nobody could have come back");
    assert!(r.res.deadline().is_none_or(|at| at > r.us), "and it is not waited for in a circle");
}

#[test]
fn facts_of_a_task_are_kept_when_its_descriptors_are_here() {
    let mut r = Rig::new(conf());
    let command: Vec<crate::model::ByteStr> = vec!["x".repeat(5000).as_str().into()];
    let run = RunTask { argv: command, cwd: "/work".into(), ..RunTask::default() };
    r.says(ANN, ResMsg::Run(Box::new(run)));
    let out = r.step(Input::Task { n: 1, news: TaskNews::Attached });
    let [Effect::Task { n: 1, op: TaskOp::Keep(kept) }] = &out[..] else { panic!("{}", out.len()) };
    assert_eq!(
        (kept.id, kept.uid, &*kept.user, &*kept.from_host),
        (r.res.id(1), 1001, "ann", "h2")
    );
    assert_eq!((kept.command.len(), &kept.cwd), (crate::proto::res::KEPT_TEXT, &"/work".into()));
    let id = kept.id;
    let out = r.step(Input::Task { n: 1, news: TaskNews::Kept });
    let Effect::Send { conn: ANN, msg: Msg::Res(ResMsg::Kept { task }) } = &out[0] else {
        panic!("ann is not told")
    };
    assert_eq!(*task, id);
}
