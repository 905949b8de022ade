//! When hosts are looked at for jobs to be suspended or resumed by load.

use crate::batch::state::names::{HostId, HostSet};
use crate::model::Now;
use crate::model::idmap::IdMap;
use std::collections::BTreeSet;

/// When hosts are looked at; soft state.
#[derive(Debug)]
pub struct LoadChecks {
    /// Loads or jobs have changed.
    look: bool,
    /// The hosts whose load was heard of since [`LoadChecks::suspending`] was brought up to date;
    /// `None`: all hosts.
    heard: Option<HostSet>,
    /// The hosts whose load may suspend jobs of some queue. This follows from their load
    /// and the configuration alone, so that other hosts need no look, whatever their jobs do.
    suspending: BTreeSet<HostId>,
    /// Jobs are suspended for load, or were when it was looked last.
    some: bool,
    /// The instant before which a host is not looked at again.
    rest: IdMap<HostId, u64>,
    timer: Option<u64>,
    /// How often a job was looked at.
    #[cfg(test)]
    looks: std::cell::Cell<usize>,
    /// How often a host was looked at.
    #[cfg(test)]
    host_looks: usize,
}

impl LoadChecks {
    /// Is a look due? `stops`: the configuration has jobs suspended for load. The look begins.
    pub(crate) fn begin(&mut self, now: Now, stops: bool) -> bool {
        let due = self.timer.is_some_and(|t| t <= now.mono_us);
        if !(stops || self.some) {
            self.timer = None;
            return false;
        }
        if !(self.look || due) {
            return false;
        }
        (self.look, self.timer, self.some) = (false, None, false);
        true
    }

    /// May something be done on a host now? Else the look is taken again when it may, where jobs
    /// run there. `suspended`: jobs of the host are suspended for load.
    pub(crate) fn may_act(&mut self, now: Now, host: HostId, runs: bool, suspended: bool) -> bool {
        self.some |= suspended;
        let rest = self.rest.get(&host).copied().unwrap_or(0);
        let may = rest <= now.mono_us;
        if !may && runs {
            self.timer = Some(self.timer.map_or(rest, |t| t.min(rest)));
        }
        may
    }

    /// A job of a host was suspended or resumed: for so many seconds no other one is.
    pub(crate) fn acted(&mut self, now: Now, host: HostId, secs: u64) {
        let rest = now.after(secs);
        self.rest.insert(host, rest);
        self.timer.get_or_insert(rest);
        self.some = true;
    }

    /// Jobs or the configuration have changed: a look is due.
    pub(crate) fn look_again(&mut self) {
        self.look = true;
    }

    /// A job waits for the load of its hosts: a look is due.
    pub(crate) fn job_waits(&mut self) {
        (self.look, self.some) = (true, true);
    }

    /// The hosts whose load was heard of since this was asked last; `None`: all hosts.
    pub(crate) fn take_heard(&mut self) -> Option<HostSet> {
        self.heard.replace(HostSet::default())
    }

    /// The load of a host may suspend jobs of some queue, or not.
    pub(crate) fn set_suspending(&mut self, host: HostId, suspends: bool) {
        match suspends {
            true => self.suspending.insert(host),
            false => self.suspending.remove(&host),
        };
    }

    /// The hosts whose load may suspend jobs of some queue.
    pub(crate) fn suspending(&self) -> &BTreeSet<HostId> {
        &self.suspending
    }

    /// A job was looked at.
    #[cfg(test)]
    pub(crate) fn count_look(&self) {
        self.looks.set(self.looks.get() + 1);
    }

    /// Counts hosts that were looked at.
    #[cfg(test)]
    pub(crate) fn count_host_looks(&mut self, hosts: usize) {
        self.host_looks += hosts;
    }

    /// How often a job, and a host, was looked at.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> (usize, usize) {
        (self.looks.get(), self.host_looks)
    }

    pub fn deadline(&self) -> Option<u64> {
        self.timer
    }

    /// The load of a host was heard of.
    pub(crate) fn heard(&mut self, host: HostId) {
        self.look = true;
        if let Some(heard) = &mut self.heard {
            heard.insert(host);
        }
    }
}

impl Default for LoadChecks {
    fn default() -> Self {
        LoadChecks {
            look: true,
            heard: None,
            suspending: BTreeSet::new(),
            some: true,
            rest: IdMap::default(),
            timer: None,
            #[cfg(test)]
            looks: Default::default(),
            #[cfg(test)]
            host_looks: 0,
        }
    }
}
