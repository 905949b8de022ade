//! bgadd, bgmod, bgdel and bjgroup to mbatchd: job groups (bgadd(1), bjgroup(1)).

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobGroupRequest {
    /// Answered by `AdminDone` with one line a group, or refused; so are `Modify` and `Delete`.
    Add {
        path: String,
        limit: Option<u32>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        sla: String,
    },
    Modify {
        path: String,
        /// -L, -Ln; `None`: neither was given.
        limit: Option<NewLimit>,
        /// -u; empty: not given.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        owner: String,
    },
    Delete(DeleteGroups),
    /// Answered by `JobGroups`: the group and all below it; empty: all groups. `slots`: slots
    /// instead of jobs.
    List {
        path: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        slots: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewLimit {
    Most(u32),
    None,
}

/// bgdel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeleteGroups {
    /// The group, which goes with all below it; empty: the operand 0, all empty groups.
    pub path: String,
    /// -c: of these groups those that are empty.
    pub empty_only: bool,
    /// -u: groups of this user, `all` of everybody; empty: the caller's.
    pub user: String,
    /// -d: those that have been empty for so long.
    #[serde(skip_serializing_if = "is_zero")]
    pub idle_secs: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// bjgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobGroupInfo {
    pub path: String,
    pub owner: String,
    pub sla: String,
    pub limit: Option<u32>,
    /// Started jobs, which the limit counts.
    pub started: u64,
    /// Jobs or slots, those of all groups below it included.
    pub njobs: u64,
    pub pend: u64,
    pub run: u64,
    pub ssusp: u64,
    pub ususp: u64,
    pub finish: u64,
}
