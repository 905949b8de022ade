//! The launcher's hold on the processes of its tasks: the control groups of jobs, and signals.
//!
//! A job begins in a control group of its own where the launcher can make one; the directories are
//! used again. Where it cannot (no right to, mounted read-only, LSF_PROCESS_TRACKING=N), the
//! processes of a job are found by their ancestors, see [`crate::sys::task_processes`].
//!
//! Invariants: a group is given to a task only while no process is in it, and never once it was
//! killed: kernels that count kills (6.14 and later) also kill a process that begins in such a
//! group from a group of another count. Signals reach processes in the order in which they were
//! asked for.

use crate::model::job::Usage;
use crate::proto::launch::{TaskGroup, TaskId, TaskIdentity, TaskStep};
use crate::sys::cgroup::{self, Version};
use crate::sys::procs::Proc;
use crate::sys::task_processes::{TaskTracker, cpu_time};
use crate::sys::{raw, words};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Most unused groups that are kept for later tasks.
const FREE_MAX: usize = 256;
/// Groups of forgotten tasks, with processes, that are checked again when one more is forgotten.
const LOOKS_MAX: usize = 4;
const SIGKILL: i32 = 9;

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
    /// The number of the next new group.
    next: u32,
    free: Vec<TaskGroup>,
    /// Groups of forgotten tasks, with processes, that are checked again when one more is
    /// forgotten.
    left: VecDeque<TaskGroup>,
    /// The groups of running tasks, by the number of their first process.
    groups: BTreeMap<u32, Box<TaskGroup>>,
    /// The directories of groups that were killed, or may have been by an earlier launcher.
    killed: BTreeSet<String>,
    /// Starters can begin in their groups; otherwise they are moved there.
    begin_inside: bool,
    /// Tasks that an earlier launcher started: their orphans do not come to this process.
    adopted: BTreeSet<TaskId>,
    /// Tasks that are to get this signal.
    due: (i32, Vec<TaskIdentity>),
}

impl TaskControl {
    /// `tasks`: those that are known already; `own`: their processes are children of this process.
    pub(super) fn new(rundir: &Path, tracking: bool, tasks: &[TaskIdentity], own: bool) -> Self {
        if let Err(e) = raw::adopt_orphans() {
            log::warn!("orphans of jobs will not be found: {}", words(&e));
        }
        let mut me = TaskControl {
            tracker: TaskTracker::new(std::process::id()),
            base: tracking.then(|| base(rundir)).flatten(),
            next: 1,
            free: Vec::new(),
            left: VecDeque::new(),
            groups: BTreeMap::new(),
            killed: BTreeSet::new(),
            begin_inside: true,
            adopted: BTreeSet::new(),
            due: (0, Vec::new()),
        };
        for task in tasks {
            if own {
                me.tracker.child_made(task.pid);
            } else {
                me.adopted.insert(task.id);
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
    }

    // ---- groups ----

    /// A group for the processes of this task.
    pub(super) fn group_for(&mut self, id: TaskId) -> Option<NewGroup> {
        let (version, base) = self.base.as_ref().filter(|_| id.step == TaskStep::Job)?;
        let group = match self.free.pop() {
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
        let group = new?.group;
        if !inside && let Err(e) = cgroup::enter(Path::new(&group.dir), pid) {
            log::error!("{}: {}: pid {pid} is not in it", group.dir, words(&e));
            self.free.push(*group);
            return None;
        }
        self.groups.insert(pid, group.clone());
        Some(group)
    }

    pub(super) fn not_started(&mut self, new: Option<NewGroup>) {
        new.into_iter().for_each(|new| self.release(*new.group));
    }

    /// A child that is no task was made.
    pub(super) fn child_made(&mut self, pid: u32) {
        self.tracker.child_made(pid);
    }

    /// A child has ended; its processor time is that of all its group. `killed_at_once`: it was a
    /// starter, and was killed before it could report anything.
    pub(super) fn ended(&mut self, pid: u32, usage: &mut Usage, killed_at_once: bool) {
        self.tracker.child_ended(pid);
        let Some(group) = self.groups.remove(&pid) else { return };
        if let Some((utime, stime)) = cpu_time(&group)
            && utime + stime > usage.utime_us + usage.stime_us
        {
            (usage.utime_us, usage.stime_us) = (utime, stime);
        }
        if killed_at_once && self.begin_inside && !self.killed.contains(&group.dir) {
            log::warn!("a starter was killed as it began in {}: others are moved", group.dir);
            self.begin_inside = false;
        }
    }

    /// The task of a group is forgotten.
    pub(super) fn release(&mut self, group: TaskGroup) {
        self.left.push_front(group);
        for _ in 0..LOOKS_MAX.min(self.left.len()) {
            let Some(mut group) = self.left.pop_front() else { return };
            let dir = Path::new(&group.dir);
            match cgroup::processes(dir) {
                Ok(pids) if !pids.is_empty() => self.left.push_back(group),
                Ok(_) if self.free.len() < FREE_MAX && !self.killed.contains(&group.dir) => {
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
        // a group with processes stays, and so does the directory of all
        for dir in cgroup::below(base) {
            let _ = cgroup::remove(&dir);
        }
        let _ = cgroup::remove(base);
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
        let tree = |tasks: &[TaskIdentity]| tasks.iter().any(|t| t.group.is_none());
        if signal == SIGKILL && tree(&tasks) && self.tracker.without_orphans() {
            // all that a child leaves behind comes to this process
            let gone = |t: &TaskIdentity| !Proc { pid: t.pid, ticks: t.ticks }.alive();
            let adopted = &self.adopted;
            tasks.retain(|t| t.group.is_some() || adopted.contains(&t.id) || !gone(t));
        }
        if signal == SIGKILL {
            let empty = |g: &TaskGroup| {
                cgroup::processes(Path::new(&g.dir)).is_ok_and(|pids| pids.is_empty())
            };
            tasks.retain(|t| t.group.as_ref().is_none_or(|g| !empty(g)));
            self.killed.extend(tasks.iter().filter_map(|t| Some(t.group.as_ref()?.dir.clone())));
        }
        if tasks.is_empty() {
            return;
        }
        let others = if tree(&tasks) { all() } else { Vec::new() };
        self.tracker.signal(&tasks, signal, &others);
        self.tracker.keep(others.iter().chain(&tasks));
    }
}

/// The directory of the groups of all tasks, made within the launcher's own group.
fn base(rundir: &Path) -> Option<(Version, PathBuf)> {
    // several launchers may have one group
    let name = rundir.to_string_lossy().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    for (version, own) in cgroup::own_groups() {
        let dir = own.join(format!("lsf-{name:016x}"));
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
