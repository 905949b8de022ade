//! The processes of tasks: found and signalled, whatever sessions and parents they have
//! by now.
//!
//! The processes of a task are the members of its control group. A task without a group has the
//! descendants of its first process, the members of that one's session, all that were seen to be
//! its processes before, and of the orphans that came to the launcher those that began with the
//! job's number in their environment, as processes of its user, after it.
//!
//! Invariants: a process is known by its number and its start. A process is signalled only where
//! the kernel says that it is the task's: by its group, its ancestors or its session, or as an
//! orphan of this launcher's own. The environment, which can be forged, decides only between the
//! jobs of one user; an orphan that is beginning a program, which has none, is looked at again. A
//! call looks at all processes once; a stop that needs more looks is returned to the caller, who
//! does other work between them.

use super::process_table::{self, Seen};
use super::procs::{Proc, environment};
use super::{cgroup, files};
use crate::proto::launch::{TaskGroup, TaskId, TaskIdentity, TaskStep};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Longest list of the children of a process, bytes.
const CHILDREN_MAX: u64 = 4 << 20;
/// Most rounds of a stop; the caller repeats a kill until the task has ended.
const ROUNDS_MAX: usize = 64;
/// Pause before the next round where a process is beginning a program, microseconds.
const BEGINS: u64 = 20_000;

/// A process as it was seen last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    utime: u64,
    stime: u64,
    /// The parent is no process of the task: no process adds this CPU time to its own at the end.
    orphan: bool,
}

/// The memory of one task.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) members: BTreeMap<Proc, Member>,
    /// CPU time of orphans that have ended, clock ticks.
    pub(super) ended: (u64, u64),
}

/// A signal that kills or stops on its way to all processes of tasks: a round stops those that
/// the earlier rounds have not met.
#[derive(Debug)]
pub struct Stop {
    signal: Signal,
    tasks: Vec<TaskIdentity>,
    stopped: BTreeSet<(TaskId, Proc)>,
    rounds: usize,
    /// When the next round is due, monotonic microseconds.
    at: u64,
}

impl Stop {
    /// When the next round is due, monotonic microseconds; 0 at once.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Whether the tasks are killed at the end.
    pub fn kills(&self) -> bool {
        self.signal == Signal::KILL
    }

    /// Whether it concerns the task.
    pub fn concerns(&self, id: TaskId) -> bool {
        self.tasks.iter().any(|t| t.id == id)
    }

    /// Leaves these tasks as they are.
    pub fn leave(&mut self, tasks: &[TaskIdentity]) {
        self.tasks.retain(|t| tasks.iter().all(|left| left.id != t.id));
    }

    /// The tasks that it concerns.
    pub fn tasks(&self) -> &[TaskIdentity] {
        &self.tasks
    }
}

/// The processes of tasks as they were seen last.
#[derive(Debug)]
pub struct TaskTracker {
    /// The process that adopts orphans of tasks; `None`: orphans are not searched for.
    pub(super) adopter: Option<u32>,
    /// Children of that process which are no orphans.
    children: BTreeSet<u32>,
    pub(super) known: BTreeMap<TaskId, Known>,
    /// The users of the orphans that were beginning a program at the last look: each may be of any
    /// task of its user.
    begin: BTreeSet<u32>,
}

impl TaskTracker {
    /// `adopter`: the launcher. Orphans of everybody come to process 1.
    pub fn new(adopter: u32) -> Self {
        let adopter = Some(adopter).filter(|pid| *pid > 1);
        let (children, known) = (BTreeSet::new(), BTreeMap::new());
        TaskTracker { adopter, children, known, begin: BTreeSet::new() }
    }

    /// The launcher has made a child, which is therefore no orphan.
    pub fn child_made(&mut self, pid: u32) {
        self.children.insert(pid);
    }

    pub fn child_ended(&mut self, pid: u32) {
        self.children.remove(&pid);
    }

    /// Whether no orphan has come to this process, which is the launcher.
    pub fn without_orphans(&self) -> bool {
        let pid = std::process::id();
        let path = format!("/proc/self/task/{pid}/children");
        let children = files::read_text(Path::new(&path), CHILDREN_MAX);
        self.adopter == Some(pid)
            && children.is_ok_and(|text| {
                let mut pids = text.split_whitespace().map(str::parse);
                pids.all(|pid| pid.is_ok_and(|pid| self.children.contains(&pid)))
            })
    }

    // ---- finding ----

    /// The living processes of each of these tasks; `others`: further tasks, whose processes are
    /// not theirs.
    pub fn find(&mut self, tasks: &[TaskIdentity], others: &[TaskIdentity]) -> Vec<Vec<Seen>> {
        let mut found: Vec<Vec<Seen>> = tasks.iter().map(|_| Vec::new()).collect();
        self.begin.clear();
        let tree = |t: &TaskIdentity| t.group.is_none();
        for (at, task) in tasks.iter().enumerate() {
            if let Some(group) = &task.group {
                found[at] = in_group(group);
            }
        }
        if tasks.iter().any(tree) {
            let scan = process_table::scan();
            let asked: BTreeSet<TaskId> = tasks.iter().map(|t| t.id).collect();
            let others = others.iter().filter(|t| !asked.contains(&t.id));
            let all: Vec<&TaskIdentity> = tasks.iter().filter(|t| tree(t)).chain(others).collect();
            let places: Vec<usize> =
                tasks.iter().enumerate().filter(|(_, t)| tree(t)).map(|(at, _)| at).collect();
            for (p, owner) in scan.iter().zip(self.owners(&scan, &all)) {
                if let Some(&at) = owner.and_then(|owner| places.get(owner))
                    && !p.zombie
                {
                    found[at].push(*p);
                }
            }
        }
        for (task, members) in tasks.iter().zip(&mut found) {
            members.sort_unstable_by_key(|p| p.pid);
            self.remember(task, members);
        }
        found
    }

    /// The task of each process.
    fn owners(&mut self, scan: &[Seen], tasks: &[&TaskIdentity]) -> Vec<Option<usize>> {
        let by_pid: HashMap<u32, usize> =
            scan.iter().enumerate().map(|(at, p)| (p.pid, at)).collect();
        let mut owners: Vec<Option<usize>> = vec![None; scan.len()];
        let mut sessions: HashMap<u32, usize> = HashMap::new();
        for (n, task) in tasks.iter().enumerate() {
            let leader = by_pid.get(&task.pid).copied();
            let is = |at: &usize| task.ticks == 0 || scan[*at].start == task.ticks;
            // the number of another process by now: nothing of its session is the task's
            if leader.is_some_and(|at| !is(&at)) {
                continue;
            }
            sessions.insert(task.pid, n);
            if let Some(at) = leader {
                owners[at] = Some(n);
            }
        }
        let known: HashMap<Proc, usize> = tasks
            .iter()
            .enumerate()
            .filter_map(|(n, task)| Some((n, self.known.get(&task.id)?)))
            .flat_map(|(n, known)| known.members.keys().map(move |p| (*p, n)))
            .collect();
        for (at, p) in scan.iter().enumerate().filter(|(_, p)| !p.zombie) {
            let in_session = sessions.get(&p.session).filter(|n| p.start >= tasks[**n].ticks);
            let owner = in_session.or_else(|| known.get(&p.process())).copied();
            owners[at] = owners[at].or(owner);
        }
        self.claim_orphans(scan, tasks, &mut owners);
        spread(scan, &by_pid, &mut owners);
        owners
    }

    /// Orphans that came to the launcher.
    fn claim_orphans(
        &mut self,
        scan: &[Seen],
        tasks: &[&TaskIdentity],
        owners: &mut [Option<usize>],
    ) {
        let Some(adopter) = self.adopter else { return };
        for (at, p) in scan.iter().enumerate() {
            let orphan = p.parent == adopter && !p.zombie && !self.children.contains(&p.pid);
            if !orphan || owners[at].is_some() {
                continue;
            }
            match environment(p.pid) {
                Some(environment) => owners[at] = job_of(p, &environment, tasks),
                None => self.begin.extend(p.uid()),
            }
        }
    }

    fn remember(&mut self, task: &TaskIdentity, members: &[Seen]) {
        let known = self.known.entry(task.id).or_default();
        let pids: BTreeSet<u32> = members.iter().map(|p| p.pid).collect();
        let seen: BTreeMap<Proc, Member> = members
            .iter()
            .map(|p| {
                let orphan = p.pid != task.pid && !pids.contains(&p.parent);
                (p.process(), Member { utime: p.utime, stime: p.stime, orphan })
            })
            .collect();
        let ended = known.members.iter().filter(|(p, m)| m.orphan && !seen.contains_key(p));
        let (utime, stime) = ended.fold(known.ended, |(u, s), (_, m)| (u + m.utime, s + m.stime));
        *known = Known { members: seen, ended: (utime, stime) };
    }

    /// Forgets all tasks but these.
    pub fn keep<'a>(&mut self, tasks: impl Iterator<Item = &'a TaskIdentity>) {
        let keep: BTreeSet<TaskId> = tasks.map(|t| t.id).collect();
        self.known.retain(|id, _| keep.contains(id));
    }

    // ---- signalling ----

    /// Signals every process of these tasks. A signal that kills or stops also reaches processes
    /// that are made meanwhile: the stop that is returned goes on until there are no new ones.
    pub fn signal(
        &mut self,
        tasks: &[TaskIdentity],
        signal: i32,
        others: &[TaskIdentity],
    ) -> Option<Stop> {
        let signal = Signal::from_named_raw(signal)?;
        let mut rest = tasks.to_vec();
        if signal == Signal::KILL {
            rest.retain(|t| {
                t.group.as_ref().is_none_or(|g| cgroup::kill(Path::new(&g.dir)).is_err())
            });
        }
        if rest.is_empty() {
            return None;
        }
        if !matches!(signal, Signal::KILL | Signal::STOP) {
            let found = self.find(&rest, others);
            rest.iter().zip(&found).for_each(|(task, found)| pass_on(task, found, signal));
            return None;
        }
        let mut stop = Stop { signal, tasks: rest, stopped: BTreeSet::new(), rounds: 0, at: 0 };
        (!self.stop_round(&mut stop, others)).then_some(stop)
    }

    /// The next round of a stop, which is one look at all processes; whether it was the last one.
    pub fn stop_round(&mut self, stop: &mut Stop, others: &[TaskIdentity]) -> bool {
        let found = self.find(&stop.tasks, others);
        let mut new = false;
        for (task, found) in stop.tasks.iter().zip(&found) {
            for p in found {
                // a stopped process makes no others, and its children keep their parent
                if stop.stopped.insert((task.id, p.process())) {
                    send(task, p.process(), Signal::STOP);
                    new = true;
                }
            }
        }
        stop.rounds += 1;
        let all = !new || stop.rounds >= ROUNDS_MAX;
        if all && stop.signal == Signal::KILL {
            for (id, process) in &stop.stopped {
                let task = stop.tasks.iter().find(|t| t.id == *id);
                task.iter().for_each(|task| send(task, *process, Signal::KILL));
            }
        }
        stop.at = if all { super::now().mono_us + BEGINS } else { 0 };
        let may_have = |t: &TaskIdentity| t.group.is_none() && self.begin.contains(&t.uid);
        all && (!stop.tasks.iter().any(may_have) || stop.rounds >= ROUNDS_MAX)
    }
}

/// The part of a task in the CPU time of its group, of which earlier tasks had some; microseconds.
pub fn time_of_task(group: &TaskGroup, (utime, stime): (u64, u64)) -> (u64, u64) {
    (utime.saturating_sub(group.utime_us), stime.saturating_sub(group.stime_us))
}

fn in_group(group: &TaskGroup) -> Vec<Seen> {
    let pids = cgroup::processes(Path::new(&group.dir)).unwrap_or_default();
    pids.into_iter().filter_map(process_table::see).filter(|p| !p.zombie).collect()
}

/// Gives each process without an owner that of its parent.
fn spread(scan: &[Seen], by_pid: &HashMap<u32, usize>, owners: &mut [Option<usize>]) {
    let mut children: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, p) in scan.iter().enumerate() {
        children.entry(p.parent).or_default().push(at);
    }
    let mut due: Vec<usize> = (0..scan.len()).filter(|at| owners[*at].is_some()).collect();
    while let Some(at) = due.pop() {
        for &child in children.get(&scan[at].pid).into_iter().flatten() {
            // one that is older than its parent has another one, whose number was given anew
            let is = owners[child].is_none() && scan[child].start >= scan[at].start;
            if is && by_pid.get(&scan[at].pid) == Some(&at) {
                owners[child] = owners[at];
                due.push(child);
            }
        }
    }
}

/// The job, the latest of its runs, or the task of a job, that an orphan of the launcher names.
pub(super) fn job_of(orphan: &Seen, environment: &[u8], tasks: &[&TaskIdentity]) -> Option<usize> {
    let value = |name: &[u8]| {
        let mut all = environment.split(|b| *b == 0);
        let value = all.find_map(|v| v.strip_prefix(name)?.strip_prefix(b"="))?;
        std::str::from_utf8(value).ok()?.parse::<u32>().ok()
    };
    let (job, idx) = (value(b"LSB_JOBID")?, value(b"LSB_JOBINDEX")?);
    let (uid, first) = (orphan.uid()?, value(b"LS_JOBPID"));
    let is = |t: &TaskIdentity| {
        let key = t.id.key;
        let named = match t.id.step {
            TaskStep::Job => (key.job, key.idx) == (job, idx),
            // a task of a job that res has had started
            TaskStep::Task => first == Some(t.pid),
            _ => false,
        };
        named && t.uid == uid && (1..=orphan.start).contains(&t.ticks)
    };
    let runs = tasks.iter().enumerate().filter(|(_, t)| is(t));
    runs.max_by_key(|(_, t)| t.ticks).map(|(n, _)| n)
}

/// Sends a signal to the processes of a task: to its first process group at once, to the others one
/// by one.
fn pass_on(task: &TaskIdentity, found: &[Seen], signal: Signal) {
    let first = found.iter().find(|p| p.pid == task.pid);
    let first = first.filter(|p| task.ticks == 0 || p.start == task.ticks);
    // until it leads a session of its own its group is another one's
    let whole = first.is_some_and(|p| p.session == p.pid && p.pgrp == p.pid);
    let leader = i32::try_from(task.pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
    if let Some(leader) = leader.filter(|_| whole) {
        // a process that has just gone is no failure
        let _ = kill_process_group(leader, signal);
    }
    for p in found.iter().filter(|p| !whole || p.pgrp != task.pid) {
        send(task, p.process(), signal);
    }
}

/// Sends a signal to a process of a task that has been found just now.
fn send(task: &TaskIdentity, process: Proc, signal: Signal) {
    let inside = |g: &TaskGroup| cgroup::holds(Path::new(&g.dir), process.pid);
    if task.group.as_ref().is_none_or(|g| inside(g)) {
        // gone, or another user's where this is not root: nothing to be done
        let _ = process.signal(signal);
    }
}

#[cfg(test)]
#[path = "task_processes_tests.rs"]
mod tests;
