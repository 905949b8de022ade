//! Launcher, starter and sbatchd.

pub mod launcher;
