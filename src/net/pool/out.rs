//! The orders of the machine: connections, messages at once or once durable, datagrams, and
//! writing it all out at the end of a turn. A failure here is told in the next turn; nothing is
//! read here.

use super::super::conn::{Conn, ConnPhase, Gone};
use super::super::sock::{self, Sock};
use super::Pool;
use crate::proto::machine::ConnId;
use crate::proto::{Daemon, Endpoint, Input, Msg};
use mio::net::TcpStream;
use mio::{Interest, Token};
use std::net::{IpAddr, SocketAddr};

/// A connection that is being made.
fn connecting(host: &str, daemon: Daemon) -> ConnPhase {
    ConnPhase::Connecting { daemon, host: host.to_owned() }
}

impl Pool {
    /// Opens a connection under a number the machine chose.
    pub fn connect(&mut self, id: ConnId, to: Endpoint, us: u64) {
        if self.conns.contains_key(&id) {
            self.forget(id);
        }
        let made = match &to {
            Endpoint::Launcher => sock::dial_unix(&self.launcher)
                .map(|s| (Sock::Unix(s), ConnPhase::Local))
                .map_err(|e| format!("{}: {}", self.launcher.display(), crate::sys::words(&e))),
            Endpoint::Tcp { host, daemon } => {
                let made = self.dial(host, *daemon, (self.port_of)(*daemon));
                made.map(|s| (Sock::Tcp(s), connecting(host, *daemon)))
            }
            Endpoint::Nlb { host, port } => {
                let made = self.dial(host, Daemon::NlbServer, *port);
                made.map(|s| (Sock::Tcp(s), connecting(host, Daemon::NlbServer)))
            }
        };
        let entered = made.and_then(|(sock, phase)| {
            let mut conn = Conn::new(id, sock, phase, None, us);
            match &to {
                Endpoint::Tcp { host, daemon } => {
                    conn.whom = format!("{} on {host}", daemon.name());
                }
                Endpoint::Nlb { host, .. } => {
                    conn.whom = format!("{} on {host}", Daemon::NlbServer.name());
                }
                Endpoint::Launcher => {}
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

    fn dial(&self, host: &str, daemon: Daemon, port: u16) -> Result<TcpStream, String> {
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
        if !matches!(conn.phase, ConnPhase::Open) {
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

    /// The held messages will never be durable.
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
            ConnPhase::Open => {
                conn.set_phase(ConnPhase::Closing, self.now);
                self.dirty.push(id);
            }
            ConnPhase::Closing | ConnPhase::Lingering => {}
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

    /// Sends a datagram to an address that need not be a host's.
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

    /// Writes out what this turn has queued.
    pub fn flush(&mut self, us: u64) {
        let mut ids = std::mem::take(&mut self.dirty);
        for id in ids.drain(..) {
            self.flush_one(id, us);
        }
        // Failures while flushing are reported in the next turn; keep the allocation.
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
        if matches!(conn.phase, ConnPhase::Connecting { .. }) {
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
        if conn.drained() && matches!(conn.phase, ConnPhase::Open) {
            self.drained.push(id, us);
        }
        let resumed = conn.skipped && !conn.paused();
        conn.skipped &= !resumed;
        if matches!(conn.phase, ConnPhase::Closing) && conn.unsent() == 0 && !conn.holds() {
            // The peer may have closed first; then there is nothing to end.
            let _ = conn.sock.finish();
            conn.set_phase(ConnPhase::Lingering, us);
            self.again(id);
        } else if resumed {
            self.again(id);
        }
        self.arm(id);
    }
}
