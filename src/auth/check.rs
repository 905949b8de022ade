//! Finding out about callers beside the event loop: a thread that keeps `eauth -s`, a thread
//! for each question to an RFC 1413 server.
//!
//! Invariant: every order is answered, once; how many are under way is bounded.

use super::eauth::{self, Question, Server};
use super::ident;
use super::shake::{AuthError, CallerCheck, Claims};
use super::ways::{Way, Ways};
use crate::sys::users::{GETENT_WAIT, UserDatabase};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

/// Most callers that are being checked.
pub const MAX_CHECKS: usize = 64;

/// A caller to be checked.
pub struct CheckOrder {
    /// The connection.
    pub conn: u64,
    pub check: CallerCheck,
    pub claims: Claims,
    /// The caller's end.
    pub from: SocketAddr,
    /// Our end.
    pub ours: SocketAddr,
    /// When it came.
    pub since: Instant,
}

/// Receives the answers: the connection and, if the caller is believed, its gid.
pub type Tell = Arc<dyn Fn(u64, Result<u32, AuthError>) + Send + Sync>;

pub struct Checker {
    ways: Ways,
    /// LSF_EAUTH_SERVER.
    server: String,
    tell: Tell,
    busy: Arc<AtomicUsize>,
    eauth: Option<Sender<CheckOrder>>,
}

impl Checker {
    /// `daemon`: the name of the daemon that asks.
    pub fn new(ways: Ways, daemon: &str, tell: Tell) -> Checker {
        let server = format!("{daemon}@{}", ways.cluster);
        Checker { ways, server, tell, busy: Arc::default(), eauth: None }
    }

    pub fn order(&mut self, order: CheckOrder) {
        let conn = order.conn;
        let busy = self.busy.clone();
        if busy.fetch_add(1, Ordering::Relaxed) >= MAX_CHECKS {
            busy.fetch_sub(1, Ordering::Relaxed);
            return (self.tell)(conn, Err(AuthError::Busy));
        }
        let tell = self.tell.clone();
        let done = move |conn: u64, found: Result<u32, String>, way: Way| {
            busy.fetch_sub(1, Ordering::Relaxed);
            tell(conn, found.map_err(|why| AuthError::Unproved { way, why }));
        };
        if order.check.way == Way::Ident {
            let port = self.ways.ident_port;
            std::thread::spawn(move || done(conn, by_ident(&order, port), Way::Ident));
            return;
        }
        let (ways, server) = (&self.ways, &self.server);
        let queue = self.eauth.get_or_insert_with(|| {
            let (tx, rx) = channel::<CheckOrder>();
            let mut server = Server::new(ways.clone(), server.clone());
            std::thread::spawn(move || {
                while let Ok(order) = rx.recv() {
                    done(order.conn, by_eauth(&order, &mut server), Way::Eauth);
                }
            });
            tx
        });
        // The thread ends with this queue and not before.
        let _ = queue.send(order);
    }
}

fn by_eauth(order: &CheckOrder, server: &mut Server) -> Result<u32, String> {
    let (claims, addr) = (&order.claims, order.from);
    let CallerCheck { data, aux, .. } = &order.check;
    let question = Question { claims, addr, data: &data.0, aux: &aux.0 };
    let until = order.since + eauth::WAIT;
    if Instant::now() >= until {
        return Err("eauth -s has too much to do".into());
    }
    let (yes, words) = server.ask(&question, until)?;
    if yes {
        if !words.is_empty() {
            log::debug!("eauth -s about user {}: {words}", claims.user.escape_debug());
        }
        return Ok(claims.gid);
    }
    let words = if words.is_empty() { words } else { format!(": {words}") };
    Err(format!("eauth -s says no{words}"))
}

/// The client's host tells a name; what uid and group that name has is for this host to say.
fn by_ident(order: &CheckOrder, port: u16) -> Result<u32, String> {
    let name = ident::ask(order.ours, order.from, port)?;
    let claims = &order.claims;
    if name != claims.user {
        return Err(format!("its host says {}", name.escape_debug()));
    }
    let user = UserDatabase::default().find_name(&name, GETENT_WAIT);
    match user.ok_or_else(|| format!("no user {} here", name.escape_debug()))? {
        user if user.uid != claims.uid => Err(format!("{name} has uid {} here", user.uid)),
        user => Ok(user.gid),
    }
}
