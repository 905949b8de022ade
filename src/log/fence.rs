//! Taking the log over from a run that may still be writing it: one that was stopped between the
//! look at the owner file and its write, whose host was cut off, whose pages another system writes
//! back late. The lock of that run may be gone; its open files are not.
//!
//! The log is taken in three steps, each durable before the next:
//!
//! 1. The owner file is claimed. A run reads the owner file once more between its sync and its
//!    reply, so that nothing it acknowledged is synced later than this.
//! 2. Files that the earlier run was about to rename are removed: their names contain its word. A
//!    run that makes one later finds itself disowned before it renames.
//! 3. The files that are written by place get a new file under the same name: whatever the earlier
//!    run still writes or cuts goes to a file without a name. The spool is continued in a new file
//!    that is made exclusively.
//!
//! Step 3 is left out where the earlier run is known to have ended. The copies are made in the
//! order in which a commit finishes, last first, so that each may lack what the next one has, never
//! the other way round: a checksum entry without its record would be damage. A large lsb.acct is
//! copied later (`acct_copy`), and not written before.

use super::disk::{Disk, INFO, PRIVATE, PUBLIC, len_of, read_full, remove};
use super::owner::{self, Owner};
use super::{ACCT, EVENTS, EVENTS_SUM, spool};
use std::io;

/// Beginning of the names of copies that have not got their names yet; the run's word follows.
pub(super) const COPY: &str = "lsb.copy.";
/// Bytes copied at a time.
const SLICE: usize = 4 << 20;

/// A file that gets a new one in its place.
struct ReplacedFile {
    name: String,
    temp: String,
    mode: u32,
}

/// Removes copies that an earlier run did not give their names. The log must be claimed.
pub(super) fn discard_copies(disk: &mut dyn Disk) -> io::Result<()> {
    for dir in ["", INFO] {
        let names = disk.list(dir)?;
        for name in names.iter().filter(|name| name.starts_with(COPY)) {
            remove(disk, &inside(dir, name))?;
        }
    }
    Ok(())
}

fn inside(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_string() } else { format!("{dir}/{name}") }
}

/// Puts new files in the places of those that an earlier run may still write. The log must be
/// claimed by `owner`, and the newest spool file is the last that may be written. `false`: lsb.acct
/// is longer than `max_acct` bytes and has still to be copied.
pub(super) fn renew(disk: &mut dyn Disk, owner: &Owner, max_acct: u64) -> io::Result<bool> {
    let mut all = vec![fresh(owner, EVENTS_SUM, PUBLIC)];
    let copies_acct = len_of(disk, ACCT)? <= max_acct;
    if copies_acct {
        all.push(fresh(owner, ACCT, PUBLIC));
    }
    all.push(fresh(owner, EVENTS, PUBLIC));
    if let Some(number) = spool::list(disk)?.pop() {
        let names = [spool::sum_name(number), spool::name(number)];
        all.extend(names.iter().map(|name| fresh(owner, name, PRIVATE)));
    }
    let done = renew_all(disk, owner, &all);
    if done.is_err() {
        // what cannot be removed now is removed at the next start
        all.iter().for_each(|file| drop(disk.remove(&file.temp)));
    }
    done.map(|()| copies_acct)
}

fn fresh(owner: &Owner, name: &str, mode: u32) -> ReplacedFile {
    ReplacedFile { name: name.to_string(), temp: copy_name(&owner.run, name), mode }
}

/// The name that the copy of a file has in the meantime, in the same directory.
pub(super) fn copy_name(run: &str, name: &str) -> String {
    match name.rsplit_once('/') {
        Some((dir, name)) => format!("{dir}/{COPY}{run}.{name}"),
        None => format!("{COPY}{run}.{name}"),
    }
}

fn renew_all(disk: &mut dyn Disk, owner: &Owner, all: &[ReplacedFile]) -> io::Result<()> {
    let mut copied = Vec::new();
    for file in all {
        if copy(disk, file)? {
            copied.push(file);
        }
    }
    if !owner.holds(disk)? {
        return Err(owner::taken());
    }
    for file in copied {
        disk.rename(&file.temp, &file.name)?;
    }
    disk.sync_dir("")?;
    disk.sync_dir(INFO)
}

/// `false` where there is nothing to copy.
fn copy(disk: &mut dyn Disk, file: &ReplacedFile) -> io::Result<bool> {
    let from = match disk.open(&file.name, None) {
        Ok(from) => from,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    let to = match disk.create_new(&file.temp, file.mode) {
        Ok(to) => to,
        Err(e) => {
            disk.close(from);
            return Err(e);
        }
    };
    let mut copied = || -> io::Result<()> {
        let len = disk.len(from)?;
        let mut buf = vec![0; SLICE.min(len as usize)];
        let mut at = 0;
        while at < len {
            let want = buf.len().min((len - at) as usize);
            let got = read_full(disk, from, at, &mut buf[..want])?;
            if got == 0 {
                break;
            }
            disk.write_at(to, at, &buf[..got])?;
            at += got as u64;
        }
        disk.sync(to)
    };
    let done = copied();
    disk.close(from);
    disk.close(to);
    done.map(|()| true)
}
