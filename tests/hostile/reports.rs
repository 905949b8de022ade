//! A compute node turned against the cluster: in place of its sbatchd a program of the attacker's,
//! with the cluster's own key and the node's own address, speaks for jobs of another host. Every
//! message that there is, each for a job of the other host alone and for one that the node itself
//! is a further host of.

use crate::rig::{Rig, job_id, wait_for};
use crate::script::take_over;
use lsf::log::codec::read_record;
use lsf::model::JobKey;
use lsf::model::event::Event;
use lsf::model::job::{End, SpoolRef, Usage};
use lsf::proto::Msg;
use lsf::proto::sbd::{Act, AttemptPhase, Post, SbdMsg, SbdParams, StartJob, TaskState};
use lsf::proto::validation::Verdict;

/// The place of a job's environment: the attacker is taken to know it.
fn env_of(rig: &Rig, job: u32) -> SpoolRef {
    let log = std::fs::read(rig.logdir().join("lsb.events")).unwrap();
    let lines = log.split_inclusive(|b| *b == b'\n');
    let mut new = lines.filter_map(|l| match read_record(l).ok()?.event {
        Event::JobNew(new) if new.job == job => Some(new.env),
        _ => None,
    });
    new.next().unwrap()
}

pub(super) fn refused(rig: &Rig) -> u64 {
    let said = rig.ok("badmin", &["showstatus"]);
    let row = said.lines().find_map(|l| l.trim().strip_prefix("Refused reports:"));
    row.map_or(0, |n| n.trim().parse().unwrap())
}

/// Every message about an attempt that a further host of it may send, with its name.
fn of_members(key: JobKey) -> Vec<(&'static str, SbdMsg)> {
    let usage = Usage { mem_kb: 7_777_777, max_mem_kb: 7_777_777, ..Usage::default() };
    let (pids, groups, over_memory) = (vec![1], vec![1], true);
    vec![
        ("HostUsage", SbdMsg::HostUsage { key, usage: usage.into(), pids, groups, over_memory }),
        ("Left", SbdMsg::Left { key, usage: usage.into() }),
        ("TaskGone", SbdMsg::TaskGone { key, status: 11 }),
    ]
}

fn inventory(boot_id: &str, tasks: Vec<TaskState>) -> SbdMsg {
    let (boot_id, members) = (boot_id.to_owned(), None);
    SbdMsg::Inventory {
        boot_id,
        tasks,
        more: false,
        members,
        validates: false,
        unjoined: Vec::new(),
        member_slots: Vec::new(),
    }
}

/// Every other message about an attempt, with its name.
fn messages(key: JobKey, env: SpoolRef) -> Vec<(&'static str, SbdMsg)> {
    let usage = Usage { mem_kb: 7_777_777, max_mem_kb: 7_777_777, ..Usage::default() };
    let ended = AttemptPhase::Ended { end: End::Status(0), exit_info: 0 };
    let state = |phase| TaskState { key, phase, pid: 1, usage, ..TaskState::default() };
    let posted = TaskState { post: Post::Failed, ..state(ended.clone()) };
    let lost = AttemptPhase::Ended { end: End::Unknown, exit_info: 9002 };
    let told = |t| SbdMsg::State(Box::new(t));
    let (pids, pgids, groups) = (vec![1], vec![1], vec![]);
    vec![
        ("State: it has ended", told(state(ended.clone()))),
        ("State: its host was restarted", told(state(lost))),
        ("State: it runs", told(state(AttemptPhase::Running))),
        ("State: it is suspended", told(state(AttemptPhase::Suspended))),
        ("State: it could not be started", told(state(AttemptPhase::Failed { reason: 11 }))),
        ("State: what ran after it has failed", told(posted)),
        ("Usage", SbdMsg::Usage { key, usage: usage.into(), pids, pgids, groups }),
        ("NeedBlob", SbdMsg::NeedBlob { at: env }),
        ("AskUsage", SbdMsg::AskUsage { key }),
        ("UsageTold", SbdMsg::UsageTold { key, usage: usage.into(), without: vec![] }),
        ("Inventory", inventory("of its own", vec![state(ended)])),
        ("Start", SbdMsg::Start(Box::new(StartJob { key, ..StartJob::default() }))),
        (
            "Act",
            SbdMsg::Act {
                key,
                seq: u32::MAX,
                order: u64::MAX,
                act: Act::Terminate { exit_info: 1 },
                why: 0,
            },
        ),
        ("Join", SbdMsg::Join(Box::new(StartJob { key, ..StartJob::default() }))),
        ("Leave", SbdMsg::Leave { key }),
        ("Joined", SbdMsg::Joined { key }),
        ("JoinRefused", SbdMsg::JoinRefused { key, why: "no".into() }),
        ("Validate", SbdMsg::Validate(Box::default())),
        ("Validated", SbdMsg::Validated { number: 1, verdict: Verdict::Accepted }),
        ("Forget", SbdMsg::Forget { key, mail: String::new() }),
        ("Params", SbdMsg::Params(SbdParams::default())),
        ("Logging", SbdMsg::Logging(lsf::proto::Logging::default())),
        ("Blob", SbdMsg::Blob { at: env, data: lsf::model::ByteStr::default() }),
        ("Hello", {
            let (cluster, params) = (String::new(), SbdParams::default());
            SbdMsg::Hello { epoch: u64::MAX, cluster, params, pieces: true }
        }),
    ]
}

#[test]
fn reports_of_a_host_about_jobs_of_another_are_rejected() {
    let rig = Rig::up("reports", 2);
    rig.ready();
    wait_for("both hosts", || {
        rig.run("bhosts", &["-w"]).out.lines().filter(|l| l.contains(" ok ")).count() == 2
    });
    let submit = |args: &[&str]| {
        let secret = "SECRET=of-the-user";
        let mut c = rig.cmd("bsub");
        c.args(args).args(["-o", "/dev/null", "sleep 600"]);
        c.env(secret.split_once('=').unwrap().0, "of-the-user");
        let said = crate::rig::Said::from(c.output().unwrap());
        let job = job_id(&said.out).unwrap_or_else(|| panic!("{}", said.err));
        wait_for("the job to run", || rig.stat(job) == "RUN");
        job
    };
    rig.write("both", "host1 1\nhost2 1\n");
    let alone = submit(&["-m", "host1"]);
    let both = submit(&["-hostfile", rig.path("both").to_str().unwrap()]);
    assert_eq!(rig.field(&both.to_string(), "first_host"), "host1");
    let script = take_over(&rig);
    wait_for("the host", || rig.run("bhosts", &["-w", "host2"]).out.contains("host2"));
    assert_eq!(refused(&rig), 0);
    let mut n = 0;
    for job in [alone, both] {
        let key = JobKey { job, idx: 0, attempt: 1 };
        // of a job of which it is a further host it may speak
        let more = if job == alone { of_members(key) } else { vec![] };
        for (what, msg) in messages(key, env_of(&rig, job)).into_iter().chain(more) {
            n += 1;
            script.lock().unwrap().tell(msg);
            wait_for(&format!("{what} of job {job} to be refused"), || refused(&rig) == n);
            assert_eq!(rig.stat(job), "RUN", "{what}");
        }
        let mem = rig.field(&job.to_string(), "max_mem");
        assert!(!mem.contains("7.4"), "{mem}");
    }
    // the same by the one who calls instead of being called
    for (what, msg) in messages(JobKey { job: alone, idx: 0, attempt: 1 }, env_of(&rig, alone)) {
        n += 1;
        script.lock().unwrap().call.push(Msg::Sbd(msg));
        wait_for(&format!("{what} by a caller to be refused"), || refused(&rig) == n);
    }
    // one that says of nothing that it has it says nothing of what others have
    let tasks = Vec::new();
    let none = inventory("another", tasks);
    let last =
        SbdMsg::Forget { key: JobKey { job: alone, idx: 0, attempt: 1 }, mail: String::new() };
    script.lock().unwrap().say.extend([none, last].map(Msg::Sbd));
    wait_for("the last to be refused", || refused(&rig) == n + 1);
    for job in [alone, both] {
        assert_eq!(rig.stat(job), "RUN");
        let log = std::fs::read_to_string(rig.logdir().join("lsb.events")).unwrap();
        let of = |l: &&str| {
            let mut words = l.split(' ');
            words.next() == Some("\"JOB_STATUS\"") && words.nth(2) == Some(&job.to_string())
        };
        assert_eq!(log.lines().filter(of).count(), 0);
    }
    let heard = &script.lock().unwrap().heard;
    let got = heard.iter().any(|m| matches!(m, Msg::Sbd(SbdMsg::Blob { .. } | SbdMsg::Start(_))));
    assert!(!got, "{heard:?}");
    log_names_the_host_in_few_lines(&rig, alone);
    for job in [alone, both] {
        rig.ok("bkill", &[&job.to_string()]);
        assert_eq!(rig.end_of(job), "EXIT");
    }
}

fn log_names_the_host_in_few_lines(rig: &Rig, alone: u32) {
    let mut logs = Vec::new();
    crate::rig::find(&rig.dir, "mbatchd.log.host1", &mut logs);
    let text = std::fs::read_to_string(logs.pop().unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|l| l.contains("host2: ")).collect();
    let first = format!("host2: the state of job <{alone}>, which is on host1: refused");
    assert!(lines.iter().any(|l| l.contains(&first)), "{lines:?}");
    assert!(lines.len() < 10, "{lines:?}");
}
