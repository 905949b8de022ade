//! The users whose directories are to be tidied, and when: a pause after the last job of each here.

use crate::exec::attempt::Attempt;
use crate::model::{Now, time::US};
use std::collections::BTreeMap;

/// How long a user has no job here before that, microseconds.
pub const TIDY_PAUSE: u64 = 60 * US;
/// Most users whose next tidying is remembered.
pub const USERS_MAX: usize = 16_384;

/// A user whose directory is to be tidied.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) gid: u32,
    pub(super) user: String,
    /// When that is due; while a starter is at it, when that is ended.
    pub(super) at: u64,
    pub(super) runs: bool,
}

/// The users by uid.
#[derive(Debug, Default)]
pub(super) struct TidyTable {
    pub(super) due: BTreeMap<u32, Due>,
}

impl TidyTable {
    /// An attempt is over: its user is due again a pause from now.
    pub(super) fn attempt_over(&mut self, now: Now, attempt: &Attempt) {
        let o = &attempt.note.order;
        let known = self.due.contains_key(&o.uid);
        // simulated execution leaves nothing behind
        if attempt.sim_end.is_some() || self.due.len() >= USERS_MAX && !known {
            return;
        }
        let (gid, user) = (o.gid, o.user.to_string());
        let due = self.due.entry(o.uid).or_insert(Due { gid, user, at: 0, runs: false });
        if !due.runs {
            due.at = now.mono_us + TIDY_PAUSE;
        }
    }

    /// Whether a job of this user has to wait.
    pub(super) fn runs(&self, uid: u32) -> bool {
        self.due.get(&uid).is_some_and(|due| due.runs)
    }

    /// When the first user is due.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.due.values().map(|due| due.at).min()
    }
}
