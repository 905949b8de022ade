//! The network: connections between daemons and from submitters, datagrams.
//!
//! A connection delivers in order and exactly once until it breaks; then both ends hear of it,
//! and what was under way is gone. Datagrams may be lost. While a host is isolated its
//! connections stall and break, and new ones fail. Messages that mbatchd holds until its
//! records are durable wait as in the real runner.

use super::conn::{Conn, ConnEnd};
use super::event::SimEvent;
use super::world::World;
use crate::proto::Daemon;
use crate::proto::Msg;
use crate::proto::held_replies::HeldReplies;
use crate::proto::machine::{ConnId, Input};

impl World {
    pub(super) fn datagram(&mut self, p: usize, to: &str, msg: Msg) {
        let from = self.procs[p].host;
        let Some(host) = self.hosts.iter().position(|h| h.name == to) else { return };
        let lost = self.hosts[from].isolated || self.hosts[host].isolated || self.rng.chance(0.02);
        if lost && host != from {
            return;
        }
        if let Some(l) = self.find(host, Daemon::Lim) {
            let name = self.hosts[from].name.clone();
            let after = self.latency();
            self.later(l, after, Input::Datagram { from: name, msg });
        }
    }

    pub(super) fn connect(&mut self, a: ConnEnd, b: ConnEnd, local: bool) -> u64 {
        let id = self.next_conn;
        self.next_conn += 1;
        for end in [a, b] {
            match end {
                ConnEnd::Proc { proc_, local, .. } => {
                    self.procs[proc_].conns.insert(local, id);
                }
                ConnEnd::Client { client, .. } => self.clients[client].conn = Some(id),
                ConnEnd::Call { call } => self.tasks.called(call, id),
                ConnEnd::Administrator { .. } => {
                    self.balancer.iter_mut().for_each(|b| b.conn = Some(id));
                }
            }
        }
        self.conns.insert(
            id,
            Conn { a, b, last: [0, 0], local, held: HeldReplies::default(), closing: false },
        );
        id
    }

    pub(super) fn send(&mut self, p: usize, local: ConnId, msg: Msg) {
        let Some(&id) = self.procs[p].conns.get(&local) else { return };
        let Some(c) = self.conns.get_mut(&id).filter(|c| !c.closing) else { return };
        if let Some(msg) = c.held.behind(msg) {
            self.deliver(id, p, msg);
        }
    }

    /// mbatchd sends once `ticket` is durable.
    pub(super) fn hold(&mut self, p: usize, local: ConnId, ticket: u64, msg: Msg) {
        let Some(&id) = self.procs[p].conns.get(&local) else { return };
        let Some(c) = self.conns.get_mut(&id).filter(|c| !c.closing) else { return };
        c.held.hold(ticket, msg);
        self.log.holding.insert(id);
    }

    /// Everything up to this ticket is durable.
    pub(super) fn release(&mut self, p: usize, durable: u64) {
        for id in std::mem::take(&mut self.log.holding) {
            while let Some(c) = self.conns.get_mut(&id) {
                match c.held.next(durable) {
                    Some(msg) => self.deliver(id, p, msg),
                    None => break,
                }
            }
            self.drained(id, p);
        }
    }

    /// The messages that are held will never be durable.
    pub(super) fn void(&mut self, p: usize) {
        for id in std::mem::take(&mut self.log.holding) {
            let Some(c) = self.conns.get_mut(&id) else { continue };
            for msg in c.held.void() {
                self.deliver(id, p, msg);
            }
            self.drained(id, p);
        }
    }

    fn drained(&mut self, id: u64, p: usize) {
        let Some(c) = self.conns.get(&id) else { return };
        if !c.held.is_empty() {
            self.log.holding.insert(id);
        } else if c.closing {
            self.procs[p].conns.retain(|_, i| *i != id);
            self.close_by(id, p);
        }
    }

    /// Closes after what is held has gone.
    pub(super) fn close(&mut self, p: usize, local: ConnId) {
        let Some(&id) = self.procs[p].conns.get(&local) else { return };
        match self.conns.get_mut(&id) {
            Some(c) if !c.held.is_empty() => c.closing = true,
            _ => {
                self.procs[p].conns.remove(&local);
                self.close_by(id, p);
            }
        }
    }

    fn deliver(&mut self, id: u64, p: usize, msg: Msg) {
        let from_a = self
            .conns
            .get(&id)
            .is_some_and(|c| matches!(c.a, ConnEnd::Proc { proc_, .. } if proc_ == p));
        self.transmit(id, from_a, msg);
    }

    pub(super) fn transmit(&mut self, id: u64, from_a: bool, msg: Msg) {
        let after = self.latency() + self.tasks.stall(&msg);
        let Some(c) = self.conns.get_mut(&id) else { return };
        let at = (self.now_us + after).max(c.last[usize::from(from_a)] + 1);
        c.last[usize::from(from_a)] = at;
        self.push(at, SimEvent::Arrive { conn: id, from_a, msg: Box::new(msg) });
    }

    /// The process at the other end of a connection.
    pub(super) fn peer_of(&self, p: usize, local: ConnId) -> Option<usize> {
        let c = self.conns.get(self.procs[p].conns.get(&local)?)?;
        [c.a, c.b].into_iter().find_map(|end| match end {
            ConnEnd::Proc { proc_, .. } if proc_ != p => Some(proc_),
            _ => None,
        })
    }

    /// Cuts a connection; both ends hear of it.
    pub(super) fn cut(&mut self, id: u64) {
        let Some(c) = self.conns.remove(&id) else { return };
        for end in [c.a, c.b] {
            let at = self.now_us + self.latency();
            self.push(at, SimEvent::Closed { end });
        }
    }

    /// One end closes: its earlier messages still arrive, then the other end hears of it.
    fn close_by(&mut self, id: u64, p: usize) {
        let Some(c) = self.conns.get(&id) else { return };
        let by_a = matches!(c.a, ConnEnd::Proc { proc_, .. } if proc_ == p);
        let other = if by_a { c.b } else { c.a };
        let at = (self.now_us + 100).max(c.last[usize::from(by_a)] + 1);
        self.push(at, SimEvent::Closed { end: other });
    }
}
