//! The state of mbatchd: exactly what lsb.events holds. `apply` is the only function that changes
//! it; nothing in here is known only to the running process.
//!
//! An array is one record until an element differs: untouched elements live in a bit set, only
//! those that have started, ended or been held have an [`Elem`] of their own.

pub mod apply;
pub mod change;
pub mod counts;
pub mod element_groups;
pub mod ineligible;
pub mod last_actions;
pub mod named;
pub mod names;
pub mod retries;
pub mod same;
pub mod space;
pub mod tries;
pub mod untouched;

use crate::batch::state::counts::{Counts, StartedElements};
use crate::batch::state::ineligible::Waited;
use crate::batch::state::last_actions::LastActions;
use crate::batch::state::named::{ByName, Groups};
use crate::batch::state::names::{HostId, Names, QueueId, UserId};
use crate::batch::state::retries::Retries;
use crate::batch::state::space::Space;
pub use crate::batch::state::untouched::Untouched;
use crate::lang::depend::{PostState, Resolved};
use crate::lang::jobname::{ArraySpec, JobName};
use crate::model::event::QueuePosition;
use crate::model::idmap::IdMap;
use crate::model::job::{JobSpec, SpoolRef, Usage, stat};
use crate::model::{ByteStr, JobKey, JobRef};
use crate::proto::sbd::Post;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::mem::take;
use std::rc::Rc;
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
    /// Where the spool holds what jobs were changed to.
    pub changed: BTreeMap<u32, Vec<SpoolRef>>,
    /// What jobs ran, and where, before bmod first changed that.
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
    /// What was last asked for, where and why.
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

/// How often an element went back to the queue without being asked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// After a run.
    pub requeues: u32,
    /// Hosts that it is not to be started on any more, until mbatchd is started again.
    pub passed: Vec<HostId>,
    /// When they were told last, seconds since the epoch.
    pub passed_at: i64,
    /// For a pre-execution command that failed; since it last ran.
    pub pre_exec: u32,
    /// For other starts that failed; since it last ran.
    pub failed: u32,
    /// The job waits from the first instant to the second, seconds since the epoch.
    pub wait: (i64, i64),
    /// Hosts that could not start it, since it last ran.
    pub bars: Vec<Bar>,
    /// The words of the last of them.
    pub note: String,
}

/// A host that an element is not to be started on for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    pub host: HostId,
    /// Seconds since the epoch.
    pub from: i64,
    pub until: i64,
    /// Pending reason.
    pub why: u32,
}

impl Bar {
    /// A clock that was put back ends it.
    pub fn holds(&self, now: i64) -> bool {
        (self.from..self.until).contains(&now)
    }
}

impl Tries {
    /// Does it wait, whatever host there is? A clock that was put back ends that.
    pub fn waits(&self, now: i64) -> bool {
        (self.wait.0..self.wait.1).contains(&now)
    }

    /// The job could be started, or something about it is another: starts that failed say nothing
    /// of the next.
    pub fn begin_anew(&mut self) {
        let (requeues, passed, passed_at) = (self.requeues, take(&mut self.passed), self.passed_at);
        *self = Tries { requeues, passed, passed_at, ..Tries::default() };
    }
}

/// An attempt whose host could not be asked when its job was requeued or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub key: JobKey,
    /// Its first host.
    pub host: HostId,
    /// Slots that it holds there for as long as it runs.
    pub slots: u32,
}

/// What a job was submitted with, where it has something else by now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct First {
    pub command: ByteStr,
    /// The command shows a script.
    pub scripted: bool,
    pub script: SpoolRef,
    pub env: SpoolRef,
}

/// What QUEUE_CTRL last said.
#[derive(Clone, Debug, Default)]
pub struct QueueCtl {
    pub closed: bool,
    pub inactive: bool,
    pub comment: String,
    pub by: (u32, String),
    pub time: i64,
}

/// What HOST_CTRL last said.
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

/// A submission.
#[derive(Debug)]
pub struct Job {
    pub id: u32,
    /// First come, first served.
    pub order: u64,
    pub uid: u32,
    pub gid: u32,
    pub user: UserId,
    pub queue: QueueId,
    pub submit_time: i64,
    pub spec: Arc<JobSpec>,
    pub name: JobName,
    pub env: SpoolRef,
    pub script: SpoolRef,
    pub exact: SpoolRef,
    pub depend: Option<Rc<Resolved>>,
    pub body: Body,
    /// How many elements are in which state.
    pub tally: Tally,
    /// The log lost part of the history: not dispatched until released.
    pub damaged: bool,
}

#[derive(Debug)]
pub enum Body {
    Single(Elem),
    Array(Box<Array>),
}

/// The elements of an array.
#[derive(Debug)]
pub struct Array {
    pub spec: ArraySpec,
    /// Elements nothing has happened to yet.
    pub fresh: Untouched,
    /// These were submitted to be held (bsub -H), for this pending reason.
    pub held: Option<u32>,
    /// All others that are still in memory.
    pub own: BTreeMap<u32, Elem>,
    /// Of those the started ones.
    pub started: BTreeSet<u32>,
    /// Of these the ones in no part, together.
    pub started_elements: StartedElements,
    /// Of those the pending ones that are not held and in no part.
    pub waiting: BTreeSet<u32>,
    /// How many have ended without success, by their exit status.
    pub exits: BTreeMap<Option<i32>, u32>,
    /// What some of those were changed to; an element names its part by number, from 1.
    pub parts: Vec<ElementGroup>,
}

/// Elements of an array that were changed alike: they are of another submission than the rest.
#[derive(Debug)]
pub struct ElementGroup {
    pub look: ElementSpec,
    /// Those in memory.
    pub elems: BTreeSet<u32>,
    /// Those of them that are pending and not held.
    pub waiting: BTreeSet<u32>,
    /// How many of them are pending, held ones too.
    pub pend: u32,
    /// How many of them are started.
    pub started: u32,
    /// The started elements of this part, counted together.
    pub started_elements: StartedElements,
}

/// In what the elements of a part differ.
#[derive(Clone, Debug)]
pub struct ElementSpec {
    pub queue: QueueId,
    pub spec: Arc<JobSpec>,
    /// Where btop or bbot put them; else they stand where their job does.
    pub spot: Option<QueuePosition>,
}

impl PartialEq for ElementSpec {
    fn eq(&self, other: &ElementSpec) -> bool {
        (self.queue, self.spot) == (other.queue, other.spot)
            && (Arc::ptr_eq(&self.spec, &other.spec) || self.spec == other.spec)
    }
}

impl Array {
    /// Position of an index in the list.
    pub fn pos(&self, idx: u32) -> Option<u32> {
        let mut before = 0u64;
        for r in &self.spec.list.ranges {
            if r.contains(idx) {
                return Some((before + u64::from((idx - r.start) / r.step.max(1))) as u32);
            }
            before += r.len();
        }
        None
    }
    /// Index at a position of the list.
    pub fn index(&self, pos: u32) -> u32 {
        let mut pos = u64::from(pos);
        for r in &self.spec.list.ranges {
            if pos < r.len() {
                return r.start + pos as u32 * r.step.max(1);
            }
            pos -= r.len();
        }
        0
    }
    pub fn fresh_has(&self, idx: u32) -> bool {
        self.pos(idx).is_some_and(|p| self.fresh.has(p))
    }
    /// The first of those that nothing has happened to and that are not held.
    pub fn first_fresh(&self) -> Option<u32> {
        self.fresh.first().filter(|_| self.held.is_none()).map(|p| self.index(p))
    }
    /// An element that something is about to happen to, as it was until now.
    pub fn untouched(&self, submit_time: i64) -> Elem {
        let pend = Pend { since: submit_time, held: self.held, reason: 0 };
        Elem { attempts: 0, part: 0, state: ElemState::Pend(pend) }
    }
    pub fn fresh_indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.fresh.iter().map(|p| self.index(p))
    }
}

/// Elements of a job by state; a plain job has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub total: u32,
    pub pend: u32,
    pub psusp: u32,
    pub run: u32,
    pub ssusp: u32,
    pub ususp: u32,
    pub done: u32,
    pub exit: u32,
    pub exit_unstarted: u32,
    pub cleaned: u32,
    /// Of those that ended: the commands after them have succeeded, or failed.
    pub post_done: u32,
    pub post_err: u32,
}

impl Tally {
    pub fn started(&self) -> u32 {
        self.run + self.ssusp + self.ususp
    }
    pub fn unfinished(&self) -> u32 {
        self.pend + self.psusp + self.started()
    }
}

/// A job or one element.
#[derive(Debug)]
pub struct Elem {
    /// Starts so far.
    pub attempts: u32,
    /// Its part of the array, from 1; 0: as the job is.
    pub part: u32,
    pub state: ElemState,
}

#[derive(Debug)]
pub enum ElemState {
    Pend(Pend),
    Run(Box<Run>),
    End(Box<End>),
}

/// Waiting. `held`: PSUSP, with the reason code; `reason`: what last sent it back (0: nothing).
#[derive(Clone, Debug, Default)]
pub struct Pend {
    pub since: i64,
    pub held: Option<u32>,
    pub reason: u32,
}

/// Started: on hosts, whatever else.
#[derive(Debug, Clone)]
pub struct Run {
    pub key: JobKey,
    pub start_time: i64,
    pub hosts: Vec<(HostId, u32)>,
    pub host_factor: f64,
    /// Its own effective requirement; all of its part may have been given another one since
    /// ([`Job::effective_requirement`]).
    pub own_requirement: Arc<str>,
    /// How often its part was given one before.
    pub times_given: u32,
    /// Boot id of the first host the order was made for.
    pub boot: Arc<str>,
    pub phase: Phase,
    /// UNKWN: its first host cannot be reached; `phase` is what was known last.
    pub unknown: bool,
    pub pid: u32,
    pub pgid: u32,
    pub exec: Option<Box<Exec>>,
    /// Termination asked for: TERM_ number.
    pub killed: Option<u32>,
    /// Then it is DONE, however it ends (bkill -d).
    pub as_done: bool,
    /// After its end it goes back to the queue: 0, or to be held for this pending reason.
    pub requeue: Option<u32>,
    /// When it was last sent the signal of bsub -s, seconds since the epoch; 0 never.
    pub window_signal: i64,
    /// When it was last suspended, and for how long before.
    pub susp_since: i64,
    pub susp_total: i64,
    /// Not event-sourced: refreshed by the host after every connect.
    pub soft: Box<Soft>,
}

impl Run {
    /// Adds words of its end to what could not be done as asked.
    pub fn add_note(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let note = &mut self.exec.get_or_insert_default().note;
        if !note.is_empty() {
            note.push_str("; ");
        }
        note.push_str(text);
    }
}

/// What the host last told; nothing is decided by it.
#[derive(Debug, Clone, Default)]
pub struct Soft {
    pub usage: Usage,
    pub usage_time: i64,
    pub pids: Vec<u32>,
    /// The process group of each of them; empty where there is one.
    pub groups: Vec<u32>,
    /// A suspend (with its suspending reason) or a resume (0) ordered and not yet confirmed; the
    /// log knows of it.
    pub asked: Option<u32>,
}

#[derive(Debug, Clone, Default)]
pub struct Exec {
    pub uid: u32,
    pub user: String,
    pub cwd: String,
    pub home: String,
    /// What could not be done as asked; empty none.
    pub note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The order is out, the host has not confirmed.
    Starting,
    Running,
    /// SSUSP: suspended by the system, or resumed and waiting.
    Ssusp(u32),
    /// USUSP with the suspending reason.
    Ususp(u32),
}

impl Phase {
    /// Status bits.
    pub fn stat(self) -> u32 {
        match self {
            Phase::Starting | Phase::Running => stat::RUN,
            Phase::Ssusp(_) => stat::SSUSP,
            Phase::Ususp(_) => stat::USUSP,
        }
    }
    /// The suspending reason; 0 none.
    pub fn reason(self) -> u32 {
        match self {
            Phase::Starting | Phase::Running => 0,
            Phase::Ssusp(why) | Phase::Ususp(why) => why,
        }
    }
}

/// Finished.
#[derive(Debug)]
pub struct End {
    pub end_time: i64,
    pub done: bool,
    /// Raw wait status; `None` unknown or never started.
    pub status: Option<i32>,
    pub exit_info: u32,
    pub unknown: bool,
    pub cpu: f64,
    pub usage: Option<Usage>,
    /// Where it ran, if it did.
    pub run: Option<Box<Run>>,
    /// The commands after it.
    pub post: Post,
}

impl End {
    /// How what runs after it went; where nothing does, that has succeeded with the end itself.
    pub fn post_state(&self) -> PostState {
        match self.post {
            Post::Done => PostState::Done,
            Post::Failed => PostState::Err,
            Post::None if self.unknown => PostState::Err,
            Post::None if self.run.is_some() => PostState::Done,
            Post::None | Post::Running => PostState::None,
        }
    }
}

impl Run {
    pub fn slots(&self) -> u32 {
        self.hosts.iter().map(|h| h.1).sum()
    }
}

impl Elem {
    /// Status bits.
    pub fn stat(&self) -> u32 {
        match &self.state {
            ElemState::Pend(p) if p.held.is_some() => stat::PSUSP,
            ElemState::Pend(_) => stat::PEND,
            ElemState::Run(r) if r.unknown => stat::UNKWN,
            ElemState::Run(r) => r.phase.stat(),
            ElemState::End(e) if e.done => stat::DONE,
            ElemState::End(_) => stat::EXIT,
        }
    }
    pub fn run(&self) -> Option<&Run> {
        match &self.state {
            ElemState::Run(r) => Some(r),
            ElemState::End(e) => e.run.as_deref(),
            ElemState::Pend(_) => None,
        }
    }
    /// What it used, as far as that is known.
    pub fn usage(&self) -> Option<Usage> {
        match &self.state {
            ElemState::Run(r) => (r.soft.usage_time > 0).then_some(r.soft.usage),
            ElemState::End(e) => e.usage,
            ElemState::Pend(_) => None,
        }
    }
    /// Seconds it has run until now or its end, without those it was suspended for.
    pub fn ran(&self, now: i64) -> i64 {
        let Some(r) = self.run() else { return 0 };
        let until = match &self.state {
            ElemState::End(e) => e.end_time,
            _ => now,
        };
        let susp = r.susp_total + if r.susp_since > 0 { until - r.susp_since } else { 0 };
        (until - r.start_time - susp).max(0)
    }
}

/// What can be said of one element without having one: untouched elements share a view.
pub enum ElementView<'a> {
    /// Never touched: pending since submission, or held since then for this pending reason.
    Untouched(Option<u32>),
    Own(&'a Elem),
}

impl ElementView<'_> {
    pub fn stat(&self) -> u32 {
        match self {
            ElementView::Untouched(None) => stat::PEND,
            ElementView::Untouched(Some(_)) => stat::PSUSP,
            ElementView::Own(e) => e.stat(),
        }
    }
    /// The pending reason for which it is held.
    pub fn held(&self) -> Option<u32> {
        match self {
            ElementView::Untouched(held) => *held,
            ElementView::Own(Elem { state: ElemState::Pend(p), .. }) => p.held,
            ElementView::Own(_) => None,
        }
    }
}

impl Job {
    pub fn is_array(&self) -> bool {
        matches!(self.body, Body::Array(_))
    }
    /// The element, if it exists and is still in memory.
    pub fn view(&self, idx: u32) -> Option<ElementView<'_>> {
        match &self.body {
            Body::Single(e) => (idx == 0).then_some(ElementView::Own(e)),
            Body::Array(a) => match a.own.get(&idx) {
                Some(e) => Some(ElementView::Own(e)),
                None => a.fresh_has(idx).then_some(ElementView::Untouched(a.held)),
            },
        }
    }
    pub fn elem(&self, idx: u32) -> Option<&Elem> {
        match self.view(idx) {
            Some(ElementView::Own(e)) => Some(e),
            _ => None,
        }
    }
    pub fn elem_mut(&mut self, idx: u32) -> Option<&mut Elem> {
        match &mut self.body {
            Body::Single(e) => (idx == 0).then_some(e),
            Body::Array(a) => a.own.get_mut(&idx),
        }
    }
    /// The first started element from this index on; of a job that is no array: itself.
    pub fn started_from(&self, from: u32) -> Option<u32> {
        match &self.body {
            Body::Single(e) => (from == 0 && matches!(e.state, ElemState::Run(_))).then_some(0),
            Body::Array(a) => a.started.range(from..).next().copied(),
        }
    }
    /// Every element in memory, in index order of the array's list for fresh ones.
    pub fn indices(&self) -> Vec<u32> {
        match &self.body {
            Body::Single(_) => vec![0],
            Body::Array(a) => {
                let mut all: Vec<u32> = a.own.keys().copied().collect();
                all.extend(a.fresh_indices());
                all.sort_unstable();
                all
            }
        }
    }
    /// `name[idx]`, the name, or the command where no name was given.
    pub fn display_name(&self, idx: u32) -> String {
        if idx != 0 {
            return self.name.element(idx);
        }
        if self.name.name.is_empty() && !self.is_array() {
            return self.spec.command.lossy().into_owned();
        }
        self.name.to_string()
    }
    /// What part of the array an element belongs to.
    pub fn part_no(&self, idx: u32) -> u32 {
        self.elem(idx).map_or(0, |e| e.part)
    }
    pub fn parts(&self) -> &[ElementGroup] {
        match &self.body {
            Body::Array(a) => &a.parts,
            Body::Single(_) => &[],
        }
    }
    pub fn part(&self, no: u32) -> Option<&ElementGroup> {
        self.parts().get((no as usize).checked_sub(1)?)
    }
    /// The submission of a part; 0: that of the job.
    pub fn spec_of(&self, part: u32) -> &Arc<JobSpec> {
        self.part(part).map_or(&self.spec, |p| &p.look.spec)
    }
    pub fn queue_of(&self, part: u32) -> QueueId {
        self.part(part).map_or(self.queue, |p| p.look.queue)
    }
    pub fn spec_at(&self, idx: u32) -> &Arc<JobSpec> {
        self.spec_of(self.part_no(idx))
    }
    pub fn queue_at(&self, idx: u32) -> QueueId {
        self.queue_of(self.part_no(idx))
    }
    /// Pending elements of a part, held ones too.
    pub fn pending(&self, part: u32) -> u32 {
        match self.part(part) {
            Some(p) => p.pend,
            None => {
                let parts = self.parts().iter().map(|p| p.pend).sum::<u32>();
                self.tally.pend + self.tally.psusp - parts
            }
        }
    }
    /// Pending elements, not held, of a part.
    pub fn waiting(&self, part: u32) -> u32 {
        match self.part(part) {
            Some(p) => p.waiting.len() as u32,
            None => {
                self.tally.pend - self.parts().iter().map(|p| p.waiting.len() as u32).sum::<u32>()
            }
        }
    }
    /// Is the array at its %limit?
    pub fn at_limit(&self) -> bool {
        match &self.body {
            Body::Array(a) => a.spec.limit.is_some_and(|n| self.tally.started() >= n),
            Body::Single(_) => false,
        }
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

    /// The first such ID from one to another. It goes along the known ones: a look-up of each would
    /// take long where nearly all are known.
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
