//! The state of a simulation: hosts with their daemons, connections, submitters, the events that
//! are to come. The files above change it.

use super::balancer::{self, Balancer};
use super::change::SimulatedSite;
use super::check::Check;
use super::checkpoints::checkpoints;
use super::client::Client;
use super::conn::Conn;
use super::event::SimEvent;
use super::limits::{self, Started, USERS};
use super::log::MbdLog;
use super::membership_deaths::MembershipDeaths;
use super::os::Os;
use super::parallel_tasks::ParallelTasks;
use super::policies;
use super::rng::Rng;
use super::scale::Scale;
use crate::batch::Mbatchd;
use crate::conf::types::HostDef;
use crate::conf::{BatchConf, ClusterConf};
use crate::exec::launcher::Launcher;
use crate::exec::sbatchd::Sbatchd;
use crate::lim::Lim;
use crate::model::idmap::IdMap;
use crate::model::time::US;
use crate::model::{JobKey, JobRef, Now};
use crate::nlb::{Collector, NlbServer};
use crate::proto::Daemon;
use crate::proto::machine::{ConnId, Effect, INCOMING, Input, Machine};
use crate::res::Res;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// Wall clock at virtual time 0.
const EPOCH_US: i64 = 1_800_000_000_000_000;

/// The machine of a daemon.
pub(super) enum DaemonMachine {
    Launcher(Box<Launcher>),
    Lim(Box<Lim>),
    Sbd(Box<Sbatchd>),
    Mbd(Box<Mbatchd>),
    Nlb(Box<NlbServer>),
    Collect(Box<Collector>),
    Res(Box<Res>),
}

impl DaemonMachine {
    pub(super) fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        match self {
            DaemonMachine::Launcher(m) => m.step(now, input, out),
            DaemonMachine::Lim(m) => m.step(now, input, out),
            DaemonMachine::Sbd(m) => m.step(now, input, out),
            DaemonMachine::Mbd(m) => m.step(now, input, out),
            DaemonMachine::Nlb(m) => m.step(now, input, out),
            DaemonMachine::Collect(m) => m.step(now, input, out),
            DaemonMachine::Res(m) => m.step(now, input, out),
        }
    }
    pub(super) fn work(&mut self, now: Now, out: &mut Vec<Effect>) {
        if let DaemonMachine::Mbd(m) = self {
            m.work(now, out);
        }
    }
    pub(super) fn has_work(&self) -> bool {
        matches!(self, DaemonMachine::Mbd(m) if m.has_work())
    }
    pub(super) fn deadline(&self) -> Option<u64> {
        match self {
            DaemonMachine::Launcher(m) => m.deadline(),
            DaemonMachine::Lim(m) => m.deadline(),
            DaemonMachine::Sbd(m) => m.deadline(),
            DaemonMachine::Mbd(m) => m.deadline(),
            DaemonMachine::Nlb(m) => m.deadline(),
            DaemonMachine::Collect(m) => m.deadline(),
            DaemonMachine::Res(m) => m.deadline(),
        }
    }
}

/// A daemon of a host.
pub(super) struct Process {
    pub(super) host: usize,
    pub(super) daemon: Daemon,
    pub(super) pid: u32,
    pub(super) mach: Option<DaemonMachine>,
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
    /// The instant before which the host does not come back, however often it is cut off or dies
    /// meanwhile.
    pub isolated_until: u64,
    pub dead_until: u64,
    /// Wrongness of its wall clock, microseconds.
    pub clock_off_us: i64,
}

/// The state of hosts seen from outside the machines.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    /// When an mbatchd last had a word of the host's sbatchd, by host.
    pub(super) heard: HashMap<usize, u64>,
    /// Since when a host is cut off or without power.
    pub(super) away: HashMap<usize, u64>,
    /// The present attempt of each element, with its first host.
    pub(super) last: HashMap<JobRef, (JobKey, usize)>,
    /// Since when this mbatchd, its host and its log have been well.
    pub(super) well: u64,
}

/// One simulation.
pub struct World {
    pub(super) scale: Scale,
    pub(super) seed: u64,
    pub(super) rng: Rng,
    pub(super) now_us: u64,
    pub(super) queue: BinaryHeap<Reverse<(u64, u64)>>,
    pub(super) events: IdMap<u64, SimEvent>,
    next_event: u64,
    pub(super) hosts: Vec<HostSim>,
    pub(super) procs: Vec<Process>,
    pub(super) conns: BTreeMap<u64, Conn>,
    pub(super) next_conn: u64,
    pub(super) next_incoming: ConnId,
    pub(super) births: u64,
    pub(super) conf: ClusterConf,
    pub(super) log: MbdLog,
    /// The load balancer, where the cluster has one.
    pub(super) balancer: Option<Balancer>,
    pub(super) clients: Vec<Client>,
    pub(super) check: Check,
    pub(super) deaths: Deaths,
    /// Attempts that the mbatchd that runs has started.
    pub(super) started: Started,
    pub(super) faults: usize,
    pub(super) membership_deaths: MembershipDeaths,
    pub(super) tasks: ParallelTasks,
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
    if rng.chance(0.5) {
        c.base.lsf.set("LSB_MOD_ALL_JOBS", "Y");
    }
    c.batch.params.default_queue = vec!["normal".into()];
    c.batch.params.job_accept_interval = 0;
    // In some runs finished jobs leave memory, and with them what they have in the spool.
    c.batch.params.clean_period = if rng.chance(0.5) { 40 + rng.below(30) } else { 1 << 30 };
    // Switches of the log come a few times in each run.
    c.batch.params.max_job_num = scale.jobs as u64 / 10 + rng.below(scale.jobs as u64 / 4);
    c
}

/// The cluster of a seed as requests know it. Jobs change their slots in every other one.
pub(super) fn simulated_site(
    batch: &BatchConf,
    seed: u64,
    hosts: usize,
    now: i64,
) -> SimulatedSite {
    SimulatedSite {
        pairs: limits::has_pairs(batch),
        resizes: seed.is_multiple_of(2),
        checkpoints: checkpoints(seed),
        hosts,
        now,
    }
}

impl World {
    pub fn new(seed: u64, scale: Scale) -> World {
        let mut rng = Rng::new(seed);
        let name = |i: usize| format!("host{}", i + 1);
        let hosts = (0..scale.hosts).map(|i| HostSim { name: name(i), ..HostSim::default() });
        let mut conf = config(scale, &mut rng);
        policies::configure(&mut conf.batch, seed);
        let site = simulated_site(&conf.batch, seed, scale.hosts, 0);
        let each = scale.jobs.div_ceil(USERS);
        let client = |n: usize| Client::new(n, n % scale.hosts, each, &site, &mut rng);
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
            balancer: None,
            clients,
            check: Check::default(),
            deaths: Deaths::default(),
            started: Started::default(),
            faults: 0,
            membership_deaths: MembershipDeaths::of_seed(seed),
            tasks: ParallelTasks::of_seed(seed, scale.balancer),
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
            w.push(0, SimEvent::Boot { host, boot: 0 });
        }
        if scale.balancer {
            w.add_balancer();
        }
        for client in 0..w.clients.len() {
            let at = w.rng.below(US);
            w.push(at, SimEvent::ClientDial { client, dials: 0 });
        }
        w
    }

    /// Gives the cluster pipe queues and a load balancer, and most submissions a pipe queue. A
    /// request is bound to the host of its route: it asks for nothing that one host cannot give.
    fn add_balancer(&mut self) {
        balancer::configure(&mut self.conf.batch);
        for wish in self.clients.iter_mut().flat_map(|c| &mut c.wishes) {
            let Some(queue) = balancer::pipe_queue(&mut self.rng) else { continue };
            let spec = &mut wish.spec;
            queue.clone_into(&mut spec.queue);
            (spec.min_slots, spec.max_slots) = (1, 1);
            spec.res_req.clear();
            if !spec.further.requeue.is_empty() {
                spec.further.requeue = "99".into();
            }
        }
        self.balancer = Some(Balancer::new(self.scale, &mut self.rng));
        self.push(0, SimEvent::Administer);
    }

    pub(super) fn push(&mut self, at: u64, ev: SimEvent) {
        self.next_event += 1;
        self.queue.push(Reverse((at.max(self.now_us), self.next_event)));
        self.events.insert(self.next_event, ev);
    }

    /// The clocks of a host. Its wall clock is right when the time of faults is over.
    pub(super) fn now(&self, host: usize) -> Now {
        let off = match self.now_us < self.scale.fault_secs * US {
            true => self.hosts[host].clock_off_us,
            false => 0,
        };
        Now { mono_us: self.now_us, wall_us: EPOCH_US + self.now_us as i64 + off }
    }

    pub(super) fn mbd(&self) -> Option<&Mbatchd> {
        match self.mbd_proc().map(|p| &self.procs[p].mach) {
            Some(Some(DaemonMachine::Mbd(m))) => Some(m),
            _ => None,
        }
    }

    pub(super) fn find(&self, host: usize, daemon: Daemon) -> Option<usize> {
        self.procs.iter().position(|p| p.host == host && p.daemon == daemon && p.mach.is_some())
    }

    /// The mbatchd that has the log, wherever it runs.
    pub(super) fn mbd_proc(&self) -> Option<usize> {
        self.procs.iter().position(|p| p.daemon == Daemon::Mbatchd && p.mach.is_some())
    }

    pub(super) fn later(&mut self, p: usize, after: u64, input: Input) {
        let born = self.procs[p].born;
        let at = self.now_us + after;
        self.push(at, SimEvent::Input { proc_: p, born, input: Box::new(input) });
    }

    pub(super) fn latency(&mut self) -> u64 {
        50 + self.rng.below(if self.rng.clone().chance(0.02) { 200_000 } else { 500 })
    }

    pub(super) fn incoming(&mut self) -> ConnId {
        self.next_incoming += 1;
        self.next_incoming
    }
}
