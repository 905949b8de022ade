//! The machine driven by hand: a cluster of two hosts, a user, a fake sbatchd and LIM. Here is the
//! rig alone; the tests stand by subject in the files named below.

use super::*;
use crate::batch::state::change::Applied;
use crate::batch::state::names::{HostId, Id};
use crate::batch::step::RECORDS_PER_TURN;
use crate::conf::ClusterConf;
use crate::conf::types::{HostDef, HostPolicy, Mxj, QueueConf};
use crate::lang::depend::DepValue;
use crate::model::JobKey;
use crate::model::event::{ElementRange, Event, Finish, Record};
use crate::model::job::SpoolRef;
use crate::model::job::{End, JobSpec, Usage, opt2};
use crate::model::job_state::JobState;
use crate::model::reason::PendReason;
use crate::model::reason::err;
use crate::model::{ByteStr, JobRef, Now};
use crate::proto::Daemon;
use crate::proto::Msg;
use crate::proto::Refusal;
use crate::proto::client::*;
use crate::proto::lim::{HostFacts, HostLoad, LimMsg, status};
use crate::proto::machine::Endpoint;
use crate::proto::machine::{ConnId, Effect, Input, Machine, Peer};
use crate::proto::sbd::{Act, AttemptPhase, SbdMsg, TaskState};

mod absolute_priority;
mod accounts;
mod advance_reservations;
mod affinity;
mod applications;
mod array_signal;
mod array_switch;
mod audits;
mod busy_victims;
mod campaigns;
mod change;
mod checkpoint;
mod chunks;
mod classes;
pub(crate) mod cluster;
mod compute_units;
mod condensed;
mod deadlines;
mod depend;
mod dependencies;
mod diagnose;
mod dispatch;
mod dynamic_hosts;
mod element_groups;
mod eligible;
mod exceptions;
mod exit_rates;
mod extendable_run_limit;
mod fairshare;
mod fairshare_groups;
mod fairshare_history;
mod fairshare_week;
mod fanout;
mod force;
mod group_conditions;
mod guarantee_properties;
mod host_inventory;
mod host_partitions;
mod interactive;
mod job_columns;
mod job_groups;
mod job_info;
mod job_sizes;
mod kept_memory_properties;
mod large_site;
mod last_actions;
mod life;
mod limit_listing;
mod limit_properties;
mod listed_reasons;
mod listing_properties;
mod load_suspension;
mod log_switch;
mod lost_controls;
mod messages;
mod migrate;
mod named;
mod nlb_policy;
mod order_properties;
mod package_listing;
mod perfmon;
mod permissions;
mod placement;
mod policies;
mod post;
mod preemptable_resources;
mod preempted_under_limits;
mod preemption;
mod preemption_properties;
mod properties;
mod readiness;
mod reason_evaluator;
mod reason_properties;
mod refused;
mod reporters;
mod requeue;
mod requeued_and_changed;
mod requirements;
mod reserve;
mod reserved;
mod resize;
mod retry;
mod route;
mod route_validation;
mod run_limit_in_force;
mod run_limit_ratio;
mod scenarios;
mod service_goals;
mod showstatus;
mod slot_pool_properties;
mod slot_reserve;
mod slot_reserve_properties;
mod start_needs;
mod start_together;
mod stopped_jobs;
mod turns;
mod unreached;
mod watch;
mod window_signal;
mod windows;
mod works;

/// The records of lsb.acct of elements that have ended alike.
fn each_of(f: &Finish, elems: &[ElementRange]) -> Vec<Finish> {
    let all = elems.iter().flat_map(|&(a, b, step)| (a..=b).step_by(step.max(1) as usize));
    all.map(|idx| Finish { at: JobRef { idx, ..f.at }, ..f.clone() }).collect()
}

fn conf() -> ClusterConf {
    let mut c = ClusterConf::default();
    c.base.name = "c1".into();
    c.base.cluster.admins = vec!["admin".into()];
    for name in ["h1", "h2"] {
        c.base.cluster.hosts.push(HostDef {
            name: name.into(),
            server: true,
            ..Default::default()
        });
        c.base.hosts.add_host(name);
    }
    let row = HostPolicy { name: "default".into(), mxj: Mxj::Slots(2), ..Default::default() };
    c.batch.hosts.hosts.push(row);
    for (name, priority) in [("normal", 30), ("high", 40)] {
        let q = QueueConf { name: name.into(), priority, ..Default::default() };
        c.batch.queues.push(q);
    }
    c.batch.params.default_queue = vec!["normal".into()];
    c.batch.params.job_accept_interval = 0;
    c
}

struct Rig {
    mbd: Mbatchd,
    now: Now,
    /// Messages sent, by connection.
    sent: Vec<(ConnId, Msg)>,
    log: Vec<Record>,
    acct: Vec<Finish>,
    dialled: Vec<(ConnId, Endpoint)>,
    said: Vec<String>,
    spooled: Vec<(SpoolRef, ByteStr)>,
    /// Long work is done at once, not unit by unit by the test.
    works: bool,
    audits: audits::Audits,
}

const USER: ConnId = crate::proto::machine::INCOMING + 1;
const OTHER: ConnId = crate::proto::machine::INCOMING + 2;
const ADMIN: ConnId = crate::proto::machine::INCOMING + 3;

/// Tuesday, 22:13:20 in UTC: these windows close 40 seconds later, until 8:00.
const SHUT_SOON: &str = "8:00-22:14";
const TO_EIGHT: u64 = 9 * 3600 + 46 * 60;

impl Drop for Rig {
    fn drop(&mut self) {
        if self.works {
            self.audits.at_end(&self.mbd);
        }
    }
}

impl Rig {
    fn new() -> Rig {
        Rig::of(conf())
    }

    fn of(conf: ClusterConf) -> Rig {
        let found = Recovered { epoch: 1, ..Default::default() };
        let now = Now { mono_us: 1_000_000, wall_us: 1_700_000_000_000_000 };
        Rig::with(Mbatchd::new(conf, "h1", found), now)
    }

    /// A machine that has just started, with its hosts and users.
    fn with(mbd: Mbatchd, now: Now) -> Rig {
        let (sent, log, acct) = (vec![], vec![], vec![]);
        let (dialled, said, spooled) = (vec![], vec![], vec![]);
        let audits = Default::default();
        let mut rig =
            Rig { mbd, now, sent, log, acct, dialled, said, spooled, works: true, audits };
        rig.step(Input::Start);
        rig.connect();
        for (conn, user, uid) in [(USER, "ann", 1001), (OTHER, "bob", 1002), (ADMIN, "admin", 900)]
        {
            let peer = Peer::User { uid, gid: uid, user: user.into(), host: "h1".into() };
            rig.step(Input::Opened { conn, peer });
        }
        rig
    }

    fn step(&mut self, input: Input) {
        let mut out = Vec::new();
        self.mbd.step(self.now, input, &mut out);
        if self.mbd.deadline().is_some_and(|d| d <= self.now.mono_us) {
            self.mbd.step(self.now, Input::Tick, &mut out);
        }
        while self.works && self.mbd.has_work() {
            self.mbd.work(self.now, &mut out);
            if self.mbd.deadline().is_some_and(|d| d <= self.now.mono_us) {
                self.mbd.step(self.now, Input::Tick, &mut out);
            }
        }
        self.carry_out(out);
        let overlooked = self.mbd.overlooked();
        assert_eq!(overlooked, None, "hosts have room for a job, and no pass is due");
        // where a test does the work unit by unit it measures how long that takes
        if self.works {
            self.audits.after_step(&self.mbd);
        }
    }

    /// Changes the state by a record without a request. Does it change a job?
    fn apply(&mut self, rec: &Record) -> bool {
        let Applied::Job(change) = self.mbd.state.apply(rec) else { return false };
        self.mbd.follow(&[change]);
        true
    }

    /// One unit of work.
    fn work(&mut self) {
        let mut out = Vec::new();
        self.mbd.work(self.now, &mut out);
        self.carry_out(out);
    }

    fn carry_out(&mut self, out: Vec<Effect>) {
        for e in out {
            match e {
                Effect::Send { conn, msg } | Effect::SendDurable { conn, msg } => {
                    self.sent.push((conn, msg))
                }
                Effect::Append(r) => self.log.push(*r),
                Effect::Account(f) => self.acct.push(*f),
                Effect::AccountElements(f, elems) => self.acct.extend(each_of(&f, &elems)),
                Effect::Connect { conn, to } => self.dialled.push((conn, to)),
                Effect::Say { text, .. } => self.said.push(text),
                Effect::Spool { at, data } => self.spooled.push((at, data)),
                _ => {}
            }
        }
    }

    /// Answers every dial: hosts are up, idle and have 4 CPUs.
    fn connect(&mut self) {
        for (conn, to) in std::mem::take(&mut self.dialled) {
            let Endpoint::Tcp { host, daemon } = to else { continue };
            self.step(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
            if daemon == Daemon::Sbatchd {
                let msg = SbdMsg::Inventory {
                    boot_id: "boot".into(),
                    tasks: vec![],
                    more: false,
                    members: None,
                    validates: false,
                    unjoined: Vec::new(),
                    member_slots: Vec::new(),
                };
                self.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
            } else {
                let facts = HostFacts { ncpus: 4, cpu_factor: 1.0, ..Default::default() };
                let load = |h: &str| HostLoad {
                    host: h.into(),
                    facts: Some(facts.clone()),
                    ..Default::default()
                };
                let msg = LimMsg::Loads { hosts: vec![load("h1"), load("h2")] };
                self.step(Input::Msg { conn, msg: Msg::Lim(msg) });
            }
        }
    }

    fn ask(&mut self, conn: ConnId, m: ClientMsg) -> Option<Msg> {
        self.sent.retain(|(c, _)| *c != conn);
        self.step(Input::Msg { conn, msg: Msg::Client(m) });
        self.sent.iter().find(|(c, _)| *c == conn).map(|(_, m)| m.clone())
    }

    fn submit(&mut self, spec: JobSpec) -> Result<u32, Refusal> {
        let s = Submit { spec, ..Default::default() };
        match self.ask(USER, ClientMsg::Submit(Box::new(s))) {
            Some(Msg::Client(ClientMsg::Submitted { job, .. })) => Ok(job),
            Some(Msg::Refused(r)) => Err(r),
            other => panic!("{other:?}"),
        }
    }

    fn starts(&mut self) -> Vec<(ConnId, JobKey)> {
        let mut keys = Vec::new();
        self.sent.retain(|(c, m)| match m {
            Msg::Sbd(SbdMsg::Start(s)) => {
                keys.push((*c, s.key));
                false
            }
            _ => true,
        });
        keys
    }

    fn starts_of(&mut self, job: u32) -> Vec<(ConnId, JobKey)> {
        let (of, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.sent)
            .into_iter()
            .partition(|(_, m)| matches!(m, Msg::Sbd(SbdMsg::Start(s)) if s.key.job == job));
        self.sent = of;
        let keys = self.starts();
        self.sent.extend(rest);
        keys
    }

    fn report(&mut self, conn: ConnId, key: JobKey, phase: AttemptPhase) {
        self.report_used(conn, key, phase, Usage::default());
    }

    fn report_used(&mut self, conn: ConnId, key: JobKey, phase: AttemptPhase, usage: Usage) {
        let time = self.now.secs();
        let t = TaskState { key, phase, pid: 7, time, usage, ..Default::default() };
        self.step(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(t))) });
    }

    fn stat(&self, job: u32, idx: u32) -> &'static str {
        let view = self.mbd.state.job(job).and_then(|j| j.view(idx)).map(|v| v.stat());
        view.map_or("", JobState::name)
    }

    fn kill(&mut self, conn: ConnId, job: u32) -> i32 {
        self.does(conn, Verb::Kill, job).code
    }

    fn does(&mut self, conn: ConnId, verb: Verb, job: u32) -> Outcome {
        self.does_to(conn, verb, IdSel { job, elems: vec![] })[0].clone()
    }

    fn does_to(&mut self, conn: ConnId, verb: Verb, sel: IdSel) -> Vec<Outcome> {
        let select = JobSelect { ids: vec![sel], ..JobSelect::default() };
        let c = Control::of(verb, select);
        match self.ask(conn, ClientMsg::Control(Box::new(c))) {
            Some(Msg::Client(ClientMsg::Controlled { outcomes, .. })) => outcomes,
            other => panic!("{other:?}"),
        }
    }

    /// The machine as it is after a restart, from the text of its log.
    fn restarted(&self) -> Mbatchd {
        let records = self.read_back();
        Mbatchd::new(conf(), "h1", Recovered { records, epoch: 2, ..Default::default() })
    }

    /// The machine forgets all that its log does not hold, but for its connections.
    fn reread(&mut self) {
        let records = self.read_back();
        self.mbd.reload(Recovered { records, epoch: 2, ..Default::default() });
    }

    fn read_back(&self) -> Vec<Record> {
        read_back(&self.log)
    }

    /// Lets time pass; all hosts are heard of meanwhile.
    fn pass(&mut self, mut secs: u64) {
        while secs > 0 {
            let step = secs.min(15);
            secs -= step;
            self.now.mono_us += step * 1_000_000;
            self.now.wall_us += step as i64 * 1_000_000;
            let due = self.mbd.windows.deadline();
            assert!(secs > 0 || due.is_some_and(|d| d <= self.now.mono_us), "nothing is due");
            for conn in self.mbd.links.hosts().values().filter_map(|h| h.up()).collect::<Vec<_>>() {
                self.step(Input::Msg { conn, msg: Msg::Pong { n: 0 } });
            }
            self.step(Input::Tick);
        }
    }

    /// Lets seconds pass; every host with a link is heard of.
    fn later(&mut self, secs: u64) {
        for _ in 0..secs {
            self.now.mono_us += 1_000_000;
            self.now.wall_us += 1_000_000;
            for conn in self.mbd.links.hosts().values().filter_map(|h| h.up()).collect::<Vec<_>>() {
                self.step(Input::Msg { conn, msg: Msg::Pong { n: 0 } });
            }
            self.step(Input::Tick);
        }
    }

    /// The orders about running jobs that a host got.
    fn acts(&mut self) -> Vec<Act> {
        let mut acts = Vec::new();
        self.sent.retain(|(_, m)| match m {
            Msg::Sbd(SbdMsg::Act { act, .. }) => {
                acts.push(act.clone());
                false
            }
            _ => true,
        });
        acts
    }

    /// The name of the host behind a connection.
    fn name_behind(&self, conn: ConnId) -> String {
        let host = self.mbd.links.hosts().values().find(|h| h.up() == Some(conn));
        host.unwrap().name.clone()
    }

    /// The hosts that LIM locks for exclusive jobs.
    fn locks(&mut self) -> Vec<Vec<String>> {
        let mut told = Vec::new();
        self.sent.retain(|(_, m)| match m {
            Msg::Lim(LimMsg::Exclusive { hosts }) => {
                told.push(hosts.clone());
                false
            }
            _ => true,
        });
        told
    }

    /// LIM shows this status of a host.
    fn lock_shown(&mut self, host: &str, status: u32) {
        let crate::batch::cluster::hosts::Link::Up { conn } = self.mbd.links.lim() else {
            panic!("no LIM")
        };
        let load = HostLoad { host: host.into(), status, ..HostLoad::default() };
        let msg = Msg::Lim(LimMsg::Loads { hosts: vec![load] });
        self.step(Input::Msg { conn, msg });
    }

    /// The host that was lost is back, with this attempt.
    fn meet(&mut self, key: JobKey, phase: AttemptPhase) -> ConnId {
        self.now.mono_us += 10_000_000;
        self.now.wall_us += 10_000_000;
        self.step(Input::Tick);
        let (conn, to) = self.dialled.pop().unwrap();
        let Endpoint::Tcp { host, daemon } = to else { panic!() };
        self.step(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
        let task = TaskState { key, phase, pid: 7, ..Default::default() };
        let msg = SbdMsg::Inventory {
            boot_id: "boot".into(),
            tasks: vec![task],
            more: false,
            members: None,
            validates: false,
            unjoined: Vec::new(),
            member_slots: Vec::new(),
        };
        self.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
        conn
    }

    fn control(&mut self, verb: Verb, job: u32) {
        let select = JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..Default::default() };
        self.ask(USER, ClientMsg::Control(Box::new(Control::of(verb, select))));
    }

    fn reason(&self, job: u32) -> PendReason {
        self.mbd.reasons_of(job).first().map_or(PendReason::New, |r| r.0)
    }

    /// The phase of a job, with the reason of a suspension.
    fn phase(&self, job: u32) -> state::Phase {
        self.mbd.state.job(job).unwrap().elem(0).unwrap().run().unwrap().phase
    }

    fn queue_row(&mut self) -> QueueInfo {
        let (names, user, host) = (vec!["normal".into()], String::new(), String::new());
        match self.ask(USER, ClientMsg::Queues { names, user, host }) {
            Some(Msg::Client(ClientMsg::QueueRows { rows })) => rows[0].clone(),
            other => panic!("{other:?}"),
        }
    }
}

/// Records as they come back from the text of the log.
fn read_back(log: &[Record]) -> Vec<Record> {
    let mut records = Vec::new();
    for rec in log {
        let mut line = Vec::new();
        crate::log::codec::write_record(rec, &mut line);
        let mut read = crate::log::codec::read_record(&line).unwrap();
        // Recovery restores the spec from the spool in the same way.
        if let (Event::JobModify(m), Event::JobModify(was)) = (&mut read.event, &rec.event) {
            m.spec = was.spec.clone();
        }
        records.push(read);
    }
    records
}

fn spec(cmd: &str) -> JobSpec {
    JobSpec { command: cmd.into(), min_slots: 1, max_slots: 1, ..Default::default() }
}

fn done() -> AttemptPhase {
    AttemptPhase::Ended { end: End::Status(0), exit_info: 0 }
}

/// The host at a position in the order of the configuration.
fn host(position: usize) -> HostId {
    HostId::from_index(position)
}
