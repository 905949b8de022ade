//! One record that ends many elements: lsb.acct gets a line for each, whatever happens between.

use super::*;
use crate::log::ACCT;
use crate::log::simdisk::{Crash, Faults};
use crate::log::switch::SwitchOrder;
use crate::model::action::JobAction;
use crate::model::event::{ArraySignal, JobSignal};

const ELEMENTS: u32 = 3000;

fn array() -> JobNew {
    let new = job_new(1);
    let name = format!("a[1-{ELEMENTS}]");
    JobNew { spec: Arc::new(JobSpec { name, ..(*new.spec).clone() }), ..new }
}

/// The array, and the record that kills all of its elements but the first.
fn killed() -> Batch {
    let elems = vec![(2, ELEMENTS, 1)];
    let signal = JobSignal { at: at(1), action: JobAction::Kill, ..JobSignal::default() };
    let (status, end_time) = (JobState::Exit.into(), 2000);
    let kill =
        ArraySignal { elems: elems.clone(), signal, status, reason: 0, end_time, exit_info: 14 };
    let new = array();
    let ended = Finish {
        event_time: end_time,
        at: JobRef { job: 1, idx: 2 },
        uid: new.uid,
        user: new.user.clone(),
        submit_time: new.submit_time,
        spec: JobSpec::clone(&new.spec),
        status,
        exit_info: 14,
        ..Finish::default()
    };
    let mut out = Batch::default();
    out.append(&Record { time: 1001, event: Event::JobNew(Box::new(new)) });
    out.append(&Record { time: 2000, event: Event::ArraySignal(Box::new(kill)) });
    out.account_elements(ended, elems);
    out
}

fn elements(disk: &SimDisk) -> Vec<u32> {
    let text = disk.get(ACCT).unwrap_or_default();
    let lines = text.split_inclusive(|b| *b == b'\n');
    lines.map(|l| read_finish(l).expect("a whole JOB_FINISH").at.idx).collect()
}

fn all_of_them() -> Vec<u32> {
    (2..=ELEMENTS).collect()
}

#[test]
fn elements_that_ended_together_are_accounted_after_the_commit_slice_by_slice() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &killed()).unwrap();
    assert!(elements(&disk).is_empty() && store.is_accounting());
    store.account_slice();
    assert!((1..ELEMENTS as usize - 1).contains(&elements(&disk).len()));
    while store.is_accounting() {
        store.account_slice();
    }
    assert_eq!(elements(&disk), all_of_them());
    // the same lines are derived from the events, and no line is written twice
    let text = disk.get(ACCT).unwrap();
    drop(store);
    for lines in [0, 1, 1500, ELEMENTS as usize - 1] {
        let disk = disk.fork();
        let kept = text.split_inclusive(|b| *b == b'\n').take(lines).map(<[u8]>::len).sum();
        disk.damage(ACCT, |bytes| bytes.truncate(kept));
        open(&disk, BOOT);
        assert_eq!(disk.get(ACCT).unwrap(), text, "{lines}");
    }
}

#[test]
fn a_crash_before_the_accounting_of_elements_loses_none() {
    for slices in 0..=3 {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        commit(&mut store, &killed()).unwrap();
        (0..slices).for_each(|_| store.account_slice());
        disk.crash(Crash::Power(slices));
        let (_, _store) = open(&disk, "boot-2");
        assert_eq!(elements(&disk), all_of_them(), "{slices}");
    }
}

#[test]
fn a_switch_of_the_log_and_its_end_wait_for_the_accounting_of_elements() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &killed()).unwrap();
    let order = SwitchOrder { live: vec![1], head: Vec::new(), spool: 2, oldest_spool: 1 };
    store.begin_switch(order).unwrap();
    assert_eq!(elements(&disk), all_of_them());
    while !store.switch_slice().unwrap() {}
    drop(store);
    let (_, _store) = open(&disk, BOOT);
    assert_eq!(elements(&disk), all_of_them());
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &killed()).unwrap();
    store.close();
    assert_eq!(elements(&disk), all_of_them());
}

#[test]
fn accounting_of_elements_goes_on_when_lsb_acct_can_be_written_again() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &killed()).unwrap();
    disk.set_faults(Faults { eio_at_write: Some(disk.writes()), ..Faults::default() });
    store.account_slice();
    // it is not tried without end
    assert!(elements(&disk).is_empty() && !store.is_accounting());
    disk.set_faults(Faults::default());
    commit(&mut store, &batch(&[new(2)])).unwrap();
    while store.is_accounting() {
        store.account_slice();
    }
    assert_eq!(elements(&disk), all_of_them());
}

#[test]
fn an_array_whose_record_of_many_elements_is_damaged_is_held() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &killed()).unwrap();
    store.close();
    let (from, to) = places(&disk)[1];
    disk.damage(EVENTS, |bytes| bytes[from + 40] ^= 1);
    let found = look(&disk, BOOT);
    let held: Vec<u32> = found.recovered.damaged.iter().map(|(at, _)| at.job).collect();
    assert_eq!(held, [1]);
    let text = format!("damage in bytes {from}-{} (", to - 1);
    let told = notice_texts(&found);
    let lost = |t: &&&str| t.contains(&text) && t.contains("LSF_ARRAY_SIGNAL of job <1>");
    assert!(told.iter().any(|t| lost(&t)), "{told:?}");
}
