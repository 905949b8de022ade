//! The server of the NQE load balancer: a database about hosts, and the policies that choose among
//! them; and the collector that reports to it. See nlbserver(8) and ccollect(8).
//!
//! - `average` keeps the readings of which means are made.
//! - `measures` makes attributes of readings, `custom` of the site's files; `programs` keeps the
//!   site's programs running, `link` is the connection to one server, and `collector` the object
//!   that has them all. `once` is a report as text.
//! - `store` holds the objects, each value by its source; `packed` are the values of one source.
//! - `view` is a host as a policy sees it.
//! - `feed` makes attributes of what LIM measures.
//! - `start` reads the server's files, before there is a server.
//! - `server` is the object: `access` says who may do what, `answer` answers queries, `change` does
//!   changes, of which `changing` is the one under way; `reports` takes those of collectors;
//!   `machine` has the turn and calls them.
//!
//! Pure. A change is answered when its files are durable, and acts from then on; until then all
//! queries see the state before it.

mod access;
mod answer;
mod average;
mod change;
mod changing;
mod collector;
#[cfg(test)]
mod collector_tests;
mod custom;
mod feed;
mod link;
mod machine;
mod measures;
mod once;
mod packed;
mod peer_lines;
mod pieces;
mod programs;
mod reports;
mod server;
mod start;
mod store;
#[cfg(test)]
mod tests;
mod view;
mod watch;

pub use average::MAX_READINGS;
pub use collector::{Collector, CollectorConf};
pub use custom::MAX_FILES;
pub use measures::Surroundings;
pub use once::object_text;
pub use server::{NlbConf, NlbServer};
pub use start::{StartFiles, Started, start};
