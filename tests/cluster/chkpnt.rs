//! Checkpoints and restarts with real processes, by the method of conf-examples/checkpoint.

use super::rig::{Rig, job_id, wait_for};
use std::path::{Path, PathBuf};

/// A cluster with the method of the example, and the directory of its checkpoints.
fn cluster(name: &str, hosts: usize) -> (Rig, PathBuf) {
    let rig = Rig::up(name, hosts);
    let methods = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/checkpoint");
    rig.set_conf("LSB_ECHKPNT_METHOD_DIR", &methods.display().to_string());
    let said = rig.run("badmin", &["reconfig", "-f"]);
    assert_eq!(said.code, 0, "{said:?}");
    let dir = rig.path("chk");
    std::fs::create_dir(&dir).unwrap();
    (rig, dir)
}

fn count() -> String {
    let methods = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/checkpoint");
    methods.join("count").display().to_string()
}

/// The numbers that the program has counted into a file.
fn numbers(path: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn saved(dir: &Path, job: u32) -> Option<u64> {
    let text = std::fs::read_to_string(dir.join(job.to_string()).join("counter")).ok()?;
    text.trim().parse().ok()
}

/// Submits the counting program to host1; it counts into a file.
fn counting(rig: &Rig, dir: &Path, out: &Path, more: &[&str]) -> u32 {
    let option = format!("{} method=counter", dir.display());
    let mut args = vec!["-k", &option, "-o", "/dev/null", "-env", "all, STEP=0.1"];
    args.extend(more);
    rig.ok("badmin", &["hclose", "host2"]);
    let redirected = rig.path("count");
    let text = format!("#!/bin/sh\nexec {} \"$@\" >> {}\n", count(), out.display());
    super::rig::program(&redirected, &text);
    let line = format!("{} 0", redirected.display());
    args.push(&line);
    let job = rig.bsub(&args);
    wait_for("the first numbers", || numbers(out).len() > 2);
    wait_for("RUN", || rig.stat(job) == "RUN");
    job
}

#[test]
fn a_counter_is_checkpointed_killed_and_goes_on_from_its_number_on_another_host() {
    let (rig, dir) = cluster("chkpnt", 2);
    let out = rig.path("numbers");
    let job = counting(&rig, &dir, &out, &["-J", "counter"]);
    let id = job.to_string();
    // once more while the job goes on
    assert_eq!(rig.ok("bchkpnt", &[&id]), format!("Job <{id}> is being checkpointed\n"));
    wait_for("a checkpoint", || rig.ok("bhist", &["-l", &id]).contains("Checkpoint succeeded"));
    let first = saved(&dir, job).unwrap();
    wait_for("more numbers", || *numbers(&out).last().unwrap() > first);
    assert_eq!(rig.stat(job), "RUN");
    // and to end it
    rig.ok("bchkpnt", &["-k", &id]);
    assert_eq!(rig.end_of(job), "EXIT");
    let last = saved(&dir, job).unwrap();
    assert!(last > first);
    assert_eq!(numbers(&out).last(), Some(&last), "nothing is counted after the checkpoint");
    let why = rig.ok("bjobs", &["-l", &id]);
    assert!(why.contains("TERM_CHKPNT"), "{why}");
    // without the breaks of long lines
    let why: String = why.lines().map(str::trim_start).collect();
    assert!(why.contains(&format!("Checkpoint directory <{}>", dir.display())), "{why}");
    rig.ok("badmin", &["hclose", "host1"]);
    rig.ok("badmin", &["hopen", "host2"]);
    let said = rig.ok("brestart", &[dir.to_str().unwrap(), &id]);
    let again = job_id(&said).unwrap();
    wait_for("later numbers", || *numbers(&out).last().unwrap() > last + 2);
    assert_eq!(rig.field(&again.to_string(), "exec_host"), "host2");
    assert_eq!(rig.field(&again.to_string(), "job_name"), "counter");
    let all = numbers(&out);
    let after: Vec<u64> = all.iter().copied().skip_while(|n| *n != last).collect();
    assert!(after.windows(2).all(|two| two[1] == two[0] + 1), "{after:?}");
    // the directory is that of the new job, and the old name leads there
    let link = std::fs::read_link(dir.join(&id)).unwrap();
    assert_eq!(link, PathBuf::from(again.to_string()));
    let log = std::fs::read_to_string(dir.join(again.to_string()).join("chklog")).unwrap();
    assert!(log.contains("checkpoint by counter succeeded"), "{log}");
    assert!(log.contains(&format!("restart of job {id}")), "{log}");
    rig.run("bkill", &[&again.to_string()]);
}

#[test]
fn a_checkpointable_job_migrates_and_one_whose_checkpoint_fails_goes_on() {
    let (rig, dir) = cluster("chkmig", 2);
    let out = rig.path("numbers");
    let job = counting(&rig, &dir, &out, &[]);
    let id = job.to_string();
    rig.ok("badmin", &["hclose", "host1"]);
    rig.ok("badmin", &["hopen", "host2"]);
    assert_eq!(rig.ok("bmig", &[&id]), format!("Job <{id}> is being migrated\n"));
    wait_for("the second run", || rig.field(&id, "exec_host") == "host2");
    let last = saved(&dir, job).unwrap();
    wait_for("later numbers", || *numbers(&out).last().unwrap() > last + 1);
    let all = numbers(&out);
    assert!(all.windows(2).all(|two| two[1] == two[0] + 1), "{all:?}");
    rig.ok("badmin", &["hopen", "host1"]);
    // a method that fails: the job is neither ended nor moved
    let bad = rig.bsub(&["-k", &format!("{} method=none", dir.display()), "sleep 4000"]);
    wait_for("RUN", || rig.stat(bad) == "RUN");
    let bad_id = bad.to_string();
    rig.ok("bmig", &[&bad_id]);
    wait_for("the failure", || rig.ok("bhist", &["-l", &bad_id]).contains("Checkpoint failed"));
    assert_eq!(rig.stat(bad), "RUN");
    let said = rig.run("brestart", &[dir.to_str().unwrap(), &bad_id]);
    assert_eq!(said.code, 255, "{said:?}");
    // a job that has no directory
    let plain = rig.bsub(&["-o", "/dev/null", "sleep 4000"]);
    wait_for("RUN", || rig.stat(plain) == "RUN");
    let said = rig.run("bchkpnt", &[&plain.to_string()]);
    assert_eq!(said.err, format!("Job <{plain}>: Job is not checkpointable\n"));
    rig.run("bkill", &["0"]);
}
