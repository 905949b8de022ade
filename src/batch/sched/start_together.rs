//! The jobs of a class that start together: behind a job whose host takes further ones for sure
//! (`same_host`), those that the walk would come to next. They are one decision, so that each step
//! that follows from a start is done for one job after the other: a start leads through more code
//! than the first cache of a processor holds, and most of it would be fetched anew for each job.
//!
//! Jobs start together only where one start changes nothing for the next one but what is counted
//! here: the slots of the host, and what limits leave to queue and user. Policies that look at more
//! than that (shares, absolute priority, goals, job groups, chunks, preemption) decide about each
//! job by itself. Elements of arrays start one by one, too.

use crate::batch::sched::Sched;
use crate::batch::sched::decision::{Allocation, Fuel};
use crate::batch::sched::dispatch_key::{Bidder, ClassHead};
use crate::batch::sched::view::View;
use crate::batch::sched::walk_state::QueueWalk;
use crate::batch::site::Queue;
use crate::model::JobRef;
use std::ops::Bound::{Excluded, Unbounded};

impl Sched {
    /// A walk through the queues of a group starts a job of the class that it has come to in one of
    /// them: adds the jobs of the class that it would start on the same host next.
    pub(super) fn start_together(
        &mut self,
        view: &View,
        all: &mut [QueueWalk],
        (member, (head, bidder)): (usize, (ClassHead, Bidder)),
        start: &mut Allocation,
        fuel: &Fuel,
    ) {
        let Some(queue) = all.get(member).and_then(|here| view.site.queues.get(here.position))
        else {
            return;
        };
        let most = self.most_further(view, queue, (head.1, start));
        let most = most.min(fuel.decisions().saturating_sub(1) as u64) as usize;
        if most == 0 || all.iter().any(|here| here.fair.is_some()) {
            return;
        }
        let Some(before) = self.first_beside(view, all, (member, (head, bidder))) else { return };
        let class = self.classes.get(head.1);
        let is_single = |job: u32| view.state.job(job).is_some_and(|job| job.array().is_none());
        let behind = class.ready.range((Excluded((head.0, start.at.job)), Unbounded));
        let next = behind.take(most).take_while(|(place, job)| {
            before.is_none_or(|before| (*place, head.1) < before) && is_single(*job)
        });
        start.further.extend(next.map(|&(_, job)| JobRef { job, idx: 0 }));
        if let Some(same) = &mut self.same_host {
            same.left -= start.further.len() as u64;
        }
    }

    /// How many further jobs of a class start on its host for sure, with nothing else to be decided
    /// between them.
    fn most_further(
        &mut self,
        view: &View,
        queue: &Queue,
        (class, start): (u32, &Allocation),
    ) -> u64 {
        let (host, slots) = start.hosts[0];
        let same = self.same_host.as_ref().filter(|same| (same.class, same.host) == (class, host));
        let left = same.map_or(0, |same| same.left);
        let kind = &self.classes.get(class).kind;
        let counted = kind.group.is_empty() && kind.service_class.is_none();
        let alone = start.at.idx == 0 && slots == 1 && kind.barred.is_empty();
        let quiet = view.preemptions.is_idle() && view.state.slot_reservations().is_empty();
        if left == 0 || !counted || !alone || !quiet || view.site.forms_chunks {
            return 0;
        }
        let limits = self.classes.limits(view, class);
        self.policies.further_of_user(view, queue, &limits).min(left)
    }

    /// The first class that a walk would come to if one had no further job: of the queue's users,
    /// of other queues of the group, and of the same user. The outer `None`: the walk does not stay
    /// with the class.
    fn first_beside(
        &mut self,
        view: &View,
        all: &mut [QueueWalk],
        (member, (head, bidder)): (usize, (ClassHead, Bidder)),
    ) -> Option<Option<ClassHead>> {
        let mut first: Option<ClassHead> = None;
        let mut note = |head: Option<ClassHead>| {
            first = first.into_iter().chain(head).min();
        };
        for here in all.iter_mut() {
            let queue = view.site.queues.get(here.position).filter(|queue| queue.aps.is_none())?;
            note(here.heads.first().map(|first| first.0));
            if here.every {
                note(self.order.next_user(queue.id, here.pulled).map(|next| next.0));
            }
        }
        let here = all.get(member)?;
        let queue = view.site.queues.get(here.position)?;
        let unseen_only = here.users.get(&bidder)?.unseen_only;
        if unseen_only && !self.classes.get(head.1).unseen {
            return None;
        }
        note(self.order.next_class((queue.id, bidder), Some(head), unseen_only));
        Some(first)
    }
}
