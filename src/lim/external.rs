//! The elims of this host: the resources they are to report, and their reports.
//!
//! LIM looks for reports of melim every ELIM_POLL_INTERVAL; of the reports that came meanwhile,
//! each of which is complete, the last counts. See melim(8).

use super::facts::Reporter;
use super::melim;
use super::state::Lim;
use crate::model::Now;
use crate::model::time::US;
use crate::proto::Effect;
use crate::proto::lim::HostLoad;
use std::collections::BTreeSet;

impl Lim {
    /// Decides where lists are reported once no report is awaited any more.
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
}

#[cfg(test)]
#[path = "external_tests.rs"]
mod tests;
