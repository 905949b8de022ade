//! Recovery: reads the log whole and says what it found (design §3). Nothing is written here but
//! the end of a switch that was interrupted; [`Plan`] says what `Store::open` must mend.
//!
//! - A torn tail is cut and reported: what a crash left of a commit that was never acknowledged.
//! - Damage elsewhere is found by the checksum entries: file and byte range are named, the rest is
//!   kept, and the jobs whose records are lost are returned, to be held until an administrator
//!   releases them. Once LSF_HOLD stands behind the damage in the log, they are not returned again.
//! - Where no entry covers the log (another LSF's, or a lost checksum file), lines that can be
//!   read are kept; one that cannot counts as damage to every job that was unfinished there.
//! - A record of ours that this version does not know ends the start with words.
//!
//! The tail that no entry covers and that holds a line that cannot be read, with readable ones
//! behind it, has two explanations. After a loss of power it is what was left of one unsynced
//! write (entries are synced often enough that a synced record without entry lies within
//! [`MAX_LAG`]): all from there on was never acknowledged and is cut, into a file beside. Without
//! a loss of power it is damage.

use super::acct;
use super::codec::{Alike, NO_GID, RecordError, job_of, read_exact_spec, read_record};
use super::disk::{Disk, FileId};
use super::owner::{self, Owner};
use super::spool::{self, SpoolReader};
use super::sum::{self, Entry, Sums};
use super::walk::{HEAD, Step, Walker, What, read_head};
use super::{EVENTS, EVENTS_SUM, switch};
use crate::batch::Recovered;
use crate::model::JobRef;
use crate::model::event::{Event, Finish, JobNew, Record};
use crate::model::idmap::IdMap;
use crate::model::job::{JobSpec, SpoolRef, stat};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

/// Bytes of lsb.events that a loss of power may leave without checksum entries.
pub const MAX_LAG: u64 = 8 << 20;

/// Lost records told one by one in a notice.
const TOLD: usize = 20;

/// What recovery needs to know of the process it runs in.
#[derive(Clone, Debug, Default)]
pub struct Params {
    pub host: String,
    pub boot: String,
    /// Seconds since the epoch.
    pub now: i64,
}

/// Something to tell the administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub level: log::Level,
    pub text: String,
}

/// What was found.
pub struct Found {
    /// For the machine.
    pub recovered: Recovered,
    pub notices: Vec<Notice>,
    /// For `Store::open`.
    pub plan: Plan,
}

/// What must be mended before the log can be written.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Length of lsb.events to keep.
    pub end: u64,
    /// What lies behind it up to there is cut.
    pub cut: Option<u64>,
    /// It may hold whole records: keep a copy.
    pub save_cut: bool,
    /// The head line must be written: the log is new, or it is damaged.
    pub write_head: bool,
    /// The kept part does not end with a newline.
    pub end_line: bool,
    /// There is no log yet.
    pub new: bool,
    /// Head of the checksum file; `None`: to be written anew.
    pub sum_head: Option<sum::Head>,
    pub sum_len: u64,
    /// Behind that the checksum file has entries of records that are lost: they stay until the
    /// jobs they name are marked in the log.
    pub stale: bool,
    /// Entries to add with the first commit.
    pub backfill: Vec<Entry>,
    /// The system has not been started since the log was written. What no checksum entry covers
    /// may then have been read from memory alone, after a sync that failed or never came.
    pub same_boot: bool,
    /// What the records in `backfill` have in the spool.
    pub spooled: Vec<SpoolRef>,
    /// Accounting records that lsb.acct lacks.
    pub finishes: Vec<Finish>,
    /// Length of lsb.acct to keep, and up to where it was synced at least.
    pub acct_end: u64,
    pub acct_synced: u64,
    pub owner: Owner,
    /// Time of the newest record.
    pub newest: i64,
}

/// Why recovery gives up.
#[derive(Debug)]
pub enum RecoverError {
    Io {
        what: String,
        err: io::Error,
    },
    /// The log was written by a newer version.
    Newer {
        text: String,
    },
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoverError::Io { what, err } => write!(f, "{what}: {err}"),
            RecoverError::Newer { text } => write!(
                f,
                "{text}; start that version, or keep {EVENTS} elsewhere and begin a new one"
            ),
        }
    }
}
impl std::error::Error for RecoverError {}

fn failed(what: &str) -> impl FnOnce(io::Error) -> RecoverError + '_ {
    move |err| RecoverError::Io { what: what.to_string(), err }
}

/// Recovery at start.
pub fn recover(disk: &mut dyn Disk, params: &Params) -> Result<Found, RecoverError> {
    let mut notices = Vec::new();
    let told = switch::finish_interrupted(disk).map_err(failed("finishing a switch of the log"))?;
    notices.extend(told.map(|text| Notice { level: log::Level::Warn, text }));
    let before = Owner::read(disk).map_err(failed(owner::OWNER))?;
    let same_boot = match &before {
        owner::Read::Is(o) => o.host == params.host && o.boot == params.boot,
        _ => false,
    };
    let mut scan = Scan::open(disk, u64::MAX, same_boot)?;
    scan.notices.splice(0..0, notices);
    scan.run(disk)?;
    let sum_head = scan.sums.head;
    let finishes = std::mem::take(&mut scan.finishes);
    let mut found = scan.finish(disk)?;
    let acct = acct::missing(disk, sum_head, &found.recovered.records, &finishes);
    let acct = acct.map_err(failed(super::ACCT))?;
    (found.plan.finishes, found.plan.acct_end) = (acct.finishes, acct.end);
    found.plan.acct_synced = acct.synced;
    let carried = found.recovered.epoch;
    let epoch = match &before {
        owner::Read::Is(o) => o.epoch.max(carried) + 1,
        _ if found.plan.new => 1,
        // the numbers given out are not known: a clock goes beyond them
        _ => (carried + 1).max(params.now.max(1) as u64),
    };
    found.recovered.epoch = epoch;
    let (host, boot) = (params.host.clone(), params.boot.clone());
    found.plan.owner = Owner { host, boot, epoch };
    Ok(found)
}

/// Reads the log again after it could not be written: everything durable, up to `limit`.
pub fn again(disk: &mut dyn Disk, limit: u64, epoch: u64) -> Result<Recovered, RecoverError> {
    let mut scan = Scan::open(disk, limit, true)?;
    scan.run(disk)?;
    let mut recovered = scan.finish(disk)?.recovered;
    recovered.epoch = epoch;
    Ok(recovered)
}

/// Gives every readable record of a log file to `each`, for commands: damage is skipped, texts
/// are as the log has them. `false` from `each` ends it.
pub fn for_each_record(
    disk: &mut dyn Disk,
    name: &str,
    each: &mut dyn FnMut(Record) -> bool,
) -> io::Result<()> {
    let file = disk.open(name, None)?;
    let done = read_records(disk, file, each);
    disk.close(file);
    done
}

fn read_records(
    disk: &mut dyn Disk,
    file: FileId,
    each: &mut dyn FnMut(Record) -> bool,
) -> io::Result<()> {
    let (_, head) = read_head(disk, file)?;
    let limit = disk.len(file)?;
    let mut walker = Walker::new(file, head, limit, Vec::new());
    let mut line = Vec::new();
    while let Some(step) = walker.step(disk, &mut line)? {
        if step.what == What::Text
            && let Ok(record) = read_record(&line)
            && !each(record)
        {
            break;
        }
    }
    Ok(())
}

/// A range of lsb.events that is no record any more.
#[derive(Debug)]
struct Damage {
    from: u64,
    to: u64,
    why: String,
    lost: Vec<Entry>,
}

/// What must be known of a job that is not finished: little, of very many.
#[derive(Clone, Copy, Debug, Default)]
struct Track {
    array: bool,
    /// Which of the records is its JOB_NEW, or the first where that is lost.
    new: usize,
    /// Place of that.
    new_at: u64,
}

/// What happened to few.
#[derive(Debug, Default)]
struct Trouble {
    /// Place of the last damage that hit it, with words.
    hurt: Option<(u64, String)>,
    /// Place behind the last LSF_HOLD.
    held: u64,
}

/// One pass over lsb.events.
struct Scan {
    file: Option<FileId>,
    file_len: u64,
    head_len: u64,
    head_pos: u64,
    same_boot: bool,
    sums: Sums,
    covered: u64,
    walker: Option<Walker>,
    notices: Vec<Notice>,
    records: Vec<Record>,
    /// The submission of the job before, and its record: very many are like it.
    kind: Option<Arc<JobSpec>>,
    alike: Alike,
    jobs: IdMap<u32, Track>,
    /// Of jobs in `jobs`.
    troubles: IdMap<u32, Trouble>,
    /// Jobs that are named by records or entries, with repetitions.
    ids: Vec<u32>,
    damage: Vec<Damage>,
    /// Lines behind all entries that cannot be read, with nothing readable behind them so far.
    doubtful: Vec<(u64, u64, String)>,
    cut_from: Option<u64>,
    /// Where a record begins that lies in part behind the end.
    stump: Option<u64>,
    save_cut: bool,
    /// The head line is damaged.
    bad_head: bool,
    /// Indices of the records that ended a job since the log was begun.
    finishes: Vec<usize>,
    backfill: Vec<Entry>,
    spooled: Vec<SpoolRef>,
    foreign: BTreeMap<String, u64>,
    spool: SpoolReader,
    /// Number and end of the newest spool file that something refers to.
    spool_seen: (u32, u64),
    epoch: u64,
    carried: bool,
    newest: i64,
}

impl Scan {
    fn open(disk: &mut dyn Disk, limit: u64, same_boot: bool) -> Result<Scan, RecoverError> {
        let sums = sum::read(disk, EVENTS_SUM).map_err(failed(EVENTS_SUM))?;
        if let Some(version) = sums.newer {
            let text = format!("{EVENTS_SUM}: format {version} of a newer version");
            return Err(RecoverError::Newer { text });
        }
        let file = match disk.open(EVENTS, None) {
            Ok(file) => Some(file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(failed(EVENTS)(e)),
        };
        let mut scan = Scan {
            file,
            file_len: 0,
            head_len: 0,
            head_pos: 0,
            same_boot,
            covered: sums.entries.last().map_or(0, Entry::end),
            sums,
            walker: None,
            notices: Vec::new(),
            records: Vec::new(),
            kind: None,
            alike: Alike::default(),
            jobs: IdMap::default(),
            troubles: IdMap::default(),
            ids: Vec::new(),
            damage: Vec::new(),
            doubtful: Vec::new(),
            cut_from: None,
            stump: None,
            save_cut: false,
            bad_head: false,
            finishes: Vec::new(),
            backfill: Vec::new(),
            spooled: Vec::new(),
            foreign: BTreeMap::new(),
            spool: SpoolReader::default(),
            spool_seen: (0, 0),
            epoch: 0,
            carried: false,
            newest: 0,
        };
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
        if from == 0 && first >= HEAD {
            scan.warn(format!("{EVENTS}: damage in bytes 0-{}: its head line", HEAD - 1));
            from = HEAD.min(scan.file_len);
            scan.bad_head = true;
        }
        let file = file.unwrap_or(FileId(usize::MAX));
        scan.walker = Some(Walker::new(file, from, scan.file_len, entries));
        Ok(scan)
    }

    fn warn(&mut self, text: String) {
        self.notices.push(Notice { level: log::Level::Warn, text });
    }

    fn run(&mut self, disk: &mut dyn Disk) -> Result<(), RecoverError> {
        let Some(mut walker) = self.walker.take() else { return Ok(()) };
        let mut line = Vec::new();
        while let Some(step) = walker.step(disk, &mut line).map_err(failed(EVENTS))? {
            self.step(disk, step, &line)?;
            if self.cut_from.is_some() {
                break;
            }
        }
        // trailing lines that cannot be read: a torn commit
        if let Some((from, ..)) = self.doubtful.first() {
            self.cut_from = Some(*from);
            self.save_cut |= self.doubtful.len() > 1;
        }
        self.walker = Some(walker);
        Ok(())
    }

    fn step(&mut self, disk: &mut dyn Disk, s: Step, line: &[u8]) -> Result<(), RecoverError> {
        match s.what {
            What::Checked(entry) => match self.alike.read(line) {
                Ok(record) => {
                    self.seen(entry.job.job);
                    self.learn(line, &record);
                    self.record(disk, s.at, record)
                }
                Err(e) => self.unreadable(s, e, Some(entry)),
            },
            What::Wrong(entry) => {
                self.hurt(s.at, s.end, "the checksum is wrong".to_string(), Some(entry));
                Ok(())
            }
            What::Beyond(entry) => {
                if entry.at < self.file_len {
                    self.stump = Some(entry.at);
                }
                self.hurt(entry.at, entry.end(), "the file ends".to_string(), Some(entry));
                Ok(())
            }
            // put behind a damaged record so that the next one begins a line
            What::Text if line == b"\n" => Ok(()),
            What::Text => match self.alike.read(line) {
                Ok(record) => {
                    self.readable_behind();
                    self.seen(job_of(&record.event).job);
                    if s.at >= self.covered {
                        self.backfill.push(Entry::of(s.at, line, &record.event));
                        match &record.event {
                            Event::JobNew(new) => {
                                self.spooled.extend([new.env, new.script, new.exact]);
                            }
                            Event::JobModify(m) => self.spooled.push(m.exact),
                            _ => {}
                        }
                    }
                    self.learn(line, &record);
                    self.record(disk, s.at, record)
                }
                Err(e) => self.unreadable(s, e, None),
            },
            What::Partial => self.unreadable(s, RecordError::NotARecord, None),
            What::Endless => self.unreadable(s, RecordError::NotARecord, None),
        }
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
        s: Step,
        why: RecordError,
        entry: Option<Entry>,
    ) -> Result<(), RecoverError> {
        if let RecordError::Newer { .. } = why {
            let text = format!("{EVENTS}: byte {}: {why}", s.at);
            return Err(RecoverError::Newer { text });
        }
        if entry.is_some() || s.at < self.covered {
            self.hurt(s.at, s.end, why.to_string(), entry);
            return Ok(());
        }
        self.doubtful.push((s.at, s.end, why.to_string()));
        let recent = self.sums.head.is_some() && self.file_len - self.covered <= MAX_LAG;
        if recent && !self.same_boot {
            // all of it was never acknowledged
            self.save_cut = s.end < self.file_len;
            self.cut_from = Some(s.at);
        }
        Ok(())
    }

    /// A readable record stands behind doubtful lines: they are damage.
    fn readable_behind(&mut self) {
        for (from, to, why) in std::mem::take(&mut self.doubtful) {
            self.hurt(from, to, why, None);
        }
    }

    fn hurt(&mut self, from: u64, to: u64, why: String, entry: Option<Entry>) {
        match self.damage.last_mut() {
            Some(last) if last.to == from => {
                last.to = to;
                last.lost.extend(entry);
            }
            _ => self.damage.push(Damage { from, to, why, lost: entry.into_iter().collect() }),
        }
        let words = format!("{EVENTS} is damaged in bytes {from}-{}", to.saturating_sub(1));
        match entry {
            // a job whose end is known stays so, and is cleaned again
            Some(e) if e.name() == "JOB_CLEAN" => {}
            Some(e) if e.job.job != 0 => {
                self.seen(e.job.job);
                let new = self.records.len();
                self.jobs.entry(e.job.job).or_insert(Track { new, ..Track::default() });
                let why = format!("{words}: its {} is lost", e.name());
                self.troubles.entry(e.job.job).or_default().hurt = Some((from, why));
            }
            Some(_) => {}
            None => {
                // whose records these were is not known
                for job in self.jobs.keys() {
                    let why = format!("{words}: which jobs it hit is not known");
                    self.troubles.entry(*job).or_default().hurt = Some((from, why));
                }
            }
        }
    }

    fn record(
        &mut self,
        disk: &mut dyn Disk,
        at: u64,
        mut record: Record,
    ) -> Result<(), RecoverError> {
        self.newest = self.newest.max(record.time);
        match &mut record.event {
            Event::JobNew(new) => self.job_new(disk, at, new)?,
            Event::JobModify(m) => {
                let found = self.spooled(disk, &[m.exact], m.exact);
                if !self.jobs.contains_key(&m.job) {
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
            // what ran after a job does not end it once more
            Event::JobStatus(s) if s.status & (stat::PDONE | stat::PERR) != 0 => {}
            Event::JobStatus(s) if s.status & (stat::EXIT | stat::DONE) != 0 => {
                if at >= self.head_pos {
                    self.finishes.push(self.records.len());
                }
                // an element is not the whole job, even where the JOB_NEW is lost
                if s.at.idx == 0 && self.jobs.get(&s.at.job).is_some_and(|t| !t.array) {
                    self.over(s.at.job);
                }
            }
            Event::JobStart(_) | Event::JobStartAccept { .. } | Event::JobExecute { .. } => {
                self.orphan(at, job_of(&record.event).job);
            }
            Event::JobClean { at } if at.idx == 0 => {
                self.over(at.job);
            }
            Event::Hold { at: job, .. } if self.jobs.contains_key(&job.job) => {
                self.troubles.entry(job.job).or_default().held = at;
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

    /// A record of an unfinished job: where damage took nobody knows what, and the job is not
    /// known, it was its JOB_NEW.
    fn orphan(&mut self, at: u64, job: u32) {
        let unknown = self.damage.iter().any(|d| d.lost.is_empty());
        if unknown && !self.jobs.contains_key(&job) {
            let hurt = Some((at, format!("{EVENTS} is damaged: its JOB_NEW is lost")));
            let new = self.records.len();
            self.jobs.insert(job, Track { new, ..Track::default() });
            self.troubles.insert(job, Trouble { hurt, ..Trouble::default() });
        }
    }

    /// Nothing needs to be known of a job any more.
    fn over(&mut self, job: u32) {
        self.jobs.remove(&job);
        self.troubles.remove(&job);
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
        let track = Track { array, new: self.records.len(), new_at: at };
        // what hit it before (a lost JOB_NEW of a job that had the same ID) is another job's
        let why = if new.gid == NO_GID {
            Some("its environment and script are not in this log".to_string())
        } else {
            match self.spooled(disk, &[new.env, new.script, new.exact], new.exact) {
                Ok(Some(spec)) => {
                    new.spec = Arc::new(spec);
                    None
                }
                Ok(None) => None,
                Err(why) => Some(why),
            }
        };
        self.troubles.remove(&new.job);
        if let Some(why) = why {
            self.troubles.entry(new.job).or_default().hurt = Some((at, why));
        }
        self.jobs.insert(new.job, track);
        Ok(())
    }

    /// Checks what a submission has in the spool; returns its exact text where there is one, or
    /// what is lost.
    fn spooled(
        &mut self,
        disk: &mut dyn Disk,
        places: &[SpoolRef],
        exact: SpoolRef,
    ) -> Result<Option<JobSpec>, String> {
        for &at in places {
            if at.len > 0 {
                let end = at.at.saturating_add(u64::from(at.len));
                self.spool_seen = self.spool_seen.max((at.spool, end));
            }
            if !self.spool.holds(disk, at).unwrap_or(false) {
                return Err(format!("{} is missing or too short", spool::name(at.spool)));
            }
        }
        if exact == SpoolRef::default() {
            return Ok(None);
        }
        let bytes = self.spool.read(disk, exact).map_err(|e| e.to_string());
        let spec = bytes.and_then(|b| read_exact_spec(&b).map_err(|e| e.to_string()));
        spec.map(Some).map_err(|e| format!("{}: {e}", spool::name(exact.spool)))
    }

    /// Gives each place in the spool that an unfinished job has to `each`; one that the record
    /// before has too is given once, where `all` is not asked for.
    fn places(&self, all: bool, each: &mut dyn FnMut(u32, SpoolRef)) {
        let mut last = SpoolRef::default();
        for (i, record) in self.records.iter().enumerate() {
            let (job, places) = match &record.event {
                Event::JobNew(new) => (new.job, [new.env, new.script, new.exact]),
                Event::JobModify(m) => (m.job, [m.exact, SpoolRef::default(), SpoolRef::default()]),
                _ => continue,
            };
            if places.iter().all(|at| at.len == 0 || !all && *at == last) {
                continue;
            }
            let is_new = matches!(record.event, Event::JobNew(_));
            let open = |t: &Track| if is_new { t.new == i } else { t.new <= i };
            if self.jobs.get(&job).is_some_and(open) {
                for at in places.into_iter().filter(|at| at.len > 0) {
                    each(job, at);
                    last = at;
                }
            }
        }
    }

    /// Compares what unfinished jobs have in the spool with its checksums.
    fn check_spool(&mut self, disk: &mut dyn Disk) -> Result<(), RecoverError> {
        let mut places: BTreeMap<u32, BTreeSet<(u64, u32)>> = BTreeMap::new();
        self.places(false, &mut |_, at| {
            places.entry(at.spool).or_default().insert((at.at, at.len));
        });
        for (number, places) in places {
            let name = spool::name(number);
            let bad = spool::damaged(disk, number, &places).map_err(failed(&name))?;
            for &(at, len) in &bad {
                let text = format!("{name}: damage in bytes {at}-{}", at + u64::from(len) - 1);
                self.notices.push(Notice { level: log::Level::Error, text });
            }
            if bad.is_empty() {
                continue;
            }
            let hit = |r: &SpoolRef| r.spool == number && bad.contains(&(r.at, r.len));
            let mut hits = Vec::new();
            self.places(true, &mut |job, r| hits.extend(hit(&r).then_some((job, r))));
            for (job, r) in hits {
                let at = self.jobs.get(&job).map_or(0, |track| track.new_at);
                let why = format!("{name} is damaged at byte {}", r.at);
                self.troubles.entry(job).or_default().hurt.get_or_insert((at, why));
            }
        }
        Ok(())
    }

    fn finish(mut self, disk: &mut dyn Disk) -> Result<Found, RecoverError> {
        self.check_spool(disk)?;
        self.tell();
        self.spool.forget(disk);
        let mut recovered =
            Recovered { damaged: self.incomplete(), epoch: self.epoch, ..Recovered::default() };
        if !self.carried {
            self.carry_from_old_logs(disk)?;
        }
        let newest_file = spool::list(disk).map_err(failed("info"))?.pop().unwrap_or(0);
        let begun = self.sums.head.map_or(1, |head| head.spool);
        let spool = newest_file.max(self.spool_seen.0).max(begun);
        let len = self.spool.len(disk, spool).map_err(failed("info"))?;
        self.spool.forget(disk);
        let seen = if self.spool_seen.0 == spool { self.spool_seen.1 } else { 0 };
        (recovered.spool, recovered.spool_end) = (spool, len.max(seen));
        self.ids.sort_unstable();
        self.ids.dedup();
        self.ids.retain(|id| *id != 0);
        recovered.seen_ids = std::mem::take(&mut self.ids);
        recovered.records = std::mem::take(&mut self.records);
        let plan = self.plan(disk)?;
        if let Some(file) = self.file {
            disk.close(file);
        }
        Ok(Found { recovered, notices: self.notices, plan })
    }

    fn plan(&mut self, disk: &mut dyn Disk) -> Result<Plan, RecoverError> {
        let no_head = self.head_len == 0 && self.file_len < HEAD && self.headish(disk)?;
        let cut = [self.cut_from, self.stump].into_iter().flatten().min();
        let end = if no_head { 0 } else { cut.unwrap_or(self.file_len) };
        // entries of what is behind the end must not cover what will be written there
        let entries = self.walker.as_ref().map_or(&[][..], Walker::entries);
        let stale = entries.last().is_some_and(|last| last.end() > end);
        let sum_len = if stale {
            sum::len_below(disk, EVENTS_SUM, end).map_err(failed(EVENTS_SUM))?
        } else {
            self.sums.len
        };
        self.backfill.retain(|e| e.end() <= end);
        Ok(Plan {
            end,
            cut: (self.file_len > end).then_some(self.file_len),
            save_cut: self.save_cut,
            write_head: no_head || self.bad_head,
            end_line: end > 0 && self.last_byte(disk, end)? != b'\n',
            new: end == 0 && self.covered == 0,
            sum_head: self.sums.head,
            sum_len: sum_len.max(sum::ENTRY as u64),
            stale,
            backfill: std::mem::take(&mut self.backfill),
            same_boot: self.same_boot,
            spooled: std::mem::take(&mut self.spooled),
            newest: self.newest,
            ..Plan::default()
        })
    }

    /// Is what little there is the beginning of a head line?
    fn headish(&mut self, disk: &mut dyn Disk) -> Result<bool, RecoverError> {
        Ok(self.file_len == 0 || matches!(self.last_byte(disk, 1)?, b'#' | 0))
    }

    /// The byte before a place.
    fn last_byte(&mut self, disk: &mut dyn Disk, end: u64) -> Result<u8, RecoverError> {
        let mut byte = [b'\n'];
        if let Some(file) = self.file {
            disk.read_at(file, end.saturating_sub(1), &mut byte).map_err(failed(EVENTS))?;
        }
        Ok(byte[0])
    }

    /// Jobs with incomplete history that no LSF_HOLD behind the damage has marked yet.
    fn incomplete(&mut self) -> Vec<(JobRef, String)> {
        let mut out = Vec::new();
        for (job, trouble) in &mut self.troubles {
            if let Some((at, why)) = trouble.hurt.take()
                && trouble.held <= at
            {
                out.push((JobRef { job: *job, idx: 0 }, why));
            }
        }
        out.sort_unstable();
        out
    }

    /// A log that does not begin with LSF_SWITCHED though older ones exist lost the numbers that
    /// must not go back: the highest job ID of the newest old log takes their place.
    fn carry_from_old_logs(&mut self, disk: &mut dyn Disk) -> Result<(), RecoverError> {
        let old = sum::read(disk, &format!("{EVENTS}.1.sum")).map_err(failed(EVENTS_SUM))?;
        let Some(last) = old.entries.iter().map(|e| e.job.job).max() else { return Ok(()) };
        let text =
            format!("{EVENTS} has no LSF_SWITCHED: job IDs go on behind those of {EVENTS}.1");
        self.warn(text);
        let event = Event::Carried { next_job: last.saturating_add(1), epoch: self.epoch };
        self.records.insert(0, Record { time: self.newest, event });
        Ok(())
    }

    fn tell(&mut self) {
        let level = log::Level::Error;
        for d in std::mem::take(&mut self.damage) {
            let mut text = format!("{EVENTS}: damage in bytes {}-{}", d.from, d.to.max(1) - 1);
            text.push_str(&format!(" ({})", d.why));
            let lost: Vec<String> = d.lost.iter().take(TOLD).map(told).collect();
            match lost.is_empty() {
                true => text.push_str("; which records were lost is not known"),
                false => text.push_str(&format!("; lost: {}", lost.join(", "))),
            }
            if d.lost.len() > TOLD {
                text.push_str(&format!(" and {} more", d.lost.len() - TOLD));
            }
            self.notices.push(Notice { level, text });
        }
        if let Some(from) = self.cut_from {
            let (to, why) = (self.file_len, self.doubtful.first().map_or("", |d| &d.2));
            let text = format!(
                "{EVENTS}: the last {} bytes, from byte {from}, are not whole ({why}) and are cut",
                to - from
            );
            self.notices.push(Notice { level: log::Level::Warn, text });
        }
        if self.sums.bad > 0 || self.sums.present && self.sums.head.is_none() {
            let n = self.sums.bad;
            self.warn(format!("{EVENTS_SUM}: its head or {n} of its entries are damaged"));
        }
        if !self.sums.present && !self.records.is_empty() {
            self.warn(format!("{EVENTS_SUM} is missing: {EVENTS} is read without checksums"));
        }
        for (name, n) in std::mem::take(&mut self.foreign) {
            self.warn(format!("{EVENTS}: {n} records {name} are not acted upon"));
        }
    }
}

fn told(e: &Entry) -> String {
    match e.job.job {
        0 => e.name().to_string(),
        _ => format!("{} of job <{}>", e.name(), e.job),
    }
}
