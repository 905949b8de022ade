//! Where commands find their cluster: see [`crate::sys::site`].

pub use crate::sys::site::{Around, Site, SiteError, find, find_from};
