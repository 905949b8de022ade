//! A change that is being stored: the state after it, and the caller who waits for the answer.

use super::store::ObjectChange;
use crate::conf::nlb_map::NameMaps;
use crate::lang::nlb::Policies;
use crate::proto::machine::ConnId;

/// The change under way.
pub(super) struct Changing {
    /// The number of the order that the runner has to report on.
    pub(super) order: u64,
    pub(super) conn: ConnId,
    /// Warnings for the caller.
    pub(super) lines: Vec<String>,
    pub(super) what: What,
}

/// The state after the change.
pub(super) enum What {
    /// The policies file is being read.
    Reading,
    /// The config file is being read.
    ReadingConfig,
    Policies(Policies, String),
    Maps(Box<NameMaps>, Policies),
    Objects(Vec<ObjectChange>),
}
