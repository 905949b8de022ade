//! Section GuaranteedResourcePool of lsb.resources. See lsb.resources(5).

use super::{HostTerm, Pos, RawParam, RawParams, UserTerm};

/// The kind of resource that a pool guarantees.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PoolType {
    /// Job slots.
    #[default]
    Slots,
    /// Whole hosts.
    Hosts,
    /// Slots and memory together on one host.
    Package(PackageConf),
    /// A number of lsf.shared, by its name.
    Resource(String),
    /// A resource that is no number of lsf.shared. Nothing acts on it.
    Unknown,
}

/// The slots of a package, and its memory as written; 0: none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PackageConf {
    pub slots: u32,
    pub mem: u32,
}

/// An amount of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PoolAmount {
    /// Slots, hosts, packages, or units of the resource.
    Fixed(u32),
    /// A part of the pool, 0 to 100.
    Percent(f64),
}

/// The amount of a pool that a service class is guaranteed.
#[derive(Clone, Debug, PartialEq)]
pub struct GuaranteeConf {
    pub class: RawParam,
    pub amount: PoolAmount,
}

/// LOAN_POLICIES.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoanConf {
    /// The queues whose jobs may borrow; `all` is every queue. `exclude` is that of `!queue`: the
    /// jobs borrow whatever RETAIN, DURATION and CLOSE_ON_DEMAND say.
    pub queues: Vec<UserTerm>,
    /// RETAIN, also called IDLE_BUFFER.
    pub retain: Option<PoolAmount>,
    /// DURATION, minutes.
    pub duration: Option<u32>,
    pub close_on_demand: bool,
    /// The value as written.
    pub text: String,
}

/// A pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuaranteedPoolConf {
    pub name: String,
    pub kind: PoolType,
    /// HOSTS; empty: all.
    pub hosts: Vec<HostTerm>,
    /// HOSTS as written.
    pub hosts_text: String,
    /// RES_SELECT, as a requirement string.
    pub res_select: String,
    pub distribution: Vec<GuaranteeConf>,
    /// DISTRIBUTION as written.
    pub distribution_text: String,
    pub loans: Option<LoanConf>,
    /// SLOTS_PER_HOST: most slots of a host that are of the pool.
    pub slots_per_host: Option<u32>,
    pub description: String,
    /// Everything as it is written.
    pub raw: RawParams,
    /// The beginning of the section.
    pub pos: Pos,
}
