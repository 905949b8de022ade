//! The ends of connections: the message to the peer, the line of the log, the state to forget.
//! Every connection that was entered leaves through [`Pool::forget`].

use super::super::conn::{ConnPhase, Gone};
use super::super::limits::REFUSALS_LOGGED;
use super::Pool;
use crate::auth::shake::AuthError;
use crate::proto::Input;
use crate::proto::frame::FrameError;
use crate::proto::machine::ConnId;
use std::io::ErrorKind;
use std::net::SocketAddr;

impl Pool {
    /// A connection failed while something else was done: the machine hears of it next turn.
    pub(super) fn fail(&mut self, id: ConnId, gone: Gone) {
        let mut told = Vec::new();
        self.lose(id, gone, self.now, &mut |input| told.push(input));
        self.pending.extend(told);
    }

    /// Ends a connection and tells who must know.
    pub(super) fn lose(&mut self, id: ConnId, gone: Gone, us: u64, sink: &mut dyn FnMut(Input)) {
        let Some(conn) = self.conns.get_mut(&id) else { return };
        let peer = conn.addr;
        match (&conn.phase, conn.opened) {
            (ConnPhase::Closing | ConnPhase::Lingering, _) => {
                self.forget(id);
                return;
            }
            (ConnPhase::AwaitAuth { .. } | ConnPhase::AwaitCheck { .. }, _) => {
                if let Gone::Auth(error) = &gone {
                    conn.refuse(error);
                    // A single write sends as much as fits.
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
                    // A message that names our key file already need not do so twice.
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

    pub(super) fn forget(&mut self, id: ConnId) {
        self.drained.close(id);
        self.early.remove(&id);
        self.holding.remove(&id);
        // Closing the descriptor, which has no copy, takes it out of the poll.
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
    pub(super) fn complain(&mut self, us: u64, line: &str) {
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

/// A peer's address for the log; nothing for a local one.
pub(super) fn shown(addr: Option<SocketAddr>) -> String {
    addr.map_or("this host".into(), |a| a.ip().to_string())
}
