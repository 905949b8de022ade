//! The processes of a started job in bjobs -l, and what it uses on each of several hosts.
//!
//! LSF documents which facts it tells of each host, and not how; the layout is ours.

use super::show::Show;
use lsf::cli::job_rows::{Cell, JobRow};
use lsf::cli::long_format::{mem_words, push_clean};
use lsf::proto::client::Col;
use std::collections::BTreeMap;

/// `PGID: 4242;  PIDs: 4242 4243 `, one part a process group; `short`: without the processes.
pub fn of_job(r: &JobRow, short: bool) -> Vec<String> {
    let pids = numbers(r.list(Col::Pids));
    let groups = numbers(r.list(Col::PidGroups));
    let mut all: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    if groups.is_empty() {
        all.insert(r.int(Col::Pgid), pids);
    } else {
        let each = pids.into_iter().zip(groups);
        each.for_each(|(pid, group)| all.entry(group).or_default().push(pid));
    }
    let part = |(group, pids): (&i64, &Vec<i64>)| match short {
        true => format!("PGID: {group}"),
        false => format!("PGID: {group};  PIDs: {}", words(pids)),
    };
    all.iter().filter(|(group, _)| **group > 0).map(part).collect()
}

/// The parts of each host of a job on several: its memory, CPU time, process groups and processes.
pub fn of_hosts(r: &JobRow, s: &Show) -> Vec<String> {
    let mut parts = Vec::new();
    for host in r.list(Col::HostUsage) {
        let [name, mem, swap, cpu, pids, groups] = host.list() else { continue };
        let mut head = String::from("HOST: ");
        push_clean(&mut head, &name.text());
        parts.push(head);
        let kb = |cell: &Cell| cell.int().and_then(|kb| u64::try_from(kb).ok()).unwrap_or(0);
        let mut used = String::from("MEM: ");
        mem_words(&mut used, kb(mem));
        used.push_str(";  SWAP: ");
        mem_words(&mut used, kb(swap));
        let cpu = s.normalised(r, cpu.num().unwrap_or(0.0));
        used.push_str(&format!(";  CPU_TIME: {cpu:.0} seconds"));
        parts.push(used);
        let mut groups = numbers(groups.list());
        groups.sort_unstable();
        groups.dedup();
        if !groups.is_empty() {
            parts.push(format!("PGIDs: {}", words(&groups)));
        }
        let pids = numbers(pids.list());
        if !pids.is_empty() && !s.short_pids {
            parts.push(format!("PIDs: {}", words(&pids)));
        }
    }
    parts
}

/// `hosta mem=60 Mbytes swap=0 Mbytes cpu=2.5 second(s)` of each host, with `; ` between them.
pub fn in_field(o: &mut String, r: &JobRow, s: &Show) {
    for (n, host) in r.list(Col::HostUsage).iter().enumerate() {
        let [name, mem, swap, cpu, ..] = host.list() else { continue };
        o.push_str(if n > 0 { "; " } else { "" });
        o.push_str(&name.text());
        for (word, cell) in [(" mem=", mem), (" swap=", swap)] {
            o.push_str(word);
            mem_words(o, cell.int().and_then(|kb| u64::try_from(kb).ok()).unwrap_or(0));
        }
        let cpu = s.normalised(r, cpu.num().unwrap_or(0.0));
        o.push_str(&format!(" cpu={cpu:.1} second(s)"));
    }
}

fn numbers(cells: &[Cell]) -> Vec<i64> {
    cells.iter().map(|cell| cell.int().unwrap_or(0)).collect()
}

/// Each with a blank behind it.
fn words(numbers: &[i64]) -> String {
    numbers.iter().map(|n| format!("{n} ")).collect()
}
