//! A walk over all started jobs, a bounded number in one turn: it goes through the hosts, and on
//! each through the jobs there. How far it has come is soft state, which a restart begins anew. The
//! looks themselves are in `lifecycle::exceptions` and `lifecycle::hung_jobs`.

use crate::batch::state::counts::Counts;
use crate::batch::state::names::HostId;
use crate::model::JobRef;

/// Jobs of hosts, and hosts, that one turn looks at.
pub const LOOKS_PER_TURN: usize = 2000;

/// A started element, found on one of its hosts.
pub type StartedThere = (HostId, JobRef);

/// The walk under way, if any.
#[derive(Debug, Default)]
pub struct StartedWalk {
    /// The next job of this host, or one behind it; `None`: no walk is under way.
    next: Option<StartedThere>,
    /// How many jobs each turn has looked at.
    #[cfg(test)]
    looks: Vec<usize>,
}

impl StartedWalk {
    /// A walk begins; one that is under way, because it takes longer than the time between two,
    /// goes on. Has it begun?
    pub(crate) fn begin(&mut self) -> bool {
        let begins = self.next.is_none();
        self.next.get_or_insert((HostId::MIN, JobRef::default()));
        begins
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.next.is_some()
    }

    /// Nothing is to be looked for any more.
    pub(crate) fn stop(&mut self) {
        self.next = None;
    }

    /// The started elements of hosts that this turn looks at. The walk is over behind the last.
    pub(crate) fn slice(&mut self, counts: &Counts) -> Vec<StartedThere> {
        let (mut found, mut left) = (Vec::new(), LOOKS_PER_TURN);
        let Some((first, mut from)) = self.next.take() else { return found };
        for host in counts.hosts_in_use_from(first) {
            if host != first {
                from = JobRef::default();
            }
            for at in counts.started_from(host, from) {
                if left == 0 {
                    self.next = Some((host, at));
                    return self.looked(found);
                }
                left -= 1;
                found.push((host, at));
            }
        }
        self.looked(found)
    }

    fn looked(&mut self, found: Vec<StartedThere>) -> Vec<StartedThere> {
        #[cfg(test)]
        self.looks.push(found.len());
        found
    }

    /// How many jobs each turn has looked at since this was asked last.
    #[cfg(test)]
    pub(crate) fn take_looks(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.looks)
    }

    /// A walk that is under way goes on at once.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.next.map(|_| 0)
    }
}
