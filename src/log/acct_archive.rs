//! Archives lsb.acct: lsb.acct.N becomes N+1, lsb.acct gets lsb.acct.1 as a second name, and a new
//! file is renamed over lsb.acct (lsb.acct(5)).
//!
//! No record is lost and none is there twice, wherever a crash falls: the old file is synced
//! before, has a name at each step, and a second name of lsb.acct that is left behind is removed
//! ([`one_name`]). The new file has the run's word in its name until then: a run that was stopped
//! here while another one took the log over ([`super::fence`]) finds nothing to rename. The next
//! start looks in the archives, too, for the ends that the events tell of (`acct`).
//!
//! One turn of the log thread moves a bounded number of archives, the oldest first: the gap that
//! they leave shows the next turn where it goes on, after a crash, too.
//!
//! Names alone are changed: a symbolic link among them is moved or removed, never followed.

use super::codec::name_and_time;
use super::disk::{Disk, FileId, PUBLIC, Tail, read_full, remove};
use super::fail::{Fail, fatal, said};
use super::log_files::LogFiles;
use super::switch_names::same;
use super::{ACCT, ACCT_OLD, fence, owner};
use crate::proto::machine::AcctArchive;
use std::io;

/// Bytes at the beginning of a file in which the time of its first record stands.
const HEAD: usize = 256;
/// Archives that one turn gives other names, or removes.
pub(super) const MOST_NAMES: usize = 1000;

/// How far lsb.acct was archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archived {
    NotDue,
    /// Older archives were moved, and more are to be moved first: the order is to be given again.
    InPart,
    Whole,
}

/// The numbers of the archives that there are, newest first.
pub(super) fn numbers(disk: &mut dyn Disk) -> io::Result<Vec<u32>> {
    let number = |name: &String| {
        let digits = name.strip_prefix(ACCT)?.strip_prefix('.')?;
        let number = digits.parse::<u32>().ok()?;
        (number > 0 && number.to_string() == digits).then_some(number)
    };
    let mut all: Vec<u32> = disk.list("")?.iter().filter_map(number).collect();
    all.sort_unstable();
    Ok(all)
}

/// The name of an archive.
pub(super) fn name(number: u32) -> String {
    format!("{ACCT}.{number}")
}

/// The time of the first record of a file; `None`: there is none that can be read.
pub(super) fn begun(disk: &mut dyn Disk, file: FileId) -> io::Result<Option<i64>> {
    let mut head = [0; HEAD];
    let got = read_full(disk, file, 0, &mut head)?;
    Ok(name_and_time(&head[..got]).map(|(_, time)| time))
}

/// Takes back the second name of lsb.acct, which an archiving left that was not completed.
pub(super) fn one_name(disk: &mut dyn Disk) -> io::Result<()> {
    if same(disk, ACCT, ACCT_OLD)? {
        remove(disk, ACCT_OLD)?;
    }
    Ok(())
}

/// Is lsb.acct to be archived now? Of one without records there is nothing to archive.
pub(super) fn is_due<D: Disk>(files: &mut LogFiles<D>, order: &AcctArchive) -> io::Result<bool> {
    let Tail { file, len } = files.acct;
    if len == 0 {
        return Ok(false);
    }
    if order.larger_than.is_some_and(|most| len > most) {
        return Ok(true);
    }
    let Some(before) = order.begun_before else { return Ok(false) };
    Ok(begun(&mut files.disk, file)?.is_some_and(|begun| begun < before))
}

/// Archives lsb.acct, which must not be copied or be part of a switch at this time, and removes the
/// archives that are too many.
pub(super) fn archive<D: Disk>(
    files: &mut LogFiles<D>,
    keep: Option<u32>,
) -> Result<Archived, Fail> {
    one_name(&mut files.disk).map_err(said(ACCT_OLD))?;
    files.check_owner_now()?;
    if !make_room(&mut files.disk).map_err(said(ACCT_OLD))? {
        return Ok(Archived::InPart);
    }
    files.disk.sync(files.acct.file).map_err(fatal(ACCT))?;
    if !files.disk.named(files.acct.file, ACCT).map_err(said(ACCT))? {
        let why =
            "the file was replaced or removed; it is archived after the next start of mbatchd";
        return Err(Fail::Write(format!("{ACCT}: {why}")));
    }
    let temp = fence::copy_name(files.run(), ACCT);
    remove(&mut files.disk, &temp).map_err(said(ACCT))?;
    let new = files.disk.create_new(&temp, PUBLIC).map_err(said(ACCT))?;
    match change_names(files, &temp) {
        Ok(()) => {}
        Err(fail) => {
            files.disk.close(new);
            // what cannot be removed now is removed at the next start
            let _ = files.disk.remove(&temp);
            return Err(fail);
        }
    }
    files.disk.close(files.acct.file);
    files.acct = Tail { file: new, len: 0 };
    remove_beyond(&mut files.disk, keep)?;
    Ok(Archived::Whole)
}

fn change_names<D: Disk>(files: &mut LogFiles<D>, temp: &str) -> Result<(), Fail> {
    files.check_owner_now()?;
    let disk = &mut files.disk;
    match disk.link(ACCT, ACCT_OLD) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(said(ACCT_OLD)(e)),
        // no second names here
        Err(_) => disk.rename(ACCT, ACCT_OLD).map_err(said(ACCT_OLD))?,
        Ok(()) => {}
    }
    // the name must be there before the other one is gone
    disk.sync_dir("").map_err(fatal("the log directory"))?;
    match disk.rename(temp, ACCT) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(Fail::Fatal(format!("{ACCT}: {}", owner::taken())));
        }
        renamed => renamed.map_err(said(ACCT))?,
    }
    disk.sync_dir("").map_err(fatal("the log directory"))
}

/// Moves lsb.acct.1 and those behind it up by one, as far as there is no gap; `false`: only the
/// last ones of them.
fn make_room(disk: &mut dyn Disk) -> io::Result<bool> {
    let all = numbers(disk)?;
    let free = (1..).zip(&all).find(|(want, is)| want != *is).map(|(want, _)| want);
    let free = free.unwrap_or(all.len() as u32 + 1);
    let first = free.saturating_sub(MOST_NAMES as u32).max(1);
    (first..free).rev().try_for_each(|number| disk.rename(&name(number), &name(number + 1)))?;
    Ok(first == 1)
}

/// Removes the archives beyond the newest ones that are kept, the oldest first; those that are too
/// many for one turn with the next archive.
fn remove_beyond(disk: &mut dyn Disk, keep: Option<u32>) -> Result<(), Fail> {
    let Some(keep) = keep else { return Ok(()) };
    let all = numbers(disk).map_err(said(ACCT_OLD))?;
    let beyond = all.into_iter().rev().take_while(|number| *number > keep);
    for number in beyond.take(MOST_NAMES) {
        remove(disk, &name(number)).map_err(said(ACCT_OLD))?;
    }
    Ok(())
}
