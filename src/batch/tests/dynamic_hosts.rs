//! badmin hghostadd, hghostdel: dynamic members of host groups.

use super::*;
use crate::conf::types::{ComputeUnit, HostGroup, HostTerm};

/// h1 is of lsf.cluster and in a group, h2 has joined by itself.
fn joined() -> ClusterConf {
    let mut c = conf();
    c.base.cluster.hosts[1].dynamic = true;
    for (name, members) in [("g1", &["h1"][..]), ("g2", &["h2"])] {
        let members = members.iter().map(|m| m.to_string()).collect();
        c.batch.hosts.groups.push(HostGroup { name: name.into(), members, ..Default::default() });
    }
    let (name, kind) = ("u1".into(), "enclosure".into());
    let unit = ComputeUnit { name, kind, ..ComputeUnit::default() };
    c.batch.hosts.units.push(unit);
    c.batch.queues[0].hosts = vec![HostTerm { name: "g1".into(), ..HostTerm::default() }];
    c
}

impl Rig {
    fn grouped(&mut self, add: bool, group: &str, host: &str) -> (i32, String) {
        let (group, hosts) = (group.to_string(), vec![host.to_string()]);
        let op = AdminOp::GroupHosts { add, group, hosts, comment: "why".into() };
        match self.ask(ADMIN, ClientMsg::Admin(op)) {
            Some(Msg::Client(ClientMsg::AdminDone { lines })) => {
                (lines[0].code, lines[0].text.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    fn group(&self, name: &str) -> String {
        self.mbd.site.expand_host(name).into_iter().collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn a_host_that_joined_becomes_a_member() {
    let mut r = Rig::of(joined());
    for _ in 0..6 {
        r.submit(spec("x")).unwrap();
    }
    assert_eq!(r.starts().len(), 2);
    for (group, host, code, words) in [
        ("g1", "h1", 232, "Host is already member of group"),
        ("g2", "h1", 233, "Host is not a dynamic host"),
        ("g1", "nosuch", err::BAD_HOST, ""),
        ("nosuch", "h2", err::BAD_HOST, ""),
    ] {
        assert_eq!(r.grouped(true, group, host), (code, words.to_string()), "{group} {host}");
    }
    for host in ["h1", "h2"] {
        let want = (234, "Host was not added with badmin hghostadd".to_string());
        assert_eq!(r.grouped(false, "g1", host), want);
    }
    assert!(!r.log.iter().any(|rec| matches!(rec.event, Event::GroupHost { .. })));
    assert_eq!(r.grouped(true, "g1", "h2"), (0, String::new()));
    assert_eq!(r.group("g1"), "h1 h2");
    // jobs that waited for the group go there
    assert_eq!(r.starts().len(), 2);
    assert_eq!(r.grouped(true, "g1", "h2").0, 232);
    assert_eq!(r.grouped(true, "u1", "h2").0, 0);
    assert_eq!(r.mbd.site.conf.batch.hosts.units[0].members, ["h2"]);
}

#[test]
fn members_survive_restarts_and_switches_until_they_are_taken_away() {
    let mut r = Rig::of(joined());
    assert_eq!(r.grouped(true, "g1", "h2").0, 0);
    let again = |log: &[Record]| {
        let mut records = Vec::new();
        for rec in log {
            let mut line = Vec::new();
            crate::log::codec::write_record(rec, &mut line);
            records.push(crate::log::codec::read_record(&line).unwrap());
        }
        Mbatchd::new(joined(), "h1", Recovered { records, epoch: 2, ..Default::default() })
    };
    let members = |mbd: &Mbatchd| mbd.site.expand_host("g1").len();
    assert_eq!(members(&again(&r.log)), 2);
    assert_eq!(members(&again(&r.mbd.switch_head(5))), 2);
    // a reconfiguration keeps them too
    r.step(Input::Config { conf: Some(Box::new(joined())), diags: vec![] });
    assert_eq!(r.group("g1"), "h1 h2");
    let mut out = Vec::new();
    let op = AdminOp::GroupHosts {
        add: false,
        group: "g1".into(),
        hosts: vec!["h2".into()],
        comment: String::new(),
    };
    let msg = Msg::Client(ClientMsg::Admin(op));
    r.mbd.step(r.now, Input::Msg { conn: ADMIN, msg }, &mut out);
    assert!(out.iter().any(|e| matches!(e, Effect::LoadConfig)));
    r.log.extend(out.into_iter().filter_map(|e| match e {
        Effect::Append(rec) => Some(*rec),
        _ => None,
    }));
    r.step(Input::Config { conf: Some(Box::new(joined())), diags: vec![] });
    assert_eq!(r.group("g1"), "h1");
    assert_eq!(members(&again(&r.log)), 1);
    assert_eq!(members(&again(&r.mbd.switch_head(5))), 1);
}
