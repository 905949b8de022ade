//! The event log: classic text records, checksums, spool, accounting.
//!
//! `codec` turns events into text and back; `disk` is what the rest sees of a file system, real
//! or simulated.

pub mod codec;
pub mod disk;
pub mod simdisk;
