//! Queues and hosts that their time windows close now. `lifecycle::window_suspend` looks at the
//! windows at their edges.

use crate::batch::site::{Queue, Site};
use crate::batch::state::names::{HostId, HostMap, QueueId};
use crate::lang::window::Windows;
use crate::model::Now;
use jiff::tz::TimeZone;

/// Longest time between two looks, seconds: clocks may be set, and zones changed.
const LOOK_SECS: u64 = 600;

/// Queues and hosts that their windows close; soft state.
#[derive(Debug)]
pub struct ClosedByWindows {
    /// The master's zone, in which windows are civil time.
    zone: TimeZone,
    /// Closed (run windows, dispatch windows), by queue in the order of the site.
    queues: Vec<(bool, bool)>,
    /// When open run windows close next, likewise; seconds since the epoch, `None`: never, or they
    /// are closed.
    closes: Vec<Option<i64>>,
    /// Closed dispatch windows, by host in the order of the site.
    hosts: HostMap<bool>,
    /// The policy is new.
    stale: bool,
    /// The last check, seconds since the epoch.
    looked: i64,
    /// When something opens or closes next, likewise; and the instant to look at.
    next: Option<i64>,
    timer: Option<u64>,
    /// When the configuration was last asked for because another branch of it may hold.
    asked: i64,
}

impl Default for ClosedByWindows {
    fn default() -> Self {
        ClosedByWindows {
            zone: TimeZone::UTC,
            queues: Vec::new(),
            closes: Vec::new(),
            hosts: HostMap::default(),
            stale: true,
            looked: 0,
            next: None,
            timer: None,
            asked: i64::MIN,
        }
    }
}

/// The outcome of a look at the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLook {
    /// A queue or host has opened or closed, or the policy is new.
    pub changed: bool,
    /// The configuration is to be read again: another branch of `#if time(...)` may hold.
    pub reads_configuration: bool,
}

impl ClosedByWindows {
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }
    pub fn set_zone(&mut self, zone: TimeZone) {
        self.zone = zone;
    }
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
    /// Are the run windows of a queue closed?
    pub fn run_windows_closed(&self, i: usize) -> bool {
        self.queues.get(i).is_some_and(|q| q.0)
    }
    /// When the run windows of a queue close next, seconds since the epoch; `None`: never, or they
    /// are closed.
    pub fn run_windows_close(&self, site: &Site, queue: QueueId) -> Option<i64> {
        self.closes.get(site.queue_position(queue)?).copied().flatten()
    }
    /// Look again at the next turn.
    pub fn renew(&mut self) {
        self.stale = true;
    }

    /// Is a look due: may a window have opened or closed?
    fn is_due(&self, now: Now) -> bool {
        let passed = self.next.is_some_and(|t| t <= now.secs()) || now.secs() < self.looked;
        self.stale || passed || self.timer.is_some_and(|t| t <= now.mono_us)
    }

    /// Looks at the windows of a site, if that is due.
    pub fn look(&mut self, now: Now, site: &Site) -> Option<WindowLook> {
        if !self.is_due(now) {
            return None;
        }
        let mut next: Option<i64>;
        let mut reads_configuration = false;
        match site.conf.changes {
            // A new branch of `#if time(...)`; where it was refused, it is tried again.
            Some(t) if t <= now.secs() => {
                let again = self.asked.saturating_add(LOOK_SECS as i64);
                if self.asked < t || now.secs() >= again {
                    (self.asked, reads_configuration) = (now.secs(), true);
                }
                next = Some(self.asked.saturating_add(LOOK_SECS as i64));
            }
            edge => next = edge,
        }
        let mut shut = |w: &Windows| {
            let edge = w.next_change(now.secs(), &self.zone);
            next = [next, edge].into_iter().flatten().min();
            !w.open_at(now.secs(), &self.zone)
        };
        let queues: Vec<_> =
            site.queues.iter().map(|q| (shut(&q.run_window), shut(&q.dispatch_window))).collect();
        let close = |(q, shut): (&Queue, &(bool, bool))| match shut.0 || q.run_window.is_empty() {
            true => None,
            false => q.run_window.next_change(now.secs(), &self.zone),
        };
        let closes = site.queues.iter().zip(&queues).map(close).collect();
        let mut hosts = HostMap::default();
        for (id, host) in site.hosts.iter() {
            hosts.insert(id, shut(&host.window));
        }
        let changed = self.stale || queues != self.queues || hosts != self.hosts;
        let instant = |t| now.mono_of_wall(t).clamp(now.mono_us + 1, now.after(LOOK_SECS));
        (self.queues, self.hosts, self.stale) = (queues, hosts, false);
        self.closes = closes;
        (self.looked, self.next, self.timer) = (now.secs(), next, next.map(instant));
        Some(WindowLook { changed, reads_configuration })
    }
}
