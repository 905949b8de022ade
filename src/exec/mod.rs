//! Launcher, starter and sbatchd.
