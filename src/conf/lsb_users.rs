//! lsb.users: user groups and limits of users.
//!
//! See lsb.users(5).

use super::diag::Diags;
use super::external_groups::EXTERNAL;
use super::files::Files;
use super::lexer::{self, Section, shown};
use super::lsb_queues::{MAX_PRIORITY, user_terms};
use super::lsf_shared::{key, nothing, twice, unknown_section};
use super::names::tables::{USER, USER_GROUP, USER_MAP};
use super::section::{Values, list, table};
use super::types::{BatchConf, BatchUsers, UserGroup, UserPolicy};
use super::user_shares::user_shares;
use std::collections::{HashMap, HashSet};

/// Sections of lsb.users.
const SECTIONS: &[&str] = &["UserGroup", "User", "UserMap"];
/// Largest JL/P.
const MAX_JLP: f64 = 4_294_967_295.0;

/// Reads lsb.users. None: it cannot be read.
pub fn parse(files: &dyn Files, path: &str, diags: &mut Diags) -> Option<BatchUsers> {
    let mut users = BatchUsers::default();
    for section in lexer::read(files, path, diags)? {
        match section.name.to_ascii_lowercase().as_str() {
            "usergroup" => groups(&section, &mut users, diags),
            "user" => policies(&section, &mut users, diags),
            "usermap" => user_map(&section, diags),
            _ => unknown_section(&section, SECTIONS, diags),
        }
    }
    Some(users)
}

/// Accounts of other clusters alone: those on hosts of the cluster are mapped by lsfhosts(5).
fn user_map(section: &Section, diags: &mut Diags) {
    if let Some(row) = table(section, &USER_MAP, &nothing, diags).first() {
        let text = "UserMap maps accounts of other clusters only (MultiCluster); for hosts of this \
                    cluster, users map accounts in ~/.lsfhosts";
        diags.notice(&row.pos, text);
    }
}

/// ENFORCE_UG_TREE: a user group is a member where it is first named as one, and of no other group.
pub(super) fn keep_tree(users: &mut BatchUsers, diags: &mut Diags) {
    let names: HashSet<String> = users.groups.iter().map(|group| group.name.clone()).collect();
    let mut parents: HashMap<String, String> = HashMap::new();
    for group in &mut users.groups {
        group.members.retain(|member| {
            if member.exclude || !names.contains(&member.name) {
                return true;
            }
            let parent = parents.entry(member.name.clone()).or_insert_with(|| group.name.clone());
            let first = *parent == group.name;
            if !first {
                let text = format!(
                    "user group <{}> is not a member of <{}>: it is one of <{}> (ENFORCE_UG_TREE)",
                    shown(&member.name),
                    shown(&group.name),
                    shown(parent)
                );
                diags.warning(&member.pos, text);
            }
            first
        });
    }
}

/// A group of all users has administrators with STRICT_UG_CONTROL alone.
pub(super) fn check_admins(batch: &BatchConf, diags: &mut Diags) {
    let strict = batch.params.job_access.strict_user_groups;
    let ignored = |group: &&UserGroup| !strict && group.is_of_all() && !group.admins.is_empty();
    for group in batch.users.groups.iter().filter(ignored) {
        let name = shown(&group.name);
        let text = format!(
            "GROUP_ADMIN of <{name}> is not acted on: a group with the member all needs \
             STRICT_UG_CONTROL=Y"
        );
        diags.notice(&group.pos, text);
    }
}

fn groups(section: &Section, users: &mut BatchUsers, diags: &mut Diags) {
    for row in table(section, &USER_GROUP, &nothing, diags) {
        let Some(name) = key(&row, "GROUP_NAME", diags) else { continue };
        let Some(members) = row.get("GROUP_MEMBER") else {
            diags.error(&row.pos, format!("group <{}> has no GROUP_MEMBER", shown(&name)));
            continue;
        };
        let external = list(members).is_some_and(|all| all.len() == 1 && all[0].text == EXTERNAL);
        let mut v = Values::new(&row.cells, diags);
        let group = UserGroup {
            name,
            members: if external { Vec::new() } else { user_terms(&mut v, "GROUP_MEMBER") },
            external,
            admins: v.list("GROUP_ADMIN"),
            shares: v.text("USER_SHARES").unwrap_or_default(),
            share_list: user_shares(&mut v),
            priority: v.number("PRIORITY", 0..=MAX_PRIORITY).unwrap_or(0),
            pos: row.pos.clone(),
        };
        if users.groups.iter().any(|g| g.name == group.name) {
            twice(&row, "GROUP_NAME", diags);
        } else {
            users.groups.push(group);
        }
    }
}

fn policies(section: &Section, users: &mut BatchUsers, diags: &mut Diags) {
    for row in table(section, &USER, &nothing, diags) {
        let Some(cell) = row.get("USER_NAME") else {
            diags.error(&row.pos, "USER_NAME is missing");
            continue;
        };
        let each_member = cell.text.ends_with('@');
        let name = cell.text.trim_end_matches(['@', '/']).to_owned();
        if users.users.iter().any(|u| u.name == name && u.each_member == each_member) {
            twice(&row, "USER_NAME", diags);
            continue;
        }
        let mut v = Values::new(&row.cells, diags);
        users.users.push(UserPolicy {
            name,
            each_member,
            max_jobs: v.number("MAX_JOBS", 0..=u32::MAX),
            jl_p: v.number("JL/P", 0.0..=MAX_JLP),
            max_pend_jobs: v.number("MAX_PEND_JOBS", 0..=u64::MAX),
            max_pend_slots: v.number("MAX_PEND_SLOTS", 0..=u64::MAX),
            priority: v.number("PRIORITY", 0..=MAX_PRIORITY),
            pos: row.pos.clone(),
        });
    }
}
