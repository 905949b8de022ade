//! The length of the log that is durable, as the thread that writes it tells the one that copies it
//! ([`super::duplicate`]).

/// The durable part of the log's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Grows each time that the writer tells its extent.
    pub told: u64,
    /// How often this run has begun a new lsb.events.
    pub begun: u64,
    /// Bytes of lsb.events.
    pub events: u64,
    /// Bytes of lsb.events.sum.
    pub sum: u64,
    /// Bytes of lsb.acct.
    pub acct: u64,
    /// The spool file that is written: number, bytes, bytes of its checksum file. Earlier ones are
    /// whole.
    pub spool: (u32, u64, u64),
}
