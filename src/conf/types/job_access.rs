//! Access to the jobs of others: SECURE_JOB_INFO_LEVEL, ENABLE_JOB_INFO_BY_ADMIN_ROLE,
//! STRICT_UG_CONTROL and ENABLE_USER_RESUME of lsb.params(5).

/// The part of a job that a user may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobRights {
    /// The job is not listed.
    Nothing,
    /// The state and the usage.
    Summary,
    /// All of it.
    Detail,
}

/// How close a job is to the user who asks about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobCloseness {
    /// The user's own.
    Own,
    /// A job that belongs to a user group of the user's.
    SameGroup,
    Other,
}

/// Access to the jobs of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobAccess {
    /// SECURE_JOB_INFO_LEVEL, 0 to 5.
    pub level: u8,
    /// ENABLE_JOB_INFO_BY_ADMIN_ROLE: administrators see the jobs of their user groups.
    pub user_group_admins: bool,
    /// Administrators see the jobs of their queues.
    pub queue_admins: bool,
    /// Administrators of the cluster see all jobs.
    pub cluster_admins: bool,
    /// STRICT_UG_CONTROL: GROUP_ADMIN of a user group is about jobs submitted with -G alone.
    pub strict_user_groups: bool,
    /// ENABLE_USER_RESUME: users resume jobs that administrators have stopped.
    pub user_resume: bool,
}

impl JobAccess {
    /// The largest SECURE_JOB_INFO_LEVEL.
    pub const LEVEL_MAX: u8 = 5;
    /// The level by which a user sees own jobs alone.
    pub const STRICTEST: u8 = 4;

    /// The part of a job that a user without a role sees.
    pub fn rights(&self, of: JobCloseness) -> JobRights {
        match (self.level, of) {
            (0, _) | (_, JobCloseness::Own) | (1 | 2, JobCloseness::SameGroup) => JobRights::Detail,
            (3 | 5, JobCloseness::SameGroup) | (1 | 5, JobCloseness::Other) => JobRights::Summary,
            _ => JobRights::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_of_each_level_are_those_of_the_table() {
        use JobRights::{Detail, Nothing, Summary};
        let table = [
            (Detail, Detail),
            (Detail, Summary),
            (Detail, Nothing),
            (Summary, Nothing),
            (Nothing, Nothing),
            (Summary, Summary),
        ];
        for (level, (same, other)) in (0..).zip(table) {
            let access = JobAccess { level, ..JobAccess::default() };
            let all = [JobCloseness::Own, JobCloseness::SameGroup, JobCloseness::Other];
            assert_eq!(all.map(|of| access.rights(of)), [Detail, same, other], "{level}");
        }
    }
}
