//! bugroup and bmgroup: user groups and host groups (bugroup(1), bmgroup(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::columns::Json;
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::{clean, push_clean};
use lsf::conf::names::tables::{HOST_GROUP, USER_GROUP};
use lsf::errln;
use lsf::proto::client::{ClientMsg, GroupInfo};
use std::fmt::Write;

/// Columns of a group's name; a longer one is not cut.
const NAME: usize = 12;

/// Shows groups.
// -w is what is shown anyway: nothing is cut.
#[allow(dead_code)]
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the members of groups within a group, instead of their names
    #[argh(switch, short = 'r')]
    recursive: bool,
    /// wide format
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format
    #[argh(switch, short = 'l')]
    long: bool,
    /// output as JSON
    #[argh(switch, long = "json")]
    json: bool,
    /// the groups
    #[argh(positional, greedy, arg_name = "group_name")]
    _names: Vec<String>,
}

/// Shows host groups and compute units.
#[allow(dead_code)]
#[derive(FromArgs, ArgsInfo)]
struct HostOpts {
    /// the members of groups within a group, instead of their names
    #[argh(switch, short = 'r')]
    recursive: bool,
    /// wide format
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format
    #[argh(switch, short = 'l')]
    long: bool,
    /// compute units instead of host groups
    #[argh(switch, long = "cu")]
    units: bool,
    /// output as JSON
    #[argh(switch, long = "json")]
    json: bool,
    /// the groups or units
    #[argh(positional, greedy, arg_name = "group_name")]
    _names: Vec<String>,
}

/// bugroup.
pub fn users(ctx: &mut Ctx) -> i32 {
    run(ctx, false)
}

/// bmgroup.
pub fn hosts(ctx: &mut Ctx) -> i32 {
    run(ctx, true)
}

fn run(ctx: &mut Ctx, hosts: bool) -> i32 {
    match show(ctx, hosts) {
        Ok(code) => code,
        Err(exit) => exit.show(ctx),
    }
}

fn show(ctx: &mut Ctx, hosts: bool) -> Result<i32, Exit> {
    let (operands, expand, long, units, json) = match hosts {
        false => {
            let parsed = front::parse_of::<Opts>(ctx)?;
            let o = parsed.options;
            (parsed.operands, o.recursive, o.long, false, o.json)
        }
        true => {
            let parsed = front::parse_of::<HostOpts>(ctx)?;
            let o = parsed.options;
            (parsed.operands, o.recursive, o.long, o.units, o.json)
        }
    };
    let names = operands.iter().map(|n| n.to_string_lossy().into_owned()).collect();
    let ask = ClientMsg::Groups { hosts, names, expand, units };
    let rows = match client::ask(ctx, ask) {
        Ok(ClientMsg::GroupRows { rows }) => rows,
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            return Err(Exit::fail(clean(&e.words())));
        }
    };
    if json {
        let _ = ctx.out.write_all(json_text(&rows, hosts, units).as_bytes());
        return Ok(0);
    }
    if rows.is_empty() {
        let what = match (hosts, units) {
            (false, _) => "user group",
            (true, false) => "host group",
            (true, true) => "compute unit",
        };
        errln!(ctx, "No {what} defined in the system");
        return Ok(lsf::cli::ctx::FAIL);
    }
    let text = if units { unit_text(&rows, long) } else { text(&rows, hosts, long) };
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

/// A record for each group; the keys are the headings of the other forms.
fn json_text(rows: &[GroupInfo], hosts: bool, units: bool) -> String {
    let mut text = Json::new(if hosts { "bmgroup" } else { "bugroup" }, "GROUPS");
    let what = if hosts { "HOSTS" } else { "USERS" };
    for group in rows {
        let (members, admins) = (group.members.join(" "), group.admins.join(" "));
        let (name, own) = match (units, hosts) {
            (true, _) => ("CU_NAME", Some(("TYPE", &group.kind))),
            (false, true) => ("GROUP_NAME", None),
            (false, false) => ("GROUP_NAME", Some(("SHARES", &group.shares))),
        };
        let mut pairs = vec![(name, group.name.as_str()), (what, &members)];
        if !units {
            pairs.push(("GROUP_ADMIN", &admins));
        }
        pairs.extend(own.map(|(key, value)| (key, value.as_str())));
        text.pairs(&pairs);
    }
    text.finish()
}

fn text(rows: &[GroupInfo], hosts: bool, long: bool) -> String {
    let what = if hosts { "HOSTS" } else { "USERS" };
    let mut out = String::new();
    if !long {
        let _ = writeln!(out, "GROUP_NAME    {what}");
    }
    for (i, g) in rows.iter().enumerate() {
        let mut name = String::new();
        push_clean(&mut name, &g.name);
        if long {
            out.push_str(if i > 0 { "\n" } else { "" });
            let _ = write!(out, "GROUP_NAME:  {name:<NAME$}\n{what}:       ");
            members(&mut out, g, hosts);
            let names = if hosts { &HOST_GROUP } else { &USER_GROUP };
            for (label, name, value) in [
                ("GROUP_ADMIN: ", "GROUP_ADMIN", &g.admins.join(" ")),
                ("SHARES:      ", "USER_SHARES", &g.shares),
            ] {
                if !value.is_empty() {
                    out.push_str(label);
                    push_clean(&mut out, value);
                    let _ = writeln!(out, " {}", names.mark(name).trim_start());
                }
            }
        } else {
            let _ = write!(out, "{name:<NAME$} ");
            members(&mut out, g, hosts);
        }
    }
    out
}

/// -cu.
fn unit_text(rows: &[GroupInfo], long: bool) -> String {
    let mut out = String::new();
    if !long {
        let _ = writeln!(out, "{:<NAME$} {:<NAME$} HOSTS", "CU_NAME", "TYPE");
    }
    for (i, unit) in rows.iter().enumerate() {
        let (name, kind) = (clean(&unit.name), clean(&unit.kind));
        if long {
            out.push_str(if i > 0 { "\n" } else { "" });
            let _ = write!(out, "CU_NAME:     {name}\nTYPE:        {kind}\nHOSTS:       ");
        } else {
            let _ = write!(out, "{name:<NAME$} {kind:<NAME$} ");
        }
        members(&mut out, unit, true);
    }
    out
}

fn members(out: &mut String, g: &GroupInfo, hosts: bool) {
    if g.members == ["all"] {
        out.push_str(if hosts { "all hosts used by the batch system" } else { "all users" });
        out.push_str(" \n");
        return;
    }
    for m in &g.members {
        push_clean(out, m);
        out.push(' ');
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_members_stand_on_one_line() {
        let members = (0..200).map(|i| format!("a.user.with.a.wide.name.{i:03}")).collect();
        let all = [GroupInfo { name: "everybody".into(), members, ..GroupInfo::default() }];
        let want = include_str!("../tests/cmd/expected/bugroup-200.txt");
        assert_eq!(text(&all, false, false), want);
        let chip = [GroupInfo {
            name: "chip".into(),
            members: vec!["alice".into(), "bob/".into()],
            admins: vec!["ann".into(), "bob".into()],
            shares: "[alice,3] [default,1]".into(),
            ..GroupInfo::default()
        }];
        let want = include_str!("../tests/cmd/expected/bugroup-l.txt");
        assert_eq!(text(&chip, false, true), want);
    }

    #[test]
    fn json_of_groups_has_the_headings_as_keys() {
        let group = GroupInfo {
            name: "chip".into(),
            members: vec!["alice".into(), "bob/".into()],
            shares: "[default,1]".into(),
            kind: "rack".into(),
            ..GroupInfo::default()
        };
        let keys = |hosts, units| {
            let text = json_text(std::slice::from_ref(&group), hosts, units);
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(json["GROUPS"], 1);
            let record = json["RECORDS"][0].as_object().unwrap().clone();
            record.into_iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap())).collect()
        };
        let users: Vec<String> = keys(false, false);
        let want = ["GROUP_ADMIN=", "GROUP_NAME=chip", "SHARES=[default,1]", "USERS=alice bob/"];
        assert_eq!(users, want);
        let hosts: Vec<String> = keys(true, false);
        assert_eq!(hosts, ["GROUP_ADMIN=", "GROUP_NAME=chip", "HOSTS=alice bob/"]);
        let units: Vec<String> = keys(true, true);
        assert_eq!(units, ["CU_NAME=chip", "HOSTS=alice bob/", "TYPE=rack"]);
    }

    #[test]
    fn host_groups_of_every_kind() {
        let group = |name: &str, members: &[&str], admins: &[&str]| GroupInfo {
            name: name.into(),
            members: members.iter().map(|m| m.to_string()).collect(),
            admins: admins.iter().map(|m| m.to_string()).collect(),
            ..GroupInfo::default()
        };
        let long_name = format!("node-{}", "e".repeat(59));
        let nest = group("hgnest", &["vm2", "hg1/", "~vm3"], &["ann", "bob"]);
        let rows = [
            group("hg1", &["vm"], &[]),
            group("hgall", &["all"], &[]),
            nest.clone(),
            group("a_group_of_a_long_name", &[&long_name, "vm"], &[]),
        ];
        assert_eq!(text(&rows, true, false), include_str!("../tests/cmd/expected/bmgroup.txt"));
        let rows = [rows[0].clone(), nest];
        assert_eq!(text(&rows, true, true), include_str!("../tests/cmd/expected/bmgroup-l.txt"));
    }

    #[test]
    fn compute_units_with_their_types() {
        let unit = |name: &str, kind: &str, members: &[&str]| GroupInfo {
            name: name.into(),
            kind: kind.into(),
            members: members.iter().map(|m| m.to_string()).collect(),
            ..GroupInfo::default()
        };
        let rows = [
            unit("encl1", "enclosure", &["hosta", "hg1/"]),
            unit("a_rack_of_a_long_name", "rack", &["encl1/", "encl2/"]),
        ];
        assert_eq!(unit_text(&rows, false), include_str!("../tests/cmd/expected/bmgroup-cu.txt"));
        let long = include_str!("../tests/cmd/expected/bmgroup-cu-l.txt");
        assert_eq!(unit_text(&rows, true), long);
    }

    /// The layout that LSF prints.
    #[test]
    fn the_layouts_are_those_of_lsf() {
        let group = |name: &str, members: &[&str]| GroupInfo {
            name: name.into(),
            members: members.iter().map(|m| m.to_string()).collect(),
            ..GroupInfo::default()
        };
        let rows = [group("ugA", &["user1"]), group("ugB", &["lsfadmin", "ugA/"])];
        assert_eq!(
            text(&rows, false, false),
            "GROUP_NAME    USERS\nugA          user1 \nugB          lsfadmin ugA/ \n"
        );
        assert_eq!(
            text(&rows, false, true),
            "GROUP_NAME:  ugA         \nUSERS:       user1 \n\n\
             GROUP_NAME:  ugB         \nUSERS:       lsfadmin ugA/ \n"
        );
        let all = [group("everybody", &["all"]), group("a_group_of_a_long_name", &["h"])];
        assert_eq!(
            text(&all, true, false),
            "GROUP_NAME    HOSTS\neverybody    all hosts used by the batch system \n\
             a_group_of_a_long_name h \n"
        );
    }
}
