//! Changes of the slots of a job: the notification command, what is told of it, beside what else
//! is done to the job.

use super::*;
use crate::exec::sbatchd::controls::RESIZE_SECS;
use crate::model::event::NamedHosts;
use crate::model::resize::{ResizeOrder, ResizeTold};

const ENV: SpoolRef = SpoolRef { spool: 1, at: 0, len: 6 };

fn started() -> (Rig, u32) {
    let mut r = Rig::new();
    r.start(StartJob { env: ENV, ..order(1) });
    r.order(SbdMsg::Blob { at: ENV, data: b"MINE=1".to_vec().into() });
    let pid = r.pid();
    assert_eq!(r.last(), AttemptPhase::Running);
    (r, pid)
}

fn change(number: u32, command: &str) -> Act {
    let hosts = |all: &[(&str, u32)]| -> NamedHosts {
        all.iter().map(|(host, n)| ((*host).into(), *n)).collect()
    };
    let (grows, command) = (true, command.to_string());
    let (hosts, allocation) = (hosts(&[("h2", 2)]), hosts(&[("h1", 1), ("h2", 2)]));
    Act::Resize(Box::new(ResizeOrder { number, grows, hosts, allocation, command }))
}

/// The commands that were run, each with its environment.
fn commands(r: &Rig) -> Vec<(String, String)> {
    let plans = r.plans.iter().filter(|p| p.0.step == TaskStep::Control);
    let command = |(_, plan): &(TaskId, Plan)| {
        let TaskPlan::Finish(what) = &plan.what else { panic!() };
        assert_eq!((plan.uid, what.limit_secs), (9, RESIZE_SECS));
        (what.post[0].text.lossy().into_owned(), what.env.lossy().replace('\0', "\n"))
    };
    plans.map(command).collect()
}

fn told(r: &mut Rig) -> ResizeTold {
    r.states().last().map(|t| t.resize).unwrap_or_default()
}

#[test]
fn a_change_is_taken_or_not_by_the_command_and_each_is_told_once_and_again() {
    let (mut r, pid) = started();
    r.act(1, 1, change(1, "tell me"));
    let all = commands(&r);
    assert!(all[0].0.contains("\ntell me\n"), "{}", all[0].0);
    for line in [
        "LSB_RESIZE_EVENT=grow",
        "LSB_RESIZE_HOSTS=h2 2",
        "LSB_RESIZE_NOTIFY_OK=0",
        "LSB_RESIZE_NOTIFY_FAIL=1",
        "LSB_MCPU_HOSTS=h1 1 h2 2",
        "MINE=1",
    ] {
        assert!(all[0].1.lines().any(|l| l == line), "{line}: {}", all[0].1);
    }
    // the same order again, as after a reconnection
    r.act(1, 2, change(1, "tell me"));
    assert_eq!(commands(&r).len(), 1);
    let tells = r.pid();
    r.exits(tells, 0);
    let first = told(&mut r);
    assert_eq!((first.number, first.status), (1, Some(0)));
    r.act(1, 3, change(1, "tell me"));
    assert_eq!((commands(&r).len(), told(&mut r)), (1, first), "told once more, not done again");
    r.act(1, 4, change(2, "tell me"));
    let tells = r.pid();
    r.exits(tells, 3 << 8);
    let second = told(&mut r);
    assert_eq!((second.number, second.status), (2, Some(1)));
    assert!(r.procs[&pid].signals.is_empty());
}

#[test]
fn a_change_without_command_is_taken_at_once_and_one_that_hangs_is_not_taken() {
    let (mut r, _) = started();
    r.act(1, 1, change(1, ""));
    assert!(commands(&r).is_empty());
    assert_eq!(told(&mut r), ResizeTold { number: 1, pid: 0, status: Some(0) });
    r.act(1, 2, change(2, "hangs"));
    r.wait(RESIZE_SECS - 1);
    assert_eq!(told(&mut r).status, None);
    r.wait(10);
    let last = r.states().pop().unwrap();
    assert_eq!((last.resize.number, last.resize.status), (2, Some(1)));
    assert_eq!(last.phase, AttemptPhase::Running);
}

#[test]
fn a_kill_waits_for_no_notification_command() {
    let (mut r, _) = started();
    r.act(1, 1, change(1, "tell me"));
    r.act(1, 2, Act::Terminate { exit_info: term::OWNER });
    r.wait(30);
    assert_eq!(r.last(), ended(SIGINT, term::OWNER));
}

#[test]
fn a_change_whose_notification_command_dies_is_not_taken_and_the_job_goes_on() {
    // its starter is killed, with or without an sbatchd that looks on
    for crash in [false, true] {
        let (mut r, _) = started();
        r.act(1, 1, change(1, "tell me"));
        let tells = r.pid();
        if crash {
            r.crash();
            r.exits(tells, SIGKILL);
            r.boot(true);
            r.greet(1);
        } else {
            r.exits(tells, SIGKILL);
        }
        let last = r.states().pop().unwrap();
        assert_eq!((last.resize.number, last.resize.status), (1, Some(1)), "{crash}");
        assert_eq!(last.phase, AttemptPhase::Running);
        // the next change is carried out
        r.act(1, 2, change(2, "tell me"));
        if crash {
            r.order(SbdMsg::Blob { at: ENV, data: b"MINE=1".to_vec().into() });
            r.wait(5);
        }
        let tells = r.pid();
        r.exits(tells, 0);
        assert_eq!((told(&mut r).status, commands(&r).len()), (Some(0), 2), "{crash}");
    }
}
