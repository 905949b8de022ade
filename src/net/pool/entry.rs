//! New connections: accepting them, making room among those that are not authenticated, having
//! their credentials judged, counting a user's connections. Messages after that are handled
//! elsewhere.

use super::super::conn::{Conn, ConnPhase, Gone};
use super::super::limits::*;
use super::super::sock::{self, Sock};
use super::Pool;
use super::ends::shown;
use crate::auth::check::CheckOrder;
use crate::auth::shake::{self, AuthError, CallerCheck, Claims, Gate, Who};
use crate::proto::machine::ConnId;
use crate::proto::{Input, Msg, Peer, Refusal};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;

impl Pool {
    pub(super) fn accept(&mut self, us: u64, sink: &mut dyn FnMut(Input)) {
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
        let phase = if addr.is_some() { ConnPhase::Closing } else { ConnPhase::Open };
        let mut conn = Conn::new(id, sock, phase, addr, us);
        if let Some(limit) = self.silence {
            conn.limit_silence(limit, us);
        }
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

    /// Starts the check of a caller; [`Pool::checked`] takes the answer.
    pub(super) fn look_into(&mut self, id: ConnId, who: Peer, check: CallerCheck) {
        let Peer::User { uid, gid, user, host } = who else { return };
        let Some(from) = self.conns.get(&id).and_then(|c| c.addr) else { return };
        let Some(ip) = self.ident.addr else { return };
        let ours = SocketAddr::new(ip, (self.port_of)(self.ident.daemon));
        let claims = Claims { key: String::new(), who: Who::User, uid, gid, user, host };
        let since = std::time::Instant::now();
        self.checker.order(CheckOrder { conn: id, check, claims, from, ours, since });
    }

    /// The result of checking a caller.
    pub fn checked(&mut self, id: ConnId, found: Result<u32, AuthError>) {
        let Pool { conns, pending, now, .. } = self;
        let Some(conn) = conns.get_mut(&id) else { return };
        let done = conn.checked(found, *now);
        self.dirty.push(id);
        self.early.remove(&id);
        match done {
            Ok(peer) => {
                if let Some(peer) = peer {
                    pending.push_back(Input::Opened { conn: id, peer: peer.clone() });
                    if let Peer::User { uid, host, .. } = peer {
                        self.count_user(id, uid, host);
                    }
                }
                // Input that arrived meanwhile was not read.
                self.again(id);
            }
            Err(gone) => self.fail(id, gone),
        }
    }

    pub(super) fn count_user(&mut self, id: ConnId, uid: u32, host: String) {
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
}
