//! JOB_OVERRUN, JOB_UNDERRUN and JOB_IDLE of lsb.queues against what a job did.

use crate::batch::Mbatchd;
use crate::batch::state::{Elem, Job};
use crate::model::job::except;

impl Mbatchd {
    /// The exceptions of a started element until now or its end: [`except`] bits.
    pub(crate) fn exceptions(&self, job: &Job, part: u32, elem: &Elem, now: i64) -> u32 {
        let queue = self.site.queue(job.queue_of(part));
        let (Some(queue), Some(_)) = (queue, elem.run()) else { return 0 };
        let limit = |name: &str| {
            let text = queue.conf.raw.get(name)?.text.trim();
            text.parse::<f64>().ok().filter(|n| *n > 0.0)
        };
        let (ran, over) = (elem.ran(now) as f64, elem.stat().is_finished());
        let cpu = || elem.usage().map_or(0.0, |u| u.cpu_secs());
        let idle_after = self.site.params().exceptions.idle_after_secs as f64;
        let idle = |factor| ran > idle_after && cpu() / ran < factor;
        let bit = |on: bool, bit: u32| if on { bit } else { 0 };
        bit(limit("JOB_OVERRUN").is_some_and(|m| ran > m * 60.0), except::OVERRUN)
            | bit(over && limit("JOB_UNDERRUN").is_some_and(|m| ran < m * 60.0), except::UNDERRUN)
            | bit(limit("JOB_IDLE").is_some_and(idle), except::IDLE)
    }
}
