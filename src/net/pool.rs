//! All connections of a daemon: accepts them, bounds them, reads and writes them fairly.
//!
//! Invariants: no connection is read beyond its budget in a turn; what is left over is looked at
//! in the next turn, which comes at once; everything that can wait has a deadline.
//!
//! This file has the contents of a pool: its connections, and the lists of those that have work to
//! do. pool/ends.rs ends connections, pool/out.rs sends, pool/entry.rs accepts; pool/turn.rs, above
//! them, is one turn of input.

mod ends;
mod entry;
mod out;
#[cfg(test)]
mod tests;
mod turn;

use super::conn::{Conn, ConnPhase, Gone};
use super::dgram::Seal;
use super::drained_queue::DrainedQueue;
use super::limits::*;
use super::{Identity, SharedHosts};
use crate::auth::check::Checker;
use crate::proto::Input;
use crate::proto::machine::{ConnId, INCOMING};
use mio::net::{TcpListener, UdpSocket, UnixListener};
use mio::{Interest, Registry, Token};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

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
    /// How long the systems of callers may be silent; `None`: without end.
    silence: Option<Duration>,
    /// When this turn began.
    now: u64,
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
            max_conns: max_conns(),
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
            silence: None,
            now: crate::sys::now().mono_us,
        })
    }

    /// Callers whose systems are silent for this time are gone.
    pub fn limit_silence(&mut self, limit: Option<Duration>) {
        self.silence = limit;
    }

    /// Names and addresses after a reconfiguration.
    pub fn set_hosts(&mut self, hosts: SharedHosts) {
        self.ident.hosts = hosts;
    }

    /// The keys after a rotation; connections that are open go on with theirs.
    pub fn set_ring(&mut self, ring: std::sync::Arc<crate::auth::KeyRing>) {
        self.ident.ring = Some(ring);
        self.seal.forget_keys();
    }

    /// The instant of the last message from any peer, microseconds.
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
}
