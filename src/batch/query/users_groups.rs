//! busers, bugroup, bmgroup: users and groups as configured, with their slots.

use crate::batch::state::started_elements::Slots;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::{ComputeUnit, UserPolicy, UserTerm};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, GroupInfo, UserInfo};
use crate::proto::machine::ConnId;
use std::collections::{BTreeMap, BTreeSet};

/// Deepest nesting of groups that is followed; a cycle was refused when the file was read.
const MAX_DEPTH: usize = 32;

impl Mbatchd {
    /// The users of lsb.users and those who have jobs; the row `default` first.
    pub(crate) fn list_users(&mut self, context: &mut StepContext, conn: ConnId, names: &[String]) {
        let users = &self.site.conf.batch.users;
        let mut known: BTreeSet<&str> = BTreeSet::new();
        known.extend(users.users.iter().map(|u| u.name.as_str()).filter(|n| *n != "default"));
        known.extend(users.groups.iter().map(|g| g.name.as_str()));
        known.extend(self.state.counts().users().map(|(id, _)| &**self.state.names().user(id)));
        known.extend(self.site.conf.base.cluster.admins.iter().map(String::as_str));
        let mut rows = Vec::new();
        if names.is_empty() || names.iter().any(|n| n == "default") {
            rows.push(self.user_info("default"));
        }
        match names {
            [] => rows.extend(known.iter().map(|n| self.user_info(n))),
            names => {
                // each is looked at once, however often it is named
                let mut known: BTreeMap<&str, UserInfo> = BTreeMap::new();
                for name in names.iter().filter(|n| *n != "default") {
                    let row = known.entry(name).or_insert_with(|| self.user_info(name));
                    rows.push(row.clone());
                }
            }
        }
        context.reply(conn, ClientMsg::UserRows { rows });
    }

    /// A user's own row of lsb.users, a group's whose every member it limits, or `default`.
    fn policy_of(&self, user: &str) -> Option<&UserPolicy> {
        let rows = &self.site.conf.batch.users.users;
        let each = |u: &&UserPolicy| {
            u.each_member && self.group_members(&u.name).is_some_and(|m| self.is_in(m, user))
        };
        let own = rows.iter().find(|u| u.name == user && !u.each_member);
        let group = self.group_members(user).is_some();
        let skips = group && self.site.params().scheduler.user_groups.default_skips_groups;
        let other = || rows.iter().find(|u| u.name == "default").filter(|_| !skips);
        own.or_else(|| rows.iter().find(each)).or_else(other)
    }

    fn group_members(&self, name: &str) -> Option<&[UserTerm]> {
        let groups = &self.site.conf.batch.users.groups;
        groups.iter().find(|g| g.name == name).map(|g| g.members.as_slice())
    }

    fn is_in(&self, members: &[UserTerm], user: &str) -> bool {
        self.site.user_in(members, user, None)
    }

    fn user_info(&self, name: &str) -> UserInfo {
        let policy = self.policy_of(name);
        let (names, counts) = (self.state.names(), self.state.counts());
        let (s, rsv) = match self.group_members(name) {
            // nearly always
            None => {
                let user = names.find_user(name);
                let rsv = user.map_or(0, |user| self.view().reserved_by(|of| of.user == user));
                (user.map_or(Slots::default(), |user| counts.user(user)), rsv)
            }
            Some(members) => {
                let is_member = |user: &str| user == name || self.is_in(members, user);
                let of_members = counts.users().filter(|(id, _)| is_member(names.user(*id)));
                let rsv = self.view().reserved_by(|of| is_member(names.user(of.user)));
                (Slots::sum(of_members.map(|of| of.1)), rsv)
            }
        };
        UserInfo {
            name: name.to_string(),
            jl_p: policy.and_then(|p| p.jl_p),
            max: policy.and_then(|p| p.max_jobs).map(u64::from),
            njobs: s.all(),
            pend: s.pend,
            run: s.run,
            ssusp: s.ssusp,
            ususp: s.ususp,
            rsv,
            pjobs: s.pend_jobs,
            mpend: policy.and_then(|p| p.max_pend_slots),
            mpjobs: policy.and_then(|p| p.max_pend_jobs),
        }
    }

    pub(crate) fn list_groups(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        (hosts, units): (bool, bool),
        names: &[String],
        expand: bool,
    ) {
        let rows: Vec<GroupInfo> = match (hosts, units) {
            (false, _) => self.user_groups(names, expand),
            (true, false) => self.host_groups(names, expand),
            (true, true) => self.compute_units(names, expand),
        };
        let known: BTreeSet<&str> = rows.iter().map(|g| g.name.as_str()).collect();
        if let Some(bad) = names.iter().find(|n| !known.contains(n.as_str())) {
            let code = if hosts { err::BAD_HOST } else { err::BAD_USER_GROUP };
            return context.refuse(conn, Refusal::about(code, bad));
        }
        context.reply(conn, ClientMsg::GroupRows { rows });
    }

    fn user_groups(&self, names: &[String], expand: bool) -> Vec<GroupInfo> {
        let all = &self.site.conf.batch.users.groups;
        let wanted = all.iter().filter(|g| names.is_empty() || names.contains(&g.name));
        let row = |g: &crate::conf::types::UserGroup| {
            let mut members = Vec::new();
            self.user_members(&g.members, expand, 0, &mut members);
            let (admins, shares) = (g.admins.clone(), g.shares.clone());
            GroupInfo { name: g.name.clone(), members, admins, shares, ..GroupInfo::default() }
        };
        wanted.map(row).collect()
    }

    fn user_members(&self, terms: &[UserTerm], expand: bool, depth: usize, out: &mut Vec<String>) {
        for t in terms {
            let shown = match (self.group_members(&t.name), t.exclude) {
                (Some(inner), false) if expand && depth < MAX_DEPTH => {
                    self.user_members(inner, expand, depth + 1, out);
                    continue;
                }
                (Some(_), false) => format!("{}/", t.name),
                (_, true) => format!("~{}", t.name),
                (None, false) => t.name.clone(),
            };
            if !out.contains(&shown) {
                out.push(shown);
            }
        }
    }

    fn host_groups(&self, names: &[String], expand: bool) -> Vec<GroupInfo> {
        let all = &self.site.conf.batch.hosts.groups;
        let is_group = |word: &str| all.iter().any(|g| g.name == word);
        let wanted = all.iter().filter(|g| names.is_empty() || names.contains(&g.name));
        let row = |g: &crate::conf::types::HostGroup| {
            let members = match expand {
                true => self.site.expand_host(&g.name).into_iter().collect(),
                false => g
                    .members
                    .iter()
                    .map(|m| if is_group(m) { format!("{m}/") } else { m.clone() })
                    .collect(),
            };
            GroupInfo {
                name: g.name.clone(),
                members,
                admins: g.admins.clone(),
                ..GroupInfo::default()
            }
        };
        wanted.map(row).collect()
    }

    fn compute_units(&self, names: &[String], expand: bool) -> Vec<GroupInfo> {
        let all = &self.site.conf.batch.hosts.units;
        let wanted = all.iter().filter(|u| names.is_empty() || names.contains(&u.name));
        let row = |u: &ComputeUnit| {
            let mut members = Vec::new();
            self.unit_members(u, expand, 0, &mut members);
            let (name, kind) = (u.name.clone(), u.kind.clone());
            GroupInfo { name, kind, members, ..GroupInfo::default() }
        };
        wanted.map(row).collect()
    }

    fn unit_members(&self, unit: &ComputeUnit, expand: bool, depth: usize, out: &mut Vec<String>) {
        let hosts = &self.site.conf.batch.hosts;
        for m in &unit.members {
            let inner = hosts.units.iter().find(|u| u.name == *m && u.name != unit.name);
            let group = hosts.groups.iter().any(|g| g.name == *m);
            let shown = match (inner, group) {
                (Some(inner), _) if expand && depth < MAX_DEPTH => {
                    self.unit_members(inner, expand, depth + 1, out);
                    continue;
                }
                (None, true) if expand => self.site.expand_host(m).into_iter().collect(),
                (Some(_), _) | (None, true) => vec![format!("{m}/")],
                (None, false) => vec![m.clone()],
            };
            for name in shown {
                if !out.contains(&name) {
                    out.push(name);
                }
            }
        }
    }
}
