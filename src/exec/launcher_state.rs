//! The state of a launcher that outlives it: the tasks and the supervised daemons, as the journal
//! and a successor by exec get them.
//!
//! Invariant: a process is known by its pid and its start, so that nothing is taken for alive that
//! is not.

use super::life::Life;
use crate::model::JobKey;
use crate::model::time::US;
use crate::proto::Daemon;
use crate::proto::launch::{Journal, TaskId, TaskIdentity, TaskInfo, TaskStep};
use crate::proto::member::TaskNote;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// First pause before a daemon that ended is started again, microseconds.
pub const RESTART_FIRST: u64 = US / 10;
/// Attempts that were over last and that are kept in mind.
const OVER_MAX: usize = 4096;
/// Version of [`Saved`].
pub const SAVED_VERSION: u32 = 1;

/// A task; `info.pid` 0 until its process exists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OwnTask {
    pub(super) info: TaskInfo,
    pub(super) ticks: u64,
    /// The process is our child, so that the system reports its end. Otherwise the launcher
    /// searches for it.
    pub(super) child: bool,
    /// The task is forgotten at its end.
    pub(super) forget: bool,
}

impl OwnTask {
    pub(super) fn alive(&self) -> bool {
        self.info.pid != 0 && self.info.ended.is_none()
    }

    pub(super) fn identity(&self) -> TaskIdentity {
        let TaskInfo { id, uid, pid, ref group, .. } = self.info;
        let (ticks, child) = (self.ticks, self.child);
        TaskIdentity { id, uid, pid, ticks, group: group.clone(), child }
    }
}

/// A supervised daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SupervisedDaemon {
    pub(super) daemon: Daemon,
    pub(super) want: bool,
    pub(super) pid: u32,
    pub(super) ticks: u64,
    pub(super) child: bool,
    /// Monotonic microseconds of its last start, of its next one, and of its kill.
    pub(super) since: u64,
    pub(super) at: Option<u64>,
    pub(super) kill_at: Option<u64>,
    /// The pause before its next start.
    pub(super) pause: u64,
    #[serde(default)]
    pub(super) life: Life,
}

impl SupervisedDaemon {
    fn new(daemon: Daemon, want: bool) -> Self {
        let (at, pause) = (want.then_some(0), RESTART_FIRST);
        let (pid, ticks, child, since, kill_at) = (0, 0, false, 0, None);
        let life = Life::default();
        SupervisedDaemon { daemon, want, pid, ticks, child, since, at, kill_at, pause, life }
    }
}

/// All a launcher that replaces itself by exec hands on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    pub version: u32,
    pub(super) tasks: Vec<OwnTask>,
    /// The name that a launcher of an earlier release wrote, and reads.
    #[serde(rename = "sups")]
    pub(super) supervised: Vec<SupervisedDaemon>,
    #[serde(default)]
    pub(super) over: VecDeque<(JobKey, u64)>,
}

/// The tasks of this host and the daemons of its launcher.
#[derive(Debug)]
pub(super) struct LauncherState {
    pub(super) tasks: BTreeMap<TaskId, OwnTask>,
    pub(super) supervised: Vec<SupervisedDaemon>,
    /// The attempts that were over last, each with the monotonic instant, microseconds: a request
    /// to begin a task of one of them may still be on its way.
    over: VecDeque<(JobKey, u64)>,
    /// When this launcher or its sbatchd began, monotonic microseconds. The words of an earlier
    /// sbatchd about a job may hold no longer: nobody tells when that job is over.
    pub(super) sbatchd_since: u64,
}

impl LauncherState {
    /// No tasks, and these daemons, which are to run.
    pub(super) fn new(daemons: &[Daemon]) -> Self {
        let supervised = daemons.iter().map(|&d| SupervisedDaemon::new(d, true)).collect();
        let (tasks, over) = (BTreeMap::new(), VecDeque::new());
        LauncherState { tasks, supervised, over, sbatchd_since: 0 }
    }

    /// Takes over what was saved; `None` where that is of a version that cannot be read.
    pub(super) fn take(&mut self, saved: Saved) -> Option<()> {
        if saved.version != SAVED_VERSION {
            return None;
        }
        self.over = saved.over;
        for sup in saved.supervised {
            let daemon = sup.daemon;
            *self.supervised_daemon(daemon) = sup;
        }
        self.tasks.extend(saved.tasks.into_iter().map(|mut task| {
            task.info.ticks = task.ticks;
            (task.info.id, task)
        }));
        Some(())
    }

    pub(super) fn save(&self) -> Saved {
        let tasks = self.tasks.values().cloned().collect();
        let (supervised, over) = (self.supervised.clone(), self.over.clone());
        Saved { version: SAVED_VERSION, tasks, supervised, over }
    }

    /// An attempt is over on this host since this instant, monotonic microseconds; 0: it is not.
    pub(super) fn over(&mut self, key: JobKey, at: u64) {
        if at != 0 {
            self.over.truncate(OVER_MAX - 1);
            self.over.push_front((key, at));
        }
    }

    /// Whether the attempt of a task was over when, or after, res was told of it.
    pub(super) fn is_over(&self, task: &TaskNote) -> bool {
        self.over.iter().any(|(key, at)| *key == task.key && task.told_at <= *at)
    }

    /// Whether it was an earlier sbatchd that told res of the job of a task.
    pub(super) fn by_earlier_sbatchd(&self, task: &TaskNote) -> bool {
        (1..self.sbatchd_since).contains(&task.told_at)
    }

    /// The entry of a daemon, made where it is missing.
    pub(super) fn supervised_daemon(&mut self, daemon: Daemon) -> &mut SupervisedDaemon {
        let at = match self.supervised.iter().position(|s| s.daemon == daemon) {
            Some(at) => at,
            None => {
                self.supervised.push(SupervisedDaemon::new(daemon, false));
                self.supervised.len() - 1
            }
        };
        &mut self.supervised[at]
    }

    /// A journal of what is known; `down`: this launcher ends its daemons.
    pub(super) fn journal(&self, boot_id: &str, daemons: &[Daemon], down: bool) -> Vec<Journal> {
        let mut lines = vec![Journal::Boot { boot_id: boot_id.to_owned() }];
        for s in &self.supervised {
            // one that was stopped by hand starts with the next launcher
            let on = s.want || down && daemons.contains(&s.daemon);
            if runs_here(daemons, s.daemon) {
                lines.push(Journal::Want { daemon: s.daemon, on });
            }
            if s.pid != 0 {
                lines.push(Journal::Daemon { daemon: s.daemon, pid: s.pid, ticks: s.ticks });
            }
        }
        lines.extend(self.tasks.values().flat_map(|t| t.info.journal()));
        lines
    }
}

/// Whether a host whose launcher keeps `daemons` running is one to run this daemon.
pub(super) fn runs_here(daemons: &[Daemon], daemon: Daemon) -> bool {
    // only a server can be the master host
    let of = if daemon == Daemon::Mbatchd { Daemon::Sbatchd } else { daemon };
    daemons.contains(&of)
}

/// A journal that is being read.
pub(super) struct Replay<'a> {
    /// The boot of this host, and the daemons that its launcher keeps running.
    boot_id: &'a str,
    daemons: &'a [Daemon],
    /// The boot that the lines are of; `None`: that line is lost.
    boot: Option<String>,
    /// Every process of a task that a line told of.
    tasks: BTreeSet<(TaskId, u32, u64)>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(boot_id: &'a str, daemons: &'a [Daemon]) -> Self {
        Replay { boot_id, daemons, boot: None, tasks: BTreeSet::new() }
    }

    pub(super) fn line(&mut self, state: &mut LauncherState, line: Journal) {
        let same_boot = self.boot.as_ref().is_none_or(|boot| boot == self.boot_id);
        match line {
            Journal::Boot { boot_id } => self.boot = Some(boot_id),
            // the line is there twice: what was told since stands
            Journal::Task { id, pid, ticks, .. } if !self.tasks.insert((id, pid, ticks)) => {}
            Journal::Task { id, uid, pid, ticks, started, note, group } => {
                // a mark until `begin` has the time: the process cannot have survived
                let ticks = if same_boot { ticks } else { 0 };
                let group = group.filter(|_| same_boot);
                let info = TaskInfo { uid, pid, started, note, ticks, group, ..TaskInfo::new(id) };
                state.tasks.insert(id, OwnTask { info, ticks, child: false, forget: false });
            }
            Journal::Setup { id, setup } => {
                if let Some(t) = state.tasks.get_mut(&id) {
                    t.info.heard(setup);
                }
            }
            Journal::Note { key, note } => {
                if let Some(t) = state.tasks.get_mut(&TaskId { key, step: TaskStep::Job }) {
                    t.info.note = note;
                }
            }
            Journal::End { id, ended } => {
                if let Some(t) = state.tasks.get_mut(&id) {
                    t.info.ended = Some(ended);
                }
            }
            Journal::Forget { key } => state.tasks.retain(|id, _| id.key != key),
            Journal::Daemon { daemon, pid, ticks } => {
                if same_boot {
                    let sup = state.supervised_daemon(daemon);
                    (sup.pid, sup.ticks, sup.at) = (pid, ticks, None);
                }
            }
            // after the host's restart, all that belongs here is to run again
            Journal::Want { daemon, .. } if !same_boot && self.daemons.contains(&daemon) => {}
            Journal::Want { daemon, on } => {
                let sup = state.supervised_daemon(daemon);
                sup.want = on;
                sup.at = (on && sup.pid == 0).then_some(0);
            }
        }
    }
}

/// The lines of a journal; beside them the numbers of those that cannot be read, with the reason.
/// Each costs itself alone.
pub fn read_journal(text: &[u8]) -> (Vec<Journal>, Vec<(usize, String)>) {
    let (mut lines, mut bad) = (Vec::new(), Vec::new());
    for (n, line) in text.split(|b| *b == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(line) => lines.push(line),
            Err(e) => bad.push((n + 1, e.to_string())),
        }
    }
    (lines, bad)
}
