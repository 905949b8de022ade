//! Parameters of lsb.params(5) about the scheduler: the order of hosts, the limits of user groups,
//! the form of pending reasons.

use super::UserGroupParams;

/// Parameters about the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerParams {
    /// PARALLEL_SCHED_BY_SLOT: ncpus of a requirement are the slots of a host.
    pub parallel_by_slot: bool,
    /// SCHED_PER_JOB_SORT: hosts are ordered anew for each job.
    pub per_job_sort: bool,
    /// CONDENSE_PENDING_REASONS.
    pub condensed_reasons: CondensedReasons,
    /// ENFORCE_ONE_UG_LIMITS and the others about user groups.
    pub user_groups: UserGroupParams,
}

/// CONDENSE_PENDING_REASONS: the words.
pub const CONDENSED_REASONS: [(&str, CondensedReasons); 4] = [
    ("ALL", CondensedReasons::All),
    ("Y", CondensedReasons::All),
    ("PARTIAL", CondensedReasons::Partial),
    ("N", CondensedReasons::No),
];

/// CONDENSE_PENDING_REASONS: the pending reasons of hosts that are told as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CondensedReasons {
    #[default]
    No,
    /// All but those about shared resources.
    Partial,
    All,
}
