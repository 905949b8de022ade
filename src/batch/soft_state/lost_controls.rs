//! Control records that damage took from the log.

use crate::model::event::name_mark;
use std::collections::BTreeSet;

/// A control record that the log lost, or may have lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostControl {
    /// The record was of a queue, or of a host; both where that is not known.
    pub queues: bool,
    pub hosts: bool,
    /// [`name_mark`] of the name; 0: not known whose.
    pub mark: u32,
    /// States that later records tell: of a queue (else a host), whether it is active (else open),
    /// whose.
    pub known: BTreeSet<(bool, bool, String)>,
    /// The damaged bytes, in words.
    pub why: String,
}

impl LostControl {
    pub(crate) fn hits(&self, queue: bool, active: bool, name: &str) -> bool {
        (if queue { self.queues } else { self.hosts })
            && (self.mark == 0 || self.mark == name_mark(name))
            && !self.known.contains(&(queue, active, name.to_string()))
    }
}
