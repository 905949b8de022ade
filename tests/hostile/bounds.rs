//! One user cannot take the master away by what he asks for: each message at its cap, those beyond,
//! and requests for very many jobs, against the real daemon of a personal cluster.
//!
//! Memory is the peak of the resident set over what it was before. The longest turn of the loop is
//! processor time (`badmin perfmon`), which a busy machine changes little; a binary that was not
//! compiled for speed takes many times as long.

use super::rig::{Rig, alive, job_id, wait_for};
use lsf::cli::client::{Client, ClientError, Patience};
use lsf::conf::load;
use lsf::model::job::JobSpec;
use lsf::model::reason::err;
use lsf::model::specfield::SpecField;
use lsf::proto::client::*;
use lsf::proto::{Daemon, Msg, Refusal, caps};
use lsf::sys::files::RealFiles;
use lsf::sys::site::LocalSite;
use std::io::Read;
use std::process::Stdio;

/// Kilobytes that mbatchd may grow by for one message at its cap.
const GROWTH_KB: u64 = 64 << 10;

/// Longest turn, milliseconds.
fn longest_turn() -> u64 {
    if std::env::var_os("LSF_TEST_BIN").is_some() { 50 } else { 1000 }
}

struct Attack {
    rig: Rig,
    site: LocalSite,
}

impl Attack {
    fn new(name: &str) -> Attack {
        let rig = Rig::up(name, 1);
        let params = rig.configdir().join("lsb.params");
        let text = std::fs::read_to_string(&params).unwrap();
        let more = "MAX_JOB_ARRAY_SIZE = 1000001\nMAX_JOBID = 9999999\nEnd Parameters";
        std::fs::write(&params, text.replacen("End Parameters", more, 1)).unwrap();
        rig.ok("badmin", &["reconfig"]);
        rig.ok("badmin", &["perfmon", "start", "3600"]);
        let envdir = rig.path("conf").to_str().unwrap().to_string();
        let (base, diags) = load::load_base_lenient(&RealFiles, &envdir, Some("host1"));
        let base = base.unwrap_or_else(|| panic!("{diags:?}"));
        let site = LocalSite { envdir, lsf: base.lsf, host: "host1".into(), shared_machine: true };
        Attack { rig, site }
    }

    fn client(&self) -> Client {
        Client::dial(&self.site, Daemon::Mbatchd, Patience::of(&self.site)).unwrap()
    }

    fn ask(&self, msg: ClientMsg) -> Result<Vec<ClientMsg>, Refusal> {
        let mut client = self.client();
        client.send(&Msg::Client(msg)).unwrap();
        let mut all = Vec::new();
        loop {
            match client.answer(&mut std::io::sink()) {
                Ok(Msg::Client(answer)) => {
                    let more = matches!(
                        answer,
                        ClientMsg::Rows { more: true, .. }
                            | ClientMsg::Controlled { more: true, .. }
                    );
                    all.push(answer);
                    if !more {
                        return Ok(all);
                    }
                }
                Ok(_) => return Ok(all),
                Err(ClientError::Refused(r)) => return Err(r),
                Err(e) => panic!("{e}"),
            }
        }
    }

    fn pid(&self) -> u32 {
        self.rig.pid("mbatchd", "host1").unwrap()
    }

    /// A line of /proc/PID/status, KB.
    fn memory(&self, line: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = text.lines().find(|l| l.starts_with(line)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// The longest turn since mbatchd started, milliseconds.
    fn longest(&self) -> u64 {
        let op = AdminOp::Perfmon { what: "view".into(), secs: 0 };
        let Ok(all) = self.ask(ClientMsg::Admin(op)) else { panic!("refused") };
        let [ClientMsg::AdminDone { lines }] = &all[..] else { panic!("{all:?}") };
        let row = lines.iter().find(|l| l.about.starts_with("Longest turn")).unwrap();
        row.text.split(' ').next_back().unwrap().parse().unwrap()
    }

    /// Asks, and holds memory and turns against their bounds.
    fn measured(&self, what: &str, msg: ClientMsg) -> Result<Vec<ClientMsg>, Refusal> {
        let pid = self.pid();
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
        let before = self.memory("VmRSS");
        let answer = self.ask(msg);
        let grown = self.memory("VmHWM").saturating_sub(before);
        let longest = self.longest();
        println!("{what}: {grown} KB, longest turn so far {longest} ms");
        assert!(grown <= GROWTH_KB, "{what}: mbatchd has grown by {grown} KB");
        assert!(longest <= longest_turn(), "{what}: a turn of {longest} ms");
        assert_eq!(self.pid(), pid, "{what}: mbatchd has died");
        answer
    }

    /// An array that waits; its ID.
    fn array(&self, elements: u32) -> u32 {
        let name = format!("a[1-{elements}]");
        let out = self.rig.ok("bsub", &["-b", "12:31:23:59", "-J", &name, "true"]);
        job_id(&out).unwrap()
    }
}

fn select(ids: Vec<IdSel>) -> JobSelect {
    JobSelect { ids, ..JobSelect::default() }
}

fn control(verb: Verb, ids: Vec<IdSel>, pieces: bool) -> ClientMsg {
    ClientMsg::Control(Box::new(Control { pieces, ..Control::of(verb, select(ids)) }))
}

fn outcomes(all: &[ClientMsg]) -> Vec<Outcome> {
    let of = |msg: &ClientMsg| match msg {
        ClientMsg::Controlled { outcomes, .. } => outcomes.clone(),
        _ => Vec::new(),
    };
    all.iter().flat_map(of).collect()
}

/// Ranges that name so many elements of one job, in so many pieces.
fn ranges(job: u32, elements: u32, pieces: u32) -> IdSel {
    let len = elements / pieces;
    IdSel { job, elems: (0..pieces).map(|n| (1 + n * len, (n + 1) * len, 1)).collect() }
}

#[test]
fn the_jobs_that_a_request_may_name_are_bounded_whatever_its_length() {
    let a = Attack::new("beyond");
    let job = a.array(10);
    let refused = |what: &str, msg: ClientMsg, words: &str| {
        let said = a.measured(what, msg).expect_err(what);
        assert!(said.code == err::BAD_ARG && said.text.contains(words), "{what}: {said:?}");
    };
    let all = IdSel { job, elems: vec![(1, u32::MAX, 1)] };
    refused("100 times all", control(Verb::Kill, vec![all; 100], false), "elements of arrays");
    let ids = vec![IdSel { job, elems: vec![] }; 120_000];
    let mut long = Control::of(Verb::Kill, select(ids));
    long.reason = "x".repeat(4000);
    refused("repeated IDs", ClientMsg::Control(Box::new(long)), "120000 job IDs");
    let q = JobQuery { cols: vec![Col::Command; 100_000], ..JobQuery::default() };
    refused("columns", ClientMsg::Jobs(Box::new(q)), "100000 columns");
    let names = vec!["root".to_string(); 100_000];
    refused("names", ClientMsg::Users { names }, "100000 names");
    assert_eq!(a.rig.field(&job.to_string(), "stat").lines().next(), Some("PEND"));
    // a request that is too long is no request, and harms its connection alone
    let said = a.rig.run("bkill", &[&format!("{job}[1-2000000000]")]);
    assert!(said.code == 255 && !said.err.is_empty(), "{said:?}");
}

#[test]
fn each_message_at_its_cap_costs_little_memory_and_no_long_turn() {
    let a = Attack::new("caps");
    let job = a.array(1000);
    let none = |n: usize| (0..n as u32).map(|n| IdSel { job: 2_000_000 + n, elems: vec![] });
    let said = a.measured("IDs", control(Verb::Kill, none(caps::MAX_IDS).collect(), true));
    assert_eq!(outcomes(&said.unwrap()).len(), caps::MAX_IDS);
    let most = caps::MAX_ELEMENTS as u32;
    let said = a.measured("elements", control(Verb::Stop, vec![ranges(job, most, 1)], true));
    let said = outcomes(&said.unwrap());
    let done = said.iter().filter(|o| o.code == 0).count();
    assert_eq!((said.len(), done), (most as usize, 1000));
    let said = a.measured("one answer", control(Verb::Resume, vec![ranges(job, most, 1)], false));
    assert_eq!(outcomes(&said.unwrap()).len(), caps::MAX_OUTCOMES);
    let many = ranges(job, most, caps::MAX_RANGES as u32);
    a.measured("ranges", control(Verb::Stop, vec![many.clone()], true)).unwrap();
    a.measured("brequeue", control(Verb::Requeue(Requeue::default()), vec![many.clone()], true))
        .unwrap();
    let verb = Verb::Switch { queue: "short".into() };
    a.measured("bswitch", control(verb, vec![many.clone()], true)).unwrap();
    let moved = vec![ranges(job, caps::MAX_MOVED as u32, 1)];
    a.measured("btop", control(Verb::Move { top: true, position: 1 }, moved, false)).unwrap();
    let spec = JobSpec { project: "p".repeat(4000), ..JobSpec::default() };
    let m = Modify { id: many.clone(), spec, fields: vec![SpecField::Project], ..<_>::default() };
    a.measured("bmod", ClientMsg::Modify(Box::new(m))).unwrap();
    let mut given = Control::of(Verb::Stop, select(vec![IdSel { job, elems: vec![] }]));
    given.reason = "x".repeat(MAX_REASON);
    a.measured("a reason", ClientMsg::Control(Box::new(given))).unwrap();
    listings_at_their_caps(&a, job, &many);
    submissions_at_their_caps(&a);
    names_at_their_caps(&a);
}

fn listings_at_their_caps(a: &Attack, job: u32, many: &IdSel) {
    let some = [Col::Command, Col::Extra, Col::AskedHosts, Col::Project, Col::PendReasons];
    let mut cols: Vec<Col> =
        some.into_iter().flat_map(|col| vec![col; caps::MAX_COL_REPEATS]).collect();
    cols.push(Col::Idx);
    let rows = |all: Vec<ClientMsg>| -> usize {
        let of = |msg: &ClientMsg| match msg {
            ClientMsg::Rows { rows, .. } => {
                serde_json::from_str::<Vec<serde_json::Value>>(rows.get()).unwrap().len()
            }
            _ => 0,
        };
        all.iter().map(of).sum()
    };
    let q = |select: JobSelect, cols: Vec<Col>| {
        ClientMsg::Jobs(Box::new(JobQuery { select, cols, ..JobQuery::default() }))
    };
    let by_id = select(vec![IdSel { job, elems: vec![] }]);
    assert_eq!(rows(a.measured("columns", q(by_id, cols)).unwrap()), 1000);
    let named = select(vec![many.clone()]);
    assert_eq!(rows(a.measured("listed elements", q(named, vec![Col::Idx])).unwrap()), 1000);
    let ids = (0..caps::MAX_IDS as u32).map(|n| IdSel { job: n, elems: vec![] }).collect();
    let listed = rows(a.measured("listed IDs", q(select(ids), vec![Col::Idx])).unwrap());
    assert_eq!(listed, 1000);
    let peek = ClientMsg::Peek(Box::new(select(vec![many.clone(); 1])));
    assert!(a.measured("bpeek", peek).is_err());
    let stored = ClientMsg::Stored { id: many.clone(), script: true };
    a.measured("bjobs -script", stored).unwrap();
}

fn submissions_at_their_caps(a: &Attack) {
    let spec = || JobSpec { command: "true".into(), begin_time: i64::MAX / 2, ..<_>::default() };
    let submit = |what: &str, s: Submit| {
        a.measured(what, ClientMsg::Submit(Box::new(s))).unwrap();
    };
    let big = 3 << 20;
    let script = "x".repeat(big).into();
    submit("a script", Submit { spec: spec(), script, ..Submit::default() });
    let env = format!("A={}\0", "y".repeat(big)).into();
    submit("an environment", Submit { spec: spec(), env, ..Submit::default() });
    let hosts = (0..caps::MAX_HOST_WORDS).map(|n| format!("host1+{n}")).collect();
    submit("hosts", Submit { spec: JobSpec { hosts, ..spec() }, ..Submit::default() });
    let long = "e".repeat(caps::MAX_EXTRA_BYTES / 32 - 8);
    let further = (0..32).map(|n| (format!("zz{n}"), &long)).collect();
    submit("further options", Submit { spec: JobSpec { further, ..spec() }, ..Submit::default() });
    let pairs = "host1 1 ".repeat(caps::MAX_EXTRA_BYTES / 8 - 32);
    let further = [("hostslots", pairs)].into_iter().collect();
    let s = Submit { spec: JobSpec { further, ..spec() }, ..Submit::default() };
    a.measured("a host file", ClientMsg::Submit(Box::new(s))).unwrap();
    let too_long = JobSpec { depend: "d".repeat(caps::MAX_TEXT + 1), ..spec() };
    let s = Submit { spec: too_long, ..Submit::default() };
    let said = a.measured("a condition", ClientMsg::Submit(Box::new(s))).unwrap_err();
    assert!(said.text.contains("the dependency condition is 4095 bytes long"), "{said:?}");
}

fn names_at_their_caps(a: &Attack) {
    let names = |name: &str| vec![name.to_string(); caps::MAX_NAMES];
    let hosts = ClientMsg::Hosts { names: names("host1"), res_req: String::new() };
    a.measured("bhosts", hosts).unwrap();
    let (user, host) = (String::new(), String::new());
    a.measured("bqueues", ClientMsg::Queues { names: names("normal"), user, host }).unwrap();
    a.measured("busers", ClientMsg::Users { names: names("root") }).unwrap();
    let groups =
        ClientMsg::Groups { hosts: true, names: names("nosuch"), expand: true, units: false };
    assert!(a.measured("bmgroup", groups).is_err());
    let (comment, lock) = ("c".repeat(512), String::new());
    let op = AdminOp::HostCtrl { open: false, hosts: names("all"), comment, lock };
    let said = a.measured("hclose", ClientMsg::Admin(op)).unwrap();
    let [ClientMsg::AdminDone { lines }] = &said[..] else { panic!("{said:?}") };
    assert_eq!(lines.len(), 1, "a host that is named again is not closed again");
    let expr = vec!["done(1)"; caps::MAX_TEXT / 12].join(" && ");
    let wait = Wait { expr, timeout: 1, watch: None };
    a.measured("bwait", ClientMsg::Wait(wait)).unwrap();
}

/// How many arrays of a thousand elements: a million elements for a binary that is compiled for
/// speed.
fn arrays() -> u32 {
    if std::env::var_os("LSF_TEST_BIN").is_some() { 1000 } else { 20 }
}

#[test]
fn bkill_0_of_very_many_elements_delays_no_other_request() {
    let a = Attack::new("bulk");
    let first = a.array(1000);
    for _ in 1..arrays() {
        a.array(1000);
    }
    let mut bkill = a.rig.cmd("bkill").arg("0").stdout(Stdio::piped()).spawn().unwrap();
    let (mut asked, mut other) = (0, a.client());
    // until it has all been done, others are answered
    while a.rig.stat(first + arrays() - 1).contains("PEND") {
        other.call(&Msg::Client(ClientMsg::Params), &mut std::io::sink()).unwrap();
        asked += 1;
        assert!(a.longest() <= longest_turn(), "a turn of {} ms", a.longest());
    }
    let mut said = String::new();
    bkill.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(bkill.wait().unwrap().success());
    assert_eq!(said.matches("is being terminated").count() as u32, arrays());
    assert!(asked > 0, "nobody was answered meanwhile");
}

#[test]
fn bkill_0_succeeds_over_a_crash_of_mbatchd() {
    let a = Attack::new("middle");
    let jobs: Vec<u32> = (0..20).map(|_| a.array(1000)).collect();
    let mut bkill = a.rig.cmd("bkill");
    let mut bkill = bkill.arg("0").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the first to be killed", || !a.rig.stat(jobs[0]).contains("PEND"));
    let pid = a.pid();
    super::rig::kill(pid, 9);
    wait_for("it to be dead", || !alive(pid));
    let mut said = String::new();
    bkill.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(bkill.wait().unwrap().success(), "{said}");
    for job in jobs {
        assert!(said.contains(&format!("Job <{job}> is being terminated\n")), "{job}: {said}");
        assert!(!a.rig.stat(job).contains("PEND"));
    }
}

/// mbatchd dies when what was asked for is durable and the answer has not left.
#[test]
fn repeated_request_gets_its_lost_answer_again() {
    let a = Attack::new("lostanswer");
    let mut crashed = 0;
    for n in 1..=4 {
        let held = job_id(&a.rig.ok("bsub", &["-H", "true"])).unwrap();
        let done = job_id(&a.rig.ok("bsub", &["-o", "/dev/null", "true"])).unwrap();
        assert_eq!(a.rig.end_of(done), "DONE");
        a.rig.write("crash.at", &format!("before-reply:{n}"));
        a.rig.ok("badmin", &["mbdrestart", "-f"]);
        wait_for("a new mbatchd", || !a.rig.path("crash.at").exists());
        for (applet, words) in [
            ("bkill", vec![held.to_string()]),
            ("brequeue", vec!["-d".into(), "-H".into(), done.to_string()]),
        ] {
            let before = a.rig.pid("mbatchd", "host1");
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let said = a.rig.run(applet, &words);
            assert!(said.code == 0 && said.out.contains("is being"), "{applet} {n}: {said:?}");
            crashed += usize::from(a.rig.pid("mbatchd", "host1") != before);
        }
        assert_eq!(a.rig.stat(held), "EXIT");
        assert_eq!(a.rig.stat(done), "PSUSP");
    }
    assert!(crashed > 0, "it never died in between");
}
