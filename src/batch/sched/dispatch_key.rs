//! The place of a pending job among those of its queue, and its entry in the scheduler.

use crate::batch::state::names::UserId;
use crate::model::event::QueuePosition;

/// Dispatch order within a queue: user priority, then first come, unless moved; of one array by
/// the next element of each part, whose number comes last.
///
/// The parts stand in three words in the order in which they count, so that two keys, of which the
/// scheduler compares hundreds for each start, are compared in a few steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DispatchKey {
    /// The priority, the highest first, and the upper half of the position.
    priority_base: u64,
    /// The lower half of the position, and the place between it and the next one.
    base_between: u64,
    /// The next element, and the number of the part.
    next_part: u64,
}

/// Bits of the lower half of a word.
const UPPER: u32 = 32;

impl DispatchKey {
    /// The key of a job, or of the part of an array whose next element is `next`.
    pub(super) fn new(priority: u32, position: QueuePosition, next: u32, part: u32) -> DispatchKey {
        let QueuePosition { base, between } = position;
        DispatchKey {
            priority_base: u64::from(!priority) << UPPER | base >> UPPER,
            base_between: base << UPPER | u64::from(between),
            next_part: u64::from(next) << UPPER | u64::from(part),
        }
    }

    /// The base of its [`QueuePosition`].
    pub(super) fn base(self) -> u64 {
        self.priority_base << UPPER | self.base_between >> UPPER
    }

    /// The next element of the part; 0 of a job that is no array.
    pub(super) fn next(self) -> u32 {
        (self.next_part >> UPPER) as u32
    }

    /// The number of the part of an array.
    pub(super) fn part(self) -> u32 {
        self.next_part as u32
    }

    /// The key with another next element.
    pub(super) fn with_next(self, next: u32) -> DispatchKey {
        let next_part = u64::from(next) << UPPER | u64::from(self.part());
        DispatchKey { next_part, ..self }
    }

    /// The key with another priority.
    pub(super) fn with_priority(self, priority: u32) -> DispatchKey {
        let base = self.base() >> UPPER;
        DispatchKey { priority_base: u64::from(!priority) << UPPER | base, ..self }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ClassEntry {
    pub(super) place: DispatchKey,
    pub(super) class: u32,
    pub(super) ready: bool,
}

// one for each pending job
const _: () = assert!(size_of::<ClassEntry>() <= 32);

/// A class at the place of its first ready job.
pub(super) type ClassHead = (DispatchKey, u32);

/// The jobs that a user has in a queue; where users share by groups, those of one group of bsub -G.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Bidder {
    pub(super) user: UserId,
    /// The number of the group; 0: none was given.
    pub(super) group: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    /// Numbers at both ends, some of which are alike.
    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![Just(0), Just(1), Just(u32::MAX - 1), Just(u32::MAX)]
    }

    proptest! {
        #[test]
        fn dispatch_order_is_that_of_the_fields_one_after_the_other(
            keys in prop::collection::vec((number(), number(), number(), number(), number()), 2),
        ) {
            type Fields = (u32, u32, u32, u32, u32);
            let base = |base: u32| u64::from(base) << 31 | u64::from(base & 1);
            let fields = |(priority, position, between, next, part): Fields| {
                (Reverse(priority), base(position), between, next, part)
            };
            let key = |(priority, position, between, next, part): Fields| {
                let position = QueuePosition { base: base(position), between };
                DispatchKey::new(priority, position, next, part)
            };
            let (a, b) = (keys[0], keys[1]);
            prop_assert_eq!(key(a).cmp(&key(b)), fields(a).cmp(&fields(b)));
            prop_assert_eq!((key(a).base(), key(a).next(), key(a).part()), (base(a.1), a.3, a.4));
            let other = key(a).with_next(b.3).with_priority(b.0);
            prop_assert_eq!(other, key((b.0, a.1, a.2, b.3, a.4)));
        }
    }
}
