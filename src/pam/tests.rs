//! The rows of pam's table of errors (pam(1)), each with its times and its exit code.

use super::*;
use crate::model::job::Usage;

/// A pam that expects three tasks, with time-outs of 20 s and 2 s.
struct Rig {
    pam: Pam,
    now: u64,
    out: Vec<PamEffect>,
}

const ENDED: i64 = 1_800_000_000;

fn rig() -> Rig {
    let job = JobRef { job: 7, idx: 0 };
    let hosts = ["h1", "h2", "h3"].map(str::to_owned).to_vec();
    let times = PamConf { register_within: 20, clean_delay: 2, ..PamConf::default() };
    let conf = PamConf { job, expected: 3, hosts, ..times };
    Rig { pam: Pam::new(conf, 0), now: 0, out: Vec::new() }
}

#[test]
fn interval_of_usage_grows_with_the_tasks_that_are_expected_up_to_a_day() {
    for (expected, factor, ms) in [
        (3, 0.01, 30),
        (4096, 0.01, 40_960),
        (1, 0.0004, 0),
        (5, 0.0, 0),
        (5, 1.5, 7_500),
        (4096, 100.0, USAGE_MS_MAX),
    ] {
        let conf = PamConf { expected, factor, ..PamConf::default() };
        assert_eq!(conf.usage_ms(), ms, "{expected} {factor}");
    }
}

impl Rig {
    fn step(&mut self, input: PamInput) -> &mut Rig {
        self.pam.step(self.now, input, &mut self.out);
        self
    }

    fn said(&mut self, conn: ConnId, msg: PamMsg) -> &mut Rig {
        let host = format!("h{conn}");
        self.step(PamInput::Said { conn, host, msg })
    }

    fn hello(&mut self, conn: ConnId) -> &mut Rig {
        self.said(conn, PamMsg::Hello { job: None, pid: 5, again: None, command: String::new() })
    }

    /// Registers and starts the tasks of these connections.
    fn run(&mut self, conns: &[ConnId]) -> &mut Rig {
        for &conn in conns {
            self.hello(conn).said(
                conn,
                PamMsg::Started { pid: 100 + conn as u32, ticks: 1, outside: String::new() },
            );
        }
        self.out.clear();
        self
    }

    fn fail(&mut self, conn: ConnId) -> &mut Rig {
        let why = "No such file or directory".into();
        self.hello(conn).said(conn, PamMsg::Failed { errno: 2, why })
    }

    fn exit(&mut self, conn: ConnId, status: i32) -> &mut Rig {
        let usage = Box::new(Usage::default());
        self.said(conn, PamMsg::Exited { status, usage, time: ENDED })
    }

    fn pjl(&mut self, status: i32) -> &mut Rig {
        self.step(PamInput::PjlEnded { status })
    }

    fn pass(&mut self, secs: u64) -> &mut Rig {
        self.now += secs * US;
        self.step(PamInput::Tick)
    }

    /// The effects since the last time, in short.
    fn done(&mut self) -> String {
        let all = std::mem::take(&mut self.out);
        let mut words: Vec<String> = Vec::new();
        for effect in all {
            match effect {
                PamEffect::Send { conn, msg: PamMsg::Signal { signal } } => {
                    words.push(format!("task@{conn}:{signal}"));
                }
                PamEffect::Send { .. } => {}
                PamEffect::Refuse { conn, why } => words.push(format!("refuse@{conn}:{why}")),
                PamEffect::SignalPjl { signal } => words.push(format!("pjl:{signal}")),
                PamEffect::SignalByRes { host, processes, signal } => {
                    let pids = processes.iter().map(|of| format!("{}.{}", of.pid, of.ticks));
                    let pids: Vec<String> = pids.collect();
                    words.push(format!("res@{host}:{}:{signal}", pids.join(",")));
                }
                PamEffect::Say(text) => words.push(format!("<{text}>")),
                PamEffect::End(end) => words.push(format!("{end:?}")),
            }
        }
        words.join(" ")
    }

    fn table(&self) -> Vec<String> {
        let row = |row: table::TaskRow| format!("{} {} {}", row.tid, row.host, row.status);
        self.pam.table().into_iter().map(row).collect()
    }
}

#[test]
fn end_is_the_pjls_when_all_tasks_have_ended() {
    let mut r = rig();
    r.run(&[1, 2, 3]);
    for conn in [3, 1, 2] {
        r.exit(conn, 0);
    }
    assert_eq!(r.done(), "");
    r.pjl(7 << 8);
    assert_eq!(r.done(), "AsPjl(1792)");
    assert_eq!(r.table(), ["0 h1 Done", "1 h2 Done", "2 h3 Done"]);
    assert_eq!(r.pam.table()[0].ended, Some(ENDED));
    assert_eq!(r.pam.deadline(), None);
}

#[test]
fn tasks_that_do_not_register_in_time_end_the_job() {
    let mut r = rig();
    r.run(&[1, 2]);
    assert_eq!(r.pam.deadline(), Some(20 * US));
    r.pass(19);
    assert_eq!(r.done(), "");
    r.pass(1);
    let words = "<timeout: 2 of 3 tasks registered within 20 seconds> task@1:15 task@2:15 pjl:15";
    assert_eq!(r.done(), words);
    // nothing more is begun
    r.hello(3);
    assert_eq!(r.done(), "refuse@3:the job is being ended");
    r.exit(1, 15).pass(9);
    assert_eq!(r.done(), "");
    r.pass(1);
    assert_eq!(r.done(), "task@2:9 pjl:9");
    r.exit(2, 9).pjl(9);
    assert_eq!(r.done(), "pjl:9 Code(125)");
    assert_eq!(r.table(), ["0 h1 Killed by PAM", "1 h2 Killed by PAM"]);
}

#[test]
fn host_that_does_not_answer_to_the_end_is_named() {
    let mut r = rig();
    r.run(&[1, 2]).pass(20);
    r.done();
    r.exit(1, 15).pjl(15).pass(10);
    assert_eq!(r.done(), "task@2:9");
    r.pass(5);
    let words = "<host h2 did not answer: tasks may be left there> pjl:9 Code(125)";
    assert_eq!(r.done(), words);
    assert_eq!(r.table()[1], "1 h2 Unknown");
}

#[test]
fn task_that_cannot_be_started_ends_the_job_once_all_have_reported() {
    let mut r = rig();
    r.run(&[1]).fail(2);
    assert_eq!(r.done(), "");
    r.hello(3);
    assert_eq!(r.done(), "");
    r.said(3, PamMsg::Started { pid: 9, ticks: 1, outside: String::new() });
    let words = "<task 1 on h2 could not be started: No such file or directory>";
    assert_eq!(r.done(), format!("{words} task@1:15 task@3:15 pjl:15"));
    r.exit(1, 15).exit(3, 15).pjl(0);
    assert_eq!(r.done(), "pjl:9 Code(125)");
    assert_eq!(r.table()[1], "1 h2 Failed (No such file or directory)");
}

#[test]
fn lost_starter_leaves_its_task_unknown_until_the_pjl_ends() {
    let mut r = rig();
    r.run(&[1, 2, 3]);
    r.step(PamInput::Closed { conn: 2 }).exit(1, 0).exit(3, 0);
    // those that try to come back, and then the delay after a bad end
    assert_eq!(r.pam.deadline(), Some(32 * US));
    r.pass(31);
    assert_eq!(r.done(), "");
    r.pass(1);
    assert_eq!(r.done(), "res@h2:102.1:9");
    assert_eq!(r.pam.deadline(), None);
    r.pass(1000);
    assert_eq!(r.done(), "");
    r.pjl(0);
    assert_eq!(r.done(), "AsPjl(0)");
    assert_eq!(r.table()[1], "1 h2 Unknown");
}

#[test]
fn task_whose_starter_is_cut_off_is_signalled_by_res_and_killed_at_the_end() {
    let mut r = rig();
    r.run(&[1, 2]).hello(3);
    // of one host, and one that has not started
    r.step(PamInput::Said {
        conn: 12,
        host: "h2".into(),
        msg: PamMsg::Hello { job: None, pid: 5, again: None, command: String::new() },
    });
    let started = PamMsg::Started { pid: 112, ticks: 4, outside: String::new() };
    r.step(PamInput::Said { conn: 12, host: "h2".into(), msg: started });
    for conn in [2, 12, 3] {
        r.step(PamInput::Closed { conn });
    }
    r.done();
    r.step(PamInput::Signal { signal: 10 });
    assert_eq!(r.done(), "pjl:10 task@1:10 res@h2:102.1,112.4:10");
    r.step(PamInput::NotByRes { host: "h2".into() });
    r.step(PamInput::NotByRes { host: "h2".into() });
    let words = "<host h2: RES does not signal the tasks whose TaskStarter is cut off: they may be \
                 left there>";
    assert_eq!(r.done(), words);
    // one of them is back when the job is ended, and goes for good during that
    let again = PamMsg::Hello { job: None, pid: 5, again: Some(1), command: String::new() };
    r.step(PamInput::Said { conn: 22, host: "h2".into(), msg: again });
    r.done();
    r.pass(20).pjl(0);
    assert_eq!(r.done(), "task@1:15 task@22:15 res@h2:112.4:9");
    r.step(PamInput::Closed { conn: 22 }).pass(10);
    assert_eq!(r.done(), "task@1:9 res@h2:102.1:9");
    r.exit(1, 9);
    assert_eq!(r.done(), "AsPjl(0)");
}

#[test]
fn starter_that_connects_again_has_its_task_again() {
    let mut r = rig();
    r.run(&[1, 2, 3]);
    let again = |tid| PamMsg::Hello { job: None, pid: 5, again: Some(tid), command: String::new() };
    r.step(PamInput::Closed { conn: 2 });
    // not that of another host
    r.step(PamInput::Said { conn: 12, host: "h1".into(), msg: again(1) });
    r.step(PamInput::Said { conn: 13, host: "h2".into(), msg: again(9) });
    assert_eq!(r.done(), "refuse@12:no task 1 on host h1 refuse@13:no task 9 on host h2");
    r.step(PamInput::Said { conn: 14, host: "h2".into(), msg: again(1) });
    r.step(PamInput::Signal { signal: 10 });
    assert_eq!(r.done(), "pjl:10 task@1:10 task@14:10 task@3:10");
    let usage = Box::new(Usage::default());
    let msg = PamMsg::Exited { status: 0, usage, time: ENDED };
    r.step(PamInput::Said { conn: 14, host: "h2".into(), msg });
    assert_eq!(r.table()[1], "1 h2 Done");
}

#[test]
fn end_of_the_pjl_ends_the_tasks_that_are_left() {
    let mut r = rig();
    r.run(&[1, 2, 3]).exit(2, 0).pjl(0);
    assert_eq!(r.done(), "task@1:15 task@3:15");
    r.exit(1, 15).pass(10);
    assert_eq!(r.done(), "task@3:9");
    r.exit(3, 9);
    assert_eq!(r.done(), "AsPjl(0)");
    assert_eq!(r.table(), ["0 h1 Killed by PAM", "1 h2 Done", "2 h3 Killed by PAM"]);
}

#[test]
fn pjl_that_does_not_end_after_its_tasks_is_ended() {
    let mut r = rig();
    r.run(&[1, 2, 3]);
    // the delay after the bad end is longer than that of the PJL here
    r.pam.conf.clean_delay = 1000;
    r.exit(1, 0).exit(2, 5 << 8).exit(3, 0);
    assert_eq!(r.pam.deadline(), Some(20 * US));
    r.pass(20);
    assert_eq!(r.done(), "<the PJL did not end> pjl:15");
    r.pass(10);
    assert_eq!(r.done(), "pjl:9");
    r.pjl(9);
    assert_eq!(r.done(), "pjl:9 Code(5)");
    let mut r = rig();
    r.run(&[1, 2, 3]).exit(1, 0).exit(2, 0).exit(3, 0).pass(20);
    r.pjl(15);
    assert_eq!(r.done(), "<the PJL did not end> pjl:15 pjl:9 Code(125)");
}

#[test]
fn bad_end_of_a_task_ends_the_others_after_the_delay() {
    let mut r = rig();
    r.run(&[1, 2, 3]).exit(2, 9);
    assert_eq!(r.pam.deadline(), Some(2 * US));
    r.pass(2);
    assert_eq!(r.done(), "task@1:15 task@3:15");
    r.exit(1, 15).exit(3, 0).pass(2);
    r.pjl(137 << 8);
    // the PJL has ended by itself in time: its code
    assert_eq!(r.done(), format!("pjl:9 AsPjl({})", 137 << 8));
    assert_eq!(r.table(), ["0 h1 Killed by PAM", "1 h2 Signal (9)", "2 h3 Done"]);
    // and one that does not
    let mut r = rig();
    r.run(&[1, 2, 3]).exit(2, 9).pass(2);
    r.exit(1, 15).exit(3, 15);
    r.done();
    r.pass(3);
    assert_eq!(r.done(), "pjl:15");
    r.pass(10);
    assert_eq!(r.done(), "pjl:9");
    r.pjl(9);
    assert_eq!(r.done(), "pjl:9 Code(137)");
}

#[test]
fn pjl_that_ends_without_any_task_says_so_where_its_code_does_not() {
    let mut r = rig();
    r.pjl(0);
    assert_eq!(r.done(), "<no task registered> AsPjl(0)");
    assert!(r.table().is_empty());
    let mut r = rig();
    r.pjl(3 << 8);
    assert_eq!(r.done(), "AsPjl(768)");
}

#[test]
fn more_tasks_than_expected_are_tasks_too() {
    let mut r = rig();
    r.run(&[1, 2, 3]);
    r.step(PamInput::Said {
        conn: 9,
        host: "h1".into(),
        msg: PamMsg::Hello { job: None, pid: 5, again: None, command: String::new() },
    });
    assert_eq!(r.pam.table().len(), 4);
    assert_eq!(r.done(), "");
}

#[test]
fn starter_of_another_job_or_host_is_refused() {
    let mut r = rig();
    let job = Some(JobRef { job: 8, idx: 0 });
    r.said(1, PamMsg::Hello { job, pid: 5, again: None, command: String::new() });
    assert_eq!(r.done(), "refuse@1:this pam is in job <7>");
    r.said(9, PamMsg::Hello { job: None, pid: 5, again: None, command: String::new() });
    assert_eq!(r.done(), "refuse@9:host h9 is not for tasks of this pam");
    r.said(2, PamMsg::Started { pid: 1, ticks: 1, outside: String::new() });
    assert_eq!(r.done(), "refuse@2:no hello");
    assert!(r.table().is_empty());
}

#[test]
fn task_that_starts_during_the_end_is_ended_at_once() {
    let mut r = rig();
    r.run(&[1, 2]).hello(3).pjl(0);
    assert_eq!(r.done(), "task@1:15 task@2:15");
    r.said(3, PamMsg::Started { pid: 9, ticks: 1, outside: String::new() });
    assert_eq!(r.done(), "task@3:15");
}

#[test]
fn tasks_that_are_not_in_the_job_are_told_once_of_each_host() {
    let mut r = rig();
    for conn in [1, 2] {
        r.hello(conn);
        for _ in 0..2 {
            r.said(conn, PamMsg::Started { pid: 9, ticks: 1, outside: "RES: down".into() });
        }
    }
    let words = |host: &str| {
        format!(
            "<host {host}: tasks are not in the job: its usage and limits do not count them, and \
             bkill does not reach them: RES: down>"
        )
    };
    let said = r.done();
    assert_eq!(said, format!("{} {}", words("h1"), words("h2")));
}
