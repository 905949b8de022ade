//! The process that signals a whole job on this host: the batch system's launcher. All processes
//! of the job have its signals; those in their midst do not pass them on.

use crate::sys::process_table::{Seen, see};
use crate::sys::procs::Proc;

/// Most ancestors that are looked at.
const ANCESTORS_MAX: usize = 64;

/// The launcher above this process.
#[derive(Clone, Copy, Debug)]
pub struct JobLauncher {
    pub pid: u32,
    /// The first process of the job or task: the ancestor of this one that the launcher has begun.
    pub first: Proc,
}

/// The launcher of this host, if this process is of a job: the parent of the ancestor that the
/// environment names as the first process; else the ancestor of this name. A parallel program may
/// have the environment of another host.
pub fn job_launcher() -> Option<JobLauncher> {
    let (named, line) = (named(), ancestors());
    let by_name = || line.iter().skip(1).position(|seen| seen.process().name() == "launcher");
    let first = line.iter().position(|seen| Some(seen.pid) == named).or_else(by_name)?;
    let first = line[first];
    (first.parent > 1).then(|| JobLauncher { pid: first.parent, first: first.process() })
}

/// The first process of the job or task, as the environment names it.
fn named() -> Option<u32> {
    std::env::var("LS_JOBPID").ok().and_then(|pid| pid.parse::<u32>().ok())
}

/// This process and its ancestors.
fn ancestors() -> Vec<Seen> {
    let mut line: Vec<Seen> = see(std::process::id()).into_iter().collect();
    while line.len() < ANCESTORS_MAX {
        match line.last().and_then(|seen| see(seen.parent)) {
            Some(seen) if seen.pid > 1 => line.push(seen),
            _ => break,
        }
    }
    line
}

/// Whether this process is below the first process that the environment names. Where it names none,
/// it may still be of a job.
pub fn is_within_job() -> bool {
    named().is_some_and(|first| ancestors().iter().any(|seen| seen.pid == first))
}

/// The process ID of the launcher of this host, if this process is of a job.
pub fn launcher() -> Option<u32> {
    job_launcher().map(|found| found.pid)
}
