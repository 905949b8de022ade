//! bsla: shows service classes, their guarantees and their jobs (bsla(1)).

use super::blimits;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::errln;
use lsf::proto::limit_rows::{LimitQuery, PoolInfo, ServiceClassInfo};
use std::fmt::Write;

/// Shows service classes.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// slots instead of jobs
    #[argh(switch, short = 'N')]
    slots: bool,
    /// the service class (default: all)
    #[argh(positional, greedy, arg_name = "service_class_name")]
    _names: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    show(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn show(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let names: Vec<String> =
        parsed.operands.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let listing = blimits::ask(ctx, LimitQuery::default())?;
    let all = &listing.service_classes;
    if all.is_empty() {
        errln!(ctx, "No service class is configured");
        return Ok(FAIL);
    }
    if let Some(bad) = names.iter().find(|name| !all.iter().any(|class| class.name == **name)) {
        errln!(ctx, "{}: Service class does not exist", clean(bad));
        return Ok(FAIL);
    }
    let chosen = all.iter().filter(|class| names.is_empty() || names.contains(&class.name));
    let texts: Vec<String> =
        chosen.map(|class| told(class, &listing.pools, parsed.options.slots)).collect();
    let _ = ctx.out.write_all(texts.join("\n").as_bytes());
    Ok(0)
}

/// A class with its pools and its jobs, or their slots.
fn told(class: &ServiceClassInfo, pools: &[PoolInfo], slots: bool) -> String {
    let mut out =
        format!("SERVICE CLASS NAME:  {}\n -- {}\n", clean(&class.name), clean(&class.description));
    if !class.guarantee {
        let users = if class.users.is_empty() { "all" } else { &class.users };
        let _ = writeln!(out, "PRIORITY:  {}\nUSER GROUP:  {}", class.priority, clean(users));
    }
    if class.guarantee || !class.access.is_empty() {
        let access = if class.access.is_empty() { "-" } else { &class.access };
        let _ = writeln!(out, "ACCESS CONTROL:  {}", clean(access));
    }
    let _ = writeln!(out, "AUTO ATTACH:  {}", if class.auto_attach { "Y" } else { "N" });
    for (goal, window) in &class.goals {
        let window = if window.is_empty() { "Always Open".into() } else { format!("({window})") };
        let _ = writeln!(out, "\nGOAL:  {goal} (not acted on)\nACTIVE WINDOW:  {window}");
    }
    if class.guarantee {
        out.push_str("\nGOAL:  GUARANTEE\n");
        out.push_str(&guarantees(class, pools));
    }
    let first = if slots { "NSLOTS" } else { "NJOBS" };
    let _ = write!(out, "\n{first:<7} {:<7} {:<7} {:<7} {:<7}", "PEND", "RUN", "SSUSP", "USUSP");
    let numbers = if slots { &class.slots[..] } else { &class.jobs[..] };
    let _ = writeln!(out, "{}", if slots { "" } else { " FINISH" });
    let row: Vec<String> = numbers.iter().map(|n| format!("{n:<7}")).collect();
    let _ = writeln!(out, "{}", row.join(" ").trim_end());
    out
}

/// The pools that guarantee something to a class.
fn guarantees(class: &ServiceClassInfo, pools: &[PoolInfo]) -> String {
    let mut out = format!("\n{:20} {:>8} {:>11} {:>9}\n", "", "", "GUAR", "GUAR");
    let _ = writeln!(out, "{:20} {:>8} {:>11} {:>9}", "POOL NAME", "TYPE", "CONFIG", "USED");
    for pool in pools {
        for of in pool.members.iter().filter(|of| of.class == class.name) {
            let (name, used) = (clean(&pool.name), of.used.min(of.guaranteed));
            let _ = writeln!(out, "{name:20} {:>8} {:>11} {used:>9}", pool.kind, of.guaranteed);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::proto::limit_rows::PoolMember;

    #[test]
    fn guarantee_class_is_told_with_its_pools_and_jobs() {
        let class = ServiceClassInfo {
            name: "gold".into(),
            description: "the chip project".into(),
            access: "QUEUES[normal]".into(),
            guarantee: true,
            jobs: [5, 2, 3, 0, 0, 1],
            slots: [9, 4, 5, 0, 0],
            ..ServiceClassInfo::default()
        };
        let member = PoolMember { class: "gold".into(), guaranteed: 4, used: 5 };
        let pool = PoolInfo {
            name: "dayPool".into(),
            kind: "slots".into(),
            members: vec![member],
            ..PoolInfo::default()
        };
        let want = "SERVICE CLASS NAME:  gold
 -- the chip project
ACCESS CONTROL:  QUEUES[normal]
AUTO ATTACH:  N

GOAL:  GUARANTEE

                                     GUAR      GUAR
POOL NAME                TYPE      CONFIG      USED
dayPool                 slots           4         4

NJOBS   PEND    RUN     SSUSP   USUSP   FINISH
5       2       3       0       0       1
";
        assert_eq!(told(&class, std::slice::from_ref(&pool), false), want);
        let slots = told(&class, &[pool], true);
        assert!(
            slots.ends_with(
                "NSLOTS  PEND    RUN     SSUSP   USUSP  \n9       4       5       0       0\n"
            ),
            "{slots}"
        );
    }
}
