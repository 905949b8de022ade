//! The right to write the log: an fcntl lock beside lsb.events, and the owner file that says which
//! run of mbatchd holds it. The lock keeps a second mbatchd out; the owner file, read again around
//! each commit, stops a first one whose lock was lost.
//!
//! A run claims the log with a name of its own: what is renamed over the owner file carries the
//! run's word in its name, and whoever claims later removes it. A run that was stopped in between
//! then finds nothing to rename, however late it goes on.

use super::disk::{Disk, PUBLIC, open_regular, read_small, remove, write_small};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The owner file.
pub const OWNER: &str = "lsb.events.owner";
/// The lock file.
pub const LOCK: &str = "lsb.events.lock";
/// The file that a claim is written to first; the run's word follows.
const TEMP: &str = "lsb.events.owner.new";
/// First line of the owner file.
const TITLE: &str = "lsb.events owner 1";
/// Longest owner file, bytes.
const CAP: usize = 4096;
/// An epoch that no counting reaches: one from here on was not written by a run of mbatchd.
pub const NO_EPOCH: u64 = 1 << 62;

/// A run of mbatchd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub host: String,
    /// Boot id of that host.
    pub boot: String,
    /// Larger in each run.
    pub epoch: u64,
    /// A word that no other run has.
    pub run: String,
    /// The process of the run, in a form by which it can be recognised during the same boot.
    pub process: String,
}

/// The contents of the owner file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    Missing,
    Damaged,
    Is(Owner),
}

impl Owner {
    /// Two lines follow the end that earlier versions look for.
    pub fn text(&self) -> Vec<u8> {
        let Owner { host, boot, epoch, run, process } = self;
        let text = format!(
            "{TITLE}\nhost {host}\nboot {boot}\nepoch {epoch}\nend\nrun {run}\nprocess {process}\n"
        );
        text.into_bytes()
    }

    fn parse(bytes: &[u8]) -> Option<Owner> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.lines();
        let mut value = |name: &str| lines.next()?.strip_prefix(name).map(str::to_string);
        value(TITLE)?;
        let (host, boot) = (value("host ")?, value("boot ")?);
        let epoch = value("epoch ")?.parse().ok().filter(|epoch| *epoch < NO_EPOCH)?;
        value("end")?;
        let mut owner = Owner { host, boot, epoch, ..Owner::default() };
        // an earlier version wrote neither
        if let Some(run) = value("run ") {
            (owner.run, owner.process) = (run, value("process ")?);
        }
        text.ends_with('\n').then_some(owner)
    }

    /// Reads the owner file.
    pub fn read(disk: &mut dyn Disk) -> io::Result<Read> {
        Ok(match read_small(disk, OWNER, CAP)? {
            None => Read::Missing,
            Some(bytes) => Owner::parse(&bytes).map_or(Read::Damaged, Read::Is),
        })
    }

    /// Is it still this run that owns the log?
    pub fn holds(&self, disk: &mut dyn Disk) -> io::Result<bool> {
        let text = self.text();
        Ok(read_small(disk, OWNER, text.len() + 1)?.is_some_and(|now| now == text))
    }

    /// Makes this the owner, durably, where `before` is so still.
    pub fn claim(&self, disk: &mut dyn Disk, before: &Read) -> io::Result<()> {
        let temp = format!("{TEMP}.{}", self.run);
        let done = self.write(disk, &temp).and_then(|()| match Owner::read(disk)? == *before {
            true => disk.rename(&temp, OWNER),
            false => Err(taken()),
        });
        if let Err(e) = done {
            let _ = disk.remove(&temp);
            return Err(if e.kind() == io::ErrorKind::NotFound { taken() } else { e });
        }
        disk.sync_dir("")?;
        for name in disk.list("")?.iter().filter(|name| name.starts_with(TEMP)) {
            remove(disk, name)?;
        }
        Ok(())
    }

    fn write(&self, disk: &mut dyn Disk, temp: &str) -> io::Result<()> {
        write_small(disk, temp, PUBLIC, &self.text())
    }
}

/// The words of a run that finds another one's claim.
pub(super) fn taken() -> io::Error {
    io::Error::other("another mbatchd has taken over this event log")
}

/// The lock, held as long as this lives.
#[derive(Debug)]
pub struct LogLock {
    _file: File,
}

/// Why the lock is not to be had.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it; what the owner file says of it.
    Held {
        by: String,
    },
    /// Locks do not work on this file system.
    NoLocks(io::Error),
    /// Locks are granted to everybody on this file system.
    FakeLocks,
    Io(io::Error),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Held { by } if by.is_empty() => {
                write!(f, "{LOCK} is held: another mbatchd writes this event log")
            }
            LockError::Held { by } => {
                write!(f, "{LOCK} is held: the mbatchd of host {by} writes this event log")
            }
            LockError::NoLocks(e) => write!(
                f,
                "{LOCK}: file locks do not work there ({e}); mount the file system with locking \
                 or move LSB_SHAREDIR"
            ),
            LockError::FakeLocks => write!(
                f,
                "{LOCK}: the file system grants a held lock a second time; mount it with \
                 locking or move LSB_SHAREDIR"
            ),
            LockError::Io(e) => write!(f, "{LOCK}: {e}"),
        }
    }
}
impl std::error::Error for LockError {}

impl LogLock {
    /// Takes the lock of the log in this directory, at once or not at all.
    pub fn take(dir: &Path) -> Result<LogLock, LockError> {
        let open = || {
            let mut how = OpenOptions::new();
            how.read(true).write(true).create(true).truncate(false).mode(0o644);
            open_regular(&mut how, &dir.join(LOCK)).map_err(LockError::Io)
        };
        let file = open()?;
        match crate::sys::raw::lock_whole_file(file.as_fd()) {
            Ok(true) => {}
            Ok(false) => return Err(LockError::Held { by: holder(dir) }),
            Err(e) => return Err(LockError::NoLocks(e)),
        }
        // through another opening it must not be had
        match crate::sys::raw::lock_whole_file(open()?.as_fd()) {
            Ok(false) => Ok(LogLock { _file: file }),
            Ok(true) => Err(LockError::FakeLocks),
            Err(e) => Err(LockError::NoLocks(e)),
        }
    }
}

fn holder(dir: &Path) -> String {
    let mut bytes = Vec::new();
    let file = open_regular(OpenOptions::new().read(true), &dir.join(OWNER));
    // what cannot be read names nobody
    let _ = file.and_then(|file| file.take(CAP as u64).read_to_end(&mut bytes));
    Owner::parse(&bytes).map_or(String::new(), |owner| owner.host)
}

#[cfg(test)]
mod tests {
    use super::super::simdisk::SimDisk;
    use super::*;

    fn owner(epoch: u64, run: &str) -> Owner {
        let (host, boot, process) = ("host1".into(), "b-1".into(), "12 7 4".into());
        Owner { host, boot, epoch, run: run.into(), process }
    }

    #[test]
    fn an_owner_comes_back_and_a_torn_one_is_damaged() {
        let mut disk = SimDisk::new();
        assert_eq!(Owner::read(&mut disk).unwrap(), Read::Missing);
        let owner = owner(12, "a1");
        owner.claim(&mut disk, &Read::Missing).unwrap();
        assert_eq!(Owner::read(&mut disk).unwrap(), Read::Is(owner.clone()));
        assert_eq!(disk.list("").unwrap(), [OWNER]);
        let text = owner.text();
        let end = text.windows(4).position(|w| w == b"end\n").unwrap() + 4;
        for cut in (0..text.len()).filter(|cut| *cut != end) {
            disk.put(OWNER, &text[..cut]);
            assert_eq!(Owner::read(&mut disk).unwrap(), Read::Damaged, "{cut}");
        }
        // as earlier versions wrote it
        disk.put(OWNER, &text[..end]);
        let old = Owner { run: String::new(), process: String::new(), ..owner };
        assert_eq!(Owner::read(&mut disk).unwrap(), Read::Is(old));
    }

    #[test]
    fn an_epoch_that_no_run_can_have_is_damage() {
        let mut disk = SimDisk::new();
        for (epoch, is) in [(NO_EPOCH - 1, true), (NO_EPOCH, false), (u64::MAX, false)] {
            disk.put(OWNER, &owner(epoch, "a1").text());
            let read = Owner::read(&mut disk).unwrap();
            assert_eq!(read != Read::Damaged, is, "{epoch}");
        }
    }

    #[test]
    fn a_claim_that_comes_late_changes_nothing() {
        let mut disk = SimDisk::new();
        owner(1, "a1").claim(&mut disk, &Read::Missing).unwrap();
        let before = Owner::read(&mut disk).unwrap();
        // stopped when its claim was written and not yet renamed
        let late = format!("{TEMP}.b2");
        owner(2, "b2").write(&mut disk, &late).unwrap();
        owner(2, "c3").claim(&mut disk, &before).unwrap();
        assert!(disk.rename(&late, OWNER).is_err());
        // stopped before it was written
        let e = owner(2, "b2").claim(&mut disk, &before).unwrap_err();
        assert_eq!(e.to_string(), "another mbatchd has taken over this event log");
        assert!(owner(2, "c3").holds(&mut disk).unwrap());
        assert_eq!(disk.list("").unwrap(), [OWNER]);
    }

    #[test]
    fn one_process_at_a_time_has_the_lock() {
        let dir = std::env::temp_dir().join(format!("lsf-lock-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let lock = LogLock::take(&dir).unwrap();
        let again = LogLock::take(&dir).unwrap_err();
        assert_eq!(
            again.to_string(),
            "lsb.events.lock is held: another mbatchd writes this event log"
        );
        drop(lock);
        drop(LogLock::take(&dir).unwrap());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
