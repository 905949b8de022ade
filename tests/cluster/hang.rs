//! Daemons that hang: stopped, or before a file system that does not answer. They are ended, their
//! successors serve, and jobs know nothing of it.

use crate::rig::{Rig, alive, job_id, kill, wait_for};
use std::process::{Child, Stdio};

const STOP: i32 = 19;

/// A cluster of two hosts with these lines in lsf.conf.
fn cluster(name: &str, lines: &[(&str, &str)]) -> Rig {
    let rig = Rig::up(name, 2);
    assert_eq!(rig.down().code, 0);
    lines.iter().for_each(|(name, value)| rig.set_conf(name, value));
    rig.start();
    rig.ready();
    rig
}

fn ended(rig: &Rig, host: &str) -> usize {
    rig.read(&format!("log/launcher.log.{host}")).matches("(MBD_HANG_TIME): it is killed").count()
}

fn mbatchd(rig: &Rig) -> u32 {
    let mut pid = None;
    wait_for("mbatchd", || {
        pid = rig.pid("mbatchd", "host1");
        pid.is_some()
    });
    pid.unwrap()
}

#[test]
fn a_stopped_mbatchd_is_ended_and_the_next_one_goes_on_with_the_jobs() {
    let rig = cluster("hang", &[("MBD_HANG_TIME", "3")]);
    let job = rig.bsub(&["-o", "/dev/null", "echo $$ > job.pid; exec sleep 1000"]);
    wait_for("the job to run", || rig.stat(job) == "RUN" && rig.read("job.pid").ends_with('\n'));
    let pid: u32 = rig.read("job.pid").trim().parse().unwrap();
    let old = mbatchd(&rig);
    kill(old, STOP);
    wait_for("it to be ended", || !alive(old));
    rig.ready();
    assert_eq!(ended(&rig, "host1"), 1);
    assert_ne!(mbatchd(&rig), old);
    assert!(alive(pid) && rig.stat(job) == "RUN");
    assert_eq!(rig.end_of(rig.bsub(&["-o", "/dev/null", "true"])), "DONE");
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
}

#[test]
fn a_host_on_which_mbatchd_hangs_again_leaves_its_place_to_the_next() {
    let rig = cluster("hangs", &[("MBD_HANG_TIME", "3"), ("LSF_RES_ACTIVE_TIME", "10")]);
    let job = rig.bsub(&["-m", "host2", "-o", "/dev/null", "sleep 1000"]);
    wait_for("the job to run", || rig.stat(job) == "RUN");
    for _ in 0..2 {
        let old = mbatchd(&rig);
        rig.ready();
        kill(old, STOP);
        wait_for("it to be ended", || !alive(old));
    }
    wait_for("host2 to be master", || rig.run("lsid", &[]).out.contains("My master name is host2"));
    rig.ready();
    assert_eq!((rig.pid("mbatchd", "host1"), ended(&rig, "host1")), (None, 2));
    let log = rig.read("log/lim.log.host1");
    assert!(log.contains("mbatchd hangs here: no candidate for master for 600 s"), "{log}");
    assert_eq!(rig.stat(job), "RUN");
    assert_eq!(rig.end_of(rig.bsub(&["-o", "/dev/null", "true"])), "DONE");
}

fn begin(rig: &Rig, words: &[&str]) -> Child {
    let mut c = rig.cmd("bsub");
    c.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_log_that_does_not_get_on_ends_mbatchd_though_its_loop_turns() {
    let rig = cluster("hanglog", &[("MBD_HANG_TIME", "3")]);
    let first = rig.bsub(&["-o", "/dev/null", "sleep 1000"]);
    wait_for("the job to run", || rig.stat(first) == "RUN");
    let old = mbatchd(&rig);
    rig.write("fault", "hang");
    let waiting = begin(&rig, &["-J", "waited", "-o", "/dev/null", "true"]);
    wait_for("it to be ended", || !alive(old));
    std::fs::remove_file(rig.path("fault")).unwrap();
    // what was not acknowledged is asked for again, and is there once
    let out = waiting.wait_with_output().unwrap();
    let job = job_id(&String::from_utf8_lossy(&out.stdout)).expect("an answer");
    assert_eq!(rig.end_of(job), "DONE");
    assert_eq!(rig.ok("bjobs", &["-a", "-noheader", "-J", "waited"]).lines().count(), 1);
    assert_eq!((rig.stat(first), ended(&rig, "host1")), ("RUN".to_owned(), 1));
}

#[test]
fn an_idle_mbatchd_before_a_log_that_hangs_is_left_alone() {
    let rig = cluster("hangidle", &[("MBD_HANG_TIME", "1")]);
    let (old, lim) = (mbatchd(&rig), rig.pid("lim", "host2").unwrap());
    rig.write("fault", "hang");
    // the watch is at work all the while
    kill(lim, STOP);
    wait_for("lim to be ended", || !alive(lim));
    std::fs::remove_file(rig.path("fault")).unwrap();
    assert_eq!((mbatchd(&rig), ended(&rig, "host1")), (old, 0));
}

#[test]
fn a_lim_that_hangs_has_the_other_mbatchd_wait_with_one_line() {
    let rig = cluster("hanglim", &[("MBD_HANG_TIME", "0")]);
    let lim = rig.pid("lim", "host1").unwrap();
    kill(lim, STOP);
    wait_for("host2 to be master", || rig.pid("mbatchd", "host2").is_some());
    let log = || rig.read("log/mbatchd.log.host2");
    wait_for("its mbatchd to wait for the log", || log().contains("is held: the mbatchd of host"));
    let waiting = rig.pid("mbatchd", "host2").unwrap();
    // by then it would have been started anew
    let jobs: Vec<u32> = (0..3).map(|_| rig.bsub(&["-o", "/dev/null", "sleep 1"])).collect();
    jobs.into_iter().for_each(|job| assert_eq!(rig.end_of(job), "DONE"));
    assert_eq!(rig.pid("mbatchd", "host2"), Some(waiting));
    assert_eq!(log().matches("is held").count(), 1, "{}", log());
    kill(lim, 18);
    wait_for("host2 to give way", || rig.pid("mbatchd", "host2").is_none());
    rig.ready();
}

#[test]
fn a_lim_that_hangs_is_ended_and_its_host_is_master_again() {
    let rig = cluster("hanglim2", &[("MBD_HANG_TIME", "3")]);
    let lim = rig.pid("lim", "host1").unwrap();
    kill(lim, STOP);
    wait_for("it to be ended", || !alive(lim));
    assert_eq!(ended(&rig, "host1"), 1);
    wait_for("the cluster to be whole", || {
        let hosts = rig.run("lsload", &[]).out;
        hosts.matches(" ok ").count() == 2 && rig.run("bqueues", &[]).code == 0
    });
}
