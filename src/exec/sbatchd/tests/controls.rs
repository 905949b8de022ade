//! JOB_CONTROLS: the actions of the queue in the place of the usual signals.

use super::*;
use crate::model::job_control::JobControls;

const ENV: SpoolRef = SpoolRef { spool: 1, at: 0, len: 6 };

/// A job of a queue with these JOB_CONTROLS, and its process.
fn started(text: &str, ignores: &[i32]) -> (Rig, u32) {
    let mut r = Rig::new();
    r.template.ignores = ignores.to_vec();
    let controls = JobControls::parse(text).unwrap();
    r.start(StartJob { controls, env: ENV, ..order(1) });
    r.order(SbdMsg::Blob { at: ENV, data: b"MINE=1".to_vec().into() });
    let pid = r.pid();
    assert_eq!(r.last(), AttemptPhase::Running);
    r.template = Proc::default();
    (r, pid)
}

/// The commands that were run, each with the variables it had.
fn commands(r: &Rig) -> Vec<(String, Vec<String>)> {
    let plans = r.plans.iter().filter(|p| p.0.step == TaskStep::Control);
    let command = |(_, plan): &(TaskId, Plan)| {
        let TaskPlan::Finish(what) = &plan.what else { panic!() };
        assert_eq!((plan.uid, what.limit_secs), (9, 60));
        let vars = what.env.0.split(|b| *b == 0);
        let vars = vars.map(|v| String::from_utf8_lossy(v).into_owned()).collect();
        (what.post[0].text.lossy().into_owned(), vars)
    };
    plans.map(command).collect()
}

fn terminate(r: &mut Rig, seq: u32) {
    r.act(1, seq, Act::Terminate { exit_info: term::OWNER });
}

#[test]
fn signals_of_the_queue_take_the_place_of_the_usual_ones() {
    let (mut r, pid) = started("SUSPEND[SIGTSTP] RESUME[USR1] TERMINATE[USR2]", &[20, 10, 12]);
    r.act(1, 1, Act::Suspend);
    assert_eq!(r.last(), AttemptPhase::Suspended);
    r.act(1, 2, Act::Resume);
    assert_eq!(r.last(), AttemptPhase::Running);
    terminate(&mut r, 3);
    r.wait(100);
    assert_eq!(r.procs[&pid].signals, [20, 10, 12], "nothing follows the signal of TERMINATE");
    // each request sends it again, and force is force
    terminate(&mut r, 4);
    assert_eq!(r.procs[&pid].signals, [20, 10, 12, 12]);
    r.act(1, 5, Act::Terminate { exit_info: term::FORCE_OWNER });
    assert_eq!(r.last(), ended(SIGKILL, term::FORCE_OWNER));
}

#[test]
fn a_command_runs_with_its_variables_and_the_state_follows_its_end() {
    let (mut r, pid) = started("SUSPEND[save; stop] RESUME[go]", &[]);
    let why = crate::model::reason::susp::LOAD + 4;
    r.order(SbdMsg::Act { key: key(1), seq: 1, order: 0, act: Act::Suspend, why });
    assert_eq!(r.states(), [], "nothing is told before the command has ended");
    let (text, vars) = commands(&r).remove(0);
    assert_eq!(text, "save; stop");
    let pids = format!("LSB_JOBPIDS={pid}");
    for want in
        ["MINE=1", "LS_EXEC_T=JOB_CONTROLS", "LSB_SUSP_REASONS=64", "LSB_SUSP_SUBREASONS=4", &pids]
    {
        assert!(vars.iter().any(|v| v == want), "{want}: {vars:?}");
    }
    let control = r.pid();
    r.exits(control, 0);
    assert_eq!(r.last(), AttemptPhase::Suspended);
    assert!(r.procs[&pid].signals.is_empty());
    r.act(1, 2, Act::Resume);
    assert_eq!(commands(&r)[1].0, "go");
    assert!(!commands(&r)[1].1.iter().any(|v| v.starts_with("LSB_SUSP_")));
    let control = r.pid();
    r.exits(control, 0);
    assert_eq!(r.last(), AttemptPhase::Running);
    // and once more: the step of the launcher serves again
    r.act(1, 3, Act::Suspend);
    assert_eq!(commands(&r).len(), 3);
    assert!(r.procs[&pid].signals.is_empty());
}

#[test]
fn a_command_that_fails_is_followed_by_the_usual_signals() {
    let (mut r, pid) = started("SUSPEND[a] RESUME[b] TERMINATE[c]", &[]);
    for (seq, act, want) in
        [(1, Act::Suspend, AttemptPhase::Suspended), (2, Act::Resume, AttemptPhase::Running)]
    {
        r.act(1, seq, act);
        let control = r.pid();
        r.exits(control, 1 << 8);
        assert_eq!(r.last(), want);
    }
    assert_eq!(r.procs[&pid].signals, [SIGSTOP, SIGCONT]);
    terminate(&mut r, 3);
    let control = r.pid();
    r.exits(control, 1 << 8);
    assert_eq!(r.last(), ended(SIGINT, term::OWNER));
}

#[test]
fn a_terminate_command_that_does_well_is_followed_by_no_signal() {
    let (mut r, pid) = started("TERMINATE[c]", &[]);
    terminate(&mut r, 1);
    let control = r.pid();
    r.exits(control, 0);
    r.wait(100);
    assert!(r.procs[&pid].signals.is_empty());
    // a second request runs it again
    terminate(&mut r, 2);
    assert_eq!(commands(&r).len(), 2);
    r.exits(pid, 3 << 8);
    assert_eq!(r.last(), ended(3 << 8, term::OWNER));
}

#[test]
fn a_terminate_command_that_hangs_is_killed_and_the_job_with_it() {
    let (mut r, pid) = started("TERMINATE[sleep 1000]", &[2, 15]);
    terminate(&mut r, 1);
    let control = r.pid();
    r.wait(55);
    assert!(r.procs[&pid].signals.is_empty() && r.procs.contains_key(&control));
    r.wait(10);
    assert!(!r.procs.contains_key(&control));
    assert_eq!(r.procs[&pid].signals, [SIGINT]);
    r.wait(25);
    assert_eq!(r.last(), ended(SIGKILL, term::OWNER));
}

#[test]
fn a_kill_does_not_wait_for_a_command_that_suspends() {
    let (mut r, pid) = started("SUSPEND[sleep 1000]", &[]);
    r.act(1, 1, Act::Suspend);
    let control = r.pid();
    terminate(&mut r, 2);
    assert!(!r.procs.contains_key(&control) && !r.procs.contains_key(&pid));
    assert_eq!(r.last(), ended(SIGINT, term::OWNER));
    // by force
    let (mut r, pid) = started("TERMINATE[sleep 1000]", &[]);
    terminate(&mut r, 1);
    let control = r.pid();
    assert!(r.procs.contains_key(&pid) && control != pid);
    r.act(1, 2, Act::Terminate { exit_info: term::FORCE_ADMIN });
    assert!(!r.procs.contains_key(&control));
    assert_eq!(r.last(), ended(SIGKILL, term::FORCE_ADMIN));
}

#[test]
fn a_request_that_comes_meanwhile_follows_the_command() {
    let (mut r, pid) = started("SUSPEND[a]", &[]);
    r.act(1, 1, Act::Suspend);
    r.act(1, 2, Act::Resume);
    assert_eq!(r.states(), []);
    let control = r.pid();
    r.exits(control, 0);
    let phases: Vec<_> = r.states().into_iter().map(|s| s.phase).collect();
    assert_eq!(phases, [AttemptPhase::Suspended, AttemptPhase::Running]);
    assert_eq!(r.procs[&pid].signals, [SIGCONT]);
}

#[test]
fn a_command_is_waited_for_by_an_sbatchd_that_starts_again() {
    for (status, want) in [(0, &[][..]), (1 << 8, &[SIGSTOP][..])] {
        let (mut r, pid) = started("SUSPEND[a]", &[]);
        r.act(1, 1, Act::Suspend);
        let control = r.pid();
        r.crash();
        r.boot(true);
        r.greet(1);
        r.exits(control, status);
        assert_eq!(r.last(), AttemptPhase::Suspended, "{status}");
        assert_eq!(r.procs[&pid].signals, want, "{status}");
        assert_eq!(commands(&r).len(), 1);
    }
    // one that hangs is given up then, too
    let (mut r, _) = started("TERMINATE[a]", &[]);
    terminate(&mut r, 1);
    r.crash();
    r.boot(true);
    r.greet(1);
    r.wait(65);
    assert_eq!(r.last(), ended(SIGINT, term::OWNER));
}

#[test]
fn an_environment_that_never_comes_does_not_hold_up_a_kill() {
    let (mut r, _) = started("TERMINATE[a]", &[]);
    r.crash();
    r.boot(true);
    r.greet(2);
    terminate(&mut r, 1);
    r.wait(55);
    assert_eq!(commands(&r), []);
    assert!(r.told.iter().any(|m| matches!(m, SbdMsg::NeedBlob { at } if *at == ENV)));
    r.wait(10);
    assert_eq!(r.last(), ended(SIGINT, term::OWNER));
}

#[test]
fn a_suspended_job_goes_on_to_follow_the_action_and_is_not_told_to_run() {
    let (mut r, pid) = started("TERMINATE[USR2]", &[12]);
    r.act(1, 1, Act::Suspend);
    assert_eq!(r.last(), AttemptPhase::Suspended);
    terminate(&mut r, 2);
    assert_eq!(r.procs[&pid].signals, [SIGSTOP, SIGCONT, 12]);
    assert_eq!(r.states(), []);
    r.exits(pid, 0);
    assert_eq!(r.last(), ended(0, term::OWNER));
}
