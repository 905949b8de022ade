//! A table by number, in the order of the numbers: jobs by their IDs. Finding a number takes three
//! steps whatever the table holds, where a search tree of a million jobs takes six, each with a
//! search of its own; neighbours lie side by side, as jobs are mostly gone over in the order of
//! their IDs.
//!
//! The methods are those of a standard map. Numbers may be anywhere in a u32: parts of the table in
//! which there is nothing take no memory but their place in a list.

use std::ops::{Bound, RangeBounds};

/// Numbers in a leaf.
const LEAF: u32 = 64;
/// Leaves in a branch.
const BRANCH: u32 = 1024;
/// Numbers in a branch.
const SPAN: u32 = LEAF * BRANCH;

/// A table by number.
#[derive(Debug)]
pub struct IdTable<T> {
    branches: Vec<Option<Box<Branch<T>>>>,
    len: usize,
}

#[derive(Debug)]
struct Branch<T> {
    leaves: Vec<Option<Box<Leaf<T>>>>,
    /// How many there are.
    used: u32,
}

#[derive(Debug)]
struct Leaf<T> {
    values: [Option<T>; LEAF as usize],
    /// How many there are.
    used: u32,
}

impl<T> Default for IdTable<T> {
    fn default() -> Self {
        IdTable { branches: Vec::new(), len: 0 }
    }
}

impl<T> Default for Branch<T> {
    fn default() -> Self {
        let mut leaves = Vec::new();
        leaves.resize_with(BRANCH as usize, || None);
        Branch { leaves, used: 0 }
    }
}

impl<T> Default for Leaf<T> {
    fn default() -> Self {
        Leaf { values: [const { None }; LEAF as usize], used: 0 }
    }
}

/// The positions of a number: its branch, the leaf there, the value there.
fn positions(id: u32) -> (usize, usize, usize) {
    ((id / SPAN) as usize, (id / LEAF % BRANCH) as usize, (id % LEAF) as usize)
}

impl<T> IdTable<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, id: &u32) -> Option<&T> {
        let (branch, leaf, value) = positions(*id);
        self.branches.get(branch)?.as_ref()?.leaves[leaf].as_ref()?.values[value].as_ref()
    }

    pub fn get_mut(&mut self, id: &u32) -> Option<&mut T> {
        let (branch, leaf, value) = positions(*id);
        self.branches.get_mut(branch)?.as_mut()?.leaves[leaf].as_mut()?.values[value].as_mut()
    }

    pub fn contains_key(&self, id: &u32) -> bool {
        self.get(id).is_some()
    }

    /// Puts a value at a number; the value that was there.
    pub fn insert(&mut self, id: u32, new: T) -> Option<T> {
        let (branch, leaf, value) = positions(id);
        if self.branches.len() <= branch {
            self.branches.resize_with(branch + 1, || None);
        }
        let branch = self.branches[branch].get_or_insert_default();
        let leaf = match &mut branch.leaves[leaf] {
            Some(leaf) => leaf,
            none => {
                branch.used += 1;
                none.get_or_insert_default()
            }
        };
        let before = leaf.values[value].replace(new);
        if before.is_none() {
            leaf.used += 1;
            self.len += 1;
        }
        before
    }

    /// Takes the value at a number out.
    pub fn remove(&mut self, id: &u32) -> Option<T> {
        let (b, l, v) = positions(*id);
        let branch = self.branches.get_mut(b)?.as_mut()?;
        let leaf = branch.leaves[l].as_mut()?;
        let gone = leaf.values[v].take()?;
        self.len -= 1;
        leaf.used -= 1;
        if leaf.used == 0 {
            branch.leaves[l] = None;
            branch.used -= 1;
            if branch.used == 0 {
                self.branches[b] = None;
            }
        }
        Some(gone)
    }

    /// Numbers in a range and their values, in order.
    pub fn range(&self, range: impl RangeBounds<u32>) -> Range<'_, T> {
        let first = match range.start_bound() {
            Bound::Included(id) => u64::from(*id),
            Bound::Excluded(id) => u64::from(*id) + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(id) => u64::from(*id) + 1,
            Bound::Excluded(id) => u64::from(*id),
            Bound::Unbounded => u64::from(u32::MAX) + 1,
        };
        Range { table: self, next: first, end }
    }

    /// Numbers and values, in order.
    pub fn iter(&self) -> Range<'_, T> {
        self.range(..)
    }

    /// Values in the order of their numbers.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|pair| pair.1)
    }

    /// Numbers in order.
    pub fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter().map(|pair| pair.0)
    }

    /// The largest number.
    pub fn last_key(&self) -> Option<u32> {
        let last = |used: usize, per: u32| used as u32 * per;
        let branch = self.branches.iter().rposition(Option::is_some)?;
        let leaves = &self.branches[branch].as_ref()?.leaves;
        let leaf = leaves.iter().rposition(Option::is_some)?;
        let value = leaves[leaf].as_ref()?.values.iter().rposition(Option::is_some)?;
        Some(last(branch, SPAN) + last(leaf, LEAF) + value as u32)
    }
}

impl<T> std::ops::Index<&u32> for IdTable<T> {
    type Output = T;
    fn index(&self, id: &u32) -> &T {
        match self.get(id) {
            Some(value) => value,
            None => panic!("nothing at number {id}"),
        }
    }
}

/// Numbers in a range and their values, in order.
#[derive(Debug)]
pub struct Range<'a, T> {
    table: &'a IdTable<T>,
    /// The next number, and the one behind the last.
    next: u64,
    end: u64,
}

impl<'a, T> Iterator for Range<'a, T> {
    type Item = (u32, &'a T);

    fn next(&mut self) -> Option<(u32, &'a T)> {
        while self.next < self.end {
            let id = u32::try_from(self.next).ok()?;
            let (branch, leaf, value) = positions(id);
            // passes over all that is missing at once
            let behind = |span: u32| u64::from(id / span * span) + u64::from(span);
            let Some(branch) = self.table.branches.get(branch)? else {
                self.next = behind(SPAN);
                continue;
            };
            let Some(leaf) = &branch.leaves[leaf] else {
                self.next = behind(LEAF);
                continue;
            };
            self.next += 1;
            if let Some(value) = &leaf.values[value] {
                return Some((id, value));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Numbers near each other, near the borders of leaves and branches, and at both ends.
    fn number() -> impl Strategy<Value = u32> {
        let base = prop_oneof![Just(0u32), Just(LEAF), Just(SPAN), Just(40 * SPAN), Just(u32::MAX)];
        (base, 0u32..70).prop_map(|(base, off)| match base {
            u32::MAX => base - off,
            _ => base + off,
        })
    }

    proptest! {
        #[test]
        fn table_after_any_changes_holds_what_a_map_holds(
            changes in prop::collection::vec((number(), any::<bool>()), 1..200),
            from in number(),
            to in number(),
        ) {
            let (mut table, mut map) = (IdTable::default(), BTreeMap::new());
            for (n, (id, adds)) in changes.into_iter().enumerate() {
                match adds {
                    true => prop_assert_eq!(table.insert(id, n), map.insert(id, n)),
                    false => prop_assert_eq!(table.remove(&id), map.remove(&id)),
                }
            }
            prop_assert_eq!(table.len(), map.len());
            prop_assert_eq!(table.is_empty(), map.is_empty());
            prop_assert_eq!(table.last_key(), map.keys().next_back().copied());
            prop_assert_eq!(table.get(&from), map.get(&from));
            prop_assert_eq!(table.get_mut(&from), map.get_mut(&from));
            let all: Vec<(u32, usize)> = map.iter().map(|(id, n)| (*id, *n)).collect();
            prop_assert_eq!(table.iter().map(|(id, n)| (id, *n)).collect::<Vec<_>>(), all);
            if from <= to {
                let some: Vec<u32> = map.range(from..=to).map(|pair| *pair.0).collect();
                prop_assert_eq!(table.range(from..=to).map(|p| p.0).collect::<Vec<_>>(), some);
            }
            let behind: Vec<u32> = map.range(from..).map(|pair| *pair.0).collect();
            prop_assert_eq!(table.range(from..).map(|p| p.0).collect::<Vec<_>>(), behind);
            map.keys().for_each(|id| _ = table.remove(id));
            let left = table.branches.iter().flatten().count();
            prop_assert_eq!((table.len(), left), (0, 0));
        }
    }
}
