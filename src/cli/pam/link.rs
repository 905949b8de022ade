//! The connections between pam and TaskStarters (`auth::user_server`): the server's side, which
//! never blocks, and the caller's.
//!
//! Invariants: nothing is believed before both sides have proved that they are of one user; a
//! frame that is wrong in any way ends its connection and nothing else; a connection that does not
//! prove itself within [`EARLY`] is closed.

use crate::auth::shake::{self, Ask, Auth, AuthError, Grant, Hello, Hex32, NONCE, UserServer};
use crate::auth::user_server::comes_from;
use crate::cli::client::ClientError;
use crate::cli::prove::ask_authd;
use crate::cli::site::LocalSite;
use crate::conf::{HostTable, load};
use crate::proto::frame::{
    Decoder, FrameHead, Kind, MAX_FRAME_EARLY, Raw, Session, SessionKey, Side, write_frame,
};
use crate::proto::pam::{PAM_FRAME_MAX, PamMsg};
use crate::proto::{Daemon, Msg, PROTO_LOW, Refusal, high};
use crate::sys::files::RealFiles;
use crate::sys::words;
use rustix::io::retry_on_intr;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// The time that a caller has to prove itself.
pub(super) const EARLY: Duration = Duration::from_secs(10);
/// Output that may wait for a TaskStarter, bytes.
const BEHIND_MAX: usize = 64 << 10;

/// The side of pam.
pub(super) struct Server<'a> {
    pub(super) site: &'a LocalSite,
    /// This host as the cluster spells it.
    pub(super) host: String,
    pub(super) port: u16,
    /// The hosts of the job, and this one.
    pub(super) table: HostTable,
    keys: Vec<String>,
}

impl<'a> Server<'a> {
    /// # Errors
    /// authd's, in words.
    pub(super) fn new(
        site: &'a LocalSite,
        host: &str,
        port: u16,
        table: HostTable,
    ) -> Result<Server<'a>, ClientError> {
        let mut server = Server { site, host: host.to_owned(), port, table, keys: Vec::new() };
        let hello = server.hello([0; NONCE]);
        match server.ask(&hello, None)? {
            Grant::Keys { keys } => server.keys = keys,
            Grant::No { why } => return Err(AuthError::NoGrant { why }.into()),
            _ => return Err(ClientError::Unexpected),
        }
        Ok(server)
    }

    fn hello(&self, nonce: [u8; NONCE]) -> Hello {
        let (daemon, host, ways) = (Daemon::Pam, self.host.clone(), String::new());
        let (keys, nonce) = (self.keys.clone(), Hex32(nonce));
        Hello { lo: PROTO_LOW, hi: high(), keys, nonce, daemon, host, ways }
    }

    fn ask(&self, hello: &Hello, caller: Option<shake::Claims>) -> Result<Grant, ClientError> {
        let server = UserServer { uid: crate::sys::euid(), port: self.port, caller };
        let (target, keys, eauth) = (hello.target(), Vec::new(), String::new());
        ask_authd(self.site, &Ask { target, keys, eauth, user_server: Some(Box::new(server)) })
    }

    /// Judges a caller's proof: the session and the caller's host.
    fn admit(
        &self,
        nonce: [u8; NONCE],
        from: IpAddr,
        raw: &Raw<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(Session, String), ClientError> {
        raw.expect(Kind::Auth)?;
        let auth: Auth = raw.parse()?;
        shake::agree(auth.version, auth.version)?;
        let key = match self.ask(&self.hello(nonce), Some(auth.claims))? {
            Grant::Yes { session, .. } => SessionKey::new(session.0),
            Grant::No { why } => return Err(AuthError::NoGrant { why }.into()),
            _ => return Err(ClientError::Unexpected),
        };
        let mut session = Session::signed(auth.version, &key, Side::Server);
        // the body is read again here, this time believed
        let auth: Auth = session.open(Kind::Auth, raw)?;
        comes_from(&self.table, &auth.claims.host, from, &self.host)?;
        shake::prove(&mut session, out)?;
        Ok((session, auth.claims.host))
    }
}

/// Why a connection of a TaskStarter is over.
pub(super) enum LinkEnd {
    Closed,
    /// The caller has not proved itself, or has sent a frame that is wrong, in words.
    Wrong(String),
}

enum LinkPhase {
    Early { nonce: [u8; NONCE], since: Instant },
    Open { session: Session, host: String },
}

/// A connection of a TaskStarter, on the side of pam.
pub(super) struct Link {
    sock: TcpStream,
    from: IpAddr,
    dec: Decoder,
    out: Vec<u8>,
    phase: LinkPhase,
    /// Closed once all is sent.
    pub(super) closing: bool,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sock.as_fd()
    }
}

impl Link {
    /// Says hello.
    pub(super) fn new(server: &Server<'_>, sock: TcpStream, from: IpAddr) -> io::Result<Link> {
        sock.set_nonblocking(true)?;
        let nonce = crate::sys::random()?;
        let mut out = Vec::new();
        let head = FrameHead::plain(Kind::Hello, PROTO_LOW);
        write_frame(&mut out, head, None, &server.hello(nonce)).map_err(io::Error::other)?;
        let phase = LinkPhase::Early { nonce, since: Instant::now() };
        let dec = Decoder::new(MAX_FRAME_EARLY);
        let mut link = Link { sock, from, dec, out, phase, closing: false };
        link.flush()?;
        Ok(link)
    }

    /// The host of a caller that has proved itself, or the address of another.
    pub(super) fn whence(&self) -> String {
        self.host().map_or_else(|| self.from.to_string(), |host| format!("host {host}"))
    }

    /// The host of a caller that has proved itself.
    pub(super) fn host(&self) -> Option<&str> {
        match &self.phase {
            LinkPhase::Open { host, .. } => Some(host),
            LinkPhase::Early { .. } => None,
        }
    }

    /// Since when it has not proved itself.
    pub(super) fn early(&self) -> Option<Instant> {
        match self.phase {
            LinkPhase::Early { since, .. } => Some(since),
            LinkPhase::Open { .. } => None,
        }
    }

    pub(super) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// Why the connection is over.
    pub(super) fn read(&mut self, server: &Server<'_>) -> Result<Vec<PamMsg>, LinkEnd> {
        let mut chunk = [0u8; 4096];
        let mut said = Vec::new();
        loop {
            match self.sock.read(&mut chunk) {
                // what the other side has said before counts
                Ok(0) if said.is_empty() => return Err(LinkEnd::Closed),
                Ok(0) => return Ok(said),
                Ok(n) => self.dec.push(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(said),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(LinkEnd::Closed),
            }
            self.frames(server, &mut said).map_err(LinkEnd::Wrong)?;
            self.flush().map_err(|_| LinkEnd::Closed)?;
        }
    }

    fn frames(&mut self, server: &Server<'_>, said: &mut Vec<PamMsg>) -> Result<(), String> {
        while let Some(raw) = self.dec.take().map_err(|e| e.to_string())? {
            match &mut self.phase {
                LinkPhase::Early { nonce, .. } => {
                    let admitted = server.admit(*nonce, self.from, &raw, &mut self.out);
                    let (session, host) = match admitted {
                        Ok(admitted) => admitted,
                        Err(e) => {
                            self.deny(&e);
                            return Err(format!("{e:#}"));
                        }
                    };
                    self.phase = LinkPhase::Open { session, host };
                    self.dec.set_cap(PAM_FRAME_MAX);
                }
                LinkPhase::Open { session, .. } => {
                    let msg = session.open_msg(&raw).map_err(|e| e.to_string())?;
                    let Msg::Pam(msg) = msg else { return Err("an unexpected message".into()) };
                    said.push(msg);
                }
            }
        }
        Ok(())
    }

    /// Tells a caller that is not believed so: it need not try again. Where it is our authd that
    /// has not answered, it may.
    fn deny(&mut self, why: &ClientError) {
        if let ClientError::Auth(why) = why {
            shake::deny(why, &mut self.out);
            // the connection is closed in any case
            let _ = self.flush();
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Why the connection is over.
    pub(super) fn send(&mut self, msg: PamMsg) -> Result<(), String> {
        self.send_msg(&Msg::Pam(msg))
    }

    /// Refuses the caller; the connection is closed once that is sent.
    pub(super) fn refuse(&mut self, why: &str) -> Result<(), String> {
        self.closing = true;
        let refusal = Refusal::text(crate::model::reason::err::PERMISSION, why.to_owned());
        self.send_msg(&Msg::Refused(refusal))
    }

    fn send_msg(&mut self, msg: &Msg) -> Result<(), String> {
        let LinkPhase::Open { session, .. } = &mut self.phase else {
            return Err("not yet proved".into());
        };
        session.seal_msg(msg, &mut self.out).map_err(|e| e.to_string())?;
        if self.out.len() > BEHIND_MAX {
            return Err("does not read".into());
        }
        self.flush().map_err(|e| words(&e))
    }

    /// Writes what can be written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            match self.sock.write(&self.out) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => _ = self.out.drain(..n),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// A connection to pam, on the side of a TaskStarter. It blocks, with time-outs.
pub struct PamCall {
    sock: TcpStream,
    session: Session,
    dec: Decoder,
}

impl AsFd for PamCall {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sock.as_fd()
    }
}

impl PamCall {
    /// Calls pam at this host and port; both sides have proved themselves.
    ///
    /// # Errors
    /// Why that is not so.
    pub fn new(
        site: &LocalSite,
        host: &str,
        port: u16,
        wait: Duration,
    ) -> Result<PamCall, ClientError> {
        let mut sock = dial(site, host, port, wait)?;
        let mut dec = Decoder::new(MAX_FRAME_EARLY);
        let (hello, version) = loop {
            if let Some(raw) = dec.take()? {
                break shake::read_hello(&raw, Daemon::Pam, host)?;
            }
            fill(&mut sock, &mut dec)?;
        };
        let server = UserServer { uid: crate::sys::euid(), port, caller: None };
        let (target, keys, eauth) = (hello.target(), hello.keys.clone(), String::new());
        let ask = Ask { target, keys, eauth, user_server: Some(Box::new(server)) };
        let (claims, key) = match ask_authd(site, &ask)? {
            Grant::Yes { claims, session } => (claims, SessionKey::new(session.0)),
            Grant::No { why } => return Err(AuthError::NoGrant { why }.into()),
            _ => return Err(ClientError::Unexpected),
        };
        let mut out = Vec::new();
        let mut session = shake::write_auth(version, claims, &key, &mut out)?;
        sock.write_all(&out).map_err(|e| ClientError::Lost(words(&e)))?;
        loop {
            if let Some(raw) = dec.take()? {
                shake::read_ok(&mut session, &raw)?;
                break;
            }
            fill(&mut sock, &mut dec)?;
        }
        dec.set_cap(PAM_FRAME_MAX);
        Ok(PamCall { sock, session, dec })
    }

    /// # Errors
    /// The connection is lost.
    pub fn send(&mut self, msg: &PamMsg) -> Result<(), ClientError> {
        let mut out = Vec::new();
        self.session.seal_msg(&Msg::Pam(msg.clone()), &mut out)?;
        self.sock.write_all(&out).map_err(|e| ClientError::Lost(words(&e)))
    }

    /// The next message among what was read.
    ///
    /// # Errors
    /// A refusal, or a frame that is wrong.
    pub fn take(&mut self) -> Result<Option<PamMsg>, ClientError> {
        let Some(raw) = self.dec.take()? else { return Ok(None) };
        match self.session.open_msg(&raw)? {
            Msg::Pam(msg) => Ok(Some(msg)),
            Msg::Refused(refusal) => Err(ClientError::Refused(refusal)),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Reads once.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn fill(&mut self) -> Result<(), ClientError> {
        fill(&mut self.sock, &mut self.dec)
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// The errors of [`PamCall::take`] and [`PamCall::fill`].
    pub fn next(&mut self) -> Result<PamMsg, ClientError> {
        loop {
            if let Some(msg) = self.take()? {
                return Ok(msg);
            }
            self.fill()?;
        }
    }
}

fn fill(sock: &mut TcpStream, dec: &mut Decoder) -> Result<(), ClientError> {
    let mut chunk = [0u8; 4096];
    let n = loop {
        match sock.read(&mut chunk) {
            Ok(0) => return Err(ClientError::Lost("closed by pam".into())),
            Ok(n) => break n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                return Err(ClientError::Timeout("pam does not answer".into()));
            }
            Err(e) => return Err(ClientError::Lost(words(&e))),
        }
    };
    dec.push(&chunk[..n]);
    Ok(())
}

/// Whether pam can be on a host of this name.
fn of_cluster(site: &LocalSite, host: &str) -> Result<(), ClientError> {
    let (base, _) = load::load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    // one that further hosts may join says nothing of a name that it lacks
    let Some(base) = base.filter(|base| base.hostcache().is_none()) else { return Ok(()) };
    let addressed = || base.hosts.by_addr(host.parse().ok()?);
    match base.hosts.canonical(host).or_else(addressed) {
        Some(_) => Ok(()),
        None => Err(ClientError::Conf("no host of the cluster".into())),
    }
}

/// Connects from this host's own address, where several hosts share a machine.
fn dial(site: &LocalSite, host: &str, port: u16, wait: Duration) -> Result<TcpStream, ClientError> {
    use crate::auth::HostLookup;
    if host != site.host {
        of_cluster(site, host)?;
    }
    let table = site.addresses(&[host, &site.host]);
    let addr = table.addr_of(host).or_else(|| crate::sys::site::resolve(host).first().copied());
    let addr = addr.ok_or_else(|| ClientError::Conf("unknown host".into()))?;
    let own = table.addr_of(&site.host).filter(|_| site.shared_machine);
    let down = |e: io::Error| match e.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => ClientError::Timeout(words(&e)),
        _ => ClientError::Down(words(&e)),
    };
    let to = SocketAddr::new(addr, port);
    let fd = crate::net::sock::tcp_from(own, to, false).map_err(down)?;
    let sock = TcpStream::from(fd);
    sock.set_write_timeout(Some(wait)).map_err(down)?;
    sock.set_read_timeout(Some(wait)).map_err(down)?;
    match retry_on_intr(|| rustix::net::connect(&sock, &to)) {
        Ok(()) => Ok(sock),
        Err(rustix::io::Errno::INPROGRESS) => {
            Err(ClientError::Timeout("no connection in time".into()))
        }
        Err(e) => Err(down(e.into())),
    }
}
