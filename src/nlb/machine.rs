//! The machine of nlbserver: who is connected, what waits, and the link to LIM.

use super::server::NlbServer;
use crate::model::Now;
use crate::model::nlb::NLB;
use crate::model::reason::err;
use crate::model::time::US;
use crate::proto::lim::LimMsg;
use crate::proto::machine::{ConnId, INCOMING};
use crate::proto::nlb::NlbMsg;
use crate::proto::{Daemon, Effect, Endpoint, Input, Machine, Msg, Peer, Refusal};

/// Pause before a LIM is called again, microseconds.
const LIM_RETRY: u64 = US;
/// Most queries that wait for the first reports.
const MAX_HELD: usize = 1_000;
/// Most queries of one connection that wait for the first reports.
const MAX_HELD_OF_ONE: usize = 64;
/// Most changes that wait for the one under way.
const MAX_WAITING: usize = 64;

impl NlbServer {
    fn busy(&self, conn: ConnId, out: &mut Vec<Effect>) {
        let refusal = Refusal { again: 1, ..Refusal::text(err::BUSY, "busy, again in 1 s") };
        self.refuse(conn, refusal, out);
    }

    fn asked(&mut self, now: Now, conn: ConnId, msg: NlbMsg, out: &mut Vec<Effect>) {
        // one answer at a time: a caller asks again when it has read the last one
        if self.pieces.contains_key(&conn) {
            return self.busy(conn, out);
        }
        if !self.allowed(conn, &msg, out) {
            return;
        }
        match msg {
            NlbMsg::Query(query) if self.hold_until.is_some() => {
                let own = self.held.iter().filter(|(c, _)| *c == conn).count();
                if self.held.len() >= MAX_HELD || own >= MAX_HELD_OF_ONE {
                    return self.busy(conn, out);
                }
                self.held.push_back((conn, query));
            }
            NlbMsg::Query(query) => self.query(now, conn, query, out),
            NlbMsg::Map { object_type } => self.map(now, conn, &object_type, out),
            NlbMsg::List(which) => self.list(conn, &which, out),
            NlbMsg::Dump(which) => self.dump(conn, &which, out),
            NlbMsg::Status => self.status(now, conn, out),
            NlbMsg::Watch => {
                self.watchers.insert(conn);
                self.tell_watcher(conn, out);
            }
            NlbMsg::Check(file) => self.check(conn, &file, out),
            NlbMsg::Report(report) => {
                if self.reported(now, conn, report, out) {
                    self.first_reports(now, out);
                }
            }
            NlbMsg::Reload
            | NlbMsg::Conf
            | NlbMsg::MapPut(_)
            | NlbMsg::Put(_)
            | NlbMsg::Delete(_) => {
                if self.changing.is_none() {
                    self.begin(conn, msg, out);
                } else if self.waiting.len() < MAX_WAITING {
                    self.waiting.push_back((conn, msg));
                } else {
                    self.busy(conn, out);
                }
            }
            NlbMsg::Ranked(_)
            | NlbMsg::Text { .. }
            | NlbMsg::Outcome(_)
            | NlbMsg::Reported { .. }
            | NlbMsg::Watched { .. } => {
                self.refuse(conn, Refusal::new(err::BAD_ARG), out);
            }
        }
    }

    /// Does the next change that waits.
    fn next_change(&mut self, out: &mut Vec<Effect>) {
        while self.changing.is_none() {
            let Some((conn, msg)) = self.waiting.pop_front() else { return };
            self.begin(conn, msg, out);
        }
    }

    fn opened(&mut self, conn: ConnId, peer: Peer, out: &mut Vec<Effect>) {
        if conn >= INCOMING {
            self.peers.insert(conn, peer);
        } else {
            let loads = self.loads == Some(conn);
            out.push(Effect::Send { conn, msg: Msg::Lim(LimMsg::Subscribe { loads }) });
        }
    }

    fn closed(&mut self, now: Now, conn: ConnId) {
        if self.lim == Some(conn) {
            self.lim = None;
            self.retry = Some(now.mono_us + LIM_RETRY);
        } else if self.loads == Some(conn) {
            self.loads = None;
            self.master.clear();
            self.retry = Some(now.mono_us + LIM_RETRY);
        }
        self.peers.remove(&conn);
        self.watchers.remove(&conn);
        self.pieces.remove(&conn);
        self.held.retain(|(c, _)| *c != conn);
        self.waiting.retain(|(c, _)| *c != conn);
    }

    /// Calls the LIM of a host.
    fn call(&mut self, host: &str, out: &mut Vec<Effect>) -> Option<ConnId> {
        self.last_link += 1;
        let to = Endpoint::Tcp { host: host.to_owned(), daemon: Daemon::Lim };
        out.push(Effect::Connect { conn: self.last_link, to });
        Some(self.last_link)
    }

    fn call_own_lim(&mut self, out: &mut Vec<Effect>) {
        let host = self.conf.host.clone();
        self.lim = self.call(&host, out);
    }

    fn heard_lim(&mut self, now: Now, conn: ConnId, msg: LimMsg, out: &mut Vec<Effect>) {
        match msg {
            LimMsg::Master { master, .. } if self.lim == Some(conn) && master != self.master => {
                if let Some(conn) = self.loads.take() {
                    out.push(Effect::Close { conn });
                }
                if !master.is_empty() {
                    self.loads = self.call(&master, out);
                }
                self.master = master;
            }
            LimMsg::Loads { hosts } if self.loads == Some(conn) => {
                let (from, queue) = (&self.master, &self.conf.queue);
                self.feed.take(hosts, from, queue, &self.maps, &mut self.store, now);
                self.first_reports(now, out);
            }
            _ => {}
        }
    }

    /// Answers the queries that wait, once every host has reported or it is time.
    fn first_reports(&mut self, now: Now, out: &mut Vec<Effect>) {
        let Some(until) = self.hold_until else { return };
        let reported = |name: &str| {
            let object = self.store.find(NLB, name);
            object.is_some_and(|o| o.report().is_some())
        };
        let known = self.store.of_type(NLB).all(|o| o.report().is_some());
        let all = known && self.conf.servers.iter().all(|s| reported(s));
        if all || now.mono_us >= until {
            self.hold_until = None;
            for (conn, query) in std::mem::take(&mut self.held) {
                self.query(now, conn, query, out);
            }
        }
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.first_reports(now, out);
        self.expire(now);
        if self.retry.is_some_and(|at| at <= now.mono_us) {
            self.retry = None;
            match self.lim {
                None => self.call_own_lim(out),
                // the answer names the master, to whom there is no connection
                Some(conn) => {
                    out.push(Effect::Send { conn, msg: Msg::Lim(LimMsg::WhoIsMaster) });
                }
            }
        }
    }
}

impl Machine for NlbServer {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        let first = out.len();
        let of_peer = matches!(input, Input::Msg { .. });
        match input {
            Input::Start => self.call_own_lim(out),
            Input::Tick => self.tick(now, out),
            Input::Opened { conn, peer } => self.opened(conn, peer, out),
            Input::ConnectFailed { conn, .. } | Input::Closed { conn } => self.closed(now, conn),
            Input::Drained { conn } => self.next_piece(conn, out),
            Input::Msg { conn, msg: Msg::Nlb(msg) } if self.peers.contains_key(&conn) => {
                self.asked(now, conn, msg, out);
            }
            Input::Msg { conn, msg: Msg::Lim(msg) } => self.heard_lim(now, conn, msg, out),
            Input::Msg { conn, .. } if conn >= INCOMING => {
                self.refuse(conn, Refusal::new(err::BAD_ARG), out);
            }
            Input::Nlb(report) => {
                self.report(now, report, out);
                self.next_change(out);
            }
            _ => {}
        }
        if of_peer {
            self.peer_lines.bound(now, first, out);
        }
    }

    fn deadline(&self) -> Option<u64> {
        [self.retry, self.hold_until, self.expire_at].into_iter().flatten().min()
    }
}
