//! One pass over lsb.events: what each line is, which jobs it speaks of, what is damage and what a
//! torn commit. The pass judges line by line; what follows from all of them is in plan.rs.

use super::super::checksums::{self, ChecksumEntry, Checksums};
use super::super::codec::{NO_GID, RecordError, SimilarSubmissions, job_of, spooled_of};
use super::super::disk::{Disk, FileId};
use super::super::mend::Piece;
use super::super::record_walk::{HEAD, PlaceContents, RecordWalker, WalkStep, read_head};
use super::super::{EVENTS, EVENTS_SUM};
use super::controls::{Lost, LostControls, may_be_control};
use super::found::{MAX_LAG, RecoverError, RecoveryNotice, failed};
use super::repeated::{RECENT, RecordTimes, Repeats, begins_a_run};
use super::spooled::SpoolPlaces;
use crate::model::event::{ArraySignal, Event, JobAttachment, JobNew, Record};
use crate::model::idmap::IdMap;
use crate::model::job::{JobSpec, SpoolRef};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A range of lsb.events that is no record any more.
#[derive(Debug)]
pub(super) struct Damage {
    /// The end of the range in the file as it was written.
    pub(super) to: u64,
    /// The range in the file as it is now.
    pub(super) file: (u64, u64),
    pub(super) why: String,
    pub(super) lost: Vec<ChecksumEntry>,
}

/// A line behind all entries that cannot be read.
#[derive(Debug)]
pub(super) struct Doubtful {
    pub(super) step: WalkStep,
    pub(super) why: String,
    /// The record may have been one of control.
    pub(super) control: bool,
}

/// The facts kept of a job that was not cleaned: few, of very many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Track {
    pub(super) array: bool,
    /// The job has ended, and may be put back to its queue.
    pub(super) over: bool,
    /// The number of its JOB_NEW among the records, or of its first record where that is lost.
    pub(super) new: usize,
    /// The place of that record in the file.
    pub(super) new_at: u64,
}

/// Damage to a job, which few have.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Place of the last damage that hit it, with words.
    pub(super) hurt: Option<(u64, String)>,
    /// Damage took a record of the job, not only its environment or script.
    pub(super) record_lost: bool,
    /// Place behind the last LSF_HOLD.
    pub(super) held: u64,
}

/// One pass over lsb.events.
pub(super) struct LogScan {
    pub(super) file: Option<FileId>,
    pub(super) file_len: u64,
    pub(super) head_len: u64,
    pub(super) head_pos: u64,
    /// The system has not been started since the log was written.
    pub(super) same_boot: bool,
    /// Nor has power been lost, by this system or by the host of a copy, since a run checked the
    /// log: a line that cannot be read is no write that was cut off.
    pub(super) no_torn_write: bool,
    /// Bytes that were durable when a run checked the log: no write was cut off before that.
    pub(super) durable: u64,
    pub(super) sums: Checksums,
    pub(super) covered: u64,
    pub(super) walker: Option<RecordWalker>,
    pub(super) notices: Vec<RecoveryNotice>,
    pub(super) records: Vec<Record>,
    /// The submission of the job before, and its record: very many are like it.
    pub(super) kind: Option<Arc<JobSpec>>,
    pub(super) alike: SimilarSubmissions,
    pub(super) jobs: IdMap<u32, Track>,
    /// The troubles of the jobs in `jobs`.
    pub(super) troubles: IdMap<u32, Trouble>,
    /// Place of the last damage of which it is not known whose records it took, with words.
    pub(super) unknown: Option<(u64, String)>,
    /// Jobs that are named by records or entries, with repetitions.
    pub(super) ids: Vec<u32>,
    pub(super) damage: Vec<Damage>,
    /// Lines behind all entries that cannot be read, with nothing readable behind them so far.
    pub(super) doubtful: Vec<Doubtful>,
    pub(super) cut_from: Option<u64>,
    /// The beginning of a record that lies in part behind the end of the file.
    pub(super) stump: Option<u64>,
    pub(super) save_cut: bool,
    /// The head line is damaged.
    pub(super) bad_head: bool,
    /// Indices of the records that ended a job since the log was begun.
    pub(super) finishes: Vec<usize>,
    pub(super) backfill: Vec<ChecksumEntry>,
    /// Lines that are kept, where records do not lie where they were written.
    pub(super) pieces: Vec<Piece>,
    /// Control records that are lost.
    pub(super) controls: LostControls,
    pub(super) repeats: Repeats,
    pub(super) spooled: Vec<SpoolRef>,
    pub(super) foreign: BTreeMap<String, u64>,
    pub(super) spool: SpoolPlaces,
    pub(super) epoch: u64,
    pub(super) carried: bool,
    pub(super) times: RecordTimes,
}

impl LogScan {
    pub(super) fn open(
        disk: &mut dyn Disk,
        limit: u64,
        same_boot: bool,
    ) -> Result<LogScan, RecoverError> {
        let sums = checksums::read(disk, EVENTS_SUM).map_err(failed(EVENTS_SUM))?;
        if let Some(version) = sums.newer {
            let text = format!("{EVENTS_SUM}: format {version} of a newer version");
            return Err(RecoverError::Newer { text });
        }
        let file = match disk.open(EVENTS, None) {
            Ok(file) => Some(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(failed(EVENTS)(e)),
        };
        let mut scan = LogScan::of(file, sums, same_boot);
        if let Some(file) = file {
            scan.file_len = disk.len(file).map_err(failed(EVENTS))?.min(limit);
            let (pos, len) = read_head(disk, file).map_err(failed(EVENTS))?;
            scan.head_len = len;
            scan.head_pos = pos.and_then(|p| p.try_into().ok()).unwrap_or(0);
        }
        let entries = std::mem::take(&mut scan.sums.entries);
        // room for all at once: a table that grows moves what it has
        scan.jobs.reserve(entries.iter().filter(|e| e.is_submission()).count());
        let mut from = scan.head_len;
        let first = entries.first().map_or(0, |e| e.at);
        // one of ours, right before the first record, has its length
        if from != HEAD && (from == 0 || from > first || first == HEAD) && first >= HEAD {
            scan.warn(format!("{EVENTS}: damage in bytes 0-{}: its head line", HEAD - 1));
            from = HEAD.min(scan.file_len);
            (scan.head_len, scan.head_pos, scan.bad_head) = (0, 0, true);
        }
        let file = file.unwrap_or(FileId(usize::MAX));
        let mut walker = RecordWalker::new(file, from, scan.file_len, entries);
        if scan.bad_head {
            walker.look_from(0);
        }
        scan.walker = Some(walker);
        Ok(scan)
    }

    /// A scan of which nothing was read.
    fn of(file: Option<FileId>, sums: Checksums, same_boot: bool) -> LogScan {
        LogScan {
            file,
            file_len: 0,
            head_len: 0,
            head_pos: 0,
            same_boot,
            no_torn_write: same_boot,
            durable: 0,
            covered: sums.entries.last().map_or(0, ChecksumEntry::end),
            sums,
            walker: None,
            notices: Vec::new(),
            records: Vec::new(),
            kind: None,
            alike: SimilarSubmissions::default(),
            jobs: IdMap::default(),
            troubles: IdMap::default(),
            unknown: None,
            ids: Vec::new(),
            damage: Vec::new(),
            doubtful: Vec::new(),
            cut_from: None,
            stump: None,
            save_cut: false,
            bad_head: false,
            finishes: Vec::new(),
            backfill: Vec::new(),
            pieces: Vec::new(),
            controls: LostControls::default(),
            repeats: Repeats::default(),
            spooled: Vec::new(),
            foreign: BTreeMap::new(),
            spool: SpoolPlaces::default(),
            epoch: 0,
            carried: false,
            times: RecordTimes::default(),
        }
    }

    /// Has no line told of anything?
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.ids.is_empty() && self.foreign.is_empty()
    }

    /// Jobs that are not over as far as this log goes.
    pub(super) fn open_jobs(&self) -> Vec<u32> {
        let open = self.jobs.iter().filter(|(_, track)| !track.over);
        let mut open: Vec<u32> = open.map(|(job, _)| *job).collect();
        open.sort_unstable();
        open
    }

    pub(super) fn warn(&mut self, text: String) {
        self.notices.push(RecoveryNotice { level: log::Level::Warn, text });
    }

    pub(super) fn run(&mut self, disk: &mut dyn Disk) -> Result<(), RecoverError> {
        let Some(mut walker) = self.walker.take() else { return Ok(()) };
        let mut line = Vec::new();
        while let Some(step) = walker.step(disk, &mut line).map_err(failed(EVENTS))? {
            self.step(disk, &walker, step, &line)?;
            if self.cut_from.is_some() {
                break;
            }
        }
        // trailing lines that cannot be read: a torn commit
        if let Some(first) = self.doubtful.first() {
            self.cut_from = Some(first.step.file.0);
            self.save_cut |= self.doubtful.len() > 1;
        }
        self.walker = Some(walker);
        Ok(())
    }

    fn step(
        &mut self,
        disk: &mut dyn Disk,
        walker: &RecordWalker,
        s: WalkStep,
        line: &[u8],
    ) -> Result<(), RecoverError> {
        let moved = walker.moved().is_some();
        match s.what {
            PlaceContents::Checked(entry) => match self.alike.read(line) {
                // elsewhere than it was written it must be of that job
                Ok(record) if moved && entry.job.job != job_of(&record.event).job => {
                    self.unreadable(s, RecordError::NotARecord, Some(entry), line)
                }
                Ok(record) => {
                    self.repeats.told(entry);
                    if moved {
                        self.pieces.push(Piece { at: s.file.0, entry });
                    }
                    self.seen(entry.job.job);
                    self.learn(line, &record);
                    self.record(disk, s.at, record)
                }
                Err(e) => self.unreadable(s, e, Some(entry), line),
            },
            PlaceContents::Wrong(entry) => {
                let gone = s.file.0 == s.file.1;
                let why = if gone { "no byte of it is there" } else { "the checksum is wrong" };
                self.hurt((s.at, s.end), s.file, why.to_string(), Lost::Known(entry));
                Ok(())
            }
            PlaceContents::Beyond(entry) => {
                if entry.at < self.file_len {
                    self.stump = Some(entry.at);
                }
                let range = (entry.at, entry.end());
                self.hurt(range, range, "the file ends".to_string(), Lost::Known(entry));
                Ok(())
            }
            // put behind a damaged record so that the next one begins a line
            PlaceContents::Text if line == b"\n" => Ok(()),
            PlaceContents::Text => match self.alike.read(line) {
                Ok(record) => self.text(disk, walker, (s, line), record),
                Err(e) => self.unreadable(s, e, None, line),
            },
            PlaceContents::Partial => self.unreadable(s, RecordError::NotARecord, None, line),
            PlaceContents::Endless => self.unreadable(s, RecordError::NotARecord, None, line),
        }
    }

    /// A record that no entry covers.
    fn text(
        &mut self,
        disk: &mut dyn Disk,
        walker: &RecordWalker,
        (s, line): (WalkStep, &[u8]),
        record: Record,
    ) -> Result<(), RecoverError> {
        let moved = walker.moved().is_some();
        let entry = ChecksumEntry::of(s.at, line, &record.event);
        let tail = s.at >= self.covered;
        let begins_a_run = tail && !moved && begins_a_run(&record.event);
        if begins_a_run {
            self.repeats.run_begins();
        } else if self.repeats.again(entry, &record, walker.entries(), self.times, tail) {
            let (from, to) = s.file;
            let text = format!("{EVENTS}: bytes {from}-{} repeat a record: ignored", to - 1);
            self.warn(text);
            return Ok(());
        }
        // behind other damage it is a record only where it can be one that came last, not where
        // it may be what is left of others
        let damaged = !begins_a_run && (moved || self.repeats.behind_one());
        let of = |e: &ChecksumEntry| (e.job, e.kind) == (entry.job, entry.kind);
        let lost = || self.damage.iter().flat_map(|d| &d.lost).any(of);
        let twice =
            || record.time == self.times.last && walker.entries().iter().rev().take(RECENT).any(of);
        if damaged && s.at >= self.covered && (record.time < self.times.last || lost() || twice()) {
            return self.unreadable(s, RecordError::NotARecord, None, line);
        }
        self.readable_behind();
        self.seen(job_of(&record.event).job);
        if moved {
            self.pieces.push(Piece { at: s.file.0, entry });
        }
        if s.at >= self.covered {
            self.backfill.push(entry);
            self.spooled.extend(spooled_of(&record.event).into_iter().flat_map(|of| of.1));
        }
        self.learn(line, &record);
        self.record(disk, s.at, record)
    }

    fn seen(&mut self, job: u32) {
        if self.ids.last() != Some(&job) {
            self.ids.push(job);
        }
    }

    /// A second submission of a kind: there will be more.
    fn learn(&mut self, line: &[u8], record: &Record) {
        if let (Event::JobNew(new), Some(kind)) = (&record.event, &self.kind)
            && !Arc::ptr_eq(kind, &new.spec)
            && **kind == *new.spec
        {
            let new = JobNew { spec: kind.clone(), ..(**new).clone() };
            self.alike.learn(line, &new);
        }
    }

    /// A line that is no record.
    fn unreadable(
        &mut self,
        s: WalkStep,
        why: RecordError,
        entry: Option<ChecksumEntry>,
        line: &[u8],
    ) -> Result<(), RecoverError> {
        if let RecordError::Newer { .. } = why {
            let text = format!("{EVENTS}: byte {}: {why}", s.file.0);
            return Err(RecoverError::Newer { text });
        }
        let (why, control) = (why.to_string(), may_be_control(line));
        if let Some(entry) = entry {
            self.hurt((s.at, s.end), s.file, why, Lost::Known(entry));
            return Ok(());
        }
        if s.at < self.covered {
            self.hurt((s.at, s.end), s.file, why, Lost::Unknown { control });
            return Ok(());
        }
        self.doubtful.push(Doubtful { step: s, why, control });
        let recent = self.sums.head.is_some() && self.file_len <= self.covered + MAX_LAG;
        if recent && !self.no_torn_write && s.file.0 >= self.durable {
            // all of it was never acknowledged
            self.save_cut = s.file.1 < self.file_len;
            self.cut_from = Some(s.file.0);
        }
        Ok(())
    }

    /// A readable record stands behind doubtful lines: they are damage.
    fn readable_behind(&mut self) {
        for Doubtful { step: s, why, control } in std::mem::take(&mut self.doubtful) {
            self.hurt((s.at, s.end), s.file, why, Lost::Unknown { control });
        }
    }

    /// Damage: the bytes as they were written, and in the file as it is.
    fn hurt(&mut self, (from, to): (u64, u64), file: (u64, u64), why: String, lost: Lost) {
        let entry = match lost {
            Lost::Known(entry) => Some(entry),
            Lost::Unknown { .. } => None,
        };
        match self.damage.last_mut() {
            Some(last) if last.to == from => {
                last.to = to;
                last.file.1 = last.file.1.max(file.1);
                last.lost.extend(entry);
            }
            _ => {
                let lost = entry.into_iter().collect();
                self.damage.push(Damage { to, file, why, lost });
            }
        }
        let words = match file.1 > file.0 {
            true => format!("{EVENTS} is damaged in bytes {}-{}", file.0, file.1 - 1),
            false => format!("{EVENTS} is damaged at byte {}", file.0),
        };
        self.controls.lost(&lost, &words);
        match entry {
            // a job whose end is known stays so, and is cleaned again
            Some(e) if e.name() == "JOB_CLEAN" => {}
            Some(e) if e.job.job != 0 => {
                self.seen(e.job.job);
                let new = self.records.len();
                let track = self.jobs.entry(e.job.job).or_insert(Track { new, ..Track::default() });
                // the record may have put it back to its queue
                track.over = false;
                let why = format!("{words}: its {} is lost", e.name());
                let trouble = self.troubles.entry(e.job.job).or_default();
                (trouble.hurt, trouble.record_lost) = (Some((from, why)), true);
            }
            Some(_) => {}
            None => {
                let why = format!("{words}: which jobs it hit is not known");
                self.unknown = Some((from, why));
            }
        }
    }

    fn record(
        &mut self,
        disk: &mut dyn Disk,
        at: u64,
        mut record: Record,
    ) -> Result<(), RecoverError> {
        self.times.add(record.time);
        match &mut record.event {
            Event::JobNew(new) => self.job_new(disk, at, new)?,
            Event::JobModify(m) => {
                let found = self.spool.submission(disk, &[m.env, m.script, m.exact], m.exact);
                if self.jobs.get(&m.job).is_none_or(|track| track.over) {
                    return Ok(());
                }
                match found {
                    Ok(spec) => m.spec = spec.unwrap_or_default(),
                    // what it was changed to is lost: it stays as it was, and is held
                    Err(why) => {
                        self.troubles.entry(m.job).or_default().hurt = Some((at, why));
                        return Ok(());
                    }
                }
            }
            // a message whose data are lost stays, and so does its job
            Event::JobAttachment(a) => self.attachment(disk, a),
            // what ran after a job does not end it once more
            Event::JobStatus(s) if s.status.post().is_some() => {}
            Event::JobStatus(s) if s.status.is_finished() => {
                if at >= self.head_pos {
                    self.finishes.push(self.records.len());
                }
                // an element is not the whole job, even where the JOB_NEW is lost
                if s.at.idx == 0
                    && let Some(track) = self.jobs.get_mut(&s.at.job).filter(|t| !t.array)
                {
                    track.over = true;
                }
            }
            Event::ArraySignal(s) => self.array_signal(at, s),
            Event::JobRequeue { at: back, .. } => self.lives(at, back.job),
            // its JOB_REQUEUE may be lost
            Event::JobStart(_) | Event::JobStartAccept { .. } | Event::JobExecute { .. }
                if self.unknown.is_some() =>
            {
                self.lives(at, job_of(&record.event).job);
            }
            Event::JobClean { at } if at.idx == 0 => {
                self.jobs.remove(&at.job);
                self.troubles.remove(&at.job);
            }
            Event::Hold { at: job, .. } if self.jobs.contains_key(&job.job) => {
                self.troubles.entry(job.job).or_default().held = at;
            }
            Event::QueueCtrl { .. } | Event::HostCtrl { .. } if !self.controls.is_empty() => {
                self.controls.known(&record.event);
            }
            Event::Carried { epoch, .. } => {
                self.epoch = self.epoch.max(*epoch);
                self.carried = true;
            }
            Event::Foreign { name } => {
                *self.foreign.entry(std::mem::take(name)).or_default() += 1;
                return Ok(());
            }
            _ => {}
        }
        self.records.push(record);
        Ok(())
    }

    /// Elements are not the whole job: that is not over.
    fn array_signal(&mut self, at: u64, s: &ArraySignal) {
        if s.status.is_finished() && at >= self.head_pos {
            self.finishes.push(self.records.len());
        }
    }

    fn attachment(&mut self, disk: &mut dyn Disk, a: &mut JobAttachment) {
        if let Err(why) = self.spool.submission(disk, &[a.data], SpoolRef::default()) {
            self.warn(format!("the data of a message to job {} are lost: {why}", a.at));
            a.data = SpoolRef::default();
        }
    }

    /// A record of an unfinished job, which may have ended before and have been put back to its
    /// queue. Where damage took nobody knows what, and the job is not known, that was its JOB_NEW.
    fn lives(&mut self, at: u64, job: u32) {
        match self.jobs.get_mut(&job) {
            Some(track) => track.over = false,
            None if self.unknown.is_some() => {
                let hurt = Some((at, format!("{EVENTS} is damaged: its JOB_NEW is lost")));
                let new = self.records.len();
                self.jobs.insert(job, Track { new, ..Track::default() });
                self.troubles.insert(job, Trouble { hurt, ..Trouble::default() });
            }
            None => {}
        }
    }

    fn job_new(
        &mut self,
        disk: &mut dyn Disk,
        at: u64,
        new: &mut JobNew,
    ) -> Result<(), RecoverError> {
        self.seen(new.job);
        match &self.kind {
            Some(kind) if Arc::ptr_eq(kind, &new.spec) => {}
            Some(kind) if **kind == *new.spec => new.spec = kind.clone(),
            _ => self.kind = Some(new.spec.clone()),
        }
        let array = new.spec.name.contains('[');
        let track = Track { array, over: false, new: self.records.len(), new_at: at };
        // what hit it before (a lost JOB_NEW of a job that had the same ID) is another job's
        let places = [new.env, new.script, new.exact];
        // of another LSF; a job of ours may be of the same group, and has a request
        let foreign = new.gid == NO_GID && new.request.is_empty();
        let why = match self.spool.submission(disk, &places, new.exact) {
            _ if foreign && places == [SpoolRef::default(); 3] => {
                Some("its environment and script are not in this log".to_string())
            }
            Ok(Some(spec)) => {
                new.spec = Arc::new(spec);
                None
            }
            Ok(None) => None,
            Err(why) => Some(why),
        };
        self.troubles.remove(&new.job);
        if let Some(why) = why {
            self.troubles.entry(new.job).or_default().hurt = Some((at, why));
        }
        self.jobs.insert(new.job, track);
        Ok(())
    }
}
