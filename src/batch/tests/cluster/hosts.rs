//! The hosts of a test's cluster: sbatchd of each, and the LIM that reports their load.

use super::{Cluster, ClusterBuilder};
use crate::conf::types::ClusterConf;
use crate::model::JobKey;
use crate::model::JobRef;
use crate::model::checkpoint::CheckpointEnd;
use crate::model::job::{End, Usage};
use crate::model::reason::PendReason;
use crate::model::resize::ResizeTold;
use crate::proto::Daemon;
use crate::proto::Msg;
use crate::proto::lim::{HostFacts, HostLoad, INDEX_NAMES, LimMsg};
use crate::proto::machine::{ConnId, Endpoint, Input, Peer};
use crate::proto::sbd::{Act, AttemptPhase, SbdMsg, TaskState};
use crate::proto::validation::{Validate, Verdict};
use std::collections::BTreeMap;

/// Memory, swap space and disk of a host of which nothing else is said, MB.
const MEMORY: f32 = 64_000.0;

/// A host: its sbatchd, and what LIM says of it.
pub struct TestHost {
    name: String,
    /// The connection of mbatchd to its sbatchd.
    pub link: Option<ConnId>,
    /// The host answers.
    reachable: bool,
    load: HostLoad,
    tasks: BTreeMap<JobKey, AttemptPhase>,
    /// The answer about files of users; `None`: it gives none.
    verdict: Option<Verdict>,
    /// The questions about them.
    validated: Vec<Validate>,
    /// The sbatchd is of a release that knows of no such thing.
    older: bool,
}

impl TestHost {
    fn new(name: &str, slots: u32, (site, conf): (&ClusterBuilder, &ClusterConf)) -> TestHost {
        let facts = HostFacts {
            host_type: "LINUX".to_owned(),
            model: "DEFAULT".to_owned(),
            cpu_factor: 1.0,
            ncpus: slots.max(1),
            max_mem: MEMORY as u64,
            max_swp: MEMORY as u64,
            max_tmp: MEMORY as u64,
            server: true,
            shared: shared(name, conf),
            topology: site.topology_of(name).to_owned(),
            ..own_resources(name, conf)
        };
        let mut load = HostLoad { host: name.to_owned(), facts: Some(facts), ..<_>::default() };
        load.index[8..].fill(MEMORY);
        TestHost {
            name: name.to_owned(),
            link: None,
            reachable: true,
            load,
            tasks: BTreeMap::new(),
            verdict: None,
            validated: Vec::new(),
            older: false,
        }
    }

    pub fn all(site: &ClusterBuilder, conf: &ClusterConf) -> Vec<TestHost> {
        site.each_host().map(|(name, slots)| TestHost::new(name, slots, (site, conf))).collect()
    }

    /// Hosts that stay keep their connections and tasks.
    pub fn reconfigured(
        old: Vec<TestHost>,
        site: &ClusterBuilder,
        conf: &ClusterConf,
    ) -> Vec<TestHost> {
        let mut old: BTreeMap<String, TestHost> =
            old.into_iter().map(|host| (host.name.clone(), host)).collect();
        let all = site.each_host();
        all.map(|(name, slots)| {
            old.remove(name).unwrap_or_else(|| TestHost::new(name, slots, (site, conf)))
        })
        .collect()
    }
}

/// The Boolean and other resources that lsf.cluster gives to a host.
fn own_resources(name: &str, conf: &ClusterConf) -> HostFacts {
    let all = conf.base.cluster.hosts.iter().find(|host| host.name == name);
    let words = all.map_or(&[][..], |host| &host.resources);
    HostFacts {
        resources: words.iter().map(|word| (word.name.clone(), word.value.clone())).collect(),
        exclusive: words.iter().filter(|w| w.exclusive).map(|w| w.name.clone()).collect(),
        ..HostFacts::default()
    }
}

/// The instances of the ResourceMap, with a value, that a host shares.
fn shared(name: &str, conf: &ClusterConf) -> Vec<(String, String)> {
    let rows = conf.base.cluster.resource_map.iter();
    let all = rows.flat_map(|row| row.instances.iter().map(move |one| (&row.resource, one)));
    let here = all.filter(|(_, one)| one.hosts.iter().any(|host| host == "all" || host == name));
    here.filter_map(|(resource, one)| Some((resource.clone(), one.value.clone()?))).collect()
}

impl Cluster {
    /// mbatchd calls a daemon.
    pub(super) fn dialled(&mut self, conn: ConnId, to: Endpoint) {
        let Endpoint::Tcp { host, daemon } = to else {
            return self.dialled_balancer(conn, &to);
        };
        let peer = Peer::Daemon { daemon, host: host.clone() };
        if daemon == Daemon::Lim {
            self.lim = Some(conn);
            self.inputs.push_back(Input::Opened { conn, peer });
            return self.report_loads_later();
        }
        let Some(at) = self.hosts.iter_mut().find(|h| h.name == host && h.reachable) else {
            let why = "no route to host".to_owned();
            return self.inputs.push_back(Input::ConnectFailed { conn, why, refused: false });
        };
        at.link = Some(conn);
        let tasks = at.tasks.iter().map(|(key, phase)| task(*key, phase.clone(), 0)).collect();
        let (boot_id, validates) = ("boot".to_owned(), !at.older);
        let msg = SbdMsg::Inventory {
            boot_id,
            tasks,
            more: false,
            members: None,
            validates,
            unjoined: Vec::new(),
            member_slots: Vec::new(),
        };
        self.inputs.push_back(Input::Opened { conn, peer });
        self.inputs.push_back(Input::Msg { conn, msg: Msg::Sbd(msg) });
    }

    /// mbatchd tells something to a host.
    pub(super) fn tell_host(&mut self, conn: ConnId, msg: SbdMsg) {
        let Some(at) = self.hosts.iter().position(|host| host.link == Some(conn)) else { return };
        match msg {
            SbdMsg::Start(order) => {
                self.hosts[at].tasks.insert(order.key, AttemptPhase::Starting);
                if self.answering {
                    self.becomes(at, order.key, AttemptPhase::Running);
                }
                self.started.push(*order);
            }
            SbdMsg::Act { key, act, .. } => {
                self.orders.push((JobRef { job: key.job, idx: key.idx }, act.clone()));
                let phase = match act {
                    Act::Suspend => AttemptPhase::Suspended,
                    Act::Resume => AttemptPhase::Running,
                    Act::Terminate { exit_info } => {
                        AttemptPhase::Ended { end: End::Status(SIGTERM), exit_info }
                    }
                    Act::Signal { .. } | Act::Limits(_) | Act::Checkpoint(_) => return,
                    Act::Resize(_) => return,
                };
                if self.answering {
                    self.becomes(at, key, phase);
                }
            }
            SbdMsg::Forget { key, mail } => {
                self.hosts[at].tasks.remove(&key);
                self.mails.extend(Some(mail).filter(|mail| !mail.is_empty()));
            }
            SbdMsg::Validate(ask) => {
                let (number, host) = (ask.number, &mut self.hosts[at]);
                host.validated.push(*ask);
                let verdict = host.verdict.clone();
                let answer = verdict.map(|verdict| SbdMsg::Validated { number, verdict });
                let answer = answer.map(|msg| Input::Msg { conn, msg: Msg::Sbd(msg) });
                self.inputs.extend(answer);
            }
            _ => {}
        }
    }

    /// A task of a host has another phase, which mbatchd is about to hear.
    fn becomes(&mut self, at: usize, key: JobKey, phase: AttemptPhase) {
        let time = self.now.secs();
        let host = &mut self.hosts[at];
        host.tasks.insert(key, phase.clone());
        if let Some(conn) = host.link {
            let msg = Msg::Sbd(SbdMsg::State(Box::new(task(key, phase, time))));
            self.inputs.push_back(Input::Msg { conn, msg });
        }
    }

    /// The newest attempt of a job that a host knows of.
    pub(super) fn attempt(&self, at: JobRef) -> (usize, JobKey) {
        let of = |key: &JobKey| (key.job, key.idx) == (at.job, at.idx);
        let keys = |(i, host): (usize, &TestHost)| {
            host.tasks.keys().filter(|k| of(k)).map(|k| (i, *k)).collect::<Vec<_>>()
        };
        let all = self.hosts.iter().enumerate().flat_map(keys);
        let newest = all.max_by_key(|(_, key)| key.attempt);
        newest.unwrap_or_else(|| panic!("no host knows of job {at}"))
    }

    fn report(&mut self, at: JobRef, phase: AttemptPhase) {
        let (host, key) = self.attempt(at);
        self.becomes(host, key, phase);
        self.tell(Input::Tick);
    }

    /// The job ends with this exit code.
    pub fn end(&mut self, at: JobRef, code: i32) {
        self.report(at, AttemptPhase::Ended { end: End::Status(code << 8), exit_info: 0 });
    }

    /// The host has suspended the job.
    pub fn suspends(&mut self, at: JobRef) {
        self.report(at, AttemptPhase::Suspended);
    }

    /// The job ends well, and has used so many seconds of CPU time.
    pub fn ends_after_cpu(&mut self, at: JobRef, secs: u64) {
        let (host, key) = self.attempt(at);
        let phase = AttemptPhase::Ended { end: End::Status(0), exit_info: 0 };
        self.hosts[host].tasks.insert(key, phase.clone());
        let Some(conn) = self.hosts[host].link else { return };
        let usage = Usage { utime_us: secs * 1_000_000, ..Usage::default() };
        let told = TaskState { usage, ..task(key, phase, self.now.secs()) };
        self.tell(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(told))) });
        self.tell(Input::Tick);
    }

    /// The job is ended by this signal, for this reason (a TERM_ number).
    pub fn ends_by(&mut self, at: JobRef, signal: i32, exit_info: u32) {
        self.report(at, AttemptPhase::Ended { end: End::Status(signal), exit_info });
    }

    /// The site has no eadmin for these exceptions.
    pub fn no_eadmin(&mut self, all: crate::model::exception::Exceptions) {
        self.tell(Input::NoEadmin { all: Box::new(all) });
    }

    /// The host tells of the job that runs, and of its last checkpoint.
    pub fn checkpointed(&mut self, at: JobRef, checkpoint: CheckpointEnd) {
        let (host, key) = self.attempt(at);
        let Some(conn) = self.hosts[host].link else { return };
        let told = TaskState { checkpoint, ..task(key, AttemptPhase::Running, self.now.secs()) };
        self.tell(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(told))) });
    }

    /// The host tells of the job that runs, and of the last change of its slots.
    pub fn resized(&mut self, at: JobRef, resize: ResizeTold) {
        let (host, key) = self.attempt(at);
        let Some(conn) = self.hosts[host].link else { return };
        let told = TaskState { resize, ..task(key, AttemptPhase::Running, self.now.secs()) };
        self.tell(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(told))) });
    }

    /// Hosts take orders from now on and say nothing until the test does.
    pub fn hosts_wait(&mut self) {
        self.answering = false;
    }

    /// The host says that the job runs.
    pub fn runs(&mut self, at: JobRef) {
        self.report(at, AttemptPhase::Running);
    }

    /// The host could not start the job: a pending reason, and the words for it.
    pub fn start_fails(&mut self, at: JobRef, why: PendReason, note: &str) {
        self.pre_exec_fails(at, why, 0, note);
    }

    /// The pre-execution command of the job fails with this exit value.
    pub fn pre_exec_fails(&mut self, at: JobRef, why: PendReason, pre_exit: u8, note: &str) {
        let (host, key) = self.attempt(at);
        let Some(conn) = self.hosts[host].link else { return };
        let note = note.to_owned();
        let failed = TaskState {
            note,
            pre_exit,
            ..task(key, AttemptPhase::Failed { reason: why.number() }, self.now.secs())
        };
        let msg = Msg::Sbd(SbdMsg::State(Box::new(failed)));
        self.tell(Input::Msg { conn, msg });
    }

    /// The job uses so much memory, MB.
    pub fn uses(&mut self, at: JobRef, mem: u64) {
        let (host, key) = self.attempt(at);
        let Some(conn) = self.hosts[host].link else { return };
        let usage = Usage { mem_kb: mem << 10, ..Usage::default() };
        let (pids, pgids, groups) = (Vec::new(), Vec::new(), Vec::new());
        let msg = Msg::Sbd(SbdMsg::Usage { key, usage: usage.into(), pids, pgids, groups });
        self.tell(Input::Msg { conn, msg });
    }

    /// The job has used so many seconds of CPU time.
    pub fn uses_cpu(&mut self, at: JobRef, secs: u64) {
        let (host, key) = self.attempt(at);
        let Some(conn) = self.hosts[host].link else { return };
        let usage = Usage { utime_us: secs * 1_000_000, ..Usage::default() };
        let (pids, pgids, groups) = (Vec::new(), Vec::new(), Vec::new());
        let msg = Msg::Sbd(SbdMsg::Usage { key, usage: usage.into(), pids, pgids, groups });
        self.tell(Input::Msg { conn, msg });
    }

    /// How often a started job was looked at because of the load of its host.
    pub fn looks_for_load(&self) -> usize {
        self.machine.load_checks.looks().0
    }

    /// How many jobs each turn has looked at for exceptions since this was asked last.
    pub fn exception_looks(&mut self) -> Vec<usize> {
        self.machine.exception_round.take_looks()
    }

    /// How many jobs each turn has looked at for jobs that hang since this was asked last.
    pub fn hung_looks(&mut self) -> Vec<usize> {
        self.machine.hung_walk.take_looks()
    }

    /// How often dependency conditions were evaluated.
    pub fn conditions_looked_at(&self) -> usize {
        self.machine.deps.evaluated
    }

    /// How often all hosts were counted for the peaks of badmin showstatus.
    pub fn hosts_counted(&self) -> usize {
        self.machine.status.counts()
    }

    /// Requirements that the scheduler has compiled.
    pub fn requirements_compiled(&self) -> usize {
        self.machine.sched.requirements()
    }

    /// How often a host was looked at for jobs that its load suspends or lets go on.
    pub fn hosts_looked_at_for_load(&self) -> usize {
        self.machine.load_checks.looks().1
    }

    /// LIM reports these values of a host, and of no other, such as `mem=100 r1m=2 tok=5`; further
    /// values stay. An index that is not built in is an external one; `status=N` sets the bits of
    /// the host's status.
    pub fn load(&mut self, host: &str, values: &str) {
        let at = self.hosts.iter_mut().find(|h| h.name == host);
        let load = &mut at.unwrap_or_else(|| panic!("no host {host}")).load;
        for word in values.split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("{word}"));
            let number = || value.parse::<f32>().unwrap_or_else(|_| panic!("{word}"));
            if name == "status" {
                load.status = number() as u32;
            } else if let Some(index) = INDEX_NAMES.iter().position(|index| *index == name) {
                load.index[index] = number();
            } else {
                load.external.retain(|external| external.0 != name);
                load.external.push((name.to_owned(), value.to_owned()));
            }
        }
        let msg = Msg::Lim(LimMsg::Loads { hosts: vec![load.clone()] });
        if let Some(conn) = self.lim {
            self.inputs.push_back(Input::Msg { conn, msg });
            self.tell(Input::Tick);
        }
    }

    /// A host reports another CPU factor.
    pub fn cpu_factor(&mut self, host: &str, factor: f64) {
        let at = self.hosts.iter_mut().find(|h| h.name == host);
        let at = at.unwrap_or_else(|| panic!("no host {host}"));
        at.load.facts.get_or_insert_default().cpu_factor = factor;
        self.report_loads();
    }

    /// Reports the load values of all hosts, in one message of LIM.
    pub fn loads(&mut self, values: &str) {
        let names: Vec<String> = self.hosts.iter().map(|host| host.name.clone()).collect();
        let lim = self.lim.take();
        names.iter().for_each(|name| self.load(name, values));
        self.lim = lim;
        self.report_loads();
    }

    pub(super) fn report_loads(&mut self) {
        self.report_loads_later();
        self.tell(Input::Tick);
    }

    fn report_loads_later(&mut self) {
        let Some(conn) = self.lim else { return };
        let hosts = self.hosts.iter().map(|host| host.load.clone()).collect();
        let msg = Msg::Lim(LimMsg::Loads { hosts });
        self.inputs.push_back(Input::Msg { conn, msg });
    }

    fn host_named(&mut self, name: &str) -> &mut TestHost {
        let host = self.hosts.iter_mut().find(|host| host.name == name);
        host.unwrap_or_else(|| panic!("no host {name}"))
    }

    /// The host's answer about files of users from now on; `None`: it gives none.
    pub fn files_say(&mut self, host: &str, verdict: Option<Verdict>) {
        self.host_named(host).verdict = verdict;
    }

    /// The sbatchd of the host is replaced by an older one, which looks into no files.
    pub fn becomes_older(&mut self, host: &str) {
        self.host_named(host).older = true;
        self.lose(host);
        self.find(host);
    }

    /// The questions about files of users that a host was asked since this was asked last.
    pub fn validated(&mut self, host: &str) -> Vec<Validate> {
        std::mem::take(&mut self.host_named(host).validated)
    }

    /// The host is cut off.
    pub fn lose(&mut self, name: &str) {
        let host = self.host_named(name);
        host.reachable = false;
        if let Some(conn) = host.link.take() {
            self.tell(Input::Closed { conn });
        }
    }

    /// The host answers again when it is called next.
    pub fn find(&mut self, name: &str) {
        self.host_named(name).reachable = true;
    }
}

/// Number of the signal that ends a job; its wait status.
const SIGTERM: i32 = 15;

fn task(key: JobKey, phase: AttemptPhase, time: i64) -> TaskState {
    TaskState { key, phase, pid: 7, time, ..TaskState::default() }
}
