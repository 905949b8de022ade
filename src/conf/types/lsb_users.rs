//! lsb.users(5): groups of users and their limits.

use super::{Pos, ShareAssignment};
use crate::conf::membership::{MemberList, Membership};
use std::collections::HashMap;
use std::sync::OnceLock;

/// lsb.users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchUsers {
    /// Section UserGroup.
    pub groups: Vec<UserGroup>,
    /// Section User.
    pub users: Vec<UserPolicy>,
    /// The number of groups, and their places by name. A group keeps its name and its place.
    pub index: Derived<(usize, HashMap<String, usize>)>,
    /// The members of all groups. A change of the members of a group puts an empty one in its
    /// place.
    pub membership: Derived<Membership>,
}

impl BatchUsers {
    /// A group of this name.
    pub fn group(&self, name: &str) -> Option<&UserGroup> {
        let count = self.groups.len();
        let (counted, places) = self.index.0.get_or_init(|| {
            let places = self.groups.iter().enumerate().rev();
            (count, places.map(|(place, group)| (group.name.clone(), place)).collect())
        });
        match *counted == count {
            true => places.get(name).and_then(|place| self.groups.get(*place)),
            // groups have been added since
            false => self.groups.iter().find(|group| group.name == name),
        }
    }

    /// The members of all groups; `None`: groups have been added since they were worked out.
    pub fn membership(&self) -> Option<&Membership> {
        fn member_list(group: &UserGroup) -> (&str, MemberList<'_>) {
            let members = group.members.iter().map(|term| (term.name.as_str(), term.exclude));
            (&group.name, members.collect())
        }
        let of_all = || Membership::of(self.groups.iter().map(member_list));
        let known = self.membership.0.get_or_init(of_all);
        Some(known).filter(|known| known.count() == self.groups.len())
    }
}

/// A value that is worked out from the groups when it is asked for, and anew in a copy of them. The
/// value is no part of the configuration: two are equal.
#[derive(Debug, Default)]
pub struct Derived<T>(OnceLock<T>);

impl<T: Default> Clone for Derived<T> {
    fn clone(&self) -> Derived<T> {
        Derived::default()
    }
}

impl<T> PartialEq for Derived<T> {
    fn eq(&self, _: &Derived<T>) -> bool {
        true
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_found_by_its_name_after_others_were_added_and_in_a_copy() {
        let group = |name: &str| UserGroup { name: name.into(), ..UserGroup::default() };
        let mut users = BatchUsers { groups: vec![group("a"), group("b")], ..<_>::default() };
        let names = |of: &BatchUsers| ["a", "b", "c"].map(|name| of.group(name).is_some());
        assert_eq!(names(&users), [true, true, false]);
        users.groups.push(group("c"));
        assert_eq!((names(&users), names(&users.clone())), ([true; 3], [true; 3]));
        users.groups[0].external = true;
        assert!(users.group("a").is_some_and(|found| found.external));
    }
}
