//! Crashes, full disks and I/O errors at every operation of a script of commits.

use super::super::EVENTS_SUM;
use super::super::codec::read_record;
use super::super::disk::Disk;
use super::super::recover::again;
use super::super::simdisk::{Crash, Faults};
use super::super::switch::SwitchOrder;
use super::*;
use crate::model::action::JobAction;
use crate::model::job_state::JobState;

const ENOSPC: i32 = 28;

/// Runs the script until something fails; what was acknowledged, and the batch under way.
fn run(disk: &SimDisk) -> (Vec<Record>, Vec<Record>) {
    let mut acked = Vec::new();
    let Ok(mut found) = recover(&mut disk.clone(), &params(BOOT)) else {
        return (acked, Vec::new());
    };
    let plan = std::mem::take(&mut found.plan);
    let Ok(mut store) = Store::open(disk.clone(), plan) else { return (acked, Vec::new()) };
    for records in script() {
        if commit(&mut store, &batch(&records)).is_err() {
            return (acked, records);
        }
        acked.extend(records);
    }
    (acked, Vec::new())
}

#[test]
fn a_crash_at_every_operation_keeps_what_was_acknowledged() {
    let whole = SimDisk::new();
    run(&whole);
    let mut hows = vec![Crash::Process];
    hows.extend((0..12).map(Crash::Power));
    hows.extend((0..12).map(Crash::PowerTorn));
    for op in 1..=whole.ops() + 1 {
        let disk = SimDisk::new();
        disk.set_faults(Faults { die_at_op: Some(op), ..Faults::default() });
        let (acked, under_way) = run(&disk);
        for how in &hows {
            let disk = disk.fork();
            disk.crash(*how);
            let boot = if *how == Crash::Process { BOOT } else { "boot-2" };
            let (found, mut store) = open(&disk, boot);
            let got = &found.recovered.records;
            let all = [&acked[..], &under_way[..]].concat();
            assert!(got.len() >= acked.len(), "op {op} {how:?}: {got:?}");
            assert_eq!(got[..], all[..got.len()], "op {op} {how:?}");
            assert!(found.recovered.damaged.is_empty(), "op {op} {how:?}");
            // each finished job that came back is accounted for once
            let ends = got.iter().filter_map(|r| match &r.event {
                Event::JobStatus(s) => Some(s.at.job),
                _ => None,
            });
            let mut want: Vec<u32> = ends.collect();
            let mut have = accounted(&disk);
            want.sort_unstable();
            have.sort_unstable();
            assert_eq!(have, want, "op {op} {how:?}");
            // and the log goes on
            let kept = got.len();
            commit(&mut store, &batch(&[new(9)])).unwrap();
            let found = look(&disk, boot);
            assert_eq!(found.recovered.records, [&all[..kept], &[new(9)]].concat());
        }
    }
}

/// Runs the script with a disk that fails; a batch that fails is tried again once writing works.
fn stubborn(disk: &SimDisk, mend: impl Fn()) -> u32 {
    let (_, mut store) = open(disk, BOOT);
    let mut acked = Vec::new();
    let mut failures = 0;
    for records in script() {
        let b = batch(&records);
        for attempt in 0.. {
            match commit(&mut store, &b) {
                Ok(()) => break,
                Err(Fail::Write(_)) => failures += 1,
                Err(Fail::Fatal(why)) => panic!("{why}"),
            }
            assert!(attempt < 50);
            // what the log holds is what was acknowledged
            let back = again(&mut disk.fork(), store.durable_len(), 1).unwrap();
            assert_eq!(back.records, acked);
            assert!(back.damaged.is_empty());
            mend();
            let _ = store.probe();
        }
        acked.extend(records);
    }
    mend();
    let found = look(disk, BOOT);
    assert_eq!(found.recovered.records, acked);
    assert!(found.notices.is_empty(), "{:?}", found.notices);
    let (_, store) = open(disk, BOOT);
    store.close();
    let mut jobs = accounted(disk);
    jobs.sort_unstable();
    assert_eq!(jobs, [1, 3, 4, 6]);
    failures
}

#[test]
fn an_error_at_every_write_undoes_the_commit_and_no_more() {
    let whole = SimDisk::new();
    let (_, store) = open(&whole, BOOT);
    drop(store);
    let from = whole.writes();
    let to = {
        let disk = SimDisk::new();
        run(&disk);
        disk.writes()
    };
    assert!(to > from + 10);
    let mut failed = 0;
    for write in from..to {
        let disk = SimDisk::new();
        disk.set_faults(Faults { eio_at_write: Some(write), ..Faults::default() });
        failed += stubborn(&disk, || {});
    }
    // all but those of lsb.acct
    assert_eq!(failed, 2 * script().len() as u32);
}

#[test]
fn a_disk_full_at_every_byte_undoes_the_commit_and_no_more() {
    let empty = SimDisk::new();
    let (_, store) = open(&empty, BOOT);
    drop(store);
    let used: usize = ["lsb.events", "lsb.events.sum", "lsb.events.owner"]
        .iter()
        .map(|n| empty.get(n).unwrap().len())
        .sum();
    let mut tries = 0;
    for bytes in (0..).step_by(53) {
        let disk = SimDisk::new();
        let full = Faults { bytes_left: Some((used + bytes) as u64), ..Faults::default() };
        disk.set_faults(full);
        let mended = disk.clone();
        if stubborn(&disk, || mended.set_faults(Faults::default())) == 0 {
            break;
        }
        tries += 1;
    }
    assert!(tries > 50, "{tries}");
}

#[test]
fn log_that_cannot_be_written_goes_on_when_it_can_be_again() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&[new(1)])).unwrap();
    disk.set_faults(Faults { fail_writes: Some(ENOSPC), ..Faults::default() });
    let err = commit(&mut store, &batch(&[new(2)])).unwrap_err();
    assert_eq!(err, Fail::Write("lsb.events: No space left on device".into()));
    assert!(matches!(store.probe(), Err(Fail::Write(_))));
    disk.set_faults(Faults::default());
    store.probe().unwrap();
    commit(&mut store, &batch(&[new(3)])).unwrap();
    assert_eq!(look(&disk, BOOT).recovered.records, [new(1), new(3)]);
    assert!(disk.get("lsb.events.probe").is_none());
}

#[test]
fn a_failed_sync_ends_the_process() {
    for sync in 0..2 {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        let mut new = job_new(1);
        new.env = SpoolRef { spool: 1, at: 0, len: 3 };
        let mut b = Batch::default();
        b.spool(new.env, b"A=1");
        b.append(&Record { time: 1, event: Event::JobNew(Box::new(new)) });
        let fail_at_sync = Some(disk.syncs() + sync);
        disk.set_faults(Faults { fail_at_sync, ..Faults::default() });
        assert!(matches!(commit(&mut store, &b), Err(Fail::Fatal(_))), "{sync}");
    }
}

/// A record that repeats the one before is passed over when the log is read; the sync that was to
/// cover it has failed. It is written anew all the same, as it lies before records that count.
#[test]
fn repeated_record_whose_sync_failed_cuts_off_no_later_record() {
    let kill = JobSignal { at: at(1), action: JobAction::Kill, ..JobSignal::default() };
    let kill = || Record { time: 5000, event: Event::JobSignal(Box::new(kill.clone())) };
    let later = [2, 3].map(|job| Record { time: 5001, ..new(job) });
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&[new(1), kill()])).unwrap();
    let entries = disk.get(EVENTS_SUM).unwrap().len();
    disk.set_faults(Faults { fail_at_sync: Some(disk.syncs()), ..Faults::default() });
    assert!(matches!(commit(&mut store, &batch(&[kill()])), Err(Fail::Fatal(_))));
    drop(store);
    disk.damage(EVENTS_SUM, |bytes| bytes.truncate(entries));
    disk.crash(Crash::Process);
    let (found, mut store) = open(&disk, BOOT);
    assert_eq!(found.recovered.records, [new(1), kill()]);
    commit(&mut store, &batch(&later)).unwrap();
    for seed in 0..20 {
        let disk = disk.fork();
        disk.crash(Crash::Power(seed));
        let found = look(&disk, "boot-2");
        let all = found.recovered.records;
        assert!(all.ends_with(&later), "{seed}: {:?}", found.notices);
    }
}

#[test]
fn checksums_of_a_commit_that_was_undone_do_not_come_back() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&[new(1)])).unwrap();
    // half of the entries are written
    let eio_at_write = Some(disk.writes() + 1);
    disk.set_faults(Faults { eio_at_write, ..Faults::default() });
    let err = commit(&mut store, &batch(&[new(2), new(3)])).unwrap_err();
    assert_eq!(err, Fail::Write("lsb.events.sum: Input/output error".into()));
    commit(&mut store, &batch(&[start(1)])).unwrap();
    for seed in 0..50 {
        let disk = disk.fork();
        disk.crash(Crash::Power(seed));
        let found = look(&disk, "boot-2");
        assert_eq!(found.recovered.records, [new(1), start(1)], "{seed}");
    }
}

/// A commit that failed does not come back, whatever happens next. Where the process dies before
/// the commit is undone, its records come back whole, with their bytes in the spool.
#[test]
fn a_failed_commit_does_not_come_back() {
    let mut hows = vec![Crash::Process];
    hows.extend((0..20).flat_map(|seed| [Crash::Power(seed), Crash::PowerTorn(seed)]));
    let scripted = scripted_job();
    let (mut failed, mut came_back) = (0, 0);
    for (write, die) in (0..5).flat_map(|write| (0..12).map(move |die| (write, die))) {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        commit(&mut store, &batch(&[new(2)])).unwrap();
        disk.set_faults(Faults {
            eio_at_write: Some(disk.writes() + write),
            die_at_op: (die > 0).then(|| disk.ops() + die),
            ..Faults::default()
        });
        if commit(&mut store, &scripted.0).is_ok() {
            continue;
        }
        failed += 1;
        let crashed = |how: Crash| {
            let disk = disk.fork();
            disk.crash(how);
            let found = look(&disk, if how == Crash::Process { BOOT } else { "boot-2" });
            assert!(
                found.recovered.damaged.is_empty(),
                "{write} {die} {how:?}: {:?}",
                found.recovered.damaged
            );
            found.recovered.records
        };
        for how in &hows {
            let got = crashed(*how);
            let may = [new(2), scripted.1.clone()];
            assert!(!got.is_empty() && got[..] == may[..got.len()], "{write} {die} {how:?}");
            assert!(die > 0 || got.len() == 1, "{write} {how:?}");
            came_back += got.len() - 1;
        }
        if die == 0 {
            commit(&mut store, &batch(&[start(2)])).unwrap();
            for how in &hows {
                assert_eq!(crashed(*how), [new(2), start(2)], "{write} {how:?}");
            }
        }
    }
    assert!(failed > 20 && came_back > 0, "{failed} {came_back}");
}

/// A job with a script.
fn scripted_job() -> (Batch, Record) {
    let mut new = job_new(1);
    new.script = SpoolRef { spool: 1, at: 0, len: 3 };
    let mut b = Batch::default();
    b.spool(new.script, b"A=1");
    let record = Record { time: 1, event: Event::JobNew(Box::new(new)) };
    b.append(&record);
    (b, record)
}

#[test]
fn findings_of_a_start_survive_a_loss_of_power() {
    // the commit before died at any step, or one of its syncs failed
    let dies = (1..12).map(|op| (Some(op), None));
    let mut whole = 0;
    for (die, sync) in dies.chain((0..2).map(|sync| (None, Some(sync)))) {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        disk.set_faults(Faults {
            die_at_op: die.map(|op| disk.ops() + op),
            fail_at_sync: sync.map(|sync| disk.syncs() + sync),
            ..Faults::default()
        });
        let done = commit(&mut store, &scripted_job().0);
        assert!(sync.is_none() || matches!(done, Err(Fail::Fatal(_))));
        disk.crash(Crash::Process);
        let (found, _store) = open(&disk, BOOT);
        whole += found.recovered.records.len();
        disk.crash(Crash::Power(die.unwrap_or(77)));
        let again = look(&disk, "boot-2");
        assert_eq!(again.recovered.records, found.recovered.records, "{die:?} {sync:?}");
        assert!(again.recovered.damaged.is_empty(), "{die:?} {sync:?}");
    }
    assert!(whole > 4, "{whole}");
}

#[test]
fn accounting_whose_sync_failed_is_written_again() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&script().concat())).unwrap();
    let event = Event::Carried { next_job: 7, epoch: 1 };
    let head = vec![Record { time: 5000, event }];
    let order = || SwitchOrder { head: head.clone(), ..SwitchOrder::default() };
    store.begin_switch(order()).unwrap();
    disk.set_faults(Faults { fail_at_sync: Some(disk.syncs()), ..Faults::default() });
    assert!(matches!(store.switch_slice(), Err(Fail::Fatal(_))));
    disk.crash(Crash::Process);
    let (_, mut store) = open(&disk, BOOT);
    store.begin_switch(order()).unwrap();
    while !store.switch_slice().unwrap() {}
    disk.crash(Crash::Power(3));
    open(&disk, "boot-2");
    assert_eq!(accounted(&disk), [1, 3, 4, 6]);
}

#[test]
fn accounting_that_cannot_be_written_waits_and_survives_a_crash() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&[new(1), start(1), new(2), start(2)])).unwrap();
    // a commit with an end writes the record, its entry, the mark and lsb.acct
    let eio_at_write = Some(disk.writes() + 3);
    disk.set_faults(Faults { eio_at_write, ..Faults::default() });
    commit(&mut store, &batch(&[done(1)])).unwrap();
    assert!(accounted(&disk).is_empty());
    let crashed = disk.fork();
    crashed.crash(Crash::Process);
    open(&crashed, BOOT);
    assert_eq!(accounted(&crashed), [1]);
    commit(&mut store, &batch(&[done(2)])).unwrap();
    assert_eq!(accounted(&disk), [1, 2]);
    // what recovery derives is what mbatchd had written
    let text = disk.get(crate::log::ACCT).unwrap();
    disk.put(crate::log::ACCT, b"");
    open(&disk, BOOT);
    assert_eq!(disk.get(crate::log::ACCT).unwrap(), text);
}

#[test]
fn accounting_put_aside_is_not_written_again() {
    let disk = ran();
    let text = disk.get(crate::log::ACCT).unwrap();
    disk.put("lsb.acct.1", &text);
    disk.put(crate::log::ACCT, b"");
    open(&disk, BOOT);
    assert_eq!(disk.get(crate::log::ACCT).unwrap(), b"");
    // torn in the middle of a line: the line is written again
    let disk = ran();
    disk.damage(crate::log::ACCT, |bytes| bytes.truncate(bytes.len() - 5));
    open(&disk, BOOT);
    assert_eq!(accounted(&disk), [1, 3, 4, 6]);
}

/// A job that was killed while it waited, requeued and killed again ended twice. lsb.acct has both
/// ends, whichever record was lost.
#[test]
fn each_end_of_a_job_that_never_ran_is_accounted_for() {
    let end = |time: i64| {
        let s =
            JobStatus { status: JobState::Exit.into(), end_time: time, attempt: 0, ..status(1) };
        Record { time, event: Event::JobStatus(Box::new(s)) }
    };
    let back = read_record(br#""JOB_REQUEUE" "10.1" 3002 1 0"#).unwrap();
    let records = [new(1), end(3001), back, end(3003)];
    for kept in 0..3 {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        let mut b = Batch::default();
        records.iter().for_each(|r| b.append(r));
        for event_time in [3001, 3003].into_iter().take(kept) {
            let (start_time, attempt, exec_hosts) = (0, 0, vec![]);
            let status = JobState::Exit.into();
            b.account(&Finish { event_time, start_time, attempt, exec_hosts, status, ..finish(1) });
        }
        commit(&mut store, &b).unwrap();
        drop(store);
        open(&disk, BOOT);
        assert_eq!(accounted(&disk), [1, 1], "{kept}");
        let text = disk.get(crate::log::ACCT).unwrap();
        let times = text.split_inclusive(|b| *b == b'\n');
        let times: Vec<i64> =
            times.map(|l| crate::log::codec::read_finish(l).unwrap().event_time).collect();
        assert_eq!(times, [3001, 3003], "{kept}");
    }
}

#[test]
fn a_full_private_directory_is_tried_before_the_log_is_written_again() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    disk.set_faults(Faults { full: Some("info/"), ..Faults::default() });
    assert!(matches!(commit(&mut store, &scripted_job().0), Err(Fail::Write(_))));
    let tried = store.probe().unwrap_err();
    assert_eq!(tried.to_string(), "info/lsb.events.probe: No space left on device");
    disk.set_faults(Faults::default());
    store.probe().unwrap();
    let names = [disk.clone().list("").unwrap(), disk.clone().list("info").unwrap()].concat();
    assert!(!names.iter().any(|name| name.contains("probe")), "{names:?}");
    commit(&mut store, &scripted_job().0).unwrap();
}
