//! The goal of each line, and whether it was reached.
//!
//! The goals were set on a machine whose own limits are known. Another machine's processes may
//! start at a third of that speed, so a goal that a limit bounds is also given as its share of
//! that limit: a figure that is as near to its own machine's limit as the goal was to that one's
//! has reached it "by its share".

use super::table::{FigureRow, FigureTable, number, ratio};
use std::fmt::Write;

/// A goal: the line's first words, the figure, and the machine's limit where it was set.
struct Goal {
    line: &'static str,
    goal: f64,
    limit: Option<f64>,
}

/// Spawn and wait of /bin/true, ms.
const SPAWN: Option<f64> = Some(0.237);
/// Spawns of /bin/true from several shells at once, a second.
const SHELLS: Option<f64> = Some(6_900.0);
/// Round trips over 64 connections, a second.
const TRIPS: Option<f64> = Some(323_000.0);

const fn goal(line: &'static str, goal: f64, limit: Option<f64>) -> Goal {
    Goal { line, goal, limit }
}

const GOALS: &[Goal] = &[
    goal("lsrun true", 3.0 * 0.237, SPAWN),
    // and 2.5 times the spawn
    goal("bsub, one after the other", 0.8, Some(0.8 / 2.5)),
    goal("submissions from 4 shells", 0.5 * 6_900.0, SHELLS),
    goal("submissions over 64 kept connections", 40_000.0, TRIPS),
    goal("bsub -pack of", 20_000.0, TRIPS),
    goal("2000 single jobs from 4 shells", 1_000.0, SHELLS),
    goal("array of 10000 jobs, submit to done", 2_000.0, SHELLS),
    goal("array of 10000 jobs, execution simulated", 20_000.0, TRIPS),
    goal("array of 10000 jobs on 8 simulated hosts, all policies", 20_000.0, TRIPS),
    goal("start of bsub to the job's first instruction", 3.0, SPAWN),
    goal("bjobs -u all of 20000", 25.0, None),
    goal("bjobs ID beside 1000000", 2.0, SPAWN),
    goal("restart with 1000000", 2_000.0, None),
    goal("memory for each of 1000000", 600.0, None),
    goal("memory of an array of 1000000", 4.0 * 1024.0 * 1024.0, None),
    goal("submissions left beside 1000000", 80.0, None),
    goal("jobs left beside 1000000", 80.0, None),
    goal("submissions left under", 50.0, None),
    goal("jobs left under", 50.0, None),
    goal("idle,", 0.05, None),
    goal("1000 running jobs: CPU", 1.0, None),
    // 1.5 times lsrun -P, and half the rate of lsrun
    goal("bsub -Is bash to its prompt", 1.5, Some(1.0)),
    goal("1 GB out of bsub -I", 2.0, Some(1.0)),
    // three times the loop
    goal("10000 hosts x 200: the policy", 4.0, Some(4.0 / 3.0)),
    goal("10000 hosts x 200, each string another: the policy", 25.0, None),
    goal("reports of 10000 hosts x 45 every 30 s", 2.0, None),
    goal("memory of a host of 10000 x 200", 4_096.0, None),
    goal("10000 requests of 10 kinds routed", 15_000.0, None),
    goal("1000 policies of 5 constraints loaded", 30.0, None),
    goal("1 MB of a against", 100.0, None),
    // 8 ms more than a bqueues, which took 2
    goal("nlbpolicy -c 10 of", 10.0, Some(2.0)),
    goal("bsub to JOB_SWITCH on the disk", 20.0, None),
    // 1.05 times those without it
    goal("500 jobs on 10000 hosts with NLB_POLICY", 1.05, Some(1.0)),
    // of the limit: 2.5 times the spawns, half the rate of one task
    goal("blaunch of 1000 tasks", 4_000.0, Some(4_000.0 / 2.5)),
    goal("memory of that blaunch", 64.0 * 1024.0 * 1024.0, None),
    goal("blaunch on another host", 10.0, None),
    goal("1 GB out of 64 tasks", 2.0, Some(1.0)),
    goal("1000000 pending: pass, nothing changed", 1.0, None),
    goal("1000000 pending: freed slot to next decision, p99", 1.0, None),
    goal("1000000 pending: decisions, all hosts freed", 500_000.0, None),
    // 1,000,000 jobs at 20,000 a second
    goal("all configured: time to submit them", 50_000.0, None),
    goal("all configured: first pass over all of them", 2_000.0, None),
    goal("all configured: freed slot to next decision, p99", 1.0, None),
    goal("all configured: decisions, all hosts freed", 1_000_000.0, None),
    goal("all configured: bjobs -p3 of one job", 50.0, None),
    goal("all configured: bjobs -p of all", 2_000.0, None),
    goal("all configured: memory of a job", 400.0, None),
    goal("decisions left at 1000000 pending", 90.0, None),
    goal("passes left at 1000000 pending", 90.0, None),
    goal("speed of a freed slot, p50, left at 1000000", 90.0, None),
    goal("speed of a freed slot, p99, left at 1000000", 90.0, None),
];

/// The goals of the lines that were measured, a line each; empty without any.
pub fn text(table: &FigureTable) -> String {
    let mut out = String::new();
    for row in &table.rows {
        let Some(goal) = GOALS.iter().find(|g| row.figure.name.starts_with(g.line)) else {
            continue;
        };
        let (unit, said) = (row.figure.unit.word(), verdict(row, goal));
        let _ = writeln!(out, "{:<52}{:>12} {unit:<6} {said}", row.figure.name, number(goal.goal));
    }
    if out.is_empty() { out } else { format!("{:<52}{:>12}\n{out}", "goals", "goal") }
}

/// The words for a goal: reached, reached by its share, or missed.
fn verdict(row: &FigureRow, goal: &Goal) -> String {
    let more = row.figure.unit.more_is_better();
    let reaches = |is: f64, wanted: f64| if more { is >= wanted } else { is <= wanted };
    let Some(value) = row.figure.median() else { return "missed: not measured".to_owned() };
    if reaches(value, goal.goal) {
        return "reached".to_owned();
    }
    let missed = || format!("missed: {} {}", number(value), row.figure.unit.word());
    let Some((limit, share)) = goal.limit.zip(ratio(row)) else { return missed() };
    let wanted = goal.goal / limit;
    let shown = |r: f64| match more {
        true => format!("{}%", number(r * 100.0)),
        false => format!("{} x", number(r)),
    };
    match reaches(share, wanted) {
        true => {
            format!("reached by its share of the limit: {}, goal {}", shown(share), shown(wanted))
        }
        false => format!("{}, {} of the limit, goal {}", missed(), shown(share), shown(wanted)),
    }
}

#[test]
fn goals_hold_by_figure_or_by_share() {
    use super::table::{Figure, Unit};
    let row = |value: f64, limit: f64| FigureRow {
        figure: Figure::new("array of 10000 jobs, submit to done", Unit::PerSec, vec![value]),
        limit: Some(Figure::new("shells", Unit::PerSec, vec![limit])),
    };
    let said = |value, limit| verdict(&row(value, limit), &goal("array", 2_000.0, SHELLS));
    assert_eq!(said(2_000.0, 6_900.0), "reached");
    assert_eq!(said(1_000.0, 2_000.0), "reached by its share of the limit: 50.0%, goal 29.0%");
    assert_eq!(said(1_000.0, 5_000.0), "missed: 1,000 /s, 20.0% of the limit, goal 29.0%");
    let idle = FigureRow { figure: Figure::new("idle, x", Unit::Percent, vec![0.06]), limit: None };
    assert_eq!(verdict(&idle, &goal("idle,", 0.05, None)), "missed: 0.06 %");
    let none = FigureRow { figure: Figure::new("idle, x", Unit::Percent, vec![]), limit: None };
    assert_eq!(verdict(&none, &goal("idle,", 0.05, None)), "missed: not measured");
    // less is better
    let spawn = Some(Figure::new("spawn", Unit::Ms, vec![0.8]));
    let bsub = FigureRow { figure: Figure::new("bsub, one", Unit::Ms, vec![1.3]), limit: spawn };
    let said = verdict(&bsub, &goal("bsub", 0.8, SPAWN));
    assert_eq!(said, "reached by its share of the limit: 1.62 x, goal 3.38 x");
}
