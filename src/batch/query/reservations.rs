//! brsvs: the advance reservations, with their jobs, and the policies of lsb.resources.

use crate::batch::Mbatchd;
use crate::batch::step::Checked;
use crate::model::reason::err;
use crate::model::reservation::Reservation;
use crate::proto::Refusal;
use crate::proto::reservation::{ReservationInfo, ReservationPolicyInfo};

/// Jobs of a reservation that are told in each state.
pub const MAX_SHOWN: usize = 1000;

impl Mbatchd {
    pub(crate) fn reservation_rows(&self, ids: &[String]) -> Checked<Vec<ReservationInfo>> {
        let all = self.state.reservations();
        if ids.is_empty() {
            return Ok(all.each().map(|r| self.reservation_row(r)).collect());
        }
        let found = |id: &String| all.get(id).ok_or_else(|| Refusal::about(err::NO_RSVID, id));
        ids.iter().map(|id| Ok(self.reservation_row(found(id)?))).collect()
    }

    fn reservation_row(&self, r: &Reservation) -> ReservationInfo {
        let [period, next] = self.reservations.periods(&r.id);
        let on_host = |(host, slots): &(String, u32)| {
            let id = self.site.host_id(host);
            let used = id.map_or(0, |id| self.reservations.used(&r.id, id));
            let max = id.map_or(0, |id| self.view().reservable(id));
            (host.clone(), used, u64::from(*slots), max)
        };
        ReservationInfo {
            id: r.id.clone(),
            kind: r.kind,
            users: r.users.clone(),
            creator: r.creator.clone(),
            hosts: r.hosts.iter().map(on_host).collect(),
            time: r.time.clone(),
            active: period.is_some(),
            period: period.or(next).map(|period| (period.begin, period.end)),
            open: r.open,
            by_host: r.by_host,
            no_suspension: r.no_suspension,
            queues: r.queues.clone(),
            description: r.description.clone(),
            scripts: r.scripts.clone(),
            disabled: r.disabled.clone(),
            jobs: self.jobs_by_state(&r.id),
        }
    }

    /// The jobs of a reservation: finished, pending, running, suspended.
    fn jobs_by_state(&self, id: &str) -> [Vec<u32>; 4] {
        let mut all: [Vec<u32>; 4] = Default::default();
        for job in self.reservations.jobs_of(id).filter_map(|job| self.state.job(job)) {
            let t = &job.tally();
            let states =
                [t.done + t.exit, t.pend + t.psusp, t.run, t.ssusp + t.ususp].map(|n| n > 0);
            for (list, _) in
                all.iter_mut().zip(states).filter(|(list, of)| *of && list.len() < MAX_SHOWN)
            {
                list.push(job.id);
            }
        }
        all
    }

    pub(crate) fn reservation_policies(
        &self,
        names: &[String],
    ) -> Checked<Vec<ReservationPolicyInfo>> {
        let all = &self.site.conf.batch.resources.reservations;
        let unknown = |name: &&String| !all.iter().any(|p| p.name == **name);
        if let Some(name) = names.iter().find(unknown) {
            return Err(Refusal::about(err::RSV_POLICY_NAME, name));
        }
        let wanted = all.iter().filter(|p| names.is_empty() || names.contains(&p.name));
        let row = |p: &crate::conf::types::ReservationPolicy| ReservationPolicyInfo {
            name: p.name.clone(),
            users: p.users_text.clone(),
            hosts: p.hosts_text.clone(),
            window: p.window.clone(),
        };
        Ok(wanted.map(row).collect())
    }
}
