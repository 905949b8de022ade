//! Datagrams: one signed frame each, for LIM's heartbeats.
//!
//! The key is derived from the cluster key for datagrams alone. The sequence number is the
//! sender's wall clock in microseconds, made to grow; where that clock is set back further than
//! clocks may differ, the numbers begin anew, as with another start of the sender. The receiver
//! takes only what is newer than the last it took from that host, or of a later start; nothing
//! that is further ahead of its own clock than clocks may differ, or longer ago than a window.
//! Where clocks were set back and forward, a start may be earlier than one before: it counts when
//! its number is newer than the last one by more than clocks may differ, which that of a datagram
//! that is replayed is not; a last number that is ahead of the receiver's own clock by more than
//! that is from before the receiver's clock was set back, and is forgotten. The body names sender
//! and receiver, the source address must be the sender's; only one that asks to be let into the
//! cluster may come from an address that no host has.

use super::Identity;
use super::limits::{
    CLOCK_AHEAD_US, DATAGRAM_BUDGET, DATAGRAM_WINDOW_US, MAX_HOST_NAME, MAX_STRANGERS,
};
use crate::proto::frame::{
    Direction, FrameError, FrameHead, Kind, MAX_DATAGRAM, MacKey, Raw, write_frame,
};
use crate::proto::lim::LimMsg;
use crate::proto::{self, Msg, PROTO_LOW};
use mio::net::UdpSocket;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

#[derive(Serialize)]
struct Out<'a> {
    key: &'a str,
    from: &'a str,
    to: &'a str,
    start: u64,
    msg: &'a Msg,
}

#[derive(Deserialize)]
struct In {
    from: String,
    to: String,
    /// When the sender's numbers began, microseconds; 0 from older ones, which do not say.
    #[serde(default)]
    start: u64,
    msg: Msg,
}

/// The part of a datagram that is read to find the key.
#[derive(Deserialize)]
struct KeyOnly {
    key: String,
}

/// The numbers of the datagrams taken from a host, microseconds.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// The beginning of the numbers that count.
    start: u64,
    /// The last of them.
    last: u64,
    /// The latest beginning of all.
    latest_start: u64,
}

impl Taken {
    /// Is a datagram new? It is the last one then.
    fn take(&mut self, start: u64, seq: u64, clock: i64) -> bool {
        let may_differ = CLOCK_AHEAD_US as u64;
        if self.last > (clock.max(0) as u64).saturating_add(may_differ) {
            self.last = 0;
        }
        let same = start == self.start || start == 0;
        let new = same && seq > self.last
            || start > self.latest_start
            || seq > self.last.saturating_add(may_differ);
        if new {
            self.start = if start == 0 { self.start } else { start };
            (self.last, self.latest_start) = (seq, start.max(self.latest_start));
        }
        new
    }
}

/// The signing and replay state of a daemon's datagrams.
#[derive(Default)]
pub struct Seal {
    /// The beginning of our numbers, and the last number sent.
    start: u64,
    last_sent: u64,
    last_taken: HashMap<String, Taken>,
    /// Hosts that ask to be let in; a holder of the key can invent any number of names.
    strangers: HashMap<String, Taken>,
    keys: HashMap<String, MacKey>,
}

impl Seal {
    /// The key ring has changed.
    pub fn forget_keys(&mut self) {
        self.keys.clear();
    }

    fn key(&mut self, ident: &Identity, id: &str) -> Option<MacKey> {
        if let Some(key) = self.keys.get(id) {
            return Some(key.clone());
        }
        let base = ident.ring.as_deref()?.find(id)?;
        let key = MacKey::new(&base.of_fields(&[b"lsf-dgram-1", id.as_bytes()]));
        self.keys.insert(id.to_string(), key.clone());
        Some(key)
    }

    /// The datagram that carries `msg` to a host.
    pub fn write(
        &mut self,
        ident: &Identity,
        to: &str,
        msg: &Msg,
        wall_us: i64,
    ) -> Result<Vec<u8>, FrameError> {
        let id = ident.ring.as_deref().map_or("", |r| r.first()).to_string();
        let key = self.key(ident, &id).ok_or(FrameError::Unsigned)?;
        let wall = wall_us.max(0) as u64;
        if self.start == 0 || wall.saturating_add(CLOCK_AHEAD_US as u64) < self.last_sent {
            (self.start, self.last_sent) = (wall.max(1), wall);
        }
        self.last_sent = wall.max(self.last_sent + 1);
        let kind = Kind::Datagram;
        // The receiver may be of an older version, and is not asked.
        let head = FrameHead { version: PROTO_LOW, kind, seq: self.last_sent, cap: MAX_DATAGRAM };
        let body = Out { key: &id, from: &ident.host, to, start: self.start, msg };
        let mut out = Vec::with_capacity(1024);
        write_frame(&mut out, head, Some((&key, Direction::Datagram)), &body)?;
        Ok(out)
    }

    /// The sender and contents of a datagram, or the reason for rejecting it.
    pub fn read(
        &mut self,
        ident: &Identity,
        bytes: &[u8],
        from: IpAddr,
        wall_us: i64,
    ) -> Result<(String, Msg), String> {
        let words = |e: FrameError| e.to_string();
        let raw = Raw::whole(bytes, MAX_DATAGRAM).map_err(words)?;
        raw.expect(Kind::Datagram).map_err(words)?;
        if raw.version < PROTO_LOW || raw.version > proto::high() {
            return Err(words(FrameError::Version { got: raw.version, want: proto::high() }));
        }
        let KeyOnly { key } = raw.parse().map_err(words)?;
        let place = ident.ring.as_deref().map_or("", |ring| ring.place());
        let none = || format!("unknown cluster key{place}");
        let key = self.key(ident, &key).ok_or_else(none)?;
        raw.verify(&key, Direction::Datagram).map_err(|e| format!("{e}{place}"))?;
        let In { from: host, to, start, mut msg } = raw.parse().map_err(words)?;
        let long = host.len().max(to.len());
        if long > MAX_HOST_NAME {
            return Err(format!("a host name of {long} bytes; the limit is {MAX_HOST_NAME}"));
        }
        if to != ident.host {
            return Err(format!("meant for host {}", to.escape_debug()));
        }
        let named = ident.hosts.host_of_addr(from);
        let here = from.is_loopback() && named.is_none() && host == ident.host;
        // one that asks to be let in is nobody yet; where it is from, the packet says
        let joins = if let Msg::Lim(LimMsg::Join { addr, .. }) = &mut msg {
            *addr = from.to_string();
            named.is_none()
        } else {
            false
        };
        if named != Some(host.as_str()) && !here && !joins {
            return Err(format!("{from} is not an address of host {}", host.escape_debug()));
        }
        self.fresh(&host, joins, (start, raw.seq), wall_us)?;
        Ok((host, msg))
    }

    fn fresh(
        &mut self,
        host: &str,
        joins: bool,
        (start, seq): (u64, u64),
        wall: i64,
    ) -> Result<(), String> {
        let ahead = |time: u64| i64::try_from(time).unwrap_or(i64::MAX).saturating_sub(wall);
        let apart = ahead(seq.max(start));
        if apart > CLOCK_AHEAD_US || ahead(seq) < -DATAGRAM_WINDOW_US {
            let s = apart / 1_000_000;
            return Err(format!("the clock of host {host} is {s} s from ours"));
        }
        let known = if joins { &mut self.strangers } else { &mut self.last_taken };
        if joins && known.len() >= MAX_STRANGERS && !known.contains_key(host) {
            known.clear();
        }
        match known.entry(host.to_string()).or_default().take(start, seq, wall) {
            true => Ok(()),
            false => Err(format!("an old datagram of host {host} (replayed?)")),
        }
    }
}

/// Reads the datagrams that are there. True when the budget, or the time of it, ended before they
/// did.
pub fn drain(
    sock: &UdpSocket,
    buf: &mut [u8],
    mut late: impl FnMut() -> bool,
    mut each: impl FnMut(&[u8], SocketAddr),
) -> bool {
    for n in 0..DATAGRAM_BUDGET {
        if n > 0 && late() {
            return true;
        }
        match sock.recv_from(buf) {
            Ok((n, from)) => each(&buf[..n], from),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return false,
            // An earlier datagram's ICMP error, or a signal: neither concerns the next one.
            Err(_) => {}
        }
    }
    true
}

#[cfg(test)]
#[path = "dgram_tests.rs"]
mod tests;
