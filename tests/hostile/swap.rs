//! Policies that are swapped every 100 ms, every third file broken, under 200 queries a second.
//! With LSF_TEST_FULL=1 for a minute.

use crate::rig::{Rig, Said, binary, wait_for};
use crate::script::{Script, speak};
use lsf::proto::nlb::{NlbMsg, NlbQuery, NlbRanking, SortValue};
use lsf::proto::{Daemon, Endpoint, Msg};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The day's order of hosts, and the night's; each file has both policies of its kind.
const DAY: &str = "policy: nqs\nsort: NLB_SITE_RANK\n";
const NIGHT: &str = "policy: nqs\nconstraint: NLB_SITE_RANK > 0\nsort: -NLB_SITE_RANK\ncount: 1\n";
const BROKEN: &str = "policy: nqs\nsort: NLB_SITE_RNAK\ncount: 1\n";
/// Queries sent together, 50 times a second.
const LOT: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Day,
    Night,
}

/// The file that an answer is of; it panics where it is of neither.
fn kind(ranking: &NlbRanking) -> Kind {
    let rows: Vec<(&str, SortValue)> =
        ranking.rows.iter().map(|row| (&*row.host, row.value)).collect();
    let value = |x: f64| SortValue::Number(x);
    assert!(ranking.policy == "nqs" && !ranking.unknown, "{ranking:?}");
    if rows == [("host2", value(2.0)), ("host1", value(1.0))] {
        Kind::Day
    } else if rows == [("host1", value(-1.0))] {
        Kind::Night
    } else {
        panic!("an answer of neither file: {ranking:?}");
    }
}

/// A cluster of two hosts with a server and a rank for each; the server's port.
fn up() -> (Rig, u16) {
    let rig = Rig::up("nlbswap", 2);
    assert_eq!(rig.down().code, 0);
    let mut up = Command::new(binary());
    up.args(["up", "--nlb", "--dir"]).arg(&rig.dir).env_remove("LSF_ENVDIR").stdin(Stdio::null());
    let said = Said::from(up.output().unwrap());
    assert_eq!(said.code, 0, "lsf up: {}{}", said.out, said.err);
    rig.ready();
    wait_for("the NLB server", || rig.run("nlbpolicy", &["-p", "nqs"]).out.lines().count() == 2);
    let map = rig.ok("nlbconfig", &["-mdump", "-t", "NLB"]);
    let rank = "map NLB = 1024 {\nNLB_SITE_RANK \"Rank\" integer(8192);";
    rig.write("map", &map.replacen("map NLB = 1024 {", rank, 1));
    rig.ok("nlbconfig", &["-mput", "map"]);
    let objects = "object NLB (host1) { NLB_SITE_RANK = 1; }\n\
                   object NLB (host2) { NLB_SITE_RANK = 2; }\n";
    rig.write("objects", objects);
    rig.ok("nlbconfig", &["-oupdat", "objects"]);
    let conf = rig.read("conf/lsf.conf");
    let port = conf.lines().find_map(|l| l.strip_prefix("LSF_NLB_PORT=")).unwrap();
    let port = port.parse().unwrap();
    (rig, port)
}

/// Swaps the files in turn until the time is over; how many were good.
fn swaps(swap: &dyn Fn(&str) -> Said, end: Instant) -> u64 {
    let mut good = 0;
    // after two good ones in turn: the day's stay in force
    for name in ["night", "day", "broken"].into_iter().cycle() {
        let begun = Instant::now();
        if begun >= end {
            break;
        }
        let said = swap(name);
        if name == "broken" {
            assert_eq!((said.code, said.out.as_str()), (255, ""), "{}", said.err);
            let words = "did you mean <NLB_SITE_RANK>?";
            assert!(said.err.lines().next().unwrap().ends_with(words), "{}", said.err);
        } else {
            assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""), "{name}");
            good += 1;
        }
        std::thread::sleep(Duration::from_millis(100).saturating_sub(begun.elapsed()));
    }
    good
}

/// Queries over one connection until the time is over; how many.
fn queries(script: &Mutex<Script>, end: Instant) -> usize {
    let mut asked = 0;
    while Instant::now() < end {
        let query = || Msg::Nlb(NlbMsg::Query(NlbQuery::default()));
        script.lock().unwrap().say.extend((0..LOT).map(|_| query()));
        asked += LOT;
        std::thread::sleep(Duration::from_millis(20));
    }
    asked
}

/// The kind of each set of policies that one of so many answers was made with.
fn kinds(script: &Mutex<Script>, asked: usize) -> BTreeMap<u64, Kind> {
    let mut kinds = BTreeMap::new();
    let mut answered = 0;
    wait_for("all answers", || {
        for msg in script.lock().unwrap().heard.drain(..) {
            match msg {
                Msg::Nlb(NlbMsg::Ranked(ranking)) => {
                    let kind = kind(&ranking);
                    assert_eq!(*kinds.entry(ranking.generation).or_insert(kind), kind);
                    answered += 1;
                }
                // the server tells its peers of the changes
                Msg::Nlb(NlbMsg::Watched { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        answered == asked
    });
    kinds
}

#[test]
fn policies_swapped_under_queries_give_no_mixture_and_no_error() {
    let (rig, port) = up();
    let dir = rig.path("work/personal/nqe/nlbdir");
    for (name, text) in [("day", DAY), ("night", NIGHT), ("broken", BROKEN)] {
        std::fs::write(dir.join(format!("policies.{name}")), text).unwrap();
    }
    let swap = |name: &str| {
        std::fs::copy(dir.join(format!("policies.{name}")), dir.join("policies")).unwrap();
        rig.run("nlbconfig", &["-pol"])
    };
    assert_eq!(swap("day").code, 0);
    let script = speak(&rig, Daemon::Mbatchd, Endpoint::Nlb { host: "host1".into(), port });
    let secs = if std::env::var_os("LSF_TEST_FULL").is_some() { 60 } else { 8 };
    let end = Instant::now() + Duration::from_secs(secs);
    let (good, asked) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| queries(&script, end));
        (swaps(&swap, end), asked.join().unwrap())
    });
    let kinds = kinds(&script, asked);
    let (first, last) = (*kinds.keys().next().unwrap(), *kinds.keys().last().unwrap());
    println!("{asked} queries, {good} good swaps, {} sets were seen in {secs} s", kinds.len());
    assert!(last - first <= good, "{first} {last}: a set for a file that is broken");
    assert!(kinds.len() > 4 && asked as u64 >= 50 * secs, "{asked}: {kinds:?}");
    let status = rig.ok("nlbconfig", &["-status"]);
    let now = status.lines().find_map(|l| l.strip_prefix("GENERATION: ")).unwrap();
    assert_eq!(swap("broken").code, 255);
    assert!(rig.ok("nlbconfig", &["-status"]).contains(&format!("GENERATION: {now}\n")));
}
