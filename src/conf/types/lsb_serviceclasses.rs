//! lsb.serviceclasses. See lsb.serviceclasses(5).

use super::{Pos, RawParams, UserTerm};

/// The aim of a goal of a service class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalKind {
    /// All jobs are done when the window closes.
    Deadline,
    /// Number of jobs that run at a time, 1 or more.
    Velocity(u32),
    /// Number of jobs that finish in an hour, 1 or more.
    Throughput(u32),
}

/// A goal of a service class.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalConf {
    pub kind: GoalKind,
    /// timeWindow; empty: always.
    pub window: String,
    /// The position of the goal.
    pub pos: Pos,
}

/// ACCESS_CONTROL: the jobs that may be in a service class; an empty list means any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessControl {
    pub queues: Vec<UserTerm>,
    pub users: Vec<UserTerm>,
    pub fairshare_groups: Vec<UserTerm>,
    pub apps: Vec<UserTerm>,
    pub projects: Vec<UserTerm>,
    pub lic_projects: Vec<UserTerm>,
    /// The value as written.
    pub text: String,
}

/// CONTROL_ACTION: the command that is run while a class misses its goals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlActionConf {
    /// Minutes between two runs, 1 or more.
    pub minutes: u32,
    pub command: String,
}

/// A section ServiceClass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceClassConf {
    pub name: String,
    /// Larger goes first, 1 or more.
    pub priority: u32,
    /// The goals with a number of jobs.
    pub goals: Vec<GoalConf>,
    /// `[GUARANTEE]`: pools of lsb.resources guarantee resources to the jobs.
    pub guarantee: bool,
    /// USER_GROUP; empty: all users.
    pub users: Vec<UserTerm>,
    pub access: AccessControl,
    /// AUTO_ATTACH.
    pub auto_attach: bool,
    /// CONTROL_ACTION.
    pub control_action: Option<ControlActionConf>,
    pub description: String,
    /// Everything as it is written.
    pub raw: RawParams,
    /// The beginning of the section.
    pub pos: Pos,
}
