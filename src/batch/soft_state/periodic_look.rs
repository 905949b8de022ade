//! When jobs are looked at again and again for one purpose: those that were suspended for too long
//! (MIG), those that hang (REMOVE_HUNG_JOBS_FOR). The looks themselves are in `lifecycle`.

use crate::model::Now;

/// The instant of the next look, microseconds of the monotonic clock; soft state.
#[derive(Debug, Default)]
pub struct PeriodicLook {
    next: Option<u64>,
}

impl PeriodicLook {
    /// Is a look due? `wanted`: there may be anything to be found; `pause`: seconds between two
    /// looks. The look begins.
    pub(crate) fn begin(&mut self, now: Now, pause: u64, wanted: bool) -> bool {
        let due = wanted && self.next.is_none_or(|at| at <= now.mono_us);
        if due || !wanted {
            self.next = wanted.then_some(now.after(pause));
        }
        due
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        self.next
    }
}
