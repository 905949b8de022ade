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
    /// not give them back in time.
    pub fn kept_by_others(&self, host: HostId) -> impl Iterator<Item = (&SlotReservation, u64)> {
        self.kept_beyond(host, move || Some(self.run?.on(self.view.hosts[host].cpu_factor())))
    }

    /// The slots that other jobs hold on a host and need before so many seconds have passed. Slots
    /// in which another job backfills are in use: they are not held as well.
    fn kept_beyond(
        &self,
        host: HostId,
        secs: impl Fn() -> Option<i64>,
    ) -> impl Iterator<Item = (&SlotReservation, u64)> {
        let view = &self.view;
        let here = view.state.slot_reservations().on_host(host);
        let own = self.own.and_then(|own| view.state.slot_reservations().get(own));
        let others = here.filter(|(of, _)| Some(of.at) != self.own);
        let blocks = move |of: &SlotReservation| !self.backfills(of, &secs);
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
        hosts.iter().all(|&(host, slots)| {
            let kept: u64 = self.kept_beyond(host, || Some(secs)).map(|(_, kept)| kept).sum();
            kept == 0 || view.free_slots(host) >= kept.saturating_add(slots.into())
        })
    }
}
