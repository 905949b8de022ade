//! Jobs that the first master had acknowledged and that the copy lacked when another master took it
//! over. When the first master returns, their records and spooled bytes are put aside before the
//! shared log replaces its own, and appended behind it. The other master has left out their IDs.
//!
//! `lsb.events.lacking` holds the records, which refer to a spool file of their own. It is removed
//! when they are durable in the log; a record that is there already is not appended again.

use super::notes::Taken;
use crate::batch::Recovered;
use crate::log::batch::Batch;
use crate::log::checksums;
use crate::log::codec::{job_of, read_record, spooled_of, write_record};
use crate::log::disk::{
    Disk, FileId, INFO, PRIVATE, PUBLIC, exists, len_of, read_full, remove, write_small,
};
use crate::log::fail::{Fail, said};
use crate::log::fence::COPY;
use crate::log::record_walk::{PlaceContents, RecordWalker, read_head};
use crate::log::store::Store;
use crate::log::{EVENTS, EVENTS_SUM, spool};
use crate::model::event::{Event, Record};
use crate::model::job::SpoolRef;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;

/// The records that are put aside.
const LACKING: &str = "lsb.events.lacking";
/// The primary log as it was when the first master returned; the time of the takeover follows.
const REPLACED: &str = "lsb.events.replaced";
/// The last line: without it the file is not complete.
const END: &[u8] = b"#end\n";
/// Most bytes of records that are put aside.
const MAX_BYTES: usize = 1 << 30;
/// Job IDs named in one message.
const TOLD: usize = 20;

/// The result of looking for what the copy lacked.
#[derive(Debug, Default)]
pub struct Lacking {
    pub words: Vec<String>,
    /// The spool file that their records refer to.
    spool: Option<u32>,
}

impl Lacking {
    pub(super) fn spool_name(&self) -> Option<String> {
        self.spool.map(spool::name)
    }
}

/// The records of the primary log beyond the copy.
#[derive(Default)]
struct Beyond {
    /// The records of jobs that the copy did not know.
    records: Vec<Record>,
    jobs: BTreeSet<u32>,
    /// Jobs that the copy knew in an earlier state.
    changed: BTreeSet<u32>,
    /// Records of no job.
    others: usize,
}

/// Puts aside what the copy lacked when it was taken over. `newest_there`: number of the newest
/// spool file in the shared directory.
pub(super) fn keep(
    primary: &mut dyn Disk,
    taken: Option<&Taken>,
    newest_there: u32,
) -> io::Result<Lacking> {
    if let Some((spool, records)) = read(primary)? {
        let jobs = records.iter().map(|r| job_of(&r.event).job).collect();
        return Ok(Lacking { words: vec![told_jobs(&jobs)], spool: Some(spool) });
    }
    let Some(taken) = taken.filter(|_| len_of_log(primary)) else { return Ok(Lacking::default()) };
    let mut beyond = find(primary, taken)?;
    let mut out = Lacking::default();
    if !beyond.jobs.is_empty() {
        out.words.push(told_jobs(&beyond.jobs));
        out.spool = Some(put_aside(primary, &mut beyond.records, newest_there)?);
    }
    if !beyond.changed.is_empty() {
        out.words.push(format!(
            "the log of host {} continues from an earlier state of jobs {}: what this host logged \
             of them last is in {REPLACED}.{}",
            taken.by,
            named(&beyond.changed),
            taken.time
        ));
    }
    if beyond.others > 0 {
        let n = beyond.others;
        out.words
            .push(format!("{n} records of queues, hosts and job groups were not carried over"));
    }
    if !out.words.is_empty() {
        let name = format!("{REPLACED}.{}", taken.time);
        if !exists(primary, &name)? {
            // only for whoever wants to look
            let _ = primary.link(EVENTS, &name);
        }
    }
    Ok(out)
}

fn len_of_log(primary: &mut dyn Disk) -> bool {
    len_of(primary, EVENTS).is_ok_and(|len| len > 0)
}

fn named(jobs: &BTreeSet<u32>) -> String {
    let mut text: Vec<String> = jobs.iter().take(TOLD).map(|job| format!("<{job}>")).collect();
    if jobs.len() > TOLD {
        text.push(format!("and {} more", jobs.len() - TOLD));
    }
    text.join(", ")
}

fn told_jobs(jobs: &BTreeSet<u32>) -> String {
    format!("jobs {} were missing from the copy; they come back from this host's log", named(jobs))
}

/// Looks through the primary log as it was.
fn find(primary: &mut dyn Disk, taken: &Taken) -> io::Result<Beyond> {
    let head = checksums::read(primary, EVENTS_SUM)?.head;
    let same_log = head.map_or(1, |head| head.spool) == taken.spool;
    let file = primary.open(EVENTS, None)?;
    let found = find_in(primary, file, taken, same_log);
    primary.close(file);
    found
}

fn find_in(
    primary: &mut dyn Disk,
    file: FileId,
    taken: &Taken,
    same_log: bool,
) -> io::Result<Beyond> {
    let mut beyond = Beyond::default();
    let (_, head) = read_head(primary, file)?;
    let limit = primary.len(file)?;
    let mut walker = RecordWalker::new(file, head, limit, Vec::new());
    let mut line = Vec::new();
    while let Some(step) = walker.step(primary, &mut line)? {
        let PlaceContents::Text = step.what else { continue };
        let Ok(record) = read_record(&line) else { continue };
        let job = job_of(&record.event).job;
        let new = (taken.last + 1..taken.next).contains(&job);
        let later = same_log && step.at >= taken.events;
        let begins = matches!(record.event, Event::JobNew(_));
        match job {
            0 if later && is_control(&record.event) => beyond.others += 1,
            0 => {}
            _ if new && (begins || beyond.jobs.contains(&job)) => {
                beyond.jobs.insert(job);
                beyond.records.push(record);
            }
            _ if later => drop(beyond.changed.insert(job)),
            _ => {}
        }
    }
    Ok(beyond)
}

/// Does this record of no job change anything that lasts?
fn is_control(event: &Event) -> bool {
    matches!(
        event,
        Event::QueueCtrl { .. }
            | Event::HostCtrl { .. }
            | Event::GroupHost { .. }
            | Event::JobGroupAdd(_)
            | Event::JobGroupModify(_)
            | Event::JobGroupDelete { .. }
    )
}

/// Writes the records with a spool file of their own, whose number is returned.
fn put_aside(primary: &mut dyn Disk, records: &mut [Record], newest_there: u32) -> io::Result<u32> {
    let newest = spool::list(primary)?.pop().unwrap_or(0);
    let number = newest.max(newest_there) + 1;
    let mut moved: BTreeMap<(u32, u64, u32), SpoolRef> = BTreeMap::new();
    let (mut bytes, mut text) = (Vec::new(), format!("#spool {number}\n").into_bytes());
    let mut reader = spool::SpoolReader::default();
    for record in records {
        for at in places(&mut record.event).into_iter().filter(|at| at.len > 0) {
            let key = (at.spool, at.at, at.len);
            *at = match moved.get(&key) {
                Some(place) => *place,
                None => {
                    let data = reader.read(primary, *at)?;
                    let place = SpoolRef { spool: number, at: bytes.len() as u64, len: at.len };
                    bytes.extend_from_slice(&data);
                    moved.insert(key, place);
                    place
                }
            };
        }
        write_record(record, &mut text);
    }
    reader.forget(primary);
    text.extend_from_slice(END);
    write_small(primary, &spool::name(number), PRIVATE, &bytes)?;
    primary.sync_dir(INFO)?;
    let temp = format!("{COPY}{LACKING}");
    write_small(primary, &temp, PUBLIC, &text)?;
    primary.rename(&temp, LACKING)?;
    primary.sync_dir("")?;
    Ok(number)
}

fn places(event: &mut Event) -> Vec<&mut SpoolRef> {
    match event {
        Event::JobNew(new) => vec![&mut new.env, &mut new.script, &mut new.exact],
        Event::JobModify(m) => vec![&mut m.env, &mut m.script, &mut m.exact],
        Event::JobAttachment(a) => vec![&mut a.data],
        _ => Vec::new(),
    }
}

/// The records that were put aside, and the number of their spool file.
fn read(primary: &mut dyn Disk) -> io::Result<Option<(u32, Vec<Record>)>> {
    let file = match primary.open(LACKING, None) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        open => open?,
    };
    let len = primary.len(file)?.min(MAX_BYTES as u64);
    let mut text = vec![0; len as usize];
    let got = read_full(primary, file, 0, &mut text);
    primary.close(file);
    text.truncate(got?);
    let damaged = || io::Error::other(format!("{LACKING} is damaged"));
    let text = text.strip_suffix(END).ok_or_else(damaged)?;
    let mut lines = text.split_inclusive(|b| *b == b'\n');
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let number = first.trim_end().strip_prefix("#spool ").and_then(|n| n.parse().ok());
    let records: Result<Vec<Record>, _> = lines.map(read_record).collect();
    Ok(Some((number.ok_or_else(damaged)?, records.map_err(|_| damaged())?)))
}

/// Appends the records that were put aside to the log that was opened. `true`: the log is to be
/// recovered again, with them.
pub fn bring_back<D: Disk>(store: &mut Store<D>, found: &Recovered) -> Result<bool, Fail> {
    let Some((_, records)) = read(store.disk()).map_err(said(LACKING))? else { return Ok(false) };
    let line = |record: &Record| {
        let mut line = Vec::new();
        write_record(record, &mut line);
        line
    };
    let jobs: HashSet<u32> = records.iter().map(|r| job_of(&r.event).job).collect();
    let there = found.records.iter().filter(|r| jobs.contains(&job_of(&r.event).job));
    let there: HashSet<Vec<u8>> = there.map(line).collect();
    let mut batch = Batch::default();
    for record in records.iter().filter(|record| !there.contains(&line(record))) {
        debug_assert!(spooled_of(&record.event).is_none_or(|(job, _)| jobs.contains(&job)));
        batch.append(record);
    }
    store.commit(&batch, 0, &mut |_| {})?;
    remove(store.disk(), LACKING).map_err(said(LACKING))?;
    store.disk().sync_dir("").map_err(said(LACKING))?;
    Ok(true)
}
