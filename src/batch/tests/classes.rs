//! Kinds of job that come and go.

use super::cluster::{Cluster, cluster};
use super::*;
use crate::batch::sched::{
    BYTES_PER_HOST, CLASSES_KEPT, CLASSES_PER_TURN, DUE_PER_TURN, LOOKS_PER_USER,
};
use crate::model::further::Further;
use crate::model::reason::PendReason;

fn asking(n: usize) -> JobSpec {
    JobSpec { res_req: format!("select[ncpus<{n}]"), ..spec("x") }
}

fn held(n: usize) -> JobSpec {
    JobSpec { options2: crate::model::job::opt2::HOLD, ..asking(n) }
}

/// A job of a kind of its own, from submission to its end.
fn passes(r: &mut Rig, n: usize) {
    r.submit(asking(n)).unwrap();
    let started = r.starts();
    assert_eq!(started.len(), 1, "{n}");
    for (conn, key) in started {
        r.report(conn, key, AttemptPhase::Running);
        r.report(conn, key, done());
    }
}

#[test]
fn kinds_of_job_without_a_pending_one_are_forgotten() {
    let mut r = Rig::new();
    // it waits through all of it
    let held = r.submit(held(9)).unwrap();
    for n in 0..5 * CLASSES_KEPT {
        passes(&mut r, 1_000 + n);
    }
    let places = r.mbd.sched.places();
    assert!(places <= 2 * CLASSES_KEPT + 1, "{places} for one pending job");
    // what was kept still goes where it asked, and so does a kind whose place was another's
    r.control(Verb::Resume, held);
    assert_eq!(r.starts().len(), 1);
}

#[test]
fn jobs_of_two_users_and_queues_with_one_requirement_share_it_compiled() {
    let site = cluster().hosts(1, 1).queue("night", "PRIORITY = 40");
    let mut c = site.queue("own", "RES_REQ = select[mem>0]").up();
    let mut asks = |user: &str, queue: &str, requirement: &str| {
        c.submit(user, &format!("-q {queue} -R '{requirement}'"));
        c.requirements_compiled()
    };
    let known = asks("ann", "normal", "select[ncpus<1]");
    assert_eq!(asks("bob", "normal", "select[ncpus<1]"), known);
    assert_eq!(asks("bob", "night", "select[ncpus<1]"), known);
    assert_eq!(asks("ann", "own", "select[ncpus<1]"), known + 1);
    assert_eq!(asks("ann", "normal", "select[ncpus<2]"), known + 2);
}

#[test]
fn requirements_without_a_class_are_forgotten() {
    let mut r = Rig::new();
    for n in 0..5 * CLASSES_KEPT {
        passes(&mut r, 1_000 + n);
    }
    let known = r.mbd.sched.requirements();
    assert!(known <= 4 * CLASSES_KEPT, "{known} without a pending job");
}

#[test]
fn a_kind_that_was_forgotten_is_found_anew() {
    let mut r = Rig::new();
    for n in 1..2 * CLASSES_KEPT {
        let id = r.submit(held(1_000 + n)).unwrap();
        assert_eq!(r.kill(USER, id), 0);
    }
    // the last kind that there is room for comes and goes in one turn
    let mut out = Vec::new();
    let now = r.now;
    let mut say = |r: &mut Rig, m: ClientMsg| {
        r.mbd.step(now, Input::Msg { conn: USER, msg: Msg::Client(m) }, &mut out);
    };
    let last = held(999);
    let (spec, job) = (last.clone(), 2 * CLASSES_KEPT as u32);
    say(&mut r, ClientMsg::Submit(Box::new(Submit { spec, ..Submit::default() })));
    let select = JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..JobSelect::default() };
    say(&mut r, ClientMsg::Control(Box::new(Control::of(Verb::Kill, select))));
    r.step(Input::Tick);
    assert_eq!((r.stat(job, 0), r.mbd.sched.places()), ("EXIT", 2 * CLASSES_KEPT));
    // one more of that kind
    let again = r.submit(last).unwrap();
    r.control(Verb::Resume, again);
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [again]);
    assert_eq!(r.mbd.sched.places(), 2 * CLASSES_KEPT, "in the place of another");
}

#[test]
fn many_kinds_that_wait_are_not_gone_through_in_each_pass() {
    let mut r = Rig::new();
    let waiting = 2 * CLASSES_KEPT + 10;
    for n in 0..waiting {
        r.submit(held(9_000 + n)).unwrap();
    }
    // they would be forgotten one by one if each pass looked for them
    for n in 0..CLASSES_KEPT {
        passes(&mut r, 1_000 + n);
    }
    assert_eq!(r.mbd.sched.places(), waiting + CLASSES_KEPT);
}

#[test]
fn classes_after_a_restart_are_those_of_pending_jobs() {
    let mut r = Rig::new();
    let kept = r.submit(held(9)).unwrap();
    for n in 0..CLASSES_KEPT {
        passes(&mut r, 1_000 + n);
    }
    assert_eq!(r.mbd.sched.places(), CLASSES_KEPT + 1);
    r.reread();
    assert_eq!(r.mbd.sched.places(), 1);
    assert_eq!(r.restarted().sched.places(), 1);
    r.connect();
    // kinds that are new since do not take the place of the one that waits
    for n in 0..2 * CLASSES_KEPT {
        passes(&mut r, 1_000 + n);
    }
    r.control(Verb::Resume, kept);
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [kept]);
}

/// A requirement of its own that no host meets.
fn never(n: usize) -> JobSpec {
    JobSpec { res_req: format!("select[ncpus>{}]", 1000 + n), ..spec("x") }
}

/// The submissions of one user, taken in one turn.
fn flood(r: &mut Rig, conn: ConnId, specs: impl Iterator<Item = JobSpec>) -> Vec<u32> {
    let mut out = Vec::new();
    for spec in specs {
        let m = ClientMsg::Submit(Box::new(Submit { spec, ..Submit::default() }));
        r.mbd.step(r.now, Input::Msg { conn, msg: Msg::Client(m) }, &mut out);
    }
    let id = |e: &Effect| match e {
        Effect::SendDurable { msg: Msg::Client(ClientMsg::Submitted { job, .. }), .. } => {
            Some(*job)
        }
        _ => None,
    };
    let ids = out.iter().filter_map(id).collect();
    r.carry_out(out);
    r.step(Input::Tick);
    ids
}

/// Ticks as the machine asks for them until it asks for none within a minute; how many.
fn settled(r: &mut Rig) -> usize {
    for ticks in 0.. {
        let Some(next) = r.mbd.sched.deadline() else { return ticks };
        let wait = next.saturating_sub(r.now.mono_us);
        assert!(wait < 60_000_000 && ticks < 10_000, "{ticks} ticks, the next in {wait} us");
        r.now.mono_us += wait;
        r.now.wall_us += wait as i64;
        let mut out = Vec::new();
        r.mbd.step(r.now, Input::Tick, &mut out);
        r.carry_out(out);
    }
    0
}

const MANY: usize = 2_000;

#[test]
fn many_classes_of_one_user_cost_a_pass_no_more_than_the_first_and_a_turn() {
    let mut r = Rig::new();
    flood(&mut r, USER, (0..MANY).map(never));
    let before = r.mbd.sched.looks();
    r.mbd.sched.changed();
    r.step(Input::Tick);
    let looks = r.mbd.sched.looks() - before;
    assert!(looks <= LOOKS_PER_USER + CLASSES_PER_TURN, "{looks} classes looked at");
}

#[test]
fn each_class_is_looked_at_once_while_nothing_changes() {
    let mut r = Rig::new();
    flood(&mut r, USER, (0..MANY).map(never));
    settled(&mut r);
    assert_eq!(r.mbd.sched.looks(), MANY, "once each");
    // somebody else's job that finds no place is looked at, and nothing else
    flood(&mut r, OTHER, [never(0)].into_iter());
    settled(&mut r);
    assert_eq!(r.mbd.sched.looks(), MANY + 1);
    let before = r.mbd.sched.visits();
    flood(&mut r, OTHER, [never(1)].into_iter());
    settled(&mut r);
    assert_eq!(r.mbd.sched.visits() - before, 1, "no pass comes to those of others");
    // all that may make room has all of them looked at once more
    let ticks = {
        r.mbd.sched.changed();
        settled(&mut r)
    };
    assert_eq!(r.mbd.sched.looks(), 2 * (MANY + 2));
    assert!(ticks > (MANY - LOOKS_PER_USER) / CLASSES_PER_TURN, "{ticks} ticks");
}

/// Submissions of [`MANY`] requirements of their own that no host meets.
fn many_that_wait(c: &mut Cluster, user: &str) -> Vec<JobRef> {
    let options: Vec<String> =
        (0..MANY).map(|n| format!("-R 'select[ncpus>{}]'", 1000 + n)).collect();
    c.submit_together(user, &options.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn class_beyond_the_first_of_its_user_starts_when_its_turn_comes() {
    let mut c = cluster().hosts(2, 2).up();
    many_that_wait(&mut c, "ann");
    c.advance(60);
    let last = c.submit("ann", "-R 'select[ncpus<1000]'");
    c.advance(60);
    assert_eq!(c.started(), [last]);
}

#[test]
fn job_of_another_user_starts_at_once_beside_many_classes_of_one() {
    let mut c = cluster().hosts(2, 2).up();
    many_that_wait(&mut c, "ann");
    for options in ["", "-R 'select[ncpus>1]'"] {
        let job = c.submit("bob", options);
        assert_eq!(c.started(), [job], "{options}");
    }
}

#[test]
fn first_classes_of_a_user_keep_their_order() {
    let mut c = cluster().hosts(2, 1).up();
    let mut running: Vec<JobRef> = (0..2).map(|_| c.submit("ann", "")).collect();
    assert_eq!(c.started(), running);
    let options: Vec<String> =
        (0..LOOKS_PER_USER).map(|n| format!("-R 'select[ncpus<{}]'", 1000 + n)).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let waiting = c.submit_together("ann", &options);
    let mut order = Vec::new();
    while let Some(job) = running.pop() {
        c.end(job, 0);
        let next = c.started();
        order.extend(next.iter().copied());
        running.extend(next);
    }
    assert_eq!(order, waiting);
}

#[test]
fn class_beyond_the_first_of_its_user_has_the_reasons_of_the_first() {
    let mut c = cluster().hosts(2, 2).up();
    let jobs = many_that_wait(&mut c, "ann");
    c.advance(60);
    let codes = |c: &mut Cluster, at: JobRef| -> Vec<PendReason> {
        c.reasons(at).into_iter().map(|reason| reason.0).collect()
    };
    assert_eq!(codes(&mut c, jobs[0]), [PendReason::Requirement]);
    assert_eq!(codes(&mut c, jobs[MANY - 1]), [PendReason::Requirement]);
    // the queue's own reason comes before
    c.badmin("qinact normal");
    assert_eq!(codes(&mut c, jobs[MANY - 1]), [PendReason::QueueInactive]);
}

#[test]
fn a_pass_that_is_too_long_for_a_turn_goes_on_where_it_was() {
    let mut r = Rig::new();
    // words that take as long to go through as very many hosts
    let words: Vec<String> = (0..9_000).map(|n| format!("h1+{n:020}")).collect();
    let slow = |n: usize| JobSpec { hosts: words.clone(), ..never(n) };
    flood(&mut r, USER, (0..40).map(slow));
    settled(&mut r);
    let before = r.mbd.sched.looks();
    r.mbd.sched.changed();
    let mut each = Vec::new();
    while r.mbd.sched.deadline().is_some() {
        let was = r.mbd.sched.looks();
        let mut out = Vec::new();
        r.mbd.step(r.now, Input::Tick, &mut out);
        each.push(r.mbd.sched.looks() - was);
        // what changes meanwhile does not have it begin again for ever
        if each.len() < 5 {
            r.mbd.sched.changed();
        }
    }
    assert!(each.iter().all(|looks| *looks <= 5), "{each:?}");
    // one more walk takes up all that has changed meanwhile
    assert_eq!(r.mbd.sched.looks() - before, 2 * 40, "{each:?}");
}

#[test]
fn very_many_jobs_of_one_start_time_are_taken_in_several_turns() {
    let mut r = Rig::new();
    let at = r.now.secs() + 60;
    let jobs = 3 * DUE_PER_TURN;
    flood(&mut r, USER, (0..jobs).map(|_| JobSpec { begin_time: at, ..spec("x") }));
    r.now.mono_us += 60_000_000;
    r.now.wall_us += 60_000_000;
    let mut out = Vec::new();
    let mut turns = Vec::new();
    while r.mbd.sched.begins_left() > 0 {
        let was = r.mbd.sched.begins_left();
        assert!(r.mbd.sched.deadline().is_some_and(|due| due <= r.now.mono_us));
        r.mbd.step(r.now, Input::Tick, &mut out);
        turns.push(was - r.mbd.sched.begins_left());
    }
    assert_eq!(turns, [DUE_PER_TURN; 3]);
}

#[test]
fn a_requirement_of_its_own_counts_among_what_a_user_keeps() {
    let mut r = Rig::new();
    let mut kept = |spec: JobSpec| {
        let of =
            |r: &Rig| r.mbd.state.space().of(r.mbd.state.names().find_user("ann").unwrap()).bytes;
        r.submit(self::spec("x")).unwrap();
        let before = of(&r);
        r.submit(spec).unwrap();
        of(&r) - before
    };
    let plain = kept(spec("x"));
    let long = format!("select[{}]", vec!["ncpus>1000"; 100].join("||"));
    let own = kept(JobSpec { res_req: long.clone(), ..spec("x") });
    assert_eq!(own, plain + 1024 + 2 * long.len() as u64);
    assert!(kept(JobSpec { hosts: vec!["h1".into()], ..spec("x") }) > plain + 1024);
    assert!(kept(JobSpec { min_slots: 2, max_slots: 2, ..spec("x") }) >= plain + 1024);
    let slots = Further::from_iter([("hostslots", "h1 2")]);
    assert!(
        kept(JobSpec { further: slots, min_slots: 2, max_slots: 2, ..spec("x") }) > plain + 1024
    );
}

/// Fills both hosts, with [`MANY`] classes of two users behind; returns a started job and its link.
fn full_with_many_behind() -> (Rig, (ConnId, JobKey)) {
    let mut r = Rig::new();
    flood(&mut r, OTHER, (0..4).map(|_| spec("x")));
    let starts = r.starts();
    assert_eq!(starts.len(), 4);
    flood(&mut r, USER, (0..MANY / 2).map(asking_for_all));
    flood(&mut r, OTHER, (0..MANY / 2).map(asking_for_all));
    settled(&mut r);
    (r, starts[0])
}

/// A requirement of its own that every host meets.
fn asking_for_all(n: usize) -> JobSpec {
    asking(1_000 + n)
}

#[test]
fn freed_slot_goes_to_the_first_class_and_no_other_is_looked_at() {
    let (mut r, (conn, key)) = full_with_many_behind();
    let (looks, visits) = (r.mbd.sched.looks(), r.mbd.sched.visits());
    r.report(conn, key, AttemptPhase::Running);
    r.report(conn, key, done());
    assert_eq!(r.starts().len(), 1);
    assert_eq!((r.mbd.sched.looks() - looks, r.mbd.sched.visits() - visits), (1, 1));
}

/// A requirement of its own that is about facts and that no host meets.
fn asking_for_another_host(n: usize) -> JobSpec {
    JobSpec { res_req: format!("select[hname==nowhere && mem>{n}]"), ..spec("x") }
}

#[test]
fn user_whose_classes_plainly_do_not_fit_a_freed_host_is_passed_over() {
    let mut r = Rig::new();
    flood(&mut r, OTHER, (0..4).map(|_| spec("x")));
    let starts = r.starts();
    flood(&mut r, USER, (0..5).map(asking_for_another_host));
    flood(&mut r, OTHER, (0..2).map(|_| spec("x")));
    settled(&mut r);
    let mut visits_of_a_start = |(conn, key)| {
        let before = r.mbd.sched.visits();
        r.report(conn, key, AttemptPhase::Running);
        r.report(conn, key, done());
        assert_eq!(r.starts().len(), 1);
        r.mbd.sched.visits() - before
    };
    assert_eq!(visits_of_a_start(starts[0]), 1, "although each class is new");
    assert_eq!(visits_of_a_start(starts[1]), 1);
}

#[test]
fn users_who_are_passed_over_do_not_hide_one_behind_them_whose_class_fits() {
    let mut c = cluster().hosts(2, 1).up();
    let running = on_first_hosts(&mut c, 2, 1);
    let mut on = |user: &str, host: &str| c.submit(user, &format!("-R 'select[hname=={host}]'"));
    on("eve", "nowhere");
    on("zoe", "nowhere");
    let on_second = [on("dan", "h2"), on("bob", "h2")];
    on("tom", "nowhere");
    let on_first = on("ann", "h1");
    // all before ann are passed over, and are not new any more
    c.end(running[0], 0);
    assert_eq!(c.started(), [on_first]);
    c.end(running[1], 0);
    assert_eq!(c.started(), [on_second[0]]);
    c.end(on_second[0], 0);
    assert_eq!(c.started(), [on_second[1]]);
}

#[test]
fn class_is_compiled_with_its_first_job_but_for_hosts_that_are_asked_for() {
    let mut r = Rig::new();
    flood(&mut r, OTHER, (0..4).map(|_| spec("x")));
    let before = (r.mbd.sched.compiled_bytes(), r.mbd.reserve.resolved());
    flood(&mut r, USER, [asking_for_all(0)].into_iter());
    let after = r.mbd.sched.compiled_bytes();
    assert!(after > before.0, "{after}");
    assert_eq!(r.mbd.reserve.resolved(), before.1 + 1, "what its jobs will reserve");
    flood(&mut r, USER, [JobSpec { hosts: vec!["h1".into()], ..spec("x") }].into_iter());
    assert_eq!(r.mbd.sched.compiled_bytes(), after);
}

#[test]
fn load_of_a_full_host_has_no_class_looked_at() {
    let (mut r, _) = full_with_many_behind();
    let visits = r.mbd.sched.visits();
    r.lock_shown("h1", 0);
    assert_eq!(r.mbd.sched.visits(), visits);
}

#[test]
fn classes_of_a_queue_at_its_limit_are_looked_at_when_it_has_room_only() {
    let mut c = conf();
    c.batch.queues[0].qjob_limit = Some(1);
    let mut r = Rig::of(c);
    r.submit(spec("x")).unwrap();
    let (conn, key) = r.starts()[0];
    let waiting = flood(&mut r, USER, (0..MANY).map(asking_for_all));
    settled(&mut r);
    let looks = r.mbd.sched.looks();
    // another host changes, to no avail
    r.lock_shown("h2", 0);
    settled(&mut r);
    assert_eq!(r.mbd.sched.looks(), looks);
    r.report(conn, key, AttemptPhase::Running);
    r.report(conn, key, done());
    let started: Vec<u32> = r.starts().iter().map(|s| s.1.job).collect();
    assert_eq!(started, waiting[..1]);
    assert_eq!(r.mbd.sched.looks() - looks, 1);
}

#[test]
fn class_without_a_ready_job_while_a_host_was_freed_is_looked_at_when_one_comes() {
    let mut c = cluster().hosts(2, 1).up();
    let first = c.submit("ann", "-m h1");
    // h2 is open, so that the class was looked at
    let waits = c.submit("bob", "-m h1");
    assert_eq!(c.started(), [first]);
    c.kill("bob", waits);
    c.end(first, 0);
    let again = c.submit("bob", "-m h1");
    assert_eq!(c.started(), [again]);
}

#[test]
fn job_of_a_queue_with_a_pause_of_its_own_starts_when_that_is_over() {
    let mut c = cluster()
        .hosts(1, 4)
        .queue("slow", "JOB_ACCEPT_INTERVAL = 2")
        .param("MBD_SLEEP_TIME = 10")
        .up();
    let first = c.submit("ann", "");
    assert_eq!(c.started(), [first]);
    let waits = c.submit("ann", "-q slow");
    c.advance(10);
    assert_eq!(c.started(), []);
    assert_eq!(c.reasons(waits)[0].0, PendReason::JustStarted);
    c.advance(120);
    assert_eq!(c.started(), [waits]);
}

#[test]
fn class_of_a_limited_user_whose_first_job_goes_is_looked_at_when_the_limit_has_room() {
    let mut c = cluster().hosts(2, 1).queue("one", "UJOB_LIMIT = 1").up();
    let holds = c.submit("bob", "-q one -m h1");
    // h2 is open, so that the class was looked at
    let first = c.submit("ann", "-q one -m h1");
    let second = c.submit("ann", "-q one -m h1");
    let runs = c.submit("ann", "-q one -m h2");
    assert_eq!(c.started(), [holds, runs]);
    // a host is freed while the limit leaves no room
    c.end(holds, 0);
    c.kill("ann", first);
    c.end(runs, 0);
    assert_eq!(c.started(), [second]);
}

#[test]
fn compiled_class_is_counted_with_the_hosts_that_its_words_stand_for() {
    let kept = |hosts: Vec<String>| {
        let mut r = Rig::new();
        flood(&mut r, USER, [JobSpec { hosts, ..never(0) }].into_iter());
        settled(&mut r);
        r.mbd.sched.compiled_bytes()
    };
    // one short word for every host of the cluster
    let (none, all) = (kept(Vec::new()), kept(vec!["all".into()]));
    assert!(all >= none + 2 * BYTES_PER_HOST, "{none} bytes without hosts, {all} with two");
}

/// Hosts of the clusters in which looks at hosts are counted, and jobs that wait there.
const HOSTS: usize = 50;
const WAITING: usize = 20;

/// Jobs of a queue that is opened when all of them wait; the looks at hosts until all have started.
fn looks_of_a_pass(c: &mut Cluster, options: &str) -> usize {
    looks_of_a_pass_in(c, "normal", options)
}

fn looks_of_a_pass_in(c: &mut Cluster, queue: &str, options: &str) -> usize {
    c.badmin(&format!("qinact {queue}"));
    let options = format!("-q {queue} {options}");
    let jobs = c.submit_together("ann", &[options.as_str(); WAITING]);
    c.host_looks();
    c.badmin(&format!("qact {queue}"));
    assert_eq!(c.started(), jobs, "{options}");
    c.host_looks()
}

#[test]
fn parallel_jobs_look_no_further_than_their_last_host() {
    for options in ["-n 2 -R 'span[hosts=1]'", "-n 1,2 -R 'span[hosts=1]'"] {
        let looks = looks_of_a_pass(&mut cluster().hosts(HOSTS, 4).up(), options);
        assert!(looks <= 2 * WAITING, "{options}: {looks}");
    }
    for options in ["-n 4 -R 'span[ptile=2]'", "-n 4"] {
        let looks = looks_of_a_pass(&mut cluster().hosts(HOSTS, 4).up(), options);
        assert!(looks <= 3 * WAITING, "{options}: {looks}");
    }
}

#[test]
fn parallel_jobs_look_once_at_hosts_that_do_not_match() {
    for span in ["span[hosts=1]", "span[ptile=2]", ""] {
        let mut c = cluster().hosts(HOSTS, 4).up();
        (1..=HOSTS - WAITING).for_each(|n| c.load(&format!("h{n}"), "mem=100"));
        let options = format!("-n 4 -R 'select[mem>500] order[slots] {span}'");
        let looks = looks_of_a_pass(&mut c, &options);
        assert!(looks <= HOSTS + 3 * WAITING, "{span}: {looks}");
    }
}

#[test]
fn hosts_that_are_preferred_are_put_in_order_once_for_many_jobs() {
    let all: Vec<String> = (1..=HOSTS).map(|n| format!("h{n}")).collect();
    let options = format!("-m '{}'", all.join(" "));
    let mut c = cluster().hosts(HOSTS, 1).queue("best", "HOSTS = h40+2 others+1").up();
    // the hosts that were given a job are passed over
    let looks = looks_of_a_pass(&mut c, &options);
    assert!(looks <= 2 * HOSTS + 3 * WAITING, "by -m: {looks}");
    let looks = looks_of_a_pass_in(&mut c, "best", "");
    assert!(looks <= 2 * HOSTS + 3 * WAITING, "by HOSTS: {looks}");
    let mut c = cluster().hosts(HOSTS, 2).queue("best", "HOSTS = h40+2 others+1").up();
    looks_of_a_pass_in(&mut c, "best", "");
    let first = c.running_on(JobRef { job: 1, idx: 0 });
    assert_eq!(first, ["h40"]);
    let looks = looks_of_a_pass_in(&mut c, "best", "-n 2");
    assert!(looks <= 2 * HOSTS + 3 * WAITING, "of jobs on several hosts: {looks}");
}

/// Jobs of one slot, so many on each of the first hosts.
fn on_first_hosts(c: &mut Cluster, hosts: usize, each: usize) -> Vec<JobRef> {
    let options: Vec<String> = (0..hosts * each).map(|n| format!("-m h{}", n / each + 1)).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let jobs = c.submit_together("bob", &options);
    assert_eq!(c.started(), jobs);
    jobs
}

#[test]
fn hosts_with_too_few_slots_for_a_job_on_one_host_are_looked_at_once() {
    let mut c = cluster().hosts(HOSTS, 4).up();
    on_first_hosts(&mut c, HOSTS - WAITING, 2);
    let looks = looks_of_a_pass(&mut c, "-n 3 -R 'span[hosts=1]'");
    assert!(looks <= HOSTS + 3 * WAITING, "{looks}");
}

#[test]
fn waiting_job_on_one_host_looks_at_the_host_that_changed() {
    let mut c = cluster().hosts(HOSTS, 4).up();
    let running = on_first_hosts(&mut c, HOSTS, 2);
    let waiting = c.submit("ann", "-n 4 -R 'span[hosts=1]'");
    assert_eq!(c.started(), []);
    c.host_looks();
    // three free slots plainly do not do
    c.end(running[14], 0);
    assert_eq!((c.host_looks(), c.started()), (0, vec![]));
    c.end(running[15], 0);
    assert_eq!((c.host_looks(), c.started()), (1, vec![waiting]));
}

#[test]
fn classes_that_plainly_do_not_fit_a_freed_host_are_passed_over_without_a_look() {
    let mut c = cluster().hosts(HOSTS, 2).up();
    let running = on_first_hosts(&mut c, HOSTS, 2);
    for n in 0..WAITING {
        c.submit("ann", &format!("-n 2 -R 'select[mem>{n}] span[hosts=1]'"));
        c.submit("ann", &format!("-R 'select[hname!=h8 && mem>{n}]'"));
    }
    let fits = c.submit("ann", "-R 'select[hname==h8]'");
    c.end(running[14], 0);
    assert_eq!(c.started(), [fits]);
    // no class is new any more
    let fits = c.submit("ann", "-R 'select[hname==h8]'");
    c.host_looks();
    c.end(running[15], 0);
    assert_eq!((c.host_looks(), c.started()), (1, vec![fits]));
}
