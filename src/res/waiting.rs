//! The tasks of jobs that wait until sbatchd has said whose the job is (of_job.rs).

use crate::model::take::take_where;
use crate::model::time::US;
use crate::model::{JobRef, Now};
use crate::proto::machine::ConnId;
use crate::proto::res::{AdoptProcess, RunTask};
use std::collections::BTreeMap;

/// How long sbatchd has to hear of a job, microseconds.
const KNOWN_BY: u64 = 5 * US;
/// Pause before it is asked again, microseconds.
const AGAIN: u64 = US / 4;

/// The connection to the sbatchd of this host, made when it is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SbatchdLink {
    #[default]
    Down,
    Dialling,
    Up,
}

/// The task that is wanted.
#[derive(Debug)]
pub(super) enum WantedTask {
    /// One to be started.
    Run(Box<RunTask>),
    /// A process that runs already, and whether it is about to end.
    Process(AdoptProcess, bool),
}

impl WantedTask {
    /// Is it one of a command that runs its tasks outside of jobs, too?
    pub(super) fn may_be_ordinary(&self) -> bool {
        match self {
            WantedTask::Run(run) => ["lsrun", "lsgrun"].contains(&&*run.via),
            WantedTask::Process(..) => false,
        }
    }
}

/// A task that waits for the word of sbatchd.
#[derive(Debug)]
pub(super) struct WaitingTask {
    pub(super) job: JobRef,
    pub(super) wanted: WantedTask,
    /// When sbatchd is asked again, and when the task is refused, microseconds; 0: not yet set.
    ask_at: u64,
    until: u64,
    /// sbatchd has said that it knows of no such job.
    pub(super) unknown: bool,
}

/// The work to be done for the tasks that wait.
#[derive(Debug, Default)]
pub(super) struct WaitingDue {
    /// sbatchd is to be connected to.
    pub(super) dial: bool,
    /// The jobs to ask it about.
    pub(super) ask: Vec<JobRef>,
    /// The tasks that have waited long enough.
    pub(super) late: Vec<(ConnId, WaitingTask)>,
}

/// The tasks that wait, by the connection that wants them.
#[derive(Debug, Default)]
pub(super) struct WaitingTasks {
    link: SbatchdLink,
    tasks: BTreeMap<ConnId, WaitingTask>,
}

impl WaitingTasks {
    pub(super) fn has(&self, conn: ConnId) -> bool {
        self.tasks.contains_key(&conn)
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn add(&mut self, conn: ConnId, job: JobRef, wanted: WantedTask) {
        let task = WaitingTask { job, wanted, ask_at: 0, until: 0, unknown: false };
        self.tasks.insert(conn, task);
    }

    /// The connection that wanted it is gone.
    pub(super) fn drop_of(&mut self, conn: ConnId) {
        self.tasks.remove(&conn);
    }

    pub(super) fn connected(&mut self) {
        self.link = SbatchdLink::Up;
        self.tasks.values_mut().for_each(|task| task.ask_at = 0);
    }

    pub(super) fn disconnected(&mut self, now: Now) {
        self.link = SbatchdLink::Down;
        self.tasks.values_mut().for_each(|task| task.ask_at = now.mono_us + AGAIN);
    }

    /// Takes the tasks of a job, which wait no longer.
    pub(super) fn take_of(&mut self, job: JobRef) -> Vec<(ConnId, WaitingTask)> {
        take_where(&mut self.tasks, |_, task| task.job == job)
    }

    /// sbatchd knows of no such job: takes those of its tasks that need not wait for it to hear of
    /// that.
    pub(super) fn take_unknown(&mut self, job: JobRef) -> Vec<(ConnId, WaitingTask)> {
        let same = self.tasks.values_mut().filter(|task| task.job == job);
        same.for_each(|task| task.unknown = true);
        take_where(&mut self.tasks, |_, task| task.job == job && task.wanted.may_be_ordinary())
    }

    /// The work that time has brought; it counts as done.
    pub(super) fn due(&mut self, now: Now) -> WaitingDue {
        let mut due = WaitingDue::default();
        let late = |t: &WaitingTask| t.until != 0 && t.until <= now.mono_us;
        due.late = take_where(&mut self.tasks, |_, task| late(task));
        for task in self.tasks.values_mut().filter(|task| task.ask_at <= now.mono_us) {
            if task.until == 0 {
                task.until = now.mono_us + KNOWN_BY;
            }
            task.ask_at = now.mono_us + AGAIN;
            if self.link == SbatchdLink::Up && !due.ask.contains(&task.job) {
                due.ask.push(task.job);
            }
        }
        if self.link == SbatchdLink::Down && !self.tasks.is_empty() {
            (self.link, due.dial) = (SbatchdLink::Dialling, true);
        }
        due
    }

    /// When there is more to do.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.tasks.values().map(|t| if t.until == 0 { 0 } else { t.ask_at.min(t.until) }).min()
    }
}
