//! The tasks of a pam, each with its TaskStarter.

use super::table::{COMMAND_MAX, TaskRow};
use crate::proto::machine::ConnId;
use std::collections::BTreeMap;

/// The first process of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskProcess {
    pub pid: u32,
    /// The start of the process, clock ticks since the host's.
    pub ticks: u64,
}

/// The phases of a task.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TaskPhase {
    /// The TaskStarter has said hello.
    Registered,
    Running(TaskProcess),
    Failed {
        why: String,
    },
    /// Raw wait status; seconds since the epoch.
    Exited {
        status: i32,
        time: i64,
    },
}

/// One task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) host: String,
    /// The application with its words, cut.
    command: String,
    pub(super) phase: TaskPhase,
    /// The connection of its TaskStarter.
    pub(super) conn: Option<ConnId>,
    /// When the connection was lost, microseconds; `None`: it is there, or RES was told to kill
    /// the task.
    lost_at: Option<u64>,
    /// pam has ended it.
    pub(super) killed: bool,
}

impl Task {
    pub(super) fn new(host: &str, command: &str) -> Task {
        let (host, command) = (host.to_owned(), crate::model::cut(command, COMMAND_MAX).to_owned());
        let (phase, conn, lost_at, killed) = (TaskPhase::Registered, None, None, false);
        Task { host, command, phase, conn, lost_at, killed }
    }

    pub(super) fn over(&self) -> bool {
        matches!(self.phase, TaskPhase::Failed { .. } | TaskPhase::Exited { .. })
    }

    fn lost(&self) -> bool {
        !self.over() && self.conn.is_none()
    }

    /// The words of the table for how it has ended.
    pub(super) fn status(&self) -> String {
        match &self.phase {
            TaskPhase::Failed { why } => format!("Failed ({why})"),
            TaskPhase::Exited { status: 0, .. } => "Done".into(),
            TaskPhase::Exited { .. } if self.killed => "Killed by PAM".into(),
            TaskPhase::Exited { status, .. } if status & 0x7f == 0 => {
                format!("Exit ({})", (status >> 8) & 0xff)
            }
            TaskPhase::Exited { status, .. } => format!("Signal ({})", status & 0x7f),
            TaskPhase::Registered | TaskPhase::Running(_) => "Unknown".into(),
        }
    }
}

/// All of them, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    all: Vec<Task>,
    by_conn: BTreeMap<ConnId, usize>,
}

impl Tasks {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn get(&self, tid: usize) -> Option<&Task> {
        self.all.get(tid)
    }

    /// A task by the number that [`Tasks::of_conn`] or [`Tasks::disconnect`] has told.
    pub(super) fn get_mut(&mut self, tid: usize) -> &mut Task {
        &mut self.all[tid]
    }

    pub(super) fn of_conn(&self, conn: ConnId) -> Option<usize> {
        self.by_conn.get(&conn).copied()
    }

    /// Adds a task with the connection of its TaskStarter; its number.
    pub(super) fn add(&mut self, task: Task, conn: ConnId) -> usize {
        let tid = self.all.len();
        self.all.push(task);
        self.connect(tid, conn);
        tid
    }

    /// The TaskStarter of a task has this connection now.
    pub(super) fn connect(&mut self, tid: usize, conn: ConnId) {
        if let Some(task) = self.all.get_mut(tid) {
            task.lost_at = None;
            if let Some(before) = task.conn.replace(conn) {
                self.by_conn.remove(&before);
            }
            self.by_conn.insert(conn, tid);
        }
    }

    /// A connection is over; the number of its task.
    pub(super) fn disconnect(&mut self, now: u64, conn: ConnId) -> Option<usize> {
        let tid = self.by_conn.remove(&conn)?;
        (self.all[tid].conn, self.all[tid].lost_at) = (None, Some(now));
        Some(tid)
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Task> {
        self.all.iter().filter(|task| matches!(task.phase, TaskPhase::Running(_)))
    }

    /// When the first running task was cut off that RES was not told to kill yet.
    pub(super) fn first_cut_off(&self) -> Option<u64> {
        self.running().filter_map(|task| task.lost_at).min()
    }

    /// The processes of the running tasks that were cut off until `at` and that RES was not told to
    /// kill yet, by their hosts. `kill`: now it is.
    pub(super) fn cut_off(&mut self, at: u64, kill: bool) -> BTreeMap<String, Vec<TaskProcess>> {
        let mut found: BTreeMap<String, Vec<TaskProcess>> = BTreeMap::new();
        for task in self.all.iter_mut().filter(|task| task.lost_at.is_some_and(|lost| lost <= at)) {
            if let TaskPhase::Running(process) = task.phase {
                found.entry(task.host.clone()).or_default().push(process);
                task.lost_at = task.lost_at.filter(|_| !kill);
            }
        }
        found
    }

    /// How many have told that they were started, or could not be.
    pub(super) fn reported(&self) -> usize {
        self.all.iter().filter(|task| task.phase != TaskPhase::Registered).count()
    }

    pub(super) fn any_failed(&self) -> bool {
        self.all.iter().any(|task| matches!(task.phase, TaskPhase::Failed { .. }))
    }

    /// Number, host and reason of those that could not be started.
    pub(super) fn failed(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        self.all.iter().enumerate().filter_map(|(tid, task)| match &task.phase {
            TaskPhase::Failed { why } => Some((tid, task.host.as_str(), why.as_str())),
            _ => None,
        })
    }

    /// Every task has told its end.
    pub(super) fn all_known_over(&self) -> bool {
        self.all.iter().all(Task::over)
    }

    /// No task is left whose end could still be heard of.
    pub(super) fn all_over(&self) -> bool {
        self.all.iter().all(|task| task.over() || task.lost())
    }

    /// Notes of all that are not over that pam ends them.
    pub(super) fn note_killed(&mut self) {
        self.all.iter_mut().filter(|task| !task.over()).for_each(|task| task.killed = true);
    }

    /// The hosts whose tasks have not ended, each once.
    pub(super) fn unanswered_hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> = Vec::new();
        for task in self.all.iter().filter(|task| !task.over() && !task.lost()) {
            if !hosts.contains(&task.host.as_str()) {
                hosts.push(&task.host);
            }
        }
        hosts
    }

    /// The code of a task as a shell has it; 0: none.
    pub(super) fn code(&self, tid: usize) -> i32 {
        match self.all.get(tid).map(|task| &task.phase) {
            Some(TaskPhase::Exited { status, .. }) if status & 0x7f == 0 => (status >> 8) & 0xff,
            Some(TaskPhase::Exited { status, .. }) => 128 + (status & 0x7f),
            _ => 0,
        }
    }

    /// The code of the first task that has not ended with 0.
    pub(super) fn first_code(&self) -> Option<i32> {
        (0..self.all.len()).map(|tid| self.code(tid)).find(|code| *code != 0)
    }

    pub(super) fn rows(&self) -> Vec<TaskRow> {
        let row = |(tid, task): (usize, &Task)| TaskRow {
            tid,
            host: task.host.clone(),
            command: task.command.clone(),
            status: task.status(),
            ended: match task.phase {
                TaskPhase::Exited { time, .. } => Some(time),
                _ => None,
            },
        };
        self.all.iter().enumerate().map(row).collect()
    }
}
