//! HOST_PRE_EXEC and HOST_POST_EXEC: the first host waits for the others, another host runs them
//! once.

use super::*;
use crate::exec::sbatchd::host_commands::*;
use crate::proto::host_command::{HostCommandState, HostWork};

/// A job on h1, h2 and h3 whose queue has both commands.
fn wide(n: u32, first: &str) -> StartJob {
    let mut hosts = vec!["h1", "h2", "h3"];
    hosts.retain(|host| *host != first);
    hosts.insert(0, first);
    StartJob {
        hosts: hosts.into_iter().map(|host| (host.into(), 2)).collect(),
        host_pre_exec: "before".into(),
        host_post_exec: "after".into(),
        ..order(n)
    }
}

fn failed(exit: u8) -> HostCommandState {
    HostCommandState::Failed { exit, why: "no".into() }
}

impl Rig {
    fn host_told(&mut self, host: &str, work: HostWork, state: HostCommandState) {
        self.order(SbdMsg::HostTold { key: key(1), host: host.into(), work, state });
    }

    /// The requests to other hosts since last looked at.
    fn asked(&mut self) -> Vec<HostWork> {
        let ask = |m: &SbdMsg| match m {
            SbdMsg::AskHosts { work, .. } => Some(*work),
            _ => None,
        };
        let all = self.told.iter().filter_map(ask).collect();
        self.told.retain(|m| ask(m).is_none());
        all
    }

    /// The answers about commands for other hosts' jobs since last looked at.
    fn answers(&mut self) -> Vec<HostCommandState> {
        let told = |m: &SbdMsg| match m {
            SbdMsg::HostCommandTold { state, .. } => Some(state.clone()),
            _ => None,
        };
        let all = self.told.iter().filter_map(told).collect();
        self.told.clear();
        all
    }

    fn host_order(&mut self, work: HostWork) {
        self.order(SbdMsg::HostCommand { work, order: Box::new(wide(1, "h2")) });
    }
}

#[test]
fn job_starts_when_all_other_hosts_have_succeeded() {
    let mut r = Rig::new();
    r.start(wide(1, "h1"));
    assert_eq!((r.asked(), r.job_starts()), (vec![HostWork::Before], 0));
    r.host_told("h2", HostWork::Before, HostCommandState::Running);
    r.host_told("h3", HostWork::Before, HostCommandState::Done);
    r.host_told("h1", HostWork::Before, HostCommandState::Done);
    r.wait(5);
    assert_eq!((r.asked(), r.job_starts()), (vec![HostWork::Before], 0));
    r.host_told("h2", HostWork::Before, HostCommandState::Done);
    assert_eq!(r.job_starts(), 1);
    let TaskPlan::Job(job) = &r.plans[0].1.what else { panic!() };
    assert_eq!(job.pre, [launch::Hook::new(launch::HookOf::Host, "before")]);
    r.wait(60);
    assert_eq!(r.asked(), []);
}

#[test]
fn job_goes_back_where_another_host_fails_or_is_silent() {
    for (exit, want) in [
        (3, AttemptPhase::Failed { reason: PendReason::QueuePreExec.number() }),
        (99, ended(99 << 8, 0)),
    ] {
        let mut r = Rig::new();
        r.start(wide(1, "h1"));
        r.asked();
        r.host_told("h3", HostWork::Before, failed(exit));
        // the one that still runs is killed
        assert_eq!(r.asked(), [HostWork::Stop]);
        let last = r.states().pop().unwrap();
        assert_eq!((last.phase, last.note.as_str(), last.pre_exit), (want, "h3: no", exit));
        assert_eq!((last.pre_host.as_str(), r.job_starts()), ("h3", 0));
    }
    let mut r = Rig::new();
    r.start(wide(1, "h1"));
    for _ in 0..11 {
        r.wait(5);
        r.host_told("h2", HostWork::Before, HostCommandState::Running);
    }
    r.wait(5);
    let last = r.states().pop().unwrap();
    assert_eq!(last.note, "h3: the host does not answer");
    // without mbatchd nobody can answer
    let mut r = Rig::new();
    r.start(wide(1, "h1"));
    r.feed(Input::Closed { conn: MBD });
    r.wait(600);
    r.greet(1);
    assert_eq!(r.last(), AttemptPhase::Starting);
}

#[test]
fn killed_job_ends_and_other_hosts_are_stopped() {
    let mut r = Rig::new();
    r.start(wide(1, "h1"));
    r.asked();
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    assert_eq!((r.asked(), r.last()), (vec![HostWork::Stop], ended(SIGINT, term::OWNER)));
    r.wait(100);
    assert_eq!((r.asked(), r.job_starts()), (vec![], 0));
}

#[test]
fn post_execution_is_over_when_all_hosts_have_ended() {
    for (state, want) in [(HostCommandState::Done, Post::Done), (failed(1), Post::Failed)] {
        let mut r = Rig::new();
        r.slow = true;
        r.start(StartJob { host_pre_exec: String::new(), ..wide(1, "h1") });
        let pid = r.pid();
        r.exits(pid, 3 << 8);
        assert_eq!(
            r.states().pop().map(|s| (s.phase, s.post)),
            Some((ended(768, 0), Post::Running))
        );
        let pid = r.pid();
        r.exits(pid, 0);
        let after = HostWork::After { status: 768 };
        assert_eq!(r.asked(), [after]);
        // an sbatchd that starts anew asks again
        r.crash();
        r.boot(true);
        r.greet(1);
        assert_eq!(r.states().pop().map(|s| s.post), Some(Post::Running));
        r.wait(5);
        assert_eq!(r.asked(), [after]);
        r.host_told("h2", after, HostCommandState::Done);
        r.host_told("h3", after, state);
        assert_eq!(r.states().pop().map(|s| s.post), Some(want));
    }
}

#[test]
fn another_host_runs_a_command_once_and_answers_each_order() {
    let mut r = Rig::new();
    r.host_order(HostWork::Before);
    r.host_order(HostWork::Before);
    assert_eq!(r.answers(), [HostCommandState::Running, HostCommandState::Running]);
    assert_eq!(r.plans.len(), 1);
    let TaskPlan::Finish(plan) = &r.plans[0].1.what else { panic!() };
    assert_eq!(plan.post, [launch::Hook::new(launch::HookOf::Host, "before")]);
    let pid = r.pid();
    r.exits(pid, 4 << 8);
    let why = "the queue's host command: exit status: 4".to_string();
    let want = HostCommandState::Failed { exit: 4, why };
    assert_eq!(r.answers(), vec![want.clone()]);
    r.crash();
    r.boot(true);
    r.greet(1);
    r.told.clear();
    r.host_order(HostWork::Before);
    assert_eq!((r.answers(), r.plans.len()), (vec![want], 1));
    r.host_order(HostWork::After { status: 9 });
    let env = match &r.plans[1].1.what {
        TaskPlan::Finish(plan) => plan.env.lossy().into_owned(),
        _ => panic!(),
    };
    assert!(env.contains("LSB_JOBEXIT_STAT=9\0"), "{env}");
    let pid = r.pid();
    r.exits(pid, 0);
    assert_eq!(r.answers().pop(), Some(HostCommandState::Done));
    r.wait(HOST_TASK_KEEP / US + 1);
    assert!(r.sbd.as_ref().unwrap().host_tasks.is_empty());
}

#[test]
fn stopped_command_of_another_host_is_killed() {
    let mut r = Rig::new();
    r.host_order(HostWork::Before);
    r.host_order(HostWork::Stop);
    assert!(r.procs.is_empty());
    assert!(matches!(r.answers().pop(), Some(HostCommandState::Failed { exit: 0, .. })));
}
