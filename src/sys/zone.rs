//! The time zone of this process: that of TZ, else the machine's.
//!
//! The library's own way looks through all of the zone database, some 70 system calls for each
//! command that prints a time. Here the one file is read; whatever is not plainly a name of it
//! (a POSIX rule, a path) is left to the library.

use jiff::tz::TimeZone;

/// The machine's zone.
const LOCAL: &str = "/etc/localtime";
/// The directory of zones; TZDIR names another one.
const ZONES: &str = "/usr/share/zoneinfo";
/// Longest file of a zone that is read, bytes.
const MAX_ZONE: u64 = 1 << 20;

/// The zone in which this process shows times.
pub fn zone() -> TimeZone {
    let own = match std::env::var_os("TZ") {
        None => read(LOCAL),
        Some(name) => name.to_str().and_then(named),
    };
    own.unwrap_or_else(TimeZone::system)
}

fn named(name: &str) -> Option<TimeZone> {
    let name = name.strip_prefix(':').unwrap_or(name);
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+');
    let first = name.bytes().next()?;
    if !first.is_ascii_alphabetic() || !name.bytes().all(plain) {
        return None;
    }
    let dir = std::env::var("TZDIR").unwrap_or_default();
    let dir = if dir.starts_with('/') { dir.as_str() } else { ZONES };
    read(&format!("{dir}/{name}"))
}

fn read(path: &str) -> Option<TimeZone> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MAX_ZONE {
        return None;
    }
    TimeZone::tzif(path, &std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_by_name_is_what_the_library_finds() {
        let at = |zone: &TimeZone, secs| {
            zone.to_datetime(jiff::Timestamp::from_second(secs).unwrap()).to_string()
        };
        let mut seen = 0;
        for name in ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/UTC", "UTC"] {
            let Ok(right) = jiff::tz::db().get(name) else { continue };
            let ours = named(name).unwrap();
            for secs in [0, 1_700_000_000, 1_720_000_000, 1_900_000_000, 4_000_000_000] {
                assert_eq!(at(&ours, secs), at(&right, secs), "{name}");
            }
            seen += 1;
        }
        assert!(seen > 0, "no zone database here");
        for other in
            ["", "UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "/etc/localtime", "a/../b", "Nowhere"]
        {
            assert!(named(other).is_none(), "{other}");
        }
        assert!(named(":UTC").is_some());
    }
}
