//! The machine of res: who may do what, credit, ends in every order.

use super::*;
use crate::model::job::{End, Usage};
use crate::proto::launch::TaskEnd;
use crate::proto::machine::INCOMING;
use crate::proto::res::{AdoptProcess, OUT, RUN_MAX};

pub(super) const ANN: ConnId = INCOMING;
pub(super) const BOB: ConnId = INCOMING + 1;
const ADMIN: ConnId = INCOMING + 2;
const ROOT: ConnId = INCOMING + 3;

pub(super) struct Rig {
    pub(super) res: Res,
    pub(super) us: u64,
}

impl Rig {
    pub(super) fn new(conf: ResConf) -> Rig {
        let mut r = Rig::before(conf);
        r.begin(vec![]);
        r
    }

    /// A res that has not begun.
    pub(super) fn before(conf: ResConf) -> Rig {
        Rig { res: Res::new(conf, [7; 32]), us: 1 }
    }

    /// Begins, with these tasks of the launcher and with callers; the effects of the tasks.
    pub(super) fn begin(&mut self, tasks: Vec<TaskInfo>) -> Vec<Effect> {
        let r = self;
        assert!(matches!(r.step(Input::Start)[..], [Effect::Connect { conn: LAUNCHER, .. }]));
        r.step(Input::Opened { conn: LAUNCHER, peer: Peer::Local { uid: 0, pid: 1 } });
        let tasks = LaunchMsg::Tasks { boot_id: "b".into(), tasks, more: false };
        let out = r.step(Input::Msg { conn: LAUNCHER, msg: Msg::Launch(tasks) });
        let who = [(ANN, "ann", 1001), (BOB, "bob", 1002), (ADMIN, "adm", 1003), (ROOT, "root", 0)];
        for (conn, user, uid) in who {
            let peer = Peer::User { uid, gid: uid, user: user.into(), host: "h2".into() };
            r.step(Input::Opened { conn, peer });
        }
        out
    }

    pub(super) fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        self.us += 1;
        let now = Now { mono_us: self.us, wall_us: 0 };
        self.res.step(now, input, &mut out);
        out
    }

    pub(super) fn says(&mut self, conn: ConnId, msg: ResMsg) -> Vec<Effect> {
        self.step(Input::Msg { conn, msg: Msg::Res(msg) })
    }

    fn run(&mut self, conn: ConnId) -> Vec<Effect> {
        let run = RunTask { argv: vec!["true".into()], ..RunTask::default() };
        self.says(conn, ResMsg::Run(Box::new(run)))
    }

    fn ended(&mut self, n: u64) -> Vec<Effect> {
        let setup = Some(Setup::Ready(Box::default()));
        let (end, usage) = (End::Status(768), Usage::default());
        let ended = Some(TaskEnd { time: 5, end, usage, restarted: false });
        let (id, note) = (self.res.id(n), String::new());
        let info =
            TaskInfo { uid: 1001, pid: 9, started: 4, setup, ended, note, ..TaskInfo::new(id) };
        self.step(Input::Msg { conn: LAUNCHER, msg: Msg::Launch(LaunchMsg::Task(Box::new(info))) })
    }
}

pub(super) fn conf() -> ResConf {
    ResConf { host: "h1".into(), admins: vec!["adm".into()], timeout: 2, ..ResConf::default() }
}

pub(super) fn asked(out: &[Effect]) -> Vec<&'static str> {
    let name = |e: &Effect| match e {
        Effect::Send { conn: LAUNCHER, msg: Msg::Launch(m) } => match m {
            LaunchMsg::Start { .. } => Some("start"),
            LaunchMsg::Signal { signal: 1, .. } => Some("hup"),
            LaunchMsg::Signal { signal: 9, .. } => Some("kill"),
            LaunchMsg::Signal { .. } => Some("signal"),
            LaunchMsg::Forget { .. } => Some("forget"),
            _ => Some("other"),
        },
        Effect::Send { msg: Msg::Refused(_), .. } => Some("refused"),
        Effect::Send { msg: Msg::Res(ResMsg::Ended { status: Some(768) }), .. } => Some("ended"),
        Effect::Send { msg: Msg::Res(ResMsg::Done), .. } => Some("done"),
        Effect::Send { msg: Msg::Data(_), .. } => Some("data"),
        Effect::Send { .. } => Some("send"),
        Effect::Close { .. } => Some("close"),
        Effect::Task { op, .. } => Some(match op {
            TaskOp::Expect { .. } => "expect",
            TaskOp::Write(_) => "write",
            TaskOp::Drain => "drain",
            TaskOp::Forget => "drop",
            TaskOp::Account(_) => "account",
            _ => "op",
        }),
        _ => None,
    };
    out.iter().filter_map(name).collect()
}

/// The rows of permissions.txt that are ours, each sent by the owner of the task and by others.
#[test]
fn the_matrix_of_message_and_role() {
    let rows =
        include_str!("../batch/site/permissions.txt").lines().filter(|l| l.starts_with("Res."));
    let rows: Vec<Vec<&str>> = rows.map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 11);
    let message = |name: &str| match name {
        "Res.Run" => {
            let run = RunTask { argv: vec!["true".into()], ..RunTask::default() };
            ResMsg::Run(Box::new(run))
        }
        "Res.Join" => ResMsg::Join { job: 7, pty: None },
        "Res.Signal" => ResMsg::Signal { signal: 15 },
        "Res.Resize" => ResMsg::Resize { rows: 1, cols: 1 },
        "Res.Credit" => ResMsg::Credit { bytes: 1 },
        "Res.Close" => ResMsg::Close { port: OUT },
        "Res.Resume" => ResMsg::Resume { task: kept_tests::OLD },
        "Res.Adopt" => ResMsg::Adopt(AdoptProcess {
            job: crate::model::JobRef { job: 7, idx: 0 },
            pid: 2,
            ticks: 3,
            pam_ms: None,
        }),
        "Res.Ending" => ResMsg::Ending(AdoptProcess {
            job: crate::model::JobRef { job: 7, idx: 0 },
            pid: 2,
            ticks: 3,
            pam_ms: None,
        }),
        "Res.Log" => ResMsg::Log { cpu_ms: None },
        "Res.Logging" => ResMsg::Logging(Default::default()),
        other => panic!("no message {other}"),
    };
    for row in &rows {
        for (conn, want) in [(BOB, row[1]), (ANN, row[2]), (ADMIN, row[4]), (ROOT, row[5])] {
            let mut r = Rig::before(ResConf { root: (false, true), ..conf() });
            if row[0] == "Res.Resume" {
                r.res.adopt(kept_tests::kept(kept_tests::OLD));
            }
            r.begin(vec![]);
            if !["Res.Run", "Res.Resume", "Res.Adopt", "Res.Ending"].contains(&row[0]) {
                assert_eq!(asked(&r.run(ANN)), ["expect", "start"]);
            }
            let out = r.says(conn, message(row[0]));
            let through = !out.is_empty() && !asked(&out).contains(&"refused");
            assert_eq!(through, want == "+", "{} by {conn}", row[0]);
        }
    }
}

#[test]
fn the_cluster_s_hosts_are_looked_at_again_and_again() {
    let looks = |syncup: Option<u64>, until: u64| {
        let mut r = Rig::new(ResConf { syncup, ..conf() });
        let mut at = Vec::new();
        while let Some(due) = r.res.deadline().filter(|d| *d <= until * US) {
            r.us = r.us.max(due);
            let out = r.step(Input::Tick);
            if out.iter().any(|e| matches!(e, Effect::LoadConfig)) {
                at.push(r.us / US);
            }
        }
        at
    };
    assert_eq!(looks(Some(90), 300), [90, 180, 270]);
    assert_eq!(looks(None, 10_000), [0; 0]);
}

#[test]
fn root_runs_nothing_but_where_it_is_said() {
    for (root, from, may) in [
        ((false, false), "h1", false),
        ((true, false), "h1", true),
        ((true, false), "h2", false),
        ((false, true), "h2", true),
    ] {
        let mut r = Rig::new(ResConf { root, ..conf() });
        let (user, host) = ("root".into(), from.into());
        r.step(Input::Opened { conn: ROOT, peer: Peer::User { uid: 0, gid: 0, user, host } });
        assert_eq!(asked(&r.run(ROOT)).contains(&"start"), may, "{root:?} from {from}");
    }
    let mut r = Rig::new(conf());
    let daemon = Peer::Daemon { daemon: crate::proto::Daemon::Sbatchd, host: "h2".into() };
    assert_eq!(asked(&r.step(Input::Opened { conn: 99, peer: daemon })), ["close"]);
}

#[test]
fn input_beyond_its_credit_ends_the_connection_and_the_task() {
    let mut r = Rig::new(conf());
    r.run(ANN);
    let data = |bytes: usize| Msg::Data(Data { port: IN, bytes: vec![0; bytes] });
    let full = r.step(Input::Msg { conn: ANN, msg: data(WINDOW) });
    assert_eq!(asked(&full), ["write"]);
    r.step(Input::Task { n: 1, news: TaskNews::Wrote(10) });
    assert_eq!(asked(&r.step(Input::Msg { conn: ANN, msg: data(10) })), ["write"]);
    let out = r.step(Input::Msg { conn: ANN, msg: data(1) });
    assert_eq!(asked(&out), ["close", "drop", "hup", "signal"]);
    // credit that was never used is not given back
    r.run(BOB);
    let more = r.says(BOB, ResMsg::Credit { bytes: u32::MAX });
    assert!(matches!(more[..], [Effect::Task { n: 2, op: TaskOp::Allow(0) }]));
}

#[test]
fn the_end_is_told_after_all_output_and_accounted() {
    let mut r = Rig::new(ResConf { acct_ms: Some(0), ..conf() });
    r.run(ANN);
    assert_eq!(asked(&r.ended(1)), ["drain"]);
    let read = TaskNews::Read(OUT, vec![1]);
    assert_eq!(asked(&r.step(Input::Task { n: 1, news: read })), ["data"]);
    let out = r.step(Input::Task { n: 1, news: TaskNews::Drained });
    assert_eq!(asked(&out), ["drop", "forget", "ended", "account"]);
    // the connection may start another
    assert_eq!(asked(&r.run(ANN)), ["expect", "start"]);
    assert_eq!(asked(&r.run(ANN)), ["close"], "but not two at a time");
}

#[test]
fn task_without_its_command_is_hung_up_and_killed() {
    let mut r = Rig::new(conf());
    r.run(ANN);
    assert_eq!(asked(&r.step(Input::Closed { conn: ANN })), ["drop", "hup", "signal"]);
    let at = r.res.deadline().unwrap();
    assert_eq!(at, r.us + 2 * US);
    r.us = at;
    assert_eq!(asked(&r.step(Input::Tick)), ["kill"]);
    assert_eq!(asked(&r.ended(1)), ["drop", "forget"]);
    // of another incarnation
    let mut id = r.res.id(5);
    id.key.attempt += 1;
    let (setup, ended, note) = (None, None, String::new());
    let info = TaskInfo { uid: 1001, pid: 9, started: 4, setup, ended, note, ..TaskInfo::new(id) };
    let tasks = LaunchMsg::Tasks { boot_id: "b".into(), tasks: vec![info], more: false };
    let out = r.step(Input::Msg { conn: LAUNCHER, msg: Msg::Launch(tasks) });
    assert_eq!(asked(&out), ["hup", "kill", "forget"]);
}

#[test]
fn the_end_of_input_on_a_terminal_is_said_until_the_task_has_ended() {
    let mut r = Rig::new(conf());
    let pty = Some(crate::proto::res::Pty::default());
    let run = RunTask { argv: vec!["cat".into()], pty, ..RunTask::default() };
    r.says(ANN, ResMsg::Run(Box::new(run)));
    let closes = |out: &[Effect]| {
        let close = |e: &&Effect| matches!(e, Effect::Task { op: TaskOp::CloseIn, .. });
        out.iter().filter(close).count()
    };
    let end = Msg::Data(Data { port: IN, bytes: Vec::new() });
    assert_eq!(closes(&r.step(Input::Msg { conn: ANN, msg: end })), 1);
    for _ in 0..3 {
        let due = r.res.deadline().expect("it is said again");
        assert_eq!(closes(&r.step(Input::Tick)), 0, "not before its time");
        r.us = due;
        assert_eq!(closes(&r.step(Input::Tick)), 1);
    }
    r.ended(1);
    assert_eq!(r.res.deadline(), None);
}

#[test]
fn hard_limits_are_lifted_and_lsrun_kept_from_users_as_configured() {
    let conf = ResConf { unlimited: vec![4], only_admins: true, ..conf() };
    let mut r = Rig::new(conf);
    let via = |name: &str| {
        let rlimits = vec![(4, Some(0), Some(0)), (7, Some(9), Some(9))];
        let argv = vec!["true".into()];
        Box::new(RunTask { argv, via: name.into(), rlimits, ..RunTask::default() })
    };
    for name in ["lsrun", "lsgrun"] {
        assert_eq!(asked(&r.says(ANN, ResMsg::Run(via(name)))), ["refused"], "{name}");
    }
    let out = r.says(ADMIN, ResMsg::Run(via("lsrun")));
    assert_eq!(asked(&out), ["expect", "start"]);
    let limits = out.iter().find_map(|e| match e {
        Effect::Send { msg: Msg::Launch(LaunchMsg::Start { plan, .. }), .. } => match &plan.what {
            TaskPlan::Job(job) => job.attach.as_ref().map(|a| a.rlimits.clone()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(limits.unwrap(), [(4, Some(0), None), (7, Some(9), Some(9))]);
    assert_eq!(asked(&r.says(ANN, ResMsg::Run(via("lsmake")))), ["expect", "start"]);
}

#[test]
fn a_task_beyond_the_caps_is_refused_and_the_connection_stays() {
    let mut r = Rig::new(conf());
    type Edit = fn(&mut RunTask);
    let run = |change: Edit| {
        let mut run = RunTask { argv: vec!["true".into()], ..RunTask::default() };
        change(&mut run);
        ResMsg::Run(Box::new(run))
    };
    let cases: [(Edit, &str); 5] = [
        (|run| run.argv = vec!["".into(); caps::MAX_ARGS + 1], "131073 words of a command"),
        (|run| run.env = vec![b'x'; RUN_MAX].into(), "the command with its environment"),
        (|run| run.rlimits = vec![(0, None, None); caps::MAX_RLIMITS + 1], "65 limits"),
        (|run| run.cwd = vec![b'/'; caps::MAX_SHOWN + 1].into(), "the working directory"),
        (|run| run.eexec = vec![b'x'; RUN_MAX + 1].into(), "the data for eexec"),
    ];
    for (change, words) in cases {
        match &r.says(ANN, run(change))[..] {
            [Effect::Send { msg: Msg::Refused(said), .. }] => {
                assert!(said.text.contains(words), "{said:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(asked(&r.run(ANN)), asked(&r.run(BOB)));
}
