//! Elements of an array that bmod, bswitch, btop and bbot changed by themselves.

use super::*;
use crate::model::specfield::SpecField;

fn elems(job: u32, list: &[(u32, u32)]) -> IdSel {
    IdSel { job, elems: list.iter().map(|&(a, b)| (a, b, 1)).collect() }
}

/// Two hosts full, and an array of nine behind; what is started.
fn waiting() -> (Rig, Vec<(ConnId, JobKey)>, u32) {
    let mut r = Rig::new();
    for _ in 0..4 {
        r.submit(spec("x")).unwrap();
    }
    let started = r.starts();
    assert_eq!(started.len(), 4);
    let id = r.submit(JobSpec { name: "a[1-9]".into(), ..spec("y") }).unwrap();
    (r, started, id)
}

/// The elements in the order in which they are dispatched when slots come free one by one.
fn order(r: &mut Rig, mut running: Vec<(ConnId, JobKey)>) -> Vec<(u32, u32)> {
    let mut went = Vec::new();
    while let Some((conn, key)) = running.pop() {
        r.report(conn, key, done());
        for (conn, key) in r.starts() {
            went.push((key.job, key.idx));
            running.insert(0, (conn, key));
        }
    }
    went
}

fn count(m: &Mbatchd, queue: &str) -> (u64, u64, u64) {
    let slots = m.state.names().find_queue(queue).map(|q| m.state.counts().queue(q));
    slots.map_or((0, 0, 0), |s| (s.pend_jobs, s.pend, s.run))
}

#[test]
fn elements_become_of_another_submission() {
    use SpecField::*;
    let (mut r, started, id) = waiting();
    let to = JobSpec {
        project: "other".into(),
        min_slots: 2,
        max_slots: 2,
        out_file: "o.%I".into(),
        ..JobSpec::default()
    };
    assert_eq!(r.modify_of(USER, elems(id, &[(3, 4)]), &[Project, Slots], to.clone()), 0);
    assert_eq!(r.modify_of(USER, elems(id, &[(4, 5)]), &[OutFile], to.clone()), 0);
    for m in [&r.mbd, &r.restarted()] {
        let job = m.state.job(id).unwrap();
        let of = |idx| {
            let s = job.spec_at(idx);
            (s.project.as_str(), s.min_slots, s.out_file.lossy().into_owned())
        };
        assert_eq!(of(2), ("default", 1, String::new()));
        assert_eq!(of(3), ("other", 2, String::new()));
        assert_eq!(of(4), ("other", 2, "o.%I".to_string()));
        assert_eq!(of(5), ("default", 1, "o.%I".to_string()));
        assert_eq!(count(m, "normal"), (9, 11, 4));
        assert_eq!(job.tally().pend, 9);
    }
    // Elements that nobody named stay in one record: they have no element of their own.
    let job = r.mbd.state.job(id).unwrap();
    assert_eq!((job.array().unwrap().untouched_count(), job.parts().len()), (6, 3));
    // The whole array: those that differ too, in what is asked for.
    assert_eq!(r.modify_of(USER, elems(id, &[]), &[OutFile], JobSpec::default()), 0);
    let job = r.mbd.state.job(id).unwrap();
    assert!((1..=9).all(|idx| job.spec_at(idx).out_file.is_empty()));
    assert_eq!(job.spec_at(4).project, "other");
    // The record of an end tells what the element was of.
    let went = order(&mut r, started);
    assert_eq!(went.len(), 9);
    let of = |idx| r.acct.iter().find(|f| f.at == JobRef { job: id, idx }).unwrap();
    assert_eq!((of(3).spec.project.as_str(), of(6).spec.project.as_str()), ("other", "default"));
    assert_eq!(of(3).exec_hosts.iter().map(|h| h.1).sum::<u32>(), 2);
    assert_eq!(count(&r.mbd, "normal"), (0, 0, 0));
    assert_eq!(count(&r.restarted(), "normal"), (0, 0, 0));
}

#[test]
fn changed_elements_keep_their_place_among_the_rest() {
    use SpecField::*;
    let (mut r, started, id) = waiting();
    let to = JobSpec { project: "other".into(), res_req: "ncpus>1".into(), ..JobSpec::default() };
    assert_eq!(r.modify_of(USER, elems(id, &[(3, 4), (9, 9)]), &[Project], to.clone()), 0);
    assert_eq!(r.modify_of(USER, elems(id, &[(6, 6), (1, 1)]), &[ResReq], to), 0);
    let went: Vec<u32> = order(&mut r, started).into_iter().map(|w| w.1).collect();
    assert_eq!(went, (1..=9).collect::<Vec<u32>>());
}

#[test]
fn changes_that_elements_do_not_allow_are_refused() {
    use SpecField::*;
    let (mut r, started, id) = waiting();
    let named = JobSpec { name: "b[1-9]".into(), ..JobSpec::default() };
    assert_eq!(r.modify_of(USER, elems(id, &[(3, 3)]), &[Name], named), err::ARRAY_NAME);
    let dep = JobSpec { depend: "done(1)".into(), ..JobSpec::default() };
    assert_eq!(r.modify_of(USER, elems(id, &[(3, 3)]), &[Depend], dep), err::ELEMENT);
    let to = || JobSpec { project: "p".into(), ..JobSpec::default() };
    assert_eq!(r.modify_of(USER, elems(id, &[(10, 12)]), &[Project], to()), err::NO_JOB);
    assert_eq!(r.modify_of(USER, elems(1, &[(1, 1)]), &[Project], to()), err::NO_JOB);
    assert_eq!(r.modify_of(OTHER, elems(id, &[(1, 1)]), &[Project], to()), err::PERMISSION);
    let (conn, key) = started[0];
    r.report(conn, key, done());
    let (conn, key) = r.starts()[0];
    assert_eq!((key.job, key.idx), (id, 1));
    assert_eq!(r.modify_of(USER, elems(id, &[(1, 1)]), &[Project], to()), err::RUNNING);
    r.report(conn, key, done());
    assert_eq!(r.modify_of(USER, elems(id, &[(1, 1)]), &[Project], to()), err::JOB_FINISH);
    assert!(r.mbd.state.job(id).unwrap().parts().is_empty());
    // The change of a range changes those of its elements that can be changed.
    assert_eq!(r.modify_of(USER, elems(id, &[(1, 4)]), &[Project], to()), 0);
    let job = r.mbd.state.job(id).unwrap();
    let changed = |idx: &u32| job.spec_at(*idx).project == "p";
    assert_eq!((1..=9).filter(changed).collect::<Vec<u32>>(), [3, 4]);
}

#[test]
fn elements_go_to_another_queue() {
    let (mut r, started, id) = waiting();
    let to = Verb::Switch { queue: "high".into() };
    let done: Vec<_> = r
        .does_to(USER, to.clone(), elems(id, &[(8, 10)]))
        .into_iter()
        .map(|o| (o.id.idx, o.code))
        .collect();
    assert_eq!(done, [(8, 0), (9, 0), (10, err::NO_JOB)]);
    for m in [&r.mbd, &r.restarted()] {
        assert_eq!(count(m, "normal"), (7, 7, 4));
        assert_eq!(count(m, "high"), (2, 2, 0));
        let job = m.state.job(id).unwrap();
        assert_eq!(&**m.state.names().queue(job.queue_at(8)), "high");
        assert_eq!(job.parts().len(), 1);
    }
    // A filter by queue takes those in it.
    let select = JobSelect { queue: "high".into(), all: true, ..JobSelect::default() };
    let c = Control::of(Verb::Stop, select);
    match r.ask(USER, ClientMsg::Control(Box::new(c))) {
        Some(Msg::Client(ClientMsg::Controlled { outcomes, .. })) => {
            let ids: Vec<_> = outcomes.iter().map(|o| o.id.idx).collect();
            assert_eq!(ids, [8, 9]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((r.stat(id, 8), r.stat(id, 7)), ("PSUSP", "PEND"));
    r.does_to(USER, Verb::Resume, elems(id, &[(8, 9)]));
    // The queue of the higher priority goes first.
    let went: Vec<u32> = order(&mut r, started).into_iter().map(|w| w.1).collect();
    assert_eq!(went, [8, 9, 1, 2, 3, 4, 5, 6, 7]);
    let queue = |idx| {
        let f = r.acct.iter().find(|f| f.at == JobRef { job: id, idx }).unwrap();
        f.spec.queue.clone()
    };
    assert_eq!((queue(8), queue(7)), ("high".to_string(), "normal".to_string()));
}

#[test]
fn a_whole_array_goes_with_its_parts() {
    let (mut r, _, id) = waiting();
    let to = |q: &str| Verb::Switch { queue: q.into() };
    r.does_to(USER, to("high"), elems(id, &[(2, 3)]));
    assert_eq!(r.does(USER, to("high"), id).code, 0);
    assert_eq!(r.does(USER, to("normal"), id).code, 0);
    for m in [&r.mbd, &r.restarted()] {
        assert_eq!((count(m, "normal"), count(m, "high")), ((9, 9, 4), (0, 0, 0)));
    }
}

#[test]
fn elements_that_become_alike_are_one_part() {
    use SpecField::*;
    let (mut r, started, id) = waiting();
    let to = |project: &str, out: &str| JobSpec {
        project: project.into(),
        out_file: out.into(),
        ..JobSpec::default()
    };
    for (elem, project) in [(2, "p2"), (3, "p3"), (7, "p3"), (4, "p4")] {
        let changed = r.modify_of(USER, elems(id, &[(elem, elem)]), &[Project], to(project, ""));
        assert_eq!(changed, 0);
    }
    let parts = |m: &Mbatchd| {
        let all = m.state.job(id).unwrap().parts().iter();
        all.filter(|p| !p.is_empty()).map(|p| p.len()).collect::<Vec<_>>()
    };
    assert_eq!(parts(&r.mbd), [1, 2, 1]);
    assert_eq!(r.modify_of(USER, elems(id, &[]), &[OutFile], to("", "o")), 0);
    assert_eq!(parts(&r.mbd), [1, 2, 1]);
    assert_eq!(r.modify_of(USER, elems(id, &[]), &[Project], to("p", "")), 0);
    for m in [&r.mbd, &r.restarted()] {
        assert_eq!(parts(m), [4]);
        let job = m.state.job(id).unwrap();
        let of = |idx| (job.spec_at(idx).project.clone(), job.spec_at(idx).out_file.lossy());
        assert!((1..=9).all(|idx| of(idx) == ("p".to_string(), "o".into())));
        assert_eq!(count(m, "normal"), (9, 9, 4));
    }
    let went: Vec<u32> = order(&mut r, started).into_iter().map(|w| w.1).collect();
    assert_eq!(went, (1..=9).collect::<Vec<u32>>());
}

#[test]
fn elements_are_moved_by_btop_and_bbot() {
    let (mut r, started, id) = waiting();
    let last = r.submit(spec("z")).unwrap();
    let go = |top, position| Verb::Move { top, position };
    assert_eq!(r.does_to(USER, go(true, 1), elems(id, &[(5, 6)]))[0].place, 1);
    // Behind the array, what was moved of it before, and the job behind it.
    assert_eq!(r.does_to(USER, go(false, 1), elems(id, &[(2, 2)]))[0].place, 1);
    assert_eq!(r.does_to(USER, go(true, 1), elems(id, &[(10, 10)]))[0].code, err::NO_JOB);
    let before = r.restarted();
    let spots = |m: &Mbatchd| {
        let job = m.state.job(id).unwrap();
        [1, 2, 5, 6].map(|idx| m.state.spot_of(job, job.part_no(idx)))
    };
    assert_eq!(spots(&before), spots(&r.mbd));
    let went = order(&mut r, started);
    let of = |idx| (id, idx);
    let want = [of(5), of(6), of(1), of(3), of(4), of(7), of(8), of(9), (last, 0), of(2)];
    assert_eq!(went, want);
}

#[test]
fn a_moved_array_takes_its_moved_elements_along() {
    let (mut r, started, id) = waiting();
    let last = r.submit(spec("z")).unwrap();
    r.does_to(USER, Verb::Move { top: true, position: 1 }, elems(id, &[(5, 5)]));
    assert_eq!(r.does(USER, Verb::Move { top: false, position: 1 }, id).place, 1);
    let went = order(&mut r, started);
    assert_eq!((went[0], went.len()), ((last, 0), 10));
}

#[test]
fn an_array_limit_and_start_times_hold_for_parts() {
    let mut r = Rig::new();
    let later = r.now.secs() + 5;
    let id = r.submit(JobSpec { name: "a[1-6]%2".into(), ..spec("y") }).unwrap();
    let started = r.starts();
    assert_eq!(started.len(), 2);
    let begin = JobSpec { begin_time: later, ..JobSpec::default() };
    let p = JobSpec { project: "p".into(), ..JobSpec::default() };
    assert_eq!(r.modify_of(USER, elems(id, &[(3, 4)]), &[SpecField::Begin], begin), 0);
    assert_eq!(r.modify_of(USER, elems(id, &[(6, 6)]), &[SpecField::Project], p), 0);
    assert!(r.starts().is_empty());
    let went: Vec<u32> = order(&mut r, started).into_iter().map(|w| w.1).collect();
    assert_eq!(went, [5, 6]);
    // After a restart the start times still hold.
    let mut r2 = Rig::with(r.restarted(), r.now);
    assert!(r2.starts().is_empty());
    r2.now.mono_us += 8_000_000;
    r2.now.wall_us += 8_000_000;
    r2.step(Input::Tick);
    let went: Vec<u32> = r2.starts().into_iter().map(|s| s.1.idx).collect();
    assert_eq!(went, [3, 4]);
}

#[test]
fn elements_wait_one_by_one_in_parts_too() {
    let mut r = Rig::new();
    let first = r.submit(JobSpec { name: "a[1-4]".into(), ..spec("x") }).unwrap();
    let started = r.starts();
    assert_eq!(started.len(), 4);
    let depend = format!("done({first}[*])");
    let id = r.submit(JobSpec { name: "b[1-4]".into(), depend, ..spec("y") }).unwrap();
    let p = JobSpec { project: "p".into(), ..JobSpec::default() };
    assert_eq!(r.modify_of(USER, elems(id, &[(3, 3)]), &[SpecField::Project], p), 0);
    for want in [3u32, 1] {
        let (conn, key) = *started.iter().find(|s| s.1.idx == want).unwrap();
        r.report(conn, key, done());
        let went: Vec<_> = r.starts().into_iter().map(|s| (s.1.job, s.1.idx)).collect();
        assert_eq!(went, [(id, want)]);
    }
}

#[test]
fn the_limit_of_an_array_changes_by_itself() {
    let mut r = Rig::new();
    let id = r.submit(JobSpec { name: "a[1-9:2]%1".into(), ..spec("x") }).unwrap();
    assert_eq!(r.starts().len(), 1);
    let limit_of = |r: &mut Rig, job: u32, name: &str| {
        let m = Modify {
            id: IdSel { job, elems: vec![] },
            fields: vec![SpecField::Name],
            spec: JobSpec { name: name.into(), ..JobSpec::default() },
            ..Modify::default()
        };
        match r.ask(USER, ClientMsg::Modify(Box::new(m))) {
            Some(Msg::Refused(why)) => why.code,
            _ => 0,
        }
    };
    let limit = |r: &mut Rig, name: &str| limit_of(r, id, name);
    assert_eq!((limit(&mut r, "%3"), r.starts().len()), (0, 2));
    for m in [&r.mbd, &r.restarted()] {
        assert_eq!(m.state.job(id).unwrap().name.to_string(), "a[1-9:2]%3");
    }
    assert_ne!(limit(&mut r, "%x"), 0);
    // none at all
    assert_eq!((limit(&mut r, "%0"), r.starts().len()), (0, 1));
    // a job that is no array has no such limit, and is not given a name of it
    let single = r.submit(spec("x")).unwrap();
    let before = r.mbd.state.job(single).unwrap().spec.name.clone();
    assert_eq!(limit_of(&mut r, single, "%4"), err::ARRAY_NONE);
    assert_eq!(r.mbd.state.job(single).unwrap().spec.name, before);
    assert_eq!(limit_of(&mut r, single, "%share"), 0);
}

#[test]
fn element_changed_by_itself_while_its_whole_array_is_changed_gets_both_changes() {
    use SpecField::*;
    const PARTS: u32 = 12;
    let (mut r, _, _) = waiting();
    let id = r.submit(JobSpec { name: format!("b[1-{PARTS}]"), ..spec("y") }).unwrap();
    let project = |name: String| JobSpec { project: name, ..JobSpec::default() };
    for idx in 1..=PARTS {
        let code =
            r.modify_of(USER, elems(id, &[(idx, idx)]), &[Project], project(idx.to_string()));
        assert_eq!(code, 0);
    }
    // nobody is of the first part any more
    assert_eq!(r.modify_of(USER, elems(id, &[(1, 1)]), &[Project], project("p".into())), 0);
    assert!(r.mbd.state.job(id).unwrap().part(1).unwrap().is_empty());
    r.works = false;
    let (fields, spec) = (vec![OutFile], JobSpec { out_file: "all".into(), ..JobSpec::default() });
    let whole = Modify { id: elems(id, &[]), spec, fields, ..Modify::default() };
    assert!(r.ask(USER, ClientMsg::Modify(Box::new(whole))).is_none());
    let out =
        |r: &Rig, idx| r.mbd.state.job(id).unwrap().spec_at(idx).out_file.lossy().into_owned();
    assert_eq!((out(&r, 2), out(&r, PARTS)), ("all".to_string(), String::new()));
    let code = r.modify_of(ADMIN, elems(id, &[(PARTS, PARTS)]), &[Project], project("q".into()));
    assert_eq!((code, r.mbd.state.job(id).unwrap().part_no(PARTS)), (0, 1));
    r.sent.clear();
    while r.mbd.has_work() {
        r.work();
    }
    let answered = |(conn, msg): &(ConnId, Msg)| {
        *conn == USER && matches!(msg, Msg::Client(ClientMsg::Controlled { .. }))
    };
    assert!(r.sent.iter().any(answered));
    assert!((1..=PARTS).all(|idx| out(&r, idx) == "all"));
    assert_eq!(r.mbd.state.job(id).unwrap().spec_at(PARTS).project, "q");
    let again = r.restarted();
    assert_eq!(again.state.differences(&r.mbd.state, &Default::default()), Vec::<String>::new());
}
