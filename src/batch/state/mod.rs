//! The state of mbatchd: exactly what lsb.events holds. `apply` is the only function that changes
//! it; nothing in here is known only to the running process.
//!
//! An array is one record until an element differs: untouched elements live in a bit set, only
//! those that have started, ended or been held have an [`Elem`] of their own.

pub mod apply;
pub mod array;
mod array_signal;
pub mod change;
mod chunked;
pub mod chunks;
pub mod counts;
pub mod element;
pub mod element_groups;
pub mod element_table;
pub mod elements;
pub mod ended_jobs;
mod id_vec;
pub mod ineligible;
pub mod job;
pub mod job_groups;
pub mod job_hosts;
mod job_start;
pub mod last_actions;
pub mod last_starts;
pub mod left_attempts;
pub mod messages;
pub mod modifications;
pub mod named;
pub mod names;
mod reported;
pub mod request_ids;
pub mod reservations;
pub mod resize;
mod resized;
pub mod retries;
pub mod same;
pub mod slot_reservations;
mod slots_reserved;
pub mod space;
pub mod started_elements;
mod submission;
pub mod tally;
pub mod tries;
pub mod untouched;

pub use crate::batch::state::array::{Array, ElementGroup, ElementSpec};
use crate::batch::state::chunks::Chunks;
use crate::batch::state::counts::Counts;
pub use crate::batch::state::element::{
    Bar, CheckpointState, Elem, ElemState, ElementEnd, ElementView, Exec, LastWords, Pend, Phase,
    PreemptionHistory, Run, Soft, Tries,
};
use crate::batch::state::ended_jobs::{EndedJobs, KeepEnded, Leaving};
use crate::batch::state::ineligible::Ineligible;
pub use crate::batch::state::job::{Body, Job};
use crate::batch::state::job_groups::JobGroups;
use crate::batch::state::last_actions::LastActions;
use crate::batch::state::last_starts::LastStarts;
pub use crate::batch::state::left_attempts::LeftAttempt;
use crate::batch::state::left_attempts::{LeftAttempts, RunningPosts};
use crate::batch::state::messages::JobMessages;
use crate::batch::state::modifications::Modifications;
use crate::batch::state::named::JobNames;
use crate::batch::state::names::{HostId, Names, QueueId, UserId};
use crate::batch::state::request_ids::SubmitRequests;
use crate::batch::state::reservations::Reservations;
use crate::batch::state::retries::{Done, Retries};
use crate::batch::state::slot_reservations::SlotReservations;
use crate::batch::state::space::Space;
pub use crate::batch::state::tally::Tally;
use crate::batch::state::tries::ElementTries;
pub use crate::batch::state::untouched::Untouched;
use crate::lang::depend::DepExpr;
use crate::model::event::{Ctrl, QueuePosition};
use crate::model::idmap::IdMap;
use crate::model::idtable::IdTable;
use crate::model::job::JobSpec;
use crate::model::{JobKey, JobRef};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Recent specs searched for one equal to a new submission.
const KINDS: usize = 16;

/// Hosts by the host group or compute unit that they were added to (badmin hghostadd).
pub type AddedHosts = BTreeMap<String, BTreeSet<String>>;

/// Everything that survives a restart.
#[derive(Debug, Default)]
pub struct State {
    names: Names,
    /// Boxed: IDs between those of jobs that are in memory take room.
    jobs: IdTable<Box<Job>>,
    /// The ID tried next.
    next_job: u32,
    /// When the log that this was read from was begun by a switch, seconds since the epoch; 0: it
    /// was not.
    carried_at: i64,
    /// When mbatchd was started last, seconds since the epoch.
    started_at: i64,
    /// The place of the next submission in first-come order.
    next_order: u64,
    /// The jobs that requests made, for retries of these.
    requests: SubmitRequests,
    queue_control: IdMap<QueueId, QueueControl>,
    host_control: IdMap<HostId, HostControl>,
    /// Dynamic hosts that were added to host groups and compute units.
    group_hosts: AddedHosts,
    counts: Counts,
    /// The space that the jobs of each user take.
    space: Space,
    /// The outcomes of control requests, for their retries.
    retries: Retries,
    /// User groups that jobs were submitted with.
    given_groups: BTreeSet<String>,
    /// Large arrays that have left memory and are taken apart bit by bit.
    remains: Vec<Job>,
    /// Jobs finished since the last switch.
    finished: u64,
    /// IDs that must not be given again although no job of that ID is known.
    reserved: BTreeSet<u32>,
    /// Jobs that btop or bbot gave another place in the order of dispatch.
    moved: BTreeMap<u32, QueuePosition>,
    /// The bytes of jobs that bmod changed.
    modifications: Modifications,
    job_groups: JobGroups,
    reservations: Reservations,
    /// The external messages of jobs.
    messages: JobMessages,
    /// Failed starts and requeues of elements that have not ended.
    tries: ElementTries,
    /// The jobs in memory by user and name, and the jobs that names stand for in conditions.
    job_names: JobNames,
    /// Attempts that were given up with their hosts: each may still run there.
    left: LeftAttempts,
    /// Ended attempts after which commands still run.
    posts: RunningPosts,
    /// The last kill, suspend and resume of each job.
    issued: LastActions,
    /// Started elements that have their hosts to themselves (bsub -x).
    alone: BTreeSet<JobRef>,
    /// The slots that pending jobs keep.
    slot_reservations: SlotReservations,
    /// Elements that wait for the slots of others.
    chunks: Chunks,
    /// How long jobs and elements could not be dispatched whatever room there was, while that is
    /// tracked.
    waited: Ineligible,
    last_starts: LastStarts,
    /// Ended jobs in the order in which they leave memory.
    ended: EndedJobs,
    /// The kinds of job submitted lately, the latest match first: jobs of a kind share it.
    kinds: Vec<Arc<JobSpec>>,
}

impl State {
    /// A submission like this one, shared with the jobs of the same kind.
    pub(super) fn kind(&mut self, spec: &Arc<JobSpec>) -> Arc<JobSpec> {
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

/// The last QUEUE_CTRL of a queue.
#[derive(Clone, Debug, Default)]
pub struct QueueControl {
    pub closed: bool,
    pub inactive: bool,
    pub comment: String,
    pub by: (u32, String),
    pub time: i64,
}

impl QueueControl {
    fn apply(&mut self, op: Ctrl, by: (u32, &str), comment: &str, time: i64) {
        match op {
            Ctrl::Open => self.closed = false,
            Ctrl::Close => self.closed = true,
            Ctrl::Activate => self.inactive = false,
            Ctrl::Inactivate => self.inactive = true,
        }
        (self.comment, self.by, self.time) = (comment.to_string(), (by.0, by.1.to_string()), time);
    }
}

/// The last HOST_CTRL of a host.
#[derive(Clone, Debug, Default)]
pub struct HostControl {
    /// The host is closed without a lock ID.
    pub closed: bool,
    /// The lock IDs that keep it closed (hclose -i).
    pub locks: BTreeSet<String>,
    pub comment: String,
    pub by: (u32, String),
    pub time: i64,
}

impl HostControl {
    fn apply(&mut self, op: Ctrl, lock: &str, by: (u32, &str), comment: &str, time: i64) {
        match (lock.is_empty(), op == Ctrl::Close) {
            (true, close) => self.closed = close,
            (false, true) => drop(self.locks.insert(lock.to_string())),
            (false, false) => drop(self.locks.remove(lock)),
        }
        (self.comment, self.by, self.time) = (comment.to_string(), (by.0, by.1.to_string()), time);
    }
    pub fn shut(&self) -> bool {
        self.closed || !self.locks.is_empty()
    }
}

impl State {
    /// The names of users, queues and hosts.
    pub fn names(&self) -> &Names {
        &self.names
    }
    /// Names belong to the process, not to the log: reading the configuration may add some.
    pub(crate) fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }
    /// The state before the first record of a log.
    pub fn new() -> State {
        State { next_job: 1, ..State::default() }
    }
    /// A new state for reading a log; ids keep their meaning.
    pub(crate) fn begin_anew(&mut self) {
        *self = State { names: std::mem::take(&mut self.names), ..State::new() };
    }
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
    /// The space that the jobs of each user take.
    pub fn space(&self) -> &Space {
        &self.space
    }
    pub fn modifications(&self) -> &Modifications {
        &self.modifications
    }
    pub fn job_groups(&self) -> &JobGroups {
        &self.job_groups
    }
    /// The advance reservations.
    pub fn reservations(&self) -> &Reservations {
        &self.reservations
    }
    pub fn messages(&self) -> &JobMessages {
        &self.messages
    }
    pub fn tries(&self) -> &ElementTries {
        &self.tries
    }
    pub fn left(&self) -> &LeftAttempts {
        &self.left
    }
    pub fn posts(&self) -> &RunningPosts {
        &self.posts
    }
    pub fn waited(&self) -> &Ineligible {
        &self.waited
    }
    pub fn ended(&self) -> &EndedJobs {
        &self.ended
    }
    pub fn job_names(&self) -> &JobNames {
        &self.job_names
    }
    pub fn last_actions(&self) -> &LastActions {
        &self.issued
    }
    /// Started elements that have their hosts to themselves (bsub -x).
    pub fn exclusive(&self) -> &BTreeSet<JobRef> {
        &self.alone
    }
    /// Dynamic hosts that were added to host groups and compute units.
    pub fn group_hosts(&self) -> &AddedHosts {
        &self.group_hosts
    }
    /// Was a job submitted with this user group?
    pub fn has_given_group(&self, name: &str) -> bool {
        self.given_groups.contains(name)
    }
    /// The job that a submission with this request id made, if that was lately.
    pub fn requested_job(&self, request: &str) -> Option<u32> {
        self.requests.job_of(request)
    }
    /// The jobs and elements that a control request has acted on so far.
    pub fn done_by(&self, request: &str) -> Option<Done> {
        self.retries.of(request)
    }
    /// The place that the next submission gets in first-come order.
    pub fn next_order(&self) -> u64 {
        self.next_order
    }
    /// The ID tried next.
    pub fn next_job(&self) -> u32 {
        self.next_job
    }
    /// The preemptions of the earlier runs of an element.
    pub fn preempted_before(&self, at: JobRef) -> PreemptionHistory {
        self.tries.of(at).map_or(PreemptionHistory::default(), |tries| tries.preempted)
    }
    /// When mbatchd was started last, seconds since the epoch; 0: never.
    pub fn started_at(&self) -> i64 {
        self.started_at
    }
    /// When the log was begun by a switch, seconds since the epoch; 0: it was not.
    pub fn carried_at(&self) -> i64 {
        self.carried_at
    }
    /// When each host was given a job last.
    pub fn last_starts(&self) -> &LastStarts {
        &self.last_starts
    }
    /// Jobs finished since the last switch of the log.
    pub fn finished(&self) -> u64 {
        self.finished
    }
    /// The last control records of queues.
    pub fn queue_controls(&self) -> impl Iterator<Item = (QueueId, &QueueControl)> {
        self.queue_control.iter().map(|(queue, control)| (*queue, control))
    }
    /// The last control records of hosts.
    pub fn host_controls(&self) -> impl Iterator<Item = (HostId, &HostControl)> {
        self.host_control.iter().map(|(host, control)| (*host, control))
    }
    pub fn queue_control(&self, queue: QueueId) -> Option<&QueueControl> {
        self.queue_control.get(&queue)
    }
    pub fn host_control(&self, host: HostId) -> Option<&HostControl> {
        self.host_control.get(&host)
    }
    /// The last control record of a queue, by its name.
    pub fn queue_control_of(&self, name: &str) -> Option<&QueueControl> {
        self.queue_control(self.names.find_queue(name)?)
    }
    /// The last control record of a host, by its name.
    pub fn host_control_of(&self, name: &str) -> Option<&HostControl> {
        self.host_control(self.names.find_host(name)?)
    }
    /// An ended job that is due to leave memory; it is the caller's to clean, or to put back.
    pub(crate) fn take_ended(&mut self, now: i64, keep: KeepEnded) -> Option<Leaving> {
        self.ended.take(now, keep)
    }
    /// Keeps an ended job in memory as though it had ended then.
    pub(crate) fn put_back_ended(&mut self, leaving: Leaving) {
        self.ended.put_back(leaving);
    }
    /// IDs that must not be given again although no job of that ID is known.
    pub(crate) fn reserve_ids(&mut self, ids: impl Iterator<Item = u32>) {
        let jobs = &self.jobs;
        self.reserved.extend(ids.filter(|id| !jobs.contains_key(id)));
    }
    /// Must this ID not be given again although no job of it is known?
    pub fn is_reserved(&self, id: u32) -> bool {
        self.reserved.contains(&id)
    }
    /// Is a large array that has left memory still to be taken apart?
    pub fn has_remains(&self) -> bool {
        !self.remains.is_empty()
    }
    /// Frees a number of elements of a large array that has left memory.
    pub(crate) fn take_apart(&mut self, elements: usize) {
        let Some(job) = self.remains.last_mut() else { return };
        if job.take_apart(elements) {
            self.remains.pop();
        }
    }
    pub fn job(&self, id: u32) -> Option<&Job> {
        self.jobs.get(&id).map(Box::as_ref)
    }
    pub fn has_job(&self, id: u32) -> bool {
        self.jobs.contains_key(&id)
    }
    pub fn job_count(&self) -> usize {
        self.jobs.len()
    }
    /// All jobs, by ID.
    pub fn each_job(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(Box::as_ref)
    }
    /// The jobs from this ID on, by ID.
    pub fn jobs_from(&self, id: u32) -> impl Iterator<Item = &Job> {
        self.jobs.range(id..).map(|(_, job)| job.as_ref())
    }
    /// A user's jobs of this name (with `prefix`, whose names begin so), `most` of them, as they
    /// were submitted.
    pub fn named(&self, user: UserId, name: &str, prefix: bool, most: usize) -> Vec<&Job> {
        let ids = self.job_names.ids(user, name, prefix, most);
        let mut found: Vec<&Job> = ids.filter_map(|id| self.job(id)).collect();
        found.sort_by_key(|job| job.order);
        found
    }
    /// Can the names in a condition of a user be looked up in one turn?
    pub(crate) fn names_within(
        &self,
        user: &str,
        condition: &DepExpr,
        recorded: bool,
        last: bool,
    ) -> bool {
        let user = self.names.find_user(user);
        user.is_none_or(|user| self.job_names.within(user, condition, recorded, last))
    }
    /// The last submitted of a user's jobs of this name.
    pub fn last_named(&self, user: UserId, name: &str, prefix: bool) -> Option<&Job> {
        self.job(self.job_names.last(user, name, prefix, self.next_job)?)
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
        let last = [self.jobs.last_key(), self.reserved.last().copied()];
        let all_below = last.into_iter().flatten().all(|id| id <= max);
        // each known ID is below the largest, and there are as many: none is left
        if all_below && self.jobs.len() + self.reserved.len() >= max as usize {
            return None;
        }
        // nearly always the next one is
        if self.job(next).is_none() && !self.reserved.contains(&next) {
            return Some(next);
        }
        self.free_in(next, max).or_else(|| self.free_in(1, next))
    }

    /// The first free ID from `first` to `last`. The known IDs are walked in order: a look-up of
    /// each would take long where nearly all are known.
    fn free_in(&self, first: u32, last: u32) -> Option<u32> {
        let mut jobs = self.jobs.range(first..=last).map(|j| j.0).peekable();
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
