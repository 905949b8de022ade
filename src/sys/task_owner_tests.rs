//! Tests of task_owner.rs with real processes.

use super::*;
use crate::model::JobKey;
use crate::proto::launch::{TaskId, TaskStep};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

fn until(mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "it never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn shell(text: &str) -> Child {
    Command::new("sh").args(["-c", text]).spawn().unwrap()
}

fn task(pid: u32) -> TaskIdentity {
    let key = JobKey { job: 1, idx: 0, attempt: 1 };
    let (id, ticks) = (TaskId { key, step: TaskStep::Task }, see(pid).unwrap().start);
    TaskIdentity { id, uid: euid(), pid, ticks, group: None, child: false }
}

fn of(pid: u32) -> ProcessLook {
    ProcessLook { n: 1, uid: euid(), pid, ticks: see(pid).map_or(0, |p| p.start) }
}

fn end(pid: u32, child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
}

/// A task that was begun elsewhere: its first process leads no session, and is no child of the
/// launcher's.
#[test]
fn owner_of_a_process_is_found_by_its_ancestors() {
    let mut child = shell("sleep 311; true");
    let below = || scan().into_iter().find(|p| p.parent == child.id());
    until(|| below().is_some());
    let below = below().unwrap();
    let own = task(child.id());
    // of no launcher that is near
    let tracker = TaskTracker::new(0);
    let all = [own.clone()];
    for pid in [child.id(), below.pid] {
        assert_eq!(tracker.look(&of(pid), &all).unwrap().owner, Some(own.id));
        assert_eq!(tracker.look(&of(pid), &[]).unwrap().owner, None);
    }
    // the number alone is not it
    let other = TaskIdentity { ticks: own.ticks + 1, ..own.clone() };
    assert_eq!(tracker.look(&of(below.pid), &[other]).unwrap().owner, None);
    end(below.pid, &mut child);
}

#[test]
fn process_that_is_gone_or_not_the_users_is_refused() {
    let mut child = shell("exec sleep 312");
    let tracker = TaskTracker::new(0);
    let look = of(child.id());
    assert!(tracker.look(&look, &[]).is_ok());
    let refused = |look: ProcessLook| tracker.look(&look, &[]).unwrap_err();
    let (pid, words) = (child.id(), "is not one of the user's");
    assert_eq!(
        refused(ProcessLook { uid: look.uid + 1, ..look }),
        format!("process {pid} {words}")
    );
    assert_eq!(refused(of(1)), format!("process 1 {words}"));
    let none = |pid: u32| format!("process {pid}: No such process");
    assert_eq!(refused(ProcessLook { ticks: look.ticks + 1, ..look }), none(pid));
    assert_eq!(refused(ProcessLook { pid: u32::MAX, ..look }), none(u32::MAX));
    end(pid, &mut child);
    assert_eq!(refused(look), none(pid));
}

/// The launcher of this test is a shell, or this test's own parent.
#[test]
fn process_of_the_batch_system_is_refused() {
    let mut child = shell("sleep 313; true");
    let below = || scan().into_iter().find(|p| p.parent == child.id());
    until(|| below().is_some());
    let below = below().unwrap();
    let words = |pid: u32| Err(format!("process {pid} is of the batch system"));
    let launcher = TaskTracker::new(child.id());
    for pid in [child.id(), below.pid] {
        assert_eq!(launcher.look(&of(pid), &[]).map(|found| found.owner), words(pid));
    }
    // a task of that launcher is none of its daemons
    let task = task(below.pid);
    let found = launcher.look(&of(below.pid), std::slice::from_ref(&task));
    assert_eq!(found.unwrap().owner, Some(task.id));
    // what is above the daemons
    let tracker = TaskTracker::new(0);
    let me = std::process::id();
    assert_eq!(tracker.look(&of(me), &[]).map(|found| found.owner), words(me));
    end(below.pid, &mut child);
}

#[test]
fn process_with_one_of_another_user_below_it_is_refused() {
    if euid() != 0 {
        // tests/hostile has such a process with users of its own
        return;
    }
    let text = "setpriv --reuid 65534 --clear-groups sleep 314; true";
    let mut child = shell(text);
    let below = || scan().into_iter().find(|p| p.parent == child.id() && is_of(p.pid, 65534));
    until(|| below().is_some());
    let below = below().unwrap();
    let refused = TaskTracker::new(0).look(&of(child.id()), &[]).unwrap_err();
    assert_eq!(refused, format!("process {} has processes of another user", child.id()));
    end(below.pid, &mut child);
}
