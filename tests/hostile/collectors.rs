//! A compute node turned against the load balancer: in place of its ccollect a program of the
//! attacker's, with the cluster's own key and the node's own address, reports for another host and
//! whatever a report may not hold.

use crate::rig::{Rig, Said, binary, wait_for};
use crate::script::{Script, speak};
use lsf::proto::nlb::{NlbMsg, NlbQuery, NlbReport, ReportedObject, ReportedValue, ReportedValues};
use lsf::proto::{Daemon, Endpoint, Msg};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Has the cluster run a server on host1; its port.
fn with_server(rig: &Rig) -> u16 {
    assert_eq!(rig.down().code, 0);
    let mut up = Command::new(binary());
    up.args(["up", "--nlb", "--dir"]).arg(&rig.dir).env_remove("LSF_ENVDIR").stdin(Stdio::null());
    let said = Said::from(up.output().unwrap());
    assert_eq!(said.code, 0, "lsf up: {}{}", said.out, said.err);
    rig.ready();
    wait_for("the NLB server", || rig.run("nlbpolicy", &["-p", "nqs"]).out.lines().count() == 2);
    let conf = rig.read("conf/lsf.conf");
    let port = conf.lines().find_map(|l| l.strip_prefix("LSF_NLB_PORT=")).unwrap();
    port.parse().unwrap()
}

fn text(bytes: usize) -> ReportedValue {
    ReportedValue::Text("x".repeat(bytes))
}

/// Reports that are refused, each with words of the refusal.
fn refused() -> Vec<(NlbReport, &'static str)> {
    let of = |collector| NlbReport { interval: 30, collector, custom: Vec::new() };
    let many: ReportedValues = (0..100_000).map(|n| (n, ReportedValue::Integer(1))).collect();
    let object = |object_type| ReportedObject {
        object_type,
        name: "host1".into(),
        values: vec![(4, ReportedValue::Integer(9))],
    };
    let custom = |custom| NlbReport { custom, ..of(Vec::new()) };
    let line = "is longer than 4096 bytes, or not of one line";
    vec![
        (of(vec![(5, text(5 << 20))]), line),
        (of(vec![(5, ReportedValue::Text("\u{1b}]0;x\u{7}".into()))]), line),
        (of(vec![(5, ReportedValue::Text("a\nobject NLB (host2) { }".into()))]), line),
        (of(many), "more than 4096 attributes of an object"),
        (custom(vec![object(500)]), "an object of type 500: NLB or NLB_JOB is wanted"),
        (custom(vec![object(1024); 1_025]), "more than 1024 objects of custom data"),
    ]
}

/// The answer to a report.
fn answer(script: &Mutex<Script>, report: NlbReport) -> Msg {
    crate::script::say(script, "an answer", Msg::Nlb(NlbMsg::Report(report)), |msg| match msg {
        Msg::Refused(_) | Msg::Nlb(NlbMsg::Reported { .. }) => Some(msg.clone()),
        _ => None,
    })
}

#[test]
fn a_collector_that_reports_another_host_or_rubbish_changes_nothing_of_others() {
    let rig = Rig::up("collectors", 2);
    let port = with_server(&rig);
    // LIM measures host2: what does not change with time is compared
    let other = || {
        let text = rig.ok("nlbconfig", &["-t", "NLB", "-odump", "-n", "host2"]);
        let fixed = ["NLB_NCPUS", "NLB_PHYSMEM", "NLB_QUEUE_NAME", "NLB_HOST", "NLB_OSNAME"];
        let lines = text.lines().filter(|l| fixed.iter().any(|n| l.trim().starts_with(n)));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = other();
    assert_eq!(before.len(), 5, "{before:?}");
    let server = rig.pid("nlbserver", "host1");
    let to = || Endpoint::Nlb { host: "host1".into(), port };
    let script = speak(&rig, Daemon::Ccollect, to());
    let object = |object_type, name: &str, value| ReportedObject {
        object_type,
        name: name.into(),
        values: vec![(4, ReportedValue::Integer(value)), (9000, ReportedValue::Integer(value))],
    };
    let names = ["host2", "HOST2", "127.0.0.1", "a) { }\nobject NLB (host2", "\u{1b}[2J", ""];
    let mut custom = vec![object(1024, "host1", 1_234)];
    custom.extend(names.map(|n| object(1024, n, 7_777)));
    custom.push(object(1025, "host2", 7_777));
    let collector = vec![(6, ReportedValue::Integer(5)), (4098, text(5))];
    let report = NlbReport { interval: u32::MAX, collector, custom };
    assert!(matches!(answer(&script, report), Msg::Nlb(NlbMsg::Reported { .. })));
    assert_eq!(other(), before);
    let all = rig.ok("nlbconfig", &["-t", "NLB", "-odump"]);
    assert!(!all.contains("7777") && all.contains("NLB_NCPUS = 1234;"), "{all}");
    assert!(all.contains("NLB_HOST = \"host1\";"), "{all}");
    assert_eq!(rig.ok("nlbconfig", &["-olist", "-t", "NLB"]).lines().count(), 2);
    assert!(!rig.ok("nlbconfig", &["-olist"]).contains("NLB_JOB (host2)"));
    let log = || rig.read("log/nlbserver.log.host1");
    wait_for("the log", || log().contains("ccollect of <host1> reports <"));
    assert!(!log().contains('\u{1b}'), "{}", log());
    for (report, words) in refused() {
        match answer(&script, report) {
            Msg::Refused(refusal) => assert!(refusal.words().contains(words), "{refusal:?}"),
            other => panic!("{words}: {other:?}"),
        }
        assert_eq!(other(), before, "{words}");
    }
    // other daemons do not report at all
    for daemon in [Daemon::Sbatchd, Daemon::Mbatchd, Daemon::Lim] {
        let script = speak(&rig, daemon, to());
        let collector = vec![(4, ReportedValue::Integer(8_888))];
        let report = NlbReport { interval: 30, collector, custom: Vec::new() };
        assert!(matches!(answer(&script, report), Msg::Refused(_)), "{daemon:?}");
    }
    let all = rig.ok("nlbconfig", &["-t", "NLB", "-odump"]);
    assert!(!all.contains("8888"), "{all}");
    assert_eq!(rig.pid("nlbserver", "host1"), server, "the server ended");
}

#[test]
fn half_open_connections_and_a_flood_of_queries_keep_nobody_from_his_answer() {
    let rig = Rig::up("nlbflood", 2);
    let port = with_server(&rig);
    let hosts = rig.read("conf/hosts");
    let line = hosts.lines().find(|line| line.split_whitespace().any(|word| word == "host1"));
    let host = line.and_then(|line| line.split_whitespace().next()).unwrap();
    let server = rig.pid("nlbserver", "host1");
    let silent: Vec<TcpStream> =
        (0..1000).filter_map(|_| TcpStream::connect((host, port)).ok()).collect();
    assert!(silent.len() >= 500, "{}", silent.len());
    let (over, answered) = (AtomicBool::new(false), AtomicU32::new(0));
    let script = speak(&rig, Daemon::Mbatchd, Endpoint::Nlb { host: "host1".into(), port });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) && answered.load(Ordering::SeqCst) < 10_000 {
                let query = Msg::Nlb(NlbMsg::Query(NlbQuery::default()));
                crate::script::say(&script, "a ranking", query, |msg| match msg {
                    Msg::Nlb(NlbMsg::Ranked(_)) | Msg::Refused(_) => Some(msg.clone()),
                    _ => None,
                });
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
        wait_for("the flood", || answered.load(Ordering::SeqCst) > 20);
        for _ in 0..10 {
            let begun = Instant::now();
            assert_eq!(rig.ok("nlbpolicy", &["-p", "nqs"]).lines().count(), 2);
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        }
        over.store(true, Ordering::SeqCst);
    });
    drop(silent);
    assert_eq!(rig.pid("nlbserver", "host1"), server, "the server ended");
}
