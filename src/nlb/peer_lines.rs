//! The lines that messages of others have the server log: a bound over time, so that nobody fills
//! the disk with refusals. Answers and what they say to their caller are not concerned.

use crate::model::Now;
use crate::proto::Effect;

/// Most warnings about messages in [`PERIOD`]; others are counted.
pub(super) const MOST: u32 = 20;
/// Seconds.
pub(super) const PERIOD: u64 = 10;

/// The warnings of the period that runs.
#[derive(Debug, Default)]
pub(super) struct PeerLines {
    /// The end of the period, microseconds.
    until: u64,
    lines: u32,
    left_out: u64,
}

impl PeerLines {
    /// Takes out of the effects from `first` on the warnings beyond the bound; the first one of the
    /// next period says how many there were.
    pub(super) fn bound(&mut self, now: Now, first: usize, out: &mut Vec<Effect>) {
        let warning =
            |effect: &Effect| matches!(effect, Effect::Say { level: log::Level::Warn, .. });
        if !out[first..].iter().any(warning) {
            return;
        }
        if now.mono_us >= self.until {
            (self.until, self.lines) = (now.after(PERIOD), 0);
            if self.left_out > 0 {
                let text = format!("{} more lines like these were left out", self.left_out);
                out.insert(first, Effect::Say { level: log::Level::Warn, text });
                self.left_out = 0;
            }
        }
        let mut at = 0;
        out.retain(|effect| {
            at += 1;
            if at <= first || !warning(effect) {
                return true;
            }
            self.lines += 1;
            let over = self.lines > MOST;
            self.left_out += u64::from(over);
            !over
        });
    }
}
