//! The attempts that an inventory of a host has not named.

use crate::model::JobKey;
use crate::proto::machine::ConnId;
use std::collections::HashSet;

/// The attempts that a host has not named in its inventory although they were started there.
#[derive(Debug)]
pub struct Missing {
    /// The connection that the inventory came over.
    pub conn: ConnId,
    pub(crate) keys: Vec<JobKey>,
    /// The attempts that it has named.
    pub(crate) told: HashSet<JobKey>,
}
