//! The LIM of one host as a state machine.
//!
//! Every LIM measures its host each [`SAMPLE_SECS`] (or EXINTERVAL, where that is shorter), shows
//! each index anew at the index's own interval and sends a beat to the master each EXINTERVAL. The
//! master keeps the newest reading of every host, asks one that is silent for HOST_INACTIVITY_LIMIT
//! x EXINTERVAL, takes it as unavailable after RETRY_LIMIT x EXINTERVAL more, and pushes what
//! changed to its subscribers. A LIM that is not master knows its own host only and points
//! elsewhere for the rest. The election of the master is in [`super::election`].
//!
//! Invariants: a reading is kept under the name of its authenticated sender, never under the one it
//! claims; facts come from this LIM's own configuration, only what was measured from the sender.
//! See lim(8).

use super::state::{KnownHost, Lim, Sub, say};
use super::{election, facts, orders};
use crate::conf::BaseConf;
use crate::model::Now;
use crate::model::reason::err;
use crate::model::time::US;
use crate::proto::lim::{HostLoad, LimMsg, LoadSample, status};
use crate::proto::machine::ConnId;
use crate::proto::{Daemon, Effect, Input, LockRecord, Machine, Msg, Peer, Refusal, caps};
use std::collections::BTreeSet;

/// Seconds between two measurements.
pub const SAMPLE_SECS: u64 = 5;

/// Beats after the start that are one second apart, so that a young cluster knows itself soon.
const EAGER_BEATS: u32 = 10;

/// Most connections that may subscribe.
const MAX_SUBSCRIBERS: usize = 4096;

impl Lim {
    fn start(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.sample_at = now.after(self.sample_secs());
        self.beat_at = now.after(1);
        self.local.start(now.mono_us);
        self.start_joining(now);
        self.elims.unsettle(now);
        out.push(Effect::Sample);
        say(out, log::Level::Info, format!("started on {}", self.host));
        if self.election.start(now.mono_us, out) {
            self.elected(now, out);
        }
        self.seek(now, out);
    }

    /// The master is another one than before: tells all who want to know.
    fn elected(&mut self, now: Now, out: &mut Vec<Effect>) {
        let master = self.election.master().unwrap_or("nobody");
        say(out, log::Level::Info, format!("master is {master}"));
        for &conn in self.subs.keys() {
            out.push(Effect::Send { conn, msg: self.who(now) });
        }
        // what others told us is old, or was never told
        for (_, known) in self.hosts.iter_mut().filter(|(name, _)| **name != self.host) {
            known.load.status |= status::UNAVAIL;
            (known.heard, known.gone) = (None, Some(now.mono_us));
        }
        self.elims.unsettle(now);
        self.update_elims(now, out);
        if self.is_master() {
            out.push(Effect::Recall(LockRecord::Locks));
            (self.beats, self.beat_at) = (0, now.after(1));
            self.call(now, true, out);
        } else {
            self.call_at = u64::MAX;
            self.beat(out);
        }
    }

    /// The launcher has listed this host's daemons.
    fn daemons_listed(&mut self, now: Now, msg: &Msg, out: &mut Vec<Effect>) {
        if self.daemons(now, msg, out) {
            self.stand_back(now, out);
        }
    }

    /// No mbatchd can work here: another candidate is to be master, where there is one.
    fn stand_back(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.election.stand_back(now.mono_us, out) {
            let secs = election::AWAY_SECS;
            let text = format!("mbatchd hangs here: no candidate for master for {secs} s");
            say(out, log::Level::Error, text);
            self.elected(now, out);
        }
    }

    /// Announces this master; the next time before the next turn where that would be too late
    /// for those who wait for it.
    fn call(&mut self, now: Now, want: bool, out: &mut Vec<Effect>) {
        let told = self.announce(want, out);
        let pause = election::pause(&self.base);
        // where there is nobody else, the next exchange sees whether there is by then
        let again = told && pause < self.interval_us();
        self.call_at = if again { now.mono_us + pause } else { u64::MAX };
    }

    /// Tells every other server who is master, if there are any; `want`: and asks for its reading.
    fn announce(&self, want: bool, out: &mut Vec<Effect>) -> bool {
        let servers = self.base.cluster.hosts.iter().filter(|h| h.server && h.name != self.host);
        let mut told = false;
        for def in servers {
            self.announce_to(&def.name, want, out);
            told = true;
        }
        told
    }

    /// Asks the candidates who is master, while that is not known.
    fn seek(&self, now: Now, out: &mut Vec<Effect>) {
        let Some(question) = self.question(now) else { return };
        for host in self.election.to_ask(now.mono_us, self.beats as usize) {
            let msg = Msg::Lim(question.clone());
            out.push(Effect::Datagram { to: host.clone(), msg });
        }
    }

    fn sample_secs(&self) -> u64 {
        SAMPLE_SECS.min(self.base.cluster.params.exinterval.max(1))
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Effect>) {
        if now.mono_us >= self.sample_at {
            self.sample_at = now.after(self.sample_secs());
            out.push(Effect::Sample);
        }
        self.look_for_res(now, out);
        self.look_for_reports(now, out);
        self.settle_elims(now, out);
        if self.election.tick(now, out) {
            self.elected(now, out);
        }
        if now.mono_us >= self.beat_at {
            self.turn(now, out);
        }
        if now.mono_us >= self.call_at {
            self.call(now, false, out);
        }
    }

    /// One exchange: tell the master, or as master look for the silent and tell subscribers.
    fn turn(&mut self, now: Now, out: &mut Vec<Effect>) {
        let eager = self.beats < EAGER_BEATS;
        self.beats = self.beats.saturating_add(1);
        self.beat_at =
            now.mono_us + if eager { self.interval_us().min(US) } else { self.interval_us() };
        if !self.is_master() {
            self.seek(now, out);
            return self.beat(out);
        }
        self.find_silent(now, out);
        self.expire(now, out);
        self.update_elims(now, out);
        self.call(now, false, out);
        let fresh = std::mem::take(&mut self.fresh);
        self.push(&fresh, out);
        let learned = std::mem::take(&mut self.learned);
        let taught = self.subs.iter().filter(|(_, s)| s.facts).map(|(conn, _)| *conn);
        self.teach(&learned, &taught.collect::<Vec<_>>(), out);
    }

    /// Tells these connections what was measured of these hosts.
    fn teach(&self, names: &BTreeSet<String>, conns: &[ConnId], out: &mut Vec<Effect>) {
        let of = |name: &String| {
            let found = self.hosts.get(name)?.found.clone()?;
            Some(HostLoad { host: name.clone(), facts: Some(found), ..HostLoad::default() })
        };
        let hosts: Vec<HostLoad> = names.iter().filter_map(of).collect();
        for &conn in conns.iter().filter(|_| !hosts.is_empty() && self.is_master()) {
            let msg = Msg::Lim(LimMsg::Loads { hosts: hosts.clone() });
            out.push(Effect::Send { conn, msg });
        }
    }

    /// The properties of hosts from the master, for the time when this host is master.
    fn learn(&mut self, hosts: Vec<HostLoad>) {
        for HostLoad { host, facts, .. } in hosts {
            let new = |known: &&mut KnownHost| host != self.host && known.found != facts;
            if let (Some(known), Some(found)) = (self.hosts.get_mut(&host).filter(new), &facts) {
                known.load.facts = Some(facts::of_host(&self.base, &host, Some(found)));
                known.found = facts;
            }
        }
    }

    fn find_silent(&mut self, now: Now, out: &mut Vec<Effect>) {
        let (quiet, retry) = (self.inactive_us(), self.base.cluster.params.retry_limit);
        // a host beats once an interval: it is asked for one at least
        let limit = quiet + retry.max(1) * self.interval_us();
        let mut asked = Vec::new();
        for (name, known) in &mut self.hosts {
            let silent = known.heard.map_or(u64::MAX, |at| now.mono_us.saturating_sub(at));
            let server = known.load.facts.as_ref().is_some_and(|f| f.server);
            if silent >= quiet && server && *name != self.host {
                asked.push(name.clone());
            }
            if known.load.unavailable() || silent < limit {
                continue;
            }
            known.load.status |= status::UNAVAIL;
            known.gone = Some(now.mono_us);
            self.fresh.insert(name.clone());
            let secs = limit / US;
            say(out, log::Level::Warn, format!("no message from {name} for {secs} s: unavailable"));
        }
        for name in asked {
            self.announce_to(&name, true, out);
        }
    }

    fn sample(&mut self, now: Now, sample: &LoadSample, out: &mut Vec<Effect>) {
        self.meter.take(now.mono_us, sample);
        self.copies.clone_from(&sample.copies);
        let load = HostLoad {
            host: self.host.clone(),
            index: self.meter.shown(),
            boot_id: sample.boot_id.clone(),
            facts: Some(sample.facts.clone()),
            external: self.elims.own.clone(),
            ..HostLoad::default()
        };
        let first = !std::mem::replace(&mut self.sampled, true);
        let host = self.host.clone();
        self.record(now, &host, load, out);
        if first {
            self.update_elims(now, out);
            self.beat(out);
        }
    }

    fn datagram(&mut self, now: Now, from: &str, msg: Msg, out: &mut Vec<Effect>) {
        let known = self.base.hosts.canonical(from).map(str::to_owned);
        let Some(from) = known.filter(|_| !matches!(msg, Msg::Lim(LimMsg::Join { .. }))) else {
            return self.asks_in(now, from, msg, out);
        };
        match msg {
            Msg::Lim(LimMsg::NotJoined { why }) => self.not_joined(&from, why, out),
            Msg::Lim(LimMsg::Beat { load }) if self.is_master() && from != self.host => {
                self.record(now, &from, *load, out);
            }
            Msg::Lim(LimMsg::Announce { cluster, want, report, undecided })
                if cluster == self.base.name =>
            {
                let new = self.election.announced(now.mono_us, &from, out);
                if new {
                    self.elected(now, out);
                }
                if self.election.master() == Some(from.as_str()) && !undecided {
                    self.elims.decided(report);
                    self.update_elims(now, out);
                }
                if !new && self.is_master() {
                    self.announce_to(&from, true, out);
                } else if !new && want && self.election.master() == Some(from.as_str()) {
                    self.beat(out);
                }
            }
            Msg::Lim(LimMsg::WhoIsMaster) if self.is_master() => {
                self.announce_to(&from, true, out);
            }
            _ => {}
        }
    }

    /// A message of the master over the permanent connection.
    fn take_master_message(&mut self, now: Now, conn: ConnId, msg: Msg, out: &mut Vec<Effect>) {
        if let Msg::Lim(msg) = &msg
            && let Err(r) = caps::check_lim(msg)
        {
            say(out, log::Level::Warn, format!("the master LIM: {}; closed", r.text));
            out.push(Effect::Close { conn });
            return self.lost(now, conn, false, out);
        }
        if let Msg::Lim(LimMsg::Loads { hosts }) = msg {
            return self.learn(hosts);
        }
        if let Msg::Lim(LimMsg::Master { cluster, master }) = msg
            && cluster == self.base.name
            && self.election.answered(now.mono_us, conn, &master, out)
        {
            self.elected(now, out);
        }
    }

    fn lost(&mut self, now: Now, conn: ConnId, refused: bool, out: &mut Vec<Effect>) {
        self.peers.remove(&conn);
        self.subs.remove(&conn);
        if self.election.failed(now.mono_us, conn, refused, out) {
            self.elected(now, out);
        }
    }

    fn request(&mut self, now: Now, conn: ConnId, msg: LimMsg, out: &mut Vec<Effect>) {
        if let Err(r) = caps::check_lim(&msg) {
            return out.push(Effect::Send { conn, msg: Msg::Refused(r) });
        }
        let answer = match msg {
            LimMsg::WhoIsMaster => self.who(now),
            LimMsg::Subscribe { loads } => return self.subscribe(now, conn, loads, out),
            // Only the master knows the others.
            LimMsg::Hosts { .. } | LimMsg::Shared if !self.is_master() => self.who(now),
            LimMsg::Hosts { hosts } => self.listed(&hosts),
            LimMsg::Exclusive { hosts } => return self.exclusive(conn, &hosts, out),
            LimMsg::Shared => Msg::Lim(LimMsg::SharedRows { rows: self.shared_rows() }),
            LimMsg::Config => {
                Msg::Lim(LimMsg::Settings { rows: crate::conf::settings(&self.base.lsf) })
            }
            other => self.order(now, conn, other, out),
        };
        out.push(Effect::Send { conn, msg: answer });
    }

    fn who(&self, now: Now) -> Msg {
        let master = self.election.told(now.mono_us).unwrap_or_default().to_owned();
        Msg::Lim(LimMsg::Master { cluster: self.base.name.clone(), master })
    }

    /// The hosts asked for, in that order; all of lsf.cluster in its order for none.
    fn listed(&self, asked: &[String]) -> Msg {
        let mut hosts = Vec::new();
        if asked.is_empty() {
            let all = self.base.cluster.hosts.iter().filter_map(|d| self.hosts.get(&d.name));
            hosts.extend(all.map(|k| self.shown(k)));
        }
        let mut seen = BTreeSet::new();
        for name in asked {
            let Some(known) = self.base.hosts.canonical(name).and_then(|n| self.hosts.get(n))
            else {
                return Msg::Refused(Refusal::about(err::BAD_HOST, name.as_str()));
            };
            if seen.insert(&known.load.host) {
                hosts.push(self.shown(known));
            }
        }
        Msg::Lim(LimMsg::Loads { hosts })
    }

    fn subscribe(&mut self, now: Now, conn: ConnId, loads: bool, out: &mut Vec<Effect>) {
        let daemon = matches!(self.peers.get(&conn), Some(Peer::Daemon { .. }));
        if !daemon {
            let msg = Msg::Refused(Refusal::new(err::PERMISSION));
            return out.push(Effect::Send { conn, msg });
        }
        if self.subs.len() >= MAX_SUBSCRIBERS && !self.subs.contains_key(&conn) {
            let msg = Msg::Refused(Refusal::new(err::BUSY));
            return out.push(Effect::Send { conn, msg });
        }
        let facts = matches!(self.peers.get(&conn), Some(Peer::Daemon { daemon: Daemon::Lim, .. }));
        self.subs.insert(conn, Sub { loads, facts });
        out.push(Effect::Send { conn, msg: self.who(now) });
        if facts {
            let all: BTreeSet<String> = self.hosts.keys().cloned().collect();
            self.teach(&all, &[conn], out);
        }
        if loads {
            let hosts = self.hosts.values().map(|k| self.shown(k)).collect();
            out.push(Effect::Send { conn, msg: Msg::Lim(LimMsg::Loads { hosts }) });
        }
    }

    fn reconfigured(&mut self, now: Now, conf: Option<BaseConf>, out: &mut Vec<Effect>) {
        let Some(base) = conf else {
            return say(
                out,
                log::Level::Error,
                "bad configuration; the old one is kept".to_owned(),
            );
        };
        let before = self.election.master().map(str::to_owned);
        self.configure(base, out);
        let claimed = self.election.claim(now.mono_us, out);
        if claimed || before.as_deref() != self.election.master() {
            self.elected(now, out);
        }
        let fresh = std::mem::take(&mut self.fresh);
        self.push(&fresh, out);
    }
}

impl Machine for Lim {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        self.local.now = now.mono_us;
        match input {
            Input::Start => self.start(now, out),
            Input::Tick => self.tick(now, out),
            Input::Sample(sample) => self.sample(now, &sample, out),
            Input::Members(all) => self.members(now, all, out),
            Input::Kept { what, text } => self.kept(now, what, &text, out),
            Input::External(line) => self.external(now, line, out),
            Input::Datagram { from, msg } => self.datagram(now, &from, msg, out),
            Input::Opened { conn, .. } if self.election.owns(conn) => {
                self.election.opened(conn, out);
            }
            Input::Opened { conn, .. } if conn == orders::LAUNCHER => self.ask_launcher(out),
            Input::Opened { conn, peer } => {
                self.peers.insert(conn, peer);
            }
            Input::Closed { conn } => self.lost(now, conn, false, out),
            Input::ConnectFailed { conn, refused, .. } => self.lost(now, conn, refused, out),
            Input::Msg { conn, msg } if self.election.owns(conn) => {
                self.take_master_message(now, conn, msg, out);
            }
            Input::Msg { conn: orders::LAUNCHER, msg } => self.daemons_listed(now, &msg, out),
            Input::Msg { conn, msg: Msg::Lim(msg) } => self.request(now, conn, msg, out),
            Input::Msg { conn, msg: Msg::Ping { n } } => {
                out.push(Effect::Send { conn, msg: Msg::Pong { n } });
            }
            Input::Msg { conn, msg: _ } => out.push(Effect::Close { conn }),
            Input::Config { conf, .. } => self.reconfigured(now, conf.map(|c| c.base), out),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<u64> {
        let own = self.sample_at.min(self.beat_at).min(self.call_at);
        let own =
            [self.next_look(), self.elims.settled_by()].into_iter().flatten().fold(own, u64::min);
        Some(self.election.deadline().map_or(own, |at| at.min(own)))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
