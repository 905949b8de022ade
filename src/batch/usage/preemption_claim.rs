//! The claim of a pending job: the slots and resources that others were preempted for, with what it
//! needs besides. `preemptions` knows all claims.

use crate::batch::state::names::{HostId, QueueId, ResourceId, UserId};
use crate::model::JobRef;

/// Slots on a host that a pending job is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedHost {
    pub host: HostId,
    pub slots: u32,
    /// The part of `slots` that was free, not vacated.
    pub free: u32,
}

/// An amount of a resource that a pending job is to get.
#[derive(Clone, Copy, Debug)]
pub struct ClaimedResource {
    /// The row of the ledger in which it is reserved.
    pub row: usize,
    pub resource: ResourceId,
    pub amount: f64,
    /// The part of `amount` that was free, not vacated.
    pub free: f64,
}

/// The slots that a pending job has had elements preempted for.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The queue and the user of the job.
    pub queue: QueueId,
    pub user: UserId,
    pub victims: Vec<JobRef>,
    pub hosts: Vec<ClaimedHost>,
    /// The preemptable resources.
    pub resources: Vec<ClaimedResource>,
    /// No more elements are preempted before this time while these alone are lacking, seconds
    /// since the epoch.
    pub until: i64,
}
