//! The listening sockets of the daemons, which the launcher keeps: while a daemon is away, nobody
//! else on the host can take its port. Each daemon gets its socket as its standard input.
//!
//! Invariants: the launcher accepts nothing: a socket listens only while its daemon has it, and
//! callers are refused meanwhile. As root it keeps no port that only root may take: whoever can
//! write the configuration would have it from root.

use super::boot::Boot;
use super::shell::Ports;
use crate::net::sock::Held;
use crate::proto::Daemon;
use crate::sys::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Ports below this are root's alone to take.
const FIRST_OF_ALL: u16 = 1024;

/// The sockets by daemon, and the pids of those that have them.
#[derive(Default)]
pub struct KeptPorts {
    sockets: BTreeMap<Daemon, (Held, u32)>,
}

/// The same across exec: daemon, descriptors, pid.
#[derive(Default, Serialize, Deserialize)]
pub struct Handed(Vec<(Daemon, [i32; 2], u32)>);

impl KeptPorts {
    /// What a launcher that replaced itself left us.
    pub fn resume(handed: Handed) -> KeptPorts {
        let take = |(daemon, fds, pid)| Some((daemon, (Held::inherited(fds).ok()?, pid)));
        KeptPorts { sockets: handed.0.into_iter().filter_map(take).collect() }
    }

    /// What [`KeptPorts::resume`] takes; the descriptors stay open over exec.
    pub fn hand_over(&self) -> Handed {
        let all = self.sockets.iter();
        let fds = |held: &Held| held.fds().map(|fd| fd.as_raw_fd());
        Handed(all.map(|(daemon, (held, pid))| (*daemon, fds(held), *pid)).collect())
    }

    pub fn all(&self) -> impl Iterator<Item = &OwnedFd> {
        self.sockets.values().flat_map(|(held, _)| held.fds())
    }

    /// The socket for a daemon that is about to start, taken where it is not kept yet. None: the
    /// daemon has to see for itself.
    pub fn of(&mut self, daemon: Daemon, boot: &Boot) -> Option<OwnedFd> {
        let port = Ports::of(&boot.conf.lsf).port(daemon);
        let reserved = port < FIRST_OF_ALL && crate::sys::euid() == 0;
        let at = boot.addr.filter(|_| port != 0 && !reserved);
        let at = SocketAddr::new(at?, port);
        if !self.sockets.contains_key(&daemon) {
            match Held::bind(at) {
                Ok(held) => _ = self.sockets.insert(daemon, (held, 0)),
                Err(e) => log::warn!("{}: {at}: {}", daemon.name(), words(&e)),
            }
        }
        self.sockets.get(&daemon)?.0.copy().ok()
    }

    /// A daemon was started with what [`KeptPorts::of`] gave.
    pub fn started(&mut self, daemon: Daemon, pid: u32) {
        if let Some(kept) = self.sockets.get_mut(&daemon) {
            kept.1 = pid;
        }
    }

    /// A child has ended; `wanted`: whether a daemon is to run again. Its socket is kept then.
    pub fn ended(&mut self, pid: u32, wanted: impl Fn(Daemon) -> bool) -> io::Result<()> {
        let of = self.sockets.iter().find(|(_, kept)| kept.1 == pid).map(|(daemon, _)| *daemon);
        let Some(daemon) = of else { return Ok(()) };
        match self.sockets.get_mut(&daemon) {
            Some((held, pid)) if wanted(daemon) => {
                *pid = 0;
                held.rest()
            }
            _ => {
                self.sockets.remove(&daemon);
                Ok(())
            }
        }
    }
}
