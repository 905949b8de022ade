//! Orders of mbatchd: who may give them, starting, ending, and jobs that cannot begin. Orders after
//! a crash are in restarts.rs; limits that end a job are in limits.rs.

use super::*;
use crate::proto::launch::SetupStage;
use std::sync::Arc;

/// mbatchd gives an attempt up, and does not answer it.
#[test]
fn environment_that_a_forgotten_attempt_asked_for_is_asked_for_again() {
    let mut r = Rig::new();
    let env = SpoolRef { spool: 1, at: 0, len: 6 };
    let asked = |r: &Rig| r.told.iter().filter(|m| matches!(m, SbdMsg::NeedBlob { .. })).count();
    let forget = |job| SbdMsg::Forget { key: key(job), mail: String::new() };
    r.start(StartJob { env, ..order(1) });
    r.order(forget(1));
    r.start(StartJob { env, ..order(2) });
    assert_eq!(asked(&r), 2, "a later attempt asks: {:?}", r.told);
    r.start(StartJob { env, ..order(3) });
    r.order(forget(2));
    assert_eq!(asked(&r), 3, "it is asked for the one that waits: {:?}", r.told);
    r.order(SbdMsg::Blob { at: env, data: ByteStr::from("A=b\0\0\0") });
    assert_eq!(r.job_starts(), 1);
}

#[test]
fn a_job_from_order_to_forget() {
    let mut r = Rig::new();
    let env = SpoolRef { spool: 1, at: 0, len: 6 };
    r.start(StartJob { env, ..order(1) });
    assert!(matches!(r.told[..], [SbdMsg::NeedBlob { at }] if at == env));
    r.start(StartJob { env, ..order(1) });
    r.start(StartJob { env, ..order(2) });
    assert_eq!(r.told.len(), 2, "asked once: {:?}", r.told);
    assert_eq!(r.job_starts(), 0);
    r.told.clear();
    r.order(SbdMsg::Blob { at: env, data: ByteStr::from("A=b\0\0\0") });
    assert_eq!(r.job_starts(), 2);
    let phases: Vec<_> = r.states().into_iter().map(|s| (s.key.job, s.phase)).collect();
    assert_eq!(phases, [(1, AttemptPhase::Running), (2, AttemptPhase::Running)]);
    r.start(StartJob { env, ..order(1) });
    assert_eq!((r.job_starts(), r.last()), (2, AttemptPhase::Running));
    r.start(StartJob { env, ..order(3) });
    assert_eq!(r.job_starts(), 3, "the environment was kept");

    r.wait(3);
    r.told.clear();
    r.exits(501, 3 << 8);
    let s = r.states().pop().unwrap();
    assert_eq!((s.phase.clone(), s.time), (ended(3 << 8, 0), 1_000_003));
    assert_eq!((s.usage.utime_us, s.usage.max_mem_kb), (7 * US, 4096));
    let finish = r.plans.last().unwrap();
    let TaskPlan::Finish(f) = &finish.1.what else { panic!() };
    assert!(f.text.lossy().contains("\nExited with exit code 3.\n\nResource usage summary:"));
    // told again until forgotten
    r.greet(1);
    assert!(r.states().contains(&s));
    r.order(SbdMsg::Forget { key: key(1), mail: String::new() });
    r.greet(1);
    assert!(!r.states().contains(&s));
    assert!(r.journal.iter().any(|j| matches!(j, Journal::Forget { key: k } if *k == key(1))));
}

#[test]
fn post_execution_is_reported_at_its_end() {
    let posts = |r: &mut Rig| r.states().iter().map(|s| s.post).collect::<Vec<_>>();
    for (status, post) in [(0, Post::Done), (1 << 8, Post::Failed)] {
        let mut r = Rig::new();
        r.slow = true;
        r.start(StartJob { post_exec: "after".into(), ..order(1) });
        r.told.clear();
        r.exits(501, 0);
        assert_eq!(posts(&mut r), [Post::Running]);
        // an sbatchd that comes meanwhile goes on waiting
        r.crash();
        r.boot(true);
        r.greet(1);
        assert_eq!(posts(&mut r), [Post::Running]);
        r.exits(502, status);
        let s = r.states().pop().unwrap();
        assert_eq!((s.phase, s.post), (ended(0, 0), post));
        r.greet(1);
        assert_eq!(posts(&mut r), [post]);
    }
    // a job that goes back to its queue is not begun beside it
    let mut r = Rig::new();
    r.slow = true;
    let further = Further::from_iter([("Q", "3")]);
    let spec = JobSpec { further, ..JobSpec::default() };
    r.start(StartJob { spec: spec.into(), post_exec: "after".into(), ..order(1) });
    r.told.clear();
    r.exits(501, 3 << 8);
    assert_eq!(posts(&mut r), []);
    r.exits(502, 0);
    assert_eq!(posts(&mut r), [Post::Done]);
    // a launcher that has lost it; nothing to wait for; a copied file is none
    let mut r = Rig::new();
    r.slow = true;
    r.start(StartJob { post_exec: "after".into(), ..order(1) });
    r.exits(501, 0);
    r.told.clear();
    r.linked = false;
    r.feed(Input::Closed { conn: LAUNCHER });
    r.lau = Launcher::new(launcher_conf(), vec![]);
    r.feed_launcher(Input::Start);
    r.wait(1);
    assert_eq!(posts(&mut r).last(), Some(&Post::Failed));
    let copied = JobSpec { further: Further::from_iter([("f", "a < b")]), ..JobSpec::default() };
    for (n, spec) in [(2, JobSpec::default()), (3, copied)] {
        r.start(StartJob { spec: spec.into(), ..order(n) });
        r.told.clear();
        r.exits(r.next_pid, 0);
        assert_eq!(posts(&mut r), [Post::None], "{n}");
    }
}

/// A job with a command after it, that of the site or of the submitter's environment being part of
/// it or not.
fn with_post(site: bool, env: &str, minutes: u64) -> Rig {
    let mut r = Rig::new();
    r.slow = true;
    let place = SpoolRef { spool: 1, at: 0, len: env.len() as u32 };
    let (include_post, post_timeout) = (site, minutes * 60);
    let o = StartJob { post_exec: "after".into(), include_post, post_timeout, ..order(1) };
    r.start(StartJob { env: place, ..o });
    r.order(SbdMsg::Blob { at: place, data: ByteStr::from(env) });
    r.told.clear();
    r
}

#[test]
fn post_execution_may_be_part_of_the_job() {
    let says = |v: &str| format!("A=b\0LSB_JOB_INCLUDE_POSTPROC={v}\0");
    for (site, env, part) in [
        (true, "A=b\0".to_string(), true),
        (false, says("Y"), true),
        (false, says("y"), true),
        (true, says("N"), false),
        (false, "A=b\0".to_string(), false),
    ] {
        let mut r = with_post(site, &env, 0);
        r.exits(501, 3 << 8);
        let told: Vec<_> = r.states().into_iter().map(|s| (s.phase, s.post)).collect();
        let over = [(ended(3 << 8, 0), Post::Running)];
        assert_eq!(told, if part { &[][..] } else { &over[..] }, "{site} {env:?}");
        if !part {
            continue;
        }
        // neither a kill nor a stop acts on it, nor is there an end to it, whoever looks
        r.wait(100);
        r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
        r.act(1, 2, Act::Suspend);
        assert!(r.told.is_empty() && r.procs[&502].signals.is_empty());
        r.crash();
        r.boot(true);
        r.greet(1);
        assert_eq!(r.last(), AttemptPhase::Running);
        r.wait(100);
        assert!(r.told.is_empty(), "{:?}", r.told);
        // both ends are told as one, with the times of both
        r.exits(502, 0);
        let s = r.states().pop().unwrap();
        assert_eq!((s.phase, s.post), (ended(3 << 8, 0), Post::Done));
        assert_eq!((s.time, s.usage.utime_us), (1_000_200, 14 * US));
    }
    // that it runs is told also where the job itself is over at once
    let mut r = Rig::new();
    (r.slow, r.short) = (true, true);
    r.start(StartJob { post_exec: "after".into(), include_post: true, ..order(1) });
    assert_eq!(r.states().first().map(|s| s.phase.clone()), Some(AttemptPhase::Running));
}

#[test]
fn post_commands_of_the_queue_end_a_setup_that_failed_behind_its_pre_exec() {
    let begun = Ready { user: "u".into(), home: "/home/u".into(), ..Ready::default() };
    let failed = |at, exit, begun: &Option<Box<Ready>>| Setup::Failed {
        at,
        why: "no".into(),
        exit,
        begun: begun.clone(),
    };
    let reason = PendReason::PreExec.number();
    for (begun, at, exit, want) in [
        (None, SetupStage::PreExec, 3, AttemptPhase::Failed { reason }),
        (Some(Box::new(begun.clone())), SetupStage::PreExec, 3, AttemptPhase::Failed { reason }),
        (Some(Box::new(begun)), SetupStage::PreAbort, 99, ended(2 << 8, 0)),
    ] {
        let mut r = Rig::new();
        r.slow = true;
        r.setup = Some(failed(at, exit, &begun));
        let env = SpoolRef { spool: 1, at: 0, len: 4 };
        let further = Further::from_iter([("f", "a < b")]);
        let spec = JobSpec { post_exec: "own".into(), further, ..JobSpec::default() };
        let o = StartJob { post_exec: "after".into(), spec: spec.into(), env, ..order(1) };
        r.start(o);
        r.order(SbdMsg::Blob { at: env, data: ByteStr::from("A=b\0") });
        let told = |r: &mut Rig| r.states().pop().map(|s| s.phase);
        if begun.is_none() {
            assert_eq!(told(&mut r), Some(want));
            assert_eq!(r.plans.len(), 1);
            continue;
        }
        let TaskPlan::Finish(finish) = &r.plans[1].1.what else { panic!() };
        assert_eq!(finish.post, [launch::Hook::new(launch::HookOf::Queue, "after")]);
        assert!(finish.copies.is_empty() && finish.text.is_empty() && finish.mail.is_none());
        let aborted = at == SetupStage::PreAbort;
        let status = if aborted { 2 << 8 } else { 0 };
        let env = finish.env.lossy().into_owned();
        assert!(env.contains(&format!("HOME=/home/u\0USER=u\0PWD=\0LSB_JOBEXIT_STAT={status}\0")));
        assert_eq!(env.contains("LSB_JOBPEND=1\0"), !aborted);
        // the job is told of when the commands have ended, by whichever sbatchd
        r.setup = None;
        r.greet(1);
        let phase = if aborted { want.clone() } else { AttemptPhase::Starting };
        assert_eq!(told(&mut r), Some(phase.clone()));
        r.crash();
        r.boot(true);
        r.greet(1);
        assert_eq!(told(&mut r), Some(phase));
        r.exits(502, 0);
        let s = r.states().pop().unwrap();
        assert_eq!((s.phase, s.note.as_str(), r.plans.len()), (want, "no", 2));
        assert_eq!(s.post, if aborted { Post::Done } else { Post::None });
    }
}

#[test]
fn post_execution_is_killed_when_it_takes_too_long() {
    for part in [false, true] {
        let mut r = with_post(part, "A=b\0", 2);
        r.exits(501, 0);
        r.wait(100);
        r.crash();
        r.boot(true);
        r.greet(1);
        r.told.clear();
        r.wait(19);
        assert!(r.procs[&502].signals.is_empty() && r.told.is_empty());
        r.wait(1);
        let s = r.states().pop().unwrap();
        assert_eq!((s.phase, s.post), (ended(0, 0), Post::Failed), "{part}");
        assert!(r.procs.is_empty());
        // a killed one adds nothing to what the job has used
        assert_eq!(s.usage.utime_us, 7 * US);
    }
}

#[test]
fn only_an_mbatchd_of_this_epoch_gives_orders() {
    let mut r = Rig::new();
    r.greet(5);
    r.greet(4);
    assert_eq!(r.refused.len(), 1);
    for peer in [
        Peer::Daemon { daemon: Daemon::Mbatchd, host: "stranger".into() },
        Peer::Daemon { daemon: Daemon::Sbatchd, host: "m".into() },
        Peer::User { uid: 0, gid: 0, user: "root".into(), host: "m".into() },
    ] {
        let before = r.refused.len();
        r.feed(Input::Opened { conn: MBD + 1, peer });
        let msg = Msg::Sbd(SbdMsg::Start(Box::new(order(8))));
        r.feed(Input::Msg { conn: MBD + 1, msg });
        assert_eq!((r.refused.len(), r.job_starts()), (before + 2, 0));
    }
}

#[test]
fn terminate_is_int_term_kill_apart() {
    let mut r = Rig::new();
    r.template.ignores = vec![SIGINT, 15];
    r.start(order(1));
    let pid = r.pid();
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    assert_eq!(r.procs[&pid].signals, [SIGINT]);
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    r.act(1, 2, Act::Terminate { exit_info: term::ADMIN });
    r.wait(9);
    assert_eq!(r.procs[&pid].signals, [SIGINT]);
    r.wait(2);
    assert_eq!(r.procs[&pid].signals, [SIGINT, 15]);
    r.wait(10);
    assert_eq!(r.last(), ended(9, term::OWNER));

    // a parallel job is only killed
    r.start(StartJob { hosts: [("h1".into(), 2)].into(), ..order(2) });
    r.act(2, 1, Act::Terminate { exit_info: term::ADMIN });
    assert_eq!(r.last(), ended(9, term::ADMIN));
}

#[test]
fn a_forced_kill_overtakes_a_slow_one() {
    let mut r = Rig::new();
    r.template.ignores = vec![SIGINT, 15];
    r.start(order(1));
    r.act(1, 1, Act::Terminate { exit_info: term::OWNER });
    r.act(1, 2, Act::Terminate { exit_info: term::FORCE_OWNER });
    assert_eq!(r.last(), ended(9, term::FORCE_OWNER));
}

#[test]
fn of_a_short_job_its_end_alone_is_told() {
    let mut r = Rig::new();
    r.short = true;
    r.start(order(1));
    let states = r.states();
    assert_eq!(states.iter().map(|s| s.phase.clone()).collect::<Vec<_>>(), [ended(0, 0)]);
    // with all that is known of its start
    assert_eq!((states[0].pid, states[0].exec_user.as_str()), (501, "u"));
}

#[test]
fn failed_setup_ends_the_attempt_with_its_reason() {
    let fail = |at: launch::SetupStage| {
        let mut r = Rig::new();
        r.setup = Some(Setup::Failed { at, why: "no".into(), exit: 0, begun: None });
        r.start(order(1));
        let s = r.states().pop().unwrap();
        assert_eq!(s.note, "no");
        s.phase
    };
    assert_eq!(
        fail(launch::SetupStage::User),
        AttemptPhase::Failed { reason: PendReason::NoUser.number() }
    );
    assert_eq!(
        fail(launch::SetupStage::Input),
        AttemptPhase::Failed { reason: PendReason::JobOpenFiles.number() }
    );
    assert_eq!(fail(launch::SetupStage::Cwd), ended(2 << 8, term::CWD_NOTEXIST));
    // refused by the launcher
    let mut r = Rig::new();
    r.start(StartJob { uid: 10, ..order(1) });
    assert_eq!(r.last(), AttemptPhase::Failed { reason: PendReason::ExecInit.number() });
    const { assert!(TASKS_MAX > ATTEMPTS_MAX) };
}

#[test]
fn a_forgotten_job_is_killed() {
    let mut r = Rig::new();
    r.template.ignores = vec![SIGINT, 15];
    r.start(order(1));
    r.order(SbdMsg::Forget { key: key(1), mail: String::new() });
    assert!(r.procs.is_empty());
    r.told.clear();
    r.greet(1);
    assert!(r.states().is_empty());
}

#[test]
fn simulated_jobs_take_their_time_and_nothing_else() {
    let mut r = Rig::new();
    let params = SbdParams { simulated: true, ..SbdParams::default() };
    r.order(SbdMsg::Params(params.clone()));
    let mut o = order(1);
    Arc::make_mut(&mut o.spec).command = "sleep 30".into();
    r.start(o.clone());
    assert_eq!(r.last(), AttemptPhase::Running);
    r.wait(29);
    assert!(r.states().is_empty());
    r.wait(2);
    assert_eq!((r.last(), r.job_starts()), (ended(0, 0), 0));
    o.key.job = 2;
    r.start(o.clone());
    r.act(2, 1, Act::Terminate { exit_info: term::OWNER });
    assert_eq!(r.last(), ended(SIGINT, term::OWNER));
    // refused elsewhere
    r.crash();
    r.boot(false);
    r.greet(1);
    r.order(SbdMsg::Params(params));
    o.key.job = 3;
    r.start(o);
    assert_eq!(r.job_starts(), 1);
}

/// An sbatchd whose site has a mail program.
fn mailing() -> Rig {
    let mut r = Rig::new();
    let site = &mut r.sbd.as_mut().unwrap().conf.site;
    (site.mail_program, site.mail_to) = ("/usr/lib/sendmail".into(), "!U".into());
    r
}

fn mails(r: &Rig) -> Vec<String> {
    let mail = |p: &(TaskId, Plan)| match &p.1.what {
        TaskPlan::Finish(f) => f.mail.as_ref().map(|m| m.text.lossy().into_owned()),
        _ => None,
    };
    r.plans.iter().filter_map(mail).collect()
}

#[test]
fn the_user_of_a_job_that_is_held_before_it_ran_gets_a_mail() {
    let mut r = mailing();
    r.setup = Some(Setup::Failed {
        at: launch::SetupStage::Input,
        why: "no".into(),
        exit: 0,
        begun: None,
    });
    r.start(order(1));
    r.order(SbdMsg::Forget { key: key(1), mail: "It is held.\n".into() });
    let mails = mails(&r);
    assert_eq!(mails.len(), 1);
    let head = "From: LSF <adm>\nTo: u\nSubject: Job 1: <";
    assert!(mails[0].starts_with(head), "{}", mails[0]);
    assert!(mails[0].ends_with("> in cluster <c> could not be started\n\nIt is held.\n"));
    assert!(r.journal.iter().any(|j| matches!(j, Journal::Forget { key: k } if *k == key(1))));
}

/// The output is mailed with the last run: at the job's end, or after the run that leaves it held.
#[test]
fn runs_after_which_a_job_goes_back_to_its_queue_are_not_mailed_one_by_one() {
    for (last, status, want) in [(false, 3, 0), (true, 3, 1), (false, 4, 1), (false, 0, 1)] {
        let mut r = mailing();
        r.setup = Some(Setup::Ready(Box::new(Ready {
            kept: true,
            out: "/home/u/.lsbatch/1.out".into(),
            ..Ready::default()
        })));
        let further = Further::from_iter([("Q", "3")]);
        let spec = JobSpec { further, ..JobSpec::default() };
        r.start(StartJob { spec: spec.into(), last_requeue: last, ..order(1) });
        r.exits(501, status << 8);
        assert_eq!(mails(&r).len(), want, "{last} {status}");
    }
}

/// The short number begins again where mbatchd has given it 65,536 times.
#[test]
fn an_order_whose_short_number_began_again_is_acted_on_and_a_repeated_one_is_not() {
    let mut r = Rig::new();
    r.start(order(1));
    let act = |r: &mut Rig, seq, order, act| {
        r.order(SbdMsg::Act { key: key(1), seq, order, act, why: 0 })
    };
    act(&mut r, 0x1_ffff, 0x1_0000_ffff, Act::Suspend);
    assert_eq!(r.last(), AttemptPhase::Suspended);
    act(&mut r, 0x1_0000, 0x1_0001_0000, Act::Resume);
    assert_eq!(r.last(), AttemptPhase::Running);
    act(&mut r, 0x1_ffff, 0x1_0000_ffff, Act::Suspend);
    assert_eq!(r.states(), []);
}

/// bkill -s of a job that has not begun: nothing runs of it, or a command before it does.
#[test]
fn signal_before_the_job_ends_the_attempt_where_it_ends_a_command() {
    let failed = |at| Setup::Failed { at, why: "no".into(), exit: 1, begun: None };
    let reason = PendReason::PreExec.number();
    for (signal, want) in [(10, ended(10, 0)), (28, AttemptPhase::Failed { reason })] {
        let mut r = Rig::new();
        r.preparing = true;
        r.template.ignores = vec![10, 28];
        r.start(order(1));
        r.act(1, 1, Act::Signal { number: signal });
        r.crash();
        r.boot(true);
        r.greet(1);
        r.fails_before(1, failed(SetupStage::PreExec));
        assert_eq!(r.last(), want, "{signal}");
    }
    let waits = || {
        let mut r = Rig::new();
        r.start(StartJob { env: SpoolRef { spool: 1, at: 0, len: 4 }, ..order(1) });
        r
    };
    let mut r = waits();
    r.act(1, 1, Act::Signal { number: 10 });
    assert!(r.states().is_empty());
    r.act(1, 2, Act::Signal { number: 15 });
    assert_eq!((r.last(), r.job_starts()), (ended(15, 0), 0));
}
