//! The file `config`: every message in every role, and what a file with a fault changes.

use super::*;

/// A user's connection.
fn user(rig: &mut Rig, uid: u32, user: &str, host: &str) -> u64 {
    peer(rig, Peer::User { uid, gid: uid, user: user.into(), host: host.into() })
}

fn peer(rig: &mut Rig, peer: Peer) -> u64 {
    rig.callers += 1;
    let conn = INCOMING + rig.callers;
    rig.step(Input::Opened { conn, peer });
    conn
}

fn with(config: &str) -> Rig {
    let policies = Ok(BUILT_IN.as_bytes().to_vec());
    let config = Some(config.as_bytes().to_vec());
    let mut rig = Rig::files(&StartFiles { policies, config, ..StartFiles::default() });
    rig.wait(5);
    rig
}

/// The words of a refusal; empty: the message is let through.
fn refusal(answers: &[Msg]) -> String {
    match answers {
        [Msg::Refused(refusal)] => refusal.words(),
        _ => String::new(),
    }
}

const CONFIG: &str = "master: boss root@cool\n\
    acl NLB: read=ann,master update=ann@gust,collector delete=master\n\
    acl NLB_JOB: update=*\n";

/// Query, all objects, objects of NLB, those of NLB_JOB, status, watch, check, put NLB, put
/// NLB_JOB, delete, reload, conf, map put, report.
fn messages() -> Vec<NlbMsg> {
    let which = |of: &str| NlbObjects { object_type: of.into(), names: Vec::new() };
    vec![
        NlbMsg::Query(NlbQuery::default()),
        NlbMsg::List(which("")),
        NlbMsg::Dump(which("NLB")),
        NlbMsg::Map { object_type: "NLB_JOB".into() },
        NlbMsg::Status,
        NlbMsg::Watch,
        NlbMsg::Check(file("f", "policy: a")),
        NlbMsg::Put(file("o", "object NLB (a) { NLB_CLOCK = 1; }")),
        NlbMsg::Put(file("o", "object NLB_JOB (a) { JOB_TAPES_A = 1; }")),
        NlbMsg::Delete(NlbObjects { object_type: "NLB".into(), names: vec!["a".into()] }),
        NlbMsg::Reload,
        NlbMsg::Conf,
        NlbMsg::MapPut(file("m", "map A = 5 { }")),
        NlbMsg::Report(NlbReport::default()),
    ]
}

#[test]
fn each_message_in_each_role_is_let_through_as_config_says() {
    let of = |uid, user: &str, host: &str| Peer::User {
        uid,
        gid: 1,
        user: user.into(),
        host: host.into(),
    };
    let daemon = |daemon| Peer::Daemon { daemon, host: "hot".into() };
    for (who, wanted) in [
        (of(1, "ann", "hot"), "+++++-+-+-----"),
        (of(1, "ann", "gust"), "+++++-+++-----"),
        (of(2, "bob", "gust"), "-+-+--+-+-----"),
        (of(3, "adm", "cool"), "-+-+--+-+-----"),
        (of(4, "boss", "hot"), "+++++-+-+++++-"),
        (of(0, "root", "cool"), "+++++-+-+++++-"),
        (of(0, "root", "hot"), "-+-+--+-+-----"),
        (of(0, "boss", "hot"), "-+-+--+-+-----"),
        (daemon(Daemon::Mbatchd), "+++++++-------"),
        (daemon(Daemon::Ccollect), "+++++++------+"),
        (Peer::Local { uid: 0, pid: 1 }, "-+----+-------"),
    ] {
        let mut rig = with(CONFIG);
        let conn = peer(&mut rig, who.clone());
        let mut through = String::new();
        for msg in messages() {
            let answers = rig.say(conn, msg);
            through.push(if refusal(&answers).is_empty() { '+' } else { '-' });
        }
        assert_eq!(through, wanted, "{who}");
    }
}

#[test]
fn refusals_of_a_flood_of_messages_are_counted_instead_of_logged_one_by_one() {
    let mut rig = with(CONFIG);
    let bob = user(&mut rig, 2, "bob", "gust");
    let logged = |rig: &mut Rig, times: usize| {
        let (mut lines, mut refused) = (Vec::new(), 0);
        for _ in 0..times {
            let mut out = Vec::new();
            let now = Now { mono_us: rig.now, wall_us: 0 };
            let msg = Msg::Nlb(NlbMsg::Reload);
            rig.server.step(now, Input::Msg { conn: bob, msg }, &mut out);
            for effect in out {
                match effect {
                    Effect::Say { text, .. } => lines.push(text),
                    Effect::Send { msg: Msg::Refused(_), .. } => refused += 1,
                    _ => {}
                }
            }
        }
        assert_eq!(refused, times, "each is answered");
        lines
    };
    let lines = logged(&mut rig, 1000);
    assert_eq!(lines.len(), 20);
    assert!(lines.iter().all(|line| line.contains("is not in the master list")), "{lines:?}");
    rig.now += 11 * SECOND;
    let lines = logged(&mut rig, 2);
    assert_eq!((lines.len(), &*lines[0]), (3, "980 more lines like these were left out"));
}

#[test]
fn refusals_name_the_line_of_config_and_objects_that_may_not_be_read_are_not_listed() {
    let mut rig = with(CONFIG);
    let bob = user(&mut rig, 2, "bob", "gust");
    let put = |of: &str| NlbMsg::Put(file("o", &format!("object {of} (a) {{ }}")));
    let head = "User permission denied: <bob>";
    let words = refusal(&rig.say(bob, put("NLB")));
    let update =
        "may not update objects of type NLB on the NLB server on <cool> (/nlbdir/config:2)";
    assert_eq!(words, format!("{head} {update}"));
    let words = refusal(&rig.say(bob, NlbMsg::Reload));
    let master = "is not in the master list of the NLB server on <cool> (/nlbdir/config:1)";
    assert_eq!(words, format!("{head} {master}"));
    let boss = user(&mut rig, 4, "boss", "hot");
    let gust = user(&mut rig, 1, "ann", "gust");
    assert_eq!(refusal(&rig.say(gust, put("NLB"))), "");
    assert_eq!(refusal(&rig.say(bob, put("NLB_JOB"))), "");
    let list = |rig: &mut Rig, conn| match rig.say(conn, NlbMsg::List(NlbObjects::default())).pop()
    {
        Some(Msg::Nlb(NlbMsg::Text { text, .. })) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(list(&mut rig, bob), "object NLB_JOB (a)\n");
    assert_eq!(list(&mut rig, boss), "object NLB (a)\nobject NLB_JOB (a)\n");
    // one file with objects of both types is refused as a whole
    let both = "object NLB_JOB (b) { } object NLB (b) { }";
    assert_ne!(refusal(&rig.say(bob, NlbMsg::Put(file("o", both)))), "");
    assert!(!list(&mut rig, boss).contains("(b)"));
    // where collectors may not update, no report is taken
    let mut rig = with("acl NLB: update=master\n");
    let conn = peer(&mut rig, Peer::Daemon { daemon: Daemon::Ccollect, host: "hot".into() });
    assert_ne!(refusal(&rig.say(conn, NlbMsg::Report(NlbReport::default()))), "");
}

#[test]
fn a_config_with_a_fault_changes_nothing_and_hinders_a_start() {
    let mut rig = Rig::new();
    rig.config = Ok(Some(b"master: ann\n".to_vec()));
    assert_eq!(rig.change(NlbMsg::Conf), NlbOutcome { taken: true, ..NlbOutcome::default() });
    assert_ne!(refusal(&rig.say(ADMIN, NlbMsg::Conf)), "");
    rig.config = Ok(Some(b"master: adm\nacl NLP: read=*\n".to_vec()));
    let answers = rig.say(USER, NlbMsg::Conf);
    let [Msg::Nlb(NlbMsg::Outcome(outcome))] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(!outcome.taken);
    let line = "/nlbdir/config:2:5: <NLP> is no object type; did you mean <NLB>?";
    assert_eq!(outcome.lines, [line]);
    let kept = "config not taken; that read at Sun Sep  9 01:46:45 2001 stays in force";
    assert_eq!(outcome.words, kept);
    rig.config = Err("Permission denied".into());
    let answers = rig.say(USER, NlbMsg::Conf);
    let [Msg::Nlb(NlbMsg::Outcome(outcome))] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(outcome.lines, ["/nlbdir/config: Permission denied"]);
    assert_eq!(refusal(&rig.say(USER, NlbMsg::Reload)), "");
    // without the file the defaults are in force
    rig.config = Ok(None);
    assert_eq!(refusal(&rig.say(USER, NlbMsg::Conf)), "");
    assert_eq!(refusal(&rig.say(ADMIN, NlbMsg::Reload)), "");
    let bad = StartFiles { config: Some(b"mastr: a".to_vec()), ..StartFiles::default() };
    let faults = start("/d", &bad).unwrap_err();
    assert_eq!(faults.len(), 2);
    assert_eq!(faults[1], "put the file right, or take it away for the defaults");
}

#[test]
fn objects_that_nobody_reports_expire_and_stored_ones_stay() {
    let mut rig = with("expire: 60\n");
    rig.put("object NLB (hot) { NLB_CLOCK = 1; } object NLB (x) { }");
    rig.loads(vec![load("cool", 0.0), load("gust", 0.0), load("hot", 0.0)]);
    let names =
        |rig: &mut Rig| rig.text(NlbMsg::List(NlbObjects::default())).replace("object NLB ", "");
    rig.wait(50);
    rig.loads(vec![load("gust", 0.0)]);
    assert_eq!(names(&mut rig), "(cool)\n(gust)\n(hot)\n(x)\n");
    rig.wait(11);
    assert_eq!(names(&mut rig), "(gust)\n(hot)\n(x)\n");
    rig.wait(60);
    assert_eq!(names(&mut rig), "(hot)\n(x)\n");
    assert!(rig.server.deadline().is_some());
}
