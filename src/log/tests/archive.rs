//! Archiving lsb.acct: what is archived when, names, and crashes at each step.

use super::super::acct_archive::{Archived, MOST_NAMES};
use super::super::simdisk::{Crash, Faults};
use super::super::switch::SwitchOrder;
use super::super::{ACCT, writer};
use super::*;
use crate::proto::machine::AcctArchive;

const NOW: AcctArchive = AcctArchive { larger_than: Some(0), begun_before: None, keep: None };

/// The jobs of the records of a file.
fn jobs(disk: &SimDisk, name: &str) -> Vec<u32> {
    let text = disk.get(name).unwrap_or_default();
    let lines = text.split_inclusive(|b| *b == b'\n');
    lines.map(|line| read_finish(line).unwrap().at.job).collect()
}

/// The jobs of all accounting files, oldest first.
fn all_jobs(disk: &SimDisk) -> Vec<u32> {
    let mut numbers = super::super::acct_archive::numbers(&mut disk.clone()).unwrap();
    numbers.reverse();
    let old = numbers.iter().flat_map(|n| jobs(disk, &format!("{ACCT}.{n}")));
    let mut all: Vec<u32> = old.collect();
    all.extend(jobs(disk, ACCT));
    all
}

fn end(store: &mut Store<SimDisk>, job: u32) -> Result<(), Fail> {
    commit(store, &batch(&[new(job), start(job), done(job)]))
}

#[test]
fn file_that_is_too_large_or_too_old_becomes_the_newest_archive() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    assert_eq!(store.archive_acct(&NOW).unwrap(), Archived::NotDue, "there is no record");
    end(&mut store, 1).unwrap();
    let len = disk.get(ACCT).unwrap().len() as u64;
    let larger = |n| AcctArchive { larger_than: Some(n), ..AcctArchive::default() };
    let before = |t| AcctArchive { begun_before: Some(t), ..AcctArchive::default() };
    for order in [larger(len), before(3001), AcctArchive::default()] {
        assert_eq!(store.archive_acct(&order).unwrap(), Archived::NotDue, "{order:?}");
    }
    assert_eq!(store.archive_acct(&larger(len - 1)).unwrap(), Archived::Whole);
    assert_eq!((jobs(&disk, ACCT), jobs(&disk, "lsb.acct.1")), (vec![], vec![1]));
    end(&mut store, 2).unwrap();
    end(&mut store, 3).unwrap();
    assert_eq!(store.archive_acct(&before(3003)).unwrap(), Archived::Whole);
    end(&mut store, 4).unwrap();
    assert_eq!(store.archive_acct(&AcctArchive { keep: Some(2), ..NOW }).unwrap(), Archived::Whole);
    assert_eq!((jobs(&disk, ACCT), jobs(&disk, "lsb.acct.1")), (vec![], vec![4]));
    assert_eq!(jobs(&disk, "lsb.acct.2"), [2, 3]);
    assert!(disk.get("lsb.acct.3").is_none());
}

#[test]
fn file_is_not_archived_during_a_switch_of_the_log() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    end(&mut store, 1).unwrap();
    let order = SwitchOrder { live: vec![1], spool: 2, oldest_spool: 2, ..Default::default() };
    store.begin_switch(order).unwrap();
    assert_eq!(store.archive_acct(&NOW).unwrap(), Archived::NotDue);
    while !store.switch_slice().unwrap() {}
    assert_eq!(store.archive_acct(&NOW).unwrap(), Archived::Whole);
    open(&disk, BOOT);
    assert_eq!(all_jobs(&disk), [1]);
}

/// Archives three times with ends between; the jobs whose ends were acknowledged, and the one
/// under way.
fn run(disk: &SimDisk) -> (Vec<u32>, Option<u32>) {
    let mut acked = Vec::new();
    disk.put("lsb.acct.2", b"");
    let Ok(mut found) = recover(&mut disk.clone(), &params(BOOT)) else { return (acked, None) };
    let plan = std::mem::take(&mut found.plan);
    let Ok(mut store) = Store::open(disk.clone(), plan) else { return (acked, None) };
    for job in 1..=4 {
        if end(&mut store, job).is_err() {
            return (acked, Some(job));
        }
        acked.push(job);
        if store.archive_acct(&NOW).is_err() {
            return (acked, None);
        }
    }
    (acked, None)
}

#[test]
fn crash_at_every_step_of_archiving_loses_no_end_and_doubles_none() {
    let whole = SimDisk::new();
    assert_eq!(run(&whole), (vec![1, 2, 3, 4], None));
    assert_eq!(all_jobs(&whole), [1, 2, 3, 4]);
    let mut hows = vec![Crash::Process];
    hows.extend((0..6).map(Crash::Power));
    hows.extend((0..6).map(Crash::PowerTorn));
    for op in 1..=whole.ops() + 1 {
        let disk = SimDisk::new();
        disk.set_faults(Faults { die_at_op: Some(op), ..Faults::default() });
        let (acked, under_way) = run(&disk);
        for how in &hows {
            let disk = disk.fork();
            disk.crash(*how);
            let boot = if *how == Crash::Process { BOOT } else { "boot-2" };
            let (_, mut store) = open(&disk, boot);
            let mut have = all_jobs(&disk);
            have.sort_unstable();
            if have.last() == under_way.as_ref() {
                have.pop();
            }
            assert_eq!(have, acked, "op {op} {how:?}");
            // and archiving goes on
            end(&mut store, 9).unwrap();
            assert_eq!(store.archive_acct(&NOW).unwrap(), Archived::Whole, "op {op} {how:?}");
            assert_eq!(jobs(&disk, "lsb.acct.1").last(), Some(&9), "op {op} {how:?}");
            drop(store);
            open(&disk, boot);
            let ends = all_jobs(&disk);
            let unique: std::collections::BTreeSet<u32> = ends.iter().copied().collect();
            assert_eq!(unique.len(), ends.len(), "op {op} {how:?}: {ends:?}");
        }
    }
}

#[test]
fn error_at_every_operation_of_archiving_loses_no_end() {
    for op in 0..60 {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        end(&mut store, 1).unwrap();
        store.archive_acct(&NOW).unwrap();
        end(&mut store, 2).unwrap();
        disk.set_faults(Faults { fail_at_op: Some(disk.ops() + op), ..Faults::default() });
        let done = store.archive_acct(&NOW);
        disk.set_faults(Faults::default());
        if matches!(done, Err(Fail::Fatal(_))) {
            drop(store);
            store = open(&disk, BOOT).1;
        }
        end(&mut store, 3).unwrap();
        store.archive_acct(&NOW).unwrap();
        drop(store);
        open(&disk, BOOT);
        assert_eq!(all_jobs(&disk), [1, 2, 3], "op {op} {done:?}");
    }
}

#[test]
fn run_that_has_lost_the_log_archives_nothing() {
    let disk = SimDisk::new();
    let (_, mut old) = open(&disk, BOOT);
    end(&mut old, 1).unwrap();
    let (_, mut store) = open(&disk, BOOT);
    end(&mut store, 2).unwrap();
    assert!(matches!(old.archive_acct(&NOW), Err(Fail::Fatal(_) | Fail::Write(_))));
    assert_eq!(jobs(&disk, ACCT), [1, 2]);
    assert!(disk.get("lsb.acct.1").is_none());
}

#[test]
fn writer_archives_behind_the_batches_that_were_ordered_before() {
    let disk = SimDisk::new();
    let (_, store) = open(&disk, BOOT);
    let mut writer = writer::Writer::new(store);
    let mut first = batch(&[new(1), start(1), done(1)]);
    first.ticket = 1;
    writer.order(writer::Command::Batch(Box::new(first)));
    writer.order(writer::Command::ArchiveAcct(NOW));
    while writer.due() == writer::Due::Now {
        writer.turn(1, &mut |_| {});
    }
    assert_eq!((jobs(&disk, ACCT), jobs(&disk, "lsb.acct.1")), (vec![], vec![1]));
}

#[test]
fn turn_moves_a_bounded_number_of_archives_and_a_crash_between_two_loses_none() {
    let most = MOST_NAMES as u32;
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    end(&mut store, 1).unwrap();
    let number = |n: u32| format!("{ACCT}.{n}");
    let all = 2 * most + 1;
    (1..=all).for_each(|n| disk.put(&number(n), n.to_string().as_bytes()));
    let has = |n: u32| disk.get(&number(n)).map(|text| String::from_utf8(text).unwrap());
    assert_eq!(store.archive_acct(&NOW).unwrap(), Archived::InPart);
    let moved = (all + 1 - most, all - most);
    assert_eq!(
        (has(all + 1), has(moved.0 + 1)),
        (Some(all.to_string()), Some(moved.0.to_string()))
    );
    assert_eq!((has(moved.0), has(moved.1)), (None, Some(moved.1.to_string())));
    drop(store);
    // the next run goes on there, in further turns
    let mut writer = writer::Writer::new(open(&disk, BOOT).1);
    writer.order(writer::Command::ArchiveAcct(NOW));
    let mut turns = 0;
    while writer.due() == writer::Due::Now {
        writer.turn(1, &mut |_| {});
        turns += 1;
    }
    assert_eq!(turns, 2);
    let names: Vec<Option<String>> = (2..=all + 1).map(has).collect();
    let want: Vec<Option<String>> = (1..=all).map(|n| Some(n.to_string())).collect();
    assert!(names == want);
    assert_eq!((jobs(&disk, ACCT), jobs(&disk, "lsb.acct.1")), (vec![], vec![1]));
}
