//! Checkpoints of running jobs: echkpnt is run as the user, in the task that JOB_CONTROLS has for
//! its commands, so that neither disturbs the other (echkpnt(8)).
//!
//! Invariants: of one attempt one checkpoint or command of JOB_CONTROLS runs at a time; the job
//! that ends while it is checkpointed to be killed is told of when the checkpoint has ended; a kill
//! waits for no checkpoint.

use super::agent::*;
use super::*;
use crate::exec::attempt::{HeldEnd, RunningControl, WantedCheckpoint};
use crate::model::checkpoint::{CheckpointEnd, CheckpointOrder};
use crate::model::job_control::ControlVerb;

/// The time for a checkpoint, seconds.
pub const CHECKPOINT_SECS: u64 = 3600;
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
                let wanted = WantedCheckpoint { order, asked: true, running: false };
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

    /// Begins the checkpoint that is wanted, if nothing else is being done to the job.
    pub(super) fn begin_checkpoint(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let open = job.stage == AttemptStage::Running && job.note.mark.control.is_none();
        let Some(wanted) = job.note.mark.wanted.as_mut().filter(|w| open && !w.running) else {
            return;
        };
        wanted.running = true;
        let (verb, since) = (ControlVerb::Checkpoint, now.secs());
        job.note.mark.control = Some(RunningControl { verb, since, why: 0, next: None });
        if job.sim_end.is_some() {
            return self.control_over(now, key, true, out);
        }
        job.control_by = Some(now.after(CHECKPOINT_SECS) + super::controls::OVERTIME);
        self.keep_note(key, out);
        self.start_command(now, key, out);
    }

    /// The checkpoint has ended: it is told of, and a job that was to end after it is ended.
    pub(super) fn checkpoint_over(
        &mut self,
        now: Now,
        key: JobKey,
        succeeded: bool,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let mark = &mut job.note.mark;
        let wanted = mark.wanted.take().unwrap_or_default();
        let (number, period) = (mark.checkpoint.number.saturating_add(1), mark.checkpoint.period);
        let kill = wanted.order.kill;
        mark.checkpoint = CheckpointEnd { number, succeeded, kill, asked: wanted.asked, period };
        let next = mark.next_wanted.take();
        mark.wanted = next.map(|order| WantedCheckpoint { order, asked: true, running: false });
        job.arm_checkpoint(now);
        if !succeeded {
            say(out, log::Level::Warn, format!("{key}: its checkpoint failed"));
        }
        if let Some(HeldEnd { setup, ended }) = job.held_end.take() {
            if succeeded && job.note.mark.exit_info == 0 {
                job.note.mark.exit_info = term::CHKPNT;
            }
            return self.ended(now, key, setup, *ended, out);
        }
        if job.stage != AttemptStage::Running {
            return;
        }
        self.tell_state(key, out);
        if succeeded && kill {
            self.start_termination(now, key, Cause::Asked(term::CHKPNT), out);
        }
    }

    /// Whether the end of a job is told later: while it is checkpointed to be killed.
    pub(super) fn holds_end(
        &mut self,
        key: JobKey,
        setup: &Option<Setup>,
        ended: &TaskEnd,
    ) -> bool {
        let Some(job) = self.jobs.get_mut(&key) else { return false };
        let kills = job.note.mark.wanted.is_some_and(|w| w.running && w.order.kill);
        let checkpoints = job.note.mark.control.is_some_and(|c| c.verb == ControlVerb::Checkpoint);
        if !kills || !checkpoints || job.stage != AttemptStage::Running {
            return false;
        }
        let (setup, ended) = (setup.clone(), Box::new(ended.clone()));
        job.held_end = Some(HeldEnd { setup, ended });
        true
    }
}
