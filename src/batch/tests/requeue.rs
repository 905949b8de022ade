//! What goes back to the queue by itself, what is given up.

use super::*;
use crate::conf::types::RawParam;
use crate::model::job::extra;
use crate::model::reason::{pend, term};

fn with(key: &str, value: &str) -> JobSpec {
    JobSpec { extra: vec![(key.into(), value.into())], ..spec("x") }
}

fn exit(code: i32) -> Phase {
    Phase::Ended { end: End::Status(code << 8), exit_info: 0 }
}

fn param(c: &mut ClusterConf, name: &str, value: &str) {
    let value = RawParam { text: value.into(), pos: Default::default(), breaks: Vec::new() };
    c.batch.params.raw.insert(name.into(), value);
}

fn at(job: u32) -> JobRef {
    JobRef { job, idx: 0 }
}

impl Rig {
    /// Runs the one start there is to this end.
    fn runs(&mut self, phase: Phase) -> JobKey {
        let starts = self.starts();
        assert_eq!(starts.len(), 1, "{starts:?}");
        let (conn, key) = starts[0];
        if !matches!(phase, Phase::Failed { .. }) {
            self.report(conn, key, Phase::Running);
        }
        self.report(conn, key, phase);
        key
    }

    fn held(&self, job: u32) -> Option<u32> {
        match &self.mbd.st.elem(at(job))?.state {
            state::ElemState::Pend(p) => p.held,
            _ => None,
        }
    }
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
    assert_eq!(r.runs(exit(7)).attempt, 2);
    assert_eq!((r.stat(id, 0), r.acct.len()), ("EXIT", 1));
    let id = r.submit(with(extra::REQUEUE, "all ~1")).unwrap();
    r.runs(exit(5));
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
    r.runs(exit(6));
    let mut found = Recovered { records: r.log.clone(), epoch: 2, ..Default::default() };
    found.seen_ids.clear();
    let mut r = Rig::with(Mbd::new(c, "h1", found), r.now);
    let starts = r.starts();
    assert_eq!((starts.len(), r.stat(id, 0)), (1, "RUN"), "{starts:?}");
    r.report(starts[0].0, starts[0].1, exit(6));
    assert_eq!((r.stat(id, 0), r.held(id)), ("PSUSP", Some(pend::REQUEUE_LIMIT)));
    assert_eq!(r.does(USER, Verb::Resume, id).code, 0);
    r.runs(exit(6));
    assert_eq!(r.runs(done()).attempt, 5);
    assert!(r.mbd.st.tries.is_empty());
}

#[test]
fn an_excluded_host_is_passed_over_until_all_are() {
    let mut r = Rig::new();
    r.submit(with(extra::REQUEUE, "EXCLUDE(20)")).unwrap();
    let mut hosts = Vec::new();
    for _ in 0..3 {
        let (conn, key) = r.starts()[0];
        hosts.push(conn);
        r.report(conn, key, Phase::Running);
        r.report(conn, key, exit(20));
    }
    assert!(hosts[0] != hosts[1], "{hosts:?}");
    assert_eq!(r.starts().len(), 1);
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
        assert_eq!(r.restarted().st.tries, r.mbd.st.tries);
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
