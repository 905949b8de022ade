//! The processor units of this host as the kernel shows them below /sys/devices/system: NUMA nodes
//! with their memory, sockets, cores and threads.
//!
//! CPUs that are offline or outside the cpuset of this process are left out: a job could not be
//! bound to them. A host of which nothing can be read, or with more than
//! [`crate::model::topology::MAX_CPUS`], has no topology, and runs no job that asks for units.

use crate::model::topology::{Cpu, CpuSet, MAX_CPUS, MAX_TEXT, Node, Topology};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The directory in which the kernel shows the units.
pub const ROOT: &str = "/sys/devices/system";

/// The topology of this host as text ([`Topology`]); empty where it is not known. `memory`: of the
/// whole host, MB, for a kernel without NUMA nodes.
pub fn of_host(memory: u64) -> String {
    let text = read(Path::new(ROOT), memory, allowed().as_ref()).to_string();
    if text.len() <= MAX_TEXT { text } else { String::new() }
}

/// The CPUs that this process may use; nothing where the kernel does not tell.
fn allowed() -> Option<CpuSet> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    Some(
        (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .map(|n| n as u32)
            .collect(),
    )
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn number(path: &Path) -> Option<u32> {
    // -1: the kernel does not know
    text(path)?.parse::<i64>().ok().map(|n| u32::try_from(n).unwrap_or(0))
}

fn list(path: &Path) -> Option<CpuSet> {
    CpuSet::parse(&text(path)?).ok()
}

/// The topology below a directory laid out like [`ROOT`].
fn read(root: &Path, memory: u64, allowed: Option<&CpuSet>) -> Topology {
    let cpu_dir = root.join("cpu");
    let online = list(&cpu_dir.join("online")).unwrap_or_default();
    let (mut nodes, mut node_of) = (Vec::new(), BTreeMap::new());
    for node in list(&root.join("node/online")).unwrap_or_default().iter() {
        let dir = root.join(format!("node/node{node}"));
        let memory = text(&dir.join("meminfo")).map_or(0, |text| node_memory(&text));
        nodes.push(Node { number: node, memory });
        for cpu in list(&dir.join("cpulist")).unwrap_or_default().iter() {
            node_of.insert(cpu, node);
        }
    }
    if nodes.is_empty() {
        nodes.push(Node { number: 0, memory });
    }
    let first = nodes[0].number;
    let usable = |cpu: &u32| allowed.is_none_or(|allowed| allowed.contains(*cpu));
    let mut cpus = Vec::new();
    for cpu in online.iter().filter(usable).take(MAX_CPUS + 1) {
        let dir = cpu_dir.join(format!("cpu{cpu}/topology"));
        let Some(core) = number(&dir.join("core_id")) else { return Topology::default() };
        let socket = number(&dir.join("physical_package_id")).unwrap_or(0);
        // cores of several dies may have the same number
        let die = number(&dir.join("die_id")).unwrap_or(0).min(u32::from(u16::MAX));
        let core = (die << 16) | core.min(u32::from(u16::MAX));
        let node = node_of.get(&cpu).copied().unwrap_or(first);
        cpus.push(Cpu { node, socket, core, number: cpu });
    }
    Topology::new(nodes, cpus).unwrap_or_default()
}

/// MemTotal of a node, MB: `Node 0 MemTotal:  24684096 kB`.
fn node_memory(meminfo: &str) -> u64 {
    let line = meminfo.lines().find(|line| line.contains("MemTotal:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    kb.unwrap_or(0) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of a kernel with these CPUs: (number, package, core, node).
    fn kernel(name: &str, cpus: &[(u32, u32, u32, u32)], numa: bool) -> std::path::PathBuf {
        let n = u32::from_ne_bytes(crate::sys::random::<4>().unwrap());
        let root = std::env::temp_dir().join(format!("lsf-topology-{name}-{n}"));
        let put = |path: String, text: String| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        let set = |of: Option<u32>| {
            let cpus = cpus.iter().filter(|cpu| of.is_none_or(|node| cpu.3 == node));
            cpus.map(|cpu| cpu.0).collect::<CpuSet>().to_string()
        };
        put("cpu/online".into(), set(None));
        for (cpu, package, core, node) in cpus {
            put(format!("cpu/cpu{cpu}/topology/core_id"), core.to_string());
            put(format!("cpu/cpu{cpu}/topology/physical_package_id"), package.to_string());
            if numa {
                put(format!("node/node{node}/cpulist"), set(Some(*node)));
                let memory = format!("Node {node} MemTotal:  2048000 kB");
                put(format!("node/node{node}/meminfo"), memory);
            }
        }
        if numa {
            let nodes: CpuSet = cpus.iter().map(|cpu| cpu.3).collect();
            put("node/online".into(), nodes.to_string());
        }
        root
    }

    #[test]
    fn units_of_a_kernel_are_read_with_their_memory() {
        let cpus =
            [(0, 0, 0, 0), (1, 1, 0, 1), (2, 0, 4, 0), (3, 1, 9, 1), (4, 0, 0, 0), (5, 1, 0, 1)];
        let root = kernel("numa", &cpus, true);
        let found = read(&root, 9000, None);
        assert_eq!(found.to_string(), "N0=2000 S0 0,4 2 N1=2000 S1 1,5 3");
        let few: CpuSet = [1, 2, 3].into_iter().collect();
        assert_eq!(read(&root, 9000, Some(&few)).to_string(), "N0=2000 S0 2 N1=2000 S1 1 3");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn kernel_without_numa_nodes_has_one_with_all_memory() {
        let root = kernel("flat", &[(0, 0, 0, 0), (1, 0, 1, 0)], false);
        assert_eq!(read(&root, 9000, None).to_string(), "N0=9000 S0 0 1");
        fs::remove_dir_all(&root).unwrap();
        assert!(read(&root, 9000, None).is_empty());
    }

    #[test]
    fn cpus_of_this_host_are_those_of_this_process() {
        let text = of_host(1);
        let found = Topology::parse(&text).unwrap();
        let cpus: CpuSet = found.cpus().iter().map(|cpu| cpu.number).collect();
        assert_eq!(found.is_empty(), !Path::new(ROOT).join("cpu/cpu0/topology").exists());
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert!(found.is_empty() || list.map(str::trim) == Some(cpus.to_string().as_str()));
    }
}
