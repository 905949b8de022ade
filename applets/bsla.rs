//! bsla: shows service classes, their guarantees and their jobs (bsla(1)).

use super::blimits;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::clock::Clock;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::errln;
use lsf::proto::limit_rows::{GoalInfo, LimitQuery, PoolInfo, ServiceClassInfo};
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
    let (slots, clock) = (parsed.options.slots, Clock::system());
    let texts: Vec<String> =
        chosen.map(|class| told(class, &listing.pools, slots, &clock)).collect();
    let _ = ctx.out.write_all(texts.join("\n").as_bytes());
    Ok(0)
}

/// A class with its pools and its jobs, or their slots.
fn told(class: &ServiceClassInfo, pools: &[PoolInfo], slots: bool, clock: &Clock) -> String {
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
    class.goals.iter().for_each(|goal| out.push_str(&goal_now(goal, class.jobs[5], clock)));
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

/// A goal as of now; `finished`: the jobs of the class that have ended and are not forgotten.
fn goal_now(goal: &GoalInfo, finished: u64, clock: &Clock) -> String {
    let window = match goal.window.is_empty() {
        true => "Always Open".to_owned(),
        false => format!("({})", clean(&goal.window)),
    };
    let status = match (goal.active, goal.on_time) {
        (false, _) => "Inactive",
        (true, true) => "Active:On time",
        (true, false) => "Active:Delayed",
    };
    let finished = if goal.active { finished } else { 0 };
    let mut out = format!("\nGOAL:  {}\nACTIVE WINDOW:  {window}\n", clean(&goal.words));
    let _ = writeln!(out, "STATUS:  {status}");
    let _ = writeln!(out, "SLA THROUGHPUT:  {finished}.00 JOBS/CLEAN_PERIOD");
    if let Some(finish) = goal.finish {
        out.push_str("ESTIMATED FINISH TIME:  (");
        clock.minute(&mut out, finish);
        out.push_str(")\n");
    }
    if let Some(optimum) = goal.optimum {
        let _ = writeln!(out, "OPTIMUM NUMBER OF RUNNING JOBS:  {optimum}");
    }
    out
}

/// The pools that guarantee something to a class.
fn guarantees(class: &ServiceClassInfo, pools: &[PoolInfo]) -> String {
    let mut out = format!("\n{:20} {:>8} {:>11} {:>9}\n", "", "", "GUAR", "GUAR");
    let _ = writeln!(out, "{:20} {:>8} {:>11} {:>9}", "POOL NAME", "TYPE", "CONFIG", "USED");
    for pool in pools {
        for of in pool.members.iter().filter(|of| of.class == class.name) {
            let (name, used) = (clean(&pool.name), of.used.min(of.guaranteed));
            let (kind, guaranteed) = (clean(pool.kind_word()), of.guaranteed);
            let _ = writeln!(out, "{name:20} {kind:>8} {guaranteed:>11} {used:>9}");
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
        assert_eq!(told(&class, std::slice::from_ref(&pool), false, &Clock::utc()), want);
        let slots = told(&class, &[pool], true, &Clock::utc());
        assert!(
            slots.ends_with(
                "NSLOTS  PEND    RUN     SSUSP   USUSP  \n9       4       5       0       0\n"
            ),
            "{slots}"
        );
    }

    #[test]
    fn class_with_goals_is_told_with_the_state_of_each() {
        let goal = |words: &str, window: &str| GoalInfo {
            words: words.into(),
            window: window.into(),
            ..GoalInfo::default()
        };
        let deadline = GoalInfo {
            active: true,
            finish: Some(1_795_167_013),
            optimum: Some(2),
            ..goal("DEADLINE", "18:00-8:00")
        };
        let class = ServiceClassInfo {
            name: "Qualicum".into(),
            priority: 23,
            goals: vec![goal("VELOCITY 8", "8:00-18:00"), deadline],
            jobs: [280, 270, 2, 0, 0, 8],
            ..ServiceClassInfo::default()
        };
        let want = "SERVICE CLASS NAME:  Qualicum
 -- \nPRIORITY:  23
USER GROUP:  all
AUTO ATTACH:  N

GOAL:  VELOCITY 8
ACTIVE WINDOW:  (8:00-18:00)
STATUS:  Inactive
SLA THROUGHPUT:  0.00 JOBS/CLEAN_PERIOD

GOAL:  DEADLINE
ACTIVE WINDOW:  (18:00-8:00)
STATUS:  Active:Delayed
SLA THROUGHPUT:  8.00 JOBS/CLEAN_PERIOD
ESTIMATED FINISH TIME:  (Fri Nov 20 09:30)
OPTIMUM NUMBER OF RUNNING JOBS:  2

NJOBS   PEND    RUN     SSUSP   USUSP   FINISH
280     270     2       0       0       8
";
        assert_eq!(told(&class, &[], false, &Clock::utc()), want);
    }
}
