//! The outcome of a pass, and the work that it may do in one turn.

use crate::batch::sched::place::Alternative;
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::usage::fairshare::account::AccountId;
use crate::batch::usage::preemption_claim::Claim;
use crate::model::JobRef;
use crate::model::event::JobReserve;
use std::rc::Rc;

/// Looks of a class at a host that a pass may take in one turn.
pub const PASS_FUEL: usize = 32_768;
/// A decision, carried out, costs as much as so many looks. A few hundred in one turn: their orders
/// and records are still in the processor's cache when they are sent and written.
const DECISION_COST: usize = 128;

/// A change that a pass decides on. `lifecycle::dispatch` carries it out before the pass goes on.
#[derive(Debug)]
pub(crate) enum Decision {
    /// A pending job or element starts.
    Start(Allocation),
    /// A started job or element gets further slots.
    Grow(Allocation),
    /// Running jobs are preempted for a pending one, which waits for their slots.
    Preempt(Preemption),
    /// A pending job does not want the slots any more that others were preempted for.
    Release { at: JobRef },
    /// A preempted job goes on.
    Resume { at: JobRef },
    /// A pending job or element keeps other slots than before.
    Reserve(Box<JobReserve>),
}

/// Slots that a job or element is given.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub at: JobRef,
    /// Jobs of its class that start with it: each gets as many slots of the same single host.
    pub further: Vec<JobRef>,
    /// Never empty; the first is the first execution host.
    pub hosts: JobHosts,
    /// The requirement that they were found by.
    pub req: Option<Rc<Alternative>>,
    /// The share account through which it was found.
    pub account: Option<AccountId>,
}

impl Allocation {
    /// Slots for one job or element.
    pub fn new(
        at: JobRef,
        hosts: JobHosts,
        req: Option<Rc<Alternative>>,
        account: Option<AccountId>,
    ) -> Allocation {
        Allocation { at, further: Vec::new(), hosts, req, account }
    }
}

/// Jobs that are preempted for a pending one.
#[derive(Debug)]
pub(crate) struct Preemption {
    /// The pending job or element.
    pub at: JobRef,
    /// The elements to be preempted; none where others are about to leave enough slots.
    pub victims: Vec<JobRef>,
    /// The slots that the job is to get, and all elements that leave them.
    pub claim: Claim,
}

/// The work that a pass may still do in this turn.
#[derive(Debug)]
pub(crate) struct Fuel(usize);

impl Fuel {
    /// The work that a pass may do in one turn.
    pub(crate) fn of_a_turn() -> Fuel {
        Fuel(PASS_FUEL)
    }
    /// A decision is carried out.
    pub(crate) fn spend_decision(&mut self, decision: &Decision) {
        let further = match decision {
            Decision::Start(allocation) => allocation.further.len(),
            _ => 0,
        };
        self.spend(DECISION_COST * (1 + further));
    }
    /// Decisions that may still be carried out.
    pub fn decisions(&self) -> usize {
        self.0.div_ceil(DECISION_COST)
    }
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }
    pub fn spend(&mut self, looks: usize) {
        self.0 = self.0.saturating_sub(looks);
    }
}
