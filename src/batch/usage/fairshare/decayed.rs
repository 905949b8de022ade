//! An amount that decays: a tenth of it is left after HIST_HOURS (lsb.params(5)).

/// An amount as of an instant. It decays by a rate that its owner knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decayed {
    value: f64,
    /// Seconds since the epoch.
    at: i64,
}

/// The part of 1 that is left after some seconds, at a rate per second; a clock that was set back
/// changes nothing.
fn left(rate: f64, secs: i64) -> f64 {
    match rate > 0.0 && secs > 0 {
        true => (-rate * secs as f64).exp(),
        false => 1.0,
    }
}

/// The decayed amount that has come evenly over `secs` seconds up to now, `total` in all.
pub fn spread(total: f64, rate: f64, secs: i64) -> f64 {
    let x = rate * secs as f64;
    match x > 1e-9 {
        true => total * (1.0 - (-x).exp()) / x,
        false => total,
    }
}

impl Decayed {
    pub fn new(value: f64, at: i64) -> Decayed {
        Decayed { value, at }
    }

    /// The amount at an instant.
    pub fn at(&self, rate: f64, now: i64) -> f64 {
        // of nothing there is nothing left: most amounts of an account without ended jobs
        if self.value == 0.0 {
            return 0.0;
        }
        self.value * left(rate, now - self.at)
    }

    /// Adds what was so much at an instant; a negative one takes it away.
    pub fn add(&mut self, rate: f64, amount: f64, at: i64) {
        if at > self.at {
            self.value = self.at(rate, at) + amount;
            self.at = at;
        } else {
            self.value += amount * left(rate, self.at - at);
        }
    }

    /// When `value` was true, seconds since the epoch.
    pub fn time(&self) -> i64 {
        self.at
    }

    pub fn value(&self) -> f64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_a_tenth_after_hist_hours() {
        let rate = std::f64::consts::LN_10 / (5.0 * 3600.0);
        let mut used = Decayed::default();
        used.add(rate, 3600.0, 1_000_000);
        assert!((used.at(rate, 1_000_000 + 5 * 3600) - 360.0).abs() < 1e-9);
        assert!((used.at(rate, 1_000_000 + 10 * 3600) - 36.0).abs() < 1e-9);
        // in whatever order amounts come
        let (mut a, mut b) = (used, Decayed::default());
        a.add(rate, 100.0, 1_003_600);
        b.add(rate, 100.0, 1_003_600);
        b.add(rate, 3600.0, 1_000_000);
        assert!((a.at(rate, 2_000_000) - b.at(rate, 2_000_000)).abs() < 1e-12);
        // without decay it stays, and a clock that goes back adds nothing
        assert_eq!([used.at(0.0, i64::MAX / 2), used.at(rate, 0)], [3600.0, 3600.0]);
    }

    #[test]
    fn evenly_used_time_decays_while_it_is_used() {
        let rate = std::f64::consts::LN_10 / 3600.0;
        // (1 - 1/10) / ln 10 of it
        assert!((spread(3600.0, rate, 3600) - 3600.0 * 0.9 / std::f64::consts::LN_10).abs() < 1e-9);
        assert_eq!([spread(60.0, 0.0, 3600), spread(60.0, rate, 0)], [60.0, 60.0]);
    }
}
