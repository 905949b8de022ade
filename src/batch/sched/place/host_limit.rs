//! HOSTLIMIT_PER_JOB of lsb.queues(5): the most hosts of a job. Hosts are tried in their order
//! first; where these are too many, those with most slots are.

use crate::batch::sched::place::host_match::{Free, HostMatch, Placed, Tasks};
use crate::batch::sched::place::shared::SharedRoom;
use crate::batch::state::names::HostId;
use std::cmp::Reverse;
use std::collections::BTreeSet;

impl HostMatch<'_> {
    /// How many hosts the tasks may have beside those of parts that were placed before; `None`: no
    /// limit, or they cannot have more.
    pub(in crate::batch::sched) fn host_limit(&self) -> Option<usize> {
        let limit = self.queue.conf.tasks.hosts?;
        let left = (limit as usize).saturating_sub(self.drafted_hosts().len());
        ((left as u64) < u64::from(self.max())).then_some(left)
    }

    /// Hosts for tasks as span[] asks for them, no more than HOSTLIMIT_PER_JOB.
    pub(super) fn spread(&self, free: Free, tasks: Tasks, room: &mut SharedRoom) -> Option<Placed> {
        let Some(limit) = self.host_limit() else { return self.spread_over(free, tasks, room) };
        let mut first = room.clone();
        let placed = self.spread_over(free, tasks, &mut first);
        if let Some(placed) = placed.filter(|placed| self.new_hosts(placed) <= limit) {
            *room = first;
            return Some(placed);
        }
        let few = self.largest_hosts(free, limit);
        self.spread_over(&few, tasks, room).filter(|placed| self.new_hosts(placed) <= limit)
    }

    /// The hosts of these that no part has that was placed before.
    fn new_hosts(&self, placed: &[(HostId, u32)]) -> usize {
        let drafted = self.drafted_hosts();
        let new: BTreeSet<HostId> =
            placed.iter().map(|on| on.0).filter(|host| !drafted.contains(host)).collect();
        new.len()
    }

    /// The hosts of parts that were placed before, and of the others so many that have most slots,
    /// with one on which the job may begin; best host first.
    fn largest_hosts(&self, free: Free, limit: usize) -> Placed {
        let drafted = self.drafted_hosts();
        let mut others: Vec<(HostId, u32)> =
            free.iter().filter(|on| !drafted.contains(&on.0)).copied().collect();
        others.sort_by_key(|on| Reverse(self.counting(on.0, on.1)));
        let drafted_begins = drafted.iter().any(|host| self.begins(*host));
        if !drafted_begins && let Some(at) = others.iter().position(|on| self.begins(on.0)) {
            let begins = others.remove(at);
            others.insert(0, begins);
        }
        others.truncate(limit);
        let taken: BTreeSet<HostId> = others.iter().map(|on| on.0).collect();
        let may = |host: &HostId| drafted.contains(host) || taken.contains(host);
        free.iter().filter(|on| may(&on.0)).copied().collect()
    }
}
