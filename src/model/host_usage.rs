//! The usage of an attempt on each of its several hosts, as records tell it when it has ended
//! (lsb.events(5), lsb.acct(5)).

use super::job::Usage;
use super::time::US;
use std::sync::Arc;

/// Most hosts of a job whose usage a record tells; of a job on more it tells the sums alone.
const HOST_USAGES_MAX: usize = 4096;

/// The usage of an ended attempt on one of its several hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostUsage {
    pub host: Arc<str>,
    /// Most memory and swap at a time, KB.
    pub mem_kb: u64,
    pub swap_kb: u64,
    /// User and system time, microseconds.
    pub utime_us: u64,
    pub stime_us: u64,
}

impl HostUsage {
    /// The usage on all hosts of an attempt, as a record tells it: none of one host alone, and none
    /// where they are more than `HOST_USAGES_MAX`.
    pub fn of_all(hosts: &[(Arc<str>, Usage)]) -> Box<[HostUsage]> {
        match (2..=HOST_USAGES_MAX).contains(&hosts.len()) {
            true => hosts.iter().map(|(name, used)| HostUsage::new(name.clone(), used)).collect(),
            false => Box::default(),
        }
    }

    fn new(host: Arc<str>, usage: &Usage) -> HostUsage {
        HostUsage {
            host,
            mem_kb: usage.max_mem_kb.max(usage.mem_kb),
            swap_kb: usage.max_swap_kb.max(usage.swap_kb),
            utime_us: usage.utime_us,
            stime_us: usage.stime_us,
        }
    }

    /// User and system time in the nearest whole seconds, as the fields of LSF have them.
    pub fn whole_secs(&self) -> [u64; 2] {
        [self.utime_us, self.stime_us].map(|us| us.saturating_add(US / 2) / US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_tells_several_hosts_and_no_more_than_it_may_hold() {
        let of = |n: usize| HostUsage::of_all(&vec![("hosta".into(), Usage::default()); n]).len();
        let most = HOST_USAGES_MAX;
        assert_eq!([0, 1, 2, most, most + 1].map(of), [0, 0, 2, most, 0]);
    }

    #[test]
    fn seconds_of_a_host_are_the_nearest_and_sizes_the_largest() {
        let (utime_us, stime_us) = (1_499_999, u64::MAX);
        let usage = Usage { utime_us, stime_us, mem_kb: 7, max_mem_kb: 5, ..Usage::default() };
        let told = HostUsage::new("hosta".into(), &usage);
        assert_eq!((told.whole_secs(), told.mem_kb), ([1, u64::MAX / US], 7));
    }
}
