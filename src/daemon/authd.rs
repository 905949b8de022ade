//! authd: signs credentials for local callers, nothing else.
//!
//! authd listens on a Unix socket that every user may connect to and never touches the network. The
//! uid of the caller comes from SO_PEERCRED, the name from passwd (then `getent`, in a thread of
//! its own so that a slow name service delays nobody else); the question only says for which
//! server. A personal cluster's authd serves its own uid alone. SIGHUP reads the key file again.
//!
//! For `eauth -c` it makes credentials of the documented kind, for `eauth -s` (that is, for its
//! own uid and root alone) it judges them: so that LSF_EAUTH_KEY of lsf.sudoers, which root's
//! launcher hands over as the contents of an inherited descriptor, is known to nobody else.

use super::boot::{Boot, load_ring};
use super::boot_error::BootError;
use super::handover::EAUTH_KEY_FD;
use crate::auth::KeyRing;
use crate::auth::eauth::{self, Judge};
use crate::auth::shake::{Ask, Grant, grant};
use crate::auth::shake::{Claims, Hex32, Who};
use crate::auth::user_server;
use crate::net::sock;
use crate::proto::frame::{Decoder, FrameHead, Kind, MAX_FRAME_EARLY, MacKey, Raw, write_frame};
use crate::proto::{Daemon, PROTO_LOW};
use crate::sys::raw::SignalFd;
use crate::sys::users::UserDatabase;
use mio::net::{UnixListener, UnixStream};
use mio::{Events, Interest, Poll, Token};
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// Most connections; a new one beyond it takes the place of the oldest.
const MAX_CONNS: usize = 512;
/// Most connections of one uid; a new one beyond it takes the place of that uid's oldest.
const MAX_PER_UID: usize = 128;
/// A connection on which nothing is asked for this long is closed.
const IDLE: Duration = Duration::from_secs(10);
/// Most name look-ups under way; further callers are asked to come back.
const MAX_LOOKUPS: usize = 8;
/// Longest name look-up.
const LOOKUP_WAIT: Duration = Duration::from_secs(5);
/// How long a name from `getent` is believed.
const KEEP_NAME: Duration = Duration::from_secs(300);
/// How long `getent` is not asked again about a uid it does not know.
const KEEP_MISS: Duration = Duration::from_secs(10);
/// Most names kept.
const MAX_NAMES: usize = 4096;
/// Longest LSF_EAUTH_KEY, bytes.
const MAX_EAUTH_KEY: u64 = crate::conf::lsf_sudoers::MAX_EAUTH_KEY as u64;
/// Pause of accepting when descriptors are short.
const BACKOFF: Duration = Duration::from_millis(100);

const LISTEN: Token = Token(usize::MAX - 1);
const WAKER: Token = Token(usize::MAX - 2);
const SIGNALS: Token = Token(usize::MAX - 3);

/// Runs authd for this host until it is told to end.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let ring = boot.ring.clone().ok_or_else(|| BootError("no cluster key".into()))?;
    let path = boot.site.authd_socket();
    let mut authd = Authd::new(&path, ring, &boot.host, boot.only_uid())
        .map_err(|e| BootError(format!("{}: {}", path.display(), crate::sys::words(&e))))?;
    authd.eauth = eauth_key().map_err(|e| BootError(format!("{EAUTH_KEY_FD}: {e}")))?;
    log::info!("{} listens on {}", Daemon::Authd.name(), path.display());
    let mut reread = || {
        boot.log.reopen();
        load_ring(&boot.site).map(Arc::new).map_err(|e| e.to_string())
    };
    authd.run(&mut reread).map_err(|e| BootError(crate::sys::words(&e)))
}

/// The key that the launcher hands over, where lsf.sudoers has one.
fn eauth_key() -> Result<Option<MacKey>, String> {
    let Ok(fd) = std::env::var(EAUTH_KEY_FD) else { return Ok(None) };
    let fd: i32 = fd.parse().ok().filter(|fd| ![1, 2].contains(fd)).ok_or("no descriptor")?;
    let words = |e: io::Error| crate::sys::words(&e);
    // Standard input passes whatever closes the others, and stays open.
    let mut from: Box<dyn Read> = match fd {
        0 => Box::new(io::stdin()),
        _ => Box::new(std::fs::File::from(crate::sys::raw::inherited_fd(fd).map_err(words)?)),
    };
    let mut key = Vec::with_capacity(MAX_EAUTH_KEY as usize + 1);
    from.by_ref().take(MAX_EAUTH_KEY + 1).read_to_end(&mut key).map_err(words)?;
    let text = key.trim_ascii();
    if text.len() < crate::conf::lsf_sudoers::MIN_EAUTH_KEY || key.len() as u64 > MAX_EAUTH_KEY {
        return Err("no key of a valid length".into());
    }
    let mac = MacKey::new(text);
    key.fill(0);
    std::hint::black_box(&key);
    Ok(Some(mac))
}

/// A user and the name found for it.
type UserName = (u32, Option<String>);

struct Requester {
    sock: UnixStream,
    dec: Decoder,
    uid: u32,
    gid: u32,
    last: Instant,
    /// A question that waits for the caller's name.
    waits: Option<Ask>,
}

/// authd without its surroundings.
pub struct Authd {
    ring: Arc<KeyRing>,
    /// LSF_EAUTH_KEY: signs eauth's credentials in place of the cluster key.
    pub eauth: Option<MacKey>,
    judge: Judge,
    host: String,
    only_uid: Option<u32>,
    poll: Poll,
    listener: UnixListener,
    clients: HashMap<usize, Requester>,
    next: usize,
    users: UserDatabase,
    names: HashMap<u32, (Option<String>, Instant)>,
    lookups: usize,
    found: (Sender<UserName>, Receiver<UserName>),
    waker: Arc<mio::Waker>,
    signals: SignalFd,
    backlog: bool,
}

impl Authd {
    /// Listens on `path`, which every user may connect to.
    pub fn new(
        path: &Path,
        ring: Arc<KeyRing>,
        host: &str,
        only_uid: Option<u32>,
    ) -> io::Result<Authd> {
        let signals = SignalFd::new(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
        let poll = Poll::new()?;
        let mut listener = sock::listen_unix(path, 0o666)?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTEN, Interest::READABLE)?;
        let fd = signals.fd();
        let mut source = mio::unix::SourceFd(&fd);
        registry.register(&mut source, SIGNALS, Interest::READABLE)?;
        let waker = Arc::new(mio::Waker::new(registry, WAKER)?);
        Ok(Authd {
            ring,
            eauth: None,
            judge: Judge::default(),
            host: host.to_owned(),
            only_uid,
            poll,
            listener,
            clients: HashMap::new(),
            next: 0,
            users: UserDatabase::default(),
            names: HashMap::new(),
            lookups: 0,
            found: std::sync::mpsc::channel(),
            waker,
            signals,
            backlog: false,
        })
    }

    /// Serves until a signal ends it; `reread` gives the key ring anew.
    pub fn run(
        &mut self,
        reread: &mut dyn FnMut() -> Result<Arc<KeyRing>, String>,
    ) -> io::Result<i32> {
        let mut events = Events::with_capacity(256);
        let mut chunk = vec![0u8; MAX_FRAME_EARLY];
        loop {
            let wait = if self.backlog { BACKOFF } else { IDLE };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(e) if e.kind() != ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
            let mut accept = std::mem::take(&mut self.backlog);
            for event in &events {
                match event.token() {
                    LISTEN => accept = true,
                    WAKER => self.names_found(),
                    SIGNALS => {
                        if self.signalled(reread) {
                            return Ok(0);
                        }
                    }
                    Token(id) => self.serve(id, &mut chunk),
                }
            }
            if accept {
                self.accept(&mut chunk);
            }
            self.clients.retain(|_, c| c.last.elapsed() < IDLE);
        }
    }

    /// True: end.
    fn signalled(&mut self, reread: &mut dyn FnMut() -> Result<Arc<KeyRing>, String>) -> bool {
        while let Ok(Some(signal)) = self.signals.take() {
            if signal != libc::SIGHUP {
                return true;
            }
            match reread() {
                Ok(ring) => self.ring = ring,
                Err(e) => log::error!("the old keys stay: {e}"),
            }
        }
        false
    }

    fn accept(&mut self, chunk: &mut [u8]) {
        loop {
            match self.listener.accept() {
                Ok((sock, _)) => {
                    if let Err(e) = self.admit(sock, chunk) {
                        log::debug!("caller: {e}");
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if sock::is_scarcity(&e) => {
                    log::warn!("cannot accept: {}", crate::sys::words(&e));
                    self.backlog = true;
                    return;
                }
                // The caller went away before it was accepted.
                Err(_) => {}
            }
        }
    }

    fn admit(&mut self, sock: UnixStream, chunk: &mut [u8]) -> io::Result<()> {
        let (uid, gid, _) = sock::peer_cred(sock.as_fd())?;
        if self.clients.values().filter(|c| c.uid == uid).count() >= MAX_PER_UID {
            self.drop_oldest(|c| c.uid == uid);
        } else if self.clients.len() >= MAX_CONNS {
            self.drop_oldest(|_| true);
        }
        let id = self.next;
        self.next = (self.next + 1) % (usize::MAX / 2);
        let (dec, last) = (Decoder::new(MAX_FRAME_EARLY), Instant::now());
        let mut client = Requester { sock, dec, uid, gid, last, waits: None };
        self.poll.registry().register(&mut client.sock, Token(id), Interest::READABLE)?;
        self.clients.insert(id, client);
        // The question is usually there already.
        self.serve(id, chunk);
        Ok(())
    }

    fn drop_oldest(&mut self, mut which: impl FnMut(&Requester) -> bool) {
        let oldest = self.clients.iter().filter(|(_, c)| which(c)).min_by_key(|(_, c)| c.last);
        if let Some(id) = oldest.map(|(id, _)| *id) {
            self.clients.remove(&id);
        }
    }

    /// Reads and answers what one caller asks; a caller that is wrong in any way is dropped.
    fn serve(&mut self, id: usize, chunk: &mut [u8]) {
        loop {
            let Some(client) = self.clients.get_mut(&id) else { return };
            let n = match client.sock.read(chunk) {
                Ok(n) if n > 0 => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                _ => break,
            };
            client.dec.push(&chunk[..n]);
            let mut asks = Vec::new();
            let got = questions(&mut client.dec, &mut asks);
            if !asks.into_iter().all(|ask| self.answer(id, ask)) || got.is_err() {
                break;
            }
        }
        self.clients.remove(&id);
    }

    /// False: the caller is to be dropped.
    fn answer(&mut self, id: usize, ask: Ask) -> bool {
        let Some(client) = self.clients.get_mut(&id) else { return false };
        let uid = client.uid;
        if self.only_uid.is_some_and(|own| own != uid) {
            let why = format!("uid {uid} does not own this personal cluster");
            return client.say(&Grant::No { why });
        }
        if client.waits.is_some() {
            return false;
        }
        if !ask.eauth.is_empty() && ask.eauth != "-c" {
            let answer = self.judge(&ask.eauth, uid);
            return self.clients.get_mut(&id).is_some_and(|c| c.say(&answer));
        }
        match self.name(uid) {
            Some(Some(name)) => {
                let Some(client) = self.clients.get_mut(&id) else { return false };
                let gid = client.gid;
                let answer = if ask.user_server.is_some() {
                    user_server::grant(&self.ring, &ask, uid, gid, &name, &self.host)
                } else if ask.eauth.is_empty() {
                    grant(&self.ring, &ask, uid, gid, &name, &self.host)
                } else {
                    self.eauth(&ask.target.host, uid, gid, name)
                };
                self.clients.get_mut(&id).is_some_and(|c| c.say(&answer))
            }
            Some(None) => {
                let why = format!("uid {uid} has no name on host {}", self.host);
                self.clients.get_mut(&id).is_some_and(|c| c.say(&Grant::No { why }))
            }
            None => {
                if let Some(client) = self.clients.get_mut(&id) {
                    client.waits = Some(ask);
                }
                true
            }
        }
    }

    /// Makes a credential for `eauth -c`.
    fn eauth(&self, to: &str, uid: u32, gid: u32, user: String) -> Grant {
        let (key, host) = (String::new(), self.host.clone());
        let claims = Claims { key, who: Who::User, uid, gid, user, host };
        let now = crate::sys::now().secs();
        let made = crate::sys::random().map_err(|e| crate::sys::words(&e)).and_then(|nonce| {
            eauth::make(&self.ring, self.eauth.as_ref(), &claims, to, now, &nonce)
        });
        match made {
            Ok(text) => Grant::Eauth { text },
            Err(why) => Grant::No { why },
        }
    }

    /// Judges a credential for `eauth -s`. A credential is good once: only daemons that serve may
    /// use it up.
    fn judge(&mut self, text: &str, uid: u32) -> Grant {
        if uid != 0 && uid != crate::sys::euid() {
            return Grant::No { why: "judges for the daemons alone".into() };
        }
        let (own, now) = (self.eauth.as_ref(), crate::sys::now().secs());
        match self.judge.judge(&self.ring, own, text, &self.host, now) {
            Ok(claims) => Grant::Yes { claims, session: Hex32([0; 32]) },
            Err(why) => Grant::No { why },
        }
    }

    /// The name of a uid; `None` while it is being looked up.
    fn name(&mut self, uid: u32) -> Option<Option<String>> {
        if let Some(user) = self.users.by_uid(uid) {
            return Some(Some(user.name));
        }
        if let Some((name, until)) = self.names.get(&uid)
            && *until > Instant::now()
        {
            return Some(name.clone());
        }
        let asked = self.clients.values().any(|c| c.uid == uid && c.waits.is_some());
        if asked {
            return None;
        }
        if self.lookups >= MAX_LOOKUPS {
            return Some(None);
        }
        self.lookups += 1;
        let (tx, waker) = (self.found.0.clone(), self.waker.clone());
        std::thread::spawn(move || {
            let name = UserDatabase::default().find_uid(uid, LOOKUP_WAIT).map(|u| u.name);
            // An error means that authd has ended.
            let _ = tx.send((uid, name));
            let _ = waker.wake();
        });
        None
    }

    fn names_found(&mut self) {
        while let Ok((uid, name)) = self.found.1.try_recv() {
            self.lookups -= 1;
            let keep = if name.is_some() { KEEP_NAME } else { KEEP_MISS };
            if self.names.len() >= MAX_NAMES {
                self.names.clear();
            }
            self.names.insert(uid, (name, Instant::now() + keep));
            let waiting = |(id, c): (&usize, &mut Requester)| {
                (c.uid == uid).then(|| c.waits.take().map(|ask| (*id, ask))).flatten()
            };
            let asks: Vec<(usize, Ask)> = self.clients.iter_mut().filter_map(waiting).collect();
            for (id, ask) in asks {
                if !self.answer(id, ask) {
                    self.clients.remove(&id);
                }
            }
        }
    }
}

impl Requester {
    /// Answers; false where the caller does not take it.
    fn say(&mut self, answer: &Grant) -> bool {
        let mut out = Vec::with_capacity(512);
        let head = FrameHead::plain(Kind::Grant, PROTO_LOW);
        self.last = Instant::now();
        // A caller that does not read its answer does not get one.
        write_frame(&mut out, head, None, answer).is_ok() && self.sock.write_all(&out).is_ok()
    }
}

fn questions(
    dec: &mut Decoder,
    asks: &mut Vec<Ask>,
) -> Result<(), crate::proto::frame::FrameError> {
    while let Some(raw) = dec.take()? {
        asks.push(question(&raw)?);
    }
    Ok(())
}

fn question(raw: &Raw<'_>) -> Result<Ask, crate::proto::frame::FrameError> {
    raw.expect(Kind::Ask)?;
    raw.parse()
}
