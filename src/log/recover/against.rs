//! The log held against what lies beside it. A log that is gone, or an older copy that was put
//! back, reads well by itself; that it is not the last one shows in the owner file, the mark of the
//! last run, the ends in lsb.acct and the pieces in the spool. A contradiction ends the start with
//! words, until the administrator says that it goes on from there (`badmin acceptlog`). Then jobs
//! that are not over are held, numbers go on beyond all that is known, and what was closed stays
//! closed where an old log tells it.
//!
//! Damage that the checksums name is none of this: the rest of the log is the last one.

use super::super::checksums;
use super::super::disk::{Disk, INFO, PUBLIC, exists, read_small, remove, write_small};
use super::super::owner::OWNER;
use super::super::record_walk::HEAD;
use super::super::{ACCT, EVENTS, acct, spool};
use super::found::{Base, RecoverError, RecoveryNotice, RecoveryResult, failed};
use super::records::for_each_record;
use super::scan::LogScan;
use crate::model::JobRef;
use crate::model::event::{Ctrl, Event, Record};
use std::collections::BTreeMap;
use std::io;

/// The contradictions that the administrator accepted: the CRC-32 of the words.
pub const ACCEPT: &str = "lsb.events.accept";
/// Beginning of the name of a run's mark in the private directory; the run's word follows.
const MARK: &str = "lsb.mark.";
/// First word of a mark.
const TITLE: &str = "lsb.mark.1";
/// Bytes of a mark.
const MARK_LEN: usize = 80;

/// The state of the log when a run checked it last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunMark {
    /// The spool file that was begun with it: a later log has a larger one.
    pub spool: u32,
    /// Bytes that were durable.
    pub len: u64,
}

impl RunMark {
    /// The name of a run's mark.
    pub fn name(run: &str) -> String {
        format!("{INFO}/{MARK}{run}")
    }

    /// One line of fixed length.
    pub fn text(&self) -> Vec<u8> {
        let text = format!("{TITLE} {} {} ", self.spool, self.len);
        let mut line = format!("{text}{:08x}", crc32fast::hash(text.as_bytes())).into_bytes();
        line.resize(MARK_LEN - 1, b' ');
        line.push(b'\n');
        line
    }

    fn parse(line: &[u8]) -> Option<RunMark> {
        let line = std::str::from_utf8(line).ok()?;
        let (text, crc) = line.trim_end().rsplit_once(' ')?;
        let right =
            u32::from_str_radix(crc, 16).ok()? == crc32fast::hash(format!("{text} ").as_bytes());
        let mut words = text.strip_prefix(TITLE)?.split_whitespace();
        let mark = RunMark { spool: words.next()?.parse().ok()?, len: words.next()?.parse().ok()? };
        right.then_some(mark)
    }

    /// The newest there is.
    fn newest(disk: &mut dyn Disk) -> io::Result<Option<RunMark>> {
        let mut newest = None;
        for name in disk.list(INFO)?.iter().filter(|name| name.starts_with(MARK)) {
            let line = read_small(disk, &format!("{INFO}/{name}"), MARK_LEN)?;
            newest = newest.max(line.and_then(|line| RunMark::parse(&line)));
        }
        Ok(newest)
    }

    /// Removes those of earlier runs.
    pub fn discard_others(disk: &mut dyn Disk, run: &str) -> io::Result<()> {
        let own = format!("{MARK}{run}");
        for name in disk.list(INFO)?.iter().filter(|n| n.starts_with(MARK) && **n != own) {
            remove(disk, &format!("{INFO}/{name}"))?;
        }
        Ok(())
    }
}

/// Bytes of the log with this head that were durable when a run checked it, as far as is known.
pub(super) fn durable_len(
    disk: &mut dyn Disk,
    head: Option<checksums::ChecksumHead>,
) -> io::Result<u64> {
    let mark = RunMark::newest(disk)?;
    let of_this = |mark: &RunMark| head.is_some_and(|head| head.spool == mark.spool);
    Ok(mark.filter(of_this).map_or(0, |mark| mark.len))
}

/// The contradictions of the log, in words. `owned`: there was an owner file.
pub(super) fn contradictions(
    disk: &mut dyn Disk,
    scan: &LogScan,
    owned: bool,
) -> io::Result<Vec<String>> {
    let mark = RunMark::newest(disk)?;
    if scan.file_len == 0 || scan.damage.is_empty() && scan.is_empty() {
        return without_records(disk, scan, owned, mark);
    }
    if !scan.damage.is_empty() {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    let (head, len) = (scan.sums.head, scan.file_len.max(scan.covered));
    if let Some(mark) = mark {
        let begun = head.map_or(mark.spool, |head| head.spool);
        if begun < mark.spool {
            out.push(format!("{EVENTS} is one that was switched away since"));
        } else if begun == mark.spool && len < mark.len {
            out.push(format!("{EVENTS} ends at byte {len}, and had {} bytes", mark.len));
        }
    }
    if let Some(end) = acct::ahead(disk, head, &scan.records, scan.times.newest)? {
        out.push(format!("{ACCT} has the end of job <{end}>, {EVENTS} has not"));
    }
    out.extend(spooled_beyond(disk, scan)?);
    Ok(out)
}

/// Contradictions to a log without a record. A first start has no other file that tells of records;
/// a switched log has LSF_SWITCHED at least.
fn without_records(
    disk: &mut dyn Disk,
    scan: &LogScan,
    owned: bool,
    mark: Option<RunMark>,
) -> io::Result<Vec<String>> {
    let mut out = Vec::new();
    if owned && scan.file_len == 0 {
        // the head line is durable before the first owner file is
        out.push(format!("{EVENTS} is missing or empty, and {OWNER} says that there was one"));
    } else if let Some(mark) = mark.filter(|mark| mark.len > HEAD) {
        out.push(format!("{EVENTS} has no record, and had {} bytes", mark.len));
    }
    let old = format!("{EVENTS}.1");
    if exists(disk, &old)? {
        out.push(format!("{old} is an older log, {EVENTS} has no record"));
    }
    match acct::last_job(disk)? {
        0 => {}
        job => out.push(format!("{ACCT} has the end of job <{job}>, {EVENTS} has no record")),
    }
    out.extend(spooled_beyond(disk, scan)?);
    Ok(out)
}

/// Is there anything that an earlier log may have left? Then epochs do not begin at 1: hosts may
/// have seen higher ones.
pub(super) fn is_beside(disk: &mut dyn Disk) -> io::Result<bool> {
    let old = format!("{EVENTS}.1");
    let known = disk.list("")?.iter().any(|name| *name == ACCT || *name == old);
    Ok(known || !disk.list(INFO)?.is_empty())
}

/// Is there a piece in the spool that a record refers to, and no record that does?
fn spooled_beyond(disk: &mut dyn Disk, scan: &LogScan) -> io::Result<Vec<String>> {
    let Some(number) = spool::list(disk)?.pop() else { return Ok(Vec::new()) };
    let (seen, end) = scan.spool.seen;
    let begun = scan.sums.head.map_or(0, |head| head.spool);
    let end = if seen == number { end } else { 0 };
    let entries = checksums::read(disk, &spool::sum_name(number))?.entries;
    let beyond = entries.iter().rfind(|e| e.job.job != 0 && e.end() > end);
    let words = |e: &checksums::ChecksumEntry| {
        let name = spool::name(number);
        format!(
            "{name} contains the submission of job <{}>, which {EVENTS} does not contain",
            e.job.job
        )
    };
    Ok(beyond.filter(|_| number >= seen.max(begun)).map(words).into_iter().collect())
}

/// Has the administrator accepted just this?
pub(super) fn is_accepted(disk: &mut dyn Disk, all: &[String]) -> io::Result<bool> {
    let text = read_small(disk, ACCEPT, MARK_LEN)?;
    Ok(text.is_some_and(|text| text == accepted(all)))
}

fn accepted(all: &[String]) -> Vec<u8> {
    format!("{:08x}\n", crc32fast::hash(all.join("\n").as_bytes())).into_bytes()
}

/// Accepts it: the next start goes on.
pub fn accept(disk: &mut dyn Disk, all: &[String]) -> io::Result<()> {
    write_small(disk, ACCEPT, PUBLIC, &accepted(all))?;
    disk.sync_dir("")
}

/// The contradictions of the log, for the command: nothing is changed.
pub fn look(disk: &mut dyn Disk) -> Result<Vec<String>, RecoverError> {
    let owned = exists(disk, OWNER).map_err(failed(OWNER))?;
    let mut scan = LogScan::open(disk, u64::MAX, false)?;
    scan.run(disk)?;
    contradictions(disk, &scan, owned).map_err(failed(EVENTS))
}

/// Goes on from what was found. `open`: jobs that are not over in this log.
pub(super) fn go_on(
    disk: &mut dyn Disk,
    found: &mut RecoveryResult,
    open: Vec<u32>,
    head_len: u64,
    now: i64,
) -> Result<(), RecoverError> {
    let known: Vec<u32> = found.recovered.damaged.iter().map(|(at, _)| at.job).collect();
    let why = format!("{EVENTS} is not the last one: the end of the job is unknown");
    let open = open.into_iter().filter(|job| !known.contains(job));
    found.recovered.damaged.extend(open.map(|job| (JobRef { job, idx: 0 }, why.clone())));
    let last = last_job(disk, &found.recovered.seen_ids).map_err(failed(ACCT))?;
    let (epoch, time) = (found.recovered.epoch, now.max(found.plan.newest));
    let event = Event::Carried { next_job: last.saturating_add(1), epoch };
    let mut records = vec![Record { time, event }];
    if found.recovered.records.iter().all(|r| matches!(r.event, Event::Carried { .. })) {
        records.extend(closed(disk).map_err(failed(EVENTS))?);
    }
    let mark = RunMark::newest(disk).map_err(failed(INFO))?.unwrap_or_default();
    let spool = found.recovered.spool.max(found.plan.spool_file).max(mark.spool) + 1;
    found.recovered.records.extend(records.iter().cloned());
    (found.recovered.spool, found.recovered.spool_end) = (spool, 0);
    let head = head_len == HEAD || found.plan.write_head;
    found.plan.base = Some(Base { records, spool, head });
    Ok(())
}

/// The largest job ID that anything beside the log knows.
fn last_job(disk: &mut dyn Disk, seen: &[u32]) -> io::Result<u32> {
    let mut last = seen.iter().copied().max().unwrap_or(0).max(acct::last_job(disk)?);
    for number in spool::list(disk)? {
        let entries = checksums::read(disk, &spool::sum_name(number))?.entries;
        last = entries.iter().map(|e| e.job.job).fold(last, u32::max);
    }
    for name in disk.list("")?.iter().filter(|n| n.starts_with(EVENTS) && n.ends_with(".sum")) {
        let entries = checksums::read(disk, name)?.entries;
        last = entries.iter().map(|e| e.job.job).fold(last, u32::max);
    }
    Ok(last)
}

/// The queues and hosts that the newest old log leaves closed.
fn closed(disk: &mut dyn Disk) -> io::Result<Vec<Record>> {
    let mut last: BTreeMap<(bool, String, String), Record> = BTreeMap::new();
    let name = format!("{EVENTS}.1");
    if !exists(disk, &name)? {
        return Ok(Vec::new());
    }
    for_each_record(disk, &name, &mut |record| {
        let (key, shut) = match &record.event {
            Event::HostCtrl { op, host, lock, .. } => {
                ((true, host.clone(), lock.clone()), *op == Ctrl::Close)
            }
            Event::QueueCtrl { op, queue, .. } => {
                let opens = matches!(op, Ctrl::Open | Ctrl::Close);
                let what = if opens { "open" } else { "active" };
                let shut = matches!(op, Ctrl::Close | Ctrl::Inactivate);
                ((false, queue.clone(), what.to_string()), shut)
            }
            _ => return true,
        };
        match shut {
            true => drop(last.insert(key, record)),
            false => drop(last.remove(&key)),
        }
        true
    })?;
    Ok(last.into_values().collect())
}

/// Words for each that was accepted.
pub(super) fn told(all: &[String]) -> impl Iterator<Item = RecoveryNotice> + '_ {
    all.iter()
        .map(|text| RecoveryNotice { level: log::Level::Warn, text: format!("{text}: accepted") })
}
