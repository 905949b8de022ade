//! The usage of the processes of tasks: sbatchd measures them, the launcher does not.

use super::cgroup;
use super::task_processes::{TaskTracker, time_of_task};
use crate::model::job::Usage;
use crate::proto::launch::{TaskGroup, TaskIdentity, TaskProcesses};
use std::collections::BTreeSet;
use std::path::Path;

impl TaskTracker {
    /// The present usage of these tasks; tasks without processes are left out. `others`: further
    /// running tasks; the remaining ones are forgotten.
    pub fn sample(
        &mut self,
        tasks: &[TaskIdentity],
        others: &[TaskIdentity],
    ) -> Vec<TaskProcesses> {
        let page_kb = rustix::param::page_size() as u64 / 1024;
        let found = self.find(tasks, others);
        self.keep(tasks.iter().chain(others));
        let mut sampled = Vec::new();
        for (task, found) in tasks.iter().zip(found).filter(|(_, found)| !found.is_empty()) {
            let mut all = TaskProcesses { pid: task.pid, ..TaskProcesses::default() };
            let (mut utime, mut stime) = self.known.get(&task.id).map_or((0, 0), |k| k.ended);
            let u: &mut Usage = &mut all.usage;
            for p in &found {
                (utime, stime) = (utime + p.utime, stime + p.stime);
                u.mem_kb += p.rss_pages * page_kb;
                all.most_of_process = all.most_of_process.max(p.rss_pages * page_kb);
                u.swap_kb += p.vsize / 1024;
                u.nprocs += 1;
                u.nthreads += p.threads;
                all.pids.push(p.pid);
                all.groups.push(p.pgrp);
            }
            (u.utime_us, u.stime_us) = (microseconds(utime), microseconds(stime));
            if let Some(group) = &task.group
                && let Some(all) = cgroup::cpu_time(Path::new(&group.dir))
            {
                (u.utime_us, u.stime_us) = time_of_task(group, all);
            }
            (u.max_mem_kb, u.avg_mem_kb, u.max_swap_kb) = (u.mem_kb, u.mem_kb, u.swap_kb);
            let limited = task.group.as_ref().filter(|group| !group.memory.is_empty());
            let exceeded = |group: &TaskGroup| cgroup::out_of_memory(Path::new(&group.memory));
            all.out_of_memory = limited.is_some_and(|group| exceeded(group));
            all.pgids = all.groups.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
            sampled.push(all);
        }
        sampled
    }
}

/// The length of so many clock ticks, microseconds.
pub(super) fn microseconds(ticks: u64) -> u64 {
    ticks * (1_000_000 / rustix::param::clock_ticks_per_second().max(1))
}
