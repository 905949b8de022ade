//! Why a commit to the log did not become durable.

use std::fmt;
use std::io;

/// Why a commit did not become durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fail {
    /// The write was undone; writing may work again later.
    Write(String),
    /// The process must end at once.
    Fatal(String),
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fail::Write(why) | Fail::Fatal(why)) = self;
        f.write_str(why)
    }
}

pub(super) fn said(what: &str) -> impl FnOnce(io::Error) -> Fail + '_ {
    move |e| Fail::Write(format!("{what}: {}", crate::sys::words(&e)))
}

pub(super) fn fatal(what: &str) -> impl FnOnce(io::Error) -> Fail + '_ {
    move |e| Fail::Fatal(format!("{what}: {}", crate::sys::words(&e)))
}
