//! The simulated runner: the real machines of a whole cluster in one process, in virtual time, with
//! a seeded network, disk and process faults. The same seed gives the same run, so a failure
//! replays.
//!
//! Real are every machine, every message and record as a typed value, the event log with its
//! recovery. Simulated are clocks, connections, datagrams, processes and the disk.
//!
//! | file | what |
//! |---|---|
//! | run | a run event by event |
//! | world | events, hosts, daemons |
//! | net | connections, datagrams |
//! | os, host | processes and journal of a host |
//! | log | the event log of mbatchd on a disk with faults |
//! | client | submitters that retry |
//! | verbs | bmod, bswitch, btop, brequeue, bkill and others that change jobs |
//! | requests | answers that are lost, requests that arrive twice |
//! | same | the state that a recovery finds is the one before |
//! | faults | what goes wrong, and when |
//! | host_death | hosts that die or are cut off, and what must hold of their jobs |
//! | check | what must hold |
//! | limits | the limits of queues, users and hosts; mbatchd's counters |
//! | rng, scale | random numbers; how large a run is |

mod check;
mod client;
mod faults;
mod host;
mod host_death;
mod limits;
mod log;
mod net;
mod os;
mod requests;
mod rng;
mod run;
mod same;
mod scale;
mod verbs;
mod world;

pub use check::Failure;
pub use rng::Rng;
pub use scale::{Scale, Stats};
pub use world::World;

/// Runs one seed to the end of all jobs.
pub fn run(seed: u64, scale: Scale) -> Result<Stats, Failure> {
    let mut world = World::new(seed, scale);
    world.run()
}
