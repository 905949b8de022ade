//! Repairs by [`super::store::Store::open`] before the log can be written, as recovery's plan says.

use super::checksums::{self, ChecksumHead};
use super::disk::{Disk, FileId, INFO, PRIVATE, PUBLIC, Tail, exists, read_full};
use super::fail::{Fail, fatal, said};
use super::log_files::taken;
use super::owner::OWNER;
use super::record_walk::{HEAD, head_line};
use super::recover::found::{MAX_LAG, RecoveryPlan};
use super::{EVENTS, EVENTS_SUM, spool};
use std::io;

/// File into which a doubtful tail is put aside.
const CUT: &str = "lsb.events.cut";

/// Head of a checksum file where none is known.
pub(super) const FIRST_HEAD: ChecksumHead = ChecksumHead { spool: 1, acct_at: 0, acct_crc: 0 };

/// Longest stretch that is written anew, bytes: what is older has long been written back.
const MAX_REWRITE: u64 = MAX_LAG;

/// Bytes written anew at a time.
const REWRITE: usize = 1 << 20;

/// Writes what a file has from a place on once more. After a sync that failed, the system counts
/// it as written though it is not: no later sync would cover it.
pub(super) fn rewrite<D: Disk>(disk: &mut D, tail: Tail, from: u64) -> io::Result<()> {
    let mut at = from.max(tail.len.saturating_sub(MAX_REWRITE));
    let mut buf = vec![0; REWRITE.min(tail.len.saturating_sub(at) as usize)];
    while at < tail.len {
        let want = buf.len().min((tail.len - at) as usize);
        let got = read_full(disk, tail.file, at, &mut buf[..want])?;
        if got == 0 {
            break;
        }
        disk.write_at(tail.file, at, &buf[..got])?;
        at += got as u64;
    }
    Ok(())
}

/// Writes the records' pieces in the spool once more. The spool is synced before the records are.
pub(super) fn rewrite_spooled<D: Disk>(disk: &mut D, plan: &RecoveryPlan) -> Result<(), Fail> {
    let places = &plan.spooled;
    let mut numbers: Vec<u32> = places.iter().filter(|at| at.len > 0).map(|at| at.spool).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let name = spool::name(number);
        if !exists(disk, &name).map_err(said("the spool"))? {
            continue;
        }
        let file = disk.open(&name, Some(PRIVATE)).map_err(said("the spool"))?;
        if !plan.owner.holds(disk).map_err(said(OWNER))? {
            return Err(taken());
        }
        let here = places.iter().filter(|at| at.spool == number && at.len > 0);
        let from = here.clone().map(|at| at.at).min().unwrap_or(0);
        let end = here.map(|at| at.at.saturating_add(u64::from(at.len))).max().unwrap_or(0);
        let len = disk.len(file).map_err(said("the spool"))?.min(end);
        rewrite(disk, Tail { file, len }, from).map_err(said("the spool"))?;
        disk.sync(file).map_err(fatal("the spool"))?;
        disk.close(file);
    }
    if !places.is_empty() {
        disk.sync_dir(INFO).map_err(fatal("the spool"))?;
    }
    Ok(())
}

pub(super) fn mend_events<D: Disk>(
    disk: &mut D,
    file: FileId,
    plan: &RecoveryPlan,
) -> Result<Tail, Fail> {
    let mut len = plan.end;
    if let Some(to) = plan.cut.filter(|_| plan.save_cut) {
        save_cut(disk, file, plan.end, to)?;
    }
    // the head line goes first: a log of no bytes is one that was taken away
    if plan.write_head {
        let head = head_line(HEAD as i64);
        disk.write_at(file, 0, &head).map_err(said(EVENTS))?;
        len = len.max(head.len() as u64);
    }
    if plan.cut.is_some() {
        disk.truncate(file, len).map_err(said(EVENTS))?;
    }
    if plan.end_line {
        disk.write_at(file, len, b"\n").map_err(said(EVENTS))?;
        len += 1;
    }
    Ok(Tail { file, len })
}

/// Keeps what is cut and might hold whole records.
fn save_cut<D: Disk>(disk: &mut D, file: FileId, from: u64, to: u64) -> Result<(), Fail> {
    let mut buf = vec![0; (to - from).min(MAX_LAG) as usize];
    let got = read_full(disk, file, from, &mut buf).map_err(said(EVENTS))?;
    let copy = disk.open(CUT, Some(PUBLIC)).map_err(said(CUT))?;
    let len = disk.len(copy).map_err(said(CUT))?;
    let done = disk.write_at(copy, len, &buf[..got]).and_then(|()| disk.sync(copy));
    disk.close(copy);
    done.map_err(said(CUT))
}

pub(super) fn mend_sum<D: Disk>(
    disk: &mut D,
    file: FileId,
    plan: &RecoveryPlan,
) -> Result<Tail, Fail> {
    if plan.sum_head.is_none() && plan.mend.is_none() {
        disk.write_at(file, 0, &FIRST_HEAD.put()).map_err(said(EVENTS_SUM))?;
        disk.sync(file).map_err(said(EVENTS_SUM))?;
    }
    let len = plan.sum_len.max(checksums::ENTRY as u64);
    if !plan.stale {
        disk.truncate(file, len).map_err(said(EVENTS_SUM))?;
    }
    Ok(Tail { file, len })
}
