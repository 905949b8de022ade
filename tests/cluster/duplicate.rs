//! The duplicate event log (LSB_LOCALDIR): the shared directory goes away and comes back; another
//! master takes the copy over, and the first one takes it back.

use crate::rig::{Rig, Said, job_id, wait_for};
use std::time::Duration;

const PRIMARY: &str = "local/personal/logdir";
const SHARE: &str = "work/personal/logdir";

/// A cluster whose first host has the primary log on a disk of its own.
fn up(name: &str, interval: Option<u32>) -> Rig {
    let rig = Rig::up(name, 3);
    rig.ready();
    std::fs::create_dir(rig.path("local")).unwrap();
    rig.set_conf("LSB_LOCALDIR", rig.path("local").to_str().unwrap());
    if let Some(interval) = interval {
        let path = rig.configdir().join("lsb.params");
        let text = std::fs::read_to_string(&path).unwrap();
        let line = format!("EVENT_UPDATE_INTERVAL = {interval}\nEnd Parameters");
        std::fs::write(path, text.replacen("End Parameters", &line, 1)).unwrap();
    }
    rig.ok("badmin", &["mbdrestart", "-f"]);
    wait_for("the primary log", || !rig.read(&format!("{PRIMARY}/lsb.events")).is_empty());
    rig.ready();
    rig
}

fn on(rig: &Rig, host: &str, applet: &str, args: &[&str]) -> Said {
    let mut c = rig.cmd(applet);
    c.args(args).env("LSF_LOCAL_HOST", host).env("LSB_NTRIES", "1");
    Said::from(c.output().unwrap())
}

fn hold(rig: &Rig, host: &str, name: &str) -> u32 {
    let mut job = None;
    wait_for("the job to be submitted", || {
        let args = ["-H", "-J", name, "-o", "/dev/null", "echo of", name];
        job = job_id(&on(rig, host, "bsub", &args).out);
        job.is_some()
    });
    job.unwrap()
}

fn is_current(rig: &Rig) -> bool {
    let of = |dir: &str, name: &str| rig.read(&format!("{dir}/{name}"));
    ["lsb.events", "lsb.acct"].iter().all(|name| of(PRIMARY, name) == of(SHARE, name))
}

fn names(rig: &Rig, host: &str) -> String {
    let listed = on(rig, host, "bjobs", &["-a", "-noheader", "-o", "job_name"]).out;
    let mut names: Vec<&str> = listed.lines().collect();
    names.sort_unstable();
    names.join(" ")
}

/// The first host dies with all of its daemons; the next one answers.
fn first_host_dies(rig: &Rig) {
    for daemon in ["launcher", "lim", "sbatchd", "mbatchd", "authd", "res"] {
        rig.kill9(daemon, "host1");
    }
    wait_for("mbatchd on the second host", || {
        rig.pid("mbatchd", "host2").is_some() && on(rig, "host3", "bqueues", &[]).code == 0
    });
}

fn first_host_returns(rig: &Rig) {
    rig.start();
    wait_for("mbatchd on the first host", || {
        rig.pids("mbatchd").keys().eq(["host1"]) && on(rig, "host2", "bqueues", &[]).code == 0
    });
}

#[test]
fn shared_directory_that_is_away_delays_nobody_and_is_brought_up_to_date() {
    let rig = up("dupaway", None);
    hold(&rig, "host1", "a");
    wait_for("the copy", || is_current(&rig));
    std::fs::rename(rig.path("work"), rig.path("away")).unwrap();
    hold(&rig, "host1", "b");
    let log = || rig.read("log/mbatchd.log.host1");
    wait_for("the words in the log", || log().contains("the log continues in"));
    assert!(log().contains("the copy of the event log in"), "{}", log());
    // its mbatchd dies and goes on from its own disk
    rig.kill9("mbatchd", "host1");
    hold(&rig, "host1", "c");
    assert!(log().contains("continues on this host alone"), "{}", log());
    std::fs::rename(rig.path("away"), rig.path("work")).unwrap();
    wait_for("the copy", || is_current(&rig));
    assert_eq!(names(&rig, "host1"), "a b c");
    // one whose writes hang delays no acknowledgement
    rig.write("fault.share", "hang");
    let began = std::time::Instant::now();
    hold(&rig, "host1", "d");
    hold(&rig, "host1", "e");
    assert!(began.elapsed().as_secs() < 5 && !is_current(&rig));
    rig.write("fault.share", "");
    wait_for("the copy", || is_current(&rig));
}

#[test]
fn second_master_continues_from_the_copy_until_the_first_returns() {
    let rig = up("duptake", None);
    let first = hold(&rig, "host1", "a");
    wait_for("the copy", || is_current(&rig));
    first_host_dies(&rig);
    assert_eq!(names(&rig, "host3"), "a");
    let said = rig.read("log/mbatchd.log.host2");
    assert!(said.contains("is a copy of the log of host host1"), "{said}");
    let second = hold(&rig, "host2", "b");
    assert!(second > first + 1000, "{second}");
    first_host_returns(&rig);
    assert_eq!(names(&rig, "host2"), "a b");
    let said = rig.read("log/mbatchd.log.host1");
    assert!(said.contains("host host2 had the event log"), "{said}");
    hold(&rig, "host1", "c");
    wait_for("the copy", || is_current(&rig));
    // the script of a job lies beside the log
    for job in [first, second] {
        rig.ok("bresume", &[&job.to_string()]);
        assert_eq!(rig.end_of(job), "DONE");
    }
}

#[test]
fn jobs_that_the_copy_lacked_come_back_with_the_first_master() {
    let rig = up("duplack", Some(3600));
    hold(&rig, "host1", "a");
    let lost = hold(&rig, "host1", "b");
    rig.kill9("mbatchd", "host1");
    // the rounds of the new mbatchd go on as long as there is something new; then the interval
    // keeps what follows from the copy
    let copied = |name: &str| rig.read(&format!("{SHARE}/lsb.events")).contains(name);
    wait_for("the copy", || copied("\"b\""));
    std::thread::sleep(Duration::from_secs(2));
    hold(&rig, "host1", "c");
    assert!(!copied("\"c\""));
    first_host_dies(&rig);
    let there = names(&rig, "host3");
    assert!(!there.contains('c'), "{there}");
    hold(&rig, "host2", "d");
    first_host_returns(&rig);
    assert_eq!(names(&rig, "host2"), "a b c d");
    let said = rig.read("log/mbatchd.log.host1");
    assert!(said.contains("were missing from the copy; they come back"), "{said}");
    rig.ok("bresume", &[&lost.to_string()]);
    assert_eq!(rig.end_of(lost), "DONE");
}
