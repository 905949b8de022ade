//! Binds this process to processors and to the memory of NUMA nodes (affinity[], LSF_BIND_JOB):
//! what it becomes by exec, and the children of that, are bound too.
//!
//! A job runs all the same where the kernel does not bind it, and its note says so.

use super::step::note;
use crate::model::topology::CpuSet;
use crate::proto::binding::Binding;
use crate::proto::launch::Ready;
use crate::sys::{raw, words};
use std::io;

/// Binds this process.
pub fn bind(binding: &Binding, ready: &mut Ready) {
    if let Err(e) = to_cpus(&binding.cpus) {
        note(ready, format!("cannot be bound to processors {}: {}", binding.cpus, words(&e)));
    }
    if binding.nodes.is_empty() {
        return;
    }
    if let Err(e) = to_nodes(&binding.nodes, binding.prefer) {
        let text = format!("cannot be bound to memory of nodes {}", binding.nodes);
        note(ready, format!("{text}: {}", words(&e)));
    }
}

fn read(list: &str) -> io::Result<CpuSet> {
    CpuSet::parse(list).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

fn to_cpus(list: &str) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in read(list)?.iter() {
        if cpu as usize >= rustix::thread::CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu as usize);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

fn to_nodes(list: &str, prefer: bool) -> io::Result<()> {
    let nodes = read(list)?;
    if !prefer {
        return raw::set_memory_policy(raw::MemoryMode::Only, nodes.words());
    }
    // kernels before 5.15 prefer one node
    let first: CpuSet = nodes.iter().take(1).collect();
    raw::set_memory_policy(raw::MemoryMode::PreferAny, nodes.words())
        .or_else(|_| raw::set_memory_policy(raw::MemoryMode::PreferOne, first.words()))
}
