//! A LIM and whoever asks it: static facts, load vectors, the master's name.

use serde::{Deserialize, Serialize};

/// Position of each built-in load index in a load vector, in LSF's order.
pub const INDEX_NAMES: [&str; 11] =
    ["r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem"];

/// What a host is, measured once.
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
    /// Boolean and `name=value` resources of lsf.cluster.
    pub resources: Vec<(String, Option<String>)>,
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
    /// Bit i set: index i is beyond its threshold.
    pub over: u32,
    pub external: Vec<(String, String)>,
    pub facts: Option<HostFacts>,
    pub boot_id: String,
}

/// A raw measurement of this host by the runner.
#[derive(Clone, Debug, Default)]
pub struct LoadSample {
    /// Processes runnable now, without ourselves.
    pub run_queue: f64,
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
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LimMsg {
    /// Datagram: a host's reading, sent to the master LIM.
    Beat {
        load: Box<HostLoad>,
    },
    /// Ask for the cluster's and the master's name.
    WhoIsMaster,
    /// `master` is empty while unknown.
    Master {
        cluster: String,
        master: String,
    },
    /// Keep the connection: [`LimMsg::Master`] now and at each change, and with `loads`
    /// [`LimMsg::Loads`] at each turn (sbatchd, mbatchd).
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
}
