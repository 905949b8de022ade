//! The usual signal that suspends a job: SIGSTOP, SIGTSTP or that of LSB_SIGSTOP, and the SIGSTOP
//! that follows all but the first.

use super::*;
use crate::model::job::opt;
use crate::model::job_control::JobControls;

/// One job, and its process, which survives these signals.
fn started(o: StartJob, ignores: &[i32]) -> (Rig, u32) {
    let mut r = Rig::new();
    r.template.ignores = ignores.to_vec();
    r.start(o);
    let pid = r.pid();
    assert_eq!(r.last(), AttemptPhase::Running);
    (r, pid)
}

fn interactive() -> StartJob {
    let spec = JobSpec { options: opt::INTERACTIVE, ..JobSpec::default() };
    StartJob { spec: spec.into(), ..order(1) }
}

/// The signals of the process, after these seconds.
fn after(r: &mut Rig, secs: u64, pid: u32) -> Vec<i32> {
    r.wait(secs);
    r.procs[&pid].signals.clone()
}

#[test]
fn a_parallel_or_interactive_job_gets_sigtstp_and_ten_seconds_later_sigstop() {
    let hosts = |slots: u32| vec![("h1".into(), slots)].into();
    let parallel = StartJob { hosts: hosts(2), ..order(1) };
    let apart = StartJob { hosts: vec![("h1".into(), 1), ("h2".into(), 1)].into(), ..order(1) };
    for o in [parallel, apart, interactive()] {
        let (mut r, pid) = started(o, &[SIGTSTP]);
        r.act(1, 1, Act::Suspend);
        assert_eq!(r.last(), AttemptPhase::Suspended);
        assert_eq!(after(&mut r, 9, pid), [SIGTSTP]);
        assert_eq!(after(&mut r, 1, pid), [SIGTSTP, SIGSTOP]);
        assert_eq!(after(&mut r, 100, pid), [SIGTSTP, SIGSTOP]);
        assert_eq!(r.states(), []);
        r.act(1, 2, Act::Resume);
        assert_eq!(r.last(), AttemptPhase::Running);
        assert_eq!(after(&mut r, 100, pid), [SIGTSTP, SIGSTOP, SIGCONT]);
    }
    let (mut r, pid) = started(StartJob { hosts: hosts(1), ..order(1) }, &[]);
    r.act(1, 1, Act::Suspend);
    assert_eq!(after(&mut r, 100, pid), [SIGSTOP]);
}

#[test]
fn a_resumed_job_is_not_stopped_by_the_signal_that_was_to_follow() {
    let (mut r, pid) = started(interactive(), &[SIGTSTP]);
    r.act(1, 1, Act::Suspend);
    r.wait(5);
    r.act(1, 2, Act::Resume);
    assert_eq!(after(&mut r, 100, pid), [SIGTSTP, SIGCONT]);
    // suspended again, it has the whole time once more; an order that comes twice adds none
    r.act(1, 3, Act::Suspend);
    r.wait(6);
    r.act(1, 4, Act::Suspend);
    assert_eq!(after(&mut r, 3, pid), [SIGTSTP, SIGCONT, SIGTSTP, SIGTSTP]);
    assert_eq!(after(&mut r, 1, pid)[4..], [SIGSTOP]);
}

#[test]
fn a_killed_job_is_not_stopped_by_the_signal_that_was_to_follow() {
    let (mut r, pid) = started(interactive(), &[SIGTSTP, SIGINT]);
    r.act(1, 1, Act::Suspend);
    r.wait(5);
    r.act(1, 2, Act::Terminate { exit_info: term::OWNER });
    assert_eq!(after(&mut r, 9, pid), [SIGTSTP, SIGINT, SIGCONT]);
    r.wait(1);
    assert_eq!(r.last(), ended(15, term::OWNER));
}

#[test]
fn a_new_sbatchd_sends_the_sigstop_that_the_old_one_owed() {
    for (away, want) in [(3, &[SIGTSTP][..]), (30, &[SIGTSTP, SIGSTOP])] {
        let (mut r, pid) = started(interactive(), &[SIGTSTP]);
        r.act(1, 1, Act::Suspend);
        r.crash();
        r.wait(away);
        r.boot(true);
        r.greet(1);
        assert_eq!(r.last(), AttemptPhase::Suspended);
        assert_eq!(after(&mut r, 0, pid), want, "{away}");
        assert_eq!(after(&mut r, 7, pid), [SIGTSTP, SIGSTOP], "{away}");
        r.crash();
        r.boot(true);
        r.greet(1);
        assert_eq!(after(&mut r, 100, pid), [SIGTSTP, SIGSTOP], "the note has that it was sent");
    }
}

#[test]
fn lsb_sigstop_names_the_signal_for_all_jobs() {
    let named = |signal: i32, o: StartJob, ignores: &[i32]| {
        let mut r = Rig { stop_signal: Some(signal), ..Rig::new() };
        r.crash();
        r.boot(true);
        r.greet(1);
        r.template.ignores = ignores.to_vec();
        r.start(o);
        r.told.clear();
        r.act(1, 1, Act::Suspend);
        r
    };
    for (signal, o, want) in [
        (SIGSTOP, interactive(), &[SIGSTOP][..]),
        (SIGTSTP, order(1), &[SIGTSTP, SIGSTOP]),
        (10, order(1), &[10, SIGSTOP]),
    ] {
        let mut r = named(signal, o, &[10, SIGTSTP]);
        assert_eq!(r.last(), AttemptPhase::Suspended);
        let pid = r.pid();
        assert_eq!(after(&mut r, 100, pid), want);
    }
    // SIGKILL: the signals of a termination
    let mut r = named(SIGKILL, order(1), &[SIGINT]);
    assert_eq!(r.states(), []);
    let pid = r.pid();
    assert_eq!(after(&mut r, 9, pid), [SIGINT]);
    r.wait(1);
    assert_eq!(r.last(), ended(15, term::UNKNOWN));
}

#[test]
fn a_suspend_command_that_fails_is_followed_by_the_signal_of_the_job() {
    let controls = JobControls::parse("SUSPEND[a]").unwrap();
    let env = SpoolRef { spool: 1, at: 0, len: 1 };
    for (status, want) in [(0, &[][..]), (1 << 8, &[SIGTSTP, SIGSTOP])] {
        let o = StartJob { controls: controls.clone(), env, ..interactive() };
        let mut r = Rig::new();
        r.template.ignores = vec![SIGTSTP];
        r.start(o);
        r.order(SbdMsg::Blob { at: env, data: b"A".to_vec().into() });
        let pid = r.pid();
        r.template = Proc::default();
        r.act(1, 1, Act::Suspend);
        let control = r.pid();
        r.exits(control, status);
        assert_eq!(r.last(), AttemptPhase::Suspended);
        assert_eq!(after(&mut r, 30, pid), want);
    }
}
