//! Steps of this host's clock. The times of an attempt are kept on that clock, so that they can be
//! shown and survive sbatchd; where the clock is set back or forward while the attempt runs, the
//! seconds by which it was set are kept beside them. A run limit thus counts the seconds that have
//! passed, whatever the clock says; those in which the host itself slept are not among them.

use crate::model::Now;
use crate::model::time::US;
use serde::{Deserialize, Serialize};

/// A smaller difference is no step, seconds: the two clocks are read one after the other.
const SMALLEST: i64 = 2;

/// How far the clock is ahead of the one that never steps, seconds.
fn ahead(now: Now) -> i64 {
    now.secs().saturating_sub(i64::try_from(now.mono_us / US).unwrap_or(i64::MAX))
}

/// How the clock was set since a mark was made: while an attempt lasted, or since sbatchd began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockMark {
    /// How far it was ahead at the last look; `None`: there was none, as in older notes.
    ahead: Option<i64>,
    /// The seconds by which it was set since the mark was made; negative: back.
    set_by: i64,
}

impl ClockMark {
    /// The mark of an attempt that begins.
    pub fn begin(now: Now) -> ClockMark {
        ClockMark { ahead: Some(ahead(now)), set_by: 0 }
    }

    /// The seconds by which it was set since the mark was made; negative: back.
    pub fn set_by(self) -> i64 {
        self.set_by
    }

    /// The seconds by which it was set since the last look; 0: it was not. Many small differences
    /// do not hide a step: they count together.
    pub fn follow(&mut self, now: Now) -> i64 {
        let ahead = ahead(now);
        let by = ahead - *self.ahead.get_or_insert(ahead);
        if by.abs() < SMALLEST {
            return 0;
        }
        self.ahead = Some(ahead);
        self.set_by = self.set_by.saturating_add(by);
        by
    }
}
