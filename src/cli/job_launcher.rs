//! The process that signals a whole job on this host: the batch system's launcher. All processes
//! of the job have its signals; those in their midst do not pass them on.

use crate::sys::process_table::see;

/// Most ancestors that are looked at.
const ANCESTORS_MAX: usize = 64;

/// The launcher of this host, if this process is of a job: the parent of the job's or the task's
/// first process; where the environment has lost that one, an ancestor of this name.
pub fn launcher() -> Option<u32> {
    let first = std::env::var("LS_JOBPID").ok().and_then(|pid| pid.parse().ok());
    let above = |pid: u32| see(pid).map(|seen| seen.parent).filter(|pid| *pid > 1);
    if let Some(launcher) = first.and_then(above) {
        return Some(launcher);
    }
    let mut pid = std::process::id();
    for _ in 0..ANCESTORS_MAX {
        pid = above(pid)?;
        if see(pid).is_some_and(|seen| seen.process().name() == "launcher") {
            return Some(pid);
        }
    }
    None
}
