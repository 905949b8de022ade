//! The variables of a task that a job has started on one of its hosts (blaunch(1)). These stand
//! above the variables of its caller: a launcher that clears its environment has right ones in its
//! tasks.

use crate::exec::plan::{HostEnvironment, set_env};
use crate::proto::sbd::StartJob;

/// The variables of the job that a task has; the others are its caller's.
const OF_JOB: [&str; 13] = [
    "LSB_JOBID",
    "LSB_BATCH_JID",
    "LSB_JOBINDEX",
    "LSB_JOBNAME",
    "LSB_QUEUE",
    "LSB_HOSTS",
    "LSB_MCPU_HOSTS",
    "LSB_DJOB_NUMPROC",
    "LSB_DJOB_ATTEMPT",
    "LSB_MAX_NUM_PROCESSORS",
    "LSB_SUB_HOST",
    "LSB_EXEC_CLUSTER",
    "LSB_APPLICATION_NAME",
];

/// The variables for a task on this host, NUL-separated.
pub fn task_env(site: &HostEnvironment, order: &StartJob) -> Vec<u8> {
    let own = |name: &str| site.env.iter().any(|(own, _)| own == name);
    let all = set_env(site, order).into_iter();
    let kept = all.filter(|(name, _)| OF_JOB.contains(&name.as_str()) || own(name));
    let mut out = Vec::new();
    for (name, value) in kept {
        if !out.is_empty() {
            out.push(0);
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        out.extend(value.into_iter().filter(|&b| b != 0));
    }
    out
}
