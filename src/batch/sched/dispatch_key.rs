//! The place of a pending job among those of its queue, and its entry in the scheduler.

use crate::batch::state::names::UserId;
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

/// A class at the place of its first ready job.
pub(super) type ClassHead = (DispatchKey, u32);

/// The jobs that a user has in a queue; where users share by groups, those of one group of bsub -G.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Bidder {
    pub(super) user: UserId,
    /// The number of the group; 0: none was given.
    pub(super) group: u32,
}
