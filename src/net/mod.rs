//! Connections: sockets, the framed and authenticated connection, the pool that bounds them.

pub mod conn;
pub mod dgram;
mod drained_queue;
pub mod held_port;
pub mod limits;
pub mod local;
pub mod pool;
mod silence;
pub mod sock;

use crate::auth::{HostLookup, KeyRing, Ways};
use crate::proto::Daemon;
use std::net::IpAddr;
use std::sync::Arc;

/// Names and addresses, shared with the code that replaces them after a reconfiguration.
pub type SharedHosts = Arc<dyn HostLookup + Send + Sync>;

/// The identity of this daemon and the keys that it trusts.
pub struct Identity {
    pub daemon: Daemon,
    /// This host's canonical name.
    pub host: String,
    /// This host's own address; what outgoing connections leave from.
    pub addr: Option<IpAddr>,
    /// The daemon's own uid.
    pub uid: u32,
    /// The keys; `None` in the launcher alone, which hears nothing from a network.
    pub ring: Option<Arc<KeyRing>>,
    pub hosts: SharedHosts,
    /// A personal cluster: the only uid accepted.
    pub only_uid: Option<u32>,
    /// How users may prove who they are.
    pub ways: Ways,
}
