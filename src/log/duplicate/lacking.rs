//! Jobs that the first master had acknowledged and that the copy lacked when another master took it
//! over. When the first master returns, their records and spooled bytes are put aside before the
//! shared log replaces its own, and appended behind it. The other master has left out their IDs.
//!
//! `lsb.events.lacking` holds the records, `info/lsb.lacking` the bytes that they refer to. Both
//! are removed when the records are durable in the log; a record that is there already is not
//! appended again.

use super::notes::Taken;
use crate::batch::Recovered;
use crate::log::batch::Batch;
use crate::log::checksums;
use crate::log::codec::{job_of, read_record, write_record};
use crate::log::disk::{
    Disk, FileId, INFO, PRIVATE, PUBLIC, exists, len_of, read_small, remove, write_small,
};
use crate::log::fail::{Fail, said};
use crate::log::fence::COPY;
use crate::log::record_walk::{PlaceContents, RecordWalker, read_head};
use crate::log::store::Store;
use crate::log::switch_names::sum_of;
use crate::log::{ACCT, EVENTS, spool};
use crate::model::event::{Event, Record};
use crate::model::job::SpoolRef;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::io;

/// The records that are put aside.
const LACKING: &str = "lsb.events.lacking";
/// The ending of the primary log as it was when the first master returned; the time of the takeover
/// follows.
const REPLACED: &str = "replaced";
/// The bytes that the records refer to.
pub(super) const SPOOLED: &str = "info/lsb.lacking";
/// Beginning of the lines of words, before the records.
const TOLD_LINE: &str = "#told ";
/// The last line: without it the file is not complete.
const END: &[u8] = b"#end\n";
/// Longest file of what was put aside, bytes.
const MAX_BYTES: u64 = 1 << 30;
/// Job IDs named in one message.
const TOLD: usize = 20;

/// The contents of `lsb.events.lacking`.
#[derive(Debug, Default)]
struct Lacking {
    /// Words on all that the copy lacked.
    words: Vec<String>,
    /// The records, whose places are those in [`SPOOLED`].
    records: Vec<Record>,
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

/// Puts aside what the copy lacked when it was taken over.
pub(super) fn keep(
    primary: &mut dyn Disk,
    share: &mut dyn Disk,
    taken: Option<&Taken>,
) -> io::Result<()> {
    let Some(taken) = taken.filter(|_| len_of_log(primary)) else { return Ok(()) };
    if exists(primary, LACKING)? {
        return Ok(());
    }
    let beyond = find(primary, share, taken)?;
    let words = told(&beyond, taken);
    if words.is_empty() {
        return Ok(());
    }
    for log in [EVENTS, ACCT] {
        let name = format!("{log}.{REPLACED}.{}", taken.time);
        if !exists(primary, &name)? {
            // only for whoever wants to look
            let _ = primary.link(log, &name);
        }
    }
    let mut lacking = Lacking { words, records: beyond.records };
    let bytes = move_spooled(primary, &mut lacking.records)?;
    write_small(primary, SPOOLED, PRIVATE, &bytes)?;
    primary.sync_dir(INFO)?;
    write(primary, &lacking)
}

/// Words on all that the copy lacked.
fn told(beyond: &Beyond, taken: &Taken) -> Vec<String> {
    let mut words = Vec::new();
    if !beyond.jobs.is_empty() {
        let jobs = named(&beyond.jobs);
        let text = "were missing from the copy; they come back from this host's log";
        words.push(format!("jobs {jobs} {text}"));
    }
    if !beyond.changed.is_empty() {
        words.push(format!(
            "host {} has continued from an earlier state of jobs {}: the last records of this host \
             on them are in {EVENTS}.{REPLACED}.{}",
            taken.by,
            named(&beyond.changed),
            taken.time
        ));
    }
    if beyond.others > 0 {
        words.push(format!(
            "{} records of queues, hosts and job groups that were missing from the copy are not \
             applied; they are in {EVENTS}.{REPLACED}.{}",
            beyond.others, taken.time
        ));
    }
    words
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

/// Looks through the primary log as it was, and through the old logs that were switched away since
/// the copy was made.
fn find(primary: &mut dyn Disk, share: &mut dyn Disk, taken: &Taken) -> io::Result<Beyond> {
    let known = known_lines(share, taken)?;
    let mut beyond = Beyond::default();
    each_line(primary, EVENTS, &mut |line| {
        let Ok(record) = read_record(line) else { return };
        let job = job_of(&record.event).job;
        let begins = matches!(record.event, Event::JobNew(_));
        if known.lines.contains(&mark_of(line)) {
            return;
        }
        match job {
            0 if is_control(&record.event) => beyond.others += 1,
            0 => {}
            _ if begins && !known.jobs.contains(&job) || beyond.jobs.contains(&job) => {
                beyond.jobs.insert(job);
                beyond.records.push(record);
            }
            _ => drop(beyond.changed.insert(job)),
        }
    })?;
    for number in 1.. {
        let name = format!("{EVENTS}.{number}");
        let head = checksums::read(primary, &sum_of(&name))?.head;
        if head.is_none_or(|head| head.spool < taken.spool) || !exists(primary, &name)? {
            break;
        }
        each_line(primary, &name, &mut |line| {
            let Ok(record) = read_record(line) else { return };
            let job = job_of(&record.event).job;
            if job != 0 && !beyond.jobs.contains(&job) && !known.lines.contains(&mark_of(line)) {
                beyond.changed.insert(job);
            }
        })?;
    }
    Ok(beyond)
}

/// The contents of the shared log, and of its old logs that were continued since the takeover.
#[derive(Default)]
struct Known {
    /// The mark of each line.
    lines: HashSet<u64>,
    jobs: HashSet<u32>,
}

impl Known {
    fn add(&mut self, line: &[u8]) {
        self.lines.insert(mark_of(line));
        if let Ok(record) = read_record(line) {
            self.jobs.insert(job_of(&record.event).job);
        }
    }
}

fn known_lines(share: &mut dyn Disk, taken: &Taken) -> io::Result<Known> {
    let mut known = Known::default();
    each_line(share, EVENTS, &mut |line| known.add(line))?;
    for number in 1.. {
        let name = format!("{EVENTS}.{number}");
        let file = match share.open(&name, None) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => break,
            open => open?,
        };
        let head = read_head(share, file);
        share.close(file);
        // the first line of an old log is the time of its newest record
        if head?.0.is_some_and(|newest| newest < taken.time) {
            break;
        }
        each_line(share, &name, &mut |line| known.add(line))?;
    }
    Ok(known)
}

/// A number by which a line is recognised.
fn mark_of(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(line);
    hasher.finish()
}

/// Gives the lines that can be read. Behind all checksum entries the first line that cannot be read
/// ends it: the rest was torn by a loss of power, and never acknowledged.
fn each_line(disk: &mut dyn Disk, name: &str, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let entries = checksums::read(disk, &sum_of(name))?.entries;
    let covered = entries.last().map_or(0, |entry| entry.end());
    let file = disk.open(name, None)?;
    let done = each_line_of(disk, file, covered, each);
    disk.close(file);
    done
}

fn each_line_of(
    disk: &mut dyn Disk,
    file: FileId,
    covered: u64,
    each: &mut dyn FnMut(&[u8]),
) -> io::Result<()> {
    let (_, head) = read_head(disk, file)?;
    let limit = disk.len(file)?;
    let mut walker = RecordWalker::new(file, head, limit, Vec::new());
    let mut line = Vec::new();
    while let Some(step) = walker.step(disk, &mut line)? {
        match step.what {
            PlaceContents::Text if read_record(&line).is_ok() => each(&line),
            _ if step.at >= covered => break,
            _ => {}
        }
    }
    Ok(())
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
            | Event::Reservation(_)
            | Event::ReservationEnd { .. }
            | Event::ReservationNext { .. }
    )
}

/// Gathers the spooled bytes of the records, which refer to the places in them from then on.
fn move_spooled(primary: &mut dyn Disk, records: &mut [Record]) -> io::Result<Vec<u8>> {
    let mut moved: BTreeMap<(u32, u64, u32), u64> = BTreeMap::new();
    let mut bytes = Vec::new();
    let mut reader = spool::SpoolReader::default();
    for record in records {
        for at in places(&mut record.event).into_iter().filter(|at| at.len > 0) {
            let key = (at.spool, at.at, at.len);
            let place = match moved.get(&key) {
                Some(place) => *place,
                None => {
                    let place = bytes.len() as u64;
                    bytes.extend_from_slice(&reader.read(primary, *at)?);
                    moved.insert(key, place);
                    place
                }
            };
            *at = SpoolRef { spool: 0, at: place, len: at.len };
        }
    }
    reader.forget(primary);
    Ok(bytes)
}

fn write(primary: &mut dyn Disk, lacking: &Lacking) -> io::Result<()> {
    let mut text = Vec::new();
    for words in &lacking.words {
        text.extend_from_slice(format!("{TOLD_LINE}{words}\n").as_bytes());
    }
    lacking.records.iter().for_each(|record| write_record(record, &mut text));
    text.extend_from_slice(END);
    let temp = format!("{COPY}{LACKING}");
    write_small(primary, &temp, PUBLIC, &text)?;
    primary.rename(&temp, LACKING)?;
    primary.sync_dir("")
}

fn places(event: &mut Event) -> Vec<&mut SpoolRef> {
    match event {
        Event::JobNew(new) => vec![&mut new.env, &mut new.script, &mut new.exact],
        Event::JobModify(m) => vec![&mut m.env, &mut m.script, &mut m.exact],
        Event::JobAttachment(a) => vec![&mut a.data],
        _ => Vec::new(),
    }
}

fn whole(primary: &mut dyn Disk, name: &str) -> io::Result<Option<Vec<u8>>> {
    let len = len_of(primary, name)?.min(MAX_BYTES);
    read_small(primary, name, len as usize)
}

/// All that was put aside; `None`: nothing.
fn read(primary: &mut dyn Disk) -> io::Result<Option<Lacking>> {
    let Some(text) = whole(primary, LACKING)? else { return Ok(None) };
    let damaged = || io::Error::other(format!("{LACKING} is damaged"));
    let text = text.strip_suffix(END).ok_or_else(damaged)?;
    let mut lacking = Lacking::default();
    for line in text.split_inclusive(|b| *b == b'\n') {
        if line.first() != Some(&b'#') {
            lacking.records.push(read_record(line).map_err(|_| damaged())?);
            continue;
        }
        let line = String::from_utf8_lossy(line);
        if let Some(words) = line.trim_end().strip_prefix(TOLD_LINE) {
            lacking.words.push(words.to_owned());
        }
    }
    Ok(Some(lacking))
}

/// Appends the records that were put aside to the log that was opened, and tells in words what the
/// copy lacked, once at least. `true`: the log is to be recovered again, with the records.
pub fn bring_back<D: Disk>(
    store: &mut Store<D>,
    found: &Recovered,
    tell: &mut dyn FnMut(&str),
) -> Result<bool, Fail> {
    let lacking = read(store.disk()).map_err(said(LACKING))?;
    let Some(Lacking { words, records }) = lacking else { return Ok(false) };
    let bytes = whole(store.disk(), SPOOLED).map_err(said(SPOOLED))?.unwrap_or_default();
    let jobs: HashSet<u32> = records.iter().map(|r| job_of(&r.event).job).collect();
    let there = found.records.iter().filter(|r| jobs.contains(&job_of(&r.event).job));
    let there: HashSet<Vec<u8>> = there.map(without_places).collect();
    let mut batch = Batch::default();
    let (mut end, mut moved) = (found.spool_end, BTreeMap::new());
    for mut record in records.into_iter().filter(|r| !there.contains(&without_places(r))) {
        for at in places(&mut record.event).into_iter().filter(|at| at.len > 0) {
            let from = at.at as usize;
            let Some(data) = bytes.get(from..from + at.len as usize) else {
                return Err(Fail::Fatal(format!("{SPOOLED}: shorter than byte {from}")));
            };
            let key = (at.at, at.len);
            let known = moved.get(&key).copied();
            *at = known.unwrap_or(SpoolRef { spool: found.spool.max(1), at: end, len: at.len });
            if known.is_none() {
                batch.spool(*at, data);
                end += u64::from(at.len);
                moved.insert(key, *at);
            }
        }
        batch.append(&record);
    }
    if !batch.is_empty() {
        store.commit(&batch, 0, &mut |_| {})?;
    }
    words.iter().for_each(|text| tell(text));
    remove(store.disk(), LACKING).map_err(said(LACKING))?;
    store.disk().sync_dir("").map_err(said(LACKING))?;
    // without the records nobody reads it
    let _ = remove(store.disk(), SPOOLED);
    Ok(!batch.is_empty())
}

/// The line of a record that refers to no places in the spool.
fn without_places(record: &Record) -> Vec<u8> {
    let mut record = record.clone();
    places(&mut record.event).into_iter().for_each(|at| *at = SpoolRef::default());
    let mut line = Vec::new();
    write_record(&record, &mut line);
    line
}
