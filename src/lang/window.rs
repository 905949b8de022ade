//! Time windows: `[day:]hour[:minute]-[day:]hour[:minute] ...`, open in any of them.
//!
//! A window is a set of minutes of the week, begin included, end not. A window without days is
//! open every day; one whose end is not after its begin runs over midnight (or over the week's
//! end), and one whose ends are equal is open always. Windows are civil time: the caller says in
//! which zone.

use super::civil;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt;

/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// Minutes of a week; Sunday 0:00 is minute 0.
const WEEK: u16 = 7 * DAY;
/// Minutes of a period, by which reservations are told apart.
pub const PERIOD: u16 = 10;
/// Most windows in one list.
pub const MAX_WINDOWS: usize = 200;

/// One window as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    /// Minute of the week, or of the day when `daily`.
    start: u16,
    /// The end, in the same unit; not included.
    end: u16,
    daily: bool,
}

impl Window {
    fn contains(&self, minute: u16) -> bool {
        let at = if self.daily { minute % DAY } else { minute };
        match self.start < self.end {
            true => (self.start..self.end).contains(&at),
            false => at >= self.start || at < self.end,
        }
    }

    /// Every minute of the week at which it opens or closes.
    fn edges(&self) -> impl Iterator<Item = u16> + '_ {
        let days = if self.daily { 7 } else { 1 };
        (0..days).flat_map(|d| [self.start + d * DAY, self.end + d * DAY])
    }
}

/// A list of windows. An empty list is open always.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Windows {
    list: Vec<Window>,
}

/// A text that is no window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadWindow {
    /// The word that could not be read.
    pub word: String,
}

impl fmt::Display for BadWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: Bad time window specification", self.word)
    }
}

impl std::error::Error for BadWindow {}

impl Windows {
    /// Parses windows parted by blanks.
    pub fn parse(text: &str) -> Result<Windows, BadWindow> {
        let mut list = Vec::new();
        for word in text.split_whitespace() {
            match read(word) {
                Some(window) if list.len() < MAX_WINDOWS => list.push(window),
                _ => return Err(BadWindow { word: word.to_string() }),
            }
        }
        Ok(Windows { list })
    }

    /// Whether no window was given.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a window is open at this minute (0 to 1439) of this day (0 is Sunday).
    pub fn contains(&self, weekday: u8, minute: u16) -> bool {
        self.open(u16::from(weekday % 7) * DAY + minute % DAY)
    }

    fn open(&self, minute: u16) -> bool {
        self.list.is_empty() || self.list.iter().any(|w| w.contains(minute % WEEK))
    }

    /// How many minutes until the list as a whole opens or closes; None if it never does.
    pub fn until_change(&self, weekday: u8, minute: u16) -> Option<u16> {
        let now = u16::from(weekday % 7) * DAY + minute % DAY;
        let open = self.open(now);
        let ahead = |edge: u16| match (edge % WEEK + WEEK - now) % WEEK {
            0 => WEEK,
            n => n,
        };
        let changes = self.list.iter().flat_map(Window::edges).map(ahead);
        changes.filter(|n| self.open((now + n) % WEEK) != open).min()
    }

    /// How many minutes ago the list as a whole opened or closed, 0 to a week less one; None if it
    /// never does.
    fn since_change(&self, weekday: u8, minute: u16) -> Option<u16> {
        let now = u16::from(weekday % 7) * DAY + minute % DAY;
        let changes = |edge: &u16| self.open(*edge) != self.open((edge + WEEK - 1) % WEEK);
        let edges = self.list.iter().flat_map(Window::edges).map(|edge| edge % WEEK);
        edges.filter(changes).map(|edge| (now + WEEK - edge) % WEEK).min()
    }

    /// Whether the windows are open at `now` (seconds since the epoch) in `zone`.
    pub fn open_at(&self, now: i64, zone: &TimeZone) -> bool {
        let (day, minute) = civil::week_minute(now, zone);
        self.contains(day, minute)
    }

    /// The first second after `now` at which the windows as a whole open or close, if ever.
    pub fn next_change(&self, now: i64, zone: &TimeZone) -> Option<i64> {
        let (day, minute) = civil::week_minute(now, zone);
        let minutes = self.until_change(day, minute)?;
        let at = zone.to_datetime(Timestamp::from_second(now).ok()?);
        // The clock's reading then, counted on as if it were UTC.
        let reading = TimeZone::UTC.to_timestamp(at).ok()?.as_second();
        let reading = reading - reading.rem_euclid(60) + i64::from(minutes) * 60;
        let then = TimeZone::UTC.to_datetime(Timestamp::from_second(reading).ok()?);
        // A clock that is set back shows the same reading again: the next look is a minute later.
        Some(civil::instant(then, zone).max(now - now.rem_euclid(60) + 60))
    }

    /// The second, `now` at the latest, at which the windows as a whole opened or closed last, if
    /// ever.
    pub fn last_change(&self, now: i64, zone: &TimeZone) -> Option<i64> {
        let (day, minute) = civil::week_minute(now, zone);
        let minutes = self.since_change(day, minute)?;
        let at = zone.to_datetime(Timestamp::from_second(now).ok()?);
        let reading = TimeZone::UTC.to_timestamp(at).ok()?.as_second();
        let reading = reading - reading.rem_euclid(60) - i64::from(minutes) * 60;
        let then = TimeZone::UTC.to_datetime(Timestamp::from_second(reading).ok()?);
        Some(civil::instant(then, zone).min(now))
    }

    /// Are these windows open at no minute at which the others are closed?
    pub fn within(&self, others: &Windows) -> bool {
        (0..WEEK).all(|minute| others.open(minute) || !self.open(minute))
    }

    /// The periods of ten minutes of the week, from Sunday 0:00, in which the windows are open.
    pub fn periods(&self) -> Vec<bool> {
        let open = |period: u16| (0..PERIOD).any(|minute| self.open(period * PERIOD + minute));
        (0..WEEK / PERIOD).map(open).collect()
    }
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, w) in self.list.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { " " })?;
            for (sign, at) in [("", w.start), ("-", w.end)] {
                f.write_str(sign)?;
                if !w.daily {
                    write!(f, "{}:", at / DAY)?;
                }
                write!(f, "{}:{:02}", at % DAY / 60, at % 60)?;
            }
        }
        Ok(())
    }
}

fn read(word: &str) -> Option<Window> {
    let (start, end) = word.split_once('-')?;
    let ((start_day, start), (end_day, end)) = (read_end(start)?, read_end(end)?);
    match (start_day, end_day) {
        (None, None) => Some(Window { start, end, daily: true }),
        (Some(s), Some(e)) => {
            Some(Window { start: s * DAY + start, end: e * DAY + end, daily: false })
        }
        _ => None,
    }
}

/// The day, if there is one, and the minute of the day.
fn read_end(text: &str) -> Option<(Option<u16>, u16)> {
    let mut fields = Vec::new();
    for field in text.split(':') {
        if field.is_empty() || field.len() > 2 || !field.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        fields.push(field.parse::<u16>().ok()?);
    }
    let (day, hour, minute) = match fields.as_slice() {
        [hour] => (None, *hour, 0),
        [hour, minute] => (None, *hour, *minute),
        [day, hour, minute] if *day <= 7 => (Some(*day % 7), *hour, *minute),
        _ => return None,
    };
    (hour < 24 && minute < 60).then_some((day, hour * 60 + minute))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn w(text: &str) -> Windows {
        Windows::parse(text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn daily_weekly_and_over_the_edge() {
        let day = w("8-18:30");
        assert!(day.contains(0, 8 * 60) && day.contains(6, 18 * 60 + 29));
        assert!(!day.contains(3, 8 * 60 - 1) && !day.contains(3, 18 * 60 + 30));
        let night = w("20:00-8:30");
        assert!(night.contains(1, 23 * 60) && night.contains(1, 0) && !night.contains(1, 12 * 60));
        let weekend = w("5:19:00-1:8:30");
        assert!(weekend.contains(5, 19 * 60) && weekend.contains(6, 0) && weekend.contains(0, 0));
        assert!(weekend.contains(1, 8 * 60 + 29) && !weekend.contains(1, 8 * 60 + 30));
        assert!(!weekend.contains(5, 18 * 60));
        assert_eq!(w("7:1:00-1:1:00"), w("0:1:00-1:1:00"));
        let both = w(" 8-10  6:0:00-0:0:00 ");
        assert!(
            both.contains(2, 9 * 60) && both.contains(6, 23 * 60) && !both.contains(2, 11 * 60)
        );
        assert!(w("").contains(3, 7) && w("").is_empty());
        assert!(w("9:00-9:00").contains(3, 7));
        assert_eq!(both.to_string(), "8:00-10:00 6:0:00-0:0:00");
    }

    #[test]
    fn malformed_window_is_refused() {
        for bad in [
            "8",
            "8-",
            "-8",
            "24-8",
            "8:60-9",
            "8-1:9:00",
            "8:1:00-9:1:00",
            "a-b",
            "8-9-10",
            "1:2:3:4-5",
            "8:-9",
            "+8-9",
            "008-9",
        ] {
            let e = Windows::parse(bad).expect_err(bad);
            assert_eq!(e.to_string(), format!("{bad}: Bad time window specification"));
        }
    }

    #[test]
    fn next_change_of_a_window_is_found() {
        assert_eq!(w("8-18").until_change(2, 7 * 60), Some(60));
        assert_eq!(w("8-18").until_change(2, 8 * 60), Some(600));
        assert_eq!(w("8-18").until_change(6, 18 * 60), Some(14 * 60));
        assert_eq!(w("8-12 12-18").until_change(2, 8 * 60), Some(600), "two windows that touch");
        assert_eq!(w("").until_change(0, 0), None);
        assert_eq!(w("0-0").until_change(0, 0), None);
        assert_eq!(w("1:8:00-1:9:00").until_change(1, 9 * 60), Some(WEEK - 60));
    }

    #[test]
    fn windows_are_civil_time() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        // Sunday 29 March 2026, 00:30 CET; the clock jumps from 2:00 to 3:00.
        let now = 1_774_740_600;
        assert!(!w("2:30-5").open_at(now, &zone));
        let opens = w("2:30-5").next_change(now, &zone).unwrap();
        assert_eq!(opens - now, 90 * 60, "2:30 does not exist: open from the first instant after");
        assert!(w("2:30-5").open_at(opens, &zone));
        assert_eq!(w("2:30-5").next_change(opens, &zone), Some(opens + 2 * 3600));
        // Sunday 25 October: 2:30 comes twice, the first one counts.
        let now = 1_792_882_800 + 30 * 60;
        let opens = w("2:30-5").next_change(now, &zone).unwrap();
        assert!(w("2:30-5").open_at(opens, &zone));
        assert!(!w("2:30-5").open_at(opens - 1, &zone));
        assert_eq!(w("8-9").next_change(now + 7, &TimeZone::UTC).unwrap() % 3600, 0);
    }

    proptest! {
        #[test]
        fn the_change_is_the_first(
            text in "([0-6]:(1?[0-9]):[0-5][0-9]-[0-6]:(1?[0-9]):[0-5][0-9]|\
                     1?[0-9]-1?[0-9]){1}( 2[0-3]:30-[0-9]){0,2}",
            day in 0u8..7, minute in 0u16..DAY,
        ) {
            let windows = w(&text);
            prop_assert_eq!(&w(&windows.to_string()), &windows);
            let now = u16::from(day) * DAY + minute;
            let open = windows.open(now);
            let first = (1..=WEEK).find(|n| windows.open((now + n) % WEEK) != open);
            prop_assert_eq!(windows.until_change(day, minute), first);
        }

        #[test]
        fn any_window_is_read_without_panic(text in "\\PC{0,30}|[0-9: -]{0,30}") {
            let _ = Windows::parse(&text);
        }
    }
}
