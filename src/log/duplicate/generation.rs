//! Brings the copy to the primary's lsb.events of today. The copy may be of an older one, after one
//! or several switches: then it is completed from the old log that it is the beginning of, and the
//! later ones follow by the steps of a switch, so that the copy has the old logs, too.
//!
//! A copy that is the beginning of no log of the primary becomes an old log as it is.

use super::bytes::{On, TORN, Whole, append, common, replace};
use super::files::{Opened, Written};
use crate::log::checksums::{ChecksumEntry, ENTRY};
use crate::log::disk::{Disk, FileId, PUBLIC, Tail, exists, len_of, read_full};
use crate::log::extent::Extent;
use crate::log::owner::{self, Owner};
use crate::log::record_walk::HEAD;
use crate::log::switch_names::{NEW, change_names, discard, make_room, newest_of, sum_of};
use crate::log::{ACCT, EVENTS, EVENTS_SUM};
use std::io;

/// Most old logs that are looked through.
const MAX_OLD: u32 = 1000;

/// Bytes at the beginning of lsb.events by which a log is recognised: the time of the first record
/// is among them.
const BEGINNING: u64 = HEAD + 64;

/// Bytes of a checksum file that are read at a time; entries are not divided.
const SUM_SLICE: usize = ENTRY << 12;

/// Bytes at the end of lsb.acct by which it is recognised.
const ACCT_TAIL: u64 = 64 << 10;

/// The files that make a log of the copy, and how far each is to be copied.
struct Source {
    events: FileId,
    end: u64,
    sum: Option<(FileId, u64)>,
}

/// Makes the copy a beginning of the primary's lsb.events and opens its files. `None`: the primary
/// has begun another one meanwhile.
pub(super) fn line_up(
    primary: &mut dyn Disk,
    share: &mut dyn Disk,
    owner: &Owner,
    opened: &Opened,
    extent: Extent,
    is_still: &dyn Fn() -> bool,
) -> io::Result<Option<Written>> {
    let have = len_of(share, EVENTS)?;
    let mut sound = sound_len(primary, opened.events, share, extent.events)?;
    if sound == 0 {
        if have > 0 {
            catch_up(primary, share, owner, is_still)?;
        }
        if !is_still() {
            return Ok(None);
        }
        let sum = Some((opened.sum, extent.sum));
        let source = Source { events: opened.events, end: extent.events, sum };
        install(primary, share, owner, &source)?;
        sound = extent.events;
    }
    let sum_end = len_of(share, EVENTS_SUM)?;
    let of_copy = sum_len_for(primary, (opened.sum, extent.sum), sound)?;
    let sums = sum_end > 0 && sum_end <= of_copy;
    if !sums || !begins(primary, opened.sum, share, EVENTS_SUM, 0, sum_end)? {
        let (from, to) = (EVENTS_SUM, EVENTS_SUM);
        let whole = Whole { from, to, mode: PUBLIC, end: Some(of_copy) };
        replace(primary, share, &owner.run, &whole)?;
        if !is_still() {
            return Ok(None);
        }
    }
    line_up_acct(primary, share, owner, extent)?;
    share.sync_dir("")?;
    let mut open = |name| {
        let file = share.open(name, Some(PUBLIC))?;
        io::Result::Ok(Tail { file, len: share.len(file)? })
    };
    let mut written = Written { events: open(EVENTS)?, sum: open(EVENTS_SUM)?, acct: open(ACCT)? };
    written.events.len = sound;
    for tail in [&written.events, &written.sum, &written.acct] {
        share.sync(tail.file)?;
    }
    Ok(Some(written))
}

fn line_up_acct(
    primary: &mut dyn Disk,
    share: &mut dyn Disk,
    owner: &Owner,
    extent: Extent,
) -> io::Result<()> {
    let have = len_of(share, ACCT)?;
    let from = have.saturating_sub(ACCT_TAIL);
    let file = match primary.open(ACCT, None) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        open => open?,
    };
    let right =
        if have > extent.acct { Ok(false) } else { begins(primary, file, share, ACCT, from, have) };
    primary.close(file);
    if right? {
        return Ok(());
    }
    let whole = Whole { from: ACCT, to: ACCT, mode: PUBLIC, end: Some(extent.acct) };
    replace(primary, share, &owner.run, &whole)
}

/// The length up to which the copy's lsb.events can be continued; 0: it is of another log. At its
/// end there may be bytes that are not the primary's, after a loss of power or a takeover that came
/// to nothing; these are cut.
fn sound_len(
    primary: &mut dyn Disk,
    file: FileId,
    share: &mut dyn Disk,
    end: u64,
) -> io::Result<u64> {
    let have = len_of(share, EVENTS)?;
    if have == 0 {
        return Ok(0);
    }
    let copy = share.open(EVENTS, Some(PUBLIC))?;
    let on = On { disk: primary, file };
    let found = common(on, On { disk: share, file: copy }, 0, have.min(end));
    let found = found.and_then(|len| {
        if len < BEGINNING.min(end) || have - len > TORN {
            return Ok(0);
        }
        if len < have { share.truncate(copy, len).map(|()| len) } else { Ok(len) }
    });
    share.close(copy);
    found
}

/// The length up to which a checksum file, of which so much counts, is about the first `events`
/// bytes of its log. A master that reads the copy before the records behind these have come would
/// take each further entry for that of a record that was lost.
fn sum_len_for(disk: &mut dyn Disk, sum: (FileId, u64), events: u64) -> io::Result<u64> {
    let head = ENTRY as u64;
    let mut at = sum.1 - sum.1 % head;
    let mut buf = vec![0; SUM_SLICE.min(at as usize)];
    while at > head {
        let from = at.saturating_sub(buf.len() as u64).max(head);
        let part = &mut buf[..(at - from) as usize];
        let got = read_full(disk, sum.0, from, part)?;
        let of_copy = |bytes| ChecksumEntry::get(bytes).is_some_and(|entry| entry.end() <= events);
        if let Some(last) = part[..got].chunks_exact(ENTRY).rposition(of_copy) {
            return Ok(from + (last as u64 + 1) * head);
        }
        at = from;
    }
    Ok(head.min(sum.1))
}

/// Are the bytes `from .. end` of this file of the copy those of a file of the primary?
fn begins(
    primary: &mut dyn Disk,
    file: FileId,
    share: &mut dyn Disk,
    name: &str,
    from: u64,
    end: u64,
) -> io::Result<bool> {
    if end <= from {
        return Ok(true);
    }
    let copy = share.open(name, None)?;
    let on = On { disk: primary, file };
    let right = common(on, On { disk: share, file: copy }, from, end);
    share.close(copy);
    Ok(right? >= end)
}

fn old_name(number: u32) -> String {
    format!("{EVENTS}.{number}")
}

/// Completes the copy from the old log that it is the beginning of, and copies the logs after it.
fn catch_up(
    primary: &mut dyn Disk,
    share: &mut dyn Disk,
    owner: &Owner,
    is_still: &dyn Fn() -> bool,
) -> io::Result<()> {
    let Some(found) = find_old(primary, share)? else {
        log::warn!("the copy of {EVENTS} is of no log of this host; it becomes an old log");
        return Ok(());
    };
    if !is_still() {
        return Ok(());
    }
    complete(primary, share, owner, found)?;
    for number in (1..found).rev() {
        let events = primary.open(&old_name(number), None)?;
        let sum = primary.open(&sum_of(&old_name(number)), None).ok();
        let end = primary.len(events)?;
        let sum = match sum {
            Some(sum) => Some((sum, primary.len(sum)?)),
            None => None,
        };
        let source = Source { events, end, sum };
        let done = if is_still() { install(primary, share, owner, &source) } else { Ok(()) };
        primary.close(events);
        if let Some((sum, _)) = sum {
            primary.close(sum);
        }
        done?;
    }
    Ok(())
}

/// The number of the old log that the copy is the beginning of. The first line of an old log is not
/// the one that it had.
fn find_old(primary: &mut dyn Disk, share: &mut dyn Disk) -> io::Result<Option<u32>> {
    let have = len_of(share, EVENTS)?;
    for number in 1..=MAX_OLD {
        let file = match primary.open(&old_name(number), None) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            open => open?,
        };
        let right = begins(primary, file, share, EVENTS, HEAD.min(have), have);
        primary.close(file);
        if right? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

fn complete(
    primary: &mut dyn Disk,
    share: &mut dyn Disk,
    owner: &Owner,
    number: u32,
) -> io::Result<()> {
    let name = old_name(number);
    let from = primary.open(&name, None)?;
    let end = primary.len(from)?;
    let file = share.open(EVENTS, Some(PUBLIC))?;
    let mut to = Tail { file, len: share.len(file)? };
    let done = append(On { disk: primary, file: from }, share, &mut to, end);
    let done = done.and_then(|_| share.sync(file));
    primary.close(from);
    share.close(file);
    done?;
    let (from, to) = (&*sum_of(&name), EVENTS_SUM);
    replace(primary, share, &owner.run, &Whole { from, to, mode: PUBLIC, end: None })?;
    share.sync_dir("")
}

/// Puts a log in the place of the copy's lsb.events, which becomes lsb.events.1.
fn install(
    primary: &mut dyn Disk,
    share: &mut dyn Disk,
    owner: &Owner,
    source: &Source,
) -> io::Result<()> {
    let name = format!("{NEW}.{}", owner.run);
    discard(share, &name)?;
    let sum = share.open(&sum_of(&name), Some(PUBLIC))?;
    let mut to = Tail { file: sum, len: 0 };
    let done = match source.sum {
        Some((file, end)) => append(On { disk: primary, file }, share, &mut to, end).map(drop),
        None => Ok(()),
    };
    let done = done.and_then(|()| share.sync(sum));
    share.close(sum);
    done?;
    let new = share.open(&name, Some(PUBLIC))?;
    let done = fill(primary, share, new, source);
    share.close(new);
    done?;
    share.sync_dir("")?;
    if !owner.holds(share)? {
        return Err(owner::taken());
    }
    if !exists(share, EVENTS)? {
        share.rename(&sum_of(&name), EVENTS_SUM)?;
        share.rename(&name, EVENTS)?;
        return share.sync_dir("");
    }
    make_room(share)?;
    let old = share.open(EVENTS, Some(PUBLIC))?;
    let done = newest_of(share, old).and_then(|newest| change_names(share, &name, old, newest));
    share.close(old);
    done
}

/// Writes the records, and the first line last: without it the log is not complete.
fn fill(
    primary: &mut dyn Disk,
    share: &mut dyn Disk,
    new: FileId,
    source: &Source,
) -> io::Result<()> {
    let first = HEAD.min(source.end);
    let mut to = Tail { file: new, len: first };
    append(On { disk: primary, file: source.events }, share, &mut to, source.end)?;
    share.sync(new)?;
    let mut head = vec![0; first as usize];
    read_full(primary, source.events, 0, &mut head)?;
    share.write_at(new, 0, &head)?;
    share.sync(new)
}
