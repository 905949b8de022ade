//! Checkpoints of the simulated jobs, seen from outside the machines: of one attempt no two are
//! made at a time, and a job begins from a checkpoint only where one of it succeeded.

use super::rng::Rng;
use crate::model::checkpoint::{Checkpoint, CheckpointOrder};
use crate::model::further::Further;
use crate::model::{JobKey, JobRef};
use std::collections::HashSet;

/// Share of the checkpoints that fail.
const FAILS: f64 = 0.2;

/// Do jobs of this cluster have checkpoint directories? In every third one.
pub(super) fn checkpoints(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

/// Every third job has a checkpoint directory, half of these with a period.
pub(super) fn checkpointing(further: &mut Further, may: bool, number: usize) {
    if may && number.is_multiple_of(3) {
        let text = if number.is_multiple_of(6) { "/c init=2 1" } else { "/c" };
        further.checkpoint = Checkpoint::parse(text).ok().map(Box::new);
    }
}

/// A random request of bchkpnt.
pub(super) fn random_order(rng: &mut Rng) -> CheckpointOrder {
    let period = rng.chance(0.2).then(|| rng.below(3) as u32);
    CheckpointOrder { kill: period.is_none() && rng.chance(0.4), force: rng.chance(0.2), period }
}

/// The time of a checkpoint, ms, and its exit code.
pub(super) fn echkpnt(rng: &mut Rng) -> (u64, i32) {
    (1 + rng.below(20_000), i32::from(rng.chance(FAILS)))
}

/// The checkpoints that succeeded.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    jobs: HashSet<JobRef>,
    attempts: HashSet<JobKey>,
}

impl Checkpoints {
    pub(super) fn ended(&mut self, key: JobKey, status: i32) {
        if status == 0 {
            self.jobs.insert(key.job_ref());
            self.attempts.insert(key);
        }
    }

    /// Is there a checkpoint that this job or element can begin from?
    pub(super) fn can_restart(&self, at: JobRef) -> bool {
        self.jobs.contains(&at)
    }

    /// Did a checkpoint of this attempt succeed?
    pub(super) fn of_attempt(&self, key: JobKey) -> bool {
        self.attempts.contains(&key)
    }
}
