//! Jobs that keep slots until they have enough: whether one still stands at the head of its class.

use crate::batch::sched::Sched;
use crate::batch::sched::view::View;
use crate::batch::state::Job;
use crate::model::JobRef;

impl Sched {
    /// Is an element the next one of its class that would start?
    pub(crate) fn stands_first(&self, view: &View, job: &Job, at: JobRef) -> bool {
        let part = job.part_no(at.idx);
        let lone = self.lone.get(at);
        let entry = match lone {
            Some(lone) => lone.entry,
            None => self.entry(at.job, part).copied(),
        };
        let Some(entry) = entry.filter(|entry| entry.ready) else { return false };
        let first = self.classes.head(entry.class).is_some_and(|head| head.1 == at.job);
        first && (lone.is_some() || self.next_element(view, at.job, part) == Some(at))
    }

    /// The class of an element is held against all hosts again.
    pub(crate) fn look_at_class_again(&mut self, view: &View, at: JobRef) {
        let Some(job) = view.state.job(at.job) else { return };
        let lone = self.lone.get(at).and_then(|lone| lone.entry);
        let Some(entry) = lone.or(self.entry(at.job, job.part_no(at.idx)).copied()) else { return };
        let Some((place, _)) = self.classes.head(entry.class) else { return };
        let class = self.classes.get_mut(entry.class);
        class.unseen = true;
        let of = (class.kind.queue, class.bidder);
        self.order.unsee(of, (place, entry.class));
        self.needed = true;
    }
}
