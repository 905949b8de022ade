//! select[] of the job and its queue, and resources that keep jobs away which do not ask for them
//! (`!` in lsf.cluster).

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::reservation::further_above;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct Requirement;

impl Policy for Requirement {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let snapshot = &host.snapshot;
        if !class.selects(host.id, snapshot) {
            let context = class.select_context();
            let of_queue = class.queue.req.as_ref().and_then(|r| r.0.first());
            let queue_fails = of_queue.is_some_and(|s| !s.selects(snapshot, &context));
            return Room::none(if queue_fails {
                PendReason::QueueRequirement
            } else {
                PendReason::Requirement
            });
        }
        if !class.view.site.hosts[host.id].exclusive_resource {
            return Room::ANY;
        }
        let asks = |name: &str| class.simple.is_some_and(|s| s.asks(name));
        let mut exclusive = snapshot.def.resources.iter().filter(|r| r.exclusive && !r.absent);
        match exclusive.any(|r| !asks(&r.name)) {
            true => Room::none(PendReason::Requirement),
            false => Room::ANY,
        }
    }

    fn further(&self, class: &HostMatch, host: &HostNow) -> u64 {
        let (site, mut least) = (class.view.site, u64::MAX);
        for term in class.moving_terms() {
            let lowers = |name: &str| name == "slots" || class.reserves_named(name);
            if !term.mentions(&|name, _| lowers(name)) {
                continue;
            }
            let Some((name, bound)) = term.floor().filter(|(name, _)| class.reserves_named(name))
            else {
                return 0;
            };
            let id = site.names.id(name).filter(|id| !site.names.increasing(*id));
            let Some(id) = id else { return 0 };
            let free = host.snapshot.available(id, name).unwrap_or(0.0);
            least = least.min(further_above(free, bound, class.reserved_by_slot(id)));
        }
        least
    }
}
