//! External indices: the host whose elims report each resource.
//!
//! Every host runs elims for the resources that `[default]` maps, the master also for those of
//! `[all]`. Of a list of hosts the master has the first available one report, and tells it so with
//! its announcement. external.rs runs the elims. See melim(8).

use super::facts::{self, Instance, Reporter};
use crate::conf::BaseConf;
use crate::model::Now;
use crate::proto::lim::{HostLoad, INDEX_NAMES};
use std::collections::BTreeSet;

/// Longest time that the elims of a host continue unchanged after a change of master, until the
/// reporters of lists are decided, seconds.
pub const SETTLE_SECS: u64 = 5;

/// The known state of elims.
#[derive(Debug, Default)]
pub struct Elims {
    pub(super) instances: Vec<Instance>,
    /// The host that reports each instance of a list, as the master decided.
    pub(super) first: Vec<Option<String>>,
    /// The resources that the master expects from this host.
    pub(super) told: Vec<String>,
    /// The instant before which the reporters of lists are not decided.
    pub(super) settled_by: Option<u64>,
    /// The last report of this host's melim.
    pub own: Vec<(String, String)>,
    /// A report that waits for the next look-out, and when that is.
    pub(super) late: Option<String>,
    pub(super) look_at: u64,
    /// The last order to the runner: the resources, and whether this is the master.
    pub(super) run: (Vec<String>, bool),
}

impl Elims {
    pub fn configure(&mut self, base: &BaseConf) {
        self.instances = facts::dynamic_instances(base);
        self.first = vec![None; self.instances.len()];
    }

    /// Forgets where lists are reported: there is another master.
    pub fn unsettle(&mut self, now: Now) {
        self.first.fill(None);
        let lists = self.instances.iter().any(|i| i.reporter == Reporter::First);
        self.settled_by = lists.then(|| now.after(SETTLE_SECS));
    }

    /// The decision of the master for this host.
    pub fn decided(&mut self, report: Vec<String>) {
        (self.told, self.settled_by) = (report, None);
    }

    pub fn settling(&self) -> bool {
        self.settled_by.is_some()
    }

    pub fn settled_by(&self) -> Option<u64> {
        self.settled_by
    }

    /// The resources of lists that a host is to report.
    pub fn of(&self, host: &str) -> Vec<String> {
        let own = self.first.iter().zip(&self.instances);
        let own = own.filter(|(first, _)| first.as_deref() == Some(host));
        own.map(|(_, i)| i.resource.clone()).collect()
    }

    /// The values of this host have changed: those who share them are to be told.
    pub fn touch(&self, host: &str, fresh: &mut BTreeSet<String>) {
        for i in self.instances.iter().filter(|i| i.hosts.iter().any(|h| h == host)) {
            if i.reporter != Reporter::Each {
                fresh.extend(i.hosts.iter().cloned());
            }
        }
    }

    /// The resources that the elims of `host` must report.
    pub(super) fn expected(&self, host: &str, master: bool) -> Vec<String> {
        let mine = if master { self.of(host) } else { self.told.clone() };
        let mut names = Vec::new();
        for i in &self.instances {
            let wanted = match i.reporter {
                Reporter::Each => i.hosts.iter().any(|h| h == host),
                Reporter::Master => master,
                Reporter::First => mine.contains(&i.resource),
            };
            if wanted && !names.contains(&i.resource) {
                names.push(i.resource.clone());
            }
        }
        names
    }
}

/// Values of built-in indices that elims report stand above those measured.
pub fn override_built_in(load: &mut HostLoad) {
    for (name, value) in &load.external {
        if let Some(i) = INDEX_NAMES.iter().position(|n| n == name)
            && let Ok(value) = value.parse()
        {
            load.index[i] = value;
        }
    }
}
