//! External indices: which resources the elims of this host are to report, and what the elims of
//! all hosts make the values of each host.
//!
//! Every host runs elims for what `[default]` maps, the master besides for what `[all]` maps. Of a
//! list of hosts the master has the first available one report, and tells it so with its
//! announcement. LIM looks for what melim reports every ELIM_POLL_INTERVAL; of the reports that
//! came meanwhile, each of which is complete, the last counts. See melim(8).

use super::facts::{self, Instance, Reporter};
use super::machine::{Known, Lim};
use super::melim;
use crate::conf::BaseConf;
use crate::model::Now;
use crate::model::time::US;
use crate::proto::Effect;
use crate::proto::lim::{HostLoad, INDEX_NAMES, SharedRow, status};
use std::collections::BTreeSet;

/// After a change of master the elims of a host run on as they do, until it is decided where lists
/// are reported: for so long at most, seconds.
pub const SETTLE_SECS: u64 = 5;

/// The known state of elims.
#[derive(Debug, Default)]
pub struct Elims {
    instances: Vec<Instance>,
    /// Of each instance of a list the host that reports it, as master.
    first: Vec<Option<String>>,
    /// The resources that the master expects from this host.
    told: Vec<String>,
    /// Until then it is not decided where lists are reported.
    settled_by: Option<u64>,
    /// The last report of this host's melim.
    pub own: Vec<(String, String)>,
    /// A report that waits for the next look-out, and when that is.
    late: Option<String>,
    look_at: u64,
    /// The last order to the runner: the resources, and whether this is the master.
    run: (Vec<String>, bool),
}

impl Elims {
    pub fn configure(&mut self, base: &BaseConf) {
        self.instances = facts::dynamic_instances(base);
        self.first = vec![None; self.instances.len()];
    }

    /// Nothing is known of where lists are reported: there is another master.
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
    fn expected(&self, host: &str, master: bool) -> Vec<String> {
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

fn value_in<'a>(load: &'a HostLoad, name: &str) -> Option<&'a str> {
    load.external.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
}

impl Lim {
    /// Decides where lists are reported once nobody is waited for any more.
    pub(super) fn settle_elims(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.elims.settled_by.is_some_and(|at| at <= now.mono_us) {
            // no word of a master: it wants nothing of this host
            self.elims.decided(Vec::new());
            self.update_elims(now, out);
        }
    }

    /// Whether the first host of each list is there: no other one can come before it.
    fn firsts_are_known(&self) -> bool {
        let lists = self.elims.instances.iter().filter(|i| i.reporter == Reporter::First);
        let live = |h: &String| self.hosts.get(h).is_some_and(|k| !k.load.unavailable());
        lists.map(|i| i.hosts.first()).all(|h| h.is_none_or(live))
    }

    /// Finds the reporters anew and has this host's elims run as they are needed.
    pub(super) fn update_elims(&mut self, now: Now, out: &mut Vec<Effect>) {
        let master = self.is_master();
        if master && self.firsts_are_known() {
            self.elims.settled_by = None;
        }
        if self.elims.settled_by.is_some_and(|at| now.mono_us < at) {
            return;
        }
        let mut news = BTreeSet::new();
        for n in 0..self.elims.instances.len() {
            let i = &self.elims.instances[n];
            let live = |h: &&String| self.hosts.get(*h).is_some_and(|k| !k.load.unavailable());
            let list = i.reporter == Reporter::First && master;
            let first = i.hosts.iter().find(live).filter(|_| list).cloned();
            if first != self.elims.first[n] {
                self.fresh.extend(i.hosts.iter().cloned());
                news.extend(std::mem::replace(&mut self.elims.first[n], first));
                news.extend(self.elims.first[n].clone());
            }
        }
        news.remove(&self.host);
        for host in news {
            self.announce_to(&host, true, out);
        }
        let run = (self.elims.expected(&self.host, master), master);
        let idle = run.0.is_empty() && self.elims.run.0.is_empty();
        if run != self.elims.run && !idle {
            let (resources, master) = run.clone();
            self.elims.own.retain(|(name, _)| resources.contains(name));
            out.push(Effect::Melim { resources, master });
        }
        self.elims.run = run;
    }

    /// A report of this host's melim.
    pub(super) fn external(&mut self, now: Now, line: String, out: &mut Vec<Effect>) {
        self.elims.late = Some(line);
        self.look_for_reports(now, out);
    }

    /// The instant of the next look-out, where there is something to see.
    pub(super) fn next_look(&self) -> Option<u64> {
        self.elims.late.as_ref().map(|_| self.elims.look_at)
    }

    pub(super) fn look_for_reports(&mut self, now: Now, out: &mut Vec<Effect>) {
        if now.mono_us < self.elims.look_at {
            return;
        }
        let Some(line) = self.elims.late.take() else { return };
        let pause = self.base.cluster.params.elim_poll_interval * US as f64;
        self.elims.look_at = now.mono_us + pause as u64;
        self.reported(now, &line, out);
    }

    fn reported(&mut self, now: Now, line: &str, out: &mut Vec<Effect>) {
        let Ok(values) = melim::parse(line, &self.base.shared) else { return };
        if self.elims.own == values {
            return;
        }
        self.elims.own.clone_from(&values);
        let Some(known) = self.hosts.get(&self.host) else { return };
        let load = HostLoad { external: values, ..known.load.clone() };
        let (host, facts) = (self.host.clone(), known.found.clone());
        self.record(now, &host, HostLoad { facts, ..load }, out);
        self.beat(out);
    }

    /// The value of an instance for a host that has it.
    fn value_of(&self, n: usize, host: &str) -> Option<&str> {
        let i = &self.elims.instances[n];
        let from = match i.reporter {
            Reporter::Each => host,
            Reporter::Master => &self.host,
            Reporter::First => self.elims.first[n].as_deref()?,
        };
        let known = self.hosts.get(from).filter(|k| !k.load.unavailable())?;
        value_in(&known.load, &i.resource)
    }

    /// A host as others are to see it: with the values that it shares, and how they stand to
    /// its thresholds.
    pub(super) fn shown(&self, known: &Known) -> HostLoad {
        let mut load = known.load.clone();
        self.adjust(known, &mut load);
        load.external.clear();
        for (n, i) in self.elims.instances.iter().enumerate() {
            if i.hosts.contains(&load.host)
                && let Some(value) = self.value_of(n, &load.host)
            {
                load.external.push((i.resource.clone(), value.to_owned()));
            }
        }
        for (name, limit) in &known.limits {
            let Some(at) = load.external.iter().position(|(n, _)| n == name) else { continue };
            let Ok(value) = load.external[at].1.parse::<f64>() else { continue };
            let def = self.base.shared.resources.iter().find(|r| r.name == *name);
            let up = def.and_then(|d| d.increasing).unwrap_or(false);
            let beyond = if up { value > *limit } else { value < *limit };
            if beyond && INDEX_NAMES.len() + at < u32::BITS as usize {
                load.over |= 1 << (INDEX_NAMES.len() + at);
                load.status |= status::BUSY;
            }
        }
        load
    }

    /// All shared resources, the static ones first.
    pub(super) fn shared_rows(&self) -> Vec<SharedRow> {
        let mut rows = facts::shared_rows(&self.base);
        for (n, i) in self.elims.instances.iter().enumerate() {
            if i.reporter != Reporter::Each {
                let value = self.value_of(n, &self.host).unwrap_or("-").to_owned();
                let (name, hosts) = (i.resource.clone(), i.hosts.clone());
                rows.push(SharedRow { name, value, hosts, dynamic: true });
            }
        }
        rows
    }
}

#[cfg(test)]
#[path = "elims_tests.rs"]
mod tests;
