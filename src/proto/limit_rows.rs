//! The request of blimits and bresources, and its answer.

use serde::{Deserialize, Serialize};

/// blimits: limits and consumers; none of a kind: all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitQuery {
    /// Names of limits.
    pub names: Vec<String>,
    pub users: Vec<String>,
    pub queues: Vec<String>,
    pub hosts: Vec<String>,
    pub projects: Vec<String>,
    pub apps: Vec<String>,
    pub lic_projects: Vec<String>,
    /// Limits under which nothing is used are listed as well.
    pub all: bool,
}

/// The answer: the limits as they are configured, and what is used under them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitListing {
    pub limits: Vec<LimitInfo>,
    pub rows: Vec<LimitUsage>,
    /// The rows of ReservationUsage: RESOURCE, METHOD, RESERVE.
    pub reservation_usage: Vec<(String, String, String)>,
    /// The guaranteed pools that act.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolInfo>,
    /// The service classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub service_classes: Vec<ServiceClassInfo>,
}

/// A guaranteed pool as it is written, and as of now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolInfo {
    pub name: String,
    /// TYPE as written.
    pub kind: String,
    pub description: String,
    /// DISTRIBUTION and LOAN_POLICIES.
    pub distribution: String,
    pub loans: String,
    /// The queues whose jobs may borrow; `all`: every queue.
    pub borrowers: Vec<String>,
    /// HOSTS; empty: all.
    pub hosts_text: String,
    /// The hosts that are in the pool now.
    pub hosts: Vec<String>,
    /// The slots, hosts, packages or units of the pool, and those that are free.
    pub total: u64,
    pub free: u64,
    pub members: Vec<PoolMember>,
    /// The amount that jobs of no member use.
    pub others: u64,
    /// Slots and memory of a pool of packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<PackageUse>,
}

/// Slots and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotsAndMb {
    pub slots: u64,
    pub mb: u64,
}

/// The slots and the memory of the hosts of a pool of packages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PackageUse {
    /// A package has these.
    pub size: SlotsAndMb,
    pub total: SlotsAndMb,
    pub free: SlotsAndMb,
    /// Jobs of each member use these, in the order of the members.
    pub members: Vec<SlotsAndMb>,
    /// Jobs that borrow use these, and all others.
    pub loans: SlotsAndMb,
    pub others: SlotsAndMb,
}

impl PoolInfo {
    /// The first word of TYPE: slots, hosts, package or resource.
    pub fn kind_word(&self) -> &str {
        self.kind.split('[').next().unwrap_or_default().trim_end()
    }
}

/// A service class in a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolMember {
    pub class: String,
    /// The amount that it is guaranteed, and that its jobs use.
    pub guaranteed: u64,
    pub used: u64,
}

/// A goal of a service class that is a number of jobs, as it is written and as of now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoalInfo {
    /// `VELOCITY 5` and the like.
    pub words: String,
    /// timeWindow; empty: always.
    pub window: String,
    /// The window is open.
    pub active: bool,
    /// The goal is met.
    pub on_time: bool,
    /// When all jobs are expected to be done, seconds since the epoch: an active goal with a
    /// deadline.
    pub finish: Option<i64>,
    /// Jobs that should run: an active goal that works this number out.
    pub optimum: Option<u64>,
}

/// A service class as it is written, and its jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceClassInfo {
    pub name: String,
    pub description: String,
    pub priority: u32,
    /// USER_GROUP; empty: all.
    pub users: String,
    /// ACCESS_CONTROL; empty: any job.
    pub access: String,
    pub auto_attach: bool,
    pub guarantee: bool,
    /// The goals with a number of jobs.
    pub goals: Vec<GoalInfo>,
    /// Jobs: all, pending, running, suspended by the system, by users, finished.
    pub jobs: [u64; 6],
    /// Slots likewise, without the finished ones.
    pub slots: [u64; 5],
}

/// A limit of lsb.resources as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitInfo {
    pub name: String,
    /// (keyword, value) pairs, NAME first, then consumers, then amounts.
    pub params: Vec<(String, String)>,
}

/// The use of one limit by those who have its amount together. A dimension that the limit is not
/// about is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitUsage {
    pub name: String,
    pub users: String,
    pub queues: String,
    pub hosts: String,
    pub projects: String,
    pub apps: String,
    pub lic_projects: String,
    pub amounts: Vec<LimitedUse>,
    /// INELIGIBLE=Y.
    pub ineligible: bool,
}

/// The use of one amount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitedUse {
    /// SLOTS, JOBS, MEM, TMP, SWP, or the name of a resource.
    pub what: String,
    /// The quantity is a resource of lsf.shared.
    pub external: bool,
    pub used: f64,
    pub limit: f64,
}
