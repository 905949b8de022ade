//! A host that joined by itself. See LSF_DYNAMIC_HOST_WAIT_TIME in lsf.conf(5).

use core::net::IpAddr;

/// A host that has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub addr: IpAddr,
    /// LSF_LOCAL_RESOURCES of the host.
    pub resources: String,
}
