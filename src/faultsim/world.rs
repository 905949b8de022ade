//! The world: events in virtual time, hosts with their daemons. Connections are in `net`,
//! mbatchd's log in `log`.

use super::check::Check;
use super::client::Client;
use super::host_death::Deaths;
use super::limits::{self, Started, USERS};
use super::log::MbdLog;
use super::net::{Conn, End};
use super::os::Os;
use super::rng::Rng;
use super::scale::Scale;
use crate::batch::Mbatchd;
use crate::conf::ClusterConf;
use crate::conf::types::HostDef;
use crate::exec::launcher::{self, Launcher};
use crate::exec::plan::HostEnvironment;
use crate::exec::sbatchd::{self, Sbatchd};
use crate::lim::Lim;
use crate::log::writer::WriterNotice;
use crate::model::Now;
use crate::model::event::Record;
use crate::model::idmap::IdMap;
use crate::model::time::US;
use crate::proto::Daemon;
use crate::proto::Msg;
use crate::proto::launch::OsInput;
use crate::proto::lim::{HostFacts, LoadSample};
use crate::proto::machine::{ConnId, Effect, Endpoint, INCOMING, Input, Machine};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Wall clock at virtual time 0.
const EPOCH_US: i64 = 1_800_000_000_000_000;

/// Events.
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
    /// The log's thread is through with what it does.
    LogTurn {
        gen_: u64,
    },
    /// The loop hears of it.
    LogTold {
        born: u64,
        notice: WriterNotice,
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
    /// A submitter makes its next request.
    Ask {
        client: usize,
        dials: u64,
    },
    Fault,
    /// A host loses power.
    Power {
        host: usize,
    },
    Rejoin {
        host: usize,
    },
    DiskBack,
    /// A master that was stopped goes on.
    Wake,
    /// An administrator opens what lost control records closed.
    Reopen,
}

pub(super) enum Mach {
    Launcher(Box<Launcher>),
    Lim(Box<Lim>),
    Sbd(Box<Sbatchd>),
    Mbd(Box<Mbatchd>),
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
    fn work(&mut self, now: Now, out: &mut Vec<Effect>) {
        if let Mach::Mbd(m) = self {
            m.work(now, out);
        }
    }
    fn has_work(&self) -> bool {
        matches!(self, Mach::Mbd(m) if m.has_work())
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
    pub(super) daemon: Daemon,
    pub(super) pid: u32,
    pub(super) mach: Option<Mach>,
    pub(super) born: u64,
    pub(super) tick_gen: u64,
    pub(super) tick_at: Option<u64>,
    /// Local connection number -> connection.
    pub(super) conns: BTreeMap<ConnId, u64>,
}

#[derive(Debug, Default)]
pub(super) struct HostSim {
    pub name: String,
    pub os: Os,
    pub isolated: bool,
    /// Not back before then, however often it is cut off or dies meanwhile.
    pub isolated_until: u64,
    pub dead_until: u64,
}

/// One simulation.
pub struct World {
    pub(super) scale: Scale,
    pub(super) seed: u64,
    pub(super) rng: Rng,
    pub(super) now_us: u64,
    pub(super) queue: BinaryHeap<Reverse<(u64, u64)>>,
    pub(super) events: IdMap<u64, Ev>,
    next_event: u64,
    pub(super) hosts: Vec<HostSim>,
    pub(super) procs: Vec<Proc>,
    pub(super) conns: BTreeMap<u64, Conn>,
    pub(super) next_conn: u64,
    pub(super) next_incoming: ConnId,
    births: u64,
    pub(super) conf: ClusterConf,
    pub(super) log: MbdLog,
    pub(super) clients: Vec<Client>,
    pub(super) check: Check,
    pub(super) deaths: Deaths,
    /// Attempts that the mbatchd that runs has started.
    pub(super) started: Started,
    pub(super) faults: usize,
    pub(super) switches: usize,
    /// How often the log went to another host.
    pub(super) moves: usize,
    /// How often a master was overtaken while it was stopped before a write.
    pub(super) overtaken: usize,
    pub(super) handled: u64,
    /// A fatal thing that no machine may do.
    pub(super) fatal: Option<String>,
}

fn config(scale: Scale, rng: &mut Rng) -> ClusterConf {
    let mut c = ClusterConf::default();
    c.base.name = "sim".into();
    c.base.cluster.admins = vec!["admin".into()];
    for i in 0..scale.hosts {
        let name = format!("host{}", i + 1);
        c.base.hosts.add_host(&name);
        c.base.cluster.hosts.push(HostDef { name, server: true, ..HostDef::default() });
    }
    limits::configure(&mut c.batch, scale, rng);
    c.batch.params.default_queue = vec!["normal".into()];
    c.batch.params.job_accept_interval = 0;
    // In some runs finished jobs leave memory, and with them what they have in the spool.
    c.batch.params.clean_period = if rng.chance(0.5) { 40 + rng.below(30) } else { 1 << 30 };
    // Switches of the log come a few times in each run.
    c.batch.params.max_job_num = scale.jobs as u64 / 10 + rng.below(scale.jobs as u64 / 4);
    c
}

/// The records that a machine appends.
fn records(out: &[Effect]) -> impl Iterator<Item = &Record> {
    out.iter().filter_map(|effect| match effect {
        Effect::Append(record) => Some(&**record),
        _ => None,
    })
}

impl World {
    pub fn new(seed: u64, scale: Scale) -> World {
        let mut rng = Rng::new(seed);
        let name = |i: usize| format!("host{}", i + 1);
        let hosts = (0..scale.hosts).map(|i| HostSim { name: name(i), ..HostSim::default() });
        let conf = config(scale, &mut rng);
        let pairs = limits::has_pairs(&conf.batch);
        let each = scale.jobs.div_ceil(USERS);
        let client = |n: usize| Client::new(n, n % scale.hosts, each, pairs, &mut rng);
        let clients = (0..USERS).map(client).collect();
        let mut w = World {
            scale,
            seed,
            now_us: 0,
            queue: BinaryHeap::new(),
            events: IdMap::default(),
            next_event: 0,
            hosts: hosts.collect(),
            procs: Vec::new(),
            conns: BTreeMap::new(),
            next_conn: 1,
            next_incoming: INCOMING,
            births: 0,
            conf,
            log: MbdLog::default(),
            clients,
            check: Check::default(),
            deaths: Deaths::default(),
            started: Started::default(),
            faults: 0,
            switches: 0,
            moves: 0,
            overtaken: 0,
            handled: 0,
            fatal: None,
            rng,
        };
        w.check.cleans = w.conf.batch.params.clean_period < 1 << 30;
        w.log.slice = 10 + w.rng.below(scale.jobs as u64 * 4) as usize;
        for host in 0..scale.hosts {
            w.push(0, Ev::Boot { host, boot: 0 });
        }
        for client in 0..w.clients.len() {
            let at = w.rng.below(US);
            w.push(at, Ev::ClientDial { client, dials: 0 });
        }
        w
    }

    pub(super) fn push(&mut self, at: u64, ev: Ev) {
        self.next_event += 1;
        self.queue.push(Reverse((at.max(self.now_us), self.next_event)));
        self.events.insert(self.next_event, ev);
    }

    pub(super) fn now(&self) -> Now {
        Now { mono_us: self.now_us, wall_us: EPOCH_US + self.now_us as i64 }
    }

    pub(super) fn mbd(&self) -> Option<&Mbatchd> {
        match self.mbd_proc().map(|p| &self.procs[p].mach) {
            Some(Some(Mach::Mbd(m))) => Some(m),
            _ => None,
        }
    }

    // ---- processes ----

    pub(super) fn find(&self, host: usize, daemon: Daemon) -> Option<usize> {
        self.procs.iter().position(|p| p.host == host && p.daemon == daemon && p.mach.is_some())
    }

    /// The mbatchd that has the log, wherever it runs.
    pub(super) fn mbd_proc(&self) -> Option<usize> {
        self.procs.iter().position(|p| p.daemon == Daemon::Mbatchd && p.mach.is_some())
    }

    pub(super) fn boot(&mut self, host: usize, boot: u64) {
        if self.hosts[host].os.boot != boot || self.find(host, Daemon::Launcher).is_some() {
            return;
        }
        if self.now_us < self.hosts[host].dead_until {
            return;
        }
        if !self.hosts[host].isolated {
            self.host_back(host);
        }
        let conf = launcher::LauncherConf {
            uid: 0,
            personal: false,
            boot_id: self.hosts[host].os.boot_id(),
            daemons: vec![Daemon::Lim, Daemon::Sbatchd],
            peers: vec![500],
            root_jobs: false,
            users: Default::default(),
            hang: 0,
        };
        let journal = self.hosts[host].os.journal.clone();
        let mach = Mach::Launcher(Box::new(Launcher::new(conf, journal)));
        let pid = self.hosts[host].os.pid();
        // Starters that wait for their launcher's word end with it.
        self.hosts[host].os.tasks.retain(|_, t| !t.waiting);
        self.start_proc(host, Daemon::Launcher, pid, mach);
    }

    fn start_proc(&mut self, host: usize, daemon: Daemon, pid: u32, mach: Mach) -> usize {
        if daemon == Daemon::Mbatchd {
            self.mbd_unwell();
        }
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
            Daemon::Mbatchd => match self.start_log(host) {
                Ok(mbd) => Mach::Mbd(Box::new(mbd)),
                Err(why) => {
                    let pid = self.hosts[host].os.pid();
                    self.failed_start(host, pid, &why);
                    return Ok((pid, self.now_us + 1));
                }
            },
            other => return Err(format!("no {} here", other.name())),
        };
        let pid = self.hosts[host].os.pid();
        let ticks = self.now_us + 1;
        self.hosts[host].os.daemons.insert(pid, (daemon, ticks));
        self.start_proc(host, daemon, pid, mach);
        Ok((pid, ticks))
    }

    fn sbatchd_conf(&self, host: &str) -> sbatchd::SbatchdConf {
        sbatchd::SbatchdConf {
            site: HostEnvironment {
                host: host.to_string(),
                terminate_interval: 10,
                ..HostEnvironment::default()
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
        if daemon == Daemon::Mbatchd {
            self.is_as_logged();
        }
        self.procs[p].mach = None;
        self.procs[p].born = 0;
        self.procs[p].tick_gen += 1;
        for id in std::mem::take(&mut self.procs[p].conns).into_values() {
            self.cut(id);
        }
        self.hosts[host].os.daemons.remove(&pid);
        if daemon == Daemon::Mbatchd {
            self.log_killed();
        }
        if told && let Some(l) = self.find(host, Daemon::Launcher) {
            let input = OsInput::Exited { pid, status: 9, usage: Default::default() };
            self.later(l, 500, Input::Os(input));
        }
    }

    pub(super) fn later(&mut self, p: usize, after: u64, input: Input) {
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
            if self.procs[p].daemon == Daemon::Mbatchd {
                self.mbd_hears(p, &input);
            }
            let Some(mach) = &mut self.procs[p].mach else { return };
            let tick = matches!(input, Input::Tick);
            mach.step(now, input, &mut out);
            if let Mach::Mbd(mbd) = &*mach
                && let Err(why) = self.started.appended(&mbd.state, &self.conf.batch, records(&out))
            {
                self.check.fail(why);
            }
            // one unit in a turn, so that others and failures come between two of them
            if tick && mach.has_work() {
                mach.work(now, &mut out);
            }
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
        if self.procs[p].daemon == Daemon::Mbatchd {
            self.log_end_of_turn();
        }
        self.arm(p);
    }

    fn arm(&mut self, p: usize) {
        let Some(mach) = &self.procs[p].mach else { return };
        // A turn takes time: a machine that wants a tick at once gets it a little later.
        let due = if mach.has_work() { Some(0) } else { mach.deadline() };
        let want = due.map(|d| d.max(self.now_us + 1));
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
        if let Effect::Append(record) = &eff {
            self.mbd_decides(&record.event);
        }
        if let Effect::Account(finish) = &eff {
            self.check.accounts(finish);
        }
        let Some(eff) = self.log_effect(eff) else { return };
        match eff {
            Effect::Send { conn, msg } => {
                let drained = msg.goes_on();
                self.send(p, conn, msg);
                if drained {
                    self.later(p, 100, Input::Drained { conn });
                }
            }
            Effect::SendDurable { conn, msg } => match self.log.tickets.due() {
                Some(ticket) => self.hold(p, conn, ticket, msg),
                None => self.send(p, conn, msg),
            },
            Effect::SendBlob { conn, at } => self.send_blob(p, conn, at),
            Effect::Close { conn } => self.close(p, conn),
            Effect::Connect { conn, to } => {
                let born = self.procs[p].born;
                let at = self.now_us + self.latency();
                self.push(at, Ev::Dial { proc_: p, born, local: conn, to });
            }
            Effect::LoadConfig => {
                let conf = Some(Box::new(self.conf.clone()));
                answers.push_back(Input::Config { conf, diags: Vec::new() });
            }
            Effect::Datagram { to, msg } => self.datagram(p, &to, msg),
            Effect::Sample => {
                let facts =
                    HostFacts { ncpus: limits::CPUS, cpu_factor: 1.0, ..HostFacts::default() };
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
            // taken by the log above; res is not simulated
            Effect::Task { .. }
            | Effect::Append(_)
            | Effect::Spool { .. }
            | Effect::Account(_)
            | Effect::Switch { .. } => {}
            Effect::Melim { .. } | Effect::Logging(_) | Effect::Aside { .. } => {}
            Effect::Reply { .. } | Effect::Keep { .. } => {}
            Effect::Recall(_) | Effect::Members(_) => {}
        }
    }
}
