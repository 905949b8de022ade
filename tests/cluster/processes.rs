//! The processes of a job, however they have left their session and their parents: they are found,
//! measured, stopped and killed, and no others are.

use super::rig::{Rig, alive, wait_for};
use super::site::MultiUserSite;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Seconds that are slept by processes of this test alone, by which they are found.
struct Sleepers {
    tag: String,
}

impl Sleepers {
    fn new() -> Self {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        Sleepers { tag: format!("{:07}{n:03}", std::process::id()) }
    }

    /// `sleep` with a number of its own.
    fn sleep(&self, n: u32) -> String {
        format!("sleep {}.{}", 1000 + n, self.tag)
    }

    /// The processes that sleep so.
    fn pids(&self, n: u32) -> BTreeSet<u32> {
        let wanted = format!("{}\0", self.sleep(n).replace(' ', "\0"));
        let all = lsf::sys::procs::all().into_iter().map(|p| p.pid);
        let is = |pid: &u32| {
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|w| w == wanted.as_bytes())
        };
        all.filter(|pid| is(pid) && alive(*pid)).collect()
    }

    /// The process that sleeps so, once there is one and no other.
    fn pid(&self, n: u32) -> u32 {
        wait_for(&format!("process {n}"), || self.pids(n).len() == 1);
        *self.pids(n).first().unwrap()
    }

    /// A job whose processes 1 to 4 have left it in different ways; 0 is its own.
    fn script(&self) -> String {
        let [s0, s1, s2, s3, s4] = [0, 1, 2, 3, 4].map(|n| self.sleep(n));
        format!("setsid {s1} &\n(setsid sh -c '{s2} & {s3} & exec {s4}' &)\nexec {s0}\n")
    }

    /// A line of a job: process 5 has left it without a trace in its environment.
    fn without_trace(&self) -> String {
        format!("env -i $(command -v setsid) sh -c '({} &)'\n", self.sleep(5))
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for n in 0..100 {
            self.pids(n).into_iter().for_each(|pid| super::rig::kill(pid, 9));
        }
    }
}

/// A process of the same user that says it is the job's and is not.
fn pretender(sleepers: &Sleepers, job: u32) -> Child {
    let mut c = Command::new("setsid");
    c.args(sleepers.sleep(99).split(' ')).process_group(0);
    c.env("LSB_JOBID", job.to_string()).env("LSB_JOBINDEX", "0");
    c.env("LSB_JOBPGIDS", job.to_string());
    c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
}

/// A cluster whose jobs' processes are found by control groups, where that is possible, or by
/// their ancestors.
fn cluster(name: &str, tracking: &str) -> Rig {
    let rig = Rig::up(name, 1);
    rig.down();
    rig.set_conf("LSF_PROCESS_TRACKING", tracking);
    rig.start();
    rig
}

fn submit(rig: &Rig, script: &str) -> u32 {
    super::rig::job_id(&rig.feed("bsub", &["-o", "/dev/null"], script).out).unwrap()
}

/// The processes of the job's listing.
fn listed(rig: &Rig, job: u32) -> BTreeSet<u32> {
    let pids = rig.field(&job.to_string(), "pids");
    pids.split([' ', ',']).filter_map(|pid| pid.parse().ok()).collect()
}

fn found_stopped_and_killed(tracking: &str) {
    let rig = cluster("daemonised", tracking);
    let sleepers = Sleepers::new();
    let all = tracking == "Y";
    let more = if all { sleepers.without_trace() } else { String::new() };
    let job = submit(&rig, &(more + &sleepers.script()));
    let last = if all { 5 } else { 4 };
    let pids: Vec<u32> = (0..=last).map(|n| sleepers.pid(n)).collect();
    let mut pretender = pretender(&sleepers, job);
    let foreign = sleepers.pid(99);
    wait_for("all processes to be listed", || {
        let listed = listed(&rig, job);
        pids.iter().all(|pid| listed.contains(pid))
    });
    assert!(!listed(&rig, job).contains(&foreign));
    rig.ok("bstop", &[&job.to_string()]);
    wait_for("all to be stopped", || pids.iter().all(|pid| state(*pid) == 'T'));
    assert_eq!(state(foreign), 'S');
    rig.ok("bresume", &[&job.to_string()]);
    wait_for("all to go on", || pids.iter().all(|pid| state(*pid) == 'S'));
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("all to be dead", || pids.iter().all(|pid| !alive(*pid)));
    assert!(alive(foreign));
    drop(sleepers);
    pretender.wait().unwrap();
    // no control group outlives the cluster, not even that of a job that ends with it
    // (the kernel takes its time to end a process with much memory)
    let large = "perl -e '$x = qq(a) x 600000000; open F, qq(>large); sleep 600' & wait";
    rig.bsub(&["-o", "/dev/null", large]);
    wait_for("the processes of the last job", || rig.path("large").exists());
    let log = rig.read("log/launcher.log.host1");
    let groups = log.lines().rev().find_map(|l| Some(l.split_once("control group in ")?.1));
    assert_eq!(rig.down().code, 0);
    assert!(groups.is_none_or(|dir| !std::path::Path::new(dir).exists()), "{groups:?}");
}

#[test]
fn daemonised_processes_are_listed_stopped_and_killed_by_control_group() {
    found_stopped_and_killed("Y");
}

#[test]
fn daemonised_processes_are_listed_stopped_and_killed_by_ancestors() {
    found_stopped_and_killed("N");
}

/// A process of a task of blaunch has left it without a trace; the task is there still, or not.
#[test]
fn daemonised_processes_of_a_task_are_stopped_and_killed_with_their_job() {
    let rig = Rig::up("task-daemon", 2);
    for (n, end) in [(1, "exec sleep 100"), (2, "exit 0")] {
        let sleepers = Sleepers::new();
        let without_trace = sleepers.without_trace();
        rig.write("task.sh", &format!("{without_trace}echo up >> up.{n}\n{end}\n"));
        let line = format!("blaunch -no-wait host2 sh task.sh\n{}\n", sleepers.sleep(0));
        let args = ["-n", "2", "-R", "span[ptile=1]", "-m", "host1! host2", "-o", "/dev/null"];
        let job = super::rig::job_id(&rig.feed("bsub", &args, &line).out).unwrap();
        wait_for("the task", || rig.path(&format!("up.{n}")).exists());
        let own = sleepers.pid(0);
        let left = sleepers.pid(5);
        if n == 1 {
            wait_for("the process to be listed", || listed(&rig, job).contains(&left));
            rig.ok("bstop", &[&job.to_string()]);
            wait_for("it to be stopped", || state(left) == 'T');
            rig.ok("bresume", &[&job.to_string()]);
            wait_for("it to go on", || state(left) == 'S');
            rig.ok("bkill", &[&job.to_string()]);
        } else {
            // a task that has ended takes nothing with it
            std::thread::sleep(std::time::Duration::from_secs(1));
            assert!(alive(left));
            super::rig::kill(own, 9);
        }
        rig.end_of(job);
        wait_for("it to be dead", || !alive(left));
    }
}

/// Processes that are left when the job's own process has ended; the job waits for its word first.
fn left_behind(sleepers: &Sleepers, word: &std::path::Path) -> String {
    let [s1, s2] = [1, 2].map(|n| sleepers.sleep(n));
    let word = word.display();
    format!("setsid {s1} &\n(setsid {s2} &)\nwhile [ ! -e {word} ]; do sleep 0.1; done\n")
}

fn end_with_processes_left(tracking: &str) -> (Rig, Sleepers, [u32; 2]) {
    let rig = cluster("left", tracking);
    let sleepers = Sleepers::new();
    let word = rig.path("word");
    let job = submit(&rig, &left_behind(&sleepers, &word));
    let pids = [1, 2].map(|n| sleepers.pid(n));
    std::fs::write(&word, "").unwrap();
    assert_eq!(rig.end_of(job), "DONE");
    (rig, sleepers, pids)
}

#[test]
fn processes_that_a_job_leaves_behind_are_killed_at_its_end() {
    let (_rig, _sleepers, pids) = end_with_processes_left("Y");
    wait_for("both to be dead", || pids.iter().all(|pid| !alive(*pid)));
}

#[test]
fn processes_that_a_job_leaves_behind_go_on_without_process_tracking() {
    let (rig, _sleepers, pids) = end_with_processes_left("N");
    // a later job goes through all that an end does
    let later = rig.bsub(&["-o", "/dev/null", "true"]);
    assert_eq!(rig.end_of(later), "DONE");
    assert!(pids.iter().all(|pid| alive(*pid)));
}

fn killed_after_restarts(tracking: &str, daemons: &[&str]) {
    let rig = cluster("restarts", tracking);
    let sleepers = Sleepers::new();
    let job = submit(&rig, &sleepers.script());
    let pids: Vec<u32> = (0..=4).map(|n| sleepers.pid(n)).collect();
    let all = || {
        let listed = listed(&rig, job);
        pids.iter().all(|pid| listed.contains(pid))
    };
    wait_for("all processes to be listed", all);
    for daemon in daemons {
        let old = rig.pid(daemon, "host1");
        assert!(rig.kill9(daemon, "host1"));
        if *daemon == "launcher" {
            rig.start();
        }
        wait_for("another one", || rig.pid(daemon, "host1").is_some_and(|pid| Some(pid) != old));
    }
    rig.ready();
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("all to be dead", || pids.iter().all(|pid| !alive(*pid)));
}

#[test]
fn daemonised_processes_are_killed_after_a_restart_of_sbatchd_and_launcher() {
    killed_after_restarts("Y", &["sbatchd", "launcher"]);
}

#[test]
fn daemonised_processes_are_killed_by_ancestors_after_a_restart_of_sbatchd() {
    killed_after_restarts("N", &["sbatchd"]);
}

/// A job that ignores all signals that can be ignored, and whose daemon does, too.
fn killed_though_it_traps_signals(tracking: &str) {
    let rig = cluster("traps", tracking);
    let params = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&params).unwrap();
    let end = "JOB_TERMINATE_INTERVAL = 1\nEnd Parameters";
    std::fs::write(&params, text.replace("End Parameters", end)).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    let sleepers = Sleepers::new();
    let (s0, s1) = (sleepers.sleep(0), sleepers.sleep(1));
    let script = format!("trap '' INT TERM HUP QUIT\n(setsid {s1} &)\nwhile :; do {s0}; done\n");
    let job = submit(&rig, &script);
    let pids = [0, 1].map(|n| sleepers.pid(n));
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("both to be dead", || pids.iter().all(|pid| !alive(*pid)));
}

#[test]
fn job_that_traps_signals_is_killed_whole_by_control_group() {
    killed_though_it_traps_signals("Y");
}

#[test]
fn job_that_traps_signals_is_killed_whole_by_ancestors() {
    killed_though_it_traps_signals("N");
}

/// A job that makes processes while it is killed, each of which leaves at once.
fn killed_while_it_forks(tracking: &str) {
    let rig = cluster("forks", tracking);
    let sleepers = Sleepers::new();
    let (s0, s1) = (sleepers.sleep(0), sleepers.sleep(1));
    let forks = format!(
        "trap '' INT TERM; n=0; while [ $n -lt 3000 ]; do (setsid {s1} &); n=$((n+1)); done"
    );
    let job =
        submit(&rig, &format!("(setsid sh -c '{}' &)\nexec {s0}\n", forks.replace('\'', "'\\''")));
    wait_for("many processes", || sleepers.pids(1).len() > 50);
    rig.ok("bkill", &["-s", "KILL", &job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("all to be dead", || sleepers.pids(1).is_empty());
    // none of them made more
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(sleepers.pids(1).len(), 0);
}

#[test]
fn job_that_forks_while_it_is_killed_is_killed_whole_by_control_group() {
    killed_while_it_forks("Y");
}

#[test]
fn job_that_forks_while_it_is_killed_is_killed_whole_by_ancestors() {
    killed_while_it_forks("N");
}

/// Has control groups read-only for a launcher, as in many containers.
const READ_ONLY: &str = "for m in $(awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/mounts); do
    mount -o remount,ro,bind $m || exit 1
done";

/// Leaves a launcher the control groups of version 1 alone.
const VERSION_ONE: &str = "umount -l $(awk '$3 == \"cgroup2\" { print $2 }' /proc/mounts)";

/// `way`: the launcher's word for how it finds the processes of jobs.
fn processes_of_others_survive(name: &str, prelude: &str, way: &str) {
    if !MultiUserSite::possible(name) {
        return;
    }
    let mut site = MultiUserSite::new("owners", 1);
    site.prelude = prelude.into();
    site.start();
    let log = std::fs::read_to_string(site.path("log/launcher.log.host1")).unwrap();
    if !way.starts_with("found by") && log.contains("found by their ancestors") {
        return super::rig::skipped(&format!("{name}: no control group can be made"));
    }
    assert!(log.contains(way), "{log}");
    let sleepers = Sleepers::new();
    site.write("job", &sleepers.script());
    let job = site.bsub("ann", &format!("-o /dev/null < {}", site.path("job").display()));
    let own: Vec<u32> = (0..=4).map(|n| sleepers.pid(n)).collect();
    // a job of another user says that a process of its own is ann's job's
    let mark = format!("LSB_JOBID={job} LSB_JOBINDEX=0");
    let (s6, s7) = (sleepers.sleep(6), sleepers.sleep(7));
    site.write("other", &format!("{mark} sh -c '(setsid {s6} &)'\nexec {s7}\n"));
    let other = site.bsub("bob", &format!("-o /dev/null < {}", site.path("other").display()));
    // ann says the same of a process of hers that is no job's
    let line = format!("{mark} setsid {} > /dev/null 2>&1 &", sleepers.sleep(8));
    site.ok("ann", &line);
    let others = [6, 7, 8].map(|n| sleepers.pid(n));
    site.ok("ann", &format!("bkill {job}"));
    assert_eq!(site.end_of(job), "EXIT");
    wait_for("all to be dead", || own.iter().all(|pid| !alive(*pid)));
    assert!(others.iter().all(|pid| alive(*pid)));
    site.ok("bob", &format!("bkill {other}"));
    assert_eq!(site.end_of(other), "EXIT");
    wait_for("the other job to be dead", || !alive(others[1]));
    assert!(alive(others[2]));
}

#[test]
fn process_of_another_user_that_claims_a_job_survives_its_kill_by_control_group() {
    processes_of_others_survive(
        "process_of_another_user_that_claims_a_job_survives_its_kill_by_control_group",
        "",
        "each job has a control group in",
    );
}

#[test]
fn process_of_another_user_that_claims_a_job_survives_its_kill_by_ancestors() {
    processes_of_others_survive(
        "process_of_another_user_that_claims_a_job_survives_its_kill_by_ancestors",
        READ_ONLY,
        "found by their ancestors",
    );
}

#[test]
fn process_of_another_user_that_claims_a_job_survives_its_kill_by_freezer() {
    processes_of_others_survive(
        "process_of_another_user_that_claims_a_job_survives_its_kill_by_freezer",
        VERSION_ONE,
        "freezer",
    );
}
