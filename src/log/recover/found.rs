//! The result of recovery: what was found, what is to be told of it, and the plan of what must be
//! mended before the log is written.

use crate::batch::Recovered;
use crate::log::EVENTS;
use crate::log::checksums::{self, ChecksumEntry};
use crate::log::mend::Mend;
use crate::log::owner::Owner;
use crate::model::event::{Finish, Record};
use crate::model::job::SpoolRef;
use std::fmt;
use std::io;

/// Bytes of lsb.events that a loss of power may leave without checksum entries.
pub const MAX_LAG: u64 = 8 << 20;

/// Something to tell the administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryNotice {
    pub level: log::Level,
    pub text: String,
}

/// The result of recovery.
pub struct RecoveryResult {
    /// The state for the machine.
    pub recovered: Recovered,
    pub notices: Vec<RecoveryNotice>,
    /// The plan for `Store::open`.
    pub plan: RecoveryPlan,
}

/// Work to be done before the log can be written.
#[derive(Clone, Debug, Default)]
pub struct RecoveryPlan {
    /// Length of lsb.events to keep.
    pub end: u64,
    /// The bytes from `end` up to this place are cut.
    pub cut: Option<u64>,
    /// The cut bytes may hold whole records: keep a copy.
    pub save_cut: bool,
    /// The head line must be written: the log is new, or it is damaged.
    pub write_head: bool,
    /// The kept part does not end with a newline.
    pub end_line: bool,
    /// There is no log yet.
    pub new: bool,
    /// Head of the checksum file; `None`: to be written anew.
    pub sum_head: Option<checksums::ChecksumHead>,
    pub sum_len: u64,
    /// Behind that the checksum file has entries of records that are lost: they stay until the
    /// jobs they name are marked in the log.
    pub stale: bool,
    /// Entries to add with the first commit.
    pub backfill: Vec<ChecksumEntry>,
    /// The end of what the entries cover: from there on every byte is written anew where
    /// `same_boot` holds, lines that repeat a record included. Such a line, lost by a failed sync,
    /// would cut the log in two at the next start.
    pub covered: u64,
    /// The log is rewritten in order with the first commit, because records do not lie where they
    /// were written.
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
    pub base: Option<Base>,
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

pub(super) fn failed(what: &str) -> impl FnOnce(io::Error) -> RecoverError + '_ {
    move |err| RecoverError::Io { what: what.to_string(), err }
}

/// The beginning of the log that goes on once the recovery was accepted.
#[derive(Clone, Debug, Default)]
pub struct Base {
    /// The first records of the log.
    pub records: Vec<Record>,
    /// The spool file that is begun.
    pub spool: u32,
    /// lsb.acct contains every end of the log; its head may say so.
    pub head: bool,
}
