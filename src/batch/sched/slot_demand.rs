//! How many slots the ready jobs of a queue want, and the started ones that want further slots, for
//! slot pools. Jobs that limits, their job group, their service class or their advance reservation
//! keep back want none.

use crate::batch::sched::Sched;
use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::view::{SharesHeld, View};
use crate::batch::state::ElemState;
use crate::batch::state::names::QueueId;
use crate::batch::usage::slot_pools::SlotDemand;

impl Sched {
    /// The slots that the ready jobs of a queue want, as far as they are no more than `enough`.
    pub(crate) fn slot_demand(&self, view: &View, queue: QueueId, enough: u64) -> SlotDemand {
        let view = &View { shares_held: SharesHeld::None, ..*view };
        let Some(queue) = view.site.queue(queue) else { return SlotDemand::default() };
        let enough = enough.min(self.policies.queue(view, queue).slots);
        let mut all = SlotDemand::default();
        for (_, classes) in self.order.by_user(queue.id) {
            let left = enough - all.slots;
            let mut of_user: Option<u64> = None;
            let mut wanted = 0;
            for class in classes {
                let kind = &self.classes.get(class).kind;
                let room = *of_user.get_or_insert_with(|| {
                    let limits = view.limits_of(kind.consumer);
                    self.policies.user(view, queue, &limits).slots.min(left)
                });
                if wanted >= room {
                    break;
                }
                let too_large = u64::from(kind.min) > room;
                let slots = match too_large || self.is_held_back(view, kind) {
                    true => 0,
                    false => self.slots_of_class(view, class, room - wanted),
                };
                if slots > 0 {
                    let least = u64::from(kind.min);
                    all.least = if all.least == 0 { least } else { all.least.min(least) };
                }
                wanted = wanted.saturating_add(slots).min(room);
            }
            all.slots += wanted;
            if all.slots >= enough {
                break;
            }
        }
        let further = self.slots_to_grow(view, queue.id, enough - all.slots);
        if further > 0 {
            // a started job may be given one more
            all = SlotDemand { slots: all.slots + further, least: 1 };
        }
        all
    }

    /// The further slots that started jobs of a queue want, as far as they are no more than
    /// `enough`.
    fn slots_to_grow(&self, view: &View, queue: QueueId, enough: u64) -> u64 {
        let mut wanted = 0;
        for at in self.growth.of_queue(queue) {
            if wanted >= enough {
                break;
            }
            let Some(job) = view.state.job(at.job) else { continue };
            if let Some(ElemState::Run(run)) = job.elem(at.idx).map(|elem| &elem.state) {
                wanted += view.wanted_slots(job, run).map_or(0, |slots| slots.most.into());
            }
        }
        wanted.min(enough)
    }

    /// Is a class kept back whatever slots there are?
    pub(super) fn is_held_back(&self, view: &View, kind: &ClassKey) -> bool {
        view.reservations.closed(&kind.reservation).is_some()
            || view.group_counts.is_full(view.state, &kind.group)
            || view.goals.is_full(kind.service_class)
    }

    /// The slots that the ready jobs of a class want at least, up to about so many.
    fn slots_of_class(&self, view: &View, class: u32, enough: u64) -> u64 {
        let class = self.classes.get(class);
        let each = u64::from(class.kind.max);
        // each entry is at least one element
        let jobs = class.ready.len() as u64;
        if jobs.saturating_mul(each) >= enough || !class.kind.barred.is_empty() {
            return jobs.saturating_mul(each);
        }
        let mut elements = 0;
        for (place, id) in &class.ready {
            elements += self.ready_elements_of(view, *id, place.part());
            if elements.saturating_mul(each) >= enough {
                break;
            }
        }
        elements.saturating_mul(each)
    }

    /// The elements of a part of a job that may start now.
    fn ready_elements_of(&self, view: &View, id: u32, part: u32) -> u64 {
        let Some(job) = view.state.job(id) else { return 0 };
        if job.array().is_none() {
            return 1;
        }
        let waiting = job.waiting(part).saturating_sub(self.lone.of_part(id, part));
        let ready = view.depends.ready_elements(id).map_or(usize::MAX, |ready| ready.len());
        u64::from(waiting.min(job.left_by_limit())).min(ready as u64)
    }
}
