//! The cluster of a command: see [`crate::sys::site`].

pub use crate::sys::site::{Around, LocalSite, SiteError, find, find_from, find_with};
use std::ops::RangeInclusive;

/// A parameter of commands: the environment's, else lsf.conf's. An empty value is none.
pub fn param(site: Option<&LocalSite>, name: &str) -> Option<String> {
    let own = std::env::var(name).ok();
    let value = own.or_else(|| Some(site?.lsf.get(name)?.to_string()));
    value.filter(|v| !v.trim().is_empty())
}

/// A number of seconds from the environment or lsf.conf, within these limits; `None`: not set.
///
/// # Errors
/// The words for a value that is no such number.
pub fn seconds(
    site: Option<&LocalSite>,
    name: &str,
    within: RangeInclusive<u64>,
) -> Result<Option<u64>, String> {
    let Some(value) = param(site, name) else { return Ok(None) };
    let secs = value.trim().parse::<u64>().ok().filter(|secs| within.contains(secs));
    let words = || format!("{name}={}: not a number of seconds", value.escape_debug());
    secs.map(Some).ok_or_else(words)
}

/// Whether a parameter of commands is switched on.
pub fn yes(site: Option<&LocalSite>, name: &str) -> bool {
    param(site, name).is_some_and(|v| means_yes(&v))
}

/// `Y`, `yes`, `1`.
pub fn means_yes(value: &str) -> bool {
    matches!(value.trim(), "Y" | "y" | "1" | "yes" | "Yes" | "YES")
}
