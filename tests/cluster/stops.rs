//! The signals that suspend jobs, with real processes: SIGTSTP, SIGSTOP and LSB_SIGSTOP (bstop(1)).

use super::interactive::Bsub;
use super::rig::{Rig, program, wait_for};
use std::process::Command;

/// The seconds between SIGTSTP and SIGSTOP.
const INTERVAL: &str = "JOB_TERMINATE_INTERVAL = 3\nEnd Parameters";

/// A cluster, and programs that catch and that ignore SIGTSTP; each writes its pid.
fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 1);
    let path = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("End Parameters", INTERVAL)).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    let begin = |rest: &str| {
        format!("#!/bin/bash\n{rest}\necho $$ > $1.n && mv $1.n $1\nwhile :; do sleep .1; done\n")
    };
    let saves = "trap 'echo saved >> ${0}d' TSTP\ntrap 'echo cont >> $0.cont' CONT";
    program(&rig.path("saves"), &begin(saves));
    program(&rig.path("ignores"), &begin("trap '' TSTP"));
    rig
}

/// The pid that a job has written.
fn pid(rig: &Rig, file: &str) -> String {
    wait_for("the job to begin", || rig.read(file).ends_with('\n'));
    rig.read(file).trim().to_string()
}

/// The state of a process: T is stopped.
fn state(pid: &str) -> String {
    let said = Command::new("ps").args(["-o", "state=", "-p", pid]).output().unwrap();
    String::from_utf8_lossy(&said.stdout).trim().to_string()
}

fn lines(rig: &Rig, file: &str) -> usize {
    std::fs::read_to_string(rig.path(file)).map_or(0, |text| text.lines().count())
}

#[test]
fn an_interactive_job_saves_its_state_at_sigtstp_and_is_stopped_then() {
    let rig = up("tstp");
    let (program, file) = (rig.path("saves").display().to_string(), rig.path("one"));
    let bsub = Bsub::start(&rig, &["-I", &program, file.to_str().unwrap()]);
    let (job, one) = (bsub.job.to_string(), pid(&rig, "one"));
    rig.ok("bstop", &[&job]);
    wait_for("USUSP", || rig.stat(bsub.job) == "USUSP");
    wait_for("the state to be saved", || lines(&rig, "savesd") == 1);
    assert_ne!(state(&one), "T", "there is time to save more");
    // sbatchd goes meanwhile; the one that follows stops the job
    assert!(rig.kill9("sbatchd", "host1"));
    wait_for("SIGSTOP", || state(&one) == "T");
    assert_eq!(lines(&rig, "savesd"), 1);
    rig.ok("bresume", &[&job]);
    wait_for("SIGCONT", || state(&one) != "T" && lines(&rig, "saves.cont") == 1);
    wait_for("RUN", || rig.stat(bsub.job) == "RUN");
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_ne!(state(&one), "T", "no SIGSTOP follows a resumption");
    rig.ok("bkill", &[&job]);
    bsub.end();
}

#[test]
fn a_parallel_job_that_ignores_sigtstp_is_stopped_all_the_same() {
    let rig = up("tstp-ignored");
    let program = rig.path("ignores").display().to_string();
    let started = |n: &str, file: &str| {
        let to = rig.path(file).display().to_string();
        rig.bsub(&["-o", "/dev/null", "-n", n, &program, &to])
    };
    let one = started("1", "one");
    let of_one = pid(&rig, "one");
    rig.ok("bstop", &[&one.to_string()]);
    wait_for("USUSP", || rig.stat(one) == "USUSP");
    assert_eq!(state(&of_one), "T", "a sequential job is stopped at once");
    rig.ok("bkill", &[&one.to_string()]);
    let two = started("2", "two");
    let of_two = pid(&rig, "two");
    rig.ok("bstop", &[&two.to_string()]);
    wait_for("USUSP", || rig.stat(two) == "USUSP");
    assert_ne!(state(&of_two), "T");
    wait_for("SIGSTOP of the parallel job", || state(&of_two) == "T");
}

#[test]
fn lsb_sigstop_is_the_signal_of_every_job() {
    let rig = up("sigstop");
    let program = rig.path("saves").display().to_string();
    for (n, (signal, count)) in [("SIGSTOP", "2"), ("TSTP", "1")].into_iter().enumerate() {
        rig.set_conf("LSB_SIGSTOP", signal);
        assert!(rig.kill9("sbatchd", "host1"));
        let file = format!("job{n}");
        let to = rig.path(&file).display().to_string();
        let job = rig.bsub(&["-o", "/dev/null", "-n", count, &program, &to]);
        let of_job = pid(&rig, &file);
        rig.ok("bstop", &[&job.to_string()]);
        wait_for("SIGSTOP", || state(&of_job) == "T");
        assert_eq!(lines(&rig, "savesd"), n, "{signal}");
        rig.ok("bkill", &[&job.to_string()]);
    }
}
