//! The master's host goes and comes back: another candidate takes over, and hands back.

use crate::install::installed;
use crate::nodes::Nodes;
use crate::rig::{Rig, Said, job_id, kill, wait_for};
use crate::site::ADMIN;
use std::time::{Duration, Instant};

const HOSTS: [&str; 3] = ["hosta", "hostb", "hostc"];

/// A command as a user of this host runs it, tried once.
fn on(rig: &Rig, host: &str, applet: &str, args: &[&str]) -> Said {
    let mut c = rig.cmd(applet);
    c.args(args).env("LSF_LOCAL_HOST", host).env("LSB_NTRIES", "1");
    Said::from(c.output().unwrap())
}

fn master(rig: &Rig, host: &str) -> String {
    let said = on(rig, host, "lsid", &[]);
    let name = said.out.lines().find_map(|l| l.strip_prefix("My master name is "));
    name.unwrap_or_default().to_owned()
}

fn submit(rig: &Rig, host: &str, line: &str) -> Option<u32> {
    job_id(&on(rig, host, "bsub", &["-o", "/dev/null", line]).out)
}

/// kill -9 of all of a host's daemons, the one that would start the others first.
fn kill_all(rig: &Rig, host: &str) {
    for daemon in ["launcher", "lim", "sbatchd", "mbatchd", "authd"] {
        rig.kill9(daemon, host);
    }
}

#[test]
fn next_candidate_takes_over_from_a_dead_master_and_hands_back() {
    let rig = Rig::up("failover", 3);
    rig.ready();
    wait_for("all hosts", || {
        let loads = rig.run("lsload", &[]).out;
        ["host1", "host2", "host3"].iter().all(|h| {
            loads
                .lines()
                .any(|l| l.starts_with(h) && l.split_whitespace().nth(1) != Some("unavail"))
        })
    });
    assert_eq!(master(&rig, "host3"), "host1");
    // one that waits, one held back, to be found again by the next mbatchd
    let ran = rig.path("ran");
    let line = |n: u32| format!("echo {n} >> {}", ran.display());
    let before: Vec<u32> = (0..4)
        .map(|n| {
            let out = rig.ok("bsub", &["-H", "-o", "/dev/null", &line(n)]);
            job_id(&out).unwrap()
        })
        .collect();
    kill_all(&rig, "host1");
    let gone = Instant::now();
    for host in ["host2", "host3"] {
        wait_for("the next master", || master(&rig, host) == "host2");
    }
    assert!(gone.elapsed() < Duration::from_secs(10), "{:?}", gone.elapsed());
    wait_for("lsload by the new master", || {
        let loads = on(&rig, "host3", "lsload", &[]).out;
        let ok = |h: &str| loads.lines().any(|l| l.starts_with(h) && l.contains(" ok"));
        ok("host2") && ok("host3")
    });
    wait_for("mbatchd on the new master", || on(&rig, "host3", "bqueues", &[]).code == 0);
    let took = gone.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?} until commands were answered");
    assert_eq!(rig.pids("mbatchd").keys().collect::<Vec<_>>(), ["host2"]);
    // what was submitted before runs, and new jobs are taken
    for job in &before {
        let said = on(&rig, "host2", "bresume", &[&job.to_string()]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    let new = submit(&rig, "host3", &line(4)).unwrap();
    assert!(!before.contains(&new));
    let lines = |n: usize| rig.read("ran").lines().count() == n;
    wait_for("the jobs to run on the hosts left", || lines(5));
    // the first candidate is back: it takes over again, with all that happened meanwhile
    rig.start();
    wait_for("the first candidate", || master(&rig, "host3") == "host1");
    wait_for("mbatchd on it", || {
        rig.pids("mbatchd").keys().eq(["host1"]) && on(&rig, "host2", "bqueues", &[]).code == 0
    });
    let after = submit(&rig, "host2", &line(5)).unwrap();
    wait_for("the last job to run", || lines(6));
    assert_eq!(rig.end_of(after), "DONE");
    let all = rig.ok("bjobs", &["-a", "-noheader", "-o", "jobid stat"]);
    for job in before.iter().chain([&new, &after]) {
        assert!(all.lines().any(|l| l == format!("{job} DONE")), "{job}: {all}");
    }
    let mut ran: Vec<String> = rig.read("ran").lines().map(str::to_owned).collect();
    ran.sort_unstable();
    assert_eq!(ran, ["0", "1", "2", "3", "4", "5"]);
    a_master_that_vanishes(&rig);
}

/// The master's host neither answers nor refuses: the kernel takes connections, the daemons are
/// stopped.
fn a_master_that_vanishes(rig: &Rig) {
    let of_host1: Vec<u32> = ["launcher", "lim", "sbatchd", "mbatchd", "res", "authd"]
        .into_iter()
        .filter_map(|daemon| rig.pid(daemon, "host1"))
        .collect();
    assert_eq!(of_host1.len(), 6);
    of_host1.iter().for_each(|pid| kill(*pid, 19));
    let gone = Instant::now();
    for host in ["host2", "host3"] {
        wait_for("the next master", || master(rig, host) == "host2");
    }
    let took = gone.elapsed();
    // not before it was silent for an interval and left a question unanswered
    assert!(took < Duration::from_secs(10), "{took:?}");
    wait_for("lsload by the new master", || {
        let loads = on(rig, "host3", "lsload", &[]).out;
        let has = |h: &str, s: &str| loads.lines().any(|l| l.starts_with(h) && l.contains(s));
        has("host2", " ok") && has("host3", " ok") && has("host1", "unavail")
    });
    of_host1.iter().for_each(|pid| kill(*pid, 18));
    wait_for("the first candidate again", || {
        ["host1", "host2", "host3"].iter().all(|h| master(rig, h) == "host1")
    });
}

/// A site of three hosts whose first candidate is hostb: its link is one that can be cut, while
/// hosta and hostc still reach each other.
pub fn cuttable(name: &str) -> Nodes {
    cuttable_with(name, "")
}

/// With these lines in lsf.conf.
pub fn cuttable_with(name: &str, lines: &str) -> Nodes {
    let nodes = installed(name, &HOSTS);
    let edit = |rel: &str, change: &dyn Fn(String) -> String| {
        let text = std::fs::read_to_string(nodes.path(rel)).unwrap();
        std::fs::write(nodes.path(rel), change(text)).unwrap();
    };
    edit("top/conf/lsf.conf", &|text| {
        let is_list = |l: &&str| l.starts_with("LSF_MASTER_LIST=");
        let old = text.lines().find(is_list).unwrap().to_owned();
        text.replace(&old, "LSF_MASTER_LIST=\"hostb hosta hostc\"") + lines
    });
    // as `lsf up` writes it
    let quick = "HOST_INACTIVITY_LIMIT = 1\nMASTER_INACTIVITY_LIMIT = 0\nRETRY_LIMIT = 0\n";
    edit("top/conf/lsf.cluster.c1", &|text| {
        text.replace("EXINTERVAL = 5\n", &format!("EXINTERVAL = 5\n{quick}"))
    });
    let setup = format!("{}/top/bin/hostsetup --check", nodes.dir.display());
    for host in ["hostb", "hostc"] {
        nodes.ok("root", "hosta", &format!("ssh {host} {setup} --key=- < /etc/lsf.key"));
    }
    for host in HOSTS {
        nodes.ok("root", host, "lsf_daemons start");
    }
    nodes
}

fn master_at(nodes: &Nodes, host: &str) -> String {
    let out = nodes.run(ADMIN, host, "lsid").out;
    let name = out.lines().find_map(|l| l.strip_prefix("My master name is "));
    name.unwrap_or_default().to_owned()
}

/// The hosts on which a mbatchd runs that has the log.
fn writers(nodes: &Nodes) -> Vec<&'static str> {
    let answers = |h: &&str| nodes.run(ADMIN, h, "LSB_NTRIES=1 bqueues").code == 0;
    let runs = |h: &&str| nodes.run("root", h, "pgrep -f ^mbatchd").code == 0;
    HOSTS.into_iter().filter(|h| runs(h) && answers(h)).collect()
}

#[test]
fn partitioned_cluster_has_two_masters_and_one_writer_of_the_log() {
    if !Nodes::possible("partitioned_cluster_has_two_masters_and_one_writer_of_the_log") {
        return;
    }
    let nodes = cuttable("cut");
    wait_for("the hosts to be ready", || {
        nodes.run(ADMIN, "hosta", "bhosts -w").out.matches(" ok ").count() == 3
    });
    assert!(HOSTS.iter().all(|h| master_at(&nodes, h) == "hostb"));
    let out = nodes.ok("ann", "hosta", "bsub -o before.out -m 'hosta hostc' 'sleep 30; echo ran'");
    let before = job_id(&out).unwrap();
    // hosta has the hub of the net
    nodes.ok("root", "hosta", "ip link set v2 down");
    let cut = Instant::now();
    for host in ["hosta", "hostc"] {
        wait_for("a master on this side", || master_at(&nodes, host) == "hosta");
    }
    // 5 s without an announcement, 2 s for the last question
    assert!(cut.elapsed() < Duration::from_secs(10), "{:?}", cut.elapsed());
    wait_for("lsload on this side", || {
        let loads = nodes.run(ADMIN, "hostc", "lsload").out;
        let has = |h: &str, s: &str| {
            loads.lines().any(|l| l.starts_with(h) && l.split_whitespace().nth(1) == Some(s))
        };
        has("hosta", "ok") && has("hostc", "ok") && has("hostb", "unavail")
    });
    assert_eq!(master_at(&nodes, "hostb"), "hostb");
    wait_for("lsload on the other side", || {
        let loads = nodes.run(ADMIN, "hostb", "lsload").out;
        loads.matches("unavail").count() == 2
    });
    // the log is hostb's as long as it has the lock
    assert_eq!(writers(&nodes), ["hostb"]);
    let s = nodes.run("ann", "hosta", "LSB_NTRIES=1 bsub true");
    assert_eq!((s.code, s.err.lines().next()), (255, Some("LSF is down. Please wait ...")));
    let log = std::fs::read_to_string(nodes.path("top/log/mbatchd.log.hosta")).unwrap();
    assert!(log.contains("is held: the mbatchd of host hostb writes this event log"), "{log}");
    // it goes; the other side gets the log, with all that was in it
    nodes.ok("root", "hostb", "lsf_daemons stop");
    let stopped = Instant::now();
    wait_for("mbatchd on this side", || {
        nodes.run(ADMIN, "hosta", "LSB_NTRIES=1 bqueues").code == 0
    });
    // the election was over long before: this is the lock's own time
    println!("the lock of the log passed on after {:.1} s", stopped.elapsed().as_secs_f64());
    assert_eq!(nodes.end_of("hosta", before), "DONE");
    let out = nodes.ok("ann", "hostc", "bsub -o after.out -m 'hosta hostc' 'echo ran'");
    assert_eq!(nodes.end_of("hosta", job_id(&out).unwrap()), "DONE");
    // back together
    nodes.ok("root", "hosta", "ip link set v2 up");
    nodes.ok("root", "hostb", "lsf_daemons start");
    wait_for("one master again", || HOSTS.iter().all(|h| master_at(&nodes, h) == "hostb"));
    wait_for("its mbatchd", || writers(&nodes) == ["hostb"]);
    wait_for("the hosts to be ready again", || {
        nodes.run(ADMIN, "hosta", "bhosts -w").out.matches(" ok ").count() == 3
    });
    let out = nodes.ok("ann", "hosta", "bjobs -a -noheader -o 'jobid stat'");
    assert_eq!(out.matches("DONE").count(), 2, "{out}");
}
