//! The names that files change at the end of a switch of the log, and how a change that a crash
//! interrupted is finished or taken back.
//!
//! The new log has the run's word in its name: a run that was stopped here while another one took
//! the log over ([`super::fence`]) finds nothing to rename, and has taken no name away. (Old logs
//! may then have moved up by one: that is history, not state.) Where the file system has no second
//! names, lsb.events is renamed to lsb.events.1 first.

use super::checksums;
use super::codec::{MAX_RECORD, read_record};
use super::disk::{Disk, FileId, PUBLIC, exists, read_full, remove};
use super::owner::{self, Owner};
use super::record_walk::{HEAD, RecordWalker, head_line, read_head};
use super::{EVENTS, EVENTS_SUM};
use std::io;

/// The log that is being made: the run's word follows.
pub(super) const NEW: &str = "lsb.events.new";

/// The ending of a log's checksum file.
const SUM: &str = ".sum";

/// The newest of the old logs.
pub(super) const OLD: &str = "lsb.events.1";

const OLD_SUM: &str = "lsb.events.1.sum";

pub(super) fn sum_of(name: &str) -> String {
    format!("{name}{SUM}")
}

/// Removes a log that was not completed; `false` where it has got its name meanwhile, and its
/// checksum file has not.
pub(super) fn discard(disk: &mut dyn Disk, name: &str) -> io::Result<bool> {
    if !remove(disk, name)? && exists(disk, &sum_of(name))? && is_sum_of(disk, name)? {
        return Ok(false);
    }
    remove(disk, &sum_of(name))?;
    Ok(true)
}

/// Takes back the second name that lsb.events got for a switch that was not completed.
pub(super) fn one_name(disk: &mut dyn Disk) -> io::Result<()> {
    for (first, second) in [(EVENTS_SUM, OLD_SUM), (EVENTS, OLD)] {
        if same(disk, first, second)? {
            remove(disk, second)?;
        }
    }
    Ok(())
}

/// Are these names of one file?
pub(super) fn same(disk: &mut dyn Disk, a: &str, b: &str) -> io::Result<bool> {
    let file = match disk.open(a, None) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    let named = disk.named(file, b);
    disk.close(file);
    named
}

/// Does the checksum file of this new log cover the present lsb.events? A head means that the
/// checksum file is complete; then its first and last entry are compared.
fn is_sum_of(disk: &mut dyn Disk, name: &str) -> io::Result<bool> {
    let sums = checksums::read(disk, &sum_of(name))?;
    if sums.head.is_none() || !exists(disk, EVENTS)? {
        return Ok(false);
    }
    let file = disk.open(EVENTS, None)?;
    let ends = [sums.entries.first(), sums.entries.last()];
    let mut right = Ok(true);
    for entry in ends.into_iter().flatten().filter(|e| e.len as usize <= MAX_RECORD) {
        let mut bytes = vec![0; entry.len as usize];
        let got = read_full(disk, file, entry.at, &mut bytes);
        right = right.and_then(|yes| Ok(yes & (crc32fast::hash(&bytes[..got?]) == entry.crc)));
    }
    disk.close(file);
    right
}

/// Moves lsb.events.1 and those behind it up by one, as far as there is no gap.
pub(super) fn make_room(disk: &mut dyn Disk) -> io::Result<()> {
    let names = disk.list("")?;
    let has = |name: &str| names.iter().any(|n| n == name);
    let mut free = 1u32;
    while has(&format!("{EVENTS}.{free}")) {
        free += 1;
    }
    for number in (1..free).rev() {
        let (from, to) = (format!("{EVENTS}.{number}"), format!("{EVENTS}.{}", number + 1));
        if has(&format!("{from}.sum")) {
            disk.rename(&format!("{from}.sum"), &format!("{to}.sum"))?;
        }
        disk.rename(&from, &to)?;
    }
    Ok(())
}

/// lsb.events becomes lsb.events.1 and the new log lsb.events; each step is durable before the
/// next where their order matters.
pub(super) fn change_names(
    disk: &mut dyn Disk,
    new: &str,
    old: FileId,
    newest: i64,
) -> io::Result<()> {
    if exists(disk, EVENTS_SUM)? {
        remove(disk, OLD_SUM)?;
        // without it bhist reads the old log as well
        let _ = disk.link(EVENTS_SUM, OLD_SUM);
    }
    match disk.link(EVENTS, OLD) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(e),
        // no second names here
        Err(_) => disk.rename(EVENTS, OLD)?,
        Ok(()) => {}
    }
    disk.sync_dir("")?;
    settle(disk, new, old, newest)
}

/// The rest of the work once the old log has its second name.
fn settle(disk: &mut dyn Disk, new: &str, old: FileId, newest: i64) -> io::Result<()> {
    match disk.rename(new, EVENTS) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(owner::taken()),
        done => done?,
    }
    disk.sync_dir("")?;
    settle_old(disk, new, old, newest)
}

/// The rest of the work once the new log has its name.
fn settle_old(disk: &mut dyn Disk, new: &str, old: FileId, newest: i64) -> io::Result<()> {
    disk.write_at(old, 0, &head_line(newest))?;
    disk.sync(old)?;
    disk.rename(&sum_of(new), EVENTS_SUM)?;
    disk.sync_dir("")
}

/// Puts a switch that a crash interrupted to its end or back; says so in words. The log must be
/// claimed.
pub fn finish_interrupted(disk: &mut dyn Disk, owner: &Owner) -> io::Result<Option<String>> {
    let mut told = None;
    let mut names: Vec<String> = disk.list("")?;
    names.retain(|name| name.starts_with(NEW));
    names.iter_mut().for_each(|name| name.truncate(name.strip_suffix(SUM).unwrap_or(name).len()));
    names.dedup();
    for new in names {
        told = Some(finish_one(disk, owner, &new)?);
    }
    one_name(disk)?;
    Ok(told)
}

fn finish_one(disk: &mut dyn Disk, owner: &Owner, new: &str) -> io::Result<String> {
    let completed = || format!("an interrupted switch of {EVENTS} was completed");
    if exists(disk, EVENTS)? {
        if discard(disk, new)? {
            return Ok(format!("a switch of {EVENTS} was interrupted; it will be tried again"));
        }
    } else if !exists(disk, new)? || !is_complete(disk, new)? || !exists(disk, OLD)? {
        discard(disk, new)?;
        return Ok(format!("{new} was not complete and is removed"));
    }
    if !exists(disk, OLD)? {
        disk.rename(&sum_of(new), EVENTS_SUM)?;
        disk.sync_dir("")?;
        return Ok(completed());
    }
    let old = disk.open(OLD, Some(PUBLIC))?;
    // opened before this, it is no later run's
    let done = owner.holds(disk).and_then(|holds| {
        let newest = if holds { newest_of(disk, old)? } else { return Err(owner::taken()) };
        match exists(disk, EVENTS)? {
            true => settle_old(disk, new, old, newest),
            false => settle(disk, new, old, newest),
        }
    });
    disk.close(old);
    done?;
    Ok(completed())
}

fn is_complete(disk: &mut dyn Disk, new: &str) -> io::Result<bool> {
    let file = disk.open(new, None)?;
    let head = read_head(disk, file);
    disk.close(file);
    Ok(matches!(head?, (Some(pos), HEAD) if pos >= HEAD as i64))
}

pub(super) fn newest_of(disk: &mut dyn Disk, file: FileId) -> io::Result<i64> {
    let (_, head) = read_head(disk, file)?;
    let limit = disk.len(file)?;
    let mut walker = RecordWalker::new(file, head, limit, Vec::new());
    let (mut newest, mut line) = (0, Vec::new());
    while walker.step(disk, &mut line)?.is_some() {
        if let Ok(record) = read_record(&line) {
            newest = newest.max(record.time);
        }
    }
    Ok(newest)
}
