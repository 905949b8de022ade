//! The thread on a real directory.

use super::super::disk::RealDisk;
use super::super::owner::LogLock;
use super::super::switch::SwitchOrder;
use super::super::thread::{CrashPoints, Followers, LogHandle};
use super::super::writer::{Command, WriterNotice};
use super::*;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A directory of the test's own, removed at its end.
pub(super) struct Dir(pub(super) PathBuf);

impl Dir {
    pub(super) fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("lsf-log-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Dir(dir)
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn begin(
    dir: &Path,
    fault: Option<PathBuf>,
) -> (RecoveryResult, LogHandle, Receiver<WriterNotice>) {
    let mut disk = RealDisk::open_dir(dir).unwrap();
    if let Some(fault) = fault {
        disk = disk.with_fault_file(fault);
    }
    let mut found = recover(&mut disk, &params(BOOT)).unwrap();
    let store = Store::open(disk, std::mem::take(&mut found.plan)).unwrap();
    let (tell, told) = channel();
    let tell = Box::new(move |notice| tell.send(notice).unwrap());
    (
        found,
        LogHandle::start(store, CrashPoints::default(), tell, Followers::default()).unwrap(),
        told,
    )
}

fn numbered(ticket: u64, records: &[Record]) -> Batch {
    let mut b = batch(records);
    b.ticket = ticket;
    b
}

fn next(told: &Receiver<WriterNotice>) -> WriterNotice {
    told.recv_timeout(Duration::from_secs(30)).unwrap()
}

fn wait_durable(told: &Receiver<WriterNotice>, ticket: u64) {
    loop {
        match next(told) {
            WriterNotice::Durable(n) if n >= ticket => return,
            WriterNotice::Durable(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn batches_become_durable_in_order_and_the_files_have_their_modes() {
    let dir = Dir::new("order");
    let (_, log, told) = begin(&dir.0, None);
    let lock = LogLock::take(&dir.0).unwrap();
    let mut b = numbered(1, &[new(1)]);
    b.spool(SpoolRef { spool: 1, at: 0, len: 3 }, b"A=1");
    log.order(Command::Batch(Box::new(b)));
    for ticket in 2..=50 {
        log.order(Command::Batch(Box::new(numbered(ticket, &[new(ticket as u32)]))));
    }
    wait_durable(&told, 50);
    let carried = Record { time: 1, event: Event::Carried { next_job: 51, epoch: 1 } };
    let (live, head) = ((40..=50).collect(), vec![carried.clone()]);
    log.order(Command::Switch(Box::new(SwitchOrder { live, head, spool: 2, oldest_spool: 2 })));
    log.order(Command::Batch(Box::new(numbered(51, &[new(51)]))));
    let mut left = 2;
    while left > 0 {
        match next(&told) {
            WriterNotice::Switched { ok: true, .. } | WriterNotice::Durable(51) => left -= 1,
            other => panic!("{other:?}"),
        }
    }
    log.stop();
    drop(lock);
    let mode = |name: &str| std::fs::metadata(dir.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("lsb.events"), mode("lsb.acct"), mode("info")), (0o644, 0o644, 0o700));
    assert!(!dir.path("info/lsb.spool.1").exists());
    assert!(dir.path("lsb.events.1").exists());
    let (found, log, _) = begin(&dir.0, None);
    let want: Vec<Record> = [carried].into_iter().chain((40..=51).map(new)).collect();
    assert_eq!(found.recovered.records, want);
    assert_eq!(found.recovered.epoch, 2);
    log.stop();
}

#[test]
fn a_full_disk_voids_what_was_submitted_until_the_machine_is_back() {
    let dir = Dir::new("full");
    let fault = dir.path("fault");
    let (_, log, told) = begin(&dir.0, Some(fault.clone()));
    log.order(Command::Batch(Box::new(numbered(1, &[new(1)]))));
    wait_durable(&told, 1);
    std::fs::write(&fault, "enospc\n").unwrap();
    log.order(Command::Batch(Box::new(numbered(2, &[new(2)]))));
    let len = std::fs::metadata(dir.path("lsb.events")).unwrap().len();
    match next(&told) {
        WriterNotice::WriteFailed { ticket: 2, why, durable_len } => {
            assert_eq!(why, "lsb.events: No space left on device");
            assert_eq!(durable_len, len);
        }
        other => panic!("{other:?}"),
    }
    // submitted before the machine knew: void
    log.order(Command::Batch(Box::new(numbered(3, &[new(3)]))));
    log.order(Command::Rebuilt);
    log.order(Command::Batch(Box::new(numbered(4, &[new(4)]))));
    assert!(matches!(next(&told), WriterNotice::WriteFailed { ticket: 4, .. }));
    log.order(Command::Switch(Box::default()));
    assert!(matches!(next(&told), WriterNotice::Switched { ok: false, .. }));
    log.order(Command::Rebuilt);
    std::fs::remove_file(&fault).unwrap();
    assert_eq!(next(&told), WriterNotice::Back);
    log.order(Command::Batch(Box::new(numbered(5, &[new(5)]))));
    wait_durable(&told, 5);
    // a failed sync is the end
    std::fs::write(&fault, "sync").unwrap();
    log.order(Command::Batch(Box::new(numbered(6, &[new(6)]))));
    assert!(matches!(next(&told), WriterNotice::Fatal(_)));
    log.stop();
    let (found, log, _) = begin(&dir.0, None);
    assert_eq!(found.recovered.records[..2], [new(1), new(5)]);
    log.stop();
}

#[test]
fn an_idle_run_whose_log_was_taken_over_ends() {
    let dir = Dir::new("idle");
    let (_, log, told) = begin(&dir.0, None);
    log.order(Command::Batch(Box::new(numbered(1, &[new(1)]))));
    wait_durable(&told, 1);
    let mut other = RealDisk::open_dir(&dir.0).unwrap();
    recover(&mut other, &params("boot-2")).unwrap();
    // nothing is ordered
    let WriterNotice::Fatal(why) = next(&told) else { panic!("it goes on") };
    assert!(why.contains("another mbatchd has taken over"), "{why}");
    log.stop();
}

/// Puts a file of another kind in the place of a regular file of the log.
fn plant(kind: &str, path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    match kind {
        "FIFO" => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
        "directory" => std::fs::create_dir(path).unwrap(),
        "link" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        _ => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
    }
}

#[test]
fn a_log_that_is_no_regular_file_ends_the_start_with_words() {
    for kind in ["FIFO", "directory", "link", "socket"] {
        for name in [
            "lsb.events",
            "lsb.events.sum",
            "lsb.events.owner",
            "lsb.acct",
            "lsb.events.lock",
            "lsb.events.1",
            "info/lsb.spool.1",
        ] {
            let dir = Dir::new(&format!("kind-{kind}-{}", name.replace('/', "-")));
            drop(RealDisk::open_dir(&dir.0).unwrap());
            if name == "lsb.events.1" {
                // a switch that was interrupted
                std::fs::write(dir.path("lsb.events.new"), format!("{:<79}\n", "#80")).unwrap();
            }
            if name == "info/lsb.spool.1" {
                let (record, place) = (new(1), r#" 1 "lsf.script" "1:0:3""#);
                let line = String::from_utf8(lines(&[record])).unwrap();
                let line = format!("{}{place}\n", line.trim_end());
                std::fs::write(dir.path("lsb.events"), line).unwrap();
            }
            plant(kind, &dir.path(name));
            let mut disk = RealDisk::existing_dir(&dir.0);
            let words = match LogLock::take(&dir.0) {
                Err(e) => e.to_string(),
                Ok(_) => match recover(&mut disk, &params(BOOT)) {
                    Err(e) => e.to_string(),
                    Ok(mut found) => match Store::open(disk, std::mem::take(&mut found.plan)) {
                        Err(e) => e.to_string(),
                        Ok(_) => format!("started: {:?}", found.recovered.damaged),
                    },
                },
            };
            let told = words.contains(&format!("{name} is not a regular file"));
            // nothing can be read of the job's script
            let held = words.contains("info/lsb.spool.1 is missing or too short");
            assert!(told || held && name.starts_with("info/"), "{kind} {name}: {words}");
        }
    }
}

#[test]
fn crash_points_count_commits() {
    // none of these may end this process
    for text in ["", "before-sync", "nowhere:1", "before-sync:x", "before-sync:7"] {
        let points = CrashPoints::parse(text);
        points.reach(crate::log::store::Point::BeforeAppend);
        points.reach(crate::log::store::Point::BeforeSync);
    }
}

#[test]
#[ignore = "a measurement; build with optimisation"]
fn log_thread_writes_many_jobs_in_little_time() {
    let dir = Dir::new("measure");
    let (_, log, told) = begin(&dir.0, None);
    let jobs = 300_000;
    let began = std::time::Instant::now();
    let mut spooled = 0;
    for ticket in 1..=jobs / 100 {
        let mut b = numbered(ticket, &[]);
        for job in 0..100 {
            let mut new = job_new((ticket * 100 + job) as u32);
            new.env = SpoolRef { spool: 1, at: spooled, len: 300 };
            b.spool(new.env, &[b'x'; 300]);
            spooled += 300;
            b.append(&Record { time: 1, event: Event::JobNew(Box::new(new)) });
        }
        log.order(Command::Batch(Box::new(b)));
    }
    wait_durable(&told, jobs / 100);
    let wrote = began.elapsed();
    let bytes = std::fs::metadata(dir.path("lsb.events")).unwrap().len();
    log.stop();
    let began = std::time::Instant::now();
    let (found, log, _) = begin(&dir.0, None);
    let read = began.elapsed();
    assert_eq!(found.recovered.records.len() as u64, jobs);
    log.stop();
    let per = |t: Duration| jobs as f64 / t.as_secs_f64();
    eprintln!("{bytes} bytes; {:.0} jobs/s written, {:.0} jobs/s read", per(wrote), per(read));
}
