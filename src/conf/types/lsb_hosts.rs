//! lsb.hosts: the policy of hosts, their groups and units. See lsb.hosts(5).

use super::{Pos, ShareAssignment};
use crate::model::topology::CpuSet;

/// lsb.hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchHosts {
    /// Section Host, in the order of the file.
    pub hosts: Vec<HostPolicy>,
    /// Section HostGroup.
    pub groups: Vec<HostGroup>,
    /// Section ComputeUnit.
    pub units: Vec<ComputeUnit>,
    /// Sections HostPartition.
    pub partitions: Vec<HostPartition>,
}

/// A host partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostPartition {
    /// HPART_NAME.
    pub name: String,
    /// HOSTS, word by word as written.
    pub hosts: Vec<String>,
    /// USER_SHARES: the share assignments.
    pub shares: Vec<ShareAssignment>,
    /// The beginning of the section in the file.
    pub pos: Pos,
}

/// A compute unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeUnit {
    /// NAME.
    pub name: String,
    /// TYPE.
    pub kind: String,
    /// MEMBER, word by word as written (hosts, groups, units).
    pub members: Vec<String>,
    /// CONDENSE.
    pub condense: bool,
    /// The place of its row.
    pub pos: Pos,
}

/// MXJ of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mxj {
    /// `()`: no limit.
    #[default]
    Unlimited,
    /// `!`: as many as the host has CPUs.
    Cpus,
    /// A number of job slots.
    Slots(u32),
}

/// AFFINITY of a host: the CPUs for jobs that ask for processor units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AffinityCpus {
    /// `N`: no such job runs on the host.
    #[default]
    None,
    /// `Y`: all CPUs.
    All,
    /// `CPU_LIST="..."`: these.
    List(CpuSet),
}

/// A row of lsb.hosts' Host section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostPolicy {
    /// HOST_NAME: a host, host group, type, model or `default`.
    pub name: String,
    /// MXJ.
    pub mxj: Mxj,
    /// JL/U; None is unlimited.
    pub jl_u: Option<u32>,
    /// DISPATCH_WINDOW, as written; empty is always.
    pub dispatch_window: String,
    /// Load thresholds.
    pub thresholds: Thresholds,
    /// MIG, minutes.
    pub mig: Option<u64>,
    /// EXIT_RATE, exits of jobs that are no exception.
    pub exit_rate: Option<u32>,
    /// AFFINITY.
    pub affinity: AffinityCpus,
    /// Columns that nothing acts on, as written.
    pub not_acted_on: Vec<(String, String)>,
    /// The place of the row in the file.
    pub pos: Pos,
}

/// A row of the HostGroup section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostGroup {
    /// GROUP_NAME.
    pub name: String,
    /// GROUP_MEMBER, word by word as written (hosts, groups, `all`, `~x`, patterns, `!`).
    pub members: Vec<String>,
    /// GROUP_MEMBER is `!`: members come from egroup.
    pub external: bool,
    /// CONDENSE.
    pub condense: bool,
    /// GROUP_ADMIN.
    pub admins: Vec<String>,
    /// The place of the row in the file.
    pub pos: Pos,
}

/// loadSched and loadStop of one index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Threshold {
    /// Name of the load index.
    pub index: String,
    /// loadSched.
    pub sched: Option<f64>,
    /// loadStop.
    pub stop: Option<f64>,
}

/// Thresholds of a host or queue.
pub type Thresholds = Vec<Threshold>;
