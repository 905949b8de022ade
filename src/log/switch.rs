//! Begins a new lsb.events without stopping: the records of the jobs in memory are carried over in
//! bounded slices between commits, then what was committed meanwhile, then the files change their
//! names: lsb.events.N becomes N+1, lsb.events gets lsb.events.1 as a second name, and the new log
//! is renamed over lsb.events. The checksum files go with their logs.
//!
//! The first line of the new log is `#<pos>`, the byte position of the first event behind those
//! carried over; that of lsb.events.1 becomes `#<time of its newest event>`.
//!
//! The new log has the run's word in its name: a run that was stopped here while another one took
//! the log over ([`super::fence`]) finds nothing to rename, and has taken no name away. (Old logs
//! may then have moved up by one: that is history, not state.) Where the file system has no second
//! names, lsb.events is renamed to lsb.events.1 first.
//!
//! A job that has left memory leaves its request ID (LSF_SUBMITTED), for the time in which a client
//! may repeat the submission.
//!
//! A crash at any step recovers ([`finish_interrupted`]): as long as the new log has its own name,
//! it is thrown away; once it has not, it is complete and durable, and the change of names is
//! finished. A record of a live job that turns out to be damaged is carried over as
//! LSF_HOLD, so that the job is held after the next start, as if the damage had been found then.

use super::checksums::{self, ChecksumEntry, ChecksumHead, ENTRY};
use super::codec::{job_of, name_and_time, read_record, write_record};
use super::disk::{Disk, PUBLIC, Tail, read_full};
use super::fail::{Fail, fatal, said};
use super::log_files::LogFiles;
use super::record_walk::{HEAD, PlaceContents, RecordWalker, WalkStep, head_line, read_head};
use super::spool;
use super::switch_names::{NEW, OLD, change_names, discard, make_room, one_name, sum_of};
use super::{EVENTS, EVENTS_SUM};
use crate::model::JobRef;
use crate::model::event::{Event, JobNew, Record};
use crate::model::time::REQUEST_WINDOW;
use std::io;

/// Bytes copied in one slice.
const SLICE: usize = 1 << 20;
/// Records that have the request ID of a submission.
const SUBMISSIONS: [&[u8]; 2] = [b"JOB_NEW", b"LSF_SUBMITTED"];
/// Records examined in one slice.
pub(super) const SLICE_RECORDS: usize = 4000;

/// The contents that a switch keeps (`Effect::Switch`).
#[derive(Clone, Debug, Default)]
pub struct SwitchOrder {
    /// Jobs whose records are carried over, ascending.
    pub live: Vec<u32>,
    /// The first records of the new log.
    pub head: Vec<Record>,
    /// The spool file that is begun.
    pub spool: u32,
    /// Spool files below are removed.
    pub oldest_spool: u32,
}

/// A switch under way.
pub struct Switching {
    live: Vec<u32>,
    pub(super) spool: u32,
    oldest: u32,
    /// Length of lsb.acct when the switch was asked for: what ends from then on is in the new
    /// log, and looked for behind this place.
    pub(super) acct_at: u64,
    new: Tail,
    new_sum: Tail,
    /// Name of the new log.
    name: String,
    /// The checksum file of the old log, until it was read.
    sums: Option<checksums::Reader>,
    /// Entries that the old checksum file lacks.
    backfill: Vec<ChecksumEntry>,
    /// Over what the old log held when the switch was asked for.
    walker: RecordWalker,
    /// Up to here the old log is copied once the walk is over.
    copied: u64,
    /// Length of the new log when all was carried over.
    carried: Option<u64>,
    /// Entries of what was committed since, places in the old log.
    later: Vec<ChecksumEntry>,
    /// Records and entries not yet written to the new files.
    out: Vec<u8>,
    out_sum: Vec<u8>,
}

impl Switching {
    /// A batch became durable at `base`.
    pub(super) fn committed(&mut self, base: u64, entries: &[ChecksumEntry]) {
        self.later.extend(entries.iter().map(|e| ChecksumEntry { at: e.at + base, ..*e }));
    }

    fn is_live(&self, job: JobRef) -> bool {
        job.job != 0 && self.live.binary_search(&job.job).is_ok()
    }

    fn carry(&mut self, line: &[u8], entry: ChecksumEntry) {
        let at = self.new.len + self.out.len() as u64;
        ChecksumEntry { at, ..entry }.put(&mut self.out_sum);
        self.out.extend_from_slice(line);
    }

    fn carry_record(&mut self, record: &Record) {
        let mut line = Vec::new();
        write_record(record, &mut line);
        if !line.is_empty() {
            self.carry(&line, ChecksumEntry::of(0, &line, &record.event));
        }
    }

    fn take(&mut self, step: WalkStep, line: &[u8], time: i64) {
        match step.what {
            PlaceContents::Checked(entry) if self.is_live(entry.job) => self.carry(line, entry),
            PlaceContents::Checked(entry) if entry.has_request_id() => {
                self.carry_submission(line, time);
            }
            PlaceContents::Text => {
                let Ok(record) = read_record(line) else { return };
                if self.is_live(job_of(&record.event)) {
                    self.carry(line, ChecksumEntry::of(0, line, &record.event));
                } else {
                    self.carry_submission(line, time);
                }
            }
            PlaceContents::Wrong(e) | PlaceContents::Beyond(e) if self.is_live(e.job) => {
                let why = format!("its {} was lost from the log", e.name());
                let event = Event::Hold { at: JobRef { job: e.job.job, idx: 0 }, why };
                self.carry_record(&Record { time, event });
            }
            _ => {}
        }
    }

    /// Keeps the request ID of a submission whose job has left memory, as long as a retry of it may
    /// arrive. `newest`: the time of the newest record.
    fn carry_submission(&mut self, line: &[u8], newest: i64) {
        let kept = |time: i64| time.saturating_add(REQUEST_WINDOW) > newest;
        let begins = name_and_time(line);
        if !begins.is_some_and(|(name, time)| SUBMISSIONS.contains(&name) && kept(time)) {
            return;
        }
        let Ok(Record { time, event }) = read_record(line) else { return };
        let event = match event {
            Event::JobNew(new) => {
                let JobNew { job, submit_time, request, .. } = *new;
                Event::Submitted { job, submit_time, request }
            }
            other => other,
        };
        if matches!(&event, Event::Submitted { request, .. } if !request.is_empty()) {
            self.carry_record(&Record { time, event });
        }
    }

    /// Begins a switch; everything committed so far is what the order knows of. `acct_at`: the
    /// length of lsb.acct; `backfill`: the entries that the checksum file lacks.
    pub(super) fn begin<D: Disk>(
        files: &mut LogFiles<D>,
        order: SwitchOrder,
        acct_at: u64,
        backfill: Vec<ChecksumEntry>,
    ) -> Result<Switching, Fail> {
        let name = format!("{NEW}.{}", files.run());
        discard(&mut files.disk, &name).map_err(said(NEW))?;
        one_name(&mut files.disk).map_err(said(OLD))?;
        let sums = old_sums(files).map_err(said(EVENTS_SUM))?;
        let (_, head) = read_head(&mut files.disk, files.events.file).map_err(said(EVENTS))?;
        let new = files.disk.open(&name, Some(PUBLIC)).map_err(said(NEW))?;
        let new_sum = files.disk.open(&sum_of(&name), Some(PUBLIC)).map_err(said(NEW))?;
        let end = files.events.len;
        let mut switching = Switching {
            live: order.live,
            spool: order.spool,
            oldest: order.oldest_spool,
            acct_at,
            new: Tail { file: new, len: HEAD },
            new_sum: Tail { file: new_sum, len: ENTRY as u64 },
            name,
            sums,
            backfill,
            walker: RecordWalker::new(files.events.file, head, end, Vec::new()),
            copied: end,
            carried: None,
            later: Vec::new(),
            out: Vec::new(),
            out_sum: Vec::new(),
        };
        switching.live.sort_unstable();
        for record in &order.head {
            switching.carry_record(record);
        }
        Ok(switching)
    }

    /// Reads a slice of the checksum file; with the last one the walk can begin.
    fn read_sums<D: Disk>(&mut self, files: &mut LogFiles<D>) -> io::Result<()> {
        let Some(mut reader) = self.sums.take() else { return Ok(()) };
        match reader.step(&mut files.disk) {
            Ok(false) => {}
            more => {
                self.sums = Some(reader);
                return more.map(|_| ());
            }
        }
        files.disk.close(reader.file);
        let mut entries = reader.sums.entries;
        entries.truncate(entries.partition_point(|e| e.end() <= self.copied));
        let backfill = std::mem::take(&mut self.backfill);
        entries.extend(backfill.into_iter().filter(|e| e.end() <= self.copied));
        let (_, head) = read_head(&mut files.disk, files.events.file)?;
        self.walker = RecordWalker::new(files.events.file, head, self.copied, entries);
        Ok(())
    }

    /// Carries over a slice of at most `records`; `true` when nothing is left, and
    /// [`Switching::finish`] is due. `newest`: the time of the newest record.
    pub(super) fn carry_slice<D: Disk>(
        &mut self,
        files: &mut LogFiles<D>,
        records: usize,
        newest: i64,
    ) -> Result<bool, Fail> {
        if self.sums.is_some() {
            self.read_sums(files).map_err(said(EVENTS_SUM))?;
        }
        if self.sums.is_some() {
            return Ok(false);
        }
        if self.carried.is_none() {
            let mut line = Vec::new();
            for _ in 0..records {
                let step = self.walker.step(&mut files.disk, &mut line).map_err(said(EVENTS))?;
                match step {
                    Some(step) => self.take(step, &line, newest),
                    None => {
                        self.carried = Some(self.new.len + self.out.len() as u64);
                        break;
                    }
                }
                if self.out.len() >= SLICE {
                    break;
                }
            }
        } else if self.copied < files.events.len {
            self.copy_later(files)?;
        }
        self.write_new(files)?;
        Ok(self.carried.is_some() && self.copied >= files.events.len)
    }

    /// Copies a slice of what was committed since.
    fn copy_later<D: Disk>(&mut self, files: &mut LogFiles<D>) -> Result<(), Fail> {
        let want = (files.events.len - self.copied).min(SLICE as u64) as usize;
        let from = self.out.len();
        self.out.resize(from + want, 0);
        let file = files.events.file;
        let got = read_full(&mut files.disk, file, self.copied, &mut self.out[from..]);
        let got = got.map_err(said(EVENTS))?;
        if got < want {
            return Err(Fail::Write(format!("{EVENTS}: shorter than it was")));
        }
        let to = self.copied + want as u64;
        let place = self.new.len + from as u64;
        // whole records first: an entry is written with the last byte of its record
        let ready = self.later.partition_point(|e| e.end() <= to);
        for e in self.later.drain(..ready) {
            ChecksumEntry { at: place + e.at - self.copied, ..e }.put(&mut self.out_sum);
        }
        self.copied = to;
        Ok(())
    }

    fn write_new<D: Disk>(&mut self, files: &mut LogFiles<D>) -> Result<(), Fail> {
        files.disk.write_at(self.new.file, self.new.len, &self.out).map_err(said(NEW))?;
        self.new.len += self.out.len() as u64;
        self.out.clear();
        let sums = &self.out_sum;
        files.disk.write_at(self.new_sum.file, self.new_sum.len, sums).map_err(said(NEW))?;
        self.new_sum.len += self.out_sum.len() as u64;
        self.out_sum.clear();
        Ok(())
    }

    /// Completes the new log with the head of its checksum file, and gives it its name.
    pub(super) fn finish<D: Disk>(
        &mut self,
        files: &mut LogFiles<D>,
        head: ChecksumHead,
        newest: i64,
    ) -> Result<(), Fail> {
        let pos = self.carried.unwrap_or(self.new.len);
        files.disk.write_at(self.new_sum.file, 0, &head.put()).map_err(said(NEW))?;
        files.disk.sync(self.new_sum.file).map_err(said(NEW))?;
        // the head line last: without it the new log is not complete
        files.disk.sync(self.new.file).map_err(said(NEW))?;
        files.disk.write_at(self.new.file, 0, &head_line(pos as i64)).map_err(said(NEW))?;
        files.disk.sync(self.new.file).map_err(said(NEW))?;
        files.disk.sync_dir("").map_err(said("the log directory"))?;
        files.check_owner_now()?;
        make_room(&mut files.disk).map_err(said(OLD))?;
        let events = files.events.file;
        change_names(&mut files.disk, &self.name, events, newest).map_err(fatal(EVENTS))?;
        files.disk.close(files.events.file);
        files.disk.close(files.sum.file);
        (files.events, files.sum) = (self.new, self.new_sum);
        Ok(())
    }

    /// Removes the spool files that nothing in the new log refers to.
    pub(super) fn remove_old_spools(&self, disk: &mut dyn Disk) {
        // a spool file too many does no harm
        for number in spool::list(disk).unwrap_or_default() {
            if number < self.oldest {
                let _ = disk.remove(&spool::name(number));
                let _ = disk.remove(&spool::sum_name(number));
            }
        }
    }

    /// Ends the switch without result.
    pub(super) fn discard<D: Disk>(self, files: &mut LogFiles<D>) {
        files.disk.close(self.new.file);
        files.disk.close(self.new_sum.file);
        if let Some(sums) = &self.sums {
            files.disk.close(sums.file);
        }
        // what cannot be removed now is with the next switch, or at the next start
        let _ = discard(&mut files.disk, &self.name);
    }
}

/// The checksum file as it is now, to be read; `None`: there is none.
fn old_sums<D: Disk>(files: &mut LogFiles<D>) -> io::Result<Option<checksums::Reader>> {
    match files.disk.open(EVENTS_SUM, None) {
        Ok(file) => checksums::Reader::new(&mut files.disk, file, files.sum.len).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
