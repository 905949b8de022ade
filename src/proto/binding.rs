//! The binding of a task, as sbatchd orders it of a starter.

use serde::{Deserialize, Serialize};

/// The processors and NUMA nodes that a task is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Binding {
    /// Numbers of logical CPUs, as `0,2-5`.
    pub cpus: String,
    /// Numbers of NUMA nodes, likewise; empty: memory is not bound.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nodes: String,
    /// Memory of other nodes may be used where these have none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prefer: bool,
    /// The file of LSB_AFFINITY_HOSTFILE; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_file: String,
}
