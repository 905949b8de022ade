//! All connections of a daemon: accepts them, bounds them, reads and writes them fairly.
//!
//! Invariants: no connection is read beyond its budget in a turn; what is left over is looked at
//! in the next turn, which comes at once; everything that can wait has a deadline.

use super::conn::{Conn, Gone, Heard, Phase, ReadEnd};
use super::dgram::{self, Seal};
use super::limits::*;
use super::room::Room;
use super::sock::{self, Sock};
use super::{Hosts, Identity};
use crate::auth::check::{Checker, Order};
use crate::auth::shake::{self, AuthError, Check, Claims, Gate, Who};
use crate::model::Now;
use crate::proto::frame::FrameError;
use crate::proto::machine::{ConnId, INCOMING};
use crate::proto::{Endpoint, Input, Msg, Peer, Refusal};
use mio::net::{TcpListener, TcpStream, UdpSocket, UnixListener};
use mio::{Interest, Registry, Token};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr};
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
    room: Room,
    chunk: Vec<u8>,
    seal: Seal,
    launcher: PathBuf,
    port_of: Box<dyn Fn(crate::proto::Daemon) -> u16>,
    refusals: (u64, u32),
    checker: Checker,
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
            room: Room::default(),
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
        let room = self.room.deadline().is_some_and(|at| at <= self.now);
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
        [timer, self.accept_at, self.room.deadline()].into_iter().flatten().min()
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
        }
        if self.waiting[2] {
            self.datagrams(now, sink);
        }
        self.overdue(us, sink);
        if let Some(conn) = self.room.take(us) {
            let from = crate::sys::now().mono_us;
            sink(Input::Drained { conn });
            let to = crate::sys::now().mono_us;
            self.room.took(to, to.saturating_sub(from));
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
        if matches!(conn.phase, Phase::Connecting { .. })
            && let Err(gone) = conn.connected(us)
        {
            end = Some(ReadEnd::Gone(gone));
        }
        if matches!(conn.phase, Phase::Local) {
            match conn.local_peer() {
                Ok(Peer::Local { uid, .. }) if uid != 0 && uid != ident.uid => {
                    let why = "the launcher's socket is served by another user";
                    end = Some(ReadEnd::Gone(Gone::Limit(why)));
                }
                Ok(who) => {
                    conn.set_phase(Phase::Open, us);
                    conn.opened = true;
                    sink(Input::Opened { conn: id, peer: who });
                }
                Err(e) => end = Some(ReadEnd::Gone(Gone::Io(e))),
            }
        }
        let end = end.unwrap_or_else(|| {
            conn.read(ident, chunk, us, &mut |heard| match heard {
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
            self.room.heard(id, us);
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

    /// Has a caller looked into; [`Pool::checked`] takes the answer.
    fn look_into(&mut self, id: ConnId, who: Peer, check: Check) {
        let Peer::User { uid, gid, user, host } = who else { return };
        let Some(from) = self.conns.get(&id).and_then(|c| c.addr) else { return };
        let Some(ip) = self.ident.addr else { return };
        let ours = SocketAddr::new(ip, (self.port_of)(self.ident.daemon));
        let claims = Claims { key: String::new(), who: Who::User, uid, gid, user, host };
        let since = std::time::Instant::now();
        self.checker.order(Order { conn: id, check, claims, from, ours, since });
    }

    /// What was found out about a caller.
    pub fn checked(&mut self, id: ConnId, found: Result<u32, AuthError>) {
        let Pool { conns, ident, pending, now, .. } = self;
        let Some(conn) = conns.get_mut(&id) else { return };
        let mut peer = None;
        let done = conn.checked(ident, found, *now, &mut |heard| match heard {
            Heard::Opened(who) => {
                peer = Some(who.clone());
                pending.push_back(Input::Opened { conn: id, peer: who });
            }
            Heard::Msg(msg) => pending.push_back(Input::Msg { conn: id, msg }),
            Heard::Check(..) => {}
        });
        self.dirty.push(id);
        self.early.remove(&id);
        if let Some(Peer::User { uid, host, .. }) = peer {
            self.count_user(id, uid, host);
        }
        match done {
            // What came meanwhile was not read.
            Ok(()) => self.again(id),
            Err(gone) => self.fail(id, gone),
        }
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

    fn count_user(&mut self, id: ConnId, uid: u32, host: String) {
        let n = self.users.entry((uid, host.clone())).or_default();
        *n += 1;
        let reserve = DAEMON_RESERVE.min(self.max_conns / 4);
        let over = *n > MAX_PER_USER || self.conns.len() + reserve > self.max_conns;
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.user = Some((uid, host));
        }
        if over {
            let busy = Refusal::new(crate::model::reason::err::BUSY);
            self.send(id, Msg::Refused(busy));
            self.close(id);
            self.pending.push_back(Input::Closed { conn: id });
        }
    }

    // ----- accepting -----

    fn accept(&mut self, us: u64, sink: &mut dyn FnMut(Input)) {
        for _ in 0..ACCEPT_BUDGET {
            if self.early.len() >= MAX_EARLY.min(self.max_conns / 4) && !self.evict(us, sink) {
                return;
            }
            match self.accept_one() {
                Ok(Some((sock, addr))) => self.admit(sock, addr, us, sink),
                Ok(None) => return,
                Err(e) if sock::is_scarcity(&e) => {
                    log::warn!("cannot accept a connection: {}", crate::sys::words(&e));
                    self.accept_at = Some(us + ACCEPT_BACKOFF_US);
                    return;
                }
                // The connection was gone before it was accepted.
                Err(_) => {}
            }
        }
    }

    /// Makes room among the unauthenticated; false: none is old enough, come back later.
    fn evict(&mut self, us: u64, sink: &mut dyn FnMut(Input)) -> bool {
        let Some(&id) = self.early.first() else { return true };
        let ripe = self.conns.get(&id).map_or(0, Conn::since) + EARLY_GRACE_US;
        if ripe > us {
            self.accept_at = Some(ripe);
            return false;
        }
        self.lose(id, Gone::Limit("gave way: too many unauthenticated connections"), us, sink);
        self.early.remove(&id);
        true
    }

    fn accept_one(&mut self) -> io::Result<Option<(Sock, Option<SocketAddr>)>> {
        if let Some(l) = self.listen.tcp.as_ref().filter(|_| self.waiting[0]) {
            match l.accept() {
                Ok((s, mut from)) => {
                    from.set_ip(from.ip().to_canonical());
                    return Ok(Some((Sock::Tcp(s), Some(from))));
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.waiting[0] = false,
                Err(e) => return Err(e),
            }
        }
        self.waiting[0] &= self.listen.tcp.is_some();
        if let Some(l) = self.listen.unix.as_ref().filter(|_| self.waiting[1]) {
            match l.accept() {
                Ok((s, _)) => return Ok(Some((Sock::Unix(s), None))),
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.waiting[1] = false,
                Err(e) => return Err(e),
            }
        }
        self.waiting[1] &= self.listen.unix.is_some();
        Ok(None)
    }

    fn admit(
        &mut self,
        mut sock: Sock,
        addr: Option<SocketAddr>,
        us: u64,
        sink: &mut dyn FnMut(Input),
    ) {
        let refused = self.refusal(addr);
        if let Some(error) = refused {
            self.complain(us, &format!("connection from {} refused: {error}", shown(addr)));
            let mut words = Vec::new();
            shake::deny(&error, &mut words);
            // Best effort: a full socket buffer cannot be, and a peer that is gone may be.
            let _ = sock.write(&words);
            let _ = sock.finish();
            return;
        }
        let id = self.next;
        self.next += 1;
        let phase = if addr.is_some() { Phase::Closing } else { Phase::Open };
        let mut conn = Conn::new(id, sock, phase, addr, us);
        let made = match addr {
            Some(_) => crate::sys::random()
                .map_err(Gone::Io)
                .and_then(|nonce| conn.greet(&self.ident, nonce)),
            None => conn.local_peer().map_err(Gone::Io).map(|peer| {
                conn.opened = true;
                sink(Input::Opened { conn: id, peer });
            }),
        };
        if let Err(gone) = made.and_then(|()| self.enter(conn)) {
            log::warn!("new connection: {gone}");
            self.forget(id);
            return;
        }
        if addr.is_some() {
            self.early.insert(id);
        }
        self.dirty.push(id);
        self.arm(id);
    }

    fn refusal(&self, addr: Option<SocketAddr>) -> Option<AuthError> {
        if self.conns.len() >= self.max_conns {
            return Some(AuthError::Denied { code: crate::model::reason::err::BUSY });
        }
        let ring = self.ident.ring.as_deref()?;
        let (hosts, host) = (&*self.ident.hosts, self.ident.host.as_str());
        let gate = Gate { ring, hosts, host, only_uid: None, ways: &self.ident.ways };
        gate.known_addr(addr?.ip()).err()
    }

    fn enter(&mut self, mut conn: Conn) -> Result<(), Gone> {
        // What is accepted is nearly always writable: that is asked for only when it is not.
        let mut interest = Interest::READABLE;
        if matches!(conn.phase, Phase::Connecting { .. }) {
            interest |= Interest::WRITABLE;
            conn.write_armed = true;
        }
        let token = Token(conn.id as usize);
        self.registry.register(conn.sock.source(), token, interest).map_err(Gone::Io)?;
        self.conns.insert(conn.id, conn);
        Ok(())
    }

    // ----- what the machine wants -----

    /// Opens a connection under a number the machine chose.
    pub fn connect(&mut self, id: ConnId, to: Endpoint, us: u64) {
        if self.conns.contains_key(&id) {
            self.forget(id);
        }
        let made = match &to {
            Endpoint::Launcher => sock::dial_unix(&self.launcher)
                .map(|s| (Sock::Unix(s), Phase::Local))
                .map_err(|e| format!("{}: {}", self.launcher.display(), crate::sys::words(&e))),
            Endpoint::Tcp { host, daemon } => self
                .dial(host, *daemon)
                .map(|s| (Sock::Tcp(s), Phase::Connecting { daemon: *daemon, host: host.clone() })),
        };
        let entered = made.and_then(|(sock, phase)| {
            let mut conn = Conn::new(id, sock, phase, None, us);
            if let Endpoint::Tcp { host, daemon } = &to {
                conn.whom = format!("{} on {host}", daemon.name());
            }
            self.enter(conn).map_err(|gone| gone.to_string())
        });
        match entered {
            Ok(()) => {
                self.again(id);
                self.arm(id);
            }
            Err(why) => {
                let failed = Input::ConnectFailed { conn: id, why, refused: false };
                self.pending.push_back(failed);
            }
        }
    }

    fn dial(&self, host: &str, daemon: crate::proto::Daemon) -> Result<TcpStream, String> {
        let port = (self.port_of)(daemon);
        let addr = self.ident.hosts.addr_of(host).ok_or("host has no known address")?;
        if port == 0 {
            return Err(format!("{} has no port", daemon.name()));
        }
        sock::dial_tcp(self.ident.addr, SocketAddr::new(addr, port))
            .map_err(|e| crate::sys::words(&e))
    }

    /// Sends; a connection that is gone or not yet open takes nothing.
    pub fn send(&mut self, id: ConnId, msg: Msg) {
        self.with_open(id, |conn| conn.send(msg));
    }

    /// Sends once `ticket` is durable.
    pub fn hold(&mut self, id: ConnId, ticket: u64, msg: Msg) {
        self.with_open(id, |conn| {
            conn.hold(ticket, msg);
            Ok(())
        });
        if self.conns.get(&id).is_some_and(Conn::holds) {
            self.holding.insert(id);
        }
    }

    fn with_open(&mut self, id: ConnId, f: impl FnOnce(&mut Conn) -> Result<(), Gone>) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        if !matches!(conn.phase, Phase::Open) {
            return;
        }
        match f(conn) {
            Ok(()) => self.dirty.push(id),
            Err(gone) => self.fail(id, gone),
        }
    }

    /// Everything up to this ticket is durable.
    pub fn release(&mut self, durable: u64) {
        for id in std::mem::take(&mut self.holding) {
            let Some(conn) = self.conns.get_mut(&id) else { continue };
            self.dirty.push(id);
            match conn.release(durable) {
                Ok(true) => {
                    self.holding.insert(id);
                }
                Ok(false) => {}
                Err(gone) => self.fail(id, gone),
            }
        }
    }

    /// What is held will never be durable.
    pub fn void(&mut self) {
        for id in std::mem::take(&mut self.holding) {
            let Some(conn) = self.conns.get_mut(&id) else { continue };
            self.dirty.push(id);
            if let Err(gone) = conn.void() {
                self.fail(id, gone);
            }
        }
    }

    /// Closes after what is queued and held has gone out.
    pub fn close(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        match conn.phase {
            Phase::Open => {
                conn.set_phase(Phase::Closing, self.now);
                self.dirty.push(id);
            }
            Phase::Closing | Phase::Lingering => {}
            _ => self.forget(id),
        }
    }

    pub fn datagram(&mut self, to: &str, msg: &Msg, wall_us: i64) {
        let Some(addr) = self.ident.hosts.addr_of(to) else {
            log::debug!("datagram to {to}: host has no known address");
            return;
        };
        self.datagram_at(addr, to, msg, wall_us);
    }

    /// To an address that need not be a host's.
    pub fn datagram_at(&mut self, addr: IpAddr, to: &str, msg: &Msg, wall_us: i64) {
        let Some(udp) = &self.listen.udp else {
            log::error!("no datagram socket");
            return;
        };
        let port = (self.port_of)(self.ident.daemon);
        match self.seal.write(&self.ident, to, msg, wall_us) {
            Ok(bytes) => {
                if let Err(e) = udp.send_to(&bytes, SocketAddr::new(addr, port)) {
                    log::debug!("datagram to {to}: {}", crate::sys::words(&e));
                }
            }
            Err(e) => log::error!("datagram to {to}: {e}"),
        }
    }

    fn datagrams(&mut self, now: Now, sink: &mut dyn FnMut(Input)) {
        let Pool { listen, ident, seal, chunk, .. } = self;
        let Some(udp) = &listen.udp else {
            self.waiting[2] = false;
            return;
        };
        let mut bad = Vec::new();
        self.waiting[2] = dgram::drain(udp, chunk, |bytes, from| {
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

    // ----- output and ends -----

    /// Writes out what this turn has queued.
    pub fn flush(&mut self, us: u64) {
        let mut ids = std::mem::take(&mut self.dirty);
        for id in ids.drain(..) {
            self.flush_one(id, us);
        }
        // What failed while flushing is told in the next turn; keep the allocation.
        ids.append(&mut self.dirty);
        self.dirty = ids;
    }

    /// Tries to write out everything there is.
    pub fn flush_all(&mut self, us: u64) {
        self.dirty = self.conns.keys().copied().collect();
        self.flush(us);
    }

    fn flush_one(&mut self, id: ConnId, us: u64) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        if matches!(conn.phase, Phase::Connecting { .. }) {
            return;
        }
        let flushed = conn.flush(us).and_then(|()| {
            if conn.unsent() == 0 || std::mem::replace(&mut conn.write_armed, true) {
                return Ok(());
            }
            let both = Interest::READABLE | Interest::WRITABLE;
            let token = Token(id as usize);
            self.registry.reregister(conn.sock.source(), token, both).map_err(Gone::Io)
        });
        if let Err(gone) = flushed {
            self.fail(id, gone);
            return;
        }
        if conn.drained() && matches!(conn.phase, Phase::Open) {
            self.room.push(id, us);
        }
        let resumed = conn.skipped && !conn.paused();
        conn.skipped &= !resumed;
        if matches!(conn.phase, Phase::Closing) && conn.unsent() == 0 && !conn.holds() {
            // The peer may have closed first; then there is nothing to end.
            let _ = conn.sock.finish();
            conn.set_phase(Phase::Lingering, us);
            self.again(id);
        } else if resumed {
            self.again(id);
        }
        self.arm(id);
    }

    /// A connection failed while something else was done: the machine hears of it next turn.
    fn fail(&mut self, id: ConnId, gone: Gone) {
        let mut told = Vec::new();
        self.lose(id, gone, self.now, &mut |input| told.push(input));
        self.pending.extend(told);
    }

    /// Ends a connection and tells who must know.
    fn lose(&mut self, id: ConnId, gone: Gone, us: u64, sink: &mut dyn FnMut(Input)) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let peer = conn.addr;
        match (&conn.phase, conn.opened) {
            (Phase::Closing | Phase::Lingering, _) => {
                self.forget(id);
                return;
            }
            (Phase::AwaitAuth { .. } | Phase::AwaitCheck { .. }, _) => {
                if let Gone::Auth(error) = &gone {
                    conn.refuse(error);
                    // Only once, and only what fits.
                    let _ = conn.flush(us);
                    let _ = conn.sock.finish();
                }
                if !matches!(gone, Gone::Eof) {
                    let whom = std::mem::take(&mut conn.whom);
                    let ring = self.ident.ring.as_deref();
                    let forged = matches!(gone, Gone::Auth(AuthError::Frame(FrameError::BadMac)));
                    // Another key under the same id looks like a forgery: name where ours is from.
                    let place = ring.filter(|_| forged).map_or("", |ring| ring.place()).to_owned();
                    let from = shown(peer);
                    self.complain(us, &format!("connection{whom} from {from}: {gone}{place}"));
                }
            }
            (_, false) => {
                if let Gone::Auth(error) = &gone {
                    let place = self.ident.ring.as_deref().map_or("", |ring| ring.place());
                    // What names our key file already, need not do so twice.
                    let told = matches!(error, AuthError::NoCommonKey { .. });
                    let place = if told { "" } else { place };
                    let line = format!("connection to {}: {error}{place}", conn.whom);
                    self.complain(us, &line);
                }
                let refused = matches!(&gone, Gone::Io(e)
                    if e.kind() == ErrorKind::ConnectionRefused);
                sink(Input::ConnectFailed { conn: id, why: gone.to_string(), refused });
            }
            (_, true) => {
                if matches!(gone, Gone::Frame(_) | Gone::Limit(_)) {
                    let uid =
                        conn.user.as_ref().map_or(String::new(), |u| format!(" of uid {}", u.0));
                    self.complain(us, &format!("connection{uid} from {}: {gone}", shown(peer)));
                }
                sink(Input::Closed { conn: id });
            }
        }
        self.forget(id);
    }

    fn forget(&mut self, id: ConnId) {
        self.room.close(id);
        self.early.remove(&id);
        self.holding.remove(&id);
        // Closing the descriptor, which nobody else has, takes it out of the poll.
        let Some(mut conn) = self.conns.remove(&id) else { return };
        self.partial -= conn.partial();
        if let Some(user) = conn.user.take()
            && let Some(n) = self.users.get_mut(&user)
        {
            *n -= 1;
            if *n == 0 {
                self.users.remove(&user);
            }
        }
    }

    /// Tells of a refused peer, a few times a second at most.
    fn complain(&mut self, us: u64, line: &str) {
        let second = us / 1_000_000;
        if self.refusals.0 != second {
            if self.refusals.1 > REFUSALS_LOGGED {
                log::info!("{} more were refused", self.refusals.1 - REFUSALS_LOGGED);
            }
            self.refusals = (second, 0);
        }
        self.refusals.1 += 1;
        if self.refusals.1 <= REFUSALS_LOGGED {
            log::info!("{line}");
        }
    }
}

/// Raises the soft descriptor limit to the hard one; the connections that leaves room for.
/// A peer's address for the log; nothing for a local one.
fn shown(addr: Option<SocketAddr>) -> String {
    addr.map_or("this host".into(), |a| a.ip().to_string())
}

fn max_conns() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = MAX_CONNS as u64 + SPARE_FDS;
    let soft = limit.maximum.map_or(wanted, |hard| hard.min(wanted));
    let have = limit.current.unwrap_or(u64::MAX);
    if have < soft {
        // Without it there are fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), ..limit });
    }
    let now = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (now.saturating_sub(SPARE_FDS).max(16) as usize).min(MAX_CONNS)
}
