//! The server of the NQE load balancer: a database about hosts, and the policies that choose among
//! them. See nlbserver(8).
//!
//! - `average` keeps the readings of which means are made.
//! - `store` holds the objects, each value by its source.
//! - `feed` makes attributes of what LIM measures.
//! - `start` reads the server's files, before there is a server.
//! - `server` is the object: `answer` answers queries, `change` does changes, of which `changing`
//!   is the one under way; `machine` has the turn and calls them.
//!
//! Pure. A change is answered when its files are durable, and acts from then on; until then all
//! queries see the state before it.

mod answer;
mod average;
mod change;
mod changing;
mod feed;
mod machine;
mod server;
mod start;
mod store;
#[cfg(test)]
mod tests;
mod watch;

pub use server::{NlbConf, NlbServer};
pub use start::{StartFiles, Started, start};
