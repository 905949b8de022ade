//! The messages of a host to mbatchd, each at its cap, about jobs that mbatchd knows and about
//! those that it does not: memory and the longest turn of the loop of the real daemon are bounded
//! (`badmin perfmon`; a binary that was not compiled for speed takes many times as long).

use super::messages::{Target, longest};
use super::reports::refused;
use super::rig::{Rig, job_id, wait_for};
use super::script::{Script, take_over};
use lsf::model::JobKey;
use lsf::model::job::End;
use lsf::proto::sbd::{AttemptPhase, SbdMsg, TaskState};
use lsf::proto::{Msg, caps};
use std::sync::{Arc, Mutex};

/// The test's host, in place of host2's sbatchd, and a job of host1 that it may not speak of.
struct Node {
    rig: Rig,
    script: Arc<Mutex<Script>>,
    job: u32,
}

impl Node {
    /// A cluster whose hosts have room for very many jobs.
    fn new(name: &str) -> Node {
        let rig = Rig::up(name, 2);
        rig.ready();
        let hosts = "Begin Host\nHOST_NAME MXJ\ndefault 100000\nEnd Host\n";
        std::fs::write(rig.configdir().join("lsb.hosts"), hosts).unwrap();
        let params = rig.configdir().join("lsb.params");
        let text = std::fs::read_to_string(&params).unwrap();
        let more = "MAX_JOB_ARRAY_SIZE = 100000\nJOB_ACCEPT_INTERVAL = 0\nEnd Parameters";
        std::fs::write(&params, text.replacen("End Parameters", more, 1)).unwrap();
        rig.ok("badmin", &["reconfig"]);
        rig.ok("badmin", &["perfmon", "start", "1"]);
        wait_for("a first sample", || rig.run("badmin", &["perfmon", "view"]).code == 0);
        let job = rig.bsub(&["-m", "host1", "-o", "/dev/null", "sleep", "600"]);
        wait_for("it to run", || rig.stat(job) == "RUN");
        let script = take_over(&rig);
        Node { rig, script, job }
    }

    /// The longest turn since mbatchd started, milliseconds.
    fn longest(&self) -> u64 {
        let said = self.rig.ok("badmin", &["perfmon", "view"]);
        let row =
            said.lines().find(|l| l.contains("Longest turn")).unwrap_or_else(|| panic!("{said}"));
        row.split_whitespace().next_back().unwrap().parse().unwrap()
    }

    /// Sends, waits until all of it was read, and holds memory and turns against their bounds.
    fn tells(&self, what: &str, msgs: Vec<SbdMsg>) {
        let mbatchd = Target::of(&self.rig, "mbatchd");
        mbatchd.grows(what, || {
            // what is said of a job of another host is refused, when all before it was read
            let before = refused(&self.rig);
            let key = JobKey { job: self.job, idx: 0, attempt: 1 };
            let last = SbdMsg::State(Box::new(TaskState { key, ..running(key, "") }));
            let all = msgs.into_iter().chain([last]).map(Msg::Sbd);
            self.script.lock().unwrap().say.extend(all);
            wait_for(what, || refused(&self.rig) > before);
        });
        let took = self.longest();
        println!("{what}: longest turn so far {took} ms");
        assert!(took <= longest(), "{what}: a turn of {took} ms");
        let now = self.rig.pid("mbatchd", "host1");
        assert_eq!(now, Some(mbatchd.pid), "{what}: mbatchd has died");
    }

    /// Do all of its elements stand so?
    fn all_are(&self, job: u32, stat: &str) -> bool {
        let said = self.rig.ok("bjobs", &["-noheader", "-a", "-o", "stat", &job.to_string()]);
        !said.is_empty() && said.lines().all(|l| l.trim() == stat)
    }

    /// An array whose elements are all started on the test's host.
    fn started(&self, elements: u32) -> u32 {
        let name = format!("a[1-{elements}]");
        let said = self.rig.ok("bsub", &["-m", "host2", "-o", "/dev/null", "-J", &name, "true"]);
        let job = job_id(&said).unwrap();
        let heard = |m: &Msg| matches!(m, Msg::Sbd(SbdMsg::Start(s)) if s.key.job == job);
        wait_for("all to be started", || {
            let script = self.script.lock().unwrap();
            script.heard.iter().filter(|m| heard(m)).count() == elements as usize
        });
        self.script.lock().unwrap().heard.clear();
        job
    }
}

fn running(key: JobKey, text: &str) -> TaskState {
    TaskState {
        key,
        phase: AttemptPhase::Running,
        pid: 1,
        exec_user: text.into(),
        exec_cwd: text.into(),
        note: text.into(),
        ..TaskState::default()
    }
}

/// An attempt of a job that mbatchd does not know.
fn unknown(n: usize, text: &str) -> TaskState {
    running(JobKey { job: 900_000 + n as u32, idx: 0, attempt: 1 }, text)
}

/// An inventory in pieces of so many attempts.
fn inventory(tasks: &[TaskState], piece: usize) -> Vec<SbdMsg> {
    let last = tasks.len().div_ceil(piece) - 1;
    let pieces = tasks.chunks(piece).enumerate();
    let boot_id = || "of its own".to_string();
    let of = |(n, tasks): (usize, &[TaskState])| SbdMsg::Inventory {
        boot_id: boot_id(),
        tasks: tasks.to_vec(),
        more: n < last,
        members: None,
        validates: false,
        unjoined: Vec::new(),
        member_slots: Vec::new(),
    };
    pieces.map(of).collect()
}

/// The host has as many attempts as it may, with the longest texts and the most processes.
#[test]
fn mbatchd_takes_each_report_of_a_host_at_its_cap() {
    let node = Node::new("mbdcaps");
    let all: Vec<TaskState> = (0..caps::MAX_INVENTORY).map(|n| unknown(n, "x")).collect();
    node.tells("Inventory in the largest pieces", inventory(&all, caps::MAX_TASKS));
    node.tells("Inventory as sbatchd parts it", inventory(&all, caps::TASKS_PIECE));
    let long = "x".repeat(caps::MAX_SHOWN);
    let mut tasks: Vec<TaskState> = (0..400).map(|n| unknown(n, &long)).collect();
    caps::cut_tasks(&mut tasks);
    node.tells("Inventory of long texts", inventory(&tasks, caps::MAX_TASKS));
    node.tells("State", vec![SbdMsg::State(Box::new(unknown(1, &long)))]);
    let pids = || (1..=caps::MAX_PIDS as u32).collect::<Vec<u32>>();
    let (usage, pids, pgids, groups) = (Default::default(), pids(), pids(), pids());
    let key = unknown(1, "").key;
    node.tells("Usage", vec![SbdMsg::Usage { key, usage, pids, pgids, groups }]);
}

/// The host begins, ends and loses as many jobs as it may have at a time.
#[test]
fn very_many_jobs_of_one_host_end_in_short_turns() {
    let node = Node::new("mbdends");
    let many = if longest() == 50 { 16_384 } else { 1500 };
    let told = |job: u32, phase: AttemptPhase| {
        let of = |idx: u32| running(JobKey { job, idx, attempt: 1 }, "x");
        let all = (1..=many).map(|idx| TaskState { phase: phase.clone(), ..of(idx) });
        inventory(&all.collect::<Vec<_>>(), caps::MAX_TASKS)
    };
    let first = node.started(many);
    println!("longest turn after the starts {} ms", node.longest());
    node.tells("Inventory of what runs", told(first, AttemptPhase::Running));
    assert!(node.all_are(first, "RUN"));
    let ended = AttemptPhase::Ended { end: End::Status(0), exit_info: 0 };
    node.tells("Inventory of what has ended", told(first, ended));
    assert!(node.all_are(first, "DONE"));
    let second = node.started(many);
    let boot_id = "another".into();
    node.tells(
        "restarted",
        vec![SbdMsg::Inventory {
            boot_id,
            tasks: Vec::new(),
            more: false,
            members: None,
            validates: false,
            unjoined: Vec::new(),
            member_slots: Vec::new(),
        }],
    );
    wait_for("all to be lost", || node.all_are(second, "EXIT"));
    println!("longest turn at the end {} ms", node.longest());
}
