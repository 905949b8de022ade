//! The entry of each pending job and of each part of an array: its class and its place there.

use crate::batch::sched::Sched;
use crate::batch::sched::aps_rank::pending_since;
use crate::batch::sched::dispatch_key::{ClassEntry, DispatchKey};
use crate::batch::sched::view::View;
use crate::batch::state::Job;
use crate::batch::state::names::HostId;
use crate::model::reason::PendReason;

impl Sched {
    pub(super) fn keep(&mut self, job: u32, part: u32, e: ClassEntry) {
        match part {
            0 => drop(self.entries.insert(job, e)),
            _ => drop(self.parts.insert((job, part), e)),
        }
    }

    pub(super) fn entry(&self, job: u32, part: u32) -> Option<&ClassEntry> {
        match part {
            0 => self.entries.get(&job),
            _ => self.parts.get(&(job, part)),
        }
    }

    /// A job becomes ready, or is no more.
    pub(super) fn set_ready(&mut self, class: u32, place: DispatchKey, job: u32, ready: bool) {
        self.classes.set_ready(&mut self.order, (class, place, job), ready);
    }

    pub(super) fn class_of(
        &mut self,
        view: &View,
        (job, part): (&Job, u32),
        barred: &[(HostId, PendReason)],
    ) -> u32 {
        let of = (job.queue_of(part), job.user);
        let since = pending_since(view.state.spot_of(job, part).base).unwrap_or(0);
        let by_group = !view.fairshare.is_empty();
        let class = self.classes.find(
            (view.site, view.nlb_lists),
            of,
            job.spec_of(part),
            barred,
            by_group,
            since,
        );
        self.begin_ranks(view, (job, part), class);
        if barred.is_empty() {
            self.classes.prepare(view, class);
        }
        class
    }

    /// A job changed in what its class or its place is made of.
    pub(crate) fn drop_entry(&mut self, id: u32) {
        if let Some(entry) = self.entries.remove(&id) {
            self.leave_class(id, entry);
        }
        // nearly every job is neither divided nor has an element that waits by itself
        while let Some((&of, &entry)) = self.parts.range((id, 0)..=(id, u32::MAX)).next() {
            self.parts.remove(&of);
            self.leave_class(id, entry);
        }
        for entry in self.lone.remove_all(id) {
            self.leave_class(id, entry);
        }
    }

    /// An entry of a job is gone.
    fn leave_class(&mut self, id: u32, entry: ClassEntry) {
        self.classes.get_mut(entry.class).pending -= 1;
        if entry.ready {
            self.set_ready(entry.class, entry.place, id, false);
        }
    }

    /// The combined requirement of a job's class, where it was compiled.
    pub fn combined_requirement(&self, job: u32, part: u32) -> Option<&str> {
        self.classes.kept(self.entry(job, part)?.class)?.requirement.combined.as_deref()
    }
}
