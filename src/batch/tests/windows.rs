//! Time windows of queues and hosts: what they suspend, resume and hold back.

use super::*;

#[test]
fn run_windows_suspend_and_resume() {
    use crate::model::reason::{pend, susp};
    let mut c = conf();
    c.batch.queues[0].run_window = SHUT_SOON.into();
    let mut r = Rig::of(c.clone());
    let runs = r.submit(spec("x")).unwrap();
    let stopped = r.submit(spec("y")).unwrap();
    let late = r.submit(spec("z")).unwrap();
    let starts = r.starts();
    r.report(starts[0].0, starts[0].1, Phase::Running);
    r.report(starts[1].0, starts[1].1, Phase::Running);
    r.control(Verb::Stop, stopped);
    r.report(starts[1].0, starts[1].1, Phase::Suspended);
    assert_eq!((r.acts(), r.queue_row().window_closed), (vec![Act::Suspend], false));
    r.pass(40);
    assert_eq!((r.acts(), r.queue_row().window_closed), (vec![Act::Suspend], true));
    assert_eq!(r.phase(runs), state::Phase::Ssusp(susp::WINDOW));
    r.report(starts[0].0, starts[0].1, Phase::Suspended);
    assert_eq!((r.stat(runs, 0), r.stat(stopped, 0)), ("SSUSP", "USUSP"));
    // The start was under way: it follows when the host confirms it.
    r.report(starts[2].0, starts[2].1, Phase::Running);
    assert_eq!((r.acts(), r.stat(late, 0)), (vec![Act::Suspend], "SSUSP"));
    let waits = r.submit(spec("w")).unwrap();
    assert_eq!((r.starts().len(), r.reason(waits)), (0, pend::QUEUE_WINDOW));
    // A user's bresume ends the user's stop, not the window's.
    r.control(Verb::Resume, stopped);
    assert_eq!((r.acts(), r.phase(stopped)), (vec![], state::Phase::Ssusp(susp::WINDOW)));
    r.control(Verb::Stop, runs);
    r.report(starts[0].0, starts[0].1, Phase::Suspended);
    assert_eq!(r.stat(runs, 0), "USUSP");
    r.acts();
    r.pass(TO_EIGHT);
    assert_eq!(r.acts(), [Act::Resume, Act::Resume]);
    r.report(starts[1].0, starts[1].1, Phase::Running);
    assert_eq!((r.stat(runs, 0), r.stat(stopped, 0)), ("USUSP", "RUN"));
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [waits]);
    let found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    let again = Mbd::new(c, "h1", found);
    assert_eq!(again.st.job(late).unwrap().tally.ssusp, 1);
}

#[test]
fn hosts_are_brought_in_line_with_run_windows() {
    let mut c = conf();
    c.batch.queues[0].run_window = SHUT_SOON.into();
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
    r.step(Input::Closed { conn });
    r.pass(40);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "SSUSP"));
    // The host was never told, and says that the job runs.
    let conn = r.meet(key, Phase::Running);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![Act::Suspend], "SSUSP"));
    r.step(Input::Closed { conn });
    let conn = r.meet(key, Phase::Suspended);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "SSUSP"));
    r.step(Input::Closed { conn });
    // Back twice, ten seconds each.
    r.pass(TO_EIGHT - 20);
    let conn = r.meet(key, Phase::Suspended);
    assert_eq!(r.acts(), [Act::Resume]);
    r.report(conn, key, Phase::Running);
    assert_eq!((r.acts(), r.stat(id, 0)), (vec![], "RUN"));
    // Without windows nothing is due.
    r.step(Input::Config { conf: Some(Box::new(conf())), diags: vec![] });
    assert_eq!(r.mbd.shut.deadline(), None);
}

#[test]
fn dispatch_windows_hold_dispatch_alone() {
    use crate::model::reason::pend;
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
    r.report(conn, key, Phase::Running);
    r.pass(40);
    assert_eq!((r.acts(), r.stat(id, 0), r.queue_row().window_closed), (vec![], "RUN", true));
    let waits = r.submit(spec("y")).unwrap();
    assert_eq!((r.starts().len(), r.reason(waits)), (0, pend::QUEUE_WINDOW));
    let on = |host: &str, queue: &str| JobSpec {
        hosts: vec![host.into()],
        queue: queue.into(),
        ..spec("z")
    };
    let no = r.submit(on("h2", "high")).unwrap();
    assert!(r.mbd.sched.reasons(no).iter().any(|w| w.0 == pend::HOST_WINDOW));
    assert_eq!(r.mbd.host_status(1).text(), "closed_Wind");
    r.submit(on("h1", "high")).unwrap();
    assert_eq!(r.starts().len(), 1);
    r.pass(TO_EIGHT);
    assert_eq!(r.starts().len(), 2);
    assert_eq!(r.mbd.host_status(1).text(), "ok");
}
