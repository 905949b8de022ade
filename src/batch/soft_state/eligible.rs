//! The jobs whose eligible pending time may have begun or ended.

use std::collections::BTreeSet;

/// Jobs to be looked at; soft state.
#[derive(Debug, Default)]
pub struct Eligible {
    pub(crate) todo: BTreeSet<u32>,
    /// All jobs from this one on are to be looked at as well.
    pub(crate) from: Option<u32>,
}

impl Eligible {
    /// Is something left to do?
    pub fn left(&self) -> bool {
        !self.todo.is_empty() || self.from.is_some()
    }
}
