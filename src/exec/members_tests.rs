//! The jobs of other hosts that sbatchd knows of, and the tasks of jobs.

use super::*;

use crate::model::job::Usage;
use crate::model::limits::{Limits, MemoryOf};
use crate::proto::launch::TaskGroup;

const KEY: JobKey = JobKey { job: 7, idx: 0, attempt: 1 };
const NOW: Now = Now { mono_us: 1_000_000, wall_us: 0 };

fn order(key: JobKey) -> Box<StartJob> {
    Box::new(StartJob { key, uid: 9, ..StartJob::default() })
}

fn task(n: u32, key: JobKey) -> TaskInfo {
    let id = TaskId { key: JobKey { job: n, idx: 1 << 31, attempt: 5 }, step: TaskStep::Task };
    let note = TaskNote { key, ..TaskNote::default() }.text();
    TaskInfo { uid: 9, pid: 100 + n, ticks: 3, note, ..TaskInfo::new(id) }
}

fn ended(mut info: TaskInfo) -> TaskInfo {
    use crate::model::job::End;
    let (end, usage) = (End::Status(0), Usage::default());
    info.ended = Some(crate::proto::launch::TaskEnd { time: 5, end, usage, restarted: false });
    info
}

fn later(secs: u64) -> Now {
    Now { mono_us: NOW.mono_us + secs * US, ..NOW }
}

/// The launcher has no more news.
fn launcher_answers(members: &mut Members) {
    if !members.to_tell_launcher().is_empty() {
        members.launcher_answers();
    }
}

fn left(members: &mut Members) -> Vec<JobKey> {
    let told = |(key, usage): (JobKey, Option<Usage>)| usage.map(|_| key);
    launcher_answers(members);
    members.take_left().into_iter().filter_map(told).collect()
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

/// The launcher would forget the task, and nobody would hear of its end.
#[test]
fn task_that_has_not_begun_is_none_that_has_ended() {
    let mut members = joined();
    members.told(NOW, &TaskInfo { pid: 0, ticks: 0, ..task(1, KEY) }, false);
    members.leave(NOW, KEY, true);
    assert_eq!(left(&mut members), [KEY]);
    assert_eq!(members.take_ended(KEY).count(), 0);
    // it begins after its job has left, and is ended
    members.told(NOW, &task(1, KEY), true);
    assert_eq!(members.due(NOW, 10), [(KEY, vec![15, 18])]);
    members.told(NOW, &ended(task(1, KEY)), true);
    assert!(left(&mut members).is_empty());
    assert_eq!(members.take_ended(KEY).count(), 1);
}

#[test]
fn job_without_tasks_has_left_at_once() {
    let mut members = joined();
    members.leave(NOW, KEY, true);
    assert_eq!(left(&mut members), [KEY]);
    assert!(left(&mut members).is_empty());
    // mbatchd may ask again about what is gone
    members.leave(NOW, KEY, true);
    assert_eq!(left(&mut members), [KEY]);
    assert_eq!(members.deadline(), None);
}

#[test]
fn job_with_tasks_has_left_when_they_have_ended_by_term_or_kill() {
    let mut members = joined();
    members.told(NOW, &task(1, KEY), true);
    members.told(NOW, &task(2, KEY), true);
    members.leave(NOW, KEY, true);
    assert_eq!(members.due(NOW, 10), [(KEY, vec![15, 18])]);
    assert!(left(&mut members).is_empty() && members.due(later(9), 10).is_empty());
    members.told(NOW, &ended(task(1, KEY)), true);
    assert_eq!(members.due(later(10), 10), [(KEY, vec![9])]);
    assert_eq!(members.due(later(11), 10), [(KEY, vec![9])]);
    assert!(left(&mut members).is_empty());
    members.told(NOW, &ended(task(2, KEY)), true);
    assert_eq!(left(&mut members), [KEY]);
}

#[test]
fn job_that_leaves_before_its_kill_was_due_is_killed_at_once() {
    for number in [9, 15] {
        let mut members = joined();
        members.told(NOW, &task(1, KEY), true);
        let signal = Act::Signal { number };
        assert_eq!(members.act(NOW, KEY, (0, 1), &signal, (10, 20)).is_empty(), number == 9);
        members.leave(NOW, KEY, true);
        let want = if number == 9 { vec![9] } else { vec![15, 18] };
        assert_eq!(members.due(NOW, 10), [(KEY, want)]);
    }
}

#[test]
fn task_that_begins_after_its_job_has_left_is_ended() {
    let mut members = joined();
    members.leave(NOW, KEY, true);
    assert_eq!(left(&mut members), [KEY]);
    members.told(NOW, &task(1, KEY), true);
    assert_eq!(members.due(NOW, 10), [(KEY, vec![15, 18])]);
    members.told(NOW, &ended(task(1, KEY)), true);
    assert!(left(&mut members).is_empty(), "mbatchd was told already");
}

#[test]
fn slots_of_a_job_here_are_those_of_its_order_or_of_the_notes_of_its_tasks() {
    let of = |n: u32| {
        let hosts = [("h1".into(), 4), ("h2".into(), n), ("h2".into(), 1)].into();
        Box::new(StartJob { hosts, ..*order(KEY) })
    };
    let mut members = Members::default();
    assert_eq!(members.slots(KEY, "h2"), 0);
    members.join(of(1)).unwrap();
    assert_eq!((members.slots(KEY, "h2"), members.slots(KEY, "h3")), (2, 0));
    // the job has grown here
    members.join(of(3)).unwrap();
    assert_eq!(members.slots(KEY, "h2"), 4);
    let with = |n: u32, slots: u32| {
        let note = TaskNote { key: KEY, slots, ..TaskNote::default() }.text();
        TaskInfo { note, ..task(n, KEY) }
    };
    members.told(NOW, &with(1, 2), true);
    members.leave(NOW, KEY, true);
    assert_eq!(members.slots(KEY, "h2"), 4, "it has them until it has left");
    members.told(NOW, &ended(with(1, 2)), true);
    assert_eq!(left(&mut members), [KEY]);
    assert_eq!(members.slots(KEY, "h2"), 0);
    // a sbatchd that was started since finds the tasks alone
    let mut members = Members::default();
    members.told(NOW, &task(1, KEY), false);
    assert_eq!(members.slots(KEY, "h2"), 0, "res of an older release started it");
    members.told(NOW, &with(2, 2), false);
    members.told(NOW, &with(3, 3), false);
    assert_eq!(members.slots(KEY, "h2"), 3, "the job grew before the last one");
}

#[test]
fn task_is_known_by_its_note_alone_and_settled_by_mbatchd() {
    let mut members = Members::default();
    members.told(NOW, &TaskInfo { note: String::new(), ..task(1, KEY) }, true);
    assert!(members.to_settle(|_| false).is_empty());
    members.told(NOW, &task(1, KEY), true);
    assert_eq!(members.to_settle(|_| false), [KEY]);
    assert!(members.to_settle(|key| key == KEY).is_empty(), "an attempt of this host");
    assert_eq!(members.tasks_of(KEY).map(|t| t.pid).collect::<Vec<_>>(), [101]);
    members.listed(&BTreeSet::new());
    assert_eq!(members.tasks_of(KEY).count(), 0);
}

#[test]
fn order_acts_once_and_a_kill_is_repeated() {
    let mut members = joined();
    members.told(NOW, &task(1, KEY), true);
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
    assert!(act(&mut members, 5, &terminate).is_empty());
    assert!(members.due(NOW, 10).is_empty(), "the script of the first host is killed before");
    assert_eq!(members.due(later(1), 10), [(KEY, vec![9])]);
    assert_eq!(members.due(later(11), 10), [(KEY, vec![9])]);
    assert!(act(&mut members, 4, &terminate).is_empty());
    assert!(members.act(NOW, JobKey { job: 8, ..KEY }, (0, 9), &terminate, how).is_empty());
}

#[test]
fn usage_of_a_job_is_that_of_its_tasks_which_run_and_have_ended() {
    let mut members = joined();
    let with = |mut info: TaskInfo, us: u64| {
        if let Some(ended) = &mut info.ended {
            ended.usage = Usage { utime_us: us, max_mem_kb: 40, nprocs: 3, ..Usage::default() };
        }
        info
    };
    for n in 1..=2 {
        members.told(NOW, &task(n, KEY), true);
    }
    assert!(members.to_measure(NOW, 5 * US).is_empty());
    assert_eq!(members.to_measure(later(1), 5 * US).len(), 2);
    assert_eq!(members.sample_at(), Some(later(6).mono_us));
    members.told(NOW, &with(ended(task(1, KEY)), 500), true);
    // a list of the launcher tells of it again
    members.told(NOW, &with(ended(task(1, KEY)), 500), false);
    let usage = Usage { utime_us: 30, mem_kb: 70, nprocs: 2, ..Usage::default() };
    let seen = TaskProcesses { pid: 102, usage, pids: vec![102, 7], ..TaskProcesses::default() };
    let mut by_pid = BTreeMap::from([(102, seen)]);
    let changed = members.measured(&by_pid);
    assert_eq!(changed.len(), 1);
    let (key, used, over) = &changed[0];
    assert!(!over);
    assert_eq!(
        (*key, used.usage.utime_us, used.usage.mem_kb, used.usage.nprocs),
        (KEY, 530, 70, 2)
    );
    assert_eq!((used.usage.max_mem_kb, used.pids.as_slice()), (70, &[7, 102][..]));
    assert!(members.measured(&by_pid).is_empty(), "nothing has changed");
    by_pid.get_mut(&102).unwrap().pids = vec![102, 8];
    assert_eq!(members.measured(&by_pid)[0].1.pids, [8, 102], "another process uses as much");
    members.told(NOW, &with(ended(task(2, KEY)), 40), true);
    members.leave(NOW, KEY, true);
    launcher_answers(&mut members);
    let usage = members.take_left()[0].1.unwrap();
    assert_eq!((usage.utime_us, usage.max_mem_kb, usage.mem_kb), (540, 80, 0));
    assert_eq!(members.spent(KEY), Usage::default());
}

#[test]
fn ended_tasks_are_kept_in_mind_until_their_job_leaves_or_there_are_too_many() {
    let mut members = joined();
    for n in 0..ENDED_MAX as u32 {
        assert_eq!(members.told(NOW, &ended(task(n, KEY)), true), None);
        assert_eq!(members.told(NOW, &ended(task(n, KEY)), false), None, "told once more");
    }
    let first = task(0, KEY).id;
    assert_eq!(members.told(NOW, &ended(task(9999, KEY)), true), Some(first));
    members.leave(NOW, KEY, true);
    assert_eq!(left(&mut members), [KEY]);
    assert_eq!(members.take_ended(KEY).count(), ENDED_MAX);
    assert!(!members.knows(KEY) && members.to_settle(|_| false).is_empty());
}

#[test]
fn ended_task_that_has_left_processes_is_kept_in_mind_before_those_that_left_none() {
    let mut members = joined();
    let with = |n: u32, empty: bool| {
        let group = Some(Box::new(TaskGroup { empty, ..TaskGroup::default() }));
        TaskInfo { group, ..ended(task(n, KEY)) }
    };
    for n in 0..3 * ENDED_MAX as u32 {
        let goes = members.told(NOW, &with(n, n != 0), true);
        let due = n.checked_sub(ENDED_MAX as u32 - 1).filter(|n| *n > 0);
        assert_eq!(goes, due.map(|n| task(n, KEY).id), "the oldest that left nothing");
    }
    assert_eq!(members.take_ended(KEY).next(), Some(task(0, KEY).id));
}

/// The end of a task that ends its job is told until the attempt has left, however many crash.
#[test]
fn crash_of_a_task_ends_its_job_where_its_note_says_so() {
    use crate::model::task_gone::TaskGoneAction;
    let gone = |action: Option<TaskGoneAction>, status: i32, set_up: bool, signalled: bool| {
        let mut members = joined();
        let note = TaskNote { key: KEY, gone: action, ..TaskNote::default() }.text();
        let mut info = TaskInfo { note, ..ended(task(1, KEY)) };
        info.ended.as_mut().unwrap().end = crate::model::job::End::Status(status);
        info.signalled = signalled;
        info.setup = set_up.then(|| Setup::Ready(Box::default()));
        members.told(NOW, &info, true);
        members.told(NOW, &TaskInfo { id: task(2, KEY).id, ..info }, true);
        let told: Vec<_> = members.gone().collect();
        assert_eq!((members.take_newly_gone(), members.take_newly_gone()), (told.clone(), vec![]));
        members.leave(NOW, KEY, true);
        assert_eq!((left(&mut members), members.gone().count()), (vec![KEY], 0));
        told
    };
    let crash = Some(TaskGoneAction::default());
    assert_eq!(gone(crash, 11, true, false), [(KEY, 11)]);
    assert_eq!(gone(crash, 11, true, true), []);
    assert_eq!(gone(crash, 11, false, false), []);
    assert_eq!(gone(crash, 0x100, true, false), []);
    assert_eq!(gone(None, 11, true, false), []);
}

#[test]
fn tasks_of_members_are_measured_as_their_jobs_say_and_those_of_many_hosts_less_often() {
    let mut members = joined();
    let [often, wide, of_pam] = [8, 9, 11].map(|job| JobKey { job, ..KEY });
    members.join(order(often)).unwrap();
    let hosts: Vec<_> = (0..100).map(|n| (format!("h{n}").into(), 1)).collect();
    for key in [wide, of_pam] {
        members.join(Box::new(StartJob { hosts: hosts.clone().into(), ..*order(key) })).unwrap();
    }
    let note = TaskNote { key: often, usage_secs: 2, ..TaskNote::default() }.text();
    for info in [task(1, KEY), TaskInfo { note, ..task(2, often) }, task(3, wide)] {
        members.told(NOW, &info, true);
    }
    // the tasks of pam have the time that pam says
    let note = TaskNote { key: of_pam, pam_ms: Some(2500), ..TaskNote::default() };
    members.told(NOW, &TaskInfo { note: note.text(), ..task(5, of_pam) }, true);
    // of a job of this host: measured with that
    members.told(NOW, &task(4, JobKey { job: 10, ..KEY }), true);
    let mut measured: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for secs in 0..=40 {
        let due = members.sample_at().is_some_and(|at| at <= later(secs).mono_us);
        let tasks = members.to_measure(later(secs), 7 * US);
        assert!(due || tasks.is_empty(), "{secs}");
        tasks.iter().for_each(|task| measured.entry(task.pid).or_default().push(secs));
    }
    let odd: Vec<u64> = (1..=40).step_by(2).collect();
    let all = [
        (101, vec![1, 8, 15, 22, 29, 36]),
        (102, odd),
        (103, vec![1, 31]),
        (105, vec![1, 11, 21, 31]),
    ];
    assert_eq!(measured, all.into());
    // one that has left is measured no more
    members.leave(later(41), often, true);
    assert!(members.to_measure(later(60), 7 * US).iter().all(|task| task.pid != 102));
}

fn with_directory(mut info: TaskInfo, new: bool) -> TaskInfo {
    let directory = JobDirectory { path: "/tmp/7.tmpdir".into(), device: 1, inode: 2, new };
    let ready =
        crate::proto::launch::Ready { temporary: Some(Box::new(directory)), ..<_>::default() };
    info.setup = Some(Setup::Ready(Box::new(ready)));
    info
}

#[test]
fn directory_that_a_task_has_made_is_unused_when_its_job_has_left() {
    for new in [true, false] {
        let mut members = joined();
        members.told(NOW, &with_directory(task(1, KEY), new), true);
        members.told(NOW, &with_directory(task(2, KEY), false), true);
        members.told(NOW, &with_directory(ended(task(1, KEY)), new), true);
        members.leave(NOW, KEY, true);
        // the second task still runs
        assert_eq!(left(&mut members), []);
        assert!(members.take_unused_directories().is_empty());
        members.told(NOW, &with_directory(ended(task(2, KEY)), false), true);
        assert_eq!(left(&mut members), [KEY]);
        let unused = members.take_unused_directories();
        let paths = unused.iter().map(|(d, o)| (d.path.lossy(), o.as_ref().map(|o| o.uid)));
        let want: &[_] = if new { &[("/tmp/7.tmpdir".into(), Some(9))] } else { &[] };
        assert_eq!(paths.collect::<Vec<_>>(), want);
        assert!(members.take_unused_directories().is_empty());
    }
}

/// The next sbatchd knows by it of the directory.
#[test]
fn task_that_has_made_a_directory_is_remembered_until_its_job_leaves() {
    let mut members = joined();
    members.told(NOW, &with_directory(ended(task(1, KEY)), true), true);
    let tasks = 2..ENDED_MAX as u32 + 100;
    let forgotten: Vec<u32> = tasks
        .filter_map(|n| members.told(NOW, &ended(task(n, KEY)), true))
        .map(|id| id.key.job)
        .collect();
    assert_eq!(forgotten[..2], [2, 3]);
    assert!(members.take_ended(KEY).any(|id| id.key.job == 1));
}

/// The launcher hears no usage of such a task where nobody has measured it at its end.
#[test]
fn processor_time_of_an_adopted_task_counts_as_it_was_measured_last() {
    use crate::model::job::{End, Usage};
    let mut members = joined();
    let plain = task(1, KEY);
    let note = TaskNote { adopted: true, ..TaskNote::of(&plain.note).unwrap() }.text();
    let info = TaskInfo { note, ..plain };
    members.told(NOW, &info, true);
    let used = |utime_us| {
        let usage = Usage { utime_us, mem_kb: 100, ..Usage::default() };
        TaskProcesses { pid: info.pid, usage, pids: vec![info.pid], ..TaskProcesses::default() }
    };
    for (measured, at_end, want) in [(70, 50, 70), (70, 90, 90)] {
        let mut members = joined();
        members.told(NOW, &info, true);
        let by_pid = BTreeMap::from([(info.pid, used(measured))]);
        members.keep_measured(&by_pid);
        assert_eq!(members.measured(&by_pid).len(), 1);
        // the job may end before the launcher has seen that the task has
        assert_eq!(members.spent_at_end(KEY).utime_us, measured);
        let usage = Usage { utime_us: at_end, ..Usage::default() };
        let end =
            crate::proto::launch::TaskEnd { time: 5, end: End::Unknown, usage, restarted: false };
        members.told(NOW, &TaskInfo { ended: Some(end), ..info.clone() }, true);
        assert_eq!((members.spent(KEY).utime_us, members.spent_at_end(KEY).utime_us), (want, want));
    }
}

#[test]
fn process_or_task_beyond_the_memory_limit_of_its_job_is_told_until_that_is_over() {
    let beyond = |of: MemoryOf, most: u64| {
        let mut members = Members::default();
        let limits = Limits { rss: Some(most), memory_of: Some(of), ..Limits::default() };
        members.join(Box::new(StartJob { limits, ..*order(KEY) })).unwrap();
        let mut by_pid = BTreeMap::new();
        for n in 1..=2 {
            members.told(NOW, &task(n, KEY), true);
            let usage = Usage { mem_kb: 60, ..Usage::default() };
            let pid = 100 + n;
            let (most_of_process, most_of_task) = (40, 60);
            let seen =
                TaskProcesses { pid, usage, most_of_process, most_of_task, ..<_>::default() };
            by_pid.insert(pid, seen);
        }
        // usage that stays as it is is told once, a limit that is exceeded again and again
        let mut told = || members.measured(&by_pid).iter().map(|told| told.2).collect::<Vec<_>>();
        (told(), told())
    };
    let [job, process, task] = [(true, false, false), (false, true, false), (false, false, true)]
        .map(|(job, process, task)| MemoryOf { job, process, task });
    let (over, not) = ((vec![true], vec![true]), (vec![false], vec![]));
    for (of, most, want) in [
        (process, 39, &over),
        (process, 40, &not),
        (task, 59, &over),
        (task, 60, &not),
        // mbatchd adds up what all hosts tell of
        (job, 1, &not),
    ] {
        assert_eq!(beyond(of, most), *want, "{of:?} {most}");
    }
    let mut members = joined();
    let limits = Limits { rss: Some(1), memory_of: Some(process), ..Limits::default() };
    members.act(NOW, KEY, (1, 1), &Act::Limits(Box::new(limits.clone())), (10, 19));
    assert_eq!(members.order(KEY).unwrap().limits, limits);
}

/// News of a task that the launcher has started come before its answer.
#[test]
fn job_leaves_when_the_launcher_has_told_what_it_started_before() {
    let mut members = joined();
    members.leave(NOW, KEY, true);
    assert_eq!((members.to_tell_launcher(), members.to_tell_launcher()), (vec![KEY], vec![]));
    assert!(members.take_left().is_empty());
    members.told(NOW, &task(1, KEY), true);
    members.launcher_answers();
    assert!(members.take_left().is_empty());
    members.told(NOW, &ended(task(1, KEY)), true);
    assert_eq!(members.take_left().len(), 1);
    // a launcher of another connection has told all, and may begin more
    members.leave(NOW, KEY, true);
    assert!(members.to_tell_launcher() == [KEY] && members.take_left().is_empty());
    members.launcher_linked();
    assert!(members.take_left().is_empty());
    assert_eq!(members.to_tell_launcher(), [KEY]);
    // a second question would be answered, too, and its answer be taken for that to a later one
    members.listed(&BTreeSet::new());
    assert_eq!(members.to_tell_launcher(), []);
    assert!(members.take_left().is_empty());
    members.launcher_answers();
    assert_eq!(members.take_left().len(), 1);
}
