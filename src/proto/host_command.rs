//! HOST_PRE_EXEC and HOST_POST_EXEC of a queue (lsb.queues(5)) on the hosts of a job besides its
//! first one. The sbatchd of the first host asks mbatchd; mbatchd orders the other hosts, with what
//! it knows of the job itself, and passes on what these tell. A command runs once for an attempt,
//! however often it is ordered, so that every message may be lost and sent again.

use serde::{Deserialize, Serialize};

/// The command that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostWork {
    /// HOST_PRE_EXEC.
    Before,
    /// HOST_POST_EXEC; the wait status of the job.
    After { status: i32 },
    /// The job does not start: HOST_PRE_EXEC is killed.
    Stop,
}

/// The state of a command on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostCommandState {
    Running,
    Done,
    /// `exit`: its exit value; 0 where it has none.
    Failed {
        exit: u8,
        why: String,
    },
}
