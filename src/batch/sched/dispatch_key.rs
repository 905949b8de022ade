//! The place of a pending job among those of its queue, and its entry in the scheduler.

use crate::batch::state::names::UserId;
use std::cmp::{Ordering, Reverse};

/// Dispatch order within a queue: user priority, then first come, unless moved; of one array by
/// the next element of each part, whose number comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DispatchKey {
    pub(super) priority: Reverse<u32>,
    /// [`crate::model::event::QueuePosition`], without the gap that it would leave: there are very
    /// many.
    pub(super) base: u64,
    pub(super) between: u32,
    pub(super) next: u32,
    pub(super) part: u32,
}

impl DispatchKey {
    /// The fields in their order as two numbers, which are compared in a few steps.
    fn numbers(&self) -> (u128, u64) {
        let place = u128::from(self.base) << 32 | u128::from(self.between);
        let first = u128::from(!self.priority.0) << 96 | place;
        (first, u64::from(self.next) << 32 | u64::from(self.part))
    }
}

impl PartialOrd for DispatchKey {
    fn partial_cmp(&self, other: &DispatchKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DispatchKey {
    fn cmp(&self, other: &DispatchKey) -> Ordering {
        self.numbers().cmp(&other.numbers())
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
            let fields = |(priority, base, between, next, part): Fields| {
                (Reverse(priority), u64::from(base) << 31, between, next, part)
            };
            let key = |of: Fields| {
                let (priority, base, between, next, part) = fields(of);
                DispatchKey { priority, base, between, next, part }
            };
            let (a, b) = (keys[0], keys[1]);
            prop_assert_eq!(key(a).cmp(&key(b)), fields(a).cmp(&fields(b)));
        }
    }
}
