//! The launcher machine, driven by hand.

use super::*;
use crate::exec::launcher_state::{RESTART_FIRST, read_journal};
use crate::exec::launcher_supervision::{SIGTERM, STEADY};
use crate::proto::launch::{LIST_BYTES, NOTE_MAX, NOTE_SMALL, NOTES_MAX, Ready, TaskPlan};

pub(super) const SBD: ConnId = 1 << 62;

pub(super) fn at(secs: u64) -> Now {
    Now { mono_us: secs * US, wall_us: (1_000_000 + secs as i64) * US as i64 }
}

pub(super) fn conf(uid: u32, personal: bool) -> LauncherConf {
    let daemons = vec![Daemon::Lim, Daemon::Sbatchd];
    LauncherConf { uid, personal, boot_id: "b1".into(), daemons, ..LauncherConf::default() }
}

pub(super) fn job(n: u32) -> TaskId {
    TaskId { key: JobKey { job: n, idx: 0, attempt: 1 }, step: TaskStep::Job }
}

pub(super) fn plan(uid: u32) -> Box<Plan> {
    let what = TaskPlan::Job(Box::default());
    Box::new(Plan { uid, gid: 5, user: "u".into(), what })
}

pub(super) fn ready() -> Setup {
    Setup::Ready(Box::new(Ready { cwd: "/w".into(), ..Ready::default() }))
}

/// A machine with its journal, as the runner would keep it.
pub(super) struct Rig {
    pub(super) m: Launcher,
    journal: Vec<Journal>,
    out: Vec<Effect>,
}

impl Rig {
    pub(super) fn new(conf: LauncherConf, journal: Vec<Journal>) -> Rig {
        Rig { m: Launcher::new(conf, journal), journal: vec![], out: vec![] }
    }

    pub(super) fn step(&mut self, now: Now, input: Input) -> Vec<Effect> {
        self.m.step(now, input, &mut self.out);
        let out = std::mem::take(&mut self.out);
        for e in &out {
            match e {
                Effect::Os(OsEffect::Journal(line)) => self.journal.push((**line).clone()),
                Effect::Os(OsEffect::Rewrite(lines)) => self.journal.clone_from(lines),
                _ => {}
            }
        }
        out
    }

    pub(super) fn os(&mut self, now: Now, input: OsInput) -> Vec<Effect> {
        self.step(now, Input::Os(input))
    }

    pub(super) fn ask(&mut self, now: Now, msg: LaunchMsg) -> Vec<Effect> {
        self.step(now, Input::Msg { conn: SBD, msg: Msg::Launch(msg) })
    }

    pub(super) fn connect(&mut self) {
        self.connect_as(1000);
    }

    pub(super) fn connect_as(&mut self, uid: u32) {
        let peer = Peer::Local { uid, pid: 77 };
        self.step(at(0), Input::Opened { conn: SBD, peer });
        self.ask(at(0), LaunchMsg::Hello);
    }

    fn launch(&mut self, n: u32, pid: u32) {
        let note = format!("note {n}");
        let out = self.ask(at(1), LaunchMsg::Start { id: job(n), plan: plan(1000), note });
        assert!(matches!(out[..], [Effect::Os(OsEffect::Spawn { .. })]), "{out:?}");
        let out = self.os(at(1), OsInput::Spawned { id: job(n), pid, ticks: 9, group: None });
        let journal = matches!(out[0], Effect::Os(OsEffect::Journal(_)));
        assert!(journal && matches!(out[1], Effect::Os(OsEffect::Go { .. })), "{out:?}");
        self.os(at(1), OsInput::Setup { id: job(n), setup: ready(), ended: false });
    }
}

pub(super) fn told_end(out: &[Effect]) -> Vec<(TaskId, TaskEnd)> {
    let mut ends = Vec::new();
    for e in out {
        if let Effect::Send { msg: Msg::Launch(LaunchMsg::Task(t)), .. } = e {
            ends.extend(t.ended.map(|e| (t.id, e)));
        }
    }
    ends
}

fn listed(out: &[Effect]) -> Vec<TaskInfo> {
    let mut all = Vec::new();
    for e in out {
        if let Effect::Send { msg: Msg::Launch(LaunchMsg::Tasks { tasks, .. }), .. } = e {
            all.extend(tasks.iter().cloned());
        }
    }
    all
}

#[test]
fn a_start_is_idempotent_and_its_end_waits() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    r.launch(7, 500);
    let again = LaunchMsg::Start { id: job(7), plan: plan(1000), note: "other".into() };
    let out = r.ask(at(2), again.clone());
    assert!(matches!(&out[..], [Effect::Send { msg: Msg::Launch(LaunchMsg::Task(t)), .. }]
        if t.pid == 500 && t.ended.is_none()));

    let usage = Usage { utime_us: 5, ..Usage::default() };
    let out = r.os(at(3), OsInput::Exited { pid: 500, status: 0x300, usage });
    let ended = TaskEnd { time: 1_000_003, end: End::Status(0x300), usage, restarted: false };
    assert_eq!(told_end(&out), [(job(7), ended)]);
    assert_eq!(told_end(&r.ask(at(4), again.clone())), [(job(7), ended)]);
    let all = listed(&r.ask(at(4), LaunchMsg::Hello));
    assert_eq!((all.len(), all[0].note.as_str(), all[0].ended), (1, "note 7", Some(ended)));

    r.ask(at(5), LaunchMsg::Forget { key: job(7).key, over_at: 0 });
    assert!(listed(&r.ask(at(5), LaunchMsg::Hello)).is_empty());
    assert!(matches!(r.ask(at(6), again)[..], [Effect::Os(OsEffect::Spawn { .. })]));
}

/// The tasks told of, to whom, and whether they have ended.
fn told_tasks(out: &[Effect]) -> Vec<(ConnId, TaskId, bool)> {
    let task = |e: &Effect| match e {
        Effect::Send { conn, msg: Msg::Launch(LaunchMsg::Task(t)) } => {
            assert!(t.setup.is_some());
            Some((*conn, t.id, t.ended.is_some()))
        }
        _ => None,
    };
    out.iter().filter_map(task).collect()
}

#[test]
fn one_message_tells_of_a_short_job() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    let note = String::new();
    r.ask(at(1), LaunchMsg::Start { id: job(8), plan: plan(1000), note });
    r.os(at(1), OsInput::Spawned { id: job(8), pid: 501, ticks: 9, group: None });
    let setup = OsInput::Setup { id: job(8), setup: ready(), ended: true };
    assert_eq!(told_tasks(&r.os(at(1), setup)), []);
    let exit = OsInput::Exited { pid: 501, status: 0, usage: Usage::default() };
    assert_eq!(told_tasks(&r.os(at(1), exit)), [(SBD, job(8), true)]);
    // the journal has all of it
    let has = |j: &Journal| matches!(j, Journal::Setup { id, .. } if *id == job(8));
    assert!(r.journal.iter().any(has));
}

#[test]
fn a_daemon_hears_of_its_own_tasks() {
    let daemons = vec![Daemon::Sbatchd, Daemon::Res];
    let mut r = Rig::new(LauncherConf { daemons, ..conf(1000, true) }, vec![]);
    r.step(at(0), Input::Start);
    let all = [(Some(Daemon::Sbatchd), 81), (Some(Daemon::Res), 82), (None, 83)];
    for (n, (daemon, pid)) in all.into_iter().enumerate() {
        if let Some(daemon) = daemon {
            r.os(at(0), OsInput::DaemonUp { daemon, pid, ticks: 1 });
        }
        let conn = SBD + n as u64;
        r.step(at(0), Input::Opened { conn, peer: Peer::Local { uid: 1000, pid } });
        r.step(at(0), Input::Msg { conn, msg: Msg::Launch(LaunchMsg::Hello) });
    }
    let mut told = |step: TaskStep, pid: u32| {
        let id = TaskId { step, ..job(pid) };
        r.ask(at(1), LaunchMsg::Start { id, plan: plan(1000), note: String::new() });
        r.os(at(1), OsInput::Spawned { id, pid, ticks: 9, group: None });
        let failed = Setup::Failed {
            at: crate::proto::launch::SetupStage::Input,
            why: "x".into(),
            exit: 0,
            begun: None,
        };
        let out = r.os(at(1), OsInput::Setup { id, setup: failed, ended: false });
        told_tasks(&out).iter().map(|t| t.0 - SBD).collect::<Vec<_>>()
    };
    assert_eq!(told(TaskStep::Job, 500), [0, 2]);
    assert_eq!(told(TaskStep::Finish, 501), [0, 2]);
    assert_eq!(told(TaskStep::Task, 502), [1, 2]);
}

#[test]
fn starts_as_other_uids_are_refused() {
    let refused = |own: u32, personal: bool, uid: u32| {
        let mut r = Rig::new(conf(own, personal), vec![]);
        r.step(at(0), Input::Start);
        r.step(at(0), Input::Opened { conn: SBD, peer: Peer::Local { uid: own, pid: 1 } });
        let note = String::new();
        let out = r.ask(at(1), LaunchMsg::Start { id: job(1), plan: plan(uid), note });
        !out.iter().any(|e| matches!(e, Effect::Os(OsEffect::Spawn { .. })))
    };
    assert!(refused(0, false, 0) && !refused(0, false, 1000));
    assert!(!refused(0, true, 0) && refused(0, true, 1000));
    assert!(!refused(1000, true, 1000) && refused(1000, true, 0) && refused(1000, false, 1001));
}

#[test]
fn strangers_are_turned_away() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    let peer = Peer::Local { uid: 1001, pid: 1 };
    let out = r.step(at(0), Input::Opened { conn: SBD, peer });
    assert!(out.iter().any(|e| matches!(e, Effect::Close { .. })));
    assert!(r.ask(at(0), LaunchMsg::Hello).is_empty());
}

#[test]
fn a_successor_adopts_and_never_guesses() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.os(at(0), OsInput::DaemonUp { daemon: Daemon::Lim, pid: 400, ticks: 3 });
    r.os(at(0), OsInput::DaemonUp { daemon: Daemon::Sbatchd, pid: 401, ticks: 3 });
    r.connect();
    for (n, pid) in [(1, 501), (2, 502), (3, 503)] {
        r.launch(n, pid);
    }
    r.ask(at(2), LaunchMsg::Note { key: job(2).key, note: "changed".into() });
    r.os(at(2), OsInput::Exited { pid: 503, status: 9, usage: Usage::default() });

    let mut s = Rig::new(conf(1000, true), r.journal.clone());
    let out = s.step(at(10), Input::Start);
    let asked = out.iter().find_map(|e| match e {
        Effect::Os(OsEffect::Check { procs }) => Some(procs.clone()),
        _ => None,
    });
    assert_eq!(asked, Some(vec![(501, 9), (502, 9), (400, 3), (401, 3)]));
    assert!(!out.iter().any(|e| matches!(e, Effect::Os(OsEffect::SpawnDaemon { .. }))));
    s.connect();
    assert!(told_end(&s.os(at(10), OsInput::Gone { pid: 501, ticks: 8 })).is_empty());
    let ends = told_end(&s.os(at(10), OsInput::Gone { pid: 501, ticks: 9 }));
    assert_eq!((ends.len(), ends[0].1.end, ends[0].1.restarted), (1, End::Unknown, false));
    let all = listed(&s.ask(at(11), LaunchMsg::Hello));
    assert_eq!(all[1].note, "changed");
    assert_eq!(all[2].ended.map(|e| e.end), Some(End::Status(9)));
    // a daemon that is gone is started again
    s.os(at(11), OsInput::Gone { pid: 401, ticks: 3 });
    let out = s.step(at(12), Input::Tick);
    let again = Effect::Os(OsEffect::SpawnDaemon { daemon: Daemon::Sbatchd });
    assert!(out.iter().any(|e| format!("{e:?}") == format!("{again:?}")));

    // in another boot nothing survived
    let boot = LauncherConf { boot_id: "b2".into(), ..conf(1000, true) };
    let mut t = Rig::new(boot, r.journal.clone());
    t.step(at(20), Input::Start);
    t.connect();
    let all = listed(&t.ask(at(20), LaunchMsg::Hello));
    let ends: Vec<_> = all.iter().filter_map(|t| t.ended).map(|e| (e.end, e.restarted)).collect();
    assert_eq!(ends[..2], [(End::Unknown, true), (End::Unknown, true)]);
    assert_eq!(ends[2], (End::Status(9), false));
}

#[test]
fn a_task_the_journal_does_not_know_never_ran() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    let start = LaunchMsg::Start { id: job(1), plan: plan(1000), note: String::new() };
    let out = r.ask(at(1), start);
    assert!(!out.iter().any(|e| matches!(e, Effect::Os(OsEffect::Go { .. }))));
    let mut s = Rig::new(conf(1000, true), r.journal.clone());
    s.step(at(2), Input::Start);
    s.connect();
    assert!(listed(&s.ask(at(2), LaunchMsg::Hello)).is_empty());
}

#[test]
fn an_upgrade_loses_nothing() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    for n in 0..20 {
        r.launch(n, 500 + n);
    }
    let text = serde_json::to_string(&r.m.save()).unwrap();
    // the names are those that an earlier release reads and wrote
    assert!(["\"version\":", "\"tasks\":", "\"sups\":"].iter().all(|n| text.contains(n)), "{text}");
    let saved: Saved = serde_json::from_str(&text).unwrap();
    let old = Saved { version: 0, ..saved.clone() };
    assert!(Launcher::resume(conf(1000, true), old).is_none());
    let m = Launcher::resume(conf(1000, true), saved).unwrap();
    let mut s = Rig { m, journal: vec![], out: vec![] };
    s.step(at(2), Input::Start);
    s.connect();
    for n in 0..20 {
        let status = (n as i32) << 8;
        let usage = Usage::default();
        let ends = told_end(&s.os(at(3), OsInput::Exited { pid: 500 + n, status, usage }));
        assert_eq!(ends[0].1.end, End::Status(status));
    }
}

#[test]
fn daemons_come_back_with_growing_pauses() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    let spawned = |out: &[Effect]| {
        out.iter().filter(|e| matches!(e, Effect::Os(OsEffect::SpawnDaemon { .. }))).count()
    };
    assert_eq!(spawned(&r.step(at(0), Input::Start)), 2);
    r.os(at(0), OsInput::DaemonUp { daemon: Daemon::Sbatchd, pid: 9, ticks: 1 });
    let mut now = at(0);
    let mut pauses = vec![];
    for pid in 10..20 {
        r.os(now, OsInput::DaemonUp { daemon: Daemon::Lim, pid, ticks: 1 });
        r.os(now, OsInput::Exited { pid, status: 256, usage: Usage::default() });
        let next = r.m.deadline().unwrap();
        pauses.push(next - now.mono_us);
        assert_eq!(spawned(&r.step(now, Input::Tick)), 0);
        now = Now { mono_us: next, ..now };
        assert_eq!(spawned(&r.step(now, Input::Tick)), 1);
    }
    assert_eq!(pauses[..3], [RESTART_FIRST, 2 * RESTART_FIRST, 4 * RESTART_FIRST]);
    assert_eq!(pauses[9], RESTART_MOST_OWN);
    // one that stayed up starts afresh
    r.os(now, OsInput::DaemonUp { daemon: Daemon::Lim, pid: 30, ticks: 1 });
    now.mono_us += STEADY;
    r.os(now, OsInput::Exited { pid: 30, status: 9, usage: Usage::default() });
    assert_eq!(r.m.deadline().unwrap() - now.mono_us, RESTART_FIRST);
}

#[test]
fn mbatchd_runs_on_request_only() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    let out = r.ask(at(1), LaunchMsg::Run { daemon: Daemon::Mbatchd, on: true });
    let mbd = OsEffect::SpawnDaemon { daemon: Daemon::Mbatchd };
    assert!(out.iter().any(|e| matches!(e, Effect::Os(o) if *o == mbd)));
    r.os(at(1), OsInput::DaemonUp { daemon: Daemon::Mbatchd, pid: 60, ticks: 2 });
    assert!(r.ask(at(2), LaunchMsg::Run { daemon: Daemon::Mbatchd, on: true }).is_empty());
    assert!(r.ask(at(2), LaunchMsg::Run { daemon: Daemon::Res, on: true }).is_empty());
    let out = r.ask(at(3), LaunchMsg::Run { daemon: Daemon::Mbatchd, on: false });
    let term = OsEffect::Signal { pid: 60, ticks: 2, signal: SIGTERM };
    assert!(out.iter().any(|e| matches!(e, Effect::Os(o) if *o == term)));
    r.os(at(3), OsInput::Exited { pid: 60, status: 0, usage: Usage::default() });
    r.os(at(3), OsInput::DaemonUp { daemon: Daemon::Lim, pid: 61, ticks: 2 });
    r.os(at(3), OsInput::DaemonUp { daemon: Daemon::Sbatchd, pid: 62, ticks: 2 });
    assert_eq!(r.m.deadline(), None);
}

#[test]
fn a_daemon_that_gives_no_sign_of_life_is_killed_and_told_of_when_it_hangs_again() {
    const MBD: ConnId = SBD + 5;
    let hang = 60 * US;
    let mut r = Rig::new(LauncherConf { hang, ..conf(1000, true) }, vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    r.ask(at(0), LaunchMsg::Run { daemon: Daemon::Mbatchd, on: true });
    let mut now = 1;
    let killed = |out: &[Effect], pid: u32| {
        let kill = OsEffect::Signal { pid, ticks: 2, signal: SIGKILL };
        out.iter().any(|e| matches!(e, Effect::Os(o) if *o == kill))
    };
    let hung = |r: &mut Rig, now| {
        let out = r.ask(at(now), LaunchMsg::Daemons);
        let Effect::Send { msg: Msg::Launch(LaunchMsg::DaemonList { hung, .. }), .. } = &out[0]
        else {
            panic!("{out:?}")
        };
        hung.clone()
    };
    for pid in [60, 61] {
        assert!(hung(&mut r, now).is_empty());
        r.os(at(now), OsInput::DaemonUp { daemon: Daemon::Mbatchd, pid, ticks: 2 });
        let peer = Peer::Local { uid: 1000, pid };
        r.step(at(now), Input::Opened { conn: MBD + ConnId::from(pid), peer });
        let sign = || Input::Msg { conn: MBD + ConnId::from(pid), msg: Msg::Ping { n: 0 } };
        // as long as it gives signs, it stays; also where the launcher stood still meanwhile
        for _ in 0..30 {
            now += 5;
            let out = r.step(at(now), sign());
            assert!(matches!(out[..], [Effect::Send { msg: Msg::Pong { n: 0 }, .. }]), "{out:?}");
            assert!(!killed(&r.step(at(now), Input::Tick), pid));
        }
        if pid == 60 {
            now += 4000;
            assert!(!killed(&r.step(at(now), Input::Tick), pid));
            r.step(at(now), sign());
        }
        let silent = now;
        // another's signs are not its own
        let other = Input::Msg { conn: SBD, msg: Msg::Ping { n: 0 } };
        r.step(at(now), other);
        while !killed(&r.step(at(now), Input::Tick), pid) {
            now += 1;
            assert!(now < silent + 75, "{pid} lives");
        }
        assert!(now >= silent + 60, "after {} s", now - silent);
        r.os(at(now), OsInput::Exited { pid, status: 9, usage: Usage::default() });
        assert!(r.m.state.supervised_daemon(Daemon::Mbatchd).at.is_some(), "it starts again");
    }
    assert_eq!(hung(&mut r, now), [Daemon::Mbatchd]);
}

#[test]
fn daemon_stopped_by_hand_stays_so_until_the_next_orderly_start() {
    let mut r = Rig::new(conf(1000, false), vec![]);
    r.connect();
    r.step(at(1), Input::Start);
    for (pid, daemon) in [(10, Daemon::Lim), (11, Daemon::Sbatchd)] {
        r.os(at(1), OsInput::DaemonUp { daemon, pid, ticks: 1 });
    }
    let out = r.ask(at(2), LaunchMsg::Run { daemon: Daemon::Sbatchd, on: false });
    let term =
        |e: &Effect| matches!(e, Effect::Os(OsEffect::Signal { pid: 11, signal: SIGTERM, .. }));
    assert!(out.iter().any(term), "{out:?}");
    r.os(at(3), OsInput::Exited { pid: 11, status: 0, usage: Usage::default() });
    let starts = |r: &mut Rig| {
        let out = r.step(at(100), Input::Start);
        let all = out.into_iter().filter_map(|e| match e {
            Effect::Os(OsEffect::SpawnDaemon { daemon }) => Some(daemon),
            _ => None,
        });
        all.collect::<Vec<_>>()
    };
    // a launcher that was killed; the host restarted; a launcher that was stopped
    assert_eq!(starts(&mut Rig::new(conf(1000, false), r.journal.clone())), []);
    let later = LauncherConf { boot_id: "b2".into(), ..conf(1000, false) };
    let both = [Daemon::Lim, Daemon::Sbatchd];
    assert_eq!(starts(&mut Rig::new(later, r.journal.clone())), both);
    r.os(at(4), OsInput::Down { jobs: false });
    r.os(at(5), OsInput::Exited { pid: 10, status: 0, usage: Usage::default() });
    assert_eq!(starts(&mut Rig::new(conf(1000, false), r.journal.clone())), both);
}

/// Three tasks: one runs, one has ended, one is forgotten; its lines as they are written.
fn journal_lines() -> Vec<Vec<u8>> {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    for (n, pid) in [(1, 501), (2, 502), (3, 503)] {
        r.launch(n, pid);
    }
    for (pid, status) in [(502, 9), (503, 0)] {
        r.os(at(2), OsInput::Exited { pid, status, usage: Usage::default() });
    }
    r.ask(at(3), LaunchMsg::Forget { key: job(3).key, over_at: 0 });
    r.journal.iter().map(|line| serde_json::to_vec(line).unwrap()).collect()
}

/// The state that a launcher makes of such lines: its tasks, each with its end.
fn found(lines: &[Vec<u8>]) -> (Vec<(u32, Option<End>)>, usize) {
    let (journal, bad) = read_journal(&lines.join(&b'\n'));
    let mut r = Rig::new(conf(1000, true), journal);
    r.step(at(9), Input::Start);
    r.connect();
    let all = listed(&r.ask(at(9), LaunchMsg::Hello));
    (all.iter().map(|t| (t.id.key.job, t.ended.map(|e| e.end))).collect(), bad.len())
}

#[test]
fn a_bad_line_of_the_journal_costs_that_line() {
    let lines = journal_lines();
    let whole = vec![(1, None), (2, Some(End::Status(9)))];
    assert_eq!(found(&lines), (whole.clone(), 0));
    let is = |line: &[u8], what: &str| line.starts_with(format!("{{\"{what}\"").as_bytes());
    for (n, line) in lines.iter().enumerate() {
        for garbage in [&b"\xff\xfe"[..], b"{", b"null", &line[..line.len() - 1]] {
            let mut damaged = lines.clone();
            damaged[n] = garbage.to_vec();
            let (tasks, bad) = found(&damaged);
            assert_eq!(bad, 1, "{n}");
            let text = String::from_utf8_lossy(line);
            let want = match () {
                () if is(line, "Task") && text.contains("\"job\":1") => whole[1..].to_vec(),
                () if is(line, "Task") && text.contains("\"job\":2") => whole[..1].to_vec(),
                // nobody saw its end: it is looked for
                () if is(line, "End") && text.contains("\"job\":2") => vec![(1, None), (2, None)],
                () if is(line, "Forget") => [&whole[..], &[(3, Some(End::Status(0)))]].concat(),
                // also of the line that tells the boot: what runs is known by pid and start
                () => whole.clone(),
            };
            assert_eq!(tasks, want, "{n}: {text}");
        }
    }
}

#[test]
fn a_line_of_the_journal_that_is_there_twice_changes_nothing() {
    let lines = journal_lines();
    for n in 0..lines.len() {
        for at in n + 1..=lines.len() {
            let mut doubled = lines.clone();
            doubled.insert(at, lines[n].clone());
            let want = vec![(1, None), (2, Some(End::Status(9)))];
            assert_eq!(found(&doubled), (want, 0), "{n} at {at}");
        }
    }
}

/// Each request of permissions.txt in each role: who may not ask is hung up on, whatever it is.
#[test]
fn the_launcher_hears_root_and_the_primary_administrator_alone() {
    let rows = crate::batch::site::permissions::rows();
    let mut asked = 0;
    for (name, want) in rows.iter().filter(|r| r.0.starts_with("Launch.")) {
        let key = job(1).key;
        let note = String::new;
        let msg = match *name {
            "Launch.Hello" => LaunchMsg::Hello,
            "Launch.Start" => LaunchMsg::Start { id: job(1), plan: plan(1000), note: note() },
            "Launch.Signal" => LaunchMsg::Signal { id: job(7), signal: 9 },
            "Launch.Note" => LaunchMsg::Note { key: job(7).key, note: note() },
            "Launch.Forget" => LaunchMsg::Forget { key, over_at: 0 },
            "Launch.Run" => LaunchMsg::Run { daemon: Daemon::Sbatchd, on: false },
            "Launch.Daemons" => LaunchMsg::Daemons,
            "Launch.Down" => LaunchMsg::Down { jobs: true },
            other => panic!("no message {other}"),
        };
        for (uid, want) in [1001, 1002, 1003, 70, 0].into_iter().zip(want) {
            let mut r = Rig::new(LauncherConf { peers: vec![70], ..conf(0, false) }, vec![]);
            r.step(at(0), Input::Start);
            r.os(at(0), OsInput::DaemonUp { daemon: Daemon::Sbatchd, pid: 40, ticks: 2 });
            let out = r.step(at(1), Input::Opened { conn: SBD, peer: Peer::Local { uid, pid: 7 } });
            let hung_up = out.iter().any(|e| matches!(e, Effect::Close { .. }));
            assert_eq!(!hung_up, *want, "{name} by uid {uid}");
            let out = r.ask(at(1), msg.clone());
            assert!(*want || out.is_empty(), "{name} by uid {uid}: {out:?}");
            asked += 1;
        }
    }
    assert_eq!(asked, 40);
}

/// The pids that are told to end, and the daemons that start.
fn moved(out: &[Effect]) -> (Vec<u32>, Vec<Daemon>) {
    let (mut ended, mut started) = (Vec::new(), Vec::new());
    for e in out {
        match e {
            Effect::Os(OsEffect::Signal { pid, signal: SIGTERM, .. }) => {
                ended.push(*pid);
            }
            Effect::Os(OsEffect::SpawnDaemon { daemon }) => started.push(*daemon),
            _ => {}
        }
    }
    (ended, started)
}

#[test]
fn a_server_that_becomes_a_client_keeps_authd_alone() {
    let all = vec![Daemon::Authd, Daemon::Lim, Daemon::Sbatchd];
    let server = LauncherConf { daemons: all.clone(), ..conf(1000, false) };
    let client = LauncherConf { daemons: vec![Daemon::Authd], ..conf(1000, false) };
    let mut r = Rig::new(server.clone(), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    r.ask(at(0), LaunchMsg::Run { daemon: Daemon::Mbatchd, on: true });
    for (pid, daemon) in (10..).zip(all.iter().copied().chain([Daemon::Mbatchd])) {
        r.os(at(1), OsInput::DaemonUp { daemon, pid, ticks: 1 });
    }
    // replaced by exec, and after a kill by what the journal says
    let saved = Launcher::resume(client.clone(), r.m.save()).unwrap();
    let same = Rig { m: saved, journal: vec![], out: vec![] };
    for mut c in [same, Rig::new(client.clone(), r.journal.clone())] {
        assert_eq!(moved(&c.step(at(2), Input::Start)), (vec![11, 12, 13], vec![]));
        let gone = |pid| OsInput::Gone { pid, ticks: 1 };
        let usage = Usage::default();
        for pid in 11..14 {
            c.os(at(3), gone(pid));
            c.os(at(3), OsInput::Exited { pid, status: 0, usage });
        }
        c.connect();
        c.ask(at(4), LaunchMsg::Run { daemon: Daemon::Mbatchd, on: true });
        assert_eq!(moved(&c.step(at(20), Input::Tick)).1, []);
        // a client still, and a server again
        let journal = c.journal;
        for (conf, want) in [(&client, vec![]), (&server, all[1..].to_vec())] {
            let mut next = Rig::new(conf.clone(), journal.clone());
            let mut started = moved(&next.step(at(30), Input::Start)).1;
            for pid in 11..14 {
                next.os(at(31), OsInput::Gone { pid, ticks: 1 });
            }
            started.extend(moved(&next.step(at(60), Input::Tick)).1);
            assert_eq!(started, want);
        }
    }
}

#[test]
fn down_with_jobs_waits_for_their_ends_then_stops_the_daemons() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.os(at(0), OsInput::DaemonUp { daemon: Daemon::Lim, pid: 40, ticks: 2 });
    r.os(at(0), OsInput::DaemonUp { daemon: Daemon::Sbatchd, pid: 41, ticks: 2 });
    r.connect();
    r.launch(1, 500);
    let out = r.os(at(2), OsInput::Down { jobs: true });
    let (id, uid, group) = (job(1), 1000, None);
    let task = Box::new(TaskIdentity { id, uid, pid: 500, ticks: 9, group, child: true });
    let want = OsEffect::SignalTask { task, signal: SIGKILL };
    assert!(matches!(&out[..], [Effect::Os(o)] if *o == want), "{out:?}");
    r.os(at(2), OsInput::Exited { pid: 500, status: 9, usage: Usage::default() });
    let out = r.ask(at(2), LaunchMsg::Forget { key: job(1).key, over_at: 0 });
    let terms = |o: &Effect| matches!(o, Effect::Os(OsEffect::Signal { signal: SIGTERM, .. }));
    assert_eq!(out.iter().filter(|o| terms(o)).count(), 2, "{out:?}");
    let start = LaunchMsg::Start { id: job(2), plan: plan(1000), note: String::new() };
    let out = r.ask(at(3), start);
    assert!(out.iter().any(|e| matches!(e, Effect::Say { .. })));
    r.os(at(3), OsInput::Exited { pid: 40, status: 0, usage: Usage::default() });
    let out = r.os(at(3), OsInput::Exited { pid: 41, status: 0, usage: Usage::default() });
    assert!(matches!(out.last(), Some(Effect::Exit { code: 0 })), "{out:?}");
    assert!(!r.journal.iter().any(|j| matches!(j, Journal::Daemon { .. })));
}

#[test]
fn the_journal_stays_bounded() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    for n in 1..2_000 {
        r.launch(n, 500);
        r.os(at(2), OsInput::Exited { pid: 500, status: 0, usage: Usage::default() });
        r.ask(at(2), LaunchMsg::Forget { key: job(n).key, over_at: 0 });
        assert!(r.journal.len() <= JOURNAL_SLACK + 20);
    }
}

#[test]
fn a_long_list_of_tasks_is_told_piece_by_piece_as_it_is_read() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    for n in 1..=40 {
        let note = "n".repeat(100 << 10);
        r.ask(at(1), LaunchMsg::Start { id: job(n), plan: plan(1000), note });
        r.os(at(1), OsInput::Spawned { id: job(n), pid: 500 + n, ticks: 9, group: None });
    }
    let (mut all, mut pieces) = (Vec::new(), 0);
    let mut out = r.ask(at(2), LaunchMsg::Hello);
    while let [Effect::Send { msg: Msg::Launch(LaunchMsg::Tasks { tasks, more, .. }), .. }] =
        &out[..]
    {
        let bytes: usize = tasks.iter().map(|t| t.note.len()).sum();
        assert!(bytes <= LIST_BYTES + (100 << 10), "{bytes}");
        all.extend(tasks.iter().map(|t| t.id));
        pieces += 1;
        if !more {
            break;
        }
        // one that ends meanwhile, another that is forgotten before it was told
        if pieces == 1 {
            r.os(at(2), OsInput::Exited { pid: 540, status: 0, usage: Usage::default() });
            r.ask(at(2), LaunchMsg::Forget { key: job(40).key, over_at: 0 });
        }
        out = r.step(at(2), Input::Drained { conn: SBD });
    }
    assert_eq!(all, (1..40).map(job).collect::<Vec<_>>());
    assert!(pieces >= 4 && r.step(at(3), Input::Drained { conn: SBD }).is_empty());
}

#[test]
fn notes_of_all_tasks_together_have_a_bound() {
    let mut r = Rig::new(conf(1000, true), vec![]);
    r.step(at(0), Input::Start);
    r.connect();
    let mut refused = 0;
    for n in 1..=60 {
        let note = "n".repeat(NOTE_MAX);
        let out = r.ask(at(1), LaunchMsg::Start { id: job(n), plan: plan(1000), note });
        if let [.., Effect::Send { msg: Msg::Launch(LaunchMsg::Refused { why, .. }), .. }] =
            &out[..]
        {
            assert!(why.contains("notes of all tasks would take more than 50331648 bytes"));
            refused += 1;
        }
    }
    assert_eq!(refused, 60 - NOTES_MAX / NOTE_MAX);
    // small ones have room still, and a note may change
    let note = "n".repeat(NOTE_SMALL);
    let out = r.ask(at(1), LaunchMsg::Start { id: job(99), plan: plan(1000), note });
    assert!(matches!(out[..], [Effect::Os(OsEffect::Spawn { .. })]), "{out:?}");
    let told = |r: &mut Rig, note: String| r.ask(at(1), LaunchMsg::Note { key: job(99).key, note });
    assert_eq!(told(&mut r, "m".repeat(NOTE_SMALL)).len(), 1);
    assert!(told(&mut r, "m".repeat(2 * NOTE_SMALL)).is_empty());
}
