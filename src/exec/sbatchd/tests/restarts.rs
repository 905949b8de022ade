//! sbatchd, the launcher, LIM or the host go away and come back: what is known then, what is told.
//! Everything whose subject is no loss of a neighbour is in orders.rs or limits.rs.

use super::*;
use crate::model::job_control::JobControls;

#[test]
fn a_new_sbatchd_goes_on_where_the_old_one_stopped() {
    let mut r = Rig::new();
    r.template.ignores = vec![SIGINT];
    let limits = Limits { run: Some(100), ..Limits::default() };
    r.start(StartJob { limits, ..order(1) });
    r.start(order(2));
    r.start(order(3));
    let (one, two, three) = (501, 502, 503);
    r.act(2, 4, Act::Terminate { exit_info: term::OWNER });
    r.act(3, 1, Act::Suspend);
    r.told.clear();
    r.crash();
    r.wait(5);
    // one ends while nobody looks
    r.exits(one, 7 << 8);
    r.wait(5);
    r.boot(true);
    r.greet(1);
    let states = r.states();
    let phase = |n: u32| states.iter().rev().find(|s| s.key.job == n).map(|s| s.phase.clone());
    assert_eq!(phase(1), Some(ended(7 << 8, 0)));
    assert_eq!((phase(2), phase(3)), (Some(AttemptPhase::Running), Some(AttemptPhase::Suspended)));
    let one = states.iter().rev().find(|s| s.key.job == 1).unwrap();
    assert_eq!(one.time, 1_000_005);
    assert_eq!(r.job_starts(), 3);
    // an order seen before is old; the kill goes on
    r.act(2, 4, Act::Terminate { exit_info: term::ADMIN });
    assert_eq!(r.procs[&two].signals, [SIGINT]);
    r.wait(11);
    assert_eq!(r.last(), ended(15, term::OWNER));
    r.act(3, 2, Act::Resume);
    assert_eq!(r.procs[&three].signals, [SIGSTOP, SIGCONT]);
}

#[test]
fn a_new_sbatchd_waits_for_the_launcher_before_it_tells() {
    let mut r = Rig::new();
    r.start(order(1));
    r.told.clear();
    r.crash();
    let mut sbd = Sbatchd::new(conf(true));
    let mut out = vec![];
    sbd.step(r.now, Input::Start, &mut out);
    let peer = Peer::Daemon { daemon: Daemon::Mbatchd, host: "m".into() };
    sbd.step(r.now, Input::Opened { conn: MBD, peer }, &mut out);
    let params = SbdParams::default();
    let msg = Msg::Sbd(SbdMsg::Hello { epoch: 1, cluster: "c".into(), params, pieces: true });
    sbd.step(r.now, Input::Msg { conn: MBD, msg }, &mut out);
    assert!(!out.iter().any(|e| matches!(e, Effect::Send { conn: MBD, .. })), "{out:?}");
}

#[test]
fn a_lost_launcher_makes_ends_unknown() {
    let mut r = Rig::new();
    r.start(order(1));
    r.start(order(2));
    r.told.clear();
    // the launcher dies, its journal stays; job 2 ends meanwhile
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    r.procs.remove(&502);
    let journal = std::mem::take(&mut r.journal);
    r.lau = Launcher::new(launcher_conf(), journal);
    r.feed_launcher(Input::Start);
    r.wait(2);
    let end = AttemptPhase::Ended { end: End::Unknown, exit_info: term::LOST_STATUS };
    assert_eq!(r.last(), end);
    r.act(1, 1, Act::Signal { number: 10 });
    r.wait(1);
    assert_eq!(r.last(), end, "job 1 was not our child");
    assert_eq!(r.job_starts(), 2);
    // one that lost its journal too
    r.start(order(3));
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    r.lau = Launcher::new(launcher_conf(), vec![]);
    r.feed_launcher(Input::Start);
    r.wait(1);
    assert_eq!(r.last(), end);
}

#[test]
fn orders_wait_while_the_launcher_is_away() {
    let mut r = Rig::new();
    r.start(order(1));
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    r.feed_launcher(Input::Closed { conn: UP });
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    r.start(order(2));
    assert_eq!(r.job_starts(), 1);
    r.wait(1);
    assert_eq!(r.job_starts(), 2);
    let states = r.states();
    assert!(states.iter().any(|s| s.phase == ended(SIGINT, term::OWNER)));
}

/// The launcher dies, and another one goes on by its journal.
pub(super) fn launcher_dies(r: &mut Rig) {
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    r.lau = Launcher::new(launcher_conf(), r.journal.clone());
    r.feed_launcher(Input::Start);
    r.wait(2);
}

#[test]
fn stop_signal_that_a_dying_launcher_has_not_taken_is_sent_to_the_next() {
    let usr = JobControls::parse("RESUME[USR1]").unwrap();
    for (controls, resumes) in [(JobControls::default(), SIGCONT), (usr, 10)] {
        let mut r = Rig::new();
        r.template.ignores = vec![10];
        r.start(StartJob { controls, ..order(1) });
        let pid = r.pid();
        r.act(1, 1, Act::Suspend);
        // what was answered is not repeated
        launcher_dies(&mut r);
        assert_eq!(r.procs[&pid].signals, [SIGSTOP]);
        // it dies before this comes to it
        r.linked = false;
        r.act(1, 2, Act::Resume);
        assert_eq!(r.last(), AttemptPhase::Running);
        launcher_dies(&mut r);
        assert_eq!(r.procs[&pid].signals, [SIGSTOP, resumes]);
        launcher_dies(&mut r);
        assert_eq!(r.procs[&pid].signals, [SIGSTOP, resumes]);
        // of several the last one counts
        r.linked = false;
        r.act(1, 3, Act::Suspend);
        r.act(1, 4, Act::Resume);
        launcher_dies(&mut r);
        assert_eq!(r.procs[&pid].signals, [SIGSTOP, resumes, resumes]);
    }
}

#[test]
fn mbatchd_runs_on_the_master_host_alone() {
    let mut r = Rig::new();
    assert!(!r.runs_mbatchd, "no LIM: the first candidate is another host");
    let lim = |master: &str| Input::Msg {
        conn: LIM,
        msg: Msg::Lim(LimMsg::Master { cluster: "c".into(), master: master.into() }),
    };
    let peer = Peer::Daemon { daemon: Daemon::Lim, host: "h1".into() };
    r.feed(Input::Opened { conn: LIM, peer });
    r.feed(lim(""));
    r.feed(lim("m"));
    assert!(!r.runs_mbatchd);
    r.feed(lim("h1"));
    assert!(r.runs_mbatchd);
    r.feed(lim("m"));
    assert!(!r.runs_mbatchd);
    // a LIM that is soon back changes nothing, one that stays away does
    r.feed(lim("h1"));
    r.feed(Input::Closed { conn: LIM });
    r.wait(3);
    assert!(r.runs_mbatchd);
    r.wait(3);
    assert!(!r.runs_mbatchd);
}

#[test]
fn an_order_for_an_earlier_boot_never_runs() {
    let mut r = Rig::new();
    r.start(StartJob { boot: "b".into(), ..order(1) });
    assert_eq!(r.job_starts(), 1);
    r.told.clear();
    r.start(StartJob { boot: "before".into(), ..order(2) });
    let end = AttemptPhase::Ended { end: End::Unknown, exit_info: term::HOST_RESTART };
    assert_eq!((r.job_starts(), r.last()), (1, end));
}
