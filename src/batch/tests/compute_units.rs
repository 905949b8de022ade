//! bmgroup -cu, and groups that nobody knows.

use super::*;
use crate::conf::types::{ComputeUnit, HostGroup};

fn unit(name: &str, kind: &str, members: &[&str]) -> ComputeUnit {
    let members = members.iter().map(|m| m.to_string()).collect();
    ComputeUnit { name: name.into(), kind: kind.into(), members, ..ComputeUnit::default() }
}

fn units(r: &mut Rig, names: &[&str], expand: bool) -> Vec<(String, String)> {
    let names = names.iter().map(|n| n.to_string()).collect();
    match r.ask(OTHER, ClientMsg::Groups { hosts: true, names, expand, units: true }) {
        Some(Msg::Client(ClientMsg::GroupRows { rows })) => rows
            .into_iter()
            .map(|g| (format!("{} {}", g.name, g.kind), g.members.join(" ")))
            .collect(),
        Some(Msg::Refused(r)) => vec![(r.words(), String::new())],
        other => panic!("{other:?}"),
    }
}

#[test]
fn units_hold_hosts_groups_and_units() {
    let mut conf = conf();
    conf.batch.hosts.groups.push(HostGroup {
        name: "hg".into(),
        members: vec!["h2".into()],
        ..HostGroup::default()
    });
    conf.batch.hosts.units = vec![
        unit("encl1", "enclosure", &["h1", "hg"]),
        unit("rack1", "rack", &["encl1", "h1"]),
        unit("itself", "rack", &["itself"]),
    ];
    let mut r = Rig::of(conf);
    let text = |a: &str, b: &str| (a.to_string(), b.to_string());
    let plain = [
        text("encl1 enclosure", "h1 hg/"),
        text("rack1 rack", "encl1/ h1"),
        text("itself rack", "itself"),
    ];
    assert_eq!(units(&mut r, &[], false), plain);
    let whole = [text("rack1 rack", "h1 h2")];
    assert_eq!(units(&mut r, &["rack1"], true), whole);
    let bad = "nosuch: Bad host name, host group name or cluster name";
    assert_eq!(units(&mut r, &["encl1", "nosuch"], false), [text(bad, "")]);
}

#[test]
fn a_group_that_nobody_knows_is_named() {
    let mut r = Rig::new();
    r.submit(JobSpec { user_group: "former".into(), ..spec("x") }).ok();
    let jobs = |r: &mut Rig, group: &str| {
        let given = vec![("G".to_string(), group.to_string())];
        let select = JobSelect { given, user: "all".into(), ..JobSelect::default() };
        r.ask(OTHER, ClientMsg::Jobs(Box::new(JobQuery { select, ..JobQuery::default() })))
    };
    match jobs(&mut r, "nosuch") {
        Some(Msg::Refused(r)) => assert_eq!(r.words(), "nosuch: Bad user group name"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(jobs(&mut r, "former"), Some(Msg::Client(ClientMsg::Rows { .. }))));
}
