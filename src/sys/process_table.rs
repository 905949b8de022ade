//! The table of processes, as /proc shows it.

use super::procs::Proc;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// Longest line of /proc/PID/stat, bytes.
const STAT_MAX: usize = 2048;

/// One process as /proc shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    pub pid: u32,
    pub parent: u32,
    pub pgrp: u32,
    pub session: u32,
    /// Clock ticks: own and waited-for children's; start since boot.
    pub utime: u64,
    pub stime: u64,
    pub start: u64,
    pub threads: u32,
    /// Bytes.
    pub vsize: u64,
    pub rss_pages: u64,
    pub zombie: bool,
}

impl Seen {
    pub fn process(&self) -> Proc {
        Proc { pid: self.pid, ticks: self.start }
    }

    /// The owner of the process; root where the process hides its memory.
    pub fn uid(&self) -> Option<u32> {
        Some(fs::metadata(format!("/proc/{}", self.pid)).ok()?.uid())
    }
}

/// Whether a process is this user's alone: its real, effective, saved and file system user.
pub fn is_of(pid: u32, uid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or("-");
    line.split_whitespace().all(|word| word.parse() == Ok(uid))
}

/// Every process now.
pub fn scan() -> Vec<Seen> {
    let Ok(dir) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = dir.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(see).collect()
}

/// One process now.
pub fn see(pid: u32) -> Option<Seen> {
    let mut line = [0u8; STAT_MAX];
    // the kernel makes it whole at the first reading
    let len = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    parse(pid, &line[..len])
}

/// The name in parentheses may hold anything: the fields begin after the last one.
fn parse(pid: u32, stat: &[u8]) -> Option<Seen> {
    let at = stat.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(&stat[at + 1..]).ok()?;
    let f: Vec<&str> = rest.split_ascii_whitespace().collect();
    let num = |n: usize| f.get(n)?.parse::<u64>().ok();
    Some(Seen {
        pid,
        parent: num(1)? as u32,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let mut line = String::from("42 (a) R 1 (x)) S 1");
        for n in 5..=52 {
            line.push_str(&format!(" {n}"));
        }
        let p = parse(42, line.as_bytes()).unwrap();
        assert_eq!((p.parent, p.pgrp, p.session, p.start), (1, 5, 6, 22));
        assert_eq!((p.utime, p.stime, p.threads), (14 + 16, 15 + 17, 20));
        assert_eq!((p.vsize, p.rss_pages), (23, 24));
    }
}
