//! The questions about files of users, and the starters that look into them (`validate`).

use crate::model::time::US;
use crate::proto::validation::Validate;
use std::collections::{BTreeMap, VecDeque};

/// Longest time that a question waits and is looked into, microseconds.
pub const VALIDATION_MOST: u64 = 10 * US;
/// Most questions that wait.
pub const VALIDATIONS_MAX: usize = 4_096;
/// Most starters that look at once.
pub const VALIDATIONS_AT_ONCE: usize = 64;
/// Most starters that were told to end, and have not.
const STUCK_MAX: usize = 1_024;
/// The instant at which a starter that was told to end is told again.
pub(super) const NEVER: u64 = u64::MAX;

/// A starter that looks for a user.
#[derive(Debug)]
pub(super) struct Looking {
    /// The number of the question; `None`: it is answered.
    pub(super) number: Option<u64>,
    /// When the starter is ended; [`NEVER`]: it was told to.
    pub(super) until: u64,
}

/// The questions, in the order in which they came, and the starters by uid.
#[derive(Debug, Default)]
pub(super) struct Validations {
    pub(super) waiting: VecDeque<(u64, Validate)>,
    pub(super) looking: BTreeMap<u32, Looking>,
}

impl Validations {
    /// How many starters there may be.
    pub(super) fn most(&self) -> usize {
        let stuck = self.looking.values().filter(|looking| looking.until == NEVER).count();
        VALIDATIONS_AT_ONCE + stuck.min(STUCK_MAX)
    }

    /// When something is to be ended.
    pub(super) fn deadline(&self) -> Option<u64> {
        let looking = self.looking.values().map(|looking| looking.until);
        let waiting = self.waiting.front().map(|(until, _)| *until);
        looking.filter(|until| *until != NEVER).chain(waiting).min()
    }

    /// No question that was asked so far is answered.
    pub(super) fn forget_questions(&mut self) {
        self.waiting.clear();
        self.looking.values_mut().for_each(|looking| looking.number = None);
    }
}
