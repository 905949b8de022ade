//! Values as the files and the options of bsub write them: sizes and run times with their units,
//! shares, yes and no.
//!
//! See LSF_UNIT_FOR_LIMITS in lsf.conf(5).

use super::types::TimeLimit;

/// LSF_UNIT_FOR_LIMITS: the unit of a size without a suffix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeUnit {
    /// Kilobytes, LSF's own default.
    #[default]
    KB,
    /// Megabytes.
    MB,
    /// Gigabytes.
    GB,
    /// Terabytes.
    TB,
    /// Petabytes.
    PB,
    /// Exabytes.
    EB,
    /// Zettabytes.
    ZB,
}

impl SizeUnit {
    /// All units, smallest first.
    pub const ALL: [SizeUnit; 7] = [
        SizeUnit::KB,
        SizeUnit::MB,
        SizeUnit::GB,
        SizeUnit::TB,
        SizeUnit::PB,
        SizeUnit::EB,
        SizeUnit::ZB,
    ];

    /// Reads `KB`, `MB` ... or the bare letter, in any case.
    pub fn parse(word: &str) -> Option<SizeUnit> {
        let mut letters = word.chars();
        let unit = match letters.next()?.to_ascii_uppercase() {
            'K' => SizeUnit::KB,
            'M' => SizeUnit::MB,
            'G' => SizeUnit::GB,
            'T' => SizeUnit::TB,
            'P' => SizeUnit::PB,
            'E' => SizeUnit::EB,
            'Z' => SizeUnit::ZB,
            _ => return None,
        };
        match letters.as_str() {
            "" | "b" | "B" => Some(unit),
            _ => None,
        }
    }

    /// The word LSF prints.
    pub fn word(self) -> &'static str {
        ["KB", "MB", "GB", "TB", "PB", "EB", "ZB"][self as usize]
    }

    /// How many KB one unit holds.
    pub fn kb(self) -> u128 {
        1u128 << (10 * self as u32)
    }
}

/// Reads a size: a whole or decimal number with an optional suffix. The result is KB, rounded
/// up so that a limit is never smaller than was asked for. None: not a size, or beyond u64.
pub fn size_kb(text: &str, unit: SizeUnit) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let suffix = suffix.trim();
    let unit = if suffix.is_empty() { unit } else { SizeUnit::parse(suffix)? };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    // Twelve decimals are far more than any size means, and keep the product within u128.
    const DECIMALS: usize = 12;
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let shown = &fraction[..fraction.len().min(DECIMALS)];
    let scale = 10u128.pow(shown.len() as u32);
    let part: u128 = if shown.is_empty() { 0 } else { shown.parse().ok()? };
    let kb = whole.checked_mul(unit.kb())?;
    let rest = part.checked_mul(unit.kb())?.div_ceil(scale);
    u64::try_from(kb.checked_add(rest)?).ok()
}

/// Reads `[hours:]minutes[/spec]`. Minutes may be decimal where there are no hours.
pub fn time_limit(text: &str) -> Option<TimeLimit> {
    let (time, spec) = match text.trim().split_once('/') {
        Some((time, spec)) => (time.trim_end(), Some(spec.trim())),
        None => (text.trim(), None),
    };
    if spec.is_some_and(|s| s.is_empty() || s.contains(char::is_whitespace)) {
        return None;
    }
    Some(TimeLimit { seconds: minutes(time)?, spec: spec.map(str::to_owned) })
}

/// Reads `[hours:]minutes` as seconds.
pub fn minutes(text: &str) -> Option<u64> {
    let whole = |t: &str| -> Option<u64> {
        if t.is_empty() || !t.bytes().all(|b| b.is_ascii_digit()) { None } else { t.parse().ok() }
    };
    if let Some((hours, mins)) = text.split_once(':') {
        return whole(hours)?.checked_mul(3600)?.checked_add(whole(mins)?.checked_mul(60)?);
    }
    if let Some((mins, part)) = text.split_once('.') {
        let shown = &part.get(..part.len().min(6))?;
        let scale = 10u64.pow(shown.len() as u32);
        let extra = whole(shown)?.checked_mul(60)?.div_ceil(scale);
        return whole(mins)?.checked_mul(60)?.checked_add(extra);
    }
    whole(text)?.checked_mul(60)
}

/// The pairs of `FAIRSHARE = USER_SHARES[[name, share] ...]`, as written.
pub fn user_shares(fairshare: &str) -> Vec<(&str, &str)> {
    let list = fairshare.split_once("USER_SHARES").map_or("", |(_, list)| list.trim());
    let all = list.trim_start_matches('[').trim_end_matches(']');
    let pairs = all.split(['[', ']']).filter_map(|p| p.rsplit_once(','));
    pairs.map(|(name, share)| (name.trim(), share.trim())).collect()
}

/// Reads a yes or a no, in any of the spellings the files use.
pub fn yes_no(value: &str) -> Option<bool> {
    match value.to_ascii_uppercase().as_str() {
        "Y" | "YES" | "1" => Some(true),
        "N" | "NO" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_unit_and_the_suffix() {
        assert_eq!(size_kb("100", SizeUnit::KB), Some(100));
        assert_eq!(size_kb("100", SizeUnit::MB), Some(102_400));
        assert_eq!(size_kb("100k", SizeUnit::MB), Some(100));
        assert_eq!(size_kb("2GB", SizeUnit::KB), Some(2 << 20));
        assert_eq!(size_kb("1.5 g", SizeUnit::KB), Some(3 << 19));
        assert_eq!(size_kb("0.1K", SizeUnit::KB), Some(1));
        assert_eq!(size_kb("1t", SizeUnit::KB), Some(1 << 30));
        for bad in ["", "x", "-1", "1x", "1 kb b", "1.2.3", ".", "99999999999999999999z"] {
            assert_eq!(size_kb(bad, SizeUnit::KB), None, "{bad}");
        }
    }

    #[test]
    fn times_are_hours_and_minutes_with_a_spec() {
        assert_eq!(minutes("10"), Some(600));
        assert_eq!(minutes("1:30"), Some(5400));
        assert_eq!(minutes("0:90"), Some(5400));
        assert_eq!(minutes("0.5"), Some(30));
        assert_eq!(
            time_limit("2:00/hostA"),
            Some(TimeLimit { seconds: 7200, spec: Some("hostA".into()) })
        );
        for bad in ["", ":", "1:", ":30", "a", "1:2:3", "1/", "-5", "1.x", "1.", "+3"] {
            assert_eq!(time_limit(bad), None, "{bad}");
        }
    }
}
