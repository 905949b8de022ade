//! Times as the listings print them: the caller's zone, C locale.

use crate::model::reservation::ReservationTime;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::cell::RefCell;
use std::fmt::Write;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// A zone to print times in.
#[derive(Clone, Debug)]
pub struct Clock {
    zone: TimeZone,
    /// The minute (since the epoch) last shown in the short form, and its text: listings hold
    /// many times of one minute. Zones differ from UTC by whole minutes.
    last: RefCell<(i64, String)>,
    /// The long form tells the year (LSB_DISPLAY_YEAR).
    year: bool,
}

impl Clock {
    /// The caller's zone: TZ, else the machine's.
    pub fn system() -> Self {
        Clock::of(crate::sys::zone())
    }

    pub fn utc() -> Self {
        Clock::of(TimeZone::UTC)
    }

    pub fn of(zone: TimeZone) -> Self {
        Clock { zone, last: RefCell::new((i64::MIN, String::new())), year: false }
    }

    /// This clock with or without the year in its long form.
    pub fn with_year(self, year: bool) -> Self {
        Clock { year, ..self }
    }

    fn civil(&self, secs: i64) -> DateTime {
        let at = Timestamp::from_second(secs).unwrap_or(Timestamp::UNIX_EPOCH);
        self.zone.to_datetime(at)
    }

    /// The time of an advance reservation: `11/12/6/0-11/12/8/0`, or the window with an asterisk.
    pub fn window(&self, time: &ReservationTime) -> String {
        match time {
            ReservationTime::Weekly(window) => format!("{window} *"),
            ReservationTime::Once { begin, end } => {
                let at = |secs: i64| {
                    let t = self.civil(secs);
                    format!("{}/{}/{}/{}", t.month(), t.day(), t.hour(), t.minute())
                };
                format!("{}-{}", at(*begin), at(*end))
            }
        }
    }

    /// `Nov 20 09:12`.
    pub fn short(&self, out: &mut String, secs: i64) {
        let mut last = self.last.borrow_mut();
        let minute = secs.div_euclid(60);
        if last.0 != minute {
            let t = self.civil(secs);
            let month = MONTHS[t.month() as usize - 1];
            last.0 = minute;
            last.1.clear();
            let _ = write!(last.1, "{month} {:>2} {:02}:{:02}", t.day(), t.hour(), t.minute());
        }
        out.push_str(&last.1);
    }

    /// A time in -o: `Nov 20 09:12`, and with the year `Nov 20 09:12:33 2026`.
    pub fn field(&self, out: &mut String, secs: i64) {
        if !self.year {
            return self.short(out, secs);
        }
        let t = self.civil(secs);
        let month = MONTHS[t.month() as usize - 1];
        let (d, h, m, s, y) = (t.day(), t.hour(), t.minute(), t.second(), t.year());
        let _ = write!(out, "{month} {d:>2} {h:02}:{m:02}:{s:02} {y}");
    }

    /// `Fri Nov 20 09:12`.
    pub fn minute(&self, out: &mut String, secs: i64) {
        let t = self.civil(secs);
        let day = DAYS[t.weekday().to_monday_zero_offset() as usize];
        let month = MONTHS[t.month() as usize - 1];
        let _ = write!(out, "{day} {month} {:>2} {:02}:{:02}", t.day(), t.hour(), t.minute());
    }

    /// `Fri Nov 20 09:12:33`.
    pub fn long(&self, out: &mut String, secs: i64) {
        let t = self.civil(secs);
        let day = DAYS[t.weekday().to_monday_zero_offset() as usize];
        let month = MONTHS[t.month() as usize - 1];
        let (d, h, m, s) = (t.day(), t.hour(), t.minute(), t.second());
        let _ = write!(out, "{day} {month} {d:>2} {h:02}:{m:02}:{s:02}");
        if self.year {
            let _ = write!(out, " {}", t.year());
        }
    }

    /// `Fri Nov 20 09:12:33 2026`.
    pub fn full(&self, out: &mut String, secs: i64) {
        self.long(out, secs);
        if !self.year {
            let _ = write!(out, " {}", self.civil(secs).year());
        }
    }

    /// `11/20/2026 09:12:33`.
    pub fn dated(&self, secs: i64) -> String {
        let t = self.civil(secs);
        let (hour, minute, second) = (t.hour(), t.minute(), t.second());
        let (month, day, year) = (t.month(), t.day(), t.year());
        format!("{month:02}/{day:02}/{year:04} {hour:02}:{minute:02}:{second:02}")
    }

    /// `11/20-09:12:33`.
    pub fn slashed(&self, out: &mut String, secs: i64) {
        let t = self.civil(secs);
        let (m, d) = (t.month(), t.day());
        let _ = write!(out, "{m:02}/{d:02}-{:02}:{:02}:{:02}", t.hour(), t.minute(), t.second());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_three_documented_forms() {
        let c = Clock::utc();
        let (mut a, mut b, mut s) = (String::new(), String::new(), String::new());
        // 2026-11-20 09:30:13 UTC, and a day below ten.
        c.short(&mut a, 1_795_167_013);
        c.long(&mut b, 1_795_167_013);
        c.slashed(&mut s, 1_795_167_013);
        let mut f = String::new();
        c.field(&mut f, 1_795_167_013);
        assert_eq!(f, a);
        assert_eq!((a.as_str(), b.as_str()), ("Nov 20 09:30", "Fri Nov 20 09:30:13"));
        assert_eq!(s, "11/20-09:30:13");
        let c = c.with_year(true);
        for form in [Clock::long, Clock::full] {
            b.clear();
            form(&c, &mut b, 1_795_167_013);
            assert_eq!(b, "Fri Nov 20 09:30:13 2026");
        }
        f.clear();
        c.field(&mut f, 1_796_169_661);
        assert_eq!(f, "Dec  2 00:01:01 2026");
        a.clear();
        c.short(&mut a, 1_796_169_600);
        assert_eq!(a, "Dec  2 00:00");
        for (secs, want) in [(1_796_169_659, "00:00"), (1_796_169_660, "00:01"), (-1, "23:59")] {
            a.clear();
            c.short(&mut a, secs);
            assert!(a.ends_with(want), "{a}");
        }
    }
}
