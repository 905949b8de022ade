//! EXTENDABLE_RUNLIMIT of lsb.queues(5).

/// A run limit that is extended while nobody wants what the job has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtendableRunLimit {
    /// BASE, seconds that a job runs before it is looked at.
    pub base_secs: u64,
    /// INCREMENT, seconds of each extension.
    pub increment_secs: u64,
    /// GRACE, seconds that a job has left when it is not extended.
    pub grace_secs: u64,
    /// REQUEUE: the job goes back to its queue then; else it ends.
    pub requeue: bool,
}
