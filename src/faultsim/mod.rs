//! The simulated runner: the real machines of a whole cluster in one process, in virtual time, with
//! a seeded network, disk and process faults. The same seed gives the same run, so a failure
//! replays.
//!
//! Real are every machine, every message and record as a typed value, the event log with its
//! recovery. Simulated are clocks, connections, datagrams, processes and the disk.
//!
//! | file | what |
//! |---|---|
//! | world | events, hosts, daemons |
//! | net | connections, datagrams |
//! | os, host | processes and journal of a host |
//! | log | the event log of mbatchd on a disk with faults |
//! | client | submitters that retry |
//! | verbs | bmod, bswitch, btop, brequeue, bkill and others that change jobs |
//! | same | the state that a recovery finds is the one before |
//! | faults | what goes wrong, and when |
//! | host_death | hosts that die or are cut off, and what must hold of their jobs |
//! | check | what must hold |

mod check;
mod client;
mod faults;
mod host;
mod host_death;
mod log;
mod net;
mod os;
mod same;
mod verbs;
mod world;

pub use check::Failure;
pub use world::World;

/// The size of one simulation.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub hosts: usize,
    pub jobs: usize,
    /// Slots a host.
    pub slots: u32,
    /// Seconds of virtual time in which faults happen.
    pub fault_secs: u64,
    /// Mean seconds between two faults; 0 none.
    pub fault_every: f64,
}

impl Scale {
    /// Three hosts, 50 jobs.
    pub const SMALL: Scale =
        Scale { hosts: 3, jobs: 50, slots: 2, fault_secs: 90, fault_every: 4.0 };
    /// Fifty hosts, 5,000 jobs.
    pub const LARGE: Scale =
        Scale { hosts: 50, jobs: 5000, slots: 4, fault_secs: 120, fault_every: 2.0 };
}

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub events: u64,
    pub virtual_secs: u64,
    pub acknowledged: usize,
    pub faults: usize,
    /// Switches of lsb.events.
    pub switches: usize,
    /// Times the log went to another host.
    pub moves: usize,
    /// Times a master was overtaken while it was stopped before a write.
    pub overtaken: usize,
    pub unknown_ends: usize,
}

/// Runs one seed to the end of all jobs.
pub fn run(seed: u64, scale: Scale) -> Result<Stats, Failure> {
    let mut world = World::new(seed, scale);
    world.run()
}

/// A small generator that is the same everywhere (xorshift64*).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        // Neighbouring seeds must not begin alike.
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Rng((z ^ (z >> 31)) | 1)
    }
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.draw() % n.max(1)
    }
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Exponentially distributed with this mean.
    pub fn exp(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}
