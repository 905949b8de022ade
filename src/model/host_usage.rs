//! The usage of an attempt on each of its several hosts, as records tell it when it has ended
//! (lsb.events(5), lsb.acct(5)).

use super::job::Usage;
use super::time::US;
use std::sync::Arc;

/// Most hosts of a job whose usage a record tells; of a job on more it tells the sums alone.
pub const HOST_USAGES_MAX: usize = 4096;

/// The usage of an ended attempt on one of its several hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostUsage {
    pub host: Arc<str>,
    /// Most memory and swap at a time, KB.
    pub mem_kb: u64,
    pub swap_kb: u64,
    /// User and system time, whole seconds.
    pub utime: u64,
    pub stime: u64,
}

impl HostUsage {
    /// The nearest whole seconds of a usage.
    pub fn new(host: Arc<str>, usage: &Usage) -> HostUsage {
        let secs = |us: u64| us.saturating_add(US / 2) / US;
        HostUsage {
            host,
            mem_kb: usage.max_mem_kb.max(usage.mem_kb),
            swap_kb: usage.max_swap_kb.max(usage.swap_kb),
            utime: secs(usage.utime_us),
            stime: secs(usage.stime_us),
        }
    }
}
