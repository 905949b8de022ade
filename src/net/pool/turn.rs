//! One turn of input: the order in which connections are served, and overdue ones.

use super::super::conn::{ConnPhase, Gone, Heard, ReadEnd};
use super::super::dgram;
use super::super::limits::*;
use super::Pool;
use crate::model::Now;
use crate::proto::machine::ConnId;
use crate::proto::{Input, Peer};
use std::cmp::Reverse;

impl Pool {
    /// One turn of input: new connections, what they say, datagrams, what is overdue.
    pub fn work(&mut self, now: Now, sink: &mut dyn FnMut(Input)) {
        let us = now.mono_us;
        self.now = us;
        while let Some(input) = self.pending.pop_front() {
            sink(input);
        }
        if self.accept_at.is_some_and(|at| at <= us) {
            self.accept_at = None;
        }
        if self.can_accept() {
            self.accept(us, sink);
        }
        for _ in 0..self.ready.len() {
            if let Some(id) = self.ready.pop_front() {
                self.look(id, us, sink);
            }
            // who is not looked at now is the first in the next turn
            if late(us) {
                break;
            }
        }
        if self.waiting[2] {
            self.datagrams(now, sink);
        }
        self.overdue(us, sink);
        if let Some(conn) = self.drained.take(us) {
            let from = crate::sys::now().mono_us;
            sink(Input::Drained { conn });
            let to = crate::sys::now().mono_us;
            self.drained.took(to, to.saturating_sub(from));
        }
    }

    /// Looks after one connection that has something for us.
    fn look(&mut self, id: ConnId, us: u64, sink: &mut dyn FnMut(Input)) {
        let Pool { conns, ident, chunk, .. } = self;
        let Some(conn) = conns.get_mut(&id) else { return };
        conn.queued = false;
        let before = (conn.partial(), conn.early());
        let (mut peer, mut check, mut said) = (None, None, false);
        let mut end = None;
        if matches!(conn.phase, ConnPhase::Connecting { .. })
            && let Err(gone) = conn.connected(us)
        {
            end = Some(ReadEnd::Gone(gone));
        }
        if matches!(conn.phase, ConnPhase::Local) {
            match conn.local_peer() {
                Ok(Peer::Local { uid, .. }) if uid != 0 && uid != ident.uid => {
                    let why = "the launcher's socket is served by another user";
                    end = Some(ReadEnd::Gone(Gone::Limit(why)));
                }
                Ok(who) => {
                    conn.set_phase(ConnPhase::Open, us);
                    conn.opened = true;
                    sink(Input::Opened { conn: id, peer: who });
                }
                Err(e) => end = Some(ReadEnd::Gone(Gone::Io(e))),
            }
        }
        let end = end.unwrap_or_else(|| {
            conn.read(ident, chunk, us, &|| late(us), &mut |heard| match heard {
                Heard::Opened(who) => {
                    peer = Some(who.clone());
                    sink(Input::Opened { conn: id, peer: who });
                }
                Heard::Msg(msg) => {
                    said = true;
                    sink(Input::Msg { conn: id, msg });
                }
                Heard::Check(who, what) => check = Some((who, what)),
            })
        });
        self.partial = self.partial + conn.partial() - before.0;
        let still_early = conn.early();
        if said {
            self.drained.heard(id, us);
        }
        self.dirty.push(id);
        if before.1 && !still_early {
            self.early.remove(&id);
        }
        if let Some(Peer::User { uid, host, .. }) = peer {
            self.count_user(id, uid, host);
        }
        if let Some((who, what)) = check {
            self.look_into(id, who, what);
        }
        match end {
            ReadEnd::Dry => self.arm(id),
            ReadEnd::More => self.again(id),
            ReadEnd::Gone(gone) => self.lose(id, gone, us, sink),
        }
        self.relieve(id, us, sink);
    }

    /// Too much of incomplete frames altogether: a connection with much of one is closed.
    fn relieve(&mut self, id: ConnId, us: u64, sink: &mut dyn FnMut(Input)) {
        if self.partial > MAX_PARTIAL
            && self.conns.get(&id).is_some_and(|c| c.partial() > PARTIAL_FAIR)
        {
            self.lose(id, Gone::Limit("input buffers are full"), us, sink);
        }
    }

    fn overdue(&mut self, us: u64, sink: &mut dyn FnMut(Input)) {
        while let Some(&Reverse((at, id))) = self.timers.peek() {
            if at > us {
                break;
            }
            self.timers.pop();
            let Some(conn) = self.conns.get_mut(&id) else { continue };
            if conn.timer == at {
                conn.timer = u64::MAX;
            }
            conn.look_for_silence(us);
            match conn.deadline() {
                Some((due, what)) if due <= us => self.lose(id, Gone::Limit(what), us, sink),
                _ => self.arm(id),
            }
        }
    }

    fn datagrams(&mut self, now: Now, sink: &mut dyn FnMut(Input)) {
        let Pool { listen, ident, seal, chunk, .. } = self;
        let Some(udp) = &listen.udp else {
            self.waiting[2] = false;
            return;
        };
        let mut bad = Vec::new();
        let until = crate::sys::now().mono_us + DATAGRAM_TURN_US;
        let late = || crate::sys::now().mono_us >= until;
        self.waiting[2] = dgram::drain(udp, chunk, late, |bytes, from| {
            let ip = from.ip().to_canonical();
            match seal.read(ident, bytes, ip, now.wall_us) {
                Ok((from, msg)) => sink(Input::Datagram { from, msg }),
                Err(why) => bad.push(format!("datagram from {from}: {why}")),
            }
        });
        for line in bad {
            self.complain(now.mono_us, &line);
        }
    }
}

/// Has a turn that began then read for as long as it may?
fn late(began: u64) -> bool {
    crate::sys::now().mono_us >= began + READ_TURN_US
}
