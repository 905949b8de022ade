//! Daemons that hang: stopped, or before a file system that does not answer. Such daemons are
//! ended, their successors serve, and jobs are not affected.

use crate::rig::{Rig, Said, alive, job_id, kill, skipped, wait_for};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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
fn mbatchd_ends_when_its_log_makes_no_progress_though_its_loop_turns() {
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
fn idle_mbatchd_survives_a_log_that_hangs() {
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
fn mbatchd_waits_with_one_line_while_the_lim_of_another_host_hangs() {
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

/// A file system of the test's own below a path, which can be frozen: whoever writes then waits
/// where no signal reaches it.
struct Frozen(PathBuf);

impl Frozen {
    /// Makes a file system that can be frozen; `None` if that is impossible here: the test counts
    /// as skipped.
    fn make(name: &str, dir: &Path, image: &Path) -> Option<Frozen> {
        let (dir, image) = (dir.display(), image.display());
        let line = format!(
            "truncate -s 32M {image} && mkfs.ext4 -q {image} && cp -a {dir} {dir}.kept && mount -o \
             loop {image} {dir} && cp -a {dir}.kept/. {dir} && fsfreeze -f {dir} && fsfreeze -u {dir}"
        );
        let said = Said::from(Command::new("sh").args(["-ec", &line]).output().unwrap());
        let frozen = Frozen(dir.to_string().into());
        if said.code != 0 {
            skipped(&format!("{name}: needs root, mkfs.ext4, loop devices and fsfreeze"));
            return None;
        }
        Some(frozen)
    }

    fn freeze(&self) {
        // nobody on this machine must wait for ever, whatever becomes of the test
        let dir = self.0.display();
        let line = format!("fsfreeze -f {dir}; (sleep 120; fsfreeze -u {dir}) 2> /dev/null &");
        assert!(Command::new("sh").args(["-ec", &line]).status().unwrap().success());
    }

    fn thaw(&self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(&self.0).stderr(Stdio::null()).status();
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.thaw();
        let _ = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status();
    }
}

/// Does a thread of this process wait where no signal reaches it?
fn in_disk_sleep(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let state = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('D'))
    };
    tasks.into_iter().flatten().flatten().any(state)
}

#[test]
fn a_log_on_a_frozen_file_system_loses_nothing_and_is_served_again_when_it_thaws() {
    let name = "a_log_on_a_frozen_file_system_loses_nothing_and_is_served_again_when_it_thaws";
    let rig = Rig::up("frozen", 2);
    rig.ready();
    let dir = rig.logdir();
    assert_eq!(rig.down().code, 0);
    let Some(frozen) = Frozen::make(name, &dir, &rig.path("image")) else { return };
    rig.set_conf("MBD_HANG_TIME", "3");
    rig.start();
    rig.ready();
    let first = rig.bsub(&["-o", "/dev/null", "while [ ! -e go ]; do sleep 0.1; done; exit 5"]);
    wait_for("the job to run", || rig.stat(first) == "RUN");
    let held = rig.bsub(&["-H", "-o", "/dev/null", "true"]);
    let old = mbatchd(&rig);
    frozen.freeze();
    let waiting = begin(&rig, &["-J", "waited", "-o", "/dev/null", "true"]);
    wait_for("the log's thread to wait for the file system", || in_disk_sleep(old));
    wait_for("the launcher to end it", || ended(&rig, "host1") > 0);
    // that is no end yet: its lock and its write are there still
    assert!(in_disk_sleep(old));
    rig.write("go", "");
    frozen.thaw();
    wait_for("it to be gone", || !std::path::Path::new(&format!("/proc/{old}")).exists());
    let out = waiting.wait_with_output().unwrap();
    let job = job_id(&String::from_utf8_lossy(&out.stdout)).expect("an answer");
    assert_eq!(rig.end_of(job), "DONE");
    assert_eq!(rig.ok("bjobs", &["-a", "-noheader", "-J", "waited"]).lines().count(), 1);
    assert_eq!(rig.end_of(first), "EXIT");
    assert_eq!(rig.field(&first.to_string(), "exit_code"), "5");
    assert_eq!(rig.stat(held), "PSUSP");
    let log = [1, 2].map(|n| rig.read(&format!("log/mbatchd.log.host{n}"))).concat();
    assert!(!log.contains("damage"), "{log}");
    rig.down();
}
