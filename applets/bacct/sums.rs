//! The head and the summary of bacct, column by column as LSF's (bacct(1)).
//!
//! Times: waiting is from submission to dispatch (of a job that never started, to its end),
//! turnaround from submission to the end, running from dispatch to the end. The hog factor is
//! CPU time over turnaround, the expansion factor turnaround over running time.

use super::filter::{AccountingFilter, Reserved};
use lsf::cli::clock::Clock;
use lsf::cli::long_format::push_clean;
use lsf::lang::interval::Interval;
use lsf::log::codec::Brief;
use std::fmt::Write;

/// The column at which the left value ends, and the width of the right half.
const LEFT: usize = 35;
const RIGHT: usize = 34;

/// Label of the jobs in an hour.
const THROUGHPUT: &str = "Total throughput:";

/// The place of a figure of the summary.
enum Place {
    /// The left half of a line, and what follows the value.
    Left(&'static str),
    /// The right half.
    Right,
    /// A line of its own, and what follows the value.
    Line(&'static str),
}

/// Total, least and largest of one figure.
#[derive(Clone, Copy, Debug, Default)]
struct Figure {
    total: f64,
    min: f64,
    max: f64,
    count: u64,
}

impl Figure {
    fn add(&mut self, x: f64) {
        self.min = if self.count == 0 { x } else { self.min.min(x) };
        self.max = if self.count == 0 { x } else { self.max.max(x) };
        self.total += x;
        self.count += 1;
    }

    fn average(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total / self.count as f64 }
    }
}

/// The total usage.
#[derive(Debug, Default)]
pub struct Sums {
    done: u64,
    exit: u64,
    cpu: Figure,
    wait: Figure,
    turnaround: Figure,
    hog: Figure,
    expansion: Figure,
    run: Figure,
    /// First and last end.
    first: i64,
    last: i64,
}

impl Sums {
    pub fn jobs(&self) -> u64 {
        self.done + self.exit
    }

    /// `ineligible`: seconds of waiting that do not count.
    pub fn add(&mut self, b: &Brief<'_>, ineligible: i64) {
        let begun = if b.start_time > 0 { b.start_time } else { b.end_time };
        let turnaround = (b.end_time - b.submit_time - ineligible).max(0) as f64;
        let run = (b.end_time - begun).max(0) as f64;
        self.first = if self.jobs() == 0 { b.end_time } else { self.first.min(b.end_time) };
        self.last = self.last.max(b.end_time);
        *(if b.done { &mut self.done } else { &mut self.exit }) += 1;
        self.cpu.add(b.cpu);
        self.wait.add((begun - b.submit_time - ineligible).max(0) as f64);
        self.turnaround.add(turnaround);
        self.hog.add(if turnaround > 0.0 { b.cpu / turnaround } else { 0.0 });
        self.run.add(run);
        if run > 0.0 {
            self.expansion.add(turnaround / run);
        }
    }

    /// The figures of the summary before those of throughput, each with its place in its line.
    fn figures(&self) -> Vec<(&'static str, String, Place)> {
        let whole = |x: f64| format!("{x:.0}");
        let tenth = |x: f64| format!("{x:.1}");
        let cent = |x: f64| format!("{x:.2}");
        let (cpu, wait, turn) = (&self.cpu, &self.wait, &self.turnaround);
        let (hog, expansion, run) = (&self.hog, &self.expansion, &self.run);
        let own = " ( turnaround time / run time )";
        vec![
            ("Total number of done jobs:", self.done.to_string(), Place::Left("")),
            ("Total number of exited jobs:", self.exit.to_string(), Place::Right),
            ("Total CPU time consumed:", tenth(cpu.total), Place::Left("")),
            ("Average CPU time consumed:", tenth(cpu.average()), Place::Right),
            ("Maximum CPU time of a job:", tenth(cpu.max), Place::Left("")),
            ("Minimum CPU time of a job:", tenth(cpu.min), Place::Right),
            ("Total wait time in queues:", tenth(wait.total), Place::Left("\n")),
            ("Average wait time in queue:", tenth(wait.average()), Place::Left("\n")),
            ("Maximum wait time in queue:", tenth(wait.max), Place::Left("")),
            ("Minimum wait time in queue:", tenth(wait.min), Place::Right),
            ("Average turnaround time:", whole(turn.average()), Place::Left(" (seconds/job)\n")),
            ("Maximum turnaround time:", whole(turn.max), Place::Left("")),
            ("Minimum turnaround time:", whole(turn.min), Place::Right),
            (
                "Average hog factor of a job:",
                cent(hog.average()),
                Place::Left(" ( cpu time / turnaround time )\n"),
            ),
            ("Maximum hog factor of a job:", cent(hog.max), Place::Left("")),
            ("Minimum hog factor of a job:", cent(hog.min), Place::Right),
            ("Average expansion factor of a job:", cent(expansion.average()), Place::Line(own)),
            ("Maximum expansion factor of a job:", cent(expansion.max), Place::Line("")),
            ("Minimum expansion factor of a job:", cent(expansion.min), Place::Line("")),
            ("Total Run time consumed:", whole(run.total), Place::Left("")),
            ("Average Run time consumed:", whole(run.average()), Place::Right),
            ("Maximum Run time of a job:", whole(run.max), Place::Left("")),
            ("Minimum Run time of a job:", whole(run.min), Place::Right),
        ]
    }

    /// The summary as keys and values: a key is the label of a figure in capitals.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let key = |label: &str| label.trim_end_matches(':').to_uppercase().replace(' ', "_");
        let mut all: Vec<(String, String)> =
            self.figures().into_iter().map(|(label, value, _)| (key(label), value)).collect();
        let (rate, hours) = self.rate();
        all.push((key(THROUGHPUT), format!("{rate:.2}")));
        all.push(("HOURS".into(), format!("{hours:.2}")));
        all
    }

    pub fn show(&self, out: &mut String, clock: &Clock) {
        out.push_str("\nSUMMARY:      ( time unit: second ) \n");
        for (label, value, place) in self.figures() {
            match place {
                Place::Left(then) => left(out, label, &value, then),
                Place::Right => right(out, label, &value),
                Place::Line(then) => {
                    let _ = writeln!(out, " {label} {value:>5}{then}");
                }
            }
        }
        self.throughput(out, clock);
    }

    /// Jobs in an hour, and the hours from the first end to the last.
    fn rate(&self) -> (f64, f64) {
        let hours = (self.last - self.first) as f64 / 3600.0;
        (if hours > 0.0 { self.jobs() as f64 / hours } else { 0.0 }, hours)
    }

    fn throughput(&self, o: &mut String, clock: &Clock) {
        let (rate, hours) = self.rate();
        left(o, THROUGHPUT, &format!("{rate:.2}"), "");
        let _ = writeln!(o, " (jobs/hour)  during {hours:>8.2} hours");
        if self.jobs() > 0 {
            let time = |secs| {
                let mut text = String::new();
                clock.short(&mut text, secs);
                text
            };
            left(o, "Beginning time:", &time(self.first), "");
            right(o, "Ending time:", &time(self.last));
        }
    }
}

/// ` label value`, the value's end at [`LEFT`].
fn left(out: &mut String, label: &str, value: &str, then: &str) {
    let room = LEFT.saturating_sub(label.len() + 1).max(value.len() + 1);
    let _ = write!(out, " {label}{value:>room$}{then}");
}

/// The right half of a line.
fn right(out: &mut String, label: &str, value: &str) {
    let room = RIGHT.saturating_sub(label.len()).max(value.len() + 1);
    let _ = writeln!(out, "      {label}{value:>room$}");
}

/// The heading: the jobs that are accounted for.
pub fn head(out: &mut String, f: &AccountingFilter, clock: &Clock) {
    out.push_str("Accounting information about jobs that are: \n");
    list(out, "submitted by users", "submitted by all users.", &f.users);
    list(out, "accounted on projects", "accounted on all projects.", &f.projects);
    out.push_str(match (f.done, f.exit) {
        (true, false) => "  - completed normally\n",
        (false, true) => "  - exited\n",
        _ => "  - completed normally or exited\n",
    });
    interval(out, "completed", &f.completed, clock);
    interval(out, "submitted", &f.submitted, clock);
    interval(out, "dispatched", &f.dispatched, clock);
    list(out, "executed on hosts", "executed on all hosts.", &f.host_words);
    list(out, "submitted to queues", "submitted to all queues.", &f.queues);
    list(out, "accounted on service classes", "accounted on all service classes.", &f.slas);
    for (some, words) in [
        ("accounted on application profiles", &f.apps),
        ("accounted on License Scheduler projects", &f.licenses),
    ] {
        if !words.is_empty() {
            list(out, some, "", words);
        }
    }
    match &f.reservations {
        Reserved::Whatever => {}
        Reserved::Any => out.push_str("  - accounted on all advance reservations.\n"),
        Reserved::In(ids) => list(out, "accounted on advance reservations", "", ids),
    }
    if f.exceptions {
        out.push_str("  - with exceptions.\n");
    }
    out.push_str(RULE);
}

/// Between the head, the jobs and the summary.
pub const RULE: &str =
    "------------------------------------------------------------------------------\n";

fn list(out: &mut String, some: &str, all: &str, words: &[String]) {
    if words.is_empty() {
        let _ = writeln!(out, "  - {all}");
        return;
    }
    let _ = write!(out, "  - {some} ");
    for word in words {
        push_clean(out, word);
        out.push_str(", ");
    }
    out.push('\n');
}

/// Two lines, the times one below the other.
fn interval(out: &mut String, what: &str, i: &Option<Interval>, clock: &Clock) {
    let Some(i) = i else { return };
    let from = out.len();
    let _ = write!(out, "  - {what} between  ");
    let and = ",and   ";
    let indent = out.len() - from - and.len();
    clock.full(out, i.from);
    let _ = write!(out, "\n{:indent$}{and}", "");
    clock.full(out, i.to);
    out.push('\n');
}
