//! Time windows of queues and hosts: what they suspend, resume and hold back.

use super::*;

#[test]
fn run_windows_suspend_and_resume() {
    use crate::model::reason::{PendReason, susp};
    let mut c = conf();
    c.batch.queues[0].run_window = SHUT_SOON.into();
    let mut r = Rig::of(c.clone());
    let runs = r.submit(spec("x")).unwrap();
    let stopped = r.submit(spec("y")).unwrap();
    let late = r.submit(spec("z")).unwrap();
    let starts = r.starts();
    r.report(starts[0].0, starts[0].1, AttemptPhase::Running);
    r.report(starts[1].0, starts[1].1, AttemptPhase::Running);
    r.control(Verb::Stop, stopped);
    r.report(starts[1].0, starts[1].1, AttemptPhase::Suspended);
    assert_eq!((r.acts(), r.queue_row().window_closed), (vec![Act::Suspend], false));
    r.pass(40);
    assert_eq!((r.acts(), r.queue_row().window_closed), (vec![Act::Suspend], true));
    assert_eq!(r.phase(runs), state::Phase::Ssusp(susp::WINDOW));
    r.report(starts[0].0, starts[0].1, AttemptPhase::Suspended);
    assert_eq!((r.stat(runs, 0), r.stat(stopped, 0)), ("SSUSP", "USUSP"));
    // The start was under way: it follows when the host confirms it.
    r.report(starts[2].0, starts[2].1, AttemptPhase::Running);
    assert_eq!((r.acts(), r.stat(late, 0)), (vec![Act::Suspend], "SSUSP"));
    let waits = r.submit(spec("w")).unwrap();
    assert_eq!((r.starts().len(), r.reason(waits)), (0, PendReason::QueueWindow));
    // A user's bresume ends the user's stop, not the window's.
    r.control(Verb::Resume, stopped);
    assert_eq!((r.acts(), r.phase(stopped)), (vec![], state::Phase::Ssusp(susp::WINDOW)));
    r.control(Verb::Stop, runs);
    r.report(starts[0].0, starts[0].1, AttemptPhase::Suspended);
    assert_eq!(r.stat(runs, 0), "USUSP");
    r.acts();
    r.pass(TO_EIGHT);
    assert_eq!(r.acts(), [Act::Resume, Act::Resume]);
    r.report(starts[1].0, starts[1].1, AttemptPhase::Running);
    assert_eq!((r.stat(runs, 0), r.stat(stopped, 0)), ("USUSP", "RUN"));
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [waits]);
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    let again = Mbatchd::new(c, "h1", found);
    assert_eq!(again.state.job(late).unwrap().tally().ssusp, 1);
}

#[test]
fn a_job_outside_its_run_window_does_not_migrate() {
    use crate::model::job::opt;
    use crate::model::reason::susp;
    let mut c = conf();
    (c.batch.queues[0].run_window, c.batch.queues[0].mig) = (SHUT_SOON.into(), Some(0));
    let mut r = Rig::of(c);
    let spec = JobSpec { options: spec("x").options | opt::RERUNNABLE, ..spec("x") };
    let job = r.submit(spec).unwrap();
    let starts = r.starts();
    r.report(starts[0].0, starts[0].1, AttemptPhase::Running);
    r.pass(40);
    r.report(starts[0].0, starts[0].1, AttemptPhase::Suspended);
    r.pass(600);
    assert_eq!(r.phase(job), state::Phase::Ssusp(susp::WINDOW));
    assert_eq!(r.acts(), [Act::Suspend]);
}

#[test]
fn hosts_are_brought_in_line_with_run_windows() {
    let mut c = conf();
    c.batch.queues[0].run_window = SHUT_SOON.into();
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    r.step(Input::Closed { conn });
    r.pass(40);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "SSUSP"));
    // The host was never told, and says that the job runs.
    let conn = r.meet(key, AttemptPhase::Running);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![Act::Suspend], "SSUSP"));
    r.step(Input::Closed { conn });
    let conn = r.meet(key, AttemptPhase::Suspended);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "SSUSP"));
    r.step(Input::Closed { conn });
    // Back twice, ten seconds each.
    r.pass(TO_EIGHT - 20);
    let conn = r.meet(key, AttemptPhase::Suspended);
    assert_eq!(r.acts(), [Act::Resume]);
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "RUN"));
    // A site without windows has no deadline.
    r.step(Input::Config { conf: Some(Box::new(conf())), diags: vec![] });
    assert_eq!(r.mbd.windows.deadline(), None);
}

#[test]
fn dispatch_windows_hold_dispatch_alone() {
    use crate::model::reason::PendReason;
    let mut c = conf();
    c.batch.queues[0].dispatch_window = SHUT_SOON.into();
    let row = HostPolicy {
        name: "h2".into(),
        mxj: Mxj::Slots(9),
        dispatch_window: SHUT_SOON.into(),
        ..Default::default()
    };
    c.batch.hosts.hosts.push(row);
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    r.pass(40);
    assert_eq!((r.acts(), r.stat(id, 0), r.queue_row().window_closed), (vec![], "RUN", true));
    let waits = r.submit(spec("y")).unwrap();
    assert_eq!((r.starts().len(), r.reason(waits)), (0, PendReason::QueueWindow));
    let on = |host: &str, queue: &str| JobSpec {
        hosts: vec![host.into()],
        queue: queue.into(),
        ..spec("z")
    };
    let no = r.submit(on("h2", "high")).unwrap();
    assert!(r.mbd.reasons_of(no).iter().any(|w| w.0 == PendReason::HostWindow));
    assert_eq!(r.mbd.view().host_status(super::host(1)).text(), "closed_Wind");
    r.submit(on("h1", "high")).unwrap();
    assert_eq!(r.starts().len(), 1);
    r.pass(TO_EIGHT);
    assert_eq!(r.starts().len(), 2);
    assert_eq!(r.mbd.view().host_status(super::host(1)).text(), "ok");
}

/// bswitch of a started job: the run windows of the new queue act at once.
#[test]
fn a_started_job_that_is_switched_is_as_the_windows_of_its_new_queue_want_it() {
    use crate::model::reason::susp;
    let mut c = conf();
    c.batch.queues[0].run_window = SHUT_SOON.into();
    let mut r = Rig::of(c.clone());
    let shut = r.submit(spec("x")).unwrap();
    let open = r.submit(JobSpec { queue: "high".into(), ..spec("y") }).unwrap();
    let array = JobSpec { name: "a[1-2]".into(), hosts: vec!["h2".into()], ..spec("z") };
    let array = r.submit(JobSpec { queue: "high".into(), ..array }).unwrap();
    let starts = r.starts();
    starts.iter().for_each(|(conn, key)| r.report(*conn, *key, AttemptPhase::Running));
    let of = |job, idx| *starts.iter().find(|s| (s.1.job, s.1.idx) == (job, idx)).unwrap();
    r.pass(40);
    let (conn, key) = of(shut, 0);
    r.report(conn, key, AttemptPhase::Suspended);
    assert_eq!((r.acts(), r.stat(shut, 0)), (vec![Act::Suspend], "SSUSP"));
    let to = |r: &mut Rig, queue: &str, job, elems: Vec<(u32, u32, u32)>| {
        let verb = Verb::Switch { queue: queue.into() };
        let said = r.does_to(USER, verb, IdSel { job, elems });
        assert!(said.iter().all(|o| o.code == 0), "{said:?}");
    };
    // from closed to open: it goes on
    to(&mut r, "high", shut, vec![]);
    assert_eq!(r.acts(), [Act::Resume]);
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!(r.stat(shut, 0), "RUN");
    // from open to closed: it is suspended, for that reason
    to(&mut r, "normal", open, vec![]);
    assert_eq!((r.acts(), r.phase(open)), (vec![Act::Suspend], state::Phase::Ssusp(susp::WINDOW)));
    // the element named alone
    to(&mut r, "normal", array, vec![(2, 2, 1)]);
    assert_eq!((r.acts(), r.stat(array, 1)), (vec![Act::Suspend], "RUN"));
    assert_eq!(r.stat(array, 2), "SSUSP");
    to(&mut r, "high", array, vec![(2, 2, 1)]);
    let (conn, key) = of(array, 2);
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!((r.acts(), r.stat(array, 2)), (vec![Act::Resume], "RUN"));
    // whoever was stopped by its owner stays so, and waits for the windows when it is resumed
    let (conn, key) = of(array, 1);
    r.control(Verb::Stop, array);
    r.report(conn, key, AttemptPhase::Suspended);
    r.acts();
    to(&mut r, "normal", array, vec![(1, 1, 1)]);
    assert_eq!((r.acts(), r.stat(array, 1)), (vec![], "USUSP"));
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    let again = Mbatchd::new(c, "h1", found);
    assert_eq!(again.state.job(open).unwrap().tally().ssusp, 1);
}

/// TERMINATE_WHEN=WINDOW of the new queue ends it.
#[test]
fn a_started_job_that_is_switched_to_a_closed_queue_ends_where_its_windows_end_jobs() {
    use crate::model::reason::term;
    let mut c = conf();
    c.batch.queues[1].run_window = SHUT_SOON.into();
    c.batch.queues[1].terminate_when = Some("WINDOW".into());
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    r.pass(40);
    assert_eq!(r.acts(), []);
    r.control(Verb::Switch { queue: "high".into() }, id);
    assert_eq!(r.acts(), [Act::Terminate { exit_info: term::WINDOW }]);
}
