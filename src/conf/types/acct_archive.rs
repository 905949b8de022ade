//! When lsb.events and lsb.acct are begun anew (lsb.params(5)).

use super::EventStreamParams;

/// When the files of the log are begun anew, and the file that repeats them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFileParams {
    /// MIN_SWITCH_PERIOD, seconds.
    pub min_switch_period: u64,
    /// The archives of lsb.acct.
    pub archives: AcctArchiveParams,
    /// ENABLE_EVENT_STREAM and the parameters beside it.
    pub event_stream: Option<EventStreamParams>,
}

/// ACCT_ARCHIVE_AGE, ACCT_ARCHIVE_SIZE, ACCT_ARCHIVE_TIME and MAX_ACCT_ARCHIVE_FILE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcctArchiveParams {
    /// ACCT_ARCHIVE_AGE, seconds.
    pub age: Option<i64>,
    /// ACCT_ARCHIVE_SIZE, bytes.
    pub size: Option<u64>,
    /// ACCT_ARCHIVE_TIME, minute of the day; with it the age does not matter.
    pub minute: Option<u16>,
    /// MAX_ACCT_ARCHIVE_FILE.
    pub keep: Option<u32>,
}

impl AcctArchiveParams {
    /// Is lsb.acct ever archived?
    pub fn is_on(&self) -> bool {
        self.age.is_some() || self.size.is_some() || self.minute.is_some()
    }
}
