//! The task of a process that somebody wants taken into a job (TaskStarter(1)). sbatchd looks for
//! it, before the launcher is asked.
//!
//! Invariants: a process that is gone, or whose number is another one's by now, is refused, and so
//! is one that is not the user's alone, that has processes of another user below it or in its
//! session, or that is of the batch system.

use super::process_table::{Seen, is_of, scan, see};
use super::procs::environment;
use super::task_processes::{TaskTracker, job_of};
use super::task_usage::microseconds;
use super::{cgroup, euid};
use crate::proto::launch::{ProcessFound, TaskIdentity};
use crate::proto::member::ProcessLook;
use std::collections::BTreeSet;
use std::path::Path;

/// Most ancestors of a process that are looked at.
const ANCESTORS_MAX: usize = 1024;

/// The task of a process, by its group, its ancestors and their sessions.
enum Owner<'a> {
    Task(&'a TaskIdentity),
    /// No task.
    Nobody,
    /// The launcher or one of its daemons, with all that they have started for themselves.
    BatchSystem,
}

impl TaskTracker {
    /// Looks at a process; `tasks`: all that run.
    ///
    /// # Errors
    /// Why it cannot be in a job, in words.
    pub fn look(&self, look: &ProcessLook, tasks: &[TaskIdentity]) -> Result<ProcessFound, String> {
        let ProcessLook { uid, pid, ticks, .. } = *look;
        let refused = |why: &str| Err(format!("process {pid}{why}"));
        // the user first: what has this start after that had it before
        let own = pid > 1 && is_of(pid, uid);
        let Some(seen) = see(pid).filter(|p| !p.zombie && p.start == ticks) else {
            return refused(": No such process");
        };
        if !own {
            return refused(" is not one of the user's");
        }
        let me = see(std::process::id());
        let owner = match self.owner(&seen, uid, tasks) {
            Owner::Task(task) => Some(task.id),
            Owner::BatchSystem => return refused(" is of the batch system"),
            // with it all daemons and their jobs would be in the job
            Owner::Nobody if me.is_some_and(|me| line_of(&me).iter().any(|p| p.pid == pid)) => {
                return refused(" is of the batch system");
            }
            Owner::Nobody if has_strangers(&seen, uid) => {
                return refused(" has processes of another user");
            }
            Owner::Nobody => None,
        };
        let launcher = self.adopter.filter(|pid| me.is_some_and(|me| me.parent == *pid));
        let (utime_us, stime_us) = (microseconds(seen.utime), microseconds(seen.stime));
        Ok(ProcessFound { owner, launcher: launcher.unwrap_or(0), utime_us, stime_us })
    }

    fn owner<'a>(&self, process: &Seen, uid: u32, tasks: &'a [TaskIdentity]) -> Owner<'a> {
        let groups = cgroup::groups_of(process.pid);
        let inside = |t: &&TaskIdentity| {
            t.group.as_ref().is_some_and(|g| cgroup::names(&groups, Path::new(&g.dir)))
        };
        if let Some(task) = tasks.iter().find(inside) {
            return Owner::Task(task);
        }
        let trees: Vec<&TaskIdentity> = tasks.iter().filter(|t| t.group.is_none()).collect();
        for p in line_of(process) {
            if let Some(task) = trees.iter().find(|t| self.begins_with(t, &p)) {
                return Owner::Task(task);
            }
            if Some(p.pid) == self.adopter {
                return Owner::BatchSystem;
            }
            if Some(p.parent) != self.adopter {
                continue;
            }
            // an orphan of a job, or a daemon
            return match job_of(&p, &environment(p.pid).unwrap_or_default(), &trees) {
                Some(n) => Owner::Task(trees[n]),
                None if uid != euid() && is_of(p.pid, uid) => Owner::Nobody,
                None => Owner::BatchSystem,
            };
        }
        Owner::Nobody
    }

    /// Whether a process is the first one of a task, of that one's session, or known as the task's.
    fn begins_with(&self, task: &TaskIdentity, p: &Seen) -> bool {
        let is = |p: &Seen| p.pid == task.pid && (task.ticks == 0 || p.start == task.ticks);
        let of_session = || {
            let same = p.session == task.pid && p.start >= task.ticks;
            same && see(task.pid).is_none_or(|leader| is(&leader))
        };
        let known = self.known.get(&task.id);
        is(p) || of_session() || known.is_some_and(|k| k.members.contains_key(&p.process()))
    }
}

/// Whether a process of another user would belong to the task of this process.
fn has_strangers(first: &Seen, uid: u32) -> bool {
    let mut rest = scan();
    let mut found = BTreeSet::from([first.pid]);
    loop {
        let belongs = |p: &Seen| found.contains(&p.parent) || p.session == first.pid;
        let (new, others): (Vec<Seen>, Vec<Seen>) =
            rest.into_iter().partition(|p| p.pid != first.pid && belongs(p));
        if new.iter().any(|p| !p.zombie && !is_of(p.pid, uid) && see(p.pid).is_some()) {
            return true;
        }
        if new.is_empty() {
            return false;
        }
        found.extend(new.iter().map(|p| p.pid));
        rest = others;
    }
}

/// A process and its ancestors, without the first process of the system.
fn line_of(process: &Seen) -> Vec<Seen> {
    let mut line = vec![*process];
    while line.len() < ANCESTORS_MAX
        && let Some(last) = line.last()
        && last.parent > 1
        // one that is younger has taken the number
        && let Some(parent) = see(last.parent).filter(|p| p.start <= last.start)
    {
        line.push(parent);
    }
    line
}

#[cfg(test)]
#[path = "task_owner_tests.rs"]
mod tests;
