//! bswitch, btop and bmod of many elements of an array: few records, and the state that a record of
//! each element would give.

use super::cluster::{Cluster, cluster, element, elements};
use super::*;
use crate::batch::state::State;
use crate::model::specfield::SpecField;

fn night() -> Verb {
    Verb::Switch { queue: "night".into() }
}

/// One slot, which the first element of an array gets.
fn site() -> Cluster {
    let site = cluster().hosts(1, 1).param("MAX_JOB_ARRAY_SIZE = 100000");
    site.queue("night", "PRIORITY = 20; RES_REQ = rusage[mem=10]").up()
}

/// Records of switched elements: by themselves, together.
fn switches(c: &Cluster) -> (usize, usize) {
    let single = c.logged(|e| matches!(e, Event::JobSwitch { .. }));
    (single, c.logged(|e| matches!(e, Event::ArraySwitch { .. })))
}

#[test]
fn switch_of_many_elements_takes_a_record_for_thousands_of_them() {
    let mut c = site();
    let array = c.submit("ann", "-J a[1-9100]");
    assert_eq!(c.started(), [element(array, 1)]);
    c.modify("ann", elements(array, 20, 40), &[SpecField::Project], "-P wine");
    assert_eq!(c.control("ann", night(), elements(array, 1, 9000)), vec![0; 9000]);
    assert_eq!(switches(&c), (0, 3));
    let modified = c.logged(|e| matches!(e, Event::JobModify(_)));
    for mut c in [c.recovered(), c] {
        let mut queue_of = |idx| {
            c.columns(element(array, idx), &[Col::Queue, Col::Project])
                .iter()
                .map(|v| v.as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        for idx in [1, 19, 41, 4096, 4097, 9000] {
            assert_eq!(queue_of(idx), ["night", "default"], "{idx}");
        }
        assert_eq!((queue_of(20), queue_of(40)), (queue_of(30), queue_of(30)));
        assert_eq!(queue_of(30), ["night", "wine"]);
        assert_eq!(queue_of(9001), ["normal", "default"]);
        let counted = |q: &QueueInfo| (q.pend, q.run);
        assert_eq!(counted(&c.queue("night")), (8999, 1));
        assert_eq!(counted(&c.queue("normal")), (100, 0));
    }
    // and the requirement of the queue with each of them: no record per element
    assert!(modified < 12, "{modified}");
}

#[test]
fn switch_of_few_elements_has_the_record_of_each() {
    let mut c = site();
    let array = c.submit("ann", "-J a[1-100]");
    c.control("ann", night(), elements(array, 5, 9));
    assert_eq!(switches(&c), (5, 0));
}

#[test]
fn change_of_many_elements_takes_a_record_for_thousands_of_them() {
    let mut c = site();
    let array = c.submit("ann", "-J a[1-9100]");
    c.modify("ann", elements(array, 2, 9000), &[SpecField::Project], "-P wine");
    assert_eq!(c.logged(|e| matches!(e, Event::JobModify(_))), 3);
    let project = |c: &mut Cluster, idx| c.column(element(array, idx), Col::Project);
    for mut c in [c.recovered(), c] {
        assert_eq!(project(&mut c, 2), "wine");
        assert_eq!(project(&mut c, 9000), "wine");
        assert_eq!(project(&mut c, 9001), "default");
    }
}

/// The record of many and the records of each of them lead to one state.
#[test]
fn one_record_of_switched_elements_says_what_a_record_for_each_would_say() {
    let mut c = site();
    let array = c.submit("ann", "-J a[1-90]");
    c.modify("ann", elements(array, 20, 40), &[SpecField::Project], "-P wine");
    assert!(c.control("ann", night(), elements(array, 1, 60)).iter().all(|code| *code == 0));
    let (mut together, mut one_by_one) = (State::new(), State::new());
    let mut split = 0;
    for event in c.records(|_| true) {
        together.apply(&Record { time: 1000, event: event.clone() });
        let Event::ArraySwitch { job, elems, queue, uid, user } = event else {
            one_by_one.apply(&Record { time: 1000, event });
            continue;
        };
        for idx in elems.iter().flat_map(|(first, last, _)| *first..=*last) {
            let (at, queue, user) = (JobRef { job, idx }, queue.clone(), user.clone());
            let event = Event::JobSwitch { at, queue, uid, user, route: None };
            one_by_one.apply(&Record { time: 1000, event });
            split += 1;
        }
    }
    assert_eq!(split, 60);
    assert_eq!(together.differences(&one_by_one, &Default::default()), [""; 0]);
}

#[test]
fn move_of_many_elements_takes_one_record() {
    let mut c = site();
    let array = c.submit("ann", "-J a[1-4100]");
    assert_eq!(c.started(), [element(array, 1)]);
    let other = c.submit("ann", "");
    let top = || Verb::Move { top: true, position: 1 };
    c.control("ann", top(), elements(array, 5, 9));
    let moves = |c: &Cluster| {
        let single = c.logged(|e| matches!(e, Event::JobMove { .. }));
        (single, c.logged(|e| matches!(e, Event::ArrayMove(_))))
    };
    assert_eq!(moves(&c), (5, 0), "few elements have the record of each");
    c.control("ann", Verb::Move { top: false, position: 1 }, elements(array, 2, 4000));
    assert_eq!(moves(&c), (5, 1));
    let mut now = element(array, 1);
    let mut next = || {
        c.end(now, 0);
        now = c.started()[0];
        now
    };
    let order: Vec<JobRef> = (0..102).map(|_| next()).collect();
    let left = (4001..=4100).map(|idx| element(array, idx));
    let want: Vec<JobRef> = left.chain([other, element(array, 2)]).collect();
    assert_eq!(order, want);
}

/// The record of many and the records of each of them lead to one state.
#[test]
fn one_record_of_moved_elements_says_what_a_record_for_each_would_say() {
    let mut c = site();
    let array = c.submit("ann", "-J a[1-90]");
    c.modify("ann", elements(array, 20, 40), &[SpecField::Project], "-P wine");
    c.control("ann", Verb::Move { top: false, position: 1 }, elements(array, 2, 60));
    let (mut together, mut one_by_one) = (State::new(), State::new());
    let mut split = 0;
    for event in c.records(|_| true) {
        together.apply(&Record { time: 1000, event: event.clone() });
        let Event::ArrayMove(m) = event else {
            one_by_one.apply(&Record { time: 1000, event });
            continue;
        };
        let (position, top, uid, place) = (m.position, m.top, m.uid, Some(m.place));
        for idx in m.elems.iter().flat_map(|(first, last, _)| *first..=*last) {
            let (at, user) = (JobRef { job: m.job, idx }, m.user.clone());
            let event = Event::JobMove { at, position, top, uid, user, place };
            one_by_one.apply(&Record { time: 1000, event });
            split += 1;
        }
    }
    assert_eq!(split, 59);
    assert_eq!(together.differences(&one_by_one, &Default::default()), [""; 0]);
}
