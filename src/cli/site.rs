//! Where commands find their cluster: see [`crate::sys::site`].

pub use crate::sys::site::{Around, Site, SiteError, find, find_from};

/// A parameter of commands: the environment's, else lsf.conf's. An empty value is none.
pub fn param(site: Option<&Site>, name: &str) -> Option<String> {
    let own = std::env::var(name).ok();
    let value = own.or_else(|| Some(site?.lsf.get(name)?.to_string()));
    value.filter(|v| !v.trim().is_empty())
}
