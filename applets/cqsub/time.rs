//! The date of `-a`.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use lsf::lang::civil::instant;

const DAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Reads a date and time, seconds since the epoch.
///
/// # Errors
/// The words for the user.
pub fn after(text: &str, now: i64, zone: &TimeZone) -> Result<i64, String> {
    let bad = || {
        format!(
            "-a <{text}>: [today | tomorrow | WEEKDAY | [DD-]MON[-YYYY] | MM/DD[/YY]] \
             [HH[:MM[:SS]] | HHam | HHpm | noon | midnight] is wanted"
        )
    };
    let here = zone.to_datetime(Timestamp::from_second(now).map_err(|_| bad())?);
    let plain = text.replace(',', " ");
    let (mut date, mut time) = (None, None);
    for word in plain.split_whitespace() {
        let word = word.to_ascii_lowercase();
        if let (None, Some(found)) = (time, clock(&word)) {
            time = Some(found);
        } else if let (None, Some(found)) = (date, day(&word, here)) {
            date = Some(found);
        } else {
            return Err(bad());
        }
    }
    if date.is_none() && time.is_none() {
        return Err(bad());
    }
    let midnight = Time::midnight();
    let at = DateTime::from_parts(date.unwrap_or(here.date()), time.unwrap_or(midnight));
    let at = instant(at, zone);
    // a day alone is a whole day
    let today = time.is_none() && date == Some(here.date());
    if at <= now && !today {
        return Err(format!("-a <{text}> lies in the past"));
    }
    Ok(at.max(now))
}

fn clock(word: &str) -> Option<Time> {
    let hour = |h: i8, m: i8, s: i8| Time::new(h, m, s, 0).ok();
    match word {
        "noon" => return hour(12, 0, 0),
        "midnight" => return hour(0, 0, 0),
        _ => {}
    }
    for (suffix, add) in [("am", 0), ("pm", 12)] {
        if let Some(h) = word.strip_suffix(suffix) {
            let h = h.parse::<i8>().ok().filter(|h| (1..=12).contains(h))?;
            return hour(h % 12 + add, 0, 0);
        }
    }
    let parts: Vec<&str> = word.split(':').collect();
    if parts.len() > 3 || parts.iter().any(|p| p.is_empty() || p.len() > 2) {
        return None;
    }
    let part = |n: usize| parts.get(n).map_or(Some(0), |p| p.parse::<i8>().ok());
    hour(part(0)?, part(1)?, part(2)?)
}

fn day(word: &str, now: DateTime) -> Option<Date> {
    let today = now.date();
    match word {
        "today" => return Some(today),
        "tomorrow" => return today.tomorrow().ok(),
        _ => {}
    }
    let weekday = DAYS.iter().find(|(name, _)| *name == word || name.get(..3) == Some(word));
    if let Some((_, weekday)) = weekday {
        return match today.weekday() == *weekday {
            true => Some(today),
            false => today.nth_weekday(1, *weekday).ok(),
        };
    }
    if word.contains('/') {
        let parts: Vec<i16> = word.split('/').map(|p| p.parse().ok()).collect::<Option<_>>()?;
        return match parts.as_slice() {
            [m, d] => of_year(today, *m as i8, *d as i8),
            [m, d, y] => Date::new(if *y < 100 { 2000 + y } else { *y }, *m as i8, *d as i8).ok(),
            _ => None,
        };
    }
    let month = |name: &str| MONTHS.iter().position(|m| *m == name).map(|m| m as i8 + 1);
    let parts: Vec<&str> = word.split('-').collect();
    match parts.as_slice() {
        [m] => of_year(today, month(m)?, 1),
        [d, m] if month(m).is_some() => of_year(today, month(m)?, d.parse().ok()?),
        [m, y] => Date::new(y.parse().ok()?, month(m)?, 1).ok(),
        [d, m, y] => Date::new(y.parse().ok()?, month(m)?, d.parse().ok()?).ok(),
        _ => None,
    }
}

/// A day of this year, or of the next one where it is over.
fn of_year(today: Date, month: i8, day: i8) -> Option<Date> {
    let date = Date::new(today.year(), month, day).ok()?;
    match date < today {
        true => date.checked_add(Span::new().years(1)).ok(),
        false => Some(date),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_the_zone_of_the_caller() {
        // Saturday, 28 November 2026, 10:00
        let now = 1_795_860_000;
        let at = |text: &str| {
            let secs = after(text, now, &TimeZone::UTC);
            secs.map(|s| {
                let at = TimeZone::UTC.to_datetime(Timestamp::from_second(s).unwrap());
                at.strftime("%m-%d %H:%M:%S %Y").to_string()
            })
        };
        for (text, want) in [
            ("11:30", "11-28 11:30:00 2026"),
            ("tomorrow", "11-29 00:00:00 2026"),
            ("tomorrow, 2pm", "11-29 14:00:00 2026"),
            ("monday noon", "11-30 12:00:00 2026"),
            ("24-Dec", "12-24 00:00:00 2026"),
            ("24-Dec-2027 12am", "12-24 00:00:00 2027"),
            ("12/31 23:59:58", "12-31 23:59:58 2026"),
            ("01/02/28", "01-02 00:00:00 2028"),
            ("jan", "01-01 00:00:00 2027"),
        ] {
            assert_eq!(at(text).as_deref(), Ok(want), "{text}");
        }
        assert_eq!(after("9:00", now, &TimeZone::UTC), Err("-a <9:00> lies in the past".into()));
        for bad in ["", "someday", "25:00", "13pm", "noon noon", "2/30"] {
            assert!(at(bad).unwrap_err().contains("is wanted"), "{bad}");
        }
    }
}
