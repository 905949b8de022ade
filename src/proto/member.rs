//! res and the sbatchd of its host: which jobs have slots here. res, which connects, asks before it
//! starts a task of a job (blaunch(1)); nothing is sent about jobs that start none.

use crate::model::task_gone::TaskGoneAction;
use crate::model::{ByteStr, JobKey, JobRef};
use crate::proto::job_directory::TemporaryDirectory;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MemberMsg {
    // res -> sbatchd
    /// Answered by `Told` or `Unknown`.
    Ask {
        job: JobRef,
    },
    /// Find the job of a process. Answered by `Looked`. The CPU time of one that was taken into a
    /// job counts from now on.
    Look(ProcessLook),

    // sbatchd -> res
    Told(Box<Membership>),
    /// No such job has slots here, as far as this host has been told.
    Unknown {
        job: JobRef,
        /// This host will not hear of it: it is over here, or mbatchd has told of all jobs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        settled: bool,
    },
    Looked {
        /// [`ProcessLook::n`].
        n: u64,
        /// The job that it is of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<JobKey>,
        /// The process ID of the launcher; 0: not known.
        launcher: u32,
        /// Why it cannot be in a job; empty: it can.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
}

/// A process that res has not started and that is to be in a job of this user, or is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLook {
    /// A number of res's, for the answer.
    pub n: u64,
    pub uid: u32,
    pub pid: u32,
    /// The start of the process, clock ticks since the host's.
    pub ticks: u64,
}

/// A job that has slots on this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Membership {
    pub key: JobKey,
    /// The user of the job: nobody else starts tasks of it.
    pub uid: u32,
    /// All hosts of the job, each once.
    pub hosts: Vec<String>,
    /// The variables of the job for a task on this host, NUL-separated `NAME=value`.
    pub env: ByteStr,
    /// Nice value of the job's queue.
    pub nice: i32,
    /// The temporary directory of the job, which its tasks make on this host where it is missing;
    /// none on its first host, which has made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary: Option<Box<TemporaryDirectory>>,
    /// When sbatchd told this, monotonic microseconds of the host.
    #[serde(skip_serializing_if = "is_default")]
    pub told_at: u64,
    /// The slots of the job on this host; 0: not known.
    #[serde(skip_serializing_if = "is_default")]
    pub slots: u32,
}

/// The note that the launcher keeps with a task of a job: by it the sbatchd of the host knows whose
/// task it is, whichever res had it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskNote {
    pub key: JobKey,
    /// The task has no connection to whoever asked for it (blaunch -no-wait).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// The ends of the task that end its job; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<TaskGoneAction>,
    /// Seconds between two measurements of the tasks of its job; 0: the usual ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage_secs: u32,
    /// The task is one of pam's (pam(1)): milliseconds that the usual time is longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pam_ms: Option<u32>,
    /// The task was not started here: its first process was taken into the job (TaskStarter(1)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// [`Membership::told_at`]: an attempt that was over on this host then begins no task.
    #[serde(default, skip_serializing_if = "is_default")]
    pub told_at: u64,
    /// [`Membership::slots`]: an sbatchd that finds the task has it from here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slots: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TaskNote {
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a note; `None`: the task is of no job.
    pub fn of(text: &str) -> Option<TaskNote> {
        serde_json::from_str(text).ok()
    }
}
