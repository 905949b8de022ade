//! bjdepinfo: shows the jobs that a job waits for, or that wait for it (bjdepinfo(1)).

use super::job_messages;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::columns::tail;
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::model::JobRef;
use lsf::model::reason::{err, err_text};
use lsf::proto::client::ClientMsg;
use lsf::proto::dependency::{
    ConditionInfo, Dependencies, DependencyRequest, DependencyRow, MAX_LEVEL, MAX_ROWS,
};
use lsf::{errln, outln};
use std::fmt::Write;

/// Columns of a job's name, cut to them at its beginning.
const NAME: usize = 12;

/// Shows the jobs that a job waits for, or that wait for it.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// follow the jobs found, up to this level
    #[argh(option, short = 'r', arg_name = "level")]
    level: Option<String>,
    /// also show the conditions
    #[argh(switch, short = 'l')]
    long: bool,
    /// only parents that keep the job pending
    #[argh(switch, short = 'p')]
    parents: bool,
    /// the jobs that wait for it
    #[argh(switch, short = 'c')]
    children: bool,
    /// the job
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[index]\"")]
    _jobs: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let job = job_messages::one_job(&parsed.operands, None)?
        .ok_or_else(|| front::usage_error::<Opts>(ctx.name, "One job must be specified."))?;
    let Opts { level, long, parents, children, .. } = parsed.options;
    if children && (parents || long) {
        let words = "Option -c cannot be combined with -l and -p.";
        return Err(front::usage_error::<Opts>(ctx.name, words));
    }
    let level = level.map_or(Ok(1), |text| level_of(&text))?;
    let request = DependencyRequest { at: job.at, children, unmet: parents, level };
    let found = match client::ask(ctx, ClientMsg::Dependencies(Box::new(request))) {
        Ok(ClientMsg::DependencyRows(found)) => *found,
        Ok(_) => return Err(Exit::fail(err_text(err::MBATCHD))),
        Err(e) if e.code() == Some(err::NO_JOB) => {
            return Err(Exit::fail(format_args!("Job <{}> is not found", job.at)));
        }
        Err(e) => return Err(job_messages::refused(&job, &e)),
    };
    if long {
        found.conditions.iter().for_each(|condition| outln!(ctx, "{}", told(condition)));
    }
    show(ctx, job.at, children, parents, &found);
    Ok(0)
}

fn show(ctx: &mut Ctx, at: JobRef, children: bool, unmet: bool, found: &Dependencies) {
    match (found.rows.is_empty(), children, unmet && !found.conditions.is_empty()) {
        (true, true, _) => outln!(ctx, "Job <{at}> has no child"),
        (true, false, true) => outln!(ctx, "Job <{at}> has no parent that keeps it pending"),
        (true, false, false) => outln!(ctx, "Job <{at}> has no parent"),
        (false, ..) => {
            let _ = ctx.out.write_all(table(&found.rows, children).as_bytes());
        }
    }
    if found.cut {
        errln!(ctx, "only the first {MAX_ROWS} are shown");
    }
}

/// The number of -r.
fn level_of(text: &str) -> Result<u32, Exit> {
    let number = text.trim().parse().ok().filter(|n| (1..=MAX_LEVEL).contains(n));
    number.ok_or_else(|| Exit::fail(format_args!("{}: Bad argument for option -r.", clean(text))))
}

/// The sentence about the condition of a job.
fn told(condition: &ConditionInfo) -> String {
    let is = if condition.satisfied { "is" } else { "is not" };
    let text = clean(&condition.text);
    format!("The dependency condition of job <{}> {is} satisfied: {text}", condition.job)
}

fn table(rows: &[DependencyRow], children: bool) -> String {
    let mut out = match children {
        true => format!(
            "{:<15}{:<15}{:<14}{:<13}{}\n",
            "JOBID", "CHILD", "CHILD_STATUS", "CHILD_NAME", "LEVEL"
        ),
        false => format!(
            "{:<15}{:<15}{:<15}{:<13}{}\n",
            "JOBID", "PARENT", "PARENT_STATUS", "PARENT_NAME", "LEVEL"
        ),
    };
    let width = if children { 14 } else { 15 };
    for row in rows {
        let stat = if row.stat.is_empty() { "-" } else { &row.stat };
        let name = clean(&row.name);
        let name = if name.chars().count() > NAME { tail(&name, NAME) } else { name };
        let (job, other) = (row.job.to_string(), row.other.to_string());
        let _ = writeln!(out, "{job:<15}{other:<15}{stat:<width$}{name:<13}{}", row.level);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_parents_and_children_have_the_layout_of_lsf() {
        let at = |job, idx| JobRef { job, idx };
        let row = |other: JobRef, stat: &str, name: &str, level| DependencyRow {
            job: at(8023, 0),
            other,
            stat: stat.into(),
            name: name.into(),
            level,
        };
        let rows =
            [row(at(8021, 0), "RUN", "pre-process 1", 1), row(at(8022, 4), "", "b\u{1b}c[4]", 2)];
        let want = "\
JOBID          PARENT         PARENT_STATUS  PARENT_NAME  LEVEL
8023           8021           RUN            *e-process 1 1
8023           8022[4]        -              b?c[4]       2
";
        assert_eq!(table(&rows, false), want);
        let want = "\
JOBID          CHILD          CHILD_STATUS  CHILD_NAME   LEVEL
8023           8021           RUN           *e-process 1 1
";
        assert_eq!(table(&rows[..1], true), want);
    }

    #[test]
    fn level_of_bjdepinfo_is_bounded() {
        assert_eq!(level_of("7").unwrap(), 7);
        for bad in ["0", "x", "-1", "1001", ""] {
            let exit = level_of(bad).unwrap_err();
            assert_eq!(exit.err, format!("{bad}: Bad argument for option -r.\n"));
        }
    }
}
