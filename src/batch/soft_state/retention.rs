//! When finished jobs leave memory, and when the log is switched.

#[derive(Debug, Default)]
pub struct Retention {
    pub(crate) timer: Option<u64>,
    pub(crate) switching: bool,
    pub(crate) last_switch: Option<u64>,
    pub(crate) not_before: u64,
    /// Records written since the last switch, or since the state was read.
    pub(crate) written: u64,
    /// About so many were carried over by it, or are in the log that was recovered.
    pub(crate) carried: u64,
}

impl Retention {
    pub fn deadline(&self) -> Option<u64> {
        self.timer
    }

    /// A record goes to the log.
    pub fn wrote(&mut self) {
        self.written += 1;
    }
}
