//! Chunks: the jobs of one class that would start after another one, and whether the next of them
//! may have its slots when it has ended.

use crate::batch::sched::Sched;
use crate::batch::sched::joint_room::JointRoom;
use crate::batch::sched::place::{Alternative, HostMatch};
use crate::batch::sched::view::View;
use crate::batch::state::Job;
use crate::batch::state::job_hosts::JobHosts;
use crate::model::JobRef;
use std::sync::Arc;

/// Jobs of a class that are looked at for one chunk.
const MOST_LOOKS: usize = 256;

impl Sched {
    /// Up to so many ready jobs and elements of the class of one that is about to start, in their
    /// order, without that one. An element that waits otherwise than its likes is in none.
    pub(crate) fn class_mates(&self, view: &View, at: JobRef, most: usize) -> Vec<JobRef> {
        let mut mates = Vec::new();
        let Some(job) = view.state.job(at.job).filter(|_| !self.lone.has(at)) else { return mates };
        let Some(entry) = self.entry(at.job, job.part_no(at.idx)) else { return mates };
        for (place, id) in self.classes.get(entry.class).ready.iter().take(MOST_LOOKS) {
            if mates.len() >= most {
                break;
            }
            let Some(job) = view.state.job(*id) else { continue };
            let left = most - mates.len();
            match job.is_array() {
                false => mates.extend((*id != at.job).then_some(JobRef { job: *id, idx: 0 })),
                true => mates.extend(self.next_elements(view, job, place.part(), at, left)),
            }
        }
        mates
    }

    /// The next elements of a part of an array that may go, but for one.
    fn next_elements(
        &self,
        view: &View,
        job: &Job,
        part: u32,
        but: JobRef,
        most: usize,
    ) -> Vec<JobRef> {
        let Some(array) = job.array() else { return Vec::new() };
        // elements with conditions of their own are asked for one by one
        if view.depends.ready_elements(job.id).is_some() {
            return Vec::new();
        }
        let (waiting, untouched) = match job.part(part) {
            Some(of) => (of.waiting(), None),
            None => (array.waiting(), array.first_fresh()),
        };
        let at = |idx: u32| JobRef { job: job.id, idx };
        let may = |at: &JobRef| *at != but && !self.lone.has(*at);
        let first = self.lone.first_other(job.id, part, waiting).unwrap_or(u32::MAX);
        let own = waiting.range(first..).copied().map(at).filter(may).take(most);
        let mut all: Vec<JobRef> = own.collect();
        if untouched.is_some() {
            all.extend(array.fresh_indices().map(at).filter(may).take(most));
            all.sort_unstable();
        }
        all.truncate(most);
        all
    }

    /// May an element have these slots, of an element of its class that has just ended? The answer
    /// is the effective requirement of its start. All policies are asked as for any start, but
    /// there is no pause between the two.
    pub(crate) fn may_follow(
        &mut self,
        view: &View,
        at: JobRef,
        hosts: &JobHosts,
    ) -> Option<Arc<str>> {
        let job = view.state.job(at.job).filter(|job| !job.damaged && !job.at_limit())?;
        let (part, hosts) = (job.part_no(at.idx), hosts.to_vec());
        let slots: u64 = hosts.iter().map(|(_, slots)| u64::from(*slots)).sum();
        let class = self.class_of(view, (job, part), &[]);
        let kind = self.classes.get(class).kind.clone();
        let (queue, limits) = (view.site.queue(kind.queue)?, self.classes.limits(view, class));
        let room = self.policies.user(view, queue, &limits).slots;
        let kept = self.is_kept_back(view, &kind, class);
        if kept || slots != u64::from(kind.min) || room < slots {
            return None;
        }
        let (compiled, policies) = (self.classes.compiled(view, class).0, self.policies.clone());
        let found = compiled.requirement.alternatives.iter().find(|req| {
            let alternative = req.as_deref();
            let of = ((view, queue, room), (&*kind, &*limits));
            let look = HostMatch::new(of.0, of.1, &compiled.asked, alternative).of(Some(at));
            let look = look.after_another();
            let fits = |&(host, slots): &(_, u32)| {
                policies.host(&look, host).is_ok_and(|room| room >= u64::from(slots))
            };
            !alternative.is_some_and(Alternative::is_compound)
                && hosts.iter().all(fits)
                && JointRoom::new(&look).fits(&hosts).is_ok()
        })?;
        Some(found.as_ref().map(|req| req.text.clone()).unwrap_or_default())
    }
}
