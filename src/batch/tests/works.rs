//! Requests that concern many jobs: unit by unit, others in between; what a retry is told; what a
//! crash between two units leaves. Bounds of a request and of a user.

use super::*;
use crate::batch::soft_state::works::{MAX_WORKS, UNIT};
use crate::model::further::Further;
use crate::proto::caps::{MAX_ELEMENTS, OUTCOMES_PIECE};

fn large() -> ClusterConf {
    let mut c = conf();
    c.batch.params.max_job_array_size = 100_000;
    c
}

/// An array that does not start.
fn array(r: &mut Rig, n: u32) -> u32 {
    let far = r.now.secs() + 1_000_000;
    r.submit(JobSpec { name: format!("a[1-{n}]"), begin_time: far, ..spec("x") }).unwrap()
}

fn ids(list: &[(u32, u32, u32)]) -> JobSelect {
    let sel = |&(job, a, b): &(u32, u32, u32)| {
        let elems = if a == 0 { vec![] } else { vec![(a, b, 1)] };
        IdSel { job, elems }
    };
    JobSelect { ids: list.iter().map(sel).collect(), ..JobSelect::default() }
}

fn request(verb: Verb, select: JobSelect, id: &str) -> ClientMsg {
    ClientMsg::Control(Box::new(Control { request: id.into(), ..Control::of(verb, select) }))
}

fn outcomes(said: Option<Msg>) -> Vec<(u32, u32, i32)> {
    match said {
        Some(Msg::Client(ClientMsg::Controlled { outcomes, more: false })) => {
            outcomes.iter().map(|o| (o.id.job, o.id.idx, o.code)).collect()
        }
        other => panic!("{other:?}"),
    }
}

impl Rig {
    fn ended(&self, job: u32) -> u32 {
        self.mbd.state.job(job).map_or(0, |j| j.tally().exit)
    }

    /// Units until there is no work.
    fn work_off(&mut self) -> usize {
        let mut units = 0;
        while self.mbd.has_work() {
            self.work();
            units += 1;
        }
        units
    }

    fn answer(&self, conn: ConnId) -> Option<Msg> {
        self.sent.iter().find(|(c, _)| *c == conn).map(|(_, m)| m.clone())
    }

    /// The machine after a restart, with its hosts and users.
    fn after_restart(&self) -> Rig {
        let mut conf = large();
        conf.batch.params = self.mbd.site.params().clone();
        let records = self.read_back();
        let mbd = Mbatchd::new(conf, "h1", Recovered { records, epoch: 2, ..Default::default() });
        let mut rig = Rig::with(mbd, self.now);
        // what it writes goes on behind what was written
        let mut log = self.read_back();
        log.append(&mut rig.log);
        rig.log = log;
        rig
    }
}

#[test]
fn a_request_for_many_elements_lets_others_in_between() {
    let mut r = Rig::of(large());
    let job = array(&mut r, 90_000);
    r.works = false;
    assert!(r.ask(USER, request(Verb::Kill, ids(&[(job, 0, 0)]), "")).is_none());
    let at_once = r.ended(job);
    assert!((1..9000).contains(&at_once), "{at_once}");
    // another asks, and is answered
    assert!(matches!(r.ask(OTHER, ClientMsg::Params), Some(Msg::Client(_))));
    let other = JobSpec { command: "y".into(), ..spec("y") };
    let s = Submit { spec: other, ..Default::default() };
    let said = r.ask(OTHER, ClientMsg::Submit(Box::new(s)));
    assert!(matches!(said, Some(Msg::Client(ClientMsg::Submitted { .. }))), "{said:?}");
    // each unit does a little of it
    r.work();
    assert!(r.ended(job) - at_once <= 4096 && r.answer(USER).is_none());
    // a second long request has to wait on this connection
    let again = r.ask(USER, request(Verb::Kill, ids(&[(job, 0, 0)]), ""));
    assert!(matches!(again, Some(Msg::Refused(r)) if r.code == err::BUSY));
    r.sent.clear();
    let units = r.work_off();
    assert!(units > 18, "{units}");
    assert_eq!((outcomes(r.answer(USER)), r.ended(job)), (vec![(job, 0, 0)], 90_000));
}

#[test]
fn one_job_is_done_and_answered_at_once() {
    let mut r = Rig::of(large());
    let job = array(&mut r, 30);
    r.works = false;
    assert_eq!(outcomes(r.ask(USER, request(Verb::Kill, ids(&[(job, 0, 0)]), ""))), [(job, 0, 0)]);
    assert!(!r.mbd.has_work());
}

#[test]
fn the_request_of_a_client_that_has_gone_is_carried_out() {
    let mut r = Rig::of(large());
    let job = array(&mut r, 500);
    r.works = false;
    r.ask(USER, request(Verb::Kill, ids(&[(job, 0, 0)]), "r"));
    r.step(Input::Closed { conn: USER });
    r.sent.clear();
    r.work_off();
    assert!(r.ended(job) == 500 && r.answer(USER).is_none());
}

#[test]
fn a_retry_after_a_crash_between_two_units_completes_and_answers_for_all() {
    let mut r = Rig::of(large());
    let (one, two) = (array(&mut r, 9000), array(&mut r, 9000));
    let single = r.submit(JobSpec { begin_time: r.now.secs() + 9999, ..spec("x") }).unwrap();
    r.works = false;
    let all = || ids(&[(single, 0, 0), (one, 1, 9000), (two, 0, 0), (99, 0, 0)]);
    r.ask(USER, request(Verb::Kill, all(), "r1"));
    r.work();
    let done = r.ended(one);
    assert!((1..9000).contains(&done), "{done}");
    let mut r = r.after_restart();
    assert_eq!((r.ended(one), r.ended(single)), (done, 1));
    let said = outcomes(r.ask(USER, request(Verb::Kill, all(), "r1")));
    let mut want = vec![(single, 0, 0)];
    want.extend((1..=9000).map(|idx| (one, idx, 0)));
    want.extend([(two, 0, 0), (99, 0, err::NO_JOB)]);
    assert_eq!(said, want);
    assert_eq!((r.ended(one), r.ended(two)), (9000, 9000));
    // nothing was killed twice
    let kills = r.log.iter().map(|rec| match &rec.event {
        Event::JobSignal(_) => 1,
        Event::ArraySignal(s) => s.indices().count(),
        _ => 0,
    });
    assert_eq!(kills.sum::<usize>(), 18_001);
    // the same once more, in its whole; another request is told the truth
    assert_eq!(outcomes(r.ask(USER, request(Verb::Kill, all(), "r1"))), want);
    let other = outcomes(r.ask(USER, request(Verb::Kill, ids(&[(single, 0, 0)]), "r2")));
    assert_eq!(other, [(single, 0, err::JOB_FINISH)]);
}

#[test]
fn a_retry_of_bkill_0_is_told_of_every_job_that_was_killed() {
    let mut r = Rig::of(large());
    let jobs: Vec<u32> = (0..200)
        .map(|_| r.submit(JobSpec { begin_time: r.now.secs() + 9999, ..spec("x") }).unwrap())
        .collect();
    r.works = false;
    let all = || JobSelect { all: true, ..JobSelect::default() };
    assert!(r.ask(USER, request(Verb::Kill, all(), "r1")).is_none());
    let mut r = r.after_restart();
    let want: Vec<_> = jobs.iter().map(|job| (*job, 0, 0)).collect();
    assert_eq!(outcomes(r.ask(USER, request(Verb::Kill, all(), "r1"))), want);
    assert_eq!(outcomes(r.ask(USER, request(Verb::Kill, all(), "r2"))), []);
}

#[test]
fn a_retry_means_the_job_that_was_meant_before() {
    let mut r = Rig::of(large());
    for _ in 0..3 {
        r.submit(JobSpec { begin_time: r.now.secs() + 9999, ..spec("x") }).unwrap();
    }
    // neither 0 nor an ID: the last one
    let last = || JobSelect { user: "ann".into(), ..JobSelect::default() };
    for _ in 0..2 {
        assert_eq!(outcomes(r.ask(USER, request(Verb::Kill, last(), "r1"))), [(3, 0, 0)]);
        r = r.after_restart();
    }
    assert_eq!(r.stat(2, 0), "PEND");
    assert_eq!(outcomes(r.ask(USER, request(Verb::Kill, last(), "r2"))), [(2, 0, 0)]);
}

#[test]
fn a_retried_brequeue_requeues_once() {
    let mut r = Rig::new();
    let job = r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    r.report(conn, key, done());
    let which = Verb::Requeue(Requeue { done: true, ..Requeue::default() });
    let ask = |r: &mut Rig, id: &str| {
        outcomes(r.ask(USER, request(which.clone(), ids(&[(job, 0, 0)]), id)))
    };
    assert_eq!(ask(&mut r, "r1"), [(job, 0, 0)]);
    let attempts = |r: &Rig| r.mbd.state.job(job).unwrap().elem(0).unwrap().attempts;
    // it has been started again by now: the retry leaves that alone
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    assert_eq!((ask(&mut r, "r1"), attempts(&r)), (vec![(job, 0, 0)], 2));
    r.report(conn, key, done());
    assert_eq!((ask(&mut r, "r1"), attempts(&r)), (vec![(job, 0, 0)], 2));
    let mut r = r.after_restart();
    assert_eq!((ask(&mut r, "r1"), attempts(&r)), (vec![(job, 0, 0)], 2));
    // one that runs goes back when it has ended, and is asked to end once
    assert_eq!(ask(&mut r, "r2"), [(job, 0, 0)]);
}

#[test]
fn beyond_the_caps_nothing_is_done() {
    let mut r = Rig::of(large());
    let job = array(&mut r, 100);
    let records = r.log.len();
    let many = ids(&[(job, 1, u32::MAX); 100]);
    match r.ask(USER, request(Verb::Kill, many, "")) {
        Some(Msg::Refused(r)) => {
            let text = "the request names 429496729500 elements of arrays; the limit is 1000000";
            assert_eq!((r.code, r.text.as_str()), (err::BAD_ARG, text));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((r.log.len(), r.ended(job)), (records, 0));
    // as many as may be named, most of which there are not
    let most = ids(&[(job, 1, MAX_ELEMENTS as u32)]);
    let said = outcomes(r.ask(USER, request(Verb::Stop, most, "")));
    assert_eq!(said.iter().filter(|o| o.2 == 0).count(), 100);
    assert_eq!(r.stat(job, 100), "PSUSP");
}

#[test]
fn a_client_that_takes_pieces_gets_them_when_it_has_read() {
    let mut r = Rig::of(large());
    let n = 2 * OUTCOMES_PIECE as u32 + 1000;
    let job = array(&mut r, n);
    r.works = false;
    let select = ids(&[(job, 1, n)]);
    let c = Control { pieces: true, ..Control::of(Verb::Kill, select) };
    let mut said = r.ask(USER, ClientMsg::Control(Box::new(c)));
    let mut got = 0;
    for _ in 0..2 {
        r.work_off();
        let said = said.take().or_else(|| r.answer(USER));
        let Some(Msg::Client(ClientMsg::Controlled { outcomes, more: true })) = said else {
            panic!("no piece after {got}")
        };
        got += outcomes.len() as u32;
        assert_eq!(r.ended(job), got);
        r.sent.clear();
        r.step(Input::Drained { conn: USER });
    }
    r.work_off();
    assert_eq!(outcomes(r.answer(USER)).len() as u32, n - got);
}

#[test]
fn a_reason_is_not_written_without_end() {
    let mut r = Rig::of(large());
    let far = r.now.secs() + 1_000_000;
    for _ in 0..300 {
        r.submit(JobSpec { begin_time: far, ..spec("x") }).unwrap();
    }
    r.mbd.works.set_log_most(1 << 20);
    let all = JobSelect { all: true, ..JobSelect::default() };
    let c = Control { reason: "x".repeat(4000), ..Control::of(Verb::Stop, all) };
    match r.ask(USER, ClientMsg::Control(Box::new(c))) {
        Some(Msg::Refused(r)) => {
            assert!(r.text.contains("was carried out for 2"), "{}", r.text);
            assert!(r.text.contains("the log takes at most 1048576 bytes"), "{}", r.text);
        }
        other => panic!("{other:?}"),
    }
    let held = r.mbd.state.each_job().filter(|job| job.tally().psusp > 0).count();
    assert!((200..300).contains(&held), "{held}");
}

/// The bound on what a request writes is one on the bytes of the log.
#[test]
fn bytes_of_records_are_counted_as_they_are_written() {
    use crate::log::codec::{write_finish, write_record};
    let mut r = Rig::of(large());
    let far = r.now.secs() + 1_000_000;
    let long = |n: usize| "x".repeat(n);
    for (reason, command) in [(0, 4), (4000, 4), (0, 4000), (20, 60)] {
        let name = "a[1-300]".to_string();
        let wide = JobSpec { name, begin_time: far, res_req: "ncpus>1".into(), ..spec("x") };
        let job = r.submit(JobSpec { command: long(command).into(), ..wide }).unwrap();
        let queue = "high".to_string();
        for verb in [Verb::Stop, Verb::Resume, Verb::Switch { queue }, Verb::Kill] {
            let (from, acct, most) = (r.log.len(), r.acct.len(), u64::MAX);
            r.mbd.works.set_log_most(most);
            let c = Control { reason: long(reason), ..Control::of(verb, ids(&[(job, 1, 300)])) };
            let mut out = Vec::new();
            let msg = Msg::Client(ClientMsg::Control(Box::new(c.clone())));
            r.mbd.step(r.now, Input::Msg { conn: USER, msg }, &mut out);
            while r.mbd.has_work() {
                r.mbd.work(r.now, &mut out);
            }
            let counted = crate::batch::state::space::log_bytes(&out);
            r.carry_out(out);
            let mut text = Vec::new();
            r.log[from..].iter().for_each(|rec| write_record(rec, &mut text));
            r.acct[acct..].iter().for_each(|f| write_finish(f, &mut text));
            let (counted, written) = (counted as usize, text.len());
            assert!(written > 0 && written <= counted * 5 / 4, "{c:?}: {written}, {counted}");
            assert!(counted <= written * 4, "{c:?}: {written}, {counted}");
        }
    }
}

#[test]
fn a_switch_of_many_elements_is_done_by_units() {
    let mut r = Rig::of(large());
    let job = array(&mut r, 9000);
    r.works = false;
    let verb = Verb::Switch { queue: "high".into() };
    assert!(r.ask(USER, request(verb, ids(&[(job, 1, 8500)]), "")).is_none());
    r.work_off();
    let said = outcomes(r.answer(USER));
    assert!(said.len() == 8500 && said.iter().all(|o| o.2 == 0));
    let queue = |idx: u32| {
        let job = r.mbd.state.job(job).unwrap();
        r.mbd.state.names().queue(job.queue_at(idx)).to_string()
    };
    assert_eq!(
        (queue(1), queue(8500), queue(8501)),
        ("high".into(), "high".into(), "normal".into())
    );
    assert_eq!(r.mbd.state.job(job).unwrap().parts().len(), 1);
}

#[test]
fn a_bmod_of_many_elements_is_done_by_units() {
    let mut r = Rig::of(large());
    let job = array(&mut r, 9000);
    r.works = false;
    let id = IdSel { job, elems: vec![(1, 8500, 1)] };
    let fields = vec![crate::model::specfield::SpecField::Project];
    let spec = JobSpec { project: "late".into(), ..JobSpec::default() };
    let m = Modify { id, spec, fields, ..Modify::default() };
    assert!(r.ask(USER, ClientMsg::Modify(Box::new(m))).is_none());
    r.work_off();
    assert_eq!(outcomes(r.answer(USER)), [(job, 0, 0)]);
    let project = |idx: u32| r.mbd.state.job(job).unwrap().spec_at(idx).project.clone();
    assert_eq!((project(1).as_str(), project(8500).as_str()), ("late", "late"));
    assert_ne!(project(8501), "late");
}

#[test]
fn a_reconfiguration_looks_at_jobs_by_units_and_starts_none_before() {
    let mut r = Rig::of(large());
    // both hosts are full
    for _ in 0..4 {
        r.submit(spec("x")).unwrap();
    }
    for _ in 0..5000 {
        r.submit(spec("y")).unwrap();
    }
    let running = r.starts();
    r.works = false;
    r.ask(ADMIN, ClientMsg::Admin(AdminOp::Reconfig { comment: String::new() }));
    let conf = large();
    r.step(Input::Config { conf: Some(Box::new(conf)), diags: vec![] });
    assert!(r.answer(ADMIN).is_none() && r.mbd.has_work());
    let (conn, key) = running[0];
    r.report(conn, key, AttemptPhase::Running);
    r.report(conn, key, done());
    assert!(r.starts().is_empty());
    assert!(r.work_off() > 3);
    assert!(matches!(r.answer(ADMIN), Some(Msg::Client(ClientMsg::AdminDone { .. }))));
    r.step(Input::Tick);
    assert_eq!(r.starts().len(), 1);
}

#[test]
fn orphans_of_a_large_array_end_by_units() {
    let mut r = Rig::of(large());
    let first = r.submit(JobSpec { begin_time: r.now.secs() + 9999, ..spec("x") }).unwrap();
    let further = Further::from_iter([("ti", "y")]);
    let name = "a[1-500]".to_string();
    let all = JobSpec { name, depend: format!("done({first})"), further, ..spec("y") };
    let job = r.submit(all).unwrap();
    r.works = false;
    r.kill(USER, first);
    assert_eq!(r.ended(job), 0);
    r.work();
    assert!(r.ended(job) <= 32, "{}", r.ended(job));
    r.work_off();
    assert_eq!(r.ended(job), 500);
}

#[test]
fn one_user_has_a_bound_and_others_are_not_held_up() {
    let mut c = large();
    c.batch.params.max_user_jobs = Some(3);
    let mut r = Rig::of(c);
    for _ in 0..3 {
        r.submit(JobSpec { begin_time: r.now.secs() + 9999, ..spec("x") }).unwrap();
    }
    let refused = r.submit(spec("x")).unwrap_err();
    assert!(refused.text.contains("has 3 jobs") && refused.text.contains("MAX_USER_JOBS"));
    let s = || Submit { spec: spec("x"), ..Default::default() };
    let said = r.ask(OTHER, ClientMsg::Submit(Box::new(s())));
    assert!(matches!(said, Some(Msg::Client(ClientMsg::Submitted { .. }))), "{said:?}");
    // one that has left memory makes room
    let c = Control { bulk: true, ..Control::of(Verb::Kill, ids(&[(1, 0, 0)])) };
    r.ask(USER, ClientMsg::Control(Box::new(c)));
    r.submit(spec("x")).unwrap();
}

#[test]
fn the_space_of_a_user_in_the_spool_has_a_bound() {
    let mut c = large();
    c.batch.params.max_user_space_mb = 4;
    let mut r = Rig::of(c);
    let begin_time = r.now.secs() + 9999;
    let script = |n: usize| Submit {
        spec: JobSpec { begin_time, ..spec("x") },
        env: "A=1\0".into(),
        script: "s".repeat(n).into(),
        ..Default::default()
    };
    let ask = |r: &mut Rig, n: usize| match r.ask(USER, ClientMsg::Submit(Box::new(script(n)))) {
        Some(Msg::Client(ClientMsg::Submitted { job, .. })) => Ok(job),
        Some(Msg::Refused(r)) => Err(r.text),
        other => panic!("{other:?}"),
    };
    let mb = 1 << 20;
    let jobs: Vec<u32> = (0..3).map(|_| ask(&mut r, mb).unwrap()).collect();
    let refused = ask(&mut r, mb).unwrap_err();
    assert!(refused.contains("keep 3 MB") && refused.contains("MAX_USER_SPACE"), "{refused}");
    // what leaves memory is in the spool still, until the log is switched
    let c = Control { bulk: true, ..Control::of(Verb::Kill, ids(&[(jobs[2], 0, 0)])) };
    r.ask(USER, ClientMsg::Control(Box::new(c)));
    assert!(r.mbd.state.job(jobs[2]).is_none() && ask(&mut r, mb).is_err());
    let kept = r.mbd.state.space().of(r.mbd.state.names().find_user("ann").unwrap());
    assert!(kept.gone >= mb as u64 && kept.jobs == 2, "{kept:?}");
    let again = r.after_restart();
    let user = again.mbd.state.names().find_user("ann").unwrap();
    assert_eq!(again.mbd.state.space().of(user), kept);
    r.mbd.state.apply(&Record { time: 1, event: Event::LogSwitch { last_job: 9 } });
    ask(&mut r, mb).unwrap();
}

#[test]
fn a_job_that_was_changed_leaves_nothing_counted() {
    use crate::model::specfield::SpecField;
    let mut c = large();
    c.batch.params.clean_period = 10;
    let mut r = Rig::of(c);
    let user =
        |r: &Rig| r.mbd.state.names().find_user("ann").map(|u| r.mbd.state.space().of(u)).unwrap();
    let begin_time = r.now.secs() + 9999;
    let s = Submit {
        spec: JobSpec { name: "a[1-5]".into(), begin_time, ..spec("x") },
        env: "A=1\0".into(),
        script: "echo".into(),
        ..Default::default()
    };
    for _ in 0..2 {
        r.ask(USER, ClientMsg::Submit(Box::new(s.clone())));
    }
    for (job, elems) in [(1, vec![]), (1, vec![(2, 3, 1)]), (2, vec![])] {
        let spec = JobSpec { command: "longer than before".into(), ..JobSpec::default() };
        let mut fields = vec![SpecField::Project];
        if elems.is_empty() {
            fields.extend([SpecField::Command, SpecField::Script, SpecField::Env]);
        }
        let (id, env) = (IdSel { job, elems }, Some("B=2\0".into()));
        let m = Modify { id, spec, fields, script: "other".into(), env };
        let said = r.ask(USER, ClientMsg::Modify(Box::new(m)));
        assert!(matches!(said, Some(Msg::Client(_))), "{said:?}");
        r.ask(USER, request(Verb::Switch { queue: "high".into() }, ids(&[(job, 0, 0)]), ""));
    }
    let kept = user(&r);
    assert!(kept.jobs == 2 && kept.bytes > 1000, "{kept:?}");
    r.ask(USER, request(Verb::Kill, ids(&[(1, 0, 0), (2, 0, 0)]), ""));
    r.now.mono_us += 60_000_000;
    r.now.wall_us += 60_000_000;
    r.step(Input::Tick);
    assert!(r.mbd.state.job_count() == 0);
    let gone = user(&r);
    assert_eq!((gone.jobs, gone.bytes), (0, 0));
}

#[test]
fn listings_of_named_elements_cost_what_is_asked() {
    let mut r = Rig::of(large());
    let job = array(&mut r, 50_000);
    let mut select = ids(&[(job, 3, 4), (job, 4, 5), (job, 49_999, 51_000)]);
    select.ids.extend(vec![IdSel { job: 77, elems: vec![] }; 1000]);
    let cols = vec![Col::Idx];
    let q = JobQuery { select, cols, ..JobQuery::default() };
    match r.ask(USER, ClientMsg::Jobs(Box::new(q))) {
        Some(Msg::Client(ClientMsg::Rows { rows, more: false })) => {
            assert_eq!(rows.get(), "[[3],[4],[5],[49999],[50000]]");
        }
        other => panic!("{other:?}"),
    }
}

/// An array of orphans to be: they end as soon as `first` cannot be done any more.
fn orphans(r: &mut Rig, first: u32, n: u32) -> u32 {
    let further = Further::from_iter([("ti", "y")]);
    let name = format!("a[1-{n}]");
    let depend = format!("done({first})");
    r.submit(JobSpec { name, depend, further, ..spec("y") }).unwrap()
}

#[test]
fn orphans_of_one_user_leave_room_for_requests_of_others() {
    let mut r = Rig::of(large());
    let first = r.submit(JobSpec { begin_time: r.now.secs() + 9999, ..spec("x") }).unwrap();
    let arrays: Vec<u32> = (0..MAX_WORKS + 50).map(|_| orphans(&mut r, first, 900)).collect();
    let begin_time = r.now.secs() + 9999;
    let s = Submit { spec: JobSpec { begin_time, ..spec("z") }, ..Submit::default() };
    let Some(Msg::Client(ClientMsg::Submitted { job, .. })) =
        r.ask(OTHER, ClientMsg::Submit(Box::new(s)))
    else {
        panic!()
    };
    r.works = false;
    r.kill(USER, first);
    let ending = |r: &Rig| arrays.iter().filter(|a| r.mbd.works.ends(**a)).count();
    while ending(&r) < MAX_WORKS {
        r.work();
        assert!(arrays.iter().all(|a| r.ended(*a) < 900), "they end before they are counted");
    }
    let said = r.ask(OTHER, request(Verb::Kill, ids(&[(job, 0, 0)]), ""));
    assert!(!matches!(said, Some(Msg::Refused(_))), "{said:?}");
    while r.ended(job) == 0 {
        assert!(r.mbd.has_work());
        r.work();
    }
}

#[test]
fn orphans_that_are_given_another_condition_meanwhile_do_not_end() {
    let mut r = Rig::of(large());
    let begin_time = r.now.secs() + 9999;
    let first = r.submit(JobSpec { begin_time, ..spec("x") }).unwrap();
    let later = r.submit(JobSpec { begin_time, ..spec("x") }).unwrap();
    let job = orphans(&mut r, first, 500);
    r.works = false;
    r.kill(USER, first);
    r.work();
    let ended = r.ended(job);
    assert!((1..=UNIT as u32).contains(&ended), "{ended}");
    let m = Modify {
        id: IdSel { job, elems: vec![] },
        fields: vec![crate::model::specfield::SpecField::Depend],
        spec: JobSpec { depend: format!("done({later})"), ..JobSpec::default() },
        ..Modify::default()
    };
    let mut out = Vec::new();
    r.mbd.step(
        r.now,
        Input::Msg { conn: USER, msg: Msg::Client(ClientMsg::Modify(Box::new(m))) },
        &mut out,
    );
    let waits = |r: &Rig| r.mbd.state.job(job).unwrap().depend.is_some();
    assert!(waits(&r));
    r.work_off();
    let ended = r.ended(job);
    assert!(ended < 500, "{ended} ended");
    assert_eq!((r.stat(job, 500), r.mbd.has_work()), ("PEND", false));
}

#[test]
fn orphans_end_after_the_log_could_not_be_written_for_a_while() {
    let mut r = Rig::of(large());
    let first = r.submit(JobSpec { begin_time: r.now.secs() + 9999, ..spec("x") }).unwrap();
    let job = orphans(&mut r, first, 500);
    r.works = false;
    r.kill(USER, first);
    r.work();
    r.reread();
    r.step(Input::LogFailed { why: "full".into() });
    r.step(Input::LogBack);
    r.work_off();
    assert_eq!(r.ended(job), 500);
}

#[test]
fn very_many_jobs_whose_eligibility_is_looked_at_take_several_turns() {
    let mut c = large();
    c.batch.params.track_eligible = true;
    let mut r = Rig::of(c);
    let begin_time = r.now.secs() + 9999;
    let mut out = Vec::new();
    for _ in 0..5000 {
        let s = Submit { spec: JobSpec { begin_time, ..spec("z") }, ..Submit::default() };
        let msg = Msg::Client(ClientMsg::Submit(Box::new(s)));
        r.mbd.step(r.now, Input::Msg { conn: USER, msg }, &mut out);
    }
    while r.mbd.eligible.left() {
        r.mbd.step(r.now, Input::Tick, &mut out);
    }
    r.mbd.eligible_all();
    r.mbd.step(r.now, Input::Tick, &mut out);
    assert!(r.mbd.eligible.left() && r.mbd.deadline().is_some_and(|due| due <= r.now.mono_us));
    r.mbd.step(r.now, Input::Tick, &mut out);
    assert!(!r.mbd.eligible.left());
}
