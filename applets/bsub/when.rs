//! `-b` and `-t`: times of day in the caller's zone, turned into seconds since the epoch.
//!
//! `[[[year:]month:]day:]hour:minute`; what is left out is taken from the present. The next such
//! time is meant: a time of day already past is tomorrow's, a day already past next month's, a
//! month already past next year's. A time that does not exist in the zone takes the first instant
//! after it, one that occurs twice takes the first.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use lsf::lang::civil::instant;

/// A time as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// A year was given: a past time means what it says.
    pub has_year: bool,
    /// Seconds since the epoch.
    pub at: i64,
}

/// Reads a time. `None`: not a time.
pub fn parse(text: &str, now: i64, zone: &TimeZone) -> Option<Clock> {
    let mut parts = Vec::new();
    for word in text.split(':') {
        if word.is_empty() || word.len() > 4 || !word.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        parts.push(word.parse::<i16>().ok()?);
    }
    let (given, clock) = match parts.as_slice() {
        [given @ .., hour, minute] if given.len() <= 3 => {
            (given, Time::new(i8::try_from(*hour).ok()?, i8::try_from(*minute).ok()?, 0, 0).ok()?)
        }
        _ => return None,
    };
    let local = zone.to_datetime(Timestamp::from_second(now).ok()?);
    // The time of the current minute means now rather than tomorrow.
    let floor = now - i64::from(local.second());
    let now = local.date();
    let day = |d: &i16| i8::try_from(*d).ok();
    match given {
        [] => first(now, |d| d.tomorrow().ok(), clock, zone, floor, 3),
        [d] => {
            let d = day(d)?;
            month_days(now, d, clock, zone, floor)
        }
        [m, d] => {
            let (m, d) = (day(m)?, day(d)?);
            Date::new(2000, m, d).ok()?;
            (now.year()..now.year() + 9)
                .filter_map(|y| Date::new(y, m, d).ok())
                .map(|date| instant(date.to_datetime(clock), zone))
                .find(|&t| t >= floor)
        }
        [y, m, d] => {
            let date = Date::new(*y, day(m)?, day(d)?).ok()?;
            return Some(Clock { has_year: true, at: instant(date.to_datetime(clock), zone) });
        }
        _ => None,
    }
    .map(|at| Clock { has_year: false, at })
}

/// The first time from `date` on, going by `step`, that is not before `floor`.
fn first(
    date: Date,
    step: impl Fn(Date) -> Option<Date>,
    clock: Time,
    zone: &TimeZone,
    floor: i64,
    tries: usize,
) -> Option<i64> {
    std::iter::successors(Some(date), |&d| step(d))
        .take(tries)
        .map(|d| instant(d.to_datetime(clock), zone))
        .find(|&t| t >= floor)
}

/// The next `day` of a month that has one.
fn month_days(now: Date, day: i8, clock: Time, zone: &TimeZone, floor: i64) -> Option<i64> {
    if !(1..=31).contains(&day) {
        return None;
    }
    // Months counted from the year 0.
    let first = i32::from(now.year()) * 12 + i32::from(now.month()) - 1;
    (first..first + 12)
        .filter_map(|m| Date::new((m / 12) as i16, (m % 12) as i8 + 1, day).ok())
        .map(|d| instant(d.to_datetime(clock), zone))
        .find(|&t| t >= floor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::DateTime;

    fn at(text: &str, now: &str, zone: &str) -> Option<String> {
        let tz = TimeZone::posix(zone).unwrap();
        let now: DateTime = now.parse().unwrap();
        let now = tz.to_timestamp(now).unwrap().as_second();
        let got = parse(text, now, &tz)?.at;
        let z = Timestamp::from_second(got).unwrap().to_zoned(tz);
        Some(z.strftime("%Y-%m-%dT%H:%M:%S").to_string())
    }

    #[test]
    fn the_next_such_time_is_meant() {
        let at = |t| at(t, "2026-11-20T09:30:13", "UTC0").unwrap();
        assert_eq!(at("20:00"), "2026-11-20T20:00:00");
        assert_eq!(at("9:30"), "2026-11-20T09:30:00");
        assert_eq!(at("09:29"), "2026-11-21T09:29:00");
        assert_eq!(at("21:8:00"), "2026-11-21T08:00:00");
        assert_eq!(at("1:8:00"), "2026-12-01T08:00:00");
        assert_eq!(at("31:8:00"), "2026-12-31T08:00:00");
        assert_eq!(at("11:20:9:00"), "2027-11-20T09:00:00");
        assert_eq!(at("2:29:9:00"), "2028-02-29T09:00:00");
        assert_eq!(at("2025:1:2:3:4"), "2025-01-02T03:04:00");
    }

    #[test]
    fn malformed_time_is_refused() {
        let bad = [
            "25:00",
            "99",
            "",
            ":",
            "1:",
            "1:60",
            "-1:00",
            "0:1:00",
            "32:1:00",
            "13:1:1:00",
            "2:30:1:00",
            "2026:2:29:1:00",
            "1:2026:2:1:1:0",
            "a:b",
            "+1:00",
            " 1:00",
        ];
        for bad in bad {
            assert_eq!(at(bad, "2026-11-20T09:30:00", "UTC0"), None, "{bad}");
        }
    }

    #[test]
    fn times_are_right_when_the_clock_changes() {
        let zone = "CET-1CEST,M3.5.0,M10.5.0/3";
        let gap = at("2:30", "2026-03-29T00:10:00", zone).unwrap();
        assert_eq!(gap, "2026-03-29T03:00:00");
        let tz = TimeZone::posix(zone).unwrap();
        let now: DateTime = "2026-10-25T00:10:00".parse().unwrap();
        let now = tz.to_timestamp(now).unwrap().as_second();
        // 02:30 occurs twice; the first is summer time, 00:30 UTC.
        let first = parse("2:30", now, &tz).unwrap().at;
        assert_eq!(Timestamp::from_second(first).unwrap().to_string(), "2026-10-25T00:30:00Z");
    }
}
