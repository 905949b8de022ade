//! The attempts that an inventory of a host has not named.

use crate::model::JobKey;
use crate::proto::machine::ConnId;
use std::collections::HashSet;

/// The attempts that a host has not named in its inventory although they were started there.
#[derive(Debug)]
pub struct Missing {
    /// The connection that the inventory came over.
    conn: ConnId,
    keys: Vec<JobKey>,
    /// The attempts that it has named.
    told: HashSet<JobKey>,
}

impl Missing {
    /// `keys`: what the host has not named, the last of them first.
    pub(crate) fn new(conn: ConnId, keys: Vec<JobKey>, told: HashSet<JobKey>) -> Missing {
        Missing { conn, keys, told }
    }

    pub(crate) fn conn(&self) -> ConnId {
        self.conn
    }

    /// The attempt to be settled next.
    pub(crate) fn take_next(&mut self) -> Option<JobKey> {
        self.keys.pop()
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.keys.is_empty()
    }

    /// The attempts that the host has named.
    pub(crate) fn told(&self) -> &HashSet<JobKey> {
        &self.told
    }
}
