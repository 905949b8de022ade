//! Names of jobs: an ID, an array index, an attempt.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

/// A job or one element of an array. `idx` is 0 outside an array.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct JobRef {
    pub job: u32,
    pub idx: u32,
}

impl JobRef {
    /// A job and all elements that it may have.
    pub const fn all_of(job: u32) -> RangeInclusive<JobRef> {
        JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX }
    }
}

impl fmt::Display for JobRef {
    /// `123` or `123[4]`, as every command prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.idx == 0 {
            write!(f, "{}", self.job)
        } else {
            write!(f, "{}[{}]", self.job, self.idx)
        }
    }
}

/// One start of one job or element: what makes a start idempotent on its way to a host.
/// Attempts count from 1 and survive in the log.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct JobKey {
    pub job: u32,
    pub idx: u32,
    pub attempt: u32,
}

impl JobKey {
    pub fn job_ref(&self) -> JobRef {
        JobRef { job: self.job, idx: self.idx }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.job_ref(), self.attempt)
    }
}
