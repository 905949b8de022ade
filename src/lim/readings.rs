//! The readings of hosts: how a new one is kept, and how a host is shown to others.

use super::facts::Reporter;
use super::state::{KnownHost, Lim, say};
use super::{elims, facts, meter};
use crate::lang::window::Windows;
use crate::model::Now;
use crate::model::time::US;
use crate::proto::lim::{HostLoad, INDEX_NAMES, LimMsg, QUEUE_INDICES, SharedRow, status};
use crate::proto::{Effect, Msg};
use jiff::tz::TimeZone;
use std::collections::BTreeSet;

/// Most external indices taken from one beat.
const MAX_EXTERNAL: usize = 1024;

impl Lim {
    /// Sends this host's reading to the master.
    pub(super) fn beat(&self, out: &mut Vec<Effect>) {
        let (Some(master), Some(known)) = (self.election.master(), self.hosts.get(&self.host))
        else {
            return;
        };
        if !self.sampled || master == self.host {
            return;
        }
        let mut load = Box::new(known.load.clone());
        load.facts.clone_from(&known.found);
        load.copies.clone_from(&self.copies);
        out.push(Effect::Datagram { to: master.to_owned(), msg: Msg::Lim(LimMsg::Beat { load }) });
    }

    /// Keeps the reading of `host`; a change of its status is reported at once.
    pub(super) fn record(
        &mut self,
        now: Now,
        host: &str,
        mut load: HostLoad,
        out: &mut Vec<Effect>,
    ) {
        self.compare(now, host, &mut load, out);
        let Some(known) = self.hosts.get_mut(host) else { return };
        if let Some(found) = load.facts.take() {
            if known.found.as_ref() != Some(&found) {
                self.learned.insert(host.to_owned());
                known.load.facts = Some(facts::of_host(&self.base, host, Some(&found)));
            }
            known.found = Some(found);
        }
        load.facts = known.load.facts.take();
        load.host = host.to_owned();
        load.status &= !(status::UNAVAIL | status::BUSY | status::LOCK_W);
        load.external.truncate(MAX_EXTERNAL);
        elims::override_built_in(&mut load);
        if known.load.external != load.external {
            self.elims.touch(host, &mut self.fresh);
        }
        if let Some(facts) = &load.facts {
            load.over = meter::over(&load.index, facts.ncpus, &facts.thresholds);
            if !window_open(&facts.run_window, now, &self.zone) {
                load.status |= status::LOCK_W;
            }
        }
        if load.over != 0 {
            load.status |= status::BUSY;
        }
        load.status &= !(status::LOCK_M | status::LOCK_X);
        if known.locked {
            load.status |= status::LOCK_M;
        }
        if known.exclusive {
            load.status |= status::LOCK_X;
        }
        if host == self.host {
            load.status |= self.local.status(now.mono_us);
        }
        let changed = known.load.status != load.status;
        known.load = load;
        known.heard = Some(now.mono_us);
        self.fresh.insert(host.to_owned());
        if changed {
            self.push(&BTreeSet::from([host.to_owned()]), out);
        }
    }

    /// Holds a host's copies of the configuration against ours; names of those that differ are
    /// all that is kept of them.
    fn compare(&mut self, now: Now, host: &str, load: &mut HostLoad, out: &mut Vec<Effect>) {
        let grace = self.inactive_us();
        let theirs = std::mem::take(&mut load.copies);
        let Some(known) = self.hosts.get_mut(host).filter(|_| host != self.host) else { return };
        let (new, gone) = known.differ.compare(&self.copies, &theirs, now.mono_us, grace);
        let me = &self.host;
        for name in new {
            let text = format!("{name} of host {host} differs from that of host {me}, the master");
            say(out, log::Level::Warn, text);
        }
        for name in gone {
            let text = format!("{name} of host {host} is as that of host {me} again");
            say(out, log::Level::Info, text);
        }
        load.copies = known.differ.told().iter().map(|n| (n.clone(), String::new())).collect();
    }

    /// Tells the subscribers these hosts.
    pub(super) fn push(&self, names: &BTreeSet<String>, out: &mut Vec<Effect>) {
        if names.is_empty() || !self.subs.values().any(|s| s.loads) {
            return;
        }
        let hosts: Vec<HostLoad> =
            names.iter().filter_map(|n| self.hosts.get(n)).map(|k| self.shown(k)).collect();
        for (&conn, _) in self.subs.iter().filter(|(_, s)| s.loads) {
            let msg = Msg::Lim(LimMsg::Loads { hosts: hosts.clone() });
            out.push(Effect::Send { conn, msg });
        }
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
    pub(super) fn shown(&self, known: &KnownHost) -> HostLoad {
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

    /// Run queues count as longer by the tasks on their way, less and less.
    fn adjust(&self, known: &KnownHost, load: &mut HostLoad) {
        let p = &self.base.cluster.params;
        let lasts = (p.adjust_duration * p.exinterval.max(1) * US) as f64;
        for (at, tasks) in &known.adjusted {
            let gone = self.local.now.saturating_sub(*at) as f64;
            let left = f64::from(*tasks) * (1.0 - gone / lasts.max(1.0)).max(0.0);
            load.index[..QUEUE_INDICES].iter_mut().for_each(|r| *r += left as f32);
        }
    }
}

pub(super) fn value_in<'a>(load: &'a HostLoad, name: &str) -> Option<&'a str> {
    load.external.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
}

/// Is this RUNWINDOW open? A malformed one counts as open; reading the configuration has reported
/// it.
fn window_open(text: &str, now: Now, zone: &TimeZone) -> bool {
    text.is_empty() || Windows::parse(text).map_or(true, |w| w.open_at(now.secs(), zone))
}
