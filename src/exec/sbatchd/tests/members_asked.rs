//! res asks about jobs that have, or may have, slots on this host.

use super::restarts::launcher_dies;
use super::*;
use crate::model::JobRef;
use crate::proto::launch::{Plan, TaskPlan};
use crate::proto::member::TaskNote;

const RES: ConnId = MBD + 40;

fn asked(r: &mut Rig, job: u32) -> MemberMsg {
    let host = r.sbd.as_ref().unwrap().conf.site.host.clone();
    let peer = Peer::Daemon { daemon: Daemon::Res, host };
    r.feed(Input::Opened { conn: RES, peer });
    let job = JobRef { job, idx: 0 };
    r.feed(Input::Msg { conn: RES, msg: Msg::Member(MemberMsg::Ask { job }) });
    r.members.pop().unwrap()
}

fn settled(msg: &MemberMsg) -> Option<bool> {
    if let MemberMsg::Unknown { settled, .. } = msg { Some(*settled) } else { None }
}

/// A restarted sbatchd hears of the jobs that it does not know; one that has been told of all has
/// nothing to wait for.
#[test]
fn job_that_no_order_tells_of_is_unknown_for_good_once_mbatchd_had_its_time() {
    let mut r = Rig::new();
    assert_eq!(settled(&asked(&mut r, 5)), Some(false));
    r.wait(9);
    assert_eq!(settled(&asked(&mut r, 5)), Some(false));
    r.wait(1);
    assert_eq!(settled(&asked(&mut r, 5)), Some(true));
    r.order(SbdMsg::Join(Box::new(order(5))));
    assert!(matches!(asked(&mut r, 5), MemberMsg::Told(_)));
    // without mbatchd nothing is settled
    r.feed(Input::Closed { conn: MBD });
    assert_eq!(settled(&asked(&mut r, 6)), Some(false));
    r.greet(1);
    assert_eq!(settled(&asked(&mut r, 6)), Some(false));
}

#[test]
fn job_that_is_over_on_its_first_host_is_unknown_for_good() {
    let mut r = Rig::new();
    r.slow = true;
    r.start(order(1));
    assert!(matches!(asked(&mut r, 1), MemberMsg::Told(_)));
    let pid = r.pid();
    r.exits(pid, 0);
    assert_eq!(settled(&asked(&mut r, 1)), Some(true));
}

/// The launcher is asked for a task of the job as res asks, which has heard of the job at this
/// instant; what it tells sbatchd.
fn begin(r: &mut Rig, n: u32, job: u32, told_at: u64) -> Vec<Msg> {
    let id = TaskId { key: JobKey { job: n, idx: 1 << 31, attempt: 5 }, step: TaskStep::Task };
    let note = TaskNote { key: key(job), told_at, ..TaskNote::default() }.text();
    let what = TaskPlan::Job(Box::default());
    let plan = Box::new(Plan { uid: 9, gid: 9, user: "u".into(), what });
    let msg = Msg::Launch(LaunchMsg::Start { id, plan, note });
    r.feed_launcher(Input::Msg { conn: UP, msg })
}

fn begins(r: &mut Rig, n: u32, job: u32, told_at: u64) -> bool {
    let before = r.plans.len();
    for msg in begin(r, n, job, told_at) {
        r.feed(Input::Msg { conn: LAUNCHER, msg });
    }
    r.plans.len() > before
}

fn told_at(msg: &MemberMsg) -> u64 {
    let MemberMsg::Told(of) = msg else { panic!("{msg:?}") };
    of.told_at
}

#[test]
fn task_that_res_asks_for_after_its_job_has_left_does_not_begin() {
    let mut r = Rig::new();
    r.wait(1);
    r.order(SbdMsg::Join(Box::new(order(5))));
    let first = told_at(&asked(&mut r, 5));
    assert!(begins(&mut r, 1, 5, first));
    r.wait(1);
    r.order(SbdMsg::Leave { key: key(5) });
    assert!(r.told.iter().any(|msg| matches!(msg, SbdMsg::Left { .. })));
    assert!(!begins(&mut r, 2, 5, first));
    r.wait(1);
    r.order(SbdMsg::Join(Box::new(order(5))));
    let again = told_at(&asked(&mut r, 5));
    assert!(begins(&mut r, 3, 5, again) && !begins(&mut r, 4, 5, first));
}

#[test]
fn job_that_is_forgotten_on_its_first_host_has_no_task_there() {
    let mut r = Rig::new();
    r.slow = true;
    r.wait(1);
    r.start(order(1));
    let first = told_at(&asked(&mut r, 1));
    let pid = r.pid();
    r.exits(pid, 0);
    // its news comes after the word of mbatchd
    let late = begin(&mut r, 1, 1, first);
    let task = r.next_pid;
    assert!(r.procs.contains_key(&task));
    r.wait(1);
    r.order(SbdMsg::Forget { key: key(1), mail: String::new() });
    for msg in late {
        r.feed(Input::Msg { conn: LAUNCHER, msg });
    }
    assert!(!r.procs.contains_key(&task));
    assert!(!begins(&mut r, 2, 1, first));
}

#[test]
fn tasks_of_a_member_are_stopped_and_continued_over_the_end_of_a_launcher() {
    let mut r = Rig::new();
    r.template.ignores = vec![SIGTSTP];
    r.wait(1);
    r.order(SbdMsg::Join(Box::new(order(5))));
    let first = told_at(&asked(&mut r, 5));
    assert!(begins(&mut r, 1, 5, first));
    let pid = r.pid();
    // it dies before each of these comes to it, but for the first
    r.act(5, 1, Act::Suspend);
    launcher_dies(&mut r);
    assert_eq!(r.procs[&pid].signals, [SIGTSTP]);
    r.wait(7);
    r.linked = false;
    r.wait(1);
    assert_eq!(r.procs[&pid].signals, [SIGTSTP]);
    launcher_dies(&mut r);
    assert_eq!(r.procs[&pid].signals, [SIGTSTP, SIGSTOP]);
    r.linked = false;
    r.act(5, 2, Act::Resume);
    launcher_dies(&mut r);
    assert_eq!(r.procs[&pid].signals, [SIGTSTP, SIGSTOP, SIGCONT]);
    launcher_dies(&mut r);
    assert_eq!(r.procs[&pid].signals, [SIGTSTP, SIGSTOP, SIGCONT]);
}
