//! Messages of long work that wait for a sync. All these messages leave in one turn, once the sync
//! has ended; so long work pauses for the sync when they are many. Messages of requests are not
//! counted: a stream of requests would keep long work from getting on.

use crate::net::limits::HELD_BEFORE_WORK;

/// How many messages of long work wait for a sync, at most.
#[derive(Debug, Default)]
pub struct HeldWork(usize);

impl HeldWork {
    /// May long work go on?
    pub fn goes_on(&self) -> bool {
        self.0 < HELD_BEFORE_WORK
    }

    /// Counts the messages of a unit of long work. If no sync is due they have left already.
    pub fn sent(&mut self, messages: usize, sync_due: bool) {
        if sync_due {
            self.0 += messages;
        }
    }

    /// A sync has ended, or failed: its messages have left.
    pub fn synced(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_work_pauses_for_its_own_held_messages_until_a_sync_ends() {
        let mut held = HeldWork::default();
        held.sent(HELD_BEFORE_WORK - 1, true);
        assert!(held.goes_on());
        held.sent(1, true);
        assert!(!held.goes_on());
        held.synced();
        assert!(held.goes_on());
    }

    #[test]
    fn messages_that_leave_at_once_hold_nothing_up() {
        let mut held = HeldWork::default();
        held.sent(10 * HELD_BEFORE_WORK, false);
        assert!(held.goes_on(), "no sync ends that would let it go on");
    }
}
