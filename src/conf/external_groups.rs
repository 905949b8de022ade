//! Groups of users and hosts whose members a program of the site names: GROUP_MEMBER `!` in
//! lsb.users(5) and lsb.hosts(5), egroup(8). The readers mark these groups; the runner of mbatchd
//! calls the program and puts the members in.

use super::types::{ClusterConf, UserTerm};

/// The kind of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKind {
    Users,
    Hosts,
}

/// A group whose members egroup names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExternalGroup {
    pub kind: GroupKind,
    pub name: String,
}

impl ClusterConf {
    /// The groups whose members egroup names.
    pub fn external_groups(&self) -> Vec<ExternalGroup> {
        let users = self.batch.users.groups.iter().filter(|group| group.external);
        let users = users.map(|group| (GroupKind::Users, &group.name));
        let hosts = self.batch.hosts.groups.iter().filter(|group| group.external);
        let hosts = hosts.map(|group| (GroupKind::Hosts, &group.name));
        users.chain(hosts).map(|(kind, name)| ExternalGroup { kind, name: name.clone() }).collect()
    }

    /// Puts the members of a group in; nothing is done for a group that is not external. Whether
    /// they are others than before.
    pub fn set_external_members(&mut self, group: &ExternalGroup, members: &[String]) -> bool {
        match group.kind {
            GroupKind::Users => {
                self.batch.users.membership = Default::default();
                let groups = &mut self.batch.users.groups;
                let mut found = groups.iter_mut().filter(|g| g.external && g.name == group.name);
                let Some(found) = found.next() else { return false };
                let pos = &found.pos;
                let term = |name: &String| UserTerm {
                    name: name.clone(),
                    pos: pos.clone(),
                    ..UserTerm::default()
                };
                let terms: Vec<UserTerm> = members.iter().map(term).collect();
                std::mem::replace(&mut found.members, terms.clone()) != terms
            }
            GroupKind::Hosts => {
                let groups = &mut self.batch.hosts.groups;
                let mut found = groups.iter_mut().filter(|g| g.external && g.name == group.name);
                let Some(found) = found.next() else { return false };
                let members = members.to_vec();
                std::mem::replace(&mut found.members, members.clone()) != members
            }
        }
    }
}

/// GROUP_MEMBER of these groups.
pub(super) const EXTERNAL: &str = "!";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::testing::MapFiles;
    use crate::conf::{Diags, Shared};

    #[test]
    fn external_groups_have_the_members_that_are_put_in() {
        let mut conf = ClusterConf::default();
        let mut diags = Diags::new();
        let text = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nout (!)\nown (ann)\nEnd UserGroup\n";
        let files = MapFiles::one("/c/lsb.users", text);
        conf.batch.users =
            crate::conf::lsb_users::parse(&files, "/c/lsb.users", &mut diags).unwrap();
        let text = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nfast (!)\nold !\nEnd HostGroup\n";
        let files = MapFiles::one("/c/lsb.hosts", text);
        conf.batch.hosts =
            crate::conf::lsb_hosts::parse(&files, "/c/lsb.hosts", &Shared::default(), &mut diags)
                .unwrap();
        assert!(!crate::conf::has_errors(diags.list()));
        let group = |kind, name: &str| ExternalGroup { kind, name: name.to_owned() };
        let out = group(GroupKind::Users, "out");
        let fast = group(GroupKind::Hosts, "fast");
        assert_eq!(
            conf.external_groups(),
            [out.clone(), fast.clone(), group(GroupKind::Hosts, "old")]
        );
        assert!(!conf.in_user_group("bob", "out", &[]));
        assert!(conf.set_external_members(&out, &["bob".into(), "cid".into()]));
        assert!(!conf.set_external_members(&out, &["bob".into(), "cid".into()]));
        assert!(conf.in_user_group("bob", "out", &[]) && !conf.in_user_group("ann", "out", &[]));
        assert!(!conf.set_external_members(&group(GroupKind::Users, "own"), &["bob".into()]));
        assert!(!conf.in_user_group("bob", "own", &[]));
        assert!(conf.set_external_members(&fast, &["h1".into()]));
        assert_eq!(conf.batch.hosts.groups[0].members, ["h1"]);
        assert!(conf.set_external_members(&fast, &[]));
        assert_eq!(conf.host_group("fast"), Some(vec![]), "not every host");
        assert_eq!(conf.external_groups().len(), 3);
    }
}
