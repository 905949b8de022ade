//! Processes that TaskStarters have taken into jobs: whose word counts, and who hears of it.

use super::state::SBATCHD;
use super::tests::{ANN, BOB, Rig, conf};
use super::*;
use crate::model::{JobKey, JobRef};
use crate::proto::Daemon;

const KEY: JobKey = JobKey { job: 7, idx: 0, attempt: 2 };

fn adopt(r: &mut Rig, conn: ConnId) -> Vec<Effect> {
    let job = JobRef { job: 7, idx: 0 };
    r.says(conn, ResMsg::Adopt(AdoptProcess { job, pid: 50, ticks: 3, pam_ms: Some(20) }))
}

fn told(r: &mut Rig, hosts: &[&str]) -> Vec<Effect> {
    let peer = Peer::Daemon { daemon: Daemon::Sbatchd, host: "h1".into() };
    r.step(Input::Opened { conn: SBATCHD, peer });
    let hosts = hosts.iter().map(|h| (*h).to_owned()).collect();
    let (told_at, slots) = (7, 2);
    let of = Membership { key: KEY, uid: 1001, hosts, told_at, slots, ..Membership::default() };
    r.step(Input::Msg { conn: SBATCHD, msg: Msg::Member(MemberMsg::Told(Box::new(of))) })
}

fn launcher(r: &mut Rig, msg: LaunchMsg) -> Vec<Effect> {
    r.step(Input::Msg { conn: LAUNCHER, msg: Msg::Launch(msg) })
}

/// The number of the process that sbatchd is asked about.
fn asked_look(out: &[Effect]) -> Option<u64> {
    out.iter().find_map(|e| match e {
        Effect::Send { conn: SBATCHD, msg: Msg::Member(MemberMsg::Look(look)) } => {
            assert_eq!((look.uid, look.pid, look.ticks), (1001, 50, 3));
            Some(look.n)
        }
        _ => None,
    })
}

fn looked(r: &mut Rig, n: u64, owner: Option<JobKey>, why: &str) -> Vec<Effect> {
    let msg = MemberMsg::Looked { n, owner, launcher: 5, why: why.into() };
    r.step(Input::Msg { conn: SBATCHD, msg: Msg::Member(msg) })
}

/// The words to ann.
fn answers(out: &[Effect]) -> Vec<String> {
    let to_ann = out.iter().filter_map(|e| match e {
        Effect::Send { conn: ANN, msg } => Some(msg),
        _ => None,
    });
    let words = to_ann.map(|msg| match msg {
        Msg::Res(ResMsg::Adopted { within, launcher }) => {
            format!("adopted, within: {within}, launcher: {launcher}")
        }
        Msg::Res(ResMsg::Done) => "done".into(),
        Msg::Refused(why) => why.text.clone(),
        other => panic!("{other:?}"),
    });
    words.collect()
}

fn refused(out: &[Effect], to: ConnId) -> Option<(i32, String)> {
    out.iter().find_map(|e| match e {
        Effect::Send { conn, msg: Msg::Refused(why) } if *conn == to => {
            Some((why.code, why.text.clone()))
        }
        _ => None,
    })
}

#[test]
fn launcher_is_asked_for_a_process_of_the_caller_when_sbatchd_knows_the_job_and_no_other_owner() {
    let mut r = Rig::new(conf());
    let out = adopt(&mut r, ANN);
    assert!(matches!(out[..], [Effect::Connect { conn: SBATCHD, .. }]), "{out:?}");
    let out = told(&mut r, &["h1", "h2"]);
    let n = asked_look(&out).unwrap();
    // a second request while one is under way
    assert!(matches!(adopt(&mut r, ANN)[..], [Effect::Say { .. }, Effect::Close { .. }]));
    let out = looked(&mut r, n, None, "");
    let [Effect::Send { conn: LAUNCHER, msg: Msg::Launch(LaunchMsg::Start { id, plan, note }) }] =
        &out[..]
    else {
        panic!("{out:?}")
    };
    let (detached, gone, usage_secs, pam_ms) = (true, None, 0, Some(20));
    let (adopted, told_at, slots) = (true, 7, 2);
    let want = TaskNote { key: KEY, detached, gone, usage_secs, pam_ms, adopted, told_at, slots };
    assert_eq!((plan.uid, &*plan.user, TaskNote::of(note)), (1001, "ann", Some(want)));
    assert_eq!(plan.what, TaskPlan::Adopt { pid: 50, ticks: 3 });
    let id = *id;
    assert!(matches!(adopt(&mut r, ANN)[..], [Effect::Say { .. }, Effect::Close { .. }]));
    // the launcher has it: it is told once
    let note = want.text();
    let setup = Some(Setup::Ready(Box::default()));
    let info = TaskInfo { uid: 1001, pid: 50, ticks: 3, setup, note, ..TaskInfo::new(id) };
    let out = launcher(&mut r, LaunchMsg::Task(Box::new(info.clone())));
    assert_eq!(answers(&out), ["adopted, within: false, launcher: 5"]);
    assert!(launcher(&mut r, LaunchMsg::Task(Box::new(info.clone()))).is_empty());
    // its end, and that of the connection, end nothing
    assert!(r.step(Input::Closed { conn: ANN }).is_empty());
    // nor does the next res
    let mut next = Rig::before(conf());
    assert!(next.begin(vec![info]).is_empty());
}

#[test]
fn process_that_is_of_the_job_already_is_in_it_and_one_of_another_job_is_refused() {
    let mut r = Rig::new(conf());
    let other = JobKey { job: 9, idx: 0, attempt: 1 };
    let before = JobKey { attempt: 1, ..KEY };
    let words = [
        (Some(KEY), "", "adopted, within: true, launcher: 5"),
        (Some(other), "", "process 50 is of job <9>"),
        (Some(before), "", "process 50 is of job <7>"),
        (None, "process 50: No such process", "process 50: No such process"),
    ];
    for (owner, why, want) in words {
        adopt(&mut r, ANN);
        let n = asked_look(&told(&mut r, &["h1", "h2"])).unwrap();
        let out = looked(&mut r, n, owner, why);
        assert_eq!(answers(&out), [want]);
        assert!(!out.iter().any(|e| matches!(e, Effect::Send { conn: LAUNCHER, .. })));
        // an answer that nobody waits for any more
        assert!(looked(&mut r, n, None, "").is_empty());
    }
}

#[test]
fn process_for_a_job_of_another_user_or_without_slots_there_is_refused() {
    for (conn, hosts, code) in [(BOB, ["h1", "h2"], 281), (ANN, ["h1", "h3"], 280)] {
        let mut r = Rig::new(conf());
        adopt(&mut r, conn);
        let out = told(&mut r, &hosts);
        assert_eq!(refused(&out, conn).map(|why| why.0), Some(code), "{out:?}");
        assert!(asked_look(&out).is_none());
    }
    // the launcher's reason comes to who has asked
    let mut r = Rig::new(conf());
    adopt(&mut r, ANN);
    let n = asked_look(&told(&mut r, &["h1", "h2"])).unwrap();
    looked(&mut r, n, None, "");
    let (id, why) = (r.res.id(n), "process 50 is a task already".to_owned());
    let out = launcher(&mut r, LaunchMsg::Refused { id, why: why.clone(), again: false });
    assert_eq!(refused(&out, ANN), Some((err::PERMISSION, why)));
}

#[test]
fn measurement_or_loss_of_a_daemon_is_told_to_who_waits() {
    let mut r = Rig::new(conf());
    let job = JobRef { job: 7, idx: 0 };
    let ending = ResMsg::Ending(AdoptProcess { job, pid: 50, ticks: 3, pam_ms: None });
    r.says(ANN, ending.clone());
    let n = asked_look(&told(&mut r, &["h1", "h2"])).unwrap();
    assert_eq!(answers(&looked(&mut r, n, Some(KEY), "")), ["done"]);
    r.says(ANN, ending);
    assert!(asked_look(&told(&mut r, &["h1", "h2"])).is_some());
    let out = r.step(Input::Closed { conn: SBATCHD });
    assert_eq!(refused(&out, ANN).map(|why| why.0), Some(err::DJOB_RES_TIMEOUT), "{out:?}");
    adopt(&mut r, ANN);
    let n = asked_look(&told(&mut r, &["h1", "h2"])).unwrap();
    looked(&mut r, n, None, "");
    let out = r.step(Input::Closed { conn: LAUNCHER });
    assert_eq!(refused(&out, ANN).map(|why| why.0), Some(err::BUSY), "{out:?}");
}
