//! eauth: the documented way to plug in an authentication of one's own, from both ends.
//!
//! [`make`] and [`Judge`] are the credential of our own `eauth -c` and `eauth -s`, which authd
//! signs and judges. The documented protocol has no word from the server before the client's
//! proof, so this credential is bound to user, client host and server host, good for [`LIFE`]
//! and once on each host, and not bound to a connection: daemons take the built-in credential of
//! `shake` instead wherever the site has no eauth of its own.
//!
//! [`Server`] is a site's own `eauth -s`, a child or one of eauthd's, that is kept, asked one thing
//! at a time, and started again when it dies or is slow. Asking it blocks, so it runs on a thread
//! of its own. See eauth(8).

use super::KeyRing;
use super::eauth_aux::{self, EauthAux, MAX_STATUS};
use super::ring::{hex, unhex};
use super::shake::{Claims, Who, sound};
use super::ways::Ways;
use crate::net::sock::with_unix_path;
use crate::proto::frame::MacKey;
use crate::sys::child::{self, Child, Given, Io};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a credential is good for, and how far clocks may differ, seconds.
pub const LIFE: i64 = 300;
/// Most credentials remembered within their life; more are refused until some have expired.
pub const MAX_SEEN: usize = 16_384;
/// Longest wait for an answer of `eauth -s`.
pub const WAIT: Duration = Duration::from_secs(8);
/// The line to eauthd before a question: its auxiliary data. A question begins with a number.
pub const AUX: &str = "aux ";
/// The byte from eauthd before an answer: the text of LSF_EAUTH_AUX_STATUS follows, up to the end
/// of the line.
pub const SAID: u8 = b'#';
/// Id of LSF_EAUTH_KEY in a credential; no key of a key file can have it.
const OWN: &str = "=";

/// The contents of a credential: the client, the server it is meant for, the time.
struct Said<'a> {
    key: &'a str,
    claims: &'a Claims,
    /// The server's host.
    to: &'a str,
    time: i64,
    nonce: &'a [u8; 32],
}

impl Said<'_> {
    fn mac(&self, key: &MacKey) -> [u8; 32] {
        let c = self.claims;
        key.of_fields(&[
            b"lsf-eauth-1",
            self.key.as_bytes(),
            &c.uid.to_be_bytes(),
            &c.gid.to_be_bytes(),
            c.user.as_bytes(),
            c.host.as_bytes(),
            self.to.as_bytes(),
            &self.time.to_be_bytes(),
            self.nonce,
        ])
    }
}

/// The output of `eauth -c`: `LSF1:KEY:UID:GID:USER:HOST:TO:TIME:NONCE:MAC`.
pub fn make(
    ring: &KeyRing,
    own: Option<&MacKey>,
    claims: &Claims,
    to: &str,
    time: i64,
    nonce: &[u8; 32],
) -> Result<String, String> {
    let key = if own.is_some() { OWN } else { ring.first() };
    let names = [&claims.user, &claims.host, to];
    if names.iter().any(|n| !sound(n) || n.contains(':')) {
        return Err("a name that cannot be one".into());
    }
    let with = own.or_else(|| ring.find(key)).ok_or("no key")?;
    let mac = hex(&Said { key, claims, to, time, nonce }.mac(with));
    let Claims { uid, gid, user, host, .. } = claims;
    Ok(format!("LSF1:{key}:{uid}:{gid}:{user}:{host}:{to}:{time}:{}:{mac}", hex(nonce)))
}

/// Judges credentials, and remembers those that were used on this host.
#[derive(Default)]
pub struct Judge {
    seen: Vec<(i64, [u8; 32])>,
}

impl Judge {
    /// The user named by a credential, which is good once.
    pub fn judge(
        &mut self,
        ring: &KeyRing,
        own: Option<&MacKey>,
        text: &str,
        my_host: &str,
        now: i64,
    ) -> Result<Claims, String> {
        let bad = || "not a credential of eauth".to_string();
        let fields: Vec<&str> = text.trim().split(':').collect();
        let [label, key, uid, gid, user, host, to, time, nonce, mac] = fields[..] else {
            return Err(bad());
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| bad());
        let bytes = |text: &str| unhex(text).and_then(|b| b.try_into().ok()).ok_or_else(bad);
        let (nonce, mac): ([u8; 32], [u8; 32]) = (bytes(nonce)?, bytes(mac)?);
        let time: i64 = time.parse().map_err(|_| bad())?;
        let claims = Claims {
            key: String::new(),
            who: Who::User,
            uid: number(uid)?,
            gid: number(gid)?,
            user: user.to_owned(),
            host: host.to_owned(),
        };
        // A key of eauth's own replaces the cluster's keys.
        let with = own.filter(|_| key == OWN).or_else(|| ring.find(key).filter(|_| own.is_none()));
        let with = with.ok_or("signed with an unknown key")?;
        let said = Said { key, claims: &claims, to, time, nonce: &nonce };
        // Compared as digests are: what differs where says nothing about the MAC.
        let pair = |mac: &[u8; 32]| with.of_fields(&[mac]);
        if label != "LSF1" || pair(&said.mac(with)) != pair(&mac) {
            return Err("wrongly signed".into());
        }
        if to != my_host {
            return Err(format!("made for host {to}"));
        }
        if now.abs_diff(time) > LIFE as u64 {
            return Err(format!("made {} s ago", now - time));
        }
        self.once(time, nonce, now)?;
        Ok(claims)
    }

    fn once(&mut self, time: i64, nonce: [u8; 32], now: i64) -> Result<(), String> {
        if self.seen.iter().any(|(_, n)| *n == nonce) {
            return Err("used before".into());
        }
        self.seen.retain(|(t, _)| now - t <= LIFE);
        if self.seen.len() >= MAX_SEEN {
            return Err("too many credentials at once".into());
        }
        self.seen.push((time, nonce));
        Ok(())
    }
}

/// One question to `eauth -s`.
pub struct Question<'a> {
    pub claims: &'a Claims,
    pub addr: std::net::SocketAddr,
    pub data: &'a [u8],
    /// Auxiliary data.
    pub aux: &'a [u8],
}

impl Question<'_> {
    /// `uid gid username client_addr client_port len data`, and a newline for those that read
    /// lines. Data with a control character could end its line and begin another one.
    fn line(&self) -> Result<Vec<u8>, String> {
        if self.data.is_empty() || self.data.iter().any(u8::is_ascii_control) {
            return Err("empty or with control characters".into());
        }
        let Claims { uid, gid, user, .. } = self.claims;
        let (ip, port, len) = (self.addr.ip(), self.addr.port(), self.data.len());
        let mut line = format!("{uid} {gid} {user} {ip} {port} {len} ").into_bytes();
        line.extend_from_slice(self.data);
        line.push(b'\n');
        Ok(line)
    }
}

struct Running {
    /// The child; `None`: it is eauthd's, which kills it when we hang up.
    child: Option<Child>,
    to: File,
    from: File,
    /// The auxiliary files of our child; eauthd has its own.
    beside: Option<EauthAux>,
}

impl Running {
    fn next_by(&mut self, until: Instant) -> Result<u8, String> {
        let left = until.saturating_duration_since(Instant::now());
        if !ready(&self.from, left)? {
            return Err(format!("no answer within {} s", WAIT.as_secs()));
        }
        next(&mut self.from)
    }

    fn line_by(&mut self, until: Instant) -> Result<Vec<u8>, String> {
        let mut line = Vec::new();
        loop {
            match self.next_by(until)? {
                b'\n' => return Ok(line),
                c if line.len() < MAX_STATUS * 4 => line.push(c),
                _ => return Err("a line that is too long".into()),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill();
            let _ = child.wait();
        }
    }
}

/// A site's `eauth -s`.
pub struct Server {
    ways: Ways,
    /// LSF_EAUTH_SERVER: `mbatchd@CLUSTER`.
    server: String,
    running: Option<Running>,
}

impl Server {
    pub fn new(ways: Ways, server: String) -> Server {
        Server { ways, server, running: None }
    }

    /// Asks the site's eauth: whether it believes the client, and its text in LSF_EAUTH_AUX_STATUS.
    pub fn ask(
        &mut self,
        question: &Question<'_>,
        until: Instant,
    ) -> Result<(bool, String), String> {
        let line = question.line()?;
        for fresh in [false, true] {
            match self.try_once(&line, question.aux, until) {
                Ok(answer) => return Ok(answer),
                Err(why) => {
                    self.running = None;
                    log::warn!("{} -s: {why}", self.ways.eauth.display());
                    // An eauth that has died since the last question is started again, once.
                    if fresh || Instant::now() >= until {
                        return Err(format!("eauth -s: {why}"));
                    }
                }
            }
        }
        Err("eauth -s".into())
    }

    fn try_once(
        &mut self,
        line: &[u8],
        aux: &[u8],
        until: Instant,
    ) -> Result<(bool, String), String> {
        let words = |e: std::io::Error| crate::sys::words(&e);
        let running = match &mut self.running {
            Some(running) => running,
            None => {
                let fresh = start(&self.ways, &self.server).map_err(words)?;
                self.running.insert(fresh)
            }
        };
        // An answer without a question must not count for the next caller.
        while ready(&running.from, Duration::ZERO)? {
            if !next(&mut running.from)?.is_ascii_whitespace() {
                return Err("it spoke without being asked".into());
            }
        }
        match &running.beside {
            Some(beside) => beside.put(aux).map_err(words)?,
            None if aux.is_empty() => {}
            None => {
                let aux = format!("{AUX}{}\n", eauth_aux::pack(aux));
                running.to.write_all(aux.as_bytes()).map_err(words)?;
            }
        }
        running.to.write_all(line).map_err(words)?;
        let mut said = Vec::new();
        let yes = loop {
            match running.next_by(until)? {
                SAID if running.beside.is_none() => said = running.line_by(until)?,
                c if c.is_ascii_whitespace() => {}
                c @ (b'0' | b'1') => break c == b'1',
                _ => return Err("an answer that is neither 1 nor 0".into()),
            }
        };
        match &running.beside {
            Some(beside) => Ok((yes, beside.done().map_err(words)?)),
            None => Ok((yes, eauth_aux::words(&said))),
        }
    }
}

/// One of our own, or one of LSF_EAUTH_USER's.
fn start(ways: &Ways, server: &str) -> std::io::Result<Running> {
    if let Some(path) = &ways.eauthd {
        let mut sock = with_unix_path(path, |p| UnixStream::connect(p))?;
        sock.write_all(format!("{server}\n").as_bytes())?;
        let from = File::from(OwnedFd::from(sock.try_clone()?));
        let to = File::from(OwnedFd::from(sock));
        return Ok(Running { child: None, to, from, beside: None });
    }
    let beside = EauthAux::make()?;
    let mut child = run(ways, server, &beside)?;
    match (child.to.take(), child.from.take()) {
        (Some(to), Some(from)) => {
            Ok(Running { child: Some(child), to, from, beside: Some(beside) })
        }
        _ => Err(std::io::Error::other("no pipes")),
    }
}

/// Starts a site's `eauth -s` with pipes; its environment is this and nothing else.
pub fn run(ways: &Ways, server: &str, beside: &EauthAux) -> std::io::Result<Child> {
    let mut cmd = Command::new(&ways.eauth);
    cmd.arg("-s").current_dir("/");
    cmd.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("LSF_ENVDIR", &ways.dirs[0])
        .env("LSF_SERVERDIR", &ways.dirs[1])
        .env("LSF_EAUTH_CLIENT", "user")
        .env("LSF_EAUTH_SERVER", server)
        .env("LSF_EAUTH_HOST", &ways.host);
    beside.tell_server(&mut cmd);
    let stdio = [Io::Pipe, Io::Pipe, Io::Null];
    child::start(&cmd, Given { stdio, ..Given::default() })
}

/// Whether there is something to read (or the end) within `wait`.
fn ready(from: &File, wait: Duration) -> Result<bool, String> {
    let mut fds = [PollFd::new(from, PollFlags::IN)];
    let (tv_sec, tv_nsec) = (wait.as_secs() as i64, i64::from(wait.subsec_nanos()));
    match poll(&mut fds, Some(&Timespec { tv_sec, tv_nsec })) {
        Ok(n) => Ok(n > 0),
        Err(rustix::io::Errno::INTR) => ready(from, wait),
        Err(e) => Err(crate::sys::words(&e.into())),
    }
}

fn next(from: &mut File) -> Result<u8, String> {
    let mut byte = [0];
    match from.read(&mut byte) {
        Ok(0) => Err("it ended".into()),
        Ok(_) => Ok(byte[0]),
        Err(e) => Err(crate::sys::words(&e)),
    }
}

#[cfg(test)]
#[path = "eauth_tests.rs"]
mod tests;
