//! When an advance reservation is active: once, or whenever its window of civil time is open
//! (brsvadd -t), without the spans in which it is disabled.
//!
//! A window that opens at a time that does not exist opens at the first instant after it. Where
//! the clock is set back, the first of two equal readings counts: what has ended by it does not
//! begin again by the second one.

use crate::lang::window::{PERIOD, Windows};
use crate::model::reservation::{Reservation, ReservationTime};
use jiff::tz::TimeZone;

/// Seconds of a period of ten minutes.
const PERIOD_SECS: i64 = PERIOD as i64 * 60;
/// Edges of a window that are looked at for its next period: those of more than a year.
const MOST_EDGES: usize = 1000;

/// From one instant until another, seconds since the epoch; the end is not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub begin: i64,
    pub end: i64,
}

impl Period {
    pub fn holds(&self, now: i64) -> bool {
        (self.begin..self.end).contains(&now)
    }

    /// The periods of ten minutes that it touches, as a whole.
    fn rounded(&self) -> Period {
        let down = |t: i64| t - t.rem_euclid(PERIOD_SECS);
        Period { begin: down(self.begin), end: down(self.end.saturating_add(PERIOD_SECS - 1)) }
    }

    fn meets(&self, other: &Period) -> bool {
        let (a, b) = (self.rounded(), other.rounded());
        a.begin < b.end && b.begin < a.end
    }
}

/// The active periods of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occurrences {
    Once(Period),
    Weekly { windows: Windows, disabled: Vec<(i64, i64)> },
}

impl Occurrences {
    /// The periods of a reservation. `None`: its window cannot be read, or never opens and closes.
    pub fn of(r: &Reservation) -> Option<Occurrences> {
        match &r.time {
            ReservationTime::Once { begin, end } => {
                Some(Occurrences::Once(Period { begin: *begin, end: *end }))
            }
            ReservationTime::Weekly(text) => {
                let windows = Windows::parse(text).ok()?;
                windows.until_change(0, 0)?;
                Some(Occurrences::Weekly { windows, disabled: r.disabled.clone() })
            }
        }
    }

    /// The period that holds an instant.
    pub fn at(&self, now: i64, zone: &TimeZone) -> Option<Period> {
        match self {
            Occurrences::Once(period) => period.holds(now).then_some(*period),
            Occurrences::Weekly { windows, disabled } => {
                if !windows.open_at(now, zone) {
                    return None;
                }
                let begin = windows.last_change(now, zone)?;
                let period = Period { begin, end: windows.next_change(begin, zone)? };
                let off = disabled.iter().any(|(from, to)| (*from..*to).contains(&begin));
                (period.holds(now) && !off).then_some(period)
            }
        }
    }

    /// The first period that begins after an instant.
    pub fn next(&self, now: i64, zone: &TimeZone) -> Option<Period> {
        let (windows, disabled) = match self {
            Occurrences::Once(period) => return (period.begin > now).then_some(*period),
            Occurrences::Weekly { windows, disabled } => (windows, disabled),
        };
        let mut at = now;
        for _ in 0..MOST_EDGES {
            at = windows.next_change(at, zone)?;
            if let Some((_, to)) = disabled.iter().find(|(from, to)| (*from..*to).contains(&at)) {
                // a window that is open when the span ends has begun within it
                at = at.max(to - 1);
                continue;
            }
            if let Some(period) = self.at(at, zone).filter(|period| period.begin == at) {
                return Some(period);
            }
        }
        None
    }

    /// Have two reservations a period of ten minutes in common?
    pub fn meets(&self, other: &Occurrences, zone: &TimeZone) -> bool {
        match (self, other) {
            (Occurrences::Once(a), Occurrences::Once(b)) => a.meets(b),
            (Occurrences::Once(once), weekly @ Occurrences::Weekly { .. })
            | (weekly @ Occurrences::Weekly { .. }, Occurrences::Once(once)) => {
                let span = once.rounded();
                if weekly.at(span.begin, zone).is_some() {
                    return true;
                }
                let next = weekly.next(span.begin - PERIOD_SECS, zone);
                next.is_some_and(|next| next.meets(once))
            }
            (Occurrences::Weekly { windows: a, .. }, Occurrences::Weekly { windows: b, .. }) => {
                a.periods().into_iter().zip(b.periods()).any(|(a, b)| a && b)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday 29 March 2026, 00:00 UTC; central Europe's clock jumps at 01:00 UTC.
    const SUNDAY: i64 = 1_774_742_400;
    /// Sunday 25 October 2026, 00:00 UTC; the clock is set back at 01:00 UTC.
    const AUTUMN: i64 = 1_792_886_400;
    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;

    fn weekly(window: &str, disabled: &[(i64, i64)]) -> Occurrences {
        let time = ReservationTime::Weekly(window.to_string());
        let r = Reservation { time, disabled: disabled.to_vec(), ..Reservation::default() };
        Occurrences::of(&r).unwrap_or_else(|| panic!("{window}"))
    }

    fn once(begin: i64, end: i64) -> Occurrences {
        Occurrences::Once(Period { begin, end })
    }

    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn window_over_midnight_is_one_period() {
        let (night, utc) = (weekly("22:00-2:00", &[]), TimeZone::UTC);
        let first = Period { begin: SUNDAY - 2 * HOUR, end: SUNDAY + 2 * HOUR };
        for at in [first.begin, SUNDAY - 1, SUNDAY, first.end - 1] {
            assert_eq!(night.at(at, &utc), Some(first));
        }
        assert_eq!(night.at(first.end, &utc), None);
        let second = Period { begin: first.begin + DAY, end: first.end + DAY };
        assert_eq!(night.next(first.begin, &utc), Some(second));
        assert_eq!(night.next(second.begin - 1, &utc), Some(second));
    }

    #[test]
    fn window_over_the_end_of_the_week_is_one_period() {
        let (weekend, utc) = (weekly("5:18:00-1:8:00", &[]), TimeZone::UTC);
        let period = Period { begin: SUNDAY - 30 * HOUR, end: SUNDAY + 32 * HOUR };
        for at in [period.begin, SUNDAY - 1, SUNDAY, period.end - 1] {
            assert_eq!(weekend.at(at, &utc), Some(period));
        }
        assert_eq!(weekend.at(period.begin - 1, &utc), None);
        let next = weekend.next(SUNDAY, &utc).unwrap();
        assert_eq!((next.begin, next.end), (period.begin + 7 * DAY, period.end + 7 * DAY));
    }

    #[test]
    fn window_that_opens_at_a_time_left_out_opens_at_the_first_instant_after_it() {
        let zone = berlin();
        let early = weekly("2:30-5:00", &[]);
        // 3:00 CEST is 01:00 UTC, 5:00 CEST 03:00 UTC
        let short = Period { begin: SUNDAY + HOUR, end: SUNDAY + 3 * HOUR };
        assert_eq!(early.next(SUNDAY, &zone), Some(short));
        assert_eq!(early.at(SUNDAY + 2 * HOUR, &zone), Some(short));
        let whole = early.next(SUNDAY + 4 * HOUR, &zone).unwrap();
        assert_eq!(whole.end - whole.begin, 5 * HOUR / 2);
    }

    #[test]
    fn window_at_a_time_that_comes_twice_is_open_once() {
        let zone = berlin();
        let early = weekly("1:00-2:30", &[]);
        // 1:00 CEST is 23:00 UTC, 2:30 CEST 00:30 UTC; 2:00 CET is 01:00 UTC
        let period = Period { begin: AUTUMN - HOUR, end: AUTUMN + HOUR / 2 };
        assert_eq!(early.at(AUTUMN, &zone), Some(period));
        for again in [AUTUMN + HOUR / 2, AUTUMN + HOUR, AUTUMN + HOUR + 600] {
            assert_eq!(early.at(again, &zone), None, "{}", again - AUTUMN);
        }
        let next = early.next(AUTUMN, &zone).unwrap();
        assert_eq!(next.begin, AUTUMN + DAY);
        // one that holds both readings is longer by an hour
        let long = weekly("1:00-4:00", &[]).at(AUTUMN, &zone).unwrap();
        assert_eq!(long.end - long.begin, 4 * HOUR);
    }

    #[test]
    fn disabled_span_leaves_out_the_periods_that_begin_in_it() {
        let utc = TimeZone::UTC;
        let day = weekly("8:00-10:00", &[(SUNDAY, SUNDAY + 300 * DAY)]);
        assert_eq!(day.at(SUNDAY + 9 * HOUR, &utc), None);
        assert_eq!(day.next(SUNDAY, &utc).unwrap().begin, SUNDAY + 300 * DAY + 8 * HOUR);
        // what has begun before it goes on
        let night = weekly("22:00-2:00", &[(SUNDAY, SUNDAY + DAY)]);
        assert!(night.at(SUNDAY + HOUR, &utc).is_some());
        assert!(night.at(SUNDAY + 23 * HOUR, &utc).is_none());
        assert!(night.at(SUNDAY + 25 * HOUR, &utc).is_none());
        assert_eq!(night.next(SUNDAY, &utc).unwrap().begin, SUNDAY + 46 * HOUR);
    }

    #[test]
    fn reservations_meet_within_periods_of_ten_minutes() {
        let utc = TimeZone::UTC;
        let at = |hour: i64, minute: i64| SUNDAY + hour * HOUR + minute * 60;
        let first = once(at(1, 22), at(4, 24));
        assert!(first.meets(&once(at(4, 25), at(5, 0)), &utc), "4:20 to 4:30 is taken");
        assert!(!first.meets(&once(at(4, 30), at(5, 0)), &utc));
        assert!(first.meets(&weekly("0:4:25-0:5:00", &[]), &utc));
        assert!(weekly("4:00-4:30", &[]).meets(&first, &utc));
        assert!(!first.meets(&weekly("1:0:00-1:23:00", &[]), &utc));
        assert!(weekly("8-10", &[]).meets(&weekly("2:9:55-2:11:00", &[]), &utc));
        assert!(!weekly("8-10", &[]).meets(&weekly("2:10:00-2:11:00", &[]), &utc));
        assert!(weekly("6:23:00-0:1:00", &[]).meets(&weekly("0:0:30-0:2:00", &[]), &utc));
        let disabled = weekly("4:00-4:30", &[(SUNDAY, SUNDAY + DAY)]);
        assert!(!disabled.meets(&first, &utc));
        let months = once(SUNDAY, SUNDAY + 60 * DAY);
        assert!(months.meets(&disabled, &utc));
    }
}
