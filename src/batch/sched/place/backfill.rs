//! Slots that other pending jobs keep, and whether a job would give them back in time (BACKFILL).

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
        let here = view.state.slot_reservations().on_host(host);
        let own = self.own.and_then(|own| view.state.slot_reservations().get(own));
        let others = here.filter(|(of, _)| Some(of.at) != self.own);
        let blocks = move |of: &SlotReservation| !(backfills && self.backfills(of, &secs));
        others
            .filter(move |(of, _)| blocks(of))
            .map(move |(of, _)| (of, view.held_against((of, host), own)))
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
