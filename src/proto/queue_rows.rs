//! The rows that bqueues lists.

use super::share_rows::ShareTable;
use serde::{Deserialize, Serialize};

/// bqueues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueInfo {
    pub name: String,
    pub description: String,
    pub priority: i64,
    pub nice: i32,
    pub open: bool,
    pub active: bool,
    /// Inactive because of a window.
    pub window_closed: bool,
    pub is_default: bool,
    pub max: Option<u64>,
    pub jl_u: Option<u64>,
    pub jl_p: Option<f64>,
    pub jl_h: Option<u64>,
    /// Slots: all, pending, running, suspended by the system, by users, reserved.
    pub njobs: u64,
    pub pend: u64,
    pub run: u64,
    pub ssusp: u64,
    pub ususp: u64,
    pub rsv: u64,
    /// Pending jobs.
    pub pjobs: u64,
    pub accept_interval_secs: u64,
    /// MBD_SLEEP_TIME, seconds.
    pub sleep_secs: u64,
    /// (parameter name, text) pairs of lsb.queues as written, for -l.
    pub params: Vec<(String, String)>,
    /// sched/stop by built-in index.
    pub thresholds: Vec<(Option<f64>, Option<f64>)>,
    /// `sched/stop` of external indices by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<(String, String)>,
    pub admin_comment: String,
    /// The accounts of FAIRSHARE: the root of the tree, then each group in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareTable>,
}
