//! The system calls of mbatchd for 1,000 submissions over 64 connections: no file, no sync and no
//! process for each job, by strace's count. Skipped where strace is not installed or may not look.

#[path = "../bench/kept.rs"]
#[allow(dead_code)]
mod kept;

use super::rig::{Rig, skipped, wait_for};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Submissions counted over.
const JOBS: u64 = 1000;
/// Calls that no job may cause one of, and how many there may be of all of them together: a
/// commit may look at the owner file.
const NEVER: &[&str] = &[
    "clone",
    "clone3",
    "creat",
    "execve",
    "execveat",
    "fork",
    "fsync",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "open",
    "openat",
    "openat2",
    "rename",
    "renameat",
    "renameat2",
    "sync",
    "syncfs",
    "unlink",
    "unlinkat",
    "vfork",
];
/// Each commit looks at the owner of the log and at what a test may have asked to fail.
const FEW: u64 = JOBS / 2;
/// Syncs of the log: one for all submissions of a turn.
const SYNCS: u64 = JOBS / 4;

/// strace over a process and its threads; `None` where it may not.
fn attach(pid: u32, out: &std::path::Path) -> Option<Child> {
    let mut strace = Command::new("strace");
    strace.args(["-c", "-f", "-o"]).arg(out).args(["-p", &pid.to_string()]);
    strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = strace.spawn().ok()?;
    let mut said = BufReader::new(child.stderr.take()?).lines().map_while(Result::ok);
    for line in said.by_ref() {
        if line.contains("attached") {
            // it names every further thread too, and ends where nobody reads that
            std::thread::spawn(move || said.for_each(drop));
            return Some(child);
        }
        eprintln!("{line}");
    }
    let _ = child.wait();
    None
}

/// Calls by name of a `strace -c` table.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let calls = words.get(3)?.parse().ok()?;
        Some((words.last()?.to_string(), calls))
    };
    let rows = text.lines().filter_map(row).filter(|(name, _)| name != "total");
    rows.collect()
}

#[test]
fn a_submission_costs_no_file_no_sync_and_no_process() {
    let rig = Rig::up("syscalls", 1);
    rig.ok("badmin", &["qinact", "all"]);
    let pid = rig.pid("mbatchd", "host1").unwrap();
    let out = rig.path("calls");
    let Some(mut strace) = attach(pid, &out) else {
        return skipped("a_submission_costs_no_file_no_sync_and_no_process: strace cannot look");
    };
    let site = kept::cluster(&rig.dir).unwrap();
    let (done, took) = kept::storm(&site, &rig.dir, "", JOBS, Duration::from_secs(60));
    super::rig::kill(strace.id(), 2);
    wait_for("strace to end", || strace.try_wait().unwrap().is_some());
    assert_eq!(done, JOBS, "submissions taken in {took:?}");
    let text = std::fs::read_to_string(&out).unwrap();
    let counts = counts(&text);
    let of = |names: &[&str]| -> u64 { names.iter().filter_map(|n| counts.get(*n)).sum() };
    assert!(of(&["write", "writev", "sendto", "sendmsg"]) >= JOBS, "nothing was seen:\n{text}");
    assert!(of(NEVER) <= FEW, "{} calls for {JOBS} submissions:\n{text}", of(NEVER));
    let syncs = of(&["fdatasync"]);
    assert!(syncs > 0, "nothing was synced:\n{text}");
    assert!(syncs <= SYNCS, "{syncs} syncs for {JOBS} submissions over 64 connections:\n{text}");
}

#[test]
fn the_table_of_strace_is_read_with_all_its_columns() {
    let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                ------ ----------- ----------- --------- --------- ------\n \
                60.00    0.000600           1       600           epoll_wait\n \
                40.00    0.000400           4       100        20 openat\n\
                100.00    0.001000           1       700        20 total\n";
    let want = [("epoll_wait".to_owned(), 600), ("openat".to_owned(), 100)];
    assert_eq!(counts(text).into_iter().collect::<Vec<_>>(), want);
}
