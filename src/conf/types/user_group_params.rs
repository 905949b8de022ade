//! Parameters about the user groups of lsb.users(5).

/// Parameters about user groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserGroupParams {
    /// ENFORCE_ONE_UG_LIMITS: of the limits of groups those of -G alone count, and of the groups
    /// that it is nested in.
    pub one_group_limits: bool,
    /// ENFORCE_UG_TREE: each group is a member of one group at most.
    pub tree: bool,
    /// DEFAULT_LIMIT_IGNORE_USER_GROUP: the row `default` of section User is about users alone.
    pub default_skips_groups: bool,
}
