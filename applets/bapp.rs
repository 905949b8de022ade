//! bapp: shows application profiles with the slots of their jobs (bapp(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::{RULE, clean, push_clean};
use lsf::conf::names::lsb_applications::APPLICATION;
use lsf::errln;
use lsf::proto::client::{ApplicationInfo, ClientMsg};
use std::fmt::Write;

/// Columns of the name; -w shows all of a longer one.
const NAME: usize = 16;

/// Shows application profiles.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// wide format: names are not cut
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format: description, counters and parameters
    #[argh(switch, short = 'l')]
    long: bool,
    /// slots that jobs hold: pending jobs count as none
    #[argh(switch, long = "alloc")]
    allocated: bool,
    /// the application profiles (default: all)
    #[argh(positional, greedy, arg_name = "application_profile")]
    _names: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let o = parsed.options;
    if o.wide && o.long {
        return Err(front::usage_error::<Opts>(ctx.name, "-w cannot be combined with -l"));
    }
    let names = parsed.operands.iter().map(|n| n.to_string_lossy().into_owned()).collect();
    let mut rows = match client::ask(ctx, ClientMsg::Applications { names }) {
        Ok(ClientMsg::ApplicationRows { rows }) => rows,
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            return Err(Exit::fail(clean(&e.words())));
        }
    };
    if rows.is_empty() {
        errln!(ctx, "No application profiles defined");
        return Ok(lsf::cli::ctx::FAIL);
    }
    if o.allocated {
        rows.iter_mut().for_each(|row| row.pend = 0);
    }
    let text = if o.long { long(&rows) } else { table(&rows, o.wide) };
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

fn total(a: &ApplicationInfo) -> u64 {
    a.pend + a.run + a.ssusp + a.ususp
}

fn table(rows: &[ApplicationInfo], wide: bool) -> String {
    let mut out = format!("{:<NAME$}", "APP_NAME");
    let _ = writeln!(out, " {:>8} {:>8} {:>8} {:>8}", "NJOBS", "PEND", "RUN", "SUSP");
    for a in rows {
        let mut name = clean(&a.name);
        if !wide {
            name = name.chars().take(NAME).collect();
        }
        let (all, suspended) = (total(a), a.ssusp + a.ususp);
        let _ = writeln!(out, "{name:<NAME$} {all:>8} {:>8} {:>8} {suspended:>8}", a.pend, a.run);
    }
    out
}

fn long(rows: &[ApplicationInfo]) -> String {
    let mut out = String::new();
    for (i, a) in rows.iter().enumerate() {
        if i > 0 {
            let _ = writeln!(out, "{RULE}");
        }
        profile(&mut out, a);
    }
    out
}

/// One record, from its leading blank line to its last one.
fn profile(out: &mut String, a: &ApplicationInfo) {
    out.push_str("\nAPPLICATION NAME: ");
    push_clean(out, &a.name);
    out.push_str("\n -- ");
    match a.description.is_empty() {
        true => out.push_str("No description provided."),
        false => push_clean(out, &a.description),
    }
    if a.is_default {
        out.push_str("  This is the default application profile.");
    }
    out.push_str("\n\nSTATISTICS:\n");
    for name in ["NJOBS", "PEND", "RUN", "SSUSP", "USUSP", "RSV"] {
        let _ = write!(out, "{name:>8} ");
    }
    out.push('\n');
    for n in [total(a), a.pend, a.run, a.ssusp, a.ususp, 0] {
        let _ = write!(out, "{n:>8} ");
    }
    out.push_str("\n\nPARAMETERS:\n\n");
    let shown = |name: &str| !matches!(name, "NAME" | "DESCRIPTION");
    for (name, text) in a.params.iter().filter(|(name, _)| shown(name)) {
        push_clean(out, name);
        out.push_str(": ");
        push_clean(out, text.trim());
        out.push_str(APPLICATION.mark(name));
        out.push('\n');
    }
}
