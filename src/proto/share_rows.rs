//! The accounts of a share tree, in bqueues and bhpart.

use serde::{Deserialize, Serialize};

/// The accounts right below another, or at the root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareTable {
    /// The queue or partition and the groups on the way, each with a slash behind it.
    pub path: String,
    pub rows: Vec<ShareRow>,
}

/// A share account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareRow {
    /// A user, a group or `others`.
    pub name: String,
    pub shares: u32,
    /// The dynamic priority.
    pub priority: f64,
    /// Jobs, or slots where these count.
    pub started: u64,
    pub reserved: u64,
    /// CPU time used, seconds.
    pub cpu_secs: f64,
    /// Run time, seconds.
    pub run_secs: f64,
    /// The adjustment by a plug-in; there is none.
    pub adjust: f64,
}

/// bhpart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartitionInfo {
    pub name: String,
    /// HOSTS, word by word; that of a host group ends in `/`.
    pub hosts: Vec<String>,
    /// The root of the share tree, then each group in it.
    pub shares: Vec<ShareTable>,
}
