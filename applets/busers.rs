//! busers: users and user groups with their limits and slots (busers(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::columns::{Column, Format, Json};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::fields::{FieldOf, FieldsOf};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::{clean, push_clean};
use lsf::cli::{job_ids, site};
use lsf::errln;
use lsf::model::reason::{err, err_text};
use lsf::proto::client::{ClientMsg, UserInfo};
use lsf::sys::users::UserDatabase;
use std::fmt::Write;

/// The row with the limits of users who have none of their own in lsb.users.
const DEFAULT_USER: &str = "default";
/// Columns of the name, cut to them unless -w.
const NAME: usize = 18;
/// The fields of `-json` without `-o`.
const JSON_FORMAT: &str = "user jl/p max njobs pend run ssusp ususp rsv";

/// Shows users and user groups.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// wide format: names are not cut; also the limits of pending jobs
    #[argh(switch, short = 'w')]
    wide: bool,
    /// accepted for compatibility; slots are always counted
    #[argh(switch)]
    _alloc: bool,
    /// the fields to show: "field[:[-][width]] ... [delimiter='c']"
    #[argh(option, short = 'o', arg_name = "format")]
    output: Option<String>,
    /// output as JSON
    #[argh(switch, long = "json")]
    json: bool,
    /// no heading
    #[argh(switch, long = "noheader")]
    noheader: bool,
    /// the users and groups; `all`: all of them
    #[argh(positional, greedy, arg_name = "user_name | group_name | all")]
    _names: Vec<String>,
}

macro_rules! field {
    ($name:literal, $width:literal, $value:expr) => {
        FieldOf { name: $name, alias: &[], width: $width, value: $value }
    };
}

fn number(out: &mut String, n: impl Into<Option<u64>>) {
    if let Some(n) = n.into() {
        let _ = write!(out, "{n}");
    }
}

/// A count of slots or jobs. The row `default` stands for limits alone.
fn count(out: &mut String, user: &UserInfo, n: u64) {
    number(out, (user.name != DEFAULT_USER).then_some(n));
}

static FIELDS: FieldsOf<UserInfo> = FieldsOf(&[
    field!("user", 15, |o, u| push_clean(o, &u.name)),
    field!("jl/p", 6, |o, u| {
        let _ = u.jl_p.map(|n| write!(o, "{n:.1}"));
    }),
    field!("max", 6, |o, u| number(o, u.max)),
    field!("nstart", 7, |o, u| count(o, u, u.run + u.ssusp + u.ususp)),
    field!("pend", 6, |o, u| count(o, u, u.pend)),
    field!("run", 6, |o, u| count(o, u, u.run)),
    field!("ssusp", 6, |o, u| count(o, u, u.ssusp)),
    field!("ususp", 6, |o, u| count(o, u, u.ususp)),
    field!("rsv", 6, |o, u| count(o, u, u.rsv)),
    field!("njobs", 6, |o, u| count(o, u, u.njobs)),
    field!("pjobs", 6, |o, u| count(o, u, u.pjobs)),
    field!("mpend", 6, |o, u| number(o, u.mpend)),
    field!("mpjobs", 7, |o, u| number(o, u.mpjobs)),
    // no fairshare gives users a priority, and no job is given a GPU
    field!("priority", 8, |_, _| {}),
    field!("ngpus", 6, |o, u| count(o, u, 0)),
    field!("ngpus_shared", 12, |o, u| count(o, u, 0)),
    field!("ngpus_excl", 10, |o, u| count(o, u, 0)),
    field!("ngpus_shared_jexcl", 18, |o, u| count(o, u, 0)),
]);

pub fn run(ctx: &mut Ctx) -> i32 {
    match show(ctx) {
        Ok(code) => code,
        Err(exit) => exit.show(ctx),
    }
}

fn show(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let o = parsed.options;
    let own = site::param(site::find().ok().as_ref(), "LSB_BUSERS_FORMAT").filter(|_| !o.wide);
    let spec = o.output.as_deref().or(own.as_deref()).or(o.json.then_some(JSON_FORMAT));
    let format = spec.map(|t| Format::parse(t, &FIELDS)).transpose().map_err(Exit::fail)?;
    let mut names: Vec<String> =
        parsed.operands.iter().map(|n| n.to_string_lossy().into_owned()).collect();
    let all = names.iter().any(|n| n == "all");
    if all {
        names.clear();
    } else if names.is_empty() {
        let me = UserDatabase::default().by_uid(lsf::sys::euid());
        names.extend(me.map(|u| u.name));
    }
    let rows = match client::ask(ctx, ClientMsg::Users { names }) {
        Ok(ClientMsg::UserRows { rows }) => rows,
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            return Err(Exit::fail(clean(&e.words())));
        }
    };
    let (rows, strangers): (Vec<_>, Vec<_>) = rows.into_iter().partition(|u| all || known(u));
    for u in &strangers {
        errln!(ctx, "{}: {}", clean(&u.name), err_text(err::UNKNOWN_USER));
    }
    if !rows.is_empty() {
        let text = text(&rows, &o, format.as_ref());
        let _ = ctx.out.write_all(text.as_bytes());
    }
    Ok(if strangers.is_empty() { 0 } else { FAIL })
}

/// False: neither a user nor a group has that name, and no job has such an owner.
fn known(u: &UserInfo) -> bool {
    if u.name.is_empty() {
        return false;
    }
    u.name == DEFAULT_USER
        || u.njobs + u.pjobs > 0
        || !site::find().is_ok_and(|s| job_ids::nobody(&s, &u.name))
}

fn text(rows: &[UserInfo], o: &Opts, format: Option<&Format>) -> String {
    let mut out = String::new();
    match format {
        Some(f) if o.json => {
            let mut json = Json::new("busers", "USERS");
            for u in rows {
                let value = |o: &mut String, c: &Column| FIELDS.value(o, c.field, u);
                f.record(&mut json, &FIELDS, value);
            }
            return json.finish();
        }
        Some(f) => {
            if !o.noheader {
                f.header(&mut out, &FIELDS);
            }
            for u in rows {
                f.row(&mut out, &FIELDS, |o, c| FIELDS.value(o, c.field, u));
            }
        }
        None => {
            if !o.noheader {
                head(&mut out, o.wide);
            }
            rows.iter().for_each(|u| row(&mut out, u, o.wide));
        }
    }
    out
}

fn head(out: &mut String, wide: bool) {
    out.push_str("USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV ");
    out.push_str(if wide { " MPEND  PJOBS MPJOBS \n" } else { "\n" });
}

/// The blanks are those of LSF: one behind a last `-`.
fn row(out: &mut String, u: &UserInfo, wide: bool) {
    let mut name = String::new();
    push_clean(&mut name, &u.name);
    if !wide {
        name = name.chars().take(NAME).collect();
    }
    let limit = |n: Option<u64>| n.map_or("-".to_string(), |n| n.to_string());
    let jl_p = u.jl_p.map_or("-".to_string(), |n| format!("{n:.1}"));
    let _ = write!(out, "{name:<NAME$} {jl_p:>5} {:>6}", limit(u.max));
    if u.name == DEFAULT_USER {
        for _ in 0..if wide { 9 } else { 6 } {
            out.push_str("      -");
        }
        out.push_str(" \n");
        return;
    }
    for n in [u.njobs, u.pend, u.run, u.ssusp, u.ususp, u.rsv] {
        let _ = write!(out, " {n:>6}");
    }
    if wide {
        let _ = write!(out, " {:>6} {:>7} {:>6} ", limit(u.mpend), u.pjobs, limit(u.mpjobs));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_wide_names() {
        let rows: Vec<UserInfo> = (0..200)
            .map(|i| UserInfo {
                name: format!("a.user.with.a.wide.name.{i:03}"),
                max: Some(50),
                njobs: i,
                run: i,
                ..UserInfo::default()
            })
            .collect();
        let show = |wide| {
            let mut out = String::new();
            head(&mut out, wide);
            rows.iter().for_each(|u| row(&mut out, u, wide));
            out
        };
        assert_eq!(show(false), include_str!("../tests/cmd/expected/busers-200.txt"));
        assert_eq!(show(true), include_str!("../tests/cmd/expected/busers-200-w.txt"));
    }

    #[test]
    fn every_field_and_json() {
        let user1 = UserInfo {
            name: "user1".into(),
            jl_p: Some(2.0),
            max: Some(6),
            njobs: 9,
            pend: 4,
            run: 3,
            ssusp: 1,
            ususp: 1,
            pjobs: 2,
            mpend: Some(50),
            mpjobs: Some(1000),
            ..UserInfo::default()
        };
        let others = ["ugA", "default"];
        let others = others.map(|name| UserInfo { name: name.into(), ..UserInfo::default() });
        let rows: Vec<UserInfo> = [user1].into_iter().chain(others).collect();
        let shown = |words: &[&str]| {
            let args: Vec<_> = words.iter().map(std::ffi::OsString::from).collect();
            let o = front::parse::<Opts>("busers", &args).unwrap_or_else(|_| panic!()).options;
            let format = Format::parse(o.output.as_deref().unwrap_or(JSON_FORMAT), &FIELDS);
            text(&rows, &o, Some(&format.unwrap()))
        };
        let all = include_str!("../tests/cmd/expected/busers-fields.txt");
        assert_eq!(shown(&["-o", "all"]), all);
        assert_eq!(shown(&["-noheader", "-o", "user max"]), "user1 6\nugA -\ndefault -\n");
        let json = include_str!("../tests/cmd/expected/busers-json.txt");
        assert_eq!(shown(&["-json", "-o", "user max njobs"]), json);
    }

    /// The layout that LSF prints.
    #[test]
    fn rows_are_those_of_lsf() {
        let user = |name: &str, max: u64, mpjobs: Option<u64>| UserInfo {
            name: name.into(),
            max: Some(max),
            mpjobs,
            ..UserInfo::default()
        };
        let rows =
            [user("default", 10, None), user("lsfadmin", 10, None), user("user1", 6, Some(1000))];
        let show = |wide| {
            let mut out = String::new();
            head(&mut out, wide);
            rows.iter().for_each(|u| row(&mut out, u, wide));
            out
        };
        let lines = [
            (
                "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV ",
                " MPEND  PJOBS MPJOBS ",
            ),
            (
                "default                -     10      -      -      -      -      -      - ",
                "     -      -      - ",
            ),
            (
                "lsfadmin               -     10      0      0      0      0      0      0",
                "      -       0      - ",
            ),
            (
                "user1                  -      6      0      0      0      0      0      0",
                "      -       0   1000 ",
            ),
        ];
        let text = |wide: bool| -> String {
            lines.iter().map(|(l, more)| format!("{l}{}\n", if wide { more } else { "" })).collect()
        };
        assert_eq!(show(false), text(false));
        assert_eq!(show(true), text(true));
    }
}
