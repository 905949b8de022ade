//! Jobs that mbatchd requeues by itself, and jobs that are given up.

use super::cluster::{Cluster, ClusterBuilder, cluster, element};
use super::*;
use crate::conf::types::{RawParam, RawParams};
use crate::model::event::Finish;
use crate::model::further::Further;
use crate::model::reason::{PendReason, term};
use crate::model::specfield::SpecField;
use serde_json::json;

pub fn with(key: &str, value: &str) -> JobSpec {
    JobSpec { further: Further::from_iter([(key, value)]), ..spec("x") }
}

pub fn exit(code: i32) -> AttemptPhase {
    AttemptPhase::Ended { end: End::Status(code << 8), exit_info: 0 }
}

pub fn param(c: &mut ClusterConf, name: &str, value: &str) {
    raw(&mut c.batch.params.raw, name, value);
}

pub fn raw(of: &mut RawParams, name: &str, value: &str) {
    let value = RawParam { text: value.into(), pos: Default::default(), breaks: Vec::new() };
    of.insert(name.into(), value);
}

pub fn at(job: u32) -> JobRef {
    JobRef { job, idx: 0 }
}

impl Rig {
    /// Runs the one start there is to this end.
    pub fn runs(&mut self, phase: AttemptPhase) -> JobKey {
        let starts = self.starts();
        assert_eq!(starts.len(), 1, "{starts:?}");
        let (conn, key) = starts[0];
        if !matches!(phase, AttemptPhase::Failed { .. }) {
            self.report(conn, key, AttemptPhase::Running);
        }
        self.report(conn, key, phase);
        key
    }

    /// The host of the attempt is connected again, with what it says of it; mbatchd may have been
    /// restarted before.
    fn comes_back(&mut self, restart: bool, key: JobKey, phase: AttemptPhase) -> ConnId {
        if restart {
            let (log, mut fresh) = (self.log.clone(), Rig::new());
            (fresh.mbd, fresh.now, fresh.log) = (self.restarted(), self.now, log);
            fresh.dialled.clear();
            fresh.step(Input::Start);
            *self = fresh;
        }
        self.sent.clear();
        self.now.mono_us += 60_000_000;
        self.step(Input::Tick);
        let run = self.mbd.state.running(key).unwrap().hosts[0].0;
        let on = self.mbd.state.names().host(run).to_string();
        let mut found = None;
        for (conn, to) in std::mem::take(&mut self.dialled) {
            let Endpoint::Tcp { host, daemon } = to else { continue };
            if daemon != Daemon::Sbatchd || host != on {
                continue;
            }
            self.step(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
            let tasks =
                vec![TaskState { key, phase: phase.clone(), pid: 7, ..TaskState::default() }];
            let msg = SbdMsg::Inventory {
                boot_id: "boot".into(),
                tasks,
                more: false,
                members: None,
                validates: false,
                unjoined: Vec::new(),
                member_slots: Vec::new(),
            };
            self.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
            found = Some(conn);
        }
        if restart {
            let peer = Peer::User { uid: 1001, gid: 1001, user: "ann".into(), host: "h1".into() };
            self.step(Input::Opened { conn: USER, peer });
        }
        found.unwrap()
    }

    /// The orders about an attempt that a host got.
    fn ordered(&self, on: ConnId, of: JobKey) -> Vec<Act> {
        let act = |(c, m): &(ConnId, Msg)| match m {
            Msg::Sbd(SbdMsg::Act { key, act, .. }) if *key == of && *c == on => Some(act.clone()),
            _ => None,
        };
        self.sent.iter().filter_map(act).collect()
    }

    pub fn held(&self, job: u32) -> Option<PendReason> {
        match &self.mbd.state.elem(at(job))?.state {
            state::ElemState::Pend(p) => p.held,
            _ => None,
        }
    }
}

/// -hostfile: exactly these hosts and slots, or none.
#[test]
fn host_file_fixes_hosts_and_slots_and_their_order() {
    let mut c = cluster().hosts(2, 2).up();
    // not the best host first, and not all that is free
    let job = c.submit("ann", "-hostfile 'h2 1 h1 1 h2 1'");
    assert_eq!(c.running_on(job), ["h2", "h2", "h1"]);
    // its host is told the order of the lines, where that is another one
    let ranks = |c: &mut Cluster| {
        let orders = c.start_orders();
        assert_eq!(orders.len(), 1);
        orders[0].ranks.iter().map(|(host, n)| format!("{host} {n}")).collect::<Vec<_>>()
    };
    assert_eq!(ranks(&mut c), ["h2 1", "h1 1", "h2 1"]);
    let asked = c.columns(job, &[Col::MinSlots, Col::MaxSlots, Col::AskedHosts]);
    assert_eq!(asked, [json!(3), json!(3), json!(["h2", "h1"])]);
    // one slot is left on h1: no other will do
    let wait = c.submit("ann", "-hostfile 'h1 1 h2 1'");
    let more = c.submit("ann", "-hostfile 'h1 2'");
    let small = c.submit("ann", "-hostfile 'h1 1'");
    assert_eq!([c.state(wait), c.state(more)], ["PEND", "PEND"]);
    assert_eq!((c.running_on(small), ranks(&mut c)), (vec!["h1".into()], vec![]));
    let refused = c.try_modify("ann", more, &[SpecField::Slots], "-n 1").unwrap_err();
    assert!(refused.text.ends_with("with option -n"), "{refused:?}");
}

#[test]
fn host_file_that_names_no_host_or_no_slots_is_refused() {
    for (bad, code, about) in [
        ("h1 1 nosuch 2", err::BAD_HOST, "nosuch"),
        ("h1 x", err::BAD_HOST, "h1 x"),
        ("h1 0", err::BAD_HOST, "h1 0"),
        ("h1", err::BAD_HOST, "h1"),
        ("h1 4000000000 h2 4000000000", err::PROC_NUM, ""),
    ] {
        let spec = JobSpec { min_slots: 0, max_slots: 0, ..with("hostslots", bad) };
        let refused = Rig::new().submit(spec).unwrap_err();
        assert_eq!((refused.code, refused.about.as_str()), (code, about), "{bad}");
    }
    let mut c = cluster().hosts(2, 2).queue("normal", "PRIORITY = 30; HOSTS = h1").up();
    let refused = c.try_submit("ann", "-hostfile 'h1 1 h2 1'").unwrap_err();
    assert_eq!((refused.code, refused.about.as_str()), (err::QUEUE_HOST, "h2"));
}

/// A queue that takes exit values 5 and 6 back, each job twice at most.
fn takes_back() -> ClusterBuilder {
    let lines = "PRIORITY = 30; REQUEUE_EXIT_VALUES = 5 6";
    cluster().hosts(2, 2).queue("normal", lines).param("MAX_JOB_REQUEUE = 2")
}

#[test]
fn job_goes_back_by_the_exit_values_of_its_queue_or_its_own() {
    let mut c = takes_back().up();
    let attempts = |c: &mut Cluster| -> Vec<u32> {
        c.start_orders().iter().map(|order| order.key.attempt).collect()
    };
    let by_queue = c.submit("ann", "");
    c.end(by_queue, 5);
    c.advance(1);
    assert_eq!(attempts(&mut c), [1, 2]);
    c.end(by_queue, 7);
    assert_eq!((c.state(by_queue), c.accounted().len()), ("EXIT".into(), 1));
    // of the job in the place of the queue's
    let by_job = c.submit("ann", "-Q 'all ~1'");
    c.end(by_job, 5);
    c.advance(1);
    assert_eq!(attempts(&mut c), [1, 2]);
    c.end(by_job, 1);
    assert_eq!(c.state(by_job), "EXIT");
}

#[test]
fn job_that_succeeds_or_is_killed_does_not_go_back() {
    let mut c = takes_back().up();
    let good = c.submit("ann", "-Q all");
    c.end(good, 0);
    let large = c.submit("ann", "-Q all");
    c.ends_by(large, 9, term::MEMLIMIT);
    let killed = c.submit("ann", "-Q all");
    c.hosts_wait();
    c.kill("ann", killed);
    c.ends_by(killed, 2, 0);
    c.started();
    c.advance(5);
    assert_eq!(c.started(), []);
    assert_eq!([good, large, killed].map(|job| c.state(job)), ["DONE", "EXIT", "EXIT"]);
}

#[test]
fn job_at_its_requeue_limit_is_held_and_a_restart_counts_on() {
    let mut c = takes_back().up();
    let job = c.submit("ann", "");
    c.end(job, 6);
    c.advance(1);
    c.end(job, 6);
    c.started();
    c.advance(2);
    assert_eq!((c.started(), c.state(job)), (vec![job], "RUN".into()));
    c.restart();
    c.end(job, 6);
    assert_eq!((c.state(job), c.reason(job)), ("PSUSP".into(), PendReason::RequeueLimit));
    c.resume("ann", job);
    c.end(job, 6);
    c.advance(1);
    let attempts: Vec<u32> = c.start_orders().iter().map(|order| order.key.attempt).collect();
    assert_eq!(attempts, [4, 5]);
    c.end(job, 0);
    assert_eq!(c.state(job), "DONE");
}

#[test]
fn an_excluded_host_is_passed_over_until_mbatchd_starts_again() {
    let mut r = Rig::new();
    let id = r.submit(with("Q", "EXCLUDE(20)")).unwrap();
    let mut hosts = Vec::new();
    for _ in 0..2 {
        let (conn, key) = r.starts()[0];
        hosts.push(conn);
        r.report(conn, key, AttemptPhase::Running);
        r.report(conn, key, exit(20));
        r.later(2);
    }
    assert!(hosts[0] != hosts[1], "{hosts:?}");
    // it was on all of them
    r.later(120);
    assert!(r.starts().is_empty());
    assert_eq!(r.why_at(at(id)), [(PendReason::Excluded, 2)]);
    // its likes go on, and know nothing of it
    let like = r.submit(with("Q", "EXCLUDE(20)")).unwrap();
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [like]);
    // what is read again without a start of mbatchd is not forgotten
    assert_eq!(r.mbd.state.tries().of(at(id)).unwrap().passed.len(), 2);
    assert_eq!(r.restarted().state.tries().of(at(id)).unwrap().passed.len(), 2);
    let fresh = Rig::with(r.restarted(), r.now);
    assert!(fresh.mbd.state.tries().of(at(id)).is_none_or(|t| t.passed.is_empty()));
    // a switch of the log changes nothing of either
    let of_job = |rec: &Record| crate::log::codec::job_of(&rec.event).job == id;
    for (rig, hosts) in [(&r, 2), (&fresh, 0)] {
        let mut records = rig.mbd.switch_head(rig.now.secs());
        records.extend(r.read_back().into_iter().filter(of_job));
        let read = Mbatchd::new(conf(), "h1", Recovered { records, epoch: 2, ..<_>::default() });
        assert_eq!(read.state.tries().of(at(id)).unwrap().passed.len(), hosts);
    }
    let started: Vec<u32> = { fresh }.starts().iter().map(|s| s.1.job).collect();
    assert!(started.contains(&id), "{started:?}");
}

/// MAX_JOB_REQUEUE does not bound reruns after the loss of a host.
#[test]
fn a_rerun_after_a_lost_host_is_no_requeue() {
    let mut c = conf();
    param(&mut c, "MAX_JOB_REQUEUE", "1");
    let mut r = Rig::of(c);
    let options = crate::model::job::opt::RERUNNABLE;
    let id = r.submit(JobSpec { options, ..with("Q", "5") }).unwrap();
    for attempt in 1..4 {
        let (conn, key) = r.starts()[0];
        assert_eq!(key.attempt, attempt);
        r.report(conn, key, AttemptPhase::Running);
        r.step(Input::Closed { conn });
        r.now.mono_us += 60_000_000;
        r.step(Input::Tick);
        for (conn, to) in std::mem::take(&mut r.dialled) {
            let Endpoint::Tcp { host, daemon } = to else { continue };
            r.step(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
            let boot_id = format!("boot{attempt}");
            let msg = SbdMsg::Inventory {
                boot_id,
                tasks: vec![],
                more: false,
                members: None,
                validates: false,
                unjoined: Vec::new(),
                member_slots: Vec::new(),
            };
            r.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
        }
    }
    r.runs(exit(5));
    assert_eq!(r.held(id), None);
    r.later(1);
    r.runs(exit(5));
    assert_eq!(r.held(id), Some(PendReason::RequeueLimit));
}

#[test]
fn a_pre_execution_command_is_not_asked_for_ever() {
    for (action, want) in [("SUSPEND", "PSUSP"), ("EXIT", "EXIT")] {
        let mut c = conf();
        param(&mut c, "LOCAL_MAX_PREEXEC_RETRY", "2");
        param(&mut c, "LOCAL_MAX_PREEXEC_RETRY_ACTION", action);
        let mut r = Rig::of(c);
        let id = r.submit(spec("x")).unwrap();
        for n in 0..3 {
            assert_eq!(r.stat(id, 0), "RUN", "{action} {n}");
            r.runs(AttemptPhase::Failed { reason: PendReason::PreExec.number() });
            r.later(61);
        }
        assert_eq!(r.stat(id, 0), want);
        let count = |m: &Mbatchd| m.state.tries().of(at(id)).map_or(0, |tries| tries.pre_exec);
        assert_eq!(count(&r.restarted()), count(&r.mbd));
        if want == "EXIT" {
            assert_eq!(r.acct[0].exit_info, term::PRE_EXEC_FAIL);
            continue;
        }
        assert_eq!(r.held(id), Some(PendReason::PreExecLimit));
        assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
        r.runs(AttemptPhase::Failed { reason: PendReason::PreExec.number() });
        assert_ne!(r.stat(id, 0), "PSUSP");
    }
}

/// ORPHAN_JOB_TERM_GRACE_PERIOD: orphans end after it, those of -ti at once.
#[test]
fn orphan_ends_after_its_time_of_grace() {
    for (grace, ends) in [(None, [false, false]), (Some(10), [false, true]), (Some(0), [true; 2])] {
        let site = cluster().hosts(2, 2);
        let site = match grace {
            Some(secs) => site.param(&format!("ORPHAN_JOB_TERM_GRACE_PERIOD = {secs}")),
            None => site,
        };
        let mut c = site.up();
        let first = c.submit("ann", "");
        let depends = format!("-w 'done({first})'");
        let orphan = c.submit("ann", &depends);
        let quick = c.submit("ann", &format!("{depends} -ti"));
        let later = c.submit("ann", "");
        let saved = c.submit("ann", &depends);
        c.end(first, 1);
        let ended = |c: &mut Cluster, at: JobRef| c.state(at) == "EXIT";
        assert_eq!((ended(&mut c, orphan), ended(&mut c, quick)), (ends[0], true), "{grace:?}");
        c.advance(9);
        assert_eq!(ended(&mut c, orphan), ends[0], "{grace:?}");
        if grace == Some(10) {
            // a look in between is no new beginning
            assert_eq!(c.modify("ann", orphan, &[SpecField::Project], "-P p"), 0);
            // one that waits for something else meanwhile is none any more
            let other = format!("-w 'done({later})'");
            assert_eq!(c.modify("ann", saved, &[SpecField::Depend], &other), 0);
        }
        c.advance(1);
        assert_eq!(ended(&mut c, orphan), ends[1], "{grace:?}");
        if grace == Some(10) {
            assert!(!ended(&mut c, saved));
            let of = |finish: &Finish| finish.at == orphan;
            let info = c.accounted().into_iter().find(of).unwrap().exit_info;
            assert_eq!(info, term::ORPHAN_SYSTEM);
        }
    }
}

/// EVALUATE_JOB_DEPENDENCY: so many conditions in a turn, the rest in the next ones.
#[test]
fn conditions_are_looked_at_in_portions() {
    let mut c = conf();
    c.batch.params.evaluation.most = Some(2);
    let mut r = Rig::of(c);
    let first = r.submit(spec("x")).unwrap();
    let depend = format!("done({first})");
    let all: Vec<u32> = (0..5)
        .map(|_| r.submit(JobSpec { depend: depend.clone(), ..spec("y") }).unwrap())
        .collect();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    let t = TaskState { key, phase: done(), pid: 7, ..TaskState::default() };
    let mut out = Vec::new();
    let msg = Msg::Sbd(SbdMsg::State(Box::new(t)));
    r.mbd.step(r.now, Input::Msg { conn, msg }, &mut out);
    let true_ones =
        |r: &Rig| all.iter().filter(|id| r.mbd.deps.value(**id) == DepValue::True).count();
    assert_eq!(true_ones(&r), 2);
    for so_far in [4, 5] {
        assert_eq!(r.mbd.deadline(), Some(0));
        r.mbd.step(r.now, Input::Tick, &mut out);
        assert_eq!(true_ones(&r), so_far);
    }
    assert!(!r.mbd.deps.left());
}

/// EVALUATE_JOB_DEPENDENCY_TIMEOUT: a turn that took longer is followed by one of half as many
/// conditions, one that took less than half of it by one of twice as many.
#[test]
fn conditions_get_the_time_that_they_are_given() {
    const N: usize = 6_000;
    let mut c = conf();
    c.batch.params.evaluation.timeout_ms = Some(100);
    let mut r = Rig::of(c);
    let first = r.submit(spec("x")).unwrap();
    let depend = format!("done({first})");
    let all: Vec<u32> = (0..N)
        .map(|_| r.submit(JobSpec { depend: depend.clone(), ..spec("y") }).unwrap())
        .collect();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Running);
    // that is looked at too, with neither too little time nor too much
    while r.mbd.deps.left() {
        r.now.mono_us += 75_000;
        r.step(Input::Tick);
    }
    r.now.mono_us += 1_000_000;
    let t = TaskState { key, phase: done(), pid: 7, ..TaskState::default() };
    let mut out = Vec::new();
    let msg = Msg::Sbd(SbdMsg::State(Box::new(t)));
    let true_ones =
        |r: &Rig| all.iter().filter(|id| r.mbd.deps.value(**id) == DepValue::True).count();
    r.mbd.step(r.now, Input::Msg { conn, msg }, &mut out);
    assert_eq!(true_ones(&r), 1000);
    // in the same turn there are no more
    r.mbd.step(r.now, Input::Tick, &mut out);
    assert_eq!(true_ones(&r), 1000);
    for (took_ms, so_far) in [(101, 1500), (80, 2000), (20, 3000), (50, 5000), (100, 6000)] {
        assert_eq!(r.mbd.deadline(), Some(0));
        r.now.mono_us += took_ms * 1000;
        r.mbd.step(r.now, Input::Tick, &mut out);
        assert_eq!(true_ones(&r), so_far, "after {took_ms} ms");
    }
    assert!(!r.mbd.deps.left());
}

#[test]
fn orphans_end_at_once_where_they_are_to() {
    let mut c = cluster().hosts(2, 2).up();
    let first = c.submit("ann", "-J 'a[1-2]'");
    let on_first = format!("-w 'done({first}[1])'");
    let waits = c.submit("ann", &on_first);
    let ends = c.submit("ann", &format!("{on_first} -ti"));
    let held = c.submit("ann", &format!("{on_first} -ti"));
    c.stop("ann", held);
    let after = c.submit("ann", &format!("-w 'done({ends})' -ti"));
    let each = c.submit("ann", &format!("-J 'b[1-2]' -w 'done({first}[*])' -ti"));
    c.end(element(first, 1), 1);
    c.end(element(first, 2), 0);
    let states = [waits, ends, held, after].map(|job| c.state(job));
    assert_eq!(states, ["PEND", "EXIT", "EXIT", "EXIT"]);
    assert_eq!([1, 2].map(|idx| c.state(element(each, idx))), ["EXIT", "RUN"]);
    let all = c.accounted().into_iter().filter(|finish| finish.at.job != first.job);
    let infos: Vec<u32> = all.map(|finish| finish.exit_info).collect();
    assert_eq!(infos, [term::ORPHAN_SYSTEM; 4]);
    // an orphan from the beginning
    let late = c.submit("ann", &format!("{on_first} -ti"));
    assert_eq!(c.state(late), "EXIT");
}

/// A stop reached the host before the job ran there; what took it back was lost, with the
/// connection or with mbatchd.
#[test]
fn a_resume_that_was_lost_is_ordered_again_where_the_job_is_about_to_start() {
    for restart in [false, true] {
        let mut r = Rig::new();
        let id = r.submit(spec("x")).unwrap();
        let (conn, key) = r.starts()[0];
        assert_eq!(r.does(USER, Verb::Stop, id).code, 0);
        r.step(Input::Closed { conn });
        assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
        let conn = r.comes_back(restart, key, AttemptPhase::Starting);
        assert_eq!(r.ordered(conn, key), [Act::Resume], "{restart}");
        r.report(conn, key, AttemptPhase::Running);
        // the stop reaches it late: the resume, which was the last order, is repeated
        r.report(conn, key, AttemptPhase::Suspended);
        r.report(conn, key, AttemptPhase::Running);
        assert_eq!((r.stat(id, 0), r.ordered(conn, key)), ("RUN", vec![Act::Resume; 2]));
    }
}

/// A stop that did not reach the host in time is ordered when the job runs, and not after it was
/// taken back.
#[test]
fn a_stop_that_was_lost_is_ordered_once_the_job_runs() {
    for back in [false, true] {
        let mut r = Rig::new();
        let id = r.submit(spec("x")).unwrap();
        let (conn, key) = r.starts()[0];
        r.step(Input::Closed { conn });
        assert_eq!(r.does(USER, Verb::Stop, id).code, 0);
        let conn = r.comes_back(false, key, AttemptPhase::Starting);
        r.report(conn, key, AttemptPhase::Running);
        assert_eq!(r.ordered(conn, key), [Act::Suspend]);
        if !back {
            r.report(conn, key, AttemptPhase::Suspended);
            assert_eq!(r.stat(id, 0), "USUSP");
            continue;
        }
        assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
        r.report(conn, key, AttemptPhase::Running);
        let conn = r.comes_back(true, key, AttemptPhase::Running);
        assert_eq!((r.stat(id, 0), r.ordered(conn, key)), ("RUN", vec![]));
    }
}

/// An acknowledged stop or resume of a running job is ordered again if the order was lost.
#[test]
fn a_stop_or_resume_of_a_running_job_that_was_lost_is_ordered_again() {
    for restart in [false, true] {
        let mut r = Rig::new();
        let id = r.submit(spec("x")).unwrap();
        let (conn, key) = r.starts()[0];
        r.report(conn, key, AttemptPhase::Running);
        r.step(Input::Closed { conn });
        assert_eq!(r.does(USER, Verb::Stop, id).code, 0);
        let conn = r.comes_back(restart, key, AttemptPhase::Running);
        assert_eq!(r.ordered(conn, key), [Act::Suspend], "{restart}");
        r.report(conn, key, AttemptPhase::Suspended);
        assert_eq!(r.stat(id, 0), "USUSP");
        r.step(Input::Closed { conn });
        assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
        let conn = r.comes_back(restart, key, AttemptPhase::Suspended);
        assert_eq!(r.ordered(conn, key).last(), Some(&Act::Resume), "{restart}");
        r.report(conn, key, AttemptPhase::Running);
        assert_eq!(r.stat(id, 0), "RUN");
    }
}

/// Lock IDs of a host are kept, each by itself, over a restart and a switch of the log.
#[test]
fn lock_ids_keep_a_host_closed() {
    let mut r = Rig::new();
    let ctrl = |r: &mut Rig, open: bool, lock: &str| {
        let (hosts, comment) = (vec!["h1".into()], String::new());
        let op = AdminOp::HostCtrl { open, hosts, comment, lock: lock.into() };
        match r.ask(ADMIN, ClientMsg::Admin(op)) {
            Some(Msg::Client(ClientMsg::AdminDone { lines })) => lines[0].code,
            other => panic!("{other:?}"),
        }
    };
    for lock in ["", "a", "b"] {
        assert_eq!(ctrl(&mut r, false, lock), 0);
    }
    assert_eq!((ctrl(&mut r, true, ""), ctrl(&mut r, true, "c")), (err::BAD_ARG, err::BAD_ARG));
    assert_eq!(ctrl(&mut r, true, "a"), 0);
    let i = r.mbd.site.host_id("h1").unwrap();
    for m in [&r.mbd, &r.restarted()] {
        let control = m.state.host_control_of("h1").unwrap();
        assert_eq!(
            (control.closed, control.locks.iter().next().map(|l| l.as_str())),
            (true, Some("b"))
        );
        assert!(m.view().host_closed(i));
    }
    let mut carried = state::State::default();
    for rec in r.mbd.switch_head(5) {
        carried.apply(&rec);
    }
    assert_eq!(
        carried.host_control_of("h1").unwrap().locks,
        r.mbd.state.host_control_of("h1").unwrap().locks
    );
    assert_eq!((ctrl(&mut r, true, "b"), r.mbd.view().host_closed(i)), (0, true));
    assert_eq!((ctrl(&mut r, true, ""), r.mbd.view().host_closed(i)), (0, false));
    // one alone does too
    assert_eq!((ctrl(&mut r, false, "d"), r.mbd.view().host_closed(i)), (0, true));
}

#[test]
fn orphan_ends_after_its_time_of_grace_whatever_reconfiguration_comes() {
    let site = cluster().hosts(2, 2).param("ORPHAN_JOB_TERM_GRACE_PERIOD = 10");
    let mut c = site.clone().up();
    let first = c.submit("ann", "");
    let orphan = c.submit("ann", &format!("-w 'done({first})'"));
    c.end(first, 1);
    c.advance(9);
    c.reconfigure(site);
    assert_eq!(c.state(orphan), "PEND");
    c.advance(1);
    assert_eq!(c.state(orphan), "EXIT");
}

#[test]
fn elements_that_exit_values_send_back_are_not_all_looked_at_for_each_of_them() {
    const N: u32 = 400;
    let mut c = conf();
    c.batch.queues[0].requeue_exit_values = Some("5".into());
    for limit in ["", "%4"] {
        let mut r = Rig::of(c.clone());
        let array = r.submit(JobSpec { name: format!("a[1-{N}]{limit}"), ..spec("x") }).unwrap();
        let mut back = 0;
        while back < N {
            for (conn, key) in r.starts() {
                r.report(conn, key, AttemptPhase::Running);
                r.report(conn, key, exit(5));
                back += 1;
            }
        }
        assert_eq!(r.mbd.state.job(array).unwrap().tally().pend, N);
        let looks = r.mbd.sched.lone_looks();
        assert!(looks < 20 * N as usize, "{limit}: {looks} looks");
    }
}

#[test]
fn an_attempt_is_known_where_damage_took_the_requeue_before_it() {
    let mut c = cluster().hosts(1, 1).up();
    let job = c.submit("ann", "");
    c.requeue("ann", job);
    assert_eq!((c.state(job).as_str(), c.logged(|e| matches!(e, Event::JobStart(_)))), ("RUN", 2));
    c.lose_records(|event| matches!(event, Event::JobRequeue { .. } | Event::JobStatus(_)));
    c.restart();
    c.end(job, 0);
    assert_eq!(c.state(job), "DONE");
    assert_eq!(c.accounted().last().map(|finish| finish.attempt), Some(2));
}
