//! Exceptional hosts and jobs, as eadmin(8) is told of them.

use crate::model::JobRef;

/// A host on which too many jobs have exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostException {
    pub host: String,
    /// The exits during JOB_EXIT_RATE_DURATION, and the number that is no exception yet.
    pub exits: u32,
    pub threshold: u32,
}

/// A job that runs too long, has ended too soon, or is idle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobException {
    pub at: JobRef,
    /// `overrun`, `underrun` or `idle`.
    pub kind: &'static str,
    pub queue: String,
    pub user: String,
}

/// The exceptions of one call of eadmin, some of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exceptions {
    Hosts(Vec<HostException>),
    Jobs(Vec<JobException>),
}

impl Exceptions {
    /// The arguments of eadmin.
    pub fn words(&self) -> Vec<String> {
        match self {
            Exceptions::Hosts(hosts) => {
                let word =
                    |of: &HostException| format!("{}:{}:{}", of.host, of.exits, of.threshold);
                std::iter::once("host".to_owned()).chain(hosts.iter().map(word)).collect()
            }
            Exceptions::Jobs(jobs) => {
                let word =
                    |of: &JobException| format!("{}:{}:{}:{}", of.kind, of.at, of.queue, of.user);
                std::iter::once("job".to_owned()).chain(jobs.iter().map(word)).collect()
            }
        }
    }

    /// The kind in words, for a log.
    pub fn kind(&self) -> &'static str {
        match self {
            Exceptions::Hosts(_) => "exceptional hosts",
            Exceptions::Jobs(_) => "exceptional jobs",
        }
    }
}
