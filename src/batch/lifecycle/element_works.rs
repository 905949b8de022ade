//! Changes of very many elements of a job (end of orphans, run windows, limits): some at once, the
//! rest unit by unit.

use crate::batch::soft_state::works::{
    ElementDeed, ElementWork, NextElement, RemainingElements, UNIT, UNIT_LOOKS,
};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;

impl Mbatchd {
    /// One unit of the changes of very many elements.
    pub(crate) fn elements_unit(&mut self, context: &mut StepContext) -> Option<()> {
        let work = self.works.next_elements()?;
        let (job, these) = (work.job(), work.names_elements());
        let ends = matches!(work.action(), ElementDeed::EndOrphans { .. });
        if let Some(left) = self.some_elements(context, work) {
            self.works.put_back_elements(left);
        } else if ends {
            self.works.orphans_ended(job);
            // those that became orphans meanwhile; of a whole array all were looked at
            if these {
                self.end_orphans(context, job);
            }
        }
        Some(())
    }

    /// Does what is to be done to some more elements; gives the work back unless it is whole.
    pub(crate) fn some_elements(
        &mut self,
        context: &mut StepContext,
        mut work: ElementWork,
    ) -> Option<ElementWork> {
        let mut looks = UNIT_LOOKS;
        for _ in 0..UNIT {
            let idx = match work.next(self.state.job(work.job())?, &mut looks) {
                NextElement::This(idx) => idx,
                NextElement::Over => return None,
                NextElement::Later => break,
            };
            let at = JobRef { job: work.job(), idx };
            match work.action() {
                ElementDeed::EndOrphans { at_once } => self.end_orphan(context, at, at_once),
                ElementDeed::KeepRunWindow => self.keep_run_window(context, at),
                ElementDeed::TellLimits => self.tell_limits_of(context, at),
            }
        }
        Some(work)
    }

    /// Does something to these elements of a job, the first of them at once.
    pub(crate) fn act_on_elements(
        &mut self,
        context: &mut StepContext,
        job: u32,
        left: RemainingElements,
        action: ElementDeed,
    ) {
        let left = self.some_elements(context, ElementWork::new(job, left, action));
        left.into_iter().for_each(|work| self.works.put_elements(work));
    }

    /// A job, or these elements of it, are in another queue than before: what has been started
    /// is as the windows and the thresholds of that queue want it.
    pub(crate) fn queue_changed(&mut self, context: &mut StepContext, id: u32, elems: &[u32]) {
        let left = match elems {
            [] | [0] => RemainingElements::Started(0),
            named => RemainingElements::These(named.iter().rev().copied().collect()),
        };
        self.act_on_elements(context, id, left, ElementDeed::KeepRunWindow);
        self.load_checks.look_again();
    }

    /// The hosts of a changed job's started elements hear of its limits.
    pub(crate) fn tell_limits(&mut self, context: &mut StepContext, id: u32) {
        self.act_on_elements(context, id, RemainingElements::Started(0), ElementDeed::TellLimits);
    }
}
