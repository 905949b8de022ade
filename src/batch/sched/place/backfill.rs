//! Slots and memory that other pending jobs keep, and whether a job would give them back in time
//! (BACKFILL).

use crate::batch::sched::place::host_match::HostMatch;
use crate::batch::state::names::HostId;
use crate::batch::state::slot_reservations::SlotReservation;
use crate::model::JobRef;

impl HostMatch<'_> {
    /// A look for this job of the class.
    pub fn of(self, own: Option<JobRef>) -> Self {
        HostMatch { own, ..self }
    }

    /// The slots that other pending jobs keep on a host, of which this one may have none: it would
    /// not give them back in time, or may not backfill.
    pub fn kept_by_others(
        &self,
        host: HostId,
        backfills: bool,
    ) -> impl Iterator<Item = (&SlotReservation, u64)> {
        let secs = move || Some(self.run?.on(self.view.hosts[host].cpu_factor()));
        self.kept_beyond(host, backfills, secs)
    }

    /// The slots that other jobs hold on a host and need before so many seconds have passed. Slots
    /// in which another job backfills are in use: they are not held as well.
    fn kept_beyond(
        &self,
        host: HostId,
        backfills: bool,
        secs: impl Fn() -> Option<i64>,
    ) -> impl Iterator<Item = (&SlotReservation, u64)> {
        let view = &self.view;
        let own = self.own.and_then(|own| view.state.slot_reservations().get(own));
        self.needed_by_others(host, backfills, secs)
            .map(move |of| (of, view.held_against((of, host), own)))
    }

    /// The other reservations on a host that need it before so many seconds have passed.
    fn needed_by_others(
        &self,
        host: HostId,
        backfills: bool,
        secs: impl Fn() -> Option<i64>,
    ) -> impl Iterator<Item = &SlotReservation> {
        let here = self.view.state.slot_reservations().on_host(host);
        let others = here.map(|(of, _)| of).filter(|of| Some(of.at) != self.own);
        others.filter(move |of| !(backfills && self.backfills(of, &secs)))
    }

    /// The memory that other pending jobs keep on a host, of which this one may have none, MB.
    pub fn memory_kept_by_others(&self, host: HostId, backfills: bool) -> f64 {
        let secs = || Some(self.run?.on(self.view.hosts[host].cpu_factor()));
        self.memory_kept_beyond(host, backfills, secs)
    }

    fn memory_kept_beyond(
        &self,
        host: HostId,
        backfills: bool,
        secs: impl Fn() -> Option<i64>,
    ) -> f64 {
        let view = &self.view;
        let all = view.state.slot_reservations();
        if all.is_empty() {
            return 0.0;
        }
        let own = self.own.and_then(|own| all.get(own));
        let others = self.needed_by_others(host, backfills, secs);
        view.memory_held_against((others, host), own)
    }

    /// Is there memory for a job that runs so long on a host, beside what others keep?
    fn memory_lasts(&self, (host, slots): (HostId, u32), secs: i64) -> bool {
        let Some(need) = self.memory_need() else { return true };
        let kept = self.memory_kept_beyond(host, true, || Some(secs));
        kept <= self.memory_kept_by_others(host, true)
            || self.left_on(host, need.resource) - kept >= need.on_host(slots)
    }

    /// Would a job that runs so long end before the job of a reservation starts, or be ended?
    fn backfills(&self, of: &SlotReservation, secs: impl Fn() -> Option<i64>) -> bool {
        let conf = &self.queue.conf;
        if !conf.backfill || of.start == 0 {
            return false;
        }
        let left = of.start.saturating_sub(self.view.now.secs());
        let ends = secs().is_some_and(|secs| secs <= left);
        let interrupted = conf.interruptible_backfill.and_then(|least| i64::try_from(least).ok());
        ends || interrupted.is_some_and(|least| least <= left)
    }

    /// Are the slots of a place free for as long as a job runs there? Its first host says how long.
    pub(super) fn lasts(&self, hosts: &[(HostId, u32)]) -> bool {
        let view = &self.view;
        let (Some(run), Some(first)) = (self.run, hosts.first()) else { return true };
        if !self.queue.conf.backfill || view.state.slot_reservations().is_empty() {
            return true;
        }
        let secs = run.on(view.hosts[first.0].cpu_factor());
        let reserved = !self.kind.reservation.is_empty();
        let sum = |kept: &mut dyn Iterator<Item = (&SlotReservation, u64)>| -> u64 {
            kept.map(|(_, kept)| kept).sum()
        };
        hosts.iter().all(|&(host, slots)| {
            if !self.memory_lasts((host, slots), secs) {
                return false;
            }
            let kept = sum(&mut self.kept_beyond(host, true, || Some(secs)));
            // what is kept from a job that runs there as long as this host says was looked at
            if kept <= sum(&mut self.kept_by_others(host, true)) {
                return true;
            }
            let (_, used) = view.host_for((self.queue, reserved), host, 0);
            let free = view.host_max(host).map_or(u64::MAX, |max| max.saturating_sub(used));
            free >= kept.saturating_add(slots.into())
        })
    }
}
