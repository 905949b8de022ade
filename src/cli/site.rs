//! The cluster of a command: see [`crate::sys::site`].

pub use crate::sys::site::{Around, LocalSite, SiteError, find, find_from, find_with};

/// A parameter of commands: the environment's, else lsf.conf's. An empty value is none.
pub fn param(site: Option<&LocalSite>, name: &str) -> Option<String> {
    let own = std::env::var(name).ok();
    let value = own.or_else(|| Some(site?.lsf.get(name)?.to_string()));
    value.filter(|v| !v.trim().is_empty())
}

/// Whether a parameter of commands is switched on.
pub fn yes(site: Option<&LocalSite>, name: &str) -> bool {
    param(site, name).is_some_and(|v| means_yes(&v))
}

/// `Y`, `yes`, `1`.
pub fn means_yes(value: &str) -> bool {
    matches!(value.trim(), "Y" | "y" | "1" | "yes" | "Yes" | "YES")
}
