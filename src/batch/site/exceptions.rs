//! When hosts and jobs of the configuration may be exceptional: EXIT_RATE of lsb.hosts(5) and
//! JOB_OVERRUN, JOB_UNDERRUN and JOB_IDLE of lsb.queues(5).

use crate::batch::site::Site;
use crate::conf::types::{HostPolicy, UNLIMITED_EXIT_RATE};

/// The parameters of a queue by which its jobs are exceptional.
const OF_JOBS: [&str; 3] = ["JOB_OVERRUN", "JOB_UNDERRUN", "JOB_IDLE"];

impl Site {
    /// The exits on a host with this row that are no exception; `None`: any number.
    pub(super) fn exit_rate(&self, row: Option<&HostPolicy>) -> Option<u32> {
        let of_all = self.conf.batch.params.exceptions.exit_rate;
        let rate = row.and_then(|row| row.exit_rate).or(of_all);
        rate.filter(|rate| *rate < UNLIMITED_EXIT_RATE)
    }

    /// May a host, or a job of some queue, be exceptional?
    pub(super) fn any_exception(&self) -> bool {
        self.hosts.values().any(|host| host.exit_rate.is_some())
            || self.queues.iter().any(|q| OF_JOBS.iter().any(|name| q.conf.raw.contains_key(*name)))
    }
}
