//! Shared parts of the tests of authentication: a fixed table of hosts.

use super::HostLookup;
use std::net::IpAddr;

/// A cluster of two hosts: hosta is 127.0.0.2, hostb 127.0.0.3.
pub struct TwoHosts;
impl HostLookup for TwoHosts {
    fn host_of_addr(&self, addr: IpAddr) -> Option<&str> {
        match addr.to_string().as_str() {
            "127.0.0.2" => Some("hosta"),
            "127.0.0.3" => Some("hostb"),
            _ => None,
        }
    }
    fn addr_of(&self, _: &str) -> Option<IpAddr> {
        None
    }
}
