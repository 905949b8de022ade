//! Credentials: the cluster key, authd's signatures, per-connection session keys. One credential
//! authenticates one connection; no clock, no replay window.

pub mod check;
pub mod eauth;
pub mod eauth_aux;
pub mod ident;
pub mod ring;
pub mod shake;
#[cfg(test)]
pub mod testing;
pub mod user_server;
pub mod ways;

pub use ring::{KeyError, KeyRing, new_key};
pub use shake::{AuthError, Claims, Hello, Target, Who};
pub use ways::{Way, Ways};

use crate::conf::HostTable;
use std::net::IpAddr;

/// Names and addresses of the cluster's hosts, as authentication needs them.
pub trait HostLookup {
    /// The canonical name of the host that has this address.
    fn host_of_addr(&self, addr: IpAddr) -> Option<&str>;
    /// The address to connect to.
    fn addr_of(&self, host: &str) -> Option<IpAddr>;
}

impl HostLookup for HostTable {
    fn host_of_addr(&self, addr: IpAddr) -> Option<&str> {
        self.by_addr(addr)
    }
    fn addr_of(&self, host: &str) -> Option<IpAddr> {
        self.addrs(host).first().copied()
    }
}
