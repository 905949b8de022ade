//! Civil time and instants: the one rule for readings of a clock that do not exist (the first
//! instant after them) or occur twice (the first of the two).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

/// Seconds since the epoch of a civil time in `zone`; `i64::MAX` beyond what can be counted.
pub fn instant(local: DateTime, zone: &TimeZone) -> i64 {
    let at = |offset: jiff::tz::Offset| offset.to_timestamp(local).ok();
    let found = match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => at(offset),
        AmbiguousOffset::Fold { before, .. } => at(before),
        // Read with the offset after the jump it lies before the jump: the next transition.
        AmbiguousOffset::Gap { before, after } => at(after)
            .and_then(|early| zone.following(early).next())
            .map(|jump| jump.timestamp())
            .or_else(|| at(before)),
    };
    found.map_or(i64::MAX, |t| t.as_second())
}

/// `14:05:00`, the time of the day at `now` in `zone`.
pub fn clock_time(now: i64, zone: &TimeZone) -> String {
    let at = zone.to_datetime(Timestamp::from_second(now).unwrap_or(Timestamp::UNIX_EPOCH));
    format!("{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second())
}

/// The day of the week (0 is Sunday) and the minute of the day at `now` in `zone`.
pub fn week_minute(now: i64, zone: &TimeZone) -> (u8, u16) {
    let at = zone.to_datetime(Timestamp::from_second(now).unwrap_or(Timestamp::UNIX_EPOCH));
    let day = at.weekday().to_sunday_zero_offset().unsigned_abs();
    (day, u16::from(at.hour().unsigned_abs()) * 60 + u16::from(at.minute().unsigned_abs()))
}
