//! Copies what is durable in the primary log into the shared directory, round by round.
//!
//! The files of the primary are opened by name and read up to an [`Extent`]. A switch may replace
//! lsb.events between the extent and the opening; so the files count as those of an extent only
//! when one that was told after the opening names the same lsb.events.

use super::bytes::{On, TORN, Whole, append, common, replace};
use super::files::{Opened, Written};
use super::generation;
use super::notes::{CopyNote, ShareMark};
use crate::log::disk::{Disk, FileId, INFO, PRIVATE, PUBLIC, Tail, remove};
use crate::log::extent::Extent;
use crate::log::owner::{self, Owner};
use crate::log::{ACCT, EVENTS, EVENTS_SUM, spool};
use std::collections::BTreeMap;
use std::io;

/// Why a round came to nothing.
#[derive(Debug)]
pub enum CopyError {
    /// Another mbatchd owns the copy: this process must end.
    Taken(String),
    /// The shared directory cannot be used now. The copy is to be attached anew.
    Away(String),
}

impl From<io::Error> for CopyError {
    fn from(e: io::Error) -> CopyError {
        CopyError::Away(crate::sys::words(&e))
    }
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// The copy has everything up to the extent.
    Current,
    /// A later extent is needed to go on.
    Again,
}

/// The copy that is being made.
pub struct Replica {
    pub(super) primary: Box<dyn Disk>,
    pub(super) share: Box<dyn Disk>,
    pub(super) owner: Owner,
    opened: Option<Opened>,
    written: Option<Written>,
    /// Bytes copied of each spool file and of its checksum file.
    spools: BTreeMap<u32, (u64, u64)>,
}

impl Replica {
    /// `owner`: of the copy, as it was attached.
    pub fn new(primary: Box<dyn Disk>, share: Box<dyn Disk>, owner: Owner) -> Replica {
        let spools = BTreeMap::new();
        Replica { primary, share, owner, opened: None, written: None, spools }
    }

    /// Copies what is missing up to this extent. `latest`: the extent told last.
    pub fn round(
        &mut self,
        extent: Extent,
        latest: &dyn Fn() -> Extent,
    ) -> Result<Round, CopyError> {
        self.holds()?;
        match &self.opened {
            Some(opened) if opened.begun == extent.begun => {
                if extent.told <= opened.told {
                    return Ok(Round::Again);
                }
            }
            _ => {
                self.open(extent)?;
                return Ok(Round::Again);
            }
        }
        self.copy_spools(extent)?;
        if self.written.is_none() {
            let Some(opened) = &self.opened else { return Ok(Round::Again) };
            let is_still = || latest().begun == extent.begun;
            let (primary, share) = (&mut *self.primary, &mut *self.share);
            let lined =
                generation::line_up(primary, share, &self.owner, opened, extent, &is_still)?;
            let Some(written) = lined else {
                self.close_files();
                return Ok(Round::Again);
            };
            self.written = Some(written);
            self.remove_spools()?;
        }
        self.extend(extent)?;
        self.holds()?;
        Ok(Round::Current)
    }

    /// Is the copy still this run's?
    pub fn look(&mut self) -> Result<(), CopyError> {
        self.holds()
    }

    /// Ends the copy where it has everything: the next start of any master knows that.
    pub fn complete(&mut self) -> io::Result<()> {
        let runs = vec![self.owner.run.clone()];
        CopyNote { host: self.owner.host.clone(), complete: true }.write(&mut *self.share)?;
        ShareMark { runs, complete: true }.write(&mut *self.primary)
    }

    fn holds(&mut self) -> Result<(), CopyError> {
        if self.owner.holds(&mut *self.share)? {
            return Ok(());
        }
        // a directory that is not mounted has no log at all
        match Owner::read(&mut *self.share)? {
            owner::Read::Is(other) => {
                let why = format!("mbatchd of host {} has taken over the copy", other.host);
                Err(CopyError::Taken(why))
            }
            _ => Err(CopyError::Away(format!("{} is missing or damaged", owner::OWNER))),
        }
    }

    fn close_files(&mut self) {
        if let Some(opened) = self.opened.take() {
            [opened.events, opened.sum].into_iter().for_each(|file| self.primary.close(file));
        }
        if let Some(Written { events, sum, acct }) = self.written.take() {
            [events, sum, acct].into_iter().for_each(|tail| self.share.close(tail.file));
        }
    }

    fn open(&mut self, extent: Extent) -> io::Result<()> {
        self.close_files();
        let events = self.primary.open(EVENTS, None)?;
        let sum = match self.primary.open(EVENTS_SUM, None) {
            Ok(sum) => sum,
            Err(e) => {
                self.primary.close(events);
                return Err(e);
            }
        };
        let (begun, told) = (extent.begun, extent.told);
        self.opened = Some(Opened { begun, told, events, sum });
        Ok(())
    }

    /// Copies the spooled bytes, which records refer to, before the records.
    fn copy_spools(&mut self, extent: Extent) -> io::Result<()> {
        let mut made = false;
        for number in spool::list(&mut *self.primary)? {
            let (newest, data, _) = extent.spool;
            if number <= newest {
                let end = (number == newest).then_some(data);
                let done = self.spools.get(&number).map_or(0, |(data, _)| *data);
                let len = self.copy_spool(&spool::name(number), done, end)?;
                made |= done == 0;
                self.spools.entry(number).or_default().0 = len;
            }
        }
        if made { self.share.sync_dir(INFO) } else { Ok(()) }
    }

    /// Copies the checksums of spooled bytes, after the records that refer to these.
    fn copy_spool_sums(&mut self, extent: Extent) -> io::Result<()> {
        let numbers: Vec<u32> = self.spools.keys().copied().collect();
        for number in numbers {
            let (newest, _, sum) = extent.spool;
            let end = (number == newest).then_some(sum);
            let done = self.spools.get(&number).map_or(0, |(_, sum)| *sum);
            let len = self.copy_spool(&spool::sum_name(number), done, end)?;
            self.spools.entry(number).or_default().1 = len;
        }
        Ok(())
    }

    /// Copies one file of the spool from `done` on; its length then.
    fn copy_spool(&mut self, name: &str, done: u64, end: Option<u64>) -> io::Result<u64> {
        if end == Some(done) && done > 0 {
            return Ok(done);
        }
        let from = match self.primary.open(name, None) {
            // it was removed, or has not been made
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(done),
            open => open?,
        };
        let copied = self.copy_spool_from(name, from, done, end);
        self.primary.close(from);
        copied
    }

    fn copy_spool_from(
        &mut self,
        name: &str,
        from: FileId,
        done: u64,
        end: Option<u64>,
    ) -> io::Result<u64> {
        let len = self.primary.len(from)?;
        let end = end.unwrap_or(len).min(len);
        if end == done && done > 0 {
            return Ok(done);
        }
        let file = self.share.open(name, Some(PRIVATE))?;
        let mut to = Tail { file, len: self.share.len(file)? };
        if done == 0 {
            // a copy that is torn at its end is continued from there
            if to.len > end {
                self.share.truncate(file, end)?;
            }
            let len = to.len.min(end);
            let on = On { disk: &mut *self.primary, file: from };
            let copy = On { disk: &mut *self.share, file };
            to.len = common(on, copy, len.saturating_sub(TORN), len)?;
        }
        let on = On { disk: &mut *self.primary, file: from };
        let copied = append(on, &mut *self.share, &mut to, end);
        // an earlier run may not have synced its part
        let syncs = |wrote: bool| wrote || done == 0;
        let copied = copied.and_then(|wrote| match syncs(wrote) {
            true => self.share.sync(file),
            false => Ok(()),
        });
        self.share.close(file);
        copied.map(|()| to.len)
    }

    /// Removes spool files that the primary has no more.
    fn remove_spools(&mut self) -> io::Result<()> {
        let kept = spool::list(&mut *self.primary)?;
        for number in spool::list(&mut *self.share)? {
            if !kept.contains(&number) {
                remove(&mut *self.share, &spool::name(number))?;
                remove(&mut *self.share, &spool::sum_name(number))?;
                self.spools.remove(&number);
            }
        }
        Ok(())
    }

    /// Appends records, then what follows from them.
    fn extend(&mut self, extent: Extent) -> io::Result<()> {
        let (Some(opened), Some(written)) = (&self.opened, &mut self.written) else {
            return Ok(());
        };
        let share = &mut *self.share;
        let events = On { disk: &mut *self.primary, file: opened.events };
        if append(events, share, &mut written.events, extent.events)? {
            share.sync(written.events.file)?;
        }
        let sum = On { disk: &mut *self.primary, file: opened.sum };
        let summed = append(sum, share, &mut written.sum, extent.sum)?;
        self.copy_spool_sums(extent)?;
        let Some(written) = &mut self.written else { return Ok(()) };
        if summed {
            self.share.sync(written.sum.file)?;
        }
        if extent.acct < written.acct.len {
            // lsb.acct was put aside
            self.share.close(written.acct.file);
            let whole = Whole { from: ACCT, to: ACCT, mode: PUBLIC, end: Some(extent.acct) };
            replace(&mut *self.primary, &mut *self.share, &self.owner.run, &whole)?;
            let file = self.share.open(ACCT, Some(PUBLIC))?;
            written.acct = Tail { file, len: self.share.len(file)? };
        }
        if extent.acct > written.acct.len {
            let file = self.primary.open(ACCT, None)?;
            let on = On { disk: &mut *self.primary, file };
            let done = append(on, &mut *self.share, &mut written.acct, extent.acct);
            self.primary.close(file);
            done?;
            self.share.sync(written.acct.file)?;
        }
        Ok(())
    }
}
