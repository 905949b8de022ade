//! The longest turn of a request that very many elements or jobs are behind: processor time of one
//! step or one unit of work, which a busy machine changes little.

use super::*;
use crate::batch::site::rules::{Consumer, Counter};
use crate::model::event::{JobStart, JobStatus};
use crate::model::further::Further;
use crate::model::job_state::JobState;
use crate::model::reason::PendReason;
use crate::model::specfield::SpecField;
use rustix::time::{ClockId, clock_gettime};

/// Longest step or unit, microseconds: five times what a slow and idle machine takes.
pub(super) const LONGEST: u64 = 200_000;
/// Longest step or unit of a move among [`JOBS`] jobs.
const MOVE_LONGEST: u64 = 10_000;
/// Elements of a test.
const MANY: u32 = 500_000;
/// Jobs of a test.
const JOBS: u32 = 50_000;

pub(super) fn cpu_us() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

fn wide() -> ClusterConf {
    let mut c = conf();
    c.batch.params.max_job_array_size = 1_000_001;
    c
}

impl Rig {
    /// Asks, does all the work that comes of it, and says how long the longest of it took.
    fn longest(&mut self, conn: ConnId, msg: ClientMsg) -> (u64, Option<Msg>) {
        self.works = false;
        let began = cpu_us();
        let mut said = self.ask(conn, msg);
        let longest = self.works_longest(cpu_us() - began);
        self.works = true;
        said = said.or(self.sent.iter().find(|(c, _)| *c == conn).map(|(_, m)| m.clone()));
        (longest, said)
    }

    /// Does all work, and says how long the longest unit of it took, or what took that long.
    fn works_longest(&mut self, mut longest: u64) -> u64 {
        while self.mbd.has_work() {
            let (mut out, began) = (Vec::new(), cpu_us());
            self.mbd.work(self.now, &mut out);
            longest = longest.max(cpu_us() - began);
            self.carry_out(out);
        }
        longest
    }

    fn bounded(&mut self, what: &str, conn: ConnId, msg: ClientMsg) -> Option<Msg> {
        let (longest, said) = self.longest(conn, msg);
        println!("{what}: longest turn {longest} us");
        assert!(longest <= LONGEST, "{what}: a turn of {longest} us");
        said
    }

    fn apply_status(&mut self, at: JobRef, state: JobState) {
        let (status, end_time) = (state.into(), self.now.secs());
        let attempt = self.mbd.state.elem(at).and_then(|e| e.run()).map_or(0, |r| r.key.attempt);
        let s = JobStatus { at, status, end_time, attempt, ..JobStatus::default() };
        let time = self.now.secs();
        self.apply(&Record { time, event: Event::JobStatus(Box::new(s)) });
    }
}

fn submit(spec: JobSpec) -> ClientMsg {
    ClientMsg::Submit(Box::new(Submit { spec, ..Default::default() }))
}

fn control(verb: Verb, job: u32, elems: Vec<(u32, u32, u32)>) -> ClientMsg {
    let select = JobSelect { ids: vec![IdSel { job, elems }], ..JobSelect::default() };
    ClientMsg::Control(Box::new(Control::of(verb, select)))
}

fn job_of(said: Option<Msg>) -> u32 {
    match said {
        Some(Msg::Client(ClientMsg::Submitted { job, .. })) => job,
        other => panic!("{other:?}"),
    }
}

fn code_of(said: Option<Msg>) -> i32 {
    match said {
        Some(Msg::Client(ClientMsg::Controlled { outcomes, .. })) => outcomes[0].code,
        other => panic!("{other:?}"),
    }
}

fn far(r: &Rig) -> i64 {
    r.now.secs() + 1_000_000
}

#[test]
fn a_held_array_of_a_million_is_one_record() {
    let mut r = Rig::of(wide());
    let name = "a[1-1000000]".to_string();
    let held = JobSpec { name, options2: opt2::HOLD, ..spec("x") };
    let job = job_of(r.bounded("bsub -H", USER, submit(held)));
    assert_eq!((r.stat(job, 1), r.stat(job, 1_000_000)), ("PSUSP", "PSUSP"));
    let tally = r.mbd.state.job(job).unwrap().tally();
    assert_eq!((tally.psusp, tally.pend), (1_000_000, 0));
    let a = r.mbd.state.job(job).unwrap().array().unwrap();
    assert_eq!(a.touched().count(), 0);
    // single ones are let go, held again and killed as any others
    let some = |verb| control(verb, job, vec![(2, 4, 1)]);
    assert_eq!(code_of(r.ask(USER, some(Verb::Resume))), 0);
    let started = |r: &Rig| (1..6).filter(|i| r.stat(job, *i) == "RUN").collect::<Vec<u32>>();
    assert_eq!((started(&r), r.stat(job, 5)), (vec![2, 3, 4], "PSUSP"));
    assert_eq!(code_of(r.ask(USER, control(Verb::Resume, job, vec![(7, 7, 1)]))), 0);
    assert_eq!(code_of(r.ask(USER, control(Verb::Stop, job, vec![(9, 9, 1)]))), 0);
    assert_eq!(code_of(r.ask(USER, control(Verb::Kill, job, vec![(8, 8, 1)]))), 0);
    assert_eq!((r.stat(job, 8), r.stat(job, 9)), ("EXIT", "PSUSP"));
    let counts = r.mbd.state.counts().queue(r.mbd.state.names().find_queue("normal").unwrap());
    assert_eq!(counts.pend_jobs, 1_000_000 - 5);
    let again = r.restarted();
    assert_eq!(again.state.differences(&r.mbd.state, &Default::default()), Vec::<String>::new());
}

#[test]
fn a_retried_bstop_of_a_held_array_holds_nothing_again() {
    let mut r = Rig::of(wide());
    let name = "a[1-50]".to_string();
    let job = r.submit(JobSpec { name, options2: opt2::HOLD, ..spec("x") }).unwrap();
    let all = JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..JobSelect::default() };
    let again = Control { request: "r1".into(), ..Control::of(Verb::Resume, all) };
    assert_eq!(code_of(r.ask(USER, ClientMsg::Control(Box::new(again.clone())))), 0);
    let records = r.log.len();
    assert_eq!(code_of(r.ask(USER, ClientMsg::Control(Box::new(again)))), 0);
    assert_eq!(r.log.len(), records);
}

/// Elements that have ended, that wait again and that run, very many of each but the last.
fn mixed(r: &mut Rig) -> u32 {
    let name = format!("a[1-{MANY}]");
    let job = r.submit(JobSpec { name, ..spec("x") }).unwrap();
    assert_eq!(r.stat(job, 4), "RUN");
    for idx in 5..=MANY {
        let status = if idx % 2 == 0 { JobState::Psusp } else { JobState::Exit };
        r.apply_status(JobRef { job, idx }, status);
    }
    job
}

#[test]
fn a_whole_array_is_changed_in_short_turns_whatever_became_of_its_elements() {
    let mut r = Rig::of(wide());
    let job = mixed(&mut r);
    let queue = "high".to_string();
    let said = r.bounded("bswitch", USER, control(Verb::Switch { queue }, job, vec![]));
    assert_eq!(code_of(said), 0);
    let verb = Verb::Move { top: true, position: 1 };
    assert_eq!(code_of(r.bounded("btop", USER, control(verb, job, vec![]))), 0);
    let count = |r: &Rig, queue: &str| {
        let of = r.mbd.state.counts().queue(r.mbd.state.names().find_queue(queue).unwrap());
        (of.pend_jobs, of.run)
    };
    assert_eq!((count(&r, "high"), count(&r, "normal")), ((u64::from(MANY / 2 - 2), 4), (0, 0)));
    let spec = JobSpec { project: "late".into(), ..JobSpec::default() };
    let id = IdSel { job, elems: vec![] };
    let m = Modify { id, spec, fields: vec![SpecField::Project], ..Modify::default() };
    let said = r.bounded("bmod", USER, ClientMsg::Modify(Box::new(m)));
    assert_eq!(code_of(said), 0);
    assert_eq!(r.mbd.state.job(job).unwrap().spec.project, "late");
    // an element that is let go is found among them
    r.ask(USER, control(Verb::Resume, job, vec![(MANY, MANY, 1)]));
    let (conn, key) = r.starts()[0];
    r.works = false;
    let began = cpu_us();
    r.report(conn, key, AttemptPhase::Running);
    r.report(conn, key, done());
    assert!(cpu_us() - began <= LONGEST);
    assert_eq!(r.stat(job, MANY), "RUN");
}

#[test]
fn btop_among_very_many_pending_jobs_is_done_in_short_turns() {
    let mut r = Rig::of(wide());
    let begin_time = far(&r);
    let one = JobSpec { begin_time, ..spec("x") };
    let jobs: Vec<u32> = (0..JOBS).map(|_| job_of(r.ask(USER, submit(one.clone())))).collect();
    let (first, last) = (jobs[0], jobs[jobs.len() - 1]);
    let spot = |r: &Rig, id: u32| r.mbd.state.spot(r.mbd.state.job(id).unwrap());
    let to = |top, position| Verb::Move { top, position };
    let most = |(longest, said): (u64, Option<Msg>)| {
        assert!(longest <= MOVE_LONGEST, "a turn of {longest} us");
        assert_eq!(code_of(said), 0);
    };
    most(r.longest(USER, control(to(true, 1), last, vec![])));
    assert!(spot(&r, last) < spot(&r, first));
    most(r.longest(USER, control(to(false, 20_000), jobs[7], vec![])));
    let behind = (0..).take(jobs.len()).filter(|i| spot(&r, jobs[*i]) > spot(&r, jobs[7])).count();
    assert_eq!(behind, 19_999);
}

#[test]
fn a_move_heeds_what_has_moved_while_it_looked() {
    let mut r = Rig::of(wide());
    let begin_time = far(&r);
    let one = JobSpec { begin_time, ..spec("x") };
    let jobs: Vec<u32> = (0..5000).map(|_| job_of(r.ask(USER, submit(one.clone())))).collect();
    let spot = |r: &Rig, n: usize| r.mbd.state.spot(r.mbd.state.job(jobs[n]).unwrap());
    let top = |n: usize| control(Verb::Move { top: true, position: 1 }, jobs[n], vec![]);
    r.works = false;
    assert!(r.ask(USER, top(4000)).is_none());
    r.work();
    // an administrator wants to move one meanwhile: its turn is when the first look is over
    assert!(r.ask(ADMIN, top(3000)).is_none());
    // another comes to where it is going
    let place = Some(crate::model::event::QueuePosition::submitted(1, 1));
    let (uid, user) = (1001, "ann".to_string());
    let moved = Event::JobMove {
        at: JobRef { job: jobs[17], idx: 0 },
        position: 1,
        top: true,
        uid,
        user,
        place,
    };
    r.mbd.emit(&mut StepContext { now: r.now, out: &mut Vec::new() }, moved);
    while r.mbd.has_work() {
        r.work();
    }
    let order = [3000, 4000, 17, 0].map(|n| spot(&r, n));
    assert!(order.is_sorted(), "{order:?}");
    let mut all: Vec<_> = (0..jobs.len()).map(|n| spot(&r, n)).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), jobs.len(), "two jobs at one place");
    assert!(r.mbd.works.take_changed().is_empty() && r.answer_of(USER) && r.answer_of(ADMIN));
}

impl Rig {
    fn answer_of(&self, conn: ConnId) -> bool {
        self.sent.iter().any(|(c, m)| *c == conn && matches!(m, Msg::Client(_)))
    }
}

#[test]
fn elements_that_wait_for_elements_are_looked_at_in_short_turns() {
    let mut r = Rig::of(wide());
    let begin_time = far(&r);
    let name = format!("a[1-{MANY}]");
    let first = r.submit(JobSpec { name: name.clone(), begin_time, ..spec("x") }).unwrap();
    let depend = format!("done({first}[*])");
    let second = JobSpec { name, depend, ..spec("y") };
    let second = job_of(r.bounded("bsub -w", USER, submit(second)));
    assert!(r.mbd.deps.ready_elements(second).unwrap().is_empty());
    assert_eq!(r.mbd.deps.value(second), DepValue::False);
    // what changes while not all were looked at is not forgotten
    r.works = false;
    r.mbd.deps.unwatch(&r.mbd.state, second);
    r.mbd.watch_depend(second);
    r.works = true;
    for idx in [3, MANY - 3] {
        r.kill_element(first, idx);
    }
    let never: Vec<u32> = r.mbd.deps.never_elements(second).unwrap().iter().copied().collect();
    assert_eq!(never, [3, MANY - 3]);
}

impl Rig {
    fn kill_element(&mut self, job: u32, idx: u32) {
        self.ask(USER, control(Verb::Kill, job, vec![(idx, idx, 1)]));
    }
}

#[test]
fn orphans_of_a_large_array_are_found_in_short_turns() {
    for grace in [None, Some(10)] {
        let mut c = wide();
        c.batch.params.removal.orphan_grace = grace;
        let mut r = Rig::of(c);
        let begin_time = far(&r);
        let first = r.submit(JobSpec { begin_time, ..spec("x") }).unwrap();
        let at_once = Further::from_iter([("ti", "y")]);
        let further = if grace.is_none() { at_once } else { Further::default() };
        let (name, depend) = (format!("a[1-{MANY}]"), format!("done({first})"));
        let second = r.submit(JobSpec { name, depend, further, ..spec("y") }).unwrap();
        r.bounded("bkill", USER, control(Verb::Kill, first, vec![]));
        let ended = |r: &Rig| r.mbd.state.job(second).unwrap().tally().exit;
        assert_eq!(ended(&r), if grace.is_none() { MANY } else { 0 });
        if grace.is_some() {
            r.now.mono_us += 11_000_000;
            r.works = false;
            r.step(Input::Tick);
            assert!(r.mbd.has_work());
            (0..20).for_each(|_| r.work());
            assert!((1..2000).contains(&ended(&r)), "{}", ended(&r));
        }
    }
}

#[test]
fn exit_values_of_a_large_array_are_counted_not_gone_through() {
    let mut r = Rig::of(wide());
    let first = mixed(&mut r);
    let depend = format!("exit({first},>3) || done({first}[*])");
    let name = format!("b[1-{MANY}]");
    let said = r.bounded("bsub -w", USER, submit(JobSpec { name, depend, ..spec("y") }));
    let waits = r.mbd.state.job(job_of(said)).unwrap().depend.clone().unwrap();
    assert_eq!(waits.eval(&r.mbd.facts(), Some(6)), DepValue::False);
    let mut codes = Vec::new();
    let told = &mut |code, n| codes.push((code, n));
    crate::lang::depend::JobLookup::exit_codes(&r.mbd.facts(), u64::from(first), told);
    assert_eq!(codes, [(None, MANY / 2 - 2)]);
}

#[test]
fn names_are_found_without_looking_at_all_jobs() {
    let mut r = Rig::of(wide());
    let begin_time = far(&r);
    let one = |n: u32| JobSpec { name: format!("s{n}"), begin_time, ..spec("x") };
    for n in 0..JOBS {
        job_of(r.ask(OTHER, submit(one(n))));
    }
    let mine = job_of(r.ask(USER, submit(one(1))));
    let waits = |depend: &str| JobSpec { depend: depend.into(), begin_time, ..spec("y") };
    for depend in ["done(\"s1*\")", "done(\"s1\")", "done(\"*\")"] {
        let (longest, said) = r.longest(USER, submit(waits(depend)));
        println!("{depend}: {longest} us");
        assert!(longest <= 3000, "{depend}: {longest} us");
        let job = job_of(said);
        let on = r.mbd.state.job(job).unwrap().depend.clone().unwrap();
        assert!(on.job_ids().contains(&u64::from(mine)), "{depend}");
    }
}

/// A record that is in the log and in the state, without a request.
fn recorded(r: &mut Rig, event: Event) {
    let rec = Record { time: r.now.secs(), event };
    assert!(r.apply(&rec));
    r.log.push(rec);
}

/// Records that elements of an array were changed by themselves, to this project.
fn changed_alike(r: &mut Rig, job: u32, elems: Vec<(u32, u32, u32)>, project: &str) {
    let now = r.mbd.state.job(job).unwrap();
    let (submit_time, project) = (now.submit_time, project.to_string());
    let spec = JobSpec { project, ..(*now.spec).clone() };
    let m = crate::model::event::JobModify {
        job,
        elems,
        submit_time,
        spec,
        fields: vec![SpecField::Project],
        // what is spooled is another record to the reader
        exact: SpoolRef { spool: 1, at: 1, len: 1 },
        ..Default::default()
    };
    recorded(r, Event::JobModify(Box::new(m)));
}

fn whole(job: u32, fields: Vec<SpecField>, spec: JobSpec) -> ClientMsg {
    let id = IdSel { job, elems: vec![] };
    ClientMsg::Modify(Box::new(Modify { id, spec, fields, ..Modify::default() }))
}

/// A restart from the log gives the same state.
fn same_after_restart(r: &Rig) {
    let again = r.restarted();
    assert_eq!(again.state.differences(&r.mbd.state, &Default::default()), Vec::<String>::new());
}

#[test]
fn an_array_with_very_many_elements_changed_alike_is_changed_in_short_turns() {
    let mut r = Rig::of(wide());
    let begin_time = far(&r);
    let name = format!("a[1-{MANY}]");
    let job = r.submit(JobSpec { name, begin_time, ..spec("x") }).unwrap();
    changed_alike(&mut r, job, vec![(1, MANY, 2)], "odd");
    changed_alike(&mut r, job, vec![(2, 5000, 2)], "even");
    r.mbd.refresh(job);
    let queue = "high".to_string();
    let said = r.bounded("bswitch", USER, control(Verb::Switch { queue }, job, vec![]));
    assert_eq!(code_of(said), 0);
    let spec = JobSpec { out_file: "late".into(), ..JobSpec::default() };
    let said = r.bounded("bmod", USER, whole(job, vec![SpecField::OutFile], spec));
    assert_eq!(code_of(said), 0);
    let now = r.mbd.state.job(job).unwrap();
    for (idx, project) in [(1, "odd"), (2, "even"), (MANY - 1, "odd"), (MANY, "default")] {
        let s = now.spec_at(idx);
        let found = (s.project.as_str(), s.out_file.lossy(), s.queue.as_str());
        assert_eq!(found, (project, "late".into(), "high"), "{idx}");
    }
    same_after_restart(&r);
}

#[test]
fn an_array_with_very_many_differing_elements_is_changed_in_short_turns() {
    let mut r = Rig::of(wide());
    let begin_time = far(&r);
    let job = r.submit(JobSpec { name: "a[1-2000]".into(), begin_time, ..spec("x") }).unwrap();
    for idx in 1..=400 {
        changed_alike(&mut r, job, vec![(idx, idx, 1)], &format!("p{idx}"));
    }
    r.mbd.refresh(job);
    let queue = "high".to_string();
    let said = r.bounded("bswitch", USER, control(Verb::Switch { queue }, job, vec![]));
    assert_eq!(code_of(said), 0);
    let spec = JobSpec { out_file: "late".into(), ..JobSpec::default() };
    let said = r.bounded("bmod", USER, whole(job, vec![SpecField::OutFile], spec));
    assert_eq!(code_of(said), 0);
    let now = r.mbd.state.job(job).unwrap();
    for idx in [1, 2, 400, 2000] {
        let s = now.spec_at(idx);
        let project = if idx <= 400 { format!("p{idx}") } else { "default".into() };
        let found = (s.project.clone(), s.out_file.lossy(), s.queue.as_str());
        assert_eq!(found, (project, "late".into(), "high"), "{idx}");
    }
    same_after_restart(&r);
}

/// Started elements of a test.
const STARTED: u32 = 25_000;

/// An array with very many elements that run on one host.
fn started(r: &mut Rig, elements: u32) -> u32 {
    let begin_time = far(r);
    let name = format!("a[1-{elements}]");
    let job = r.submit(JobSpec { name, begin_time, ..spec("x") }).unwrap();
    let hosts = vec![("h1".into(), 1)];
    for idx in 1..=elements {
        let at = JobRef { job, idx };
        let hosts = hosts.clone();
        let start = JobStart { at, hosts: hosts.into(), attempt: 1, ..JobStart::default() };
        recorded(r, Event::JobStart(Box::new(start)));
        recorded(r, Event::JobStartAccept { at, attempt: 1, pid: 7, pgid: 7 });
    }
    r.mbd.refresh(job);
    job
}

#[test]
fn very_many_started_elements_are_changed_in_short_turns() {
    let mut c = wide();
    c.base.lsf.set("LSB_MOD_ALL_JOBS", "Y");
    let mut r = Rig::of(c);
    let job = started(&mut r, STARTED);
    for verb in [Verb::Switch { queue: "high".into() }, Verb::Stop, Verb::Resume, Verb::Kill] {
        let what = format!("{verb:?}");
        r.sent.clear();
        assert_eq!(code_of(r.bounded(&what, USER, control(verb, job, vec![]))), 0);
    }
    let run =
        |r: &Rig, idx| r.mbd.state.job(job).unwrap().elem(idx).unwrap().run().unwrap().clone();
    assert!(run(&r, STARTED).killed.is_some());
    r.sent.clear();
    let said = r.bounded("bmod -R", USER, whole(job, vec![SpecField::ResReq], reserving(5)));
    assert_eq!(code_of(said), 0);
    assert!(effective(&r, job, STARTED).contains("mem=5"));
    same_after_restart(&r);
}

fn effective(r: &Rig, job: u32, idx: u32) -> String {
    let job = r.mbd.state.job(job).unwrap();
    job.effective_requirement(job.elem(idx).unwrap()).unwrap().to_string()
}

fn reserving(mem: u32) -> JobSpec {
    JobSpec { res_req: format!("rusage[mem={mem}]"), ..JobSpec::default() }
}

/// Started elements of one array in a test of what is done to all of them.
const ALL_STARTED: u32 = 100_000;

#[test]
fn change_of_all_of_a_hundred_thousand_started_elements_is_done_in_short_turns() {
    let mut c = wide();
    c.base.lsf.set("LSB_MOD_ALL_JOBS", "Y");
    c.batch.queues.iter_mut().for_each(|queue| queue.hjob_limit = Some(2 * ALL_STARTED));
    let mut r = Rig::of(c);
    let job = started(&mut r, ALL_STARTED);
    let high = || Verb::Switch { queue: "high".into() };
    let run = |r: &Rig, queue: &str| {
        let id = r.mbd.state.names().find_queue(queue).unwrap();
        let (user, host) = (r.mbd.state.job(job).unwrap().user, HostId::from_index(0));
        let consumer = Consumer::new(id, user);
        let rules = r.mbd.site.consumer_rules(consumer, "ann", &mut Default::default()).host;
        let member = r.mbd.site.rules.get(rules[0]).member(&consumer, host);
        let on_host = r.mbd.limits.used(Counter { rule: rules[0], member });
        (r.mbd.state.counts().queue(id).run, on_host)
    };
    let all = u64::from(ALL_STARTED);
    assert_eq!(code_of(r.bounded("bswitch", USER, control(high(), job, vec![]))), 0);
    assert_eq!((run(&r, "normal"), run(&r, "high")), ((0, 0), (all, all)));
    let fields = || vec![SpecField::ResReq];
    let said = r.bounded("bmod -R", USER, whole(job, fields(), reserving(5)));
    assert_eq!(code_of(said), 0);
    // elements changed by themselves are changed with all, part by part
    for (idx, step, project) in [(1, 4, "one"), (2, 4, "two"), (3, 4, "three")] {
        changed_alike(&mut r, job, vec![(idx, ALL_STARTED, step)], project);
    }
    r.mbd.refresh(job);
    assert!([1, 2, 3, 4].iter().all(|idx| effective(&r, job, *idx).contains("mem=5")));
    let said = r.bounded("bmod -R of parts", USER, whole(job, fields(), reserving(6)));
    assert_eq!(code_of(said), 0);
    let normal = Verb::Switch { queue: "normal".into() };
    let said = r.bounded("bswitch of parts", USER, control(normal, job, vec![]));
    assert_eq!(code_of(said), 0);
    assert_eq!((run(&r, "normal"), run(&r, "high")), ((all, all), (0, 0)));
    assert!((1..=ALL_STARTED).all(|idx| effective(&r, job, idx).contains("mem=6")));
    r.mbd.reserve_audit().unwrap();
    r.mbd.limits_audit().unwrap();
    same_after_restart(&r);
}

#[test]
fn change_of_very_many_named_started_elements_is_done_in_short_turns() {
    let mut c = wide();
    c.base.lsf.set("LSB_MOD_ALL_JOBS", "Y");
    let mut r = Rig::of(c);
    let job = started(&mut r, STARTED);
    for idx in [1, 2, 3, STARTED] {
        r.apply_status(JobRef { job, idx }, JobState::Done);
    }
    let named = |first, last, mem| {
        let id = IdSel { job, elems: vec![(first, last, 1)] };
        let (fields, spec) = (vec![SpecField::ResReq], reserving(mem));
        ClientMsg::Modify(Box::new(Modify { id, spec, fields, ..Modify::default() }))
    };
    let said = r.bounded("bmod -R of elements", USER, named(1, STARTED, 7));
    assert_eq!(code_of(said), 0);
    assert!((4..STARTED).all(|idx| effective(&r, job, idx).contains("mem=7")));
    assert!(!effective(&r, job, STARTED).contains("mem=7"));
    r.mbd.reserve_audit().unwrap();
    let acts = r.acts();
    assert_eq!(acts.len(), STARTED as usize - 4, "each host is told of each element once");
    for idx in 4..STARTED {
        r.apply_status(JobRef { job, idx }, JobState::Done);
    }
    match r.bounded("bmod -R of what is over", USER, named(1, STARTED, 8)) {
        Some(Msg::Refused(refusal)) => assert_eq!(refusal.code, err::JOB_FINISH),
        other => panic!("{other:?}"),
    }
}

#[test]
fn elements_behind_very_many_that_wait_by_themselves_are_found_without_a_walk() {
    const WAIT: u32 = 2000;
    const NEXT: u32 = 100;
    let mut r = Rig::of(wide());
    let name = format!("a[1-{}]", 4 + WAIT + NEXT);
    let job = r.submit(JobSpec { name, ..spec("x") }).unwrap();
    let mut running = r.starts();
    assert_eq!(running.len(), 4);
    let until = far(&r);
    for idx in 5..=4 + WAIT + NEXT {
        let (at, hosts) = (JobRef { job, idx }, vec![("h1".into(), 1)]);
        let start = JobStart { at, hosts: hosts.into(), attempt: 1, ..JobStart::default() };
        recorded(&mut r, Event::JobStart(Box::new(start)));
        // the first of them could not be started, the others can be at once
        let retry = crate::model::event::Retry { until, ..Default::default() };
        let retry = (idx <= 4 + WAIT).then(|| Box::new(retry));
        let failed = JobStatus { at, status: JobState::Pend.into(), retry, ..JobStatus::default() };
        recorded(&mut r, Event::JobStatus(Box::new(failed)));
    }
    r.mbd.refresh(job);
    let before = r.mbd.sched.lone_asked();
    let mut went = Vec::new();
    while went.len() < NEXT as usize - 1 {
        let (conn, key) = running.remove(0);
        r.report(conn, key, done());
        let started = r.starts();
        went.extend(started.iter().map(|s| s.1.idx));
        running.extend(started);
    }
    let asked = r.mbd.sched.lone_asked() - before;
    assert!(asked < (NEXT * WAIT / 10) as usize, "asked {asked} times");
    assert_eq!(went, (5 + WAIT..4 + WAIT + NEXT).collect::<Vec<u32>>());
    // one of those that could not be started is let go
    let first = JobRef { job, idx: 7 };
    let resumed = JobStatus {
        at: first,
        status: JobState::Pend.into(),
        reason: PendReason::Resumed.number(),
        ..Default::default()
    };
    r.mbd.emit(
        &mut StepContext { now: r.now, out: &mut Vec::new() },
        Event::JobStatus(Box::new(resumed)),
    );
    let (conn, key) = running.remove(0);
    r.report(conn, key, done());
    assert_eq!(r.starts()[0].1.idx, 7);
}

/// The windows of a queue close in 40 seconds, and open a minute later.
fn shut_for_a_minute() -> Rig {
    let mut c = wide();
    c.batch.queues[0].run_window = "8:00-22:14 22:15-23:00".into();
    Rig::of(c)
}

impl Rig {
    /// Lets time pass without the work that comes of it; all hosts are heard of.
    fn later_idle(&mut self, secs: u64) {
        self.works = false;
        self.now.mono_us += secs * 1_000_000;
        self.now.wall_us += secs as i64 * 1_000_000;
        for conn in self.mbd.links.hosts().values().filter_map(|h| h.up()).collect::<Vec<_>>() {
            self.step(Input::Msg { conn, msg: Msg::Pong { n: 0 } });
        }
        self.step(Input::Tick);
    }
}

#[test]
fn very_many_started_elements_follow_run_windows_in_short_turns() {
    let mut r = shut_for_a_minute();
    let job = started(&mut r, STARTED);
    for (secs, act) in [(40, Act::Suspend), (60, Act::Resume)] {
        let began = cpu_us();
        r.later_idle(secs);
        let longest = r.works_longest(cpu_us() - began);
        println!("run window: longest turn {longest} us");
        assert!(longest <= LONGEST, "a turn of {longest} us");
        // suspended from then on; resumed when the host says so
        assert!((1..=STARTED).all(|idx| r.stat(job, idx) == "SSUSP"));
        let acts = r.acts();
        assert_eq!(acts.len(), STARTED as usize);
        assert!(acts.iter().all(|a| *a == act));
    }
}

#[test]
fn run_windows_are_kept_after_the_log_could_not_be_written_for_a_while() {
    let mut r = shut_for_a_minute();
    let job = r.submit(JobSpec { name: "a[1-100]".into(), ..spec("x") }).unwrap();
    r.starts();
    for idx in 5..=100 {
        let (at, hosts) = (JobRef { job, idx }, vec![("h1".into(), 1)]);
        let start = JobStart { at, hosts: hosts.into(), attempt: 1, ..JobStart::default() };
        recorded(&mut r, Event::JobStart(Box::new(start)));
    }
    for idx in 1..=100 {
        let at = JobRef { job, idx };
        recorded(&mut r, Event::JobStartAccept { at, attempt: 1, pid: 7, pgid: 7 });
    }
    r.later_idle(40);
    let shut = |r: &Rig| (1..=100).filter(|idx| r.stat(job, *idx) == "SSUSP").count();
    assert!((1..100).contains(&shut(&r)), "{}", shut(&r));
    r.step(Input::LogFailed { why: "no space".into() });
    assert!(!r.mbd.has_work());
    r.reread();
    r.works = true;
    r.step(Input::LogBack);
    assert_eq!(shut(&r), 100);
}
#[test]
fn a_name_of_very_many_own_jobs_is_looked_up_in_short_turns() {
    let mut r = Rig::of(wide());
    let begin_time = far(&r);
    let one = || JobSpec { name: "s".into(), begin_time, ..spec("x") };
    let jobs: Vec<u32> = (0..JOBS).map(|_| job_of(r.ask(USER, submit(one())))).collect();
    for (depend, first) in [("done(\"s\")", DepValue::False), ("!done(\"s\")", DepValue::True)] {
        let waits = JobSpec { depend: depend.into(), begin_time, ..spec("y") };
        let waits = job_of(r.bounded(depend, USER, submit(waits)));
        assert_eq!(r.mbd.deps.value(waits), first);
    }
    assert_eq!(r.mbd.deps.watched_by_name(), (1, JOBS as usize));
    let last = jobs[jobs.len() - 1];
    r.bounded("bkill", USER, control(Verb::Kill, last, vec![]));
    let all: Vec<u32> = (last + 1..=last + 2).collect();
    assert_eq!(r.mbd.deps.value(all[0]), DepValue::Never);
    for id in all {
        r.bounded("bkill", USER, control(Verb::Kill, id, vec![]));
    }
    assert_eq!(r.mbd.deps.watched_by_name(), (0, 0));
}

#[test]
fn a_condition_on_a_name_holds_once_all_its_jobs_were_looked_at() {
    let mut r = Rig::of(wide());
    let begin_time = far(&r);
    let one = || JobSpec { name: "s".into(), begin_time, ..spec("x") };
    let jobs: Vec<u32> = (0..5000).map(|_| job_of(r.ask(USER, submit(one())))).collect();
    for job in &jobs[..4999] {
        r.apply_status(JobRef { job: *job, idx: 0 }, JobState::Done);
    }
    let waits = |depend: &str| JobSpec { depend: depend.into(), ..spec("y") };
    r.works = false;
    let not = job_of(r.ask(USER, submit(waits("!done(\"s\")"))));
    let all = job_of(r.ask(USER, submit(waits("done(\"s\")"))));
    assert!(r.mbd.has_work() && r.mbd.deps.is_named(jobs[4998]));
    // one that was not looked at yet changes
    r.apply_status(JobRef { job: jobs[4999], idx: 0 }, JobState::Done);
    r.mbd.deps.note_changed(JobRef { job: jobs[4999], idx: 0 });
    r.works = true;
    r.step(Input::Tick);
    let value = |id| r.mbd.deps.value(id);
    assert_eq!((value(not), r.stat(not, 0)), (DepValue::Never, "PEND"));
    assert_eq!((value(all), r.stat(all, 0)), (DepValue::True, "RUN"));
}
