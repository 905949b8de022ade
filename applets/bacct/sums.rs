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

    pub fn show(&self, out: &mut String, clock: &Clock) {
        let o = &mut *out;
        o.push_str("\nSUMMARY:      ( time unit: second ) \n");
        let whole = |x: f64| format!("{x:.0}");
        let tenth = |x: f64| format!("{x:.1}");
        let cent = |x: f64| format!("{x:.2}");
        let (cpu, wait, turn) = (&self.cpu, &self.wait, &self.turnaround);
        left(o, "Total number of done jobs:", &self.done.to_string(), "");
        right(o, "Total number of exited jobs:", &self.exit.to_string());
        left(o, "Total CPU time consumed:", &tenth(cpu.total), "");
        right(o, "Average CPU time consumed:", &tenth(cpu.average()));
        left(o, "Maximum CPU time of a job:", &tenth(cpu.max), "");
        right(o, "Minimum CPU time of a job:", &tenth(cpu.min));
        left(o, "Total wait time in queues:", &tenth(wait.total), "\n");
        left(o, "Average wait time in queue:", &tenth(wait.average()), "\n");
        left(o, "Maximum wait time in queue:", &tenth(wait.max), "");
        right(o, "Minimum wait time in queue:", &tenth(wait.min));
        left(o, "Average turnaround time:", &whole(turn.average()), " (seconds/job)\n");
        left(o, "Maximum turnaround time:", &whole(turn.max), "");
        right(o, "Minimum turnaround time:", &whole(turn.min));
        let hog = " ( cpu time / turnaround time )\n";
        left(o, "Average hog factor of a job:", &cent(self.hog.average()), hog);
        left(o, "Maximum hog factor of a job:", &cent(self.hog.max), "");
        right(o, "Minimum hog factor of a job:", &cent(self.hog.min));
        let _ = writeln!(
            o,
            " Average expansion factor of a job: {:>5} ( turnaround time / run time )\n \
             Maximum expansion factor of a job: {:>5}\n \
             Minimum expansion factor of a job: {:>5}",
            cent(self.expansion.average()),
            cent(self.expansion.max),
            cent(self.expansion.min),
        );
        left(o, "Total Run time consumed:", &whole(self.run.total), "");
        right(o, "Average Run time consumed:", &whole(self.run.average()));
        left(o, "Maximum Run time of a job:", &whole(self.run.max), "");
        right(o, "Minimum Run time of a job:", &whole(self.run.min));
        self.throughput(o, clock);
    }

    fn throughput(&self, o: &mut String, clock: &Clock) {
        let hours = (self.last - self.first) as f64 / 3600.0;
        let rate = if hours > 0.0 { self.jobs() as f64 / hours } else { 0.0 };
        left(o, "Total throughput:", &format!("{rate:.2}"), "");
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
