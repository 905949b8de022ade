//! The launcher's hold on the processes of its tasks: the control groups of jobs, and signals.
//!
//! A job, and a task that res has started for a job, begins in a control group of its own where the
//! launcher can make one; the directories are used again. Where it cannot (no right to, mounted
//! read-only, LSF_PROCESS_TRACKING=N), their processes are found by their ancestors, see
//! [`crate::sys::task_processes`].
//!
//! Invariants: a group is given to a task only while no process is in it, and never once it was
//! killed: kernels that count kills (6.14 and later) also kill a process that begins in such a
//! group from a group of another count. Signals reach processes in the order in which they were
//! asked for; between two rounds of a stop the launcher does its other work.

use super::memory_limits::MemoryLimits;
use crate::model::job::Usage;
use crate::model::limits::GroupMemory;
use crate::proto::launch::{OsInput, TaskGroup, TaskId, TaskIdentity};
use crate::sys::cgroup::{self, Version};
use crate::sys::process_table::is_of;
use crate::sys::procs::Proc;
use crate::sys::task_processes::{Stop, TaskTracker, time_of_task};
use crate::sys::{raw, words};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most unused groups that are kept for later tasks.
const FREE_MAX: usize = 256;
/// Groups of forgotten tasks, with processes, that are checked again when one more is forgotten.
const LOOKS_MAX: usize = 4;
/// Longest wait at the end for processes that were killed to be gone, microseconds, and the pause
/// between two looks.
const KILLED_END: u64 = 5_000_000;
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const SIGKILL: i32 = 9;
const SIGSTOP: i32 = 19;

/// A group for a starter that is being made.
#[derive(Debug)]
pub(super) struct NewGroup {
    pub(super) group: Box<TaskGroup>,
    /// The directory, where a process can begin in it.
    pub(super) dir: Option<File>,
}

pub(super) struct TaskControl {
    tracker: TaskTracker,
    /// The directory of all groups; `None`: there are none.
    base: Option<(Version, PathBuf)>,
    /// The memory limits of jobs.
    memory: MemoryLimits,
    /// The number of the next new group.
    next: u32,
    free: Vec<TaskGroup>,
    /// Groups of forgotten tasks, with processes, that are checked again when one more is
    /// forgotten.
    left: VecDeque<TaskGroup>,
    /// The groups of running tasks, by the number of their first process.
    groups: BTreeMap<u32, Box<TaskGroup>>,
    /// The groups of ended tasks in which no process was left, with the CPU time of all that had
    /// been there, microseconds: nothing can enter such a group, so it is not looked at again.
    empty: BTreeMap<String, (u64, u64)>,
    /// The directories of groups that were killed, or may have been by an earlier launcher.
    killed: BTreeSet<String>,
    /// Starters can begin in their groups; otherwise they are moved there.
    begin_inside: bool,
    /// Tasks that are to get this signal.
    due: (i32, Vec<TaskIdentity>),
    /// Signals that kill or stop whose tasks made processes meanwhile. A task is in one of them.
    stops: VecDeque<Stop>,
}

impl TaskControl {
    /// `tracking`, `memory`: LSF_PROCESS_TRACKING, and LSB_RESOURCE_ENFORCE of memory. `tasks`:
    /// those that are known already.
    pub(super) fn new(
        rundir: &Path,
        (tracking, memory): (bool, bool),
        tasks: &[TaskIdentity],
    ) -> Self {
        if let Err(e) = raw::adopt_orphans() {
            log::warn!("orphans of jobs will not be found: {}", words(&e));
        }
        let base = tracking.then(|| base(rundir)).flatten();
        let mut me = TaskControl {
            tracker: TaskTracker::new(std::process::id()),
            memory: MemoryLimits::new(&name(rundir), base.as_ref(), memory),
            base,
            next: 1,
            free: Vec::new(),
            left: VecDeque::new(),
            groups: BTreeMap::new(),
            empty: BTreeMap::new(),
            killed: BTreeSet::new(),
            begin_inside: true,
            due: (0, Vec::new()),
            stops: VecDeque::new(),
        };
        for task in tasks {
            if task.child {
                me.tracker.child_made(task.pid);
            }
            me.killed.extend(task.group.as_ref().map(|group| group.dir.clone()));
            me.groups.extend(task.group.clone().map(|group| (task.pid, group)));
        }
        me.sweep(tasks);
        match &me.base {
            Some((_, dir)) => log::info!("each job has a control group in {}", dir.display()),
            None => log::info!("the processes of jobs are found by their ancestors"),
        }
        me
    }

    /// Removes the groups that no known task has.
    fn sweep(&mut self, tasks: &[TaskIdentity]) {
        let Some((_, base)) = &self.base else { return };
        let used: BTreeSet<&str> =
            tasks.iter().filter_map(|t| t.group.as_ref()).map(|g| g.dir.as_str()).collect();
        for dir in cgroup::below(base) {
            let number = dir.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            self.next = self.next.max(number.map_or(1, |n| n.saturating_add(1)));
            if !used.contains(dir.to_string_lossy().as_ref()) {
                // one with processes stays
                let _ = cgroup::remove(&dir);
            }
        }
        self.memory.sweep(tasks);
    }

    // ---- groups ----

    /// A group for the processes of this task, with limits of their memory.
    pub(super) fn group_for(
        &mut self,
        id: TaskId,
        memory: Option<GroupMemory>,
    ) -> Option<NewGroup> {
        let (version, base) = self.base.as_ref()?;
        let mut group = match self.free.pop() {
            Some(group) => Box::new(group),
            None => {
                let dir = base.join(self.next.to_string());
                self.next = self.next.wrapping_add(1).max(1);
                if let Err(e) = cgroup::make(&dir) {
                    log::error!("{}: {}: {id} has no control group", dir.display(), words(&e));
                    return None;
                }
                let dir = dir.to_string_lossy().into_owned();
                Box::new(TaskGroup { dir, ..TaskGroup::default() })
            }
        };
        if let Some(limit) = memory {
            self.memory.limit(id, limit, &mut group);
        }
        let inside = *version == Version::Two && self.begin_inside;
        let dir = inside.then(|| File::open(&group.dir).ok()).flatten();
        Some(NewGroup { group, dir })
    }

    /// The starter of a task waits for its byte; `inside`: it began in the group.
    pub(super) fn started(
        &mut self,
        pid: u32,
        new: Option<NewGroup>,
        inside: bool,
    ) -> Option<Box<TaskGroup>> {
        self.tracker.child_made(pid);
        let mut group = new?.group;
        if !inside && let Err(e) = cgroup::enter(Path::new(&group.dir), pid) {
            log::error!("{}: {}: pid {pid} is not in it", group.dir, words(&e));
            self.release(*group);
            return None;
        }
        self.memory.enter(pid, &mut group);
        self.groups.insert(pid, group.clone());
        Some(group)
    }

    pub(super) fn not_started(&mut self, new: Option<NewGroup>) {
        new.into_iter().for_each(|new| self.release(*new.group));
    }

    /// Whether a process that is no child of the launcher may be a task of this user. A process in
    /// the group of another task has the signals of that one already.
    ///
    /// # Errors
    /// It is gone, its number is another one's, it is not the user's alone, or it is in the group
    /// of another task.
    pub(super) fn may_adopt(&self, process: Proc, uid: u32) -> io::Result<()> {
        // the user first: what has this start after that had it before
        let own = is_of(process.pid, uid);
        let groups = cgroup::groups_of(process.pid);
        let inside = |g: &TaskGroup| cgroup::names(&groups, Path::new(&g.dir));
        let why = match process.alive() {
            false => ": No such process",
            true if !own || process.pid <= 1 => " is not one of the user's",
            true if self.groups.values().any(|g| inside(g)) => " is of another task",
            true => return Ok(()),
        };
        Err(io::Error::other(format!("process {}{why}", process.pid)))
    }

    /// A child that is no task was made.
    pub(super) fn child_made(&mut self, pid: u32) {
        self.tracker.child_made(pid);
    }

    /// A child has ended; its processor time is that of all its group. `killed_at_once`: it was a
    /// starter, and was killed before it could report anything. Says how its group is.
    pub(super) fn ended(
        &mut self,
        pid: u32,
        usage: &mut Usage,
        killed_at_once: bool,
    ) -> Option<OsInput> {
        self.tracker.child_ended(pid);
        let group = self.groups.remove(&pid)?;
        let dir = Path::new(&group.dir);
        // before the time is read: what leaves the group in between would not be in it
        let empty = cgroup::processes(dir).is_ok_and(|pids| pids.is_empty());
        let all = cgroup::cpu_time(dir);
        if empty {
            self.empty.insert(group.dir.clone(), all.unwrap_or_default());
        }
        if let Some((utime, stime)) = all.map(|all| time_of_task(&group, all))
            && utime + stime > usage.utime_us + usage.stime_us
        {
            (usage.utime_us, usage.stime_us) = (utime, stime);
        }
        if killed_at_once && self.begin_inside && !self.killed.contains(&group.dir) {
            log::warn!("a starter was killed as it began in {}: others are moved", group.dir);
            self.begin_inside = false;
        }
        let out_of_memory =
            !group.memory.is_empty() && cgroup::out_of_memory(Path::new(&group.memory));
        Some(OsInput::GroupAtEnd { pid, out_of_memory, empty })
    }

    /// The task of a group is forgotten.
    pub(super) fn release(&mut self, group: TaskGroup) {
        self.left.push_front(group);
        for _ in 0..LOOKS_MAX.min(self.left.len()) {
            let Some(mut group) = self.left.pop_front() else { return };
            let kept = self.memory.release(&mut group);
            let dir = Path::new(&group.dir);
            let reusable = kept && self.free.len() < FREE_MAX && !self.killed.contains(&group.dir);
            if let Some(used) = self.empty.remove(&group.dir).filter(|_| reusable) {
                (group.utime_us, group.stime_us) = used;
                self.free.push(group);
                continue;
            }
            match cgroup::processes(dir) {
                Ok(pids) if !pids.is_empty() => self.left.push_back(group),
                Ok(_) if reusable => {
                    if let Some((utime, stime)) = cgroup::cpu_time(dir) {
                        (group.utime_us, group.stime_us) = (utime, stime);
                    }
                    self.free.push(group);
                }
                _ => {
                    let _ = cgroup::remove(dir);
                    self.killed.remove(&group.dir);
                }
            }
        }
    }

    /// Before the launcher ends: removes what is not in use.
    pub(super) fn remove_groups(&self) {
        let Some((_, base)) = &self.base else { return };
        // a group with processes stays, and so does the directory of all; what was killed ends soon
        let until = crate::sys::now().mono_us + KILLED_END;
        for dir in cgroup::below(base) {
            let name = dir.to_string_lossy();
            let ends = self.killed.contains(&*name) && self.groups.values().all(|g| g.dir != name);
            while cgroup::remove(&dir).is_err() && ends && crate::sys::now().mono_us < until {
                std::thread::sleep(LOOK_AGAIN);
            }
        }
        let _ = cgroup::remove(base);
        self.memory.remove();
    }

    // ---- signals ----

    /// Whether tasks wait for another signal than this one.
    pub(super) fn waits_for_other(&self, signal: i32) -> bool {
        !self.due.1.is_empty() && self.due.0 != signal
    }

    /// Has a task get a signal, together with others that get the same.
    pub(super) fn signal(&mut self, task: TaskIdentity, signal: i32) {
        self.due.0 = signal;
        self.due.1.push(task);
    }

    /// Sends the signals that are due; `all`: every known task.
    pub(super) fn send_signals(&mut self, all: impl FnOnce() -> Vec<TaskIdentity>) {
        let (signal, mut tasks) = std::mem::take(&mut self.due);
        self.settle_stops(signal, &mut tasks);
        if signal == SIGKILL && tree(&tasks) && self.tracker.without_orphans() {
            // all that a child leaves behind comes to this process, and nothing of another one
            let gone = |t: &TaskIdentity| !Proc { pid: t.pid, ticks: t.ticks }.alive();
            tasks.retain(|t| t.group.is_some() || !t.child || !gone(t));
        }
        if signal == SIGKILL {
            let empty = |g: &TaskGroup| {
                self.empty.contains_key(&g.dir)
                    || cgroup::processes(Path::new(&g.dir)).is_ok_and(|pids| pids.is_empty())
            };
            tasks.retain(|t| t.group.as_ref().is_none_or(|g| !empty(g)));
            self.killed.extend(tasks.iter().filter_map(|t| Some(t.group.as_ref()?.dir.clone())));
        }
        if tasks.is_empty() {
            return;
        }
        let others = if tree(&tasks) { all() } else { Vec::new() };
        self.stops.extend(self.tracker.signal(&tasks, signal, &others));
        self.keep(&others, &tasks);
    }

    /// Decides between this signal and stops that are under way: of a task that is being killed
    /// nothing else is wanted, and a later signal ends a stop.
    fn settle_stops(&mut self, signal: i32, tasks: &mut Vec<TaskIdentity>) {
        if tasks.is_empty() {
            return;
        }
        for stop in &mut self.stops {
            if stop.kills() || signal == SIGSTOP {
                tasks.retain(|t| !stop.concerns(t.id));
            } else {
                stop.leave(tasks);
            }
        }
        self.stops.retain(|stop| !stop.tasks().is_empty());
    }

    /// When the next round of a stop that is under way is due, monotonic microseconds.
    pub(super) fn stop_at(&self) -> Option<u64> {
        self.stops.iter().map(Stop::at).min()
    }

    /// The next round of one stop that is due; `all`: every known task.
    pub(super) fn stop_round(&mut self, all: impl FnOnce() -> Vec<TaskIdentity>) {
        let now = crate::sys::now().mono_us;
        let due = self.stops.iter().position(|stop| stop.at() <= now);
        let Some(mut stop) = due.and_then(|at| self.stops.remove(at)) else { return };
        let others = if tree(stop.tasks()) { all() } else { Vec::new() };
        let last = self.tracker.stop_round(&mut stop, &others);
        self.keep(&others, stop.tasks());
        if !last {
            self.stops.push_back(stop);
        }
    }

    /// Forgets the processes of all tasks but these and those that are being stopped.
    fn keep(&mut self, others: &[TaskIdentity], tasks: &[TaskIdentity]) {
        let stopping = self.stops.iter().flat_map(Stop::tasks);
        self.tracker.keep(others.iter().chain(tasks).chain(stopping));
    }
}

/// Whether processes of these tasks are found by their ancestors.
fn tree(tasks: &[TaskIdentity]) -> bool {
    tasks.iter().any(|t| t.group.is_none())
}

/// The name of the directory of this launcher's groups: several launchers may have one group, also
/// with one path, in PID namespaces of their own.
fn name(rundir: &Path) -> String {
    let path = rundir.join(std::fs::read_link("/proc/self/ns/pid").unwrap_or_default());
    let hash = path.to_string_lossy().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("lsf-{hash:016x}")
}

/// The directory of the groups of all tasks, made within the launcher's own group.
fn base(rundir: &Path) -> Option<(Version, PathBuf)> {
    for (version, own) in cgroup::own_groups().into_iter().filter(|of| of.0 != Version::Memory) {
        let dir = own.join(name(rundir));
        // to be allowed to make it is not yet to be allowed to use it
        let made = cgroup::make(&dir)
            .and_then(|()| File::options().write(true).open(dir.join("cgroup.procs")));
        match made {
            Ok(_) => return Some((version, dir)),
            Err(e) => log::info!("{}: {}", dir.display(), words(&e)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JobKey;
    use crate::proto::launch::TaskStep;
    use crate::sys::process_table::see;
    use std::process::{Child, Command};

    fn sleeper() -> (Child, TaskIdentity) {
        let child = Command::new("setsid").args(["-w", "sleep", "305"]).spawn().unwrap();
        let pid = child.id();
        let key = JobKey { job: 1, idx: 0, attempt: 1 };
        let id = TaskId { key, step: TaskStep::Job };
        let ticks = see(pid).unwrap().start;
        (child, TaskIdentity { id, uid: crate::sys::euid(), pid, ticks, group: None, child: true })
    }

    fn control() -> TaskControl {
        TaskControl::new(Path::new("/nonexistent"), (false, false), &[])
    }

    fn send(control: &mut TaskControl, task: &TaskIdentity, signal: i32) {
        control.signal(task.clone(), signal);
        control.send_signals(Vec::new);
    }

    #[test]
    fn continue_ends_a_stop_that_is_under_way() {
        let (mut child, task) = sleeper();
        let mut control = control();
        send(&mut control, &task, SIGSTOP);
        assert!(control.stop_at().is_some());
        // the same once more is no second stop
        send(&mut control, &task, SIGSTOP);
        assert_eq!(control.stops.len(), 1);
        send(&mut control, &task, 18);
        assert!(control.stop_at().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn task_that_is_being_killed_gets_no_other_signal() {
        let (mut child, task) = sleeper();
        let mut control = control();
        send(&mut control, &task, SIGSTOP);
        send(&mut control, &task, SIGKILL);
        assert!(control.stops.len() == 1 && control.stops[0].kills());
        send(&mut control, &task, 18);
        assert!(control.stop_at().is_some(), "the kill goes on");
        while control.stop_at().is_some() {
            control.stop_round(Vec::new);
        }
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn process_that_is_gone_or_not_the_users_is_not_adopted() {
        let (mut child, task) = sleeper();
        let process = Proc { pid: task.pid, ticks: task.ticks };
        let control = control();
        let why =
            |process: Proc, uid: u32| control.may_adopt(process, uid).map_err(|e| e.to_string());
        assert_eq!(why(process, task.uid), Ok(()));
        let other = Err(format!("process {} is not one of the user's", task.pid));
        assert_eq!(why(process, task.uid + 1), other);
        // the number is that of a later process
        let gone = Err(format!("process {}: No such process", task.pid));
        assert_eq!(why(Proc { ticks: task.ticks + 1, ..process }, task.uid), gone);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(why(process, task.uid), gone);
    }
}
