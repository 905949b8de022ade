//! badmin perfmon: how many queries, submissions, dispatches and ends there were in each sample
//! period, and how long the longest turn of the loop was ("Monitor performance metrics in real
//! time" in the documentation of LSF 10.1). In memory alone: a new mbatchd counts from the
//! beginning, where SCHED_METRIC_ENABLE=Y has it count at all. While it is off, a count is one
//! comparison.

use crate::batch::admin::permissions::{Action, Caller};
use crate::batch::state::change::{Change, ChangeKind, Stage};
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::BatchParams;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{AdminLine, ClientMsg};

/// What is counted, in the order in which it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Queries,
    JobQueries,
    HostQueries,
    QueueQueries,
    Requests,
    Submitted,
    Dispatched,
    Completed,
}

const NAMES: [&str; 8] = [
    "Total queries",
    "Jobs information queries",
    "Hosts information queries",
    "Queue information queries",
    "Job submission requests",
    "Jobs submitted",
    "Jobs dispatched",
    "Jobs completed",
];

type Counts = [u64; NAMES.len()];

/// Longest sample period, seconds: a year.
const MAX_PERIOD: u64 = 366 * 86_400;

/// Sampling under way.
#[derive(Debug)]
struct Sampling {
    /// Seconds since the epoch; `ended`: the last whole period, 0 none.
    started: i64,
    ended: i64,
    /// Seconds.
    period: u64,
    /// When the present one ends, microseconds of the monotonic clock.
    due: u64,
    periods: u64,
    now: Counts,
    last: Counts,
    max: Counts,
    min: Counts,
    /// Of the periods that are over.
    total: Counts,
    turns: Turns,
}

/// The longest turn of the loop, microseconds of processor time: in this period, in the last, and
/// the largest, the smallest and the sum of those of the periods that are over.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    now: u64,
    last: u64,
    max: u64,
    min: u64,
    sum: u64,
}

impl Turns {
    fn end_period(&mut self, periods: u64) {
        let n = self.now;
        let min = if periods == 0 { n } else { self.min.min(n) };
        *self = Turns { now: 0, last: n, max: self.max.max(n), min, sum: self.sum + n };
    }
}

impl Sampling {
    fn end_period(&mut self, now: i64) {
        for k in 0..NAMES.len() {
            let n = self.now[k];
            self.last[k] = n;
            self.max[k] = self.max[k].max(n);
            self.min[k] = if self.periods == 0 { n } else { self.min[k].min(n) };
            self.total[k] += n;
        }
        self.now = Counts::default();
        self.turns.end_period(self.periods);
        (self.periods, self.ended) = (self.periods + 1, now);
    }
}

/// Soft state of badmin perfmon.
#[derive(Debug, Default)]
pub struct Perfmon {
    run: Option<Box<Sampling>>,
    /// The period that setperiod asked for, seconds; it outlasts a stop.
    period: Option<u64>,
    /// The longest turn since mbatchd started, microseconds of processor time.
    longest: u64,
}

/// The row of the longest turn; in the place of its sum stands the longest since mbatchd started.
const LONGEST_TURN: &str = "Longest turn in milliseconds";

impl Perfmon {
    /// A turn of the loop took so long.
    pub fn turned(&mut self, cpu_us: u64) {
        self.longest = self.longest.max(cpu_us);
        if let Some(s) = &mut self.run {
            s.turns.now = s.turns.now.max(cpu_us);
        }
    }

    pub fn deadline(&self) -> Option<u64> {
        self.run.as_ref().map(|s| s.due)
    }

    pub fn count(&mut self, metric: Metric, n: u64) {
        if let Some(s) = &mut self.run {
            s.now[metric as usize] += n;
        }
    }

    /// Counts submissions, dispatches and ends of jobs.
    pub fn follow(&mut self, change: &Change) {
        match change.kind {
            ChangeKind::Submitted { elements } => self.count(Metric::Submitted, elements.into()),
            ChangeKind::Element { before: Stage::Pending, after: Stage::Started, .. } => {
                self.count(Metric::Dispatched, 1);
            }
            ChangeKind::Element { before, after: Stage::Ended, .. } if before != Stage::Ended => {
                self.count(Metric::Completed, 1);
            }
            _ => {}
        }
    }

    /// A command asks for something.
    pub fn asked(&mut self, msg: &ClientMsg) {
        if self.run.is_none() {
            return;
        }
        let kind = match msg {
            ClientMsg::Jobs(_) => Some(Metric::JobQueries),
            ClientMsg::Hosts { .. } => Some(Metric::HostQueries),
            ClientMsg::Queues { .. } => Some(Metric::QueueQueries),
            ClientMsg::Users { .. } | ClientMsg::Groups { .. } | ClientMsg::Params => None,
            ClientMsg::Submit(_) => return self.count(Metric::Requests, 1),
            _ => return,
        };
        self.count(Metric::Queries, 1);
        if let Some(kind) = kind {
            self.count(kind, 1);
        }
    }
}

impl Mbatchd {
    /// A turn of the loop that runs this took so long, microseconds of processor time.
    pub fn note_turn(&mut self, cpu_us: u64) {
        self.perfmon.turned(cpu_us);
    }

    /// At the start, and when lsb.params says otherwise than before.
    pub(crate) fn perf_by_params(&mut self, cx: &StepContext) {
        let p = self.site.params();
        let on = p.sched_metric;
        self.perfmon = Perfmon { longest: self.perfmon.longest, ..Perfmon::default() };
        if on {
            self.perf_start(cx, None);
        }
    }

    fn perf_start(&mut self, cx: &StepContext, period: Option<u64>) {
        let set = self.perfmon.period;
        let period = period.or(set).unwrap_or(self.site.params().sched_metric_period);
        self.perfmon.run = Some(Box::new(Sampling {
            started: cx.now.secs(),
            ended: 0,
            period,
            due: cx.now.after(period),
            periods: 0,
            now: Counts::default(),
            last: Counts::default(),
            max: Counts::default(),
            min: Counts::default(),
            total: Counts::default(),
            turns: Turns::default(),
        }));
    }

    /// Ends the periods that are over; one that nobody saw was empty.
    pub(crate) fn perf_due(&mut self, cx: &StepContext) {
        let Some(s) = &mut self.perfmon.run else { return };
        if s.due > cx.now.mono_us {
            return;
        }
        s.end_period(cx.now.secs());
        s.due = cx.now.after(s.period);
    }

    pub(crate) fn perf_admin(
        &mut self,
        cx: &StepContext,
        who: &Caller,
        what: &str,
        secs: u64,
    ) -> Result<Vec<AdminLine>, Refusal> {
        self.check(who, Action::Perfmon, "", "")?;
        if secs > MAX_PERIOD || (secs == 0 && what == "setperiod") {
            return Err(Refusal::new(err::BAD_ARG));
        }
        match what {
            "start" => self.perf_start(cx, (secs > 0).then_some(secs)),
            "stop" => self.perfmon.run = None,
            "setperiod" => {
                self.perfmon.period = Some(secs);
                if let Some(s) = &mut self.perfmon.run {
                    (s.period, s.due) = (secs, cx.now.after(secs));
                }
            }
            "view" => return Ok(self.perf_rows()),
            _ => return Err(Refusal::new(err::BAD_ARG)),
        }
        Ok(Vec::new())
    }

    /// Start, end of the last period and its length, then a row a metric; none while it is off.
    fn perf_rows(&self) -> Vec<AdminLine> {
        let Some(s) = &self.perfmon.run else { return Vec::new() };
        let row = |about: &str, text: String| AdminLine { about: about.into(), code: 0, text };
        let mut rows = vec![
            row("@start", s.started.to_string()),
            row("@end", s.ended.to_string()),
            row("@period", s.period.to_string()),
        ];
        for (k, name) in NAMES.iter().enumerate() {
            let average = s.total[k] / s.periods.max(1);
            let values = [s.last[k], s.max[k], s.min[k], average, s.total[k] + s.now[k]];
            rows.push(row(name, values.map(|n| n.to_string()).join(" ")));
        }
        let (turns, average) = (s.turns, s.turns.sum / s.periods.max(1));
        let turns = [turns.last, turns.max, turns.min, average, self.perfmon.longest];
        let turns = turns.map(|us| us.div_ceil(1000).to_string()).join(" ");
        rows.push(row(LONGEST_TURN, turns));
        rows
    }
}

/// Do these say otherwise of sampling?
pub fn differ(a: &BatchParams, b: &BatchParams) -> bool {
    (a.sched_metric, a.sched_metric_period) != (b.sched_metric, b.sched_metric_period)
}
