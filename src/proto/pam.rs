//! pam and the TaskStarters of its tasks (pam(1), TaskStarter(1)). The frames are signed with a
//! key that the authds of both hosts give to processes of one user alone (src/auth/user_server.rs).

use crate::model::JobRef;
use crate::model::job::Usage;
use serde::{Deserialize, Serialize};

/// Longest message, bytes.
pub const PAM_FRAME_MAX: usize = 64 << 10;
/// Most tasks of one pam.
pub const TASKS_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PamMsg {
    // TaskStarter -> pam
    /// Answered by `Welcome`, or refused.
    Hello {
        /// The job of its environment, where that names one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job: Option<JobRef>,
        /// The process ID of the TaskStarter.
        pid: u32,
        /// The connection was lost: the number of its task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<u32>,
        /// The application with its words, cut.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        command: String,
    },
    /// The task runs. `ticks`: its start, clock ticks since the host's.
    Started {
        pid: u32,
        ticks: u64,
        /// Why RES has not taken it into the job; empty: it is in the job.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        outside: String,
    },
    /// The task cannot be started: a number of errno, or 0, and the words.
    Failed {
        errno: i32,
        why: String,
    },
    /// Raw wait status; what wait4 says of its usage; seconds since the epoch. Answered by `Ack`.
    Exited {
        status: i32,
        usage: Box<Usage>,
        time: i64,
    },

    // pam -> TaskStarter
    /// The number of the task, and the job that pam is in.
    Welcome {
        tid: u32,
        job: JobRef,
        /// [`crate::proto::res::AdoptProcess::pam_ms`] for RES.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pam_ms: Option<u32>,
    },
    Ack,
    /// A signal for the process group of the task.
    Signal {
        signal: i32,
    },
}
