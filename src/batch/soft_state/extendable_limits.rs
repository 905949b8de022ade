//! When the run limits of started jobs of queues with EXTENDABLE_RUNLIMIT are reached: a walk over
//! all started jobs once a minute finds those whose limit is near, and these have a timer each.
//! The decisions are in `lifecycle::extendable_limits`.

use crate::batch::soft_state::periodic_look::PeriodicLook;
use crate::batch::soft_state::started_walk::{StartedThere, StartedWalk};
use crate::batch::state::counts::Counts;
use crate::model::{JobRef, Now};
use std::collections::BTreeSet;

/// Seconds between two walks. A limit that is reached before the next but one has a timer.
const PAUSE: u64 = 60;

/// Limits that are reached soon; soft state.
#[derive(Debug, Default)]
pub struct ExtendableLimits {
    looks: PeriodicLook,
    walk: StartedWalk,
    /// The second of each since the epoch.
    near: BTreeSet<(i64, JobRef)>,
}

impl ExtendableLimits {
    /// The started jobs that this turn looks at; `wanted`: some queue extends run limits.
    pub(crate) fn slice(&mut self, now: Now, wanted: bool, counts: &Counts) -> Vec<StartedThere> {
        if self.looks.begin(now, PAUSE, wanted) {
            self.walk.begin();
        }
        if !wanted {
            self.walk.stop();
            self.near.clear();
        }
        self.walk.slice(counts)
    }

    /// A job reaches its limit at this second: it has a timer if that is near.
    pub(crate) fn note(&mut self, at: JobRef, end: i64, now: i64) {
        if end < now.saturating_add(2 * PAUSE as i64) {
            self.near.insert((end, at));
        }
    }

    /// The next job that has reached its limit.
    pub(crate) fn take(&mut self, now: i64) -> Option<JobRef> {
        let first = self.near.first().copied().filter(|first| first.0 <= now)?;
        self.near.remove(&first);
        Some(first.1)
    }

    /// When something is due: `now` as the last step was told.
    pub(crate) fn deadline(&self, now: Now) -> Option<u64> {
        let near = self.near.first().map(|first| now.mono_of_wall(first.0));
        [self.looks.deadline(), self.walk.deadline(), near].into_iter().flatten().min()
    }
}
