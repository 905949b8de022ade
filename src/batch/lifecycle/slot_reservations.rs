//! The reservations of slots by pending jobs: what the scheduler decides about them is logged; they
//! are given up when MAX_RESERVE_TIME is over, and when their job does not wait at the head of its
//! like any more (`sched::policy::slot_reservation`).

use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::slot_reservations::SlotReservation;
use crate::batch::usage::timeline::Timeline;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Event, JobReserve};
use std::collections::BTreeSet;

impl Mbatchd {
    /// Carries out what the scheduler decides about a reservation.
    pub(crate) fn keep_slots(&mut self, context: &mut StepContext, reserve: Box<JobReserve>) {
        let at = reserve.at;
        let is_new = self.state.slot_reservations().get(at).is_none();
        self.emit(context, Event::JobReserve(reserve));
        self.sched.reservation_changed();
        self.note_released_slots();
        self.plan_younger_again(at);
        // it may take the slots of a younger one of the same second from now on
        if is_new {
            self.look_again(at);
        }
    }

    /// The plans of younger reservations on the hosts of one are made again.
    fn plan_younger_again(&mut self, at: JobRef) {
        let all = self.state.slot_reservations();
        let Some(own) = all.get(at) else { return };
        let on_hosts = own.hosts.iter().flat_map(|on| all.on_host(on.host)).map(|(of, _)| of);
        let younger: BTreeSet<JobRef> =
            on_hosts.filter(|of| own.place() < of.place()).map(|of| of.at).collect();
        younger.into_iter().for_each(|at| self.look_again(at));
    }

    /// Ends reservations whose time is over, or whose job does not wait for slots any more.
    pub(crate) fn slot_reservations_due(&mut self, context: &mut StepContext) {
        self.note_released_slots();
        if self.site.keeps_timeline && self.timeline.facts() != self.links.facts_changes() {
            self.rebuild_timeline();
        }
        if self.state.slot_reservations().is_empty() {
            return;
        }
        let now = context.now.secs();
        let pause = (self.site.params().sched_interval_min_ms / 1000).max(1);
        let (mut changes, mut again) = (Vec::new(), Vec::new());
        for of in self.state.slot_reservations().iter() {
            let none = JobReserve { at: of.at, ..JobReserve::default() };
            // a clock that was put back ends it, too
            let over = !(of.since..of.until).contains(&now);
            if !self.reserves(of) {
                changes.push(none);
            } else if over && of.hosts.is_empty() {
                changes.push(none);
                again.push(of.at);
            } else if over {
                let until = now.saturating_add(pause as i64);
                changes.push(JobReserve { since: now, until, ..none });
            }
        }
        for change in changes {
            self.keep_slots(context, Box::new(change));
        }
        for at in again {
            self.look_again(at);
        }
    }

    /// Does the job of a reservation still wait for slots, in a queue that reserves some?
    fn reserves(&self, of: &SlotReservation) -> bool {
        let Some(job) = self.state.job(of.at.job) else { return false };
        let view = self.view();
        let queue = view.site.queue(job.queue_at(of.at.idx));
        queue.is_some_and(|queue| {
            queue.id == of.queue
                && queue.conf.reserve.is_some()
                && view.queue_closed(queue.id).is_none()
                && self.sched.stands_first(&view, job, of.at)
        })
    }

    /// The reservations of others whose planned starts come before the end of a job that starts on
    /// these hosts, which may take what they count on there.
    pub(crate) fn reservations_counting_on(&self, at: JobRef, hosts: &JobHosts) -> Vec<JobRef> {
        let all = self.state.slot_reservations();
        let job = self.state.job(at.job).filter(|_| !all.is_empty());
        let part = job.map(|job| (job, job.part_no(at.idx)));
        let queue = part.and_then(|(job, part)| self.site.queue(job.queue_of(part)));
        let Some((queue, (job, part))) = queue.zip(part) else { return Vec::new() };
        let view = self.view();
        let run = view.run_limit_of(queue, job.spec_of(part));
        let run = run.map_or(i64::MAX, |run| run.on(view.hosts[hosts[0].0].cpu_factor()));
        let end = view.now.secs().saturating_add(run);
        let mut counting: Vec<JobRef> = hosts
            .iter()
            .flat_map(|(host, _)| all.on_host(*host))
            .filter(|(of, _)| of.at != at && of.start > 0 && of.start < end)
            .map(|(of, _)| of.at)
            .collect();
        counting.sort_unstable();
        counting.dedup();
        counting
    }

    pub(crate) fn look_again(&mut self, at: JobRef) {
        let (sched, view) = self.sched_and_view();
        sched.look_at_class_again(&view, at);
    }

    /// Hosts of which reservations gave something back are looked at again.
    pub(crate) fn note_released_slots(&mut self) {
        let released = self.state.take_released_slots();
        if !released.is_empty() {
            self.sched.reservations_released();
        }
        for (host, user) in released {
            self.sched.slots_released(user);
            self.sched.host_changed(host);
        }
    }

    /// The time slice of a job that starts on slots which others keep longer than it may run
    /// (INTERRUPTIBLE_BACKFILL), seconds; 0: it has none.
    pub(crate) fn slice_of(&self, at: JobRef, hosts: &JobHosts) -> u64 {
        let all = self.state.slot_reservations();
        let Some(job) = self.state.job(at.job).filter(|_| !all.is_empty()) else { return 0 };
        let view = self.view();
        let part = job.part_no(at.idx);
        let queue = self.site.queue(job.queue_of(part));
        let Some(queue) = queue.filter(|queue| queue.conf.interruptible_backfill.is_some()) else {
            return 0;
        };
        let run = view.run_limit_of(queue, job.spec_of(part));
        let (now, factor) = (view.now.secs(), view.hosts[hosts[0].0].cpu_factor());
        let run = run.map_or(i64::MAX, |run| run.on(factor));
        let short = |of: &SlotReservation| of.at != at && of.start.saturating_sub(now) < run;
        let mut slice = None;
        for &(host, slots) in hosts {
            let kept = || all.on_host(host).filter(|(of, _)| short(of));
            let sum: u64 = kept().map(|(_, on)| u64::from(on.kept)).sum();
            if sum > 0 && view.free_slots(host) < sum.saturating_add(slots.into()) {
                let first = kept().filter(|(of, _)| of.start > now).map(|(of, _)| of.start - now);
                slice = slice.into_iter().chain(first).min();
            }
        }
        slice.and_then(|slice| u64::try_from(slice).ok()).unwrap_or(0)
    }

    /// The timeline of all started elements.
    pub(crate) fn rebuild_timeline(&mut self) {
        self.timeline = Timeline::by_facts(self.links.facts_changes());
        if self.site.keeps_timeline {
            let all: Vec<JobRef> = self.state.counts().started().collect();
            all.into_iter().for_each(|at| self.follow_timeline(at));
        }
    }
}
