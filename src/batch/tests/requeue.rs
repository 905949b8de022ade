//! What goes back to the queue by itself, what is given up.

use super::*;
use crate::conf::types::{RawParam, RawParams};
use crate::model::job::extra;
use crate::model::reason::{pend, term};
use crate::model::specfield::SpecField;

pub fn with(key: &str, value: &str) -> JobSpec {
    JobSpec { extra: vec![(key.into(), value.into())], ..spec("x") }
}

pub fn exit(code: i32) -> Phase {
    Phase::Ended { end: End::Status(code << 8), exit_info: 0 }
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
    pub fn runs(&mut self, phase: Phase) -> JobKey {
        let starts = self.starts();
        assert_eq!(starts.len(), 1, "{starts:?}");
        let (conn, key) = starts[0];
        if !matches!(phase, Phase::Failed { .. }) {
            self.report(conn, key, Phase::Running);
        }
        self.report(conn, key, phase);
        key
    }

    /// Runs the start of this job to this end.
    pub fn runs_of(&mut self, job: u32, phase: Phase) {
        let (conn, key) = self.starts_of(job)[0];
        self.report(conn, key, Phase::Running);
        self.report(conn, key, phase);
    }

    /// The host of the attempt is connected again, with what it says of it; mbatchd may have been
    /// restarted before.
    fn comes_back(&mut self, restart: bool, key: JobKey, phase: Phase) -> ConnId {
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
        let run = self.mbd.st.running(key).unwrap().hosts[0].0;
        let on = self.mbd.st.names.host(run).to_string();
        let mut found = None;
        for (conn, to) in std::mem::take(&mut self.dialled) {
            let Endpoint::Tcp { host, daemon } = to else { continue };
            if daemon != Daemon::Sbatchd || host != on {
                continue;
            }
            self.step(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
            let tasks =
                vec![TaskState { key, phase: phase.clone(), pid: 7, ..TaskState::default() }];
            let msg = SbdMsg::Inventory { boot_id: "boot".into(), tasks, more: false };
            self.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
            found = Some(conn);
        }
        if restart {
            let peer = Peer::User { uid: 1001, gid: 1001, user: "ann".into(), host: "h1".into() };
            self.step(Input::Opened { conn: USER, peer });
        }
        found.unwrap()
    }

    /// What was ordered of an attempt.
    fn ordered(&self, on: ConnId, of: JobKey) -> Vec<Act> {
        let act = |(c, m): &(ConnId, Msg)| match m {
            Msg::Sbd(SbdMsg::Act { key, act, .. }) if *key == of && *c == on => Some(act.clone()),
            _ => None,
        };
        self.sent.iter().filter_map(act).collect()
    }

    pub fn held(&self, job: u32) -> Option<u32> {
        match &self.mbd.st.elem(at(job))?.state {
            state::ElemState::Pend(p) => p.held,
            _ => None,
        }
    }
}

/// -hostfile: exactly these hosts and slots, or none.
#[test]
fn a_host_file_fixes_hosts_and_slots() {
    let mut r = Rig::new();
    let with =
        |slots: &str| JobSpec { min_slots: 0, max_slots: 0, ..with(extra::HOST_SLOTS, slots) };
    let hosts = |r: &Rig, id: u32| {
        let run = r.mbd.st.job(id).unwrap().elem(0).unwrap().run()?;
        let name = |h: &(names::HostId, u32)| format!("{} {}", r.mbd.st.names.host(h.0), h.1);
        Some(run.hosts.iter().map(name).collect::<Vec<_>>().join(" "))
    };
    // not the best host first, and not all that is free
    let id = r.submit(with("h2 1 h1 1 h2 1")).unwrap();
    assert_eq!(hosts(&r, id).as_deref(), Some("h2 2 h1 1"));
    // its host is told the order of the lines, where that is another one
    let ranks = |r: &mut Rig, id: u32| {
        let starts = r.sent.iter().filter_map(|(_, m)| match m {
            Msg::Sbd(SbdMsg::Start(s)) if s.key.job == id => Some(s.ranks.clone()),
            _ => None,
        });
        let all: Vec<_> = starts.collect();
        assert_eq!(all.len(), 1);
        let words = all[0].iter().map(|(host, n)| format!("{host} {n}"));
        words.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ranks(&mut r, id), "h2 1 h1 1 h2 1");
    let spec = r.mbd.st.job(id).unwrap().spec.clone();
    assert_eq!((spec.min_slots, spec.max_slots, spec.hosts.join(" ")), (3, 3, "h2 h1".into()));
    // one slot is left on h1: no other will do
    let wait = r.submit(with("h1 1 h2 1")).unwrap();
    let more = r.submit(with("h1 2")).unwrap();
    let small = r.submit(with("h1 1")).unwrap();
    assert_eq!((r.stat(wait, 0), r.stat(more, 0)), ("PEND", "PEND"));
    assert_eq!(hosts(&r, small).as_deref(), Some("h1 1"));
    assert_eq!(ranks(&mut r, small), "");
    for (bad, code, about) in [
        ("h1 1 nosuch 2", err::BAD_HOST, "nosuch"),
        ("h1 x", err::BAD_HOST, "h1 x"),
        ("h1 0", err::BAD_HOST, "h1 0"),
        ("h1", err::BAD_HOST, "h1"),
        ("h1 4000000000 h2 4000000000", err::PROC_NUM, ""),
    ] {
        let refused = r.submit(with(bad)).unwrap_err();
        assert_eq!((refused.code, refused.about.as_str()), (code, about), "{bad}");
    }
    let m = Modify {
        id: IdSel { job: more, elems: vec![] },
        fields: vec![SpecField::Slots],
        spec: JobSpec { min_slots: 1, max_slots: 1, ..JobSpec::default() },
        ..Modify::default()
    };
    let said = r.ask(USER, ClientMsg::Modify(Box::new(m)));
    assert!(matches!(said, Some(Msg::Refused(e)) if e.text.ends_with("with option -n")));
    let mut c = conf();
    let only = crate::conf::types::HostTerm { name: "h1".into(), ..Default::default() };
    c.batch.queues[0].hosts = vec![only];
    let refused = Rig::of(c).submit(with("h1 1 h2 1")).unwrap_err();
    assert_eq!((refused.code, refused.about.as_str()), (err::QUEUE_HOST, "h2"));
}

#[test]
fn exit_values_send_a_job_back() {
    let mut c = conf();
    c.batch.queues[0].requeue_exit_values = Some("5 6".into());
    param(&mut c, "MAX_JOB_REQUEUE", "2");
    let mut r = Rig::of(c.clone());
    // Of the queue, and of the job in its place.
    let id = r.submit(spec("x")).unwrap();
    assert_eq!(r.runs(exit(5)).attempt, 1);
    r.later(1);
    assert_eq!(r.runs(exit(7)).attempt, 2);
    assert_eq!((r.stat(id, 0), r.acct.len()), ("EXIT", 1));
    let id = r.submit(with(extra::REQUEUE, "all ~1")).unwrap();
    r.runs(exit(5));
    r.later(1);
    r.runs(exit(1));
    assert_eq!(r.stat(id, 0), "EXIT");
    // Success, and what somebody killed, is an end.
    for phase in [done(), Phase::Ended { end: End::Status(9), exit_info: term::MEMLIMIT }] {
        r.submit(with(extra::REQUEUE, "all")).unwrap();
        r.runs(phase);
        assert!(r.starts().is_empty());
    }
    let id = r.submit(with(extra::REQUEUE, "all")).unwrap();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
    assert_eq!(r.kill(USER, id), 0);
    r.report(conn, key, Phase::Ended { end: End::Status(2), exit_info: 0 });
    assert_eq!(r.stat(id, 0), "EXIT");
    // The third time it is held; a restart in between counts on.
    let id = r.submit(spec("x")).unwrap();
    r.runs(exit(6));
    r.later(1);
    r.runs(exit(6));
    r.later(2);
    let mut found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    found.seen_ids.clear();
    let mut r = Rig::with(Mbd::new(c, "h1", found), r.now);
    let starts = r.starts();
    assert_eq!((starts.len(), r.stat(id, 0)), (1, "RUN"), "{starts:?}");
    r.report(starts[0].0, starts[0].1, exit(6));
    assert_eq!((r.stat(id, 0), r.held(id)), ("PSUSP", Some(pend::REQUEUE_LIMIT)));
    assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
    r.runs(exit(6));
    r.later(1);
    assert_eq!(r.runs(done()).attempt, 5);
    assert!(r.mbd.st.tries.is_empty());
}

#[test]
fn an_excluded_host_is_passed_over_until_mbatchd_starts_again() {
    let mut r = Rig::new();
    let id = r.submit(with(extra::REQUEUE, "EXCLUDE(20)")).unwrap();
    let mut hosts = Vec::new();
    for _ in 0..2 {
        let (conn, key) = r.starts()[0];
        hosts.push(conn);
        r.report(conn, key, Phase::Running);
        r.report(conn, key, exit(20));
        r.later(2);
    }
    assert!(hosts[0] != hosts[1], "{hosts:?}");
    // it was on all of them
    r.later(120);
    assert!(r.starts().is_empty());
    assert_eq!(r.why_at(at(id)), [(pend::EXCLUDED, 2)]);
    // its likes go on, and know nothing of it
    let like = r.submit(with(extra::REQUEUE, "EXCLUDE(20)")).unwrap();
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [like]);
    // what is read again without a start of mbatchd is not forgotten
    assert_eq!(r.mbd.st.tries[&at(id)].passed.len(), 2);
    assert_eq!(r.restarted().st.tries[&at(id)].passed.len(), 2);
    let fresh = Rig::with(r.restarted(), r.now);
    assert!(fresh.mbd.st.tries.get(&at(id)).is_none_or(|t| t.passed.is_empty()));
    // a switch of the log changes nothing of either
    let of_job = |rec: &Record| crate::log::codec::job_of(&rec.event).job == id;
    for (rig, hosts) in [(&r, 2), (&fresh, 0)] {
        let mut records = rig.mbd.switch_head(rig.now.secs());
        records.extend(r.read_back().into_iter().filter(of_job));
        let read = Mbd::new(conf(), "h1", Recovered { records, epoch: 2, ..<_>::default() });
        assert_eq!(read.st.tries[&at(id)].passed.len(), hosts);
    }
    let started: Vec<u32> = { fresh }.starts().iter().map(|s| s.1.job).collect();
    assert!(started.contains(&id), "{started:?}");
}

/// What happens to its host is not what MAX_JOB_REQUEUE bounds.
#[test]
fn a_rerun_after_a_lost_host_is_no_requeue() {
    let mut c = conf();
    param(&mut c, "MAX_JOB_REQUEUE", "1");
    let mut r = Rig::of(c);
    let options = crate::model::job::opt::RERUNNABLE;
    let id = r.submit(JobSpec { options, ..with(extra::REQUEUE, "5") }).unwrap();
    for attempt in 1..4 {
        let (conn, key) = r.starts()[0];
        assert_eq!(key.attempt, attempt);
        r.report(conn, key, Phase::Running);
        r.step(Input::Closed { conn });
        r.now.mono_us += 60_000_000;
        r.step(Input::Tick);
        for (conn, to) in std::mem::take(&mut r.dialled) {
            let Endpoint::Tcp { host, daemon } = to else { continue };
            r.step(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
            let boot_id = format!("boot{attempt}");
            let msg = SbdMsg::Inventory { boot_id, tasks: vec![], more: false };
            r.step(Input::Msg { conn, msg: Msg::Sbd(msg) });
        }
    }
    r.runs(exit(5));
    assert_eq!(r.held(id), None);
    r.later(1);
    r.runs(exit(5));
    assert_eq!(r.held(id), Some(pend::REQUEUE_LIMIT));
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
            r.runs(Phase::Failed { reason: pend::PRE_EXEC });
            r.later(61);
        }
        assert_eq!(r.stat(id, 0), want);
        let count = |m: &Mbd| m.st.tries.get(&at(id)).map_or(0, |tries| tries.pre_exec);
        assert_eq!(count(&r.restarted()), count(&r.mbd));
        if want == "EXIT" {
            assert_eq!(r.acct[0].exit_info, term::PRE_EXEC_FAIL);
            continue;
        }
        assert_eq!(r.held(id), Some(pend::PREEXEC_LIMIT));
        assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
        r.runs(Phase::Failed { reason: pend::PRE_EXEC });
        assert_ne!(r.stat(id, 0), "PSUSP");
    }
}

/// ORPHAN_JOB_TERM_GRACE_PERIOD: orphans end after it, those of -ti at once.
#[test]
fn orphans_end_after_their_time_of_grace() {
    for (grace, steps) in [(None, [0, 0]), (Some(10), [0, 1]), (Some(0), [1, 1])] {
        let mut c = conf();
        c.batch.params.orphan_grace = grace;
        let mut r = Rig::of(c);
        let first = r.submit(spec("x")).unwrap();
        let depend = format!("done({first})");
        let id = r.submit(JobSpec { depend: depend.clone(), ..spec("y") }).unwrap();
        let quick = r.submit(JobSpec { depend, ..with(extra::ORPHAN, "Y") }).unwrap();
        let later = r.submit(spec("z")).unwrap();
        let saved = r.submit(JobSpec { depend: format!("done({first})"), ..spec("s") }).unwrap();
        r.runs_of(first, exit(1));
        let ended = |r: &Rig, id: u32| u32::from(r.stat(id, 0) == "EXIT");
        assert_eq!((ended(&r, id), ended(&r, quick)), (steps[0], 1), "{grace:?}");
        if grace == Some(10) {
            r.now.mono_us += 9_000_000;
            r.step(Input::Tick);
            assert_eq!(ended(&r, id), 0);
            // a look in between is no new beginning
            let p = JobSpec { project: "p".into(), ..JobSpec::default() };
            let sel = IdSel { job: id, elems: vec![] };
            assert_eq!(r.modify_of(USER, sel, &[SpecField::Project], p), 0);
            // one that waits for something else meanwhile is none any more
            let m = Modify {
                id: IdSel { job: saved, elems: vec![] },
                fields: vec![SpecField::Depend],
                spec: JobSpec { depend: format!("done({later})"), ..JobSpec::default() },
                ..Modify::default()
            };
            r.ask(USER, ClientMsg::Modify(Box::new(m)));
        }
        assert_eq!(r.mbd.orphan_deadline().is_some(), grace == Some(10));
        r.now.mono_us += 1_000_000;
        r.step(Input::Tick);
        assert_eq!(ended(&r, id), steps[1], "{grace:?}");
        if grace == Some(10) {
            assert_eq!(ended(&r, saved), 0);
            let info = r.acct.iter().find(|f| f.at == at(id)).unwrap().exit_info;
            assert_eq!(info, term::ORPHAN_SYSTEM);
        }
    }
}

/// EVALUATE_JOB_DEPENDENCY: so many conditions in a turn, the rest in the next ones.
#[test]
fn conditions_are_looked_at_in_portions() {
    let mut c = conf();
    c.batch.params.evaluate_job_dependency = Some(2);
    let mut r = Rig::of(c);
    let first = r.submit(spec("x")).unwrap();
    let depend = format!("done({first})");
    let all: Vec<u32> = (0..5)
        .map(|_| r.submit(JobSpec { depend: depend.clone(), ..spec("y") }).unwrap())
        .collect();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
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
    c.batch.params.evaluate_timeout_ms = Some(100);
    let mut r = Rig::of(c);
    let first = r.submit(spec("x")).unwrap();
    let depend = format!("done({first})");
    let all: Vec<u32> = (0..N)
        .map(|_| r.submit(JobSpec { depend: depend.clone(), ..spec("y") }).unwrap())
        .collect();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, Phase::Running);
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
    let mut r = Rig::new();
    let first = r.submit(JobSpec { name: "a[1-2]".into(), ..spec("x") }).unwrap();
    let on = |depend: String, ti: bool, name: &str| JobSpec {
        depend,
        name: name.into(),
        ..if ti { with(extra::ORPHAN, "Y") } else { spec("y") }
    };
    let starts = r.starts();
    let waits = r.submit(on(format!("done({first}[1])"), false, "")).unwrap();
    let ends = r.submit(on(format!("done({first}[1])"), true, "")).unwrap();
    let held = r.submit(on(format!("done({first}[1])"), true, "")).unwrap();
    assert_eq!(r.does(USER, Verb::Stop, held).code, 0);
    let after = r.submit(on(format!("done({ends})"), true, "")).unwrap();
    let each = r.submit(on(format!("done({first}[*])"), true, "b[1-2]")).unwrap();
    for (conn, key) in starts {
        r.report(conn, key, if key.idx == 1 { exit(1) } else { done() });
    }
    let stats = [waits, ends, held, after].map(|id| r.stat(id, 0));
    assert_eq!(stats, ["PEND", "EXIT", "EXIT", "EXIT"]);
    assert_eq!((r.stat(each, 1), r.stat(each, 2)), ("EXIT", "RUN"));
    let infos: Vec<u32> =
        r.acct.iter().filter(|f| f.at.job != first).map(|f| f.exit_info).collect();
    assert_eq!(infos, [term::ORPHAN_SYSTEM; 4]);
    // One that is an orphan from the beginning.
    let late = r.submit(on(format!("done({first}[1])"), true, "")).unwrap();
    assert_eq!(r.stat(late, 0), "EXIT");
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
        let conn = r.comes_back(restart, key, Phase::Starting);
        assert_eq!(r.ordered(conn, key), [Act::Resume], "{restart}");
        r.report(conn, key, Phase::Running);
        r.report(conn, key, Phase::Suspended);
        r.report(conn, key, Phase::Running);
        assert_eq!((r.stat(id, 0), r.ordered(conn, key).len()), ("RUN", 1));
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
        let conn = r.comes_back(false, key, Phase::Starting);
        r.report(conn, key, Phase::Running);
        assert_eq!(r.ordered(conn, key), [Act::Suspend]);
        if !back {
            r.report(conn, key, Phase::Suspended);
            assert_eq!(r.stat(id, 0), "USUSP");
            continue;
        }
        assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
        r.report(conn, key, Phase::Running);
        let conn = r.comes_back(true, key, Phase::Running);
        assert_eq!((r.stat(id, 0), r.ordered(conn, key)), ("RUN", vec![]));
    }
}

/// What was acknowledged of a running job and lost is ordered again.
#[test]
fn a_stop_or_resume_of_a_running_job_that_was_lost_is_ordered_again() {
    for restart in [false, true] {
        let mut r = Rig::new();
        let id = r.submit(spec("x")).unwrap();
        let (conn, key) = r.starts()[0];
        r.report(conn, key, Phase::Running);
        r.step(Input::Closed { conn });
        assert_eq!(r.does(USER, Verb::Stop, id).code, 0);
        let conn = r.comes_back(restart, key, Phase::Running);
        assert_eq!(r.ordered(conn, key), [Act::Suspend], "{restart}");
        r.report(conn, key, Phase::Suspended);
        assert_eq!(r.stat(id, 0), "USUSP");
        r.step(Input::Closed { conn });
        assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
        let conn = r.comes_back(restart, key, Phase::Suspended);
        assert_eq!(r.ordered(conn, key).last(), Some(&Act::Resume), "{restart}");
        r.report(conn, key, Phase::Running);
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
    let i = r.mbd.pol.host_id("h1").unwrap();
    for m in [&r.mbd, &r.restarted()] {
        let ctl = m.st.host_ctl_of("h1").unwrap();
        assert_eq!((ctl.closed, ctl.locks.iter().next().map(|l| l.as_str())), (true, Some("b")));
        assert!(m.host_closed(i));
    }
    let mut carried = state::State::default();
    for rec in r.mbd.switch_head(5) {
        carried.apply(&rec);
    }
    assert_eq!(carried.host_ctl_of("h1").unwrap().locks, r.mbd.st.host_ctl_of("h1").unwrap().locks);
    assert_eq!((ctrl(&mut r, true, "b"), r.mbd.host_closed(i)), (0, true));
    assert_eq!((ctrl(&mut r, true, ""), r.mbd.host_closed(i)), (0, false));
    // one alone does too
    assert_eq!((ctrl(&mut r, false, "d"), r.mbd.host_closed(i)), (0, true));
}

#[test]
fn orphans_end_after_their_time_of_grace_whatever_reconfiguration_comes() {
    let mut c = conf();
    c.batch.params.orphan_grace = Some(10);
    let mut r = Rig::of(c.clone());
    let first = r.submit(spec("x")).unwrap();
    let id = r.submit(JobSpec { depend: format!("done({first})"), ..spec("y") }).unwrap();
    r.runs_of(first, exit(1));
    r.now.mono_us += 9_000_000;
    r.step(Input::Config { conf: Some(Box::new(c)), diags: vec![] });
    assert_eq!(r.stat(id, 0), "PEND");
    r.now.mono_us += 1_000_000;
    r.step(Input::Tick);
    assert_eq!(r.stat(id, 0), "EXIT");
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
                r.report(conn, key, Phase::Running);
                r.report(conn, key, exit(5));
                back += 1;
            }
        }
        assert_eq!(r.mbd.st.job(array).unwrap().tally.pend, N);
        let looks = r.mbd.sched.lone_looks();
        assert!(looks < 20 * N as usize, "{limit}: {looks} looks");
    }
}
