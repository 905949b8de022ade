//! The classes of one user in one queue in dispatch order, or the users of one share account. Most
//! users have one class there, whose place changes with every start, and most accounts one user: it
//! takes no search tree, and no memory of one.

use crate::batch::sched::dispatch_key::ClassHead;
use std::collections::BTreeSet;
use std::ops::Bound::{self, Unbounded};
use std::ops::RangeBounds;

/// An ordered set of classes, or of what is ordered by them.
#[derive(Debug)]
pub(super) enum HeadSet<T = ClassHead> {
    /// One, or none.
    Few(Option<T>),
    /// Several; a set that had several keeps its tree.
    Many(BTreeSet<T>),
}

impl<T> Default for HeadSet<T> {
    fn default() -> HeadSet<T> {
        HeadSet::Few(None)
    }
}

impl<T: Copy + Ord> HeadSet<T> {
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    pub fn first(&self) -> Option<T> {
        match self {
            HeadSet::Few(one) => *one,
            HeadSet::Many(all) => all.first().copied(),
        }
    }

    pub fn contains(&self, head: T) -> bool {
        match self {
            HeadSet::Few(one) => *one == Some(head),
            HeadSet::Many(all) => all.contains(&head),
        }
    }

    pub fn insert(&mut self, head: T) {
        match self {
            HeadSet::Few(None) => *self = HeadSet::Few(Some(head)),
            HeadSet::Few(Some(one)) if *one == head => {}
            HeadSet::Few(Some(one)) => *self = HeadSet::Many([*one, head].into()),
            HeadSet::Many(all) => drop(all.insert(head)),
        }
    }

    pub fn remove(&mut self, head: T) {
        match self {
            HeadSet::Few(one) => drop(one.take_if(|one| *one == head)),
            HeadSet::Many(all) => drop(all.remove(&head)),
        }
    }

    /// One stands at another place: it goes, and the other comes.
    pub fn replace(&mut self, before: T, after: T) {
        self.remove(before);
        self.insert(after);
    }

    /// The members within bounds, in their order.
    pub fn range(&self, bounds: (Bound<T>, Bound<T>)) -> impl DoubleEndedIterator<Item = T> + '_ {
        let (few, many) = match self {
            HeadSet::Few(one) => (one.filter(|one| bounds.contains(one)), None),
            HeadSet::Many(all) => (None, Some(all.range(bounds))),
        };
        few.into_iter().chain(many.into_iter().flatten().copied())
    }

    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.range((Unbounded, Unbounded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::sched::dispatch_key::DispatchKey;
    use crate::model::event::QueuePosition;
    use Bound::{Excluded, Included};
    use proptest::prelude::*;

    fn head(n: u32) -> ClassHead {
        let position = QueuePosition { base: u64::from(n / 2), between: 0 };
        (DispatchKey::new(0, position, 0, 0), n)
    }

    proptest! {
        #[test]
        fn set_of_few_classes_holds_the_same_as_a_tree(
            steps in prop::collection::vec((0u32..4, 0u32..6, 0u32..6), 0..60),
        ) {
            let (mut set, mut model) = (HeadSet::default(), BTreeSet::new());
            for (what, a, b) in steps {
                let (one, other) = (head(a), head(b));
                match what {
                    0 => {
                        set.insert(one);
                        model.insert(one);
                    }
                    1 => {
                        set.remove(one);
                        model.remove(&one);
                    }
                    2 => {
                        set.replace(one, other);
                        model.remove(&one);
                        model.insert(other);
                    }
                    _ => {}
                }
                prop_assert_eq!(set.first(), model.first().copied());
                prop_assert_eq!(set.is_empty(), model.is_empty());
                prop_assert_eq!(set.contains(one), model.contains(&one));
                prop_assert!(set.iter().eq(model.iter().copied()));
                for from in [Unbounded, Excluded(one), Included(one)] {
                    let of_set = set.range((from, Unbounded));
                    prop_assert!(of_set.eq(model.range((from, Unbounded)).copied()));
                    let last = set.range((Unbounded, from)).next_back();
                    prop_assert_eq!(last, model.range((Unbounded, from)).next_back().copied());
                }
            }
        }
    }
}
