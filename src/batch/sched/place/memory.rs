//! The memory that a job asks for on its hosts.

use crate::batch::sched::place::host_match::HostMatch;
use crate::batch::state::names::ResourceId;
use crate::lang::resreq::RusageTerm;
use crate::proto::lim::MEMORY_INDEX;

/// The memory of a job, MB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::batch::sched) struct MemoryNeed {
    pub(in crate::batch::sched) resource: ResourceId,
    amount: f64,
    per_task: bool,
}

impl HostMatch<'_> {
    /// The memory that a job of the class reserves; `None`: it reserves none.
    pub(in crate::batch::sched) fn memory_need(&self) -> Option<MemoryNeed> {
        let rusage = self.simple.and_then(|simple| simple.rusage.as_ref())?;
        let resource = ResourceId::of_load_index(MEMORY_INDEX);
        let site = self.view.site;
        let of_memory = |term: &&RusageTerm| site.names.reserved(term) == Some(resource);
        let mut terms = rusage.terms().iter().filter(of_memory);
        let first = terms.next()?;
        let amount = first.amount() + terms.map(RusageTerm::amount).sum::<f64>();
        let per_task = site.reserves_per_task(first);
        (amount > 0.0).then_some(MemoryNeed { resource, amount, per_task })
    }
}

impl MemoryNeed {
    /// The memory for so many slots of one host.
    pub(in crate::batch::sched) fn on_host(&self, slots: u32) -> f64 {
        match self.per_task {
            true => self.amount * f64::from(slots),
            false if slots > 0 => self.amount,
            false => 0.0,
        }
    }

    /// The slots among these for which a host has so much memory.
    pub(in crate::batch::sched) fn slots_within(&self, slots: i64, memory: f64) -> i64 {
        match self.per_task {
            _ if slots <= 0 => slots,
            true => slots.min((memory.max(0.0) / self.amount) as i64),
            false if memory >= self.amount => slots,
            false => 0,
        }
    }
}
