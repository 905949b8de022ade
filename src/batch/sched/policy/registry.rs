//! All policies, in the documented order, and how the pass asks them.

use crate::batch::sched::decision::Decision;
use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::windows;
use crate::batch::sched::policy::{BlockedJob, HostNow, Leaving, Policy, Question, Room};
use crate::batch::sched::policy::{
    accept_interval, advance_reservation, affinity, compute_units, deadline, exclusive, fairshare,
};
use crate::batch::sched::policy::{guarantee, host_partition, host_status, job_size, limits};
use crate::batch::sched::policy::{
    load_thresholds, preemption, requirement, reservation, slot_reservation, slot_share,
};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::state::names::HostId;
use crate::batch::usage::limits_ledger::ConsumerLimits;
use crate::model::JobRef;
use crate::model::reason::PendReason;
use std::rc::Rc;

/// Every policy, in the order in which they name their reasons.
fn registry() -> Vec<Box<dyn Policy>> {
    vec![
        Box::new(windows::Windows),
        Box::new(job_size::JobSize),
        Box::new(host_status::HostStatusPolicy),
        Box::new(load_thresholds::LoadThresholds),
        Box::new(requirement::Requirement),
        Box::new(compute_units::ComputeUnits),
        Box::new(deadline::Deadline),
        Box::new(accept_interval::AcceptInterval),
        Box::new(limits::Limits),
        Box::new(slot_share::SlotShare),
        Box::new(fairshare::Fairshare),
        Box::new(host_partition::HostPartition),
        Box::new(exclusive::Exclusive),
        Box::new(advance_reservation::AdvanceReservation),
        Box::new(affinity::Affinity),
        Box::new(guarantee::Guarantee),
        Box::new(reservation::Reservation),
        Box::new(preemption::PreemptionPolicy),
        Box::new(slot_reservation::SlotReserve),
    ]
}

/// The policies that are in force.
#[derive(Clone, Debug)]
pub(crate) struct Policies(Rc<Asked>);

/// Policies by the questions that they answer: a pass asks for every queue and every host.
#[derive(Debug)]
struct Asked {
    all: Vec<Rc<dyn Policy>>,
    queue: Vec<Rc<dyn Policy>>,
    user: Vec<Rc<dyn Policy>>,
    host: Vec<Rc<dyn Policy>>,
    blocked: Vec<Rc<dyn Policy>>,
}

impl Default for Policies {
    fn default() -> Policies {
        Policies::of(registry())
    }
}

impl Policies {
    /// The registry and one more policy.
    #[cfg(test)]
    pub fn with(policy: Box<dyn Policy>) -> Policies {
        let mut all = registry();
        all.push(policy);
        Policies::of(all)
    }

    fn of(all: Vec<Box<dyn Policy>>) -> Policies {
        let all: Vec<Rc<dyn Policy>> = all.into_iter().map(Rc::from).collect();
        let asked = |question: Question| {
            all.iter().filter(|policy| policy.answers().contains(&question)).cloned().collect()
        };
        let (queue, user) = (asked(Question::Queue), asked(Question::User));
        let (host, blocked) = (asked(Question::Host), asked(Question::Blocked));
        Policies(Rc::new(Asked { all, queue, user, host, blocked }))
    }

    /// Slots that a queue may still give away.
    pub fn queue(&self, view: &View, queue: &Queue) -> Room {
        self.0.queue.iter().fold(Room::ANY, |room, policy| room.and(policy.queue(view, queue)))
    }

    /// Slots that the jobs of a user may still get from a queue, which has some itself.
    pub fn user(&self, view: &View, queue: &Queue, limits: &ConsumerLimits) -> Room {
        let of_queue = self.queue(view, queue);
        self.0.user.iter().fold(of_queue, |room, policy| room.and(policy.user(view, queue, limits)))
    }

    /// Further jobs of one slot that queue and user start for sure after one that was just found,
    /// while nothing but these starts changes.
    pub fn further_of_user(&self, view: &View, queue: &Queue, limits: &ConsumerLimits) -> u64 {
        let all = self.0.queue.iter().chain(&self.0.user);
        all.map(|policy| policy.further_of_user(view, queue, limits)).min().unwrap_or(u64::MAX)
    }

    /// The room that each policy leaves the jobs of a user in a queue.
    pub fn each_of_consumer(
        &self,
        view: &View,
        queue: &Queue,
        limits: &ConsumerLimits,
    ) -> impl Iterator<Item = Room> {
        self.0
            .all
            .iter()
            .map(|policy| policy.queue(view, queue).and(policy.user(view, queue, limits)))
    }

    /// The room that each policy leaves a class on a host.
    pub fn each_on_host(&self, class: &HostMatch, host: &HostNow) -> impl Iterator<Item = Room> {
        self.0.host.iter().map(|policy| policy.host(class, host))
    }

    /// The slots that the jobs of a user may get from a queue by preempting others of the user or
    /// of the same group: 0 where their limits count preempted jobs all the same, and with slots
    /// reserved for pending jobs, which count, too.
    pub fn room_by_preemption(&self, view: &View, queue: &Queue, limits: &ConsumerLimits) -> u64 {
        let ignored = view.site.rules.ignore_preempted() && !queue.preempts.is_empty();
        if !ignored || !view.state.slot_reservations().is_empty() {
            return 0;
        }
        let of_user = self.0.user.iter().map(|policy| policy.user_after(view, queue, limits).slots);
        of_user.fold(self.queue(view, queue).slots, u64::min)
    }

    /// The room of a class of a user, `of_user`, where reservations of other jobs than `own` count
    /// against the limits of queue and user.
    pub fn beside_reservations(
        &self,
        (view, queue, limits): (&View, &Queue, &ConsumerLimits),
        of_user: Room,
        own: Option<JobRef>,
    ) -> Room {
        match view.state.slot_reservations().is_empty() {
            true => of_user,
            false => of_user.and(limits::beside_reservations(view, queue, limits, own)),
        }
    }

    /// Slots for a job of a class on a host now; the reason where there are none.
    pub fn host(&self, class: &HostMatch, host: HostId) -> Result<u64, PendReason> {
        self.room_on(class, host, Leaving::NONE, true)
    }

    /// Slots for a job of a class on a host once it has preempted these. It gets none in which it
    /// would backfill: when a job is suspended, it is not known any more when it ends, nor when
    /// the job starts that waits for its slots.
    pub fn host_after(
        &self,
        class: &HostMatch,
        host: HostId,
        leaving: Leaving,
    ) -> Result<u64, PendReason> {
        self.room_on(class, host, leaving, false)
    }

    fn room_on(
        &self,
        class: &HostMatch,
        host: HostId,
        leaving: Leaving,
        backfills: bool,
    ) -> Result<u64, PendReason> {
        class.preference(host)?;
        if let Some(bar) = class.kind.barred.iter().find(|bar| bar.0 == host) {
            return Err(bar.1);
        }
        let now = HostNow::of(class, host, leaving, backfills);
        let mut room = Room::ANY;
        let drafted = class.drafted_slots(host);
        for policy in &self.0.host {
            let own = policy.host(class, &now);
            room = room.and(if policy.counts_draft() { own } else { own.less(drafted) });
            if room.slots == 0 {
                return Err(room.reason);
            }
        }
        Ok(room.slots)
    }

    /// Further jobs of one slot of a class that a host takes for sure after one that was just found
    /// for it, while nothing but these starts changes.
    pub fn further(&self, class: &HostMatch, host: HostId) -> u64 {
        let now = HostNow::of(class, host, Leaving::NONE, true);
        let mut least = u64::MAX;
        for policy in &self.0.host {
            least = least.min(policy.further(class, &now));
            if least == 0 {
                break;
            }
        }
        least
    }

    /// Does a policy do something for classes of this queue that find no host?
    pub fn act_on_blocked(&self, view: &View, queue: &Queue) -> bool {
        self.0.blocked.iter().any(|policy| policy.acts_on_blocked(view, queue))
    }

    /// Has the first policy that does something do it for a class that found no host.
    pub fn blocked(&self, job: &BlockedJob) -> Option<Decision> {
        self.0.blocked.iter().find_map(|policy| policy.blocked(job))
    }
}
