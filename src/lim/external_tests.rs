//! The hosts that start elims for a resource, and the reporters whose values count.

use super::*;
use crate::conf::{BaseConf, ResourceMapping};
use crate::conf::{HostDef, HostTable, ResourceDef, ResourceInstance, ResourceKind};
use crate::lim::elims::SETTLE_SECS;
use crate::lim::readings::value_in;
use crate::model::time::US;
use crate::proto::lim::{HostFacts, LimMsg, LoadSample, status};
use crate::proto::{Input, Machine, Msg};

const HOSTS: [&str; 4] = ["h1", "h2", "h3", "h4"];

fn base(map: &[(&str, &[&str])]) -> BaseConf {
    let mut base =
        BaseConf { name: "c".into(), hosts: HostTable::new(HOSTS, &[]), ..BaseConf::default() };
    base.cluster.hosts =
        HOSTS.map(|n| HostDef { name: n.into(), server: true, ..HostDef::default() }).to_vec();
    base.cluster.params.exinterval = 10;
    base.cluster.params.host_inactivity_limit = 1;
    base.cluster.params.retry_limit = 1;
    for (name, brackets) in map {
        base.shared.resources.push(ResourceDef {
            name: name.to_string(),
            kind: ResourceKind::Numeric,
            interval: Some(15),
            increasing: Some(true),
            ..ResourceDef::default()
        });
        let instance = |b: &&str| ResourceInstance {
            value: None,
            hosts: b.split_whitespace().map(str::to_owned).collect(),
        };
        base.cluster.resource_map.push(ResourceMapping {
            resource: name.to_string(),
            instances: brackets.iter().map(instance).collect(),
            ..ResourceMapping::default()
        });
    }
    base
}

fn at(secs: u64) -> Now {
    Now { mono_us: secs * US, wall_us: (secs * US) as i64 }
}

fn step(lim: &mut Lim, secs: u64, input: Input) -> Vec<Effect> {
    let mut out = Vec::new();
    lim.step(at(secs), input, &mut out);
    out
}

fn started(base: &BaseConf, host: &str) -> (Lim, Vec<Effect>) {
    let mut lim = Lim::new(base.clone(), host);
    let mut out = step(&mut lim, 0, Input::Start);
    let facts = HostFacts { nprocs: 1, ..HostFacts::default() };
    let sample = LoadSample { facts, ..LoadSample::default() };
    out.extend(step(&mut lim, 0, Input::Sample(Box::new(sample))));
    (lim, out)
}

/// The resources that melim was last told to report, and whether this host is the master.
fn melim(out: &[Effect]) -> Option<(String, bool)> {
    out.iter().rev().find_map(|e| match e {
        Effect::Melim { resources, master } => Some((resources.join(" "), *master)),
        _ => None,
    })
}

fn beat(host: &str, external: &[(&str, &str)]) -> Input {
    let pairs = external.iter().map(|(n, v)| (n.to_string(), v.to_string()));
    let load = HostLoad { host: host.into(), external: pairs.collect(), ..HostLoad::default() };
    Input::Datagram { from: host.into(), msg: Msg::Lim(LimMsg::Beat { load: Box::new(load) }) }
}

fn announce(report: &[&str]) -> Input {
    announced("h1", report, false)
}

fn announced(from: &str, report: &[&str], undecided: bool) -> Input {
    let report = report.iter().map(|r| r.to_string()).collect();
    let msg = LimMsg::Announce { cluster: "c".into(), want: false, report, undecided };
    Input::Datagram { from: from.into(), msg: Msg::Lim(msg) }
}

/// How often melim was started.
fn starts(out: &[Effect]) -> usize {
    out.iter().filter(|e| matches!(e, Effect::Melim { .. })).count()
}

/// Lets time pass without an answer from the master's host until this LIM has taken over: the
/// seconds that took, and the effects.
fn taken_over(lim: &mut Lim, from: u64) -> (u64, Vec<Effect>) {
    let mut all = Vec::new();
    for secs in from..from + 60 {
        let mut out = step(lim, secs, Input::Tick);
        while let Some(at) = out.iter().position(|e| matches!(e, Effect::Connect { .. })) {
            let Effect::Connect { conn, .. } = out.remove(at) else { continue };
            let input = Input::ConnectFailed { conn, why: String::new(), refused: true };
            out.extend(step(lim, secs, input));
        }
        all.extend(out);
        if lim.is_master() {
            return (secs, all);
        }
    }
    panic!("{} does not take over", lim.host)
}

/// The resources that the master's announcements have a host report.
fn wanted(out: &[Effect], host: &str) -> Option<String> {
    out.iter().rev().find_map(|e| match e {
        Effect::Datagram { to, msg: Msg::Lim(LimMsg::Announce { report, .. }) } if to == host => {
            Some(report.join(" "))
        }
        _ => None,
    })
}

#[test]
fn locations_decide_where_elims_start() {
    let yes = |r: &str| Some((r.to_owned(), true));
    let no = |r: &str| Some((r.to_owned(), false));
    // ([all]) | ([all ~h2]): the master
    for location in ["all", "all ~h2"] {
        let base = base(&[("r", &[location])]);
        assert_eq!(melim(&started(&base, "h1").1), yes("r"), "{location}");
        let (mut lim, out) = started(&base, "h2");
        assert_eq!(melim(&out), None, "{location}");
        assert_eq!(melim(&step(&mut lim, 1, announce(&[]))), None);
    }
    // [default]: every host
    let base_ = base(&[("d", &["default"]), ("a", &["all"]), ("static", &[])]);
    assert_eq!(melim(&started(&base_, "h1").1), yes("d a"));
    for host in &HOSTS[1..] {
        assert_eq!(melim(&started(&base_, host).1), no("d"));
    }
    // ([h3]), ([h2 h4] [h3 h4]): the first of each list, as the master says
    let base_ = base(&[("one", &["h3"]), ("two", &["h2 h4", "h3 h4"])]);
    let (mut lim, out) = started(&base_, "h1");
    assert_eq!(melim(&out), None);
    for host in &HOSTS[1..] {
        step(&mut lim, 1, beat(host, &[]));
    }
    let out = step(&mut lim, 2, Input::Tick);
    let all = ["h2", "h3", "h4"].map(|h| wanted(&out, h).unwrap());
    assert_eq!(all, ["two", "one two", ""]);
    let (mut lim, out) = started(&base_, "h3");
    assert_eq!(melim(&out), None);
    assert_eq!(melim(&step(&mut lim, 1, announce(&["one", "two"]))), no("one two"));
    assert_eq!(melim(&step(&mut lim, 2, announce(&["one", "two"]))), None, "not anew");
    assert_eq!(melim(&step(&mut lim, 3, announce(&[]))), no(""));
}

#[test]
fn a_list_fails_over_and_back() {
    let base = base(&[("lic", &["h2 h3"])]);
    let (mut lim, _) = started(&base, "h1");
    step(&mut lim, 1, beat("h2", &[("lic", "5")]));
    step(&mut lim, 1, beat("h3", &[("lic", "7")]));
    let value = |lim: &Lim, host: &str| {
        let shown = lim.shown(&lim.hosts[host]);
        value_in(&shown, "lic").map(str::to_owned)
    };
    step(&mut lim, 2, Input::Tick);
    // h2 speaks for both; nobody else has it
    assert_eq!([value(&lim, "h2"), value(&lim, "h3")], [Some("5".into()), Some("5".into())]);
    assert_eq!([value(&lim, "h1"), value(&lim, "h4")], [None, None]);
    assert_eq!(lim.shared_rows()[0].value, "5");
    // h2 falls silent
    for secs in 3..40 {
        step(&mut lim, secs, beat("h3", &[("lic", "7")]));
        let out = step(&mut lim, secs, Input::Tick);
        if lim.elims.of("h3") == ["lic"] {
            assert_eq!(wanted(&out, "h3").as_deref(), Some("lic"));
            break;
        }
    }
    assert_eq!([value(&lim, "h2"), value(&lim, "h3")], [Some("7".into()), Some("7".into())]);
    // and is back: h3 is told to stop at once
    step(&mut lim, 41, beat("h2", &[]));
    let out = step(&mut lim, 51, Input::Tick);
    assert_eq!([wanted(&out, "h2"), wanted(&out, "h3")], [Some("lic".into()), Some("".into())]);
    assert_eq!(lim.shared_rows()[0].value, "-");
}

#[test]
fn a_host_that_becomes_master_starts_its_elims_once() {
    let base = base(&[("d", &["default"]), ("a", &["all"]), ("lic", &["h3 h2"])]);
    let (mut lim, mut out) = started(&base, "h2");
    out.extend(step(&mut lim, 1, announce(&[])));
    assert_eq!((melim(&out), starts(&out)), (Some(("d".into(), false)), 1));
    // until it has heard of h3, h2 is the first of the list that it knows to be there
    let (now, mut out) = taken_over(&mut lim, 2);
    let news = step(&mut lim, now, beat("h3", &[]));
    out.extend(news);
    out.extend(step(&mut lim, now + 1, Input::Tick));
    out.extend(step(&mut lim, now + SETTLE_SECS + 1, Input::Tick));
    assert_eq!((melim(&out), starts(&out)), (Some(("d a".into(), true)), 1));
    assert_eq!(wanted(&out, "h3").as_deref(), Some("lic"));
    // where h3 is not there, it does not wait for it for ever
    let (mut lim, _) = started(&base, "h2");
    step(&mut lim, 1, announce(&[]));
    let (now, mut out) = taken_over(&mut lim, 2);
    assert_eq!(starts(&out), 0);
    for secs in now..=now + SETTLE_SECS {
        out.extend(step(&mut lim, secs, Input::Tick));
    }
    assert_eq!((melim(&out), starts(&out)), (Some(("d a lic".into(), true)), 1));
}

#[test]
fn a_change_of_master_that_changes_nothing_for_a_host_starts_no_elims_there() {
    let base = base(&[("d", &["default"]), ("a", &["all"]), ("lic", &["h3 h4"])]);
    let (mut lim, mut out) = started(&base, "h3");
    out.extend(step(&mut lim, 1, announce(&["lic"])));
    assert_eq!((melim(&out), starts(&out)), (Some(("d lic".into(), false)), 1));
    // h1 is silent; h2 announces itself before it has heard of all, and then decides
    let mut out = step(&mut lim, 40, announced("h2", &[], true));
    assert_eq!(lim.election_master(), Some("h2"));
    out.extend(step(&mut lim, 41, Input::Tick));
    out.extend(step(&mut lim, 42, announced("h2", &["lic"], false)));
    out.extend(step(&mut lim, 60, Input::Tick));
    assert_eq!(starts(&out), 0, "{:?}", melim(&out));
    // a master that never decides is waited for no longer than that
    let mut out = step(&mut lim, 100, announced("h1", &[], true));
    out.extend(step(&mut lim, 100 + SETTLE_SECS, Input::Tick));
    assert_eq!((melim(&out), starts(&out)), (Some(("d".into(), false)), 1));
}

#[test]
fn reports_reach_hosts_thresholds_and_built_in_indices() {
    let mut base = base(&[("d", &["default"]), ("a", &["all ~h3"])]);
    base.cluster.hosts[1].thresholds = vec![("d".into(), 4.0), ("a".into(), 100.0)];
    let (mut lim, _) = started(&base, "h1");
    step(&mut lim, 1, Input::External("2 a 9 d 1\n".into()));
    step(&mut lim, 1, beat("h2", &[("d", "5"), ("tmp", "77")]));
    step(&mut lim, 1, beat("h3", &[("d", "6")]));
    let shown = |h: &str| lim.shown(&lim.hosts[h]);
    let pairs = |h: &str| {
        shown(h).external.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!([pairs("h1"), pairs("h2"), pairs("h3")], ["d=1 a=9", "d=5 a=9", "d=6"]);
    assert_eq!((shown("h2").status, shown("h2").over), (status::BUSY, 1 << 11));
    assert_eq!((shown("h3").status, shown("h2").index[8]), (0, 77.0));
    // what melim does not write is not taken
    step(&mut lim, 6, Input::External("1 d x\n".into()));
    assert_eq!(value_in(&lim.shown(&lim.hosts["h1"]), "d"), Some("1"));
}

#[test]
fn reports_are_looked_for_each_poll_interval() {
    for (interval, want) in [(5.0, [1, 6, 11]), (0.5, [1, 2, 3])] {
        let mut base = base(&[("d", &["default"])]);
        base.cluster.params.elim_poll_interval = interval;
        let (mut lim, _) = started(&base, "h1");
        let (mut last, mut seen) = (None, Vec::new());
        for secs in 1..=12 {
            step(&mut lim, secs, Input::External(format!("1 d {secs}")));
            // a second report before the next look-out is the one that counts
            step(&mut lim, secs, Input::External(format!("1 d {secs}.5")));
            if lim.deadline().is_some_and(|at| at <= secs * US) {
                step(&mut lim, secs, Input::Tick);
            }
            let value = value_in(&lim.hosts["h1"].load, "d").map(str::to_owned);
            if value != last {
                seen.push((secs, value.clone().unwrap()));
                last = value;
            }
        }
        let times: Vec<u64> = seen.iter().map(|s| s.0).collect();
        assert_eq!(times[..3], want, "{seen:?}");
    }
}
