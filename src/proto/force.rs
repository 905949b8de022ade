//! The request of brun.

use serde::{Deserialize, Serialize};

/// The hosts on which brun starts a job, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Force {
    /// Hosts and host groups in order, each with the slots there; 0: as many as processors.
    pub hosts: Vec<(String, u32)>,
    /// -b: not from its last checkpoint.
    pub from_beginning: bool,
    /// -c: processors in use do not count.
    pub free_processors: bool,
    /// -f.
    pub never_suspended: bool,
}
