//! A run that is stopped at any operation on the disk, for longer than its lock is kept, while
//! another one takes the log over; then it goes on.

use super::super::codec::write_finish;
use super::super::disk::{Disk, FileId, RealDisk};
use super::super::owner::{self, Owner};
use super::super::simdisk::{Crash, Faults};
use super::super::store::Point;
use super::super::switch::SwitchOrder;
use super::super::writer::{Command, Due, Writer, WriterNotice};
use super::threads::Dir;
use super::*;
use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The disk of a run that is stopped before one of its operations.
struct Gated {
    disk: SimDisk,
    left: usize,
    told: Sender<()>,
    go: Receiver<()>,
}

impl Gated {
    fn op(&mut self) {
        self.left = self.left.wrapping_sub(1);
        if self.left == 0 {
            self.told.send(()).unwrap();
            self.go.recv().unwrap();
        }
    }
}

impl Disk for Gated {
    fn open(&mut self, name: &str, create: Option<u32>) -> io::Result<FileId> {
        self.op();
        self.disk.open(name, create)
    }
    fn create_new(&mut self, name: &str, mode: u32) -> io::Result<FileId> {
        self.op();
        self.disk.create_new(name, mode)
    }
    fn close(&mut self, file: FileId) {
        self.disk.close(file);
    }
    fn len(&mut self, file: FileId) -> io::Result<u64> {
        self.disk.len(file)
    }
    fn read_at(&mut self, file: FileId, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.op();
        self.disk.read_at(file, at, buf)
    }
    fn write_at(&mut self, file: FileId, at: u64, data: &[u8]) -> io::Result<()> {
        self.op();
        self.disk.write_at(file, at, data)
    }
    fn truncate(&mut self, file: FileId, len: u64) -> io::Result<()> {
        self.op();
        self.disk.truncate(file, len)
    }
    fn sync(&mut self, file: FileId) -> io::Result<()> {
        self.op();
        self.disk.sync(file)
    }
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.op();
        self.disk.rename(from, to)
    }
    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.op();
        self.disk.remove(name)
    }
    fn link(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.op();
        self.disk.link(from, to)
    }
    fn list(&mut self, dir: &str) -> io::Result<Vec<String>> {
        self.op();
        self.disk.list(dir)
    }
    fn nameless(&mut self, file: FileId) -> io::Result<bool> {
        self.disk.nameless(file)
    }
    fn named(&mut self, file: FileId, name: &str) -> io::Result<bool> {
        self.op();
        self.disk.named(file, name)
    }
    fn sync_dir(&mut self, dir: &str) -> io::Result<()> {
        self.op();
        self.disk.sync_dir(dir)
    }
}

/// The run on another host, which knows nothing of the first one's process.
fn elsewhere() -> Params {
    Params { host: "host2".into(), ended: false, ..params("boot-of-host2") }
}

/// Parameters of [`elsewhere`] with which every lsb.acct counts as a large one.
fn elsewhere_large() -> Params {
    Params { max_acct_at_start: 0, ..elsewhere() }
}

/// A record with something in the spool, and the batch that makes it durable.
fn spooled(job: u32, spool: u32, at: u64) -> (Record, Batch) {
    let mut new = job_new(job);
    let script = format!("#!/bin/sh {job:010}\n");
    new.script = SpoolRef { spool, at, len: script.len() as u32 };
    let record = Record { time: 5000, event: Event::JobNew(Box::new(new.clone())) };
    let mut b = Batch::default();
    b.spool(new.script, script.as_bytes());
    b.append(&record);
    (record, b)
}

fn order(live: Vec<u32>, spool: u32) -> SwitchOrder {
    let event = Event::Carried { next_job: 40, epoch: 1 };
    SwitchOrder { live, head: vec![Record { time: 5000, event }], spool, oldest_spool: 1 }
}

/// Submissions of one run: commits, a switch between them, more commits. Acknowledged submissions
/// go to `acked`; the run ends at the first error.
fn first_run<D: Disk>(
    mut disk: impl FnMut() -> D,
    acked: &Mutex<Vec<Record>>,
) -> Result<(), String> {
    let mut reader = disk();
    let mut found = recover(&mut reader, &params(BOOT)).map_err(|e| e.to_string())?;
    let plan = std::mem::take(&mut found.plan);
    let mut store = Store::open(reader, plan).map_err(|e| e.to_string())?;
    let mut at = 0;
    let mut submit = |store: &mut Store<D>, job: u32, spool: u32| {
        let (record, b) = spooled(job, spool, at);
        store.commit(&b, 0, &mut |_| {}).map_err(|e| e.to_string())?;
        at += 22;
        acked.lock().unwrap().push(record);
        Ok::<(), String>(())
    };
    submit(&mut store, 1, 1)?;
    let ends = batch(&[start(1), done(1)]);
    store.commit(&ends, 0, &mut |_| {}).map_err(|e| e.to_string())?;
    acked.lock().unwrap().extend([start(1), done(1)]);
    submit(&mut store, 2, 1)?;
    store.set_slice(2);
    store.begin_switch(order((1..20).collect(), 2)).map_err(|e| e.to_string())?;
    submit(&mut store, 3, 2)?;
    while !store.switch_slice().map_err(|e| e.to_string())? {}
    submit(&mut store, 4, 2)?;
    submit(&mut store, 5, 2)
}

/// The second run: takes the log, acknowledges two submissions, and switches between them where
/// asked to.
fn second_run(disk: &SimDisk, switches: bool) -> (Store<SimDisk>, Vec<Record>) {
    // where it switches, lsb.acct is copied between its commits
    let params = if switches { elsewhere_large() } else { elsewhere() };
    let mut found = recover(&mut disk.clone(), &params).unwrap();
    assert!(found.recovered.damaged.is_empty(), "{:?}", found.notices);
    let plan = std::mem::take(&mut found.plan);
    let mut store = Store::open(disk.clone(), plan).unwrap();
    let (mut spool, mut at) = (found.recovered.spool.max(1), found.recovered.spool_end);
    let mut acked = Vec::new();
    for job in [21, 22] {
        let (record, b) = spooled(job, spool, at);
        commit(&mut store, &b).unwrap();
        acked.push(record);
        at += 22;
        store.copy_acct().unwrap();
        assert!(!store.is_copying_acct());
        if switches && job == 21 {
            (spool, at) = (spool + 1, 0);
            store.begin_switch(order((1..40).collect(), spool)).unwrap();
            while !store.switch_slice().unwrap() {}
        }
    }
    (store, acked)
}

/// Stops the first run before this operation; `false` where it has fewer.
fn stopped_at(op: usize, switches: bool) -> bool {
    let disk = SimDisk::new();
    let (told, hears) = channel();
    let (goes, go) = channel();
    let mut gate = Some((told, go));
    let acked = Mutex::new(Vec::new());
    let what = format!("operation {op}, {switches}");
    std::thread::scope(|s| {
        let (first_disk, first_acked) = (disk.clone(), &acked);
        let first = s.spawn(move || {
            let mut gated = || {
                let (told, go) = gate.take().unwrap();
                Gated { disk: first_disk.clone(), left: op, told, go }
            };
            first_run(&mut gated, first_acked)
        });
        if hears.recv().is_err() {
            first.join().unwrap().unwrap();
            return false;
        }
        let before = acked.lock().unwrap().clone();
        let (mut store, mut later) = second_run(&disk, switches);
        goes.send(()).unwrap();
        let ended = first.join().unwrap();
        let (record, b) = spooled(23, 9, 0);
        match commit(&mut store, &b) {
            Ok(()) => {
                // one more may have been durable before the log was claimed
                let after = acked.lock().unwrap()[before.len()..].to_vec();
                assert!(after.len() <= if ended.is_ok() { 1 } else { 2 }, "{what}: {after:?}");
                later.extend(after);
                later.push(record);
            }
            // stopped before it looked for an owner, it has taken the log over in its turn
            Err(e) => {
                assert!(e.to_string().contains("taken over") && before.is_empty(), "{what}: {e}");
                later.extend(acked.lock().unwrap().drain(..));
            }
        }
        drop(store);
        // whoever reads it next finds all that was acknowledged, by either, and no damage
        let found = recover(&mut disk.clone(), &elsewhere()).unwrap();
        let texts = notice_texts(&found);
        assert!(found.recovered.damaged.is_empty(), "{what}: {texts:?}");
        assert!(!texts.iter().any(|t| t.contains("damage")), "{what}: {texts:?}");
        for record in before.iter().chain(&later) {
            assert!(found.recovered.records.contains(record), "{what}: {record:?} is lost");
        }
        let mut ends = accounted(&disk);
        ends.dedup();
        let end = before.contains(&done(1));
        assert!(!end || ends == [1], "{what}: {ends:?}");
        true
    })
}

#[test]
fn a_run_stopped_at_any_operation_and_overtaken_acknowledges_and_damages_nothing() {
    for switches in [false, true] {
        let mut op = 1;
        while stopped_at(op, switches) {
            op += 1;
        }
        assert!(op > 100, "{op}");
    }
}

#[test]
fn the_files_of_a_run_that_is_known_to_have_ended_are_not_copied() {
    for (host, boot, ended, copied) in [
        ("host1", BOOT, true, false),
        ("host1", BOOT, false, true),
        ("host1", "boot-2", false, false),
        ("host2", "boot-2", true, true),
        // another name for the same system
        ("host2", BOOT, true, false),
    ] {
        let mut disk = ran();
        let file = disk.open(EVENTS, None).unwrap();
        let params = Params { host: host.into(), ended, ..params(boot) };
        recover(&mut disk, &params).unwrap();
        assert_eq!(disk.nameless(file).unwrap(), copied, "{host} {boot} {ended}");
    }
}

#[test]
fn a_full_disk_at_a_takeover_leaves_the_log_as_it_is() {
    let whole = ran();
    let records = look(&whole, BOOT).recovered.records;
    for bytes in (0..8000).step_by(97) {
        let disk = whole.fork();
        disk.set_faults(Faults { bytes_left: Some(bytes), ..Default::default() });
        let done = recover(&mut disk.clone(), &elsewhere());
        disk.set_faults(Default::default());
        let names = disk.clone().list("").unwrap();
        assert!(!names.iter().any(|n| n.contains("copy")), "{names:?}");
        let found = done.or_else(|_| recover(&mut disk.clone(), &elsewhere())).unwrap();
        assert_eq!(found.recovered.records, records, "{bytes}");
        assert!(found.recovered.damaged.is_empty());
    }
}

#[test]
fn a_large_lsb_acct_is_copied_between_commits_and_not_written_before() {
    let mut disk = ran();
    let first = disk.open(super::super::ACCT, None).unwrap();
    let mut found = recover(&mut disk.clone(), &elsewhere_large()).unwrap();
    let plan = std::mem::take(&mut found.plan);
    let mut store = Store::open(disk.clone(), plan).unwrap();
    commit(&mut store, &batch(&[new(7), start(7), done(7)])).unwrap();
    assert_eq!(accounted(&disk), [1, 3, 4, 6]);
    assert!(!disk.clone().nameless(first).unwrap());
    let mut late = Vec::new();
    write_finish(&finish(99), &mut late);
    // no room at first: it is begun again, and what was copied of it is gone
    disk.set_faults(Faults { bytes_left: Some(100), ..Faults::default() });
    assert!(matches!(store.copy_acct(), Err(Fail::Write(_))));
    assert!(!disk.clone().list("").unwrap().iter().any(|name| name.contains("copy")));
    disk.set_faults(Faults::default());
    while store.is_copying_acct() {
        store.copy_acct().unwrap();
    }
    // what an earlier run still writes goes nowhere
    let end = disk.clone().len(first).unwrap();
    disk.write_at(first, end, &late).unwrap();
    assert_eq!(accounted(&disk), [1, 3, 4, 6, 7]);
    commit(&mut store, &batch(&[start(2), done(2)])).unwrap();
    assert_eq!(accounted(&disk), [1, 3, 4, 6, 7, 2]);
}

#[test]
fn a_copy_of_lsb_acct_that_is_interrupted_or_overtaken_loses_no_end() {
    for dies in 0..24 {
        let disk = ran();
        let mut found = recover(&mut disk.clone(), &elsewhere_large()).unwrap();
        let plan = std::mem::take(&mut found.plan);
        let mut store = Store::open(disk.clone(), plan).unwrap();
        commit(&mut store, &batch(&[new(7), start(7), done(7)])).unwrap();
        let die_at_op = (dies > 0).then_some(disk.ops() + dies);
        disk.set_faults(Faults { die_at_op, ..Faults::default() });
        let overtaken = dies == 0;
        if overtaken {
            let later = Params { host: "host3".into(), ..elsewhere() };
            let mut found = recover(&mut disk.clone(), &later).unwrap();
            Store::open(disk.clone(), std::mem::take(&mut found.plan)).unwrap();
        }
        let copied = store.copy_acct();
        assert!(!overtaken || matches!(copied, Err(Fail::Fatal(_))), "{copied:?}");
        disk.crash(if dies % 2 == 0 { Crash::Process } else { Crash::Power(dies) });
        open(&disk, "boot-of-host2");
        assert_eq!(accounted(&disk), [1, 3, 4, 6, 7], "{dies}");
        assert!(!disk.clone().list("").unwrap().iter().any(|name| name.contains("copy")));
    }
}

#[test]
fn a_switch_of_the_log_waits_for_the_copy_of_lsb_acct() {
    let disk = ran();
    let mut found = recover(&mut disk.clone(), &elsewhere_large()).unwrap();
    let mut store = Store::open(disk.clone(), std::mem::take(&mut found.plan)).unwrap();
    commit(&mut store, &batch(&[new(7), start(7), done(7)])).unwrap();
    let mut writer = Writer::new(store);
    writer.order(Command::Switch(Box::new(order(vec![2, 5], 2))));
    let mut told = Vec::new();
    while writer.due() == Due::Now {
        told.extend(writer.turn(0, &mut |_| {}));
    }
    assert_eq!(told, [WriterNotice::Switched { ok: true, why: String::new() }]);
    assert_eq!(accounted(&disk), [1, 3, 4, 6, 7]);
    open(&disk, "boot-of-host2");
    assert_eq!(accounted(&disk), [1, 3, 4, 6, 7]);
}

#[test]
fn a_claim_between_sync_and_reply_is_seen_on_a_real_disk() {
    let dir = Dir::new("claimed");
    let mut disk = RealDisk::open_dir(&dir.0).unwrap();
    let mut found = recover(&mut disk, &params(BOOT)).unwrap();
    let mut store = Store::open(disk, std::mem::take(&mut found.plan)).unwrap();
    let mut other = RealDisk::open_dir(&dir.0).unwrap();
    store.commit(&batch(&[new(1)]), 0, &mut |_| {}).unwrap();
    // a second name, as a backup gives it, keeps the old owner file
    std::fs::hard_link(dir.0.join(owner::OWNER), dir.0.join("kept")).unwrap();
    let claimed = store.commit(&batch(&[new(2)]), 1, &mut |point| {
        if point == Point::BeforeSync {
            let before = Owner::read(&mut other).unwrap();
            let next = Owner { run: "other".into(), epoch: 2, ..Owner::default() };
            next.claim(&mut other, &before).unwrap();
        }
    });
    assert!(matches!(&claimed, Err(Fail::Fatal(why)) if why.contains("taken over")), "{claimed:?}");
}
