//! lsb.users(5): groups of users and their limits.

use super::{Pos, ShareAssignment};

/// lsb.users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchUsers {
    /// Section UserGroup.
    pub groups: Vec<UserGroup>,
    /// Section User.
    pub users: Vec<UserPolicy>,
}

/// A row of the UserGroup section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserGroup {
    /// GROUP_NAME.
    pub name: String,
    /// GROUP_MEMBER.
    pub members: Vec<UserTerm>,
    /// GROUP_MEMBER is `!`: members come from egroup.
    pub external: bool,
    /// GROUP_ADMIN.
    pub admins: Vec<String>,
    /// USER_SHARES, as written.
    pub shares: String,
    /// USER_SHARES: the share assignments.
    pub share_list: Vec<ShareAssignment>,
    /// PRIORITY, for the factor UG of APS_PRIORITY.
    pub priority: u32,
    /// The place of the row in the file.
    pub pos: Pos,
}

impl UserGroup {
    /// Is `all` a member?
    pub fn is_of_all(&self) -> bool {
        self.members.iter().any(|term| !term.exclude && term.name == "all")
    }
}

/// A row of the User section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserPolicy {
    /// USER_NAME: a user, group or `default`.
    pub name: String,
    /// `group@`: the limit is each member's.
    pub each_member: bool,
    /// MAX_JOBS, slots.
    pub max_jobs: Option<u32>,
    /// JL/P, slots per processor.
    pub jl_p: Option<f64>,
    /// MAX_PEND_JOBS.
    pub max_pend_jobs: Option<u64>,
    /// MAX_PEND_SLOTS.
    pub max_pend_slots: Option<u64>,
    /// PRIORITY, for the factor USER of APS_PRIORITY.
    pub priority: Option<u32>,
    /// The place of the row in the file.
    pub pos: Pos,
}

/// A word of USERS or of a member list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserTerm {
    /// User, group, `all` or `none`.
    pub name: String,
    /// `~name`.
    pub exclude: bool,
    /// `group@`: each member.
    pub members: bool,
    /// The position of the word.
    pub pos: Pos,
}
