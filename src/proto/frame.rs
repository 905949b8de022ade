//! Frames: how a message looks on a stream or in a datagram. Pure.
//!
//! ```text
//! at  bytes
//!  0   4    magic "LSFW"
//!  4   2    protocol version      (all numbers big-endian)
//!  6   1    kind
//!  7   1    0
//!  8   4    length of the body
//! 12   8    sequence number: counts from 0 in each direction of a connection; microseconds
//!           since the epoch in a datagram
//! 20  16    MAC; zero in the few unsigned kinds
//! 36   n    body: JSON; in a stream frame a port (1 byte) and raw bytes
//! ```
//!
//! The MAC is HMAC-SHA256 under the connection's session key, cut to 16 bytes, over bytes 0 to 19,
//! one byte for the direction, and the body. The MAC is checked, in constant time, before the body
//! is parsed; so is the sequence number, which makes a replayed frame fail.
//!
//! Invariants: a length is held against the cap of the connection's phase before anything is
//! reserved for it, and the buffer grows with what has arrived, never with what was announced.
//! Nesting is limited by serde_json's own recursion limit of 128.

use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;

/// First bytes of every frame.
pub const MAGIC: [u8; 4] = *b"LSFW";
/// Bytes before the body.
pub const HEADER: usize = 36;
/// Bytes of the header that the MAC covers.
const COVERED: usize = 20;
/// Bytes of a MAC.
pub const MAC_LEN: usize = 16;
/// Largest body between daemons, bytes.
pub const MAX_FRAME: usize = 8 << 20;
/// Largest body from a user, bytes. Its contents fit into a frame between daemons, even in base64.
pub const MAX_FRAME_USER: usize = 4 << 20;
/// Largest body before authentication, and to authd, bytes.
pub const MAX_FRAME_EARLY: usize = 16 << 10;
/// Largest body before authentication at a site with an eauth of its own, bytes: there is room for
/// auxiliary data.
pub const MAX_FRAME_EAUTH: usize = 112 << 10;
/// Largest body of a datagram, bytes (IPv4 leaves 65,507 for all).
pub const MAX_DATAGRAM: usize = 60 << 10;
/// A buffer larger than this is given back once it is empty, bytes.
const KEEP: usize = 64 << 10;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Server's first frame: versions, nonce. Unsigned.
    Hello = 1,
    /// Client's first frame: who it is. Signed.
    Auth = 2,
    /// The server's answer, which proves that it knows the key. Signed.
    AuthOk = 3,
    /// The server refuses; only a number is believed of it. Unsigned.
    Deny = 4,
    /// A [`super::Msg`] of an authenticated connection. Signed.
    Msg = 5,
    /// A [`super::Msg`] over a Unix socket whose peer the kernel names. Unsigned.
    Local = 6,
    /// A datagram. Signed under a key of its own.
    Datagram = 7,
    /// A question to authd over its Unix socket. Unsigned.
    Ask = 8,
    /// authd's answer. Unsigned.
    Grant = 9,
    /// Raw bytes of a task's input or output behind the number of its port. Signed.
    Stream = 10,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::Hello,
            2 => Kind::Auth,
            3 => Kind::AuthOk,
            4 => Kind::Deny,
            5 => Kind::Msg,
            6 => Kind::Local,
            7 => Kind::Datagram,
            8 => Kind::Ask,
            9 => Kind::Grant,
            10 => Kind::Stream,
            _ => return None,
        })
    }
}

/// Why a frame was refused. Each one ends its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The stream ended inside a frame.
    Short,
    Magic,
    /// The byte is no known kind.
    Kind(u8),
    /// A kind that does not belong here.
    Unexpected(Kind),
    /// The announced (or, on output, actual) length is over the cap.
    Length {
        len: u64,
        cap: usize,
    },
    Version {
        got: u16,
        want: u16,
    },
    NotJson(String),
    TooDeep,
    /// The MAC field is empty where a MAC must be.
    Unsigned,
    BadMac,
    /// The sequence number is not the next one: the frame was replayed, reordered or lost.
    Replayed {
        got: u64,
        want: u64,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Short => f.write_str("the stream ended inside a frame"),
            FrameError::Magic => f.write_str("not a frame of this protocol"),
            FrameError::Kind(k) => write!(f, "unknown frame kind {k}"),
            FrameError::Unexpected(k) => {
                write!(f, "a frame of kind {} does not belong here", *k as u8)
            }
            FrameError::Length { len, cap } => {
                write!(f, "frame of {len} bytes is over the limit of {cap}")
            }
            FrameError::Version { got, want } => {
                write!(f, "protocol version {got} where {want} was agreed")
            }
            FrameError::NotJson(why) => write!(f, "body is not a message: {why}"),
            FrameError::TooDeep => f.write_str("body is nested too deeply"),
            FrameError::Unsigned => f.write_str("frame is not signed"),
            FrameError::BadMac => f.write_str("frame is wrongly signed"),
            FrameError::Replayed { got, want } => {
                write!(f, "frame number {got} where {want} is due (replayed?)")
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// The key of one connection (or one purpose). Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey([u8; 32]);

impl SessionKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        SessionKey(bytes)
    }
    /// The bytes, for the one place that hands them to the caller they belong to.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

impl Drop for SessionKey {
    fn drop(&mut self) {
        self.0.fill(0);
        std::hint::black_box(&self.0);
    }
}

/// A keyed MAC, ready to be cloned for each frame.
#[derive(Clone)]
pub struct MacKey(Hmac<Sha256>);

impl MacKey {
    pub fn new(key: &[u8]) -> Self {
        // HMAC takes keys of any length; the empty fallback is never reached.
        MacKey(Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default())))
    }

    /// HMAC over the fields, each preceded by its length (4 bytes, big-endian).
    pub fn of_fields(&self, fields: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for field in fields {
            mac.update(&(field.len() as u32).to_be_bytes());
            mac.update(field);
        }
        mac.finalize().into_bytes().into()
    }

    fn over(&self, covered: &[u8], direction: u8, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(covered);
        mac.update(&[direction]);
        mac.update(body);
        mac
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(..)")
    }
}

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// The direction byte under the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    ToServer = 1,
    ToClient = 2,
    Datagram = 3,
}

/// A frame as it came, not yet believed.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    pub version: u16,
    pub kind: Kind,
    pub seq: u64,
    covered: &'a [u8],
    mac: &'a [u8],
    pub body: &'a [u8],
}

impl<'a> Raw<'a> {
    /// Reads one whole frame, as a datagram holds it.
    pub fn whole(bytes: &'a [u8], cap: usize) -> Result<Raw<'a>, FrameError> {
        match split(bytes, cap)? {
            Some((raw, used)) if used == bytes.len() => Ok(raw),
            Some((_, used)) => Err(FrameError::Length { len: bytes.len() as u64, cap: used }),
            None => Err(FrameError::Short),
        }
    }

    /// Checks the MAC.
    pub fn verify(&self, key: &MacKey, direction: Direction) -> Result<(), FrameError> {
        if self.mac.iter().all(|&b| b == 0) {
            return Err(FrameError::Unsigned);
        }
        key.over(self.covered, direction as u8, self.body)
            .verify_truncated_left(self.mac)
            .map_err(|_| FrameError::BadMac)
    }

    /// Reads the body without any check of who wrote it.
    pub fn parse<T: Deserialize<'a>>(&self) -> Result<T, FrameError> {
        serde_json::from_slice(self.body).map_err(|e| {
            let words = e.to_string();
            if words.starts_with("recursion limit exceeded") {
                FrameError::TooDeep
            } else {
                FrameError::NotJson(clip(&words))
            }
        })
    }

    /// Refuses every kind but this one.
    pub fn expect(&self, kind: Kind) -> Result<(), FrameError> {
        if self.kind == kind { Ok(()) } else { Err(FrameError::Unexpected(self.kind)) }
    }
}

/// serde_json's words may quote what came from outside: cut them, keep them on one line.
fn clip(words: &str) -> String {
    words.chars().take(120).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The first frame of `bytes` and its length; `None` while it is incomplete. An error is returned
/// as soon as the bytes that show it are there.
fn split(bytes: &[u8], cap: usize) -> Result<Option<(Raw<'_>, usize)>, FrameError> {
    let seen = bytes.len().min(MAGIC.len());
    if bytes[..seen] != MAGIC[..seen] {
        return Err(FrameError::Magic);
    }
    if bytes.len() < 12 {
        return Ok(None);
    }
    let kind = Kind::of(bytes[6]).ok_or(FrameError::Kind(bytes[6]))?;
    if bytes[7] != 0 {
        return Err(FrameError::Magic);
    }
    let len = u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
    if len > cap {
        return Err(FrameError::Length { len: len as u64, cap });
    }
    if bytes.len() < HEADER + len {
        return Ok(None);
    }
    let mut seq = [0; 8];
    seq.copy_from_slice(&bytes[12..20]);
    let raw = Raw {
        version: u16::from_be_bytes([bytes[4], bytes[5]]),
        kind,
        seq: u64::from_be_bytes(seq),
        covered: &bytes[..COVERED],
        mac: &bytes[COVERED..HEADER],
        body: &bytes[HEADER..HEADER + len],
    };
    Ok(Some((raw, HEADER + len)))
}

/// Finds the frames in a stream that arrives in pieces.
#[derive(Debug)]
pub struct Decoder {
    buf: Vec<u8>,
    at: usize,
    cap: usize,
    keep: usize,
}

impl Decoder {
    /// `cap`: largest body, bytes.
    pub fn new(cap: usize) -> Self {
        Decoder { buf: Vec::new(), at: 0, cap, keep: KEEP }
    }

    /// Another cap from the next frame on.
    pub fn set_cap(&mut self, cap: usize) {
        self.cap = cap;
    }

    /// Capacity up to which an empty buffer is kept, bytes.
    pub fn set_keep(&mut self, keep: usize) {
        self.keep = keep;
    }

    /// Takes what has arrived. Frames are to be taken out before more is put in, so that the
    /// buffer stays below one frame and one piece.
    pub fn push(&mut self, data: &[u8]) {
        if self.at == self.buf.len() {
            self.buf.clear();
            self.at = 0;
            if self.buf.capacity() > self.keep {
                self.buf = Vec::new();
            }
        } else if self.at > 0 {
            self.buf.drain(..self.at);
            self.at = 0;
        }
        self.buf.extend_from_slice(data);
    }

    /// The next whole frame.
    pub fn take(&mut self) -> Result<Option<Raw<'_>>, FrameError> {
        let rest = &self.buf[self.at..];
        let Some((raw, used)) = split(rest, self.cap)? else { return Ok(None) };
        self.at += used;
        Ok(Some(raw))
    }

    /// Bytes of an incomplete frame (or of frames not yet taken).
    pub fn pending(&self) -> usize {
        self.buf.len() - self.at
    }

    /// Bytes reserved.
    pub fn reserved(&self) -> usize {
        self.buf.capacity()
    }

    /// Gives a large empty buffer back.
    pub fn relax(&mut self) {
        if self.pending() == 0 && self.buf.capacity() > self.keep {
            self.buf = Vec::new();
            self.at = 0;
        }
    }

    /// The stream has ended: was that between two frames?
    pub fn finish(&self) -> Result<(), FrameError> {
        if self.pending() == 0 { Ok(()) } else { Err(FrameError::Short) }
    }
}

/// Appends a frame to `out`, signed where a key is given. `out` is as before where it fails.
pub fn write_frame<T: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    head: FrameHead,
    key: Option<(&MacKey, Direction)>,
    body: &T,
) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    if let Err(e) = serde_json::to_writer(&mut *out, body) {
        out.truncate(start);
        return Err(FrameError::NotJson(clip(&e.to_string())));
    }
    finish(out, start, head, key)
}

/// Fills in the header of a frame whose body stands at the end of `out`, and signs it.
fn finish(
    out: &mut Vec<u8>,
    start: usize,
    head: FrameHead,
    key: Option<(&MacKey, Direction)>,
) -> Result<(), FrameError> {
    let len = out.len() - start - HEADER;
    if len > head.cap {
        out.truncate(start);
        return Err(FrameError::Length { len: len as u64, cap: head.cap });
    }
    let frame = &mut out[start..];
    frame[..4].copy_from_slice(&MAGIC);
    frame[4..6].copy_from_slice(&head.version.to_be_bytes());
    frame[6] = head.kind as u8;
    frame[8..12].copy_from_slice(&(len as u32).to_be_bytes());
    frame[12..COVERED].copy_from_slice(&head.seq.to_be_bytes());
    if let Some((key, direction)) = key {
        let mac = key.over(&frame[..COVERED], direction as u8, &frame[HEADER..]);
        frame[COVERED..HEADER].copy_from_slice(&mac.finalize().into_bytes()[..MAC_LEN]);
    }
    Ok(())
}

/// The header that [`write_frame`] writes before a body.
#[derive(Clone, Copy, Debug)]
pub struct FrameHead {
    pub version: u16,
    pub kind: Kind,
    pub seq: u64,
    /// Largest body, bytes.
    pub cap: usize,
}

impl FrameHead {
    /// The head of an unsigned frame outside a session.
    pub fn plain(kind: Kind, version: u16) -> FrameHead {
        FrameHead { version, kind, seq: 0, cap: MAX_FRAME_EARLY }
    }
}

/// The signing state of one connection: the agreed version, the key, the two counters.
#[derive(Debug)]
pub struct Session {
    version: u16,
    /// The key; `None` on a Unix socket whose peer the kernel names.
    key: Option<MacKey>,
    side: Side,
    sent: u64,
    received: u64,
}

impl Session {
    /// A signed session.
    pub fn signed(version: u16, key: &SessionKey, side: Side) -> Self {
        Session { version, key: Some(MacKey::new(&key.0)), side, sent: 0, received: 0 }
    }

    /// An unsigned one, for Unix sockets alone. The ends do not agree on a version, and while a
    /// host is upgraded their versions differ.
    pub fn local() -> Self {
        let (version, side) = (super::PROTO_LOW, Side::Client);
        Session { version, key: None, side, sent: 0, received: 0 }
    }

    /// The kind of this session's messages.
    pub fn message_kind(&self) -> Kind {
        if self.key.is_some() { Kind::Msg } else { Kind::Local }
    }

    /// The version spoken.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Appends the next frame of this side.
    pub fn seal<T: Serialize + ?Sized>(
        &mut self,
        kind: Kind,
        body: &T,
        out: &mut Vec<u8>,
    ) -> Result<(), FrameError> {
        write_frame(out, self.head(kind), self.signs(), body)?;
        self.sent += 1;
        Ok(())
    }

    fn head(&self, kind: Kind) -> FrameHead {
        FrameHead { version: self.version, kind, seq: self.sent, cap: MAX_FRAME }
    }

    fn signs(&self) -> Option<(&MacKey, Direction)> {
        let direction = match self.side {
            Side::Client => Direction::ToServer,
            Side::Server => Direction::ToClient,
        };
        self.key.as_ref().map(|k| (k, direction))
    }

    /// Appends raw bytes of a port.
    pub fn seal_data(
        &mut self,
        port: u8,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FrameError> {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER]);
        out.push(port);
        out.extend_from_slice(bytes);
        finish(out, start, self.head(Kind::Stream), self.signs())?;
        self.sent += 1;
        Ok(())
    }

    /// Appends the next message.
    pub fn seal_msg(&mut self, msg: &super::Msg, out: &mut Vec<u8>) -> Result<(), FrameError> {
        if let super::Msg::Data(data) = msg {
            return self.seal_data(data.port, &data.bytes, out);
        }
        self.seal(self.message_kind(), msg, out)
    }

    /// Believes the next frame of the other side, or names what is wrong with it.
    pub fn open<'a, T: Deserialize<'a>>(
        &mut self,
        kind: Kind,
        raw: &Raw<'a>,
    ) -> Result<T, FrameError> {
        self.check(kind, raw)?;
        raw.parse()
    }

    fn check(&mut self, kind: Kind, raw: &Raw<'_>) -> Result<(), FrameError> {
        raw.expect(kind)?;
        if raw.version != self.version {
            return Err(FrameError::Version { got: raw.version, want: self.version });
        }
        if let Some(key) = &self.key {
            let direction = match self.side {
                Side::Client => Direction::ToClient,
                Side::Server => Direction::ToServer,
            };
            raw.verify(key, direction)?;
        }
        if raw.seq != self.received {
            return Err(FrameError::Replayed { got: raw.seq, want: self.received });
        }
        self.received += 1;
        Ok(())
    }

    /// Opens a frame like [`Session::open`] and reads the message in it.
    pub fn open_msg(&mut self, raw: &Raw<'_>) -> Result<super::Msg, FrameError> {
        match self.open_data(raw)? {
            Some((port, bytes)) => {
                Ok(super::Msg::Data(super::res::Data { port, bytes: bytes.to_vec() }))
            }
            None => self.open(self.message_kind(), raw),
        }
    }

    /// Port and bytes of the next frame where it is one of a stream, believed and not copied.
    pub fn open_data<'a>(&mut self, raw: &Raw<'a>) -> Result<Option<(u8, &'a [u8])>, FrameError> {
        if raw.kind != Kind::Stream || self.key.is_none() {
            return Ok(None);
        }
        self.check(Kind::Stream, raw)?;
        let (port, bytes) = raw.body.split_first().ok_or(FrameError::Short)?;
        Ok(Some((*port, bytes)))
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
