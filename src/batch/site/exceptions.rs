//! When hosts and jobs of the configuration may be exceptional: EXIT_RATE of lsb.hosts(5) and
//! JOB_OVERRUN, JOB_UNDERRUN and JOB_IDLE of lsb.queues(5).

use crate::conf::types::{BatchConf, HostPolicy, UNLIMITED_EXIT_RATE};

/// The parameters of a queue by which its jobs are exceptional.
const OF_JOBS: [&str; 3] = ["JOB_OVERRUN", "JOB_UNDERRUN", "JOB_IDLE"];

/// The exits on a host with this row that are no exception; `None`: any number.
pub(super) fn exit_rate(conf: &BatchConf, row: Option<&HostPolicy>) -> Option<u32> {
    let rate = row.and_then(|row| row.exit_rate).or(conf.params.exceptions.exit_rate);
    rate.filter(|rate| *rate < UNLIMITED_EXIT_RATE)
}

/// May a host, or a job of some queue, be exceptional?
pub(super) fn are_possible(conf: &BatchConf) -> bool {
    conf.params.exceptions.exit_rate.is_some()
        || conf.hosts.hosts.iter().any(|row| exit_rate(conf, Some(row)).is_some())
        || conf.queues.iter().any(|q| OF_JOBS.iter().any(|name| q.raw.contains_key(*name)))
}
