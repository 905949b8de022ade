//! When hosts are looked at for jobs to be suspended or resumed by load.

use crate::batch::state::names::{HostId, HostSet};
use crate::model::idmap::IdMap;
use std::collections::BTreeSet;

/// When hosts are looked at; soft state.
#[derive(Debug)]
pub struct LoadChecks {
    /// Loads or jobs have changed.
    pub look: bool,
    /// The hosts whose load was heard of since [`LoadChecks::suspending`] was brought up to date;
    /// `None`: all hosts.
    pub(crate) heard: Option<HostSet>,
    /// The hosts whose load may suspend jobs of some queue. This follows from their load
    /// and the configuration alone, so that other hosts need no look, whatever their jobs do.
    pub(crate) suspending: BTreeSet<HostId>,
    /// Jobs are suspended for load, or were when it was looked last.
    pub(crate) some: bool,
    /// The instant before which a host is not looked at again.
    pub(crate) rest: IdMap<HostId, u64>,
    pub(crate) timer: Option<u64>,
    /// How often a job was looked at.
    #[cfg(test)]
    pub looks: std::cell::Cell<usize>,
    /// How often a host was looked at.
    #[cfg(test)]
    pub host_looks: usize,
}

impl LoadChecks {
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
