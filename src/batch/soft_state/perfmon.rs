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

pub(crate) const NAMES: [&str; 8] = [
    "Total queries",
    "Jobs information queries",
    "Hosts information queries",
    "Queue information queries",
    "Job submission requests",
    "Jobs submitted",
    "Jobs dispatched",
    "Jobs completed",
];

pub(crate) type Counts = [u64; NAMES.len()];

/// Sampling under way.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// Seconds since the epoch; `ended`: the last whole period, 0 none.
    pub(crate) started: i64,
    pub(crate) ended: i64,
    /// Seconds.
    pub(crate) period: u64,
    /// When the present one ends, microseconds of the monotonic clock.
    pub(crate) due: u64,
    pub(crate) periods: u64,
    pub(crate) now: Counts,
    pub(crate) last: Counts,
    pub(crate) max: Counts,
    pub(crate) min: Counts,
    /// The counts of the periods that are over.
    pub(crate) total: Counts,
    pub(crate) turns: Turns,
}

/// The longest turn of the loop, microseconds of processor time: in this period, in the last, and
/// the largest, the smallest and the sum of those of the periods that are over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) now: u64,
    pub(crate) last: u64,
    pub(crate) max: u64,
    pub(crate) min: u64,
    pub(crate) sum: u64,
}

/// Soft state of badmin perfmon.
#[derive(Debug, Default)]
pub struct Perfmon {
    pub(crate) run: Option<Box<Sampling>>,
    /// The period that setperiod asked for, seconds; it outlasts a stop.
    pub(crate) period: Option<u64>,
    /// The longest turn since mbatchd started, microseconds of processor time.
    pub(crate) longest: u64,
}

impl Turns {
    pub(crate) fn end_period(&mut self, periods: u64) {
        let n = self.now;
        let min = if periods == 0 { n } else { self.min.min(n) };
        *self = Turns { now: 0, last: n, max: self.max.max(n), min, sum: self.sum + n };
    }
}

impl Sampling {
    pub(crate) fn end_period(&mut self, now: i64) {
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

impl Perfmon {
    /// Counts anew, as lsb.params says: at the start, and when it says otherwise than before.
    pub(crate) fn reset(&mut self, now: Now, params: &BatchParams) {
        *self = Perfmon { longest: self.longest, ..Perfmon::default() };
        if params.sched_metric {
            self.begin(now, params, None);
        }
    }

    /// Begins to sample; a period in seconds stands above the one that was set before.
    pub(crate) fn begin(&mut self, now: Now, params: &BatchParams, period: Option<u64>) {
        let period = period.or(self.period).unwrap_or(params.sched_metric_period);
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

/// Do these say otherwise of sampling?
pub fn differ(a: &BatchParams, b: &BatchParams) -> bool {
    (a.sched_metric, a.sched_metric_period) != (b.sched_metric, b.sched_metric_period)
}
