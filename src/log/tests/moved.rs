//! Lines taken out, doubled, put elsewhere, bytes shifted: what is whole survives, once and in
//! its order.

use super::super::EVENTS_SUM;
use super::super::disk::Disk;
use super::super::simdisk::{Crash, Faults};
use super::super::switch::SwitchOrder;
use super::*;
use crate::batch::soft_state::lost_controls::LostControl;
use crate::model::event::Ctrl;

/// A small generator (xorshift64*).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as usize % n.max(1)
    }
}

/// Records of many kinds, each of a second of its own.
fn many(dice: &mut Dice, n: usize) -> Vec<Record> {
    let mut jobs: Vec<(u32, u8)> = Vec::new();
    let mut out = Vec::new();
    for i in 0..n {
        let time = 10_000 + i as i64;
        let event = match (dice.below(8), jobs.is_empty()) {
            (0..3, _) | (_, true) => {
                let job = jobs.len() as u32 + 1;
                jobs.push((job, 0));
                new(job).event
            }
            (3, _) => Event::HostCtrl {
                op: if dice.below(2) == 0 { Ctrl::Close } else { Ctrl::Open },
                host: format!("host{}", dice.below(3)),
                uid: 0,
                user: "admin".into(),
                message: String::new(),
                lock: String::new(),
            },
            _ => {
                let at = dice.below(jobs.len());
                let (job, step) = &mut jobs[at];
                *step += 1;
                match *step {
                    1 => start(*job).event,
                    2 => done(*job).event,
                    _ => Event::JobSwitch {
                        at: super::at(*job),
                        queue: "q".repeat(dice.below(90)),
                        uid: 0,
                        user: "ann".into(),
                        route: None,
                    },
                }
            }
        };
        out.push(Record { time, event });
    }
    out
}

fn logged(records: &[Record], dice: &mut Dice) -> SimDisk {
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    let mut left = records;
    while !left.is_empty() {
        let (now, later) = left.split_at((1 + dice.below(5)).min(left.len()));
        commit(&mut store, &batch(now)).unwrap();
        left = later;
    }
    store.close();
    disk
}

/// A range, with whole lines half of the time.
fn range(bytes: &[u8], dice: &mut Dice) -> (usize, usize) {
    let most = [40, 300, 2000][dice.below(3)];
    let mut from = dice.below(bytes.len() + 1);
    let mut to = (from + dice.below(most)).min(bytes.len());
    if dice.below(2) == 0 {
        let line = |at: usize| bytes[..at].iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        (from, to) = (line(from), line(to));
    }
    (from, to)
}

fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) -> &'static str {
    let (from, to) = range(bytes, dice);
    let what = dice.below(6);
    match what {
        0 => drop(bytes.drain(from..to)),
        1 => {
            let copy = bytes[from..to].to_vec();
            let at = if dice.below(2) == 0 { to } else { range(bytes, dice).0 };
            bytes.splice(at..at, copy);
        }
        2 => {
            let filler = vec![[0, b'x', b'\n'][dice.below(3)]; [1, 512, 77][dice.below(3)]];
            bytes.splice(from..from, filler);
        }
        3 => {
            let (a, b) = range(&bytes[..from], dice);
            let (first, second) = (bytes[a..b].to_vec(), bytes[from..to].to_vec());
            bytes.splice(from..to, first);
            bytes.splice(a..b, second);
        }
        4 => {
            let filler = [0, b'x', b'\n', b'7'][dice.below(4)];
            bytes[from..to].fill(filler);
        }
        _ => {
            let (a, b) = range(bytes, dice);
            let copy = bytes[a..b].to_vec();
            let end = (from + copy.len()).min(bytes.len());
            bytes.splice(from..end, copy);
        }
    }
    ["deleted", "doubled", "shifted", "swapped", "overwritten", "copied over"][what]
}

fn line(record: &Record) -> Vec<u8> {
    lines(std::slice::from_ref(record))
}

fn holds(bytes: &[u8], record: &Record) -> bool {
    memchr::memmem::find(bytes, &line(record)).is_some()
}

#[test]
fn every_record_that_is_whole_survives_any_damage_once_and_in_order() {
    let (mut moved, mut lost) = (0, 0);
    for seed in 0..1000 {
        let mut dice = Dice::new(seed);
        let n = 3 + dice.below(40);
        let records = many(&mut dice, n);
        let disk = logged(&records, &mut dice);
        let mut bytes = disk.get(EVENTS).unwrap();
        let did: Vec<_> = (0..1 + dice.below(3)).map(|_| damage(&mut bytes, &mut dice)).collect();
        disk.put(EVENTS, &bytes);
        let whole: Vec<Record> = records.iter().filter(|r| holds(&bytes, r)).cloned().collect();
        let boot = [BOOT, "boot-2"][dice.below(2)];
        let (found, mut store) = open(&disk, boot);
        let secs = |all: &[Record]| all.iter().map(|r| r.time - 10_000).collect::<Vec<_>>();
        let got = &found.recovered.records;
        assert_eq!(secs(got), secs(&whole), "seed {seed}: {did:?} {:#?}", notice_texts(&found));
        assert!(*got == whole, "seed {seed}: {did:?}");
        moved += usize::from(store.to_mend());
        lost += records.len() - whole.len();
        // jobs of which something is lost are told, unless their end is known
        let told: Vec<u32> = found.recovered.damaged.iter().map(|(at, _)| at.job).collect();
        let ended = |job: u32| whole.iter().any(|r| r.event == done(job).event);
        for gone in records.iter().filter(|r| !whole.contains(r)) {
            let job = crate::log::codec::job_of(&gone.event).job;
            assert!(job == 0 || ended(job) || told.contains(&job), "seed {seed}: {did:?} {gone:?}");
            assert!(found.recovered.seen_ids.contains(&job) || job == 0, "seed {seed}");
        }
        if whole.len() == records.len() {
            assert!(told.is_empty(), "seed {seed}: {did:?} {told:?}");
        }
        // the log goes on, and is in order
        let late = Record { time: 99_999, event: new(777).event };
        let had = found.recovered.damaged.len();
        commit(&mut store, &batch(std::slice::from_ref(&late))).unwrap();
        let found = look(&disk, boot);
        let got = &found.recovered.records;
        assert!(*got == [&whole[..], &[late]].concat(), "seed {seed}: {did:?} {:?}", secs(got));
        assert!(found.plan.mend.is_none(), "seed {seed}: {did:?}");
        assert!(found.recovered.damaged.len() <= had, "seed {seed}: {did:?}");
    }
    assert!(moved > 300 && lost > 1000, "{moved} {lost}");
}

/// The script's disk with one line changed.
fn without(disk: &SimDisk, from: usize, to: usize) -> SimDisk {
    let disk = disk.fork();
    disk.damage(EVENTS, |bytes| drop(bytes.drain(from..to)));
    disk
}

fn jobs_of(found: &RecoveryResult) -> Vec<u32> {
    found.recovered.damaged.iter().map(|(at, _)| at.job).collect()
}

#[test]
fn a_line_that_is_gone_costs_that_line_and_is_named() {
    let disk = ran();
    let records = script().concat();
    for (n, (from, to)) in places(&disk).into_iter().enumerate() {
        let disk = without(&disk, from, to);
        let found = look(&disk, BOOT);
        let mut want = records.clone();
        let gone = want.remove(n);
        assert_eq!(found.recovered.records, want, "{n}");
        let text = notice_texts(&found).join("\n");
        let name = crate::log::codec::name_of(&gone.event);
        let job = crate::log::codec::job_of(&gone.event);
        assert!(text.contains(&format!("lost: {name} of job <{job}>")), "{n}: {text}");
        let last = n + 1 == records.len();
        assert!(last || text.contains(&format!("damage at byte {from} ")), "{n}: {text}");
        let cleaned = records[n..].contains(&clean(job.job));
        assert_eq!(jobs_of(&found), if cleaned { vec![] } else { vec![job.job] }, "{n}");
    }
}

#[test]
fn a_line_that_is_there_twice_costs_nothing() {
    let disk = ran();
    let all = places(&disk);
    for (from, to) in all.iter().copied() {
        for at in all.iter().map(|place| place.1) {
            let disk = disk.fork();
            disk.damage(EVENTS, |bytes| {
                let copy = bytes[from..to].to_vec();
                bytes.splice(at..at, copy);
            });
            let found = look(&disk, BOOT);
            assert_eq!(found.recovered.records, script().concat(), "{from} at {at}");
            assert!(jobs_of(&found).is_empty(), "{from} at {at}");
            assert!(notice_texts(&found).join(" ").contains("repeat"), "{from} at {at}");
        }
    }
}

#[test]
fn bytes_shifted_by_a_block_cost_the_record_they_fall_into() {
    let disk = ran();
    let all = places(&disk);
    let records = script().concat();
    for at in (80..all.last().unwrap().1).step_by(31) {
        let disk = disk.fork();
        disk.damage(EVENTS, |bytes| drop(bytes.splice(at..at, [0; 512])));
        let found = look(&disk, BOOT);
        let hit = all.iter().position(|(from, to)| *from < at && at < *to);
        let mut want = records.clone();
        hit.iter().for_each(|n| drop(want.remove(*n)));
        assert_eq!(found.recovered.records, want, "{at}");
    }
}

#[test]
fn a_damaged_log_is_put_in_order_whenever_the_process_dies_meanwhile() {
    let whole = ran();
    let (from, to) = places(&whole)[3];
    let broken = without(&whole, from, to);
    // the checksums have long been written back
    broken.damage(crate::log::EVENTS_SUM, |_| {});
    let damaged = broken.get(EVENTS).unwrap();
    let before = look(&broken, BOOT).recovered;
    assert!(before.damaged.is_empty());
    let hows = [Crash::Process].into_iter().chain((0..8).map(Crash::Power));
    let hows: Vec<Crash> = hows.chain((0..8).map(Crash::PowerTorn)).collect();
    for op in 1.. {
        let disk = broken.fork();
        let (_, mut store) = open(&disk, BOOT);
        disk.set_faults(Faults { die_at_op: Some(disk.ops() + op), ..Faults::default() });
        let acked = commit(&mut store, &batch(&[new(9)])).is_ok();
        drop(store);
        for how in &hows {
            let disk = disk.fork();
            disk.crash(*how);
            let boot = if *how == Crash::Process { BOOT } else { "boot-2" };
            let (found, mut store) = open(&disk, boot);
            let got = &found.recovered.records;
            let all = [&before.records[..], &[new(9)]].concat();
            let kept = got.len() == all.len();
            assert!(kept || !acked && *got == before.records, "{op} {how:?}");
            assert!(!kept || *got == all, "{op} {how:?}");
            commit(&mut store, &batch(&[new(10)])).unwrap();
            let found = look(&disk, boot);
            assert_eq!(found.recovered.records.len(), got.len() + 1, "{op} {how:?}");
            assert!(found.plan.mend.is_none() && jobs_of(&found).is_empty(), "{op} {how:?}");
            let aside = disk.get("lsb.events.damaged");
            assert_eq!(aside.as_ref(), Some(&damaged), "{op} {how:?}");
            let names = disk.clone().list("").unwrap();
            assert!(!names.iter().any(|n| n.contains("mended")), "{op} {how:?}: {names:?}");
        }
        if acked {
            assert!(op > 12, "{op}");
            break;
        }
    }
}

#[test]
fn a_full_disk_leaves_the_damaged_log_as_it_is() {
    let whole = ran();
    let (from, to) = places(&whole)[3];
    let disk = without(&whole, from, to);
    let damaged = disk.get(EVENTS).unwrap();
    let (found, mut store) = open(&disk, BOOT);
    for bytes in [0, 100, 1000] {
        disk.set_faults(Faults { bytes_left: Some(bytes), ..Faults::default() });
        assert!(matches!(commit(&mut store, &batch(&[new(9)])), Err(Fail::Write(_))));
        assert_eq!(disk.get(EVENTS).unwrap(), damaged);
    }
    assert!(matches!(store.begin_switch(SwitchOrder::default()), Err(Fail::Write(_))));
    disk.set_faults(Faults::default());
    commit(&mut store, &batch(&[new(9)])).unwrap();
    let want = [&found.recovered.records[..], &[new(9)]].concat();
    assert_eq!(look(&disk, BOOT).recovered.records, want);
}

#[test]
fn a_switch_carries_over_what_was_moved_while_mbatchd_ran() {
    let disk = ran();
    let (_, mut store) = open(&disk, BOOT);
    let all = places(&disk);
    // the start of job 2 changes places with what comes before it
    let n = script().concat().iter().position(|r| *r == start(2)).unwrap();
    disk.damage(EVENTS, |bytes| {
        let line = bytes[all[n].0..all[n].1].to_vec();
        drop(bytes.drain(all[n].0..all[n].1));
        bytes.splice(all[0].0..all[0].0, line);
    });
    let order =
        SwitchOrder { live: vec![2, 5], spool: 1, oldest_spool: 1, ..SwitchOrder::default() };
    store.begin_switch(order).unwrap();
    while !store.switch_slice().unwrap() {}
    let mut found = look(&disk, BOOT).recovered.records;
    found.retain(|r| !matches!(r.event, Event::Carried { .. }));
    assert_eq!(found, [new(2), start(2), new(5)]);
}

fn ctrl(op: Ctrl, host: &str) -> Record {
    let (uid, user, message, lock) = (0, "admin".into(), String::new(), String::new());
    let event = Event::HostCtrl { op, host: host.into(), uid, user, message, lock };
    Record { time: 5, event }
}

fn queue(op: Ctrl) -> Record {
    let (uid, user, message) = (0, "admin".into(), String::new());
    Record { time: 5, event: Event::QueueCtrl { op, queue: "night".into(), uid, user, message } }
}

#[test]
fn a_lost_control_record_is_told_with_whose_it_was_until_a_later_one_says_how_it_stands() {
    use crate::model::event::name_mark;
    let records = [
        ctrl(Ctrl::Close, "hosta"),
        new(1),
        queue(Ctrl::Close),
        queue(Ctrl::Inactivate),
        ctrl(Ctrl::Open, "hosta"),
    ];
    let disk = SimDisk::new();
    let (_, mut store) = open(&disk, BOOT);
    commit(&mut store, &batch(&records)).unwrap();
    let all = places(&disk);
    let lost = |n: usize, delete: bool| {
        let disk = disk.fork();
        disk.damage(EVENTS, |bytes| match delete {
            true => drop(bytes.drain(all[n].0..all[n].1)),
            false => bytes[all[n].0 + 5] ^= 1,
        });
        look(&disk, BOOT).recovered.controls
    };
    for delete in [true, false] {
        let found: Vec<LostControl> = (0..5).flat_map(|n| lost(n, delete)).collect();
        let of: Vec<_> = found.iter().map(|l| (l.queues, l.hosts, l.mark)).collect();
        let (host, night) = (name_mark("hosta"), name_mark("night"));
        let want = [(false, host), (true, night), (true, night), (false, host)];
        assert_eq!(of, want.map(|(queue, mark)| (queue, !queue, mark)));
        let known: Vec<_> =
            found.iter().map(|l| l.known.iter().cloned().collect::<Vec<_>>()).collect();
        let inactive = vec![(true, true, "night".to_string())];
        let hosta = vec![(false, false, "hosta".to_string())];
        let want: [Vec<(bool, bool, String)>; 4] = [hosta, inactive, vec![], vec![]];
        assert_eq!(known, want);
    }
    // whose it was is not known where no entry says so
    let bare = disk.fork();
    bare.put(crate::log::EVENTS_SUM, b"");
    bare.damage(EVENTS, |bytes| bytes[all[0].0 + 1] = b'x');
    let found = look(&bare, BOOT).recovered.controls;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].queues, found[0].hosts, found[0].mark), (true, true, 0));
    // a line that names itself another is none
    let bare = disk.fork();
    bare.put(crate::log::EVENTS_SUM, b"");
    bare.damage(EVENTS, |bytes| bytes[all[1].0 + 20] = 0);
    assert!(look(&bare, BOOT).recovered.controls.is_empty());
}

#[test]
fn a_record_that_says_again_what_a_damaged_one_said_is_not_taken_for_it() {
    for behind in [0, 1, 3] {
        let again = || ctrl(Ctrl::Close, "host1");
        let mut first: Vec<Record> = vec![queue(Ctrl::Open), again()];
        first.extend((0..behind).map(|n| ctrl(Ctrl::Open, &format!("later{n}"))));
        let disk = SimDisk::new();
        let (_, mut store) = open(&disk, BOOT);
        commit(&mut store, &batch(&first)).unwrap();
        store.close();
        let entries = disk.get(EVENTS_SUM).unwrap().len();
        let (from, to) = places(&disk)[1];
        let tail =
            [ctrl(Ctrl::Open, "other1"), ctrl(Ctrl::Open, "other2"), again(), queue(Ctrl::Close)];
        let (_, mut store) = open(&disk, BOOT);
        commit(&mut store, &batch(&tail)).unwrap();
        store.close();
        disk.damage(EVENTS_SUM, |bytes| bytes.truncate(entries));
        disk.damage(EVENTS, |bytes| bytes[from + 4..to - 4].fill(b'?'));
        let found = look(&disk, BOOT);
        let mut want = first.clone();
        want.remove(1);
        want.extend(tail);
        assert_eq!(found.recovered.records, want, "{behind}");
    }
}
