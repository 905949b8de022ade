//! The world: events in virtual time, hosts with their daemons, connections between them.
//!
//! A connection delivers in order and exactly once until it breaks; then both ends hear of it,
//! and what was under way is gone. Datagrams may be lost. While a host is isolated its
//! connections stall and break, and new ones fail.

use super::check::{Check, Failure};
use super::client::{Client, passing};
use super::os::Os;
use super::wal::Wal;
use super::{Rng, Scale, Stats};
use crate::batch::Mbd;
use crate::conf::ClusterConf;
use crate::conf::types::{HostDef, HostPolicy, Mxj, QueueConf};
use crate::exec::launcher::{self, Launcher};
use crate::exec::plan::Site;
use crate::exec::sbatchd::{self, Sbatchd};
use crate::lim::Lim;
use crate::model::Now;
use crate::model::time::US;
use crate::proto::Msg;
use crate::proto::client::ClientMsg;
use crate::proto::launch::OsInput;
use crate::proto::lim::{HostFacts, LoadSample};
use crate::proto::machine::{ConnId, Daemon, Effect, Endpoint, INCOMING, Input, Machine, Peer};
use crate::proto::sbd::SbdMsg;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

/// Wall clock at virtual time 0.
const EPOCH_US: i64 = 1_800_000_000_000_000;
/// Virtual seconds after the last fault in which everything must have finished.
const SETTLE_SECS: u64 = 3600;
/// Events after which a run is taken for stuck.
const MAX_EVENTS: u64 = 50_000_000;

/// What happens.
#[derive(Debug)]
pub(super) enum Ev {
    /// Deliver to a process, if it is still this incarnation.
    Input {
        proc_: usize,
        born: u64,
        input: Box<Input>,
    },
    Tick {
        proc_: usize,
        gen_: u64,
    },
    /// Something arrives over a connection.
    Arrive {
        conn: u64,
        from_a: bool,
        msg: Box<Msg>,
    },
    Dial {
        proc_: usize,
        born: u64,
        local: ConnId,
        to: Endpoint,
    },
    Closed {
        end: End,
    },
    Commit {
        born: u64,
    },
    TaskEnd {
        host: usize,
        boot: u64,
        pid: u32,
        gen_: u64,
    },
    TaskReady {
        host: usize,
        boot: u64,
        pid: u32,
    },
    /// Start this host's launcher.
    Boot {
        host: usize,
        boot: u64,
    },
    ClientDial {
        client: usize,
        dials: u64,
    },
    Fault,
    Rejoin {
        host: usize,
    },
    DiskBack,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Proc { proc_: usize, born: u64, local: ConnId },
    Client { client: usize, dials: u64 },
}

#[derive(Debug)]
pub(super) struct Conn {
    a: End,
    b: End,
    /// Last delivery in each direction: order is kept.
    last: [u64; 2],
    /// On one host: never isolated.
    local: bool,
}

enum Mach {
    Launcher(Box<Launcher>),
    Lim(Box<Lim>),
    Sbd(Box<Sbatchd>),
    Mbd(Box<Mbd>),
}

impl Mach {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        match self {
            Mach::Launcher(m) => m.step(now, input, out),
            Mach::Lim(m) => m.step(now, input, out),
            Mach::Sbd(m) => m.step(now, input, out),
            Mach::Mbd(m) => m.step(now, input, out),
        }
    }
    fn deadline(&self) -> Option<u64> {
        match self {
            Mach::Launcher(m) => m.deadline(),
            Mach::Lim(m) => m.deadline(),
            Mach::Sbd(m) => m.deadline(),
            Mach::Mbd(m) => m.deadline(),
        }
    }
}

pub(super) struct Proc {
    pub(super) host: usize,
    daemon: Daemon,
    pub(super) pid: u32,
    mach: Option<Mach>,
    pub(super) born: u64,
    tick_gen: u64,
    tick_at: Option<u64>,
    /// Local connection number -> connection.
    conns: BTreeMap<ConnId, u64>,
}

#[derive(Debug, Default)]
pub(super) struct HostSim {
    pub name: String,
    pub os: Os,
    pub isolated: bool,
}

/// One simulation.
pub struct World {
    pub(super) scale: Scale,
    seed: u64,
    pub(super) rng: Rng,
    pub(super) now_us: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: HashMap<u64, Ev>,
    next_event: u64,
    pub(super) hosts: Vec<HostSim>,
    pub(super) procs: Vec<Proc>,
    pub(super) conns: BTreeMap<u64, Conn>,
    next_conn: u64,
    next_incoming: ConnId,
    births: u64,
    conf: ClusterConf,
    pub(super) wal: Wal,
    clients: Vec<Client>,
    pub(super) check: Check,
    pub(super) faults: usize,
    handled: u64,
    /// A fatal thing that no machine may do.
    pub(super) fatal: Option<String>,
}

fn config(scale: Scale) -> ClusterConf {
    let mut c = ClusterConf::default();
    c.base.name = "sim".into();
    c.base.cluster.admins = vec!["admin".into()];
    for i in 0..scale.hosts {
        let name = format!("host{}", i + 1);
        c.base.hosts.add_host(&name);
        c.base.cluster.hosts.push(HostDef { name, server: true, ..HostDef::default() });
    }
    let mxj = Mxj::Slots(scale.slots);
    c.batch.hosts.hosts.push(HostPolicy { name: "default".into(), mxj, ..HostPolicy::default() });
    for (name, priority) in [("normal", 30), ("high", 40)] {
        c.batch.queues.push(QueueConf { name: name.into(), priority, ..QueueConf::default() });
    }
    c.batch.params.default_queue = vec!["normal".into()];
    c.batch.params.job_accept_interval = 0;
    c.batch.params.clean_period = 1 << 30;
    c.batch.params.max_job_num = 1 << 30;
    c
}

impl World {
    pub fn new(seed: u64, scale: Scale) -> World {
        let mut rng = Rng::new(seed);
        let name = |i: usize| format!("host{}", i + 1);
        let hosts = (0..scale.hosts).map(|i| HostSim { name: name(i), ..HostSim::default() });
        let n = 4;
        let clients = (0..n)
            .map(|c| Client::new(c, c % scale.hosts, scale.jobs.div_ceil(n), &mut rng))
            .collect();
        let mut w = World {
            scale,
            seed,
            now_us: 0,
            queue: BinaryHeap::new(),
            events: HashMap::new(),
            next_event: 0,
            hosts: hosts.collect(),
            procs: Vec::new(),
            conns: BTreeMap::new(),
            next_conn: 1,
            next_incoming: INCOMING,
            births: 0,
            conf: config(scale),
            wal: Wal::default(),
            clients,
            check: Check::default(),
            faults: 0,
            handled: 0,
            fatal: None,
            rng,
        };
        for host in 0..scale.hosts {
            w.push(0, Ev::Boot { host, boot: 0 });
        }
        for client in 0..w.clients.len() {
            let at = w.rng.below(US);
            w.push(at, Ev::ClientDial { client, dials: 0 });
        }
        w.plan_fault();
        w
    }

    pub(super) fn push(&mut self, at: u64, ev: Ev) {
        self.next_event += 1;
        self.queue.push(Reverse((at.max(self.now_us), self.next_event)));
        self.events.insert(self.next_event, ev);
    }

    fn now(&self) -> Now {
        Now { mono_us: self.now_us, wall_us: EPOCH_US + self.now_us as i64 }
    }

    /// Runs until all is done, or something is wrong.
    pub fn run(&mut self) -> Result<Stats, Failure> {
        let end = (self.scale.fault_secs + SETTLE_SECS) * US;
        while let Some(Reverse((at, id))) = self.queue.pop() {
            self.now_us = at;
            self.handled += 1;
            let Some(ev) = self.events.remove(&id) else { continue };
            self.handle(ev);
            if let Some(what) = self.fatal.take().or_else(|| self.check.wrong.clone()) {
                return Err(self.failure(what));
            }
            if self.handled % 64 == 0 && self.finished() {
                break;
            }
            if at > end || self.handled > MAX_EVENTS {
                let left =
                    self.mbd().map_or("mbatchd is down".into(), |m| self.check.unfinished(m));
                let todo: usize = self.clients.iter().map(|c| c.wishes.len() - c.next).sum();
                return Err(self.failure(format!("not finished ({todo} to submit):{left}")));
            }
        }
        let unknown_ends = match self.find(0, Daemon::Mbatchd).map(|p| &self.procs[p].mach) {
            Some(Some(Mach::Mbd(m))) => self.check.finish(m),
            _ => return Err(self.failure("mbatchd is down at the end".to_string())),
        };
        if let Some(what) = self.check.wrong.clone() {
            return Err(self.failure(what));
        }
        Ok(Stats {
            events: self.handled,
            virtual_secs: self.now_us / US,
            acknowledged: self.check.acked.len(),
            faults: self.faults,
            unknown_ends,
        })
    }

    fn failure(&self, what: String) -> Failure {
        Failure { seed: self.seed, at_secs: self.now_us as f64 / 1e6, what }
    }

    fn mbd(&self) -> Option<&Mbd> {
        match self.find(0, Daemon::Mbatchd).map(|p| &self.procs[p].mach) {
            Some(Some(Mach::Mbd(m))) => Some(m),
            _ => None,
        }
    }

    fn finished(&self) -> bool {
        self.now_us >= self.scale.fault_secs * US
            && self.clients.iter().all(Client::done)
            && self.mbd().is_some_and(|m| self.check.all_over(m))
    }

    fn handle(&mut self, ev: Ev) {
        match ev {
            Ev::Input { proc_, born, input } => {
                if self.procs[proc_].born == born {
                    self.step(proc_, *input);
                }
            }
            Ev::Tick { proc_, gen_ } => {
                if self.procs[proc_].tick_gen == gen_ {
                    self.procs[proc_].tick_at = None;
                    self.step(proc_, Input::Tick);
                }
            }
            Ev::Arrive { conn, from_a, msg } => self.arrive(conn, from_a, *msg),
            Ev::Dial { proc_, born, local, to } => self.dial(proc_, born, local, to),
            Ev::Closed { end } => self.end_closed(end),
            Ev::Commit { born } => self.commit(born),
            Ev::TaskEnd { host, boot, pid, gen_ } => self.task_end(host, boot, pid, gen_),
            Ev::TaskReady { host, boot, pid } => self.task_ready(host, boot, pid),
            Ev::Boot { host, boot } => self.boot(host, boot),
            Ev::ClientDial { client, dials } => self.client_dial(client, dials),
            Ev::Fault => self.fault(),
            Ev::Rejoin { host } => self.hosts[host].isolated = false,
            Ev::DiskBack => self.disk_back(),
        }
    }

    // ---- processes ----

    pub(super) fn find(&self, host: usize, daemon: Daemon) -> Option<usize> {
        self.procs.iter().position(|p| p.host == host && p.daemon == daemon && p.mach.is_some())
    }

    fn boot(&mut self, host: usize, boot: u64) {
        if self.hosts[host].os.boot != boot || self.find(host, Daemon::Launcher).is_some() {
            return;
        }
        let conf = launcher::Conf {
            uid: 0,
            personal: false,
            boot_id: self.hosts[host].os.boot_id(),
            daemons: vec![Daemon::Lim, Daemon::Sbatchd],
            peers: vec![500],
        };
        let journal = self.hosts[host].os.journal.clone();
        let mach = Mach::Launcher(Box::new(Launcher::new(conf, journal)));
        let pid = self.hosts[host].os.pid();
        // Starters that wait for their launcher's word end with it.
        self.hosts[host].os.tasks.retain(|_, t| !t.waiting);
        self.start_proc(host, Daemon::Launcher, pid, mach);
    }

    fn start_proc(&mut self, host: usize, daemon: Daemon, pid: u32, mach: Mach) -> usize {
        self.births += 1;
        let born = self.births;
        let fresh = Proc {
            host,
            daemon,
            pid,
            mach: Some(mach),
            born,
            tick_gen: 0,
            tick_at: None,
            conns: BTreeMap::new(),
        };
        let free = self.procs.iter().position(|p| p.mach.is_none());
        let p = match free {
            Some(i) => {
                let gen_ = self.procs[i].tick_gen + 1;
                self.procs[i] = Proc { tick_gen: gen_, ..fresh };
                i
            }
            None => {
                self.procs.push(fresh);
                self.procs.len() - 1
            }
        };
        let at = self.now_us + 1000 + self.rng.below(20_000);
        self.push(at, Ev::Input { proc_: p, born, input: Box::new(Input::Start) });
        p
    }

    pub(super) fn spawn_daemon(
        &mut self,
        host: usize,
        daemon: Daemon,
    ) -> Result<(u32, u64), String> {
        let name = self.hosts[host].name.clone();
        let mach = match daemon {
            Daemon::Lim => Mach::Lim(Box::new(Lim::new(self.conf.base.clone(), &name))),
            Daemon::Sbatchd => Mach::Sbd(Box::new(Sbatchd::new(self.sbatchd_conf(&name)))),
            Daemon::Mbatchd => {
                if host != 0 {
                    self.fatal = Some(format!("mbatchd was started on {name}"));
                }
                let found = self.wal.recover(true)?;
                Mach::Mbd(Box::new(Mbd::new(self.conf.clone(), &name, found)))
            }
            other => return Err(format!("no {} here", other.name())),
        };
        let pid = self.hosts[host].os.pid();
        let ticks = self.now_us + 1;
        self.hosts[host].os.daemons.insert(pid, (daemon, ticks));
        self.start_proc(host, daemon, pid, mach);
        Ok((pid, ticks))
    }

    fn sbatchd_conf(&self, host: &str) -> sbatchd::Conf {
        sbatchd::Conf {
            site: Site {
                host: host.to_string(),
                env: Vec::new(),
                need_cwd: false,
                terminate_interval: 10,
            },
            cluster: self.conf.base.name.clone(),
            admin: "admin".to_string(),
            candidates: self.hosts.iter().map(|h| h.name.clone()).collect(),
            personal: false,
            zone: jiff::tz::TimeZone::UTC,
        }
    }

    /// kill -9. `told`: its launcher hears of it as its parent.
    pub(super) fn kill_proc(&mut self, p: usize, told: bool) {
        let (host, daemon, pid) = (self.procs[p].host, self.procs[p].daemon, self.procs[p].pid);
        self.procs[p].mach = None;
        self.procs[p].born = 0;
        self.procs[p].tick_gen += 1;
        for id in std::mem::take(&mut self.procs[p].conns).into_values() {
            self.cut(id);
        }
        self.hosts[host].os.daemons.remove(&pid);
        if daemon == Daemon::Mbatchd {
            let mut rng = self.rng.clone();
            self.wal.crash(&mut rng);
            self.rng = rng;
        }
        if told && let Some(l) = self.find(host, Daemon::Launcher) {
            let input = OsInput::Exited { pid, status: 9, usage: Default::default() };
            self.later(l, 500, Input::Os(input));
        }
    }

    fn later(&mut self, p: usize, after: u64, input: Input) {
        let born = self.procs[p].born;
        let at = self.now_us + after;
        self.push(at, Ev::Input { proc_: p, born, input: Box::new(input) });
    }

    /// One input, then everything it leads to at once.
    pub(super) fn step(&mut self, p: usize, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.now();
            let mut out = Vec::new();
            let born = self.procs[p].born;
            let Some(mach) = &mut self.procs[p].mach else { return };
            mach.step(now, input, &mut out);
            let mut answers = VecDeque::new();
            for eff in out {
                self.carry_out(p, eff, &mut answers);
                if self.procs[p].born != born {
                    return;
                }
            }
            while let Some(a) = answers.pop_back() {
                inputs.push_front(a);
            }
        }
        if self.procs[p].daemon == Daemon::Mbatchd && self.wal.seal() {
            let at = self.now_us + 100 + self.rng.below(3000);
            self.push(at, Ev::Commit { born: self.procs[p].born });
        }
        self.arm(p);
    }

    fn arm(&mut self, p: usize) {
        let Some(mach) = &self.procs[p].mach else { return };
        // A turn takes time: a machine that wants a tick at once gets it a little later.
        let want = mach.deadline().map(|d| d.max(self.now_us + 1));
        if want == self.procs[p].tick_at {
            return;
        }
        self.procs[p].tick_at = want;
        self.procs[p].tick_gen += 1;
        if let Some(at) = want {
            let gen_ = self.procs[p].tick_gen;
            self.push(at, Ev::Tick { proc_: p, gen_ });
        }
    }

    fn carry_out(&mut self, p: usize, eff: Effect, answers: &mut VecDeque<Input>) {
        match eff {
            Effect::Send { conn, msg } => {
                let drained = matches!(&msg, Msg::Client(ClientMsg::Rows { more: true, .. }));
                self.send(p, conn, msg);
                if drained {
                    self.later(p, 100, Input::Drained { conn });
                }
            }
            Effect::SendDurable { conn, msg } => {
                if let Some(msg) = self.wal.hold(conn, msg) {
                    self.send(p, conn, msg);
                }
            }
            Effect::SendBlob { conn, at } => match self.wal.blob(at) {
                Some(data) => self.send(p, conn, Msg::Sbd(SbdMsg::Blob { at, data })),
                None => self.fatal = Some(format!("no spooled bytes at {at}")),
            },
            Effect::Close { conn } => {
                if let Some(id) = self.procs[p].conns.remove(&conn) {
                    self.close_by(id, p);
                }
            }
            Effect::Connect { conn, to } => {
                let born = self.procs[p].born;
                let at = self.now_us + self.latency();
                self.push(at, Ev::Dial { proc_: p, born, local: conn, to });
            }
            Effect::Append(rec) => self.wal.append(&rec),
            Effect::Spool { at, data } => self.wal.spool(at, data),
            Effect::Account(f) => self.wal.account(&f),
            Effect::Switch { .. } => answers.push_back(Input::Switched { ok: false }),
            Effect::LoadConfig => {
                let conf = Some(Box::new(self.conf.clone()));
                answers.push_back(Input::Config { conf, diags: Vec::new() });
            }
            Effect::Datagram { to, msg } => self.datagram(p, &to, msg),
            Effect::Sample => {
                let facts = HostFacts { ncpus: 8, cpu_factor: 1.0, ..HostFacts::default() };
                let boot_id = self.hosts[self.procs[p].host].os.boot_id();
                let mem = 8000;
                let s = LoadSample { facts, boot_id, mem, ..LoadSample::default() };
                answers.push_back(Input::Sample(Box::new(s)));
            }
            Effect::Os(os) => self.os_effect(p, os, answers),
            Effect::Say { level, text } => {
                let (t, q) = (self.now_us as f64 / 1e6, &self.procs[p]);
                let host = &self.hosts[q.host].name;
                log::log!(level, "{t:.6} {} on {host}: {text}", q.daemon.name());
            }
            Effect::Exit { .. } => self.kill_proc(p, true),
        }
    }

    fn datagram(&mut self, p: usize, to: &str, msg: Msg) {
        let from = self.procs[p].host;
        let Some(host) = self.hosts.iter().position(|h| h.name == to) else { return };
        let lost = self.hosts[from].isolated || self.hosts[host].isolated || self.rng.chance(0.02);
        if lost && host != from {
            return;
        }
        if let Some(l) = self.find(host, Daemon::Lim) {
            let name = self.hosts[from].name.clone();
            let after = self.latency();
            self.later(l, after, Input::Datagram { from: name, msg });
        }
    }

    // ---- connections ----

    fn latency(&mut self) -> u64 {
        50 + self.rng.below(if self.rng.clone().chance(0.02) { 200_000 } else { 500 })
    }

    fn dial(&mut self, p: usize, born: u64, local: ConnId, to: Endpoint) {
        if self.procs[p].born != born {
            return;
        }
        let from = self.procs[p].host;
        let (host, daemon) = match &to {
            Endpoint::Launcher => (Some(from), Daemon::Launcher),
            Endpoint::Tcp { host, daemon } => {
                (self.hosts.iter().position(|h| h.name == *host), *daemon)
            }
        };
        let cut = |h: usize| h != from && (self.hosts[h].isolated || self.hosts[from].isolated);
        let target = host.filter(|h| !cut(*h)).and_then(|h| self.find(h, daemon).map(|q| (h, q)));
        let Some((h, q)) = target else {
            let why = "refused".to_string();
            return self.step(p, Input::ConnectFailed { conn: local, why });
        };
        let remote = self.incoming();
        let me = self.procs[p].daemon;
        let (to_q, to_p) = match to {
            Endpoint::Launcher => {
                (Peer::Local { uid: 500, pid: 1 }, Peer::Local { uid: 0, pid: 1 })
            }
            Endpoint::Tcp { .. } => (
                Peer::Daemon { daemon: me, host: self.hosts[from].name.clone() },
                Peer::Daemon { daemon, host: self.hosts[h].name.clone() },
            ),
        };
        let a = End::Proc { proc_: p, born, local };
        let b = End::Proc { proc_: q, born: self.procs[q].born, local: remote };
        self.connect(a, b, h == from);
        self.step(q, Input::Opened { conn: remote, peer: to_q });
        if self.procs[p].born == born {
            self.step(p, Input::Opened { conn: local, peer: to_p });
        }
    }

    fn incoming(&mut self) -> ConnId {
        self.next_incoming += 1;
        self.next_incoming
    }

    fn connect(&mut self, a: End, b: End, local: bool) -> u64 {
        let id = self.next_conn;
        self.next_conn += 1;
        for end in [a, b] {
            match end {
                End::Proc { proc_, local, .. } => {
                    self.procs[proc_].conns.insert(local, id);
                }
                End::Client { client, .. } => self.clients[client].conn = Some(id),
            }
        }
        self.conns.insert(id, Conn { a, b, last: [0, 0], local });
        id
    }

    fn send(&mut self, p: usize, local: ConnId, msg: Msg) {
        let Some(&id) = self.procs[p].conns.get(&local) else { return };
        let from_a = self.conns.get(&id).is_some_and(
            |c| matches!(c.a, End::Proc { proc_, local: l, .. } if proc_ == p && l == local),
        );
        self.transmit(id, from_a, msg);
    }

    fn transmit(&mut self, id: u64, from_a: bool, msg: Msg) {
        let after = self.latency();
        let Some(c) = self.conns.get_mut(&id) else { return };
        let at = (self.now_us + after).max(c.last[usize::from(from_a)] + 1);
        c.last[usize::from(from_a)] = at;
        self.push(at, Ev::Arrive { conn: id, from_a, msg: Box::new(msg) });
    }

    fn host_of(&self, end: End) -> usize {
        match end {
            End::Proc { proc_, .. } => self.procs[proc_].host,
            End::Client { client, .. } => self.clients[client].host,
        }
    }

    fn arrive(&mut self, id: u64, from_a: bool, msg: Msg) {
        let Some(c) = self.conns.get(&id) else { return };
        let (to, local) = (if from_a { c.b } else { c.a }, c.local);
        let cut = !local
            && (self.hosts[self.host_of(c.a)].isolated || self.hosts[self.host_of(c.b)].isolated);
        if cut {
            // What cannot be delivered breaks the connection in the end.
            return self.cut(id);
        }
        match to {
            End::Proc { proc_, born, local } => {
                if self.procs[proc_].born == born {
                    self.step(proc_, Input::Msg { conn: local, msg });
                }
            }
            End::Client { client, dials } => self.client_msg(client, dials, msg),
        }
    }

    /// Both ends hear of it.
    pub(super) fn cut(&mut self, id: u64) {
        let Some(c) = self.conns.remove(&id) else { return };
        for end in [c.a, c.b] {
            let at = self.now_us + self.latency();
            self.push(at, Ev::Closed { end });
        }
    }

    /// One end closes: what it sent before still arrives, then the other end hears of it.
    fn close_by(&mut self, id: u64, p: usize) {
        let Some(c) = self.conns.get(&id) else { return };
        let by_a = matches!(c.a, End::Proc { proc_, .. } if proc_ == p);
        let other = if by_a { c.b } else { c.a };
        let at = (self.now_us + 100).max(c.last[usize::from(by_a)] + 1);
        self.push(at, Ev::Closed { end: other });
    }

    fn end_closed(&mut self, end: End) {
        match end {
            End::Proc { proc_, born, local } => {
                if self.procs[proc_].born == born
                    && let Some(id) = self.procs[proc_].conns.remove(&local)
                {
                    self.conns.remove(&id);
                    self.step(proc_, Input::Closed { conn: local });
                }
            }
            End::Client { client, dials } => {
                if self.clients[client].dials == dials {
                    if let Some(id) = self.clients[client].conn.take() {
                        self.conns.remove(&id);
                    }
                    self.redial(client);
                }
            }
        }
    }

    // ---- mbatchd's log ----

    fn commit(&mut self, born: u64) {
        let Some(p) = self.find(0, Daemon::Mbatchd).filter(|p| self.procs[*p].born == born) else {
            return;
        };
        match self.wal.committed() {
            Some(held) => {
                for (conn, msg) in held {
                    self.send(p, conn, msg);
                }
                if self.wal.seal() {
                    let at = self.now_us + 100 + self.rng.below(3000);
                    self.push(at, Ev::Commit { born });
                }
            }
            None => self.log_failed(p),
        }
    }

    fn log_failed(&mut self, p: usize) {
        self.wal.void();
        match (self.wal.recover(false), &mut self.procs[p].mach) {
            (Ok(found), Some(Mach::Mbd(m))) => m.reload(found),
            (Err(e), _) => self.fatal = Some(e),
            _ => {}
        }
        self.step(p, Input::LogFailed { why: "No space left on device".into() });
        // Clients whose answers were void are told by the runner: here their connections end.
        let clients: Vec<u64> = self.clients.iter().filter_map(|c| c.conn).collect();
        for id in clients {
            self.cut(id);
        }
    }

    fn disk_back(&mut self) {
        self.wal.broken = false;
        if let Some(p) = self.find(0, Daemon::Mbatchd) {
            self.step(p, Input::LogBack);
        }
    }

    // ---- submitters ----

    fn redial(&mut self, client: usize) {
        if self.clients[client].done() {
            return;
        }
        self.clients[client].dials += 1;
        let dials = self.clients[client].dials;
        let at = self.now_us + 100_000 + self.rng.below(900_000);
        self.push(at, Ev::ClientDial { client, dials });
    }

    fn client_dial(&mut self, client: usize, dials: u64) {
        if self.clients[client].dials != dials || self.clients[client].conn.is_some() {
            return;
        }
        let host = self.clients[client].host;
        let cut = host != 0 && (self.hosts[host].isolated || self.hosts[0].isolated);
        let Some(q) = self.find(0, Daemon::Mbatchd).filter(|_| !cut) else {
            return self.redial(client);
        };
        let remote = self.incoming();
        let a = End::Client { client, dials };
        let b = End::Proc { proc_: q, born: self.procs[q].born, local: remote };
        let id = self.connect(a, b, host == 0);
        let c = &self.clients[client];
        let (uid, user) = (c.uid, c.user.clone());
        let peer = Peer::User { uid, gid: uid, user, host: self.hosts[host].name.clone() };
        self.step(q, Input::Opened { conn: remote, peer });
        self.ask(client, id);
    }

    fn ask(&mut self, client: usize, id: u64) {
        if let Some(msg) = self.clients[client].ask() {
            self.transmit(id, true, msg);
        }
    }

    fn client_msg(&mut self, client: usize, dials: u64, msg: Msg) {
        if self.clients[client].dials != dials {
            return;
        }
        let Some(id) = self.clients[client].conn else { return };
        match msg {
            Msg::Client(ClientMsg::Submitted { job, .. }) => {
                let w = &self.clients[client].wishes[self.clients[client].next];
                let (request, size) = (w.request.clone(), w.size);
                self.check.acknowledged(&request, job, size);
                self.clients[client].last = Some(job);
                self.clients[client].next += 1;
                self.ask(client, id);
            }
            Msg::Refused(r) if passing(&r) => self.cut(id),
            Msg::Refused(r) => {
                self.fatal = Some(format!("a good submission was refused: {}", r.words()))
            }
            _ => {}
        }
    }
}
