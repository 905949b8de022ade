//! The usage of a job on its hosts besides the first one, for the report on the job
//! (lsf-parallel(7)): mbatchd is asked for it when the script has ended.

use crate::model::job::Usage;
use std::collections::HashSet;
use std::sync::Arc;

/// The knowledge that the first host has of it.
#[derive(Clone, Debug, Default)]
pub enum OthersUsage {
    #[default]
    Unknown,
    /// mbatchd is asked; the report waits until this instant, microseconds.
    Asked(u64),
    /// The hosts whose usage is not counted are named.
    Told(Box<Usage>, Vec<String>),
}

/// The report on an attempt, with all that its end waits for.
#[derive(Clone, Debug, Default)]
pub struct ReportWait {
    pub others: OthersUsage,
    pub task: ReportTask,
    /// All else is done.
    pub rest_over: bool,
}

/// A report that is written apart from the rest of what is done after the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportTask {
    /// The report is written with the rest.
    #[default]
    Within,
    /// The rest is asked for.
    Due,
    /// Output that is part of the job is complete, so that the report may follow.
    OutputReady,
    Asked,
    Over,
}

impl ReportWait {
    /// `apart`: the rest was asked for without the report.
    pub fn of(apart: bool) -> Self {
        let task = if apart { ReportTask::Due } else { ReportTask::Within };
        ReportWait { task, ..ReportWait::default() }
    }
}

impl ReportTask {
    pub fn is_over(self) -> bool {
        matches!(self, ReportTask::Within | ReportTask::Over)
    }
}

/// The usage that a report shows.
#[derive(Clone, Debug)]
pub struct ReportedUsage {
    pub usage: Usage,
    /// The hosts whose usage that is; none: all of them.
    pub counted_on: Vec<String>,
    pub max_procs: u32,
    pub max_threads: u32,
}

/// The hosts of a job, each once.
pub fn hosts_of(slots: &[(Arc<str>, u32)]) -> Vec<&str> {
    let mut seen: HashSet<&str> = HashSet::new();
    slots.iter().map(|(host, _)| &**host).filter(|host| seen.insert(host)).collect()
}

impl OthersUsage {
    /// The hosts have not told theirs in time.
    pub fn too_late(slots: &[(Arc<str>, u32)]) -> OthersUsage {
        let others = hosts_of(slots).into_iter().skip(1).map(str::to_owned).collect();
        OthersUsage::Told(Box::default(), others)
    }

    /// The instant until which the report waits.
    pub fn until(&self) -> Option<u64> {
        match self {
            OthersUsage::Asked(until) => Some(*until),
            OthersUsage::Unknown | OthersUsage::Told(..) => None,
        }
    }

    /// The usage of a job with these slots, of which the first host has counted `own` and so many
    /// processes and threads.
    pub fn with_first(
        &self,
        slots: &[(Arc<str>, u32)],
        own: &Usage,
        (max_procs, max_threads): (u32, u32),
    ) -> ReportedUsage {
        let hosts = hosts_of(slots);
        let first = hosts.first().map(|host| (*host).to_owned());
        let counted_on = first.filter(|_| hosts.len() > 1).into_iter().collect();
        let mut all = ReportedUsage { usage: *own, counted_on, max_procs, max_threads };
        if let OthersUsage::Told(theirs, without) = self {
            all.usage.add(theirs);
            // the peaks are those of all hosts together
            all.usage.max_mem_kb = own.max_mem_kb.max(theirs.max_mem_kb);
            all.usage.max_swap_kb = own.max_swap_kb.max(theirs.max_swap_kb);
            all.max_procs = max_procs.max(theirs.nprocs);
            all.max_threads = max_threads.max(theirs.nthreads);
            let without: HashSet<&str> = without.iter().map(String::as_str).collect();
            let counted = |host: &&&str| !without.contains(**host);
            all.counted_on = hosts.iter().filter(counted).map(|host| (*host).to_owned()).collect();
            if all.counted_on.len() == hosts.len() {
                all.counted_on.clear();
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_a_job_is_that_of_the_hosts_that_have_told_theirs() {
        let slots = [("a", 1), ("b", 2), ("a", 1), ("c", 1)].map(|(h, n)| (Arc::from(h), n));
        let used = |utime_us, max_mem_kb| Usage { utime_us, max_mem_kb, ..Usage::default() };
        let own = used(10, 100);
        let theirs = Usage { nprocs: 7, nthreads: 1, ..used(5, 160) };
        let told = |without: &[&str]| {
            let names = without.iter().map(|host| (*host).to_owned()).collect();
            let all = OthersUsage::Told(Box::new(theirs), names);
            let all = all.with_first(&slots, &own, (3, 4));
            assert_eq!((all.usage.utime_us, all.usage.max_mem_kb), (15, 160));
            assert_eq!((all.max_procs, all.max_threads), (7, 4));
            all.counted_on
        };
        assert_eq!(told(&[]), [""; 0]);
        assert_eq!(told(&["b"]), ["a", "c"]);
        for unknown in [OthersUsage::Unknown, OthersUsage::too_late(&slots)] {
            let all = unknown.with_first(&slots, &own, (3, 4));
            assert_eq!((all.usage, all.counted_on), (own, vec!["a".to_owned()]));
        }
        let alone = OthersUsage::Unknown.with_first(&slots[..1], &own, (3, 4));
        assert!(alone.counted_on.is_empty());
    }
}
