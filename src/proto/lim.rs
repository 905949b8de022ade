//! Messages between a LIM and its callers: static facts, load vectors, the master's name.

use super::logging::Logging;
use serde::{Deserialize, Serialize};

/// Position of each built-in load index in a load vector, in LSF's order.
pub const INDEX_NAMES: [&str; 11] =
    ["r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem"];

/// The place of the available memory, MB, among these.
pub const MEMORY_INDEX: usize = 10;

/// The properties of a host, measured once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    pub host_type: String,
    pub model: String,
    pub cpu_factor: f64,
    pub ncpus: u32,
    pub nprocs: u32,
    pub ncores: u32,
    pub nthreads: u32,
    pub ndisks: u32,
    /// MB.
    pub max_mem: u64,
    pub max_swp: u64,
    pub max_tmp: u64,
    /// Boolean and `name=value` resources of lsf.cluster's Host section.
    pub resources: Vec<(String, Option<String>)>,
    /// The resources that a task must ask for to be placed on the host; all are among `resources`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclusive: Vec<String>,
    /// Static instances of lsf.cluster's ResourceMap that this host shares (name, value).
    pub shared: Vec<(String, String)>,
    /// Runs jobs and LIM; false: a client.
    pub server: bool,
    /// Nice value of remote tasks.
    pub rexpri: i32,
    /// RUNWINDOW as written; empty: always open.
    pub run_window: String,
    /// Busy thresholds by built-in index; empty: none at all.
    pub thresholds: Vec<Option<f64>>,
    /// NUMA nodes, sockets, cores and threads as text ([`crate::model::topology::Topology`]), at
    /// most [`crate::model::topology::MAX_TEXT`] bytes; empty: not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub topology: String,
}

/// One instance of a shared resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedRow {
    pub name: String,
    /// `-` while no elim has reported it.
    pub value: String,
    pub hosts: Vec<String>,
    /// Reported by elims.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dynamic: bool,
}

/// LIM host status bits.
pub mod status {
    /// A threshold of lsf.cluster is exceeded.
    pub const BUSY: u32 = 0x01;
    pub const LOCK_U: u32 = 0x02;
    pub const LOCK_W: u32 = 0x04;
    pub const LOCK_M: u32 = 0x08;
    /// RES does not answer (shown `-ok`).
    pub const RES_DOWN: u32 = 0x10;
    pub const UNAVAIL: u32 = 0x20;
    /// An exclusive job (bsub -x) runs there; shown as a lock of the host's own.
    pub const LOCK_X: u32 = 0x40;
    /// Locked, whatever for.
    pub const LOCKED: u32 = LOCK_U | LOCK_W | LOCK_M | LOCK_X;
}

/// One reading of a host: the 11 built-in indices in the order of [`INDEX_NAMES`]
/// (queue lengths, ut as 0..1, pg pages/s, io KB/s, ls, it minutes, tmp/swp/mem MB), then
/// external ones by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLoad {
    pub host: String,
    /// [`status`] bits.
    pub status: u32,
    pub index: [f32; 11],
    /// Bit i set: index i is beyond its threshold; from bit 11 on those of `external`.
    pub over: u32,
    pub external: Vec<(String, String)>,
    pub facts: Option<HostFacts>,
    pub boot_id: String,
    /// The copies of the configuration, name and checksum: in a beat the sender's own, in an answer
    /// those that differ from the master's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<(String, String)>,
}

/// A raw measurement of this host by the runner.
#[derive(Clone, Debug, Default)]
pub struct LoadSample {
    /// Processes runnable now, without ourselves.
    pub run_queue: f64,
    /// The system's load averages over 1 and 15 minutes: what r1m and r15m begin with.
    pub load_avg: [f64; 2],
    /// Jiffies since boot: busy, total.
    pub cpu_busy: u64,
    pub cpu_total: u64,
    /// Pages paged in and out since boot.
    pub pages: u64,
    /// KB read and written since boot.
    pub io_kb: u64,
    pub logins: u32,
    pub idle_minutes: f64,
    /// MB available.
    pub tmp: u64,
    pub swp: u64,
    pub mem: u64,
    pub facts: HostFacts,
    pub boot_id: String,
    /// The copies of the configuration, as in [`HostLoad`].
    pub copies: Vec<(String, String)>,
}

/// How a run queue length is counted (lsload, lsload -E, lsload -N).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// The length as measured.
    #[default]
    Raw,
    /// The processes that wait while every processor is busy, divided by the processors.
    Effective,
    /// The effective length by the speed of the host.
    Normalised,
}

/// Number of run queue indices; they come first in a load vector.
pub const QUEUE_INDICES: usize = 3;

impl HostLoad {
    /// The value of a built-in index; run queue lengths counted as `how` says.
    pub fn value(&self, index: usize, how: Queue) -> f64 {
        let raw = f64::from(self.index.get(index).copied().unwrap_or(0.0));
        if index >= QUEUE_INDICES || how == Queue::Raw {
            return raw;
        }
        let (ncpus, factor) = match &self.facts {
            Some(f) => (f.ncpus.max(1), f.cpu_factor),
            None => (1, 1.0),
        };
        let effective = effective_queue(raw, ncpus);
        if how == Queue::Effective || factor <= 0.0 { effective } else { effective / factor }
    }

    /// Is the host without news?
    pub fn unavailable(&self) -> bool {
        self.status & status::UNAVAIL != 0
    }
}

/// Run queue length beyond one process a processor, a processor.
pub fn effective_queue(raw: f64, ncpus: u32) -> f64 {
    let ncpus = f64::from(ncpus.max(1));
    (raw - (ncpus - 1.0)).max(0.0) / ncpus
}

/// Is a larger value of this built-in index a heavier load?
pub fn increasing(index: usize) -> bool {
    index < 7
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LimMsg {
    /// Datagram: a host's reading, sent to the master LIM.
    Beat {
        load: Box<HostLoad>,
    },
    /// Datagram: the sender serves as master.
    Announce {
        cluster: String,
        /// The receiver's reading is wanted now.
        #[serde(default)]
        want: bool,
        /// Shared resources whose value the receiver's elims are to find out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        report: Vec<String>,
        /// A new master has not heard of all hosts yet: `report` is not decided.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        undecided: bool,
    },
    /// Ask for the cluster's and the master's name; as a datagram it is answered by the master
    /// alone, with `Announce`.
    WhoIsMaster,
    /// `master` is empty while unknown.
    Master {
        cluster: String,
        master: String,
    },
    /// Keep the connection: [`LimMsg::Master`] now and at each change, and with `loads`
    /// [`LimMsg::Loads`]: all hosts now, then those with news at each turn, and at once those
    /// whose status changes (sbatchd, mbatchd).
    Subscribe {
        loads: bool,
    },
    /// Ask for hosts with their loads and facts; empty: all.
    Hosts {
        hosts: Vec<String>,
    },
    Loads {
        hosts: Vec<HostLoad>,
    },
    /// Ask for the shared resources.
    Shared,
    SharedRows {
        rows: Vec<SharedRow>,
    },
    /// Lock a host against new tasks or end that: this one for so many seconds (0: for good), or,
    /// asked of the master, the host named. Answered by `Done`.
    Lock {
        host: String,
        on: bool,
        secs: u64,
    },
    /// mbatchd tells the master LIM all hosts on which exclusive jobs run now: they are locked. No
    /// answer.
    Exclusive {
        hosts: Vec<String>,
    },
    /// More tasks are on their way to these hosts, so many to each: their load counts as higher for
    /// a while. Answered by `Done`.
    Adjust {
        hosts: Vec<(String, u32)>,
    },
    /// Datagram: a host that lsf.cluster does not name asks the master to be let into the
    /// cluster; `addr` is filled in by the receiver, from the packet.
    Join {
        cluster: String,
        #[serde(default)]
        addr: String,
        /// LSF_LOCAL_RESOURCES.
        #[serde(default)]
        resources: String,
    },
    /// Datagram: why it is not. A host that is let in hears [`LimMsg::Announce`].
    NotJoined {
        why: String,
    },
    /// The log level of LIM: 0 that of lsf.conf, 1 more, 2 all. Answered by `Done`.
    Verbose {
        level: u8,
    },
    /// The log level, the timing of turns and the file of LIM's log. Answered by `Done`.
    Logging(Logging),
    /// Ask for what LIM has from lsf.conf.
    Config,
    Settings {
        rows: Vec<(String, String)>,
    },
    Done,
}
