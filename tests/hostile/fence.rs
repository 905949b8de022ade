//! A master that is stopped between the look at its lock and its write, loses the lock, and goes on
//! when another host has the log: it acknowledges nothing, and damages nothing.

use super::rig::{Rig, Said, alive, job_id, kill, wait_for};
use std::process::{Child, Stdio};

/// Commits of the master's run until it stops: its start has the first.
const COMMITS: u32 = 4;

fn submit(rig: &Rig, host: &str) -> Child {
    let mut c = rig.cmd("bsub");
    c.args(["-H", "-o", "/dev/null", "true"]).env("LSF_LOCAL_HOST", host);
    c.env("LSB_NTRIES", "100").stdout(Stdio::piped()).stderr(Stdio::piped());
    c.spawn().unwrap()
}

fn answers(rig: &Rig, host: &str) -> bool {
    let mut c = rig.cmd("bqueues");
    c.env("LSF_LOCAL_HOST", host).env("LSB_NTRIES", "1");
    c.output().unwrap().status.success()
}

fn stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

#[test]
fn master_that_is_overtaken_before_its_write_acknowledges_nothing_and_leaves_the_log_whole() {
    let rig = Rig::up("fence", 2);
    rig.ready();
    let first = rig.bsub(&["-H", "-o", "/dev/null", "true"]);
    rig.write("crash.at", &format!("stop-before-append:{COMMITS}"));
    let before = rig.pid("mbatchd", "host1").unwrap();
    assert!(rig.kill9("mbatchd", "host1"));
    let mut late = 0;
    wait_for("the next mbatchd to have read its order", || {
        late = rig.pid("mbatchd", "host1").unwrap_or(before);
        late != before && !rig.path("crash.at").exists()
    });
    // these wait for an answer from then on
    let mut clients: Vec<Child> = Vec::new();
    wait_for("the master to stop before a write", || {
        clients.push(submit(&rig, "host1"));
        stopped(late)
    });
    clients.push(submit(&rig, "host1"));
    let others = ["launcher", "lim", "sbatchd", "res", "authd"];
    let others: Vec<u32> = others.iter().filter_map(|d| rig.pid(d, "host1")).collect();
    others.iter().for_each(|pid| kill(*pid, 19));
    wait_for("the other host to find the log locked", || {
        rig.read("log/mbatchd.log.host2").contains("lsb.events.lock is held")
    });
    // as a file server does that does not hear of the first host any more
    std::fs::remove_file(rig.logdir().join("lsb.events.lock")).unwrap();
    wait_for("the other host to answer", || answers(&rig, "host2"));
    let said = Said::from(submit(&rig, "host2").wait_with_output().unwrap());
    let second = job_id(&said.out).unwrap_or_else(|| panic!("{}{}", said.out, said.err));
    kill(late, 18);
    wait_for("the first master to end", || !alive(late));
    let words = "mbatchd ends: lsb.events.owner: another mbatchd has taken over this event log";
    assert!(rig.read("log/mbatchd.log.host1").contains(words));
    // the second one goes on with the log it has
    let said = Said::from(submit(&rig, "host2").wait_with_output().unwrap());
    let third = job_id(&said.out).unwrap_or_else(|| panic!("{}{}", said.out, said.err));
    others.iter().for_each(|pid| kill(*pid, 18));
    let mut jobs = vec![first, second, third];
    for client in clients {
        let said = Said::from(client.wait_with_output().unwrap());
        jobs.push(job_id(&said.out).unwrap_or_else(|| panic!("{}{}", said.out, said.err)));
    }
    // whoever reads it next finds each of them once, and nothing that is damaged
    rig.down();
    rig.start();
    rig.ready();
    let mut shown: Vec<u32> = Vec::new();
    for line in rig.ok("bjobs", &["-noheader", "-o", "jobid stat"]).lines() {
        let (id, stat) = line.split_once(' ').unwrap();
        assert_eq!(stat, "PSUSP", "{line}");
        shown.push(id.parse().unwrap());
    }
    jobs.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, jobs);
    for host in ["host1", "host2"] {
        let log = rig.read(&format!("log/mbatchd.log.{host}"));
        assert!(!log.contains("damage"), "{log}");
    }
}
