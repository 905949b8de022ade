//! Tasks of jobs: what is believed, what is waited for, and what becomes of a task without a
//! connection.

use super::state::SBATCHD;
use super::tests::{ANN, BOB, Rig, asked, conf};
use super::*;
use crate::model::job::{End, Usage};
use crate::model::time::US;
use crate::model::{JobKey, JobRef};
use crate::proto::member::MemberMsg;
use crate::proto::{Daemon, Input};

const KEY: JobKey = JobKey { job: 7, idx: 0, attempt: 2 };

fn run(r: &mut Rig, conn: ConnId, detached: bool) -> Vec<Effect> {
    let job = Some(JobRef { job: 7, idx: 0 });
    let env = "A=1".into();
    let run = RunTask { argv: vec!["true".into()], env, job, detached, ..RunTask::default() };
    r.says(conn, ResMsg::Run(Box::new(run)))
}

fn of_ann(hosts: &[&str]) -> MemberMsg {
    let hosts = hosts.iter().map(|h| (*h).to_owned()).collect();
    let env = "LSB_JOBID=7".into();
    MemberMsg::Told(Box::new(Membership {
        key: KEY,
        uid: 1001,
        hosts,
        env,
        nice: 3,
        told_at: 7,
        slots: 2,
        ..<_>::default()
    }))
}

fn says(r: &mut Rig, msg: MemberMsg) -> Vec<Effect> {
    r.step(Input::Msg { conn: SBATCHD, msg: Msg::Member(msg) })
}

/// sbatchd is connected, and asked about the job.
fn up(r: &mut Rig) {
    let peer = Peer::Daemon { daemon: Daemon::Sbatchd, host: "h1".into() };
    let out = r.step(Input::Opened { conn: SBATCHD, peer });
    assert!(
        matches!(out[..], [Effect::Send { msg: Msg::Member(MemberMsg::Ask { .. }), .. }]),
        "{out:?}"
    );
}

fn refused(out: &[Effect]) -> Option<i32> {
    let code = |e: &Effect| match e {
        Effect::Send { msg: Msg::Refused(why), .. } => Some(why.code),
        _ => None,
    };
    out.iter().find_map(code)
}

#[test]
fn task_of_a_job_starts_when_sbatchd_has_spoken_for_it() {
    let mut r = Rig::new(conf());
    let out = run(&mut r, ANN, false);
    assert!(matches!(out[..], [Effect::Connect { conn: SBATCHD, .. }]), "{out:?}");
    up(&mut r);
    assert!(asked(&run(&mut r, ANN, false)).contains(&"close"), "one task at a time");
    let mut r = Rig::new(conf());
    run(&mut r, ANN, false);
    up(&mut r);
    let out = says(&mut r, of_ann(&["h1", "h2"]));
    assert_eq!(asked(&out), ["expect", "start"]);
    let start = out.iter().find_map(|e| match e {
        Effect::Send { msg: Msg::Launch(LaunchMsg::Start { plan, note, .. }), .. } => {
            Some((plan.clone(), note.clone()))
        }
        _ => None,
    });
    let (plan, note) = start.unwrap();
    let want = TaskNote { key: KEY, told_at: 7, slots: 2, ..TaskNote::default() };
    assert_eq!(TaskNote::of(&note), Some(want));
    let TaskPlan::Job(job) = plan.what else { panic!("no job") };
    assert_eq!((job.env.lossy().as_ref(), job.nice, plan.uid), ("A=1\0LSB_JOBID=7", 3, 1001));
}

/// The launcher has seen another sbatchd begin since the job was asked about.
#[test]
fn task_that_is_to_be_asked_for_again_waits_for_sbatchd_once_more() {
    let id = |out: &[Effect]| {
        let of = |e: &Effect| match e {
            Effect::Send { msg: Msg::Launch(LaunchMsg::Start { id, .. }), .. } => Some(*id),
            _ => None,
        };
        out.iter().find_map(of)
    };
    for again in [true, false] {
        let mut r = Rig::new(conf());
        run(&mut r, ANN, false);
        up(&mut r);
        let first = id(&says(&mut r, of_ann(&["h1", "h2"]))).unwrap();
        let msg = LaunchMsg::Refused { id: first, why: "told".into(), again };
        let mut out = r.step(Input::Msg { conn: LAUNCHER, msg: Msg::Launch(msg) });
        assert_eq!(refused(&out).is_some(), !again, "{out:?}");
        if !again {
            continue;
        }
        out.extend(r.step(Input::Tick));
        assert_eq!(asked(&out), ["drop", "send"]);
        let out = says(&mut r, of_ann(&["h1", "h2"]));
        assert_eq!(asked(&out), ["expect", "start"]);
        assert_ne!(id(&out), Some(first));
    }
}

#[test]
fn task_of_another_users_job_or_from_a_host_without_slots_is_refused() {
    for (conn, hosts, code) in [(BOB, ["h1", "h2"], 281), (ANN, ["h1", "h3"], 280)] {
        let mut r = Rig::new(conf());
        run(&mut r, conn, false);
        up(&mut r);
        let out = says(&mut r, of_ann(&hosts));
        assert_eq!((refused(&out), asked(&out).len()), (Some(code), 1), "{out:?}");
    }
}

#[test]
fn task_of_an_unknown_job_is_refused_after_a_while() {
    let mut r = Rig::new(conf());
    run(&mut r, ANN, false);
    up(&mut r);
    let unknown = MemberMsg::Unknown { job: KEY.job_ref(), settled: false };
    assert!(asked(&says(&mut r, unknown)).is_empty());
    r.us += US;
    assert_eq!(asked(&r.step(Input::Tick)), ["send"], "sbatchd is asked again");
    r.us += 5 * US;
    assert_eq!(refused(&r.step(Input::Tick)), Some(279));
    // and where there is no sbatchd
    run(&mut r, BOB, false);
    r.step(Input::Closed { conn: SBATCHD });
    r.us += 6 * US;
    assert_eq!(refused(&r.step(Input::Tick)), Some(275));
    // a caller that is gone waits for nothing
    run(&mut r, ANN, false);
    r.step(Input::Closed { conn: ANN });
    assert!(!r.step(Input::Tick).iter().any(|e| matches!(e, Effect::Send { .. })));
}

/// mbatchd has told this host of all of its jobs, or the job is over there.
#[test]
fn task_of_a_job_that_this_host_will_not_hear_of_is_refused_at_once() {
    let mut r = Rig::new(conf());
    run(&mut r, ANN, false);
    lsrun(&mut r, BOB);
    up(&mut r);
    let out = says(&mut r, MemberMsg::Unknown { job: KEY.job_ref(), settled: true });
    assert_eq!((refused(&out), begun(&out)), (Some(279), Some(String::new())));
    r.us += 6 * US;
    assert!(asked(&r.step(Input::Tick)).is_empty());
}

/// lsrun inside a job asks for a task of the job.
fn lsrun(r: &mut Rig, conn: ConnId) {
    let job = Some(KEY.job_ref());
    let run = RunTask { argv: vec!["true".into()], via: "lsrun".into(), job, ..RunTask::default() };
    r.says(conn, ResMsg::Run(Box::new(run)));
}

/// The note of the task that is started with these effects; `None`: none is.
fn begun(out: &[Effect]) -> Option<String> {
    let note = |e: &Effect| match e {
        Effect::Send { msg: Msg::Launch(LaunchMsg::Start { note, .. }), .. } => Some(note.clone()),
        _ => None,
    };
    out.iter().find_map(note)
}

#[test]
fn task_of_lsrun_is_one_of_the_job_or_an_ordinary_one() {
    let known = |conn, hosts: &[&str]| {
        let mut r = Rig::new(conf());
        lsrun(&mut r, conn);
        up(&mut r);
        begun(&says(&mut r, of_ann(hosts)))
    };
    assert_eq!(TaskNote::of(&known(ANN, &["h1", "h2"]).unwrap()).map(|note| note.key), Some(KEY));
    // of another's job, or from another host
    assert_eq!(known(BOB, &["h1", "h2"]), Some(String::new()));
    assert_eq!(known(ANN, &["h1", "h3"]), Some(String::new()));
    // the job is over: nothing is waited for
    let mut r = Rig::new(conf());
    lsrun(&mut r, ANN);
    run(&mut r, BOB, false);
    up(&mut r);
    let out = says(&mut r, MemberMsg::Unknown { job: KEY.job_ref(), settled: false });
    assert_eq!((begun(&out), refused(&out)), (Some(String::new()), None));
    // it is told of its start like one of a job
    let (id, setup) = (r.res.id(1), Some(Setup::Ready(Box::default())));
    let ready = TaskInfo { uid: 1001, pid: 9, started: 4, setup, ..TaskInfo::new(id) };
    let msg = Msg::Launch(LaunchMsg::Task(Box::new(ready)));
    let out = r.step(Input::Msg { conn: LAUNCHER, msg });
    let told = |e: &Effect| {
        matches!(e, Effect::Send { conn: ANN, msg: Msg::Res(ResMsg::Started { pid: 9 }) })
    };
    assert_eq!(out.iter().filter(|e| told(e)).count(), 1, "{out:?}");
    // and where there is no sbatchd, it goes on after a while
    let mut r = Rig::new(conf());
    lsrun(&mut r, ANN);
    r.us += US;
    assert_eq!(begun(&r.step(Input::Tick)), None);
    r.us += 5 * US;
    let out = r.step(Input::Tick);
    assert_eq!((begun(&out), refused(&out)), (Some(String::new()), None));
}

#[test]
fn detached_task_goes_on_without_its_connection_and_sbatchd_forgets_it() {
    let mut r = Rig::new(conf());
    run(&mut r, ANN, true);
    up(&mut r);
    assert_eq!(asked(&says(&mut r, of_ann(&["h2"]))), ["start"], "nothing comes from a starter");
    let (id, setup) = (r.res.id(1), Some(Setup::Ready(Box::default())));
    let note = TaskNote { key: KEY, detached: true, ..TaskNote::default() }.text();
    let ready = TaskInfo { uid: 1001, pid: 9, started: 4, setup, note, ..TaskInfo::new(id) };
    let told = |info: TaskInfo| Input::Msg {
        conn: LAUNCHER,
        msg: Msg::Launch(LaunchMsg::Task(Box::new(info))),
    };
    let out = r.step(told(ready.clone()));
    assert!(matches!(
        out[..],
        [Effect::Send { conn: ANN, msg: Msg::Res(ResMsg::Started { pid: 9 }) }]
    ));
    assert!(asked(&r.step(Input::Closed { conn: ANN })).contains(&"drop"));
    r.us += 60 * US;
    assert!(asked(&r.step(Input::Tick)).is_empty());
    let (end, usage) = (End::Status(0), Usage::default());
    let ended = crate::proto::launch::TaskEnd { time: 5, end, usage, restarted: false };
    let out = r.step(told(TaskInfo { ended: Some(ended), ..ready.clone() }));
    assert!(!asked(&out).contains(&"forget"), "{out:?}");
    // nor does the next res
    assert!(asked(&r.step(told(TaskInfo { ended: Some(ended), ..ready }))).is_empty());
}
