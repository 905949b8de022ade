//! The operating system of a simulated host: processes of tasks, their ends, the launcher's
//! journal. Tasks outlive every daemon; only a restart of the host ends them unseen.

use crate::model::JobKey;
use crate::model::job::Usage;
use crate::proto::Daemon;
use crate::proto::launch::{Journal, TaskId};
use std::collections::BTreeMap;

/// A task's process.
#[derive(Clone, Debug)]
pub struct SimTask {
    pub id: TaskId,
    pub ticks: u64,
    /// The launcher that is its parent; another one only finds it gone.
    pub parent: u64,
    /// Waiting for `Go`.
    pub waiting: bool,
    /// How long it still has to run, microseconds, and since when (not while stopped).
    pub left: u64,
    pub since: u64,
    pub stopped: bool,
    /// Guards against stale end events.
    pub gen_: u64,
    /// Wait status it will end with.
    pub status: i32,
    /// The user of the process.
    pub uid: u32,
    /// HUP, INT and TERM do not end it.
    pub stubborn: bool,
    /// How often SIGUSR1 has come, which it takes and goes on.
    pub signals: u32,
}

/// One host's system.
#[derive(Debug, Default)]
pub struct Os {
    pub boot: u64,
    pub next_pid: u32,
    pub tasks: BTreeMap<u32, SimTask>,
    /// Daemon processes: pid -> (daemon, start ticks).
    pub daemons: BTreeMap<u32, (Daemon, u64)>,
    pub journal: Vec<Journal>,
}

impl Os {
    pub fn boot_id(&self) -> String {
        format!("boot-{}", self.boot)
    }
    pub fn pid(&mut self) -> u32 {
        self.next_pid += 1;
        100 + self.next_pid
    }
    pub fn alive(&self, pid: u32, ticks: u64) -> bool {
        self.tasks.get(&pid).is_some_and(|t| t.ticks == ticks)
            || self.daemons.get(&pid).is_some_and(|d| d.1 == ticks)
    }
    /// A power cut: everything in memory is gone, /run with it.
    pub fn reboot(&mut self) -> Vec<JobKey> {
        let lost = self.tasks.values().filter(|t| !t.waiting).map(|t| t.id.key).collect();
        self.boot += 1;
        self.tasks.clear();
        self.daemons.clear();
        self.journal.clear();
        lost
    }
}

/// Milliseconds and exit code of an attempt of `work MS CODE`, or of `work MS CODE N`, which ends
/// with 0 from the attempt behind the Nth on.
pub fn work(command: &str, attempt: u32) -> (u64, i32) {
    let mut words = command.split_whitespace().skip(1);
    let ms = words.next().and_then(|w| w.parse().ok()).unwrap_or(10);
    let code = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
    let until = words.next().and_then(|w| w.parse().ok()).unwrap_or(u32::MAX);
    (ms, if attempt <= until { code } else { 0 })
}

/// The usage of a task after a run time.
pub fn usage(us: u64) -> Usage {
    Usage { utime_us: us / 2, stime_us: us / 10, max_mem_kb: 4096, ..Usage::default() }
}
