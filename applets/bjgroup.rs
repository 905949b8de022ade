//! bjgroup: shows job groups with the numbers of their jobs (bjgroup(1)).

use super::job_groups::{self, ONE_GROUP};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::errln;
use lsf::model::reason::{err, err_text};
use lsf::proto::client::ClientMsg;
use lsf::proto::job_group::{JobGroupInfo, JobGroupRequest};
use std::fmt::Write;

/// Columns of the path; a longer one moves its line.
const PATH: usize = 12;

/// Shows job groups.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// by hierarchy: each group behind the one above it
    #[argh(switch, short = 's')]
    sorted: bool,
    /// slots instead of jobs
    #[argh(switch, short = 'N')]
    slots: bool,
    /// accepted; there is one cluster
    #[argh(switch)]
    _cname: bool,
    /// the group, with all groups below it unless the path ends in a slash (default: all)
    #[argh(positional, greedy, arg_name = "job_group_name")]
    _groups: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let Opts { sorted, slots, .. } = parsed.options;
    let path = match &parsed.operands[..] {
        [] => String::new(),
        some => {
            job_groups::one(some).ok_or_else(|| front::usage_error::<Opts>(ctx.name, ONE_GROUP))?
        }
    };
    let request = JobGroupRequest::List { path: path.clone(), slots };
    let mut rows = match client::ask(ctx, ClientMsg::JobGroup(Box::new(request))) {
        Ok(ClientMsg::JobGroups(rows)) => rows,
        Ok(_) => return Err(Exit::fail(err_text(err::MBATCHD))),
        Err(e) => return Err(job_groups::refused(&path, &e)),
    };
    // a slash at its end means the group without those below it
    if let Some(path) = path.strip_suffix('/') {
        rows.retain(|row| row.path == path);
    }
    if rows.is_empty() {
        errln!(ctx, "No job group found");
        return Ok(FAIL);
    }
    sort(&mut rows, sorted);
    let _ = ctx.out.write_all(table(&rows, slots).as_bytes());
    Ok(0)
}

/// Sorts the groups by hierarchy, or level by level.
fn sort(rows: &mut [JobGroupInfo], by_hierarchy: bool) {
    let depth = |path: &str| if by_hierarchy { 0 } else { path.matches('/').count() };
    rows.sort_by(|a, b| {
        let parts =
            |row: &JobGroupInfo| row.path.split('/').map(str::to_string).collect::<Vec<_>>();
        (depth(&a.path), parts(a)).cmp(&(depth(&b.path), parts(b)))
    });
}

fn table(rows: &[JobGroupInfo], slots: bool) -> String {
    let mut out = format!("{:<PATH$} ", "GROUP_NAME");
    let (first, last) = if slots { ("NSLOTS", "RSV") } else { ("NJOBS", "FINISH") };
    let _ = write!(out, "{first:>6} {:>6} {:>6} {:>6} {:>6}", "PEND", "RUN", "SSUSP", "USUSP");
    let _ = writeln!(out, " {last:>6} {:>6} {:>12} {:>8}", "SLA", "JLIMIT", "OWNER");
    for row in rows {
        let _ = write!(out, "{:<PATH$} ", clean(&row.path));
        for n in [row.njobs, row.pend, row.run, row.ssusp, row.ususp] {
            let _ = write!(out, "{n:>6} ");
        }
        let sla = if row.sla.is_empty() { "()".to_string() } else { clean(&row.sla) };
        let limit = match row.limit {
            Some(limit) => format!("{}/{limit}", row.started),
            None => format!("{}/-", row.started),
        };
        let owner = clean(&row.owner);
        let _ = writeln!(out, "{:>6} {sla:>6} {limit:>12} {owner:>8}", row.finish);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str, n: [u64; 6], limit: Option<u32>) -> JobGroupInfo {
        let [njobs, pend, run, ssusp, ususp, finish] = n;
        let (path, owner) = (path.to_string(), "user1".to_string());
        let started = run + ssusp + ususp;
        let numbers = JobGroupInfo { njobs, pend, run, ssusp, ususp, finish, ..<_>::default() };
        JobGroupInfo { path, owner, limit, started, ..numbers }
    }

    fn rows() -> Vec<JobGroupInfo> {
        vec![
            row("/fund1_grp", [5, 4, 0, 1, 0, 0], Some(5)),
            JobGroupInfo { sla: "Venezia".into(), ..row("/A/B", [0; 6], None) },
            row("/A", [11, 2, 5, 0, 0, 4], None),
        ]
    }

    #[test]
    fn table_of_job_groups_has_the_layout_of_lsf() {
        let mut all = rows();
        sort(&mut all, false);
        let want = "\
GROUP_NAME    NJOBS   PEND    RUN  SSUSP  USUSP FINISH    SLA       JLIMIT    OWNER
/A               11      2      5      0      0      4     ()          5/-    user1
/fund1_grp        5      4      0      1      0      0     ()          1/5    user1
/A/B              0      0      0      0      0      0 Venezia          0/-    user1
";
        assert_eq!(table(&all, false), want);
        let slots = table(&all, true);
        assert!(slots.starts_with("GROUP_NAME   NSLOTS   PEND    RUN  SSUSP  USUSP    RSV "));
    }

    #[test]
    fn groups_by_hierarchy_come_behind_the_one_above_them() {
        let mut all = rows();
        all.push(row("/A-B", [0; 6], None));
        sort(&mut all, true);
        let paths: Vec<&str> = all.iter().map(|row| row.path.as_str()).collect();
        assert_eq!(paths, ["/A", "/A/B", "/A-B", "/fund1_grp"]);
    }
}
