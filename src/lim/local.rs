//! The state of this host beside its load: the lock of its administrator, and the presence of RES.

use crate::model::time::US;
use crate::proto::lim::status;

/// Shortest time for which RES may be away, seconds.
pub const RES_ACTIVE_MIN: u64 = 10;

/// The state of this host alone.
#[derive(Debug, Default)]
pub struct LocalHost {
    /// Locked by its administrator until then.
    pub(super) lock: Option<u64>,
    /// The last time RES was seen; the time of the next check.
    pub(super) res_seen: u64,
    pub(super) res_at: u64,
    pub(super) res_active: u64,
    /// The present.
    pub now: u64,
}

impl LocalHost {
    pub fn start(&mut self, now: u64) {
        (self.res_seen, self.res_at) = (now, now + 2 * US);
    }

    /// The bits of the status.
    pub fn status(&self, now: u64) -> u32 {
        let lock = if self.lock.is_some_and(|until| now < until) { status::LOCK_U } else { 0 };
        let gone = now.saturating_sub(self.res_seen) > self.res_active.max(RES_ACTIVE_MIN * US);
        lock | if gone { status::RES_DOWN } else { 0 }
    }
}
