//! Checkpoints of running jobs: echkpnt is run as the user, in the task that JOB_CONTROLS has for
//! its commands, so that neither disturbs the other (echkpnt(8)).
//!
//! Invariants: of one attempt one checkpoint or command of JOB_CONTROLS runs at a time; the job
//! that ends while it is checkpointed to be killed is told of when the checkpoint has ended; a kill
//! waits for no checkpoint.

use super::agent::*;
use super::*;
use crate::exec::attempt::WantedCheckpoint;
use crate::model::checkpoint::CheckpointOrder;

/// Pause before a checkpoint that is due is tried again, microseconds.
const AGAIN: u64 = 10 * US;

impl Sbatchd {
    /// An order of bchkpnt.
    pub(super) fn checkpoint_ordered(
        &mut self,
        now: Now,
        key: JobKey,
        order: CheckpointOrder,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if let Some(minutes) = order.period {
            job.note.mark.checkpoint.period = Some(minutes);
            job.arm_checkpoint(now);
            return self.tell_state(key, out);
        }
        // the one that runs may be of the period
        let running = job.note.mark.wanted.filter(|wanted| wanted.running);
        let next = |w: &WantedCheckpoint| !w.asked || order.kill && !w.order.kill;
        match running.filter(next) {
            Some(_) => job.note.mark.next_wanted = Some(order),
            None if running.is_some() => {}
            None => {
                let wanted = WantedCheckpoint { order, asked: true, ..<_>::default() };
                job.note.mark.wanted = Some(wanted);
                self.begin_checkpoint(now, key, out);
            }
        }
    }

    /// The period is over.
    pub(super) fn checkpoint_due(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.checkpoint_at = Some(now.mono_us + AGAIN);
        if job.suspended() || job.note.mark.kill.is_some() {
            return;
        }
        job.note.mark.wanted.get_or_insert_default();
        self.begin_checkpoint(now, key, out);
    }
}
