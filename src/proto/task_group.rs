//! The control group of a task, which the launcher makes and sbatchd looks into.

use serde::{Deserialize, Serialize};

/// The control group that holds all processes of a task, and no others while the task is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskGroup {
    /// The path of its directory.
    pub dir: String,
    /// CPU time that the group had used before the task, microseconds.
    pub utime_us: u64,
    pub stime_us: u64,
    /// The directory with the memory limit of the job; empty: the kernel holds none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub memory: String,
    /// The kernel has killed a process at that limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub out_of_memory: bool,
    /// The task has ended, and no process was left in the group.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty: bool,
}
