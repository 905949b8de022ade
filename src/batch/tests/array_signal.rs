//! bkill, bstop and bresume of many pending elements of an array: one record, and the state, the
//! accounting and the listings that records of single elements would give.

use super::cluster::{Cluster, cluster, element, elements};
use super::*;
use crate::batch::state::State;
use crate::model::action::JobAction;
use crate::model::event::{ArraySignal, JobNew, JobSignal, JobStart, JobStatus};
use crate::model::reason::term;
use crate::model::specfield::SpecField;

/// No slot is free for the array.
fn held_up() -> Cluster {
    let site = cluster().hosts(1, 1).param("MAX_JOB_ARRAY_SIZE = 100000");
    let mut c = site.up();
    c.submit("ann", "");
    c
}

fn signals(c: &Cluster) -> (usize, usize) {
    let single = c.logged(|e| matches!(e, Event::JobSignal(_) | Event::JobStatus(_)));
    (single, c.logged(|e| matches!(e, Event::ArraySignal(_))))
}

#[test]
fn verbs_on_a_large_array_take_one_record_each() {
    let mut c = held_up();
    let array = c.submit("ann", "-J a[1-3000]");
    let before = signals(&c);
    assert_eq!(c.control("ann", Verb::Stop, array), [0]);
    assert_eq!(c.state(element(array, 1)), "PSUSP");
    assert_eq!(c.state(element(array, 3000)), "PSUSP");
    assert_eq!(signals(&c), (before.0, before.1 + 1));
    // a second stop changes nothing
    assert_eq!(c.control("ann", Verb::Stop, array), [0]);
    assert_eq!(signals(&c), (before.0, before.1 + 1));
    assert_eq!(c.recovered().state(element(array, 7)), "PSUSP");
    assert_eq!(c.control("ann", Verb::Resume, array), [0]);
    assert_eq!(c.state(element(array, 7)), "PEND");
    assert_eq!(c.control("ann", Verb::Kill, array), [0]);
    for mut c in [c.recovered(), c] {
        assert_eq!(c.state(element(array, 1)), "EXIT");
        assert_eq!(c.state(element(array, 3000)), "EXIT");
        assert_eq!(c.control("ann", Verb::Kill, array), [err::JOB_FINISH]);
    }
}

#[test]
fn elements_that_are_killed_together_are_accounted_one_by_one() {
    let mut c = held_up();
    let array = c.submit("ann", "-J a[1-40] -P wine");
    c.accounted();
    assert_eq!(c.control("admin", Verb::Kill, array), [0]);
    let all = c.accounted();
    let told: Vec<u32> = all.iter().map(|f| f.at.idx).collect();
    assert_eq!(told, (1..=40).collect::<Vec<u32>>());
    for f in all {
        assert_eq!((f.user.as_str(), f.spec.project.as_str(), f.start_time), ("ann", "wine", 0));
        assert_eq!((f.exit_info, f.attempt), (term::ADMIN, 0));
        assert!(f.status.is_finished() && !f.status.is_done());
    }
}

#[test]
fn elements_that_differ_are_dealt_with_by_themselves() {
    let mut c = held_up();
    let array = c.submit("ann", "-J a[1-100]%1");
    // one runs, one was stopped by an administrator, one has another project
    let first = c.started()[0];
    c.end(first, 0);
    assert_eq!(c.state(element(array, 1)), "RUN");
    c.stop("admin", element(array, 5));
    c.modify("ann", elements(array, 20, 40), &[SpecField::Project], "-P wine");
    assert_eq!(c.control("ann", Verb::Stop, array), [0]);
    assert_eq!(c.control("ann", Verb::Resume, array), [0]);
    assert_eq!(c.state(element(array, 5)), "PSUSP", "the administrator's stop holds");
    assert_eq!(c.state(element(array, 6)), "PEND");
    assert_eq!(c.state(element(array, 30)), "PEND");
    c.accounted();
    assert_eq!(c.control("ann", Verb::Kill, elements(array, 2, 60)), vec![0; 59]);
    let of = |f: &Finish, project: &str| f.spec.project == project;
    let all = c.accounted();
    assert_eq!(all.len(), 59);
    assert_eq!(all.iter().filter(|f| of(f, "wine")).count(), 21);
    assert_eq!((c.state(element(array, 60)), c.state(element(array, 61))), {
        ("EXIT".to_string(), "PEND".to_string())
    });
    let mut again = c.recovered();
    assert_eq!(again.state(element(array, 60)), "EXIT");
}

#[test]
fn a_condition_on_an_array_follows_its_elements_that_end_together() {
    let mut c = held_up();
    let array = c.submit("ann", "-J a[1-50]");
    let next = c.submit("ann", &format!("-w ended({})", array.job));
    assert_eq!(c.reason(next), PendReason::Dependency);
    assert_eq!(c.control("ann", Verb::Kill, elements(array, 1, 49)), vec![0; 49]);
    assert_eq!(c.reason(next), PendReason::Dependency);
    assert_eq!(c.control("ann", Verb::Kill, array), [0]);
    assert_ne!(c.reason(next), PendReason::Dependency);
}

/// The record of many and the records of each of them lead to one state.
#[test]
fn one_record_for_many_elements_says_what_a_record_for_each_would_say() {
    let new = JobNew {
        job: 7,
        user: "ann".into(),
        submit_time: 1000,
        spec: JobSpec { name: "a[1-90]".into(), queue: "normal".into(), ..JobSpec::default() }
            .into(),
        ..JobNew::default()
    };
    let record = |time, event| Record { time, event };
    let at = |idx| JobRef { job: 7, idx };
    let status = |idx, state: JobState, attempt| {
        let s = JobStatus { at: at(idx), status: state.into(), attempt, ..JobStatus::default() };
        Event::JobStatus(Box::new(s))
    };
    let started =
        JobStart { at: at(3), attempt: 1, hosts: [("h1".into(), 1)].into(), ..Default::default() };
    // one has run and waits again, one runs, one has ended
    let start = |idx| Event::JobStart(Box::new(JobStart { at: at(idx), ..started.clone() }));
    let mut before = vec![record(1000, Event::JobNew(Box::new(new)))];
    before.extend([3, 4, 5].map(|idx| record(1001, start(idx))));
    before.push(record(1002, status(3, JobState::Pend, 1)));
    before.push(record(1003, status(5, JobState::Done, 1)));
    let verb = |action, state: JobState, reason, exit_info, elems: &[(u32, u32, u32)]| {
        let host = "h2".to_string();
        let (request, user) = (format!("{action:?}{state:?}"), "ann".to_string());
        let signal = JobSignal { at: at(0), user, action, host, request, ..JobSignal::default() };
        let end_time = if state.is_finished() { 1010 } else { 0 };
        let (elems, status) = (elems.to_vec(), state.into());
        ArraySignal { elems, signal, status, reason, end_time, exit_info }
    };
    let stop = PendReason::UserStop.number();
    let verbs = [
        verb(JobAction::Stop, JobState::Psusp, stop, 0, &[(1, 3, 1), (6, 60, 1), (70, 90, 2)]),
        verb(JobAction::Resume, JobState::Pend, PendReason::Resumed.number(), 0, &[(2, 50, 1)]),
        verb(JobAction::Kill, JobState::Exit, 0, term::OWNER, &[(2, 40, 1), (60, 85, 1)]),
        verb(JobAction::Kill, JobState::Done, 0, term::OWNER, &[(1, 90, 1)]),
    ];
    let (mut together, mut one_by_one) = (State::new(), State::new());
    for rec in &before {
        together.apply(rec);
        one_by_one.apply(rec);
    }
    for (n, verb) in verbs.into_iter().enumerate() {
        let time = 1010 + n as i64;
        // those that are not pending are left alone
        let pends = |s: &State, idx| {
            s.job(7).and_then(|j| j.view(idx)).is_some_and(|v| v.stat().is_pending())
        };
        for idx in verb.indices().filter(|idx| pends(&together, *idx)).collect::<Vec<u32>>() {
            one_by_one.apply(&record(time, Event::JobSignal(Box::new(verb.signal_of(idx)))));
            one_by_one.apply(&record(time, Event::JobStatus(Box::new(verb.status_of(idx)))));
        }
        let request = verb.signal.request.clone();
        let rec = record(time, Event::ArraySignal(Box::new(verb)));
        together.apply(&rec);
        assert_eq!(together.differences(&one_by_one, &Default::default()), [""; 0]);
        let done = |s: &State, idx| s.done_by(&request).is_some_and(|done| done.has(at(idx)));
        for idx in 1..=90 {
            assert_eq!(done(&together, idx), done(&one_by_one, idx), "{idx}");
        }
        // once more, as a doubled line of a log: nothing is another
        let told = together.about(7, true);
        together.apply(&rec);
        assert_eq!(together.about(7, true), told);
    }
    assert_eq!(together.job(7).unwrap().tally().unfinished(), 1);
}
