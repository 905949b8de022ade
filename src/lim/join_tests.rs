//! Dynamic hosts: which are let into the cluster, their share in it, and their removal.

use super::*;
use crate::conf::address_range::AddrRanges;
use crate::conf::{BaseConf, HostDef, HostTable};
use crate::proto::lim::{HostLoad, status};
use crate::proto::{Input, Machine};

fn base() -> BaseConf {
    let mut base = BaseConf {
        name: "c".into(),
        hosts: HostTable::new(["h1", "h2"], &[]),
        ..BaseConf::default()
    };
    for (name, addr) in [("h1", "10.0.0.1"), ("h2", "10.0.0.2")] {
        base.hosts.add_address(name, addr.parse().unwrap());
        let def = HostDef { name: name.into(), server: true, ..HostDef::default() };
        base.cluster.hosts.push(def);
    }
    base.lsf.set("LSF_MASTER_LIST", "h1 h2");
    base.lsf.set("LSF_DYNAMIC_HOST_TIMEOUT", "20m");
    base.cluster.params.addr_range = AddrRanges::parse("10.0.7").unwrap();
    base
}

fn step(lim: &mut Lim, secs: u64, input: Input) -> Vec<Effect> {
    let mut out = Vec::new();
    let now = Now { mono_us: secs * US, wall_us: (secs * US) as i64 };
    lim.step(now, input, &mut out);
    out
}

fn asks(name: &str, addr: &str) -> Input {
    let resources = String::new();
    let msg = LimMsg::Join { cluster: "c".into(), addr: addr.into(), resources };
    Input::Datagram { from: name.into(), msg: Msg::Lim(msg) }
}

fn master(base: BaseConf) -> Lim {
    let mut lim = Lim::new(base, "h1");
    step(&mut lim, 0, Input::Start);
    step(&mut lim, 0, Input::Sample(Box::default()));
    lim
}

/// The members that are to be kept.
fn kept(out: &[Effect]) -> Option<Vec<&str>> {
    out.iter().find_map(|e| match e {
        Effect::Members(all) => Some(all.iter().map(|m| m.name.as_str()).collect()),
        _ => None,
    })
}

fn refused(out: &[Effect]) -> &str {
    let why = out.iter().find_map(|e| match e {
        Effect::Reply { msg: Msg::Lim(LimMsg::NotJoined { why }), .. } => Some(why.as_str()),
        _ => None,
    });
    assert!(kept(out).is_none());
    why.unwrap_or_default()
}

fn announced(out: &[Effect], host: &str) -> bool {
    out.iter().any(|e| {
        matches!(e, Effect::Datagram { to, msg: Msg::Lim(LimMsg::Announce { .. }) } if to == host)
    })
}

fn beat(host: &str) -> Input {
    let load = Box::new(HostLoad { host: host.into(), ..HostLoad::default() });
    Input::Datagram { from: host.into(), msg: Msg::Lim(LimMsg::Beat { load }) }
}

#[test]
fn a_host_of_the_range_joins_and_others_are_told_why_not() {
    let mut lim = master(base());
    let out = step(&mut lim, 1, asks("d1", "10.0.7.1"));
    assert_eq!(kept(&out), Some(vec!["d1"]));
    // its name is known before it is told
    let at = |f: fn(&Effect) -> bool| out.iter().position(f).unwrap();
    let told = at(|e| matches!(e, Effect::Datagram { to, .. } if to == "d1"));
    assert!(at(|e| matches!(e, Effect::Members(_))) < told && announced(&out, "d1"));
    step(&mut lim, 2, beat("d1"));
    assert!(!lim.hosts["d1"].load.unavailable());
    // again: it is a member
    let out = step(&mut lim, 3, asks("d1", "10.0.7.1"));
    assert!(announced(&out, "d1") && kept(&out).is_none());
    let refusals = [
        ("d2", "10.0.8.1", "address 10.0.8.1 is not in LSF_HOST_ADDR_RANGE of lsf.cluster.c"),
        ("d2", "10.0.7.1", "10.0.7.1 is the address of host d1"),
        ("d1", "10.0.7.9", "d1 is the name of a host with another address"),
        ("h2", "10.0.7.9", "h2 is the name of a host with another address"),
        ("all", "10.0.7.9", "<all> cannot name a host"),
        ("a b", "10.0.7.9", "<a b> cannot name a host"),
    ];
    for (name, addr, why) in refusals {
        assert_eq!(refused(&step(&mut lim, 4, asks(name, addr))), why);
    }
    assert_eq!(lim.hosts.len(), 3);
    // one that is not master, and one of another cluster, do nothing
    let mut other = Lim::new(base(), "h2");
    step(&mut other, 0, Input::Start);
    assert!(step(&mut other, 1, asks("d1", "10.0.7.1")).is_empty());
    // without LSF_MASTER_LIST nobody joins, and no member is ever a candidate
    let mut conf = base();
    conf.lsf.set("LSF_MASTER_LIST", "");
    let mut lim = master(conf);
    let out = step(&mut lim, 1, asks("d1", "10.0.7.1"));
    assert_eq!(refused(&out), "LSF_MASTER_LIST is not defined");
    assert!(!lim.election_has("d1"));
}

#[test]
fn a_member_that_is_away_too_long_is_none_any_more() {
    let mut lim = master(base());
    step(&mut lim, 1, asks("d1", "10.0.7.1"));
    step(&mut lim, 1, asks("d2", "10.0.7.2"));
    let mut out = Vec::new();
    for secs in 2..4000 {
        // d1 is heard of until 1000 s; d2 never was
        if secs < 1000 && secs % 15 == 0 {
            step(&mut lim, secs, beat("d1"));
        }
        let now = step(&mut lim, secs, Input::Tick);
        out.extend(kept(&now).map(|left| (secs, left.join(" "))));
    }
    let [(first, a), (second, b)] = &out[..] else { panic!("{out:?}") };
    assert!((1201..1230).contains(first) && a == "d1", "{out:?}");
    // 20 minutes after it was found to be away, (5 + 2) x 15 s after its last beat
    assert!((990 + 105 + 1200..990 + 105 + 1240).contains(second) && b.is_empty(), "{out:?}");
    assert_eq!(lim.hosts.keys().collect::<Vec<_>>(), ["h1", "h2"]);
}

#[test]
fn a_host_outside_asks_after_its_wait_and_the_next_master_knows_the_members() {
    let mut conf = base();
    conf.lsf.set("LSF_DYNAMIC_HOST_WAIT_TIME", "30");
    conf.lsf.set("LSF_LOCAL_RESOURCES", "[resource fast]");
    conf.hosts.add_host("d1");
    let own = HostDef { name: "d1".into(), server: true, dynamic: true, ..HostDef::default() };
    conf.cluster.hosts.push(own);
    let mut lim = Lim::new(conf, "d1");
    let mut asked = Vec::new();
    let mut look = |secs: u64, out: Vec<Effect>| {
        for e in out {
            if let Effect::Datagram { to, msg: Msg::Lim(msg) } = e {
                let LimMsg::Join { resources, .. } = msg else { panic!("{to}") };
                assert_eq!(resources, "[resource fast]");
                asked.push((secs, to));
            }
        }
    };
    look(0, step(&mut lim, 0, Input::Start));
    for secs in 1..=60 {
        look(secs, step(&mut lim, secs, Input::Tick));
    }
    assert!(asked.iter().all(|(secs, _)| *secs >= 30) && asked[0].1 == "h1" && asked[1].1 == "h2");
    let why = Msg::Lim(LimMsg::NotJoined { why: "full".into() });
    let input = || Input::Datagram { from: "h1".into(), msg: why.clone() };
    let said = |out: &[Effect]| out.iter().any(|e| matches!(e, Effect::Say { .. }));
    assert!(said(&step(&mut lim, 61, input())) && !said(&step(&mut lim, 62, input())));
    // the next master has them from the file
    let mut next = Lim::new(base(), "h2");
    step(&mut next, 0, Input::Start);
    let addr = "10.0.7.1".parse().unwrap();
    let d1 = Member { name: "d1".into(), addr, resources: String::new() };
    step(&mut next, 1, Input::Members(vec![d1]));
    let out = (2..300).flat_map(|secs| step(&mut next, secs, Input::Tick)).collect::<Vec<_>>();
    assert!(next.is_master() && announced(&out, "d1"));
    assert!(next.hosts["d1"].load.status & status::UNAVAIL != 0);
}
