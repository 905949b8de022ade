//! When finished jobs leave memory, and when the log is switched.

use crate::model::Now;
use crate::model::time::US;

/// Seconds until a failed switch is tried again.
const SWITCH_RETRY: u64 = 60;
/// Records that a switch may carry over whatever has been written since the last one.
const CARRIED_FREELY: u64 = 4000;

#[derive(Debug, Default)]
pub struct Retention {
    /// When the next finished job leaves memory.
    timer: Option<u64>,
    /// A switch is under way.
    switching: bool,
    /// Microseconds of the monotonic clock; negative: before that clock began.
    last_switch: Option<i64>,
    /// A switch has failed: none before then.
    not_before: u64,
    /// Records written since the last switch, or since the state was read.
    written: u64,
    /// About so many were carried over by it, or are in the log that was recovered.
    carried: u64,
}

impl Retention {
    pub fn deadline(&self) -> Option<u64> {
        self.timer
    }

    /// A record goes to the log.
    pub fn wrote(&mut self) {
        self.written += 1;
    }

    /// The next finished job leaves memory then; `None`: there is none, or it does so now.
    pub(crate) fn clean_at(&mut self, timer: Option<u64>) {
        self.timer = timer;
    }

    /// Has about as much been written since the last switch as that one carried over?
    pub(crate) fn pays(&self) -> bool {
        self.written + CARRIED_FREELY >= self.carried
    }

    /// May the log be switched, when a switch must be so many seconds after the one before?
    pub(crate) fn may_switch(&self, now: Now, min_period: u64) -> bool {
        let too_soon = self.last_switch.is_some_and(|t| {
            t.saturating_add_unsigned(min_period.saturating_mul(US)) > now.mono_us as i64
        });
        !self.switching && now.mono_us >= self.not_before && !too_soon
    }

    /// The log that was read was begun by a switch at this second.
    pub(crate) fn note_earlier_switch(&mut self, secs: i64, now: Now) {
        self.last_switch.get_or_insert(now.mono_of_past(secs));
    }

    /// A switch begins, that carries so many records over.
    pub(crate) fn switch_begins(&mut self, carried: u64) {
        self.switching = true;
        self.carried_over(carried);
    }

    /// Begins a new count of records, after so many were carried over.
    pub(crate) fn carried_over(&mut self, carried: u64) {
        (self.written, self.carried) = (0, carried);
    }

    /// The switch is over.
    pub(crate) fn switch_ended(&mut self, now: Now, ok: bool) {
        self.switching = false;
        match ok {
            true => self.last_switch = Some(now.mono_us as i64),
            false => (self.not_before, self.carried) = (now.after(SWITCH_RETRY), 0),
        }
    }
}
