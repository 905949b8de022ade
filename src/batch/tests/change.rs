//! bswitch, btop, bbot, brequeue and bmod.

use super::*;
use crate::conf::types::{Limit, TimeLimit};
use crate::model::further::Further;
use crate::model::job::{Limits, SpoolRef};
use crate::model::limits::LimitKind;
use crate::model::reason::PendReason;
use crate::model::specfield::SpecField;

fn order(m: &Mbatchd, jobs: &[u32]) -> Vec<u32> {
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(|id| m.state.spot(m.state.job(*id).unwrap()));
    jobs
}

#[test]
fn jobs_of_one_place_are_all_dispatched() {
    let mut r = Rig::new();
    let full: Vec<u32> = (0..4).map(|_| r.submit(spec("x")).unwrap()).collect();
    let mut ends = r.starts();
    assert_eq!(ends.len(), full.len());
    let mine: Vec<u32> = (0..3).map(|_| r.submit(spec("x")).unwrap()).collect();
    // each was moved to the top of another queue, and switched
    for job in &mine[..2] {
        let place = Some(crate::model::event::QueuePosition::submitted(1, 1));
        let (at, uid, user) = (JobRef { job: *job, idx: 0 }, 1001, "ann".to_string());
        r.mbd.sched.drop_entry(*job);
        let moved = Event::JobMove { at, position: 1, top: true, uid, user, place };
        r.mbd.emit(&mut StepContext { now: r.now, out: &mut Vec::new() }, moved);
        r.mbd.refresh(*job);
    }
    let mut went = Vec::new();
    while let Some((conn, key)) = ends.pop() {
        r.report(conn, key, done());
        for (conn, key) in r.starts() {
            went.push(key.job);
            ends.insert(0, (conn, key));
        }
    }
    assert_eq!(went, mine);
}

#[test]
fn jobs_are_moved_among_their_users_own() {
    let mut r = Rig::new();
    let full: Vec<u32> = (0..4).map(|_| r.submit(spec("x")).unwrap()).collect();
    let started = r.starts();
    let mine: Vec<u32> = (0..3).map(|_| r.submit(spec("x")).unwrap()).collect();
    let his = match r
        .ask(OTHER, ClientMsg::Submit(Box::new(Submit { spec: spec("y"), ..Default::default() })))
    {
        Some(Msg::Client(ClientMsg::Submitted { job, .. })) => job,
        other => panic!("{other:?}"),
    };
    let last = r.submit(spec("x")).unwrap();
    let all = [mine[0], mine[1], mine[2], his, last];
    let top = |position| Verb::Move { top: true, position };
    let bottom = |position| Verb::Move { top: false, position };
    // The job goes to the top of its user's jobs, all of which were submitted before.
    assert_eq!(r.does(USER, top(1), last).place, 1);
    assert_eq!(order(&r.mbd, &all), [last, mine[0], mine[1], mine[2], his]);
    // The job does not go before jobs of other users.
    assert_eq!(r.does(OTHER, top(1), his).place, 1);
    assert_eq!(order(&r.mbd, &all)[4], his);
    assert_eq!(r.does(OTHER, top(1), last).code, err::PERMISSION);
    assert_eq!(r.does(USER, bottom(2), last).place, 2);
    assert_eq!(order(&r.mbd, &all), [mine[0], mine[1], last, mine[2], his]);
    // Beyond the range: as far as it goes.
    assert_eq!(r.does(USER, bottom(99), mine[2]).place, 4);
    assert_eq!(order(&r.mbd, &all), [mine[2], mine[0], mine[1], last, his]);
    assert_eq!(r.does(ADMIN, top(1), his).place, 1);
    assert_eq!(r.does(ADMIN, bottom(1), mine[2]).place, 1);
    let now = [his, mine[0], mine[1], last, mine[2]];
    assert_eq!(order(&r.mbd, &all), now);
    assert_eq!(order(&r.restarted(), &all), now);
    assert_eq!(r.does(USER, top(1), full[0]).code, err::JOB_STARTED);
    // The jobs are dispatched in that order.
    let mut went = Vec::new();
    let mut ends = started;
    while let Some((conn, key)) = ends.pop() {
        r.report(conn, key, done());
        for (conn, key) in r.starts() {
            went.push(key.job);
            ends.insert(0, (conn, key));
        }
    }
    assert_eq!(went, now);
}

#[test]
fn a_job_is_moved_among_those_of_its_queue_and_priority() {
    let mut c = conf();
    c.batch.params.max_user_priority = Some(100);
    let mut r = Rig::of(c);
    let held = |queue: &str, priority| JobSpec {
        queue: queue.into(),
        priority,
        options2: crate::model::job::opt2::HOLD,
        ..spec("x")
    };
    let ids = [("normal", 50), ("high", 50), ("normal", 60), ("normal", 50)]
        .map(|(queue, priority)| r.submit(held(queue, priority)).unwrap());
    for conn in [USER, ADMIN] {
        for top in [true, false] {
            let place = r.does(conn, Verb::Move { top, position: 99 }, ids[0]).place;
            assert_eq!(place, 2, "{conn} {top}");
        }
    }
}

#[test]
fn places_may_be_the_administrators_matter() {
    let mut c = conf();
    c.batch.params.job_position_control_by_admin = true;
    let mut r = Rig::of(c);
    let hold = JobSpec { options2: crate::model::job::opt2::HOLD, ..spec("x") };
    let id = r.submit(hold).unwrap();
    let top = Verb::Move { top: true, position: 1 };
    assert_eq!(r.does(USER, top.clone(), id).code, err::PERMISSION);
    assert_eq!(r.does(ADMIN, top, id).code, 0);
}

#[test]
fn a_job_goes_to_another_queue_with_its_counters() {
    let mut r = Rig::new();
    for _ in 0..4 {
        r.submit(spec("x")).unwrap();
    }
    let started = r.starts();
    let (a, b) = (r.submit(spec("a")).unwrap(), r.submit(spec("b")).unwrap());
    let to = |q: &str| Verb::Switch { queue: q.into() };
    assert_eq!(r.does(OTHER, to("high"), b).code, err::PERMISSION);
    assert_eq!(r.does(USER, to("high"), b).code, 0);
    assert_eq!(r.does(USER, to("high"), started[1].1.job).code, 0);
    let count = |m: &Mbatchd, q: &str| {
        let s = m.state.counts().queue(m.state.names().find_queue(q).unwrap());
        (s.pend, s.run)
    };
    for m in [&r.mbd, &r.restarted()] {
        assert_eq!((count(m, "normal"), count(m, "high")), ((1, 3), (1, 1)));
    }
    // The queue of the higher priority goes first.
    r.report(started[0].0, started[0].1, done());
    assert_eq!(r.starts()[0].1.job, b);
    r.report(started[1].0, started[1].1, done());
    assert_eq!(r.starts()[0].1.job, a);
    assert_eq!(r.does(USER, to("high"), started[0].1.job).code, err::JOB_FINISH);
    let verb = to("nosuch");
    let select = JobSelect { all: true, ..JobSelect::default() };
    let answer = r.ask(USER, ClientMsg::Control(Box::new(Control::of(verb, select))));
    assert!(matches!(answer, Some(Msg::Refused(r)) if r.code == err::BAD_QUEUE));
}

#[test]
fn a_queue_that_does_not_take_the_owner_takes_no_job_of_his() {
    let mut c = conf();
    let bob = crate::conf::types::UserTerm { name: "bob".into(), ..Default::default() };
    c.batch.queues[1].users = vec![bob];
    let mut r = Rig::of(c);
    let hold = JobSpec { options2: crate::model::job::opt2::HOLD, ..spec("x") };
    let id = r.submit(hold).unwrap();
    let to = Verb::Switch { queue: "high".into() };
    // whoever asks for it
    for conn in [USER, ADMIN] {
        assert_eq!(r.does(conn, to.clone(), id).code, err::QUEUE_USE);
    }
    assert_eq!(r.does(ADMIN, Verb::Switch { queue: "normal".into() }, id).code, 0);
}

#[test]
fn a_job_runs_again_after_brequeue() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    let plain = Verb::Requeue(Requeue::default());
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!(r.does(OTHER, plain.clone(), id).code, err::PERMISSION);
    assert_eq!(r.does(USER, plain.clone(), id).code, 0);
    assert_eq!(r.does(USER, plain.clone(), id).code, err::REQUEUED);
    let acts = |r: &Rig| {
        let kills = |(_, m): &&(ConnId, Msg)| {
            matches!(m, Msg::Sbd(SbdMsg::Act { act: Act::Terminate { exit_info: 10 }, .. }))
        };
        r.sent.iter().filter(kills).count()
    };
    assert_eq!(acts(&r), 1);
    // A restart in between does not forget what is to become of it.
    let run = r.restarted();
    assert_eq!(
        run.state.elem(JobRef { job: id, idx: 0 }).unwrap().run().unwrap().requeue,
        Some(None)
    );
    r.report(conn, key, AttemptPhase::Ended { end: End::Status(9), exit_info: 10 });
    assert!(r.acct.is_empty());
    let (conn, again) = r.starts()[0];
    assert_eq!(again, JobKey { attempt: 2, ..key });
    r.report(conn, again, done());
    assert_eq!(r.does(USER, plain, id).code, err::JOB_FINISH);
    let held = Verb::Requeue(Requeue { done: true, hold: true, ..Requeue::default() });
    assert_eq!(r.does(USER, held, id).code, 0);
    assert_eq!(r.stat(id, 0), "PSUSP");
    assert_eq!(r.restarted().state.job(id).unwrap().tally().psusp, 1);
    assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
    let (conn, third) = r.starts()[0];
    // One whose end nobody knows is not run a second time.
    r.report(conn, third, AttemptPhase::Running);
    assert_eq!(r.does(ADMIN, Verb::Requeue(Requeue::default()), id).code, 0);
    r.report(conn, third, AttemptPhase::Ended { end: End::Unknown, exit_info: 9001 });
    assert_eq!(r.stat(id, 0), "EXIT");
}

impl Rig {
    fn modify(&mut self, conn: ConnId, job: u32, fields: &[SpecField], spec: JobSpec) -> i32 {
        self.modify_of(conn, IdSel { job, elems: vec![] }, fields, spec)
    }

    pub(super) fn modify_of(
        &mut self,
        conn: ConnId,
        id: IdSel,
        fields: &[SpecField],
        spec: JobSpec,
    ) -> i32 {
        let m = Modify { id, spec, fields: fields.to_vec(), ..Modify::default() };
        match self.ask(conn, ClientMsg::Modify(Box::new(m))) {
            Some(Msg::Client(ClientMsg::Controlled { outcomes, .. })) => outcomes[0].code,
            Some(Msg::Refused(r)) => r.code,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_pending_job_is_changed() {
    use SpecField::*;
    let mut r = Rig::new();
    let busy = r.submit(JobSpec { min_slots: 2, max_slots: 2, ..spec("x") }).unwrap();
    let (conn, key) = r.starts()[0];
    let id = r.submit(JobSpec { depend: format!("exit({busy},7)"), ..spec("a") }).unwrap();
    let to = JobSpec {
        name: "new".into(),
        command: "b".into(),
        queue: "high".into(),
        min_slots: 2,
        max_slots: 2,
        project: "other".into(),
        ..JobSpec::default()
    };
    assert_eq!(r.modify(OTHER, id, &[Name], to.clone()), err::PERMISSION);
    assert_eq!(r.modify(USER, busy, &[Name], to.clone()), err::RUNNING);
    assert_eq!(r.modify(USER, 99, &[Name], to.clone()), err::NO_JOB);
    let bad = JobSpec { queue: "nosuch".into(), ..to.clone() };
    assert_eq!(r.modify(USER, id, &[Queue, Name], bad), err::BAD_QUEUE);
    assert_eq!(r.mbd.state.job(id).unwrap().spec.name, "");
    assert_eq!(r.modify(USER, id, &[Name, Command, Queue, Slots], to.clone()), 0);
    let seen = |m: &Mbatchd| {
        let j = m.state.job(id).unwrap();
        let queue = m.state.names().queue(j.queue).to_string();
        let pend = m.state.counts().queue(j.queue).pend;
        (j.spec.name.clone(), j.spec.command.lossy().into_owned(), queue, pend)
    };
    assert_eq!(seen(&r.mbd), ("new".into(), "b".into(), "high".into(), 2));
    // Fields that were not named stay.
    assert_eq!(r.mbd.state.job(id).unwrap().spec.project, "default");
    assert_eq!(seen(&r.restarted()).2, "high");
    // The condition it waited for is gone.
    assert!(r.starts_of(id).is_empty());
    assert_eq!(r.modify(USER, id, &[Depend], JobSpec::default()), 0);
    assert_eq!(r.starts_of(id).len(), 1);
    r.report(conn, key, done());
    assert_eq!(r.modify(USER, busy, &[Name], to), err::JOB_FINISH);
}

#[test]
fn a_start_time_is_put_off_and_taken_back() {
    let mut r = Rig::new();
    let at = |r: &Rig, secs: i64| JobSpec { begin_time: r.now.secs() + secs, ..spec("a") };
    let (later, much) = (at(&r, 5), at(&r, 1000));
    let id = r.submit(later).unwrap();
    assert!(r.starts().is_empty());
    assert_eq!(r.modify(USER, id, &[SpecField::Begin], much), 0);
    let wait = |r: &mut Rig, secs: u64| {
        r.now.mono_us += secs * 1_000_000;
        r.now.wall_us += secs as i64 * 1_000_000;
        r.step(Input::Tick);
    };
    wait(&mut r, 8);
    assert!(r.starts().is_empty());
    assert_eq!(r.modify(USER, id, &[SpecField::Begin], JobSpec::default()), 0);
    assert_eq!(r.starts().len(), 1);
}

#[test]
fn values_of_a_queue_go_when_its_job_moves() {
    let mut c = conf();
    let secs = |s| Some(TimeLimit { seconds: s, spec: None });
    c.batch.queues[0].run_limit = Limit { default: secs(600), maximum: None };
    c.batch.queues[1].mem_limit = Limit { default: Some(1000), maximum: Some(2000) };
    c.batch.queues[1].rerunnable = true;
    let mut r = Rig::of(c);
    let hold = |s: JobSpec| JobSpec { options2: crate::model::job::opt2::HOLD, ..s };
    let id = r.submit(hold(spec("a"))).unwrap();
    let limits = |r: &Rig, id: u32| {
        let s = &r.mbd.state.job(id).unwrap().spec;
        let rerun = s.options & crate::model::job::opt::RERUNNABLE != 0;
        (s.limits.run, s.limits.rss, rerun)
    };
    assert_eq!(limits(&r, id), (Some(600), None, false));
    let to = |q: &str| Verb::Switch { queue: q.into() };
    assert_eq!(r.does(USER, to("high"), id).code, 0);
    assert_eq!(limits(&r, id), (None, Some(1000), true));
    assert_eq!(r.does(USER, to("normal"), id).code, 0);
    assert_eq!(limits(&r, id), (Some(600), None, false));
    // A value that the user asked for in place of the queue's default stays too.
    assert_eq!(r.does(USER, to("high"), id).code, 0);
    let mut own = JobSpec::default();
    own.limits.rss = Some(1200);
    assert_eq!(r.modify(USER, id, &[SpecField::MemLimit], own), 0);
    assert_eq!(limits(&r, id), (None, Some(1200), true));
    // A requested limit stays; a limit above the maximum of the new queue keeps the job in its
    // queue.
    let mut asked = spec("b");
    asked.limits.run = Some(60);
    asked.limits.rss = Some(5000);
    let id = r.submit(hold(asked)).unwrap();
    assert_eq!(r.does(USER, to("high"), id).code, err::OVER_LIMIT);
    assert_eq!(limits(&r, id), (Some(60), Some(5000), false));
    let mut less = JobSpec::default();
    less.limits.rss = Some(1500);
    assert_eq!(r.modify(USER, id, &[SpecField::MemLimit], less), 0);
    assert_eq!(r.does(USER, to("high"), id).code, 0);
    assert_eq!(limits(&r, id), (Some(60), Some(1500), true));
    assert_eq!(r.modify(USER, id, &[SpecField::MemLimit], JobSpec::default()), 0);
    assert_eq!(limits(&r, id), (Some(60), Some(1000), true));
}

#[test]
fn an_array_keeps_its_list() {
    use SpecField::Name;
    let mut r = Rig::new();
    let id = r.submit(JobSpec { name: "a[1-9]%1".into(), ..spec("x") }).unwrap();
    assert_eq!(r.starts().len(), 1);
    let named = |n: &str| JobSpec { name: n.into(), ..JobSpec::default() };
    for bad in ["b", "", "a[1-8]", "a[1-9:2]"] {
        assert_eq!(r.modify(USER, id, &[Name], named(bad)), err::ARRAY_NAME, "{bad}");
    }
    assert_eq!(r.modify(USER, id, &[Name], named("b[1-9]%3")), 0);
    assert_eq!(r.starts().len(), 2);
    let job = r.mbd.state.job(id).unwrap();
    assert_eq!((job.display_name(4), job.tally().run), ("b[4]".to_string(), 3));
    let again = r.restarted();
    assert_eq!(again.state.job(id).unwrap().name.array.as_ref().unwrap().limit, Some(3));
}

#[test]
fn a_job_that_ran_again_is_kept_from_its_last_end_on() {
    let mut c = conf();
    c.batch.params.clean_period = 100;
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, done());
    let wait = |r: &mut Rig, secs: u64| {
        r.now.mono_us += secs * 1_000_000;
        r.now.wall_us += secs as i64 * 1_000_000;
        r.step(Input::Tick);
    };
    wait(&mut r, 60);
    let again = Verb::Requeue(Requeue { done: true, ..Requeue::default() });
    assert_eq!(r.does(USER, again, id).code, 0);
    let (conn, key) = r.starts()[0];
    r.report(conn, key, done());
    // More than the period after its first end, less after its second.
    wait(&mut r, 60);
    assert_eq!(r.stat(id, 0), "DONE");
    wait(&mut r, 60);
    assert!(r.mbd.state.job(id).is_none());
}

#[test]
fn a_running_job_is_changed_where_the_site_allows_it() {
    use SpecField::*;
    let mut c = conf();
    c.base.lsf.set("LSB_MOD_ALL_JOBS", "Y");
    let mut r = Rig::of(c);
    let id = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let mut to = JobSpec::default();
    to.limits.run = Some(600);
    to.limits.rss = Some(5000);
    let told = |r: &mut Rig| {
        let mut last = None;
        r.sent.retain(|(_, m)| match m {
            Msg::Sbd(SbdMsg::Act { act: Act::Limits(l), .. }) => {
                last = Some((l.run, l.rss));
                false
            }
            _ => true,
        });
        last
    };
    assert_eq!(r.modify(USER, id, &[RunLimit, Queue], to.clone()), err::MOD_RUNNING);
    assert_eq!(told(&mut r), None);
    assert_eq!(r.modify(USER, id, &[RunLimit, MemLimit], to), 0);
    assert_eq!(told(&mut r), Some((Some(600), Some(5000))));
    // The host has been away: it hears of it again.
    let t = TaskState { key, phase: AttemptPhase::Running, ..TaskState::default() };
    let msg = SbdMsg::Inventory {
        boot_id: "boot".into(),
        tasks: vec![t],
        more: false,
        members: None,
        validates: false,
        unjoined: Vec::new(),
        member_slots: Vec::new(),
    };
    r.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
    assert_eq!(told(&mut r), Some((Some(600), Some(5000))));
    assert_eq!(r.restarted().state.job(id).unwrap().spec.limits.run, Some(600));
}

#[test]
fn an_exclusive_job_has_its_host_alone() {
    let mut c = conf();
    for q in &mut c.batch.queues {
        q.exclusive = true;
    }
    let mut r = Rig::of(c);
    let alone = |hosts: &[&str]| JobSpec {
        options: crate::model::job::opt::EXCLUSIVE,
        hosts: hosts.iter().map(|h| h.to_string()).collect(),
        ..spec("x")
    };
    let first = r.submit(alone(&[])).unwrap();
    let (conn, key) = r.starts()[0];
    // The others go to the other host, none beside it, none alone where one is.
    let others: Vec<u32> = (0..2).map(|_| r.submit(spec("y")).unwrap()).collect();
    let second = r.submit(alone(&[])).unwrap();
    let started = r.starts();
    assert!(started.iter().all(|(c, k)| *c != conn && k.job != second), "{started:?}");
    assert!(!started.is_empty() && started.iter().all(|(_, k)| others.contains(&k.job)));
    assert_eq!(r.restarted().state.exclusive().len(), 1);
    let host = r.name_behind(conn);
    assert_eq!(r.locks(), [vec![host.clone()]]);
    r.report(conn, key, done());
    assert_eq!(r.mbd.state.exclusive().iter().map(|at| at.job).collect::<Vec<_>>(), [second]);
    assert_eq!(r.starts_of(second).iter().map(|s| s.0).collect::<Vec<_>>(), [conn]);
    assert_eq!(r.stat(first, 0), "DONE");
    assert_eq!(r.locks().pop(), Some(vec![host.clone()]), "locked again");
    let key = JobKey { job: second, idx: 0, attempt: 1 };
    r.report(conn, key, done());
    assert_eq!(r.locks(), [Vec::<String>::new()]);
    // a LIM that shows a lock of an mbatchd before this one is told that there is none
    r.lock_shown(&host, status::LOCK_X);
    assert_eq!(r.locks(), [Vec::<String>::new()]);
}

#[test]
fn a_locked_host_says_by_whom() {
    for (bits, why, words) in [
        (status::LOCK_U, PendReason::HostLocked, "Host is locked by LSF administrator"),
        (status::LOCK_M, PendReason::HostLockedMaster, "Host is locked by master LIM"),
        (status::LOCK_W, PendReason::HostLockedWindow, "Host is locked by its run windows"),
        (
            status::LOCK_W | status::LOCK_U,
            PendReason::HostLocked,
            "Host is locked by LSF administrator",
        ),
    ] {
        let mut r = Rig::new();
        r.lock_shown("h1", bits);
        let job = r.submit(JobSpec { hosts: vec!["h1".into()], ..spec("x") }).unwrap();
        assert!(r.starts().is_empty());
        let reasons = r.mbd.reasons_of(job);
        assert!(reasons.iter().any(|r| r.0 == why), "{reasons:?}");
        assert_eq!(why.text(), words);
    }
}

#[test]
fn script_and_environment_are_changed_and_taken_back() {
    use SpecField::{Command, Env, Script};
    let mut r = Rig::new();
    let first = Submit {
        spec: JobSpec { options2: opt2::HOLD | opt2::SCRIPT, ..spec("first") },
        script: "#!/bin/sh\nfirst\n".into(),
        env: "A=1\0".into(),
        ..Submit::default()
    };
    assert!(r.ask(USER, ClientMsg::Submit(Box::new(first))).is_some());
    let look = |m: &Mbatchd| {
        let j = m.state.job(1).unwrap();
        let scripted = j.spec.options2 & opt2::SCRIPT != 0;
        (j.spec.command.lossy().into_owned(), scripted, j.script, j.env)
    };
    let at_first = look(&r.mbd);
    let modify = |r: &mut Rig, m: Modify| {
        let said = r.ask(USER, ClientMsg::Modify(Box::new(m)));
        assert!(matches!(said, Some(Msg::Client(ClientMsg::Controlled { .. }))), "{said:?}");
        assert_eq!(look(&r.restarted()), look(&r.mbd));
        look(&r.mbd)
    };
    let of = |fields: &[SpecField], command: &str, options2: u32| Modify {
        id: IdSel { job: 1, elems: vec![] },
        spec: JobSpec { command: command.into(), options2, ..JobSpec::default() },
        fields: fields.to_vec(),
        ..Modify::default()
    };
    let other = of(&[Script, Env], "other x", opt2::SCRIPT);
    let other = Modify { script: "#!/bin/sh\nother\n".into(), env: Some("B=2\0".into()), ..other };
    let now = modify(&mut r, other);
    assert_eq!((now.0.as_str(), now.1, now.2.len, now.3.len), ("other x", true, 16, 4));
    // a command in the place of the script, and back to the first of all
    let now = modify(&mut r, of(&[Command], "plain", 0));
    assert_eq!((now.0.as_str(), now.1, now.2), ("plain", false, SpoolRef::default()));
    assert_eq!(now.3.len, 4, "the environment stays");
    assert_eq!(modify(&mut r, of(&[Script, Env], "", 0)), at_first);
    // what spool files are still needed for
    let kept = r.mbd.state.modifications().places(1);
    assert!(kept.contains(&at_first.2) && kept.contains(&at_first.3));
    // both are those of all elements
    r.submit(JobSpec { name: "a[1-2]".into(), options2: opt2::HOLD, ..spec("x") }).unwrap();
    for field in [Script, Env] {
        let id = IdSel { job: 2, elems: vec![(1, 1, 1)] };
        let m = Modify { id, env: Some("B=2\0".into()), ..of(&[field], "x", 0) };
        let said = r.ask(USER, ClientMsg::Modify(Box::new(m)));
        assert!(matches!(said, Some(Msg::Refused(e)) if e.code == err::ELEMENT));
    }
}

#[test]
fn limits_of_the_shell_are_taken_and_taken_back() {
    use SpecField::{CpuLimit, MemLimit, UserLimits};
    let with = |cpu, rss, core, words: &str| {
        let limits = Limits { cpu, rss, core, ..Limits::default() };
        let further = Further::from_iter([("ul", words)]);
        JobSpec { limits, further, options2: opt2::HOLD, ..spec("x") }
    };
    let mut r = Rig::new();
    let id = r.submit(with(Some(60), Some(500), Some(9), "cpu core")).unwrap();
    let look = |r: &Rig| {
        let spec = &r.mbd.state.job(id).unwrap().spec;
        let l = &spec.limits;
        (l.cpu, l.rss, l.core, spec.further.user_limits.iter().collect())
    };
    // an option stands above them
    assert_eq!(r.modify(USER, id, &[CpuLimit], with(Some(7), None, None, "")), 0);
    assert_eq!(look(&r), (Some(7), Some(500), Some(9), vec![LimitKind::Core]));
    let shell = with(Some(80), Some(800), Some(8), "cpu rss core");
    assert_eq!(r.modify(USER, id, &[UserLimits], shell), 0);
    assert_eq!(look(&r), (Some(7), Some(500), Some(8), vec![LimitKind::Core]));
    assert_eq!(r.modify(USER, id, &[UserLimits], JobSpec::default()), 0);
    assert_eq!(look(&r), (Some(7), Some(500), None, vec![]));
    assert_eq!(r.modify(USER, id, &[MemLimit], JobSpec::default()), 0);
    assert_eq!(look(&r), (Some(7), None, None, vec![]));
}

#[test]
fn a_host_file_is_put_in_the_place_of_hosts_and_slots_and_taken_away() {
    use SpecField::{HostFile, Hosts, ResReq, Slots};
    let mut r = Rig::new();
    let held = JobSpec { min_slots: 3, max_slots: 4, options2: opt2::HOLD, ..spec("x") };
    let id = r.submit(JobSpec { hosts: vec!["h2".into()], ..held }).unwrap();
    let file = |lines: &str| {
        let further = Further::from_iter([("hostfile", "/f"), ("hostslots", lines)]);
        JobSpec { further, ..JobSpec::default() }
    };
    let look = |r: &Rig| {
        let spec = &r.mbd.state.job(id).unwrap().spec;
        (spec.hosts.join(" "), spec.min_slots, spec.max_slots, &*spec.further.host_file == "/f")
    };
    assert_eq!(r.modify(USER, id, &[HostFile], file("h1 1 h2 1")), 0);
    assert_eq!(look(&r), ("h1 h2".into(), 2, 2, true));
    assert_eq!(r.modify(USER, id, &[HostFile], file("nosuch 1")), err::BAD_HOST);
    assert_eq!(r.modify(USER, id, &[HostFile], file("h1 0")), err::BAD_HOST);
    assert_eq!(look(&r), ("h1 h2".into(), 2, 2, true));
    assert_eq!(r.modify(USER, id, &[HostFile], file("h2 2")), 0);
    assert_eq!(look(&r), ("h2".into(), 2, 2, true));
    assert_eq!(r.modify(USER, id, &[Slots], spec("x")), err::BAD_ARG);
    assert_eq!(r.modify(USER, id, &[HostFile], JobSpec::default()), 0);
    assert_eq!(look(&r), (String::new(), 1, 1, false));
    assert_eq!(look(&Rig::with(r.restarted(), r.now)), look(&r));
    let asked = JobSpec { res_req: "select[mem>1]".into(), ..JobSpec::default() };
    assert_eq!(r.modify(USER, id, &[ResReq, Hosts], asked), 0);
    assert_eq!(r.modify(USER, id, &[HostFile], file("h2 2")), err::BAD_ARG);
}

#[test]
fn running_job_keeps_the_environment_of_its_start() {
    let mut r = Rig::new();
    let first = Submit {
        spec: JobSpec { name: "a[1-9]".into(), ..spec("x") },
        env: "A=1\0".into(),
        ..Submit::default()
    };
    r.ask(USER, ClientMsg::Submit(Box::new(first)));
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let before = r.mbd.state.job(1).unwrap().env;
    let id = IdSel { job: 1, elems: vec![] };
    let (fields, env) = (vec![SpecField::Env], Some("B=2\0".into()));
    let m = Modify { id, fields, env, ..Modify::default() };
    let said = r.ask(USER, ClientMsg::Modify(Box::new(m)));
    assert!(matches!(said, Some(Msg::Client(ClientMsg::Controlled { .. }))), "{said:?}");
    let now = r.mbd.state.job(1).unwrap().env;
    assert_ne!(before, now);
    // its host may have lost it, and is given it again
    let other = SpoolRef { spool: 1, at: 99, len: 9 };
    for (at, given) in [(before, true), (now, true), (other, false)] {
        let msg = Msg::Sbd(SbdMsg::NeedBlob { at });
        let mut out = Vec::new();
        r.mbd.step(r.now, Input::Msg { conn, msg }, &mut out);
        let sent = |e: &Effect| matches!(e, Effect::SendBlob { at: sent, .. } if *sent == at);
        assert_eq!(out.iter().any(sent), given, "{at:?}");
    }
}

#[test]
fn orders_to_act_are_numbered_upwards_without_end_and_over_restarts() {
    let mut r = Rig::new();
    let mut last = 0;
    for _ in 0..70_000 {
        let (_, order) = r.mbd.next_act();
        assert!(order > last, "{order} after {last}");
        last = order;
    }
    let found = Recovered { epoch: r.mbd.epoch + 1, ..Recovered::default() };
    assert!(Mbatchd::new(conf(), "h1", found).next_act().1 > last);
}
