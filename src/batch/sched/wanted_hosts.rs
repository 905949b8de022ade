//! Whether pending jobs want what a started job has: for EXTENDABLE_RUNLIMIT of lsb.queues(5).
//!
//! A ready job wants a host that it may use (by its queue, its -m, the facts of select[]), and that
//! has too few slots or too little to reserve for it now. Jobs that limits, their job group, their
//! service class or their advance reservation keep back want none.

use crate::batch::sched::Sched;
use crate::batch::sched::place::{Alternative, Compiled, HostMatch, Requirement};
use crate::batch::sched::view::{SharesHeld, View};
use crate::batch::state::names::HostId;
use crate::model::JobRef;
use crate::model::reason::PendReason;
use std::rc::Rc;

/// Classes of ready jobs that are held against the hosts of one started job.
const MOST_CLASSES: usize = 1024;
/// Looks at hosts for one started job: of a job on more than 64 hosts fewer classes count.
const MOST_LOOKS: usize = 64 * MOST_CLASSES;

/// Classes that are held against so many hosts.
fn classes_for(hosts: usize) -> usize {
    (MOST_LOOKS / hosts.max(1)).clamp(1, MOST_CLASSES)
}

/// Would the end of a job on a host change the reason for which it takes no other job?
fn is_about_room(reason: PendReason) -> bool {
    matches!(
        reason,
        PendReason::HostFull
            | PendReason::NotEnoughSlots
            | PendReason::QueueCpuLimit
            | PendReason::QueueHostLimit
            | PendReason::UserCpuLimit
            | PendReason::GroupCpuLimit
            | PendReason::HostUserLimit
            | PendReason::Exclusive
            | PendReason::ExclusiveJob
            | PendReason::ProcessorUnits
            | PendReason::Reserve(_)
            | PendReason::ReserveExternal(_)
    )
}

impl Sched {
    /// Was every ready job held against the hosts as they are now?
    pub(crate) fn is_settled(&self) -> bool {
        !self.needed && self.walk.is_none()
    }

    /// Do ready jobs of queues of this priority, or of a higher one, find no hosts now and want
    /// one of these?
    pub(crate) fn are_wanted(&self, view: &View, priority: u32, hosts: &[HostId]) -> bool {
        let view = &View { shares_held: SharesHeld::NotLent, ..*view };
        let queues = view.site.queues.iter().filter(|queue| queue.conf.priority >= priority);
        let classes = queues.flat_map(|queue| self.order.by_user(queue.id)).flat_map(|of| of.1);
        classes.take(classes_for(hosts.len())).any(|class| self.class_wants(view, class, hosts))
    }

    fn class_wants(&self, view: &View, number: u32, hosts: &[HostId]) -> bool {
        let class = self.classes.get(number);
        let kind = &*class.kind;
        let Some(queue) = view.site.queue(kind.queue) else { return false };
        // one that is still to be held against hosts may start elsewhere; while no host is open,
        // none is held against any
        let seen = !class.unseen || self.is_settled() && self.order.deadline().is_none();
        if !seen || self.is_held_back(view, kind) {
            return false;
        }
        let limits = view.limits_of(kind.consumer);
        let room = self.policies.user(view, queue, &limits);
        if room.slots < u64::from(kind.min) {
            return false;
        }
        let own = self.classes.head(number).and_then(|(place, id)| match kind.barred.is_empty() {
            true => self.next_element(view, id, place.part()),
            false => Some(JobRef { job: id, idx: place.next() }),
        });
        let compiled = match self.classes.kept(number) {
            Some(compiled) => compiled.clone(),
            None => {
                let requirement = Rc::new(Requirement::new(view, kind));
                Rc::new(Compiled::new(view, kind, requirement))
            }
        };
        let wants = |alternative: &Option<Rc<Alternative>>| {
            let alternative = alternative.as_deref();
            let (of_queue, of_class) = ((view, queue, room.slots), (kind, &*limits));
            let look = HostMatch::new(of_queue, of_class, &compiled.asked, alternative).of(own);
            match alternative.filter(|all| all.is_compound()) {
                None => self.look_wants(&look, hosts),
                Some(all) => {
                    let part = |look: &HostMatch| match self.look_wants(look, hosts) {
                        true => Err(()),
                        false => Ok(Vec::new()),
                    };
                    look.compound(all, part).is_err()
                }
            }
        };
        compiled.requirement.alternatives.iter().any(wants)
    }

    fn look_wants(&self, look: &HostMatch, hosts: &[HostId]) -> bool {
        let known = hosts.iter().filter(|host| look.view.hosts.contains(**host));
        let mut usable = known.filter(|host| look.selects_by_facts(**host));
        usable.any(|host| self.policies.host(look, *host).err().is_none_or(is_about_room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_the_hosts_of_one_job_are_bounded_together() {
        assert_eq!([1, 64, 128, 10_000].map(classes_for), [1024, 1024, 512, 6]);
        assert!((1..=MOST_LOOKS).all(|hosts| hosts * classes_for(hosts) <= MOST_LOOKS));
        assert_eq!(classes_for(usize::MAX), 1);
    }
}
