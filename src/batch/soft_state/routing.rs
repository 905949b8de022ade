//! The requests that wait in pipe queues. `lifecycle::route` fills it, asks and decides.
//!
//! Invariant: a request is in `due` exactly while it waits for its next try. All of it can be
//! rebuilt: after a restart every request is tried at once.

use crate::batch::state::names::{HostId, QueueId};
use crate::model::JobRef;
use crate::model::time::US;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Time between two tries of a request for which something may have changed, microseconds.
pub const WAKE_PAUSE: u64 = US;
/// Requests of one job that are routed at a time.
pub const REQUESTS_OF_JOB: usize = 1_000;

/// A request that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub queue: QueueId,
    /// When it entered the pipe queue, seconds since the epoch.
    pub since: i64,
    /// Why the last try has failed; empty: none was made.
    pub why: Rc<str>,
    /// The next try, microseconds of the monotonic clock; `None`: it is being tried.
    pub next: Option<u64>,
}

/// Requests that are asked about together.
#[derive(Clone, Debug)]
pub struct Group {
    pub queue: QueueId,
    pub requests: Vec<JobRef>,
}

/// Destinations in the order in which they are tried.
#[derive(Clone, Debug)]
pub struct Choice {
    pub queue: String,
    /// The host; `None`: any host of the queue.
    pub host: Option<String>,
    /// The value of the policy's sort; empty without a policy.
    pub value: String,
}

/// An answer that is being carried out.
#[derive(Debug)]
pub struct Deciding {
    pub group: Group,
    /// The policy applied; empty: the destinations are listed.
    pub policy: String,
    /// The generation of the policies applied.
    pub generation: u64,
    pub choices: Rc<[Choice]>,
    /// The requests that were tried.
    pub tried: usize,
    /// After the validation of files: the choice at which the request goes on, the refusals before
    /// it, and since when it waits there, microseconds of the monotonic clock.
    pub at: usize,
    pub refused: Vec<String>,
    pub since: Option<u64>,
}

impl Deciding {
    /// A decision that begins at the first choice.
    pub fn new(group: Group, choices: Rc<[Choice]>) -> Deciding {
        let (policy, generation, tried) = (String::new(), 0, 0);
        let (at, refused, since) = (0, Vec::new(), None);
        Deciding { group, policy, generation, choices, tried, at, refused, since }
    }
}

/// All of it.
#[derive(Debug, Default)]
pub struct Routing {
    /// Jobs that may have requests, or no longer.
    todo: BTreeSet<u32>,
    requests: BTreeMap<JobRef, Waiting>,
    due: BTreeSet<(u64, JobRef)>,
    deciding: VecDeque<Deciding>,
    /// Queries of a queue that are under way.
    under_way: BTreeMap<QueueId, u32>,
    /// The request attributes that a queue's policy looks at, by its last answer.
    looks_at: BTreeMap<QueueId, Rc<[String]>>,
    /// The generation for which it was said that a queue's policy does not exist.
    told_unknown: BTreeMap<QueueId, u64>,
    /// Something has changed for those whose try has failed: they are tried from this instant on.
    wake: Option<u64>,
    last_wake: u64,
    /// Requests that were routed to a queue that is `loadonly`, and have not started.
    bound: BTreeMap<(QueueId, HostId), BTreeSet<JobRef>>,
    bound_at: BTreeMap<JobRef, (QueueId, HostId)>,
}

impl Routing {
    /// Something about a job has changed.
    pub(crate) fn touch(&mut self, job: u32) {
        self.todo.insert(job);
    }

    /// The state was read anew: what was known of requests is void.
    pub(crate) fn forget_requests(&mut self) {
        self.requests.clear();
        self.due.clear();
        self.deciding.clear();
        self.bound.clear();
        self.bound_at.clear();
    }

    /// Every job that it knows a request of is looked at again.
    pub(crate) fn touch_all(&mut self) {
        self.todo.extend(self.requests.keys().map(|at| at.job));
    }

    pub(crate) fn next_touched(&mut self) -> Option<u32> {
        self.todo.pop_first()
    }

    /// Is there nothing at all?
    pub(crate) fn is_idle(&self) -> bool {
        self.todo.is_empty() && self.requests.is_empty() && self.deciding.is_empty()
    }

    /// A request waits in a pipe queue; one that does already stays as it is.
    pub(crate) fn admit(&mut self, at: JobRef, queue: QueueId, since: i64, now: u64) {
        if let Some(known) = self.requests.get(&at) {
            if known.queue == queue {
                return;
            }
            self.drop_request(at);
        }
        let why = Rc::from("");
        self.requests.insert(at, Waiting { queue, since, why, next: Some(now) });
        self.due.insert((now, at));
    }

    /// The requests of a job.
    pub(crate) fn of_job(&self, job: u32) -> Vec<JobRef> {
        let all = JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX };
        self.requests.range(all).map(|(at, _)| *at).collect()
    }

    pub(crate) fn drop_request(&mut self, at: JobRef) {
        if let Some(Waiting { next: Some(next), .. }) = self.requests.remove(&at) {
            self.due.remove(&(next, at));
        }
    }

    pub(crate) fn get(&self, at: JobRef) -> Option<&Waiting> {
        self.requests.get(&at)
    }

    /// The queue that a request waits in, and since when, seconds since the epoch: not later than
    /// `now`, as a clock may be set back.
    pub(crate) fn waits_since(&mut self, at: JobRef, now: i64) -> Option<(QueueId, i64)> {
        let waiting = self.requests.get_mut(&at)?;
        waiting.since = waiting.since.min(now);
        Some((waiting.queue, waiting.since))
    }

    /// The requests whose next try has come, up to so many: they are being tried.
    pub(crate) fn take_due(&mut self, now: u64, most: usize) -> Vec<JobRef> {
        if self.wake.is_some_and(|at| at <= now) {
            self.wake = None;
            self.last_wake = now;
            for (at, waiting) in &mut self.requests {
                if let Some(next) = waiting.next.filter(|next| *next > now) {
                    self.due.remove(&(next, *at));
                    self.due.insert((now, *at));
                    waiting.next = Some(now);
                }
            }
        }
        let some: Vec<_> =
            self.due.iter().take_while(|due| due.0 <= now).take(most).copied().collect();
        for due in &some {
            self.due.remove(due);
            if let Some(waiting) = self.requests.get_mut(&due.1) {
                waiting.next = None;
            }
        }
        some.into_iter().map(|due| due.1).collect()
    }

    /// A try has failed, or was not made: the next one.
    pub(crate) fn put_off(&mut self, at: JobRef, why: Option<&Rc<str>>, next: u64) {
        let Some(waiting) = self.requests.get_mut(&at) else { return };
        if let Some(before) = waiting.next {
            self.due.remove(&(before, at));
        }
        if let Some(why) = why {
            waiting.why = why.clone();
        }
        waiting.next = Some(next);
        self.due.insert((next, at));
    }

    /// Something has changed that may matter to those that wait.
    pub(crate) fn note_room(&mut self, now: u64) {
        if !self.requests.is_empty() && self.wake.is_none() {
            self.wake = Some(now.max(self.last_wake.saturating_add(WAKE_PAUSE)));
        }
    }

    /// All are tried at once: the configuration is another one.
    pub(crate) fn renew(&mut self, now: u64) {
        self.looks_at.clear();
        self.note_room(now);
    }

    /// The policies of a server are others: their answers may be, too.
    pub(crate) fn note_policies(&mut self, now: u64) {
        self.looks_at.clear();
        self.note_room(now);
    }

    /// May a queue have another query under way?
    pub(crate) fn may_ask(&self, queue: QueueId, most: u32) -> bool {
        self.under_way.get(&queue).is_none_or(|n| *n < most)
    }

    /// The request attributes that a queue's policy looks at; `None`: not known yet.
    pub(crate) fn looks_at(&self, queue: QueueId) -> Option<&Rc<[String]>> {
        self.looks_at.get(&queue)
    }

    /// An answer tells what the policy of a queue looks at.
    pub(crate) fn note_looks_at(&mut self, queue: QueueId, used: &[String]) {
        self.looks_at.insert(queue, used.into());
    }

    /// Is it to be said that a queue's policy does not exist? Once a generation.
    pub(crate) fn tells_unknown(&mut self, queue: QueueId, generation: u64) -> bool {
        self.told_unknown.insert(queue, generation) != Some(generation)
    }

    /// A query of a queue is under way.
    pub(crate) fn query_begun(&mut self, queue: QueueId) {
        *self.under_way.entry(queue).or_default() += 1;
    }

    /// A query of a queue was answered, or no server answers it.
    pub(crate) fn query_ended(&mut self, queue: QueueId) {
        if let Some(n) = self.under_way.get_mut(&queue) {
            *n = n.saturating_sub(1);
        }
    }

    /// Are there requests that wait?
    pub(crate) fn waits(&self) -> bool {
        !self.requests.is_empty()
    }

    pub(crate) fn decide(&mut self, deciding: Deciding) {
        self.deciding.push_back(deciding);
    }

    pub(crate) fn next_decision(&mut self) -> Option<Deciding> {
        self.deciding.pop_front()
    }

    /// Puts back what is not at its end.
    pub(crate) fn decide_further(&mut self, deciding: Deciding) {
        self.deciding.push_front(deciding);
    }

    /// A pending request is bound to a host of a `loadonly` queue, or no longer.
    pub(crate) fn set_bound(&mut self, at: JobRef, to: Option<(QueueId, HostId)>) {
        if self.bound_at.get(&at) == to.as_ref() {
            return;
        }
        if let Some(before) = self.bound_at.remove(&at)
            && let Some(all) = self.bound.get_mut(&before)
        {
            all.remove(&at);
            if all.is_empty() {
                self.bound.remove(&before);
            }
        }
        if let Some(to) = to {
            self.bound_at.insert(at, to);
            self.bound.entry(to).or_default().insert(at);
        }
    }

    /// The requests of a job that are known to be bound.
    pub(crate) fn bound_of(&self, job: u32) -> Vec<JobRef> {
        let all = JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX };
        self.bound_at.range(all).map(|(at, _)| *at).collect()
    }

    /// Does a request wait there that is bound to it?
    pub(crate) fn is_bound_to(&self, queue: QueueId, host: HostId) -> bool {
        self.bound.contains_key(&(queue, host))
    }

    /// When there is something to do, microseconds of the monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        if !self.todo.is_empty() || !self.deciding.is_empty() {
            return Some(0);
        }
        let due = self.due.first().map(|due| due.0);
        // those that were to be woken may have gone since
        due.into_iter().chain(self.wake.filter(|_| self.waits())).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_due_when_the_requests_to_be_woken_are_gone() {
        let (mut routing, at) = (Routing::default(), JobRef { job: 1, idx: 0 });
        let queue = crate::batch::state::names::Names::default().queue_id("p");
        routing.admit(at, queue, 0, 5);
        assert_eq!(routing.take_due(5, 9), [at]);
        routing.note_room(6);
        assert_eq!(routing.deadline(), Some(US));
        routing.drop_request(at);
        assert!(routing.is_idle());
        assert_eq!(routing.deadline(), None, "mbatchd would turn without end");
        // what comes later is tried, and the others with it
        routing.admit(at, queue, 0, 2 * US);
        assert_eq!((routing.take_due(2 * US, 9), routing.deadline()), (vec![at], None));
    }
}
