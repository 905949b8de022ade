//! The open files of the log, and whether they are still this run's.
//!
//! Before each commit it is asked whether the owner file is still the one that this run wrote, at
//! least once in [`OWNER_AGE`] by reading it again by its name (a network file system may answer
//! anything less from memory); between the sync and all that follows from it, the reply first, it
//! is looked at again, and lsb.events must still be the file that was written.

use super::disk::{Disk, FileId, PUBLIC, Tail};
use super::fail::{Fail, said};
use super::owner::{self, OWNER, Owner};
use super::{ACCT, EVENTS, EVENTS_SUM};

/// Longest time between two readings of the owner file, as long as commits come, microseconds.
pub const OWNER_AGE: u64 = 500_000;

/// The files, and their owner.
pub(super) struct LogFiles<D: Disk> {
    pub disk: D,
    owner: Owner,
    owner_file: FileId,
    /// When it was read last, by the monotonic clock.
    owner_read: Option<u64>,
    pub events: Tail,
    pub sum: Tail,
    pub acct: Tail,
}

pub(super) fn taken() -> Fail {
    Fail::Fatal(format!("{OWNER}: {}", owner::taken()))
}

impl<D: Disk> LogFiles<D> {
    /// Opens the files, whose lengths are not known yet; refuses those of another run.
    pub fn open(mut disk: D, owner: &Owner) -> Result<LogFiles<D>, Fail> {
        let owner_file = disk.open(OWNER, None).map_err(said(OWNER))?;
        let mut open = |name| {
            let file = disk.open(name, Some(PUBLIC)).map_err(said(name))?;
            Ok(Tail { file, len: 0 })
        };
        let (events, sum, acct) = (open(EVENTS)?, open(EVENTS_SUM)?, open(ACCT)?);
        // what has been opened before this is no later run's
        if !owner.holds(&mut disk).map_err(said(OWNER))? {
            return Err(taken());
        }
        let owner = owner.clone();
        Ok(LogFiles { disk, owner, owner_file, owner_read: None, events, sum, acct })
    }

    /// The owner file is read again before the next commit.
    pub fn forget_owner_read(&mut self) {
        self.owner_read = None;
    }

    /// Is the log still this run's, as far as is known?
    pub fn check_owner(&mut self, now: u64) -> Result<(), Fail> {
        if self.disk.nameless(self.owner_file).map_err(said(OWNER))? {
            return Err(taken());
        }
        if self.owner_read.is_some_and(|t| now < t + OWNER_AGE) {
            return Ok(());
        }
        self.check_owner_now()?;
        self.owner_read = Some(now);
        Ok(())
    }

    /// The look between the sync and the reply. A claim renames another file over the owner file:
    /// a local file system tells so without its being opened and read.
    pub fn check_owner_synced(&mut self) -> Result<(), Fail> {
        if !self.disk.is_local() {
            return self.check_owner_now();
        }
        if !self.disk.named(self.owner_file, OWNER).map_err(said(OWNER))? {
            return Err(taken());
        }
        self.check_events()
    }

    /// Is it this run that owns the log, and this file that is the log?
    pub fn check_owner_now(&mut self) -> Result<(), Fail> {
        if !self.owner.holds(&mut self.disk).map_err(said(OWNER))? {
            return Err(taken());
        }
        self.check_events()
    }

    fn check_events(&mut self) -> Result<(), Fail> {
        if !self.disk.named(self.events.file, EVENTS).map_err(said(EVENTS))? {
            let why = "the file was replaced or removed";
            return Err(Fail::Fatal(format!("{EVENTS}: {why}")));
        }
        Ok(())
    }

    /// The word of this run.
    pub fn run(&self) -> &str {
        &self.owner.run
    }
}
