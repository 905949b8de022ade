//! The conditions of `#if time(...)` lines: time(windows [zone]) with `&&`, `||`, `!` and
//! parentheses. Windows as in [`super::window`], a zone by its usual letters; without one they are
//! of the zone that is passed in. See lsf.shared(5).

use super::scan::Scan;
use super::window::Windows;
use jiff::tz::{Offset, TimeZone};

/// Deepest nesting of parentheses and `!`.
const MAX_DEPTH: usize = 32;

/// Zones by the letters that people use, with their hours from UTC.
const ZONES: [(&str, i8); 18] = [
    ("UTC", 0),
    ("GMT", 0),
    ("WET", 0),
    ("BST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EEST", 3),
    ("MSK", 3),
    ("HKT", 8),
    ("JST", 9),
    ("KST", 9),
    ("EST", -5),
    ("EDT", -4),
    ("CDT", -5),
    ("MST", -7),
    ("PDT", -7),
    ("PST", -8),
];

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum TimeCond {
    Time { windows: Windows, zone: Option<i8> },
    Not(Box<TimeCond>),
    And(Box<TimeCond>, Box<TimeCond>),
    Or(Box<TimeCond>, Box<TimeCond>),
}

/// Why a text is no condition: where, in bytes from its start, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCond {
    pub at: usize,
    pub why: String,
}

impl TimeCond {
    pub fn parse(text: &str) -> Result<TimeCond, BadCond> {
        let mut scan = Scan::new(text);
        let cond = or(&mut scan, 0)?;
        scan.blanks();
        match scan.at_end() {
            true => Ok(cond),
            false => Err(bad(&scan, "<&&>, <||> or the end is wanted")),
        }
    }

    /// Does it hold at `now` (seconds since the epoch)?
    pub fn holds(&self, now: i64, zone: &TimeZone) -> bool {
        match self {
            TimeCond::Time { windows, zone: own } => match own {
                Some(hours) => windows.open_at(now, &fixed(*hours)),
                None => windows.open_at(now, zone),
            },
            TimeCond::Not(c) => !c.holds(now, zone),
            TimeCond::And(a, b) => a.holds(now, zone) && b.holds(now, zone),
            TimeCond::Or(a, b) => a.holds(now, zone) || b.holds(now, zone),
        }
    }

    /// The first second after `now` at which a window of it opens or closes, if ever.
    pub fn next_change(&self, now: i64, zone: &TimeZone) -> Option<i64> {
        match self {
            TimeCond::Time { windows, zone: own } => match own {
                Some(hours) => windows.next_change(now, &fixed(*hours)),
                None => windows.next_change(now, zone),
            },
            TimeCond::Not(c) => c.next_change(now, zone),
            TimeCond::And(a, b) | TimeCond::Or(a, b) => {
                let both = [a.next_change(now, zone), b.next_change(now, zone)];
                both.into_iter().flatten().min()
            }
        }
    }
}

fn fixed(hours: i8) -> TimeZone {
    TimeZone::fixed(Offset::constant(hours))
}

fn bad(scan: &Scan<'_>, why: impl Into<String>) -> BadCond {
    BadCond { at: scan.pos(), why: why.into() }
}

fn or(scan: &mut Scan<'_>, depth: usize) -> Result<TimeCond, BadCond> {
    let mut left = and(scan, depth)?;
    while scan.eat_after_blanks("||") {
        left = TimeCond::Or(Box::new(left), Box::new(and(scan, depth)?));
    }
    Ok(left)
}

fn and(scan: &mut Scan<'_>, depth: usize) -> Result<TimeCond, BadCond> {
    let mut left = unary(scan, depth)?;
    while scan.eat_after_blanks("&&") {
        left = TimeCond::And(Box::new(left), Box::new(unary(scan, depth)?));
    }
    Ok(left)
}

fn unary(scan: &mut Scan<'_>, depth: usize) -> Result<TimeCond, BadCond> {
    if depth > MAX_DEPTH {
        return Err(bad(scan, "nested too deeply"));
    }
    if scan.eat_after_blanks("!") {
        return Ok(TimeCond::Not(Box::new(unary(scan, depth + 1)?)));
    }
    if scan.eat_after_blanks("(") {
        let inner = or(scan, depth + 1)?;
        return match scan.eat_after_blanks(")") {
            true => Ok(inner),
            false => Err(bad(scan, "<)> is wanted")),
        };
    }
    scan.blanks();
    if !scan.eat("time") || !scan.eat_after_blanks("(") {
        return Err(bad(scan, "time(windows) is wanted"));
    }
    windows(scan)
}

/// The text between the parentheses of time(), and the closing one.
fn windows(scan: &mut Scan<'_>) -> Result<TimeCond, BadCond> {
    let start = scan.pos();
    let inner = scan.take_while(|c| c != ')');
    if !scan.eat(")") {
        return Err(bad(scan, "<)> is wanted"));
    }
    let letters = |w: &&str| w.starts_with(|c: char| c.is_ascii_alphabetic());
    let (text, zone) = match inner.split_whitespace().next_back().filter(letters) {
        Some(word) => {
            let from = inner.rfind(word).unwrap_or(0);
            let found = ZONES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            let Some((_, hours)) = found else {
                let why = format!("<{word}> is not a known abbreviation of a time zone");
                return Err(BadCond { at: start + from, why });
            };
            (&inner[..from], Some(*hours))
        }
        None => (inner, None),
    };
    let windows = Windows::parse(text).map_err(|e| {
        let from = text.find(&e.word).unwrap_or(0);
        BadCond { at: start + from, why: e.to_string() }
    })?;
    if windows.is_empty() {
        return Err(BadCond { at: start, why: "a time window is wanted".to_owned() });
    }
    Ok(TimeCond::Time { windows, zone })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-14 (a Tuesday) 22:13:20 UTC.
    const NOW: i64 = 1_700_000_000;

    fn holds(text: &str) -> bool {
        TimeCond::parse(text).unwrap().holds(NOW, &TimeZone::UTC)
    }

    #[test]
    fn windows_operators_and_zones() {
        for yes in [
            "time(22:00-23:00)",
            "time(2:22:00-2:23:00)",
            "time(8:00-9:00 20:00-6:00)",
            "!time(8-9)",
            "time(8-9) || time(22-23)",
            "time(22-23) && !time(8-9)",
            "! ( time(8-9) && time(22-23) )",
            "time(8-9) && time(8-9) || time(22-23)",
            "time (17:13-17:14 EST)",
            "time(23-24:0 cet)".replace("24:0", "23:30").as_str(),
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in ["time(22:14-22:00)", "time(3:22:00-3:23:00)", "time(22-23) && time(8-9)"] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn the_next_border_is_the_first_of_all_windows() {
        let next = |text: &str| TimeCond::parse(text).unwrap().next_change(NOW, &TimeZone::UTC);
        assert_eq!(next("time(8:00-22:30)"), Some(NOW - 20 - 13 * 60 + 30 * 60));
        assert_eq!(next("time(8:00-22:30) || !time(9:00-22:15)"), Some(NOW - 20 + 2 * 60));
        assert_eq!(next("time(8:00-17:15 EST)"), Some(NOW - 20 + 2 * 60));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, at, why) in [
            ("", 0, "time(windows) is wanted"),
            ("time(8-9) & time(9-10)", 10, "<&&>, <||> or the end is wanted"),
            ("time(8-9", 8, "<)> is wanted"),
            ("time()", 5, "a time window is wanted"),
            ("time(8-9 25:00-3)", 9, "25:00-3: Bad time window specification"),
            ("time(8-9 XYZ)", 9, "<XYZ> is not a known abbreviation of a time zone"),
            ("(time(8-9)", 10, "<)> is wanted"),
            ("user(x)", 0, "time(windows) is wanted"),
        ] {
            assert_eq!(TimeCond::parse(text), Err(BadCond { at, why: why.into() }), "{text}");
        }
        assert!(TimeCond::parse(&"(".repeat(100_000)).is_err());
    }
}
