//! The master: the first live candidate, in the order of LSF_MASTER_LIST or lsf.cluster.
//!
//! The master announces itself every EXINTERVAL. Candidate number k (from 0) takes over after
//! (HOST_INACTIVITY_LIMIT + k x MASTER_INACTIVITY_LIMIT) x EXINTERVAL without an announcement (and
//! a second after the one before it, where MASTER_INACTIVITY_LIMIT is 0), having asked for
//! RETRY_LIMIT of them, when a last connection to the old master does not come about within
//! PROBE_TIMEOUT. The first [`FAST_RANKS`] candidates also keep a connection to the
//! master: where its host refuses it anew for [`REFUSED_SECS`] + k seconds, they do not wait for
//! the silence. A candidate that hears a worse one announce itself takes over from it; a master
//! that hears a better one yields. A master on whose host mbatchd hangs stands back: it is no
//! candidate for [`AWAY_SECS`], or until there is no master. In a partition each side has a master.
//!
//! Invariant: at most one connection is under way, and only while another host is master. See
//! lim(8).

use crate::conf::BaseConf;
use crate::model::Now;
use crate::model::time::US;
use crate::proto::lim::LimMsg;
use crate::proto::machine::ConnId;
use crate::proto::{Daemon, Effect, Endpoint, Msg};

/// Candidates up to this number keep a connection to the master.
pub const FAST_RANKS: usize = 8;
/// Seconds of refused connections after which the first candidate may take over; a later one
/// waits a second more for each before it.
pub const REFUSED_SECS: u64 = 1;
/// The least time by which a candidate waits longer for a silent master than the one before it,
/// microseconds.
const IN_ORDER: u64 = US;
/// Pause before a lost connection to the master is made again, microseconds.
const REDIAL: u64 = US / 2;
/// A host on which mbatchd hangs is no candidate for this long, while there is another master.
pub const AWAY_SECS: u64 = 600;
/// Most candidates asked in one round who is master.
pub const ASKED_AT_ONCE: usize = 32;

/// The connection to the master.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum MasterLink {
    /// Made again at this instant by those that keep one.
    Down {
        at: u64,
    },
    /// Given up at `until`; `last`: the decision rests on it.
    Asking {
        conn: ConnId,
        until: u64,
        last: bool,
    },
    Up {
        conn: ConnId,
    },
    #[default]
    None,
}

/// Announcements that fit into the time for which a master may be silent.
const CALLS: u64 = 3;

/// Between two announcements of a master, microseconds: EXINTERVAL, less where a silent master
/// is given up soon.
pub fn pause(base: &BaseConf) -> u64 {
    let p = &base.cluster.params;
    p.exinterval.max(1) * US * p.host_inactivity_limit.clamp(1, CALLS) / CALLS
}

/// The documented limits, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ElectionLimits {
    interval: u64,
    /// Between two announcements.
    pause: u64,
    silence: u64,
    step: u64,
    retry: u64,
    probe: u64,
}

/// The candidates and what is known of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Election {
    candidates: Vec<String>,
    /// This host's number among them; none while it stands back.
    rank: Option<usize>,
    /// This host's number among them, also while it stands back.
    own: Option<usize>,
    /// The host stands back until then at most.
    away: Option<u64>,
    /// The master's number, as far as this host can tell.
    master: usize,
    /// The host has sent a message.
    known: bool,
    /// The time of the master's last announcement, or of the beginning of the search.
    heard: u64,
    /// Since when the master's host refuses connections.
    refused: Option<u64>,
    link: MasterLink,
    next_conn: ConnId,
    rules: ElectionLimits,
}

impl Election {
    /// The election among the candidates of the configuration.
    pub fn new(base: &BaseConf) -> Self {
        let candidates = base.master_candidates();
        let p = &base.cluster.params;
        let interval = p.exinterval.max(1) * US;
        let rules = ElectionLimits {
            interval,
            pause: pause(base),
            silence: p.host_inactivity_limit * interval,
            step: p.master_inactivity_limit * interval,
            retry: p.retry_limit * interval,
            probe: p.probe_timeout.max(1) * US,
        };
        Election { candidates, rules, next_conn: 1, ..Election::default() }
    }

    /// This election as `host` sees it, with what `old` knew of the master.
    pub fn on(mut self, host: &str, old: &Election, out: &mut Vec<Effect>) -> Self {
        self.own = self.candidates.iter().position(|c| c == host);
        self.away = old.away;
        self.rank = self.own.filter(|_| self.away.is_none());
        (self.next_conn, self.heard) = (old.next_conn, old.heard);
        match old.master().and_then(|m| self.rank_of(m)) {
            Some(m) => {
                (self.master, self.known) = (m, old.known);
                (self.refused, self.link) = (old.refused, old.link);
            }
            None => old.clone().hang_up(out),
        }
        self
    }

    /// The candidates in their order.
    pub fn candidates(&self) -> &[String] {
        &self.candidates
    }

    fn rank_of(&self, host: &str) -> Option<usize> {
        self.candidates.iter().position(|c| c == host)
    }

    /// The master as far as this host can tell.
    pub fn master(&self) -> Option<&str> {
        self.candidates.get(self.master).map(String::as_str)
    }

    /// Is it this host?
    pub fn is_master(&self) -> bool {
        self.known && self.rank == Some(self.master)
    }

    /// The master's name for callers; empty after a silence that is too long.
    pub fn told(&self, now: u64) -> Option<&str> {
        let ElectionLimits { silence, retry, .. } = self.rules;
        let lost = !self.is_master() && now.saturating_sub(self.heard) > silence + retry;
        self.master().filter(|_| !lost)
    }

    /// The search begins. True: this host is master.
    pub fn start(&mut self, now: u64, out: &mut Vec<Effect>) -> bool {
        (self.heard, self.link) = (now, MasterLink::Down { at: now });
        self.claim(now, out)
    }

    /// After a change of the candidates. True: this host is master, and was not before.
    pub fn claim(&mut self, now: u64, out: &mut Vec<Effect>) -> bool {
        self.rank == Some(0) && !self.is_master() && self.take_over(now, out)
    }

    /// The hosts to ask in round `round` who is master; none while the master is known.
    pub fn to_ask(&self, now: u64, round: usize) -> impl Iterator<Item = &String> {
        let sure = self.is_master() || self.known && now < self.heard + self.rules.silence;
        let n = if sure { 0 } else { self.candidates.len().min(ASKED_AT_ONCE) };
        let from = if n == 0 { 0 } else { round * n % self.candidates.len() };
        let me = self.rank;
        let around = self.candidates.iter().enumerate().cycle().skip(from).take(n);
        around.filter(move |(i, _)| Some(*i) != me).map(|(_, name)| name)
    }

    /// A host announces itself as master. True: the master is another one now.
    pub fn announced(&mut self, now: u64, from: &str, out: &mut Vec<Effect>) -> bool {
        let Some(who) = self.rank_of(from).filter(|w| self.rank != Some(*w)) else { return false };
        let doubtful = !self.known || self.doubtful(now);
        match self.rank {
            // it will hear of us
            Some(me) if me < who && self.is_master() => false,
            Some(me) if me < who => (doubtful || self.master > me) && self.take_over(now, out),
            _ if who == self.master => {
                let first = !std::mem::replace(&mut self.known, true);
                (self.heard, self.refused) = (now, None);
                first
            }
            _ if who < self.master || doubtful => self.follow(now, who, true, out),
            _ => false,
        }
    }

    fn doubtful(&self, now: u64) -> bool {
        self.refused.is_some() || now >= self.heard + self.rules.pause + US
    }

    fn follow(&mut self, now: u64, who: usize, known: bool, out: &mut Vec<Effect>) -> bool {
        self.hang_up(out);
        (self.master, self.known, self.heard) = (who, known, now);
        (self.refused, self.link) = (None, MasterLink::Down { at: now });
        true
    }

    fn take_over(&mut self, now: u64, out: &mut Vec<Effect>) -> bool {
        let Some(me) = self.rank else { return false };
        self.follow(now, me, true, out);
        self.link = MasterLink::None;
        true
    }

    /// Leaves the place of the master to the next candidate; false where there is none.
    pub fn stand_back(&mut self, now: u64, out: &mut Vec<Effect>) -> bool {
        let Some(me) = self.rank.filter(|_| self.is_master() && self.candidates.len() > 1) else {
            return false;
        };
        self.follow(now, (me + 1) % self.candidates.len(), false, out);
        (self.rank, self.away, self.link) = (None, Some(now + AWAY_SECS * US), MasterLink::None);
        true
    }

    /// When a host that stands back is a candidate again: after its time, and as soon as there
    /// is no master.
    fn back_at(&self) -> Option<u64> {
        let ElectionLimits { silence, retry, .. } = self.rules;
        self.away.map(|at| at.min(self.heard + silence + retry.max(IN_ORDER)))
    }

    fn hang_up(&mut self, out: &mut Vec<Effect>) {
        if let MasterLink::Asking { conn, .. } | MasterLink::Up { conn } = self.link {
            out.push(Effect::Close { conn });
        }
        self.link = MasterLink::None;
    }

    fn dial(&mut self, now: u64, last: bool, out: &mut Vec<Effect>) {
        self.hang_up(out);
        let Some(host) = self.master().map(str::to_owned) else { return };
        let conn = self.next_conn;
        self.next_conn += 1;
        self.link = MasterLink::Asking { conn, until: now + self.rules.probe, last };
        out.push(Effect::Connect { conn, to: Endpoint::Tcp { host, daemon: Daemon::Lim } });
    }

    /// The instant at which a last question decides if no announcement comes.
    fn due(&self) -> Option<u64> {
        let ElectionLimits { silence, step, retry, .. } = self.rules;
        let wait = |k: u64| (k * step).max(retry).max(k.saturating_sub(1) * IN_ORDER);
        self.rank.map(|k| self.heard + silence + wait(k as u64))
    }

    /// Does what is due. True: this host has taken over.
    pub fn tick(&mut self, now: Now, out: &mut Vec<Effect>) -> bool {
        let now = now.mono_us;
        if self.back_at().is_some_and(|at| at <= now) {
            (self.rank, self.away, self.link) = (self.own, None, MasterLink::Down { at: now });
        }
        if self.is_master() || self.rank.is_none() {
            return false;
        }
        match self.link {
            MasterLink::Asking { conn, until, .. } if until <= now => {
                out.push(Effect::Close { conn });
                return self.failed(now, conn, false, out);
            }
            MasterLink::Asking { last: true, .. } => {}
            _ if self.due().is_some_and(|at| at <= now) => self.dial(now, true, out),
            MasterLink::Down { at } if at <= now && self.keeps() => self.dial(now, false, out),
            _ => {}
        }
        false
    }

    fn keeps(&self) -> bool {
        self.rank.is_some_and(|k| k <= FAST_RANKS)
    }

    /// The instant of the next thing to do.
    pub fn deadline(&self) -> Option<u64> {
        if self.is_master() || self.rank.is_none() {
            return self.back_at();
        }
        match self.link {
            MasterLink::Asking { until, last: true, .. } => Some(until),
            MasterLink::Asking { until, .. } => self.due().map(|at| at.min(until)),
            MasterLink::Down { at } if self.keeps() => self.due().map(|due| due.min(at)),
            _ => self.due(),
        }
    }

    /// Is this connection ours?
    pub fn owns(&self, id: ConnId) -> bool {
        matches!(self.link, MasterLink::Asking { conn, .. } | MasterLink::Up { conn } if conn == id)
    }

    /// The connection is there: ask whether it is the master's.
    pub fn opened(&self, conn: ConnId, out: &mut Vec<Effect>) {
        let msg = Msg::Lim(LimMsg::Subscribe { loads: false });
        out.push(Effect::Send { conn, msg });
    }

    /// The answer, at first or later. True: the master is another one now.
    pub fn answered(&mut self, now: u64, conn: ConnId, says: &str, out: &mut Vec<Effect>) -> bool {
        let who = self.rank_of(says);
        if who == Some(self.master) {
            (self.link, self.heard, self.refused) = (MasterLink::Up { conn }, now, None);
            return !std::mem::replace(&mut self.known, true);
        }
        match who.filter(|w| self.rank.is_none_or(|me| *w < me)) {
            Some(who) => self.follow(now, who, false, out),
            // it is there and does not want to be master
            None => {
                out.push(Effect::Close { conn });
                self.failed(now, conn, true, out)
            }
        }
    }

    /// The connection did not come about, or is gone. True: this host has taken over.
    pub fn failed(&mut self, now: u64, id: ConnId, refused: bool, out: &mut Vec<Effect>) -> bool {
        if !self.owns(id) {
            return false;
        }
        let last = matches!(self.link, MasterLink::Asking { last: true, .. });
        let was_up = matches!(self.link, MasterLink::Up { .. });
        let pause = match (was_up, refused) {
            (true, _) => 0,
            (_, true) => REDIAL,
            _ => self.rules.interval,
        };
        self.link = MasterLink::Down { at: now + pause };
        if !was_up {
            self.refused = if refused { self.refused.or(Some(now)) } else { None };
        }
        let wait = (REFUSED_SECS + self.rank.unwrap_or(0) as u64) * US;
        let dead = self.refused.is_some_and(|since| now >= since + wait);
        (last || dead) && self.take_over(now, out)
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
