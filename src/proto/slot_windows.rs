//! The answer to bslots: slots that are free for some time.

use serde::{Deserialize, Serialize};

/// Slots that are free for some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotWindow {
    /// How long, seconds; `None`: nothing is planned for them.
    pub secs: Option<u64>,
    /// Hosts with their slots.
    pub hosts: Vec<(String, u64)>,
}
