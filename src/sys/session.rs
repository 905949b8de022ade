//! The processes of a session: what a task is as a whole. A task leads a session of its own,
//! which its processes cannot be taken out of from outside; one that calls setsid has left it.
//!
//! Invariant: a session's number is trusted only while its leader is the process it was, or is
//! gone with members left: a number in use is not given to another process.

use crate::model::job::Usage;
use crate::proto::launch::SessionProcesses;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeMap;
use std::fs;

/// One process as /proc shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    pub pid: u32,
    pub pgrp: u32,
    pub session: u32,
    /// Clock ticks: own and waited-for children's; start since boot.
    utime: u64,
    stime: u64,
    pub start: u64,
    threads: u32,
    vsize: u64,
    rss_pages: u64,
    zombie: bool,
}

/// Every process now.
pub fn scan() -> Vec<Seen> {
    let Ok(dir) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = dir.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(see).collect()
}

fn see(pid: u32) -> Option<Seen> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in parentheses may hold anything: the fields begin after the last one.
fn parse(pid: u32, stat: &[u8]) -> Option<Seen> {
    let at = stat.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(&stat[at + 1..]).ok()?;
    let f: Vec<&str> = rest.split_ascii_whitespace().collect();
    let num = |n: usize| f.get(n)?.parse::<u64>().ok();
    Some(Seen {
        pid,
        pgrp: num(2)? as u32,
        session: num(3)? as u32,
        utime: num(11)? + num(13)?,
        stime: num(12)? + num(14)?,
        threads: num(17)? as u32,
        start: num(19)?,
        vsize: num(20)?,
        rss_pages: num(21)?,
        zombie: matches!(*f.first()?, "Z" | "X"),
    })
}

/// Signals every process of the session that `sid`, started at `start`, leads or led. `seen` is
/// a scan made after the task began; its process group is reached at once whatever that shows.
pub fn signal(sid: u32, start: u64, signal: i32, seen: &[Seen]) {
    let Some(signal) = Signal::from_named_raw(signal) else { return };
    let pid = |n: u32| i32::try_from(n).ok().filter(|n| *n > 1).and_then(Pid::from_raw);
    let Some(leader) = pid(sid) else { return };
    let now = see(sid);
    if now.is_some_and(|p| p.start != start) {
        return;
    }
    // a process that has just gone is no failure
    match now {
        Some(p) if p.session == sid => {
            let _ = kill_process_group(leader, signal);
        }
        // not yet a session of its own: alone in it
        Some(_) => {
            let _ = kill_process(leader, signal);
            return;
        }
        None => {}
    }
    for p in seen.iter().filter(|p| p.session == sid && p.start >= start) {
        if (now.is_none() || p.pgrp != sid)
            && let Some(pid) = pid(p.pid)
        {
            let _ = kill_process(pid, signal);
        }
    }
}

/// The present usage of these sessions; sessions without processes are left out.
pub fn sample(sids: &[u32]) -> Vec<SessionProcesses> {
    let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let page_kb = rustix::param::page_size() as u64 / 1024;
    let mut found: BTreeMap<u32, SessionProcesses> = BTreeMap::new();
    let wanted: std::collections::BTreeSet<u32> = sids.iter().copied().collect();
    for p in scan().into_iter().filter(|p| wanted.contains(&p.session) && !p.zombie) {
        let s = found
            .entry(p.session)
            .or_insert(SessionProcesses { sid: p.session, ..SessionProcesses::default() });
        let u: &mut Usage = &mut s.usage;
        u.utime_us += p.utime * tick_us;
        u.stime_us += p.stime * tick_us;
        u.mem_kb += p.rss_pages * page_kb;
        u.swap_kb += p.vsize / 1024;
        u.nprocs += 1;
        u.nthreads += p.threads;
        s.pids.push(p.pid);
        s.groups.push(p.pgrp);
        if !s.pgids.contains(&p.pgrp) {
            s.pgids.push(p.pgrp);
        }
    }
    let mut all: Vec<SessionProcesses> = found.into_values().collect();
    for s in &mut all {
        let mut pairs: Vec<(u32, u32)> =
            s.pids.iter().copied().zip(s.groups.iter().copied()).collect();
        pairs.sort_unstable();
        (s.pids, s.groups) = pairs.into_iter().unzip();
        s.pgids.sort_unstable();
        let u = &mut s.usage;
        (u.max_mem_kb, u.avg_mem_kb, u.max_swap_kb) = (u.mem_kb, u.mem_kb, u.swap_kb);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::{Duration, Instant};

    fn until(mut done: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !done() {
            assert!(Instant::now() < end, "it never came");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn fields_are_found_behind_any_name() {
        let mut line = String::from("42 (a) R 1 (x)) S 1");
        for n in 5..=52 {
            line.push_str(&format!(" {n}"));
        }
        let p = parse(42, line.as_bytes()).unwrap();
        assert_eq!((p.pgrp, p.session, p.start), (5, 6, 22));
        assert_eq!((p.utime, p.stime, p.threads), (14 + 16, 15 + 17, 20));
        assert_eq!((p.vsize, p.rss_pages), (23, 24));
    }

    /// A session whose members are in two process groups.
    fn task() -> (std::process::Child, u32, u64) {
        let script = "set -m; sleep 301 & sleep 302 & wait";
        let child =
            Command::new("setsid").args(["--wait", "sh", "-c", script]).process_group(0).spawn();
        let child = child.unwrap();
        // setsid(1) leading a group forks: the session is its child's
        let mut sid = 0;
        until(|| {
            let all = scan();
            let is = |p: &&Seen| p.session == p.pid && parent(p.pid) == child.id();
            sid = all.iter().find(is).map_or(0, |p| p.pid);
            all.iter().filter(|p| p.session == sid).count() == 3 && sid != 0
        });
        let start = see(sid).unwrap().start;
        (child, sid, start)
    }

    fn parent(pid: u32) -> u32 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(1).and_then(|p| p.parse().ok()).unwrap_or(0)
    }

    #[test]
    fn each_process_is_told_with_its_group() {
        let spawn = |c: &mut Command| c.arg("300").spawn().unwrap();
        let mut mine = spawn(&mut Command::new("sleep"));
        let mut apart = spawn(Command::new("sleep").process_group(0));
        let me = see(std::process::id()).unwrap();
        let s = sample(&[me.session]).into_iter().next().unwrap();
        let group = |pid: u32| s.pids.iter().position(|p| *p == pid).map(|k| s.groups[k]);
        assert_eq!(group(me.pid), Some(me.pgrp));
        assert_eq!(group(mine.id()), Some(me.pgrp));
        assert_eq!(group(apart.id()), Some(apart.id()));
        for child in [&mut mine, &mut apart] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_session_is_measured_and_signalled_whole() {
        let (mut child, sid, start) = task();
        let s = sample(&[sid, 1]).into_iter().find(|s| s.sid == sid).unwrap();
        // How many groups depends on the shell: without a terminal some keep to one.
        assert_eq!((s.usage.nprocs, s.pids.len()), (3, 3));
        assert!(matches!(s.pgids.len(), 1 | 3), "{:?}", s.pgids);
        assert!(s.usage.mem_kb > 100);
        // another process of that number is left alone
        signal(sid, start + 1, 9, &scan());
        assert_eq!(scan().iter().filter(|p| p.session == sid).count(), 3);
        signal(sid, start, 9, &scan());
        until(|| scan().iter().all(|p| p.session != sid || p.zombie));
        child.wait().unwrap();
    }
}
