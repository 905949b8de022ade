//! The topology of hosts (lshosts -T), and the tables of GPUs of hosts that have none (lshosts
//! -gpu, lsload -gpu and -gpuload). See lshosts(1) and lsload(1).

use super::load::{size_fixed, status_word};
use crate::model::topology::{Cpu, CpuSet, Topology, Unit};
use crate::proto::client::HostUnits;
use crate::proto::lim::HostLoad;
use std::fmt::Write;

/// Most processors that a tree shows one by one.
const MAX_CPUS: u32 = 4096;

/// The tree of a host: its memory, its NUMA nodes, their sockets, and the cores of these with the
/// numbers of their threads, as its kernel has them. A LIM of an older release tells only how many
/// there are: they are counted as kernels usually do, the first threads of all cores first.
pub fn tree(h: &HostLoad) -> String {
    let Some(f) = h.facts.as_ref().filter(|f| f.max_mem > 0) else {
        return format!("Host[-] {}\n", h.host);
    };
    let mem = size_fixed(f.max_mem);
    if let Some(known) = Topology::parse(&f.topology).filter(|known| !known.is_empty()) {
        let mut text = format!("Host[{mem}] {}\n", h.host);
        for node in known.nodes() {
            let _ = writeln!(text, "    NUMA[{}: {}]", node.number, size_fixed(node.memory));
            cores_of(&mut text, &known, node.number, &|_| "        Socket".into(), &|core| {
                format!("core({})", core.1)
            });
        }
        return text;
    }
    let mut text = format!("Host[{mem}] {}\n    NUMA[0: {mem}]\n", h.host);
    let (sockets, cores, threads) = (f.nprocs.max(1), f.ncores.max(1), f.nthreads.max(1));
    if sockets.saturating_mul(cores).saturating_mul(threads) > MAX_CPUS {
        let _ = writeln!(text, "        {sockets} sockets of {cores} cores of {threads} threads");
        return text;
    }
    for socket in 0..sockets {
        text.push_str("        Socket\n");
        for core in 0..cores {
            let first = socket * cores + core;
            let ids = (0..threads).map(|t| (first + t * sockets * cores).to_string());
            let _ = writeln!(text, "            core({})", ids.collect::<Vec<_>>().join(" "));
        }
    }
    text
}

/// The tree of a host for bhosts -aff: each NUMA node with the memory that jobs asked for there,
/// and a `*` before each CPU that a job has. `below`: indented under a listing that names the host.
pub fn tree_in_use(h: &HostLoad, units: Option<&HostUnits>, below: bool) -> String {
    let facts = h.facts.as_ref().filter(|f| f.max_mem > 0);
    let known = facts.and_then(|f| Topology::parse(&f.topology)).filter(|known| !known.is_empty());
    let mut text = match (facts, known) {
        (Some(f), Some(known)) => {
            let mut text = format!("Host[{}] {}\n", size_fixed(f.max_mem), h.host);
            let taken =
                units.and_then(|units| CpuSet::parse(&units.taken).ok()).unwrap_or_default();
            for node in known.nodes() {
                let memory = units.map_or(&[][..], |units| &units.memory);
                let asked = memory.iter().find(|of| of.0 == node.number).map_or(0, |of| of.1);
                let (asked, all) = (size_fixed(asked), size_fixed(node.memory));
                let _ = writeln!(text, "    NUMA[{}: {asked} / {all}]", node.number);
                cores_in_use(&mut text, &known, node.number, &taken);
            }
            text
        }
        _ => tree(h),
    };
    if below {
        let name = format!(" {}\n", h.host);
        text = text.replacen(&name, "\n", 1).lines().map(|line| format!(" {line}\n")).collect();
        text.push('\n');
    }
    text
}

fn cores_in_use(text: &mut String, known: &Topology, node: u32, taken: &CpuSet) {
    let socket = |number: u32| format!("        Socket{number}");
    let star = |cpu: &str| match cpu.parse().is_ok_and(|cpu| taken.contains(cpu)) {
        true => format!("*{cpu}"),
        false => cpu.to_owned(),
    };
    let core = |(number, cpus): (u32, &str)| {
        let cpus: Vec<String> = cpus.split(' ').map(star).collect();
        format!("core{number}({})", cpus.join(" "))
    };
    cores_of(text, known, node, &socket, &core);
}

/// The sockets and cores of a NUMA node: a line for each socket by its number, and for each core by
/// its number and its CPUs.
fn cores_of(
    text: &mut String,
    known: &Topology,
    node: u32,
    socket: &dyn Fn(u32) -> String,
    core: &dyn Fn((u32, &str)) -> String,
) {
    let mut last = None;
    for index in 0..known.count(Unit::Core) {
        let of = |position: &u32| known.cpus()[*position as usize];
        let cpus: Vec<Cpu> = known.members(Unit::Core, index).iter().map(of).collect();
        let Some(first) = cpus.first().filter(|cpu| cpu.node == node) else { continue };
        if last.replace(first.socket) != Some(first.socket) {
            let _ = writeln!(text, "{}", socket(first.socket));
        }
        let numbers: Vec<String> = cpus.iter().map(|cpu| cpu.number.to_string()).collect();
        let _ = writeln!(text, "            {}", core((first.core, &numbers.join(" "))));
    }
}

/// Columns of lshosts -gpu after the host's name.
const INVENTORY: [(&str, usize); 7] = [
    ("gpu_id", 8),
    ("gpu_model", 16),
    ("gpu_driver", 13),
    ("gpu_factor", 13),
    ("numa_id", 10),
    ("vendor", 9),
    ("mig", 6),
];
/// Columns of lsload -gpu after the host's name and status.
const SUMMARY: [(&str, usize); 4] =
    [("ngpus", 7), ("gpu_shared_avg_mut", 20), ("gpu_shared_avg_ut", 19), ("ngpus_physical", 16)];
/// Columns of lsload -gpuload after the host's name.
const LOADS: [(&str, usize); 12] = [
    ("gpuid", 8),
    ("gpu_model", 12),
    ("gpu_mode", 11),
    ("gpu_temp", 11),
    ("gpu_ecc", 10),
    ("gpu_ut", 9),
    ("gpu_mut", 10),
    ("gpu_mtotal", 13),
    ("gpu_mused", 12),
    ("gpu_pstate", 13),
    ("gpu_status", 13),
    ("gpu_error", 12),
];

fn table(hosts: &[HostLoad], columns: &[(&str, usize)], status: bool) -> String {
    let mut text = format!("{:<15}", "HOST_NAME");
    if status {
        let _ = write!(text, " {:>6}", "status");
    }
    for (name, width) in columns {
        let _ = write!(text, "{name:>width$}");
    }
    text.push('\n');
    for h in hosts {
        let _ = write!(text, "{:<15}", h.host);
        if status {
            let _ = write!(text, " {:>6}", status_word(h.status));
        }
        for (_, width) in columns {
            let _ = write!(text, "{:>width$}", "-");
        }
        text.push('\n');
    }
    text
}

/// lshosts -gpu.
pub fn gpu_inventory(hosts: &[HostLoad]) -> String {
    table(hosts, &INVENTORY, false)
}

/// lsload -gpu.
pub fn gpu_summary(hosts: &[HostLoad]) -> String {
    table(hosts, &SUMMARY, true)
}

/// lsload -gpuload.
pub fn gpu_loads(hosts: &[HostLoad]) -> String {
    table(hosts, &LOADS, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::lim::HostFacts;

    fn host() -> HostLoad {
        let facts = HostFacts {
            max_mem: 65_741,
            nprocs: 2,
            ncores: 2,
            nthreads: 2,
            ..HostFacts::default()
        };
        HostLoad { host: "hosta".into(), facts: Some(facts), ..HostLoad::default() }
    }

    #[test]
    fn topology_of_a_host_is_shown_as_a_tree() {
        let want = "Host[64.2G] hosta\n    NUMA[0: 64.2G]\n        Socket\n            \
                    core(0 4)\n            core(1 5)\n        Socket\n            \
                    core(2 6)\n            core(3 7)\n";
        assert_eq!(tree(&host()), want);
        let unknown = HostLoad { host: "hostb".into(), ..HostLoad::default() };
        assert_eq!(tree(&unknown), "Host[-] hostb\n");
        let mut huge = host();
        if let Some(f) = &mut huge.facts {
            f.ncores = u32::MAX;
        }
        assert!(tree(&huge).lines().count() == 3);
    }

    #[test]
    fn topology_that_the_kernel_tells_is_shown_as_it_is() {
        let mut known = host();
        if let Some(f) = &mut known.facts {
            f.topology = "N0=32000 S0 0,2 N1=33741 S1 1 3".into();
        }
        let want = "Host[64.2G] hosta\n    NUMA[0: 31.2G]\n        Socket\n            \
                    core(0 2)\n    NUMA[1: 33.0G]\n        Socket\n            \
                    core(1)\n            core(3)\n";
        assert_eq!(tree(&known), want);
    }

    #[test]
    fn hosts_without_gpus_have_dashes() {
        for text in [gpu_inventory(&[host()]), gpu_loads(&[host()])] {
            let (head, row) = text.split_once('\n').unwrap();
            let cells: Vec<&str> = row.split_whitespace().collect();
            assert_eq!((cells.len(), cells[1]), (head.split_whitespace().count(), "-"));
        }
        let head = "HOST_NAME       status  ngpus  gpu_shared_avg_mut  gpu_shared_avg_ut  \
                    ngpus_physical\n";
        let text = gpu_summary(&[host()]);
        assert!(text.starts_with(head), "{text}");
        assert!(text.contains("\nhosta               ok      -"), "{text}");
    }
}
