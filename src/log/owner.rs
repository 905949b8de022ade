//! Who may write the log: an fcntl lock beside lsb.events, and the owner file that says which
//! run of mbatchd holds it (design §3, "Single writer"). The lock keeps a second mbatchd out;
//! the owner file, read again before each commit, stops a first one whose lock was lost.

use super::disk::{Disk, PUBLIC, read_small};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The owner file.
pub const OWNER: &str = "lsb.events.owner";
/// The lock file.
pub const LOCK: &str = "lsb.events.lock";
const TEMP: &str = "lsb.events.owner.new";
/// First line of the owner file.
const TITLE: &str = "lsb.events owner 1";
/// Longest owner file, bytes.
const CAP: usize = 4096;

/// A run of mbatchd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub host: String,
    /// Boot id of that host.
    pub boot: String,
    /// Larger in each run.
    pub epoch: u64,
}

/// What the owner file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    Missing,
    Damaged,
    Is(Owner),
}

impl Owner {
    pub fn text(&self) -> Vec<u8> {
        let Owner { host, boot, epoch } = self;
        format!("{TITLE}\nhost {host}\nboot {boot}\nepoch {epoch}\nend\n").into_bytes()
    }

    fn parse(bytes: &[u8]) -> Option<Owner> {
        let mut lines = std::str::from_utf8(bytes).ok()?.lines();
        let mut value = |name: &str| lines.next()?.strip_prefix(name).map(str::to_string);
        value(TITLE)?;
        let (host, boot) = (value("host ")?, value("boot ")?);
        let epoch = value("epoch ")?.parse().ok()?;
        value("end")?;
        Some(Owner { host, boot, epoch })
    }

    /// Reads the owner file.
    pub fn read(disk: &mut dyn Disk) -> io::Result<Read> {
        Ok(match read_small(disk, OWNER, CAP)? {
            None => Read::Missing,
            Some(bytes) => Owner::parse(&bytes).map_or(Read::Damaged, Read::Is),
        })
    }

    /// Makes this the owner, durably.
    pub fn write(&self, disk: &mut dyn Disk) -> io::Result<()> {
        let file = disk.open(TEMP, Some(PUBLIC))?;
        let text = self.text();
        let done = disk
            .write_at(file, 0, &text)
            .and_then(|()| disk.truncate(file, text.len() as u64))
            .and_then(|()| disk.sync(file));
        disk.close(file);
        done?;
        disk.rename(TEMP, OWNER)?;
        disk.sync_dir("")
    }
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
    /// They are granted to everybody.
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
            let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
            how.read(true).write(true).create(true).truncate(false).mode(0o644);
            how.custom_flags(flags).open(dir.join(LOCK)).map_err(LockError::Io)
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
    let bytes = std::fs::read(dir.join(OWNER)).unwrap_or_default();
    Owner::parse(&bytes).map_or(String::new(), |owner| owner.host)
}

#[cfg(test)]
mod tests {
    use super::super::simdisk::SimDisk;
    use super::*;

    #[test]
    fn an_owner_comes_back_and_a_torn_one_is_damaged() {
        let mut disk = SimDisk::new();
        assert_eq!(Owner::read(&mut disk).unwrap(), Read::Missing);
        let owner = Owner { host: "host1".into(), boot: "b-1".into(), epoch: 12 };
        owner.write(&mut disk).unwrap();
        assert_eq!(Owner::read(&mut disk).unwrap(), Read::Is(owner.clone()));
        let text = owner.text();
        for cut in 0..text.len() - 1 {
            disk.put(OWNER, &text[..cut]);
            assert_eq!(Owner::read(&mut disk).unwrap(), Read::Damaged, "{cut}");
        }
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
