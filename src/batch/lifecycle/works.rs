//! Work that takes longer than one turn may: it is done unit by unit, each small, as often as the
//! runner has time for ([`crate::proto::Machine::work`]), and requests of others are served in
//! between. Each unit changes the state by events of its own, so that what was done is durable
//! whatever becomes of the rest, and leaves the state whole.
//!
//! | work | what is left of it after a crash |
//! |---|---|
//! | control of many jobs (`lifecycle::control_work`) | a retry of the request completes it |
//! | bmod of many elements (`lifecycle::modify`) | the same |
//! | jobs that their host does not know of (`host_inventory`) | the host tells all again |
//! | the end of many orphans | found at the start, and when the log can be written again |
//! | run windows that opened or closed, or of an array that was switched | a start looks at all |
//! | limits of an array that was changed | hosts are told with the next change, or not |
//! | elements that wait for elements, jobs that wait for a name | a start looks at all |
//! | cleaning, the count before a switch of the log | due again |
//! | jobs looked at again after a reconfiguration | a start looks at all |

use crate::batch::soft_state::works::{KINDS_OF_WORK, UNIT_LOOKS, Work};
use crate::batch::{Mbatchd, StepContext};

impl Mbatchd {
    pub(crate) fn work_left(&self) -> bool {
        let conditions =
            self.conditions_left() || self.deps.sweeps_left() || self.deps.groups_left();
        let rest = self.state.has_remains() || conditions;
        self.started && self.log_failed.is_none() && (rest || self.works.left())
    }

    /// Does one unit of what is to be done.
    pub(crate) fn work_unit(&mut self, context: &mut StepContext) {
        // classes and conditions are not whole before
        if self.works.is_refilling() {
            return self.refill_unit(context);
        }
        for _ in 0..KINDS_OF_WORK {
            let done = match self.works.next_turn() {
                0 => self.queued_unit(context),
                1 => self.works.is_cleaning().then(|| self.clean_unit(context)),
                2 => self.works.is_counting().then(|| self.count_unit(context)),
                3 => self.conditions_left().then(|| self.settle_unit(context)),
                4 => self.elements_unit(context),
                5 => self.deps.sweeps_left().then(|| self.sweep_unit(context)),
                6 => self.works.has_windows().then(|| self.windows_unit(context)),
                7 => self.missing_unit(context),
                8 => self.deps.groups_left().then(|| self.deps.groups_unit(&self.state)),
                _ => self.remains_unit(),
            };
            if done.is_some() {
                break;
            }
        }
        self.settle(context);
    }

    fn queued_unit(&mut self, context: &mut StepContext) -> Option<()> {
        match self.works.next()? {
            Work::Control(work) => {
                if let Some(work) = self.control_unit(context, work) {
                    self.works.put(Work::Control(work));
                }
            }
            Work::Modify(work) => {
                if let Some(work) = self.modify_unit(context, work) {
                    self.works.put(Work::Modify(work));
                }
            }
        }
        Some(())
    }

    /// A unit of the count before a switch of the log.
    fn count_unit(&mut self, context: &mut StepContext) {
        let Some(mut count) = self.works.take_count() else { return };
        let (mut looked, mut last) = (0, None);
        for job in self.state.jobs_from(count.from()) {
            if looked >= UNIT_LOOKS as u64 {
                break;
            }
            let records = crate::batch::lifecycle::clean::records_of(job);
            looked += records;
            count.add(records, self.oldest_of(job));
            last = Some(job.id);
        }
        match last.and_then(|id| id.checked_add(1)) {
            Some(next) => self.works.put_count(count.goes_on(next)),
            None => self.switch_counted(context, &count),
        }
    }

    /// Takes apart some of what has left memory.
    fn remains_unit(&mut self) -> Option<()> {
        if self.works.take_scans_apart(UNIT_LOOKS) {
            return Some(());
        }
        if !self.state.has_remains() {
            return None;
        }
        self.state.take_apart(UNIT_LOOKS);
        Some(())
    }
}
