//! Permission to report on an attempt: each message of a sbatchd, sent by the first host of an
//! attempt, by another host of its job, by a host that has nothing of it, over a connection that
//! mbatchd has not made, and by a user; the rows are those of permissions.txt.

use super::*;
use crate::batch::soft_state::validations::Subject;
use crate::model::further::Further;
use crate::model::job::SpoolRef;
use crate::proto::host_command::{HostCommandState, HostWork};
use crate::proto::sbd::{Post, SbdParams, StartJob};
use crate::proto::validation::Verdict;

const CALLER: ConnId = crate::proto::machine::INCOMING + 9;
const ROLES: [&str; 5] = ["first", "other", "without", "caller", "user"];

fn on(hosts: &str) -> JobSpec {
    let further = Further::from_iter([("hostslots", hosts)]);
    JobSpec { min_slots: 0, max_slots: 0, further, ..spec("x") }
}

/// A rig, the connections of h1 and h2, a job on h1 and h2 and one on h1 alone.
fn rig() -> (Rig, [ConnId; 2], [JobKey; 2]) {
    let mut r = Rig::new();
    let start = |r: &mut Rig, hosts: &str| {
        let env = ByteStr::from(format!("HOSTS={hosts}\0").as_str());
        let s = Submit { spec: on(hosts), env, ..Submit::default() };
        r.ask(USER, ClientMsg::Submit(Box::new(s)));
        let (conn, key) = r.starts()[0];
        r.report(conn, key, AttemptPhase::Running);
        key
    };
    let keys = [start(&mut r, "h1 1 h2 1"), start(&mut r, "h1 1")];
    let conns = [0, 1].map(|i| r.mbd.links.hosts()[super::host(i)].up().unwrap());
    (r, conns, keys)
}

fn message(name: &str, r: &Rig, key: JobKey) -> SbdMsg {
    let usage = Usage { mem_kb: 77, ..Usage::default() };
    let task = TaskState { key, phase: done(), pid: 7, usage, ..TaskState::default() };
    match name {
        "Inventory" => SbdMsg::Inventory {
            boot_id: "boot".into(),
            tasks: vec![task],
            more: false,
            members: None,
            validates: false,
            unjoined: Vec::new(),
            member_slots: Vec::new(),
        },
        "State" => SbdMsg::State(Box::new(task)),
        "NeedBlob" => SbdMsg::NeedBlob { at: r.mbd.state.job(key.job).unwrap().env },
        "Usage" => {
            let (pids, pgids, groups) = (vec![], vec![], vec![]);
            SbdMsg::Usage { key, usage: usage.into(), pids, pgids, groups }
        }
        "AskHosts" => SbdMsg::AskHosts { key, work: HostWork::Before },
        "HostCommandTold" => {
            let (work, state) = (HostWork::Before, HostCommandState::Done);
            SbdMsg::HostCommandTold { key, work, state }
        }
        "HostCommand" => SbdMsg::HostCommand { work: HostWork::Stop, order: Box::default() },
        "HostTold" => {
            let (work, state) = (HostWork::Before, HostCommandState::Done);
            SbdMsg::HostTold { key, host: "h2".into(), work, state }
        }
        "Hello" => SbdMsg::Hello {
            epoch: 9,
            cluster: "c1".into(),
            params: SbdParams::default(),
            pieces: true,
        },
        "Start" => SbdMsg::Start(Box::new(StartJob { key, ..StartJob::default() })),
        "Blob" => SbdMsg::Blob { at: SpoolRef::default(), data: ByteStr::default() },
        "Act" => SbdMsg::Act {
            key,
            seq: u32::MAX,
            order: u64::MAX,
            act: Act::Terminate { exit_info: 1 },
            why: 0,
        },
        "Forget" => SbdMsg::Forget { key, mail: String::new() },
        "Params" => SbdMsg::Params(SbdParams::default()),
        "Join" => SbdMsg::Join(Box::new(StartJob { key, ..StartJob::default() })),
        "Leave" => SbdMsg::Leave { key },
        "Joined" => SbdMsg::Joined { key },
        "JoinRefused" => SbdMsg::JoinRefused { key, why: "full".into() },
        "Left" => SbdMsg::Left { key, usage: usage.into() },
        "HostUsage" => SbdMsg::HostUsage {
            key,
            usage: usage.into(),
            pids: vec![],
            groups: vec![],
            over_memory: false,
        },
        "TaskGone" => SbdMsg::TaskGone { key, status: 11 },
        "AskUsage" => SbdMsg::AskUsage { key },
        "UsageTold" => SbdMsg::UsageTold { key, usage: usage.into(), without: vec![] },
        "Validate" => SbdMsg::Validate(Box::default()),
        "Validated" => SbdMsg::Validated { number: 1, verdict: Verdict::Accepted },
        "Logging" => SbdMsg::Logging(crate::proto::Logging::default()),
        other => panic!("no message {other} is sent here"),
    }
}

fn effects(r: &mut Rig, conn: ConnId, msg: SbdMsg) -> Vec<Effect> {
    let mut out = Vec::new();
    r.mbd.step(r.now, Input::Msg { conn, msg: Msg::Sbd(msg) }, &mut out);
    out
}

fn subject() -> Subject {
    Subject { uid: 1, user: "u".into(), from: "h1".into() }
}

/// Has mbatchd wait for the answer of h2 that this message is.
fn awaits(r: &mut Rig, name: &str, key: JobKey) {
    let h2 = super::host(1);
    match name {
        "Joined" | "JoinRefused" => _ = r.mbd.fanout.wait(key, &[(h2, 1)], u64::MAX),
        "HostUsage" => r.mbd.fanout.note(key, (h2, 1), true),
        "Left" => {
            r.mbd.fanout.leaves(r.now, key, h2);
            r.mbd.links.left_runs(h2, key, 1);
        }
        "Validated" => _ = r.mbd.validations.ask(&subject(), h2, r.now.mono_us),
        _ => {}
    }
}

/// Is the answer of h2 still awaited?
fn waits(r: &Rig, name: &str, key: JobKey) -> bool {
    match name {
        "JoinRefused" => r.mbd.fanout.has(key, super::host(1)),
        "Left" => r.mbd.fanout.deadline().is_some(),
        "Validated" => r.mbd.validations.deadline().is_some(),
        _ => true,
    }
}

/// Was anything believed, told or done?
fn let_through(r: &Rig, key: JobKey, out: &[Effect]) -> bool {
    let run = r.mbd.state.elem(key.job_ref()).and_then(state::Elem::run).unwrap();
    let ended = r.mbd.state.running(key).is_none();
    ended
        || run.soft.usage.mem_kb == 77
        || out.iter().any(|e| !matches!(e, Effect::Say { .. } | Effect::Close { .. }))
}

#[test]
fn each_message_of_a_host_is_taken_from_those_alone_whom_the_table_names() {
    let rows = crate::batch::site::permissions::rows();
    let mut n = 0;
    for (name, want) in rows.iter().filter_map(|(n, w)| Some((n.strip_prefix("Sbd.")?, w))) {
        for (role, want) in ROLES.into_iter().zip(want) {
            let (mut r, [h1, h2], [both, alone]) = rig();
            let peer = Peer::Daemon { daemon: Daemon::Sbatchd, host: "h1".into() };
            r.step(Input::Opened { conn: CALLER, peer });
            let (conn, key) = match role {
                "first" => (h1, both),
                "other" => (h2, both),
                "without" => (h2, alone),
                "caller" => (CALLER, alone),
                _ => (USER, alone),
            };
            awaits(&mut r, name, both);
            let before = r.mbd.state.elem(alone.job_ref()).map(|e| e.stat());
            let msg = message(name, &r, key);
            let out = effects(&mut r, conn, msg);
            let taken = let_through(&r, key, &out) || !waits(&r, name, both);
            assert_eq!(taken, *want, "{name} by {role}: {out:?}");
            if !want {
                assert_eq!(r.mbd.state.elem(alone.job_ref()).map(|e| e.stat()), before);
                let by = if matches!(role, "other" | "without") { "h2: " } else { "h1: " };
                let told =
                    |e: &Effect| matches!(e, Effect::Say { text, .. } if text.starts_with(by));
                let counted = u64::from(role != "user");
                assert_eq!(r.mbd.reports_refused(), counted, "{name} by {role}");
                assert_eq!(out.iter().any(told), counted == 1, "{name} by {role}: {out:?}");
            }
            n += 1;
        }
    }
    assert_eq!(n, 26 * 5);
}

#[test]
fn an_inventory_of_a_host_without_the_job_does_not_end_it() {
    let (mut r, [_, h2], keys) = rig();
    let msg = SbdMsg::Inventory {
        boot_id: "another".into(),
        tasks: vec![],
        more: false,
        members: None,
        validates: false,
        unjoined: Vec::new(),
        member_slots: Vec::new(),
    };
    r.step(Input::Msg { conn: h2, msg: Msg::Sbd(msg) });
    assert!(keys.iter().all(|key| r.mbd.state.running(*key).is_some()));
}

#[test]
fn post_execution_of_a_job_is_told_by_its_first_host_alone() {
    let (mut r, [h1, h2], [both, _]) = rig();
    let told = |post| TaskState { key: both, phase: done(), pid: 7, post, ..TaskState::default() };
    let say = |r: &mut Rig, conn, post| {
        r.step(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(told(post)))) });
        let state::ElemState::End(end) = &r.mbd.state.elem(both.job_ref()).unwrap().state else {
            panic!()
        };
        end.post
    };
    assert_eq!(say(&mut r, h1, Post::Running), Post::Running);
    assert_eq!(say(&mut r, h2, Post::Failed), Post::Running);
    assert_eq!(r.mbd.reports_refused(), 1);
    assert_eq!(say(&mut r, h1, Post::Done), Post::Done);
}

/// A host that speaks for an attempt that never was, or was before, moves nothing either.
#[test]
fn attempts_that_never_were_are_no_hosts() {
    let (mut r, [h1, h2], [both, alone]) = rig();
    let before = r.log.len();
    for (conn, key) in [
        (h1, JobKey { attempt: 7, ..both }),
        (h2, JobKey { attempt: 0, ..alone }),
        (h2, JobKey { idx: 3, ..both }),
    ] {
        r.report(conn, key, done());
        r.report(conn, key, AttemptPhase::Running);
    }
    assert_eq!((r.log.len(), r.mbd.reports_refused()), (before, 6));
}

#[test]
fn refused_reports_are_counted_for_showstatus_and_logged_once_a_minute() {
    let (mut r, [_, h2], [_, alone]) = rig();
    let row = |r: &mut Rig| {
        let rows = r.mbd.show("status").unwrap();
        rows.into_iter().find(|l| l.about == "refused").map(|l| l.text)
    };
    assert_eq!(row(&mut r), None);
    for _ in 0..100 {
        r.report(h2, alone, done());
    }
    assert_eq!(row(&mut r).as_deref(), Some("100"));
    let said = |r: &Rig| r.said.iter().filter(|s| s.starts_with("h2: ")).count();
    assert_eq!(said(&r), 1);
    let text = r.said.iter().find(|s| s.starts_with("h2: ")).unwrap();
    let job = alone.job;
    assert_eq!(*text, format!("h2: the state of job <{job}>, which is on h1: refused (1 so far)"));
    r.now.mono_us += 60_000_000;
    r.report(h2, alone, done());
    assert_eq!(said(&r), 2);
}

/// Load comes from the LIM beside mbatchd alone, which mbatchd has called itself.
#[test]
fn the_lim_of_another_host_is_not_asked_for_the_load_of_any() {
    use crate::proto::lim::status;
    let (mut r, ..) = rig();
    let peer = Peer::Daemon { daemon: Daemon::Lim, host: "h2".into() };
    r.step(Input::Opened { conn: CALLER, peer });
    let gone = HostLoad { host: "h1".into(), status: status::UNAVAIL, ..HostLoad::default() };
    let msg = Msg::Lim(LimMsg::Loads { hosts: vec![gone] });
    let mut out = Vec::new();
    r.mbd.step(r.now, Input::Msg { conn: CALLER, msg }, &mut out);
    assert_eq!(
        (r.mbd.view().host_status(super::host(0)).text(), r.mbd.reports_refused()),
        ("closed_Full", 1)
    );
    assert!(out.iter().any(|e| matches!(e, Effect::Close { conn: CALLER })), "{out:?}");
}
