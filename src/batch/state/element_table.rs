//! Values by the elements that they belong to. The values of jobs that are no arrays, which are
//! nearly all, stand in a table by the ID of the job: a map would be made anew at twice its size
//! while a pass starts hundreds of thousands of jobs.

use crate::model::JobRef;
use crate::model::idmap::IdMap;
use crate::model::idtable::IdTable;

/// Values by elements. There are very many: boxes keep the tables small.
#[derive(Debug)]
pub struct ElementTable<T> {
    jobs: IdTable<Box<T>>,
    /// The values of elements of arrays.
    elements: IdMap<JobRef, Box<T>>,
}

impl<T> Default for ElementTable<T> {
    fn default() -> Self {
        ElementTable { jobs: IdTable::default(), elements: IdMap::default() }
    }
}

impl<T> ElementTable<T> {
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.elements.is_empty()
    }

    pub fn get(&self, at: JobRef) -> Option<&T> {
        let value = match at.idx {
            0 => self.jobs.get(&at.job),
            _ => self.elements.get(&at),
        };
        value.map(Box::as_ref)
    }

    /// Keeps a value in the place of the one that is there.
    pub fn insert(&mut self, at: JobRef, value: Box<T>) {
        match at.idx {
            0 => drop(self.jobs.insert(at.job, value)),
            _ => drop(self.elements.insert(at, value)),
        }
    }

    pub fn remove(&mut self, at: JobRef) -> Option<Box<T>> {
        match at.idx {
            0 => self.jobs.remove(&at.job),
            _ => self.elements.remove(&at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_elements_of_one_number_have_values_of_their_own() {
        let mut table = ElementTable::default();
        let at = |idx| JobRef { job: 7, idx };
        assert!(table.is_empty());
        (0..3).for_each(|idx| table.insert(at(idx), Box::new(10 + idx)));
        table.insert(at(1), Box::new(21));
        let of = |table: &ElementTable<u32>, idx| table.get(at(idx)).copied();
        assert_eq!([0, 1, 2, 3].map(|idx| of(&table, idx)), [Some(10), Some(21), Some(12), None]);
        assert_eq!(table.remove(at(0)).map(|value| *value), Some(10));
        assert_eq!([0, 1].map(|idx| of(&table, idx)), [None, Some(21)]);
        (1..3).for_each(|idx| drop(table.remove(at(idx))));
        assert!(table.is_empty() && table.remove(at(3)).is_none());
    }
}
