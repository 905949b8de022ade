//! The rows that bapp lists.

use serde::{Deserialize, Serialize};

/// bapp.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApplicationInfo {
    pub name: String,
    pub description: String,
    /// DEFAULT_APPLICATION names it.
    pub is_default: bool,
    /// Slots: pending, running, suspended by the system, by users.
    pub pend: u64,
    pub run: u64,
    pub ssusp: u64,
    pub ususp: u64,
    /// (parameter name, text) pairs of lsb.applications as written, for -l.
    pub params: Vec<(String, String)>,
}
