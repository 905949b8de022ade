//! The place of a pending job among those of its queue, and its entry in the scheduler.

use std::cmp::Reverse;

/// Dispatch order within a queue: user priority, then first come, unless moved; of one array by
/// the next element of each part, whose number comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DispatchKey {
    pub priority: Reverse<u32>,
    /// [`crate::model::event::QueuePosition`], without the gap that it would leave: there are very
    /// many.
    pub base: u64,
    pub between: u32,
    pub next: u32,
    pub part: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ClassEntry {
    pub place: DispatchKey,
    pub class: u32,
    pub ready: bool,
}

// one for each pending job
const _: () = assert!(size_of::<ClassEntry>() <= 32);
