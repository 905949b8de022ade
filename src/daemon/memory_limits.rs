//! Memory limits of jobs by the kernel: LSB_RESOURCE_ENFORCE of lsf.conf(5).
//!
//! With version 2 of control groups the limit is one of the job's own group, where the launcher can
//! pass the memory controller on to it. With version 1 the job has a second group in the hierarchy
//! of the memory controller. Without either sbatchd measures the job, as without the parameter.
//!
//! Invariants: a job without a limit has no second group; a group that had a limit is not used
//! again, so that what its kernel counts is one job's.

use crate::model::limits::GroupMemory;
use crate::proto::launch::{TaskGroup, TaskId, TaskIdentity};
use crate::sys::cgroup::{self, Version};
use crate::sys::words;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The place of memory limits.
pub(super) enum MemoryLimits {
    /// Nowhere: they are measured, or nobody asked for them.
    None,
    /// The group of the job itself.
    Same,
    /// A group of version 1 below this directory.
    Own(PathBuf),
}

impl MemoryLimits {
    /// `name`: of the directory of this launcher's groups; `base`: those of jobs; `wanted`: the
    /// parameter is set.
    pub(super) fn new(name: &str, base: Option<&(Version, PathBuf)>, wanted: bool) -> Self {
        if !wanted {
            return MemoryLimits::None;
        }
        let found = match base {
            None => Err(io::Error::other("jobs have no control groups")),
            Some(base) => find(name, base),
        };
        match &found {
            Ok(MemoryLimits::Own(dir)) => {
                log::info!("the kernel holds the memory limits of jobs: {}", dir.display());
            }
            Ok(_) => log::info!("the kernel holds the memory limits of jobs in their groups"),
            Err(e) => {
                let instead = "sbatchd measures the memory of jobs instead";
                log::warn!("LSB_RESOURCE_ENFORCE=memory: {}: {instead}", words(e));
            }
        }
        found.unwrap_or(MemoryLimits::None)
    }

    /// Limits the memory of a task that is to be started in this group.
    pub(super) fn limit(&self, id: TaskId, limit: GroupMemory, group: &mut TaskGroup) {
        let key = id.key;
        let (dir, version) = match self {
            MemoryLimits::None => return,
            MemoryLimits::Same => (PathBuf::from(&group.dir), Version::Two),
            MemoryLimits::Own(base) => {
                let name = format!("{}.{}.{}", key.job, key.idx, key.attempt);
                (base.join(name), Version::Memory)
            }
        };
        let made = cgroup::make(&dir).and_then(|()| cgroup::limit_memory(&dir, version, limit));
        match made {
            Ok(()) => group.memory = dir.to_string_lossy().into_owned(),
            Err(e) => {
                log::error!("{}: {}: the memory of {id} is measured", dir.display(), words(&e));
                if version == Version::Memory {
                    let _ = cgroup::remove(&dir);
                }
            }
        }
    }

    /// The first process of a task goes into the group with its limit.
    pub(super) fn enter(&self, pid: u32, group: &mut TaskGroup) {
        if group.memory.is_empty() || group.memory == group.dir {
            return;
        }
        if let Err(e) = cgroup::enter(Path::new(&group.memory), pid) {
            log::error!("{}: {}: pid {pid} is not in it", group.memory, words(&e));
            let _ = cgroup::remove(Path::new(&group.memory));
            group.memory.clear();
        }
    }

    /// The task of a group is forgotten; whether the group of the job may be used again.
    pub(super) fn release(&self, group: &mut TaskGroup) -> bool {
        (group.out_of_memory, group.empty) = (false, false);
        if group.memory == group.dir {
            return false;
        }
        if !group.memory.is_empty() && cgroup::remove(Path::new(&group.memory)).is_ok() {
            group.memory.clear();
        }
        group.memory.is_empty()
    }

    /// Removes the groups that no known task has.
    pub(super) fn sweep(&self, tasks: &[TaskIdentity]) {
        let MemoryLimits::Own(base) = self else { return };
        let groups = tasks.iter().filter_map(|t| t.group.as_ref());
        let used: BTreeSet<&Path> = groups.map(|g| Path::new(&g.memory)).collect();
        for dir in cgroup::below(base) {
            if !used.contains(&*dir) {
                // one with processes stays
                let _ = cgroup::remove(&dir);
            }
        }
    }

    /// Before the launcher ends: removes what is not in use.
    pub(super) fn remove(&self) {
        self.sweep(&[]);
        if let MemoryLimits::Own(base) = self {
            let _ = cgroup::remove(base);
        }
    }
}

fn find(name: &str, (version, base): &(Version, PathBuf)) -> io::Result<MemoryLimits> {
    if *version == Version::Two {
        let own = base.parent().unwrap_or(base);
        let passed = cgroup::pass_memory_on(own).and_then(|()| cgroup::pass_memory_on(base));
        if passed.is_ok() {
            return Ok(MemoryLimits::Same);
        }
    }
    let own = cgroup::own_groups().into_iter().find(|(version, _)| *version == Version::Memory);
    let (_, own) = own.ok_or_else(|| io::Error::other("no memory controller can be used"))?;
    let dir = own.join(name);
    cgroup::make(&dir)?;
    Ok(MemoryLimits::Own(dir))
}
