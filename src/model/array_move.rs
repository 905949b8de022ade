//! Places in the order of dispatch, and the move of many elements of an array to one
//! (LSF_ARRAY_MOVE, lsb.events(5)).

/// Elements of an array: first, last, step.
pub type ElementRange = (u32, u32, u32);

/// A place in the order of dispatch among jobs of one priority: as submitted, (seconds, job ID),
/// and between two such places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition {
    /// Seconds since the epoch, then the job ID, 32 bits each.
    pub base: u64,
    pub between: u32,
}

impl QueuePosition {
    /// The position of a job that was never moved.
    pub fn submitted(time: i64, job: u32) -> Self {
        let secs = u64::try_from(time).unwrap_or(0) & u64::from(u32::MAX);
        QueuePosition { base: secs << 32 | u64::from(job), between: 1 << 31 }
    }
}

/// LSF_ARRAY_MOVE (ours): JOB_MOVE of each of many elements of an array, in one record.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayMove {
    pub job: u32,
    /// The elements, in ascending order.
    pub elems: Vec<ElementRange>,
    /// The position, counted from 1.
    pub position: u32,
    /// Counted from the top, else from the bottom.
    pub top: bool,
    pub uid: u32,
    pub user: String,
    /// The place that all of them get.
    pub place: QueuePosition,
}
