//! One job from submission to its end: what the log keeps of it, what a lost link, a restarted
//! host or a log that cannot be written do to it. Where jobs go is in dispatch.rs.

use super::*;

#[test]
fn a_job_runs_and_its_history_replays() {
    let mut r = Rig::new();
    let id = r.submit(spec("true")).unwrap();
    let (conn, key) = r.starts()[0];
    assert_eq!(key, JobKey { job: id, idx: 0, attempt: 1 });
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!(r.stat(id, 0), "RUN");
    r.report(conn, key, done());
    r.report(conn, key, done());
    assert_eq!(r.stat(id, 0), "DONE");
    assert_eq!(r.acct.len(), 1);
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    let again = Mbatchd::new(conf(), "h1", found);
    assert_eq!(again.state.job(id).unwrap().tally().done, 1);
    assert_eq!(again.state.next_job(), r.mbd.state.next_job());
}

#[test]
fn a_retry_gets_the_first_answer() {
    let mut r = Rig::new();
    let s = Submit { request: "abc".into(), spec: spec("true"), ..Default::default() };
    let first = r.ask(USER, ClientMsg::Submit(Box::new(s.clone())));
    let second = r.ask(USER, ClientMsg::Submit(Box::new(s.clone())));
    let id = |m: Option<Msg>| match m {
        Some(Msg::Client(ClientMsg::Submitted { job, .. })) => job,
        other => panic!("{other:?}"),
    };
    assert_eq!(id(first), id(second));
    assert!(matches!(r.ask(OTHER, ClientMsg::Submit(Box::new(s))), Some(Msg::Refused(_))));
}

#[test]
fn a_lost_link_resends_what_was_not_confirmed() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.step(Input::Closed { conn });
    r.now.mono_us += 10_000_000;
    r.step(Input::Tick);
    r.connect();
    let again = r.starts();
    assert_eq!(again.iter().map(|s| s.1).collect::<Vec<_>>(), [key]);
    assert_eq!(r.stat(id, 0), "RUN");
}

#[test]
fn a_restarted_host_means_an_unknown_end() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    r.step(Input::Closed { conn });
    r.now.mono_us += 10_000_000;
    r.step(Input::Tick);
    let dialled = std::mem::take(&mut r.dialled);
    let (conn, _) = dialled[0].clone();
    let Endpoint::Tcp { host, daemon } = dialled[0].1.clone() else { panic!() };
    r.step(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
    let msg = SbdMsg::Inventory {
        boot_id: "other".into(),
        tasks: vec![],
        more: false,
        members: None,
        validates: false,
        unjoined: Vec::new(),
        member_slots: Vec::new(),
    };
    r.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
    assert_eq!(r.stat(id, 0), "EXIT");
    assert!(r.starts().is_empty());
}

#[test]
fn a_log_that_cannot_be_written_refuses_and_keeps() {
    use crate::model::reason::err;
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    let found = Recovered { records: r.log.clone(), epoch: 1, ..Default::default() };
    r.mbd.reload(found);
    r.step(Input::LogFailed { why: "no space".into() });
    assert_eq!(r.submit(spec("y")).map_err(|e| e.code), Err(err::LOG_FULL));
    r.report(conn, key, done());
    assert_eq!(r.stat(id, 0), "RUN");
    r.step(Input::LogBack);
    r.now.mono_us += 1_000_000;
    r.step(Input::Tick);
    assert!(!r.dialled.is_empty());
    assert!(r.submit(spec("y")).is_ok());
}

#[test]
fn a_cleaned_job_stays_gone_though_its_end_is_lost_from_the_log() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let mut records = r.log.clone();
    let event = Event::JobClean { at: JobRef { job: id, idx: 0 } };
    records.push(Record { time: 1_700_000_900, event });
    let found = Recovered { records, seen_ids: vec![id], epoch: 2, ..Default::default() };
    let again = Mbatchd::new(conf(), "h1", found);
    assert!(again.state.job(id).is_none());
    assert!(again.state.is_reserved(id));
}

#[test]
fn an_environment_may_be_named_by_its_hash_where_it_is_kept() {
    use crate::proto::client::env_hash;
    let mut r = Rig::new();
    let env = ByteStr::from("A=1\0B=2\0");
    let whole = Submit { spec: spec("x"), env: env.clone(), ..Default::default() };
    let named = Submit { spec: spec("y"), env_hash: env_hash(&env), ..Default::default() };
    let ask = |r: &mut Rig, conn, s: &Submit| match r.ask(conn, ClientMsg::Submit(s.clone().into()))
    {
        Some(Msg::Client(ClientMsg::Submitted { job, env_kept: true, .. })) => Ok(job),
        Some(Msg::Refused(refusal)) => Err(refusal.code),
        other => panic!("{other:?}"),
    };
    assert_eq!(ask(&mut r, USER, &named), Err(err::ENV_GONE));
    let first = ask(&mut r, USER, &whole).unwrap();
    let second = ask(&mut r, USER, &named).unwrap();
    let at = |r: &Rig, job| r.mbd.state.job(job).map(|j| j.env);
    assert!(at(&r, first).is_some_and(|at| at.len == env.len() as u32));
    assert_eq!(at(&r, first), at(&r, second));
    assert_eq!(ask(&mut r, OTHER, &named), Err(err::ENV_GONE), "another user's");
    r.mbd.reload(Recovered::default());
    assert_eq!(ask(&mut r, USER, &named), Err(err::ENV_GONE), "of the run before");
}

#[test]
fn jobs_of_a_kind_share_what_they_were_submitted_with() {
    let mut r = Rig::new();
    let ids: Vec<u32> = (0..3).map(|_| r.submit(spec("x")).unwrap()).collect();
    let other = r.submit(spec("y")).unwrap();
    let again = r.submit(spec("x")).unwrap();
    let of = |r: &Rig, id| r.mbd.state.job(id).unwrap().spec.clone();
    assert!(ids.iter().all(|id| std::sync::Arc::ptr_eq(&of(&r, *id), &of(&r, again))));
    assert!(!std::sync::Arc::ptr_eq(&of(&r, other), &of(&r, again)));
    let select =
        JobSelect { ids: vec![IdSel { job: again, elems: vec![] }], ..JobSelect::default() };
    let msg = Control::of(Verb::Switch { queue: "high".into() }, select);
    r.ask(USER, ClientMsg::Control(Box::new(msg)));
    assert_eq!((of(&r, again).queue.as_str(), of(&r, ids[0]).queue.as_str()), ("high", "normal"));
}

#[test]
fn of_a_chain_nothing_is_taken_behind_the_first_that_is_refused() {
    let mut r = Rig::new();
    let mut say = |conn: ConnId, chain: u32, queue: &str, request: &str| {
        let s = Submit {
            spec: JobSpec { queue: queue.into(), ..spec("x") },
            request: request.into(),
            chain,
            ..Submit::default()
        };
        match r.ask(conn, ClientMsg::Submit(Box::new(s))) {
            Some(Msg::Client(ClientMsg::Submitted { .. })) => 0,
            Some(Msg::Refused(why)) => why.code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(say(USER, 1, "", "a"), 0);
    assert_eq!(say(USER, 1, "nosuch", "b"), err::BAD_QUEUE);
    assert_eq!(say(USER, 1, "", "c"), err::CHAIN);
    assert_eq!(say(USER, 1, "", "a"), 0, "one that is known gets its answer");
    assert_eq!(say(OTHER, 1, "", "d"), 0, "of another connection");
    assert_eq!((say(USER, 0, "", "e"), say(USER, 2, "", "f")), (0, 0));
}
