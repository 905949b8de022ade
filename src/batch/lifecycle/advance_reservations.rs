//! Advance reservations in the course of time (brsvadd(1)). While one is active and a ready job of
//! it lacks slots, other jobs on its hosts are suspended, the one started last first, until there
//! are enough (SUSP_HOST_RSVACTIVE); they go on when there is room for them again. When it is
//! over, its jobs end, unless it is open (brsvadd -o), or the job has a termination time of its
//! own ahead (bsub -t). A reservation that does not come again is then forgotten.
//!
//! A suspension and an end are logged before the host is told, like those for run windows. The
//! jobs concerned are found from the state at each look, so that a restart in between changes
//! nothing.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::soft_state::works::UNIT;
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, Phase};
use crate::batch::{Mbatchd, StepContext};
use crate::lang::occurrences::Period;
use crate::model::action::JobAction;
use crate::model::event::{Event, Forced};
use crate::model::job_state::JobState;
use crate::model::reason::{susp, term};
use crate::model::reservation::{ReservationFinish, ReservationTime};
use crate::model::{JobKey, JobRef};
use crate::proto::machine::Effect;
use crate::proto::sbd::Act;

impl Mbatchd {
    /// Carries out all that the time, or a change, has brought about for reservations.
    pub(crate) fn reservations_due(&mut self, context: &mut StepContext) {
        if !self.reservations.is_due(context.now) {
            return;
        }
        if !self.sched.is_timed() && !self.state.reservations().is_empty() {
            // from now on the run limits of pending jobs tell them apart
            return self.rebuild_by_units();
        }
        let parts = (&self.state, &*self.site, self.windows.zone());
        if let Some(look) = self.reservations.look(context.now, parts) {
            let ended = !look.changed || self.end_reserved(context);
            if look.changed {
                self.sched.changed();
            }
            for (id, period) in &look.passed {
                self.account_period(context, id, *period);
            }
            if ended {
                self.forget_over(context, look.over);
            } else {
                self.reservations.renew();
            }
        }
        for id in self.reservations.take_short() {
            self.free_reserved(context, &id);
        }
        for host in self.reservations.take_freed() {
            self.resume_reserved(context, host);
        }
    }

    /// Ends jobs of reservations that are over, a number of them; whether it was all.
    fn end_reserved(&mut self, context: &mut StepContext) -> bool {
        let now = context.now.secs();
        let over = |(at, id): (JobRef, &str)| {
            let def = self.state.reservations().get(id)?;
            if def.open || self.reservations.closed(id).is_none() {
                return None;
            }
            let ElemState::Run(run) = &self.state.elem(at)?.state else { return None };
            let later = self.state.job(at.job)?.spec_at(at.idx).term_time > now;
            // brun may start a job before its reservation is active
            let before = run.forced != Forced::No && !self.has_passed(id, run.start_time, now);
            (run.killed.is_none() && !later && !before).then_some(run.key)
        };
        let keys: Vec<JobKey> = self.reservations.elements().filter_map(over).take(UNIT).collect();
        let all = keys.len() < UNIT;
        for key in keys {
            self.end_for(context, key, JobAction::EndByReservation, term::DEADLINE);
        }
        all
    }

    /// Was a reservation active since an instant, and is it no longer?
    fn has_passed(&self, id: &str, since: i64, now: i64) -> bool {
        let Some(def) = self.state.reservations().get(id) else { return false };
        let Some(occurrences) = crate::lang::occurrences::Occurrences::of(def) else {
            return false;
        };
        let zone = self.windows.zone();
        let begun = occurrences.at(since, zone).or_else(|| occurrences.next(since, zone));
        begun.is_some_and(|period| period.end <= now)
    }

    /// Forgets reservations that do not come again.
    fn forget_over(&mut self, context: &mut StepContext, over: Vec<String>) {
        for id in over {
            let time = self.state.reservations().get(&id).map(|def| &def.time);
            if let Some(&ReservationTime::Once { begin, end }) = time {
                self.account_period(context, &id, Period { begin, end });
            }
            let event = Event::ReservationEnd { id, uid: 0, user: String::new() };
            self.emit(context, event);
        }
    }

    /// Has a period of a reservation accounted for that is over.
    pub(crate) fn account_period(&self, context: &mut StepContext, id: &str, period: Period) {
        let Some(def) = self.state.reservations().get(id) else { return };
        let duration = period.end.saturating_sub(period.begin);
        let (time, reservation) = (context.now.secs(), (**def).clone());
        let finish = ReservationFinish { time, reservation, duration };
        context.out.push(Effect::AccountReservation(Box::new(finish)));
    }

    /// Suspends other jobs on the hosts of an active reservation, until a ready job of it that
    /// lacks slots has enough.
    fn free_reserved(&mut self, context: &mut StepContext, id: &str) {
        let Some(need) = self.sched.waiting_in(id).map(u64::from) else { return };
        let mut free = 0;
        let mut taken = Vec::new();
        for host in self.reservations.hosts_to_free(id) {
            let view = self.view();
            let usable = |status| matches!(status, HostStatus::Ok | HostStatus::ClosedFull);
            if !view.hosts.contains(host) || !usable(view.host_status(host)) {
                continue;
            }
            let (left, max) = (self.reservations.left(id, host), view.host_max(host));
            let left = left.unwrap_or(0);
            let used = view.host_used(host).saturating_sub(self.preemptions.vacated_slots(host));
            let here = max.map_or(left, |max| left.min(max.saturating_sub(used)));
            free += here;
            if here < left {
                taken.push((host, left - here));
            }
        }
        for (host, lacking) in taken {
            if free >= need {
                return;
            }
            free += self.suspend_others(context, host, lacking.min(need - free));
        }
    }

    /// Suspends jobs of no reservation on a host, the one started last first, until so many slots
    /// are free; how many are.
    fn suspend_others(&mut self, context: &mut StepContext, host: HostId, slots: u64) -> u64 {
        let candidate = |at: JobRef| {
            let ElemState::Run(run) = &self.state.elem(at)?.state else { return None };
            let busy = run.killed.is_some() || run.unknown || run.soft.asked.is_some();
            let own = !self.reservations.of_element(at).is_empty();
            let runs = matches!(run.phase, Phase::Running);
            if busy || own || !runs || run.is_never_suspended() {
                return None;
            }
            let here = run.hosts.iter().filter(|of| of.0 == host).map(|of| u64::from(of.1)).sum();
            Some((run.start_time, run.key, here))
        };
        let mut all: Vec<(i64, JobKey, u64)> =
            self.state.counts().started_on(host).filter_map(candidate).collect();
        all.sort_unstable_by_key(|of| std::cmp::Reverse((of.0, of.1)));
        let mut free = 0;
        for (_, key, here) in all {
            if free >= slots {
                break;
            }
            let at = key.job_ref();
            self.phase_event(context, at, key.attempt, JobState::Ssusp, susp::RESERVED);
            self.act_on(context, key, Act::Suspend);
            free += here;
        }
        free
    }

    /// Lets jobs on a host that were suspended for reservations go on where there is room, the one
    /// started first first.
    fn resume_reserved(&mut self, context: &mut StepContext, host: HostId) {
        let mut all: Vec<(i64, JobKey)> = Vec::new();
        for at in self.reservations.suspended_on(host) {
            if let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) {
                all.push((run.start_time, run.key));
            }
        }
        all.sort_unstable();
        for (_, key) in all {
            if self.may_go_on(key) && !self.run_shut(key.job_ref()) {
                self.resume_job(context, key);
                self.reservations.refresh(&self.state, key.job_ref());
                let hosts = self.state.running(key).map(|run| run.hosts.clone());
                for (host, _) in hosts.iter().flat_map(|hosts| hosts.iter()) {
                    self.sched.host_changed(*host);
                }
            }
        }
    }

    /// Is there room on all hosts of a suspended job?
    fn may_go_on(&self, key: JobKey) -> bool {
        let view = self.view();
        let Some(run) = self.state.running(key).filter(|run| run.killed.is_none()) else {
            return false;
        };
        let fits = |(host, slots): &(HostId, u32)| {
            let max = if view.hosts.contains(*host) { view.host_max(*host) } else { None };
            let kept = self.reservations.kept_now(*host, "");
            let room = |max: u64| max.saturating_sub(view.host_used(*host)).saturating_sub(kept);
            max.is_none_or(|max| room(max) >= u64::from(*slots))
        };
        run.hosts.iter().all(fits)
    }
}
