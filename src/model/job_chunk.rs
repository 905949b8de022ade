//! The record of a chunk job (lsb.events(5)).

use super::ids::JobRef;
use std::sync::Arc;

/// JOB_CHUNK: elements that wait for the slots of the first one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobChunk {
    /// The running element and those that wait for it, in their order; alone: none waits any more.
    pub members: Vec<JobRef>,
    /// The execution hosts of the first, with its slots on them.
    pub hosts: Arc<[(Arc<str>, u32)]>,
    /// The record has the hosts as `n*host` (SHORT_EVENTFILE).
    pub short_hosts: bool,
}
