//! Reports of collectors, beside what LIM measures and administrators store.

use super::*;
use crate::proto::nlb::{ReportedObject, ReportedValue, ReportedValues};

fn collector(rig: &mut Rig, host: &str) -> u64 {
    rig.callers += 1;
    let conn = INCOMING + rig.callers;
    let peer = Peer::Daemon { daemon: Daemon::Ccollect, host: host.into() };
    rig.step(Input::Opened { conn, peer });
    conn
}

fn idle(percent: f64) -> ReportedValues {
    let queue = ReportedValue::Text("batch".into());
    vec![(1, ReportedValue::Float(percent)), (11, ReportedValue::Float(percent)), (5, queue)]
}

fn custom(object_type: u16, name: &str, number: u32, value: i64) -> ReportedObject {
    let values = vec![(number, ReportedValue::Integer(value))];
    ReportedObject { object_type, name: name.into(), values }
}

fn report(values: ReportedValues) -> NlbReport {
    NlbReport { interval: 30, collector: values, custom: Vec::new() }
}

fn taken(answers: &[Msg]) -> bool {
    matches!(answers, [Msg::Nlb(NlbMsg::Reported { .. })])
}

fn has(rig: &mut Rig, host: &str, line: &str) -> bool {
    let which = NlbObjects { object_type: "NLB".into(), names: vec![host.into()] };
    rig.text(NlbMsg::Dump(which)).contains(&format!("\n\t{line}"))
}

#[test]
fn a_report_goes_before_administrators_and_lim_and_custom_objects_before_it() {
    let mut rig = Rig::new();
    rig.put_map("NLB_LIM_UT \"\" float(8203); INODES \"\" integer(8204);", "NLB");
    rig.loads(vec![load("cool", 0.25), load("gust", 0.0)]);
    rig.put("object NLB (cool) { NLB_NCPUS = 99; NLB_CLOCK = 5; }");
    assert_eq!(rig.hosts(""), ["gust Number(100.0)", "cool Number(75.0)"]);
    let conn = collector(&mut rig, "cool");
    let mut values = idle(10.0);
    values.extend([(4, ReportedValue::Integer(2)), (2, ReportedValue::Integer(77))]);
    let mut said = report(values);
    said.custom = vec![custom(1024, "cool.site", 8204, 8), custom(1024, "COOL", 2, 66)];
    assert!(taken(&rig.say(conn, NlbMsg::Report(said.clone()))));
    for line in [
        "NLB_A_IDLECPU = 10.0;",
        "NLB_QUEUE_NAME = \"batch\";",
        "NLB_NCPUS = 2;",
        "NLB_CLOCK = 5;",
        "NLB_FREEMEM = 66;",
        "INODES = 8;",
        "NLB_LIM_UT = 0.25;",
        "NLB_HOST = \"cool\";",
    ] {
        assert!(has(&mut rig, "cool", line), "{line}");
    }
    // what LIM alone has said of the host does not count any more, and its readings are no reports
    assert!(!has(&mut rig, "cool", "NLB_OSNAME"));
    rig.now += 20 * SECOND;
    rig.loads(vec![load("cool", 0.5), load("gust", 0.0)]);
    assert!(has(&mut rig, "cool", "NLB_LIM_UT = 0.5;"));
    assert!(!has(&mut rig, "cool", "NLB_OSNAME") && has(&mut rig, "cool", "NLB_A_IDLECPU = 10.0;"));
    rig.read_policies("policy: young constraint: age < 10");
    assert_eq!(rig.hosts(""), ["gust Number(0.0)"]);
    // a report replaces the one before
    said.custom.clear();
    assert!(taken(&rig.say(conn, NlbMsg::Report(said))));
    assert_eq!(rig.hosts(""), ["cool Number(0.0)", "gust Number(0.0)"]);
    assert!(!has(&mut rig, "cool", "INODES") && has(&mut rig, "cool", "NLB_FREEMEM = 77;"));
    assert!(rig.text(NlbMsg::Status).contains("HOSTS_COLLECTOR: 1\n"));
    let outcome = rig.put("object NLB (cool) { NLB_NCPUS = 7; NLB_SYSCPU = 1; }");
    let words = "obj_defs: NLB_NCPUS of <cool> is reported by its collector, which goes before";
    assert_eq!((outcome.taken, outcome.lines), (true, vec![words.to_owned()]));
}

#[test]
fn a_collector_that_is_silent_for_three_intervals_hides_nothing_more() {
    let mut rig = Rig::new();
    let conn = collector(&mut rig, "cool");
    let mut said = report(idle(10.0));
    said.custom = vec![custom(1024, "cool", 8204, 8)];
    assert!(taken(&rig.say(conn, NlbMsg::Report(said))));
    rig.now += 89 * SECOND;
    rig.loads(vec![load("cool", 0.5)]);
    assert!(has(&mut rig, "cool", "NLB_A_IDLECPU = 10.0;"));
    // where LIM does not know the host its last report stays
    rig.now += SECOND;
    assert!(has(&mut rig, "cool", "NLB_A_IDLECPU = 10.0;"));
    rig.loads(vec![load("cool", 0.5)]);
    assert!(has(&mut rig, "cool", "NLB_A_IDLECPU = 50.0;"));
    assert!(has(&mut rig, "cool", "NLB_QUEUE_NAME = \"normal\";"));
    assert!(rig.text(NlbMsg::Status).contains("HOSTS_COLLECTOR: 0\n"));
}

#[test]
fn a_collector_speaks_for_its_own_host_alone() {
    let mut rig = Rig::new();
    let conn = collector(&mut rig, "gust");
    let mut said = report(idle(10.0));
    said.custom = vec![
        custom(1024, "cool", 8204, 8),
        custom(1025, "hot", 1, 1),
        custom(1024, "gust", 8205, 9),
    ];
    let mut out = Vec::new();
    let now = Now { mono_us: rig.now, wall_us: 0 };
    let msg = Msg::Nlb(NlbMsg::Report(said));
    rig.server.step(now, Input::Msg { conn, msg }, &mut out);
    let words = "ccollect of <gust> reports <cool>, and 1 more: dropped";
    let logged = |e: &Effect| matches!(e, Effect::Say { text, .. } if text == words);
    assert!(out.iter().any(logged), "{out:?}");
    assert_eq!(rig.text(NlbMsg::List(NlbObjects::default())), "object NLB (gust)\n");
    // of the daemons and users nobody else reports
    for peer in [
        Peer::Daemon { daemon: Daemon::Lim, host: "gust".into() },
        Peer::Daemon { daemon: Daemon::Mbatchd, host: "cool".into() },
        Peer::User { uid: 0, gid: 0, user: "root".into(), host: "cool".into() },
        Peer::User { uid: 1000, gid: 1000, user: "adm".into(), host: "cool".into() },
    ] {
        let words = format!("{peer} may not report: collectors do");
        let conn = INCOMING + 90;
        rig.step(Input::Opened { conn, peer });
        let answers = rig.say(conn, NlbMsg::Report(report(idle(99.0))));
        let [Msg::Refused(refusal)] = answers.as_slice() else { panic!("{answers:?}") };
        assert_eq!(refusal.words(), words);
        rig.step(Input::Closed { conn });
    }
    assert_eq!(rig.text(NlbMsg::List(NlbObjects::default())), "object NLB (gust)\n");
}

#[test]
fn a_report_with_a_fault_changes_nothing() {
    let mut rig = Rig::new();
    let conn = collector(&mut rig, "cool");
    let value = |value| report(vec![(9000, value)]);
    let many: ReportedValues = (0..4_097).map(|n| (n, ReportedValue::Integer(1))).collect();
    let mut other = report(Vec::new());
    other.custom = vec![custom(500, "cool", 1, 1)];
    let mut objects = report(Vec::new());
    objects.custom = vec![custom(1024, "cool", 1, 1); 1_025];
    let long = "longer than 4096 bytes, or not of one line";
    for (bad, words) in [
        (value(ReportedValue::Float(f64::NAN)), "float(9000) is not finite".to_owned()),
        (value(ReportedValue::Float(f64::INFINITY)), "float(9000) is not finite".to_owned()),
        (value(ReportedValue::Text("a\nb".into())), format!("string(9000) is {long}")),
        (value(ReportedValue::Text("\u{1b}[2J".into())), format!("string(9000) is {long}")),
        (value(ReportedValue::Text("x".repeat(4_097))), format!("string(9000) is {long}")),
        (report(many), "more than 4096 attributes of an object".to_owned()),
        (other, "an object of type 500: NLB or NLB_JOB is wanted".to_owned()),
        (objects, "more than 1024 objects of custom data".to_owned()),
    ] {
        let answers = rig.say(conn, NlbMsg::Report(bad));
        let [Msg::Refused(refusal)] = answers.as_slice() else { panic!("{words}: {answers:?}") };
        assert_eq!(refusal.words(), words);
    }
    assert_eq!(rig.text(NlbMsg::List(NlbObjects::default())), "");
    // the server's own attributes are its own
    let own = vec![(4, ReportedValue::Float(1e9)), (4098, ReportedValue::Text("hot".into()))];
    assert!(taken(&rig.say(conn, NlbMsg::Report(report(own)))));
    assert!(has(&mut rig, "cool", "NLB_HOST = \"cool\";") && !has(&mut rig, "cool", "NLB_POLICY"));
}

#[test]
fn a_report_tells_which_maps_are_in_force_and_releases_queries_that_wait() {
    let files = || StartFiles { policies: Ok(BUILT_IN.into()), ..StartFiles::default() };
    let mut rig = Rig::files(&files());
    let number = |answers: &[Msg]| match answers {
        [Msg::Nlb(NlbMsg::Reported { map })] => *map,
        other => panic!("{other:?}"),
    };
    let conns = ["cool", "gust", "hot"].map(|host| collector(&mut rig, host));
    assert_eq!(rig.say(USER, NlbMsg::Query(NlbQuery::default())).len(), 0);
    let first = number(&rig.say(conns[0], NlbMsg::Report(report(idle(1.0)))));
    assert_eq!(number(&rig.say(conns[1], NlbMsg::Report(report(idle(2.0))))), first);
    let msg = Msg::Nlb(NlbMsg::Report(report(idle(3.0))));
    let sent = rig.step(Input::Msg { conn: conns[2], msg });
    assert!(sent.iter().any(|(conn, msg)| *conn == USER
        && matches!(msg, Msg::Nlb(NlbMsg::Ranked(r)) if r.rows.len() == 3)));
    assert!(rig.put_map("X \"\" float(9000);", "NLB").taken);
    let second = number(&rig.say(conns[0], NlbMsg::Report(report(idle(1.0)))));
    assert!(second > first);
}
