//! Conditions on all jobs of a name.

use super::requeue::{at, exit};
use super::*;
use crate::batch::state::named::NAMED_LISTED;
use crate::model::event::JobNew;
use crate::model::specfield::SpecField;
use std::sync::Arc;

const N: usize = 3 * NAMED_LISTED;

fn named(name: &str) -> JobSpec {
    JobSpec { name: name.into(), ..spec("x") }
}

fn waiting(depend: &str) -> JobSpec {
    JobSpec { depend: depend.into(), name: "w".into(), ..spec("y") }
}

/// A cluster with room for all, and N jobs s0, s1 ...
fn many() -> (Rig, Vec<u32>) {
    let mut c = conf();
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(2 * N as u32);
    let mut r = Rig::of(c);
    let jobs = (0..N).map(|n| r.submit(named(&format!("s{n}"))).unwrap()).collect();
    (r, jobs)
}

impl Rig {
    fn ends(&mut self, starts: &[(ConnId, JobKey)], phase: &AttemptPhase) {
        for (conn, key) in starts {
            self.report(*conn, *key, AttemptPhase::Running);
            self.report(*conn, *key, phase.clone());
        }
    }

    /// Bytes of the records from there on.
    fn logged(&self, from: usize) -> usize {
        let mut text = Vec::new();
        self.log[from..].iter().for_each(|r| crate::log::codec::write_record(r, &mut text));
        text.len()
    }
}

#[test]
fn a_name_that_stands_for_many_jobs_costs_a_name() {
    let (mut r, _) = many();
    let few = { r.log.len() };
    r.submit(waiting("done(\"s1\")")).unwrap();
    let one = r.logged(few);
    for depend in ["done(\"s*\")", "ended(\"s*\") && done(\"s*\")"] {
        let from = r.log.len();
        for _ in 0..10 {
            r.submit(waiting(depend)).unwrap();
        }
        let each = r.logged(from) / 10;
        assert!(each < one + 100, "{each} bytes for {depend}, {one} for one job");
    }
    // the conditions share what they are about, and are counted once for all
    assert_eq!(r.mbd.deps.watched_by_name(), (2, N));
    let rebuilt = r.restarted();
    assert_eq!(rebuilt.deps.watched_by_name(), (2, N));
}

#[test]
fn a_name_stands_for_the_jobs_that_bore_it_when_it_was_said() {
    for restart in [false, true] {
        let (mut r, jobs) = many();
        let starts = r.starts();
        let w = r.submit(waiting("done(\"s*\")")).unwrap();
        // those that bear it since, and one that bears another since
        let late = r.submit(JobSpec { options2: opt2::HOLD, ..named("s_late") }).unwrap();
        let m = Modify {
            id: IdSel { job: late, elems: vec![] },
            fields: vec![SpecField::Name],
            spec: JobSpec { name: "s_later".into(), ..JobSpec::default() },
            ..Modify::default()
        };
        r.ask(USER, ClientMsg::Modify(Box::new(m)));
        let (first, rest) = starts.split_at(N - 1);
        r.ends(first, &done());
        if restart {
            r.reread();
            r.step(Input::Tick);
        }
        assert_eq!((r.stat(w, 0), r.mbd.deps.value(w)), ("PEND", DepValue::False));
        // none of them leaves memory before
        r.now.wall_us += 100_000_000_000;
        r.step(Input::Tick);
        assert!(jobs.iter().all(|id| r.mbd.state.job(*id).is_some()), "{restart}");
        if !restart {
            r.ends(rest, &done());
            assert_eq!(r.mbd.deps.value(w), DepValue::True);
            assert_eq!(r.starts_of(w).len(), 1);
            r.step(Input::Tick);
            assert_eq!(r.mbd.deps.watched_by_name(), (0, 0), "nobody waits any more");
        }
    }
}

#[test]
fn one_of_many_that_fails_decides_for_all() {
    let (mut r, jobs) = many();
    let starts = r.starts();
    let all = r.submit(waiting("done(\"s*\")")).unwrap();
    let over = r.submit(waiting("ended(\"s*\")")).unwrap();
    let not = r.submit(waiting("!done(\"s*\")")).unwrap();
    let begun = r.submit(waiting("started(\"s*\")")).unwrap();
    let again = r.starts();
    assert_eq!(again.iter().map(|s| s.1.job).collect::<Vec<_>>(), [not, begun]);
    r.ends(&starts[..1], &exit(1));
    assert_eq!(r.mbd.deps.value(all), DepValue::Never);
    assert_eq!((r.stat(all, 0), r.stat(over, 0)), ("PEND", "PEND"));
    r.ends(&starts[1..], &done());
    assert_eq!(r.starts().iter().map(|s| s.1.job).collect::<Vec<_>>(), [over]);
    // the one that failed is run again, and all is well
    let how = Requeue { exit: true, ..Requeue::default() };
    let failed = starts[0].1.job;
    assert!(jobs.contains(&failed));
    assert_eq!(r.does(USER, Verb::Requeue(how), failed).code, 0);
    r.later(1);
    let starts = r.starts_of(failed);
    r.ends(&starts, &done());
    assert_eq!(r.mbd.deps.value(all), DepValue::True);
    assert_ne!(r.stat(all, 0), "PEND");
}

#[test]
fn a_change_of_another_field_leaves_what_a_name_stands_for() {
    let (mut r, _) = many();
    let w = r.submit(waiting("done(\"s*\")")).unwrap();
    r.submit(JobSpec { options2: opt2::HOLD, ..named("s_late") }).unwrap();
    let p = JobSpec { project: "p".into(), ..JobSpec::default() };
    assert_eq!(r.modify_of(USER, IdSel { job: w, elems: vec![] }, &[SpecField::Project], p), 0);
    let members = |m: &Mbatchd| {
        let depend = m.state.job(w).unwrap().depend.clone().unwrap();
        depend.groups()[0].1.members.len()
    };
    assert_eq!(members(&r.mbd), N);
    // until the condition itself is another
    let p = JobSpec { depend: "done(\"s*\")".into(), ..JobSpec::default() };
    assert_eq!(r.modify_of(USER, IdSel { job: w, elems: vec![] }, &[SpecField::Depend], p), 0);
    assert_eq!((members(&r.mbd), members(&r.restarted())), (N + 1, N + 1));
    assert_eq!(r.mbd.state.elem(at(w)).unwrap().attempts, 0);
}

/// Changes of the jobs are counted, not looked through: neither the jobs nor the conditions.
#[test]
fn many_conditions_on_many_jobs_are_cheap() {
    const JOBS: usize = 2_000;
    let mut c = conf();
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(JOBS as u32);
    let mut r = Rig::of(c);
    for n in 0..JOBS {
        r.submit(named(&format!("s{n}"))).unwrap();
    }
    let starts = r.starts();
    let waits: Vec<u32> = (0..JOBS).map(|_| r.submit(waiting("done(\"s*\")")).unwrap()).collect();
    assert_eq!(r.mbd.deps.watched_by_name(), (1, JOBS));
    let (last, first) = starts.split_last().unwrap();
    r.ends(first, &done());
    assert!(waits.iter().all(|id| r.mbd.deps.value(*id) == DepValue::False));
    r.ends(&[*last], &done());
    assert!(waits.iter().all(|id| r.mbd.deps.value(*id) == DepValue::True));
}

#[test]
fn names_that_take_too_long_to_look_up_are_refused() {
    let mut r = Rig::of(conf());
    r.submit(named("s1")).unwrap();
    let most = crate::batch::state::named::MAX_NAME_RUNS as u32;
    for n in 1..most {
        let spec = Arc::new(named(&format!("t{n}")));
        let new = JobNew { job: 10 + n, user: "ann".into(), spec, ..JobNew::default() };
        r.apply(&Record { time: 1, event: Event::JobNew(Box::new(new)) });
    }
    let refused = |r: &mut Rig, depend: &str| r.submit(waiting(depend)).map_err(|r| r.words());
    let words = |depend: &str| {
        format!("Dependency condition <{depend}> names too many jobs; give job IDs instead")
    };
    assert!(refused(&mut r, "done(\"t*\")").is_ok());
    for depend in ["done(\"t*\") && done(\"t1*\")", "done(\"t*[1]\")"] {
        assert_eq!(refused(&mut r, depend), Err(words(depend)));
    }
}
