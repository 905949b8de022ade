//! Queues and hosts that their time windows close now. `lifecycle::window_suspend` looks at the
//! windows at their edges.

use crate::batch::state::names::{HostId, HostMap};
use jiff::tz::TimeZone;

/// Queues and hosts that their windows close; soft state.
#[derive(Debug)]
pub struct ClosedByWindows {
    /// The master's zone, in which windows are civil time.
    pub zone: TimeZone,
    /// Closed (run windows, dispatch windows), by queue in the order of the site.
    pub queues: Vec<(bool, bool)>,
    /// Closed dispatch windows, by host in the order of the site.
    pub hosts: HostMap<bool>,
    /// The policy is new.
    pub stale: bool,
    /// The last check, seconds since the epoch.
    pub looked: i64,
    /// When something opens or closes next, likewise; and the instant to look at.
    pub next: Option<i64>,
    pub timer: Option<u64>,
    /// When the configuration was last asked for because another branch of it may hold.
    pub asked: i64,
}

impl ClosedByWindows {
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }
}

impl Default for ClosedByWindows {
    fn default() -> Self {
        ClosedByWindows {
            zone: TimeZone::UTC,
            queues: Vec::new(),
            hosts: HostMap::default(),
            stale: true,
            looked: 0,
            next: None,
            timer: None,
            asked: i64::MIN,
        }
    }
}

impl ClosedByWindows {
    pub fn deadline(&self) -> Option<u64> {
        self.timer
    }
    pub fn host(&self, i: HostId) -> bool {
        self.hosts.get(i).copied().unwrap_or(false)
    }
    /// Does a queue start no jobs now?
    pub fn queue(&self, i: usize) -> bool {
        self.queues.get(i).is_some_and(|q| q.0 || q.1)
    }
    /// Look again at the next turn.
    pub fn renew(&mut self) {
        self.stale = true;
    }
}
