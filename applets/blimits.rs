//! blimits: the use of the limits of lsb.resources (blimits(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::columns::Format;
use lsf::cli::ctx::Ctx;
use lsf::cli::fields::{FieldOf, FieldsOf};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::errln;
use lsf::proto::client::ClientMsg;
use lsf::proto::limit_rows::{LimitInfo, LimitListing, LimitQuery, LimitUsage, LimitedUse};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Shows what is used of the limits of lsb.resources.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// all limits, also those under which nothing is used
    #[argh(switch, short = 'a')]
    all: bool,
    /// the limits as they are configured
    #[argh(switch, short = 'c')]
    configuration: bool,
    /// wide format: nothing is cut
    #[argh(switch, short = 'w')]
    wide: bool,
    /// these limits: "name ..."
    #[argh(option, short = 'n', arg_name = "limit_name ...")]
    names: Vec<String>,
    /// limits of these projects
    #[argh(option, short = 'P', arg_name = "project_name ...")]
    projects: Vec<String>,
    /// limits of these queues
    #[argh(option, short = 'q', arg_name = "queue_name ...")]
    queues: Vec<String>,
    /// limits of these users or user groups
    #[argh(option, short = 'u', arg_name = "user_name | user_group ...")]
    users: Vec<String>,
    /// limits of these hosts or host groups
    #[argh(option, short = 'm', arg_name = "host_name | host_group ...")]
    hosts: Vec<String>,
    /// limits of these license projects
    #[argh(option, long = "-lp", arg_name = "ls_license_project ...")]
    lic_projects: Vec<String>,
    /// limits of these application profiles
    #[argh(option, short = 'A', arg_name = "application_name ...")]
    apps: Vec<String>,
    /// the fields to show: "field[:[-][width]] ... [delimiter='c']"
    #[argh(option, short = 'o', arg_name = "format")]
    output: Option<String>,
    /// not acted on: global limits
    #[argh(switch, long = "gl", hidden_help)]
    global: bool,
    /// not acted on: limits of forwarded jobs
    #[argh(switch, long = "fwd", hidden_help)]
    forwarded: bool,
    /// not acted on: limits of these clusters
    #[argh(option, short = 'C', arg_name = "cluster_name ...", hidden_help)]
    clusters: Vec<String>,
}

/// The amount of a column.
fn amount<'r>(row: &'r LimitUsage, what: &str) -> Option<&'r LimitedUse> {
    row.amounts.iter().find(|use_| use_.what.trim_end_matches('%') == what)
}

/// `used/limit`; a percentage under which nothing is used has its sign.
fn pair(out: &mut String, of: Option<&LimitedUse>) {
    let Some(of) = of else { return };
    let percent = if of.what.ends_with('%') { "%" } else { "" };
    let _ = write!(out, "{}/{}{percent}", number(of.used), number(of.limit));
}

/// Whole numbers without decimals, others with as many as they need, three at most.
fn number(n: f64) -> String {
    let text = format!("{n:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

macro_rules! field {
    ($name:literal, $width:literal, $value:expr) => {
        FieldOf { name: $name, alias: &[], width: $width, value: $value }
    };
}

static FIELDS: FieldsOf<LimitUsage> = FieldsOf(&[
    field!("name", 15, |o, r| o.push_str(&clean(&r.name))),
    field!("users", 15, |o, r| o.push_str(&clean(&r.users))),
    field!("queues", 15, |o, r| o.push_str(&clean(&r.queues))),
    field!("hosts", 15, |o, r| o.push_str(&clean(&r.hosts))),
    field!("projects", 15, |o, r| o.push_str(&clean(&r.projects))),
    field!("apps", 15, |o, r| o.push_str(&clean(&r.apps))),
    field!("lic_projects", 15, |o, r| o.push_str(&clean(&r.lic_projects))),
    field!("slots", 10, |o, r| pair(o, amount(r, "SLOTS"))),
    field!("mem", 12, |o, r| pair(o, amount(r, "MEM"))),
    field!("tmp", 12, |o, r| pair(o, amount(r, "TMP"))),
    field!("swp", 12, |o, r| pair(o, amount(r, "SWP"))),
    field!("jobs", 10, |o, r| pair(o, amount(r, "JOBS"))),
    field!("ineligible", 10, |o, r| o.push_str(if r.ineligible { "Y" } else { "" })),
]);

pub fn run(ctx: &mut Ctx) -> i32 {
    show(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

/// The words of options that may be given several times.
fn words(given: &[String]) -> Vec<String> {
    given.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
}

fn show(ctx: &mut Ctx) -> Result<i32, Exit> {
    let o = front::parse_of::<Opts>(ctx)?.options;
    if o.all && o.configuration {
        let text = "-a cannot be combined with -c";
        return Err(front::usage_error::<Opts>(ctx.name, text));
    }
    let ignored = [("-gl", o.global), ("-fwd", o.forwarded), ("-C", !o.clusters.is_empty())];
    for (word, _) in ignored.iter().filter(|(_, given)| *given) {
        errln!(ctx, "blimits: option {word} is accepted but not acted on yet");
    }
    let format = o.output.as_deref().map(|text| Format::parse(text, &FIELDS));
    let format = format.transpose().map_err(Exit::fail)?;
    let query = LimitQuery {
        names: words(&o.names),
        users: words(&o.users),
        queues: words(&o.queues),
        hosts: words(&o.hosts),
        projects: words(&o.projects),
        apps: words(&o.apps),
        lic_projects: words(&o.lic_projects),
        all: o.all,
    };
    let listing = ask(ctx, query)?;
    let empty = if o.configuration { listing.limits.is_empty() } else { listing.rows.is_empty() };
    if empty {
        let what = if o.configuration || o.all { "configuration" } else { "usage" };
        errln!(ctx, "No resource {what} found.");
        return Ok(0);
    }
    let text = match format {
        _ if o.configuration => configuration(&listing.limits),
        Some(format) => {
            let mut out = String::new();
            format.header(&mut out, &FIELDS);
            for row in &listing.rows {
                format.row(&mut out, &FIELDS, |o, c| FIELDS.value(o, c.field, row));
            }
            out
        }
        None => tables(&listing.rows, o.wide),
    };
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

/// The answer of mbatchd about limits.
pub fn ask(ctx: &mut Ctx, query: LimitQuery) -> Result<LimitListing, Exit> {
    match client::ask(ctx, ClientMsg::Limits(Box::new(query))) {
        Ok(ClientMsg::LimitRows(listing)) => Ok(*listing),
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            Err(Exit::fail(clean(&e.words())))
        }
    }
}

/// The limits as lsb.resources has them, one section each.
pub fn configuration(limits: &[LimitInfo]) -> String {
    let mut out = String::new();
    for limit in limits {
        out.push_str("\nBegin Limit\n");
        for (name, value) in &limit.params {
            let mark = lsf::conf::names::tables::LIMIT.mark(name);
            let _ = writeln!(out, "{name:<19} = {}{mark}", clean(value));
        }
        out.push_str("End Limit\n");
    }
    out
}

/// A column: its heading, and its width, in which values stand in the middle.
type Column<'c> = (&'c str, usize);

const CONSUMERS: [Column<'static>; 6] =
    [("NAME", 12), ("USERS", 9), ("QUEUES", 10), ("HOSTS", 11), ("PROJECTS", 10), ("APPS", 9)];
const AMOUNTS: [Column<'static>; 6] =
    [("SLOTS", 7), ("MEM", 9), ("TMP", 5), ("SWP", 9), ("JOBS", 6), ("INELIGIBLE", 16)];
/// The width of a resource of lsf.shared.
const EXTERNAL: usize = 12;

fn tables(rows: &[LimitUsage], wide: bool) -> String {
    let mut out = String::new();
    let internal = |row: &&LimitUsage| row.amounts.iter().any(|of| !of.external);
    let rows_of: Vec<&LimitUsage> = rows.iter().filter(internal).collect();
    if !rows_of.is_empty() {
        let cells = |row: &&LimitUsage| {
            let mut cells = consumers(row);
            for (heading, _) in AMOUNTS.iter().take(5) {
                let mut text = String::new();
                pair(&mut text, amount(row, heading));
                cells.push(text);
            }
            cells.push(if row.ineligible { "Y".to_owned() } else { String::new() });
            cells
        };
        let columns: Vec<Column> = CONSUMERS.iter().chain(&AMOUNTS).copied().collect();
        out.push_str("INTERNAL RESOURCE LIMITS:\n\n");
        table(&mut out, &columns, rows_of.iter().map(cells).collect(), wide);
    }
    let names: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| &row.amounts)
        .filter(|of| of.external)
        .map(|of| of.what.as_str())
        .collect();
    if !names.is_empty() {
        let external = |row: &&LimitUsage| row.amounts.iter().any(|of| of.external);
        let cells = |row: &LimitUsage| {
            let mut cells = consumers(row);
            for name in &names {
                let mut text = String::new();
                pair(&mut text, row.amounts.iter().find(|of| of.external && of.what == *name));
                cells.push(text);
            }
            cells
        };
        let own = names.iter().map(|name| (*name, EXTERNAL));
        let columns: Vec<Column> = CONSUMERS.iter().copied().chain(own).collect();
        let blank = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{blank}EXTERNAL RESOURCE LIMITS:\n");
        table(&mut out, &columns, rows.iter().filter(external).map(cells).collect(), wide);
    }
    out
}

fn consumers(row: &LimitUsage) -> Vec<String> {
    let all = [&row.name, &row.users, &row.queues, &row.hosts, &row.projects, &row.apps];
    all.into_iter().map(|text| clean(text)).collect()
}

/// A table whose values stand in the middle of their columns. A consumer that is too long for its
/// column is cut, unless the format is wide; nothing else is.
fn table(out: &mut String, columns: &[Column], rows: Vec<Vec<String>>, wide: bool) {
    let widest = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, (heading, width))| match wide {
            true => (*width).max(widest(at) + 2).max(heading.len() + 2),
            false => *width,
        })
        .collect();
    let mut line = |cells: Vec<&str>| {
        let mut text = String::new();
        for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let cut = at < CONSUMERS.len() && !wide;
            let cell: String = match cut {
                true => cell.chars().take(width - 1).collect(),
                false => (*cell).to_owned(),
            };
            let cell = if cell.is_empty() { "-".to_owned() } else { cell };
            let before = (width.saturating_sub(cell.chars().count())).div_ceil(2);
            if !text.is_empty() && !text.ends_with(' ') && before == 0 {
                text.push(' ');
            }
            let start = text.chars().count();
            let _ = write!(text, "{:before$}{cell}", "");
            let end = start + width;
            while text.chars().count() < end {
                text.push(' ');
            }
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(columns.iter().map(|column| column.0).collect());
    rows.iter().for_each(|row| line(row.iter().map(String::as_str).collect()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(what: &str, used: f64, limit: f64) -> LimitedUse {
        LimitedUse { what: what.into(), external: false, used, limit }
    }

    fn rows() -> Vec<LimitUsage> {
        let slots = LimitUsage {
            name: "limit1".into(),
            users: "alice".into(),
            queues: "normal".into(),
            hosts: "hosta".into(),
            amounts: vec![used("SLOTS", 3.0, 10.0)],
            ..LimitUsage::default()
        };
        let memory = LimitUsage {
            name: "a_limit_with_a_long_name".into(),
            users: "all ~guest ~root".into(),
            projects: "chip".into(),
            apps: "sim".into(),
            amounts: vec![used("MEM", 10.0, 25.5), used("JOBS", 2.0, 4.0)],
            ineligible: true,
            ..LimitUsage::default()
        };
        let lic = LimitedUse { what: "lic".into(), external: true, used: 1.0, limit: 4.0 };
        let tools = LimitUsage {
            name: "tools".into(),
            users: "bob".into(),
            amounts: vec![used("TMP%", 0.0, 50.0), lic],
            ..LimitUsage::default()
        };
        vec![slots, memory, tools]
    }

    #[test]
    fn tables_are_those_of_the_expected_files() {
        let narrow = include_str!("../tests/cmd/expected/blimits.txt");
        assert_eq!(tables(&rows(), false), narrow);
        assert_eq!(tables(&rows(), true), include_str!("../tests/cmd/expected/blimits-w.txt"));
    }

    #[test]
    fn headings_stand_where_lsf_has_them() {
        let text = tables(&rows(), false);
        let heading = "    NAME      USERS    QUEUES     HOSTS    PROJECTS    APPS   SLOTS    \
                       MEM    TMP    SWP    JOBS    INELIGIBLE";
        assert_eq!(text.lines().nth(2), Some(heading));
    }

    #[test]
    fn configuration_is_told_as_sections() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let params =
            [("NAME", "few"), ("PER_USER", "all ~eve"), ("SLOTS", "3"), ("FWD_SLOTS", "1")];
        let params = params.map(|(name, value)| pair(name, value)).to_vec();
        let limits = [LimitInfo { name: "few".into(), params }];
        let want = include_str!("../tests/cmd/expected/blimits-c.txt");
        assert_eq!(configuration(&limits), want);
    }

    #[test]
    fn fields_are_those_of_a_format() {
        let shown = |format: &str| {
            let format = Format::parse(format, &FIELDS).unwrap();
            let mut out = String::new();
            for row in rows() {
                format.row(&mut out, &FIELDS, |o, c| FIELDS.value(o, c.field, &row));
            }
            out
        };
        let want = "limit1,3/10,-,-\na_limit_with_a_long_name,-,10/25.5,Y\ntools,-,-,-\n";
        assert_eq!(shown("name slots mem ineligible delimiter=','"), want);
    }
}
