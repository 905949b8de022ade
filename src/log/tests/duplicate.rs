//! The copy of the log in the shared directory: who owns it, what it has at each moment, what comes
//! back. The last test is a small simulation with a model; `lsfsim` has the large one.

use super::super::duplicate::attach::{Attached, attach, may_go_alone, settle};
use super::super::duplicate::replica::{CopyError, Replica, Round};
use super::super::duplicate::{lacking, resync, takeover};
use super::super::extent::Extent;
use super::super::owner::Owner;
use super::super::simdisk::{Crash, Faults};
use super::super::switch::SwitchOrder;
use super::*;

/// The first master while its mbatchd runs.
struct First {
    store: Store<SimDisk>,
    copy: Option<Replica>,
    extent: Extent,
    words: Vec<String>,
    found: RecoveryResult,
}

fn me(params: &Params) -> Owner {
    let Params { host, boot, run, .. } = params.clone();
    Owner { host, boot, run, ..Owner::default() }
}

/// The copy is claimed, and the primary becomes the last log.
fn claim(primary: &SimDisk, share: &SimDisk, params: &Params) -> Attached {
    let (mut p, mut s) = (primary.clone(), share.clone());
    let attached = attach(&mut p, &mut s, &me(params)).unwrap();
    if !attached.ours {
        resync::resync(&mut p, &mut s, &attached.owner).unwrap();
    }
    resync::forget_takeover(&mut s).unwrap();
    settle(&mut p, &mut s, &attached.owner).unwrap();
    attached
}

type Opened = (RecoveryResult, Store<SimDisk>, Vec<String>);

fn open_primary(primary: &SimDisk, params: &Params) -> Opened {
    let mut words = Vec::new();
    loop {
        let mut found = recover(&mut primary.clone(), params).unwrap();
        let plan = std::mem::take(&mut found.plan);
        let mut store = Store::open(primary.clone(), plan).unwrap();
        let tell = &mut |text: &str| words.push(text.to_owned());
        if !lacking::bring_back(&mut store, &found.recovered, tell).unwrap() {
            return (found, store, words);
        }
        store.close();
    }
}

impl First {
    fn up(primary: &SimDisk, share: &SimDisk) -> First {
        let params = params(BOOT);
        let attached = claim(primary, share, &params);
        let (found, mut store, words) = open_primary(primary, &params);
        let extent = store.extent();
        let (p, s) = (Box::new(primary.clone()), Box::new(share.clone()));
        let copy = Some(Replica::new(p, s, attached.owner));
        First { store, copy, extent, words, found }
    }

    fn commit(&mut self, records: &[Record]) {
        commit(&mut self.store, &batch(records)).unwrap();
    }

    /// Rounds until the copy has everything.
    fn copy(&mut self) -> Result<(), CopyError> {
        let copy = self.copy.as_mut().unwrap();
        for _ in 0..10 {
            self.extent = self.store.extent();
            let extent = self.extent;
            if copy.round(extent, &|| extent)? == Round::Current {
                return Ok(());
            }
        }
        panic!("the copy does not get on");
    }

    fn switch(&mut self, live: &[u32], spool: u32) {
        let event = Event::Carried { next_job: 50, epoch: 1 };
        let head = vec![Record { time: 9000, event }];
        let order = SwitchOrder { live: live.into(), head, spool, oldest_spool: 0 };
        self.store.begin_switch(order).unwrap();
        while !self.store.switch_slice().unwrap() {}
    }
}

/// Another master takes the copy over; its words.
fn take_over(share: &SimDisk) -> (RecoveryResult, Store<SimDisk>, String) {
    let mut params = Params { host: "host2".into(), ended: false, ..params("boot-9") };
    let note = takeover::look(&mut share.clone(), 1000).unwrap();
    params.least_epoch = note.as_ref().map_or(0, |(_, epoch)| *epoch);
    let mut found = recover(&mut share.clone(), &params).unwrap();
    let plan = std::mem::take(&mut found.plan);
    let mut store = Store::open(share.clone(), plan).unwrap();
    let told = note.map_or(String::new(), |(note, _)| {
        takeover::take(&mut store, &mut found.recovered, &note, "host2", 5000).unwrap()
    });
    (found, store, told)
}

fn jobs(found: &RecoveryResult) -> Vec<u32> {
    let new = found.recovered.records.iter().filter_map(|r| match &r.event {
        Event::JobNew(new) => Some(new.job),
        _ => None,
    });
    new.collect()
}

fn bytes(disk: &SimDisk, name: &str) -> Vec<u8> {
    disk.get(name).unwrap_or_default()
}

const FILES: [&str; 3] = [EVENTS, "lsb.events.sum", "lsb.acct"];

fn assert_same(primary: &SimDisk, share: &SimDisk) {
    for name in FILES {
        assert_eq!(bytes(primary, name), bytes(share, name), "{name}");
    }
}

#[test]
fn a_copy_has_the_bytes_of_the_primary_after_each_round() {
    let (primary, share) = (SimDisk::new(), SimDisk::new());
    let mut first = First::up(&primary, &share);
    for records in script() {
        first.commit(&records);
        first.copy().unwrap();
        assert_same(&primary, &share);
    }
    first.store.close();
}

#[test]
fn a_copy_follows_a_switch_and_has_the_old_log() {
    let (primary, share) = (SimDisk::new(), SimDisk::new());
    let mut first = First::up(&primary, &share);
    first.commit(&[new(1), start(1)]);
    first.copy().unwrap();
    first.commit(&[new(2), done(1)]);
    first.switch(&[2], 2);
    first.commit(&[new(3)]);
    first.switch(&[2, 3], 3);
    first.commit(&[new(4)]);
    first.copy().unwrap();
    assert_same(&primary, &share);
    for old in ["lsb.events.1", "lsb.events.2", "lsb.events.1.sum", "lsb.events.2.sum"] {
        // the first line of an old log is the time of its newest record
        let (here, there) = (bytes(&primary, old), bytes(&share, old));
        assert!(here[80..] == there[80..] && here.len() > 80, "{old}");
    }
}

#[test]
fn a_first_master_that_returns_alone_has_all_that_it_acknowledged() {
    let (primary, share) = (SimDisk::new(), SimDisk::new());
    let mut first = First::up(&primary, &share);
    first.commit(&[new(1)]);
    first.copy().unwrap();
    first.commit(&[new(2)]);
    primary.crash(Crash::Power(3));
    let mut again = First::up(&primary, &share);
    assert_eq!(jobs(&again.found), [1, 2]);
    again.copy().unwrap();
    assert_same(&primary, &share);
}

#[test]
fn a_takeover_tells_the_end_of_the_copy_and_leaves_job_ids_out() {
    let (primary, share) = (SimDisk::new(), SimDisk::new());
    let mut first = First::up(&primary, &share);
    first.commit(&[new(1)]);
    first.copy().unwrap();
    first.commit(&[new(2), start(1)]);
    let (found, mut store, told) = take_over(&share);
    assert_eq!(jobs(&found), [1]);
    assert!(told.contains("copy of the log of host host1"), "{told}");
    assert!(told.contains("its last job is <1>"), "{told}");
    let next = 2 + takeover::GAP;
    assert!(told.ends_with(&format!("continue with <{next}>")), "{told}");
    commit(&mut store, &batch(&[new(next)])).unwrap();
    // the first master, cut off until now, may write no more
    first.commit(&[new(3)]);
    let before = bytes(&share, EVENTS);
    assert!(matches!(first.copy(), Err(CopyError::Taken(why)) if why.contains("host2")));
    assert_eq!(bytes(&share, EVENTS), before);
    store.close();
    // it returns with its disk: what it acknowledged comes back, and what does not is told
    primary.crash(Crash::Process);
    let mut first = First::up(&primary, &share);
    assert_eq!(jobs(&first.found), [1, next, 2, 3]);
    let words = first.words.join("\n");
    assert!(words.contains("jobs <2>, <3> were missing from the copy"), "{words}");
    assert!(words.contains("an earlier state of jobs <1>:"), "{words}");
    assert!(!bytes(&primary, "lsb.events.replaced.5000").is_empty());
    first.copy().unwrap();
    assert_same(&primary, &share);
    assert!(share.get("lsb.events.taken").is_none());
}

#[test]
fn a_takeover_after_an_orderly_end_lacks_nothing() {
    let (primary, share) = (SimDisk::new(), SimDisk::new());
    let mut first = First::up(&primary, &share);
    first.commit(&[new(1)]);
    first.copy().unwrap();
    first.store.close();
    first.copy.as_mut().unwrap().complete().unwrap();
    assert!(!may_go_alone(&mut primary.clone(), BOOT).unwrap());
    let (found, mut store, told) = take_over(&share);
    assert_eq!((jobs(&found), told.contains("in order")), (vec![1], true), "{told}");
    commit(&mut store, &batch(&[new(2)])).unwrap();
    store.close();
    let first = First::up(&primary, &share);
    assert_eq!((jobs(&first.found), first.words), (vec![1, 2], Vec::new()));
}

#[test]
fn a_shared_directory_that_was_away_gets_what_it_lacks() {
    let (primary, share) = (SimDisk::new(), SimDisk::new());
    let mut first = First::up(&primary, &share);
    first.commit(&[new(1)]);
    first.copy().unwrap();
    share.set_faults(Faults { away: true, ..Faults::default() });
    first.commit(&[new(2)]);
    assert!(matches!(first.copy(), Err(CopyError::Away(_))));
    assert!(may_go_alone(&mut primary.clone(), BOOT).unwrap());
    assert!(!may_go_alone(&mut primary.clone(), "another boot").unwrap());
    first.switch(&[2], 2);
    first.commit(&[new(3)]);
    share.set_faults(Faults::default());
    let owner = first.copy.take().unwrap();
    drop(owner);
    let params = params(BOOT);
    let attached = claim(&primary, &share, &params);
    assert!(attached.ours);
    let (p, s) = (Box::new(primary.clone()), Box::new(share.clone()));
    first.copy = Some(Replica::new(p, s, attached.owner));
    first.copy().unwrap();
    assert_same(&primary, &share);
    assert_eq!(bytes(&primary, "lsb.events.1"), bytes(&share, "lsb.events.1"));
}

#[test]
fn spooled_bytes_of_a_job_come_back_with_it() {
    let (primary, share) = (SimDisk::new(), SimDisk::new());
    let mut first = First::up(&primary, &share);
    let with_script = |job: u32, text: &[u8], at: u64| {
        let at = SpoolRef { spool: 1, at, len: text.len() as u32 };
        let mut batch = Batch::default();
        batch.spool(at, text);
        let event = Event::JobNew(Box::new(JobNew { script: at, ..job_new(job) }));
        batch.append(&Record { time: 1000, event });
        batch
    };
    commit(&mut first.store, &with_script(1, b"first", 0)).unwrap();
    first.copy().unwrap();
    assert_eq!(bytes(&share, "info/lsb.spool.1"), b"first");
    commit(&mut first.store, &with_script(2, b"second", 5)).unwrap();
    drop(first);
    let (_, store, _) = take_over(&share);
    store.close();
    primary.crash(Crash::Process);
    let first = First::up(&primary, &share);
    let script = |job: u32| {
        let of = first.found.recovered.records.iter().find_map(|r| match &r.event {
            Event::JobNew(new) if new.job == job => Some(new.script),
            _ => None,
        });
        let mut reader = super::super::spool::SpoolReader::default();
        reader.read(&mut primary.clone(), of.unwrap()).unwrap()
    };
    assert_eq!((script(1), script(2)), (b"first".to_vec(), b"second".to_vec()));
}

#[test]
fn a_resynchronisation_that_is_interrupted_anywhere_begins_again() {
    for op in 1..80 {
        let (primary, share) = (SimDisk::new(), SimDisk::new());
        let mut first = First::up(&primary, &share);
        first.commit(&[new(1)]);
        first.copy().unwrap();
        first.commit(&[new(2)]);
        drop(first);
        let (_, mut store, _) = take_over(&share);
        let next = 2 + takeover::GAP;
        commit(&mut store, &batch(&[new(next)])).unwrap();
        store.close();
        primary.crash(Crash::Process);
        primary.set_faults(Faults { die_at_op: Some(primary.ops() + op), ..Faults::default() });
        let params = params(BOOT);
        let (mut p, mut s) = (primary.clone(), share.clone());
        if let Ok(attached) = attach(&mut p, &mut s, &me(&params)) {
            let done = resync::resync(&mut p, &mut s, &attached.owner);
            let _ = done.and_then(|_| settle(&mut p, &mut s, &attached.owner));
        }
        primary.crash(Crash::PowerTorn(op));
        let first = First::up(&primary, &share);
        assert_eq!(jobs(&first.found), [1, next, 2], "{op}");
        assert!(first.words.iter().any(|text| text.contains("jobs <2> were missing")), "{op}");
    }
}

/// Another master begins to take the copy over and dies at an operation; is it still a copy?
fn take_over_in_vain(share: &SimDisk, op: u64) -> bool {
    let mut other = Params { host: "host2".into(), ended: false, ..params("boot-9") };
    share.set_faults(Faults { die_at_op: Some(share.ops() + op), ..Faults::default() });
    let mut disk = share.clone();
    let mut begins = |disk: &mut SimDisk| {
        let (note, epoch) = takeover::look(disk, 1000).ok()??;
        other.least_epoch = epoch;
        let mut found = recover(disk, &other).ok()?;
        let plan = std::mem::take(&mut found.plan);
        let mut store = Store::open(disk.clone(), plan).ok()?;
        takeover::take(&mut store, &mut found.recovered, &note, "host2", 5000).ok()
    };
    let _ = begins(&mut disk);
    share.crash(Crash::Process);
    share.set_faults(Faults::default());
    takeover::look(&mut disk, 1000).unwrap().is_some()
}

#[test]
fn copy_that_goes_on_behind_a_takeover_that_came_to_nothing_never_tells_of_records_it_lacks() {
    for (in_vain, op) in (1..40).flat_map(|in_vain| (1..60).map(move |op| (in_vain, op))) {
        let (primary, share) = (SimDisk::new(), SimDisk::new());
        let mut first = First::up(&primary, &share);
        first.commit(&[new(1)]);
        first.copy().unwrap();
        if !take_over_in_vain(&share, in_vain) {
            continue;
        }
        first.commit(&[new(2), new(3)]);
        share.set_faults(Faults { die_at_op: Some(share.ops() + op), ..Faults::default() });
        let (mut p, mut s) = (primary.clone(), share.clone());
        if let Ok(attached) = attach(&mut p, &mut s, &me(&params(BOOT))) {
            let done = resync::forget_takeover(&mut s);
            let done = done.and_then(|()| settle(&mut p, &mut s, &attached.owner));
            first.copy = Some(Replica::new(Box::new(p), Box::new(s), attached.owner));
            let _ = done.map(|()| first.copy());
        }
        drop(first);
        share.crash(if op % 2 == 0 { Crash::Process } else { Crash::PowerTorn(op) });
        let (found, _, _) = take_over(&share);
        assert_eq!(found.recovered.damaged, [], "{in_vain} {op}");
        assert_eq!(jobs(&found).first(), Some(&1), "{in_vain} {op}");
    }
}
