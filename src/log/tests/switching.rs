//! Switching the log: what is carried, what is not, crashes at each step.

use super::super::disk::Disk;
use super::super::simdisk::{Crash, Faults};
use super::super::switch::SwitchOrder;
use super::*;
use crate::model::event::JobNew;
use crate::model::job_state::{JobState, LoggedStatus};

fn carried() -> Record {
    Record { time: 5000, event: Event::Carried { next_job: 7, epoch: 1 } }
}

fn order() -> SwitchOrder {
    SwitchOrder { live: vec![2, 5], head: vec![carried()], spool: 2, oldest_spool: 2 }
}

/// Records of the jobs that the order keeps.
fn kept() -> Vec<Record> {
    vec![carried(), new(2), start(2), new(5)]
}

/// Runs the script, then a switch with commits between its slices. Returns the records acknowledged
/// later, those under way at the end, and whether the switch was completed.
fn run(disk: &SimDisk) -> (Vec<Record>, Vec<Record>, bool) {
    let mut later = Vec::new();
    let (_, mut store) = open(disk, BOOT);
    let mut b = batch(&script().concat());
    b.spool(SpoolRef { spool: 1, at: 0, len: 4 }, b"gone");
    commit(&mut store, &b).unwrap();
    if store.begin_switch(order()).is_err() {
        return (later, Vec::new(), false);
    }
    for job in 7.. {
        let records = vec![new(job), start(job)];
        if commit(&mut store, &batch(&records)).is_err() {
            return (later, records, false);
        }
        later.extend(records);
        match store.switch_slice() {
            Ok(false) => {}
            Ok(true) => break,
            Err(_) => return (later, Vec::new(), false),
        }
    }
    let records = vec![done(7)];
    if commit(&mut store, &batch(&records)).is_err() {
        return (later, records, true);
    }
    later.extend(records);
    (later, Vec::new(), true)
}

/// The record that takes its place shifts the others.
#[test]
fn end_that_lsb_acct_lacks_is_found_in_a_log_that_has_lost_its_first_record() {
    let disk = SimDisk::new();
    assert!(run(&disk).2);
    let before = accounted(&disk);
    assert_eq!(before.last(), Some(&7));
    disk.damage(EVENTS, |bytes| bytes[90] ^= 1);
    disk.damage(super::super::ACCT, |bytes| {
        let last = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap();
        bytes.truncate(last + 1);
    });
    assert_eq!(accounted(&disk), before[..before.len() - 1]);
    let (found, _) = open(&disk, "boot-2");
    let told = notice_texts(&found).concat();
    assert!(told.contains("has no LSF_SWITCHED"), "{told}");
    assert_eq!(accounted(&disk), before);
}

#[test]
fn the_records_of_live_jobs_are_carried_over() {
    let disk = SimDisk::new();
    let (later, _, complete) = run(&disk);
    assert!(complete);
    let found = look(&disk, BOOT);
    assert_eq!(found.recovered.records, [kept(), later].concat());
    assert!(found.notices.is_empty(), "{:?}", found.notices);
    assert_eq!((found.recovered.spool, found.recovered.spool_end), (2, 0));
    assert!(disk.get("info/lsb.spool.1").is_none());
    // the heads: where the new events begin, and the time of the newest old one
    let text = disk.get(EVENTS).unwrap();
    let pos = 80 + lines(&kept()).len();
    assert_eq!(&text[..80], format!("{:<79}\n", format!("#{pos}")).as_bytes());
    assert!(text[pos..].starts_with(&lines(&[new(7), start(7)])));
    let old = disk.get("lsb.events.1").unwrap();
    assert!(old.starts_with(format!("{:<79}\n", "#4000").as_bytes()), "{:?}", &old[..9]);
    assert!(old[80..].starts_with(&lines(&script().concat())));
    assert_eq!(accounted(&disk), [1, 3, 4, 6, 7]);
    // accounting is looked for behind what the old log had only
    disk.damage(crate::log::ACCT, |bytes| {
        let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        *bytes = lines[..4].concat();
    });
    open(&disk, BOOT);
    assert_eq!(accounted(&disk), [1, 3, 4, 6, 7]);
}

#[test]
fn an_end_during_a_switch_is_accounted_for_once() {
    for acct in [true, false] {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        commit(&mut store, &batch(&[new(2), start(2), new(5), start(5), done(5)])).unwrap();
        store.begin_switch(order()).unwrap();
        if acct {
            commit(&mut store, &batch(&[done(2)])).unwrap();
        } else {
            let mut b = Batch::default();
            b.append(&done(2));
            commit(&mut store, &b).unwrap();
        }
        while !store.switch_slice().unwrap() {}
        open(&disk, BOOT);
        assert_eq!(accounted(&disk), [5, 2], "{acct}");
    }
}

#[test]
fn the_end_of_what_ran_after_a_job_is_no_second_end_of_it() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&[new(2), start(2), new(5), start(5), done(5)])).unwrap();
    store.begin_switch(order()).unwrap();
    while !store.switch_slice().unwrap() {}
    let post = JobStatus {
        status: LoggedStatus::Post { ended: JobState::Done, succeeded: true },
        usage: None,
        ..status(5)
    };
    let post = Record { time: 3900, event: Event::JobStatus(Box::new(post)) };
    let mut b = Batch::default();
    b.append(&post);
    commit(&mut store, &b).unwrap();
    let (found, _) = open(&disk, BOOT);
    assert!(found.recovered.records.contains(&post));
    assert_eq!(accounted(&disk), [5]);
}

#[test]
fn old_logs_move_up_as_far_as_there_is_no_gap() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&[new(9)])).unwrap();
    drop(store);
    disk.put("lsb.events.1", b"#1\n");
    disk.put("lsb.events.2", b"#2\n");
    disk.put("lsb.events.4", b"#4\n");
    run(&disk);
    assert_eq!(disk.get("lsb.events.2").unwrap(), b"#1\n");
    assert_eq!(disk.get("lsb.events.3").unwrap(), b"#2\n");
    assert_eq!(disk.get("lsb.events.4").unwrap(), b"#4\n");
}

#[test]
fn a_crash_at_every_step_recovers() {
    let whole = SimDisk::new();
    run(&whole);
    let first = {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        let mut b = batch(&script().concat());
        b.spool(SpoolRef { spool: 1, at: 0, len: 4 }, b"gone");
        commit(&mut store, &b).unwrap();
        disk.ops()
    };
    let mut hows = vec![Crash::Process];
    hows.extend((0..10).map(Crash::Power));
    hows.extend((0..10).map(Crash::PowerTorn));
    let (mut old, mut switched) = (0, 0);
    for op in first + 1..=whole.ops() + 1 {
        let disk = SimDisk::new();
        disk.set_faults(Faults { die_at_op: Some(op), ..Faults::default() });
        let (later, under_way, _) = run(&disk);
        for how in &hows {
            let disk = disk.fork();
            disk.crash(*how);
            let boot = if *how == Crash::Process { BOOT } else { "boot-2" };
            let (found, mut store) = open(&disk, boot);
            let got = &found.recovered.records;
            let before = if got.first() == Some(&carried()) {
                switched += 1;
                kept()
            } else {
                old += 1;
                script().concat()
            };
            let all = [before.clone(), later.clone(), under_way.clone()].concat();
            let must = before.len() + later.len();
            assert!(got.len() >= must, "op {op} {how:?}: {:?}", found.notices);
            assert_eq!(got[..], all[..got.len()], "op {op} {how:?}");
            assert!(found.recovered.damaged.is_empty(), "op {op} {how:?}: {:?}", found.notices);
            if before == kept() {
                let sums = |t: &&str| t.contains("lsb.events.sum");
                assert!(!notice_texts(&found).iter().any(sums), "{:?}", found.notices);
            }
            let names = disk.clone().list("").unwrap();
            assert!(!names.iter().any(|n| n.starts_with("lsb.events.new")), "{names:?}");
            let mut jobs = accounted(&disk);
            jobs.sort_unstable();
            let want = if got.contains(&done(7)) { vec![1, 3, 4, 6, 7] } else { vec![1, 3, 4, 6] };
            assert_eq!(jobs, want, "op {op} {how:?}");
            // the next switch works, and what came back is in one of the logs
            let n = got.len();
            store.begin_switch(order()).unwrap();
            while !store.switch_slice().unwrap() {}
            commit(&mut store, &batch(&[new(99)])).unwrap();
            let found = look(&disk, boot);
            assert_eq!(found.recovered.records, [kept(), vec![new(99)]].concat(), "{n}");
            assert!(found.notices.is_empty(), "{:?}", found.notices);
        }
    }
    assert!(old > 20 && switched > 20, "{old} {switched}");
}

#[test]
fn a_crash_of_the_recovery_after_a_crash_recovers() {
    let whole = SimDisk::new();
    run(&whole);
    let mut tried = 0;
    for op in whole.ops() - 22..=whole.ops() {
        let disk = SimDisk::new();
        disk.set_faults(Faults { die_at_op: Some(op), ..Faults::default() });
        let (later, under_way, _) = run(&disk);
        disk.crash(Crash::Process);
        let want = look(&disk, BOOT).recovered.records;
        let all = [later, under_way].concat();
        for second in disk.ops() + 1.. {
            let disk = disk.fork();
            disk.set_faults(Faults { die_at_op: Some(second), ..Faults::default() });
            let found = recover(&mut disk.clone(), &params(BOOT));
            let opened = found.is_ok_and(|f| Store::open(disk.clone(), f.plan).is_ok());
            disk.crash(Crash::Power(second));
            let (found, _) = open(&disk, "boot-2");
            let got = found.recovered.records;
            // what was not synced may be gone, but not of what was acknowledged
            let head = if got.first() == Some(&carried()) { kept() } else { script().concat() };
            let must = head.len() + all.len() - 2;
            assert!(got.len() >= must.min(want.len()), "{op} {second}: {:?}", found.notices);
            assert_eq!(got[..], [head, all.clone()].concat()[..got.len()], "{op} {second}");
            assert!(found.recovered.damaged.is_empty(), "{op} {second}");
            tried += 1;
            if opened {
                break;
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn an_error_at_every_write_of_a_switch_leaves_the_old_log() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&script().concat())).unwrap();
    let mut failures = 0;
    for nth in 0.. {
        let eio_at_write = Some(disk.writes() + nth);
        disk.set_faults(Faults { eio_at_write, ..Faults::default() });
        store.begin_switch(order()).unwrap();
        let done = loop {
            match store.switch_slice() {
                Ok(false) => {}
                other => break other,
            }
        };
        match done {
            Ok(true) => break,
            Err(Fail::Write(_)) => failures += 1,
            // the old log has lost its name: the next start completes it
            Err(Fail::Fatal(_)) => {
                disk.crash(Crash::Process);
                let found = look(&disk, BOOT);
                assert_eq!(found.recovered.records, kept());
                return assert!(failures >= 3, "{failures}");
            }
            Ok(false) => unreachable!(),
        }
        assert!(!store.is_switching());
        assert_eq!(look(&disk, BOOT).recovered.records, script().concat());
    }
    panic!("the last write was not reached");
}

#[test]
fn damage_found_by_a_switch_holds_its_job() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&script().concat())).unwrap();
    let all = script().concat();
    let lost = all.iter().position(|r| *r == start(2)).unwrap();
    let (from, _) = places(&disk)[lost];
    disk.damage(EVENTS, |bytes| bytes[from + 20] ^= 1);
    store.begin_switch(order()).unwrap();
    while !store.switch_slice().unwrap() {}
    let records = look(&disk, BOOT).recovered.records;
    assert_eq!(records.len(), kept().len());
    let Event::Hold { at: job, why } = &records[2].event else { panic!("{records:?}") };
    assert_eq!((job.job, why.as_str()), (2, "its JOB_START was lost from the log"));
}

/// The switch holds the job: a start that finds the same damage before it must hold it too, or the
/// job of a requeue would be held only after the next restart.
#[test]
fn ended_job_that_lost_a_record_is_held_at_the_start_too() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&[new(1), start(1), done(1), new(2), start(2), done(2)])).unwrap();
    let (from, _) = places(&disk)[1];
    disk.damage(EVENTS, |bytes| bytes[from + 20] ^= 1);
    let held: Vec<u32> = look(&disk, BOOT).recovered.damaged.iter().map(|d| d.0.job).collect();
    assert_eq!(held, [1]);
}

#[test]
fn ids_go_on_behind_the_old_log_without_lsf_switched() {
    let disk = SimDisk::new();
    run(&disk);
    disk.damage(EVENTS, |bytes| bytes[85] ^= 1);
    let found = look(&disk, BOOT);
    let Event::Carried { next_job, .. } = found.recovered.records[0].event else { panic!() };
    assert!(next_job >= 8);
}

/// A slice of a switch takes about as long whatever the length of the log.
#[test]
fn a_switch_of_a_long_log_begins_and_goes_on_in_short_slices() {
    use rustix::time::{ClockId, clock_gettime};
    let cpu_us = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
    };
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    let records: Vec<Record> = (0..5000).flat_map(|n| [new(10 + n), start(10 + n)]).collect();
    for _ in 0..20 {
        commit(&mut store, &batch(&records)).unwrap();
    }
    let (mut longest, mut began) = (0, cpu_us());
    let whole = began;
    store.begin_switch(order()).unwrap();
    loop {
        longest = longest.max(cpu_us() - began);
        began = cpu_us();
        if store.switch_slice().unwrap() {
            break;
        }
    }
    let whole = cpu_us() - whole;
    println!("longest slice: {longest} us of {whole}");
    // a slow machine is slow in all of them
    assert!(longest <= (whole / 10).max(40_000), "a slice of {longest} us, of {whole}");
    assert_eq!(look(&disk, BOOT).recovered.records, [carried()]);
}

/// A job that has left memory is not carried over, but its request ID is: a client whose answer was
/// lost may still ask again.
#[test]
fn request_ids_of_cleaned_jobs_outlast_switches_for_their_window() {
    let asked = |job: u32, time: i64, request: &str| {
        let submission = JobNew { submit_time: time, request: request.to_string(), ..job_new(job) };
        Record { time, event: Event::JobNew(Box::new(submission)) }
    };
    let kept = |job: u32, time: i64, request: &str| {
        let event = Event::Submitted { job, submit_time: time, request: request.to_string() };
        Record { time, event }
    };
    let window = crate::model::time::REQUEST_WINDOW;
    // with the checksum file, and without it
    for checked in [true, false] {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        let old = [asked(1, 3000, "r1"), asked(2, 6000, "r2"), asked(3, 6000, ""), done(3)];
        commit(&mut store, &batch(&old)).unwrap();
        commit(&mut store, &batch(&[asked(4, 7000, "r4")])).unwrap();
        let records = |disk: &SimDisk| look(disk, BOOT).recovered.records;
        if !checked {
            disk.damage(crate::log::EVENTS_SUM, |bytes| bytes.truncate(32));
        }
        let order = |live: &[u32]| SwitchOrder {
            live: live.to_vec(),
            head: vec![carried()],
            spool: 2,
            oldest_spool: 2,
        };
        store.begin_switch(order(&[4])).unwrap();
        while !store.switch_slice().unwrap() {}
        assert_eq!(records(&disk), [carried(), kept(2, 6000, "r2"), asked(4, 7000, "r4")]);
        // the next switch keeps it as well, until its time is over
        store.begin_switch(order(&[])).unwrap();
        while !store.switch_slice().unwrap() {}
        let both = [kept(2, 6000, "r2"), kept(4, 7000, "r4")];
        assert_eq!(records(&disk), [vec![carried()], both.to_vec()].concat());
        commit(&mut store, &batch(&[new_at(5, 6000 + window)])).unwrap();
        store.begin_switch(order(&[5])).unwrap();
        while !store.switch_slice().unwrap() {}
        let left = [carried(), kept(4, 7000, "r4"), new_at(5, 6000 + window)];
        assert_eq!(records(&disk), left, "checked: {checked}");
    }
}

fn new_at(job: u32, time: i64) -> Record {
    Record { time, ..new(job) }
}
