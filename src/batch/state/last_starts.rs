//! When each host was given a job last, for JOB_ACCEPT_INTERVAL of lsb.queues(5). JOB_START and
//! JOB_RESIZE_NOTIFY_START tell of it; a new log begins with LSF_HOST_STARTS for those of jobs that
//! it no longer has.
//!
//! Invariant: an entry never goes back, so that the order of the records of several jobs, which a
//! switch of the log changes, does not count.

use crate::batch::state::names::{HostId, Id};

/// Seconds before the newest start of all, from which on a switch of the log keeps them.
const KEPT: i64 = 86_400;

#[derive(Debug, Default)]
pub struct LastStarts {
    /// The last start on each host, by its number, seconds since the epoch; 0: never.
    by_host: Vec<i64>,
    newest: i64,
}

impl LastStarts {
    /// A host is given a job.
    pub(super) fn note(&mut self, host: HostId, time: i64) {
        if self.by_host.len() <= host.index() {
            self.by_host.resize(host.index() + 1, 0);
        }
        let last = &mut self.by_host[host.index()];
        *last = time.max(*last);
        self.newest = time.max(self.newest);
    }

    /// When a host was given a job last, seconds since the epoch.
    pub fn of(&self, host: HostId) -> Option<i64> {
        self.by_host.get(host.index()).copied().filter(|last| *last > 0)
    }

    /// Is an entry kept when the log is switched?
    pub fn is_kept(&self, last: i64) -> bool {
        last.saturating_add(KEPT) > self.newest
    }
}
