//! The hosts that plainly do not do for a class: without a look at limits, load or reservations.
//! Behind one slot that becomes free, a walk comes to very many classes that need more than that,
//! or another kind of host. The needs that it asks about are taken out of the requirements before,
//! so that it does not fetch these.

use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::fixed_match::FixedPart;
use crate::batch::sched::place::Compiled;
use crate::batch::sched::place::asked::local_of;
use crate::batch::sched::view::View;
use crate::batch::state::names::HostId;
use crate::lang::resreq::{SelectContext, Span};
use std::rc::Rc;

/// The needs that a host must meet at least, of a class whose jobs find all that they need on one
/// host, whichever that is.
#[derive(Debug)]
pub(in crate::batch::sched) struct OneHostNeeds {
    /// The fewest slots; 0: slots that are kept may be free for jobs of the class.
    slots: u32,
    /// The host that the jobs were submitted on, where it is a server of the cluster.
    submitted_on: Option<HostId>,
    /// The conditions about facts of the host.
    fixed: Option<Rc<FixedPart>>,
}

impl OneHostNeeds {
    /// The needs of a class; none: its jobs may need several hosts, or certain ones, or have one
    /// of several requirements.
    pub fn of(kind: &ClassKey, compiled: &Compiled) -> Option<OneHostNeeds> {
        let [requirement] = &compiled.requirement.alternatives[..] else { return None };
        let requirement = requirement.as_deref();
        if requirement.is_some_and(|of| of.is_compound() || of.delays()) {
            return None;
        }
        let part = requirement.and_then(|of| of.parts.first());
        let simple = part.map(|part| &part.simple);
        let in_units = simple.is_some_and(|simple| simple.cu.is_some());
        let spans_one = simple.and_then(|simple| simple.span.as_ref()).is_some_and(Span::one_host);
        let asked = &compiled.asked;
        let named = !asked.fixed.is_empty() || !asked.first.is_empty();
        if named || in_units || !(kind.max == 1 || spans_one) {
            return None;
        }
        let slots = if kind.reservation.is_empty() { kind.min } else { 0 };
        let fixed = part.and_then(|part| part.fixed.as_ref()?.fixed_part());
        Some(OneHostNeeds { slots, submitted_on: asked.submitted_on, fixed })
    }

    /// Does a host have too few slots for a job of the class, or another type or other properties
    /// than it wants?
    pub fn fail_on(&self, view: &View, host: HostId) -> bool {
        let least = u64::from(self.slots);
        if least > 1 && view.has_fewer_free(host, least) {
            return true;
        }
        self.fixed.as_ref().is_some_and(|fixed| {
            let (local_type, local_model) = local_of(view, self.submitted_on);
            let local = SelectContext { local_type, local_model };
            !fixed.holds((host, || view.snapshot(host)), &local, view.facts_changes)
        })
    }
}
