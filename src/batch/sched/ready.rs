//! The classes with a ready job, by queue and user, and which of them a pass looks at.
//!
//! Of each user's classes in a queue a pass looks at the first [`CLASSES_PER_USER`] in dispatch
//! order. Further ones have turns: a pass looks at [`CLASSES_PER_TURN`] of them as well, and every
//! [`TURN_PAUSE_US`] the turn moves on to the next, until all have been looked at since anything
//! changed. So the many different requirements of one user delay nobody else, each class is
//! considered in the end, and nothing is looked at twice while nothing changes.

use super::Place;
use crate::batch::names::{QueueId, UserId};
use crate::model::time::US;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// Classes of one user in one queue that each pass looks at, in dispatch order.
pub const CLASSES_PER_USER: usize = 128;
/// Further classes of theirs that have a turn at a time.
pub const CLASSES_PER_TURN: usize = 64;
/// Pause before the next of them have their turn, microseconds.
pub const TURN_PAUSE_US: u64 = US / 10;
/// So many classes that need no look are passed over in the time of one that does.
const PASSED_OVER: usize = 16;

/// A class at the place of its first ready job.
pub(super) type Head = (Place, u32);

/// The ready classes of one user in one queue.
#[derive(Debug, Default)]
struct Heads {
    all: BTreeSet<Head>,
    /// The turn begins behind this one; none: behind the first [`CLASSES_PER_USER`].
    after: Option<Head>,
    /// How far the turn has come; none: to the end.
    reached: Option<Head>,
    /// When the turn moves on, microseconds of the monotonic clock.
    next: u64,
    /// [`super::Sched::changes`] when the round began; none: a class has come since.
    round: Option<u64>,
    /// All were looked at, and found no place, since this change.
    settled: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Ready {
    users: BTreeMap<(QueueId, UserId), Heads>,
}

/// The way of one pass through the classes of one user in one queue.
#[derive(Debug)]
pub(super) struct Walk {
    at: Option<Head>,
    /// [`super::Sched::changes`] when it began; none: the pass began before that, and classes that
    /// it passes over were not looked at since.
    began: Option<u64>,
    /// Classes left of the first ones.
    first: usize,
    /// The rest of the turn, in classes passed over; none: not there yet.
    turn: Option<usize>,
}

impl Walk {
    pub fn new(began: Option<u64>) -> Walk {
        Walk { at: None, began, first: CLASSES_PER_USER, turn: None }
    }

    /// Is the walk beyond the first classes?
    pub fn beyond(&self) -> bool {
        self.turn.is_some()
    }

    /// The class at hand is done with; whether it was looked at for the first time in this pass,
    /// needed no look, or was known.
    pub fn count(&mut self, seen: Seen) {
        match (&mut self.turn, seen) {
            (_, Seen::Again) => {}
            (None, _) => self.first = self.first.saturating_sub(1),
            (Some(left), Seen::Looked) => *left = left.saturating_sub(PASSED_OVER),
            (Some(left), Seen::PassedOver) => *left = left.saturating_sub(1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Looked,
    PassedOver,
    Again,
}

impl Ready {
    pub fn insert(&mut self, of: (QueueId, UserId), head: Head) {
        let heads = self.users.entry(of).or_default();
        heads.all.insert(head);
        (heads.round, heads.settled) = (None, None);
    }

    pub fn remove(&mut self, of: (QueueId, UserId), head: Head) {
        if let Some(heads) = self.users.get_mut(&of) {
            heads.all.remove(&head);
            if heads.all.is_empty() {
                self.users.remove(&of);
            }
        }
    }

    /// The users with a ready class in a queue that was not looked at since the last change.
    pub fn users(&self, queue: QueueId, changes: u64) -> impl Iterator<Item = UserId> + '_ {
        let of_queue = self.users.range((queue, UserId::MIN)..=(queue, UserId::MAX));
        let open = of_queue.filter(move |(_, heads)| heads.settled.is_none_or(|s| s != changes));
        open.map(|((_, user), _)| *user)
    }

    /// The class that a walk comes to next; none: it is over.
    pub fn next(
        &mut self,
        of: (QueueId, UserId),
        walk: &mut Walk,
        now: u64,
        changes: u64,
    ) -> Option<Head> {
        let heads = self.users.get_mut(&of)?;
        let whole = walk.began == Some(changes);
        if !whole {
            heads.round = None;
        }
        if walk.first == 0 && walk.turn.is_none() {
            heads.begin_turn(now, whole.then_some(changes));
            walk.turn = Some(CLASSES_PER_TURN * PASSED_OVER);
            walk.at = walk.at.max(heads.after);
        }
        let from = walk.at.map_or(Unbounded, Excluded);
        let head = heads.all.range((from, Unbounded)).next().copied();
        if walk.turn == Some(0) && head.is_some() {
            return None;
        }
        match head {
            Some(head) => {
                walk.at = Some(head);
                if walk.turn.is_some() {
                    heads.reached = Some(head);
                }
            }
            None => {
                heads.reached = None;
                if (whole && walk.turn.is_none()) || heads.round == Some(changes) {
                    heads.settled = Some(changes);
                }
            }
        }
        head
    }

    /// When the next turn begins of classes that were not looked at since the last change.
    pub fn timer(&self, queue: QueueId, changes: u64) -> Option<u64> {
        let of_queue = self.users.range((queue, UserId::MIN)..=(queue, UserId::MAX));
        let waits =
            |h: &&Heads| h.all.len() > CLASSES_PER_USER && h.settled.is_none_or(|s| s != changes);
        of_queue.map(|(_, heads)| heads).filter(waits).map(|heads| heads.next).min()
    }
}

impl Heads {
    /// The turn moves on where its time has come.
    fn begin_turn(&mut self, now: u64, round: Option<u64>) {
        if now < self.next {
            return;
        }
        self.next = now + TURN_PAUSE_US;
        self.after = self.reached.take();
        if self.after.is_none() {
            self.round = round;
        }
    }
}
