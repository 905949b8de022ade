//! A damaged log: what is lost is named and held, the rest goes on. A disk that refuses writes:
//! submissions are refused with words, running jobs go on, their ends are kept.

use crate::rig::{Rig, kill, wait_for};
use std::time::Duration;

#[test]
fn job_of_a_damaged_record_is_held_until_released() {
    let rig = Rig::up("damage", 1);
    let first = rig.bsub(&["-H", "-o", "/dev/null", "echo one > one"]);
    let second = rig.bsub(&["-H", "-o", "/dev/null", "echo two > two"]);
    rig.ok("bresume", &[&first.to_string()]);
    rig.end_of(first);
    let log = rig.logdir().join("lsb.events");
    rig.ok("bstop", &[&second.to_string()]);
    let third = rig.bsub(&["-H", "-o", "/dev/null", "true"]);
    // A later record of the second job is what gets damaged.
    rig.ok("bresume", &[&second.to_string()]);
    let _ = rig.end_of(second);
    let held = rig.bsub(&["-H", "-o", "/dev/null", "echo four > four"]);
    rig.ok("bresume", &[&third.to_string()]);
    rig.end_of(third);
    rig.down();
    let mut text = std::fs::read(&log).unwrap();
    let needle = "\"JOB_NEW\" \"10.1\" ";
    let lines: Vec<usize> = text
        .windows(needle.len())
        .enumerate()
        .filter(|(_, w)| *w == needle.as_bytes())
        .map(|(i, _)| i)
        .collect();
    assert_eq!(lines.len(), 4);
    // Any record of job `held` but its JOB_NEW would do; it has none, so hit a status of third.
    let status = "\"JOB_STATUS\" \"10.1\" ";
    let at = text
        .windows(status.len())
        .rposition(|w| w == status.as_bytes())
        .expect("a JOB_STATUS record");
    text[at + 3] ^= 0x20;
    std::fs::write(&log, &text).unwrap();
    rig.start();
    rig.ready();
    let said = std::fs::read_dir(rig.path("log"))
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("mbatchd"))
        .map(|e| std::fs::read_to_string(e.path()).unwrap_or_default())
        .collect::<String>();
    assert!(said.contains("lsb.events"), "the log of mbatchd names the file: {said}");
    assert_eq!(rig.stat(first), "DONE");
    assert_eq!(rig.stat(held), "PSUSP");
}

#[test]
fn submissions_on_a_full_disk_are_refused_and_acknowledged_jobs_kept() {
    let rig = Rig::up("full", 1);
    let job = rig.bsub(&["-o", "/dev/null", "sleep 1; exit 5"]);
    wait_for("the job to run", || rig.stat(job) == "RUN");
    for fault in ["enospc", "eio"] {
        rig.write("fault", fault);
        let refused = rig.cmd("bsub").args(["true"]).env("LSB_NTRIES", "1").output().unwrap();
        assert_eq!(refused.status.code(), Some(255), "{fault}");
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(words.contains("cannot be written"), "{fault}: {words}");
        assert!(words.contains("Job not submitted"), "{fault}: {words}");
        std::thread::sleep(Duration::from_millis(1500));
        // Questions are answered meanwhile.
        assert!(rig.run("bjobs", &["-a"]).code == 0);
    }
    std::fs::remove_file(rig.path("fault")).unwrap();
    assert_eq!(rig.end_of(job), "EXIT");
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "5");
    wait_for("submissions to be taken again", || rig.run("bsub", &["true"]).code == 0);
}

#[test]
fn mbatchd_on_a_full_disk_answers_refuses_submissions_and_recovers() {
    let rig = Rig::up("fullstart", 1);
    rig.ready();
    let held = rig.bsub(&["-H", "-o", "/dev/null", "true"]);
    let job = rig.bsub(&["-o", "/dev/null", "sleep 2; exit 5"]);
    wait_for("the job to run", || rig.stat(job) == "RUN");
    behind_its_back(&rig, || rig.write("fault", "enospc"));
    rig.ready();
    assert_eq!(rig.stat(held), "PSUSP");
    let refused = rig.cmd("bsub").args(["true"]).env("LSB_NTRIES", "1").output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(255), "{words}");
    assert!(words.contains("No space left on device"), "{words}");
    assert!(words.contains("Job not submitted"), "{words}");
    let log = || rig.read("log/mbatchd.log.host1");
    assert!(!log().contains("mbatchd does not start"), "{}", log());
    let serves = rig.pid("mbatchd", "host1");
    std::fs::remove_file(rig.path("fault")).unwrap();
    wait_for("submissions to be taken again", || rig.run("bsub", &["true"]).code == 0);
    assert_eq!(rig.pid("mbatchd", "host1"), serves);
    assert_eq!(rig.end_of(job), "EXIT");
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "5");
    // and it was all logged
    rig.kill9("mbatchd", "host1");
    rig.ready();
    assert_eq!((rig.stat(held).as_str(), rig.stat(job).as_str()), ("PSUSP", "EXIT"));
}

/// Ends mbatchd and, before the next one reads the log, does this to the log directory.
fn behind_its_back(rig: &Rig, change: impl Fn()) {
    let sbatchd = rig.pid("sbatchd", "host1").unwrap();
    let launcher = rig.pid("launcher", "host1").unwrap();
    [sbatchd, launcher].iter().for_each(|pid| kill(*pid, 19));
    rig.kill9("mbatchd", "host1");
    change();
    [sbatchd, launcher].iter().for_each(|pid| kill(*pid, 18));
}

#[test]
fn start_with_a_missing_or_old_log_fails_until_the_administrator_accepts_it() {
    let rig = Rig::up("notlast", 1);
    rig.ready();
    let first = rig.bsub(&["-H", "-o", "/dev/null", "true"]);
    let dir = rig.logdir();
    let files = ["lsb.events", "lsb.events.sum"].map(|name| dir.join(name));
    let refused = |n: usize| {
        let log = || rig.read("log/mbatchd.log.host1");
        wait_for("the start to be refused", || {
            log().matches("mbatchd does not start: ").count() >= n
        });
        assert!(log().contains("or say that it goes on from here: badmin acceptlog"), "{}", log());
        let said = rig.cmd("bqueues").env("LSB_NTRIES", "1").output().unwrap();
        assert!(!said.status.success());
    };
    behind_its_back(&rig, || {
        files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    });
    refused(1);
    let said = rig.run("badmin", &["acceptlog"]);
    assert_eq!((said.code, &said.out[..]), (255, ""), "{}", said.err);
    let words = "lsb.events is missing or empty, and lsb.events.owner says that there was one";
    assert!(
        said.err.contains(words) && said.err.ends_with("Nothing is accepted.\n"),
        "{}",
        said.err
    );
    rig.ok("badmin", &["acceptlog", "-f"]);
    rig.ready();
    let second = rig.bsub(&["-H", "-o", "/dev/null", "true"]);
    assert!(second > first, "{second} after {first}");
    // an older copy: the end of the job is in lsb.acct alone
    let old = files.clone().map(|file| std::fs::read(file).unwrap());
    rig.ok("bresume", &[&second.to_string()]);
    assert_eq!(rig.end_of(second), "DONE");
    let before = rig.read("log/mbatchd.log.host1").matches("mbatchd does not start: ").count();
    behind_its_back(&rig, || {
        files.iter().zip(&old).for_each(|(file, text)| std::fs::write(file, text).unwrap());
    });
    refused(before + 1);
    rig.ok("badmin", &["acceptlog", "-f"]);
    rig.ready();
    assert_eq!(rig.stat(second), "PSUSP");
    let said = rig.ok("badmin", &["acceptlog"]);
    assert_eq!(said, "Nothing contradicts the event log; there is nothing to accept.\n");
    let third = rig.bsub(&["-o", "/dev/null", "true"]);
    assert!(third > second);
    assert_eq!(rig.end_of(third), "DONE");
}
