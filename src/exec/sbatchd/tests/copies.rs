//! Files that are copied back at the end of jobs, output that comes then, and what jobs leave.

use super::*;
use crate::exec::sbatchd::tidy::{TIDY_AGAIN, TIDY_MOST};
use crate::exec::sbatchd::tidy_table::TIDY_PAUSE;

const ENV: SpoolRef = SpoolRef { spool: 1, at: 0, len: 6 };

/// A job that brings a file back.
fn bringing(n: u32) -> StartJob {
    let further = Further::from_iter([("f", "c < r")]);
    StartJob {
        spec: JobSpec { further, ..JobSpec::default() }.into(),
        env: ENV,
        user: "u".into(),
        ..order(n)
    }
}

fn began(r: &mut Rig) -> u32 {
    r.start(bringing(1));
    r.order(SbdMsg::Blob { at: ENV, data: b"MINE=1".to_vec().into() });
    assert_eq!(r.last(), AttemptPhase::Running);
    r.copying = true;
    r.pid()
}

fn finishes(r: &Rig) -> Vec<FinishPlan> {
    let of = |p: &(TaskId, Plan)| match &p.1.what {
        TaskPlan::Finish(what) if p.0.key.job != 0 => Some(FinishPlan::clone(what)),
        _ => None,
    };
    r.plans.iter().filter_map(of).collect()
}

#[test]
fn a_job_ends_when_its_files_are_back() {
    let mut r = Rig::new();
    let pid = began(&mut r);
    r.exits(pid, 3 << 8);
    let plan = finishes(&r).pop().unwrap();
    let shown: Vec<&str> = plan.copies.iter().map(|c| c.shown.as_str()).collect();
    assert_eq!((shown, plan.post.len()), (vec!["c < r"], 0));
    // however long it takes
    r.wait(3600);
    assert_eq!(r.states(), []);
    r.copied(1, "file transfer <c < r>: no space");
    let state = r.states().pop().unwrap();
    assert_eq!(
        (state.phase, state.after.as_str()),
        (ended(3 << 8, 0), "file transfer <c < r>: no space")
    );
    assert_eq!(state.time, r.now.secs(), "the transfer is part of it");
}

#[test]
fn a_new_sbatchd_and_a_new_launcher_wait_for_the_files_too() {
    let mut r = Rig::new();
    let pid = began(&mut r);
    r.exits(pid, 0);
    r.crash();
    r.wait(5);
    r.boot(true);
    r.greet(1);
    r.order(SbdMsg::Blob { at: ENV, data: b"MINE=1".to_vec().into() });
    let over =
        |r: &mut Rig| r.states().iter().any(|s| matches!(s.phase, AttemptPhase::Ended { .. }));
    assert!(!over(&mut r));
    assert_eq!(finishes(&r).len(), 1, "they are not copied twice");
    // a launcher that comes after does not hear what its predecessor's starter tells
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    let journal = std::mem::take(&mut r.journal);
    r.lau = Launcher::new(launcher_conf(), journal);
    r.feed_launcher(Input::Start);
    r.wait(5);
    assert!(!over(&mut r));
    let pid = r.pid();
    r.procs.remove(&pid);
    r.wait(5);
    let state = r.states().pop().unwrap();
    assert_eq!(
        (state.phase, state.after.as_str()),
        (ended(0, 0), "file transfers back were cut short")
    );
    assert_eq!(finishes(&r).len(), 1);
}

#[test]
fn a_kill_ends_the_copying() {
    let mut r = Rig::new();
    let pid = began(&mut r);
    r.exits(pid, 0);
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    let state = r.states().pop().unwrap();
    assert_eq!(
        (state.phase, state.after.as_str()),
        (ended(0, 0), "file transfers back were cut short")
    );
}

#[test]
fn the_site_or_the_submitter_says_where_output_goes_meanwhile() {
    let buffered = |site: bool, env: &[u8]| {
        let site = HostEnvironment { direct: site, ..HostEnvironment::default() };
        match plan::plan(&site, &order(1), env, b"").what {
            TaskPlan::Job(job) => job.buffered,
            _ => panic!(),
        }
    };
    assert_eq!((buffered(false, b""), buffered(true, b"")), (true, false));
    assert!(!buffered(false, b"LSB_STDOUT_DIRECT=Y\0"));
    assert!(buffered(true, b"LSB_STDOUT_DIRECT=N\0"));
}

#[test]
fn output_that_comes_at_the_end_has_its_report_above_it() {
    let mut r = Rig::new();
    let ready = Ready {
        out: "/o".into(),
        buffer: "/b".into(),
        err: "/e".into(),
        err_buffer: "/eb".into(),
        ..Ready::default()
    };
    r.setup = Some(Setup::Ready(Box::new(ready)));
    let spec = JobSpec { err_file: "e".into(), umask: 0o27, ..JobSpec::default() };
    r.start(StartJob { spec: spec.into(), ..order(1) });
    let pid = r.pid();
    r.exits(pid, 0);
    let plan = finishes(&r).pop().unwrap();
    let text = plan.text.lossy().into_owned();
    assert!(text.starts_with("Sender: LSF System <adm@h1>\nSubject: Job 1:"), "{text}");
    assert!(text.ends_with("\nThe output (if any) follows:\n\n"), "{text}");
    let tail = "\n\nPS:\n\nRead file <e> for stderr output of this job.\n\n";
    assert_eq!(plan.tail.lossy(), tail);
    assert_eq!((plan.buffer, plan.err, plan.err_buffer), ("/b".into(), "/e".into(), "/eb".into()));
    assert_eq!((plan.umask, plan.over), (Some(0o27), false));
}

fn tidied(r: &Rig) -> usize {
    r.plans.iter().filter(|p| p.0.key.job == 0).count()
}

#[test]
fn files_that_jobs_left_are_removed_once_none_of_the_user_runs() {
    let mut r = Rig::new();
    let pause = TIDY_PAUSE / US;
    r.start(order(1));
    let one = r.pid();
    r.start(order(2));
    r.exits(one, 0);
    r.wait(2 * pause);
    assert_eq!(tidied(&r), 0, "one runs");
    let two = r.pid();
    r.exits(two, 0);
    r.wait(pause - 1);
    assert_eq!(tidied(&r), 0);
    r.wait(2);
    let (id, plan) = r.plans.last().cloned().unwrap();
    assert_eq!((id.key.job, plan.uid), (0, 9));
    let TaskPlan::Finish(what) = plan.what else { panic!() };
    assert_eq!(what.tidy.map(|t| (t.host, t.keep_secs)), Some(("h1".into(), KEEP_SECS)));
    r.wait(2 * TIDY_AGAIN / US);
    assert_eq!(tidied(&r), 1, "nothing was left");
    // a job that comes meanwhile waits for it
    r.start(order(3));
    let three = r.pid();
    r.exits(three, 0);
    r.copying = true;
    r.wait(pause + 1);
    assert_eq!(tidied(&r), 2);
    let starts = r.job_starts();
    r.start(order(4));
    assert_eq!(r.job_starts(), starts);
    let pid = r.pid();
    r.exits(pid, 0);
    assert_eq!(r.job_starts(), starts + 1);
    // but not for ever where the user's directory does not answer
    let four = r.pid();
    r.copying = false;
    r.exits(four, 0);
    r.copying = true;
    r.wait(pause + 1);
    assert_eq!(tidied(&r), 3);
    let hangs = r.pid();
    r.start(order(5));
    r.wait(TIDY_MOST / US - 2);
    assert_eq!((r.job_starts(), r.procs.contains_key(&hangs)), (starts + 1, true));
    r.wait(4);
    assert_eq!((r.job_starts(), r.procs.contains_key(&hangs)), (starts + 2, false));
}
