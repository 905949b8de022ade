//! The place of a pending job among those of its queue, and its entry in the scheduler.

use std::cmp::Reverse;

/// Dispatch order within a queue: user priority, then first come, unless moved; of one array by
/// the next element of each part, whose number comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DispatchKey {
    pub(super) priority: Reverse<u32>,
    /// [`crate::model::event::QueuePosition`], without the gap that it would leave: there are very
    /// many.
    pub(super) base: u64,
    pub(super) between: u32,
    pub(super) next: u32,
    pub(super) part: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ClassEntry {
    pub(super) place: DispatchKey,
    pub(super) class: u32,
    pub(super) ready: bool,
}

// one for each pending job
const _: () = assert!(size_of::<ClassEntry>() <= 32);
