//! Time and memory of processes, from /proc.

use std::fs;

/// Memory that is resident, bytes.
pub fn resident(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kb: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kb * 1024.0)
}

/// Processor time of a process and of all below it that live, seconds. schedstat counts
/// nanoseconds, where stat has ticks of 10 ms; it is of one thread.
pub fn family_cpu(root: u32) -> f64 {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        for task in tasks(pid) {
            let path = format!("/proc/{pid}/task/{task}/children");
            let text = fs::read_to_string(path).unwrap_or_default();
            all.extend(text.split_whitespace().filter_map(|w| w.parse::<u32>().ok()));
        }
        next += 1;
    }
    all.into_iter().map(own_cpu).sum()
}

/// Processor time of all threads of one process, seconds.
pub fn own_cpu(pid: u32) -> f64 {
    tasks(pid).into_iter().map(|task| thread_cpu(pid, task)).sum()
}

/// Has a process a thread of this name?
pub fn has_thread(pid: u32, name: &str) -> bool {
    let comm = |task| fs::read_to_string(format!("/proc/{pid}/task/{task}/comm"));
    tasks(pid).into_iter().any(|task| comm(task).is_ok_and(|comm| comm.trim_end() == name))
}

fn thread_cpu(pid: u32, task: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{task}/schedstat"));
    let ns: Option<f64> = text.ok().and_then(|t| t.split(' ').next()?.parse().ok());
    ns.unwrap_or(0.0) / 1e9
}

fn tasks(pid: u32) -> Vec<u32> {
    let Ok(dir) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    dir.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}
