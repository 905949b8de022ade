//! bjdepinfo to mbatchd: the jobs that a job waits for, or that wait for it (bjdepinfo(1)).

use crate::model::JobRef;
use serde::{Deserialize, Serialize};

/// Rows of one answer; further ones are left out.
pub const MAX_ROWS: usize = 10_000;
/// Largest level of -r.
pub const MAX_LEVEL: u32 = 1000;

/// Answered by `DependencyRows`, or refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DependencyRequest {
    /// The job (idx 0 of an array: all of it) or element.
    pub at: JobRef,
    /// -c: the jobs that wait for it, not the jobs that it waits for.
    pub children: bool,
    /// -p: only parents for which the condition is not met.
    pub unmet: bool,
    /// -r: degrees of separation, at least 1.
    pub level: u32,
}

/// A job and one that it waits for, or one that waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DependencyRow {
    pub job: JobRef,
    /// The parent, or the child.
    pub other: JobRef,
    /// The state of the other job; empty: it has left memory.
    pub stat: String,
    pub name: String,
    pub level: u32,
}

/// The condition of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionInfo {
    pub job: JobRef,
    pub text: String,
    pub satisfied: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dependencies {
    pub rows: Vec<DependencyRow>,
    /// The conditions of the job and of the parents that were followed.
    pub conditions: Vec<ConditionInfo>,
    /// There are more rows than [`MAX_ROWS`].
    pub cut: bool,
}
