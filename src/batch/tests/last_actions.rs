//! bkill, bstop and bresume: the recorded reasons and hosts, and the records of the jobs that they
//! end.

use super::*;
use crate::batch::state::last_actions::ControlAction;
use crate::model::reason::term;

fn of(job: u32) -> JobSelect {
    JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..JobSelect::default() }
}

fn acted(r: &mut Rig, conn: ConnId, c: Control) -> Vec<i32> {
    match r.ask(conn, ClientMsg::Control(Box::new(c))) {
        Some(Msg::Client(ClientMsg::Controlled { outcomes, .. })) => {
            outcomes.iter().map(|o| o.code).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn why(verb: Verb, job: u32, reason: &str) -> Control {
    Control { reason: reason.into(), ..Control::of(verb, of(job)) }
}

fn last(m: &Mbatchd, job: u32, idx: u32, action: ControlAction) -> Option<(String, String)> {
    let (host, reason) = m.state.last_actions().last(JobRef { job, idx }, action)?;
    Some((m.state.names().host(host).to_string(), reason.to_string()))
}

fn said(host: &str, reason: &str) -> Option<(String, String)> {
    Some((host.into(), reason.into()))
}

#[test]
fn reasons_and_hosts_outlive_a_restart() {
    let mut r = Rig::new();
    let peer = Peer::User { uid: 1001, gid: 1001, user: "ann".into(), host: "h2".into() };
    let there = crate::proto::machine::INCOMING + 9;
    r.step(Input::Opened { conn: there, peer });
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!(acted(&mut r, USER, why(Verb::Stop, id, "the disk is full")), [0]);
    r.report(conn, key, AttemptPhase::Suspended);
    assert_eq!(acted(&mut r, there, why(Verb::Resume, id, "")), [0]);
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!(acted(&mut r, ADMIN, why(Verb::Kill, id, "say \"no\"\nmore")), [0]);
    // what waits as well
    let later = r.submit(JobSpec { begin_time: i64::MAX, ..spec("y") }).unwrap();
    assert_eq!(acted(&mut r, there, why(Verb::Stop, later, "not yet")), [0]);
    assert_eq!(acted(&mut r, USER, why(Verb::Resume, later, "now")), [0]);
    assert_eq!(last(&r.mbd, id, 0, ControlAction::Kill), said("h1", "say \"no\"\nmore"));
    for m in [&r.mbd, &r.restarted()] {
        assert_eq!(last(m, id, 0, ControlAction::Suspend), said("h1", "the disk is full"));
        assert_eq!(last(m, id, 0, ControlAction::Resume), said("h2", ""));
        assert_eq!(last(m, later, 0, ControlAction::Suspend), said("h2", "not yet"));
        assert_eq!(last(m, later, 0, ControlAction::Resume), said("h1", "now"));
        assert_eq!(last(m, later, 0, ControlAction::Kill), None);
    }
    // a text of the log is one line
    assert_eq!(last(&r.restarted(), id, 0, ControlAction::Kill), said("h1", "say \"no\";more"));
    r.report(conn, key, AttemptPhase::Ended { end: End::Status(9), exit_info: 0 });
    assert!(last(&r.mbd, id, 0, ControlAction::Kill).is_some(), "as long as it is known");
    let long = "x".repeat(MAX_REASON + 1);
    let answer = r.ask(USER, ClientMsg::Control(Box::new(why(Verb::Kill, later, &long))));
    assert!(matches!(answer, Some(Msg::Refused(r)) if r.code == err::BAD_ARG));
    assert_eq!(r.stat(later, 0), "PEND");
    assert_eq!(acted(&mut r, USER, why(Verb::Kill, later, &long[1..])), [0]);
    r.now.mono_us += 7200 * 1_000_000;
    r.now.wall_us += 7200 * 1_000_000;
    r.step(Input::Tick);
    assert!(r.mbd.state.job(id).is_none() && r.mbd.state.job(later).is_none());
    assert!(last(&r.mbd, id, 0, ControlAction::Kill).is_none());
}

#[test]
fn killed_job_counts_as_done_with_bkill_d() {
    let mut r = Rig::new();
    let as_done = |job| Control { done: true, ..Control::of(Verb::Kill, of(job)) };
    let id = r.submit(spec("x")).unwrap();
    let next = r.submit(JobSpec { depend: format!("done({id})"), ..spec("y") }).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!(acted(&mut r, USER, as_done(id)), [0]);
    let killed = AttemptPhase::Ended { end: End::Status(9), exit_info: term::OWNER };
    r.reread();
    r.report(conn, key, killed.clone());
    assert_eq!(r.stat(id, 0), "DONE");
    assert_eq!((r.acct[0].status.bits(), r.acct[0].exit_info), (0x40, term::OWNER));
    assert_eq!(r.starts()[0].1.job, next);
    // with -r or a signal it is as ever
    let other = r.submit(spec("z")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let usr = Verb::Signal { number: 9, name: "KILL".into() };
    assert_eq!(acted(&mut r, USER, Control { done: true, ..Control::of(usr, of(other)) }), [0]);
    r.report(conn, key, killed);
    assert_eq!(r.stat(other, 0), "EXIT");
    let waits = r.submit(JobSpec { begin_time: i64::MAX, ..spec("w") }).unwrap();
    assert_eq!(acted(&mut r, USER, as_done(waits)), [0]);
    assert_eq!(r.stat(waits, 0), "DONE");
}

#[test]
fn the_name_that_a_client_gives_to_a_signal_makes_no_other_action_of_it() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    for name in ["REQUEUE_PEND", "SIG_TERM_LOAD", "KILL", "DELETEJOB", "CONT"] {
        let signal = Verb::Signal { number: 12, name: name.into() };
        assert_eq!(acted(&mut r, USER, Control::of(signal, of(id))), [0]);
        assert_eq!(r.acts(), [Act::Signal { number: 12 }]);
        let run = |state: &crate::batch::state::State| {
            let run =
                state.elem(JobRef { job: id, idx: 0 }).and_then(|e| e.run().cloned()).unwrap();
            (run.killed, run.requeue.is_some(), run.soft.asked)
        };
        assert_eq!(run(&r.mbd.state), (None, false, None), "{name}");
        assert_eq!(run(&r.restarted().state), (None, false, None), "{name}");
        assert_eq!(last(&r.mbd, id, 0, ControlAction::Kill), None, "{name}");
    }
}

#[test]
fn pending_jobs_go_at_once_when_many_are_killed() {
    let mut r = Rig::new();
    let hold = JobSpec { begin_time: i64::MAX, ..spec("x") };
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let array = r.submit(JobSpec { name: "a[1-3]".into(), ..hold.clone() }).unwrap();
    let named = r.submit(hold.clone()).unwrap();
    let waits = JobSpec { depend: format!("ended({named})"), ..spec("y") };
    let Some(Msg::Client(ClientMsg::Submitted { job: his, .. })) = r.ask(
        ADMIN,
        ClientMsg::Submit(Box::new(Submit { spec: hold.clone(), ..Submit::default() })),
    ) else {
        panic!()
    };
    r.submit(waits).unwrap();
    let bulk = |select| Control { bulk: true, ..Control::of(Verb::Kill, select) };
    let all = JobSelect { all: true, ..JobSelect::default() };
    // of somebody else: passed over
    assert_eq!(acted(&mut r, USER, bulk(of(his))), [err::PERMISSION]);
    assert_eq!(acted(&mut r, USER, bulk(of(array))), [0]);
    assert!(r.mbd.state.job(array).is_none());
    let ends: Vec<_> = r.acct.iter().map(|f| (f.at.job, f.at.idx, f.exit_info)).collect();
    assert_eq!(ends, [1, 2, 3].map(|idx| (array, idx, term::BUCKET_KILL)));
    acted(&mut r, USER, bulk(JobSelect { ids: of(named).ids, ..all.clone() }));
    assert_eq!(r.stat(named, 0), "EXIT", "another waits for it");
    assert_eq!(acted(&mut r, USER, bulk(of(id))), [0]);
    r.reread();
    assert!(r.mbd.state.job(array).is_none());
    r.report(conn, key, AttemptPhase::Ended { end: End::Status(9), exit_info: 0 });
    assert_eq!(r.stat(id, 0), "EXIT");
    assert_eq!(r.acct.last().unwrap().exit_info, term::BUCKET_KILL);
}

#[test]
fn a_bulk_kill_whose_answer_was_lost_says_after_a_restart_too_what_it_did() {
    let mut r = Rig::new();
    let hold = JobSpec { begin_time: i64::MAX, ..spec("x") };
    let job = r.submit(hold.clone()).unwrap();
    let array = r.submit(JobSpec { name: "a[1-3]".into(), ..hold }).unwrap();
    for id in [job, array] {
        let kill = || {
            let request = format!("kill of {id}");
            Control { bulk: true, request, ..Control::of(Verb::Kill, of(id)) }
        };
        assert_eq!(acted(&mut r, USER, kill()), [0]);
        assert!(r.mbd.state.job(id).is_none());
        assert_eq!(acted(&mut r, USER, kill()), [0], "{id}");
        r.reread();
        assert_eq!(acted(&mut r, USER, kill()), [0], "{id} after a restart");
    }
}

#[test]
fn states_narrow_what_is_meant() {
    let mut r = Rig::new();
    let run = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let array = r.submit(JobSpec { name: "a[1-3]".into(), ..spec("y") }).unwrap();
    let starts = r.starts();
    assert_eq!(starts.len(), 3);
    let (conn, key) = starts[0];
    r.report(conn, key, AttemptPhase::Running);
    acted(
        &mut r,
        USER,
        Control::of(Verb::Stop, {
            let elems = vec![(key.idx, key.idx, 1)];
            JobSelect { ids: vec![IdSel { job: array, elems }], ..JobSelect::default() }
        }),
    );
    r.report(conn, key, AttemptPhase::Suspended);
    let wait = r.submit(JobSpec { begin_time: i64::MAX, ..spec("z") }).unwrap();
    let mut of_states = |states| {
        let select = JobSelect { all: true, states, ..JobSelect::default() };
        let c = Control::of(Verb::Signal { number: 10, name: "USR1".into() }, select);
        match r.ask(USER, ClientMsg::Control(Box::new(c))) {
            Some(Msg::Client(ClientMsg::Controlled { outcomes, .. })) => {
                outcomes.iter().map(|o| (o.id.job, o.id.idx)).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    let none = Which::default();
    assert_eq!(of_states(Which { susp: true, ..none }), [(array, key.idx)]);
    assert_eq!(of_states(Which { pend: true, ..none }), [(wait, 0)]);
    let mut running = of_states(Which { run: true, ..none });
    running.sort_unstable();
    let rest = [1, 2, 3].into_iter().filter(|idx| *idx != key.idx).map(|idx| (array, idx));
    let mut want: Vec<_> = [(run, 0)].into_iter().chain(rest).collect();
    want.sort_unstable();
    assert_eq!(running, want);
    // all of an array is the array
    let mut every = of_states(Which { all: true, ..none });
    every.sort_unstable();
    assert_eq!(every, [(run, 0), (array, 0), (wait, 0)]);
    // also of those that are named
    let states = Which { run: true, ..none };
    let named = |job| Control::of(Verb::Stop, JobSelect { states, ..of(job) });
    assert_eq!(acted(&mut r, USER, named(wait)), [err::NO_JOB]);
    assert_eq!(acted(&mut r, USER, named(array)), [0, 0]);
    let (conn, key) = starts[1];
    r.report(conn, key, done());
    let ended =
        JobSelect { all: true, states: Which { done: true, ..none }, ..JobSelect::default() };
    let c = Control::of(Verb::Stop, ended);
    assert_eq!(acted(&mut r, USER, c), [err::JOB_FINISH]);
}

#[test]
fn job_stopped_by_an_administrator_is_resumed_by_administrators_alone() {
    let mut r = Rig::new();
    let run = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let wait = r.submit(JobSpec { begin_time: i64::MAX, ..spec("z") }).unwrap();
    for id in [run, wait] {
        assert_eq!(r.does(USER, Verb::Stop, id).code, 0);
    }
    r.report(conn, key, AttemptPhase::Suspended);
    for id in [run, wait] {
        assert_eq!(r.does(ADMIN, Verb::Stop, id).code, 0);
    }
    r.report(conn, key, AttemptPhase::Suspended);
    r.reread();
    assert_eq!((r.stat(run, 0), r.stat(wait, 0)), ("USUSP", "PSUSP"));
    for id in [run, wait] {
        assert_eq!(r.does(USER, Verb::Resume, id).code, err::PERMISSION);
    }
    // the owner's stop does not give it back
    for id in [run, wait] {
        assert_eq!(r.does(USER, Verb::Stop, id).code, 0);
        assert_eq!(r.does(USER, Verb::Resume, id).code, err::PERMISSION);
    }
    for id in [run, wait] {
        assert_eq!(r.does(ADMIN, Verb::Resume, id).code, 0);
    }
}

#[test]
fn removing_may_be_the_administrators_matter() {
    let mut c = conf();
    c.batch.params.force_kill_by_admins = true;
    let mut r = Rig::of(c);
    let (mine, other) = (r.submit(spec("x")).unwrap(), r.submit(spec("y")).unwrap());
    for (conn, key) in r.starts() {
        r.report(conn, key, AttemptPhase::Running);
    }
    // the owner's is a kill as any other: the job is there until its host tells of its end
    assert_eq!(r.does(USER, Verb::Remove, mine).code, 0);
    assert_eq!(
        (r.stat(mine, 0), r.acts()),
        ("RUN", vec![Act::Terminate { exit_info: term::OWNER }])
    );
    assert_eq!(r.does(ADMIN, Verb::Remove, other).code, 0);
    assert_eq!(r.stat(other, 0), "EXIT");
}

#[test]
fn brequeue_means_the_states_that_it_names() {
    let mut r = Rig::new();
    let ended = |r: &mut Rig, status| {
        let id = r.submit(spec("x")).unwrap();
        let (conn, key) = r.starts()[0];
        r.report(conn, key, AttemptPhase::Ended { end: End::Status(status), exit_info: 0 });
        id
    };
    let (fine, failed) = (ended(&mut r, 0), ended(&mut r, 256));
    let run = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let wait = r.submit(JobSpec { begin_time: i64::MAX, ..spec("z") }).unwrap();
    let asked = |r: &mut Rig, which, all| {
        let select = JobSelect { all, ..JobSelect::default() };
        match r.ask(USER, ClientMsg::Control(Box::new(Control::of(Verb::Requeue(which), select)))) {
            Some(Msg::Client(ClientMsg::Controlled { outcomes, .. })) => {
                outcomes.iter().map(|o| (o.id.job, o.code)).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    let none = Requeue { hold: true, ..Requeue::default() };
    assert_eq!(asked(&mut r, Requeue { pend: true, ..none }, true), [(wait, err::NOT_STARTED)]);
    // the last one of the state, not the last one of all
    assert_eq!(asked(&mut r, Requeue { exit: true, ..none }, false), [(failed, 0)]);
    assert_eq!(asked(&mut r, Requeue { exit: true, ..none }, true), []);
    assert_eq!(asked(&mut r, Requeue { done: true, exit: true, ..none }, true), [(fine, 0)]);
    assert_eq!(asked(&mut r, none, true), [(run, 0)]);
}
