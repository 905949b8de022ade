//! When jobs that were suspended for too long are looked for (MIG of lsb.queues).

use crate::model::Now;
use crate::model::time::US;

/// Seconds between two looks, while jobs are suspended for load.
const PAUSE: u64 = 5;

/// The instant of the next look, microseconds of the monotonic clock; soft state.
#[derive(Debug, Default)]
pub struct MigrationChecks {
    next: Option<u64>,
}

impl MigrationChecks {
    /// Is a look due? `some`: there are jobs that may have to migrate. The look begins.
    pub(crate) fn begin(&mut self, now: Now, some: bool) -> bool {
        let due = some && self.next.is_none_or(|at| at <= now.mono_us);
        if due || !some {
            self.next = some.then_some(now.mono_us + PAUSE * US);
        }
        due
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        self.next
    }
}
