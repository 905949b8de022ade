//! When jobs that hang are looked for (REMOVE_HUNG_JOBS_FOR of lsb.params).

use crate::model::Now;
use crate::model::time::US;

/// Seconds between two looks.
const PAUSE: u64 = 60;

/// The instant of the next look, microseconds of the monotonic clock; soft state.
#[derive(Debug, Default)]
pub struct HungChecks {
    next: Option<u64>,
}

impl HungChecks {
    /// Is a look due? `wanted`: the site removes such jobs. The look begins.
    pub(crate) fn begin(&mut self, now: Now, wanted: bool) -> bool {
        let due = wanted && self.next.is_none_or(|at| at <= now.mono_us);
        if due || !wanted {
            self.next = wanted.then_some(now.mono_us + PAUSE * US);
        }
        due
    }

    /// More jobs hang than one look removes: the next one is due now.
    pub(crate) fn look_again(&mut self, now: Now) {
        self.next = Some(now.mono_us);
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        self.next
    }
}
