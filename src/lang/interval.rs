//! Time intervals of bhist and bacct: `t0,t1`, `t0,`, `,t1`, `t` (bhist(1)).
//!
//! A time is `[[year/]month/]day`, `month/`, each with `/hour:minute` or `/hour:` behind it, a time
//! of day alone, `/day`, `.` (now), `.-n` (n days ago) or `.-n/` (n months ago). Omitted parts are
//! those of the present. A time stands for all of its year, month, day, hour or minute: an interval
//! reaches from the beginning of the first to the end of the second.

use super::civil::instant;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// Seconds since the epoch, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub from: i64,
    pub to: i64,
}

impl Interval {
    /// Reads one. `None`: not an interval, or one that ends before it begins.
    pub fn parse(text: &str, now: i64, zone: &TimeZone) -> Option<Interval> {
        let one = |t: &str| period(t.trim(), now, zone);
        let found = match text.split_once(',') {
            None => one(text)?,
            Some((from, to)) => {
                if from.trim().is_empty() && to.trim().is_empty() {
                    return None;
                }
                let from = if from.trim().is_empty() { 0 } else { one(from)?.from };
                let to = if to.trim().is_empty() { now } else { one(to)?.to };
                Interval { from, to }
            }
        };
        (found.from <= found.to).then_some(found)
    }

    pub fn holds(&self, time: i64) -> bool {
        (self.from..=self.to).contains(&time)
    }
}

/// All that one time stands for.
fn period(text: &str, now: i64, zone: &TimeZone) -> Option<Interval> {
    let local = zone.to_datetime(Timestamp::from_second(now).ok()?);
    if text == "." {
        return Some(Interval { from: now, to: now });
    }
    if let Some(back) = text.strip_prefix(".-") {
        let (n, months) = match back.strip_suffix('/') {
            Some(n) => (n, true),
            None => (back, false),
        };
        let n = number(n)?;
        let span = if months { Span::new().months(n) } else { Span::new().days(n) };
        let at = instant(local.checked_sub(span).ok()?, zone);
        return Some(Interval { from: at, to: at });
    }
    let (date, clock) = match text.rsplit_once('/') {
        Some((date, clock)) if clock.contains(':') => (date, Some(clock)),
        None if text.contains(':') => ("", Some(text)),
        _ => (text, None),
    };
    let (first, last) = dates(date, local.date(), clock.is_some())?;
    let (begin, end) = match clock {
        None => (Time::midnight(), Time::new(23, 59, 59, 0).ok()?),
        Some(clock) => times(clock)?,
    };
    Some(Interval {
        from: instant(first.to_datetime(begin), zone),
        to: instant(DateTime::from_parts(last, end), zone),
    })
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// `hour:minute`, `hour:`, `:minute`.
fn times(text: &str) -> Option<(Time, Time)> {
    let (hour, minute) = text.split_once(':')?;
    let part = |t: &str, all: i8| -> Option<(i8, i8)> {
        match t {
            "" => Some((0, all)),
            t => i8::try_from(number(t)?).ok().map(|n| (n, n)),
        }
    };
    if hour.is_empty() && minute.is_empty() {
        return None;
    }
    let (h0, h1) = part(hour, 23)?;
    let (m0, m1) = part(minute, 59)?;
    Some((Time::new(h0, m0, 0, 0).ok()?, Time::new(h1, m1, 59, 0).ok()?))
}

/// The days that a date stands for, first and last. Before a time of day it is one day.
fn dates(text: &str, today: Date, one_day: bool) -> Option<(Date, Date)> {
    let day = |y: i16, m: i64, d: i64| Date::new(y, m.try_into().ok()?, d.try_into().ok()?).ok();
    let year = |y: i64| i16::try_from(y).ok();
    let whole_month = |y: i16, m: i64| {
        let first = day(y, m, 1)?;
        (!one_day).then_some((first, first.last_of_month()))
    };
    let same = |d: Date| (d, d);
    // `/day`: the month is left out.
    let (text, day_alone) = match text.strip_prefix('/') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (text, open) = match text.strip_suffix('/') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    if text.is_empty() {
        return (one_day && !open).then_some(same(today));
    }
    let parts: Vec<i64> = text.split('/').map(number).collect::<Option<_>>()?;
    let this_month = i64::from(today.month());
    match (parts.as_slice(), open && !day_alone) {
        ([d], false) => day(today.year(), this_month, *d).map(same),
        ([y], true) if *y > 12 => {
            let y = year(*y)?;
            (!one_day).then_some((day(y, 1, 1)?, day(y, 12, 31)?))
        }
        ([m], true) => whole_month(today.year(), *m),
        ([m, d], _) if *m <= 12 => day(today.year(), *m, *d).map(same),
        ([y, m], _) => whole_month(year(*y)?, *m),
        ([y, m, d], _) => day(year(*y)?, *m, *d).map(same),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2008-05-09 17:06:00 UTC.
    const NOW: i64 = 1_210_352_760;

    fn at(text: &str) -> i64 {
        let t: DateTime = text.parse().unwrap();
        instant(t, &TimeZone::UTC)
    }

    #[test]
    fn intervals_reach_from_the_beginning_to_the_end() {
        let rows = [
            ("1,8", "2008-05-01T00:00:00", "2008-05-08T23:59:59"),
            ("6", "2008-05-06T00:00:00", "2008-05-06T23:59:59"),
            ("/6", "2008-05-06T00:00:00", "2008-05-06T23:59:59"),
            ("/6/", "2008-05-06T00:00:00", "2008-05-06T23:59:59"),
            ("3/", "2008-03-01T00:00:00", "2008-03-31T23:59:59"),
            ("/12:", "2008-05-09T12:00:00", "2008-05-09T12:59:59"),
            ("12:", "2008-05-09T12:00:00", "2008-05-09T12:59:59"),
            ("2/1", "2008-02-01T00:00:00", "2008-02-01T23:59:59"),
            ("2/1,", "2008-02-01T00:00:00", "2008-05-09T17:06:00"),
            ("09:00,09:30", "2008-05-09T09:00:00", "2008-05-09T09:30:59"),
            ("2001/12/31,2008/5/1", "2001-12-31T00:00:00", "2008-05-01T23:59:59"),
            ("2008/4/30/09:15,", "2008-04-30T09:15:00", "2008-05-09T17:06:00"),
            ("4/30/9:15", "2008-04-30T09:15:00", "2008-04-30T09:15:59"),
            ("2007/", "2007-01-01T00:00:00", "2007-12-31T23:59:59"),
            ("2008/2/", "2008-02-01T00:00:00", "2008-02-29T23:59:59"),
            (".-9,.", "2008-04-30T17:06:00", "2008-05-09T17:06:00"),
            (".-9,.-2", "2008-04-30T17:06:00", "2008-05-07T17:06:00"),
            (".-2/,", "2008-03-09T17:06:00", "2008-05-09T17:06:00"),
        ];
        for (text, from, to) in rows {
            let want = Interval { from: at(from), to: at(to) };
            assert_eq!(Interval::parse(text, NOW, &TimeZone::UTC), Some(want), "{text}");
        }
        let open = Interval::parse(",4", NOW, &TimeZone::UTC).unwrap();
        assert_eq!(open, Interval { from: 0, to: at("2008-05-04T23:59:59") });
        assert!(open.holds(open.to) && !open.holds(open.to + 1));
    }

    #[test]
    fn malformed_interval_is_refused() {
        for bad in [
            "", ",", "x", "8,1", "32", "2/30", "13/1/1/1", "25:00", "1:60", ".-", ".-x", "1,2,3",
            "/", ":", "-1", "3//12:00", "99999",
        ] {
            assert_eq!(Interval::parse(bad, NOW, &TimeZone::UTC), None, "{bad}");
        }
    }
}
