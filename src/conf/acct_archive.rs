//! The parameters of lsb.params about the archives of lsb.acct.

use super::section::Values;
use super::types::AcctArchiveParams;

/// Longest age that is taken, days.
const MAX_DAYS: i64 = 36_500;
/// Most archives that are counted.
const MAX_FILES: u32 = 1_000_000;

pub(super) fn acct_archive(v: &mut Values<'_>) -> AcctArchiveParams {
    let days: Option<i64> = v.number("ACCT_ARCHIVE_AGE", 1..=MAX_DAYS);
    let kb: Option<u64> = v.number("ACCT_ARCHIVE_SIZE", 1..=u64::MAX >> 10);
    AcctArchiveParams {
        age: days.map(|days| days * 86_400),
        size: kb.map(|kb| kb << 10),
        minute: minute(v),
        keep: v.number("MAX_ACCT_ARCHIVE_FILE", 1..=MAX_FILES),
    }
}

/// ACCT_ARCHIVE_TIME, `hh:mm`.
fn minute(v: &mut Values<'_>) -> Option<u16> {
    const NAME: &str = "ACCT_ARCHIVE_TIME";
    let value = v.raw.get(NAME)?;
    let part = |text: &str, most: u16| {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u16>().ok().filter(|n| digits && *n <= most)
    };
    let found = value.text.trim().split_once(':').and_then(|(hour, minute)| {
        Some(part(hour, 23)? * 60 + part(minute, 59).filter(|_| minute.len() == 2)?)
    });
    if found.is_none() {
        v.bad(NAME, value, "a time of the day is wanted: hh:mm");
    }
    found
}
