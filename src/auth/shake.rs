//! The handshake that authenticates a connection, without any I/O.
//!
//! ```text
//! server -> client   Hello   versions, key ids, nonce, which daemon on which host   unsigned
//! client             asks authd (a user) or its own key ring (a daemon) for the session key
//! client -> server   Auth    version, key id, who                                   signed
//! server -> client   AuthOk                                                         signed
//! ```
//!
//! The session key is HMAC-SHA256 under the cluster key over all of: a label, key id, kind of
//! caller, uid, gid, user, client host, target daemon, target host, both ends of the server's
//! range of versions, nonce; each field preceded by its length. The client binds the target
//! that it *wants*, not the one that answers; so a credential is worth nothing to another
//! daemon, another host, another connection, and a changed Hello makes both ends disagree.
//! `AuthOk` proves the server: nothing it says is believed before.
//!
//! A user of a site that enables another way (LSF_AUTH) names it in `Auth`, with what it needs.
//! Where the client's authd answers, the frames are signed as above all the same, and the way is
//! asked on top. Where it does not, the session key is made from what travels in the open: it
//! finds damage and guessing, it does not keep out who can read along, and it does not prove the
//! server. Hello's list of ways is bound into the session key where there is such a list.

use super::ways::{Way, Ways};
use super::{HostLookup, KeyRing, eauth_aux};
use crate::model::ByteStr;
use crate::model::reason::err;
use crate::proto::frame::{
    FrameError, FrameHead, Kind, MacKey, Raw, Session, SessionKey, Side, write_frame,
};
use crate::proto::{Daemon, PROTO_LOW, Peer, high};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Bytes of a nonce.
pub const NONCE: usize = 32;
/// Largest credential of another way, bytes.
pub const MAX_DATA: usize = 8 << 10;
/// The first port that any user may bind.
const UNPRIVILEGED: u16 = 1024;
/// Longest user or host name in a credential, bytes.
pub const MAX_NAME: usize = 256;

/// Thirty-two bytes that travel as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hex32(pub [u8; 32]);

impl fmt::Debug for Hex32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hex32(..)")
    }
}
impl From<Hex32> for String {
    fn from(h: Hex32) -> String {
        super::ring::hex(&h.0)
    }
}
impl TryFrom<String> for Hex32 {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        super::ring::unhex(&text)
            .and_then(|b| b.try_into().ok())
            .map(Hex32)
            .ok_or("not 32 bytes in hexadecimal")
    }
}

/// The server's first words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub lo: u16,
    pub hi: u16,
    pub keys: Vec<String>,
    pub nonce: Hex32,
    pub daemon: Daemon,
    pub host: String,
    /// The ways open to users; empty: the built-in credential alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ways: String,
}

/// The kind of caller of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    User,
    Daemon(Daemon),
}

/// The caller, as the client tells it and the session key confirms it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    pub key: String,
    pub who: Who,
    pub uid: u32,
    pub gid: u32,
    pub user: String,
    /// The client's host.
    pub host: String,
}

/// The server and the moment that a credential is good for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub daemon: Daemon,
    pub host: String,
    pub nonce: Hex32,
    pub lo: u16,
    pub hi: u16,
    /// The names of methods, as in [`Hello`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ways: String,
}

impl Hello {
    /// The purpose of a credential for this server.
    pub fn target(&self) -> Target {
        let (daemon, host, ways) = (self.daemon, self.host.clone(), self.ways.clone());
        Target { daemon, host, nonce: self.nonce, lo: self.lo, hi: self.hi, ways }
    }
}

/// The client's first words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Auth {
    pub version: u16,
    pub claims: Claims,
    /// How the user proves it; empty: by the signature itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub way: String,
    /// The output of `eauth -c`.
    #[serde(default, skip_serializing_if = "ByteStr::is_empty")]
    pub data: ByteStr,
    /// The auxiliary data that it left, as [`eauth_aux::pack`] has it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub aux: String,
}

impl Auth {
    /// A proof by the signature.
    pub fn signed(version: u16, claims: Claims) -> Auth {
        let (way, data, aux) = Default::default();
        Auth { version, claims, way, data, aux }
    }
}

/// The pending check of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerCheck {
    pub way: Way,
    pub data: ByteStr,
    /// Auxiliary data of eauth.
    pub aux: ByteStr,
}

/// The server's answer to a good [`Auth`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthOk {}

/// The server's answer to a bad one: an lsberrno.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deny {
    pub code: i32,
}

/// A request of a command to its authd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub target: Target,
    pub keys: Vec<String>,
    /// `-c`: a credential of eauth for the target's host is wanted; any other text: such a
    /// credential is to be judged. Empty: a session key is wanted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub eauth: String,
    /// The server is a process of a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_server: Option<Box<UserServer>>,
}

/// A server that a user runs, such as pam(1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserServer {
    /// The user on both sides.
    pub uid: u32,
    pub port: u16,
    /// The server asks, about a caller that says this of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Claims>,
}

/// authd's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grant {
    Yes {
        claims: Claims,
        session: Hex32,
    },
    No {
        why: String,
    },
    /// The output of `eauth -c`.
    Eauth {
        text: String,
    },
    /// The keys of this host, for a server of a user.
    Keys {
        keys: Vec<String>,
    },
}

/// Why a connection was not authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    Frame(FrameError),
    /// The ranges of versions of the two sides do not meet.
    NoVersion {
        lo: u16,
        hi: u16,
    },
    NoCommonKey {
        /// The place of the keys, from [`KeyRing::place`].
        place: String,
    },
    UnknownKey {
        place: String,
    },
    /// A name that cannot be one.
    BadName,
    /// Another daemon or host answered than the one that was called.
    WrongServer {
        daemon: Daemon,
        host: String,
    },
    /// The peer's address is not one of a host of the cluster.
    NotOurHost {
        addr: IpAddr,
    },
    /// The peer's address belongs to another host than the one named.
    WrongHost {
        addr: IpAddr,
        host: String,
    },
    /// A personal cluster: not its owner.
    ForeignUid {
        uid: u32,
    },
    /// The other side refused, with this lsberrno.
    Denied {
        code: i32,
    },
    /// A way that this site does not enable, or that this host does not know.
    NotEnabled {
        way: String,
    },
    /// The way was asked and does not confirm the caller.
    Unproved {
        way: Way,
        why: String,
    },
    /// hosts.equiv does not let this user of this host in.
    NotEquiv,
    /// Too many callers are being checked.
    Busy,
    /// authd refused, in its words.
    NoGrant {
        why: String,
    },
}

impl AuthError {
    /// The lsberrno that goes with it.
    pub fn code(&self) -> i32 {
        match self {
            AuthError::NotOurHost { .. } | AuthError::WrongHost { .. } => err::NOLSF_HOST,
            AuthError::Denied { code } => *code,
            AuthError::Busy => err::BUSY,
            _ => err::PERMISSION,
        }
    }
}

impl From<FrameError> for AuthError {
    fn from(e: FrameError) -> Self {
        AuthError::Frame(e)
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthError::Frame(e) => e.fmt(f),
            AuthError::NoVersion { lo, hi } => write!(
                f,
                "peer speaks protocol versions {lo} to {hi}, here are {PROTO_LOW} to {}",
                high()
            ),
            AuthError::NoCommonKey { place } => write!(f, "no cluster key in common{place}"),
            AuthError::UnknownKey { place } => {
                write!(f, "signed with an unknown cluster key{place}")
            }
            AuthError::BadName => f.write_str("a name that cannot be one"),
            AuthError::WrongServer { daemon, host } => {
                write!(f, "{} on {} answered instead", daemon.name(), host.escape_debug())
            }
            AuthError::NotOurHost { addr } => write!(f, "{addr} is not a host of this cluster"),
            AuthError::WrongHost { addr, host } => {
                write!(f, "{addr} is not an address of host {}", host.escape_debug())
            }
            AuthError::ForeignUid { uid } => {
                write!(f, "uid {uid} does not own this personal cluster")
            }
            AuthError::Denied { code } => {
                write!(f, "refused: {}", crate::model::reason::err_text(*code))
            }
            AuthError::NotEnabled { way } => {
                write!(f, "authentication by {} is not enabled (LSF_AUTH)", way.escape_debug())
            }
            AuthError::Unproved { way, why } => write!(f, "{}: {why}", way.name()),
            AuthError::NotEquiv => f.write_str("hosts.equiv does not allow it (LSF_USE_HOSTEQUIV)"),
            AuthError::Busy => f.write_str("too many callers are being checked"),
            AuthError::NoGrant { why } => write!(f, "authd: {why}"),
        }
    }
}
impl std::error::Error for AuthError {}

/// Names in a credential: printable, no blanks, of a bounded length.
pub fn sound(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// The session key of one connection.
pub fn session_key(
    ring: &KeyRing,
    claims: &Claims,
    target: &Target,
) -> Result<SessionKey, AuthError> {
    let key = ring.find(&claims.key);
    let key = key.ok_or_else(|| AuthError::UnknownKey { place: ring.place().to_owned() });
    derive(key, b"lsf-cred-1", claims, target)
}

/// The session key of a connection whose ends share no secret.
pub fn open_key(auth: &Auth, target: &Target) -> Result<SessionKey, AuthError> {
    let key = MacKey::new(&auth.data.0);
    derive(Ok(&key), format!("lsf-open-1 {}", auth.way).as_bytes(), &auth.claims, target)
}

fn derive(
    key: Result<&MacKey, AuthError>,
    label: &[u8],
    claims: &Claims,
    target: &Target,
) -> Result<SessionKey, AuthError> {
    let names = [&claims.user, &claims.host, &target.host];
    if !names.into_iter().all(|n| sound(n)) {
        return Err(AuthError::BadName);
    }
    let kind = match claims.who {
        Who::User => "user".to_string(),
        Who::Daemon(d) => format!("daemon:{}", d.name()),
    };
    let (uid, gid) = (claims.uid.to_be_bytes(), claims.gid.to_be_bytes());
    let (lo, hi) = (target.lo.to_be_bytes(), target.hi.to_be_bytes());
    let fields: [&[u8]; 13] = [
        label,
        claims.key.as_bytes(),
        kind.as_bytes(),
        &uid,
        &gid,
        claims.user.as_bytes(),
        claims.host.as_bytes(),
        target.daemon.name().as_bytes(),
        target.host.as_bytes(),
        &lo,
        &hi,
        &target.nonce.0,
        target.ways.as_bytes(),
    ];
    // A server that names no ways may be one that knows of none: it counts one field less.
    let counted = fields.len() - usize::from(target.ways.is_empty());
    Ok(SessionKey::new(key?.of_fields(&fields[..counted])))
}

/// The lower of the two highest versions, if the other side can speak it.
pub fn agree(lo: u16, hi: u16) -> Result<u16, AuthError> {
    let version = hi.min(high());
    if version < PROTO_LOW || version < lo {
        return Err(AuthError::NoVersion { lo, hi });
    }
    Ok(version)
}

/// The data with which a server verifies a caller.
pub struct Gate<'a> {
    pub ring: &'a KeyRing,
    pub hosts: &'a dyn HostLookup,
    /// The server's own host.
    pub host: &'a str,
    /// A personal cluster: the only uid accepted.
    pub only_uid: Option<u32>,
    pub ways: &'a Ways,
}

impl Gate<'_> {
    /// The server's first frame, for this connection alone.
    pub fn hello(&self, daemon: Daemon, nonce: [u8; NONCE], out: &mut Vec<u8>) -> Hello {
        let hello = Hello {
            lo: PROTO_LOW,
            hi: high(),
            keys: self.ring.ids(),
            nonce: Hex32(nonce),
            daemon,
            host: self.host.to_string(),
            ways: self.ways.words(),
        };
        // Ids and names are bounded far below the cap.
        let _ = write_frame(out, FrameHead::plain(Kind::Hello, PROTO_LOW), None, &hello);
        hello
    }

    /// The purpose of a credential for the connection greeted with this nonce.
    pub fn target(&self, daemon: Daemon, nonce: [u8; NONCE]) -> Target {
        let (host, nonce) = (self.host.to_string(), Hex32(nonce));
        Target { daemon, host, nonce, lo: PROTO_LOW, hi: high(), ways: self.ways.words() }
    }

    /// Whether a connection from this address may speak at all.
    pub fn known_addr(&self, addr: IpAddr) -> Result<(), AuthError> {
        let known = addr.is_loopback() || self.hosts.host_of_addr(addr).is_some();
        if known { Ok(()) } else { Err(AuthError::NotOurHost { addr }) }
    }

    /// Judges the client's first frame; appends the answer that proves this server, unless
    /// something is still to be found out: then [`prove`] appends it.
    pub fn admit(
        &self,
        target: &Target,
        from: SocketAddr,
        raw: &Raw<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(Session, Peer, Option<CallerCheck>), AuthError> {
        raw.expect(Kind::Auth)?;
        let auth: Auth = raw.parse()?;
        if auth.version < PROTO_LOW || auth.version > high() {
            return Err(AuthError::NoVersion { lo: auth.version, hi: auth.version });
        }
        let way = self.way(&auth)?;
        let key = if way != Way::Key && auth.claims.key.is_empty() {
            open_key(&auth, target)?
        } else {
            session_key(self.ring, &auth.claims, target)?
        };
        let mut session = Session::signed(auth.version, &key, Side::Server);
        // The body is read again here, this time believed.
        let Auth { claims, data, aux, .. } = session.open(Kind::Auth, raw)?;
        self.judge(&claims, from.ip())?;
        self.equivalent(&claims, target.daemon)?;
        let check = match way {
            Way::Key => None,
            Way::Setuid if from.port() >= UNPRIVILEGED => {
                let why = format!("port {} is not a privileged one", from.port());
                return Err(AuthError::Unproved { way, why });
            }
            Way::Setuid => None,
            Way::Ident => Some(CallerCheck { way, data, aux: ByteStr::default() }),
            Way::Eauth => match eauth_aux::unpack(&aux) {
                Ok(aux) => Some(CallerCheck { way, data, aux: aux.into() }),
                Err(why) => return Err(AuthError::Unproved { way, why }),
            },
        };
        if check.is_none() {
            prove(&mut session, out)?;
        }
        let Claims { uid, gid, user, host, .. } = claims;
        let peer = match claims.who {
            Who::User => Peer::User { uid, gid, user, host },
            Who::Daemon(daemon) => Peer::Daemon { daemon, host },
        };
        Ok((session, peer, check))
    }

    /// The way that the client takes, if it is open to it.
    fn way(&self, auth: &Auth) -> Result<Way, AuthError> {
        let refused = || AuthError::NotEnabled { way: auth.way.chars().take(20).collect() };
        let way = Way::of(&auth.way).ok_or_else(refused)?;
        let open = match auth.claims.who {
            // The key is what daemons have, and all that they have.
            Who::Daemon(_) => way == Way::Key,
            Who::User => self.ways.allows(way),
        };
        match open {
            true if auth.data.len() > MAX_DATA => {
                Err(AuthError::NoGrant { why: "too long".into() })
            }
            true => Ok(way),
            false if auth.way.is_empty() => Err(AuthError::NotEnabled { way: "key".into() }),
            false => Err(refused()),
        }
    }

    /// Refuses a user whom hosts.equiv does not admit, with LSF_USE_HOSTEQUIV. The file never
    /// admits root.
    fn equivalent(&self, claims: &Claims, daemon: Daemon) -> Result<(), AuthError> {
        let served = matches!(daemon, Daemon::Mbatchd | Daemon::Res | Daemon::NlbServer);
        let asked = served && claims.who == Who::User;
        let Some(equiv) = self.ways.equiv.as_deref().filter(|_| asked) else { return Ok(()) };
        let same = |word: &str| {
            let of_addr = |addr| self.hosts.host_of_addr(addr) == Some(&claims.host);
            word.eq_ignore_ascii_case(&claims.host)
                || word.parse().ok().or_else(|| self.hosts.addr_of(word)).is_some_and(of_addr)
        };
        let user = &claims.user;
        let fine = claims.uid != 0 && equiv.allows(&same, user, user) == Some(true);
        if fine { Ok(()) } else { Err(AuthError::NotEquiv) }
    }

    fn judge(&self, claims: &Claims, addr: IpAddr) -> Result<(), AuthError> {
        if self.only_uid.is_some_and(|uid| uid != claims.uid) {
            return Err(AuthError::ForeignUid { uid: claims.uid });
        }
        match self.hosts.host_of_addr(addr) {
            Some(name) if name == claims.host => Ok(()),
            // Loopback without a host of its own can only be this host.
            None if addr.is_loopback() && claims.host == self.host => Ok(()),
            None => Err(AuthError::NotOurHost { addr }),
            Some(_) => Err(AuthError::WrongHost { addr, host: claims.host.clone() }),
        }
    }
}

/// Appends the answer that lets a client in.
pub fn prove(session: &mut Session, out: &mut Vec<u8>) -> Result<(), AuthError> {
    Ok(session.seal(Kind::AuthOk, &AuthOk {}, out)?)
}

/// The claimed identity, for the log: ` user ann (uid 5) of host hosta`. Not believed.
pub fn whom(raw: &Raw<'_>) -> String {
    match raw.parse::<Auth>() {
        Ok(Auth { claims, .. }) if sound(&claims.user) && sound(&claims.host) => {
            let Claims { user, uid, host, .. } = claims;
            let (user, host) = (user.escape_debug(), host.escape_debug());
            format!(" of user {user} (uid {uid}) of host {host}")
        }
        _ => String::new(),
    }
}

/// The words of a refusal, for the client to have a number to show.
pub fn deny(error: &AuthError, out: &mut Vec<u8>) {
    let head = FrameHead::plain(Kind::Deny, PROTO_LOW);
    let _ = write_frame(out, head, None, &Deny { code: error.code() });
}

/// A client's side: reads the Hello and holds it against the server that was called.
pub fn read_hello(raw: &Raw<'_>, daemon: Daemon, host: &str) -> Result<(Hello, u16), AuthError> {
    if raw.kind == Kind::Deny {
        return Err(denied(raw));
    }
    raw.expect(Kind::Hello)?;
    let hello: Hello = raw.parse()?;
    if hello.daemon != daemon || hello.host != host {
        return Err(AuthError::WrongServer { daemon: hello.daemon, host: hello.host });
    }
    let version = agree(hello.lo, hello.hi)?;
    Ok((hello, version))
}

fn denied(raw: &Raw<'_>) -> AuthError {
    match raw.parse::<Deny>() {
        Ok(Deny { code }) => AuthError::Denied { code },
        Err(e) => AuthError::Frame(e),
    }
}

/// A client's side: signs as `claims` with the key that authd (or the ring) gave.
pub fn write_auth(
    version: u16,
    claims: Claims,
    key: &SessionKey,
    out: &mut Vec<u8>,
) -> Result<Session, AuthError> {
    write_auth_of(Auth::signed(version, claims), key, out)
}

/// Writes like [`write_auth`], with any method.
pub fn write_auth_of(
    auth: Auth,
    key: &SessionKey,
    out: &mut Vec<u8>,
) -> Result<Session, AuthError> {
    let mut session = Session::signed(auth.version, key, Side::Client);
    session.seal(Kind::Auth, &auth, out)?;
    Ok(session)
}

/// A client's side: believes the server, or not.
pub fn read_ok(session: &mut Session, raw: &Raw<'_>) -> Result<(), AuthError> {
    if raw.kind == Kind::Deny {
        return Err(denied(raw));
    }
    session.open::<AuthOk>(Kind::AuthOk, raw)?;
    Ok(())
}

/// The key of ours to sign with for a server that knows these.
pub(super) fn common(ring: &KeyRing, theirs: &[String]) -> Result<String, AuthError> {
    let none = || AuthError::NoCommonKey { place: ring.place().to_owned() };
    ring.choose(theirs).map(str::to_owned).ok_or_else(none)
}

/// A daemon's own credential for a server: who it is comes from the caller, not from the wire.
pub fn sign_as_daemon(
    ring: &KeyRing,
    hello: &Hello,
    me: Daemon,
    my_host: &str,
    uid: u32,
) -> Result<(Claims, SessionKey), AuthError> {
    let key = common(ring, &hello.keys)?;
    let claims = Claims {
        key,
        who: Who::Daemon(me),
        uid,
        gid: 0,
        user: me.name().to_string(),
        host: my_host.to_string(),
    };
    let session = session_key(ring, &claims, &hello.target())?;
    Ok((claims, session))
}

/// authd's judgement: who asks is told by the kernel and by passwd, never by the question.
pub fn grant(ring: &KeyRing, ask: &Ask, uid: u32, gid: u32, user: &str, host: &str) -> Grant {
    let made = || {
        if ask.target.daemon == Daemon::Pam {
            // no daemon: such a key is for processes of one user (user_server.rs)
            return Err(AuthError::NoGrant { why: "pam is a user's".into() });
        }
        let key = common(ring, &ask.keys)?;
        let (user, host) = (user.to_string(), host.to_string());
        let claims = Claims { key, who: Who::User, uid, gid, user, host };
        let session = session_key(ring, &claims, &ask.target)?;
        Ok::<_, AuthError>(Grant::Yes { session: Hex32(*session.expose()), claims })
    };
    made().unwrap_or_else(|e| Grant::No { why: e.to_string() })
}

#[cfg(test)]
#[path = "shake_tests.rs"]
mod tests;
