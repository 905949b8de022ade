//! The metrics that badmin perfmon shows, counted by sample periods. While sampling is off, a count
//! is one comparison.

use crate::batch::state::change::{Change, ChangeKind, Stage};
use crate::conf::types::BatchParams;
use crate::model::Now;
use crate::proto::client::ClientMsg;

/// The metrics, in the order in which they are shown.
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
    /// The counts of the periods that are over.
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

/// Soft state of badmin perfmon.
#[derive(Debug, Default)]
pub struct Perfmon {
    run: Option<Box<Sampling>>,
    /// The period that setperiod asked for, seconds; it outlasts a stop.
    period: Option<u64>,
    /// The longest turn since mbatchd started, microseconds of processor time.
    longest: u64,
}

/// The figures of a metric: of the last period, the largest, the smallest and the average of the
/// periods that are over, and the sum of all, or for turns the longest.
pub(crate) struct Row {
    pub name: &'static str,
    pub values: [u64; 5],
}

/// The values of `badmin perfmon view`: seconds since the epoch of its start and of the end of the
/// last period (0: none is over), the seconds of a period, and the metrics.
pub(crate) struct Report {
    pub started: i64,
    pub ended: i64,
    pub period: u64,
    pub rows: Vec<Row>,
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

/// The row of the longest turn; in the place of its sum stands the longest since mbatchd started.
const LONGEST_TURN: &str = "Longest turn in milliseconds";

impl Perfmon {
    /// Sampling ends.
    pub(crate) fn stop(&mut self) {
        self.run = None;
    }

    /// Periods take so many seconds from now on.
    pub(crate) fn set_period(&mut self, now: Now, secs: u64) {
        self.period = Some(secs);
        if let Some(s) = &mut self.run {
            (s.period, s.due) = (secs, now.after(secs));
        }
    }

    /// Ends the period that is over; one that nobody saw was empty.
    pub(crate) fn end_due_period(&mut self, now: Now) {
        if let Some(s) = self.run.as_mut().filter(|s| s.due <= now.mono_us) {
            s.end_period(now.secs());
            s.due = now.after(s.period);
        }
    }

    /// The figures so far; `None`: sampling is off.
    pub(crate) fn report(&self) -> Option<Report> {
        let s = self.run.as_ref()?;
        let metric = |(k, name): (usize, &&'static str)| {
            let average = s.total[k] / s.periods.max(1);
            let values = [s.last[k], s.max[k], s.min[k], average, s.total[k] + s.now[k]];
            Row { name, values }
        };
        let (turns, average) = (s.turns, s.turns.sum / s.periods.max(1));
        let turns = [turns.last, turns.max, turns.min, average, self.longest];
        let turns = Row { name: LONGEST_TURN, values: turns.map(|us| us.div_ceil(1000)) };
        let rows = NAMES.iter().enumerate().map(metric).chain([turns]).collect();
        Some(Report { started: s.started, ended: s.ended, period: s.period, rows })
    }

    /// Counts anew, as lsb.params says: at the start, and when it says otherwise than before.
    pub(crate) fn reset(&mut self, now: Now, params: &BatchParams) {
        *self = Perfmon { longest: self.longest, ..Perfmon::default() };
        if params.sched_metric.enabled {
            self.begin(now, params, None);
        }
    }

    /// Begins to sample; a period in seconds stands above the one that was set before.
    pub(crate) fn begin(&mut self, now: Now, params: &BatchParams, period: Option<u64>) {
        let period = period.or(self.period).unwrap_or(params.sched_metric.period);
        self.run = Some(Box::new(Sampling {
            started: now.secs(),
            ended: 0,
            period,
            due: now.after(period),
            periods: 0,
            now: Counts::default(),
            last: Counts::default(),
            max: Counts::default(),
            min: Counts::default(),
            total: Counts::default(),
            turns: Turns::default(),
        }));
    }

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
            ChangeKind::PendingElements { after: Stage::Ended, elements } => {
                self.count(Metric::Completed, elements.into());
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
            ClientMsg::Users { .. }
            | ClientMsg::Slots { .. }
            | ClientMsg::Groups { .. }
            | ClientMsg::Params => None,
            ClientMsg::Submit(_) => return self.count(Metric::Requests, 1),
            _ => return,
        };
        self.count(Metric::Queries, 1);
        if let Some(kind) = kind {
            self.count(kind, 1);
        }
    }
}

/// Do these say otherwise of sampling?
pub fn differ(a: &BatchParams, b: &BatchParams) -> bool {
    a.sched_metric != b.sched_metric
}
