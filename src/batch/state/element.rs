//! A job or one element of an array: pending, started or ended, with what belongs to that.

use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::HostId;
use crate::batch::state::resize::Resize;
use crate::conf::types::ExtendableRunLimit;
use crate::lang::depend::PostState;
use crate::model::JobKey;
use crate::model::checkpoint::CheckpointOrder;
use crate::model::event::{Forced, HostUsage};
use crate::model::job::Usage;
use crate::model::job_state::JobState;
use crate::model::nqs::NlbPlacement;
use crate::model::reason::{PendReason, susp};
use crate::proto::sbd::Post;
use std::mem::take;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

/// A job or one element.
#[derive(Debug)]
pub struct Elem {
    /// Number of the last attempt that any record names: starts so far.
    pub attempts: u32,
    /// The element group of the array, from 1; 0: as the job is.
    pub part: u32,
    pub state: ElemState,
}

#[derive(Debug)]
pub enum ElemState {
    Pend(Pend),
    Run(Box<Run>),
    End(Box<ElementEnd>),
}

/// Waiting.
#[derive(Clone, Debug, Default)]
pub struct Pend {
    pub since: i64,
    /// PSUSP, for this reason.
    pub held: Option<PendReason>,
    /// The reason of its last return to the queue.
    pub reason: Option<PendReason>,
}

/// The checkpoints of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointState {
    /// A checkpoint was asked for and is not told of yet.
    pub asked: Option<CheckpointOrder>,
    /// The period of bchkpnt -p, minutes; 0: no periodic ones.
    pub period: Option<u32>,
    /// The element migrates after it: the TERM_ number of its end.
    pub migrates_for: Option<u32>,
    /// The number of the last one that the host has told of.
    pub number: u32,
}

/// A run limit that takes the place of BASE of EXTENDABLE_RUNLIMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Seconds that the element may run in all, without those it is suspended for.
    pub secs: u64,
    /// The element ends then in any case.
    pub hard: bool,
}

/// Started: on hosts, whatever else.
#[derive(Debug, Clone)]
pub struct Run {
    pub key: JobKey,
    pub start_time: i64,
    pub hosts: JobHosts,
    /// The hosts in the order of the tasks, where one of them comes back after others: by a
    /// compound requirement.
    pub task_order: Option<Box<JobHosts>>,
    pub host_factor: f64,
    /// The effective requirement of the element; its whole part may have got another one since
    /// ([`Job::effective_requirement`]).
    pub own_requirement: Arc<str>,
    /// How many requirements its part had got when the element started.
    pub times_given: u32,
    /// INTERRUPTIBLE_BACKFILL: seconds after which it ends, however long its run limit; 0: none.
    pub slice: u64,
    /// The run limit by EXTENDABLE_RUNLIMIT, once it was extended or made hard.
    pub allowance: Option<Allowance>,
    /// Boot id of the first host the order was made for.
    pub boot: Arc<str>,
    pub phase: Phase,
    /// brun started it.
    pub forced: Forced,
    /// The share account that it is charged to, where its user has several; else empty.
    pub account: Arc<str>,
    /// The processor units of the job ([`crate::model::affinity::JobUnits`]); empty: it asks for
    /// none.
    pub affinity: Arc<str>,
    /// The choice of a policy of the load balancer that the job was placed by.
    pub placed: Option<Arc<NlbPlacement>>,
    /// UNKWN: its first host cannot be reached; `phase` is what was known last.
    pub unknown: bool,
    pub pid: u32,
    pub pgid: u32,
    pub exec: Option<Box<Exec>>,
    /// Termination asked for: TERM_ number.
    pub killed: Option<u32>,
    /// The element is DONE, however it ends (bkill -d).
    pub as_done: bool,
    /// After its end it goes back to the queue, to wait or to be held for a pending reason.
    pub requeue: Option<Option<PendReason>>,
    /// The element goes back to the queue because it migrates.
    pub migrates: bool,
    /// bchkpnt, and the last checkpoint that the host has told of.
    pub checkpoint: CheckpointState,
    /// The changes of its slots since its start; `None`: nobody asked for one.
    pub resize: Option<Box<Resize>>,
    /// When it was last sent the signal of bsub -s, seconds since the epoch; 0 never.
    pub window_signal: i64,
    /// When it was last suspended, and for how long before.
    pub susp_since: i64,
    pub susp_total: i64,
    /// When it ran again after its last suspension, seconds since the epoch; 0: it was not
    /// suspended.
    pub resumed_at: i64,
    /// The preemptions of this attempt.
    pub preempted: PreemptionHistory,
    /// Data that no event holds: the host refreshes them after every connect.
    pub soft: LastWords,
}

impl Run {
    /// Adds words of its end to what could not be done as asked.
    pub(super) fn add_note(&mut self, text: &str) {
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

/// The last words of the host; nothing is decided by them.
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
    /// The last order of this mbatchd to suspend or resume it was to resume it.
    pub last_order_resumes: bool,
}

/// The last words of the host about an attempt, which take no memory before there are some.
#[derive(Debug, Clone, Default)]
pub struct LastWords(Option<Box<Soft>>);

/// The words of a host that has said nothing yet.
static NO_WORDS: LazyLock<Soft> = LazyLock::new(Soft::default);

impl Deref for LastWords {
    type Target = Soft;

    fn deref(&self) -> &Soft {
        self.0.as_deref().unwrap_or(&NO_WORDS)
    }
}

impl DerefMut for LastWords {
    fn deref_mut(&mut self) -> &mut Soft {
        self.0.get_or_insert_default()
    }
}

#[derive(Debug, Clone, Default)]
pub struct Exec {
    pub uid: u32,
    pub user: String,
    pub cwd: String,
    pub home: String,
    /// Notes on parts of the request that could not be done; empty: none.
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
    pub fn stat(self) -> JobState {
        match self {
            Phase::Starting | Phase::Running => JobState::Run,
            Phase::Ssusp(_) => JobState::Ssusp,
            Phase::Ususp(_) => JobState::Ususp,
        }
    }
    /// The suspending reason; 0 none.
    pub fn reason(self) -> u32 {
        match self {
            Phase::Starting | Phase::Running => 0,
            Phase::Ssusp(why) | Phase::Ususp(why) => why,
        }
    }
    /// Is it suspended for the load of its host, for an advance reservation, or preempted?
    pub fn suspended_by_need(self) -> bool {
        let for_jobs = [Phase::Ssusp(susp::PREEMPTED), Phase::Ssusp(susp::RESERVED)];
        self.suspended_by_load() || for_jobs.contains(&self)
    }
    /// Is it suspended for the load of its host, or does it wait for that after bresume?
    pub fn suspended_by_load(self) -> bool {
        match self {
            Phase::Ssusp(susp::RESUMED | susp::LOAD..=susp::RESUME_COND) => true,
            Phase::Ssusp(code) => susp::is_external(code),
            _ => false,
        }
    }
}

/// How often and how long an element was preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionHistory {
    pub times: u32,
    /// Seconds of the preemptions that are over.
    pub secs: i64,
}

impl PreemptionHistory {
    pub(super) fn add(&mut self, other: PreemptionHistory) {
        self.times = self.times.saturating_add(other.times);
        self.secs = self.secs.saturating_add(other.secs);
    }
}

/// Finished.
#[derive(Debug)]
pub struct ElementEnd {
    pub end_time: i64,
    pub done: bool,
    /// Raw wait status; `None` unknown or never started.
    pub status: Option<i32>,
    pub exit_info: u32,
    pub unknown: bool,
    pub cpu: f64,
    pub usage: Option<Usage>,
    /// The usage on each of its hosts, where these are several.
    pub hosts: Box<[HostUsage]>,
    /// The run that ended, if there was one.
    pub run: Option<Box<Run>>,
    /// The commands after it.
    pub post: Post,
}

impl ElementEnd {
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
    /// The limit by EXTENDABLE_RUNLIMIT of its queue: BASE until that was extended or made hard.
    pub fn extendable_limit(&self, rule: ExtendableRunLimit) -> Allowance {
        self.allowance.unwrap_or(Allowance { secs: rule.base_secs, hard: false })
    }

    /// When it will have run for so many seconds, seconds since the epoch, if nothing suspends it
    /// from now on.
    pub fn has_run_for(&self, secs: u64) -> i64 {
        self.start_time.saturating_add(self.susp_total).saturating_add_unsigned(secs)
    }

    pub fn slots(&self) -> u32 {
        self.hosts.iter().map(|h| h.1).sum()
    }

    /// Run windows and the load never suspend it (brun -f).
    pub fn is_never_suspended(&self) -> bool {
        self.forced == Forced::NeverSuspended
    }

    /// Jobs that preempt it had it suspended, and its host has not been told to end or to resume
    /// it.
    pub fn is_preempted(&self) -> bool {
        self.phase == Phase::Ssusp(susp::PREEMPTED)
            && self.killed.is_none()
            && self.soft.asked.is_none()
    }

    /// Why it is suspended or is to be; 0: it is not.
    pub fn suspending_reason(&self) -> u32 {
        match (self.soft.asked, self.phase) {
            (Some(why), _) if why != 0 => why,
            (_, Phase::Ssusp(why) | Phase::Ususp(why)) => why,
            _ => 0,
        }
    }
}

impl Elem {
    pub fn stat(&self) -> JobState {
        match &self.state {
            ElemState::Pend(p) if p.held.is_some() => JobState::Psusp,
            ElemState::Pend(_) => JobState::Pend,
            ElemState::Run(r) if r.unknown => JobState::Unkwn,
            ElemState::Run(r) => r.phase.stat(),
            ElemState::End(e) if e.done => JobState::Done,
            ElemState::End(_) => JobState::Exit,
        }
    }
    pub fn run(&self) -> Option<&Run> {
        match &self.state {
            ElemState::Run(r) => Some(r),
            ElemState::End(e) => e.run.as_deref(),
            ElemState::Pend(_) => None,
        }
    }
    /// Resources used, as far as they are known.
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

/// The view of one element; untouched elements share one.
pub enum ElementView<'a> {
    /// Never touched: pending since submission, or held since then for this pending reason.
    Untouched(Option<PendReason>),
    Own(&'a Elem),
}

impl ElementView<'_> {
    pub fn stat(&self) -> JobState {
        match self {
            ElementView::Untouched(None) => JobState::Pend,
            ElementView::Untouched(Some(_)) => JobState::Psusp,
            ElementView::Own(e) => e.stat(),
        }
    }
    /// The pending reason for which it is held.
    pub fn held(&self) -> Option<PendReason> {
        match self {
            ElementView::Untouched(held) => *held,
            ElementView::Own(Elem { state: ElemState::Pend(p), .. }) => p.held,
            ElementView::Own(_) => None,
        }
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
    /// Starts that failed in the pre-execution command since it last ran.
    pub pre_exec: u32,
    /// Other starts that failed since it last ran.
    pub failed: u32,
    /// The job waits from the first instant to the second, seconds since the epoch.
    pub wait: (i64, i64),
    /// Hosts that could not start it, since it last ran.
    pub bars: Vec<Bar>,
    /// The words of the last of them.
    pub note: String,
    /// A checkpoint of an earlier run succeeded.
    pub checkpointed: bool,
    /// The preemptions of earlier runs.
    pub preempted: PreemptionHistory,
}

/// A host that an element is not to be started on for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    pub host: HostId,
    /// Seconds since the epoch.
    pub from: i64,
    pub until: i64,
    pub why: PendReason,
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
    pub(super) fn begin_anew(&mut self) {
        let (requeues, passed, passed_at) = (self.requeues, take(&mut self.passed), self.passed_at);
        let (checkpointed, preempted) = (self.checkpointed, self.preempted);
        *self = Tries { requeues, passed, passed_at, checkpointed, preempted, ..Tries::default() };
    }
}
