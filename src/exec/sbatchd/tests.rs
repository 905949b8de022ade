//! sbatchd with the real launcher machine over an imagined host, in virtual time.

use super::*;
use crate::exec::launcher::{self, Launcher};
use crate::model::ByteStr;
use crate::model::job::{JobSpec, Limits, Usage, extra};
use crate::proto::launch::{Journal, TASKS_MAX};
use crate::proto::sbd::TaskState;
use std::collections::VecDeque;

const MBD: ConnId = 1 << 62;
const UP: ConnId = (1 << 62) + 7;

/// An imagined process: what it ignores, what it uses.
#[derive(Clone, Debug, Default)]
struct Proc {
    pid: u32,
    ignores: Vec<i32>,
    usage: Usage,
    signals: Vec<i32>,
}

struct Rig {
    now: Now,
    sbd: Option<Sbatchd>,
    lau: Launcher,
    journal: Vec<Journal>,
    procs: BTreeMap<u32, Proc>,
    next_pid: u32,
    /// What the next processes are like.
    mould: Proc,
    /// Told to mbatchd since last looked at.
    told: Vec<SbdMsg>,
    refused: Vec<Refusal>,
    plans: Vec<(TaskId, Plan)>,
    runs_mbatchd: bool,
    linked: bool,
    setup: Option<Setup>,
    /// What comes after jobs goes on until it is ended by hand.
    slow: bool,
    /// Jobs end before it is told that they run.
    short: bool,
}

fn conf(personal: bool) -> Conf {
    let site = Site { host: "h1".into(), ..Site::default() };
    Conf {
        site,
        cluster: "c".into(),
        admin: "adm".into(),
        candidates: vec!["m".into(), "h1".into()],
        personal,
        zone: TimeZone::UTC,
    }
}

fn launcher_conf() -> launcher::Conf {
    let boot_id = "b".into();
    launcher::Conf {
        uid: 9,
        personal: true,
        boot_id,
        daemons: vec![Daemon::Sbatchd],
        peers: vec![],
        root_jobs: false,
        users: Default::default(),
    }
}

/// Pid of the daemon that the launcher is told to run.
const MBATCHD: u32 = 99;
/// The same of sbatchd itself.
const OTHER: u32 = 98;

fn key(n: u32) -> JobKey {
    JobKey { job: n, idx: 0, attempt: 1 }
}

fn order(n: u32) -> StartJob {
    StartJob { key: key(n), uid: 9, user: "u".into(), ..StartJob::default() }
}

impl Rig {
    fn new() -> Rig {
        let mut r = Rig {
            now: Now { mono_us: 0, wall_us: 1_000_000 * US as i64 },
            sbd: None,
            lau: Launcher::new(launcher_conf(), vec![]),
            journal: vec![],
            procs: BTreeMap::new(),
            next_pid: 500,
            mould: Proc::default(),
            told: vec![],
            refused: vec![],
            plans: vec![],
            runs_mbatchd: false,
            linked: false,
            setup: None,
            slow: false,
            short: false,
        };
        r.feed_launcher(Input::Start);
        r.boot(true);
        r.greet(1);
        assert!(matches!(r.told.remove(0), SbdMsg::Inventory { tasks, .. } if tasks.is_empty()));
        r
    }

    fn boot(&mut self, personal: bool) {
        self.sbd = Some(Sbatchd::new(conf(personal)));
        self.feed(Input::Start);
    }

    fn greet(&mut self, epoch: u64) {
        let peer = Peer::Daemon { daemon: Daemon::Mbatchd, host: "m".into() };
        self.feed(Input::Opened { conn: MBD, peer });
        let params = SbdParams { sbd_sleep_time: 7, job_terminate_interval: 10, simulated: false };
        self.order(SbdMsg::Hello { epoch, cluster: "c".into(), params });
    }

    fn order(&mut self, msg: SbdMsg) {
        self.feed(Input::Msg { conn: MBD, msg: Msg::Sbd(msg) });
    }

    fn start(&mut self, o: StartJob) {
        self.order(SbdMsg::Start(Box::new(o)));
    }

    fn act(&mut self, n: u32, seq: u32, act: Act) {
        self.order(SbdMsg::Act { key: key(n), seq, act });
    }

    fn feed(&mut self, input: Input) {
        let mut queue = VecDeque::from([input]);
        while let Some(input) = queue.pop_front() {
            let Some(sbd) = &mut self.sbd else { return };
            let mut out = vec![];
            sbd.step(self.now, input, &mut out);
            for e in out {
                self.effect(e, &mut queue);
            }
        }
    }

    fn effect(&mut self, e: Effect, queue: &mut VecDeque<Input>) {
        match e {
            Effect::Connect { conn: LAUNCHER, .. } => {
                self.linked = true;
                let peer = Peer::Local { uid: 9, pid: 1 };
                self.feed_launcher(Input::Opened { conn: UP, peer: peer.clone() });
                queue.push_back(Input::Opened { conn: LAUNCHER, peer });
            }
            Effect::Connect { conn, .. } => {
                queue.push_back(Input::ConnectFailed { conn, why: "none".into(), refused: true });
            }
            Effect::Send { conn: LAUNCHER, msg } if self.linked => {
                for msg in self.feed_launcher(Input::Msg { conn: UP, msg }) {
                    queue.push_back(Input::Msg { conn: LAUNCHER, msg });
                }
            }
            Effect::Send { conn: MBD, msg: Msg::Sbd(msg) } => self.told.push(msg),
            Effect::Send { msg: Msg::Refused(why), .. } => self.refused.push(why),
            Effect::Os(OsEffect::Sample { sids }) => {
                let alive = sids.iter().filter_map(|s| self.procs.get(s));
                // a process for each that its usage tells of, the first two in one group
                let see = |p: &Proc| {
                    let pids: Vec<u32> = (0..p.usage.nprocs.max(1)).map(|n| p.pid + n).collect();
                    let group = |pid: &u32| if *pid < p.pid + 2 { p.pid } else { *pid };
                    let groups: Vec<u32> = pids.iter().map(group).collect();
                    let mut pgids = groups.clone();
                    pgids.dedup();
                    Session { sid: p.pid, usage: p.usage, pids, pgids, groups }
                };
                queue.push_back(Input::Os(OsInput::Sampled(alive.map(see).collect())));
            }
            _ => {}
        }
    }

    /// Steps the launcher with its imagined system; returns what it tells sbatchd.
    fn feed_launcher(&mut self, input: Input) -> Vec<Msg> {
        let mut queue = VecDeque::from([input]);
        let mut told = vec![];
        while let Some(input) = queue.pop_front() {
            let mut out = vec![];
            self.lau.step(self.now, input, &mut out);
            for e in out {
                match e {
                    Effect::Send { conn: UP, msg } => told.push(msg),
                    Effect::Os(os) => self.os(os, &mut queue),
                    _ => {}
                }
            }
        }
        told
    }

    fn os(&mut self, e: OsEffect, queue: &mut VecDeque<Input>) {
        match e {
            OsEffect::Spawn { id, plan } => {
                self.next_pid += 1;
                let pid = self.next_pid;
                self.plans.push((id, *plan));
                self.procs.insert(pid, Proc { pid, ..self.mould.clone() });
                queue.push_back(Input::Os(OsInput::Spawned { id, pid, ticks: 1 }));
            }
            OsEffect::Go { id } => {
                let finish = id.step == Step::Finish;
                let ready = Ready { out: "/o".into(), user: "u".into(), ..Ready::default() };
                let setup = self.setup.clone().unwrap_or(Setup::Ready(Box::new(ready)));
                let pid = self.next_pid;
                let well = finish && !self.slow || self.short;
                let dead = well || matches!(setup, Setup::Failed { .. });
                queue.push_back(Input::Os(OsInput::Setup { id, setup, ended: self.short }));
                if dead {
                    self.procs.remove(&pid);
                    let status = if well { 0 } else { 2 << 8 };
                    let usage = Usage::default();
                    queue.push_back(Input::Os(OsInput::Exited { pid, status, usage }));
                }
            }
            OsEffect::Signal { pid: MBATCHD, signal, .. } => {
                self.runs_mbatchd = false;
                let exit =
                    OsInput::Exited { pid: MBATCHD, status: signal, usage: Usage::default() };
                queue.push_back(Input::Os(exit));
            }
            OsEffect::Signal { pid, signal, .. } => {
                let Some(p) = self.procs.get_mut(&pid) else { return };
                p.signals.push(signal);
                if !p.ignores.contains(&signal) && !matches!(signal, SIGSTOP | SIGCONT) {
                    let usage = p.usage;
                    self.procs.remove(&pid);
                    queue.push_back(Input::Os(OsInput::Exited { pid, status: signal, usage }));
                }
            }
            OsEffect::SpawnDaemon { daemon } => {
                let mine = daemon == Daemon::Mbatchd;
                self.runs_mbatchd |= mine;
                let pid = if mine { MBATCHD } else { OTHER };
                let up = OsInput::DaemonUp { daemon, pid, ticks: 1 };
                queue.push_back(Input::Os(up));
            }
            OsEffect::Check { procs } => {
                for (pid, ticks) in
                    procs.into_iter().filter(|p| !self.procs.contains_key(&p.0) && p.0 != OTHER)
                {
                    queue.push_back(Input::Os(OsInput::Gone { pid, ticks }));
                }
            }
            OsEffect::Journal(line) => self.journal.push(*line),
            OsEffect::Rewrite(lines) => self.journal = lines,
            OsEffect::Sample { .. } => {}
        }
    }

    fn exits(&mut self, pid: u32, status: i32) {
        self.procs.remove(&pid);
        let usage = Usage { utime_us: 7 * US, max_mem_kb: 4096, ..Usage::default() };
        let input = Input::Os(OsInput::Exited { pid, status, usage });
        let told = self.feed_launcher(input);
        self.pass(told);
    }

    fn pass(&mut self, told: Vec<Msg>) {
        if self.linked && self.sbd.is_some() {
            told.into_iter().for_each(|msg| self.feed(Input::Msg { conn: LAUNCHER, msg }));
        }
    }

    /// Lets time pass, ticking where it is asked for.
    fn wait(&mut self, secs: u64) {
        let end = self.now.mono_us + secs * US;
        loop {
            let sbd = self.sbd.as_ref().and_then(Machine::deadline);
            let next = [sbd, self.lau.deadline()].into_iter().flatten().min().unwrap_or(u64::MAX);
            let to = next.clamp(self.now.mono_us, end);
            self.now.wall_us += (to - self.now.mono_us) as i64;
            self.now.mono_us = to;
            if next > end {
                return;
            }
            let told = self.feed_launcher(Input::Tick);
            self.pass(told);
            self.feed(Input::Tick);
        }
    }

    /// sbatchd dies and comes back.
    fn crash(&mut self) {
        (self.sbd, self.linked) = (None, false);
        self.feed_launcher(Input::Closed { conn: UP });
    }

    fn states(&mut self) -> Vec<TaskState> {
        let mut all = vec![];
        for m in std::mem::take(&mut self.told) {
            match m {
                SbdMsg::State(s) => all.push(*s),
                SbdMsg::Inventory { tasks, .. } => all.extend(tasks),
                _ => {}
            }
        }
        all
    }

    fn last(&mut self) -> Phase {
        self.states().pop().map(|s| s.phase).unwrap()
    }

    fn pid(&self) -> u32 {
        *self.procs.keys().last().unwrap()
    }

    fn job_starts(&self) -> usize {
        self.plans.iter().filter(|p| p.0.step == Step::Job).count()
    }
}

fn ended(status: i32, exit_info: u32) -> Phase {
    Phase::Ended { end: End::Status(status), exit_info }
}

#[test]
fn a_job_from_order_to_forget() {
    let mut r = Rig::new();
    let env = SpoolRef { spool: 1, at: 0, len: 6 };
    r.start(StartJob { env, ..order(1) });
    assert!(matches!(r.told[..], [SbdMsg::NeedBlob { at }] if at == env));
    r.start(StartJob { env, ..order(1) });
    r.start(StartJob { env, ..order(2) });
    assert_eq!(r.told.len(), 2, "asked once: {:?}", r.told);
    assert_eq!(r.job_starts(), 0);
    r.told.clear();
    r.order(SbdMsg::Blob { at: env, data: ByteStr::from("A=b\0\0\0") });
    assert_eq!(r.job_starts(), 2);
    let phases: Vec<_> = r.states().into_iter().map(|s| (s.key.job, s.phase)).collect();
    assert_eq!(phases, [(1, Phase::Running), (2, Phase::Running)]);
    r.start(StartJob { env, ..order(1) });
    assert_eq!((r.job_starts(), r.last()), (2, Phase::Running));
    r.start(StartJob { env, ..order(3) });
    assert_eq!(r.job_starts(), 3, "the environment was kept");

    r.wait(3);
    r.told.clear();
    r.exits(501, 3 << 8);
    let s = r.states().pop().unwrap();
    assert_eq!((s.phase.clone(), s.time), (ended(3 << 8, 0), 1_000_003));
    assert_eq!((s.usage.utime_us, s.usage.max_mem_kb), (7 * US, 4096));
    let finish = r.plans.last().unwrap();
    let What::Finish(f) = &finish.1.what else { panic!() };
    assert!(f.text.lossy().contains("\nExited with exit code 3.\n\nResource usage summary:"));
    // told again until forgotten
    r.greet(1);
    assert!(r.states().contains(&s));
    r.order(SbdMsg::Forget { key: key(1) });
    r.greet(1);
    assert!(!r.states().contains(&s));
    assert!(r.journal.iter().any(|j| matches!(j, Journal::Forget { key: k } if *k == key(1))));
}

#[test]
fn what_runs_after_a_job_is_told_of_when_it_has_ended() {
    let posts = |r: &mut Rig| r.states().iter().map(|s| s.post).collect::<Vec<_>>();
    for (status, post) in [(0, Post::Done), (1 << 8, Post::Failed)] {
        let mut r = Rig::new();
        r.slow = true;
        r.start(StartJob { post_exec: "after".into(), ..order(1) });
        r.told.clear();
        r.exits(501, 0);
        assert_eq!(posts(&mut r), [Post::Running]);
        // an sbatchd that comes meanwhile goes on waiting
        r.crash();
        r.boot(true);
        r.greet(1);
        assert_eq!(posts(&mut r), [Post::Running]);
        r.exits(502, status);
        let s = r.states().pop().unwrap();
        assert_eq!((s.phase, s.post), (ended(0, 0), post));
        r.greet(1);
        assert_eq!(posts(&mut r), [post]);
    }
    // a job that goes back to its queue is not begun beside it
    let mut r = Rig::new();
    r.slow = true;
    let extra = vec![(extra::REQUEUE.to_string(), "3".to_string())];
    let spec = JobSpec { extra, ..JobSpec::default() };
    r.start(StartJob { spec, post_exec: "after".into(), ..order(1) });
    r.told.clear();
    r.exits(501, 3 << 8);
    assert_eq!(posts(&mut r), []);
    r.exits(502, 0);
    assert_eq!(posts(&mut r), [Post::Done]);
    // a launcher that has lost it; nothing to wait for; a copied file is none
    let mut r = Rig::new();
    r.slow = true;
    r.start(StartJob { post_exec: "after".into(), ..order(1) });
    r.exits(501, 0);
    r.told.clear();
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    r.lau = Launcher::new(launcher_conf(), vec![]);
    r.feed_launcher(Input::Start);
    r.wait(1);
    assert_eq!(posts(&mut r).last(), Some(&Post::Failed));
    let copied = JobSpec { extra: vec![("f".into(), "a < b".into())], ..JobSpec::default() };
    for (n, spec) in [(2, JobSpec::default()), (3, copied)] {
        r.start(StartJob { spec, ..order(n) });
        r.told.clear();
        r.exits(r.next_pid, 0);
        assert_eq!(posts(&mut r), [Post::None], "{n}");
    }
}

#[test]
fn only_an_mbatchd_of_this_epoch_gives_orders() {
    let mut r = Rig::new();
    r.greet(5);
    r.greet(4);
    assert_eq!(r.refused.len(), 1);
    for peer in [
        Peer::Daemon { daemon: Daemon::Mbatchd, host: "stranger".into() },
        Peer::Daemon { daemon: Daemon::Sbatchd, host: "m".into() },
        Peer::User { uid: 0, gid: 0, user: "root".into(), host: "m".into() },
    ] {
        let before = r.refused.len();
        r.feed(Input::Opened { conn: MBD + 1, peer });
        let msg = Msg::Sbd(SbdMsg::Start(Box::new(order(8))));
        r.feed(Input::Msg { conn: MBD + 1, msg });
        assert_eq!((r.refused.len(), r.job_starts()), (before + 2, 0));
    }
}

#[test]
fn terminate_is_int_term_kill_apart() {
    let mut r = Rig::new();
    r.mould.ignores = vec![SIGINT, 15];
    r.start(order(1));
    let pid = r.pid();
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    assert_eq!(r.procs[&pid].signals, [SIGINT]);
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    r.act(1, 2, Act::Terminate { exit_info: term::ADMIN });
    r.wait(9);
    assert_eq!(r.procs[&pid].signals, [SIGINT]);
    r.wait(2);
    assert_eq!(r.procs[&pid].signals, [SIGINT, 15]);
    r.wait(10);
    assert_eq!(r.last(), ended(9, term::OWNER));

    // a parallel job is only killed
    r.start(StartJob { hosts: vec![("h1".into(), 2)], ..order(2) });
    r.act(2, 1, Act::Terminate { exit_info: term::ADMIN });
    assert_eq!(r.last(), ended(9, term::ADMIN));
}

#[test]
fn a_forced_kill_overtakes_a_slow_one() {
    let mut r = Rig::new();
    r.mould.ignores = vec![SIGINT, 15];
    r.start(order(1));
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    r.act(1, 2, Act::Terminate { exit_info: term::FORCE_OWNER });
    assert_eq!(r.last(), ended(9, term::FORCE_OWNER));
}

#[test]
fn suspended_time_does_not_count_against_the_run_limit() {
    let mut r = Rig::new();
    let limits = Limits { run: Some(60), ..Limits::default() };
    r.mould.ignores = vec![12];
    r.start(StartJob { limits, ..order(1) });
    let pid = r.pid();
    r.wait(20);
    r.act(1, 1, Act::Suspend);
    assert_eq!(r.last(), Phase::Suspended);
    r.wait(100);
    r.act(1, 2, Act::Resume);
    assert_eq!(r.last(), Phase::Running);
    assert_eq!(r.procs[&pid].signals, [SIGSTOP, SIGCONT]);
    r.wait(38);
    assert_eq!(r.procs[&pid].signals.len(), 2);
    r.wait(3);
    assert_eq!(r.procs[&pid].signals[2..], [12]);
    r.wait(10);
    assert_eq!(r.last(), ended(SIGINT, term::RUNLIMIT));
}

#[test]
fn a_warning_comes_before_the_run_limit_once() {
    for (time, limit, at) in [("20", 60, 40), ("25%", 80, 60)] {
        let mut r = Rig::new();
        let limits = Limits { run: Some(limit), ..Limits::default() };
        r.mould.ignores = vec![10, 12];
        let given = |k: &str, v: &str| (k.to_string(), v.to_string());
        let extra = vec![given("wa", "USR1"), given("wt", time)];
        let spec = JobSpec { extra, ..JobSpec::default() };
        r.start(StartJob { limits, spec, ..order(1) });
        let pid = r.pid();
        r.wait(at - 2);
        assert!(r.procs[&pid].signals.is_empty(), "{time}");
        r.wait(4);
        assert_eq!(r.procs[&pid].signals, [10], "{time}");
        // one that starts again knows that it was sent
        r.crash();
        r.boot(true);
        r.greet(1);
        r.wait(10);
        assert_eq!(r.procs[&pid].signals, [10], "{time}");
        r.wait(limit - at - 10);
        assert_eq!(r.procs[&pid].signals, [10, 12], "{time}");
    }
}

#[test]
fn a_command_warns_as_the_user_and_ends_nothing() {
    let mut r = Rig::new();
    let limits = Limits { run: Some(60), ..Limits::default() };
    r.mould.usage = Usage { mem_kb: 1000, nprocs: 1, ..Usage::default() };
    let given = |k: &str, v: &str| (k.to_string(), v.to_string());
    let extra = vec![given("wa", "touch x; false"), given("wt", "20")];
    let spec = JobSpec { extra, ..JobSpec::default() };
    let env = SpoolRef { spool: 1, at: 0, len: 6 };
    r.start(StartJob { limits, spec, env, user: "u".into(), ..order(1) });
    r.order(SbdMsg::Blob { at: env, data: b"MINE=1".to_vec().into() });
    let pid = r.pid();
    let warned = |r: &Rig| {
        let plans = r.plans.iter().filter(|p| p.0.step == Step::Warn);
        plans.map(|p| p.1.clone()).collect::<Vec<_>>()
    };
    r.wait(38);
    assert!(warned(&r).is_empty());
    // one that starts again has to ask for the environment
    r.crash();
    r.boot(true);
    r.greet(1);
    r.wait(4);
    assert!(r.told.iter().any(|m| matches!(m, SbdMsg::NeedBlob { at } if *at == env)));
    assert!(warned(&r).is_empty());
    r.order(SbdMsg::Blob { at: env, data: b"MINE=1".to_vec().into() });
    r.wait(2);
    let plans = warned(&r);
    assert_eq!((plans.len(), plans[0].uid), (1, 9));
    let What::Finish(what) = &plans[0].what else { panic!() };
    assert_eq!(
        what.post,
        [launch::Hook { text: "touch x; false".into(), of: launch::HookOf::Job }]
    );
    let vars: Vec<_> = what.env.0.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
    for want in ["MINE=1", "LSB_JOBID=1", &format!("LSB_JOBPGIDS={pid}")] {
        assert!(vars.iter().any(|v| v == want), "{want}: {vars:?}");
    }
    assert!(what.append_to.is_empty() && what.mail.is_none() && what.remove.is_empty());
    assert!(r.procs[&pid].signals.is_empty());
    r.crash();
    r.boot(true);
    r.greet(1);
    r.wait(8);
    assert_eq!(warned(&r).len(), 1, "once");
    r.wait(10);
    assert_eq!(r.procs.get(&pid).map(|p| p.signals.clone()), None, "the run limit ends it");
}

#[test]
fn limits_on_use_are_seen_by_sampling() {
    let run = |limits: Limits, usage: Usage| {
        let mut r = Rig::new();
        r.mould.usage = usage;
        r.start(StartJob { limits, ..order(1) });
        r.wait(4);
        r.last()
    };
    let mem = Usage { mem_kb: 2000, ..Usage::default() };
    let limits = Limits { rss: Some(1999), ..Limits::default() };
    assert_eq!(run(limits, mem), ended(SIGINT, term::MEMLIMIT));
    assert_eq!(run(Limits { rss: Some(2000), ..Limits::default() }, mem), Phase::Running);
    let cpu = Usage { utime_us: 9 * US, ..Usage::default() };
    let limits = Limits { cpu: Some(8), ..Limits::default() };
    assert_eq!(run(limits, cpu), ended(24, term::CPULIMIT));
    let many = Usage { nprocs: 9, nthreads: 9, ..Usage::default() };
    let limits = Limits { process: Some(8), ..Limits::default() };
    assert_eq!(run(limits, many), ended(SIGINT, term::PROCESSLIMIT));
}

#[test]
fn usage_is_told_when_it_changes() {
    let mut r = Rig::new();
    r.mould.usage = Usage { mem_kb: 1000, nprocs: 1, ..Usage::default() };
    r.start(order(1));
    let told = |r: &mut Rig| {
        let is = |m: &SbdMsg| matches!(m, SbdMsg::Usage { .. });
        std::mem::take(&mut r.told).iter().filter(|m| is(m)).count()
    };
    r.wait(60);
    assert_eq!(told(&mut r), 1);
    let pid = r.pid();
    r.procs.get_mut(&pid).unwrap().usage.mem_kb = 1050;
    r.wait(60);
    assert_eq!(told(&mut r), 0);
    r.procs.get_mut(&pid).unwrap().usage.mem_kb = 1200;
    r.wait(60);
    assert_eq!(told(&mut r), 1);
}

#[test]
fn process_groups_are_told_where_there_are_several() {
    let told = |nprocs| {
        let mut r = Rig::new();
        r.mould.usage = Usage { mem_kb: 1000, nprocs, ..Usage::default() };
        r.start(order(1));
        r.wait(60);
        let pid = r.pid();
        let groups = r.told.iter().find_map(|m| match m {
            SbdMsg::Usage { groups, pids, .. } if pids.len() == nprocs as usize => Some(groups),
            _ => None,
        });
        groups.unwrap().iter().map(|group| group - pid).collect::<Vec<_>>()
    };
    assert_eq!(told(1), [0; 0]);
    assert_eq!(told(2), [0; 0]);
    assert_eq!(told(3), [0, 0, 2]);
}

#[test]
fn a_new_sbatchd_goes_on_where_the_old_one_stopped() {
    let mut r = Rig::new();
    r.mould.ignores = vec![SIGINT];
    let limits = Limits { run: Some(100), ..Limits::default() };
    r.start(StartJob { limits, ..order(1) });
    r.start(order(2));
    r.start(order(3));
    let (one, two, three) = (501, 502, 503);
    r.act(2, 4, Act::Terminate { exit_info: term::OWNER });
    r.act(3, 1, Act::Suspend);
    r.told.clear();
    r.crash();
    r.wait(5);
    // one ends while nobody looks
    r.exits(one, 7 << 8);
    r.wait(5);
    r.boot(true);
    r.greet(1);
    let states = r.states();
    let phase = |n: u32| states.iter().rev().find(|s| s.key.job == n).map(|s| s.phase.clone());
    assert_eq!(phase(1), Some(ended(7 << 8, 0)));
    assert_eq!((phase(2), phase(3)), (Some(Phase::Running), Some(Phase::Suspended)));
    let one = states.iter().rev().find(|s| s.key.job == 1).unwrap();
    assert_eq!(one.time, 1_000_005);
    assert_eq!(r.job_starts(), 3);
    // an order seen before is old; the kill goes on
    r.act(2, 4, Act::Terminate { exit_info: term::ADMIN });
    assert_eq!(r.procs[&two].signals, [SIGINT]);
    r.wait(11);
    assert_eq!(r.last(), ended(15, term::OWNER));
    r.act(3, 2, Act::Resume);
    assert_eq!(r.procs[&three].signals, [SIGSTOP, SIGCONT]);
}

#[test]
fn of_a_short_job_its_end_alone_is_told() {
    let mut r = Rig::new();
    r.short = true;
    r.start(order(1));
    let states = r.states();
    assert_eq!(states.iter().map(|s| s.phase.clone()).collect::<Vec<_>>(), [ended(0, 0)]);
    // with all that is known of its start
    assert_eq!((states[0].pid, states[0].exec_user.as_str()), (501, "u"));
}

#[test]
fn a_new_sbatchd_waits_for_the_launcher_before_it_tells() {
    let mut r = Rig::new();
    r.start(order(1));
    r.told.clear();
    r.crash();
    let mut sbd = Sbatchd::new(conf(true));
    let mut out = vec![];
    sbd.step(r.now, Input::Start, &mut out);
    let peer = Peer::Daemon { daemon: Daemon::Mbatchd, host: "m".into() };
    sbd.step(r.now, Input::Opened { conn: MBD, peer }, &mut out);
    let params = SbdParams::default();
    let msg = Msg::Sbd(SbdMsg::Hello { epoch: 1, cluster: "c".into(), params });
    sbd.step(r.now, Input::Msg { conn: MBD, msg }, &mut out);
    assert!(!out.iter().any(|e| matches!(e, Effect::Send { conn: MBD, .. })), "{out:?}");
}

#[test]
fn a_lost_launcher_makes_ends_unknown() {
    let mut r = Rig::new();
    r.start(order(1));
    r.start(order(2));
    r.told.clear();
    // the launcher dies, its journal stays; job 2 ends meanwhile
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    r.procs.remove(&502);
    let journal = std::mem::take(&mut r.journal);
    r.lau = Launcher::new(launcher_conf(), journal);
    r.feed_launcher(Input::Start);
    r.wait(2);
    let end = Phase::Ended { end: End::Unknown, exit_info: term::LOST_STATUS };
    assert_eq!(r.last(), end);
    r.act(1, 1, Act::Signal { number: 10 });
    r.wait(1);
    assert_eq!(r.last(), end, "job 1 was not our child");
    assert_eq!(r.job_starts(), 2);
    // one that lost its journal too
    r.start(order(3));
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    r.lau = Launcher::new(launcher_conf(), vec![]);
    r.feed_launcher(Input::Start);
    r.wait(1);
    assert_eq!(r.last(), end);
}

#[test]
fn orders_wait_while_the_launcher_is_away() {
    let mut r = Rig::new();
    r.start(order(1));
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    r.feed_launcher(Input::Closed { conn: UP });
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    r.start(order(2));
    assert_eq!(r.job_starts(), 1);
    r.wait(1);
    assert_eq!(r.job_starts(), 2);
    let states = r.states();
    assert!(states.iter().any(|s| s.phase == ended(SIGINT, term::OWNER)));
}

#[test]
fn setups_that_fail() {
    let fail = |at: launch::Stage| {
        let mut r = Rig::new();
        r.setup = Some(Setup::Failed { at, why: "no".into() });
        r.start(order(1));
        let s = r.states().pop().unwrap();
        assert_eq!(s.note, "no");
        s.phase
    };
    assert_eq!(fail(launch::Stage::User), Phase::Failed { reason: pend::NO_USER });
    assert_eq!(fail(launch::Stage::Input), Phase::Failed { reason: pend::JOB_OPEN_FILES });
    assert_eq!(fail(launch::Stage::Cwd), ended(2 << 8, term::CWD_NOTEXIST));
    // refused by the launcher
    let mut r = Rig::new();
    r.start(StartJob { uid: 10, ..order(1) });
    assert_eq!(r.last(), Phase::Failed { reason: pend::EXEC_INIT });
    assert!(TASKS_MAX > ATTEMPTS_MAX);
}

#[test]
fn a_forgotten_job_is_killed() {
    let mut r = Rig::new();
    r.mould.ignores = vec![SIGINT, 15];
    r.start(order(1));
    r.order(SbdMsg::Forget { key: key(1) });
    assert!(r.procs.is_empty());
    r.told.clear();
    r.greet(1);
    assert!(r.states().is_empty());
}

#[test]
fn mbatchd_runs_on_the_master_host_alone() {
    let mut r = Rig::new();
    assert!(!r.runs_mbatchd, "no LIM: the first candidate is another host");
    let lim = |master: &str| Input::Msg {
        conn: LIM,
        msg: Msg::Lim(LimMsg::Master { cluster: "c".into(), master: master.into() }),
    };
    let peer = Peer::Daemon { daemon: Daemon::Lim, host: "h1".into() };
    r.feed(Input::Opened { conn: LIM, peer });
    r.feed(lim(""));
    r.feed(lim("m"));
    assert!(!r.runs_mbatchd);
    r.feed(lim("h1"));
    assert!(r.runs_mbatchd);
    r.feed(lim("m"));
    assert!(!r.runs_mbatchd);
    // a LIM that is soon back changes nothing, one that stays away does
    r.feed(lim("h1"));
    r.feed(Input::Closed { conn: LIM });
    r.wait(3);
    assert!(r.runs_mbatchd);
    r.wait(3);
    assert!(!r.runs_mbatchd);
}

#[test]
fn simulated_jobs_take_their_time_and_nothing_else() {
    let mut r = Rig::new();
    let params = SbdParams { simulated: true, ..SbdParams::default() };
    r.order(SbdMsg::Params(params.clone()));
    let mut o = order(1);
    o.spec.command = "sleep 30".into();
    r.start(o.clone());
    assert_eq!(r.last(), Phase::Running);
    r.wait(29);
    assert!(r.states().is_empty());
    r.wait(2);
    assert_eq!((r.last(), r.job_starts()), (ended(0, 0), 0));
    o.key.job = 2;
    r.start(o.clone());
    r.act(2, 1, Act::Terminate { exit_info: term::OWNER });
    assert_eq!(r.last(), ended(SIGINT, term::OWNER));
    // refused elsewhere
    r.crash();
    r.boot(false);
    r.greet(1);
    r.order(SbdMsg::Params(params));
    o.key.job = 3;
    r.start(o);
    assert_eq!(r.job_starts(), 1);
}

#[test]
fn an_order_for_an_earlier_boot_never_runs() {
    let mut r = Rig::new();
    r.start(StartJob { boot: "b".into(), ..order(1) });
    assert_eq!(r.job_starts(), 1);
    r.told.clear();
    r.start(StartJob { boot: "before".into(), ..order(2) });
    let end = Phase::Ended { end: End::Unknown, exit_info: term::HOST_RESTART };
    assert_eq!((r.job_starts(), r.last()), (1, end));
}

#[test]
fn the_most_processors_used_between_two_looks() {
    let start = Now { mono_us: 7, wall_us: 1_000_000 * US as i64 };
    let at = |secs: u64| Now {
        mono_us: start.mono_us + secs * US,
        wall_us: start.wall_us + (secs * US) as i64,
    };
    let used = |secs: u64| Usage { utime_us: secs * US, mem_kb: 10, ..Usage::default() };
    let begun = || {
        let mut job = Attempt::new(order(1), start);
        job.started = start.secs();
        job
    };
    let mut job = begun();
    for (secs, cpu, want) in [
        // since its start, which is known by the second
        (9, 10, (100, 9)),
        (19, 35, (250, 19)),
        (29, 40, (250, 19)),
        // a look at once tells nothing
        (29, 90, (250, 19)),
        // less than before: a process that is gone took its time with it
        (39, 20, (250, 19)),
        (49, 50, (300, 49)),
    ] {
        let session = Session { sid: 501, usage: used(cpu), ..Session::default() };
        job.sampled(at(secs), &session);
        assert_eq!((job.usage.cpu_peak, job.usage.cpu_peak_secs), want, "{secs} {cpu}");
        assert_eq!(job.usage.utime_us, cpu * US);
    }
    job.final_usage(at(59), used(55));
    assert_eq!((job.usage.cpu_peak, job.usage.cpu_peak_secs), (300, 49));
    // what was never looked at: what it used in all
    let mut job = begun();
    job.final_usage(at(6), used(7));
    assert_eq!((job.usage.cpu_peak, job.usage.cpu_peak_secs), (100, 6));
}
