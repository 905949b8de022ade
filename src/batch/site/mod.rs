//! The configuration, compiled: queues, hosts, users, requirements. Nothing in here changes between
//! two reconfigurations.

pub mod limits;
pub mod policy;
pub mod requirements;
