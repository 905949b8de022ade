//! How large a simulation is, and the figures of one.

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
    /// Pipe queues, and a load balancer with a collector on each host.
    pub balancer: bool,
}

impl Scale {
    /// Three hosts, 50 jobs.
    pub const SMALL: Scale =
        Scale { hosts: 3, jobs: 50, slots: 2, fault_secs: 90, fault_every: 4.0, balancer: false };
    /// Fifty hosts, 5,000 jobs.
    pub const LARGE: Scale = Scale {
        hosts: 50,
        jobs: 5000,
        slots: 4,
        fault_secs: 120,
        fault_every: 2.0,
        balancer: false,
    };
    /// Fifty hosts with collectors, five of them with all daemons, 60 requests.
    pub const BALANCER: Scale = Scale { hosts: 50, jobs: 60, balancer: true, ..Scale::SMALL };
}

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub events: u64,
    pub virtual_secs: u64,
    pub acknowledged: usize,
    pub faults: usize,
    /// Deaths of daemons at each of [`MEMBERSHIP_MESSAGES`](super::MEMBERSHIP_MESSAGES).
    pub membership_deaths: [usize; 5],
    /// Tasks of parallel jobs that res has started, and signals that came to processes of them.
    pub tasks: usize,
    pub task_signals: usize,
    /// Switches of lsb.events.
    pub switches: usize,
    /// Times the log went to another host.
    pub moves: usize,
    /// Times a master was overtaken while it was stopped before a write.
    pub overtaken: usize,
    pub unknown_ends: usize,
    /// Requests that were routed, and changes that the load balancer has acknowledged.
    pub routes: usize,
    pub nlb_changes: usize,
}
