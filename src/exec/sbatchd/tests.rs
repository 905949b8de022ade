//! sbatchd with the real launcher machine over an imagined host, in virtual time. Here is the rig
//! alone; the tests are by subject: orders, copies, limits,
//! restarts.

mod accounts;
mod bind_job;
mod checkpoint;
mod controls;
mod copies;
mod directories;
mod host_commands;
mod limits;
mod members_asked;
mod orders;
mod resize;
mod restarts;
mod stops;
mod usage_of_others;
mod validate;

use super::agent::*;
use super::*;
use crate::exec::launcher::{self, Launcher};
use crate::exec::plan::HostEnvironment;
use crate::model::ByteStr;
use crate::model::further::Further;
use crate::model::job::{JobSpec, Limits, Usage};
use crate::model::limits::{HostMemory, LimitEnforcement, MemoryControl};
use crate::model::topology::Topology;
use crate::proto::launch::{Journal, TASKS_MAX, TaskGroup};
use crate::proto::sbd::TaskState;
use jiff::tz::TimeZone;
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
    /// The kernel has killed one of its processes at the memory limit of its group.
    out_of_memory: bool,
}

struct Rig {
    now: Now,
    sbd: Option<Sbatchd>,
    lau: Launcher,
    journal: Vec<Journal>,
    procs: BTreeMap<u32, Proc>,
    next_pid: u32,
    /// The next processes are copies of this one.
    template: Proc,
    /// Told to mbatchd since last looked at.
    told: Vec<SbdMsg>,
    refused: Vec<Refusal>,
    /// The answers to res.
    members: Vec<MemberMsg>,
    plans: Vec<(TaskId, Plan)>,
    runs_mbatchd: bool,
    linked: bool,
    setup: Option<Setup>,
    /// Post-execution commands go on until they are ended by hand.
    slow: bool,
    /// Jobs end before it is told that they run.
    short: bool,
    /// Work at the end of jobs is not done before it is ended by hand.
    copying: bool,
    /// Commands before jobs run until they are ended by hand.
    preparing: bool,
    pim_interval: u64,
    /// LSB_SIGSTOP.
    stop_signal: Option<i32>,
    topology: Topology,
    enforcement: LimitEnforcement,
    memory: HostMemory,
    /// How often sbatchd has looked at processes.
    looks: usize,
    /// How many jobs it looked at last.
    looked_at: usize,
    /// The launcher has control groups.
    grouped: bool,
    /// The groups have memory limits.
    memory_group: bool,
}

fn conf(personal: bool) -> SbatchdConf {
    let site = HostEnvironment { host: "h1".into(), ..HostEnvironment::default() };
    SbatchdConf {
        site,
        cluster: "c".into(),
        admin: "adm".into(),
        candidates: vec!["m".into(), "h1".into()],
        pim_interval: 0,
        personal,
        zone: TimeZone::UTC,
    }
}

fn launcher_conf() -> launcher::LauncherConf {
    let boot_id = "b".into();
    launcher::LauncherConf {
        uid: 9,
        personal: true,
        boot_id,
        daemons: vec![Daemon::Sbatchd],
        peers: vec![],
        root_jobs: false,
        users: Default::default(),
        end_left_processes: false,
        hang: 0,
    }
}

/// Pid of the daemon that the launcher is told to run.
const MBATCHD: u32 = 99;
/// The pid of sbatchd itself.
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
            template: Proc::default(),
            told: vec![],
            refused: vec![],
            members: vec![],
            plans: vec![],
            runs_mbatchd: false,
            linked: false,
            setup: None,
            slow: false,
            short: false,
            copying: false,
            preparing: false,
            pim_interval: 0,
            stop_signal: None,
            topology: Topology::default(),
            enforcement: LimitEnforcement { memory_of_job: true, ..LimitEnforcement::default() },
            looks: 0,
            looked_at: 0,
            grouped: false,
            memory_group: false,
            memory: HostMemory::default(),
        };
        r.feed_launcher(Input::Start);
        r.boot(true);
        r.greet(1);
        assert!(matches!(r.told.remove(0), SbdMsg::Inventory { tasks, .. } if tasks.is_empty()));
        r
    }

    fn boot(&mut self, personal: bool) {
        let pim_interval = self.pim_interval;
        let mut conf = SbatchdConf { pim_interval, ..conf(personal) };
        conf.site.enforcement = self.enforcement;
        conf.site.stop_signal = self.stop_signal;
        conf.site.topology = self.topology.clone();
        self.sbd = Some(Sbatchd::new(conf));
        self.feed(Input::Start);
    }

    fn greet(&mut self, epoch: u64) {
        let peer = Peer::Daemon { daemon: Daemon::Mbatchd, host: "m".into() };
        self.feed(Input::Opened { conn: MBD, peer });
        let (sbd_sleep_time, job_terminate_interval) = (7, 10);
        let params = SbdParams { sbd_sleep_time, job_terminate_interval, ..SbdParams::default() };
        self.order(SbdMsg::Hello { epoch, cluster: "c".into(), params, pieces: true });
    }

    fn order(&mut self, msg: SbdMsg) {
        self.feed(Input::Msg { conn: MBD, msg: Msg::Sbd(msg) });
    }

    fn start(&mut self, o: StartJob) {
        self.order(SbdMsg::Start(Box::new(o)));
    }

    fn act(&mut self, n: u32, seq: u32, act: Act) {
        self.order(SbdMsg::Act { key: key(n), seq, order: 0, act, why: 0 });
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
            Effect::Send { msg: Msg::Member(msg), .. } => self.members.push(msg),
            Effect::Os(OsEffect::Sample { tasks, .. }) => {
                (self.looks, self.looked_at) = (self.looks + 1, tasks.len());
                let alive = tasks.iter().filter_map(|t| self.procs.get(&t.pid));
                // a process for each that its usage tells of, the first two in one group
                let see = |p: &Proc| {
                    let pids: Vec<u32> = (0..p.usage.nprocs.max(1)).map(|n| p.pid + n).collect();
                    let group = |pid: &u32| if *pid < p.pid + 2 { p.pid } else { *pid };
                    let groups: Vec<u32> = pids.iter().map(group).collect();
                    let mut pgids = groups.clone();
                    pgids.dedup();
                    TaskProcesses {
                        pid: p.pid,
                        usage: p.usage,
                        pids,
                        pgids,
                        groups,
                        out_of_memory: p.out_of_memory,
                        // each has as much as the others
                        most_of_process: p.usage.mem_kb / u64::from(p.usage.nprocs.max(1)),
                        most_of_task: 0,
                    }
                };
                queue.push_back(Input::Os(OsInput::Sampled(alive.map(see).collect(), self.memory)));
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
            OsEffect::Spawn { id, plan, .. } => {
                self.next_pid += 1;
                let pid = self.next_pid;
                self.plans.push((id, *plan));
                self.procs.insert(pid, Proc { pid, ..self.template.clone() });
                let memory = if self.memory_group { "m".to_owned() } else { String::new() };
                let group = TaskGroup { memory, ..TaskGroup::default() };
                let group = (self.grouped || self.memory_group).then(|| Box::new(group));
                queue.push_back(Input::Os(OsInput::Spawned { id, pid, ticks: 1, group }));
            }
            OsEffect::Go { id } => {
                let finish = id.step == TaskStep::Finish;
                if finish && self.copying || !finish && self.preparing {
                    return;
                }
                let ready = Ready { out: "/o".into(), user: "u".into(), ..Ready::default() };
                let setup = self.setup.clone().filter(|_| !finish);
                let setup = setup.unwrap_or(Setup::Ready(Box::new(ready)));
                let pid = self.next_pid;
                let tidies = id.key.job == 0;
                let well = finish && (!self.slow || tidies) || self.short;
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
            OsEffect::Signal { .. } => {}
            OsEffect::SignalTask { task, signal } => {
                let pid = task.pid;
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
            OsEffect::Sample { .. } | OsEffect::Look { .. } | OsEffect::Release { .. } => {}
        }
    }

    fn exits(&mut self, pid: u32, status: i32) {
        let out_of_memory = self.procs.remove(&pid).is_some_and(|p| p.out_of_memory);
        let empty = !out_of_memory;
        self.feed_launcher(Input::Os(OsInput::GroupAtEnd { pid, out_of_memory, empty }));
        let usage = Usage { utime_us: 7 * US, max_mem_kb: 4096, ..Usage::default() };
        let input = Input::Os(OsInput::Exited { pid, status, usage });
        let told = self.feed_launcher(input);
        self.pass(told);
    }

    /// The starter of a finish tells that it is through, and ends.
    fn copied(&mut self, n: u32, note: &str) {
        let id = TaskId { key: key(n), step: TaskStep::Finish };
        let ready = Ready { note: note.into(), ..Ready::default() };
        let setup = Setup::Ready(Box::new(ready));
        let told = self.feed_launcher(Input::Os(OsInput::Setup { id, setup, ended: false }));
        self.pass(told);
        let pid = self.pid();
        self.exits(pid, 0);
    }

    /// A command before the job fails, and the starter ends with it.
    fn fails_before(&mut self, n: u32, setup: Setup) {
        let id = TaskId { key: key(n), step: TaskStep::Job };
        let told = self.feed_launcher(Input::Os(OsInput::Setup { id, setup, ended: false }));
        self.pass(told);
        let pid = self.pid();
        self.exits(pid, 125 << 8);
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

    fn last(&mut self) -> AttemptPhase {
        self.states().pop().map(|s| s.phase).unwrap()
    }

    fn pid(&self) -> u32 {
        *self.procs.keys().last().unwrap()
    }

    fn job_starts(&self) -> usize {
        self.plans.iter().filter(|p| p.0.step == TaskStep::Job).count()
    }
}

fn ended(status: i32, exit_info: u32) -> AttemptPhase {
    AttemptPhase::Ended { end: End::Status(status), exit_info }
}
