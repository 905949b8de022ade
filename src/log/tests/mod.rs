//! The log under faults: a script of commits on a simulated disk, crashed, damaged and filled at
//! every place.

mod against;
mod archive;
mod array_signal;
mod damage;
mod duplicate;
mod faults;
mod fence;
mod moved;
mod replace;
mod switching;
mod threads;
mod writer;

use super::EVENTS;
use super::batch::Batch;
use super::codec::{read_finish, write_record};
use super::fail::Fail;
use super::recover::found::RecoveryResult;
use super::recover::{Params, recover};
use super::simdisk::SimDisk;
use super::store::Store;
use crate::model::JobRef;
use crate::model::event::*;
use crate::model::job::{JobSpec, SpoolRef, Usage};
use crate::model::job_state::JobState;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const BOOT: &str = "boot-1";

fn params(boot: &str) -> Params {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    Params {
        host: "host1".into(),
        boot: boot.into(),
        now: 1_700_000_000,
        run: format!("{:x}", RUNS.fetch_add(1, Ordering::Relaxed)),
        process: String::new(),
        ended: true,
        least_epoch: 0,
        max_acct_at_start: super::acct_copy::MAX_AT_START,
    }
}

/// Recovers and opens.
fn open(disk: &SimDisk, boot: &str) -> (RecoveryResult, Store<SimDisk>) {
    let mut found = recover(&mut disk.clone(), &params(boot)).unwrap();
    let plan = std::mem::take(&mut found.plan);
    (found, Store::open(disk.clone(), plan).unwrap())
}

/// The result of recovery on a copy of the disk, with nothing mended.
fn look(disk: &SimDisk, boot: &str) -> RecoveryResult {
    recover(&mut disk.fork(), &params(boot)).unwrap()
}

fn commit(store: &mut Store<SimDisk>, batch: &Batch) -> Result<(), Fail> {
    store.commit(batch, 0, &mut |_| {})
}

fn at(job: u32) -> JobRef {
    JobRef { job, idx: 0 }
}

fn job_new(job: u32) -> JobNew {
    let spec = JobSpec {
        command: format!("sleep {job}").into(),
        queue: "normal".into(),
        min_slots: 1,
        max_slots: 1,
        ..JobSpec::default()
    };
    let (uid, gid, user) = (1000, 100, "alice".into());
    let spec = Arc::new(spec);
    JobNew { job, uid, gid, user, submit_time: 1000 + i64::from(job), spec, ..JobNew::default() }
}

fn new(job: u32) -> Record {
    Record { time: 1000 + i64::from(job), event: Event::JobNew(Box::new(job_new(job))) }
}

fn start(job: u32) -> Record {
    let hosts = vec![("host1".into(), 1)];
    let start = JobStart {
        at: at(job),
        attempt: 1,
        hosts: hosts.into(),
        host_factor: 2.5,
        ..JobStart::default()
    };
    Record { time: 2000 + i64::from(job), event: Event::JobStart(Box::new(start)) }
}

fn status(job: u32) -> JobStatus {
    JobStatus {
        at: at(job),
        status: JobState::Done.into(),
        end_time: 3000 + i64::from(job),
        usage: Some(Usage { utime_us: 5, ..Usage::default() }),
        attempt: 1,
        ..JobStatus::default()
    }
}

fn done(job: u32) -> Record {
    Record { time: 3000 + i64::from(job), event: Event::JobStatus(Box::new(status(job))) }
}

fn clean(job: u32) -> Record {
    Record { time: 4000, event: Event::JobClean { at: at(job) } }
}

fn finish(job: u32) -> Finish {
    let new = job_new(job);
    let s = status(job);
    Finish {
        event_time: s.end_time,
        at: s.at,
        uid: new.uid,
        user: new.user,
        submit_time: new.submit_time,
        start_time: 2000 + i64::from(job),
        spec: JobSpec::clone(&new.spec),
        exec_hosts: vec![("host1".into(), 1)],
        status: s.status,
        host_factor: 2.5,
        usage: s.usage,
        attempt: 1,
        ..Finish::default()
    }
}

/// A batch of records; a finished job is accounted for, as mbatchd does.
fn batch(records: &[Record]) -> Batch {
    let mut out = Batch::default();
    for record in records {
        out.append(record);
        if let Event::JobStatus(s) = &record.event
            && s.status.is_done()
        {
            out.account(&finish(s.at.job));
        }
    }
    out
}

/// Batches of one run: jobs 1 to 6 come, start and end; 2 and 5 stay.
fn script() -> Vec<Vec<Record>> {
    vec![
        vec![new(1), new(2)],
        vec![start(1)],
        vec![done(1), new(3), start(3)],
        vec![start(2), new(4)],
        vec![done(3), start(4)],
        vec![new(5), done(4)],
        vec![clean(1), new(6), start(6), done(6)],
    ]
}

fn lines(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        write_record(record, &mut out);
    }
    out
}

/// A disk on which the script has run and the process has ended.
fn ran() -> SimDisk {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    for records in script() {
        commit(&mut store, &batch(&records)).unwrap();
    }
    disk
}

/// Jobs in lsb.acct, in order.
fn accounted(disk: &SimDisk) -> Vec<u32> {
    let text = disk.get(super::ACCT).unwrap_or_default();
    let lines = text.split_inclusive(|b| *b == b'\n');
    lines.map(|l| read_finish(l).expect("a whole JOB_FINISH").at.job).collect()
}

fn notice_texts(found: &RecoveryResult) -> Vec<&str> {
    found.notices.iter().map(|n| n.text.as_str()).collect()
}

/// (place, end) of each record of lsb.events.
fn places(disk: &SimDisk) -> Vec<(usize, usize)> {
    let text = disk.get(EVENTS).unwrap();
    let mut at = 80;
    let mut out = Vec::new();
    for line in text[80..].split_inclusive(|b| *b == b'\n') {
        out.push((at, at + line.len()));
        at += line.len();
    }
    out
}

#[test]
fn committed_records_are_read_again() {
    let disk = SimDisk::new();
    let (found, mut store) = open(&disk, BOOT);
    assert!(found.recovered.records.is_empty() && found.notices.is_empty());
    assert_eq!((found.recovered.epoch, found.recovered.spool), (1, 1));
    let mut one = job_new(1);
    one.env = SpoolRef { spool: 1, at: 0, len: 5 };
    Arc::make_mut(&mut one.spec).command = "echo a\necho b".into();
    let exact = serde_json::to_vec(&one.spec).unwrap();
    one.exact = SpoolRef { spool: 1, at: 5, len: exact.len() as u32 };
    let first = Record { time: 5, event: Event::JobNew(Box::new(one.clone())) };
    let mut b = Batch::default();
    b.spool(one.env, b"A=1\0\0");
    b.spool(one.exact, &exact);
    b.append(&first);
    commit(&mut store, &b).unwrap();
    commit(&mut store, &batch(&[new(2), start(2)])).unwrap();

    let head = disk.get(EVENTS).unwrap()[..80].to_vec();
    assert_eq!(head, format!("{:<79}\n", "#80").as_bytes());
    let found = look(&disk, BOOT);
    assert_eq!(found.recovered.records, [first, new(2), start(2)]);
    assert_eq!(found.recovered.seen_ids, [1, 2]);
    assert_eq!(found.recovered.epoch, 2);
    assert_eq!((found.recovered.spool, found.recovered.spool_end), (1, 5 + exact.len() as u64));
    assert!(found.notices.is_empty(), "{:?}", found.notices);
    assert!(found.recovered.damaged.is_empty());
}

#[test]
fn a_spool_that_is_short_or_wrong_is_damage_to_its_job() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    let mut b = Batch::default();
    for job in 1..4 {
        let mut new = job_new(job);
        new.script = SpoolRef { spool: 1, at: u64::from(job) * 10, len: 10 };
        b.spool(new.script, b"#!/bin/sh\n");
        b.append(&Record { time: 1, event: Event::JobNew(Box::new(new)) });
    }
    commit(&mut store, &b).unwrap();
    disk.damage("info/lsb.spool.1", |bytes| bytes.truncate(39));
    let found = look(&disk, BOOT);
    assert_eq!(found.recovered.records.len(), 3);
    let why = "info/lsb.spool.1 is missing or too short".to_string();
    assert_eq!(found.recovered.damaged, [(at(3), why)]);
    // nothing is written over what something refers to
    assert_eq!(found.recovered.spool_end, 40);
}

#[test]
fn a_flipped_byte_in_the_spool_is_damage_to_the_unfinished_jobs_that_use_it() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    let env = SpoolRef { spool: 1, at: 0, len: 10 };
    let mut b = Batch::default();
    b.spool(env, b"HOME=/h\0A\0");
    for job in 1..4 {
        let mut new = job_new(job);
        new.env = env;
        new.script = SpoolRef { spool: 1, at: u64::from(job) * 10, len: 10 };
        b.spool(new.script, b"#!/bin/sh\n");
        b.append(&Record { time: 1, event: Event::JobNew(Box::new(new)) });
        commit(&mut store, &b).unwrap();
        b = Batch::default();
    }
    commit(&mut store, &batch(&[start(3), done(3)])).unwrap();
    assert!(look(&disk, BOOT).recovered.damaged.is_empty());
    for byte in 0..40 {
        let disk = disk.fork();
        disk.damage("info/lsb.spool.1", |bytes| bytes[byte] ^= 4);
        let found = look(&disk, BOOT);
        let hit: Vec<u32> = found.recovered.damaged.iter().map(|(at, _)| at.job).collect();
        let want: &[&[u32]] = &[&[1, 2], &[1], &[2], &[]];
        assert_eq!(hit, want[byte / 10], "{byte}");
        let texts = notice_texts(&found).join("\n");
        let (from, to) = (byte / 10 * 10, byte / 10 * 10 + 9);
        let range = format!("info/lsb.spool.1: damage in bytes {from}-{to}");
        assert_eq!(texts.contains(&range), byte < 30, "{texts}");
    }
}

#[test]
fn another_run_ends_this_one() {
    let disk = SimDisk::new();
    let (_, mut first) = open(&disk, BOOT);
    commit(&mut first, &batch(&[new(1)])).unwrap();
    let (found, mut second) = open(&disk, BOOT);
    assert_eq!(found.recovered.epoch, 2);
    let err = commit(&mut first, &batch(&[new(2)])).unwrap_err();
    assert!(matches!(&err, Fail::Fatal(why) if why.contains("taken over")), "{err}");
    commit(&mut second, &batch(&[new(2)])).unwrap();
    assert_eq!(look(&disk, BOOT).recovered.records, [new(1), new(2)]);
    // written over in place: the file has its name, and is read before each reply
    disk.damage(super::owner::OWNER, |bytes| bytes[25] ^= 1);
    let late = second.commit(&batch(&[new(3)]), super::log_files::OWNER_AGE - 1, &mut |_| {});
    assert!(matches!(late, Err(Fail::Fatal(_))));
}

#[test]
fn a_lost_owner_file_never_lowers_the_epoch() {
    let disk = ran();
    disk.damage(super::owner::OWNER, |bytes| bytes.truncate(20));
    assert_eq!(look(&disk, BOOT).recovered.epoch, 1_700_000_000);
}

#[test]
fn the_log_of_another_system_is_read() {
    let new = |job: u32| {
        format!(
            r#""JOB_NEW" "22" 17 {job} 1002 33554435 1 17 0 0 -65535 0 0 "u" -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 "" 100.00 18 "normal" "" "vm" "" "" "" "" "" "/home/u" "17.11" 0 "" "" "x" "sleep 1" 0 "" "default" 1 "linux" "" 5136 0 "" "" "" -1 "" """#
        )
    };
    let text = [
        format!("{:<79}", "#80"),
        r#""MBD_START" "22" 1795166884 "vm" "volclava" 1 5"#.to_string(),
        new(11),
        new(12),
        r#""JOB_MOVE" "22" 17 1002 12 1 1 4 "u""#.to_string(),
        r#""UNFULFILL" "22" 17 12 1 1 1 1 0"#.to_string(),
        r#""JOB_STATUS" "22" 18 11 32 0 0 0.0000 18 0 0 0 0 0"#.to_string(),
        String::new(),
    ];
    let disk = SimDisk::new();
    disk.put(EVENTS, text.join("\n").as_bytes());
    let (found, mut store) = open(&disk, BOOT);
    assert_eq!(found.recovered.records.len(), 5);
    assert_eq!(found.recovered.seen_ids, [11, 12]);
    // 12 cannot run as its submitter asked
    let why = "its environment and script are not in this log".to_string();
    assert_eq!(found.recovered.damaged, [(at(12), why.clone())]);
    assert!(notice_texts(&found).iter().any(|t| t.contains("1 records UNFULFILL")));
    let hold = Record { time: 20, event: Event::Hold { at: at(12), why } };
    commit(&mut store, &batch(&[hold])).unwrap();
    let found = look(&disk, BOOT);
    assert_eq!(found.recovered.records.len(), 6);
    assert!(found.recovered.damaged.is_empty());
    assert!(found.notices.iter().all(|n| !n.text.contains("missing")));
}

#[test]
fn a_newer_version_ends_the_start() {
    let disk = ran();
    let mut text = disk.get(EVENTS).unwrap();
    let place = text.len();
    text.extend_from_slice(b"\"LSF_TOMORROW\" \"12.0\" 5 1\n");
    disk.put(EVENTS, &text);
    let err = recover(&mut disk.clone(), &params(BOOT)).err().unwrap().to_string();
    assert!(err.contains("LSF_TOMORROW was written by a newer version"), "{err}");
    assert!(err.contains(&format!("byte {place}:")), "{err}");
}
