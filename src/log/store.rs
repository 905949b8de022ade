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

use super::acct_copy::AcctCopy;
use super::codec::{job_of, write_finish, write_record};
use super::disk::{Disk, FileId, INFO, PRIVATE, PUBLIC, write_small};
use super::mend::Mend;
use super::owner::{OWNER, Owner};
use super::recover::Plan;
use super::recover::against::{ACCEPT, Base, Mark};
use super::sum::{self, Entry, Head};
use super::switch::{SLICE_RECORDS, Switching};
use super::walk::{HEAD, head_line};
use super::{ACCT, EVENTS, EVENTS_SUM, acct, spool};
use crate::model::event::{Event, Finish, Record};
use crate::model::job::SpoolRef;
use std::collections::BTreeSet;
use std::fmt;
use std::io;

/// Bytes of records after which the checksum entries are synced.
pub const SUM_SYNC: u64 = 1 << 20;

/// Accounting records kept in memory while lsb.acct cannot be written, bytes. Beyond it they are
/// dropped: the log is not switched before recovery has derived them again.
const MAX_ACCT_PENDING: usize = 64 << 20;

/// File into which a doubtful tail is put aside.
const CUT: &str = "lsb.events.cut";
/// File with which is tried whether writing works again.
const PROBE: &str = "lsb.events.probe";
/// Longest time between two readings of the owner file, as long as commits come, microseconds.
pub const OWNER_AGE: u64 = 500_000;
/// Bytes that must fit for writing to be tried again.
const PROBE_BYTES: usize = 64 << 10;

/// Spooled bytes that lie one behind the other.
#[derive(Clone, Debug, Default)]
struct SpoolRun {
    spool: u32,
    at: u64,
    data: Vec<u8>,
    /// Of the pieces in it.
    entries: Vec<Entry>,
}

/// What becomes durable together.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Given by the caller, reported back.
    pub ticket: u64,
    events: Vec<u8>,
    /// Places relative to the batch.
    entries: Vec<Entry>,
    spool: Vec<SpoolRun>,
    acct: Vec<u8>,
    newest: i64,
    /// The batch has a record of no job.
    control: bool,
}

impl Batch {
    /// Adds a record to lsb.events.
    pub fn append(&mut self, record: &Record) {
        let from = self.events.len();
        write_record(record, &mut self.events);
        match &record.event {
            Event::JobNew(new) => self.spooled_for(new.job, [new.env, new.script, new.exact]),
            Event::JobModify(m) => self.spooled_for(m.job, [m.env, m.script, m.exact]),
            _ => {}
        }
        if self.events.len() > from {
            let line = &self.events[from..];
            self.entries.push(Entry::of(from as u64, line, &record.event));
            self.newest = self.newest.max(record.time);
            self.control |= job_of(&record.event).job == 0;
        }
    }

    /// Notes whose record refers to pieces of this batch.
    fn spooled_for(&mut self, job: u32, places: [SpoolRef; 3]) {
        let Some(run) = self.spool.last_mut() else { return };
        for at in places.iter().filter(|at| at.len > 0 && at.spool == run.spool) {
            // they were spooled just before
            let mut last = run.entries.iter_mut().rev().take(places.len());
            if let Some(entry) = last.find(|e| e.at == at.at) {
                entry.job.job = job;
            }
        }
    }

    /// Adds spooled bytes at their place.
    pub fn spool(&mut self, at: SpoolRef, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let (len, crc) = (data.len() as u32, crc32fast::hash(data));
        let entry = Entry { at: at.at, len, crc, ..Entry::default() };
        self.spool_run(at.spool, at.at, data, &[entry]);
    }

    fn spool_run(&mut self, spool: u32, at: u64, data: &[u8], entries: &[Entry]) {
        match self.spool.last_mut() {
            Some(run) if run.spool == spool && run.at + run.data.len() as u64 == at => {
                run.data.extend_from_slice(data);
                run.entries.extend_from_slice(entries);
            }
            _ => {
                let (data, entries) = (data.to_vec(), entries.to_vec());
                self.spool.push(SpoolRun { spool, at, data, entries });
            }
        }
    }

    /// Adds a record to lsb.acct.
    pub fn account(&mut self, finish: &Finish) {
        write_finish(finish, &mut self.acct);
    }

    /// Is there nothing to make durable or to account?
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.spool.is_empty() && self.acct.is_empty()
    }

    /// Bytes gathered, for a cap.
    pub fn bytes(&self) -> usize {
        let spooled: usize = self.spool.iter().map(|run| run.data.len()).sum();
        self.events.len() + self.acct.len() + spooled
    }

    /// Puts a later batch behind this one.
    pub fn join(&mut self, later: Batch) {
        self.ticket = self.ticket.max(later.ticket);
        let base = self.events.len() as u64;
        self.events.extend_from_slice(&later.events);
        self.entries.extend(later.entries.iter().map(|e| Entry { at: e.at + base, ..*e }));
        for run in later.spool {
            self.spool_run(run.spool, run.at, &run.data, &run.entries);
        }
        self.acct.extend_from_slice(&later.acct);
        self.newest = self.newest.max(later.newest);
        self.control |= later.control;
    }
}

/// Why a commit did not become durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fail {
    /// It was undone; writing may work again later.
    Write(String),
    /// The process must end at once.
    Fatal(String),
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fail::Write(why) | Fail::Fatal(why)) = self;
        f.write_str(why)
    }
}

/// Places in a commit at which tests kill the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    BeforeAppend,
    BeforeSync,
    BeforeReply,
    AfterReply,
}

/// An append-only file and its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    pub file: FileId,
    pub len: u64,
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
    pub(super) disk: D,
    owner: Owner,
    owner_file: FileId,
    /// The next commit was checked already ([`Store::check_ahead`]).
    checked: bool,
    /// The newest spool file at the start, and those that this run made.
    spool_file: u32,
    spools_made: BTreeSet<u32>,
    /// When it was read last, by the monotonic clock.
    owner_read: Option<u64>,
    pub(super) events: Tail,
    pub(super) sum: Tail,
    pub(super) acct: Tail,
    spool: Option<Spool>,
    /// Entries of records that have none yet.
    pub(super) backfill: Vec<Entry>,
    acct_pending: Vec<u8>,
    acct_lost: bool,
    /// lsb.acct is not written before it has been copied.
    pub(super) acct_copy: Option<AcctCopy>,
    /// The checksum file goes on with entries of records that are lost ([`Plan::stale`]).
    stale: bool,
    /// The next commit puts the log in order ([`Plan::mend`]), with this head of its checksums.
    mend: Option<(Box<Mend>, Head)>,
    /// Files may be longer than they should.
    trim: bool,
    /// Bytes of records whose entries are not synced.
    sum_lag: u64,
    /// The spool file that was begun with this log.
    pub(super) begun: u32,
    /// This run's mark, which says how far the log has come.
    mark: Option<FileId>,
    pub(super) newest: i64,
    pub(super) switching: Option<Switching>,
    /// Records looked at in one slice of a switch.
    pub(super) slice: usize,
    buf: Vec<u8>,
}

pub(super) fn said(what: &str) -> impl FnOnce(io::Error) -> Fail + '_ {
    move |e| Fail::Write(format!("{what}: {}", crate::sys::words(&e)))
}

pub(super) fn fatal(what: &str) -> impl FnOnce(io::Error) -> Fail + '_ {
    move |e| Fail::Fatal(format!("{what}: {}", crate::sys::words(&e)))
}

fn taken() -> Fail {
    Fail::Fatal(format!("{OWNER}: {}", super::owner::taken()))
}

impl<D: Disk> Store<D> {
    /// Mends what recovery found; it has become the owner. The lock must be held.
    pub fn open(mut disk: D, plan: Plan) -> Result<Store<D>, Fail> {
        let owner_file = disk.open(OWNER, None).map_err(said(OWNER))?;
        let events = disk.open(EVENTS, Some(PUBLIC)).map_err(said(EVENTS))?;
        let sum = disk.open(EVENTS_SUM, Some(PUBLIC)).map_err(said(EVENTS_SUM))?;
        let acct = disk.open(ACCT, Some(PUBLIC)).map_err(said(ACCT))?;
        // what has been opened before this is no later run's
        if !plan.owner.holds(&mut disk).map_err(said(OWNER))? {
            return Err(taken());
        }
        let events = mend_events(&mut disk, events, &plan)?;
        let sum = mend_sum(&mut disk, sum, &plan)?;
        let acct_copy = plan.copy_acct.then(|| AcctCopy::new(&plan.owner.run, plan.acct_end));
        if acct_copy.is_none() {
            disk.truncate(acct, plan.acct_end).map_err(said(ACCT))?;
        }
        let mut store = Store {
            disk,
            owner: plan.owner.clone(),
            checked: false,
            spool_file: plan.spool_file,
            spools_made: BTreeSet::new(),
            owner_file,
            owner_read: None,
            events,
            sum,
            acct: Tail { file: acct, len: plan.acct_end },
            spool: None,
            backfill: plan.backfill.clone(),
            acct_pending: Vec::new(),
            acct_lost: false,
            acct_copy,
            stale: plan.stale,
            mend: plan.mend.clone().map(|mend| (mend, plan.sum_head.unwrap_or(FIRST_HEAD))),
            trim: false,
            sum_lag: 0,
            begun: plan.sum_head.map_or(1, |head| head.spool),
            mark: None,
            newest: plan.newest,
            switching: None,
            slice: SLICE_RECORDS,
            buf: Vec::new(),
        };
        for finish in &plan.finishes {
            write_finish(finish, &mut store.acct_pending);
        }
        if plan.same_boot {
            let from = plan.backfill.first().map_or(store.events.len, |e| e.at);
            if plan.mend.is_none() {
                rewrite(&mut store.disk, store.events, from).map_err(said(EVENTS))?;
            }
            if !plan.copy_acct {
                rewrite(&mut store.disk, store.acct, plan.acct_synced).map_err(said(ACCT))?;
            }
            rewrite_spooled(&mut store.disk, &plan)?;
        }
        // whole records that were never synced may be in what was read
        store.disk.sync(store.events.file).map_err(fatal(EVENTS))?;
        store.disk.sync_dir("").map_err(fatal("the log directory"))?;
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

    /// Begins anew from a log that is not the last one. What tells that goes last: a start that is
    /// interrupted here asks the administrator again.
    fn begin_from(&mut self, base: &Base) -> Result<(), Fail> {
        let mut batch = Batch::default();
        base.records.iter().for_each(|record| batch.append(record));
        self.commit(&batch, 0, &mut |_| {})?;
        self.owner_read = None;
        if base.head {
            // what is in the log by now is not looked for in lsb.acct any more
            let head = head_line(self.events.len as i64);
            self.disk.write_at(self.events.file, 0, &head).map_err(said(EVENTS))?;
            self.disk.sync(self.events.file).map_err(fatal(EVENTS))?;
            let head = self.acct_head(base.spool, self.acct.len)?;
            self.disk.write_at(self.sum.file, 0, &head.put()).map_err(said(EVENTS_SUM))?;
            self.disk.sync(self.sum.file).map_err(fatal(EVENTS_SUM))?;
            self.begun = base.spool;
        }
        self.disk.remove(ACCEPT).map_err(said(ACCEPT))?;
        self.disk.sync_dir("").map_err(fatal("the log directory"))
    }

    /// Notes how far the log has come, for the next start. Nothing depends on it but that an older
    /// log which somebody puts back is noticed.
    pub(super) fn note_mark(&mut self) {
        // a log that is put in order may become shorter
        let len = if self.to_mend() { 0 } else { self.events.len };
        self.put_mark(len);
    }

    pub(super) fn put_mark(&mut self, len: u64) {
        let run = self.owner.run.clone();
        let first = self.mark.is_none();
        if first {
            self.mark = self.disk.open(&Mark::name(&run), Some(PRIVATE)).ok();
        }
        let Some(file) = self.mark else { return };
        let text = Mark { spool: self.begun, len }.text();
        let wrote = self.disk.write_at(file, 0, &text).is_ok();
        if first && wrote && self.disk.sync(file).and_then(|()| self.disk.sync_dir(INFO)).is_ok() {
            // what is left of them is removed at the next start
            let _ = Mark::discard_others(&mut self.disk, &run);
        }
    }

    /// Bytes of lsb.events that are durable.
    pub fn durable_len(&self) -> u64 {
        self.events.len
    }

    /// Another size for the slices of a switch, records.
    pub fn set_slice(&mut self, records: usize) {
        self.slice = records.max(1);
    }

    /// The disk, for reading.
    pub fn disk(&mut self) -> &mut D {
        &mut self.disk
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
            self.check_owner(now)?;
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
        let Tail { file, len } = self.events;
        let mends = self.mend.is_some() && !batch.events.is_empty();
        // a loss of power must not leave a record without its bytes in the spool
        if let Some(spool) = &spool {
            self.disk.sync(spool.data.file).map_err(fatal("the spool"))?;
        }
        if !batch.events.is_empty() && !mends {
            self.disk.write_at(file, len, &batch.events).map_err(said(EVENTS))?;
        }
        at(Point::BeforeSync);
        if mends && let Some((mend, head)) = self.mend.take() {
            let done = self.commit_mended(&mend, head, &batch.events, &batch.entries);
            if done.is_err() {
                self.mend = Some((mend, head));
            }
            done?;
        } else if !batch.events.is_empty() {
            self.disk.sync(file).map_err(fatal(EVENTS))?;
        }
        self.check_owner_synced()?;
        let spool = self.write_spool_sum(spool, &batch.spool)?;
        if !batch.events.is_empty() && !mends {
            self.write_sum(batch)?;
            self.events.len += batch.events.len() as u64;
        }
        if spool.is_some() {
            self.spool = spool;
        }
        self.newest = self.newest.max(batch.newest);
        self.note_mark();
        // nothing else beside the log tells of such a record
        if let Some(mark) = self.mark.filter(|_| batch.control) {
            let _ = self.disk.sync(mark);
        }
        if self.acct_pending.len() + batch.acct.len() > MAX_ACCT_PENDING {
            self.acct_lost = true;
        } else {
            self.acct_pending.extend_from_slice(&batch.acct);
        }
        self.flush_acct();
        Ok(())
    }

    /// Is the log still this run's, as far as is known?
    pub fn look(&mut self, now: u64) -> Result<(), Fail> {
        self.check_owner(now)
    }

    /// Checks now what the next commit would check first. A process may be stopped for any time
    /// between that check and the write.
    pub fn check_ahead(&mut self, now: u64) -> Result<(), Fail> {
        self.check_owner(now)?;
        self.checked = true;
        Ok(())
    }

    fn check_owner(&mut self, now: u64) -> Result<(), Fail> {
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
    fn check_owner_synced(&mut self) -> Result<(), Fail> {
        if !self.disk.is_local() {
            return self.check_owner_now();
        }
        if !self.disk.named(self.owner_file, OWNER).map_err(said(OWNER))? {
            return Err(taken());
        }
        self.check_events()
    }

    /// Is it this run that owns the log, and this file that is the log?
    pub(super) fn check_owner_now(&mut self) -> Result<(), Fail> {
        if !self.owner.holds(&mut self.disk).map_err(said(OWNER))? {
            return Err(taken());
        }
        self.check_events()
    }

    fn check_events(&mut self) -> Result<(), Fail> {
        if !self.disk.named(self.events.file, EVENTS).map_err(said(EVENTS))? {
            let why = "another file has taken its place, or it was removed";
            return Err(Fail::Fatal(format!("{EVENTS}: {why}")));
        }
        Ok(())
    }

    /// The word of this run.
    pub(super) fn run(&self) -> &str {
        &self.owner.run
    }

    /// Cuts what a commit that failed left behind.
    fn trim(&mut self) -> Result<(), Fail> {
        if !self.trim {
            return Ok(());
        }
        // entries first: one without its record would be damage, or tell of a log that is too old
        if let Some(spool) = self.spool {
            let Tail { file, len } = spool.sum;
            self.disk.truncate(file, len).map_err(said("the spool"))?;
            self.disk.sync(file).map_err(fatal("the spool"))?;
        }
        if !self.stale {
            self.disk.truncate(self.sum.file, self.sum.len).map_err(said(EVENTS_SUM))?;
            // its entries must not come back beside the records that take these places
            self.disk.sync(self.sum.file).map_err(fatal(EVENTS_SUM))?;
        }
        self.disk.truncate(self.events.file, self.events.len).map_err(said(EVENTS))?;
        // its records must not come back, least of all without their bytes in the spool
        self.disk.sync(self.events.file).map_err(fatal(EVENTS))?;
        if let Some(Spool { data: Tail { file, len }, .. }) = self.spool {
            self.disk.truncate(file, len).map_err(said("the spool"))?;
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
            self.disk.write_at(file, run.at, &run.data).map_err(said("the spool"))?;
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
        self.disk.write_at(file, len, &self.buf).map_err(said("the spool"))?;
        spool.sum.len += self.buf.len() as u64;
        Ok(Some(spool))
    }

    fn next_spool(&mut self, before: Option<Spool>, number: u32) -> Result<Spool, Fail> {
        if let Some(before) = before {
            // what lies in it of this batch
            self.disk.sync(before.data.file).map_err(fatal("the spool"))?;
            self.disk.close(before.data.file);
            self.disk.close(before.sum.file);
            self.spool = None;
        }
        let name = spool::name(number);
        let new = !self.spools_made.contains(&number)
            && (number > self.spool_file
                || !super::disk::exists(&mut self.disk, &name).map_err(said("the spool"))?);
        let data = if new { self.new_spool(number)? } else { self.open_tail(&name)? };
        let mut sum = self.open_tail(&spool::sum_name(number))?;
        // what has been opened before this is no later run's
        self.check_owner_now()?;
        if sum.len < sum::ENTRY as u64 {
            let head = Head { spool: number, ..Head::default() }.put();
            self.disk.write_at(sum.file, 0, &head).map_err(said("the spool"))?;
        }
        // a torn entry at the end is written over
        sum.len = (sum.len / sum::ENTRY as u64).max(1) * sum::ENTRY as u64;
        let spool = Spool { number, data, sum };
        // from here on it is the open one, so that a failure does not lose the descriptors
        self.spool = Some(spool);
        if new {
            self.disk.sync_dir(INFO).map_err(fatal("the spool"))?;
        }
        Ok(spool)
    }

    /// Makes a spool file. One that is there already is another run's.
    fn new_spool(&mut self, number: u32) -> Result<Tail, Fail> {
        let name = spool::name(number);
        match self.disk.create_new(&name, PRIVATE) {
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
        let file = self.disk.open(name, Some(PRIVATE)).map_err(said("the spool"))?;
        let len = self.disk.len(file).map_err(said("the spool"))?;
        Ok(Tail { file, len })
    }

    /// Appends the entries of a batch whose records are durable.
    fn write_sum(&mut self, batch: &Batch) -> Result<(), Fail> {
        let base = self.events.len;
        self.buf.clear();
        let moved = batch.entries.iter().map(|e| Entry { at: e.at + base, ..*e });
        for entry in self.backfill.iter().copied().chain(moved) {
            entry.put(&mut self.buf);
        }
        self.disk.write_at(self.sum.file, self.sum.len, &self.buf).map_err(said(EVENTS_SUM))?;
        self.sum_lag += batch.events.len() as u64;
        if self.stale {
            let len = self.sum.len + self.buf.len() as u64;
            self.disk.truncate(self.sum.file, len).map_err(said(EVENTS_SUM))?;
        }
        if self.stale || self.sum_lag >= SUM_SYNC {
            self.disk.sync(self.sum.file).map_err(fatal(EVENTS_SUM))?;
            self.sum_lag = 0;
        }
        self.sum.len += self.buf.len() as u64;
        self.backfill.clear();
        self.stale = false;
        if let Some(switching) = &mut self.switching {
            switching.committed(base, &batch.entries);
        }
        Ok(())
    }

    /// Appends what accounting there is; what cannot be written waits.
    pub(super) fn flush_acct(&mut self) -> bool {
        if self.acct_pending.is_empty() {
            return !self.acct_lost;
        }
        if self.is_copying_acct() {
            return false;
        }
        let Tail { file, len } = self.acct;
        if self.disk.write_at(file, len, &self.acct_pending).is_err() {
            let _ = self.disk.truncate(file, len);
            return false;
        }
        self.acct.len += self.acct_pending.len() as u64;
        self.acct_pending.clear();
        !self.acct_lost
    }

    /// Length of lsb.acct with all that has ended so far.
    pub(super) fn acct_end(&mut self) -> Result<u64, Fail> {
        let waits = self.is_copying_acct() && !self.acct_lost;
        if !self.flush_acct() && !waits {
            return Err(Fail::Write(format!("{ACCT}: cannot be written")));
        }
        Ok(self.acct.len + self.acct_pending.len() as u64)
    }

    /// Can the log be written again? Tried with files of its own, also in the private directory,
    /// which may be another file system.
    pub fn probe(&mut self) -> Result<(), Fail> {
        self.trim()?;
        [PROBE.to_string(), format!("{INFO}/{PROBE}")].iter().try_for_each(|name| {
            let done = write_small(&mut self.disk, name, PRIVATE, &[0; PROBE_BYTES]);
            let _ = self.disk.remove(name);
            done.map_err(said(name))
        })
    }

    /// Is the log still to be put in order?
    pub(super) fn to_mend(&self) -> bool {
        self.mend.is_some()
    }

    /// The files are those of a new log, whole and durable.
    pub(super) fn switched_files(&mut self) {
        self.backfill.clear();
        self.stale = false;
        self.sum_lag = 0;
    }

    /// Syncs what is synced lazily: before the process ends.
    pub fn close(mut self) {
        self.flush_acct();
        self.note_mark();
        let _ = self.disk.sync(self.sum.file);
        let _ = self.disk.sync(self.acct.file);
    }

    /// What the head of the next log's checksum file says of lsb.acct, after making it durable.
    /// `acct_at`: its length when the records of ended jobs were carried over.
    pub(super) fn acct_head(&mut self, spool: u32, acct_at: u64) -> Result<Head, Fail> {
        if !self.flush_acct() {
            return Err(Fail::Write(format!("{ACCT}: cannot be written")));
        }
        self.disk.sync(self.acct.file).map_err(fatal(ACCT))?;
        let acct_crc = acct::mark(&mut self.disk, self.acct.file, acct_at).map_err(said(ACCT))?;
        Ok(Head { spool, acct_at, acct_crc })
    }
}

/// Head of a checksum file where none is known.
const FIRST_HEAD: Head = Head { spool: 1, acct_at: 0, acct_crc: 0 };

/// Longest stretch that is written anew, bytes: what is older has long been written back.
const MAX_REWRITE: u64 = super::recover::MAX_LAG;
/// Bytes written anew at a time.
const REWRITE: usize = 1 << 20;

/// Writes what a file has from a place on once more. After a sync that failed, the system counts
/// it as written though it is not: no later sync would cover it.
fn rewrite<D: Disk>(disk: &mut D, tail: Tail, from: u64) -> io::Result<()> {
    let mut at = from.max(tail.len.saturating_sub(MAX_REWRITE));
    let mut buf = vec![0; REWRITE.min(tail.len.saturating_sub(at) as usize)];
    while at < tail.len {
        let want = buf.len().min((tail.len - at) as usize);
        let got = super::disk::read_full(disk, tail.file, at, &mut buf[..want])?;
        if got == 0 {
            break;
        }
        disk.write_at(tail.file, at, &buf[..got])?;
        at += got as u64;
    }
    Ok(())
}

/// The same for what records have in the spool, which is synced before they are.
fn rewrite_spooled<D: Disk>(disk: &mut D, plan: &Plan) -> Result<(), Fail> {
    let places = &plan.spooled;
    let mut numbers: Vec<u32> = places.iter().filter(|at| at.len > 0).map(|at| at.spool).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let name = spool::name(number);
        if !super::disk::exists(disk, &name).map_err(said("the spool"))? {
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

fn mend_events<D: Disk>(disk: &mut D, file: FileId, plan: &Plan) -> Result<Tail, Fail> {
    let mut len = plan.end;
    if let Some(to) = plan.cut {
        if plan.save_cut {
            save_cut(disk, file, plan.end, to)?;
        }
        disk.truncate(file, plan.end).map_err(said(EVENTS))?;
    }
    if plan.write_head {
        let head = head_line(HEAD as i64);
        disk.write_at(file, 0, &head).map_err(said(EVENTS))?;
        len = len.max(head.len() as u64);
    }
    if plan.end_line {
        disk.write_at(file, len, b"\n").map_err(said(EVENTS))?;
        len += 1;
    }
    Ok(Tail { file, len })
}

/// Keeps what is cut and might hold whole records.
fn save_cut<D: Disk>(disk: &mut D, file: FileId, from: u64, to: u64) -> Result<(), Fail> {
    let mut buf = vec![0; (to - from).min(super::recover::MAX_LAG) as usize];
    let got = super::disk::read_full(disk, file, from, &mut buf).map_err(said(EVENTS))?;
    let copy = disk.open(CUT, Some(PUBLIC)).map_err(said(CUT))?;
    let len = disk.len(copy).map_err(said(CUT))?;
    let done = disk.write_at(copy, len, &buf[..got]).and_then(|()| disk.sync(copy));
    disk.close(copy);
    done.map_err(said(CUT))
}

fn mend_sum<D: Disk>(disk: &mut D, file: FileId, plan: &Plan) -> Result<Tail, Fail> {
    if plan.sum_head.is_none() && plan.mend.is_none() {
        disk.write_at(file, 0, &FIRST_HEAD.put()).map_err(said(EVENTS_SUM))?;
        disk.sync(file).map_err(said(EVENTS_SUM))?;
    }
    let len = plan.sum_len.max(sum::ENTRY as u64);
    if !plan.stale {
        disk.truncate(file, len).map_err(said(EVENTS_SUM))?;
    }
    Ok(Tail { file, len })
}
