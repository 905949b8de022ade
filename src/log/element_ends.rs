//! The ends of many elements of an array that one record of lsb.events tells (LSF_ARRAY_SIGNAL):
//! their records for lsb.acct are made slice by slice after the commit. The next start derives the
//! records that a crash cuts off, like every record of lsb.acct.

use super::codec::write_finish;
use crate::model::event::{ElementRange, Finish};
use std::collections::VecDeque;

/// Records made in one slice.
pub(super) const SLICE: usize = 1024;

/// Elements that have ended alike.
#[derive(Clone, Debug)]
pub(super) struct ElementEnds {
    /// The record of each of them, but for its index.
    finish: Finish,
    /// The elements that are left.
    elems: VecDeque<ElementRange>,
}

impl ElementEnds {
    pub(super) fn new(finish: Finish, elems: Vec<ElementRange>) -> ElementEnds {
        ElementEnds { finish, elems: elems.into() }
    }

    /// The next element.
    fn next(&mut self) -> Option<u32> {
        let (first, last, step) = self.elems.pop_front()?;
        if let Some(next) = first.checked_add(step.max(1)).filter(|next| *next <= last) {
            self.elems.push_front((next, last, step));
        }
        (first <= last).then_some(first)
    }
}

/// The ends whose records are yet to be made.
#[derive(Debug, Default)]
pub(super) struct UnwrittenEnds(VecDeque<ElementEnds>);

impl UnwrittenEnds {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn put(&mut self, ends: &[ElementEnds]) {
        self.0.extend(ends.iter().cloned());
    }

    /// Bytes that they take up in memory, about: of each one record and its elements.
    pub(super) fn bytes(&self) -> usize {
        let of = |ends: &ElementEnds| {
            let mut record = Vec::new();
            write_finish(&ends.finish, &mut record);
            record.len() + size_of::<ElementEnds>() + ends.elems.len() * size_of::<ElementRange>()
        };
        self.0.iter().map(of).sum()
    }

    /// The number of the records.
    pub(super) fn records(&self) -> u64 {
        let elements = |&(first, last, step): &ElementRange| match last.checked_sub(first) {
            Some(wide) => u64::from(wide / step.max(1)) + 1,
            None => 0,
        };
        self.0.iter().flat_map(|ends| &ends.elems).map(elements).sum()
    }

    /// Makes so many records, at most.
    pub(super) fn write(&mut self, records: usize, out: &mut Vec<u8>) {
        for _ in 0..records {
            let Some(ends) = self.0.front_mut() else { return };
            match ends.next() {
                Some(idx) => {
                    ends.finish.at.idx = idx;
                    write_finish(&ends.finish, out);
                }
                None => drop(self.0.pop_front()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::codec::read_finish;
    use crate::model::JobRef;

    #[test]
    fn each_element_gets_a_record_of_its_own_in_whatever_slices() {
        for slice in [1, 2, 100] {
            let finish = Finish { at: JobRef { job: 7, idx: 0 }, ..Finish::default() };
            let mut all = UnwrittenEnds::default();
            all.put(&[ElementEnds::new(finish.clone(), vec![(1, 3, 1), (6, 10, 2)])]);
            all.put(&[ElementEnds::new(finish, vec![(u32::MAX - 1, u32::MAX, 1)])]);
            assert_eq!(all.records(), 8);
            assert!(all.bytes() > 2 * size_of::<ElementEnds>());
            let mut out = Vec::new();
            while !all.is_empty() {
                all.write(slice, &mut out);
            }
            let lines = out.split_inclusive(|b| *b == b'\n');
            let told: Vec<u32> = lines.map(|line| read_finish(line).unwrap().at.idx).collect();
            assert_eq!((all.records(), all.bytes()), (0, 0));
            assert_eq!(told, [1, 2, 3, 6, 8, 10, u32::MAX - 1, u32::MAX]);
        }
    }
}
