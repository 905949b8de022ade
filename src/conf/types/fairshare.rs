//! Fairshare: share assignments and the factors of the dynamic priority. See lsb.queues(5),
//! lsb.users(5), lsb.hosts(5) and lsb.params(5).

use super::Pos;

/// A share assignment: `[user, number]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareAssignment {
    /// User, user group, `default` or `others`.
    pub name: String,
    /// `group@`: the number is each member's.
    pub each_member: bool,
    /// Number of shares, at least 1.
    pub shares: u32,
    /// The place of the name in the file.
    pub pos: Pos,
}

/// The factors that a queue sets itself; `None`: those of lsb.params hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueFactors {
    /// CPU_TIME_FACTOR.
    pub cpu_time: Option<f64>,
    /// RUN_TIME_FACTOR.
    pub run_time: Option<f64>,
    /// RUN_JOB_FACTOR.
    pub run_job: Option<f64>,
    /// COMMITTED_RUN_TIME_FACTOR.
    pub committed: Option<f64>,
    /// HIST_HOURS.
    pub hist_hours: Option<f64>,
    /// RUN_TIME_DECAY.
    pub run_time_decay: Option<bool>,
    /// ENABLE_HIST_RUN_TIME.
    pub hist_run_time: Option<bool>,
}
