//! Kinds of job that come and go.

use super::*;
use crate::batch::sched::CLASSES_KEPT;

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
        r.report(conn, key, Phase::Running);
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
fn after_a_restart_there_are_the_kinds_that_jobs_wait_in() {
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
