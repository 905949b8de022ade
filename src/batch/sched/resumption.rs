//! The preempted jobs that go on: a pass looks at those of a queue before its pending ones, behind
//! the jobs of all higher queues.
//!
//! A preempted job goes on when each of its hosts has room for it beside what runs there, what
//! active advance reservations keep, and what pending jobs of higher queues claim or reserve there.
//! Of several on a host the one that was started first comes first.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::sched::Sched;
use crate::batch::sched::place::has_units_again;
use crate::batch::sched::policy::may_count_again;
use crate::batch::sched::view::{SharesHeld, View};
use crate::batch::sched::walk_state::Walk;
use crate::batch::site::Queue;
use crate::batch::state::ElemState;
use crate::batch::state::names::HostId;
use crate::batch::state::slot_reservations::ReservedHost;
use crate::batch::usage::reserve::holder::in_units;
use crate::model::JobRef;
use crate::model::job::opt;
use crate::proto::lim::MEMORY_INDEX;

impl Sched {
    /// The next preempted job of a queue that goes on, on the hosts that have changed: asked before
    /// a walk begins with pending ones.
    pub(super) fn next_to_resume(&self, view: &View, queue: &Queue, walk: &Walk) -> Option<JobRef> {
        if walk.touched.is_empty() || !view.preemptions.any_of(queue.id) {
            return None;
        }
        let shut = view.site.queue_position(queue.id);
        if shut.is_none_or(|position| view.windows.run_windows_closed(position)) {
            return None;
        }
        let hosts = view.preemptions.hosts_among(&walk.touched);
        hosts.into_iter().find_map(|host| self.first_to_resume(view, queue, host))
    }

    /// The preempted job of a queue on a host that was started first of those that may go on.
    fn first_to_resume(&self, view: &View, queue: &Queue, host: HostId) -> Option<JobRef> {
        let of_queue = view.preemptions.suspended_on(host).filter(|(_, of)| *of == queue.id);
        let started = |at: JobRef| match &view.state.elem(at)?.state {
            ElemState::Run(run) if run.soft.asked.is_none() && !run.unknown => {
                Some((run.start_time, at))
            }
            _ => None,
        };
        let fit = of_queue.filter(|(at, _)| self.has_room_again(view, *at));
        fit.filter_map(|(at, _)| started(at)).min().map(|first| first.1)
    }

    /// A pending job that could not start now whatever hosts it had, and still has a claim. Where
    /// very many jobs have claims, such a claim ends when something changes on its hosts.
    pub(super) fn claimant_without_use(&self, view: &View) -> Option<JobRef> {
        const MOST_CLAIMS: usize = 64;
        let mut claimants = view.preemptions.claimants().take(MOST_CLAIMS);
        claimants.find(|claimant| !self.wants_its_claim(view, *claimant))
    }

    /// May a job of a queue that others preempt run on its hosts, beside what runs there and what
    /// jobs of higher queues claim?
    pub(crate) fn has_room_again(&self, view: &View, at: JobRef) -> bool {
        let Some(job) = view.state.job(at.job) else { return false };
        let Some(ElemState::Run(run)) = job.elem(at.idx).map(|elem| &elem.state) else {
            return false;
        };
        // its slots are for that job, also where free slots are kept for other suspended ones
        let claimant = view.preemptions.claimant(at);
        if claimant.is_some_and(|claimant| self.wants_its_claim(view, claimant)) {
            return false;
        }
        if !may_count_again(view, at) {
            let hosts = run.hosts.iter().map(|host| host.0);
            self.held_by_limits.borrow_mut().extend(hosts);
            return false;
        }
        let exclusive = job.spec_at(at.idx).options & opt::EXCLUSIVE != 0;
        let queue = view.site.queue(job.queue_at(at.idx));
        let priority = queue.map_or(0, |queue| queue.conf.priority);
        let reservation = view.reservations.of_element(at);
        run.hosts.iter().all(|(host, slots)| {
            if !view.hosts.contains(*host) {
                return true;
            }
            if !has_units_again(view, at, *host) {
                return false;
            }
            let Some(most) = view.host_max(*host) else { return true };
            // those that are suspended for another reason have to find room again, too
            let idle = view.preemptions.suspended_slots(*host);
            let stopped = |queue| view.preemptions.stopped_slots(*host, queue, view.site);
            let idle = idle + queue.map_or(0, stopped);
            let counted = !view.preemptions.is_suspended(at) && !view.preemptions.is_stopped(at);
            let own = if counted { 0 } else { u64::from(*slots) };
            let live = |claimant: JobRef| self.wants_its_claim(view, claimant);
            let claimed = view.preemptions.claimed_slots(*host, live);
            // a job that claims slots does not find room beside these, which this one would not see
            let unseen = view.preemptions.kept_from_claimants((*host, at), view.site, live);
            let claimed = claimed + unseen;
            let runs = view.host_used(*host).saturating_sub(idle);
            let kept = view.reservations.kept_now(*host, reservation);
            let kept = kept.saturating_add(self.reserved_above(view, *host, priority));
            let up = !matches!(view.host_status(*host), HostStatus::Unavail | HostStatus::Unreach);
            let alone = match exclusive {
                true => runs == 0,
                false => !view.held_alone(*host),
            };
            let others = kept.saturating_add(runs + claimed);
            // its host may have fewer slots now than it was given
            up && alone && (others == 0 || others.saturating_add(own) <= most)
        }) && self.has_resources_again(view, at, priority)
    }

    /// May a job of a queue of this priority take the preemptable resources again that it
    /// reserves, beside what runs, and what jobs of higher queues claim or keep?
    fn has_resources_again(&self, view: &View, at: JobRef, priority: u32) -> bool {
        /// Amounts below it count as nothing.
        const NOTHING: f64 = 1e-6;
        if !view.site.names.preempts_resources() {
            return true;
        }
        view.reserve.held(at).iter().all(|held| {
            if !view.hosts.contains(held.host) {
                return true;
            }
            let (host, id) = (held.host, held.resource);
            let name = view.site.names.name(id);
            let sight = view.snapshot(host).without_reservations();
            let Some(value) = sight.available(id, name) else { return true };
            let live = |claimant: JobRef| self.wants_its_claim(view, claimant);
            let claimed = view.preemptions.claimed_resource((held.row, id), live);
            let runs = view.reserve.on(host).unseen(id) - view.reserve.vacated_unseen(host, id);
            let others = runs - in_units(view.reserve.counted(at, held)) + claimed;
            let kept = match id.load_index() {
                Some(MEMORY_INDEX) => self.memory_reserved_above(view, host, priority) as f64,
                _ => 0.0,
            };
            // there may be less of it now than the job was given
            others <= NOTHING || value - others - kept + NOTHING >= in_units(held.unseen)
        })
    }

    /// The slots of a host that pending jobs of queues above a priority reserve.
    fn reserved_above(&self, view: &View, host: HostId, priority: u32) -> u64 {
        reservations_above(view, host, priority).map(|here| u64::from(here.kept)).sum()
    }

    /// The memory of a host that pending jobs of queues above a priority reserve, MB.
    fn memory_reserved_above(&self, view: &View, host: HostId, priority: u32) -> u64 {
        reservations_above(view, host, priority).map(|here| here.kept_memory).sum()
    }

    /// A preempted job that may go on although no pass is due; for tests and the simulator.
    pub(super) fn overlooked_preempted(&self, view: &View) -> Option<u32> {
        let queues = view.site.queues.iter().filter(|queue| {
            let position = view.site.queue_position(queue.id);
            view.preemptions.any_of(queue.id)
                && position.is_some_and(|position| !view.windows.run_windows_closed(position))
        });
        let mut first = queues.flat_map(|queue| {
            let hosts = view.preemptions.hosts_with_suspended();
            hosts.filter_map(move |host| self.first_to_resume(view, queue, host))
        });
        first.next().map(|at| at.job)
    }

    /// Could a pending job start now if it had a host? Slots that were lent to others out of the
    /// share of its queue in a pool are no hindrance: it starts as they did.
    fn wants_its_claim(&self, view: &View, at: JobRef) -> bool {
        let view = &View { shares_held: SharesHeld::NotLent, ..*view };
        let Some(job) = view.state.job(at.job) else { return false };
        let part = job.part_no(at.idx);
        let entry = match self.lone.get(at) {
            Some(lone) => lone.entry,
            None => self.entry(at.job, part).copied(),
        };
        let ready = entry.is_some_and(|entry| entry.ready);
        let Some(queue) = view.site.queue(job.queue_of(part)).filter(|_| ready) else {
            return false;
        };
        let spec = job.spec_of(part);
        let limits = view.limits_of(view.site.rules.consumer((queue.id, job.user), spec));
        self.policies.user(view, queue, &limits).slots >= u64::from(spec.min_slots.max(1))
            && !view.group_counts.is_full(view.state, &spec.further.job_group)
            && !view.goals.is_full(view.site.service_classes.id(&spec.further.service_class))
    }
}

/// The parts on a host of the reservations of pending jobs of queues above a priority, without
/// those that have jobs preempted there.
fn reservations_above(
    view: &View,
    host: HostId,
    priority: u32,
) -> impl Iterator<Item = ReservedHost> {
    let above = view.state.slot_reservations().on_host(host).filter(move |(of, _)| {
        let queue = view.site.queue(of.queue);
        queue.is_some_and(|queue| queue.conf.priority > priority)
            && view.preemptions.claim_by(of.at).is_none()
    });
    above.map(|(_, here)| here)
}
