//! The processors that a job is bound to on its first host (affinity[], BIND_JOB), and what it is
//! told of them: LSB_BIND_JOB, LSB_BIND_CPU_LIST, LSB_BIND_MEM_LIST, LSB_BIND_MEM_POLICY and
//! RM_CPUTASKn.
//!
//! The job is bound to the CPUs of all its tasks on the host. See bsub(1).

use crate::model::affinity::{JobUnits, MemoryPolicy};
use crate::model::topology::CpuSet;
use crate::proto::binding::Binding;
use crate::proto::sbd::StartJob;

/// The processors and the memory of the tasks of a job on a host.
struct Share {
    /// The CPUs of each task.
    tasks: Vec<CpuSet>,
    cpus: CpuSet,
    nodes: CpuSet,
    policy: MemoryPolicy,
}

fn share(units: &JobUnits, host: &str) -> Option<Share> {
    let (cpus, nodes) = (CpuSet::default(), CpuSet::default());
    let mut share = Share { tasks: Vec::new(), cpus, nodes, policy: MemoryPolicy::Unbound };
    for (part, task) in units.on(host) {
        share.cpus.add(&task.bound);
        share.tasks.push(task.bound.clone());
        if part.policy != MemoryPolicy::Unbound {
            share.nodes.add(&task.nodes());
            share.policy = part.policy;
        }
    }
    (!share.tasks.is_empty()).then_some(share)
}

fn units(o: &StartJob) -> Option<JobUnits> {
    JobUnits::parse(&o.affinity).filter(|units| !units.parts.is_empty())
}

/// The binding of a job on a host; `None`: it asks for none.
pub(super) fn binding(o: &StartJob, host: &str) -> Option<Box<Binding>> {
    if o.affinity.is_empty() {
        let cpus = o.bound.clone();
        return (!cpus.is_empty()).then(|| Box::new(Binding { cpus, ..Binding::default() }));
    }
    let units = units(o)?;
    let share = share(&units, host)?;
    Some(Box::new(Binding {
        cpus: share.cpus.to_string(),
        nodes: share.nodes.to_string(),
        prefer: share.policy == MemoryPolicy::Prefer,
        host_file: units.host_file(),
    }))
}

/// The variables of the job on a host.
pub(super) fn variables(o: &StartJob, host: &str) -> Vec<(String, Vec<u8>)> {
    let var = |name: &str, value: String| (name.to_owned(), value.into_bytes());
    if o.affinity.is_empty() {
        let cpus = CpuSet::parse(&o.bound).ok().filter(|cpus| !cpus.is_empty());
        let Some(cpus) = cpus else { return Vec::new() };
        let policy = var("LSB_BIND_JOB", o.bind_job.clone());
        return vec![policy, var("LSB_BIND_CPU_LIST", cpus.each())];
    }
    let Some(share) = units(o).and_then(|units| share(&units, host)) else { return Vec::new() };
    let mut all = vec![var("LSB_BIND_CPU_LIST", share.cpus.each())];
    if share.policy != MemoryPolicy::Unbound {
        all.push(var("LSB_BIND_MEM_LIST", share.nodes.each()));
        all.push(var("LSB_BIND_MEM_POLICY", share.policy.name().to_owned()));
    }
    let each = share.tasks.iter().enumerate();
    all.extend(each.map(|(n, cpus)| var(&format!("RM_CPUTASK{}", n + 1), cpus.each())));
    all
}
