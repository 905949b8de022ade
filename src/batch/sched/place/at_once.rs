//! The hosts that plainly do not do for a class: without a look at limits, load or reservations.
//! Behind one slot that becomes free, a walk comes to very many classes that need more than that,
//! or another kind of host.

use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::place::{Alternative, Compiled};
use crate::batch::sched::view::View;
use crate::batch::state::names::HostId;
use crate::lang::resreq::{SelectContext, Span};

/// A class whose jobs find all that they need on one host, whichever that is.
pub(in crate::batch::sched) struct OneHostClass<'a> {
    view: &'a View<'a>,
    kind: &'a ClassKey,
    requirement: Option<&'a Alternative>,
    context: SelectContext<'a>,
}

impl<'a> OneHostClass<'a> {
    /// The class, where jobs of it need one host and have one requirement alone.
    pub fn of(view: &'a View<'a>, kind: &'a ClassKey, compiled: &'a Compiled) -> Option<Self> {
        let [requirement] = &compiled.requirement.alternatives[..] else { return None };
        let requirement = requirement.as_deref();
        if requirement.is_some_and(|of| of.is_compound() || of.delays()) {
            return None;
        }
        let simple = requirement.and_then(|of| of.parts.first()).map(|part| &part.simple);
        let in_units = simple.is_some_and(|simple| simple.cu.is_some());
        let spans_one = simple.and_then(|simple| simple.span.as_ref()).is_some_and(Span::one_host);
        let named = !compiled.asked.fixed.is_empty() || !compiled.asked.first.is_empty();
        if named || in_units || !(kind.max == 1 || spans_one) {
            return None;
        }
        let (local_type, local_model) = compiled.asked.local(view);
        let context = SelectContext { local_type, local_model };
        Some(OneHostClass { view, kind, requirement, context })
    }

    /// Does a host have too few slots for a job of the class, or another type or other properties
    /// than it wants?
    pub fn fails_on(&self, host: HostId) -> bool {
        let fixed = self.requirement.and_then(|of| of.parts.first()?.fixed.as_ref());
        let least = u64::from(self.kind.min);
        (least > 1 && self.view.has_fewer_free(self.kind, host, least))
            || fixed.is_some_and(|fixed| {
                let snapshot = || self.view.snapshot(host);
                !fixed.fixed_holds((host, snapshot), &self.context, self.view.facts_changes)
            })
    }
}
