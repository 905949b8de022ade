//! One connection: its handshake, its bounded buffers, its deadlines.
//!
//! Invariants: the machine hears of a connection only after it is authenticated; a frame that is
//! wrong in any way ends its own connection and nothing else; what waits for the log keeps its
//! place among what is sent after it.

use super::Identity;
use super::limits::*;
use super::silence::SilenceLimit;
use super::sock::{Sock, peer_cred};
use crate::auth::Way;
use crate::auth::shake::{self, AuthError, CallerCheck, Gate};
use crate::proto::frame::{
    Decoder, FrameError, MAX_FRAME, MAX_FRAME_EARLY, MAX_FRAME_EAUTH, MAX_FRAME_USER, Session,
};
use crate::proto::held_replies::HeldReplies;
use crate::proto::machine::ConnId;
use crate::proto::{Daemon, Msg, Peer};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

/// The phases of a connection, from dialling to its end.
#[derive(Debug)]
pub enum ConnPhase {
    /// Outgoing: TCP is not through yet.
    Connecting {
        daemon: Daemon,
        host: String,
    },
    /// Outgoing: the server speaks first.
    AwaitHello {
        daemon: Daemon,
        host: String,
    },
    /// Outgoing: our proof is sent, the server's is due.
    AwaitOk {
        peer: Peer,
    },
    /// Outgoing: to the launcher's Unix socket.
    Local,
    /// Incoming: its proof is due.
    AwaitAuth {
        nonce: [u8; shake::NONCE],
    },
    /// Incoming: the caller is being checked; the connection is not read meanwhile.
    AwaitCheck {
        peer: Peer,
    },
    Open,
    /// Close was asked for: output and held messages go first.
    Closing,
    /// Everything is sent; the peer's end is awaited.
    Lingering,
}

/// The input of a connection.
#[derive(Debug)]
pub enum Heard {
    Opened(Peer),
    Msg(Msg),
    /// This is to be found out about a caller; [`Conn::checked`] takes the answer.
    Check(Peer, CallerCheck),
}

/// Why a connection is over.
#[derive(Debug)]
pub enum Gone {
    /// The peer closed it between two frames.
    Eof,
    Io(io::Error),
    Frame(FrameError),
    Auth(AuthError),
    /// A named cap or deadline.
    Limit(&'static str),
}

impl From<FrameError> for Gone {
    fn from(e: FrameError) -> Self {
        Gone::Frame(e)
    }
}
impl From<AuthError> for Gone {
    fn from(e: AuthError) -> Self {
        Gone::Auth(e)
    }
}

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Gone::Eof => f.write_str("closed by peer"),
            Gone::Io(e) => f.write_str(&crate::sys::words(e)),
            Gone::Frame(e) => e.fmt(f),
            Gone::Auth(e) => e.fmt(f),
            Gone::Limit(what) => f.write_str(what),
        }
    }
}

/// How a read ended.
#[derive(Debug)]
pub enum ReadEnd {
    /// No more bytes for now.
    Dry,
    /// The budget of this turn is used up.
    More,
    Gone(Gone),
}

pub struct Conn {
    pub id: ConnId,
    pub sock: Sock,
    pub phase: ConnPhase,
    /// The peer's address; None on a Unix socket.
    pub addr: Option<SocketAddr>,
    /// The name for the log: who a refused caller claimed to be, or which daemon was called.
    pub whom: String,
    /// (uid, host) once authenticated as a user's, for the count of each.
    pub user: Option<(u32, String)>,
    /// The machine has heard of it.
    pub opened: bool,
    /// The poll tells when it can be written to.
    pub write_armed: bool,
    /// The connection was passed over in reading, because its output is behind; input may be
    /// waiting.
    pub skipped: bool,
    /// The peer has ended its half: read to the end.
    pub hup: bool,
    /// The connection is in the pool's queue of connections to look at.
    pub queued: bool,
    /// Whole frames may be in the buffer, because the time of a turn was over before they were
    /// read.
    left: bool,
    /// The earliest entry of this connection in the pool's timer heap.
    pub timer: u64,
    session: Session,
    dec: Decoder,
    out: Vec<u8>,
    sent: usize,
    held: HeldReplies,
    want_drained: bool,
    over: bool,
    /// This is sbatchd and the peer an mbatchd, whose orders are read however much output waits: it
    /// may not read our reports until we have read its orders. Sbatchd closes the connection of
    /// one that is no master.
    master: bool,
    /// The connection carries a stream: its buffer is used again at once.
    stream: bool,
    phase_since: u64,
    half_since: Option<u64>,
    stall_since: Option<u64>,
    /// How long the peer's system may be silent; `None`: without end.
    silence: Option<SilenceLimit>,
}

impl Conn {
    pub fn new(
        id: ConnId,
        sock: Sock,
        phase: ConnPhase,
        addr: Option<SocketAddr>,
        now: u64,
    ) -> Self {
        let local = matches!(sock, Sock::Unix(_));
        let cap = if local { MAX_FRAME } else { MAX_FRAME_EARLY };
        Conn {
            id,
            sock,
            phase,
            addr,
            whom: String::new(),
            user: None,
            opened: false,
            write_armed: false,
            skipped: false,
            hup: false,
            queued: false,
            left: false,
            timer: u64::MAX,
            session: Session::local(),
            dec: Decoder::new(cap),
            out: Vec::new(),
            sent: 0,
            held: HeldReplies::default(),
            want_drained: false,
            over: false,
            master: false,
            stream: false,
            phase_since: now,
            half_since: None,
            stall_since: None,
            silence: None,
        }
    }

    /// The connection is over when the peer's system is silent for this time.
    pub fn limit_silence(&mut self, limit: Duration, now: u64) {
        self.silence = SilenceLimit::begin(&self.sock, limit, now);
    }

    /// Finds out whether the peer's system is silent, where it is time for that.
    pub fn look_for_silence(&mut self, now: u64) {
        if let Some(silence) = &mut self.silence {
            silence.look(&self.sock, now);
        }
    }

    /// Begins the server's side: says hello.
    pub fn greet(&mut self, ident: &Identity, nonce: [u8; shake::NONCE]) -> Result<(), Gone> {
        let gate = gate(ident)?;
        gate.hello(ident.daemon, nonce, &mut self.out);
        if ident.ways.allows(Way::Eauth) {
            self.dec.set_cap(MAX_FRAME_EAUTH);
        }
        self.phase = ConnPhase::AwaitAuth { nonce };
        Ok(())
    }

    /// The Unix side: the kernel says who it is.
    pub fn local_peer(&self) -> io::Result<Peer> {
        let (uid, _, pid) = peer_cred(self.sock.as_fd())?;
        Ok(Peer::Local { uid, pid })
    }

    pub fn set_phase(&mut self, phase: ConnPhase, now: u64) {
        self.phase = phase;
        self.phase_since = now;
    }

    /// The caller is not yet authenticated. False on connections that we made.
    pub fn early(&self) -> bool {
        matches!(self.phase, ConnPhase::AwaitAuth { .. } | ConnPhase::AwaitCheck { .. })
    }

    /// Since when it has been in its phase.
    pub fn since(&self) -> u64 {
        self.phase_since
    }

    /// When something must have happened, and what is wrong if not.
    pub fn deadline(&self) -> Option<(u64, &'static str)> {
        let since = self.phase_since;
        match self.phase {
            ConnPhase::AwaitAuth { .. } => {
                return Some((since + EARLY_US, "did not authenticate in time"));
            }
            ConnPhase::AwaitCheck { .. } => {
                return Some((since + CHECK_US, "could not be checked in time"));
            }
            ConnPhase::Connecting { .. } => {
                return Some((since + CONNECT_US, "no connection in time"));
            }
            ConnPhase::AwaitHello { .. } | ConnPhase::AwaitOk { .. } | ConnPhase::Local => {
                return Some((since + CONNECT_US, "no answer to the handshake in time"));
            }
            ConnPhase::Lingering => return Some((since + LINGER_US, "closed")),
            ConnPhase::Closing if self.held.is_empty() => {
                return Some((since + FLUSH_US, "did not read the last words in time"));
            }
            ConnPhase::Open | ConnPhase::Closing => {}
        }
        let half = self.half_since.map(|t| (t + HALF_FRAME_US, "half a frame for too long"));
        let stall = self.stall_since.map(|t| (t + STALL_US, "did not read its output in time"));
        let silence = self.silence.map(|s| (s.deadline(), "its host does not answer"));
        [half, stall, silence].into_iter().flatten().min()
    }

    /// Bytes held for a frame that is not whole.
    pub fn partial(&self) -> usize {
        self.dec.reserved()
    }

    /// Bytes of output not yet taken by the kernel.
    pub fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// The connection is not read: its output is far behind, or its caller is being checked.
    pub fn paused(&self) -> bool {
        let behind = self.over && !self.master;
        behind || self.held.len() >= MAX_HELD || matches!(self.phase, ConnPhase::AwaitCheck { .. })
    }

    /// Takes the result of the check of the caller, which is known from then on; the input that it
    /// has sent meanwhile is read next.
    pub fn checked(
        &mut self,
        found: Result<u32, AuthError>,
        now: u64,
    ) -> Result<Option<Peer>, Gone> {
        let ConnPhase::AwaitCheck { peer } = &mut self.phase else { return Ok(None) };
        if let Peer::User { gid, user, uid, host } = peer {
            self.whom = format!(" of user {} (uid {uid}) of host {host}", user.escape_debug());
            *gid = found?;
        }
        let peer = peer.clone();
        shake::prove(&mut self.session, &mut self.out)?;
        self.set_phase(ConnPhase::Open, now);
        self.dec.set_cap(MAX_FRAME_USER);
        self.opened = true;
        self.left = true;
        Ok(Some(peer))
    }

    /// The output has room again after the machine was to be told of it.
    pub fn drained(&mut self) -> bool {
        if self.unsent() >= OUT_LOW || self.held.len() >= MAX_HELD {
            return false;
        }
        self.over = false;
        std::mem::take(&mut self.want_drained)
    }

    /// Sends, behind whatever waits.
    pub fn send(&mut self, msg: Msg) -> Result<(), Gone> {
        match self.held.behind(msg) {
            Some(msg) => self.put(&msg),
            None => Ok(()),
        }
    }

    /// Sends once `ticket` is durable.
    pub fn hold(&mut self, ticket: u64, msg: Msg) {
        self.held.hold(ticket, msg);
    }

    /// Sends what `durable` lets go. True while some still waits.
    pub fn release(&mut self, durable: u64) -> Result<bool, Gone> {
        while let Some(msg) = self.held.next(durable) {
            self.put(&msg)?;
        }
        Ok(!self.held.is_empty())
    }

    /// Drops what waits for a ticket, telling a command so; sends what only waited behind.
    pub fn void(&mut self) -> Result<(), Gone> {
        for msg in self.held.void() {
            self.put(&msg)?;
        }
        Ok(())
    }

    fn put(&mut self, msg: &Msg) -> Result<(), Gone> {
        self.session.seal_msg(msg, &mut self.out)?;
        self.stream |= matches!(msg, Msg::Data(_));
        let waiting = self.unsent();
        if waiting > OUT_MAX {
            return Err(Gone::Limit("does not read its output"));
        }
        if waiting > OUT_HIGH {
            self.over = true;
            self.want_drained = true;
        }
        if msg.goes_on() {
            self.want_drained = true;
        }
        Ok(())
    }

    /// Writes as many bytes as the kernel accepts.
    pub fn flush(&mut self, now: u64) -> Result<(), Gone> {
        while self.sent < self.out.len() {
            match self.sock.write(&self.out[self.sent..]) {
                Ok(0) => return Err(Gone::Io(ErrorKind::WriteZero.into())),
                Ok(n) => {
                    self.sent += n;
                    self.stall_since = Some(now);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.stall_since.get_or_insert(now);
                    self.compact();
                    return Ok(());
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Gone::Io(e)),
            }
        }
        self.stall_since = None;
        self.sent = 0;
        // A connection that is not yet authenticated costs as little as can be.
        let long = self.out.capacity() > if self.stream { OUT_HIGH } else { OUT_LOW };
        if long || self.early() {
            self.out = Vec::new();
        } else {
            self.out.clear();
        }
        Ok(())
    }

    /// Keeps the sent part of the buffer from outgrowing the rest.
    fn compact(&mut self) {
        if self.sent > OUT_LOW && self.sent > self.out.len() / 2 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// The outgoing TCP connection came through, or did not.
    pub fn connected(&mut self, now: u64) -> Result<(), Gone> {
        if let Some(e) = self.sock.take_error().map_err(Gone::Io)? {
            return Err(Gone::Io(e));
        }
        if !self.sock.connected() {
            return Ok(());
        }
        if let ConnPhase::Connecting { daemon, host } = &self.phase {
            self.phase = ConnPhase::AwaitHello { daemon: *daemon, host: host.clone() };
            self.phase_since = now;
        }
        Ok(())
    }

    /// Reads the available bytes within the budget and hands on the messages, until it is `late`.
    pub fn read(
        &mut self,
        ident: &Identity,
        chunk: &mut [u8],
        now: u64,
        late: &dyn Fn() -> bool,
        sink: &mut dyn FnMut(Heard),
    ) -> ReadEnd {
        let mut budget = READ_BUDGET;
        while budget > 0 {
            if self.paused() {
                self.skipped = true;
                // that no more of a frame comes is not the peer's doing
                self.half_since = None;
                return ReadEnd::Dry;
            }
            if self.left {
                if let Err(gone) = self.frames(ident, now, late, sink) {
                    return ReadEnd::Gone(gone);
                }
                if self.left {
                    return ReadEnd::More;
                }
                continue;
            }
            let n = match self.sock.read(chunk) {
                Ok(0) => return ReadEnd::Gone(self.ended()),
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return ReadEnd::Dry,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return ReadEnd::Gone(Gone::Io(e)),
            };
            budget = budget.saturating_sub(n);
            if matches!(self.phase, ConnPhase::Closing | ConnPhase::Lingering) {
                continue;
            }
            self.dec.push(&chunk[..n]);
            if let Err(gone) = self.frames(ident, now, late, sink) {
                return ReadEnd::Gone(gone);
            }
            if self.left {
                return ReadEnd::More;
            }
            if n < chunk.len() && !self.hup {
                // The kernel had no more; the edge will tell of what comes next.
                return ReadEnd::Dry;
            }
        }
        ReadEnd::More
    }

    fn ended(&self) -> Gone {
        match self.dec.finish() {
            Err(e) if !matches!(self.phase, ConnPhase::Closing | ConnPhase::Lingering) => {
                Gone::Frame(e)
            }
            _ => Gone::Eof,
        }
    }

    /// Every whole frame in the buffer; once it is `late` the rest are left, but for one.
    fn frames(
        &mut self,
        ident: &Identity,
        now: u64,
        late: &dyn Fn() -> bool,
        sink: &mut dyn FnMut(Heard),
    ) -> Result<(), Gone> {
        let before = self.dec.pending();
        let mut took = false;
        self.left = false;
        while !matches!(self.phase, ConnPhase::Closing | ConnPhase::Lingering) {
            let Some(heard) = self.frame(ident, now)? else { break };
            took = true;
            if let Heard::Check(..) = &heard {
                sink(heard);
                break;
            }
            if let Heard::Opened(peer) = &heard {
                self.opened_by(ident.daemon, peer);
            }
            sink(heard);
            if late() {
                self.left = self.dec.pending() > 0;
                break;
            }
        }
        self.dec.relax();
        self.half_since = match self.dec.pending() {
            0 => None,
            _ if self.left => None,
            _ if took || before == 0 => Some(now),
            _ => self.half_since.or(Some(now)),
        };
        Ok(())
    }

    /// The peer has proved its identity.
    fn opened_by(&mut self, own: Daemon, peer: &Peer) {
        let user = matches!(peer, Peer::User { .. });
        self.dec.set_cap(if user { MAX_FRAME_USER } else { MAX_FRAME });
        let by_mbatchd = matches!(peer, Peer::Daemon { daemon: Daemon::Mbatchd, .. });
        self.master = own == Daemon::Sbatchd && by_mbatchd;
        self.opened = true;
    }

    /// The next frame that means something to the machine; the handshake's own are dealt with.
    fn frame(&mut self, ident: &Identity, now: u64) -> Result<Option<Heard>, Gone> {
        loop {
            let Some(raw) = self.dec.take()? else { return Ok(None) };
            match &mut self.phase {
                ConnPhase::Open => return Ok(Some(Heard::Msg(self.session.open_msg(&raw)?))),
                ConnPhase::AwaitAuth { nonce } => {
                    let addr = self.addr.ok_or(Gone::Limit("no address"))?;
                    let gate = gate(ident)?;
                    let target = gate.target(ident.daemon, *nonce);
                    let admitted = gate.admit(&target, addr, &raw, &mut self.out);
                    let (session, peer, check) =
                        admitted.inspect_err(|_| self.whom = shake::whom(&raw))?;
                    self.session = session;
                    self.phase_since = now;
                    let Some(check) = check else {
                        self.phase = ConnPhase::Open;
                        return Ok(Some(Heard::Opened(peer)));
                    };
                    self.phase = ConnPhase::AwaitCheck { peer: peer.clone() };
                    return Ok(Some(Heard::Check(peer, check)));
                }
                ConnPhase::AwaitHello { daemon, host } => {
                    let (hello, version) = shake::read_hello(&raw, *daemon, host)?;
                    let ring = ident.ring.as_deref().ok_or(Gone::Limit("no key"))?;
                    let (me, at) = (ident.daemon, &ident.host);
                    let (claims, key) = shake::sign_as_daemon(ring, &hello, me, at, ident.uid)?;
                    self.session = shake::write_auth(version, claims, &key, &mut self.out)?;
                    let peer = Peer::Daemon { daemon: *daemon, host: host.clone() };
                    self.phase = ConnPhase::AwaitOk { peer };
                    self.phase_since = now;
                }
                ConnPhase::AwaitOk { peer } => {
                    shake::read_ok(&mut self.session, &raw)?;
                    let peer = peer.clone();
                    self.phase = ConnPhase::Open;
                    self.phase_since = now;
                    return Ok(Some(Heard::Opened(peer)));
                }
                ConnPhase::Connecting { .. } | ConnPhase::Local => {
                    return Err(FrameError::Unexpected(raw.kind).into());
                }
                ConnPhase::AwaitCheck { .. } | ConnPhase::Closing | ConnPhase::Lingering => {
                    return Ok(None);
                }
            }
        }
    }

    /// Queues the number of the refusal, for a client that is not yet authenticated.
    pub fn refuse(&mut self, error: &AuthError) {
        shake::deny(error, &mut self.out);
    }
}

fn gate(ident: &Identity) -> Result<Gate<'_>, Gone> {
    let ring = ident.ring.as_deref().ok_or(Gone::Limit("no key"))?;
    let (hosts, host) = (&*ident.hosts, ident.host.as_str());
    Ok(Gate { ring, hosts, host, only_uid: ident.only_uid, ways: &ident.ways })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::net::UnixStream;

    fn open(own: Daemon, peer: &Peer) -> (Conn, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut conn = Conn::new(1, Sock::Unix(ours), ConnPhase::Open, None, 0);
        conn.opened_by(own, peer);
        (conn, theirs)
    }

    /// More output waits than a peer may leave unread.
    fn put_behind(conn: &mut Conn) {
        let report = || Msg::Refused(crate::proto::Refusal::text(1, "x".repeat(1 << 16)));
        while conn.unsent() <= OUT_HIGH {
            conn.send(report()).unwrap();
        }
    }

    fn user() -> Peer {
        let (user, host) = ("ann".to_string(), "h1".to_string());
        Peer::User { uid: 1001, gid: 1001, user, host }
    }

    #[test]
    fn orders_of_the_master_are_read_however_much_output_waits_and_no_others() {
        let of = |daemon| Peer::Daemon { daemon, host: "h1".into() };
        let paused = |own, peer: &Peer| {
            let (mut conn, _theirs) = open(own, peer);
            put_behind(&mut conn);
            conn.paused()
        };
        assert!(!paused(Daemon::Sbatchd, &of(Daemon::Mbatchd)));
        assert!(paused(Daemon::Sbatchd, &of(Daemon::Sbatchd)));
        assert!(paused(Daemon::Sbatchd, &user()));
        // whose host's root says that it is one, to a daemon that takes no orders
        for own in [Daemon::Mbatchd, Daemon::Lim, Daemon::Res] {
            assert!(paused(own, &of(Daemon::Mbatchd)), "{own:?}");
        }
    }

    #[test]
    fn half_a_frame_is_held_against_a_peer_while_it_is_read_alone() {
        let ident = Identity {
            daemon: Daemon::Mbatchd,
            host: "h1".into(),
            addr: None,
            uid: 0,
            ring: None,
            hosts: std::sync::Arc::new(crate::conf::HostTable::default()),
            only_uid: None,
            ways: Default::default(),
        };
        let (mut conn, mut theirs) = open(Daemon::Mbatchd, &user());
        let (mut whole, mut chunk) = (Vec::new(), vec![0; CHUNK]);
        Session::local().seal_msg(&Msg::Ping { n: 1 }, &mut whole).unwrap();
        let mut read =
            |conn: &mut Conn, now| conn.read(&ident, &mut chunk, now, &|| false, &mut |_| ());
        std::io::Write::write_all(&mut theirs, &whole[..whole.len() - 1]).unwrap();
        assert!(matches!(read(&mut conn, 7), ReadEnd::Dry));
        assert_eq!(conn.deadline().map(|due| due.0), Some(7 + HALF_FRAME_US));
        put_behind(&mut conn);
        assert!(matches!(read(&mut conn, 8), ReadEnd::Dry));
        assert_eq!((conn.skipped, conn.deadline()), (true, None));
    }
}
