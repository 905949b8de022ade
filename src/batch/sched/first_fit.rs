//! Gathers hosts for a job in the order in which the pass comes to them, until there are enough.

use crate::batch::sched::joint_room::{JointRoom, Short};
use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{Policies, queue_is_full, rests_until};
use crate::batch::state::names::{HostId, HostSet};

/// Slots on hosts.
pub(super) type Hosts = Vec<(HostId, u32)>;

/// Too few slots for a job.
#[derive(Default)]
pub(super) struct TooFew {
    /// Hosts that have some.
    pub(super) free: Hosts,
    /// The limits and pools that left several hosts less than the job could have had.
    pub(super) short: Short,
}

impl TooFew {
    /// The shortage of a job to which queue or user have too few slots left: no host was looked at.
    pub fn by_limits(look: &HostMatch) -> TooFew {
        let full = JointRoom::new(look).full(look.min_slots()).map(|(rule, _)| Short::of(rule));
        TooFew { free: Vec::new(), short: full.unwrap_or_default() }
    }
}

/// Gathers hosts with slots, best first, until a job has enough.
pub(super) struct FirstFit<'a, 'b> {
    policies: &'a Policies,
    look: &'a HostMatch<'b>,
    /// Slots below which a host is of no use.
    least: u64,
    /// Slots that are found are never enough: other hosts may do better.
    needs_all: bool,
    /// Hosts that were just given a job, until when they take none of this queue.
    pub(super) rests: Vec<(HostId, u64)>,
    pub(super) free: Vec<(HostId, u32)>,
    /// Hosts on which a limit leaves no job of the queue a slot.
    pub(super) full: HostSet,
    /// Slots of `free` that count, of the host with most or of all.
    slots: u64,
    joint: JointRoom<'b>,
}

impl<'a, 'b> FirstFit<'a, 'b> {
    pub fn new(
        policies: &'a Policies,
        look: &'a HostMatch<'b>,
        joint: JointRoom<'b>,
        full: HostSet,
    ) -> FirstFit<'a, 'b> {
        let least = if look.one_host() { u64::from(look.min_slots()) } else { 1 };
        let needs_all = !look.any_slot() && look.needs_all_hosts();
        let (rests, free) = (Vec::new(), Vec::new());
        FirstFit { policies, look, least, needs_all, rests, free, full, slots: 0, joint }
    }

    /// The slots of one job.
    pub fn allocate(self) -> Result<Hosts, TooFew> {
        // of one slot there is nothing to be spread
        if self.look.any_slot() && self.free.len() == 1 {
            return Ok(self.free);
        }
        if self.joint.is_empty() {
            let free = self.free;
            return self.look.allocate(&free).ok_or(TooFew { free, short: Short::default() });
        }
        match JointRoom::allocate(self.look, &self.free) {
            Some(Ok(hosts)) => Ok(hosts),
            Some(Err(short)) => Err(TooFew { free: self.free, short }),
            None => Err(TooFew { free: self.free, short: self.joint.short() }),
        }
    }

    /// Looks at one host; true: no other is needed.
    pub fn add(&mut self, host: HostId) -> bool {
        let look = self.look;
        // what is known at once of most hosts that do not do
        if self.full.contains(host) || !look.selects_by_facts(host) {
            return false;
        }
        if self.least > 1 && look.has_fewer_free(host, self.least) {
            return false;
        }
        let Ok(slots) = self.policies.host(look, host) else {
            if queue_is_full(look, host) {
                self.full.insert(host);
            }
            self.rests.extend(rests_until(look, host).map(|until| (host, until)));
            return false;
        };
        if slots < self.least || (look.any_slot() && !look.begins(host)) {
            return false;
        }
        let slots = slots.min(look.most_counted());
        let slots = self.joint.gather(look, host, (slots, self.slots));
        if slots < self.least {
            return false;
        }
        let slots = slots as u32;
        self.free.push((host, slots));
        if look.any_slot() {
            return true;
        }
        let count = look.counting(host, slots);
        self.slots = if look.one_host() { count } else { self.slots + count };
        !self.needs_all && self.slots >= u64::from(look.max())
    }
}
