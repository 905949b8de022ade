//! Torn tails, flipped bytes, zeroed blocks, a damaged checksum file.

use super::super::EVENTS_SUM;
use super::super::checksums::ENTRY;
use super::*;
use crate::model::action::JobAction;
use crate::model::job_state::JobState;
use std::sync::Arc;

fn all() -> Vec<Record> {
    script().concat()
}

fn jobs_of(found: &RecoveryResult) -> Vec<u32> {
    found.recovered.damaged.iter().map(|(at, _)| at.job).collect()
}

#[test]
fn cut_at_every_byte_of_an_unacknowledged_record_the_rest_comes_back() {
    let disk = ran();
    let whole = disk.get(EVENTS).unwrap();
    let mut torn = whole.clone();
    torn.extend_from_slice(&lines(&[new(7)]));
    for len in whole.len()..torn.len() {
        let disk = disk.fork();
        disk.put(EVENTS, &torn[..len]);
        let (found, mut store) = open(&disk, BOOT);
        assert_eq!(found.recovered.records, all(), "{len}");
        assert!(found.recovered.damaged.is_empty());
        assert_eq!(found.notices.len(), usize::from(len > whole.len()));
        // and the log goes on behind it
        commit(&mut store, &batch(&[new(8)])).unwrap();
        let found = look(&disk, BOOT);
        assert_eq!(found.recovered.records, [all(), vec![new(8)]].concat());
        assert!(found.notices.is_empty(), "{:?}", found.notices);
    }
}

#[test]
fn cut_at_every_byte_of_an_acknowledged_record_it_is_named() {
    let disk = ran();
    let whole = disk.get(EVENTS).unwrap();
    let records = all();
    // the last is the end of job 6, the one before its start
    for len in places(&disk)[records.len() - 2].0..whole.len() {
        let kept = whole[..len].iter().filter(|b| **b == b'\n').count() - 1;
        let disk = disk.fork();
        disk.damage(EVENTS, |bytes| bytes.truncate(len));
        let (found, mut store) = open(&disk, BOOT);
        assert_eq!(found.recovered.records, records[..kept], "{len}");
        assert_eq!(jobs_of(&found), [6], "{len}");
        let text = notice_texts(&found).join("\n");
        assert!(text.contains("lsb.events: damage in bytes"), "{text}");
        assert!(text.contains("JOB_STATUS of job <6>"), "{text}");
        // until it is marked in the log it is found again
        assert_eq!(jobs_of(&look(&disk, BOOT)), [6]);
        let hold = Record { time: 9, event: Event::Hold { at: at(6), why: "w".into() } };
        commit(&mut store, &batch(std::slice::from_ref(&hold))).unwrap();
        let found = look(&disk, BOOT);
        assert_eq!(found.recovered.records, [&records[..kept], &[hold]].concat());
        assert!(jobs_of(&found).is_empty());
    }
}

#[test]
fn a_flipped_byte_anywhere_loses_one_record_and_names_it() {
    let disk = ran();
    let records = all();
    for (n, (from, to)) in places(&disk).into_iter().enumerate() {
        for byte in (from..to).filter(|b| (b - from) % 5 == 0 || *b == to - 1) {
            let disk = disk.fork();
            disk.damage(EVENTS, |bytes| bytes[byte] ^= 1 << (byte % 8));
            let found = look(&disk, BOOT);
            let mut want = records.clone();
            let lost = want.remove(n);
            assert_eq!(found.recovered.records, want, "byte {byte}");
            let text = notice_texts(&found).join("\n");
            let range = format!("lsb.events: damage in bytes {from}-{}", to - 1);
            assert!(text.contains(&range), "{text}");
            let name = crate::log::codec::name_of(&lost.event);
            assert!(text.contains(&format!("lost: {name}")), "{text}");
            let job = crate::log::codec::job_of(&lost.event).job;
            // an ended job is marked too: it may be requeued
            let cleaned = records[n..].contains(&clean(job));
            assert_eq!(jobs_of(&found), if cleaned { vec![] } else { vec![job] }, "byte {byte}");
            assert!(found.recovered.seen_ids.contains(&job));
        }
    }
}

#[test]
fn an_array_whose_submission_is_lost_is_named_though_an_element_ended() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    let mut array = job_new(1);
    Arc::make_mut(&mut array.spec).name = "a[1-2]".into();
    let mut ended = status(1);
    ended.at.idx = 1;
    let events = [Event::JobNew(Box::new(array)), Event::JobStatus(Box::new(ended))];
    commit(&mut store, &batch(&events.map(|event| Record { time: 1, event }))).unwrap();
    disk.damage(EVENTS, |bytes| bytes[90] ^= 4);
    assert_eq!(jobs_of(&look(&disk, BOOT)), [1]);
}

#[test]
fn a_zeroed_block_loses_what_it_hits() {
    let disk = ran();
    let records = all();
    let places = places(&disk);
    let end = places.last().unwrap().1;
    for from in (0..end).step_by(97) {
        for len in [1, 64, 500, 4096] {
            let to = (from + len).min(end);
            let disk = disk.fork();
            disk.damage(EVENTS, |bytes| bytes[from..to].fill(0));
            let (found, mut store) = open(&disk, BOOT);
            let hit = |n: usize| places[n].0 < to && places[n].1 > from;
            let kept: Vec<Record> = records
                .iter()
                .enumerate()
                .filter(|(n, _)| !hit(*n))
                .map(|(_, r)| r.clone())
                .collect();
            assert_eq!(found.recovered.records, kept, "{from}-{to}");
            assert!(!found.notices.is_empty(), "{from}-{to}");
            // what is written behind it is whole again
            commit(&mut store, &batch(&[new(7)])).unwrap();
            let found = look(&disk, BOOT);
            assert_eq!(found.recovered.records, [kept, vec![new(7)]].concat());
            let text = disk.get(EVENTS).unwrap();
            assert_eq!(&text[..4], if from < 4 && from + len < 80 { b"#80 " } else { &text[..4] });
        }
    }
}

#[test]
fn a_lost_event_of_the_cluster_is_named_without_a_job() {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    let carried = Record { time: 1, event: Event::Carried { next_job: 9, epoch: 3 } };
    commit(&mut store, &batch(&[carried, new(1)])).unwrap();
    disk.damage(EVENTS, |bytes| bytes[90] ^= 1);
    let found = look(&disk, BOOT);
    assert_eq!(found.recovered.records, [new(1)]);
    assert!(jobs_of(&found).is_empty());
    assert!(notice_texts(&found)[0].contains("lost: LSF_SWITCHED"));
}

#[test]
fn log_without_its_checksum_file_keeps_readable_records_and_marks_all_jobs_that_may_be_hit() {
    let disk = ran();
    let records = all();
    for (n, (from, to)) in places(&disk).into_iter().enumerate() {
        let disk = disk.fork();
        disk.put(EVENTS_SUM, b"");
        disk.damage(EVENTS, |bytes| bytes[from] = b'x');
        let (found, mut store) = open(&disk, BOOT);
        let mut want = records.clone();
        want.remove(n);
        assert_eq!(found.recovered.records, want);
        let last = n + 1 == records.len();
        let marked = jobs_of(&found);
        if last {
            // cannot be told from a torn commit
            assert!(marked.is_empty());
        } else {
            // every job that was there, unless it is known to have ended later; and those whose
            // JOB_NEW it may have been
            for job in [2, 5] {
                let there = records[..n].contains(&new(job)) || records[n] == new(job);
                let named = records[n] != new(5) && there;
                assert!(marked.contains(&job) || !named, "{n}: {marked:?}");
            }
            assert!(!marked.contains(&6), "{n}");
            let text = notice_texts(&found).join("\n");
            let range = format!("damage in bytes {from}-{}", to - 1);
            assert!(text.contains(&range) && text.contains("is not known"), "{text}");
        }
        // entries are there again from now on
        commit(&mut store, &batch(&[new(7)])).unwrap();
        let bytes = disk.get(EVENTS_SUM).unwrap();
        assert_eq!(bytes.len(), ENTRY * (1 + want.len() + 1));
        assert_eq!(look(&disk, BOOT).recovered.records, [want, vec![new(7)]].concat());
    }
}

#[test]
fn a_checksum_file_torn_or_flipped_anywhere_costs_no_record() {
    let disk = ran();
    let whole = disk.get(EVENTS_SUM).unwrap();
    let records = all();
    for at in (0..whole.len()).filter(|at| at % 3 == 0 || at % ENTRY == 0) {
        for flip in [false, true] {
            let disk = disk.fork();
            disk.damage(EVENTS_SUM, |bytes| match flip {
                true => bytes[at] ^= 0x10,
                false => bytes.truncate(at),
            });
            for boot in [BOOT, "boot-2"] {
                let disk = disk.fork();
                let (found, mut store) = open(&disk, boot);
                assert_eq!(found.recovered.records, records, "byte {at}");
                assert!(jobs_of(&found).is_empty(), "byte {at}");
                commit(&mut store, &batch(&[new(7)])).unwrap();
                let found = look(&disk, boot);
                assert_eq!(found.recovered.records, [&records[..], &[new(7)]].concat());
                assert!(jobs_of(&found).is_empty(), "byte {at}");
            }
        }
    }
}

#[test]
fn rest_of_a_torn_commit_is_cut_and_put_aside_after_a_loss_of_power() {
    let disk = ran();
    let whole = disk.get(EVENTS).unwrap();
    let mut torn = whole.clone();
    torn.extend_from_slice(&[0; 100]);
    torn.push(b'\n');
    torn.extend_from_slice(&lines(&[new(7)]));
    disk.put(EVENTS, &torn);
    // the machine was not restarted: it is damage
    let found = look(&disk, BOOT);
    assert_eq!(found.recovered.records, [all(), vec![new(7)]].concat());
    assert_eq!(jobs_of(&found), [2, 5]);
    // it was, and a start that ended before it had cut anything changes nothing of that
    recover(&mut disk.clone(), &params("boot-2")).unwrap();
    let (found, mut store) = open(&disk, "boot-2");
    assert_eq!(found.recovered.records, all());
    assert!(jobs_of(&found).is_empty());
    assert_eq!(disk.get("lsb.events.cut").unwrap(), torn[whole.len()..]);
    commit(&mut store, &batch(&[new(8)])).unwrap();
    assert_eq!(look(&disk, BOOT).recovered.records, [all(), vec![new(8)]].concat());
}

/// The checksums were lost with the power; the next start has found the log whole, and made that
/// durable.
#[test]
fn flipped_byte_in_what_a_start_has_found_durable_is_no_torn_write() {
    let disk = ran();
    disk.damage(EVENTS_SUM, |sums| sums.truncate(32));
    assert_eq!(open(&disk, "boot-2").0.recovered.records, all());
    let whole = disk.get(EVENTS).unwrap();
    let second = places(&disk)[1].0;
    disk.damage(EVENTS, |bytes| bytes[second] ^= 1);
    let found = look(&disk, "boot-3");
    assert_eq!(found.recovered.records.len(), all().len() - 1);
    let told = notice_texts(&found).concat();
    assert!(told.contains("damage in bytes"), "{told}");
    open(&disk, "boot-3");
    assert_eq!(disk.get(EVENTS).unwrap().len(), whole.len(), "nothing was cut");
    assert!(disk.get("lsb.events.cut").is_none());
}

/// A job is killed twice within a second: the two records have one text, and both are true.
#[test]
fn equal_records_whose_checksums_are_lost_with_power_cost_no_record_behind_them() {
    let of = |event| Record { time: 5000, event };
    let phase = |state: JobState| {
        let s = JobStatus { at: at(1), status: state.into(), attempt: 1, ..JobStatus::default() };
        of(Event::JobStatus(Box::new(s)))
    };
    let kill = JobSignal { at: at(1), action: JobAction::Kill, ..JobSignal::default() };
    let kill = || of(Event::JobSignal(Box::new(kill.clone())));
    let later = [phase(JobState::Ssusp), kill(), kill(), phase(JobState::Run)];
    let disk = ran();
    let before = disk.get(EVENTS_SUM).unwrap().len();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&later)).unwrap();
    drop(store);
    for (entries, boot) in (0..=4).flat_map(|n| [(n, BOOT), (n, "boot-2")]) {
        let disk = disk.fork();
        disk.damage(EVENTS_SUM, |bytes| bytes.truncate(before + entries * ENTRY));
        let found = look(&disk, boot);
        let mut got = found.recovered.records.clone();
        if entries == 2 {
            // the second one may as well be a copy of the first
            got.insert(all().len() + 2, kill());
        }
        assert!(got == [&all()[..], &later].concat(), "{entries} {boot}: {got:#?}");
        assert!(jobs_of(&found).is_empty(), "{entries} {boot}");
    }
}

/// Two attempts of one second run with the same process ID: JOB_EXECUTE does not tell them apart.
#[test]
fn equal_execute_records_of_two_attempts_are_both_found_after_a_loss_of_power() {
    let of = |event| Record { time: 5000, event };
    let state = |state: JobState| {
        let s = JobStatus { at: at(1), status: state.into(), attempt: 1, ..JobStatus::default() };
        of(Event::JobStatus(Box::new(s)))
    };
    let (pid, pgid, uid) = (104, 104, 1000);
    let [cwd, home, user, note] = ["/", "/", "u", ""].map(String::from);
    let execute = of(Event::JobExecute { at: at(1), uid, pid, pgid, cwd, home, user, note });
    let later = [execute.clone(), state(JobState::Pend), execute, state(JobState::Ssusp)];
    let disk = ran();
    let before = disk.get(EVENTS_SUM).unwrap().len();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&later)).unwrap();
    drop(store);
    for entries in 0..=4 {
        let disk = disk.fork();
        disk.damage(EVENTS_SUM, |bytes| bytes.truncate(before + entries * ENTRY));
        let got = look(&disk, "boot-2").recovered.records;
        assert!(got == [&all()[..], &later].concat(), "{entries}: {got:#?}");
    }
}

/// mbatchd starts twice within a second after the clock was set back, or in a second that comes
/// twice for that: the second start writes the lines of the first once more, and they are true.
#[test]
fn equal_records_of_a_clock_set_back_cost_no_record_behind_them() {
    let started = |time| {
        let of = |event| Record { time, event };
        let names = ["r15s", "ut"].map(String::from).to_vec();
        let (master, cluster) = ("host1".into(), "c".into());
        let start = Event::MbdStart { master, cluster, hosts: 1, queues: 1 };
        let hold = Event::Hold { at: at(2), why: "its JOB_START is lost".into() };
        [of(Event::LoadIndex { names }), of(start), of(hold)]
    };
    // the clock between the two starts stands, is set back by a second, or goes on and is then set
    // back to where it was
    for (first, between) in [(900, 900), (901, 900), (900, 950)] {
        let between = Record { time: between, event: new(8).event };
        let submitted = Record { time: first, event: new(9).event };
        let disk = ran();
        let (_, mut store) = open(&disk, BOOT);
        commit(&mut store, &batch(&started(first))).unwrap();
        commit(&mut store, &batch(std::slice::from_ref(&between))).unwrap();
        drop(store);
        let before = disk.get(EVENTS_SUM).unwrap().len();
        let (_, mut store) = open(&disk, BOOT);
        commit(&mut store, &batch(&started(first))).unwrap();
        commit(&mut store, &batch(std::slice::from_ref(&submitted))).unwrap();
        drop(store);
        let expected =
            [&all()[..], &started(first), &[between], &started(first), &[submitted]].concat();
        for (entries, boot) in (0..=4).flat_map(|n| [(n, BOOT), (n, "boot-2")]) {
            let disk = disk.fork();
            disk.damage(EVENTS_SUM, |bytes| bytes.truncate(before + entries * ENTRY));
            let found = look(&disk, boot);
            let got = &found.recovered.records;
            let case = format!("{first} {entries} {boot}: {:#?}", notice_texts(&found));
            assert!(*got == expected, "{case} {got:#?}");
            assert!(jobs_of(&found).is_empty(), "{case}");
        }
    }
}
