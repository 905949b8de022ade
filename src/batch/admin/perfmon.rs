//! badmin perfmon: how many queries, submissions, dispatches and ends there were in each sample
//! period, and how long the longest turn of the loop was ("Monitor performance metrics in real
//! time" in the documentation of LSF 10.1). In memory alone: a new mbatchd counts from the
//! beginning, where SCHED_METRIC_ENABLE=Y has it count at all. While it is off, a count is one
//! comparison.

use crate::batch::site::permissions::{Action, Caller};
use crate::batch::soft_state::perfmon::NAMES;
use crate::batch::{Mbatchd, StepContext};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::AdminLine;

/// Longest sample period, seconds: a year.
const MAX_PERIOD: u64 = 366 * 86_400;

/// The row of the longest turn; in the place of its sum stands the longest since mbatchd started.
const LONGEST_TURN: &str = "Longest turn in milliseconds";

impl Mbatchd {
    /// A turn of the loop that runs this took so long, microseconds of processor time.
    pub fn note_turn(&mut self, cpu_us: u64) {
        self.perfmon.turned(cpu_us);
    }

    /// Ends the periods that are over; one that nobody saw was empty.
    pub(crate) fn perf_due(&mut self, context: &StepContext) {
        let Some(s) = &mut self.perfmon.run else { return };
        if s.due > context.now.mono_us {
            return;
        }
        s.end_period(context.now.secs());
        s.due = context.now.after(s.period);
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
            "stop" => self.perfmon.run = None,
            "setperiod" => {
                self.perfmon.period = Some(secs);
                if let Some(s) = &mut self.perfmon.run {
                    (s.period, s.due) = (secs, context.now.after(secs));
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
