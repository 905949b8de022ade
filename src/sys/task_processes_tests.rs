//! Tests of task_processes.rs with real processes.

use super::*;
use crate::model::JobKey;
use crate::sys::process_table::see;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

fn until(mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "it never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn task(pid: u32, group: Option<&Path>) -> TaskIdentity {
    let key = JobKey { job: 1, idx: 0, attempt: 1 };
    let id = TaskId { key, step: TaskStep::Job };
    let ticks = see(pid).unwrap().start;
    let group = group.map(|dir| {
        Box::new(TaskGroup { dir: dir.to_string_lossy().into_owned(), ..TaskGroup::default() })
    });
    TaskIdentity { id, uid: crate::sys::euid(), pid, ticks, group, child: true }
}

/// A session whose members are in two process groups, and a process that has left it.
fn session() -> (Child, u32) {
    let script = "set -m; sleep 301 & sleep 302 & setsid sleep 303 & wait";
    let child =
        Command::new("setsid").args(["--wait", "sh", "-c", script]).process_group(0).spawn();
    let child = child.unwrap();
    // setsid(1) leading a group forks: the session is its child's
    let mut sid = 0;
    until(|| {
        let all = process_table::scan();
        let leads = |p: &&Seen| p.session == p.pid && p.parent == child.id();
        sid = all.iter().find(leads).map_or(0, |p| p.pid);
        // the one that has left may have a process between
        let left = all.iter().any(|p| p.session == p.pid && p.parent == sid);
        sid != 0 && left && all.iter().filter(|p| p.session == sid).count() == 3
    });
    (child, sid)
}

fn pids(found: &[Vec<Seen>]) -> Vec<u32> {
    found.iter().flatten().map(|p| p.pid).collect()
}

/// Sends a signal to one task, with all the rounds that it needs.
fn signal(tracker: &mut TaskTracker, task: &TaskIdentity, signal: i32) {
    let mut stop = tracker.signal(std::slice::from_ref(task), signal, &[]);
    while stop.as_mut().is_some_and(|stop| !tracker.stop_round(stop, &[])) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next()?.trim_start().chars().next()
}

#[test]
fn kill_without_a_group_stops_in_each_round_and_kills_in_the_last() {
    let (mut child, sid) = session();
    let mut tracker = TaskTracker::new(0);
    let me = task(sid, None);
    let mut stop = tracker.signal(std::slice::from_ref(&me), 9, &[]).unwrap();
    assert!(stop.kills() && stop.concerns(me.id));
    let all = pids(&tracker.find(std::slice::from_ref(&me), &[]));
    assert_eq!(all.len(), 4);
    until(|| all.iter().all(|pid| state(*pid) == Some('T')));
    assert!(tracker.stop_round(&mut stop, &[]), "there was no new process");
    until(|| all.iter().all(|pid| see(*pid).is_none_or(|p| p.zombie)));
    child.wait().unwrap();
}

#[test]
fn task_without_a_group_is_measured_and_signalled_whole() {
    let (mut child, sid) = session();
    let mut tracker = TaskTracker::new(0);
    let me = task(sid, None);
    let sampled = tracker.sample(std::slice::from_ref(&me), &[]);
    let all = &sampled[0];
    assert_eq!((all.usage.nprocs, all.pids.len(), all.groups.len()), (4, 4, 4));
    assert!(all.pgids.len() >= 2, "{:?}", all.pgids);
    assert!(all.usage.mem_kb > 100);
    let most = all.most_of_process;
    assert!(most >= all.usage.mem_kb / 4 && most < all.usage.mem_kb, "{most} {:?}", all.usage);
    // another process of that number is left alone
    let other = TaskIdentity { ticks: me.ticks + 1, ..me.clone() };
    let mut fresh = TaskTracker::new(0);
    signal(&mut fresh, &other, 9);
    assert_eq!(pids(&fresh.find(std::slice::from_ref(&other), &[])), [0; 0]);
    assert_eq!(pids(&tracker.find(std::slice::from_ref(&me), &[])).len(), 4);
    signal(&mut tracker, &me, 9);
    until(|| all.pids.iter().all(|pid| see(*pid).is_none_or(|p| p.zombie)));
    child.wait().unwrap();
}

#[test]
fn process_of_another_task_below_one_is_not_its_own() {
    let (mut child, sid) = session();
    let mut tracker = TaskTracker::new(0);
    let all = process_table::scan();
    let below = all.iter().find(|p| p.session == p.pid && p.parent == sid).unwrap().pid;
    let (me, mut other) = (task(sid, None), task(below, None));
    other.id.step = TaskStep::Warn;
    let found = tracker.find(std::slice::from_ref(&me), &[other]);
    assert!(found[0].len() == 3 && !pids(&found).contains(&below), "{found:?}");
    signal(&mut tracker, &me, 9);
    child.wait().unwrap();
}

#[test]
fn member_that_ended_as_an_orphan_is_still_counted() {
    let mut tracker = TaskTracker::new(0);
    let me = task(std::process::id(), None);
    let seen = |pid, parent, utime| Seen { pid, parent, utime, start: 7, ..Seen::default() };
    let own = seen(me.pid, 1, 10);
    tracker.remember(&me, &[own, seen(90, me.pid, 5), seen(91, 1, 3)]);
    // its parent has the time of process 90; that of process 91 would be lost
    tracker.remember(&me, &[Seen { utime: 15, ..own }]);
    assert_eq!(tracker.known[&me.id].ended, (3, 0));
    tracker.remember(&me, &[Seen { utime: 15, ..own }]);
    assert_eq!(tracker.known[&me.id].ended, (3, 0));
}

/// A program in a new directory that begins itself again and again.
fn again(name: &str, mode: u32) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("lsf-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let again = dir.join(name);
    std::fs::write(&again, format!("#!/bin/sh\nexec {} \n", again.display())).unwrap();
    std::fs::set_permissions(&again, PermissionsExt::from_mode(mode)).unwrap();
    again
}

/// A child of this process that runs that program.
fn orphan_again() -> Option<Seen> {
    let of = |pid: u32| std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    process_table::scan()
        .into_iter()
        .filter(|p| !p.zombie)
        .find(|p| p.parent == std::process::id() && of(p.pid).windows(7).any(|w| w == b"(again)"))
}

/// A process has no environment while it begins a program, and one of these does it all the time.
#[test]
fn orphans_that_begin_programs_again_and_again_are_killed() {
    crate::sys::raw::adopt_orphans().unwrap();
    let again = again("again", 0o700);
    for n in 0..60 {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("(setsid {} > /dev/null 2>&1 &)", again.display())]);
        let mut child = shell.env("LSB_JOBID", "1").env("LSB_JOBINDEX", "0").spawn().unwrap();
        let me = task(child.id(), None);
        let mut tracker = TaskTracker::new(std::process::id());
        tracker.child_made(child.id());
        child.wait().unwrap();
        until(|| orphan_again().is_some());
        let orphan = orphan_again().unwrap().process();
        signal(&mut tracker, &me, 9);
        let ends = Instant::now() + Duration::from_secs(5);
        while orphan.alive() && Instant::now() < ends {
            std::thread::sleep(Duration::from_millis(1));
        }
        let lives = orphan.alive();
        let _ = orphan.signal(Signal::KILL);
        assert!(!lives, "orphan {n} goes on");
    }
    std::fs::remove_dir_all(again.parent().unwrap()).unwrap();
}

#[test]
fn orphan_of_another_user_that_begins_programs_does_not_prolong_a_kill() {
    const NOBODY: u32 = 65534;
    if crate::sys::euid() != 0 {
        return eprintln!("skipped: not root, and no process of another user can be started");
    }
    crate::sys::raw::adopt_orphans().unwrap();
    let again = again("others", 0o755);
    let mut child = Command::new("sleep").arg("306").spawn().unwrap();
    // no orphan of other tests is of this user
    let me = TaskIdentity { uid: NOBODY - 1, ..task(child.id(), None) };
    let mut other = Command::new("setsid").arg(&again).uid(NOBODY).spawn().unwrap();
    let mut tracker = TaskTracker::new(std::process::id());
    tracker.child_made(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    let mut begun = 0;
    for _ in 0..2000 {
        assert!(tracker.signal(std::slice::from_ref(&me), 9, &[]).is_none(), "it is over at once");
        begun += usize::from(tracker.begin.contains(&NOBODY));
        if begun == 5 {
            break;
        }
    }
    other.kill().unwrap();
    other.wait().unwrap();
    std::fs::remove_dir_all(again.parent().unwrap()).unwrap();
    assert!(begun > 0, "the other process was never seen to begin a program");
}

/// A group of this test's own, with two processes in sessions of their own; `None` where none can
/// be made.
fn group(version: cgroup::Version) -> Option<(PathBuf, Vec<Child>)> {
    let own = cgroup::own_groups().into_iter().find(|(v, _)| *v == version)?.1;
    let dir = own.join(format!("lsf-test-{}", std::process::id())).join("1");
    cgroup::make(dir.parent()?).and_then(|()| cgroup::make(&dir)).ok()?;
    let sleep = |_| {
        let child = Command::new("setsid").args(["-w", "sleep", "304"]).spawn().unwrap();
        cgroup::enter(&dir, child.id()).unwrap();
        child
    };
    let children: Vec<Child> = (0..2).map(sleep).collect();
    Some((dir, children))
}

fn group_is_measured_and_signalled_whole(version: cgroup::Version) {
    let Some((dir, mut children)) = group(version) else {
        return eprintln!("skipped: no control group of {version:?} can be made");
    };
    let mut tracker = TaskTracker::new(0);
    let me = task(children[0].id(), Some(&dir));
    let mine = children.iter().map(Child::id);
    assert!(mine.clone().all(|pid| cgroup::holds(&dir, pid)));
    assert!(!cgroup::holds(&dir, std::process::id()));
    let sampled = tracker.sample(std::slice::from_ref(&me), &[]);
    assert!(mine.clone().all(|pid| sampled[0].pids.contains(&pid)), "{sampled:?}");
    signal(&mut tracker, &me, 19);
    until(|| mine.clone().all(|pid| state(pid) == Some('T')));
    signal(&mut tracker, &me, 9);
    children.iter_mut().for_each(|child| assert!(!child.wait().unwrap().success()));
    until(|| cgroup::processes(&dir).is_ok_and(|pids| pids.is_empty()));
    until(|| cgroup::remove(&dir).is_ok());
    let _ = cgroup::remove(dir.parent().unwrap());
}

#[test]
fn control_group_of_version_two_is_measured_and_signalled_whole() {
    group_is_measured_and_signalled_whole(cgroup::Version::Two);
}

#[test]
fn control_group_of_version_one_is_measured_and_signalled_whole() {
    group_is_measured_and_signalled_whole(cgroup::Version::Freezer);
}
