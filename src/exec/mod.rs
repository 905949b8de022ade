//! Launcher, starter and sbatchd.

pub mod attempt;
pub mod blobs;
pub mod launcher;
pub mod life;
pub mod plan;
pub mod report;
pub mod sbatchd;
