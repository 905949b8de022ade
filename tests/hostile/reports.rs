//! A compute node turned against the cluster: in place of its sbatchd a program of the attacker's,
//! with the cluster's own key and the node's own address, speaks for jobs of another host. Every
//! message that there is, each for a job of the other host alone and for one that the node itself
//! is a further host of.

use crate::rig::{Rig, job_id, wait_for};
use lsf::auth::{KeyRing, Ways};
use lsf::conf::load;
use lsf::daemon::shell::{self, Ctl, Host, Ports, ShellConfig};
use lsf::log::codec::read_record;
use lsf::model::event::Event;
use lsf::model::job::{End, SpoolRef, Usage};
use lsf::model::{JobKey, Now};
use lsf::proto::machine::{ConnId, Endpoint};
use lsf::proto::sbd::{Act, Phase, Post, SbdMsg, SbdParams, StartJob, TaskState};
use lsf::proto::{Daemon, Effect, Input, Machine, Msg, Peer};
use lsf::sys::files::RealFiles;
use lsf::sys::site::Site;
use std::sync::{Arc, Mutex};

/// The reports to be made, and the answers heard.
#[derive(Default)]
pub(super) struct Script {
    pub(super) say: Vec<SbdMsg>,
    /// To say over a connection of its own making.
    call: Vec<SbdMsg>,
    pub(super) heard: Vec<SbdMsg>,
    greeted: bool,
}

/// In place of sbatchd: greets mbatchd as one that has nothing, then says what the test wants.
struct Impostor {
    script: Arc<Mutex<Script>>,
    mbatchd: Option<ConnId>,
    now: u64,
    calls: ConnId,
}

/// How often it looks for something to say, microseconds.
const LOOK: u64 = 20_000;

impl Machine for Impostor {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        self.now = now.mono_us;
        let mut script = self.script.lock().unwrap();
        let send = |conn, msg| Effect::Send { conn, msg: Msg::Sbd(msg) };
        match input {
            Input::Opened { conn, peer: Peer::Daemon { daemon: Daemon::Mbatchd, .. } }
                if conn <= self.calls =>
            {
                out.extend(script.call.drain(..).map(|msg| send(conn, msg)));
            }
            Input::Msg { conn, msg: Msg::Sbd(SbdMsg::Hello { .. }) } => {
                self.mbatchd = Some(conn);
                let boot_id = "of its own".into();
                out.push(send(conn, SbdMsg::Inventory { boot_id, tasks: Vec::new() }));
                script.greeted = true;
            }
            Input::Msg { msg: Msg::Sbd(msg), .. } => script.heard.push(msg),
            Input::Msg { conn, msg: Msg::Ping { n } } => {
                out.push(Effect::Send { conn, msg: Msg::Pong { n } });
            }
            _ => {}
        }
        if let Some(conn) = self.mbatchd {
            out.extend(script.say.drain(..).map(|msg| send(conn, msg)));
        }
        let calling = out.iter().any(|e| matches!(e, Effect::Connect { .. }));
        if !script.call.is_empty() && !calling {
            self.calls += 1;
            let to = Endpoint::Tcp { host: "host1".into(), daemon: Daemon::Mbatchd };
            out.push(Effect::Connect { conn: self.calls, to });
        }
    }

    fn deadline(&self) -> Option<u64> {
        Some(self.now + LOOK)
    }
}

struct Nothing;

impl Host for Nothing {
    type M = Impostor;
    fn effect(&mut self, _: &mut Impostor, _: Effect, _: &mut Ctl) {}
}

/// Takes the place of host2's sbatchd.
pub(super) fn take_over(rig: &Rig) -> Arc<Mutex<Script>> {
    for daemon in ["launcher", "sbatchd"] {
        assert!(rig.kill9(daemon, "host2"), "no {daemon}");
    }
    let envdir = rig.path("conf").to_str().unwrap().to_owned();
    let (base, diags) = load::load_base_lenient(&RealFiles, &envdir, Some("host2"));
    let base = base.unwrap_or_else(|| panic!("{diags:?}"));
    let host = "host2".to_owned();
    let key = rig.path("conf/lsf.key").to_str().unwrap().to_owned();
    let uid = lsf::sys::euid();
    let ring = Arc::new(KeyRing::load(&key, &host, uid).unwrap());
    let site = Site { envdir, lsf: base.lsf.clone(), host, shared_machine: true };
    let config = ShellConfig {
        heartbeat: None,
        daemon: Daemon::Sbatchd,
        host: "host2".into(),
        addr: Some(base.hosts.addrs("host2")[0]),
        tcp: true,
        udp: false,
        unix: None,
        ports: Ports::of(&base.lsf),
        ring: Some(ring),
        hosts: Arc::new(base.hosts.clone()),
        launcher_socket: site.launcher_socket(),
        only_uid: Some(uid),
        ways: Ways::of_daemon(&base.lsf, &base.name, "host2"),
        key_file: None,
        log: None,
        members: None,
    };
    let script = Arc::new(Mutex::new(Script::default()));
    let machine = Impostor { script: script.clone(), mbatchd: None, now: 0, calls: 0 };
    // it lives as long as the test program
    std::thread::spawn(move || shell::run(config, machine, Nothing));
    wait_for("mbatchd to greet it", || script.lock().unwrap().greeted);
    script
}

/// Where the environment of a job lies: the attacker is taken to know it.
fn env_of(rig: &Rig, job: u32) -> SpoolRef {
    let log = std::fs::read(rig.logdir().join("lsb.events")).unwrap();
    let lines = log.split_inclusive(|b| *b == b'\n');
    let mut new = lines.filter_map(|l| match read_record(l).ok()?.event {
        Event::JobNew(new) if new.job == job => Some(new.env),
        _ => None,
    });
    new.next().unwrap()
}

pub(super) fn refused(rig: &Rig) -> u64 {
    let said = rig.ok("badmin", &["showstatus"]);
    let row = said.lines().find_map(|l| l.trim().strip_prefix("Refused reports:"));
    row.map_or(0, |n| n.trim().parse().unwrap())
}

/// Every message about an attempt, with its name.
fn messages(key: JobKey, env: SpoolRef) -> Vec<(&'static str, SbdMsg)> {
    let usage = Usage { mem_kb: 7_777_777, max_mem_kb: 7_777_777, ..Usage::default() };
    let ended = Phase::Ended { end: End::Status(0), exit_info: 0 };
    let state = |phase| TaskState { key, phase, pid: 1, usage, ..TaskState::default() };
    let posted = TaskState { post: Post::Failed, ..state(ended.clone()) };
    let lost = Phase::Ended { end: End::Unknown, exit_info: 9002 };
    let told = |t| SbdMsg::State(Box::new(t));
    let (pids, pgids, groups) = (vec![1], vec![1], vec![]);
    let boot_id = || "of its own".to_owned();
    vec![
        ("State: it has ended", told(state(ended.clone()))),
        ("State: its host was restarted", told(state(lost))),
        ("State: it runs", told(state(Phase::Running))),
        ("State: it is suspended", told(state(Phase::Suspended))),
        ("State: it could not be started", told(state(Phase::Failed { reason: 11 }))),
        ("State: what ran after it has failed", told(posted)),
        ("Usage", SbdMsg::Usage { key, usage, pids, pgids, groups }),
        ("NeedBlob", SbdMsg::NeedBlob { at: env }),
        ("Inventory", SbdMsg::Inventory { boot_id: boot_id(), tasks: vec![state(ended)] }),
        ("Start", SbdMsg::Start(Box::new(StartJob { key, ..StartJob::default() }))),
        (
            "Act",
            SbdMsg::Act {
                key,
                seq: u32::MAX,
                order: u64::MAX,
                act: Act::Terminate { exit_info: 1 },
            },
        ),
        ("Forget", SbdMsg::Forget { key, mail: String::new() }),
        ("Params", SbdMsg::Params(SbdParams::default())),
        ("Logging", SbdMsg::Logging(lsf::proto::Logging::default())),
        ("Blob", SbdMsg::Blob { at: env, data: lsf::model::ByteStr::default() }),
        ("Hello", {
            let (cluster, params) = (String::new(), SbdParams::default());
            SbdMsg::Hello { epoch: u64::MAX, cluster, params }
        }),
    ]
}

#[test]
fn a_node_with_the_key_cannot_speak_for_the_jobs_of_another() {
    let rig = Rig::up("reports", 2);
    rig.ready();
    wait_for("both hosts", || {
        rig.run("bhosts", &["-w"]).out.lines().filter(|l| l.contains(" ok ")).count() == 2
    });
    let submit = |args: &[&str]| {
        let secret = "SECRET=of-the-user";
        let mut c = rig.cmd("bsub");
        c.args(args).args(["-o", "/dev/null", "sleep 600"]);
        c.env(secret.split_once('=').unwrap().0, "of-the-user");
        let said = crate::rig::Said::from(c.output().unwrap());
        let job = job_id(&said.out).unwrap_or_else(|| panic!("{}", said.err));
        wait_for("the job to run", || rig.stat(job) == "RUN");
        job
    };
    rig.write("both", "host1 1\nhost2 1\n");
    let alone = submit(&["-m", "host1"]);
    let both = submit(&["-hostfile", rig.path("both").to_str().unwrap()]);
    assert_eq!(rig.field(&both.to_string(), "first_host"), "host1");
    let script = take_over(&rig);
    wait_for("the host", || rig.run("bhosts", &["-w", "host2"]).out.contains("host2"));
    assert_eq!(refused(&rig), 0);
    let mut n = 0;
    for job in [alone, both] {
        let key = JobKey { job, idx: 0, attempt: 1 };
        for (what, msg) in messages(key, env_of(&rig, job)) {
            n += 1;
            script.lock().unwrap().say.push(msg);
            wait_for(&format!("{what} of job {job} to be refused"), || refused(&rig) == n);
            assert_eq!(rig.stat(job), "RUN", "{what}");
        }
        let mem = rig.field(&job.to_string(), "max_mem");
        assert!(!mem.contains("7.4"), "{mem}");
    }
    // the same by the one who calls instead of being called
    for (what, msg) in messages(JobKey { job: alone, idx: 0, attempt: 1 }, env_of(&rig, alone)) {
        n += 1;
        script.lock().unwrap().call.push(msg);
        wait_for(&format!("{what} by a caller to be refused"), || refused(&rig) == n);
    }
    // one that says of nothing that it has it says nothing of what others have
    let tasks = Vec::new();
    let none = SbdMsg::Inventory { boot_id: "another".into(), tasks };
    let last =
        SbdMsg::Forget { key: JobKey { job: alone, idx: 0, attempt: 1 }, mail: String::new() };
    script.lock().unwrap().say.extend([none, last]);
    wait_for("the last to be refused", || refused(&rig) == n + 1);
    for job in [alone, both] {
        assert_eq!(rig.stat(job), "RUN");
        let log = std::fs::read_to_string(rig.logdir().join("lsb.events")).unwrap();
        let of = |l: &&str| {
            let mut words = l.split(' ');
            words.next() == Some("\"JOB_STATUS\"") && words.nth(2) == Some(&job.to_string())
        };
        assert_eq!(log.lines().filter(of).count(), 0);
    }
    let heard = &script.lock().unwrap().heard;
    let got = heard.iter().any(|m| matches!(m, SbdMsg::Blob { .. } | SbdMsg::Start(_)));
    assert!(!got, "{heard:?}");
    // the log names the host, and is not filled by it
    let mut logs = Vec::new();
    crate::rig::find(&rig.dir, "mbatchd.log.host1", &mut logs);
    let text = std::fs::read_to_string(logs.pop().unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|l| l.contains("host2: ")).collect();
    let first = format!("host2: the state of job <{alone}>, which is on host1: refused");
    assert!(lines.iter().any(|l| l.contains(&first)), "{lines:?}");
    assert!(lines.len() < 10, "{lines:?}");
    for job in [alone, both] {
        rig.ok("bkill", &[&job.to_string()]);
        assert_eq!(rig.end_of(job), "EXIT");
    }
}
