//! The jobs of other hosts that sbatchd knows of, and the tasks of jobs.

use super::*;

const KEY: JobKey = JobKey { job: 7, idx: 0, attempt: 1 };
const NOW: Now = Now { mono_us: 1_000_000, wall_us: 0 };

fn order(key: JobKey) -> Box<StartJob> {
    Box::new(StartJob { key, uid: 9, ..StartJob::default() })
}

fn task(n: u32, key: JobKey) -> TaskInfo {
    let id = TaskId { key: JobKey { job: n, idx: 1 << 31, attempt: 5 }, step: TaskStep::Task };
    let note = TaskNote { key, detached: false }.text();
    TaskInfo { uid: 9, pid: 100 + n, ticks: 3, note, ..TaskInfo::new(id) }
}

fn ended(mut info: TaskInfo) -> TaskInfo {
    use crate::model::job::{End, Usage};
    let (end, usage) = (End::Status(0), Usage::default());
    info.ended = Some(crate::proto::launch::TaskEnd { time: 5, end, usage, restarted: false });
    info
}

fn later(secs: u64) -> Now {
    Now { mono_us: NOW.mono_us + secs * US, ..NOW }
}

fn joined() -> Members {
    let mut members = Members::default();
    members.join(order(KEY)).unwrap();
    members
}

#[test]
fn join_that_is_repeated_changes_nothing_and_the_last_attempt_is_found() {
    let mut members = joined();
    members.join(order(KEY)).unwrap();
    let next = JobKey { attempt: 2, ..KEY };
    members.join(order(next)).unwrap();
    assert_eq!(members.order_of(KEY.job_ref()).unwrap().key, next);
    assert_eq!(members.to_settle(|_| false), [KEY, next]);
    members.leave(NOW, next, true);
    assert_eq!(members.order_of(KEY.job_ref()).unwrap().key, KEY);
    assert!(members.order_of(JobRef { job: 8, idx: 0 }).is_none());
}

#[test]
fn job_without_tasks_has_left_at_once() {
    let mut members = joined();
    members.leave(NOW, KEY, true);
    assert_eq!(members.take_left(), [KEY]);
    assert!(members.take_left().is_empty());
    // mbatchd may ask again about what is gone
    members.leave(NOW, KEY, true);
    assert_eq!(members.take_left(), [KEY]);
    assert_eq!(members.deadline(), None);
}

#[test]
fn job_with_tasks_has_left_when_they_have_ended_by_term_or_kill() {
    let mut members = joined();
    members.told(NOW, &task(1, KEY));
    members.told(NOW, &task(2, KEY));
    members.leave(NOW, KEY, true);
    assert_eq!(members.due(NOW, 10), [(KEY, vec![15, 18])]);
    assert!(members.take_left().is_empty() && members.due(later(9), 10).is_empty());
    members.told(NOW, &ended(task(1, KEY)));
    assert_eq!(members.due(later(10), 10), [(KEY, vec![9])]);
    assert_eq!(members.due(later(11), 10), [(KEY, vec![9])]);
    assert!(members.take_left().is_empty());
    members.told(NOW, &ended(task(2, KEY)));
    assert_eq!(members.take_left(), [KEY]);
}

#[test]
fn task_that_begins_after_its_job_has_left_is_ended() {
    let mut members = joined();
    members.leave(NOW, KEY, true);
    assert_eq!(members.take_left(), [KEY]);
    members.told(NOW, &task(1, KEY));
    assert_eq!(members.due(NOW, 10), [(KEY, vec![15, 18])]);
    members.told(NOW, &ended(task(1, KEY)));
    assert!(members.take_left().is_empty(), "mbatchd was told already");
}

#[test]
fn task_is_known_by_its_note_alone_and_settled_by_mbatchd() {
    let mut members = Members::default();
    members.told(NOW, &TaskInfo { note: String::new(), ..task(1, KEY) });
    assert!(members.to_settle(|_| false).is_empty());
    members.told(NOW, &task(1, KEY));
    assert_eq!(members.to_settle(|_| false), [KEY]);
    assert!(members.to_settle(|key| key == KEY).is_empty(), "an attempt of this host");
    assert_eq!(members.tasks_of(KEY).map(|t| t.pid).collect::<Vec<_>>(), [101]);
    members.listed(&BTreeSet::new());
    assert_eq!(members.tasks_of(KEY).count(), 0);
}

#[test]
fn order_acts_once_and_a_kill_is_repeated() {
    let mut members = joined();
    members.told(NOW, &task(1, KEY));
    let how = (10, 20);
    let terminate = Act::Terminate { exit_info: 0 };
    let act = |members: &mut Members, n: u64, act: &Act| members.act(NOW, KEY, (0, n), act, how);
    assert_eq!(act(&mut members, 1, &Act::Signal { number: 10 }), [10]);
    assert!(act(&mut members, 1, &Act::Signal { number: 10 }).is_empty());
    assert_eq!(act(&mut members, 2, &Act::Suspend), [20]);
    assert_eq!(members.due(later(10), 10), [(KEY, vec![19])], "TSTP may have been ignored");
    assert_eq!(act(&mut members, 3, &Act::Suspend), [20]);
    assert_eq!(act(&mut members, 4, &Act::Resume), [18]);
    assert!(members.due(later(20), 10).is_empty());
    assert_eq!(act(&mut members, 5, &terminate), [9]);
    assert_eq!(members.due(later(10), 10), [(KEY, vec![9])]);
    assert!(act(&mut members, 4, &terminate).is_empty());
    assert!(members.act(NOW, JobKey { job: 8, ..KEY }, (0, 9), &terminate, how).is_empty());
}
