//! Time as the machines see it: handed in, never asked for.

/// One microsecond-resolution reading of both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds on a clock that never steps; deadlines are given in it.
    pub mono_us: u64,
    /// Microseconds since the epoch; what is logged and shown.
    pub wall_us: i64,
}

/// Microseconds in a second.
pub const US: u64 = 1_000_000;

/// How long the request ID of a submission is kept for a retry of it, seconds: in memory, and in
/// the log though the job was cleaned and the log was switched.
pub const REQUEST_WINDOW: i64 = 3600;

impl Now {
    /// Whole seconds since the epoch.
    pub fn secs(&self) -> i64 {
        self.wall_us.div_euclid(US as i64)
    }

    /// The monotonic deadline `secs` seconds from now.
    pub fn after(&self, secs: u64) -> u64 {
        self.mono_us.saturating_add(secs.saturating_mul(US))
    }

    /// The instant at which the wall clock read `wall_secs`, if it has not been set since, and now
    /// at the latest; microseconds of the monotonic clock, negative: before that clock began.
    pub fn mono_of_past(&self, wall_secs: i64) -> i64 {
        let elapsed = self.wall_us.saturating_sub(wall_secs.saturating_mul(US as i64));
        i64::try_from(self.mono_us).unwrap_or(i64::MAX).saturating_sub(elapsed.max(0))
    }

    /// The monotonic instant at which the wall clock will read `wall_secs`, if it does not step.
    pub fn mono_of_wall(&self, wall_secs: i64) -> u64 {
        let ahead = wall_secs.saturating_mul(US as i64).saturating_sub(self.wall_us);
        if ahead <= 0 { self.mono_us } else { self.mono_us.saturating_add(ahead as u64) }
    }

    /// The reading of the wall clock at a later monotonic instant, if it does not step, in seconds.
    pub fn wall_of_mono(&self, mono_us: u64) -> i64 {
        let ahead = i64::try_from(mono_us.saturating_sub(self.mono_us)).unwrap_or(i64::MAX);
        self.wall_us.saturating_add(ahead) / US as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instant is told in one way, whenever that is asked for.
    #[test]
    fn reading_of_the_wall_clock_at_an_instant_does_not_depend_on_now() {
        let now = |us: u64| Now { mono_us: us, wall_us: 1_000 * US as i64 + us as i64 };
        for at in [0, 1, 400_000, 999_999, 1_500_000] {
            assert_eq!(now(at).wall_of_mono(300 * US + 100_000), 1_300, "{at}");
        }
    }
}
