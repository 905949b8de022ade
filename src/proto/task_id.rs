//! The names of the tasks of a launcher.

use crate::model::JobKey;
use serde::{Deserialize, Serialize};

/// The part of an attempt that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaskStep {
    /// The job itself.
    Job,
    /// When it runs: the mail that -B asked for; as the user.
    Begin,
    /// After its end: append the report, remove the job file; as the user.
    Finish,
    /// A task of res; its key is none of a job.
    Task,
    /// Before its run limit or deadline: the command of -wa; as the user.
    Warn,
    /// While it runs: a command of JOB_CONTROLS; as the user. It may be started again when it has
    /// ended.
    Control,
    /// On another host than the first one of the job: the commands of its queue for every host,
    /// before and after the job.
    HostBefore,
    HostAfter,
    /// After its end: append the report, where that waits for other hosts and the rest of `Finish`
    /// does not; as the user.
    Report,
}

impl TaskStep {
    pub const ALL: [TaskStep; 9] = [
        TaskStep::Job,
        TaskStep::Begin,
        TaskStep::Finish,
        TaskStep::Task,
        TaskStep::Warn,
        TaskStep::Control,
        TaskStep::HostBefore,
        TaskStep::HostAfter,
        TaskStep::Report,
    ];
}

/// Names one task of a launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskId {
    pub key: JobKey,
    pub step: TaskStep,
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.step {
            TaskStep::Job => write!(f, "{}", self.key),
            TaskStep::Begin => write!(f, "{} begin", self.key),
            TaskStep::Finish => write!(f, "{} finish", self.key),
            TaskStep::Task => write!(f, "task {}", self.key.job),
            TaskStep::Warn => write!(f, "{} warning", self.key),
            TaskStep::Control => write!(f, "{} control", self.key),
            TaskStep::HostBefore => write!(f, "{} host pre-exec", self.key),
            TaskStep::HostAfter => write!(f, "{} host post-exec", self.key),
            TaskStep::Report => write!(f, "{} report", self.key),
        }
    }
}
