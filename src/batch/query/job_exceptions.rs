//! JOB_OVERRUN, JOB_UNDERRUN and JOB_IDLE of lsb.queues against what a job did, and EXIT_RATE of
//! lsb.hosts against the exits on a host.

use crate::batch::Mbatchd;
use crate::batch::state::names::HostId;
use crate::batch::state::{Elem, Job};
use crate::conf::types::UNLIMITED_EXIT_RATE;
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

    /// The exits on a host that are no exception yet; `None`: any number.
    pub(crate) fn exit_threshold(&self, host: HostId) -> Option<u32> {
        let rate = self.site.hosts.get(host)?.exit_rate?;
        if !self.site.params().exceptions.exit_rate_per_slot {
            return Some(rate);
        }
        // a host whose processors are not known yet has one slot, as far as this goes
        let slots = u32::try_from(self.view().reservable(host)).unwrap_or(u32::MAX);
        Some(rate.saturating_mul(slots.max(1)).min(UNLIMITED_EXIT_RATE))
    }

    /// The threshold of exits of a host, and its exits; `None`: it has no threshold.
    pub(crate) fn exit_rate(&self, host: HostId) -> Option<(u32, u32)> {
        let threshold = self.exit_threshold(host)?;
        let span = self.site.params().exceptions.exit_rate_secs;
        Some((threshold, self.exit_rates.count(host, self.sched.now(), span)))
    }
}
