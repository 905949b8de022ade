//! Tasks whose first process the launcher has not made (TaskStarter(1)).

use super::tests::{Rig, SBD, at, conf, job, plan, ready, told_end};
use super::*;
use crate::model::JobKey;
use crate::proto::launch::Plan;
use crate::proto::member::TaskNote;

const OURS: u32 = 1000;

fn id(n: u32) -> TaskId {
    TaskId { key: JobKey { job: n, idx: 1 << 31, attempt: 5 }, step: TaskStep::Task }
}

fn adopt(n: u32, uid: u32, pid: u32) -> LaunchMsg {
    let key = JobKey { job: 7, idx: 0, attempt: 1 };
    let (detached, gone, usage_secs, pam_ms) = (true, None, 0, None);
    let (adopted, told_at, slots) = (true, 5, 1);
    let note = TaskNote { key, detached, gone, usage_secs, pam_ms, adopted, told_at, slots }.text();
    let plan = Plan { uid, gid: 5, user: "ann".into(), what: TaskPlan::Adopt { pid, ticks: 9 } };
    LaunchMsg::Start { id: id(n), plan: Box::new(plan), note }
}

fn up(journal: Vec<Journal>) -> Rig {
    let mut r = Rig::new(conf(OURS, true), journal);
    r.step(at(0), Input::Start);
    r.connect();
    r
}

fn taken(r: &mut Rig, n: u32, pid: u32) -> Vec<Effect> {
    let out = r.ask(at(1), adopt(n, OURS, pid));
    assert!(matches!(out[..], [Effect::Os(OsEffect::Spawn { .. })]), "{out:?}");
    r.os(at(1), OsInput::Adopted { id: id(n), pid, ticks: 9 })
}

fn why(out: &[Effect]) -> Option<&str> {
    out.iter().find_map(|e| match e {
        Effect::Send { msg: Msg::Launch(LaunchMsg::Refused { why, .. }), .. } => Some(why.as_str()),
        _ => None,
    })
}

/// sbatchd is to know of each process of a job before it tells that the job has left.
#[test]
fn task_that_is_being_set_up_is_told_before_the_daemons() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    let told = |out: Vec<Effect>| -> Vec<TaskId> {
        let task = |e: &Effect| match e {
            Effect::Send { msg: Msg::Launch(LaunchMsg::Task(t)), .. } => Some(t.id),
            _ => None,
        };
        let last = out.last();
        let list = |e: &Effect| {
            matches!(e, Effect::Send { msg: Msg::Launch(LaunchMsg::DaemonList { .. }), .. })
        };
        assert!(last.is_some_and(list), "{out:?}");
        out.iter().filter_map(task).collect()
    };
    let peer = Peer::Local { uid: 1000, pid: 77 };
    r.step(at(0), Input::Opened { conn: SBD, peer });
    let task = TaskId { step: TaskStep::Task, ..job(3) };
    for id in [task, job(4)] {
        r.ask(at(1), LaunchMsg::Start { id, plan: plan(1000), note: String::new() });
        r.os(at(1), OsInput::Spawned { id, pid: 500 + id.key.job, ticks: 9, group: None });
    }
    // LIM, which asks too, has not said Hello
    assert_eq!(told(r.ask(at(1), LaunchMsg::Daemons)), []);
    r.ask(at(1), LaunchMsg::Hello);
    assert_eq!(told(r.ask(at(1), LaunchMsg::Daemons)), [task]);
    r.os(at(1), OsInput::Setup { id: task, setup: ready(), ended: false });
    assert_eq!(told(r.ask(at(1), LaunchMsg::Daemons)), []);
}

#[test]
fn adopted_process_is_a_task_whose_end_nobody_tells() {
    let mut r = up(vec![]);
    let out = taken(&mut r, 1, 500);
    let lines: Vec<&Journal> = out
        .iter()
        .filter_map(|e| match e {
            Effect::Os(OsEffect::Journal(line)) => Some(&**line),
            _ => None,
        })
        .collect();
    assert!(
        matches!(lines[..], [Journal::Task { pid: 500, .. }, Journal::Setup { .. }]),
        "{out:?}"
    );
    let told = |e: &Effect| {
        matches!(e, Effect::Send { msg: Msg::Launch(LaunchMsg::Task(t)), .. }
            if t.pid == 500 && t.ended.is_none() && matches!(t.setup, Some(Setup::Ready(_))))
    };
    assert_eq!(out.iter().filter(|e| told(e)).count(), 1);
    // nothing waits to go on, and the task is no child
    assert!(!out.iter().any(|e| matches!(e, Effect::Os(OsEffect::Go { .. }))));
    let known: Vec<(u32, bool)> = r.m.tasks().map(|t| (t.pid, t.child)).collect();
    assert_eq!(known, [(500, false)]);
    // an exit of a child of this number is another one's
    let usage = Usage::default();
    assert!(told_end(&r.os(at(2), OsInput::Exited { pid: 500, status: 0, usage })).is_empty());
    let due = r.m.deadline().unwrap();
    assert_eq!(due, at(1).mono_us + CHECK_EVERY);
    let out = r.step(at(2), Input::Tick);
    let looks =
        |e: &Effect| matches!(e, Effect::Os(OsEffect::Check { procs }) if procs[..] == [(500, 9)]);
    assert!(out.iter().any(looks), "{out:?}");
    let ends = told_end(&r.os(at(3), OsInput::Gone { pid: 500, ticks: 9 }));
    assert!(matches!(ends[..], [(_, TaskEnd { end: End::Unknown, .. })]), "{ends:?}");
}

#[test]
fn adopted_process_of_another_user_or_of_a_task_is_refused() {
    let mut r = up(vec![]);
    let out = r.ask(at(1), adopt(1, OURS + 1, 500));
    assert_eq!(why(&out), Some("uid 1001 in a cluster of uid 1000 alone"));
    taken(&mut r, 2, 500);
    assert_eq!(why(&r.ask(at(2), adopt(3, OURS, 500))), Some("process 500 is a task already"));
    // the runner's word: gone, or not the user's
    let out = r.ask(at(2), adopt(4, OURS, 501));
    assert!(matches!(out[..], [Effect::Os(OsEffect::Spawn { .. })]), "{out:?}");
    let words = "process 501: No such process";
    let out = r.os(at(2), OsInput::SpawnFailed { id: id(4), why: words.into() });
    assert_eq!(why(&out), Some(words));
    assert_eq!(r.m.tasks().count(), 1);
    let mut root = Rig::new(conf(0, false), vec![]);
    root.step(at(0), Input::Start);
    root.connect_as(0);
    assert_eq!(why(&root.ask(at(1), adopt(1, 0, 500))), Some("nothing is started as root"));
}

/// A request of which res has heard from sbatchd before the job was over may come after it.
#[test]
fn task_of_a_job_that_is_over_here_is_refused_until_sbatchd_speaks_for_it_again() {
    let mut r = up(vec![]);
    let key = JobKey { job: 7, idx: 0, attempt: 1 };
    let next = JobKey { attempt: 2, ..key };
    let mut number = 10;
    let mut begins = |r: &mut Rig, key: JobKey, told_at: u64| {
        number += 1;
        let note = TaskNote { key, told_at, ..TaskNote::default() }.text();
        let out = r.ask(at(1), LaunchMsg::Start { id: id(number), plan: plan(OURS), note });
        why(&out).is_none()
    };
    assert!(begins(&mut r, key, 5));
    r.ask(at(1), LaunchMsg::Forget { key, over_at: 0 });
    assert!(begins(&mut r, key, 5), "the job goes on");
    r.ask(at(1), LaunchMsg::Forget { key, over_at: 9 });
    assert!(!begins(&mut r, key, 5) && !begins(&mut r, key, 9));
    assert!(begins(&mut r, key, 10), "it has joined again");
    assert!(begins(&mut r, next, 5));
    let out = r.ask(at(1), adopt(2, OURS, 61));
    assert_eq!(why(&out), Some("job <7> is over on this host"));
    // a launcher that replaces itself keeps it in mind
    let saved = serde_json::to_string(&r.m.save()).unwrap();
    let saved = serde_json::from_str(&saved).unwrap();
    r.m = Launcher::resume(conf(OURS, true), saved).unwrap();
    r.connect();
    assert!(!begins(&mut r, key, 9) && begins(&mut r, key, 10));
    // the journal has a line for each attempt alone that was known
    for n in 0..5000 {
        let key = JobKey { job: 100 + n, idx: 0, attempt: 1 };
        assert!(r.ask(at(1), LaunchMsg::Forget { key, over_at: 9 }).is_empty());
    }
    assert!(begins(&mut r, key, 9), "only the last ones are kept");
}

/// The launcher may never hear that a job is over of which an earlier sbatchd has told res.
#[test]
fn task_of_a_job_of_which_an_earlier_sbatchd_told_is_to_be_asked_for_again() {
    let mut r = up(vec![]);
    let key = JobKey { job: 7, idx: 0, attempt: 1 };
    let again = |out: Vec<Effect>| match out.last() {
        Some(Effect::Os(OsEffect::Spawn { .. })) => None,
        Some(Effect::Send { msg: Msg::Launch(LaunchMsg::Refused { again, .. }), .. }) => {
            Some(*again)
        }
        _ => panic!("{out:?}"),
    };
    let mut number = 10;
    let mut asks = |r: &mut Rig, told_at: u64| {
        number += 1;
        let note = TaskNote { key, told_at, ..TaskNote::default() }.text();
        again(r.ask(at(9), LaunchMsg::Start { id: id(number), plan: plan(OURS), note }))
    };
    let began = |secs: u64| at(secs).mono_us;
    assert_eq!(asks(&mut r, began(2)), None);
    r.os(at(3), OsInput::DaemonUp { daemon: Daemon::Lim, pid: 400, ticks: 3 });
    assert_eq!(asks(&mut r, began(2)), None);
    r.os(at(4), OsInput::DaemonUp { daemon: Daemon::Sbatchd, pid: 401, ticks: 3 });
    assert_eq!((asks(&mut r, began(2)), asks(&mut r, began(4))), (Some(true), None));
    assert_eq!(asks(&mut r, 0), None, "an older res does not say when");
    r.ask(at(5), LaunchMsg::Forget { key, over_at: began(5) });
    assert_eq!(asks(&mut r, began(2)), Some(false), "the job is over");
}
