//! Preemptions in vain: the job that had others preempted could not start all the same, and these
//! went on.
//!
//! A plan of the scheduler holds every condition for the start against the hosts, so it does not
//! happen unless something else has changed meanwhile. A job is not suspended and let go again and
//! again for any cause: jobs of the same queue and user leave it alone for a time, which
//! doubles each time.

use crate::batch::state::names::{QueueId, UserId};
use crate::model::JobRef;
use std::collections::BTreeMap;

/// For how long a job is left alone after the first time, seconds.
const FIRST_SECS: i64 = 1;
/// At most so long, seconds.
const LONGEST_SECS: i64 = 64;
/// The times are counted anew when a job has been left in peace for so long, seconds.
const FORGIVEN_SECS: i64 = 300;

/// A started element that jobs of a queue and user have preempted in vain.
#[derive(Clone, Debug)]
struct Vain {
    queue: QueueId,
    user: UserId,
    secs: i64,
    /// Seconds since the epoch.
    until: i64,
}

/// All of them; soft state.
#[derive(Clone, Debug, Default)]
pub(super) struct VainPreemptions(BTreeMap<JobRef, Vec<Vain>>);

impl VainPreemptions {
    /// An element goes on, preempted in vain for a job of this queue and user.
    pub(super) fn let_go(&mut self, victim: JobRef, (queue, user): (QueueId, UserId), now: i64) {
        let all = self.0.entry(victim).or_default();
        all.retain(|vain| vain.until + FORGIVEN_SECS > now);
        match all.iter_mut().find(|vain| (vain.queue, vain.user) == (queue, user)) {
            Some(vain) => {
                vain.secs = (vain.secs * 2).min(LONGEST_SECS);
                vain.until = now + vain.secs;
            }
            None => all.push(Vain { queue, user, secs: FIRST_SECS, until: now + FIRST_SECS }),
        }
    }

    /// The end of the time for which jobs of a queue and user leave an element alone, seconds since
    /// the epoch.
    pub(super) fn until(
        &self,
        at: JobRef,
        (queue, user): (QueueId, UserId),
        now: i64,
    ) -> Option<i64> {
        let own = |vain: &&Vain| (vain.queue, vain.user) == (queue, user);
        let vain = self.0.get(&at)?.iter().find(own)?;
        // a clock that was set back does not make it longer
        (vain.until - now <= vain.secs).then_some(vain.until)
    }

    /// An element runs no more.
    pub(super) fn forget(&mut self, at: JobRef) {
        self.0.remove(&at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::Id;

    #[test]
    fn the_time_doubles_up_to_a_bound_and_a_clock_that_is_set_back_ends_it() {
        let (mut all, victim) = (VainPreemptions::default(), JobRef { job: 1, idx: 0 });
        let by = (QueueId::from_index(0), UserId::from_index(0));
        let mut now = 1_000_000;
        let mut waits = Vec::new();
        for _ in 0..9 {
            all.let_go(victim, by, now);
            let until = all.until(victim, by, now).unwrap();
            waits.push(until - now);
            now = until;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!(all.until(victim, (by.0, UserId::from_index(1)), now), None);
        all.let_go(victim, by, now);
        assert_eq!(all.until(victim, by, now - 3600), None);
        all.forget(victim);
        assert_eq!(all.until(victim, by, now), None);
    }
}
