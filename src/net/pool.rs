//! All connections of a daemon: accepts them, bounds them, reads and writes them fairly.
//!
//! Invariants: no connection is read beyond its budget in a turn; what is left over is looked at
//! in the next turn, which comes at once; everything that can wait has a deadline.
//!
//! Here is the turn: what is looked at in which order, and the deadlines. Who comes in is in
//! pool/entry.rs, what the machine sends in pool/out.rs, how connections end in pool/ends.rs.

mod ends;
mod entry;
mod out;
#[cfg(test)]
mod tests;

use super::conn::{Conn, ConnPhase, Gone, Heard, ReadEnd};
use super::dgram::{self, Seal};
use super::drained_queue::DrainedQueue;
use super::limits::*;
use super::{Hosts, Identity};
use crate::auth::check::Checker;
use crate::model::Now;
use crate::proto::machine::{ConnId, INCOMING};
use crate::proto::{Input, Peer};
use mio::net::{TcpListener, UdpSocket, UnixListener};
use mio::{Interest, Registry, Token};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::io;
use std::path::PathBuf;

/// Tokens from here up are not connections.
pub const FIRST_TOKEN: usize = usize::MAX - 16;
const TCP: Token = Token(usize::MAX - 1);
const UNIX: Token = Token(usize::MAX - 2);
const UDP: Token = Token(usize::MAX - 3);

/// The listening sockets of a daemon.
#[derive(Default)]
pub struct Listeners {
    pub tcp: Option<TcpListener>,
    pub unix: Option<UnixListener>,
    pub udp: Option<UdpSocket>,
}

pub struct Pool {
    registry: Registry,
    ident: Identity,
    listen: Listeners,
    /// Listeners that may have more to accept; the UDP socket that may have more to read.
    waiting: [bool; 3],
    accept_at: Option<u64>,
    conns: HashMap<ConnId, Conn>,
    next: ConnId,
    max_conns: usize,
    /// Unauthenticated connections, oldest first (their ids grow).
    early: BTreeSet<ConnId>,
    users: HashMap<(u32, String), usize>,
    partial: usize,
    ready: VecDeque<ConnId>,
    dirty: Vec<ConnId>,
    holding: BTreeSet<ConnId>,
    timers: BinaryHeap<Reverse<(u64, ConnId)>>,
    /// Inputs that arose outside reading.
    pending: VecDeque<Input>,
    drained: DrainedQueue,
    chunk: Vec<u8>,
    seal: Seal,
    launcher: PathBuf,
    port_of: Box<dyn Fn(crate::proto::Daemon) -> u16>,
    refusals: (u64, u32),
    checker: Checker,
    /// When this turn began.
    now: u64,
}

/// Has a turn that began then read for as long as it may?
fn late(began: u64) -> bool {
    crate::sys::now().mono_us >= began + READ_TURN_US
}

impl Pool {
    pub fn new(
        registry: Registry,
        ident: Identity,
        mut listen: Listeners,
        launcher: PathBuf,
        port_of: Box<dyn Fn(crate::proto::Daemon) -> u16>,
        checker: Checker,
    ) -> io::Result<Pool> {
        if let Some(l) = &mut listen.tcp {
            registry.register(l, TCP, Interest::READABLE)?;
        }
        if let Some(l) = &mut listen.unix {
            registry.register(l, UNIX, Interest::READABLE)?;
        }
        if let Some(s) = &mut listen.udp {
            registry.register(s, UDP, Interest::READABLE)?;
        }
        Ok(Pool {
            registry,
            ident,
            listen,
            waiting: [true; 3],
            accept_at: None,
            conns: HashMap::new(),
            next: INCOMING,
            max_conns: entry::max_conns(),
            early: BTreeSet::new(),
            users: HashMap::new(),
            partial: 0,
            ready: VecDeque::new(),
            dirty: Vec::new(),
            holding: BTreeSet::new(),
            timers: BinaryHeap::new(),
            pending: VecDeque::new(),
            drained: DrainedQueue::default(),
            chunk: vec![0; CHUNK],
            seal: Seal::default(),
            launcher,
            port_of,
            refusals: (0, 0),
            checker,
            now: crate::sys::now().mono_us,
        })
    }

    /// Names and addresses after a reconfiguration.
    pub fn set_hosts(&mut self, hosts: Hosts) {
        self.ident.hosts = hosts;
    }

    /// The keys after a rotation; connections that are open go on with theirs.
    pub fn set_ring(&mut self, ring: std::sync::Arc<crate::auth::KeyRing>) {
        self.ident.ring = Some(ring);
        self.seal.forget_keys();
    }

    /// When somebody last said something, microseconds.
    pub fn heard_at(&self) -> u64 {
        self.drained.heard_at()
    }

    /// Connections there are.
    pub fn len(&self) -> usize {
        self.conns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.conns.is_empty()
    }

    /// Output that the kernel has not taken yet, bytes.
    pub fn unsent(&self) -> usize {
        self.conns.values().map(Conn::unsent).sum()
    }

    /// Notes what the poll told.
    pub fn event(&mut self, token: Token, event: &mio::event::Event) {
        match token {
            TCP => self.waiting[0] = true,
            UNIX => self.waiting[1] = true,
            UDP => self.waiting[2] = true,
            Token(id) => {
                let id = id as ConnId;
                if let Some(conn) = self.conns.get_mut(&id) {
                    conn.hup |= event.is_read_closed() || event.is_error();
                    if !std::mem::replace(&mut conn.queued, true) {
                        self.ready.push_back(id);
                    }
                }
            }
        }
    }

    /// Something can be done without waiting for the poll.
    pub fn busy(&self) -> bool {
        let room = self.drained.deadline().is_some_and(|at| at <= self.now);
        room || !self.pending.is_empty()
            || !self.ready.is_empty()
            || self.waiting[2]
            || self.can_accept()
    }

    fn can_accept(&self) -> bool {
        self.accept_at.is_none() && (self.waiting[0] || self.waiting[1])
    }

    /// The next instant at which something is due.
    pub fn deadline(&self) -> Option<u64> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        [timer, self.accept_at, self.drained.deadline()].into_iter().flatten().min()
    }

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

    fn again(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(&id)
            && !std::mem::replace(&mut conn.queued, true)
        {
            self.ready.push_back(id);
        }
    }

    /// Puts the connection's deadline on the heap where no earlier entry stands.
    fn arm(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(&id)
            && let Some((at, _)) = conn.deadline()
            && at < conn.timer
        {
            conn.timer = at;
            self.timers.push(Reverse((at, id)));
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
            match conn.deadline() {
                Some((due, what)) if due <= us => self.lose(id, Gone::Limit(what), us, sink),
                _ => self.arm(id),
            }
        }
    }

    fn enter(&mut self, mut conn: Conn) -> Result<(), Gone> {
        // An accepted socket is nearly always writable: ask for writability only when it is not.
        let mut interest = Interest::READABLE;
        if matches!(conn.phase, ConnPhase::Connecting { .. }) {
            interest |= Interest::WRITABLE;
            conn.write_armed = true;
        }
        let token = Token(conn.id as usize);
        self.registry.register(conn.sock.source(), token, interest).map_err(Gone::Io)?;
        self.conns.insert(conn.id, conn);
        Ok(())
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
