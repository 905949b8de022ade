//! Changes of the slots of running jobs (bresize, bsub -ar): the notification command is run as the
//! user, in the task that JOB_CONTROLS and checkpoints have for their commands.
//!
//! Invariants: a change that is known is not carried out again; its end is kept until the next one
//! and told with every state of the attempt; the order of a job holds the hosts that it has.

use super::agent::*;
use super::*;
use crate::model::resize::ResizeOrder;

impl Sbatchd {
    /// An order of mbatchd, which sends it until it was told of its end.
    pub(super) fn resize_ordered(
        &mut self,
        now: Now,
        key: JobKey,
        order: ResizeOrder,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let told = job.note.mark.resized;
        if order.number <= told.number {
            return self.tell_state(key, out);
        }
        if job.note.mark.resize.as_ref().is_some_and(|known| known.number >= order.number) {
            return self.begin_resize(now, key, out);
        }
        job.note.mark.resize = Some(Box::new(order));
        self.begin_resize(now, key, out);
    }
}
