//! The collector as its runner and its servers see it: readings of a scripted host go in, reports
//! come out.

use super::{Collector, CollectorConf};
use crate::conf::HostTable;
use crate::conf::nlb_map::NameMaps;
use crate::model::Now;
use crate::model::nlb::NlbAddress;
use crate::proto::collect::{CollectorEffect, CollectorInput, Counters, CpuTime, CustomContent};
use crate::proto::nlb::{NlbEffect, NlbInput, NlbMsg, NlbReport, ReportedValue};
use crate::proto::{Daemon, Effect, Endpoint, Input, Machine, Msg, Peer, Refusal};

const SECOND: u64 = 1_000_000;

struct Rig {
    collector: Collector,
    now: u64,
    /// The next readings yield this.
    counters: Counters,
    files: Vec<CustomContent>,
    /// The kernel tells how long processes wait.
    pressure: bool,
    runnable: u64,
    /// Servers that answer, by port, and the number of their maps.
    up: Vec<u16>,
    map: u64,
    /// Servers take the message and say nothing.
    silent: bool,
    refuse: Option<String>,
    batch: bool,
    /// Connections with their ports.
    conns: Vec<(u64, u16)>,
    reports: Vec<(u16, NlbReport)>,
    maps_asked: usize,
    started: Vec<usize>,
    log: Vec<String>,
}

impl Rig {
    fn new(servers: &[u16], change: impl FnOnce(&mut CollectorConf)) -> Rig {
        let to = |port: &u16| NlbAddress { host: "hosta".into(), port: *port };
        let mut conf = CollectorConf {
            host: "hosta".into(),
            hosts: HostTable::new(["hosta", "hostb"], &["site".to_owned()]),
            servers: servers.iter().map(to).collect(),
            queue: "normal".into(),
            tmp: "/scratch".into(),
            interval: 30,
            window: 300,
            files: Vec::new(),
            programs: Vec::new(),
        };
        change(&mut conf);
        Rig {
            collector: Collector::new(conf, 7),
            now: 100 * SECOND,
            counters: first(),
            files: Vec::new(),
            pressure: true,
            runnable: 0,
            up: servers.to_vec(),
            map: 1,
            silent: false,
            refuse: None,
            batch: true,
            conns: Vec::new(),
            reports: Vec::new(),
            maps_asked: 0,
            started: Vec::new(),
            log: Vec::new(),
        }
    }

    fn step(&mut self, input: Input) {
        let mut inputs = std::collections::VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let mut out = Vec::new();
            self.collector.step(Now { mono_us: self.now, wall_us: 0 }, input, &mut out);
            for effect in out {
                inputs.extend(self.carry_out(effect));
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Input> {
        let collector = |input| Some(Input::Nlb(NlbInput::Collector(input)));
        match effect {
            Effect::Nlb(NlbEffect::Collector(CollectorEffect::Measure { files })) => {
                assert_eq!(files, self.files.iter().map(|f| f.0.clone()).collect::<Vec<_>>());
                let waited_us = self.counters.waited_us.filter(|_| self.pressure);
                let counters = Counters { at: self.now, waited_us, ..self.counters.clone() };
                let counters = Box::new(counters);
                collector(CollectorInput::Reading { counters, files: self.files.clone() })
            }
            Effect::Nlb(NlbEffect::Collector(CollectorEffect::Glance)) => {
                collector(CollectorInput::Glance { runnable: self.runnable, cpus: 2 })
            }
            Effect::Nlb(NlbEffect::Collector(CollectorEffect::Start { program })) => {
                self.started.push(program);
                None
            }
            Effect::Connect { conn, to } => {
                let (daemon, open) = match to {
                    Endpoint::Nlb { port, .. } => {
                        self.conns.push((conn, port));
                        (Daemon::NlbServer, self.up.contains(&port))
                    }
                    _ => (Daemon::Sbatchd, self.batch),
                };
                let peer = Peer::Daemon { daemon, host: "hosta".into() };
                let why = "Connection refused".to_owned();
                Some(match open {
                    true => Input::Opened { conn, peer },
                    false => Input::ConnectFailed { conn, why, refused: true },
                })
            }
            Effect::Send { conn, msg: Msg::Nlb(msg) } => self.server(conn, msg),
            Effect::Say { text, .. } => {
                self.log.push(text);
                None
            }
            _ => None,
        }
    }

    fn server(&mut self, conn: u64, msg: NlbMsg) -> Option<Input> {
        let port = self.conns.iter().find(|(c, _)| *c == conn).unwrap().1;
        let answer = match msg {
            NlbMsg::Map { .. } => {
                self.maps_asked += 1;
                let text = NameMaps::shipped().list().iter().map(|m| m.text()).collect();
                Msg::Nlb(NlbMsg::Text { text, more: false })
            }
            NlbMsg::Report(report) => {
                self.reports.push((port, report));
                Msg::Nlb(NlbMsg::Reported { map: self.map })
            }
            other => panic!("{other:?}"),
        };
        let answer = match &self.refuse {
            Some(words) => Msg::Refused(Refusal::text(1, words.clone())),
            None => answer,
        };
        (!self.silent).then_some(Input::Msg { conn, msg: answer })
    }

    /// Time goes on; whatever is due is done at its own time.
    fn wait(&mut self, time: u64) {
        let until = self.now + time;
        while let Some(at) = self.collector.deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.step(Input::Tick);
        }
        self.now = until;
    }

    fn start(&mut self) {
        self.step(Input::Start);
        self.wait(SECOND);
    }

    /// The number of an attribute in the last report.
    fn float(&self, number: u32) -> Option<f64> {
        let (_, report) = self.reports.last().unwrap();
        report.collector.iter().find_map(|(n, value)| match value {
            ReportedValue::Float(x) if *n == number => Some(*x),
            _ => None,
        })
    }

    fn integer(&self, number: u32) -> Option<i64> {
        let (_, report) = self.reports.last().unwrap();
        report.collector.iter().find_map(|(n, value)| match value {
            ReportedValue::Integer(x) if *n == number => Some(*x),
            _ => None,
        })
    }
}

fn first() -> Counters {
    Counters {
        names: ["Linux", "6.1", "#1 SMP", "x86_64"].map(str::to_owned),
        cpu: Some(CpuTime { idle: 1_000, system: 100, total: 2_000 }),
        runnable: Some(2),
        waited_us: Some(0),
        swapped_kb: Some(50),
        memory_kb: Some(8_000_000),
        free_memory_kb: Some(1_000_001),
        swap_kb: Some(2_047),
        free_swap_kb: Some(1_024),
        clock_hz: Some(2.5e9),
        cpus: Some(2),
        switches: Some(1_000),
        processes: Some(10),
        tmp_mb: Some(700),
        idle_minutes: Some(2.5),
        disk_kb: Some(100),
        disk_requests: Some(10),
        ..Counters::default()
    }
}

#[test]
fn the_first_report_follows_the_first_reading_after_a_second_with_its_rates() {
    let mut rig = Rig::new(&[1], |_| {});
    rig.step(Input::Start);
    rig.counters = Counters {
        cpu: Some(CpuTime { idle: 1_150, system: 130, total: 2_200 }),
        waited_us: Some(125_000),
        swapped_kb: Some(58),
        switches: Some(1_077),
        disk_kb: Some(140),
        disk_requests: Some(13),
        validates: Some(true),
        ..first()
    };
    assert_eq!(rig.reports.len(), 0);
    rig.wait(SECOND);
    let report = rig.reports.last().unwrap().1.clone();
    let of = |value: &ReportedValue| match value {
        ReportedValue::Float(x) => format!("f {x}"),
        ReportedValue::Integer(x) => format!("i {x}"),
        ReportedValue::Text(x) => format!("s {x}"),
    };
    let said: Vec<String> = report.collector.iter().map(|(n, v)| format!("{n}{}", of(v))).collect();
    let floats = "1f 75 2f 2 3f 8 5f 15 6f 12.5 11f 75 12f 2 13f 8 14f 15 15f 12.5 ";
    let integers = "1i 8000000 2i 1000001 3i 400 4i 2 5i 77 6i 10 7i 700 8i 3 9i 1 10i 1 \
                    11i 1000001 12i 77 13i 10 14i 700 15i 1 16i 40 17i 40 18i 3 19i 3 24i 1 25i 1 ";
    let strings = "1s Linux 2s 6.1 3s #1 SMP 4s x86_64 5s normal 6s /scratch";
    assert_eq!(said.join(" "), format!("{floats}{integers}{strings}"));
    assert_eq!((report.interval, report.custom.len()), (30, 0));
}

#[test]
fn averages_over_a_series_are_those_of_the_window_to_the_last_digit() {
    let mut rig = Rig::new(&[1], |c| (c.interval, c.window) = (10, 30));
    rig.step(Input::Start);
    let mut series: Vec<(u64, f64, i64)> = Vec::new();
    let mut switches = 1_000;
    for (n, runnable) in [3u64, 1, 4, 1, 5, 9, 2, 6].into_iter().enumerate() {
        // the first interval is of one second
        let secs = if n == 0 { 1 } else { 10 };
        switches += 7 * runnable + 3;
        rig.counters = Counters {
            runnable: Some(runnable),
            switches: Some(switches),
            free_memory_kb: Some(1_000 + runnable),
            ..first()
        };
        rig.wait(secs * SECOND);
        let rate = (7 * runnable + 3) as f64 / secs as f64;
        series.push((rig.now, runnable as f64, rate.round() as i64));
        // 30 s hold the newest of this second and those of 10, 20 and 30 s before
        let window = series.iter().filter(|(at, ..)| at + 30 * SECOND >= rig.now);
        let (all, count) = (window.clone(), window.count() as f64);
        assert_eq!(count, series.len().min(4) as f64);
        let queue = all.clone().map(|s| s.1).sum::<f64>() / count;
        let rates = all.map(|s| s.2 as f64).sum::<f64>() / count;
        assert_eq!(rig.float(12), Some(queue), "{series:?}");
        assert_eq!(rig.integer(12), Some(rates.round() as i64), "{series:?}");
        assert_eq!(rig.integer(11), Some((1_000.0 + queue).round() as i64), "{series:?}");
    }
    // by hand: 5, 9, 2, 6 and half away from 0
    assert_eq!((rig.float(12), rig.integer(11)), (Some(5.5), Some(1_006)));
}

#[test]
fn values_that_cannot_be_read_are_not_sent_and_a_counter_that_went_back_says_nothing() {
    let mut rig = Rig::new(&[1], |c| c.queue.clear());
    rig.batch = false;
    rig.step(Input::Start);
    rig.counters = Counters { switches: Some(1), names: first().names, ..Counters::default() };
    rig.wait(SECOND);
    let report = &rig.reports.last().unwrap().1;
    let numbers = report.collector.iter().filter(|(_, v)| !matches!(v, ReportedValue::Text(_)));
    let numbers: Vec<u32> = numbers.map(|(n, _)| *n).collect();
    assert_eq!(numbers, [24], "{report:?}");
    assert_eq!((rig.integer(24), rig.integer(25)), (Some(0), None));
    let strings = report.collector.iter().filter(|(_, v)| matches!(v, ReportedValue::Text(_)));
    assert_eq!(strings.map(|(n, _)| *n).collect::<Vec<_>>(), [1, 2, 3, 4]);
    // a value that comes and goes counts as often as it was there
    rig.counters = Counters { runnable: Some(4), ..rig.counters.clone() };
    rig.wait(30 * SECOND);
    assert_eq!(rig.float(12), Some(4.0));
    rig.counters = Counters { runnable: None, ..rig.counters.clone() };
    rig.batch = true;
    rig.wait(30 * SECOND);
    assert_eq!((rig.float(2), rig.float(12)), (None, Some(4.0)));
    assert_eq!(rig.integer(24), Some(1));
}

#[test]
fn run_queue_is_glanced_at_each_second_without_the_kernels_figure() {
    let mut rig = Rig::new(&[1], |_| {});
    rig.pressure = false;
    rig.start();
    rig.runnable = 3;
    rig.wait(20 * SECOND);
    rig.runnable = 2;
    rig.wait(10 * SECOND);
    let share = rig.float(6).unwrap();
    assert!((60.0..=70.0).contains(&share), "{share}");
}

#[test]
fn each_server_gets_every_report_and_one_that_is_away_holds_up_no_other() {
    let mut rig = Rig::new(&[1, 2], |_| {});
    rig.up = vec![2];
    rig.start();
    rig.wait(60 * SECOND);
    let to = |rig: &Rig, port| rig.reports.iter().filter(|(p, _)| *p == port).count();
    // the map has a number that is new to the collector: it asks once more, and reports again
    assert_eq!((to(&rig, 1), to(&rig, 2), rig.maps_asked), (0, 4, 2));
    let away = "no NLB server answers at hosta:1 (Connection refused)";
    assert_eq!(rig.log, [away]);
    let calls = rig.conns.iter().filter(|(_, port)| *port == 1).count();
    assert!((16..=30).contains(&calls), "{calls}");
    rig.up = vec![1, 2];
    rig.wait(5 * SECOND);
    assert_eq!((to(&rig, 1), to(&rig, 2)), (2, 4));
    assert_eq!(rig.log, [away, "the NLB server at hosta:1 answers"]);
    // one that loses its connection gets the last report at once
    let (conn, _) = *rig.conns.iter().find(|(_, port)| *port == 2).unwrap();
    rig.step(Input::Closed { conn });
    rig.wait(SECOND / 5);
    assert_eq!(to(&rig, 2), 6);
    assert_eq!(rig.reports[0].1.collector.len(), rig.reports.last().unwrap().1.collector.len());
}

#[test]
fn maps_are_fetched_again_when_the_server_has_others() {
    let mut rig = Rig::new(&[1], |_| {});
    rig.start();
    rig.wait(60 * SECOND);
    assert_eq!((rig.maps_asked, rig.reports.len()), (2, 4));
    rig.map = 2;
    rig.wait(30 * SECOND);
    assert_eq!((rig.maps_asked, rig.reports.len()), (3, 6));
    // a server that has another map whenever it is asked is asked once in an interval
    for n in 0..4 {
        rig.map = 10 + n;
        rig.wait(30 * SECOND);
    }
    assert_eq!(rig.maps_asked, 7);
}

#[test]
fn a_server_that_does_not_answer_is_called_again_and_one_that_refuses_asked_again() {
    let mut rig = Rig::new(&[1], |_| {});
    rig.silent = true;
    rig.start();
    rig.wait(61 * SECOND);
    assert_eq!(rig.log, ["no NLB server answers at hosta:1 (no answer)"]);
    assert!((2..=3).contains(&rig.conns.len()), "{}", rig.conns.len());
    rig.silent = false;
    rig.wait(60 * SECOND);
    assert!(!rig.reports.is_empty());
    rig.refuse = Some("busy, again in 1 s".to_owned());
    let before = rig.reports.len();
    rig.wait(90 * SECOND);
    assert_eq!(rig.reports.len(), before + 3);
    let refusals = rig.log.iter().filter(|l| l.contains("refuses: busy")).count();
    assert_eq!(refusals, 1, "{:?}", rig.log);
}

#[test]
fn custom_objects_go_along_and_programs_run_with_the_collector() {
    let mut rig = Rig::new(&[1], |c| {
        c.files = vec!["/c".into()];
        c.programs = vec!["count".into(), "data".into()];
    });
    let content = |n| format!("object NLB (hosta.site) {{ integer(9000) = {n}; }}").into_bytes();
    rig.files = vec![("/c".into(), Ok(content(5)))];
    rig.start();
    assert_eq!(rig.started, [0, 1]);
    let custom = |rig: &Rig| format!("{:?}", rig.reports.last().unwrap().1.custom);
    let five =
        "[ReportedObject { object_type: 1024, name: \"hosta\", values: [(9000, Integer(5))] }]";
    assert_eq!(custom(&rig), five);
    rig.files = vec![("/c".into(), Ok(content(6)))];
    rig.wait(30 * SECOND);
    assert_eq!(custom(&rig), five.replace("(5)", "(6)"));
    // an entry that is a file is read from the next interval on
    let told = CollectorInput::File { program: 1, path: "/d".into() };
    rig.step(Input::Nlb(NlbInput::Collector(told)));
    let other = "object NLB (hosta) { integer(9001) = 8; }".to_owned().into_bytes();
    rig.files.push(("/d".into(), Ok(other)));
    rig.wait(30 * SECOND);
    assert!(custom(&rig).contains("(9001, Integer(8))"), "{}", custom(&rig));
    let told = CollectorInput::Ended { program: 0, how: "ended by signal 9".into() };
    rig.step(Input::Nlb(NlbInput::Collector(told)));
    assert_eq!(rig.log, ["count: ended by signal 9; it is started again in 30 s"]);
    rig.wait(29 * SECOND);
    assert_eq!(rig.started, [0, 1]);
    rig.wait(SECOND);
    assert_eq!(rig.started, [0, 1, 0]);
}
