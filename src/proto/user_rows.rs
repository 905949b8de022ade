//! The rows of busers, bugroup and bmgroup.

use serde::{Deserialize, Serialize};

/// busers: slots, and jobs that wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// A user, a group, or `default`, which has no counts.
    pub name: String,
    pub jl_p: Option<f64>,
    pub max: Option<u64>,
    pub njobs: u64,
    pub pend: u64,
    pub run: u64,
    pub ssusp: u64,
    pub ususp: u64,
    pub rsv: u64,
    pub pjobs: u64,
    /// MAX_PEND_SLOTS, MAX_PEND_JOBS.
    pub mpend: Option<u64>,
    pub mpjobs: Option<u64>,
}

/// bugroup, bmgroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInfo {
    pub name: String,
    /// A group within it ends in `/`; `all`: every user, every host.
    pub members: Vec<String>,
    pub admins: Vec<String>,
    /// The text of the shares as it is written in the file.
    pub shares: String,
    /// The type of a compute unit; empty for groups of users and hosts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
}
