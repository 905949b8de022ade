//! A log that is gone, or an older copy of it, while what lies beside it tells of the last one.

use super::super::disk::Disk;
use super::super::recover::against::{ACCEPT, RunMark, accept, look as contradictions};
use super::super::recover::found::RecoverError;
use super::super::simdisk::{Crash, Faults};
use super::super::switch::SwitchOrder;
use super::super::{ACCT, EVENTS_SUM, owner::OWNER};
use super::*;

/// The files that a test puts back: the log and its checksums.
fn snapshot(disk: &SimDisk) -> [Vec<u8>; 2] {
    [EVENTS, EVENTS_SUM].map(|name| disk.get(name).unwrap())
}

/// The log as it was then, in a directory that has gone on.
fn put_back(disk: &SimDisk, old: &[Vec<u8>; 2]) {
    disk.put(EVENTS, &old[0]);
    disk.put(EVENTS_SUM, &old[1]);
}

/// The words of a start that stops.
fn stops(disk: &SimDisk) -> String {
    match recover(&mut disk.fork(), &params(BOOT)) {
        Err(e @ RecoverError::NotTheLast(_)) => e.to_string(),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("it starts"),
    }
}

/// The administrator goes on from there.
fn go_on(disk: &SimDisk) -> (RecoveryResult, Store<SimDisk>) {
    let all = contradictions(&mut disk.clone()).unwrap();
    assert!(!all.is_empty());
    accept(&mut disk.clone(), &all).unwrap();
    open(disk, BOOT)
}

fn held(found: &RecoveryResult) -> Vec<u32> {
    found.recovered.damaged.iter().map(|(at, _)| at.job).collect()
}

fn next_job(found: &RecoveryResult) -> u32 {
    let next = |r: &Record| match r.event {
        Event::Carried { next_job, .. } => Some(next_job),
        _ => None,
    };
    found.recovered.records.iter().filter_map(next).max().unwrap()
}

fn host_ctrl(op: Ctrl, host: &str) -> Record {
    let (host, user, lock) = (host.to_string(), "adm".to_string(), String::new());
    let event = Event::HostCtrl { op, host, uid: 1, user, message: String::new(), lock };
    Record { time: 4500, event }
}

fn discard_marks(disk: &SimDisk) {
    RunMark::discard_others(&mut disk.clone(), "none").unwrap();
}

/// A submission with a script in the spool.
fn spooled(job: u32, at: u64) -> Batch {
    let mut new = job_new(job);
    new.script = SpoolRef { spool: 1, at, len: 10 };
    let mut b = Batch::default();
    b.spool(new.script, b"#!/bin/sh\n");
    b.append(&Record { time: 1000 + i64::from(job), event: Event::JobNew(Box::new(new)) });
    b
}

#[test]
fn a_job_of_group_nogroup_is_ours_and_neither_held_nor_a_contradiction() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    let mut new = job_new(1);
    (new.gid, new.request) = (crate::log::codec::NO_GID, "287ba4b4ed3c63e0".into());
    new.env = SpoolRef { spool: 1, at: 0, len: 5 };
    let mut b = Batch::default();
    b.spool(new.env, b"A=1\0\0");
    b.append(&Record { time: 1001, event: Event::JobNew(Box::new(new)) });
    commit(&mut store, &b).unwrap();
    assert_eq!(contradictions(&mut disk.clone()).unwrap(), Vec::<String>::new());
    let (found, _) = open(&disk, BOOT);
    assert_eq!(held(&found), Vec::<u32>::new());
}

#[test]
fn an_empty_or_missing_log_ends_the_start_until_that_is_accepted() {
    for (gone, sum) in [(true, true), (true, false), (false, true), (false, false)] {
        let disk = ran();
        match gone {
            true => disk.clone().remove(EVENTS).unwrap(),
            false => disk.damage(EVENTS, Vec::clear),
        }
        if !sum {
            disk.clone().remove(EVENTS_SUM).unwrap();
        }
        let words = stops(&disk);
        let first =
            "lsb.events is missing or empty, and lsb.events.owner says that there was one; ";
        assert!(words.starts_with(first) && words.ends_with(": badmin acceptlog"), "{words}");
        let (found, mut store) = go_on(&disk);
        // lsb.acct knows of job 6
        assert_eq!(next_job(&found), 7, "{gone} {sum}");
        assert!(disk.get(ACCEPT).is_none());
        commit(&mut store, &batch(&[new(7)])).unwrap();
        drop(store);
        // from then on it is the log
        let (found, _) = open(&disk, BOOT);
        assert!(found.recovered.records.contains(&new(7)) && held(&found).is_empty());
        assert_eq!(next_job(&found), 7);
        assert_eq!(accounted(&disk), [1, 3, 4, 6]);
    }
}

#[test]
fn an_older_copy_ends_the_start_and_what_was_open_in_it_is_held() {
    // an end in lsb.acct, a script in the spool, the mark of the last run: each tells by itself
    for evidence in ["lsb.acct", "lsb.spool", "start", "length", "control"] {
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        commit(&mut store, &spooled(1, 0)).unwrap();
        commit(&mut store, &spooled(2, 10)).unwrap();
        let old = snapshot(&disk);
        match evidence {
            "lsb.acct" => commit(&mut store, &batch(&[start(1), done(1)])).unwrap(),
            "lsb.spool" => commit(&mut store, &spooled(3, 20)).unwrap(),
            "start" => {
                commit(&mut store, &batch(&[start(1)])).unwrap();
                open(&disk, BOOT);
            }
            "length" => {
                commit(&mut store, &batch(&[start(1)])).unwrap();
                store.close();
            }
            // it is durable with its commit, and its mark is too
            _ => {
                commit(&mut store, &batch(&[host_ctrl(Ctrl::Close, "host1")])).unwrap();
                disk.crash(Crash::Power(0));
            }
        }
        put_back(&disk, &old);
        if evidence.starts_with("lsb") {
            discard_marks(&disk);
        }
        let words = stops(&disk);
        let told = match evidence {
            "lsb.acct" => "lsb.acct has the end of job <1>, lsb.events has not",
            "lsb.spool" => "info/lsb.spool.1 contains the submission of job <3>",
            _ => "lsb.events ends at byte ",
        };
        assert!(words.starts_with(told), "{evidence}: {words}");
        let (found, mut store) = go_on(&disk);
        assert_eq!(held(&found), [1, 2], "{evidence}");
        let next = if evidence == "lsb.spool" { 4 } else { 3 };
        assert_eq!((next_job(&found), found.recovered.spool), (next, 2));
        let why = "lsb.events is not the last one".to_string();
        let holds = [1, 2].map(|job| Event::Hold { at: at(job), why: why.clone() });
        let holds = holds.map(|event| Record { time: 1_700_000_000, event });
        commit(&mut store, &batch(&holds)).unwrap();
        drop(store);
        // said once
        let (found, mut store) = open(&disk, BOOT);
        assert!(held(&found).is_empty(), "{evidence}: {:?}", found.notices);
        let ends = if evidence == "lsb.acct" { vec![1] } else { Vec::new() };
        assert_eq!(accounted(&disk), ends, "{evidence}");
        commit(&mut store, &batch(&[start(2), done(2)])).unwrap();
        drop(store);
        open(&disk, BOOT);
        assert_eq!(accounted(&disk), [&ends[..], &[2]].concat(), "{evidence}");
    }
}

#[test]
fn an_older_copy_that_lacks_one_record_of_any_kind_ends_the_start() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&[new(1)])).unwrap();
    let (queue, user) = ("night".to_string(), "alice".to_string());
    let events = [
        Event::Hold { at: at(1), why: "x".into() },
        Event::JobSwitch { at: at(1), queue, uid: 1000, user, route: None },
    ];
    let [held, switched] = events.map(|event| Record { time: 2100, event });
    for lost in [start(1), new(2), clean(1), held, switched] {
        let disk = disk.fork();
        let (_, mut store) = open(&disk, BOOT);
        let old = snapshot(&disk);
        commit(&mut store, &batch(std::slice::from_ref(&lost))).unwrap();
        // the process is killed right then
        drop(store);
        put_back(&disk, &old);
        assert!(stops(&disk).starts_with("lsb.events ends at byte "), "{lost:?}");
    }
}

#[test]
fn one_file_left_of_a_cluster_ends_the_start_until_that_is_accepted() {
    let whole = SimDisk::new();
    let (_, mut store) = open(&whole, BOOT);
    commit(&mut store, &batch(&script().concat())).unwrap();
    commit(&mut store, &spooled(8, 0)).unwrap();
    let head = vec![Record { time: 5000, event: Event::Carried { next_job: 9, epoch: 1 } }];
    store.begin_switch(SwitchOrder { live: vec![8], head, spool: 2, oldest_spool: 1 }).unwrap();
    while !store.switch_slice().unwrap() {}
    store.close();
    let mark = whole.clone().list("info").unwrap();
    let mark = format!("info/{}", mark.iter().find(|name| name.contains("mark")).unwrap());
    for (left, told, next) in [
        (OWNER, "lsb.events is missing or empty, and lsb.events.owner says that there was one", 1),
        (ACCT, "lsb.acct has the end of job <6>, lsb.events has no record", 7),
        ("lsb.events.1", "lsb.events.1 is an older log, lsb.events has no record", 1),
        ("info/lsb.spool.1.sum", "info/lsb.spool.1 contains the submission of job <8>", 9),
        (&mark, "lsb.events has no record, and had ", 1),
    ] {
        let disk = SimDisk::new();
        disk.put(left, &whole.get(left).unwrap());
        if left.ends_with(".sum") {
            disk.put("info/lsb.spool.1", &whole.get("info/lsb.spool.1").unwrap());
        }
        // a start that stops leaves an owner file, and is as wary the next time
        for _ in 0..2 {
            let e = recover(&mut disk.clone(), &params(BOOT)).err().expect(left).to_string();
            assert!(e.starts_with(told) && e.ends_with(": badmin acceptlog"), "{left}: {e}");
        }
        let (found, mut store) = go_on(&disk);
        assert_eq!(next_job(&found), next, "{left}");
        // hosts refuse a master with an epoch below one that they have seen
        assert!(left == OWNER || found.recovered.epoch > 1_000_000, "{left}");
        commit(&mut store, &batch(&[new(next)])).unwrap();
        drop(store);
        let (found, _) = open(&disk, BOOT);
        assert!(found.recovered.records.contains(&new(next)), "{left}");
    }
}

#[test]
fn a_first_start_that_ended_at_any_step_is_begun_again() {
    let first = SimDisk::new();
    open(&first, BOOT);
    for op in 1..=first.ops() {
        let power = [Crash::Process, Crash::Power(op), Crash::Power(op + 50)];
        for how in power.into_iter().chain((0..12).map(Crash::PowerTorn)) {
            let disk = SimDisk::new();
            disk.set_faults(Faults { die_at_op: Some(op), ..Faults::default() });
            if let Ok(mut found) = recover(&mut disk.clone(), &params(BOOT)) {
                let _ = Store::open(disk.clone(), std::mem::take(&mut found.plan));
            }
            disk.crash(how);
            let (found, _) = open(&disk, BOOT);
            assert!(found.recovered.records.is_empty(), "{op} {how:?}");
            // what it has made is a log to the next one
            open(&disk, BOOT);
            open(&disk, "boot-2");
        }
    }
    // and one whose head line was torn
    let head = first.get(EVENTS).unwrap();
    for (len, zeros) in [(80, 0..80), (80, 40..80), (80, 0..79), (30, 0..0), (30, 0..30)] {
        let disk = SimDisk::new();
        let mut left = head[..len].to_vec();
        left[zeros.clone()].fill(0);
        disk.put(EVENTS, &left);
        for boot in ["boot-2", "boot-2", "boot-3"] {
            let (found, _) = open(&disk, boot);
            assert!(found.recovered.epoch < 9, "{len} {zeros:?}: its number is not the first");
        }
        assert_eq!(disk.get(EVENTS).unwrap(), head, "{len} {zeros:?}");
    }
    // and one that found no room, with one that ended once it had claimed the log
    for bytes in 0..400 {
        let disk = SimDisk::new();
        disk.set_faults(Faults { bytes_left: Some(bytes), ..Faults::default() });
        if let Ok(mut found) = recover(&mut disk.clone(), &params(BOOT)) {
            let _ = Store::open(disk.clone(), std::mem::take(&mut found.plan));
        }
        disk.set_faults(Faults::default());
        recover(&mut disk.clone(), &params(BOOT)).unwrap();
        open(&disk, BOOT);
    }
}

#[test]
fn log_of_which_nothing_can_be_read_after_a_loss_of_power_begins_with_a_head_line_again() {
    let started = SimDisk::new();
    open(&started, BOOT);
    let ops = started.ops();
    started.put(EVENTS, &[0; 130]);
    for op in 0..20 {
        let disk = started.fork();
        disk.set_faults(Faults { die_at_op: Some(ops + op), ..Faults::default() });
        if let Ok(mut found) = recover(&mut disk.clone(), &params("boot-2")) {
            let _ = Store::open(disk.clone(), std::mem::take(&mut found.plan));
        }
        disk.crash(Crash::Process);
        for boot in ["boot-2", "boot-2", "boot-3"] {
            let (found, _) = open(&disk, boot);
            assert!(found.recovered.records.is_empty(), "{op} {boot}");
        }
        assert!(disk.get(EVENTS).unwrap().starts_with(b"#80 "), "{op}");
    }
}

#[test]
fn a_log_from_before_a_switch_ends_the_start_and_hosts_stay_closed() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&script().concat())).unwrap();
    let closes = [(Ctrl::Close, "host1"), (Ctrl::Close, "host2"), (Ctrl::Open, "host2")];
    let closes = closes.map(|(op, host)| host_ctrl(op, host));
    commit(&mut store, &batch(&closes)).unwrap();
    let old = snapshot(&disk);
    let event = Event::Carried { next_job: 7, epoch: 1 };
    let head = vec![Record { time: 5000, event }];
    store.begin_switch(SwitchOrder { live: vec![2, 5], head, spool: 2, oldest_spool: 2 }).unwrap();
    while !store.switch_slice().unwrap() {}
    drop(store);
    let missing = disk.fork();
    put_back(&disk, &old);
    assert!(stops(&disk).starts_with("lsb.events is one that was switched away since; "));
    let (found, _) = go_on(&disk);
    assert_eq!(held(&found), [2, 5]);
    // and where nothing is left, the old log tells what was closed
    for name in [EVENTS, EVENTS_SUM] {
        missing.clone().remove(name).unwrap();
    }
    let (found, _) = go_on(&missing);
    let records = &found.recovered.records;
    assert!(records.contains(&closes[0]), "{records:?}");
    assert!(!records.contains(&closes[1]), "{records:?}");
    assert_eq!(next_job(&found), 7);
}

#[test]
fn the_contradictions_accepted_are_those_seen() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&[new(1)])).unwrap();
    let old = snapshot(&disk);
    commit(&mut store, &batch(&[start(1)])).unwrap();
    store.close();
    disk.clone().remove(EVENTS).unwrap();
    let all = contradictions(&mut disk.clone()).unwrap();
    accept(&mut disk.clone(), &all).unwrap();
    put_back(&disk, &old);
    assert!(stops(&disk).starts_with("lsb.events ends at byte "));
}

#[test]
fn a_first_start_and_another_systems_files_are_taken_silently() {
    let disk = SimDisk::new();
    let (found, _) = open(&disk, BOOT);
    assert!(found.notices.is_empty());
    // a site that moves in with its log and its accounting
    let old = ran();
    let disk = SimDisk::new();
    disk.put(EVENTS, &old.get(EVENTS).unwrap());
    disk.put(ACCT, &old.get(ACCT).unwrap());
    let (found, mut store) = open(&disk, BOOT);
    assert!(!found.recovered.seen_ids.is_empty());
    let (master, cluster) = ("host1".to_string(), "c".to_string());
    let event = Event::MbdStart { master, cluster, hosts: 1, queues: 1 };
    commit(&mut store, &batch(&[Record { time: 1_700_000_000, event }])).unwrap();
    drop(store);
    open(&disk, BOOT);
    // and without the owner file, which is no reason to stop by itself
    disk.clone().remove(OWNER).unwrap();
    open(&disk, BOOT);
    assert_eq!(accounted(&disk), [1, 3, 4, 6]);
}
