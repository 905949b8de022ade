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

    // sbatchd -> res
    Told(Box<Membership>),
    /// No such job has slots here, as far as this host has been told.
    Unknown {
        job: JobRef,
    },
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
}

/// The note that the launcher keeps with a task of a job: by it the sbatchd of the host knows whose
/// task it is, whichever res had it started.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskNote {
    pub key: JobKey,
    /// The task has no connection to whoever asked for it (blaunch -no-wait).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// The ends of the task that end its job; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<TaskGoneAction>,
    /// Seconds between two measurements of the tasks of its job; 0: the usual ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub usage_secs: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
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
