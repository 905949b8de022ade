//! Messages to lim, res, sbatchd and the launcher, each at its cap, and those beyond: the real
//! daemons of a personal cluster grow little by them and do not spend long on them. mbatchd's are
//! in [`super::bounds`] and [`super::host_messages`].
//!
//! Memory is the peak of the resident set over what it was before. Time is the processor time that
//! the daemon's loop takes for the whole message, which no turn of it exceeds, and which a busy
//! machine changes little; the system's time for fresh memory is the machine's own.

use super::rig::{Rig, wait_for};
use super::script::{say, site, speak};
use lsf::cli::client::{self, Client, ClientError};
use lsf::model::job::{JobSpec, SpoolRef};
use lsf::model::reason::err;
use lsf::model::{ByteStr, JobKey};
use lsf::proto::launch::{self, JobPlan, LaunchMsg, Plan, TaskId, TaskPlan, TaskStep};
use lsf::proto::lim::{HostLoad, LimMsg};
use lsf::proto::machine::Endpoint;
use lsf::proto::res::{Data, IN, Pty, ResMsg, RunTask};
use lsf::proto::sbd::{Act, SbdMsg, SbdParams, StartJob};
use lsf::proto::{Daemon, Logging, Msg, Refusal, caps};

/// Kilobytes that a daemon may grow by for one message at its cap.
const GROWTH_KB: u64 = 64 << 10;

/// Longest time of the loop for one message, milliseconds.
pub(super) fn longest() -> u64 {
    if std::env::var_os("LSF_TEST_BIN").is_some() { 50 } else { 1000 }
}

pub(super) struct Target<'a> {
    name: &'a str,
    pub(super) pid: u32,
}

impl Target<'_> {
    pub(super) fn of<'a>(rig: &Rig, name: &'a str) -> Target<'a> {
        let pid = rig.pid(name, "host1").unwrap_or_else(|| panic!("no {name}"));
        Target { name, pid }
    }

    /// A line of /proc/PID/status, KB.
    fn memory(&self, line: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = text.lines().find(|l| l.starts_with(line)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Processor time of its loop so far, milliseconds.
    fn busy(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.pid)).unwrap();
        text.split(' ').next().unwrap().parse::<u64>().unwrap() / 1_000_000
    }

    /// Holds the costs of a message in memory and time against the bounds.
    pub(super) fn measured<T>(&self, what: &str, send: impl FnOnce() -> T) -> T {
        let busy = self.busy();
        let (said, grown) = self.grown_by(what, send);
        let took = self.busy() - busy;
        let fresh = fresh_memory_ms(grown);
        println!("{} {what}: {took} ms, fresh memory {fresh} ms", self.name);
        let most = longest() + 2 * fresh;
        assert!(took <= most, "{} was busy for {took} ms of {most}: {what}", self.name);
        said
    }

    /// Holds the costs of a message in memory alone against the bound; its work takes several
    /// turns.
    pub(super) fn grows<T>(&self, what: &str, send: impl FnOnce() -> T) -> T {
        self.grown_by(what, send).0
    }

    /// Does as `grows`, and returns the kilobytes, too.
    fn grown_by<T>(&self, what: &str, send: impl FnOnce() -> T) -> (T, u64) {
        std::fs::write(format!("/proc/{}/clear_refs", self.pid), "5").unwrap();
        let before = self.memory("VmRSS");
        let said = send();
        let grown = self.memory("VmHWM").saturating_sub(before);
        println!("{} {what}: {grown} KB", self.name);
        assert!(grown <= GROWTH_KB, "{} has grown by {grown} KB: {what}", self.name);
        (said, grown)
    }
}

/// Processor time that this machine takes to clear so much memory, milliseconds: a virtual one has
/// to find it first, which took 40 ms for 22 MB.
fn fresh_memory_ms(kb: u64) -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
    };
    let began = now();
    let mut fresh = vec![0u8; (kb << 10) as usize];
    fresh.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&fresh);
    now() - began
}

fn answer(client: &mut Client, msg: Msg) -> Result<Msg, Refusal> {
    match client.call(&msg, &mut std::io::sink()) {
        Ok(said) => Ok(said),
        Err(ClientError::Refused(r)) => Err(r),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn lim_takes_each_message_at_its_cap_and_none_beyond() {
    let rig = Rig::up("limcaps", 1);
    let lim = Target::of(&rig, "lim");
    let mut client = client::lim(&site(&rig, "host1")).unwrap();
    let mut ask =
        |what: &str, msg: LimMsg| lim.measured(what, || answer(&mut client, Msg::Lim(msg)));
    let names = |n: usize, name: &str| vec![name.to_string(); n];
    let tasks = |n: usize| names(n, "host1").into_iter().map(|host| (host, 1)).collect();
    let (most, long) = (caps::MAX_NAMES, "x".repeat(caps::MAX_NAME));
    wait_for("the master LIM", || {
        let mut other = client::lim(&site(&rig, "host1")).unwrap();
        answer(&mut other, Msg::Lim(LimMsg::Shared))
            .is_ok_and(|said| matches!(said, Msg::Lim(LimMsg::SharedRows { .. })))
    });
    match ask("Hosts", LimMsg::Hosts { hosts: names(most, "host1") }) {
        Ok(Msg::Lim(LimMsg::Loads { hosts })) => assert_eq!(hosts.len(), 1),
        other => panic!("{other:?}"),
    }
    let said = ask("Hosts of long names", LimMsg::Hosts { hosts: names(500, &long) });
    assert_eq!(said.unwrap_err().code, err::BAD_HOST);
    ask("Adjust", LimMsg::Adjust { hosts: tasks(most) }).unwrap();
    let host = long.clone();
    let said = ask("Lock", LimMsg::Lock { host, on: true, secs: 9 });
    assert_eq!(said.unwrap_err().code, err::BAD_HOST);
    for (what, msg) in [
        ("Shared", LimMsg::Shared),
        ("Config", LimMsg::Config),
        ("WhoIsMaster", LimMsg::WhoIsMaster),
        ("Verbose", LimMsg::Verbose { level: 0 }),
    ] {
        ask(what, msg).unwrap();
    }
    // what belongs to daemons is refused, whatever its length
    let said = ask("Exclusive", LimMsg::Exclusive { hosts: names(caps::MAX_HOSTS, "host1") });
    assert_eq!(said.unwrap_err().code, err::PERMISSION);
    let loads = vec![HostLoad { host: "host1".into(), ..HostLoad::default() }; 5000];
    assert!(ask("Loads", LimMsg::Loads { hosts: loads }).is_err());
    for (what, msg) in [
        ("Hosts beyond", LimMsg::Hosts { hosts: names(most + 1, "host1") }),
        ("Adjust beyond", LimMsg::Adjust { hosts: tasks(most + 1) }),
        ("Exclusive beyond", LimMsg::Exclusive { hosts: names(caps::MAX_HOSTS + 1, "host1") }),
        ("Lock beyond", LimMsg::Lock { host: long.clone() + "x", on: true, secs: 9 }),
        ("Logging beyond", {
            let file = Some("x".repeat(caps::MAX_TEXT + 1));
            LimMsg::Logging(Logging { file, ..Logging::default() })
        }),
    ] {
        let said = ask(what, msg).expect_err(what);
        assert!(
            said.code == err::BAD_ARG && said.text.contains("the limit is"),
            "{what}: {said:?}"
        );
    }
    ask("the connection goes on", LimMsg::WhoIsMaster).unwrap();
}

/// A task that reads nothing, and what it takes until its input is full.
fn deaf(pty: Option<Pty>) -> RunTask {
    let argv = ["sleep", "60"].map(ByteStr::from).to_vec();
    let env = ByteStr::from("PATH=/usr/bin:/bin\0");
    RunTask { argv, env, cwd: "/".into(), pty, ..RunTask::default() }
}

#[test]
fn res_takes_each_message_at_its_cap_and_none_beyond() {
    let rig = Rig::up("rescaps", 1);
    let site = site(&rig, "host1");
    let res = Target::of(&rig, "res");
    let dial = || client::res_of(&site, "host1").unwrap();
    let run = |argv: Vec<ByteStr>, env: ByteStr| {
        Msg::Res(ResMsg::Run(Box::new(RunTask { argv, env, cwd: "/".into(), ..<_>::default() })))
    };
    let mut client = dial();
    wait_for("res to have its launcher", || {
        answer(&mut client, Msg::Res(ResMsg::Log { cpu_ms: None })).is_ok()
    });
    let words = |n: usize| vec![ByteStr::from("x"); n];
    let env = |n: usize| ByteStr::from(format!("A={}\0", "y".repeat(n)));
    let most = lsf::proto::res::RUN_MAX - 2 * caps::MAX_ARGS - 8;
    // more than the system takes: what the task says of it comes before its end
    client.send(&run(words(caps::MAX_ARGS), env(most))).unwrap();
    res.measured("Run", || {
        let mut ended = false;
        while !ended {
            ended = match client.answer(&mut std::io::sink()) {
                Ok(Msg::Data(_) | Msg::Res(ResMsg::Kept { .. })) => false,
                Ok(Msg::Res(ResMsg::Ended { .. })) | Err(ClientError::Refused(_)) => true,
                other => panic!("{other:?}"),
            };
        }
    });
    for (what, msg) in [
        ("Run beyond: words", run(words(caps::MAX_ARGS + 1), ByteStr::default())),
        ("Run beyond: environment", run(words(1), env(lsf::proto::res::RUN_MAX))),
    ] {
        let said = res.measured(what, || answer(&mut client, msg)).expect_err(what);
        assert!(
            said.code == err::BAD_ARG && said.text.contains("the limit is"),
            "{what}: {said:?}"
        );
    }
    let file = Some("x".repeat(caps::MAX_TEXT));
    let set = Msg::Res(ResMsg::Logging(Logging { file, ..Logging::default() }));
    res.measured("Logging", || answer(&mut dial(), set)).ok();
}

/// Input in very many pieces takes no more room than input in one.
#[test]
fn unread_input_takes_little_memory_of_res() {
    let rig = Rig::up("resinput", 1);
    let site = site(&rig, "host1");
    let res = Target::of(&rig, "res");
    let settled = |client: &mut Client| {
        // what was sent before has been read when this is answered
        client.send(&Msg::Ping { n: 7 }).ok();
    };
    let mut none = client::res_of(&site, "host1").unwrap();
    wait_for("res to have its launcher", || {
        let msg = ResMsg::Log { cpu_ms: None };
        answer(&mut none, Msg::Res(msg)).is_ok()
    });
    let grown = |what: &str, pty: Option<Pty>, bytes: &[u8], frames: usize| {
        let mut client = client::res_of(&site, "host1").unwrap();
        client.send(&Msg::Res(ResMsg::Run(Box::new(deaf(pty))))).unwrap();
        std::fs::write(format!("/proc/{}/clear_refs", res.pid), "5").unwrap();
        let before = res.memory("VmRSS");
        for _ in 0..frames {
            client.send(&Msg::Data(Data { port: IN, bytes: bytes.to_vec() })).unwrap();
        }
        settled(&mut client);
        wait_for("all to be read", || {
            let mut probe = client::res_of(&site, "host1").unwrap();
            let busy = res.busy();
            let log = ResMsg::Log { cpu_ms: None };
            answer(&mut probe, Msg::Res(log)).is_ok() && res.busy() - busy <= 2
        });
        let grown = res.memory("VmHWM").saturating_sub(before);
        println!("{what}: {grown} KB");
        grown
    };
    let many = grown("single bytes", None, b"x", 300_000);
    assert!(many <= 8 << 10, "{many} KB for 300,000 bytes");
    let ends = grown("ends of input", Some(Pty::default()), b"", 300_000);
    assert!(ends <= 8 << 10, "{ends} KB for 300,000 ends of input");
}

fn pong(msg: &Msg) -> Option<()> {
    matches!(msg, Msg::Pong { .. }).then_some(())
}

#[test]
fn sbatchd_takes_each_message_at_its_cap() {
    let rig = Rig::up("sbdcaps", 1);
    rig.ready();
    let cluster = rig.ok("lsid", &[]);
    let cluster = cluster.lines().find_map(|l| l.strip_prefix("My cluster name is ")).unwrap();
    let to = Endpoint::Tcp { host: "host1".into(), daemon: Daemon::Sbatchd };
    let script = speak(&rig, Daemon::Mbatchd, to);
    let (sbatchd, launcher) = (Target::of(&rig, "sbatchd"), Target::of(&rig, "launcher"));
    let both = |what: &str, send: &mut dyn FnMut()| {
        launcher.measured(what, || sbatchd.measured(what, send));
    };
    let params = SbdParams { sbd_sleep_time: 30, ..SbdParams::default() };
    // an mbatchd that comes later than the real one
    let hello = SbdMsg::Hello {
        epoch: u64::MAX,
        cluster: cluster.trim().into(),
        params: params.clone(),
        pieces: true,
    };
    let greeted = |msg: &Msg| matches!(msg, Msg::Sbd(SbdMsg::Inventory { .. })).then_some(());
    both("Hello", &mut || say(&script, "Hello", Msg::Sbd(hello.clone()), greeted));
    let key = JobKey { job: 900_001, idx: 0, attempt: 1 };
    let env = SpoolRef { spool: 9, at: 0, len: 3 << 20 };
    let spec = JobSpec {
        command: "true".into(),
        cwd: "/".into(),
        hosts: (0..caps::MAX_HOST_WORDS).map(|n| format!("host1+{n}")).collect(),
        further: [("zz", "e".repeat(caps::MAX_EXTRA_BYTES - 8))].into_iter().collect(),
        out_file: "/dev/null".into(),
        ..JobSpec::default()
    };
    let uid = lsf::sys::euid();
    let order = StartJob {
        key,
        uid,
        spec: spec.into(),
        env,
        user: "nobody-of-this-name".into(),
        hosts: [("host1".into(), 1)].into(),
        ..StartJob::default()
    };
    let wanted = |msg: &Msg| matches!(msg, Msg::Sbd(SbdMsg::NeedBlob { .. })).then_some(());
    let start = || Msg::Sbd(SbdMsg::Start(Box::new(order.clone())));
    both("Start", &mut || say(&script, "Start", start(), wanted));
    let told = |msg: &Msg| matches!(msg, Msg::Sbd(SbdMsg::State(t)) if t.key == key).then_some(());
    let text = format!("A={}\0", "y".repeat((3 << 20) - 3));
    let blob = SbdMsg::Blob { at: env, data: text.into() };
    both("Blob", &mut || say(&script, "Blob", Msg::Sbd(blob.clone()), told));
    let limits = Act::Limits(Box::default());
    for (what, msg) in [
        ("Act", SbdMsg::Act { key, seq: 1, order: 1, act: limits, why: 0 }),
        ("Params", SbdMsg::Params(params)),
        ("Logging", {
            let file = Some("x".repeat(caps::MAX_TEXT));
            SbdMsg::Logging(Logging { file, ..Logging::default() })
        }),
        ("Forget", SbdMsg::Forget { key, mail: "m".repeat(64 << 10) }),
    ] {
        let ping = Msg::Ping { n: 1 };
        both(what, &mut || {
            script.lock().unwrap().say.push(Msg::Sbd(msg.clone()));
            say(&script, what, ping.clone(), pong);
        });
    }
}

#[test]
fn the_launcher_takes_each_message_at_its_cap_and_bounds_what_it_keeps() {
    let rig = Rig::up("launchcaps", 1);
    let script = speak(&rig, Daemon::Sbatchd, Endpoint::Launcher);
    let launcher = Target::of(&rig, "launcher");
    let uid = lsf::sys::euid();
    let id = |n: u32| TaskId { key: JobKey { job: n, idx: 0, attempt: 1 }, step: TaskStep::Job };
    let plan = |bytes: usize| {
        let script = "x".repeat(bytes).into();
        let env = format!("A={}\0", "y".repeat(bytes)).into();
        let job = JobPlan { command: "true".into(), script, env, ..JobPlan::default() };
        let what = TaskPlan::Job(Box::new(job));
        Box::new(Plan { uid, gid: uid, user: "nobody-of-this-name".into(), what })
    };
    let of = |n: u32| {
        move |msg: &Msg| match msg {
            Msg::Launch(LaunchMsg::Task(t)) if t.id.key.job == n => Some(true),
            Msg::Launch(LaunchMsg::Refused { id, .. }) if id.key.job == n => Some(false),
            _ => None,
        }
    };
    let listed =
        |msg: &Msg| matches!(msg, Msg::Launch(LaunchMsg::Tasks { more: false, .. })).then_some(());
    let hello = || Msg::Launch(LaunchMsg::Hello);
    launcher.measured("Hello", || say(&script, "Hello", hello(), listed));
    let start = |n: u32, bytes: usize, note: usize| {
        let (plan, note) = (plan(bytes), "n".repeat(note));
        Msg::Launch(LaunchMsg::Start { id: id(n), plan, note })
    };
    launcher
        .measured("Start", || say(&script, "Start", start(1, 3 << 20, launch::NOTE_MAX), of(1)));
    let too_long = start(2, 10, launch::NOTE_MAX + 1);
    let taken = launcher.measured("Start beyond", || say(&script, "Start", too_long, of(2)));
    assert!(!taken);
    let before = launcher.memory("VmRSS");
    let most = (launch::NOTES_MAX / launch::NOTE_MAX) as u32;
    let taken =
        (3..most + 8).filter(|n| say(&script, "Start", start(*n, 10, launch::NOTE_MAX), of(*n)));
    assert_eq!(taken.count() as u32, most - 1);
    let kept = launcher.memory("VmRSS").saturating_sub(before);
    println!("notes: {kept} KB");
    assert!(kept <= 2 * launch::NOTES_MAX as u64 / 1024, "{kept} KB");
    // all of them are told, piece by piece
    launcher.grows("Hello with notes", || say(&script, "Hello", hello(), listed));
    let note = Msg::Launch(LaunchMsg::Note { key: id(3).key, note: "m".repeat(launch::NOTE_MAX) });
    launcher.measured("Note", || {
        script.lock().unwrap().say.push(note);
        say(&script, "Note", Msg::Ping { n: 1 }, pong)
    });
    for n in 1..most + 8 {
        script
            .lock()
            .unwrap()
            .say
            .push(Msg::Launch(LaunchMsg::Forget { key: id(n).key, over_at: 0 }));
    }
    say(&script, "Forget", Msg::Ping { n: 2 }, pong);
}
