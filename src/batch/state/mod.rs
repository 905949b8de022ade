//! The state of mbatchd: exactly what lsb.events holds. `apply` is the only function that changes
//! it; nothing in here is known only to the running process.
//!
//! An array is one record until an element differs: untouched elements live in a bit set, only
//! those that have started, ended or been held have an [`Elem`] of their own.

pub mod apply;
pub mod array;
pub mod change;
pub mod counts;
pub mod element;
pub mod element_groups;
pub mod elements;
pub mod ineligible;
pub mod job;
pub mod last_actions;
pub mod named;
pub mod names;
pub mod retries;
pub mod same;
pub mod space;
pub mod started_elements;
pub mod tries;
pub mod untouched;

pub use crate::batch::state::array::{Array, ElementGroup, ElementSpec};
use crate::batch::state::counts::Counts;
pub use crate::batch::state::element::{
    Bar, Elem, ElemState, ElementView, End, Exec, Pend, Phase, Run, Soft, Tries,
};
use crate::batch::state::ineligible::Waited;
pub use crate::batch::state::job::{Body, Job, Tally};
use crate::batch::state::last_actions::LastActions;
use crate::batch::state::named::{ByName, Groups};
use crate::batch::state::names::{HostId, Names, QueueId};
use crate::batch::state::retries::Retries;
use crate::batch::state::space::Space;
pub use crate::batch::state::untouched::Untouched;
use crate::model::event::QueuePosition;
use crate::model::idmap::IdMap;
use crate::model::job::{JobSpec, SpoolRef};
use crate::model::{ByteStr, JobKey, JobRef};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// How long a request id is kept for a retry of its submission, seconds.
pub const REQUEST_WINDOW: i64 = 3600;

/// Kinds of job looked through for the one that a submission is of.
const KINDS: usize = 16;

/// Hosts by the host group or compute unit that they were added to (badmin hghostadd).
pub type AddedHosts = BTreeMap<String, BTreeSet<String>>;

/// Everything that survives a restart.
#[derive(Debug, Default)]
pub struct State {
    pub names: Names,
    /// Boxed: the nodes of a map that grows at its end are little more than half full.
    pub jobs: BTreeMap<u32, Box<Job>>,
    /// The ID tried next.
    pub next_job: u32,
    /// When the log that this was read from was begun by a switch, seconds since the epoch; 0: it
    /// was not.
    pub carried_at: i64,
    /// When mbatchd was started last, seconds since the epoch.
    pub started_at: i64,
    /// The place of the next submission in first-come order.
    pub next_order: u64,
    /// Request -> job, for the retry window.
    pub requests: HashMap<Request, u32>,
    pub request_ages: VecDeque<(i64, Request)>,
    pub queue_ctl: IdMap<QueueId, QueueCtl>,
    pub host_ctl: IdMap<HostId, HostCtl>,
    /// Dynamic hosts that were added to host groups and compute units.
    pub group_hosts: AddedHosts,
    pub counts: Counts,
    /// The space that the jobs of each user take.
    pub space: Space,
    /// The outcomes of control requests, for their retries.
    pub retries: Retries,
    /// User groups that jobs were submitted with.
    pub given_groups: BTreeSet<String>,
    /// Large arrays that have left memory and are taken apart bit by bit.
    pub remains: Vec<Box<Job>>,
    /// Jobs finished since the last switch.
    pub finished: u64,
    /// IDs that must not be given again although no job of that ID is known.
    pub reserved: BTreeSet<u32>,
    /// Jobs that btop or bbot gave another place in the order of dispatch.
    pub moved: BTreeMap<u32, QueuePosition>,
    /// The places in the spool of the submissions that jobs were changed to.
    pub changed: BTreeMap<u32, Vec<SpoolRef>>,
    /// Command, script and environment of jobs before bmod first changed them.
    pub first: BTreeMap<u32, First>,
    /// Failed starts and requeues of elements that have not ended.
    pub tries: BTreeMap<JobRef, Tries>,
    /// The jobs in memory by user and name.
    pub by_name: ByName,
    /// The jobs that names stand for in dependency conditions.
    pub groups: Groups,
    /// Attempts that were given up with their hosts: each may still run there.
    pub left: BTreeMap<JobRef, Vec<Left>>,
    /// Ended attempts after which commands still run.
    pub posts: BTreeSet<JobKey>,
    /// The last kill, suspend and resume of each job.
    pub issued: LastActions,
    /// Started elements that have their hosts to themselves (bsub -x).
    pub alone: BTreeSet<JobRef>,
    /// How long jobs and elements could not be dispatched whatever room there was, while that is
    /// tracked; idx 0 of an array: those of its elements that are not here by themselves.
    pub waited: BTreeMap<JobRef, Waited>,
    /// Jobs (arrays: with their last element) in the order in which they finished, for cleaning.
    pub ended: VecDeque<(i64, u32)>,
    /// When the last element of an array ended, of arrays that are in `ended`.
    pub last_ends: BTreeMap<u32, i64>,
    /// The kinds of job submitted lately, the latest match first: jobs of a kind share it.
    pub kinds: Vec<Arc<JobSpec>>,
}

impl State {
    /// A submission like this one, shared with the jobs of the same kind.
    pub fn kind(&mut self, spec: &Arc<JobSpec>) -> Arc<JobSpec> {
        // a record that was just read has the one of the record before it
        if self.kinds.first().is_some_and(|kind| Arc::ptr_eq(kind, spec)) {
            return spec.clone();
        }
        match self.kinds.iter().position(|kind| **kind == **spec) {
            Some(at) => self.kinds.swap(0, at),
            None => {
                self.kinds.truncate(KINDS - 1);
                self.kinds.push(spec.clone());
                let last = self.kinds.len() - 1;
                self.kinds.swap(0, last);
            }
        }
        self.kinds[0].clone()
    }
}

/// A request id as it is kept: what `bsub` makes, 32 digits, by its value, any other by its
/// SHA-256, cut to the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request([u64; 2]);

impl Request {
    pub fn of(text: &str) -> Request {
        let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        let value = match text.len() == 32 && text.bytes().all(digit) {
            true => u128::from_str_radix(text, 16).unwrap_or_default().to_be_bytes(),
            false => {
                use sha2::Digest;
                let mut cut = [0; 16];
                cut.copy_from_slice(&sha2::Sha256::digest(text)[..16]);
                cut
            }
        };
        let half = |at: usize| value[at..at + 8].iter().fold(0, |n, b| n << 8 | u64::from(*b));
        Request([half(0), half(8)])
    }
}

/// An attempt whose host could not be asked when its job was requeued or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub key: JobKey,
    /// The first host of the attempt.
    pub host: HostId,
    /// Slots that it holds there for as long as it runs.
    pub slots: u32,
}

/// The first command, script and environment of a job that bmod has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct First {
    pub command: ByteStr,
    /// The command shows a script.
    pub scripted: bool,
    pub script: SpoolRef,
    pub env: SpoolRef,
}

/// The last QUEUE_CTRL of a queue.
#[derive(Clone, Debug, Default)]
pub struct QueueCtl {
    pub closed: bool,
    pub inactive: bool,
    pub comment: String,
    pub by: (u32, String),
    pub time: i64,
}

/// The last HOST_CTRL of a host.
#[derive(Clone, Debug, Default)]
pub struct HostCtl {
    /// Without a lock ID.
    pub closed: bool,
    /// The lock IDs that keep it closed (hclose -i).
    pub locks: BTreeSet<String>,
    pub comment: String,
    pub by: (u32, String),
    pub time: i64,
}

impl HostCtl {
    pub fn shut(&self) -> bool {
        self.closed || !self.locks.is_empty()
    }
}

impl State {
    /// When a job that is in `ended` ended last, seconds since the epoch.
    pub fn last_end(&self, job: &Job) -> i64 {
        match &job.body {
            Body::Single(Elem { state: ElemState::End(e), .. }) => e.end_time,
            Body::Single(_) => 0,
            Body::Array(_) => self.last_ends.get(&job.id).copied().unwrap_or(0),
        }
    }
    /// The last control record of a queue, by its name.
    pub fn queue_ctl_of(&self, name: &str) -> Option<&QueueCtl> {
        self.queue_ctl.get(&self.names.queues.find(name)?)
    }
    /// The last control record of a host, by its name.
    pub fn host_ctl_of(&self, name: &str) -> Option<&HostCtl> {
        self.host_ctl.get(&self.names.hosts.find(name)?)
    }
    pub fn job(&self, id: u32) -> Option<&Job> {
        self.jobs.get(&id).map(Box::as_ref)
    }
    /// All jobs, by ID.
    pub fn each_job(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(Box::as_ref)
    }
    pub fn elem(&self, at: JobRef) -> Option<&Elem> {
        self.jobs.get(&at.job)?.elem(at.idx)
    }
    /// The started attempt, if the element runs under just this key.
    pub fn running(&self, key: JobKey) -> Option<&Run> {
        match &self.elem(key.job_ref())?.state {
            ElemState::Run(r) if r.key == key => Some(r),
            _ => None,
        }
    }
    /// Has the element been started and not ended?
    pub fn running_at(&self, at: JobRef) -> bool {
        matches!(self.elem(at).map(|e| &e.state), Some(ElemState::Run(_)))
    }
    pub fn running_mut(&mut self, key: JobKey) -> Option<&mut Run> {
        match &mut self.jobs.get_mut(&key.job)?.elem_mut(key.idx)?.state {
            ElemState::Run(r) if r.key == key => Some(r),
            _ => None,
        }
    }
    /// The place of a part of a job among those of its priority.
    pub fn spot_of(&self, job: &Job, part: u32) -> QueuePosition {
        job.part(part).and_then(|p| p.look.spot).unwrap_or_else(|| self.spot(job))
    }
    /// The place of a job among those of its priority.
    pub fn spot(&self, job: &Job) -> QueuePosition {
        let own = || QueuePosition::submitted(job.submit_time, job.id);
        self.moved.get(&job.id).copied().unwrap_or_else(own)
    }
    /// An ID that neither is known nor may still be in a log.
    pub fn free_id(&self, max: u32) -> Option<u32> {
        let next = self.next_job.clamp(1, max);
        let last = [self.jobs.last_key_value().map(|j| *j.0), self.reserved.last().copied()];
        let all_below = last.into_iter().flatten().all(|id| id <= max);
        // each known ID is below the largest, and there are as many: none is left
        if all_below && self.jobs.len() + self.reserved.len() >= max as usize {
            return None;
        }
        self.free_in(next, max).or_else(|| self.free_in(1, next))
    }

    /// The first free ID from `first` to `last`. The known IDs are walked in order: a look-up of
    /// each would take long where nearly all are known.
    fn free_in(&self, first: u32, last: u32) -> Option<u32> {
        let mut jobs = self.jobs.range(first..=last).map(|j| *j.0).peekable();
        let mut reserved = self.reserved.range(first..=last).copied().peekable();
        (first..=last).find(|id| {
            let known = jobs.next_if_eq(id).is_some();
            !(reserved.next_if_eq(id).is_some() || known)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_id_is_the_next_that_is_not_known_and_none_where_all_are() {
        let free = |known: &[u32], next, max| {
            let reserved = known.iter().copied().collect();
            State { next_job: next, reserved, ..State::default() }.free_id(max)
        };
        assert_eq!(free(&[], 1, 9), Some(1));
        assert_eq!(free(&[2, 3, 5], 2, 9), Some(4));
        assert_eq!(free(&[7, 8, 9], 7, 9), Some(1));
        assert_eq!(free(&[1, 2, 4], 2, 4), Some(3));
        assert_eq!(free(&[1, 2, 3, 4], 2, 4), None);
        // an ID beyond the largest is none of those that may be given
        assert_eq!(free(&[1, 3, 4, 9], 3, 4), Some(2));
        assert_eq!(free(&[1, 2, 3, 4, 9], 3, 4), None);
        assert_eq!(free(&[1], 99, 4), Some(4));
    }
}
