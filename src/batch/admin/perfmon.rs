//! badmin perfmon: how many queries, submissions, dispatches and ends there were in each sample
//! period, and how long the longest turn of the loop was ("Monitor performance metrics in real
//! time" in the documentation of LSF 10.1). In memory alone: a new mbatchd counts from the
//! beginning, where SCHED_METRIC_ENABLE=Y has it count at all. While it is off, a count is one
//! comparison.

use crate::batch::site::permissions::{Action, Caller};
use crate::batch::{Mbatchd, StepContext};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::AdminLine;

/// Longest sample period, seconds: a year.
const MAX_PERIOD: u64 = 366 * 86_400;

impl Mbatchd {
    /// Counts the processor time of a turn of the event loop, microseconds.
    pub fn note_turn(&mut self, cpu_us: u64) {
        self.perfmon.turned(cpu_us);
    }

    pub(crate) fn perf_admin(
        &mut self,
        context: &StepContext,
        who: &Caller,
        what: &str,
        secs: u64,
    ) -> Result<Vec<AdminLine>, Refusal> {
        self.site.check(who, Action::Perfmon, "", "")?;
        if secs > MAX_PERIOD || (secs == 0 && what == "setperiod") {
            return Err(Refusal::new(err::BAD_ARG));
        }
        match what {
            "start" => {
                self.perfmon.begin(context.now, self.site.params(), (secs > 0).then_some(secs))
            }
            "stop" => self.perfmon.stop(),
            "setperiod" => self.perfmon.set_period(context.now, secs),
            "view" => return Ok(self.perf_rows()),
            _ => return Err(Refusal::new(err::BAD_ARG)),
        }
        Ok(Vec::new())
    }

    /// Start, end of the last period and its length, then a row a metric; none while it is off.
    fn perf_rows(&self) -> Vec<AdminLine> {
        let Some(report) = self.perfmon.report() else { return Vec::new() };
        let row = |about: &str, text: String| AdminLine { about: about.into(), code: 0, text };
        let mut rows = vec![
            row("@start", report.started.to_string()),
            row("@end", report.ended.to_string()),
            row("@period", report.period.to_string()),
        ];
        let words = |values: [u64; 5]| values.map(|n| n.to_string()).join(" ");
        rows.extend(report.rows.iter().map(|metric| row(metric.name, words(metric.values))));
        rows
    }
}
