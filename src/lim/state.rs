//! The state of a LIM: its configuration, the hosts with their readings, its subscribers. The files
//! above it act on it: readings.rs keeps and shows readings, external.rs runs elims, join.rs lets
//! hosts in, orders.rs takes orders; machine.rs has the turn and calls them all.

use super::local::LocalHost;
use super::{Election, copies, elims, facts, meter};
use crate::conf::BaseConf;
use crate::model::time::US;
use crate::proto::lim::{HostFacts, HostLoad, INDEX_NAMES, LimMsg, status};
use crate::proto::machine::ConnId;
use crate::proto::{Effect, Msg, Peer};
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};

/// A host as the master knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownHost {
    pub(super) load: HostLoad,
    /// The properties that its LIM measured.
    pub(super) found: Option<HostFacts>,
    /// Last news, microseconds; None: never.
    pub(super) heard: Option<u64>,
    /// Since when it is away, as far as this LIM has seen; the beginning at least.
    pub(super) gone: Option<u64>,
    /// The peer's copies of the configuration beside ours.
    pub(super) differ: copies::Differences,
    /// The master's administrator has locked the host.
    pub(super) locked: bool,
    /// An exclusive job has locked the host.
    pub(super) exclusive: bool,
    /// When tasks were sent there, and how many.
    pub(super) adjusted: Vec<(u64, u32)>,
    /// Busy thresholds of external indices.
    pub(super) limits: Vec<(String, f64)>,
}

/// One subscriber.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sub {
    pub(super) loads: bool,
    /// The LIM of a candidate gets the facts about hosts, so that it knows them when it becomes
    /// master.
    pub(super) facts: bool,
}

/// The machine.
pub struct Lim {
    pub(super) host: String,
    pub(super) zone: TimeZone,
    pub(super) base: BaseConf,
    pub(super) election: Election,
    pub(super) meter: meter::Meter,
    /// This host's copies of the configuration.
    pub(super) copies: copies::Copies,
    pub(super) hosts: BTreeMap<String, KnownHost>,
    pub(super) elims: elims::Elims,
    /// Hosts that are not as they were at the last turn.
    pub(super) learned: BTreeSet<String>,
    /// Hosts with news since the last turn.
    pub(super) fresh: BTreeSet<String>,
    pub(super) peers: BTreeMap<ConnId, Peer>,
    pub(super) subs: BTreeMap<ConnId, Sub>,
    pub(super) local: LocalHost,
    pub(super) joining: Joining,
    pub(super) sample_at: u64,
    pub(super) beat_at: u64,
    pub(super) beats: u32,
    /// The next announcement between two turns.
    pub(super) call_at: u64,
    pub(super) sampled: bool,
}

/// The state of a host that may join the cluster.
#[derive(Debug, Default)]
pub struct Joining {
    /// The time from which it asks to join.
    pub from: u64,
    /// The last refusal.
    pub(super) refused: String,
    /// The hosts that this host, as master, has logged.
    pub(super) told: BTreeSet<String>,
}

impl Lim {
    /// The LIM of `host`, which is spelled as in lsf.cluster; run windows are in UTC.
    pub fn new(base: BaseConf, host: &str) -> Self {
        let mut lim = Lim {
            zone: TimeZone::UTC,
            host: host.to_owned(),
            election: Election::default(),
            meter: meter::Meter::default(),
            copies: Vec::new(),
            hosts: BTreeMap::new(),
            elims: elims::Elims::default(),
            learned: BTreeSet::new(),
            fresh: BTreeSet::new(),
            peers: BTreeMap::new(),
            subs: BTreeMap::new(),
            local: LocalHost::default(),
            joining: Joining::default(),
            sample_at: 0,
            beat_at: 0,
            beats: 0,
            call_at: u64::MAX,
            sampled: false,
            base: BaseConf::default(),
        };
        lim.configure(base, &mut Vec::new());
        lim
    }

    /// Sets the time zone of run windows.
    pub fn with_zone(mut self, zone: TimeZone) -> Self {
        self.zone = zone;
        self
    }

    /// Takes a configuration: hosts that left are forgotten, new ones are without news.
    pub(super) fn configure(&mut self, base: BaseConf, out: &mut Vec<Effect>) {
        self.election = Election::new(&base).on(&self.host, &self.election, out);
        self.base = base;
        let mut old = std::mem::take(&mut self.hosts);
        for def in &self.base.cluster.hosts {
            let mut known = old.remove(&def.name).unwrap_or_else(|| KnownHost {
                load: HostLoad {
                    host: def.name.clone(),
                    status: status::UNAVAIL,
                    ..HostLoad::default()
                },
                ..KnownHost::default()
            });
            let facts = facts::of_host(&self.base, &def.name, known.found.as_ref());
            known.load.facts = Some(facts);
            let own = |(name, _): &&(String, f64)| !INDEX_NAMES.contains(&name.as_str());
            known.limits = def.thresholds.iter().filter(own).cloned().collect();
            self.hosts.insert(def.name.clone(), known);
        }
        self.fresh = self.hosts.keys().cloned().collect();
        self.elims.configure(&self.base);
    }

    pub(super) fn is_master(&self) -> bool {
        self.election.is_master()
    }

    #[cfg(test)]
    pub(super) fn election_master(&self) -> Option<&str> {
        self.election.master()
    }

    pub(super) fn interval_us(&self) -> u64 {
        self.base.cluster.params.exinterval.max(1) * US
    }

    /// How long a host may be without news.
    pub(super) fn inactive_us(&self) -> u64 {
        self.base.cluster.params.host_inactivity_limit.max(1) * self.interval_us()
    }

    pub(super) fn announce_to(&self, host: &str, want: bool, out: &mut Vec<Effect>) {
        let cluster = self.base.name.clone();
        let (report, undecided) = (self.elims.of(host), self.is_master() && self.elims.settling());
        let msg = Msg::Lim(LimMsg::Announce { cluster, want, report, undecided });
        out.push(Effect::Datagram { to: host.to_owned(), msg });
    }

    /// Is this host a candidate?
    pub(super) fn election_has(&self, host: &str) -> bool {
        self.election.candidates().iter().any(|c| c == host)
    }
}

pub(super) fn say(out: &mut Vec<Effect>, level: log::Level, text: String) {
    out.push(Effect::Say { level, text });
}
