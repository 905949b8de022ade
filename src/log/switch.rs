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
//! A crash at any step recovers ([`finish_interrupted`]): as long as the new log has its own name,
//! it is thrown away; once it has not, it is complete and durable, and the change of names is
//! finished. A record of a live job that turns out to be damaged is carried over as
//! LSF_HOLD, so that the job is held after the next start, as if the damage had been found then.

use super::codec::{MAX_RECORD, job_of, read_record, write_record};
use super::disk::{Disk, FileId, PUBLIC, exists, read_full};
use super::fence::remove;
use super::owner::{self, Owner};
use super::store::{Fail, Store, Tail, fatal, said};
use super::sum::{self, ENTRY, Entry};
use super::walk::{HEAD, Step, Walker, What, head_line, read_head};
use super::{EVENTS, EVENTS_SUM, spool};
use crate::model::JobRef;
use crate::model::event::{Event, Record};
use std::io;

/// The log that is being made: the run's word follows.
pub(super) const NEW: &str = "lsb.events.new";
/// And this, for its checksum file.
const SUM: &str = ".sum";
/// The newest of the old logs.
const OLD: &str = "lsb.events.1";
const OLD_SUM: &str = "lsb.events.1.sum";

/// Bytes copied in one slice.
const SLICE: usize = 1 << 20;
/// Records looked at in one slice.
pub(super) const SLICE_RECORDS: usize = 4000;

/// What a switch keeps (`Effect::Switch`).
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Jobs whose records are carried over, ascending.
    pub live: Vec<u32>,
    /// What the new log begins with.
    pub head: Vec<Record>,
    /// The spool file that is begun.
    pub spool: u32,
    /// Spool files below are removed.
    pub oldest_spool: u32,
}

/// A switch under way.
pub struct Switching {
    live: Vec<u32>,
    spool: u32,
    oldest: u32,
    /// Length of lsb.acct when the switch was asked for: what ends from then on is in the new
    /// log, and looked for behind this place.
    acct_at: u64,
    new: Tail,
    new_sum: Tail,
    /// Name of the new log.
    name: String,
    /// The checksum file of the old log, until it was read.
    sums: Option<sum::Reader>,
    /// Entries that the old checksum file lacks.
    backfill: Vec<Entry>,
    /// Over what the old log held when the switch was asked for.
    walker: Walker,
    /// Up to here the old log is copied once the walk is over.
    copied: u64,
    /// Length of the new log when all was carried over.
    carried: Option<u64>,
    /// Entries of what was committed since, places in the old log.
    later: Vec<Entry>,
    /// Records and entries not yet written to the new files.
    out: Vec<u8>,
    out_sum: Vec<u8>,
}

impl Switching {
    /// A batch became durable at `base`.
    pub(super) fn committed(&mut self, base: u64, entries: &[Entry]) {
        self.later.extend(entries.iter().map(|e| Entry { at: e.at + base, ..*e }));
    }

    fn is_live(&self, job: JobRef) -> bool {
        job.job != 0 && self.live.binary_search(&job.job).is_ok()
    }

    fn carry(&mut self, line: &[u8], entry: Entry) {
        let at = self.new.len + self.out.len() as u64;
        Entry { at, ..entry }.put(&mut self.out_sum);
        self.out.extend_from_slice(line);
    }

    fn carry_record(&mut self, record: &Record) {
        let mut line = Vec::new();
        write_record(record, &mut line);
        if !line.is_empty() {
            self.carry(&line, Entry::of(0, &line, &record.event));
        }
    }

    fn take(&mut self, step: Step, line: &[u8], time: i64) {
        match step.what {
            What::Checked(entry) if self.is_live(entry.job) => self.carry(line, entry),
            What::Text => {
                let Ok(record) = read_record(line) else { return };
                if self.is_live(job_of(&record.event)) {
                    self.carry(line, Entry::of(0, line, &record.event));
                }
            }
            What::Wrong(e) | What::Beyond(e) if self.is_live(e.job) => {
                let why = format!("its {} was lost from the log", e.name());
                let event = Event::Hold { at: JobRef { job: e.job.job, idx: 0 }, why };
                self.carry_record(&Record { time, event });
            }
            _ => {}
        }
    }
}

impl<D: Disk> Store<D> {
    /// Is a switch under way?
    pub fn is_switching(&self) -> bool {
        self.switching.is_some()
    }

    /// Begins a switch; everything committed so far is what the order knows of.
    pub fn begin_switch(&mut self, order: Order) -> Result<(), Fail> {
        if self.switching.is_some() {
            return Err(Fail::Write("a switch of the log is under way already".into()));
        }
        if self.to_mend() {
            return Err(Fail::Write("the log has to be put in order first".into()));
        }
        // what is behind the place noted here must be of the new log
        let acct_at = self.acct_end()?;
        let name = format!("{NEW}.{}", self.run());
        discard(&mut self.disk, &name).map_err(said(NEW))?;
        one_name(&mut self.disk).map_err(said(OLD))?;
        let sums = self.old_sums().map_err(said(EVENTS_SUM))?;
        let (_, head) = read_head(&mut self.disk, self.events.file).map_err(said(EVENTS))?;
        let new = self.disk.open(&name, Some(PUBLIC)).map_err(said(NEW))?;
        let new_sum = self.disk.open(&sum_of(&name), Some(PUBLIC)).map_err(said(NEW))?;
        let end = self.events.len;
        let mut switching = Switching {
            live: order.live,
            spool: order.spool,
            oldest: order.oldest_spool,
            acct_at,
            new: Tail { file: new, len: HEAD },
            new_sum: Tail { file: new_sum, len: ENTRY as u64 },
            name,
            sums,
            backfill: self.backfill.clone(),
            walker: Walker::new(self.events.file, head, end, Vec::new()),
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
        self.switching = Some(switching);
        Ok(())
    }

    /// The checksum file as it is now, to be read; `None`: there is none.
    fn old_sums(&mut self) -> io::Result<Option<sum::Reader>> {
        match self.disk.open(EVENTS_SUM, None) {
            Ok(file) => sum::Reader::new(&mut self.disk, file, self.sum.len).map(Some),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Reads a slice of the checksum file; with the last one the walk can begin.
    fn read_sums(&mut self, s: &mut Switching) -> io::Result<()> {
        let Some(mut reader) = s.sums.take() else { return Ok(()) };
        match reader.step(&mut self.disk) {
            Ok(false) => {}
            more => {
                s.sums = Some(reader);
                return more.map(|_| ());
            }
        }
        self.disk.close(reader.file);
        let mut entries = reader.sums.entries;
        entries.truncate(entries.partition_point(|e| e.end() <= s.copied));
        let backfill = std::mem::take(&mut s.backfill);
        entries.extend(backfill.into_iter().filter(|e| e.end() <= s.copied));
        let (_, head) = read_head(&mut self.disk, self.events.file)?;
        s.walker = Walker::new(self.events.file, head, s.copied, entries);
        Ok(())
    }

    /// Does a slice of the switch; `true` when it is complete. After [`Fail::Write`] there is no
    /// switch any more.
    pub fn switch_slice(&mut self) -> Result<bool, Fail> {
        let Some(mut switching) = self.switching.take() else { return Ok(false) };
        let done = self.slice(&mut switching);
        match done {
            Ok(true) => {}
            Ok(false) | Err(Fail::Fatal(_)) => self.switching = Some(switching),
            Err(Fail::Write(_)) => {
                self.switching = Some(switching);
                self.give_up_switch();
            }
        }
        done
    }

    /// Ends a switch without result; `false` where none is under way.
    pub fn give_up_switch(&mut self) -> bool {
        let Some(switching) = self.switching.take() else { return false };
        self.disk.close(switching.new.file);
        self.disk.close(switching.new_sum.file);
        if let Some(sums) = &switching.sums {
            self.disk.close(sums.file);
        }
        // what cannot be removed now is with the next switch, or at the next start
        let _ = discard(&mut self.disk, &switching.name);
        true
    }

    fn slice(&mut self, s: &mut Switching) -> Result<bool, Fail> {
        if s.sums.is_some() {
            self.read_sums(s).map_err(said(EVENTS_SUM))?;
        }
        if s.sums.is_some() {
            return Ok(false);
        }
        if s.carried.is_none() {
            let mut line = Vec::new();
            for _ in 0..self.slice {
                let step = s.walker.step(&mut self.disk, &mut line).map_err(said(EVENTS))?;
                match step {
                    Some(step) => s.take(step, &line, self.newest),
                    None => {
                        s.carried = Some(s.new.len + s.out.len() as u64);
                        break;
                    }
                }
                if s.out.len() >= SLICE {
                    break;
                }
            }
        } else if s.copied < self.events.len {
            self.copy_later(s)?;
        }
        self.write_new(s)?;
        if s.carried.is_none() || s.copied < self.events.len {
            return Ok(false);
        }
        self.finish_switch(s).map(|()| true)
    }

    /// Copies a slice of what was committed since.
    fn copy_later(&mut self, s: &mut Switching) -> Result<(), Fail> {
        let want = (self.events.len - s.copied).min(SLICE as u64) as usize;
        let from = s.out.len();
        s.out.resize(from + want, 0);
        let file = self.events.file;
        let got = read_full(&mut self.disk, file, s.copied, &mut s.out[from..]);
        let got = got.map_err(said(EVENTS))?;
        if got < want {
            return Err(Fail::Write(format!("{EVENTS}: shorter than it was")));
        }
        let to = s.copied + want as u64;
        let place = s.new.len + from as u64;
        // whole records first: an entry is written with the last byte of its record
        let ready = s.later.partition_point(|e| e.end() <= to);
        for e in s.later.drain(..ready) {
            Entry { at: place + e.at - s.copied, ..e }.put(&mut s.out_sum);
        }
        s.copied = to;
        Ok(())
    }

    fn write_new(&mut self, s: &mut Switching) -> Result<(), Fail> {
        self.disk.write_at(s.new.file, s.new.len, &s.out).map_err(said(NEW))?;
        s.new.len += s.out.len() as u64;
        s.out.clear();
        let sums = &s.out_sum;
        self.disk.write_at(s.new_sum.file, s.new_sum.len, sums).map_err(said(NEW))?;
        s.new_sum.len += s.out_sum.len() as u64;
        s.out_sum.clear();
        Ok(())
    }

    fn finish_switch(&mut self, s: &mut Switching) -> Result<(), Fail> {
        // the checksum file of a run that has lost the log must not become complete
        self.check_owner_now()?;
        let head = self.acct_head(s.spool, s.acct_at)?;
        let pos = s.carried.unwrap_or(s.new.len);
        self.disk.write_at(s.new_sum.file, 0, &head.put()).map_err(said(NEW))?;
        self.disk.sync(s.new_sum.file).map_err(said(NEW))?;
        // the head line last: without it the new log is not complete
        self.disk.sync(s.new.file).map_err(said(NEW))?;
        self.disk.write_at(s.new.file, 0, &head_line(pos as i64)).map_err(said(NEW))?;
        self.disk.sync(s.new.file).map_err(said(NEW))?;
        self.disk.sync_dir("").map_err(said("the log directory"))?;
        self.check_owner_now()?;
        make_room(&mut self.disk).map_err(said(OLD))?;
        let events = self.events.file;
        change_names(&mut self.disk, &s.name, events, self.newest).map_err(fatal(EVENTS))?;
        self.disk.close(self.events.file);
        self.disk.close(self.sum.file);
        (self.events, self.sum) = (s.new, s.new_sum);
        self.begun = s.spool;
        self.switched_files();
        self.note_mark();
        // a spool file too many does no harm
        for number in spool::list(&mut self.disk).unwrap_or_default() {
            if number < s.oldest {
                let _ = self.disk.remove(&spool::name(number));
                let _ = self.disk.remove(&spool::sum_name(number));
            }
        }
        Ok(())
    }
}

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
fn one_name(disk: &mut dyn Disk) -> io::Result<()> {
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

/// Does the checksum file of this new log cover what is lsb.events now? Its head is written when
/// all of it is; its first and last entry are looked at.
fn is_sum_of(disk: &mut dyn Disk, name: &str) -> io::Result<bool> {
    let sums = sum::read(disk, &sum_of(name))?;
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
fn make_room(disk: &mut dyn Disk) -> io::Result<()> {
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
fn change_names(disk: &mut dyn Disk, new: &str, old: FileId, newest: i64) -> io::Result<()> {
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

fn newest_of(disk: &mut dyn Disk, file: FileId) -> io::Result<i64> {
    let (_, head) = read_head(disk, file)?;
    let limit = disk.len(file)?;
    let mut walker = Walker::new(file, head, limit, Vec::new());
    let (mut newest, mut line) = (0, Vec::new());
    while walker.step(disk, &mut line)?.is_some() {
        if let Ok(record) = read_record(&line) {
            newest = newest.max(record.time);
        }
    }
    Ok(newest)
}
