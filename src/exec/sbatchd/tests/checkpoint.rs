//! Checkpoints: asked for, of the period, beside what else is done to the job.

use super::*;
use crate::exec::sbatchd::controls::CHECKPOINT_SECS;
use crate::model::checkpoint::{Checkpoint, CheckpointEnd, CheckpointOrder};
use crate::model::job_control::JobControls;

const ENV: SpoolRef = SpoolRef { spool: 1, at: 0, len: 6 };
const NOW: CheckpointOrder = CheckpointOrder { kill: false, force: false, period: None };
const KILL: CheckpointOrder = CheckpointOrder { kill: true, force: false, period: None };

/// A job with this checkpoint directory, and its process.
fn started(text: &str) -> (Rig, u32) {
    let mut r = Rig::new();
    let mut spec = JobSpec::default();
    spec.further.checkpoint = Checkpoint::parse(text).ok().map(Box::new);
    r.start(StartJob { spec: spec.into(), env: ENV, ..order(1) });
    r.order(SbdMsg::Blob { at: ENV, data: b"MINE=1".to_vec().into() });
    let pid = r.pid();
    assert_eq!(r.last(), AttemptPhase::Running);
    (r, pid)
}

/// The ends of echkpnt commands that were run.
fn commands(r: &Rig) -> Vec<String> {
    let plans = r.plans.iter().filter(|p| p.0.step == TaskStep::Control);
    let command = |(_, plan): &(TaskId, Plan)| {
        let TaskPlan::Finish(what) = &plan.what else { panic!() };
        assert_eq!((plan.uid, what.limit_secs), (9, CHECKPOINT_SECS));
        let text = what.post[0].text.lossy().into_owned();
        text.rsplit("exec echkpnt ").next().unwrap().to_string()
    };
    plans.map(command).collect()
}

/// The checkpoint that was told of last.
fn told(r: &mut Rig) -> CheckpointEnd {
    r.states().last().map(|t| t.checkpoint).unwrap_or_default()
}

#[test]
fn a_checkpoint_is_told_of_with_its_result_and_the_job_goes_on() {
    let (mut r, pid) = started("/c");
    r.act(1, 1, Act::Checkpoint(NOW));
    assert_eq!(commands(&r), [format!("-d '/c/1' {pid}")]);
    // the same order again, as after a reconnection
    r.act(1, 2, Act::Checkpoint(NOW));
    assert_eq!(commands(&r).len(), 1);
    let echkpnt = r.pid();
    r.exits(echkpnt, 0);
    let want = CheckpointEnd { number: 1, succeeded: true, asked: true, ..<_>::default() };
    assert_eq!(told(&mut r), want);
    r.act(1, 3, Act::Checkpoint(CheckpointOrder { force: true, ..NOW }));
    assert_eq!(commands(&r)[1], format!("-f -d '/c/1' {pid}"));
    let echkpnt = r.pid();
    r.exits(echkpnt, 1 << 8);
    assert_eq!(told(&mut r), CheckpointEnd { number: 2, asked: true, ..<_>::default() });
    assert!(r.procs[&pid].signals.is_empty());
}

#[test]
fn a_job_ends_after_a_checkpoint_that_succeeded_and_no_other() {
    let (mut r, pid) = started("/c");
    r.act(1, 1, Act::Checkpoint(KILL));
    let echkpnt = r.pid();
    r.exits(echkpnt, 1 << 8);
    assert!(r.procs[&pid].signals.is_empty());
    r.act(1, 2, Act::Checkpoint(KILL));
    let echkpnt = r.pid();
    r.exits(echkpnt, 0);
    r.wait(30);
    assert_eq!(r.last(), ended(SIGINT, term::CHKPNT));
}

#[test]
fn an_end_by_the_method_is_told_with_its_checkpoint() {
    for (status, info) in [(0, term::CHKPNT), (1 << 8, 0)] {
        let (mut r, pid) = started("/c");
        r.act(1, 1, Act::Checkpoint(KILL));
        let echkpnt = r.pid();
        r.states();
        r.exits(pid, SIGKILL);
        assert!(r.states().is_empty(), "the checkpoint is awaited");
        r.exits(echkpnt, status);
        let last = r.states().pop().unwrap();
        assert_eq!(last.phase, ended(SIGKILL, info));
        assert_eq!((last.checkpoint.number, last.checkpoint.succeeded), (1, status == 0));
    }
}

#[test]
fn periods_begin_with_the_first_and_change_by_order() {
    let (mut r, _) = started("/c init=2 10");
    r.wait(119);
    assert!(commands(&r).is_empty());
    let made = |r: &mut Rig, secs: u64, count: usize| {
        r.wait(secs);
        assert_eq!(commands(r).len(), count);
        let echkpnt = r.pid();
        r.exits(echkpnt, 0);
        assert!(!told(r).asked);
    };
    made(&mut r, 2, 1);
    r.wait(590);
    assert_eq!(commands(&r).len(), 1);
    made(&mut r, 11, 2);
    r.act(1, 1, Act::Checkpoint(CheckpointOrder { period: Some(1), ..NOW }));
    assert_eq!(told(&mut r).period, Some(1));
    made(&mut r, 61, 3);
    r.act(1, 2, Act::Checkpoint(CheckpointOrder { period: Some(0), ..NOW }));
    r.wait(3000);
    assert_eq!(commands(&r).len(), 3);
}

#[test]
fn a_stop_waits_for_a_checkpoint_and_a_kill_does_not() {
    let (mut r, pid) = started("/c");
    r.act(1, 1, Act::Checkpoint(NOW));
    r.act(1, 2, Act::Suspend);
    assert!(r.procs[&pid].signals.is_empty());
    let echkpnt = r.pid();
    r.exits(echkpnt, 0);
    assert_eq!(r.last(), AttemptPhase::Suspended);
    r.act(1, 3, Act::Resume);
    r.act(1, 4, Act::Checkpoint(KILL));
    r.act(1, 5, Act::Terminate { exit_info: term::OWNER });
    r.wait(30);
    assert_eq!(r.last(), ended(SIGINT, term::OWNER));
}

/// A checkpointable job, or another one, of a queue with these JOB_CONTROLS.
fn controlled(controls: &str, dir: &str) -> (Rig, u32) {
    let mut r = Rig::new();
    let mut spec = JobSpec::default();
    spec.further.checkpoint = Checkpoint::parse(dir).ok().map(Box::new);
    let controls = JobControls::parse(controls).unwrap();
    r.start(StartJob { spec: spec.into(), env: ENV, controls, ..order(1) });
    r.order(SbdMsg::Blob { at: ENV, data: b"MINE=1".to_vec().into() });
    let pid = r.pid();
    assert_eq!(r.last(), AttemptPhase::Running);
    (r, pid)
}

#[test]
fn chkpnt_of_job_controls_checkpoints_before_the_usual_signals() {
    for well in [true, false] {
        let (mut r, pid) = controlled("SUSPEND[CHKPNT] TERMINATE[CHKPNT]", "/c");
        r.act(1, 1, Act::Suspend);
        assert_eq!((commands(&r).len(), r.procs[&pid].signals.len()), (1, 0));
        let echkpnt = r.pid();
        r.exits(echkpnt, i32::from(!well) << 8);
        assert_eq!(r.procs[&pid].signals, [SIGSTOP]);
        let last = r.states().pop().unwrap();
        assert_eq!((last.phase, last.checkpoint.succeeded), (AttemptPhase::Suspended, well));
        r.act(1, 2, Act::Resume);
        r.act(1, 3, Act::Terminate { exit_info: term::OWNER });
        let echkpnt = r.pid();
        assert_eq!((commands(&r).len(), r.procs[&pid].signals.len()), (2, 2));
        r.exits(echkpnt, i32::from(!well) << 8);
        assert_eq!(r.last(), ended(SIGINT, term::OWNER));
    }
    // a kill waits for no checkpoint that suspends
    let (mut r, pid) = controlled("SUSPEND[CHKPNT]", "/c");
    r.act(1, 1, Act::Suspend);
    r.act(1, 2, Act::Terminate { exit_info: term::OWNER });
    assert!(!r.procs.contains_key(&pid));
    assert_eq!(r.last(), ended(SIGINT, term::OWNER));
    // of another job the usual signals are sent
    let (mut r, pid) = controlled("SUSPEND[CHKPNT]", "");
    r.act(1, 1, Act::Suspend);
    assert_eq!(r.procs[&pid].signals, [SIGSTOP]);
}

#[test]
fn warning_action_chkpnt_makes_a_checkpoint_once() {
    let mut r = Rig::new();
    let mut spec = JobSpec {
        further: Further::from_iter([("wa", "CHKPNT"), ("wt", "60")]),
        ..JobSpec::default()
    };
    spec.further.checkpoint = Checkpoint::parse("/c").ok().map(Box::new);
    let limits = Limits { run: Some(100), ..Limits::default() };
    r.start(StartJob { spec: spec.into(), env: ENV, limits, ..order(1) });
    r.order(SbdMsg::Blob { at: ENV, data: b"MINE=1".to_vec().into() });
    r.wait(39);
    assert_eq!(commands(&r), [""; 0]);
    r.wait(2);
    assert_eq!(commands(&r).len(), 1);
    let echkpnt = r.pid();
    r.exits(echkpnt, 0);
    assert!(told(&mut r).succeeded);
    r.wait(20);
    assert_eq!(commands(&r).len(), 1);
}

/// A method that needs the help of the job's processes would wait for ever for those that stand.
#[test]
fn stopped_job_goes_on_for_the_time_of_its_checkpoint() {
    let (mut r, pid) = started("/c");
    r.act(1, 1, Act::Suspend);
    assert_eq!(r.last(), AttemptPhase::Suspended);
    r.wait(30);
    r.procs.get_mut(&pid).unwrap().signals.clear();
    r.act(1, 2, Act::Checkpoint(NOW));
    assert_eq!(r.procs[&pid].signals, [SIGCONT]);
    let echkpnt = r.pid();
    r.exits(echkpnt, 0);
    assert_eq!(r.procs[&pid].signals, [SIGCONT, SIGSTOP]);
    assert_eq!(r.last(), AttemptPhase::Suspended);
    // resumed meanwhile it goes on
    r.act(1, 3, Act::Checkpoint(NOW));
    let echkpnt = r.pid();
    r.act(1, 4, Act::Resume);
    r.exits(echkpnt, 0);
    assert_eq!(r.procs[&pid].signals.last(), Some(&SIGCONT));
    assert_eq!(r.last(), AttemptPhase::Running);
    // to be ended by it, it is
    r.act(1, 5, Act::Suspend);
    r.wait(30);
    r.act(1, 6, Act::Checkpoint(KILL));
    let echkpnt = r.pid();
    r.exits(echkpnt, 0);
    r.wait(30);
    assert!(matches!(r.last(), AttemptPhase::Ended { exit_info: term::CHKPNT, .. }));
}
