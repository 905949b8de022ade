//! The access of readers to files, and the moment for which `#if time(...)` is decided.
//!
//! The readers are pure: what reads real files is `sys::files`, and tests bring their own.

use super::diag::Choice;
use jiff::tz::TimeZone;

/// Access of the readers to configuration files.
pub trait Files {
    /// The bytes of a file, or why it cannot be read.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;

    /// Whether a file can be read; the default tries.
    fn exists(&self, path: &str) -> bool {
        self.read(path).is_ok()
    }

    /// The moment for which `#if time(...)` is decided; `None`: nothing timed is read.
    fn moment(&self) -> Option<Moment> {
        None
    }
}

/// The time and zone for `#if time(...)`.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Seconds since the epoch.
    pub now: i64,
    /// The zone in which windows are civil time.
    pub zone: TimeZone,
    /// Branches that are read whatever the time is: a check wants to see them.
    pub forced: Vec<Choice>,
}
