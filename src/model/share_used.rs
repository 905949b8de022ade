//! LSF_SHARE_USED: use that counts for fairshare, of jobs that the log does not have.

/// `LSF_SHARE_USED` (ours): the use that counts for fairshare of jobs that the log does not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareUsed {
    pub queue: String,
    pub user: String,
    /// The group of bsub -G; empty none.
    pub group: String,
    /// CPU and run time as far as they have not decayed by the time of the record, seconds.
    pub cpu: f64,
    pub run: f64,
}
