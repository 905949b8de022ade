//! A bmod of many elements under way.

use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::cursor::Cursor;
use crate::batch::state::Job;
use crate::batch::state::element_groups::ranges;
use crate::proto::client::{IdSel, Modify};
use crate::proto::machine::ConnId;

/// A bmod of many elements under way.
pub struct ModifyWork {
    conn: Option<ConnId>,
    who: Caller,
    m: Modify,
    cursor: Cursor,
    /// The elements named were looked at: those that wait, those that are started, and one that
    /// is over.
    sorted: bool,
    waiting: Vec<u32>,
    started: Vec<u32>,
    over: Option<u32>,
    /// The last element that was modified.
    done: Option<u32>,
    /// The next element group of a whole array to be changed; 0: none was.
    part: u32,
    /// Others have put elements into parts meanwhile, which may have been passed: all are gone
    /// through once more.
    again: bool,
    /// No changed job waits.
    running: bool,
    /// Bytes that were written, [`log_bytes`].
    ///
    /// [`log_bytes`]: crate::batch::state::space::log_bytes
    written: u64,
}

/// Elements that are modified in one unit.
pub(crate) const MODIFIED_AT_ONCE: u64 = 4096;

/// The changes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modified {
    Nothing,
    /// Elements, the last of which is this.
    Elements(u32),
    /// A part of the array.
    Part,
}

impl ModifyWork {
    pub(crate) fn new(conn: ConnId, who: Caller, m: Modify) -> ModifyWork {
        ModifyWork {
            conn: Some(conn),
            who,
            m,
            cursor: Cursor::default(),
            sorted: false,
            waiting: Vec::new(),
            started: Vec::new(),
            over: None,
            done: None,
            part: 0,
            again: false,
            running: false,
            written: 0,
        }
    }

    /// Job IDs and ranges that a request holds.
    pub(crate) fn weight_of(m: &Modify) -> usize {
        1 + m.id.elems.len()
    }

    pub(crate) fn weight(&self) -> usize {
        ModifyWork::weight_of(&self.m)
    }

    pub(crate) fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    /// The client is gone.
    pub(crate) fn forget_client(&mut self) {
        self.conn = None;
    }

    pub(crate) fn who(&self) -> &Caller {
        &self.who
    }

    pub(crate) fn request(&self) -> &Modify {
        &self.m
    }

    /// Makes a change of all that the request names: `change` says whether the job has been
    /// started.
    pub(crate) fn change_all<E>(
        &mut self,
        change: impl FnOnce(&Caller, &mut Modify) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.running = change(&self.who, &mut self.m)?;
        Ok(())
    }

    /// Makes a change of these elements alone.
    pub(crate) fn change_some<E>(
        &mut self,
        some: &[u32],
        change: impl FnOnce(&Caller, &mut Modify) -> Result<bool, E>,
    ) -> Result<(), E> {
        let id = IdSel { job: self.m.id.job, elems: ranges(some.iter().copied()) };
        let all = std::mem::replace(&mut self.m.id, id);
        let did = self.change_all(change);
        self.m.id = all;
        if did.is_ok() {
            self.done = some.last().copied();
        }
        did
    }

    /// Counts bytes that were written; gives the sum.
    pub(crate) fn wrote(&mut self, bytes: u64) -> u64 {
        self.written += bytes;
        self.written
    }

    pub(crate) fn modified(&self) -> Modified {
        match (self.done, self.part) {
            (Some(last), _) => Modified::Elements(last),
            (None, 0) => Modified::Nothing,
            (None, _) => Modified::Part,
        }
    }

    /// Does nothing that is changed wait?
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// The part of the array to be changed next; `None`: nothing has been changed yet.
    pub(crate) fn next_part(&self) -> Option<u32> {
        (self.part > 0).then_some(self.part)
    }

    /// All parts before this one are changed.
    pub(crate) fn stands_at(&mut self, part: u32) {
        self.part = part;
    }

    /// All parts were changed. Are they to be gone through once more?
    pub(crate) fn begin_again(&mut self) -> bool {
        let again = std::mem::take(&mut self.again);
        if again {
            self.part = 1;
        }
        again
    }

    /// Were all elements looked at that the request names?
    pub(crate) fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Looks at some elements that the request names: whether they are there and wait. `job`:
    /// none, where it is gone.
    pub(crate) fn sort_elements(&mut self, job: Option<&Job>, looks: usize) {
        self.sorted = job.is_none_or(|job| self.sort_some(job, looks));
    }

    fn sort_some(&mut self, job: &Job, looks: usize) -> bool {
        let mut any = usize::MAX;
        for _ in 0..looks {
            let Some(idx) = self.cursor.next(job, &self.m.id, &mut any) else { return true };
            match job.view(idx).map(|v| v.stat().is_pending()) {
                Some(true) => self.waiting.push(idx),
                Some(false) if job.started_from(idx) == Some(idx) => self.started.push(idx),
                Some(false) => self.over = Some(idx),
                None => {}
            }
        }
        false
    }

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
