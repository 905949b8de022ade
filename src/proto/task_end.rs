//! The end of a task, as the launcher tells of it.

use crate::model::job::{End, Usage};
use serde::{Deserialize, Serialize};

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// Seconds since the epoch (of the discovery, where the end itself is unknown).
    pub time: i64,
    pub end: End,
    pub usage: Usage,
    /// The end is unknown because the host was restarted.
    pub restarted: bool,
}
