//! The machine driven by hand: a cluster of two hosts, a user, a fake sbatchd and LIM.

#[path = "perm_tests.rs"]
mod matrix;

use super::*;
use crate::conf::types::{HostDef, HostPolicy, Mxj, QueueConf};
use crate::lang::depend::DepValue;
use crate::model::JobKey;
use crate::model::job::{End, JobSpec, Usage};
use crate::model::reason::err;
use crate::proto::client::*;
use crate::proto::lim::{HostFacts, HostLoad, LimMsg};
use crate::proto::machine::Endpoint;
use crate::proto::sbd::{Act, Phase, SbdMsg, TaskState};

mod change;
mod classes;
mod consumers;
mod eligible;
mod exceptions;
mod grouped;
mod issued;
mod keep;
mod parts;
mod perfmon;
mod post;
mod requeue;
mod reserve;
mod shown;
mod watch;
mod window_signal;

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
    mbd: Mbd,
    now: Now,
    /// Messages sent, by connection.
    sent: Vec<(ConnId, Msg)>,
    log: Vec<Record>,
    acct: Vec<crate::model::event::Finish>,
    dialled: Vec<(ConnId, Endpoint)>,
    said: Vec<String>,
}

const USER: ConnId = crate::proto::machine::INCOMING + 1;
const OTHER: ConnId = crate::proto::machine::INCOMING + 2;
const ADMIN: ConnId = crate::proto::machine::INCOMING + 3;

impl Rig {
    fn new() -> Rig {
        Rig::of(conf())
    }

    fn of(conf: ClusterConf) -> Rig {
        let found = Recovered { epoch: 1, ..Default::default() };
        let now = Now { mono_us: 1_000_000, wall_us: 1_700_000_000_000_000 };
        Rig::with(Mbd::new(conf, "h1", found), now)
    }

    /// A machine that has just started, with its hosts and users.
    fn with(mbd: Mbd, now: Now) -> Rig {
        let (sent, log, acct) = (vec![], vec![], vec![]);
        let mut rig = Rig { mbd, now, sent, log, acct, dialled: vec![], said: vec![] };
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
        for e in out {
            match e {
                Effect::Send { conn, msg } | Effect::SendDurable { conn, msg } => {
                    self.sent.push((conn, msg))
                }
                Effect::Append(r) => self.log.push(*r),
                Effect::Account(f) => self.acct.push(*f),
                Effect::Connect { conn, to } => self.dialled.push((conn, to)),
                Effect::Say { text, .. } => self.said.push(text),
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
                let msg = SbdMsg::Inventory { boot_id: "boot".into(), tasks: vec![] };
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

    fn report(&mut self, conn: ConnId, key: JobKey, phase: Phase) {
        self.report_used(conn, key, phase, Usage::default());
    }

    fn report_used(&mut self, conn: ConnId, key: JobKey, phase: Phase, usage: Usage) {
        let time = self.now.secs();
        let t = TaskState { key, phase, pid: 7, time, usage, ..Default::default() };
        self.step(Input::Msg { conn, msg: Msg::Sbd(SbdMsg::State(Box::new(t))) });
    }

    fn stat(&self, job: u32, idx: u32) -> &'static str {
        let view = self.mbd.st.job(job).and_then(|j| j.view(idx)).map(|v| v.stat());
        rows::stat_name(view.unwrap_or(0))
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
            Some(Msg::Client(ClientMsg::Controlled { outcomes })) => outcomes,
            other => panic!("{other:?}"),
        }
    }

    /// The machine as it is after a restart, from the text of its log.
    fn restarted(&self) -> Mbd {
        let records = self.read_back();
        Mbd::new(conf(), "h1", Recovered { records, epoch: 2, ..Default::default() })
    }

    /// The machine forgets all that its log does not hold, but for its connections.
    fn reread(&mut self) {
        let records = self.read_back();
        self.mbd.reload(Recovered { records, epoch: 2, ..Default::default() });
    }

    fn read_back(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for rec in &self.log {
            let mut line = Vec::new();
            crate::log::codec::write_record(rec, &mut line);
            let mut read = crate::log::codec::read_record(&line).unwrap();
            // As recovery does with what the spool holds.
            if let (Event::JobModify(m), Event::JobModify(was)) = (&mut read.event, &rec.event) {
                m.spec = was.spec.clone();
            }
            records.push(read);
        }
        records
    }
}

fn spec(cmd: &str) -> JobSpec {
    JobSpec { command: cmd.into(), min_slots: 1, max_slots: 1, ..Default::default() }
}

fn done() -> Phase {
    Phase::Ended { end: End::Status(0), exit_info: 0 }
}

#[test]
fn a_job_runs_and_its_history_replays() {
    let mut r = Rig::new();
    let id = r.submit(spec("true")).unwrap();
    let (conn, key) = r.starts()[0];
    assert_eq!(key, JobKey { job: id, idx: 0, attempt: 1 });
    r.report(conn, key, Phase::Running);
    assert_eq!(r.stat(id, 0), "RUN");
    r.report(conn, key, done());
    r.report(conn, key, done());
    assert_eq!(r.stat(id, 0), "DONE");
    assert_eq!(r.acct.len(), 1);
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    let again = Mbd::new(conf(), "h1", found);
    assert_eq!(again.st.job(id).unwrap().tally.done, 1);
    assert_eq!(again.st.next_job, r.mbd.st.next_job);
}

#[test]
fn a_retry_gets_the_first_answer() {
    let mut r = Rig::new();
    let s = Submit { request: "abc".into(), spec: spec("true"), ..Default::default() };
    let first = r.ask(USER, ClientMsg::Submit(Box::new(s.clone())));
    let second = r.ask(USER, ClientMsg::Submit(Box::new(s.clone())));
    let id = |m: Option<Msg>| match m {
        Some(Msg::Client(ClientMsg::Submitted { job, .. })) => job,
        other => panic!("{other:?}"),
    };
    assert_eq!(id(first), id(second));
    assert!(matches!(r.ask(OTHER, ClientMsg::Submit(Box::new(s))), Some(Msg::Refused(_))));
}

#[test]
fn slots_and_queue_priority_act() {
    let mut r = Rig::new();
    for _ in 0..4 {
        r.submit(spec("x")).unwrap();
    }
    assert_eq!(r.starts().len(), 4);
    let low = r.submit(spec("low")).unwrap();
    let high = r.submit(JobSpec { queue: "high".into(), ..spec("high") }).unwrap();
    assert!(r.starts().is_empty());
    let (conn, key) = {
        let run = r.mbd.st.job(1).unwrap().elem(0).unwrap().run().unwrap();
        let i = r.mbd.first_host(run).unwrap();
        (r.mbd.net.hosts[i].up().unwrap(), run.key)
    };
    r.report(conn, key, done());
    let next = r.starts();
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].1.job, high);
    assert_eq!(r.stat(low, 0), "PEND");
}

#[test]
fn the_first_execution_host_is_the_one_asked_for() {
    let mut r = Rig::new();
    let mut ask = |hosts: &[&str], slots: u32| {
        let hosts = hosts.iter().map(|h| h.to_string()).collect();
        let id = r.submit(JobSpec { hosts, min_slots: slots, max_slots: slots, ..spec("x") });
        let id = id.unwrap();
        let run = r.mbd.st.job(id).unwrap().elem(0).unwrap().run();
        let hosts = run.map_or(Vec::new(), |run| {
            run.hosts.iter().map(|h| r.mbd.st.names.text(h.0).to_string()).collect::<Vec<_>>()
        });
        (id, hosts.join(" "))
    };
    // two slots each
    assert_eq!(ask(&["h1", "h2!"], 1).1, "h2");
    assert_eq!(ask(&["h1+9", "h2!"], 2).1, "h2 h1");
    // h2 is full, and what is free of h1 does not do
    let (id, hosts) = ask(&["h1", "h2!"], 1);
    assert_eq!(hosts, "");
    assert_eq!(r.reason(id), crate::model::reason::pend::FIRST_HOST);
}

#[test]
fn an_array_is_limited_and_its_dependent_waits() {
    let mut r = Rig::new();
    let a = r.submit(JobSpec { name: "a[1-3]%2".into(), ..spec("x") }).unwrap();
    let d = r.submit(JobSpec { depend: "done(a)".into(), ..spec("merge") }).unwrap();
    let first = r.starts();
    assert_eq!(first.len(), 2);
    for (conn, key) in first {
        r.report(conn, key, done());
    }
    assert_eq!(r.stat(d, 0), "PEND");
    let (conn, key) = r.starts()[0];
    assert_eq!((key.job, key.idx), (a, 3));
    r.report(conn, key, done());
    assert_eq!(r.starts()[0].1.job, d);
}

#[test]
fn per_element_dependencies_go_one_by_one() {
    let mut r = Rig::new();
    let a = r.submit(JobSpec { name: "a[1-2]".into(), ..spec("x") }).unwrap();
    let b = r
        .submit(JobSpec { name: "b[1-2]".into(), depend: "done(a[*])".into(), ..spec("y") })
        .unwrap();
    let first = r.starts();
    let (conn, key) = *first.iter().find(|s| s.1.idx == 2 && s.1.job == a).unwrap();
    r.report(conn, key, done());
    let next = r.starts();
    assert_eq!(next.iter().map(|s| (s.1.job, s.1.idx)).collect::<Vec<_>>(), [(b, 2)]);
}

#[test]
fn elements_that_are_ready_together_go_in_one_pass() {
    let mut r = Rig::new();
    let a = r.submit(JobSpec { name: "a[1-3]".into(), ..spec("x") }).unwrap();
    for (conn, key) in r.starts() {
        r.report(conn, key, done());
    }
    let depend = format!("done({a}[*])");
    let b = r.submit(JobSpec { name: "b[1-3]".into(), depend, ..spec("y") }).unwrap();
    let starts: Vec<_> = r.starts().iter().map(|s| (s.1.job, s.1.idx)).collect();
    assert_eq!(starts, [(b, 1), (b, 2), (b, 3)]);
    let misfit = r.said.iter().find(|s| s.contains("does not fit"));
    assert_eq!(misfit, None);
}

#[test]
fn elements_are_looked_at_when_theirs_change() {
    const N: u32 = 10_000;
    let mut c = conf();
    c.batch.params.max_job_array_size = N;
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(N);
    let mut r = Rig::of(c);
    let name = |n: &str| format!("{n}[1-{N}]");
    let first = r.submit(spec("x")).unwrap();
    r.submit(JobSpec { name: name("a"), ..spec("x") }).unwrap();
    // What says the same of all is looked at too, but is no reason to look at all.
    let depend = format!("done(a[*]) && numdone(a, >= 0) && done({first})");
    let b = r.submit(JobSpec { name: name("b"), depend, ..spec("y") }).unwrap();
    let (conn, key) = r.starts_of(first)[0];
    let before = r.mbd.deps.looked;
    r.report(conn, key, done());
    let all = r.mbd.deps.looked - before;
    assert!((N as usize..2 * N as usize).contains(&all), "{all}");
    let before = r.mbd.deps.looked;
    let mut started = 0;
    loop {
        let starts = r.starts();
        if starts.is_empty() {
            break;
        }
        for (conn, key) in starts {
            started += usize::from(key.job == b);
            let end = if key.idx % 2 == 0 {
                done()
            } else {
                Phase::Ended { end: End::Status(256), exit_info: 0 }
            };
            r.report(conn, key, end);
        }
    }
    assert_eq!(started, N as usize / 2);
    let looked = r.mbd.deps.looked - before;
    assert!(looked < 12 * N as usize, "{looked} for {N} elements");
    assert_eq!(r.mbd.deps.value(b), DepValue::Never);
}

#[test]
fn an_unknown_end_is_never_done_nor_an_exit_code() {
    let mut r = Rig::new();
    let a = r.submit(spec("a")).unwrap();
    let waits: Vec<u32> = [format!("ended({a})"), format!("done({a})"), format!("exit({a},1)")]
        .into_iter()
        .map(|depend| r.submit(JobSpec { depend, ..spec("w") }).unwrap())
        .collect();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Ended { end: End::Unknown, exit_info: 9001 });
    let started: Vec<u32> = r.starts().iter().map(|s| s.1.job).collect();
    assert_eq!(started, [waits[0]]);
    assert_eq!(r.stat(a, 0), "EXIT");
}

#[test]
fn a_lost_link_resends_what_was_not_confirmed() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.step(Input::Closed { conn });
    r.now.mono_us += 10_000_000;
    r.step(Input::Tick);
    r.connect();
    let again = r.starts();
    assert_eq!(again.iter().map(|s| s.1).collect::<Vec<_>>(), [key]);
    assert_eq!(r.stat(id, 0), "RUN");
}

#[test]
fn a_restarted_host_means_an_unknown_end() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
    r.step(Input::Closed { conn });
    r.now.mono_us += 10_000_000;
    r.step(Input::Tick);
    let dialled = std::mem::take(&mut r.dialled);
    let (conn, _) = dialled[0].clone();
    let Endpoint::Tcp { host, daemon } = dialled[0].1.clone() else { panic!() };
    r.step(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
    let msg = SbdMsg::Inventory { boot_id: "other".into(), tasks: vec![] };
    r.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
    assert_eq!(r.stat(id, 0), "EXIT");
    assert!(r.starts().is_empty());
}

#[test]
fn only_owner_and_administrators_control() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    assert_eq!(r.kill(OTHER, id), crate::model::reason::err::PERMISSION);
    assert_eq!(r.kill(ADMIN, id), 0);
    assert_eq!(r.kill(USER, 99), crate::model::reason::err::NO_JOB);
    let held = r.submit(JobSpec { options2: 1, ..spec("y") }).unwrap();
    assert_eq!(r.stat(held, 0), "PSUSP");
    assert_eq!(r.kill(USER, held), 0);
    assert_eq!(r.kill(USER, held), crate::model::reason::err::JOB_FINISH);
}

#[test]
fn bad_submissions_change_nothing() {
    use crate::model::reason::err;
    let mut r = Rig::new();
    let rows: Vec<(JobSpec, i32)> = vec![
        (JobSpec { queue: "nosuch".into(), ..spec("x") }, err::BAD_QUEUE),
        (JobSpec { res_req: "select[".into(), ..spec("x") }, err::BAD_RESREQ),
        (JobSpec { res_req: "badres>1".into(), ..spec("x") }, err::BAD_RESREQ),
        (JobSpec { hosts: vec!["nosuch".into()], ..spec("x") }, err::BAD_HOST),
        (JobSpec { depend: "done(99999)".into(), ..spec("x") }, err::NO_JOB),
        (JobSpec { depend: "foo(".into(), ..spec("x") }, err::DEPEND_SYNTAX),
        (JobSpec { name: "x[1-2000]".into(), ..spec("x") }, err::ARRAY_LARGE),
        (JobSpec { name: "x[1-".into(), ..spec("x") }, err::BAD_JOB),
        (JobSpec { name: "a\nb".into(), ..spec("x") }, err::BAD_JOB),
        (spec(""), err::BAD_CMD),
    ];
    let before = r.log.len();
    for (s, code) in rows {
        let got = r.submit(s.clone()).map_err(|e| e.code);
        assert_eq!(got, Err(code), "{s:?}");
    }
    assert_eq!(r.log.len(), before);
}

#[test]
fn groups_of_the_operating_system_count() {
    use crate::conf::types::UserTerm;
    use crate::conf::unix::UnixGroup;
    use crate::model::reason::err;
    let mut c = conf();
    let term = |name: &str| UserTerm { name: name.into(), ..Default::default() };
    c.batch.queues[0].users = vec![term("staff")];
    c.batch.queues[0].admins = vec!["wheel".into()];
    c.unix.unknown = vec!["staff".into(), "wheel".into()];
    let mut r = Rig::of(c.clone());
    assert_eq!(r.submit(spec("x")).map_err(|e| e.code), Err(err::QUEUE_USE));
    let group = |name: &str, gid: u32, member: &str| UnixGroup {
        name: name.into(),
        gid,
        members: vec![member.into()],
    };
    let asked = c.unix.unknown.clone();
    // ann is listed; the credential of bob (1002) says that it is his primary group.
    let found = vec![group("staff", 1002, "ann"), group("wheel", 7, "bob")];
    r.step(Input::Groups { asked: asked.clone(), found });
    let id = r.submit(spec("x")).unwrap();
    let s = Submit { spec: spec("y"), ..Default::default() };
    let answer = r.ask(OTHER, ClientMsg::Submit(Box::new(s)));
    assert!(matches!(answer, Some(Msg::Client(ClientMsg::Submitted { .. }))), "{answer:?}");
    assert_eq!(r.kill(OTHER, id), 0, "bob administers the queue");
    // A reconfiguration keeps the answers until the new ones come.
    r.step(Input::Config { conf: Some(Box::new(c)), diags: vec![] });
    assert!(r.submit(spec("z")).is_ok());
    r.step(Input::Groups { asked, found: vec![] });
    assert_eq!(r.submit(spec("x")).map_err(|e| e.code), Err(err::QUEUE_USE));
}

/// Tuesday, 22:13:20 in UTC: these windows close 40 seconds later, until 8:00.
const SHUT_SOON: &str = "8:00-22:14";
const TO_EIGHT: u64 = 9 * 3600 + 46 * 60;

impl Rig {
    /// Lets time pass; all hosts are heard of meanwhile.
    fn pass(&mut self, mut secs: u64) {
        while secs > 0 {
            let step = secs.min(15);
            secs -= step;
            self.now.mono_us += step * 1_000_000;
            self.now.wall_us += step as i64 * 1_000_000;
            let due = self.mbd.shut.deadline();
            assert!(secs > 0 || due.is_some_and(|d| d <= self.now.mono_us), "nothing is due");
            for conn in self.mbd.net.hosts.iter().filter_map(|h| h.up()).collect::<Vec<_>>() {
                self.step(Input::Msg { conn, msg: Msg::Pong { n: 0 } });
            }
            self.step(Input::Tick);
        }
    }

    /// What a host was ordered to do with running jobs.
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

    /// The host that was lost is back, with this attempt.
    fn meet(&mut self, key: JobKey, phase: Phase) -> ConnId {
        self.now.mono_us += 10_000_000;
        self.now.wall_us += 10_000_000;
        self.step(Input::Tick);
        let (conn, to) = self.dialled.pop().unwrap();
        let Endpoint::Tcp { host, daemon } = to else { panic!() };
        self.step(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
        let task = TaskState { key, phase, pid: 7, ..Default::default() };
        let msg = SbdMsg::Inventory { boot_id: "boot".into(), tasks: vec![task] };
        self.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
        conn
    }

    fn control(&mut self, verb: Verb, job: u32) {
        let select = JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..Default::default() };
        self.ask(USER, ClientMsg::Control(Box::new(Control::of(verb, select))));
    }

    fn reason(&self, job: u32) -> u32 {
        self.mbd.sched.reasons(job).first().map_or(0, |r| r.0)
    }

    /// Its state, with why it is suspended.
    fn phase(&self, job: u32) -> state::Phase {
        self.mbd.st.job(job).unwrap().elem(0).unwrap().run().unwrap().phase
    }

    fn queue_row(&mut self) -> QueueInfo {
        let (names, user, host) = (vec!["normal".into()], String::new(), String::new());
        match self.ask(USER, ClientMsg::Queues { names, user, host }) {
            Some(Msg::Client(ClientMsg::QueueRows { rows })) => rows[0].clone(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn run_windows_suspend_and_resume() {
    use crate::model::reason::{pend, susp};
    let mut c = conf();
    c.batch.queues[0].run_window = SHUT_SOON.into();
    let mut r = Rig::of(c.clone());
    let runs = r.submit(spec("x")).unwrap();
    let stopped = r.submit(spec("y")).unwrap();
    let late = r.submit(spec("z")).unwrap();
    let starts = r.starts();
    r.report(starts[0].0, starts[0].1, Phase::Running);
    r.report(starts[1].0, starts[1].1, Phase::Running);
    r.control(Verb::Stop, stopped);
    r.report(starts[1].0, starts[1].1, Phase::Suspended);
    assert_eq!((r.acts(), r.queue_row().window_closed), (vec![Act::Suspend], false));
    r.pass(40);
    assert_eq!((r.acts(), r.queue_row().window_closed), (vec![Act::Suspend], true));
    assert_eq!(r.phase(runs), state::Phase::Ssusp(susp::WINDOW));
    r.report(starts[0].0, starts[0].1, Phase::Suspended);
    assert_eq!((r.stat(runs, 0), r.stat(stopped, 0)), ("SSUSP", "USUSP"));
    // The start was under way: it follows when the host confirms it.
    r.report(starts[2].0, starts[2].1, Phase::Running);
    assert_eq!((r.acts(), r.stat(late, 0)), (vec![Act::Suspend], "SSUSP"));
    let waits = r.submit(spec("w")).unwrap();
    assert_eq!((r.starts().len(), r.reason(waits)), (0, pend::QUEUE_WINDOW));
    // A user's bresume ends the user's stop, not the window's.
    r.control(Verb::Resume, stopped);
    assert_eq!((r.acts(), r.phase(stopped)), (vec![], state::Phase::Ssusp(susp::WINDOW)));
    r.control(Verb::Stop, runs);
    r.report(starts[0].0, starts[0].1, Phase::Suspended);
    assert_eq!(r.stat(runs, 0), "USUSP");
    r.acts();
    r.pass(TO_EIGHT);
    assert_eq!(r.acts(), [Act::Resume, Act::Resume]);
    r.report(starts[1].0, starts[1].1, Phase::Running);
    assert_eq!((r.stat(runs, 0), r.stat(stopped, 0)), ("USUSP", "RUN"));
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [waits]);
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    let again = Mbd::new(c, "h1", found);
    assert_eq!(again.st.job(late).unwrap().tally.ssusp, 1);
}

#[test]
fn hosts_are_brought_in_line_with_run_windows() {
    let mut c = conf();
    c.batch.queues[0].run_window = SHUT_SOON.into();
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
    r.step(Input::Closed { conn });
    r.pass(40);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "SSUSP"));
    // The host was never told, and says that the job runs.
    let conn = r.meet(key, Phase::Running);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![Act::Suspend], "SSUSP"));
    r.step(Input::Closed { conn });
    let conn = r.meet(key, Phase::Suspended);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "SSUSP"));
    r.step(Input::Closed { conn });
    // Back twice, ten seconds each.
    r.pass(TO_EIGHT - 20);
    let conn = r.meet(key, Phase::Suspended);
    assert_eq!(r.acts(), [Act::Resume]);
    r.report(conn, key, Phase::Running);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "RUN"));
    // Without windows nothing is due.
    r.step(Input::Config { conf: Some(Box::new(conf())), diags: vec![] });
    assert_eq!(r.mbd.shut.deadline(), None);
}

#[test]
fn dispatch_windows_hold_dispatch_alone() {
    use crate::model::reason::pend;
    let mut c = conf();
    c.batch.queues[0].dispatch_window = SHUT_SOON.into();
    let row = HostPolicy {
        name: "h2".into(),
        mxj: Mxj::Slots(9),
        dispatch_window: SHUT_SOON.into(),
        ..Default::default()
    };
    c.batch.hosts.hosts.push(row);
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
    r.pass(40);
    assert_eq!((r.acts(), r.stat(id, 0), r.queue_row().window_closed), (vec![], "RUN", true));
    let waits = r.submit(spec("y")).unwrap();
    assert_eq!((r.starts().len(), r.reason(waits)), (0, pend::QUEUE_WINDOW));
    let on = |host: &str, queue: &str| JobSpec {
        hosts: vec![host.into()],
        queue: queue.into(),
        ..spec("z")
    };
    let no = r.submit(on("h2", "high")).unwrap();
    assert!(r.mbd.sched.reasons(no).iter().any(|w| w.0 == pend::HOST_WINDOW));
    assert_eq!(r.mbd.host_status(1).text(), "closed_Wind");
    r.submit(on("h1", "high")).unwrap();
    assert_eq!(r.starts().len(), 1);
    r.pass(TO_EIGHT);
    assert_eq!(r.starts().len(), 2);
    assert_eq!(r.mbd.host_status(1).text(), "ok");
}

#[test]
fn a_log_that_cannot_be_written_refuses_and_keeps() {
    use crate::model::reason::err;
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    let found = Recovered { records: r.log.clone(), epoch: 1, ..Default::default() };
    r.mbd.reload(found);
    r.step(Input::LogFailed { why: "no space".into() });
    assert_eq!(r.submit(spec("y")).map_err(|e| e.code), Err(err::LOG_FULL));
    r.report(conn, key, done());
    assert_eq!(r.stat(id, 0), "RUN");
    r.step(Input::LogBack);
    r.now.mono_us += 1_000_000;
    r.step(Input::Tick);
    assert!(!r.dialled.is_empty());
    assert!(r.submit(spec("y")).is_ok());
}

#[test]
fn listings_come_in_slices() {
    let mut r = Rig::new();
    let n = listing::FIND_STEP + 1000;
    for _ in 0..n {
        r.submit(JobSpec { options2: 1, ..spec("x") }).unwrap();
    }
    let q = JobQuery { cols: vec![Col::Job, Col::Stat, Col::Name], ..Default::default() };
    r.ask(USER, ClientMsg::Jobs(Box::new(q)));
    // not all is looked at in one step, and what comes meanwhile is found
    let first = r.sent.iter().find(|(c, _)| *c == USER);
    let Some((_, Msg::Client(ClientMsg::Rows { rows, more: true }))) = first else { panic!() };
    assert_eq!(rows.get(), "[]");
    let last = r.submit(JobSpec { options2: 1, ..spec("x") }).unwrap();
    assert!(last as usize > n);
    r.sent.clear();
    r.step(Input::Drained { conn: USER });
    let mut rows = 0;
    loop {
        let Some(i) = r.sent.iter().position(|(c, _)| *c == USER) else { break };
        let (_, Msg::Client(ClientMsg::Rows { rows: part, more })) = r.sent.remove(i) else {
            panic!()
        };
        let part: Vec<Vec<serde_json::Value>> = serde_json::from_str(part.get()).unwrap();
        rows += part.len();
        if more {
            r.step(Input::Drained { conn: USER });
        }
    }
    assert_eq!(rows, n + 1);
}

#[test]
fn a_cleaned_job_stays_gone_though_its_end_is_lost_from_the_log() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let mut records = r.log.clone();
    let event = Event::JobClean { at: JobRef { job: id, idx: 0 } };
    records.push(Record { time: 1_700_000_900, event });
    let found = Recovered { records, seen_ids: vec![id], epoch: 2, ..Default::default() };
    let again = Mbd::new(conf(), "h1", found);
    assert!(again.st.job(id).is_none());
    assert!(again.st.reserved.contains(&id));
}

#[test]
fn an_environment_may_be_named_by_its_hash_where_it_is_kept() {
    use crate::proto::client::env_hash;
    let mut r = Rig::new();
    let env = ByteStr::from("A=1\0B=2\0");
    let whole = Submit { spec: spec("x"), env: env.clone(), ..Default::default() };
    let named = Submit { spec: spec("y"), env_hash: env_hash(&env), ..Default::default() };
    let ask = |r: &mut Rig, conn, s: &Submit| match r.ask(conn, ClientMsg::Submit(s.clone().into()))
    {
        Some(Msg::Client(ClientMsg::Submitted { job, env_kept: true, .. })) => Ok(job),
        Some(Msg::Refused(refusal)) => Err(refusal.code),
        other => panic!("{other:?}"),
    };
    assert_eq!(ask(&mut r, USER, &named), Err(err::ENV_GONE));
    let first = ask(&mut r, USER, &whole).unwrap();
    let second = ask(&mut r, USER, &named).unwrap();
    let at = |r: &Rig, job| r.mbd.st.job(job).map(|j| j.env);
    assert!(at(&r, first).is_some_and(|at| at.len == env.len() as u32));
    assert_eq!(at(&r, first), at(&r, second));
    assert_eq!(ask(&mut r, OTHER, &named), Err(err::ENV_GONE), "another user's");
    r.mbd.reload(Recovered::default());
    assert_eq!(ask(&mut r, USER, &named), Err(err::ENV_GONE), "of the run before");
}

#[test]
fn jobs_of_a_kind_share_what_they_were_submitted_with() {
    let mut r = Rig::new();
    let ids: Vec<u32> = (0..3).map(|_| r.submit(spec("x")).unwrap()).collect();
    let other = r.submit(spec("y")).unwrap();
    let again = r.submit(spec("x")).unwrap();
    let of = |r: &Rig, id| r.mbd.st.job(id).unwrap().spec.clone();
    assert!(ids.iter().all(|id| std::sync::Arc::ptr_eq(&of(&r, *id), &of(&r, again))));
    assert!(!std::sync::Arc::ptr_eq(&of(&r, other), &of(&r, again)));
    let select =
        JobSelect { ids: vec![IdSel { job: again, elems: vec![] }], ..JobSelect::default() };
    let msg = Control::of(Verb::Switch { queue: "high".into() }, select);
    r.ask(USER, ClientMsg::Control(Box::new(msg)));
    assert_eq!((of(&r, again).queue.as_str(), of(&r, ids[0]).queue.as_str()), ("high", "normal"));
}
