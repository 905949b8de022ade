//! The limits on the usage of a job that its host enforces (lsf.conf(5)).

use crate::model::job::Limits;
use crate::model::limits::LimitEnforcement;
use crate::proto::launch::TaskProcesses;
use crate::proto::sbd::StartJob;

/// The memory limit of a job that its host enforces, KB.
pub fn memory(limits: &Limits, enforced: LimitEnforcement) -> Option<u64> {
    let of_job = limits.memory_of.map_or(enforced.memory_of_job, |of| of.job);
    limits.rss.filter(|_| of_job || limits.hard_memory)
}

/// Does a host look at each process or task of a job for its memory limit?
pub fn memory_of_each(limits: &Limits) -> Option<u64> {
    limits.rss.filter(|_| limits.memory_of.is_some_and(|of| of.process || of.task))
}

/// Is one of these processes or tasks of a job beyond its memory limit (MEMLIMIT_TYPE)?
pub fn exceeds(limits: &Limits, used: &TaskProcesses) -> bool {
    let (Some(most), Some(of)) = (limits.rss, limits.memory_of) else { return false };
    of.process && used.most_of_process > most || of.task && used.most_of_task > most
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
