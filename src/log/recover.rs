//! Recovery: takes the log over, reads it whole and says what it found. Nothing is written here but
//! what makes it this run's (`fence`) and the end of a switch that was interrupted; [`Plan`] says
//! what `Store::open` must mend.
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
//!
//! A record that is whole but does not lie where it was written (a line was taken out, doubled or
//! put elsewhere, bytes were shifted) is found by its checksum (`walk`), and the log is put in
//! order again with the first commit (`mend`); until then nothing of it is touched.
//!
//! Here is the way in. The pass over the log is recover/scan.rs, lines that are there twice
//! recover/repeated.rs, lost control records recover/controls.rs, the spool recover/spooled.rs,
//! what follows from it all recover/verdict.rs.

pub mod against;
mod controls;
mod repeated;
mod scan;
mod spooled;
mod verdict;

use super::acct;
use super::codec::read_record;
use super::disk::{Disk, FileId, PUBLIC, len_of};
use super::fence;
use super::mend::{self, Mend};
use super::owner::{self, Owner};
use super::sum::{self, Entry};
use super::walk::{HEAD, Walker, What, head_line, read_head};
use super::{EVENTS, switch};
use crate::batch::Recovered;
use crate::model::event::{Finish, Record};
use crate::model::job::SpoolRef;
use scan::Scan;
use std::fmt;
use std::io;

/// Bytes of lsb.events that a loss of power may leave without checksum entries.
pub const MAX_LAG: u64 = 8 << 20;

/// The process that recovery runs in.
#[derive(Clone, Debug, Default)]
pub struct Params {
    pub host: String,
    pub boot: String,
    /// Seconds since the epoch.
    pub now: i64,
    /// A word that no other run has.
    pub run: String,
    /// This process, as [`Owner::process`] has it.
    pub process: String,
    /// The process that the owner file names ran on this boot of this system, and is known to have
    /// ended: nobody writes to its files any more.
    pub ended: bool,
    /// A takeover copies lsb.acct at once up to this length, bytes
    /// ([`super::acct_copy::MAX_AT_START`]).
    pub max_acct_at_start: u64,
}

/// Something to tell the administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub level: log::Level,
    pub text: String,
}

/// The result of recovery.
pub struct Found {
    /// For the machine.
    pub recovered: Recovered,
    pub notices: Vec<Notice>,
    /// For `Store::open`.
    pub plan: Plan,
}

/// Work to be done before the log can be written.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Length of lsb.events to keep.
    pub end: u64,
    /// The bytes behind it up to there are cut.
    pub cut: Option<u64>,
    /// They may hold whole records: keep a copy.
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
    /// The log is put in order with the first commit, as records do not lie where they were
    /// written.
    pub mend: Option<Box<Mend>>,
    /// The system has not been started since the log was written. Records that no checksum entry
    /// covers may then have been read from memory alone, after a sync that failed or never came.
    pub same_boot: bool,
    /// Places in the spool that the records in `backfill` have.
    pub spooled: Vec<SpoolRef>,
    /// Accounting records that lsb.acct lacks.
    pub finishes: Vec<Finish>,
    /// Length of lsb.acct to keep, and up to where it was synced at least.
    pub acct_end: u64,
    pub acct_synced: u64,
    /// An earlier run may still write lsb.acct, which is to be copied first.
    pub copy_acct: bool,
    pub owner: Owner,
    /// Number of the newest spool file there is; later ones this run makes itself.
    pub spool_file: u32,
    /// The administrator goes on from a log that is not the last one.
    pub base: Option<against::Base>,
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
    /// The log is not the last one, in words.
    NotTheLast(Vec<String>),
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoverError::Io { what, err } => write!(f, "{what}: {err}"),
            RecoverError::Newer { text } => write!(
                f,
                "{text}; start that version, or keep {EVENTS} elsewhere and begin a new one"
            ),
            RecoverError::NotTheLast(why) => write!(
                f,
                "{}; put the last {EVENTS} and lsb.events.sum back, or say that it goes on from \
                 here: badmin acceptlog",
                why.join("; ")
            ),
        }
    }
}
impl std::error::Error for RecoverError {}

impl RecoverError {
    /// Is it that the disk has no room?
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        let RecoverError::Io { err, .. } = self else { return false };
        matches!(err.kind(), StorageFull | QuotaExceeded)
    }
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> RecoverError + '_ {
    move |err| RecoverError::Io { what: what.to_string(), err }
}

/// Recovery at start: claims the log, and takes it over from whoever may still write it.
pub fn recover(disk: &mut dyn Disk, params: &Params) -> Result<Found, RecoverError> {
    let mut notices = Vec::new();
    let before = Owner::read(disk).map_err(failed(owner::OWNER))?;
    let first = is_first(disk, &before).map_err(failed("the log directory"))?;
    let owner = claim(disk, params, &before, first, &mut notices)?;
    let mended = mend::finish_interrupted(disk).map_err(failed("putting the log in order"))?;
    notices.extend(mended.map(|text| Notice { level: log::Level::Warn, text }));
    let told = switch::finish_interrupted(disk, &owner);
    let told = told.map_err(failed("finishing a switch of the log"))?;
    notices.extend(told.map(|text| Notice { level: log::Level::Warn, text }));
    fence::discard_copies(disk).map_err(failed("the log directory"))?;
    let same_boot = match &before {
        owner::Read::Is(o) => o.host == params.host && o.boot == params.boot,
        _ => false,
    };
    let gone = match &before {
        owner::Read::Is(o) if o.boot == params.boot => params.ended,
        owner::Read::Is(o) => o.host == params.host,
        _ => first,
    };
    let renewed = |e| failed("copying the log for this run")(e);
    let acct_renewed =
        gone || fence::renew(disk, &owner, params.max_acct_at_start).map_err(renewed)?;
    // what was copied has been written and synced by this run
    let mut scan = Scan::open(disk, u64::MAX, same_boot && gone)?;
    scan.notices.splice(0..0, notices);
    scan.run(disk)?;
    let owned = before != owner::Read::Missing;
    let against = against::contradictions(disk, &scan, owned).map_err(failed(EVENTS))?;
    let accepted = !against.is_empty();
    if accepted && !against::is_accepted(disk, &against).map_err(failed(against::ACCEPT))? {
        return Err(RecoverError::NotTheLast(against));
    }
    scan.notices.extend(against::told(&against));
    let (open, head_len) = (if accepted { scan.open_jobs() } else { Vec::new() }, scan.head_len);
    let sum_head = scan.sums.head;
    let finishes = std::mem::take(&mut scan.finishes);
    let mut found = scan.finish(disk)?;
    let acct = acct::missing(disk, sum_head, &found.recovered.records, &finishes);
    let acct = acct.map_err(failed(super::ACCT))?;
    (found.plan.finishes, found.plan.acct_end) = (acct.finishes, acct.end);
    (found.plan.acct_synced, found.plan.copy_acct) = (acct.synced, !acct_renewed);
    found.plan.owner = beyond(disk, owner, found.recovered.epoch)?;
    found.recovered.epoch = found.plan.owner.epoch;
    if accepted {
        against::go_on(disk, &mut found, open, head_len, params.now)?;
    }
    Ok(found)
}

/// Is there no log, not even one that a switch has not given its name yet? A start that found no
/// room for the head line leaves an empty file and no owner.
fn is_first(disk: &mut dyn Disk, before: &owner::Read) -> io::Result<bool> {
    let new = disk.list("")?.iter().any(|name| name.starts_with(switch::NEW));
    Ok(*before == owner::Read::Missing && !new && len_of(disk, EVENTS)? == 0)
}

/// Becomes the owner.
fn claim(
    disk: &mut dyn Disk,
    params: &Params,
    before: &owner::Read,
    first: bool,
    notices: &mut Vec<Notice>,
) -> Result<Owner, RecoverError> {
    if *before == owner::Read::Damaged {
        let text = format!("{} is damaged: epochs go on from the clock", owner::OWNER);
        notices.push(Notice { level: log::Level::Warn, text });
    }
    let beside = against::is_beside(disk).map_err(failed("the log directory"))?;
    if first {
        // where there is an owner file, there was a log
        let file = disk.open(EVENTS, Some(PUBLIC)).map_err(failed(EVENTS))?;
        let done = disk.write_at(file, 0, &head_line(HEAD as i64)).and_then(|()| disk.sync(file));
        disk.close(file);
        done.and_then(|()| disk.sync_dir("")).map_err(failed(EVENTS))?;
    }
    let epoch = match before {
        owner::Read::Is(o) => o.epoch + 1,
        owner::Read::Missing if first && !beside => 1,
        // the numbers given out are not known: a clock goes beyond them
        _ => params.now.max(1) as u64,
    };
    let Params { host, boot, run, process, .. } = params.clone();
    let owner = Owner { host, boot, epoch, run, process };
    owner.claim(disk, before).map_err(failed(owner::OWNER))?;
    Ok(owner)
}

/// The owner with an epoch beyond that which the log names: an older owner file was put back.
fn beyond(disk: &mut dyn Disk, owner: Owner, seen: u64) -> Result<Owner, RecoverError> {
    if seen < owner.epoch || seen >= owner::NO_EPOCH {
        return Ok(owner);
    }
    let before = owner::Read::Is(owner.clone());
    let owner = Owner { epoch: seen + 1, ..owner };
    owner.claim(disk, &before).map_err(failed(owner::OWNER))?;
    Ok(owner)
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
