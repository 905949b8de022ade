//! Inventories that come in pieces, and those of very many attempts: how long one turn of them is.

use super::turns::{LONGEST, cpu_us};
use super::*;
use crate::batch::state::names::HostId;
use crate::proto::caps;

const JOBS: u32 = 3000;

fn roomy() -> ClusterConf {
    let mut c = conf();
    c.batch.params.max_job_array_size = JOBS;
    let mxj = Mxj::Slots(2 * JOBS);
    c.batch.hosts.hosts[0] = HostPolicy { name: "default".into(), mxj, ..Default::default() };
    c
}

fn task(key: JobKey, phase: AttemptPhase) -> TaskState {
    TaskState { key, phase, pid: 7, ..TaskState::default() }
}

/// An array of very many elements that all run on the first host, and that host.
fn busy() -> (Rig, Vec<JobKey>, HostId) {
    let mut r = Rig::of(roomy());
    let name = format!("a[1-{JOBS}]");
    let id = r.submit(JobSpec { name, hosts: vec!["h1".into()], ..spec("x") }).unwrap();
    let mut starts = Vec::new();
    while starts.len() < JOBS as usize {
        let some = r.starts_of(id);
        assert!(!some.is_empty(), "{} were started", starts.len());
        starts.extend(some);
        r.step(Input::Tick);
    }
    let keys: Vec<JobKey> = starts.iter().map(|s| s.1).collect();
    for (conn, key) in starts {
        r.report(conn, key, AttemptPhase::Running);
    }
    (r, keys, host(0))
}

impl Rig {
    fn count(&self, keys: &[JobKey], stat: &str) -> usize {
        keys.iter().filter(|k| self.stat(k.job, k.idx) == stat).count()
    }

    /// The link to a host is cut, and made again.
    fn cut(&mut self, i: HostId) -> ConnId {
        let conn = self.mbd.links.hosts()[i].up().unwrap();
        self.cut_off(conn, i)
    }

    /// The given link to a host is cut, even before the host has reported all its attempts, and
    /// made again.
    fn cut_off(&mut self, conn: ConnId, i: HostId) -> ConnId {
        self.step(Input::Closed { conn });
        self.linked_again(i)
    }
}

#[test]
fn an_attempt_of_an_earlier_piece_is_not_missing() {
    let mut r = Rig::new();
    let hosts = || vec!["h1".to_string()];
    let ids = [0; 2].map(|_| r.submit(JobSpec { hosts: hosts(), ..spec("x") }).unwrap());
    let keys = ids.map(|id| r.starts_of(id)[0].1);
    let conn = r.mbd.links.hosts()[host(0)].up().unwrap();
    keys.iter().for_each(|key| r.report(conn, *key, AttemptPhase::Running));
    let conn = r.cut(host(0));
    r.inventory(conn, "boot", vec![task(keys[0], AttemptPhase::Running)], true);
    assert!(r.mbd.links.hosts()[host(0)].up().is_none(), "orders go out before all is told");
    assert_eq!((r.stat(ids[0], 0), r.stat(ids[1], 0)), ("RUN", "RUN"));
    r.inventory(conn, "boot", vec![], false);
    assert!(r.mbd.links.hosts()[host(0)].up().is_some());
    assert_eq!((r.stat(ids[0], 0), r.stat(ids[1], 0)), ("RUN", "EXIT"));
}

#[test]
fn an_inventory_that_was_cut_off_begins_anew() {
    let mut r = Rig::new();
    let id = r.submit(JobSpec { hosts: vec!["h1".into()], ..spec("x") }).unwrap();
    let (conn, key) = r.starts_of(id)[0];
    r.report(conn, key, AttemptPhase::Running);
    let conn = r.cut(host(0));
    r.inventory(conn, "boot", vec![task(key, AttemptPhase::Running)], true);
    r.step(Input::Closed { conn });
    let conn = r.linked_again(host(0));
    // the host has lost it meanwhile
    r.inventory(conn, "boot", vec![], false);
    assert_eq!(r.stat(id, 0), "EXIT");
}

#[test]
fn a_host_that_tells_of_too_many_attempts_is_closed() {
    let mut r = Rig::new();
    let conn = r.cut(host(0));
    let key = |n: usize| JobKey { job: 900_000 + n as u32, idx: 0, attempt: 1 };
    let piece = |at: usize| {
        (at..at + caps::MAX_TASKS).map(|n| task(key(n), AttemptPhase::Running)).collect::<Vec<_>>()
    };
    for at in (0..caps::MAX_INVENTORY).step_by(caps::MAX_TASKS) {
        r.inventory(conn, "boot", piece(at), true);
    }
    assert!(r.mbd.links.host_by_conn(conn).is_some());
    r.inventory(conn, "boot", piece(caps::MAX_INVENTORY), true);
    assert!(r.mbd.links.host_by_conn(conn).is_none());
    assert!(r.said.iter().any(|s| s.contains("more than 65536 attempts")), "{:?}", r.said);
}

#[test]
fn very_many_attempts_that_a_host_does_not_know_are_settled_in_short_turns() {
    let (mut r, keys, i) = busy();
    let conn = r.cut(i);
    r.works = false;
    let began = cpu_us();
    r.inventory(conn, "another", vec![], false);
    let mut longest = cpu_us() - began;
    assert!(r.mbd.links.hosts()[i].up().is_none(), "it is given jobs before all is settled");
    while r.mbd.has_work() {
        let began = cpu_us();
        r.work();
        longest = longest.max(cpu_us() - began);
    }
    println!("longest turn {longest} us");
    assert!(longest <= LONGEST, "a turn of {longest} us");
    assert_eq!(r.count(&keys, "EXIT"), keys.len());
    assert!(r.mbd.links.hosts()[i].up().is_some());
}

#[test]
fn a_host_lost_while_its_missing_attempts_are_settled_tells_again() {
    let (mut r, keys, i) = busy();
    let conn = r.cut(i);
    r.works = false;
    r.inventory(conn, "boot", vec![], false);
    r.work();
    let lost = r.count(&keys, "EXIT");
    assert!(lost > 0 && lost < keys.len(), "{lost}");
    r.works = true;
    let conn = r.cut_off(conn, i);
    assert_eq!(r.count(&keys, "EXIT"), lost, "settled by an inventory that is over");
    let runs = keys.iter().filter(|k| r.stat(k.job, k.idx) == "RUN");
    let tasks: Vec<TaskState> = runs.map(|k| task(*k, AttemptPhase::Running)).collect();
    let last = tasks.len() - 1;
    for (n, t) in tasks.into_iter().enumerate() {
        r.inventory(conn, "boot", vec![t], n < last);
    }
    assert_eq!((r.count(&keys, "EXIT"), r.count(&keys, "RUN")), (lost, keys.len() - lost));
}

#[test]
fn each_piece_of_ends_is_a_short_turn() {
    let (mut r, keys, i) = busy();
    let conn = r.cut(i);
    r.works = false;
    let mut longest = 0;
    let pieces = caps::pieces(keys.iter().map(|k| task(*k, done())).collect());
    let last = pieces.len() - 1;
    for (n, tasks) in pieces.into_iter().enumerate() {
        let began = cpu_us();
        r.inventory(conn, "boot", tasks, n < last);
        longest = longest.max(cpu_us() - began);
    }
    println!("longest turn {longest} us");
    assert!(longest <= LONGEST, "a turn of {longest} us");
    assert_eq!(r.count(&keys, "DONE"), keys.len());
}
