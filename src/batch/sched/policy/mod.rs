//! The scheduling policies, one file each: what keeps a job from a queue, a user or a host.
//!
//! The pass and the listing of pending reasons ask the same policies, in the order of `registry`:
//! of several that leave no slot the first one names the reason. A policy reads a [`View`] and
//! changes nothing. CONTRIBUTING.md ("How to add a policy") walks through a complete one.

mod accept_interval;
mod advance_reservation;
mod affinity;
mod compute_units;
mod deadline;
#[cfg(test)]
mod example;
mod exclusive;
mod fairshare;
mod guarantee;
mod host_partition;
pub(in crate::batch::sched) mod host_status;
mod job_size;
mod limits;
mod load_thresholds;
#[cfg(test)]
mod overbook;
mod preemption;
mod protection;
mod registry;
mod requirement;
mod reservation;
mod slot_reservation;
mod slot_share;
mod windows;

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::sched::decision::Decision;
use crate::batch::sched::host_snapshot::HostSnapshot;
use crate::batch::sched::place::HostMatch;
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::site::rules::RuleId;
use crate::batch::state::names::{HostId, HostSet};
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::model::JobRef;
use crate::model::reason::PendReason;
use std::cell::Cell;
use std::fmt::Debug;

pub(crate) use accept_interval::rests_until;
pub(super) use limits::{may_count_again, queue_is_full};
pub(crate) use registry::Policies;
pub(super) use reservation::resource_shortages;

/// Slots that there are for jobs, and the pending reason where these are too few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(super) slots: u64,
    pub(super) reason: PendReason,
    /// The rule that leaves no more.
    pub(super) rule: Option<RuleId>,
}

impl Room {
    /// No limit on the slots: the reason is never shown.
    pub const ANY: Room = Room { slots: u64::MAX, reason: PendReason::New, rule: None };

    /// No slot, for this reason.
    pub fn none(reason: PendReason) -> Room {
        Room { slots: 0, reason, rule: None }
    }

    /// The room that is left where so many slots are taken.
    pub(super) fn less(self, taken: u64) -> Room {
        Room { slots: self.slots.saturating_sub(taken), ..self }
    }

    /// The smaller room; of equal ones the first.
    pub fn and(self, other: Room) -> Room {
        if other.slots < self.slots { other } else { self }
    }
}

/// The jobs that are to be preempted on a host.
#[derive(Clone, Copy)]
pub(crate) struct Leaving<'a> {
    /// The slots there that are not in use any more then.
    pub(super) slots: u64,
    /// All that run there, if `None`.
    pub(super) jobs: Option<&'a [JobRef]>,
}

impl Leaving<'_> {
    pub(in crate::batch::sched) const NONE: Leaving<'static> =
        Leaving { slots: 0, jobs: Some(&[]) };
    pub(super) const ALL: Leaving<'static> = Leaving { slots: u64::MAX, jobs: None };
}

/// A host as a class of jobs finds it.
pub(crate) struct HostNow<'a> {
    pub(super) id: HostId,
    pub(super) status: HostStatus,
    /// Slots in use, those of attempts that were given up with it too.
    pub(super) used: u64,
    pub(super) snapshot: HostSnapshot<'a>,
    /// The jobs that are to be preempted there.
    pub(super) leaving: Leaving<'a>,
    /// A job may backfill: the promises that it relies on do not depend on its own start.
    pub(super) backfills: bool,
}

impl<'a> HostNow<'a> {
    /// A host as a class finds it once these jobs are preempted.
    fn of<'c: 'a>(
        class: &HostMatch<'c>,
        id: HostId,
        leaving: Leaving<'a>,
        backfills: bool,
    ) -> HostNow<'a> {
        let view = &class.view;
        let reserved = !class.kind.reservation.is_empty();
        let (status, used) = view.host_for((class.queue, reserved), id, leaving.slots);
        let snapshot = class.sight(id, (status, used));
        HostNow { id, status, used, snapshot, leaving, backfills }
    }
}

/// A question to a policy: it stands for the method of [`Policy`] of the same name, `Blocked` for
/// `acts_on_blocked` and `blocked`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    Queue,
    User,
    Host,
    Blocked,
}

/// A condition under which jobs are kept from slots. A method that a policy does not write leaves
/// any number of slots.
pub(crate) trait Policy: Debug {
    /// The questions that the policy answers: it is not asked any other.
    fn answers(&self) -> &'static [Question];

    /// Slots that a queue may still give away.
    fn queue(&self, _view: &View, _queue: &Queue) -> Room {
        Room::ANY
    }

    /// Slots that the jobs of a user may still get from a queue; `limits`: the user, and the limits
    /// of the user's jobs there.
    fn user(&self, _view: &View, _queue: &Queue, _limits: &ConsumerLimits) -> Room {
        Room::ANY
    }

    /// The answer of `user` once started jobs are preempted whose slots do not count any more then.
    fn user_after(&self, view: &View, queue: &Queue, limits: &ConsumerLimits) -> Room {
        self.user(view, queue, limits)
    }

    /// Further jobs of one slot of these limits that queue and user start for sure after one that
    /// was just found, while nothing but these starts changes. 0: the next one is looked at anew.
    fn further_of_user(&self, _view: &View, _queue: &Queue, _limits: &ConsumerLimits) -> u64 {
        0
    }

    /// Does `host` take into account what the parts of a job that were placed before have taken?
    /// Else their slots are subtracted from its answer.
    fn counts_draft(&self) -> bool {
        false
    }

    /// Slots of a host for jobs of a class.
    fn host(&self, _class: &HostMatch, _host: &HostNow) -> Room {
        Room::ANY
    }

    /// Further jobs of one slot of a class that a host takes for sure after one that was just found
    /// for it, while nothing but these starts changes. 0: the next one is looked at anew.
    fn further(&self, _class: &HostMatch, _host: &HostNow) -> u64 {
        0
    }

    /// Does the policy do something for classes of this queue that find no host? `blocked` is
    /// asked for those of such queues alone, and then even while no host is open.
    fn acts_on_blocked(&self, _view: &View, _queue: &Queue) -> bool {
        false
    }

    /// Does something for a class that found no host, or for which queue or user have fewer slots
    /// left than it needs (`class.room`; no host was looked at then). The decision is carried out
    /// before the pass goes on behind the class; the class is looked at again when something has
    /// changed, as if nothing had been done for it.
    fn blocked(&self, _job: &BlockedJob) -> Option<Decision> {
        None
    }
}

/// Slots of a host, or why there are none, once these jobs are preempted.
type HostAfter<'a> = &'a dyn Fn(HostId, Leaving) -> Result<u64, PendReason>;

/// A job of a class that found no host.
pub(crate) struct BlockedJob<'a, 'b> {
    /// Slots of a host for the class once these jobs are preempted.
    pub(super) host_after: HostAfter<'a>,
    pub(super) class: &'a HostMatch<'b>,
    /// The slots that queue and user may have left for it at most, once others are preempted.
    pub(super) room_after: u64,
    /// The job or element of the class that would start next.
    pub(super) at: JobRef,
    /// The open hosts with slots for it, best first, together too few.
    pub(super) free: &'a [(HostId, u32)],
    /// The hosts that have changed since the class was looked at last; `None`: it is looked at
    /// anew.
    pub(super) changed: Option<&'a HostSet>,
    /// When time alone may change the answer, microseconds of the monotonic clock.
    again: Cell<Option<u64>>,
    looks: Cell<usize>,
}

impl<'a, 'b> BlockedJob<'a, 'b> {
    pub(super) fn new(
        (host_after, room_after): (HostAfter<'a>, u64),
        (class, at): (&'a HostMatch<'b>, JobRef),
        free: &'a [(HostId, u32)],
        changed: Option<&'a HostSet>,
    ) -> BlockedJob<'a, 'b> {
        let (again, looks) = (Cell::new(None), Cell::new(0));
        BlockedJob { host_after, class, room_after, at, free, changed, again, looks }
    }

    /// Is this instant ahead, in seconds since the epoch? The class is looked at again then.
    fn waits(&self, until: i64) -> bool {
        let ahead = until > self.class.view.now.secs();
        if ahead {
            self.look_again(self.class.view.now.mono_of_wall(until));
        }
        ahead
    }

    /// The class is looked at again at this instant, microseconds of the monotonic clock.
    fn look_again(&self, until: u64) {
        let soonest = self.again.get().map_or(until, |again| again.min(until));
        self.again.set(Some(soonest));
    }

    /// A host or a job was looked at.
    fn looked(&self) {
        self.looks.set(self.looks.get() + 1);
    }

    /// The looks that were taken.
    pub(super) fn looks(&self) -> usize {
        self.looks.get()
    }

    /// When time alone may change the answer, microseconds of the monotonic clock.
    pub(super) fn again(&self) -> Option<u64> {
        self.again.get()
    }
}
