//! The work of a collector's runner (ccollect): readings of the host, the files and the programs of
//! the site.

/// Counters and states of a host as the system has them; `None`: they cannot be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// When they were read, microseconds of the monotonic clock.
    pub at: u64,
    /// System, release, version and machine as uname(2) names them.
    pub names: [String; 4],
    pub cpu: Option<CpuTime>,
    /// Processes that can run now, without the one that reads.
    pub runnable: Option<u64>,
    /// Time since boot in which a process waited for a processor, microseconds.
    pub waited_us: Option<u64>,
    /// KB moved to and from swap space since boot.
    pub swapped_kb: Option<u64>,
    pub memory_kb: Option<u64>,
    pub free_memory_kb: Option<u64>,
    pub swap_kb: Option<u64>,
    pub free_swap_kb: Option<u64>,
    /// The frequency of a processor, Hz.
    pub clock_hz: Option<f64>,
    /// Processors that are online.
    pub cpus: Option<u64>,
    /// Context switches since boot.
    pub switches: Option<u64>,
    pub processes: Option<u64>,
    /// Room for users' temporary files, MB.
    pub tmp_mb: Option<u64>,
    /// Minutes since a key was typed.
    pub idle_minutes: Option<f64>,
    /// KB read from and written to whole disks since boot.
    pub disk_kb: Option<u64>,
    /// Requests to whole disks since boot.
    pub disk_requests: Option<u64>,
    /// lsb.nqs has the files of users validated.
    pub validates: Option<bool>,
}

/// Processor time since boot, ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// Idle, waits for disks included.
    pub idle: u64,
    /// Spent by the system, interrupts included.
    pub system: u64,
    pub total: u64,
}

/// The bytes of a file of custom objects, or why it cannot be read.
pub type CustomContent = (String, Result<Vec<u8>, String>);

/// An order of the collector.
#[derive(Clone, Debug, PartialEq)]
pub enum CollectorEffect {
    /// Read the host's counters and these files; answered by [`CollectorInput::Reading`].
    Measure { files: Vec<String> },
    /// Count the processes that can run; answered by [`CollectorInput::Glance`].
    Glance,
    /// Start the custom collector of this number.
    Start { program: usize },
}

/// A report of the runner.
#[derive(Clone, Debug, PartialEq)]
pub enum CollectorInput {
    Reading {
        counters: Box<Counters>,
        files: Vec<CustomContent>,
    },
    /// Processes that can run, and processors.
    Glance {
        runnable: u64,
        cpus: u64,
    },
    /// The custom collector has ended, and how.
    Ended {
        program: usize,
        how: String,
    },
    /// The custom collector was not started, and why.
    NotStarted {
        program: usize,
        why: String,
    },
    /// The entry is no program but a file of custom objects.
    File {
        program: usize,
        path: String,
    },
}
