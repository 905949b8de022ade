//! lsb.resources: its limits and policies. See lsb.resources(5).

use super::{GuaranteedPoolConf, HostTerm, Pos, RawParams, UserTerm};

/// lsb.resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchResources {
    /// The limits of the sections Limit, in the order of the file.
    pub limits: Vec<LimitConf>,
    /// The rows of the sections ReservationUsage.
    pub reservation_usage: Vec<ReservationUsage>,
    /// The sections ResourceReservation.
    pub reservations: Vec<ReservationPolicy>,
    /// The sections GuaranteedResourcePool, in the order of the file.
    pub pools: Vec<GuaranteedPoolConf>,
}

/// A section ResourceReservation: who may make advance reservations, where and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReservationPolicy {
    pub name: String,
    /// USERS; empty: all.
    pub users: Vec<UserTerm>,
    /// HOSTS; empty: all.
    pub hosts: Vec<HostTerm>,
    /// TIME_WINDOW; empty: any time.
    pub window: String,
    /// USERS and HOSTS as written.
    pub users_text: String,
    pub hosts_text: String,
    /// The beginning of the section in the file.
    pub pos: Pos,
}

/// One limit of a section Limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitConf {
    /// NAME; a limit without one is called NONAME and a number.
    pub name: String,
    /// USERS or PER_USER.
    pub users: Option<LimitMembers>,
    /// QUEUES or PER_QUEUE.
    pub queues: Option<LimitMembers>,
    /// HOSTS or PER_HOST.
    pub hosts: Option<LimitMembers>,
    /// PROJECTS or PER_PROJECT.
    pub projects: Option<LimitMembers>,
    /// APPS or PER_APP.
    pub apps: Option<LimitMembers>,
    /// LIC_PROJECTS or PER_LIC_PROJECT.
    pub lic_projects: Option<LimitMembers>,
    /// The amounts, in the order of [`Limited`].
    pub amounts: Vec<LimitAmount>,
    /// INELIGIBLE.
    pub ineligible: bool,
    /// CLUSTERS or PER_CLUSTER: the limit has no effect in this cluster.
    pub of_clusters: bool,
    /// Everything as it is written.
    pub raw: RawParams,
    /// The beginning of the section, or of the row.
    pub pos: Pos,
}

/// The members of one dimension that a limit is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitMembers {
    /// PER_: each member has the amount for itself.
    pub each: bool,
    /// The words of the list.
    pub words: Vec<UserTerm>,
    /// The list as written.
    pub text: String,
    /// The position of the list.
    pub pos: Pos,
}

/// The quantity that a limit counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limited {
    /// SLOTS and SLOTS_PER_PROCESSOR.
    Slots,
    /// MEM.
    Mem,
    /// TMP.
    Tmp,
    /// SWP.
    Swp,
    /// JOBS.
    Jobs,
    /// A resource of RESOURCE.
    Resource(String),
}

/// The amount of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LimitNumber {
    /// Slots, jobs, MB, or units of a resource.
    Fixed(f64),
    /// For each processor of a host.
    PerProcessor(f64),
    /// A part of what the host has, percent.
    Percent(f64),
}

/// An amount of a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitAmount {
    /// The quantity that is counted.
    pub what: Limited,
    /// The amount.
    pub number: LimitNumber,
    /// The position of the value.
    pub pos: Pos,
}

/// A row of a section ReservationUsage. RESERVE is read and shown alone.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationUsage {
    /// RESOURCE.
    pub resource: String,
    /// METHOD.
    pub method: String,
    /// RESERVE.
    pub reserve: String,
    /// The place of RESOURCE.
    pub pos: Pos,
}
