//! The ports of the daemons, which the launcher keeps ([`crate::net::held_port`]): that of mbatchd
//! also on a host that may become the master host, so that nobody takes it before.
//!
//! Invariants: the launcher accepts nothing: a socket serves only while its daemon has it. As root
//! it keeps no port that only root may take: whoever can write the configuration would have it
//! from root.

use super::boot::Boot;
use super::shell::Ports;
use crate::lim::election::Election;
use crate::net::held_port::{HeldPort, PortSockets};
use crate::proto::Daemon;
use crate::sys::words;
use serde::{Deserialize, Serialize};
use std::collections::btree_map::{BTreeMap, Entry};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Ports below this are root's alone to take.
const FIRST_OF_ALL: u16 = 1024;

/// The sockets by daemon, and the pids of those that have them.
#[derive(Default)]
pub struct KeptPorts {
    sockets: BTreeMap<Daemon, (HeldPort, u32)>,
}

/// The sockets as they are handed across exec: daemon, descriptors, pid.
#[derive(Default, Serialize, Deserialize)]
pub struct Handed(Vec<(Daemon, Vec<i32>, u32)>);

impl KeptPorts {
    /// The sockets that a launcher which replaced itself left us.
    pub fn resume(handed: Handed) -> KeptPorts {
        let take = |(daemon, fds, pid): (Daemon, Vec<i32>, u32)| {
            Some((daemon, (HeldPort::inherited(&fds).ok()?, pid)))
        };
        KeptPorts { sockets: handed.0.into_iter().filter_map(take).collect() }
    }

    /// The numbers that [`KeptPorts::resume`] takes; the descriptors stay open over exec.
    pub fn hand_over(&self) -> Handed {
        let all = self.sockets.iter();
        let fds = |held: &HeldPort| held.fds().map(|fd| fd.as_raw_fd()).collect();
        Handed(all.map(|(daemon, (held, pid))| (*daemon, fds(held), *pid)).collect())
    }

    pub fn all(&self) -> impl Iterator<Item = &OwnedFd> {
        self.sockets.values().flat_map(|(held, _)| held.fds())
    }

    /// Takes the port of mbatchd where this host may become the master host.
    pub fn take_masters(&mut self, boot: &Boot) {
        if Election::new(&boot.conf).candidates().contains(&boot.host) {
            self.take(Daemon::Mbatchd, boot);
        }
    }

    /// The sockets for a daemon that is about to start. None: the daemon has to see for itself.
    pub fn of(&mut self, daemon: Daemon, boot: &Boot) -> Option<PortSockets> {
        self.take(daemon, boot)?.copies().ok()
    }

    /// Takes a daemon's port where it is not kept yet.
    fn take(&mut self, daemon: Daemon, boot: &Boot) -> Option<&HeldPort> {
        let port = Ports::of(&boot.conf.lsf).port(daemon);
        let reserved = port < FIRST_OF_ALL && crate::sys::euid() == 0;
        let at = SocketAddr::new(boot.addr.filter(|_| port != 0 && !reserved)?, port);
        // the launcher before this one may have had another configuration
        self.sockets.retain(|of, (held, _)| *of != daemon || held.at() == Some(at));
        if let Entry::Vacant(free) = self.sockets.entry(daemon) {
            match HeldPort::bind(at, daemon == Daemon::Lim) {
                Ok(held) => _ = free.insert((held, 0)),
                Err(e) => log::warn!("{}: {at}: {}", daemon.name(), words(&e)),
            }
        }
        self.sockets.get(&daemon).map(|(held, _)| held)
    }

    /// A daemon was started with what [`KeptPorts::of`] gave.
    pub fn started(&mut self, daemon: Daemon, pid: u32) {
        if let Some(kept) = self.sockets.get_mut(&daemon) {
            kept.1 = pid;
        }
    }

    /// A child has ended. The port of a daemon stays kept, whether it is to run again or not.
    pub fn ended(&mut self, pid: u32) -> io::Result<()> {
        match self.sockets.values_mut().find(|(_, of)| *of == pid) {
            Some((held, of)) => {
                *of = 0;
                held.rest()
            }
            None => Ok(()),
        }
    }
}
