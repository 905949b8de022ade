//! The open files of a copy and of its primary.

use crate::log::disk::{FileId, Tail};

/// The files of the primary that are read.
pub(super) struct Opened {
    /// The lsb.events that this is, and the extent told last before the opening
    /// ([`crate::log::extent::Extent`]).
    pub begun: u64,
    pub told: u64,
    pub events: FileId,
    pub sum: FileId,
}

/// The files of the copy that are written.
pub(super) struct Written {
    pub events: Tail,
    pub sum: Tail,
    pub acct: Tail,
}
