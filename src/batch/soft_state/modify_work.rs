//! A bmod of many elements under way.

use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::cursor::Cursor;
use crate::proto::client::Modify;
use crate::proto::machine::ConnId;

/// A bmod of many elements under way.
pub struct ModifyWork {
    pub conn: Option<ConnId>,
    pub who: Caller,
    pub m: Modify,
    pub(crate) cursor: Cursor,
    /// The elements named were looked at: those that wait, those that are started, and one that
    /// is over.
    pub(crate) sorted: bool,
    pub(crate) waiting: Vec<u32>,
    pub(crate) started: Vec<u32>,
    pub(crate) over: Option<u32>,
    /// The last element that was modified.
    pub(crate) done: Option<u32>,
    /// The next element group of a whole array to be changed; 0: none was.
    pub(crate) part: u32,
    /// Others have put elements into parts meanwhile, which may have been passed: all are gone
    /// through once more.
    pub(crate) again: bool,
    /// No changed job waits.
    pub(crate) running: bool,
    /// Bytes that were written, [`log_bytes`].
    pub(crate) written: u64,
}

/// Elements that are modified in one unit.
pub(crate) const MODIFIED_AT_ONCE: u64 = 256;

impl ModifyWork {
    /// The elements that are changed next, and whether there are more: those that wait; where none
    /// does, those that are started; else what is said of one that is over is said of all.
    pub(crate) fn next_elements(&mut self) -> (Vec<u32>, bool) {
        let all = if self.waiting.is_empty() { &mut self.started } else { &mut self.waiting };
        let most = all.len().min(MODIFIED_AT_ONCE as usize);
        let mut some: Vec<u32> = all.drain(..most).collect();
        let more = !all.is_empty();
        if some.is_empty() {
            some.extend(self.over.take());
        }
        (some, more)
    }

    /// Another request put elements of this job into parts.
    pub fn note_parted(&mut self, job: u32) {
        self.again |= self.part > 0 && self.m.id.job == job;
    }
}
