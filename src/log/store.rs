//! Writes the log, one batch after the other.
//!
//! A commit writes and syncs the spooled bytes (when something was spooled), then writes and syncs
//! the records, then appends the checksum entries and the accounting records, neither of them
//! synced (the entries are, every [`SUM_SYNC`] bytes of records).
//!
//! - A failed **write** (no space, I/O error) undoes the commit: files go back to their last
//!   durable length, and the caller puts the machine back to what they hold. The cut is synced
//!   before anybody is told of the failure: a request that was refused does not come true at the
//!   next start.
//! - A failed **sync** is the end of the process: what the page cache holds is doubtful from then
//!   on, and a second sync would say nothing.
//! - All writing is at tracked places, so that what a failed truncation leaves behind is
//!   overwritten or cut before the next commit.
//! - Before each commit it is asked whether the owner file is still the one that this run wrote,
//!   at least once in [`OWNER_AGE`] by reading it again by its name (a network file system may
//!   answer anything less from memory); another run's is the end of the process.
//! - Between the sync and all that follows from it, the reply first, the owner file is looked at
//!   again (read by its name; on a local file system the name must still be that of the open file),
//!   and lsb.events must still be the file that was written: a run that was stopped before its
//!   write while another one took over acknowledges nothing (`fence` says why it damages nothing).

use super::acct_archive::{self, Archived};
use super::acct_copy::AcctCopy;
use super::batch::{Batch, SpoolRun};
use super::checksums::{self, ChecksumEntry, ChecksumHead};
use super::codec::write_finish;
use super::disk::{Disk, FileId, INFO, PRIVATE, Tail, exists, len_of, write_small};
use super::element_ends::{self, UnwrittenEnds};
use super::extent::Extent;
use super::fail::{Fail, fatal, said};
use super::log_files::LogFiles;
use super::mend::Mend;
use super::opening::{FIRST_HEAD, mend_events, mend_sum, rewrite, rewrite_spooled};
use super::record_walk::head_line;
use super::recover::against::{ACCEPT, RunMark};
use super::recover::found::{Base, RecoveryPlan};
use super::switch::{SLICE_RECORDS, SwitchOrder, Switching};
use super::{ACCT, EVENTS, EVENTS_SUM, acct, spool};
use crate::proto::machine::AcctArchive;
use std::collections::BTreeSet;
use std::io;

/// Bytes of records after which the checksum entries are synced.
pub const SUM_SYNC: u64 = 1 << 20;

/// Accounting records kept in memory while lsb.acct cannot be written, bytes. Beyond it they are
/// dropped: the log is not switched before recovery has derived them again.
const MAX_ACCT_PENDING: usize = 64 << 20;

/// File with which is tried whether writing works again.
const PROBE: &str = "lsb.events.probe";
/// Bytes that must fit for writing to be tried again.
const PROBE_BYTES: usize = 64 << 10;

/// Places in a commit at which tests kill the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    BeforeAppend,
    BeforeSync,
    BeforeReply,
    AfterReply,
}

/// The spool file that is written.
#[derive(Clone, Copy, Debug)]
struct Spool {
    number: u32,
    data: Tail,
    sum: Tail,
}

/// The open log of the one writer.
pub struct Store<D: Disk> {
    files: LogFiles<D>,
    /// The next commit was checked already ([`Store::check_ahead`]).
    checked: bool,
    /// The newest spool file at the start, and those that this run made.
    spool_file: u32,
    spools_made: BTreeSet<u32>,
    spool: Option<Spool>,
    /// Entries of records that have none yet.
    backfill: Vec<ChecksumEntry>,
    acct_pending: Vec<u8>,
    acct_lost: bool,
    /// Ends of elements whose records for lsb.acct are yet to be made.
    ends: UnwrittenEnds,
    /// lsb.acct could not be written since the last commit.
    acct_stuck: bool,
    /// lsb.acct is not written before it has been copied.
    acct_copy: Option<AcctCopy>,
    /// The checksum file goes on with entries of records that are lost ([`RecoveryPlan::stale`]).
    stale: bool,
    /// The next commit puts the log in order ([`RecoveryPlan::mend`]), with this head of its
    /// checksums.
    mend: Option<(Box<Mend>, ChecksumHead)>,
    /// Files may be longer than they should.
    trim: bool,
    /// Bytes of records whose entries are not synced.
    sum_lag: u64,
    /// The spool file that was begun with this log.
    begun: u32,
    /// How often this run began a new lsb.events, and told its extent.
    files_begun: u64,
    told: u64,
    /// The newest spool file at the start, its bytes and those of its checksum file.
    spool_start: (u32, u64, u64),
    /// This run's mark, which says how far the log has come.
    mark: Option<FileId>,
    newest: i64,
    switching: Option<Switching>,
    /// Records examined in one slice of a switch.
    slice: usize,
    buf: Vec<u8>,
}

impl<D: Disk> Store<D> {
    /// Mends what recovery found; it has become the owner. The lock must be held.
    pub fn open(disk: D, plan: RecoveryPlan) -> Result<Store<D>, Fail> {
        let mut files = LogFiles::open(disk, &plan.owner)?;
        files.events = mend_events(&mut files.disk, files.events.file, &plan)?;
        files.sum = mend_sum(&mut files.disk, files.sum.file, &plan)?;
        let acct_copy = plan.copy_acct.then(|| AcctCopy::new(&plan.owner.run, plan.acct_end));
        if acct_copy.is_none() {
            files.disk.truncate(files.acct.file, plan.acct_end).map_err(said(ACCT))?;
        }
        files.acct.len = plan.acct_end;
        let mut store = Store {
            files,
            checked: false,
            spool_file: plan.spool_file,
            spools_made: BTreeSet::new(),
            spool: None,
            backfill: plan.backfill.clone(),
            acct_pending: Vec::new(),
            acct_lost: false,
            ends: UnwrittenEnds::default(),
            acct_stuck: false,
            acct_copy,
            stale: plan.stale,
            mend: plan.mend.clone().map(|mend| (mend, plan.sum_head.unwrap_or(FIRST_HEAD))),
            trim: false,
            sum_lag: 0,
            begun: plan.sum_head.map_or(1, |head| head.spool),
            files_begun: 0,
            told: 0,
            spool_start: (plan.spool_file, 0, 0),
            mark: None,
            newest: plan.newest,
            switching: None,
            slice: SLICE_RECORDS,
            buf: Vec::new(),
        };
        for (name, len) in [
            (spool::name(plan.spool_file), &mut store.spool_start.1),
            (spool::sum_name(plan.spool_file), &mut store.spool_start.2),
        ] {
            *len = len_of(&mut store.files.disk, &name).map_err(said("the spool"))?;
        }
        for finish in &plan.finishes {
            write_finish(finish, &mut store.acct_pending);
        }
        if plan.same_boot {
            let from = plan.covered;
            if plan.mend.is_none() {
                rewrite(&mut store.files.disk, store.files.events, from).map_err(said(EVENTS))?;
            }
            if !plan.copy_acct {
                rewrite(&mut store.files.disk, store.files.acct, plan.acct_synced)
                    .map_err(said(ACCT))?;
            }
            rewrite_spooled(&mut store.files.disk, &plan)?;
        }
        // whole records that were never synced may be in what was read
        store.files.disk.sync(store.files.events.file).map_err(fatal(EVENTS))?;
        store.files.disk.sync_dir("").map_err(fatal("the log directory"))?;
        // lsb.acct must not know of an end that the log may lose
        store.flush_acct();
        if let Some(base) = &plan.base {
            while store.is_copying_acct() {
                store.copy_acct()?;
            }
            store.begin_from(base)?;
        }
        store.note_mark();
        Ok(store)
    }

    /// Begins anew from a log that is not the last one. The signs of that are removed last: a start
    /// that is interrupted here asks the administrator again.
    fn begin_from(&mut self, base: &Base) -> Result<(), Fail> {
        let mut batch = Batch::default();
        base.records.iter().for_each(|record| batch.append(record));
        self.commit(&batch, 0, &mut |_| {})?;
        self.files.forget_owner_read();
        if base.head {
            // what is in the log by now is not looked for in lsb.acct any more
            let head = head_line(self.files.events.len as i64);
            self.files.disk.write_at(self.files.events.file, 0, &head).map_err(said(EVENTS))?;
            self.files.disk.sync(self.files.events.file).map_err(fatal(EVENTS))?;
            let head = self.acct_head(base.spool, self.files.acct.len)?;
            self.files
                .disk
                .write_at(self.files.sum.file, 0, &head.put())
                .map_err(said(EVENTS_SUM))?;
            self.files.disk.sync(self.files.sum.file).map_err(fatal(EVENTS_SUM))?;
            self.begun = base.spool;
        }
        self.files.disk.remove(ACCEPT).map_err(said(ACCEPT))?;
        self.files.disk.sync_dir("").map_err(fatal("the log directory"))
    }

    /// Notes how far the log has come, for the next start. Nothing depends on it but that an older
    /// log which somebody puts back is noticed.
    fn note_mark(&mut self) {
        // a log that is put in order may become shorter
        let len = if self.to_mend() { 0 } else { self.files.events.len };
        self.put_mark(len);
    }

    fn put_mark(&mut self, len: u64) {
        let run = self.files.run().to_owned();
        let first = self.mark.is_none();
        if first {
            self.mark = self.files.disk.open(&RunMark::name(&run), Some(PRIVATE)).ok();
        }
        let Some(file) = self.mark else { return };
        let text = RunMark { spool: self.begun, len }.text();
        let wrote = self.files.disk.write_at(file, 0, &text).is_ok();
        if first
            && wrote
            && self.files.disk.sync(file).and_then(|()| self.files.disk.sync_dir(INFO)).is_ok()
        {
            // what is left of them is removed at the next start
            let _ = RunMark::discard_others(&mut self.files.disk, &run);
        }
    }

    /// Bytes of lsb.events that are durable.
    pub fn durable_len(&self) -> u64 {
        self.files.events.len
    }

    /// The spool file that was begun with this lsb.events.
    pub fn begun(&self) -> u32 {
        self.begun
    }

    /// The durable part of all files.
    pub fn extent(&mut self) -> Extent {
        self.told += 1;
        let open = self.spool.map(|s| (s.number, s.data.len, s.sum.len));
        Extent {
            told: self.told,
            begun: self.files_begun,
            events: self.files.events.len,
            sum: self.files.sum.len,
            acct: self.files.acct.len,
            spool: open.unwrap_or(self.spool_start),
        }
    }

    /// Another size for the slices of a switch, records.
    pub fn set_slice(&mut self, records: usize) {
        self.slice = records.max(1);
    }

    /// The disk, for reading.
    pub fn disk(&mut self) -> &mut D {
        &mut self.files.disk
    }

    /// Makes a batch durable. `now` is the monotonic clock, microseconds; `at` is told where the
    /// commit is (tests kill the process there).
    pub fn commit(
        &mut self,
        batch: &Batch,
        now: u64,
        at: &mut dyn FnMut(Point),
    ) -> Result<(), Fail> {
        if !std::mem::take(&mut self.checked) {
            self.files.check_owner(now)?;
        }
        let done = self.try_commit(batch, at);
        if let Err(Fail::Write(_)) = done {
            // what cannot be cut now is cut before the next commit
            self.trim = true;
            if let Err(Fail::Fatal(why)) = self.trim() {
                return Err(Fail::Fatal(why));
            }
        }
        done
    }

    fn try_commit(&mut self, batch: &Batch, at: &mut dyn FnMut(Point)) -> Result<(), Fail> {
        self.trim()?;
        at(Point::BeforeAppend);
        let spool = self.write_spool(&batch.spool)?;
        let Tail { file, len } = self.files.events;
        let mends = self.mend.is_some() && !batch.events.is_empty();
        // a loss of power must not leave a record without its bytes in the spool
        if let Some(spool) = &spool {
            self.files.disk.sync(spool.data.file).map_err(fatal("the spool"))?;
        }
        if !batch.events.is_empty() && !mends {
            self.files.disk.write_at(file, len, &batch.events).map_err(said(EVENTS))?;
        }
        at(Point::BeforeSync);
        if mends && let Some((mend, head)) = self.mend.take() {
            self.put_mark(0);
            match mend.commit(&mut self.files, head, &batch.events, &batch.entries) {
                Ok(()) => self.switched_files(),
                Err(fail) => {
                    self.mend = Some((mend, head));
                    return Err(fail);
                }
            }
        } else if !batch.events.is_empty() {
            self.files.disk.sync(file).map_err(fatal(EVENTS))?;
        }
        self.files.check_owner_synced()?;
        let spool = self.write_spool_sum(spool, &batch.spool)?;
        if !batch.events.is_empty() && !mends {
            self.write_sum(batch)?;
            self.files.events.len += batch.events.len() as u64;
        }
        if spool.is_some() {
            self.spool = spool;
        }
        self.newest = self.newest.max(batch.newest);
        self.note_mark();
        // nothing else beside the log tells of such a record
        if let Some(mark) = self.mark.filter(|_| batch.control) {
            let _ = self.files.disk.sync(mark);
        }
        if self.acct_pending.len() + batch.acct.len() > MAX_ACCT_PENDING {
            self.acct_lost = true;
        } else {
            self.acct_pending.extend_from_slice(&batch.acct);
        }
        self.ends.put(&batch.ends);
        self.acct_stuck = !self.flush_acct();
        Ok(())
    }

    /// Are records for lsb.acct yet to be made, which can be written now?
    pub fn is_accounting(&self) -> bool {
        !self.ends.is_empty() && !self.acct_stuck && !self.is_copying_acct()
    }

    /// Makes some of them.
    pub fn account_slice(&mut self) {
        self.ends.write(element_ends::SLICE, &mut self.acct_pending);
        self.acct_stuck = !self.flush_acct();
    }

    /// Makes all of them.
    fn account_all(&mut self) {
        while !self.ends.is_empty() {
            if self.acct_pending.len() > MAX_ACCT_PENDING {
                (self.ends, self.acct_lost) = (UnwrittenEnds::default(), true);
            }
            self.ends.write(element_ends::SLICE, &mut self.acct_pending);
            self.flush_acct();
        }
    }

    /// Is the log still this run's, as far as is known?
    pub fn look(&mut self, now: u64) -> Result<(), Fail> {
        self.files.check_owner(now)
    }

    /// Checks now what the next commit would check first. A process may be stopped for any time
    /// between that check and the write.
    pub fn check_ahead(&mut self, now: u64) -> Result<(), Fail> {
        self.files.check_owner(now)?;
        self.checked = true;
        Ok(())
    }

    /// Has lsb.acct yet to get its new file?
    pub fn is_copying_acct(&self) -> bool {
        self.acct_copy.is_some()
    }

    /// Copies a slice of lsb.acct. After [`Fail::Write`] the copy is to be begun again, later.
    pub fn copy_acct(&mut self) -> Result<(), Fail> {
        let Some(copy) = &mut self.acct_copy else { return Ok(()) };
        if copy.slice(&mut self.files)? {
            self.acct_copy = None;
            self.acct_stuck = !self.flush_acct();
        }
        Ok(())
    }

    /// Archives lsb.acct where it is due. While the file is copied, or a switch of the log counts
    /// from a place in it, it waits for a later order.
    pub fn archive_acct(&mut self, order: &AcctArchive) -> Result<Archived, Fail> {
        let waits = self.is_copying_acct() || self.is_switching() || self.acct_lost;
        if waits || !acct_archive::is_due(&mut self.files, order).map_err(said(ACCT))? {
            return Ok(Archived::NotDue);
        }
        acct_archive::archive(&mut self.files, order.keep)
    }

    /// Is a switch under way?
    pub fn is_switching(&self) -> bool {
        self.switching.is_some()
    }

    /// Begins a switch; everything committed so far is what the order knows of.
    pub fn begin_switch(&mut self, order: SwitchOrder) -> Result<(), Fail> {
        if self.switching.is_some() {
            return Err(Fail::Write("a switch of the log is under way already".into()));
        }
        if self.to_mend() {
            return Err(Fail::Write("the log has to be put in order first".into()));
        }
        // what is behind the place noted here must be of the new log
        let acct_at = self.acct_end()?;
        let backfill = self.backfill.clone();
        self.switching = Some(Switching::begin(&mut self.files, order, acct_at, backfill)?);
        Ok(())
    }

    /// Does a slice of the switch; `true` when it is complete. After [`Fail::Write`] there is no
    /// switch any more.
    pub fn switch_slice(&mut self) -> Result<bool, Fail> {
        let Some(mut switching) = self.switching.take() else { return Ok(false) };
        let done = match switching.carry_slice(&mut self.files, self.slice, self.newest) {
            Ok(true) => self.finish_switch(&mut switching).map(|()| true),
            more => more,
        };
        match done {
            Ok(true) => {}
            Ok(false) | Err(Fail::Fatal(_)) => self.switching = Some(switching),
            Err(Fail::Write(_)) => switching.discard(&mut self.files),
        }
        done
    }

    fn finish_switch(&mut self, switching: &mut Switching) -> Result<(), Fail> {
        // the checksum file of a run that has lost the log must not become complete
        self.files.check_owner_now()?;
        let head = self.acct_head(switching.spool, switching.acct_at)?;
        switching.finish(&mut self.files, head, self.newest)?;
        self.begun = switching.spool;
        self.switched_files();
        self.note_mark();
        switching.remove_old_spools(&mut self.files.disk);
        Ok(())
    }

    /// Ends a switch without result; `false` where none is under way.
    pub fn give_up_switch(&mut self) -> bool {
        let Some(switching) = self.switching.take() else { return false };
        switching.discard(&mut self.files);
        true
    }

    /// Cuts what a commit that failed left behind.
    fn trim(&mut self) -> Result<(), Fail> {
        if !self.trim {
            return Ok(());
        }
        // entries first: one without its record would be damage, or tell of a log that is too old
        if let Some(spool) = self.spool {
            let Tail { file, len } = spool.sum;
            self.files.disk.truncate(file, len).map_err(said("the spool"))?;
            self.files.disk.sync(file).map_err(fatal("the spool"))?;
        }
        if !self.stale {
            self.files
                .disk
                .truncate(self.files.sum.file, self.files.sum.len)
                .map_err(said(EVENTS_SUM))?;
            // its entries must not come back beside the records that take these places
            self.files.disk.sync(self.files.sum.file).map_err(fatal(EVENTS_SUM))?;
        }
        self.files
            .disk
            .truncate(self.files.events.file, self.files.events.len)
            .map_err(said(EVENTS))?;
        // its records must not come back, least of all without their bytes in the spool
        self.files.disk.sync(self.files.events.file).map_err(fatal(EVENTS))?;
        if let Some(Spool { data: Tail { file, len }, .. }) = self.spool {
            self.files.disk.truncate(file, len).map_err(said("the spool"))?;
        }
        self.trim = false;
        Ok(())
    }

    /// Writes spooled bytes; returns the file as it will be when they are durable.
    fn write_spool(&mut self, runs: &[SpoolRun]) -> Result<Option<Spool>, Fail> {
        let mut open = self.spool;
        for run in runs {
            let mut spool = match open {
                Some(spool) if spool.number == run.spool => spool,
                _ => self.next_spool(open, run.spool)?,
            };
            if run.at < spool.data.len {
                let name = spool::name(run.spool);
                return Err(Fail::Fatal(format!("{name}: byte {} is taken already", run.at)));
            }
            let file = spool.data.file;
            self.files.disk.write_at(file, run.at, &run.data).map_err(said("the spool"))?;
            spool.data.len = run.at + run.data.len() as u64;
            open = Some(spool);
        }
        Ok(if runs.is_empty() { None } else { open })
    }

    /// Appends the entries of the pieces that lie in the open spool file, which are durable. (A
    /// batch that goes over two files leaves the few in the first without.)
    fn write_spool_sum(
        &mut self,
        spool: Option<Spool>,
        runs: &[SpoolRun],
    ) -> Result<Option<Spool>, Fail> {
        let Some(mut spool) = spool else { return Ok(None) };
        self.buf.clear();
        for run in runs.iter().filter(|run| run.spool == spool.number) {
            for entry in &run.entries {
                entry.put(&mut self.buf);
            }
        }
        let Tail { file, len } = spool.sum;
        self.files.disk.write_at(file, len, &self.buf).map_err(said("the spool"))?;
        spool.sum.len += self.buf.len() as u64;
        Ok(Some(spool))
    }

    fn next_spool(&mut self, before: Option<Spool>, number: u32) -> Result<Spool, Fail> {
        if let Some(before) = before {
            // what lies in it of this batch
            self.files.disk.sync(before.data.file).map_err(fatal("the spool"))?;
            self.files.disk.close(before.data.file);
            self.files.disk.close(before.sum.file);
            self.spool = None;
        }
        let name = spool::name(number);
        let new = !self.spools_made.contains(&number)
            && (number > self.spool_file
                || !exists(&mut self.files.disk, &name).map_err(said("the spool"))?);
        let data = if new { self.new_spool(number)? } else { self.open_tail(&name)? };
        let mut sum = self.open_tail(&spool::sum_name(number))?;
        // what has been opened before this is no later run's
        self.files.check_owner_now()?;
        if sum.len < checksums::ENTRY as u64 {
            let head = ChecksumHead { spool: number, ..ChecksumHead::default() }.put();
            self.files.disk.write_at(sum.file, 0, &head).map_err(said("the spool"))?;
        }
        // a torn entry at the end is written over
        sum.len = (sum.len / checksums::ENTRY as u64).max(1) * checksums::ENTRY as u64;
        let spool = Spool { number, data, sum };
        // from here on it is the open one, so that a failure does not lose the descriptors
        self.spool = Some(spool);
        if new {
            self.files.disk.sync_dir(INFO).map_err(fatal("the spool"))?;
        }
        Ok(spool)
    }

    /// Makes a spool file. An existing file of the name belongs to another run.
    fn new_spool(&mut self, number: u32) -> Result<Tail, Fail> {
        let name = spool::name(number);
        match self.files.disk.create_new(&name, PRIVATE) {
            Ok(file) => {
                self.spools_made.insert(number);
                Ok(Tail { file, len: 0 })
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                Err(Fail::Fatal(format!("{name}: another mbatchd has made it")))
            }
            Err(e) => Err(said("the spool")(e)),
        }
    }

    fn open_tail(&mut self, name: &str) -> Result<Tail, Fail> {
        let file = self.files.disk.open(name, Some(PRIVATE)).map_err(said("the spool"))?;
        let len = self.files.disk.len(file).map_err(said("the spool"))?;
        Ok(Tail { file, len })
    }

    /// Appends the entries of a batch whose records are durable.
    fn write_sum(&mut self, batch: &Batch) -> Result<(), Fail> {
        let base = self.files.events.len;
        self.buf.clear();
        let moved = batch.entries.iter().map(|e| ChecksumEntry { at: e.at + base, ..*e });
        for entry in self.backfill.iter().copied().chain(moved) {
            entry.put(&mut self.buf);
        }
        self.files
            .disk
            .write_at(self.files.sum.file, self.files.sum.len, &self.buf)
            .map_err(said(EVENTS_SUM))?;
        self.sum_lag += batch.events.len() as u64;
        if self.stale {
            let len = self.files.sum.len + self.buf.len() as u64;
            self.files.disk.truncate(self.files.sum.file, len).map_err(said(EVENTS_SUM))?;
        }
        if self.stale || self.sum_lag >= SUM_SYNC {
            self.files.disk.sync(self.files.sum.file).map_err(fatal(EVENTS_SUM))?;
            self.sum_lag = 0;
        }
        self.files.sum.len += self.buf.len() as u64;
        self.backfill.clear();
        self.stale = false;
        if let Some(switching) = &mut self.switching {
            switching.committed(base, &batch.entries);
        }
        Ok(())
    }

    /// Appends what accounting there is; what cannot be written waits.
    fn flush_acct(&mut self) -> bool {
        if self.acct_pending.is_empty() {
            return !self.acct_lost;
        }
        if self.is_copying_acct() {
            return false;
        }
        let Tail { file, len } = self.files.acct;
        if self.files.disk.write_at(file, len, &self.acct_pending).is_err() {
            let _ = self.files.disk.truncate(file, len);
            return false;
        }
        self.files.acct.len += self.acct_pending.len() as u64;
        self.acct_pending.clear();
        !self.acct_lost
    }

    /// Length of lsb.acct with all that has ended so far.
    fn acct_end(&mut self) -> Result<u64, Fail> {
        self.account_all();
        let waits = self.is_copying_acct() && !self.acct_lost;
        if !self.flush_acct() && !waits {
            return Err(Fail::Write(format!("{ACCT}: cannot be written")));
        }
        Ok(self.files.acct.len + self.acct_pending.len() as u64)
    }

    /// Can the log be written again? Tried with files of its own, also in the private directory,
    /// which may be another file system.
    pub fn probe(&mut self) -> Result<(), Fail> {
        self.trim()?;
        [PROBE.to_string(), format!("{INFO}/{PROBE}")].iter().try_for_each(|name| {
            let done = write_small(&mut self.files.disk, name, PRIVATE, &[0; PROBE_BYTES]);
            let _ = self.files.disk.remove(name);
            done.map_err(said(name))
        })
    }

    /// The log must still be rewritten in order.
    pub(super) fn to_mend(&self) -> bool {
        self.mend.is_some()
    }

    /// The files are those of a new log, whole and durable.
    fn switched_files(&mut self) {
        self.files_begun += 1;
        self.backfill.clear();
        self.stale = false;
        self.sum_lag = 0;
    }

    /// Syncs what is synced lazily: before the process ends.
    pub fn close(mut self) {
        self.account_all();
        self.flush_acct();
        self.note_mark();
        let _ = self.files.disk.sync(self.files.sum.file);
        let _ = self.files.disk.sync(self.files.acct.file);
    }

    /// The entry about lsb.acct in the head of the next checksum file, after making it durable.
    /// `acct_at`: its length when the records of ended jobs were carried over.
    fn acct_head(&mut self, spool: u32, acct_at: u64) -> Result<ChecksumHead, Fail> {
        if !self.flush_acct() {
            return Err(Fail::Write(format!("{ACCT}: cannot be written")));
        }
        self.files.disk.sync(self.files.acct.file).map_err(fatal(ACCT))?;
        let acct_crc =
            acct::mark(&mut self.files.disk, self.files.acct.file, acct_at).map_err(said(ACCT))?;
        Ok(ChecksumHead { spool, acct_at, acct_crc })
    }
}
