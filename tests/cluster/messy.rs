//! Real jobs that are messy: many open files, names and variables that are no text, a directory
//! that vanishes, a home that is not there, output without end.

use super::full::Mounted;
use super::rig::{Rig, kill, skipped, wait_for};
use super::site::{ADMIN, MultiUserSite};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Submits with a command that was prepared; the number of the job.
fn submitted(command: &mut std::process::Command) -> u32 {
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    super::rig::job_id(&text).unwrap_or_else(|| panic!("{out:?}"))
}

/// The output of a job that must end well.
fn output(rig: &Rig, job: u32, file: &str) -> Vec<u8> {
    assert_eq!(rig.end_of(job), "DONE");
    std::fs::read(rig.path(file)).unwrap()
}

fn before_report(bytes: &[u8]) -> &[u8] {
    let report = b"\n------------------------------------------------------------\n";
    let at = bytes.windows(report.len()).position(|w| w == report);
    &bytes[..at.unwrap_or(bytes.len())]
}

#[test]
fn descriptors_of_the_submitter_do_not_reach_the_job() {
    let rig = Rig::up("messy-fds", 1);
    let opened = "for i in $(seq 10 209); do eval \"exec $i</dev/null\"; done; exec \"$@\"";
    let mut bsub = std::process::Command::new("bash");
    bsub.args(["-c", opened, "bash"]).arg(super::rig::binary());
    bsub.args(["bsub", "-o", "fds", "ls /proc/self/fd | tr '\\n' ' '"]);
    rig.dress(&mut bsub);
    let job = submitted(&mut bsub);
    let shown = output(&rig, job, "fds");
    let first = String::from_utf8_lossy(before_report(&shown)).into_owned();
    // the fourth is the directory that ls reads
    assert_eq!(first.trim(), "0 1 2 3");
}

#[test]
fn bytes_that_are_no_text_and_a_large_environment_reach_the_job_unchanged() {
    let rig = Rig::up("messy-bytes", 1);
    let name = OsStr::from_bytes(b"pro\xff\xfegram\xc3");
    let script = "#!/bin/sh\nprintf '%s\\n' \"$1\" \"$RAW\"\nenv | grep -c '^LARGE'\n\
                  env | grep '^LARGE' | sort | cksum\n";
    super::rig::program(&rig.dir.join(name), script);
    let raw = OsStr::from_bytes(b"\x80\xff=\xfe end");
    let mut bsub = rig.cmd("bsub");
    bsub.args(["-o", "bytes"]);
    bsub.arg(rig.dir.join(name)).arg(OsStr::from_bytes(b"a\xffb 'c'"));
    bsub.env("RAW", raw);
    let large: Vec<String> = (0..10).map(|n| format!("LARGE{n}={}", "x".repeat(100_000))).collect();
    for line in &large {
        let (name, value) = line.split_once('=').unwrap();
        bsub.env(name, value);
    }
    let job = submitted(&mut bsub);
    let got = output(&rig, job, "bytes");
    let got = before_report(&got);
    let begin = b"a\xffb 'c'\n\x80\xff=\xfe end\n10\n";
    assert!(got.starts_with(begin), "{}", String::from_utf8_lossy(got));
    let mut sum = std::process::Command::new("cksum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text: String = large.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    std::io::Write::write_all(&mut sum.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let want = sum.wait_with_output().unwrap().stdout;
    assert_eq!(got[begin.len()..].trim_ascii(), want.trim_ascii());
    // listings and the log stay readable
    let shown = rig.ok("bjobs", &["-l", &job.to_string()]);
    assert!(shown.contains("Status <DONE>"), "{shown}");
    assert!(rig.ok("bhist", &["-l", &job.to_string()]).contains("Done successfully"));
}

#[test]
fn job_whose_directory_is_removed_or_whose_home_is_missing_runs_to_its_end() {
    let rig = Rig::up("messy-dirs", 1);
    std::fs::create_dir(rig.path("gone")).unwrap();
    let mut bsub = rig.cmd("bsub");
    bsub.current_dir(rig.path("gone"));
    let out = rig.path("gone.out");
    let script = "rm -r \"$PWD\"; ls; echo here; sleep 1; exit 3";
    bsub.args(["-o", out.to_str().unwrap(), script]);
    let job = submitted(&mut bsub);
    assert_eq!(rig.end_of(job), "EXIT");
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "3");
    assert!(std::fs::read_to_string(&out).unwrap().contains("here\n"));
    // output below a directory that is no more: the job ends as it did, and says where it went
    std::fs::create_dir(rig.path("gone")).unwrap();
    let mut bsub = rig.cmd("bsub");
    bsub.current_dir(rig.path("gone"));
    bsub.args(["-o", "below", "cd /; rm -r \"$OLDPWD\"; exit 4"]);
    let job = submitted(&mut bsub);
    assert_eq!(rig.end_of(job), "EXIT");
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "4");
    let mut bsub = rig.cmd("bsub");
    bsub.env("HOME", "/nonexistent/home").args(["-o", "homeless", "echo at $HOME"]);
    let job = submitted(&mut bsub);
    let shown = output(&rig, job, "homeless");
    assert!(before_report(&shown).starts_with(b"at "), "{}", String::from_utf8_lossy(&shown));
}

/// Bytes of the output that bpeek follows.
const STREAM: u64 = 300 << 20;
/// Bytes of the stream with LSF_TEST_FULL=1, and those that must be free on the disk then.
const FULL_STREAM: u64 = 5 << 30;
const FULL_ROOM: u64 = 2 * FULL_STREAM;

/// Are the large tests to be as large as they can be? They take minutes.
fn full() -> bool {
    std::env::var_os("LSF_TEST_FULL").is_some()
}

#[test]
fn bpeek_f_follows_hundreds_of_megabytes_to_the_end_of_the_job() {
    let rig = Rig::up("messy-stream", 1);
    let (wanted, minutes) = if full() { (FULL_STREAM, 20) } else { (STREAM, 4) };
    let disk = rustix::fs::statvfs(&rig.dir).unwrap();
    let room = disk.f_bavail.saturating_mul(disk.f_frsize);
    if full() && room < FULL_ROOM {
        let name = "bpeek_f_follows_hundreds_of_megabytes_to_the_end_of_the_job";
        return skipped(&format!("{name}: {room} bytes of {FULL_ROOM} are free"));
    }
    let script = format!(
        "echo > begun; while [ ! -e go ]; do sleep 0.1; done; yes 0123456 | head -c {wanted}"
    );
    let job = rig.bsub(&["-o", "stream", &script]);
    let known = |pid: String| pid != "-" && !pid.is_empty() && rig.path("begun").exists();
    wait_for("it to run", || known(rig.field(&job.to_string(), "pids")));
    let mut peek = rig.cmd("bpeek");
    peek.args(["-f", &job.to_string()]).stdout(Stdio::piped());
    let mut peek = peek.spawn().unwrap();
    let from = peek.stdout.take().unwrap();
    let mut from = std::io::BufReader::new(from);
    let mut first = String::new();
    std::io::BufRead::read_line(&mut from, &mut first).unwrap();
    assert_eq!(first, "<< output from stdout >>\n");
    rig.write("go", "");
    let (mut count, mut largest, mut reads) = (0u64, 0u64, 0u64);
    let mut buffer = vec![0u8; 1 << 16];
    let began = Instant::now();
    loop {
        let n = from.read(&mut buffer).unwrap();
        if n == 0 {
            break;
        }
        count += buffer[..n].iter().filter(|b| **b == b'\n').count() as u64;
        reads += 1;
        if reads % 256 == 1 {
            largest = largest.max(resident_kb(peek.id()));
        }
        assert!(began.elapsed() < Duration::from_secs(60 * minutes), "{count} lines");
    }
    peek.wait().unwrap();
    assert_eq!(rig.end_of(job), "DONE");
    assert!(count >= wanted / 8, "{count} of {} lines", wanted / 8);
    assert!((1..100 << 10).contains(&largest), "bpeek holds {largest} KB");
}

fn resident_kb(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Can this machine run so many processes more? Else why not.
fn may_run(processes: u64) -> Result<(), String> {
    let number = |path: &str| -> Option<u64> {
        std::fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
    };
    let own = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = memory.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let free = free.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    // a sleeping process takes some hundred KB of its own
    let limits = [
        ("RLIMIT_NPROC", own, 1),
        ("pid_max", number("/proc/sys/kernel/pid_max"), 1),
        ("threads-max", number("/proc/sys/kernel/threads-max"), 1),
        ("pids.max", number("/sys/fs/cgroup/pids.max"), 1),
        ("free memory, KB", free, 512),
    ];
    for (what, most, each) in limits {
        if let Some(most) = most.filter(|most| *most < 2 * processes * each) {
            return Err(format!("{what} is {most}"));
        }
    }
    Ok(())
}

#[test]
fn job_with_thousands_of_processes_ends_at_its_process_limit_without_a_trace() {
    let (limit, begun) = if full() { (10_000, 12_000) } else { (1000, 1500) };
    if let Err(why) = may_run(begun) {
        let name = "job_with_thousands_of_processes_ends_at_its_process_limit_without_a_trace";
        return skipped(&format!("{name}: {why}"));
    }
    let rig = Rig::up("messy-procs", 1);
    let mark = format!("4{:05}", std::process::id() % 100_000);
    let script = format!("for i in $(seq {begun}); do sleep {mark} & done; wait");
    let job = rig.bsub(&["-p", &limit.to_string(), "-o", "/dev/null", &script]);
    assert_eq!(rig.end_of(job), "EXIT");
    let why = rig.field(&job.to_string(), "exit_reason");
    assert!(why.starts_with("TERM_PROCESSLIMIT"), "{why}");
    wait_for("all processes to be gone", || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let cmdlines = all.filter_map(|e| std::fs::read(e.path().join("cmdline")).ok());
        let wanted = format!("sleep\0{mark}\0");
        cmdlines.filter(|line| *line == wanted.as_bytes()).count() == 0
    });
}

#[test]
fn jobs_of_a_user_who_is_deleted_are_measured_suspended_and_killed() {
    let name = "jobs_of_a_user_who_is_deleted_are_measured_suspended_and_killed";
    if !MultiUserSite::possible(name) {
        return;
    }
    let site = MultiUserSite::up("messy-user", 1);
    let runs = |job: u32| -> BTreeSet<u32> {
        let pids = || -> BTreeSet<u32> {
            let all = site.run(ADMIN, &format!("bjobs -noheader -o pids {job}")).out;
            all.trim().split(',').filter_map(|pid| pid.parse().ok()).collect()
        };
        wait_for("it to run", || !pids().is_empty());
        pids()
    };
    let waits = site.bsub("ann", "-o out 'while [ ! -e go ]; do sleep 0.1; done; exit 6'");
    let stays = site.bsub("ann", "-o /dev/null 'exec sleep 300'");
    let before = [runs(waits), runs(stays)];
    let passwd = std::fs::read_to_string(site.path("etc/passwd")).unwrap();
    let without: String =
        passwd.lines().filter(|l| !l.starts_with("ann:")).flat_map(|l| [l, "\n"]).collect();
    site.write("etc/passwd.new", &without);
    std::fs::rename(site.path("etc/passwd.new"), site.path("etc/passwd")).unwrap();
    assert_ne!(site.run(ADMIN, "id ann").code, 0);
    // a new mbatchd and a new sbatchd know the user by the log and the launcher alone
    for daemon in ["mbatchd", "sbatchd"] {
        let of = |name: &str| site.processes().into_iter().find(|p| p.0 == name).map(|p| p.1);
        let old = of(daemon).unwrap();
        kill(old, 9);
        wait_for("another one", || of(daemon).is_some_and(|pid| pid != old));
    }
    wait_for("the jobs to be known", || site.stat(waits) == "RUN" && site.stat(stays) == "RUN");
    // one of them has children that come and go
    for (job, before) in [waits, stays].into_iter().zip(before) {
        let now = runs(job);
        assert!(!now.is_disjoint(&before), "{job}: {before:?}, then {now:?}");
    }
    site.ok(ADMIN, &format!("bstop {stays}"));
    wait_for("it to be stopped", || site.stat(stays) == "USUSP");
    site.ok(ADMIN, &format!("bkill {stays}"));
    assert_eq!(site.end_of(stays), "EXIT");
    site.write("home/ann/go", "");
    assert_eq!(site.end_of(waits), "EXIT");
    let code = site.ok(ADMIN, &format!("bjobs -a -noheader -o exit_code {waits}"));
    assert_eq!(code.trim(), "6");
    let next = site.bsub(ADMIN, "-o /dev/null true");
    assert_eq!(site.end_of(next), "DONE");
}

#[test]
fn job_that_fills_the_file_system_of_its_output_ends_as_it_does_and_disturbs_no_other() {
    let name = "job_that_fills_the_file_system_of_its_output_ends_as_it_does";
    let rig = Rig::up("messy-quota", 1);
    std::fs::create_dir(rig.path("small")).unwrap();
    let Some(_small) = Mounted::over(name, rig.path("small")) else { return };
    // what the job writes by itself, and what it puts out
    let script = "head -c 3000000 /dev/zero > small/own; echo own $?; exit 4";
    let job = rig.bsub(&["-o", "filled", script]);
    assert_eq!(rig.end_of(job), "EXIT");
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "4");
    wait_for("the report", || rig.read("filled").contains("Sender:"));
    let text = rig.read("filled");
    assert!(text.contains("own 1\n") && text.contains("No space left on device"), "{text}");
    std::fs::remove_file(rig.path("small/own")).unwrap();
    let script = "head -c 3000000 /dev/zero; echo put $? >&2; exit 5";
    let job = rig.bsub(&["-o", "small/out", "-e", "errors", script]);
    assert_eq!(rig.end_of(job), "EXIT");
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "5");
    // daemons and other jobs are as before, and so is the directory when there is room
    let job = rig.bsub(&["-o", "fine", "echo fine"]);
    assert!(before_report(&output(&rig, job, "fine")).starts_with(b"fine\n"));
    std::fs::remove_file(rig.path("small/out")).unwrap();
    let job = rig.bsub(&["-o", "small/out", "echo again"]);
    assert!(before_report(&output(&rig, job, "small/out")).starts_with(b"again\n"));
    for daemon in ["mbatchd", "sbatchd", "launcher", "res"] {
        assert!(rig.pid(daemon, "host1").is_some(), "{daemon}");
    }
}
