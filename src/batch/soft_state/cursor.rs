//! A position among the elements of a job: of the whole job, or of ranges of indices.

use crate::batch::state::Job;
use crate::proto::client::IdSel;

/// The elements that are gone through: of a whole job by their place in its list, or of ranges.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    range: usize,
    next: u32,
}

impl Cursor {
    pub(crate) fn is_at_start(&self) -> bool {
        (self.range, self.next) == (0, 0)
    }

    /// The place in the list of a whole job.
    pub(crate) fn place(&mut self) -> &mut u32 {
        &mut self.next
    }

    /// The next element that `sel` names; of a whole job those in memory.
    pub fn next(&mut self, job: &Job, sel: &IdSel, looks: &mut usize) -> Option<u32> {
        if sel.elems.is_empty() {
            return self.next_of_all(job, looks);
        }
        while let Some(&(first, last, step)) = sel.elems.get(self.range) {
            let idx = self.next.max(first);
            if idx > last || self.next == u32::MAX {
                (self.range, self.next) = (self.range + 1, 0);
                continue;
            }
            self.next = idx.saturating_add(step.max(1));
            return Some(idx);
        }
        None
    }

    pub(crate) fn next_of_all(&mut self, job: &Job, looks: &mut usize) -> Option<u32> {
        let Some(a) = job.array() else {
            self.next += 1;
            return (self.next == 1).then_some(0);
        };
        while self.next < job.tally().total && *looks > 0 {
            let idx = a.index(self.next);
            self.next += 1;
            *looks -= 1;
            if job.view(idx).is_some() {
                return Some(idx);
            }
        }
        None
    }

    /// Is there nothing left?
    pub fn over(&self, job: &Job, sel: &IdSel) -> bool {
        match (sel.elems.is_empty(), job.is_array()) {
            (false, _) => self.clone().next(job, sel, &mut 0).is_none(),
            (true, false) => self.next > 0,
            (true, true) => self.next >= job.tally().total,
        }
    }
}
