//! The limits on the usage of a job that its host enforces (lsf.conf(5)).

use crate::model::job::Limits;
use crate::model::limits::LimitEnforcement;
use crate::proto::sbd::StartJob;

/// The memory limit of a job that its host enforces, KB.
pub fn memory(limits: &Limits, enforced: LimitEnforcement) -> Option<u64> {
    limits.rss.filter(|_| enforced.memory_of_job || limits.hard_memory)
}

/// The CPU limit of a job that its host enforces, seconds.
pub fn cpu(limits: &Limits, enforced: LimitEnforcement) -> Option<u64> {
    limits.cpu.filter(|_| enforced.cpu_of_job)
}

/// Is a job ended beyond its memory limit only when the host lacks memory
/// (LSB_MEMLIMIT_ENF_CONTROL)? Hard limits and jobs of several hosts do not wait for that.
pub fn waits_for_host(order: &StartJob, enforced: LimitEnforcement) -> bool {
    enforced.memory_control.is_some() && !order.limits.hard_memory && order.hosts.len() <= 1
}
