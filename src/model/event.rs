//! The events: what changes the state of mbatchd, one for one the records of lsb.events
//! (lsb.events(5)). `batch::state::apply` is the only function that acts on them; `log::codec`
//! writes them as classic text and reads them back.

use super::action::JobAction;
pub use super::array_move::{ArrayMove, ElementRange, QueuePosition};
use super::checkpoint::{CheckpointEnd, CheckpointOrder};
pub use super::host_usage::HostUsage;
use super::ids::JobRef;
use super::job::{JobSpec, SpoolRef, Usage};
pub use super::job_chunk::JobChunk;
use super::job_state::LoggedStatus;
use super::nqs::{NlbPlacement, Route};
use super::reason::PendReason;
use super::reservation::Reservation;
pub use super::run_limit::RunLimitChange;
pub use super::share_used::ShareUsed;
use super::specfield::SpecField;
use std::sync::Arc;

/// An event and the second it happened in.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Seconds since the epoch.
    pub time: i64,
    pub event: Event,
}

/// JOB_NEW: a submission was accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobNew {
    pub job: u32,
    pub uid: u32,
    pub gid: u32,
    pub user: String,
    pub submit_time: i64,
    /// Shared with others of its kind.
    pub spec: Arc<JobSpec>,
    /// Our tail: the client's request id (a retry gets the first answer); empty none.
    pub request: String,
    /// Our tail: where the environment lies (NUL-separated `NAME=value`).
    pub env: SpoolRef,
    /// Our tail: where the script lies; len 0 when the command is all there is.
    pub script: SpoolRef,
    /// Our tail: where the JSON of a [`JobSpec`] with exact bytes lies; len 0: no text lost any.
    pub exact: SpoolRef,
}

/// How many elements ranges name that have none in common.
pub fn elements(ranges: &[ElementRange]) -> u64 {
    let of = |&(first, last, step): &ElementRange| match last.checked_sub(first) {
        Some(more) => u64::from(more / step.max(1)) + 1,
        None => 0,
    };
    ranges.iter().map(of).sum()
}

/// JOB_MODIFY2: bmod gave the job another submission, or a switch of queues did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobModify {
    pub job: u32,
    /// The elements concerned; `None`: all that were not changed by themselves before.
    pub elems: Vec<ElementRange>,
    /// Our tail: with the elements that were changed like the one in `elems` before.
    pub alike: bool,
    pub uid: u32,
    pub user: String,
    pub submit_time: i64,
    /// The whole submission as it is from now on. Another LSF's record is not acted on.
    pub spec: JobSpec,
    /// Our tail: what was asked for.
    pub fields: Vec<SpecField>,
    /// Our tail: where the JSON of the submission lies.
    pub exact: SpoolRef,
    /// Our tail: what those that are started are taken to need from now on; empty: no change.
    pub eff_res_req: String,
    /// Our tail: where the script and the environment lie from now on, where `fields` has them.
    pub script: SpoolRef,
    pub env: SpoolRef,
}

/// Execution hosts with their slots, in order, shared by the record of a start and its order.
pub type NamedHosts = Arc<[(Arc<str>, u32)]>;

/// JOB_START: dispatched (durable before the order leaves).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobStart {
    pub at: JobRef,
    /// Our tail; counts from 1.
    pub attempt: u32,
    pub hosts: NamedHosts,
    /// The record has the hosts as `n*host` (SHORT_EVENTFILE).
    pub short_hosts: bool,
    pub host_factor: f64,
    pub eff_res_req: Arc<str>,
    /// Our tail: boot id of the first execution host; under another one the end is unknown.
    pub boot: Arc<str>,
    /// INTERRUPTIBLE_BACKFILL: seconds after which the job ends, whatever its run limit; 0: none.
    pub slice: u64,
    /// Our tail.
    pub forced: Forced,
    /// Our tail: the share account that it is charged to, where the user has several; else empty.
    pub account: Arc<str>,
    /// The processor units of the job ([`crate::model::affinity::JobUnits`]); empty: none.
    pub affinity: Arc<str>,
    /// Our tail: the choice of a policy of the load balancer that the job is placed by.
    pub placed: Option<Arc<NlbPlacement>>,
}

/// LSF_RESERVE (ours): the slots that a pending job keeps until it has enough to start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobReserve {
    pub at: JobRef,
    /// When the reservation began, seconds since the epoch.
    pub since: i64,
    /// When it is given up, or without hosts, when another may begin, likewise; 0: there is none.
    pub until: i64,
    /// When the job starts by the run limits of started jobs, likewise; 0: nobody knows.
    pub start: i64,
    /// When it ends then, likewise; 0: nobody knows.
    pub end: i64,
    /// Hosts, the slots planned there, and those of them that are kept.
    pub hosts: Vec<(Arc<str>, u32, u32)>,
    /// The memory that the job is to get on each of these hosts, MB; empty: slots alone count.
    pub memory: Vec<u64>,
    /// The memory among it that is kept on each, MB; a host without a number keeps all of it.
    pub kept_memory: Vec<u64>,
}

/// Whether brun forced a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forced {
    #[default]
    No,
    Yes,
    /// brun -f: neither run windows nor the load suspend the job.
    NeverSuspended,
}

/// JOB_FORCE: an administrator had a job started on hosts of his choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobForce {
    pub at: JobRef,
    pub uid: u32,
    pub user: String,
    /// Bits of [`force_options`].
    pub options: u32,
    pub hosts: NamedHosts,
    pub queue: String,
    /// Our tail: the client's id of the request; empty none.
    pub request: String,
}

/// MIG: a started job is to go to another host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobMigrate {
    pub at: JobRef,
    pub uid: u32,
    pub user: String,
    /// The hosts of another LSF's record; ours have none.
    pub hosts: Vec<String>,
    /// Our tail: the attempt that ends.
    pub attempt: u32,
    /// Our tail: not the owner.
    pub by_admin: bool,
    /// Our tail: the job is checkpointed first, and goes on where that fails.
    pub checkpoint: Option<CheckpointOrder>,
    /// Our tail: the client's id of the request; empty none.
    pub request: String,
}

/// The step of a checkpoint that a record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointStep {
    /// JOB_SIGACT: bchkpnt.
    Asked(CheckpointOrder),
    /// CHKPNT: the host has told of its end.
    Ended(CheckpointEnd),
}

impl Default for CheckpointStep {
    fn default() -> Self {
        CheckpointStep::Ended(CheckpointEnd::default())
    }
}

/// JOB_SIGACT, CHKPNT: a checkpoint of a started job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobCheckpoint {
    pub at: JobRef,
    pub pid: u32,
    pub step: CheckpointStep,
    /// Our tail: the attempt; 0 in another LSF's record.
    pub attempt: u32,
    /// Our tail: the user who asked for it.
    pub uid: u32,
    pub user: String,
    /// Our tail: the client's id of the request; empty none.
    pub request: String,
}

/// The step of a change of a job's slots that a record tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResizeStep {
    /// JOB_RESIZE_RELEASE: bresize release; the change that it asks for begins with the record
    /// behind it.
    Released { number: u32, cancels: bool, hosts: NamedHosts, command: String },
    /// LSF_RESIZE_REQUEST (ours): bresize request. The slots of the job when it has them all, how
    /// many come at once at least, and the notification command where it is not that of the job.
    Asked { total: u32, least: u32, command: Option<String> },
    /// JOB_RESIZE_CANCEL: bresize cancel.
    #[default]
    Cancelled,
    /// JOB_RESIZE_NOTIFY_START: the first execution host is to hear of a change. Further slots are
    /// the job's from then on.
    Begun { number: u32, grows: bool, hosts: NamedHosts, command: String },
    /// JOB_RESIZE_NOTIFY_ACCEPT: the host has begun with it.
    Accepted { number: u32, pid: u32 },
    /// JOB_RESIZE_NOTIFY_DONE, with the exit value of the notification command.
    Done { number: u32, status: i32 },
}

/// JOB_RESIZE_RELEASE and its kin: a change of the slots of a started job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobResize {
    pub at: JobRef,
    pub step: ResizeStep,
    /// Our tail: the attempt; 0 in another LSF's record.
    pub attempt: u32,
    /// The user who asked for it, in the records of requests.
    pub uid: u32,
    pub user: String,
    /// Our tail: the client's id of the request; empty none.
    pub request: String,
}

/// JOB_RESIZE, a record of lsb.acct: the slots of a started job have changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResizeAccount {
    /// Seconds since the epoch, as all times here.
    pub time: i64,
    pub at: JobRef,
    pub start_time: i64,
    pub uid: u32,
    pub user: String,
    pub grows: bool,
    /// The time of the change before; that of the start where this is the first.
    pub last_time: i64,
    /// The slots that the job had before.
    pub hosts: NamedHosts,
    /// The slots that it got or gave back.
    pub changed: NamedHosts,
}

/// The bits of [`JobForce::options`], numbered as in LSF's library.
pub mod force_options {
    pub const NORMAL: u32 = 0x01;
    /// -f.
    pub const NEVER_SUSPENDED: u32 = 0x02;
    /// -b.
    pub const FROM_BEGINNING: u32 = 0x08;
    /// -c.
    pub const FREE_PROCESSORS: u32 = 0x10;
}

/// JOB_STATUS: any other change of a job's state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobStatus {
    pub at: JobRef,
    pub status: LoggedStatus,
    /// Pending or suspending reason code; 0 none.
    pub reason: u32,
    pub subreason: u32,
    /// Seconds since the epoch; 0 while unfinished.
    pub end_time: i64,
    /// Seconds of CPU time.
    pub cpu: f64,
    pub usage: Option<Usage>,
    /// The usage of an ended attempt on each of its hosts, where these are several.
    pub hosts: Box<[HostUsage]>,
    /// Raw wait status; 0 while unfinished.
    pub exit_status: i32,
    /// TERM_* number.
    pub exit_info: u32,
    /// Our tail: the attempt that this concerns; 0 when never started.
    pub attempt: u32,
    /// Our tail: the end is unknown (`job::End::Unknown`).
    pub unknown_end: bool,
    /// Our tail: a command still runs after the job; another record (PDONE, PERR) tells how that
    /// went.
    pub post: bool,
    /// Our tail: it is pending again because it could not be started.
    pub retry: Option<Box<Retry>>,
    /// Our tail: what of the report, the output or the file transfers of a job that is over did not
    /// go as it should; empty nothing.
    pub after: String,
}

/// A start that failed: when it is tried again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Retry {
    /// The host that could not start it.
    pub host: String,
    /// The instant until which that host is passed over, seconds since the epoch.
    pub host_until: i64,
    /// The instant until which the job waits, whatever host there is, seconds since the epoch; 0:
    /// it does not wait.
    pub until: i64,
    /// Why, in the words of the host.
    pub note: String,
    /// The exit value of the pre-execution command; 0: another failure.
    pub pre_exit: u8,
    /// The job is not started on that host any more, until mbatchd is started again.
    pub excluded: bool,
}

/// JOB_SIGNAL: a signal, or what acts like one, was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobSignal {
    pub at: JobRef,
    pub uid: u32,
    pub user: String,
    pub action: JobAction,
    pub run_count: u32,
    /// Our tail: not the owner.
    pub by_admin: bool,
    /// Our tail: the host on which it was asked for; empty: none, or not known.
    pub host: String,
    /// Our tail: why, as given with -C; empty none.
    pub reason: String,
    /// Our tail: bkill -d: DONE, however it ends.
    pub done: bool,
    /// Our tail: bkill -b.
    pub bulk: bool,
    /// Our tail: the client's id of the request, for its retry; empty none.
    pub request: String,
}

/// LSF_ARRAY_SIGNAL (ours): JOB_SIGNAL and JOB_STATUS of each of many pending elements of an array,
/// in one record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArraySignal {
    /// The elements, in ascending order.
    pub elems: Vec<ElementRange>,
    /// The signal to each of them; its `at` is the array.
    pub signal: JobSignal,
    /// The status of each of them from then on: pending, held, or ended.
    pub status: LoggedStatus,
    /// Pending reason; 0 none.
    pub reason: u32,
    /// Seconds since the epoch; 0 while unfinished.
    pub end_time: i64,
    /// TERM_* number; 0 while unfinished.
    pub exit_info: u32,
}

impl ArraySignal {
    /// The indices of the elements.
    pub fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        let of = |&(first, last, step): &ElementRange| (first..=last).step_by(step.max(1) as usize);
        self.elems.iter().flat_map(of)
    }

    /// The record of one element by itself.
    pub fn signal_of(&self, idx: u32) -> JobSignal {
        let at = JobRef { idx, ..self.signal.at };
        JobSignal { at, ..self.signal.clone() }
    }

    /// The status of one element by itself.
    pub fn status_of(&self, idx: u32) -> JobStatus {
        JobStatus {
            at: JobRef { idx, ..self.signal.at },
            status: self.status,
            reason: self.reason,
            end_time: self.end_time,
            exit_info: self.exit_info,
            ..JobStatus::default()
        }
    }
}

/// The number that stands for a queue or a host whose control record is lost: the CRC-32 of its
/// name; never 0.
pub fn name_mark(name: &str) -> u32 {
    crc32fast::hash(name.as_bytes()).max(1)
}

/// The status of the data of a message (lsbatch numbering).
pub mod attached {
    pub const NONE: u32 = 1;
    pub const THERE: u32 = 2;
    pub const COMING: u32 = 3;
}

/// JOB_EXT_MSG: a message was posted to a job, or to an array or an element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobMessage {
    pub at: JobRef,
    pub index: u32,
    pub uid: u32,
    /// Length of the data that come with it, bytes.
    pub size: u64,
    pub post_time: i64,
    /// [`attached`].
    pub status: u32,
    pub text: String,
    pub user: String,
    /// Our tail: the level of bpost -N; empty none.
    pub level: String,
}

/// JOB_ATTA_DATA: the data of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobAttachment {
    pub at: JobRef,
    pub index: u32,
    pub size: u64,
    /// [`attached`].
    pub status: u32,
    pub file: String,
    /// Our tail: where the data lie, and their CRC-32.
    pub data: SpoolRef,
    pub crc: u32,
}

/// JGRP_ADD, JGRP_MOD: a job group as it is from now on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobGroupRecord {
    pub uid: u32,
    /// Seconds since the epoch.
    pub time: i64,
    pub owner: String,
    pub path: String,
    /// The service class given with it; empty none.
    pub sla: String,
    /// Most started jobs; `None`: no limit.
    pub limit: Option<u32>,
    /// The group was made by bgadd, not by a submission.
    pub explicit: bool,
}

/// The operations that QUEUE_CTRL and HOST_CTRL record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ctrl {
    Open = 1,
    Close = 2,
    /// Queues only.
    Activate = 3,
    /// Queues only.
    Inactivate = 4,
}

/// One event. Variants are named after their record.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    JobNew(Box<JobNew>),
    JobStart(Box<JobStart>),
    JobStartAccept {
        at: JobRef,
        attempt: u32,
        pid: u32,
        pgid: u32,
    },
    JobExecute {
        at: JobRef,
        uid: u32,
        pid: u32,
        pgid: u32,
        cwd: String,
        home: String,
        user: String,
        /// Our tail: what could not be done as asked (another directory, another output file);
        /// empty none.
        note: String,
    },
    JobStatus(Box<JobStatus>),
    JobSignal(Box<JobSignal>),
    ArraySignal(Box<ArraySignal>),
    /// A started or finished job goes back to the queue.
    JobRequeue {
        at: JobRef,
        /// Our tail: it waits suspended, for this pending reason.
        held: Option<PendReason>,
        /// Our tail: it went back for its host's sake, which MAX_JOB_REQUEUE does not bound.
        uncounted: bool,
        /// Our tail: hosts that it is not to be started on any more (EXCLUDE()).
        passed: Vec<String>,
        /// Our tail: until then it waits, seconds since the epoch; 0: it does not.
        until: i64,
        /// Our tail: the exit value that sent it back.
        exit: Option<i32>,
        /// Our tail: the client's id of the request that asked for it; empty none.
        request: String,
    },
    JobModify(Box<JobModify>),
    JobForce(Box<JobForce>),
    JobMigrate(Box<JobMigrate>),
    JobCheckpoint(Box<JobCheckpoint>),
    JobResize(Box<JobResize>),
    JobReserve(Box<JobReserve>),
    JobChunk(Box<JobChunk>),
    RunLimit(RunLimitChange),
    /// bswitch: the whole job, or an element, goes to another queue.
    JobSwitch {
        at: JobRef,
        queue: String,
        uid: u32,
        user: String,
        /// Our tail: a pipe queue has routed it.
        route: Option<Box<Route>>,
    },
    /// LSF_ARRAY_SWITCH (ours): JOB_SWITCH of each of many elements of an array, in one record.
    ArraySwitch {
        job: u32,
        /// The elements, in ascending order.
        elems: Vec<ElementRange>,
        queue: String,
        uid: u32,
        user: String,
    },
    /// btop, bbot: the whole job, or an element, gets another place in the order of dispatch.
    JobMove {
        at: JobRef,
        /// The position, counted from 1.
        position: u32,
        /// Counted from the top, else from the bottom.
        top: bool,
        uid: u32,
        user: String,
        /// Our tail: the place; `None` in another LSF's log.
        place: Option<QueuePosition>,
    },
    ArrayMove(Box<ArrayMove>),
    JobMessage(Box<JobMessage>),
    JobAttachment(Box<JobAttachment>),
    /// A finished job left memory. idx 0 of an array: all of it.
    JobClean {
        at: JobRef,
    },
    QueueCtrl {
        op: Ctrl,
        queue: String,
        uid: u32,
        user: String,
        message: String,
    },
    HostCtrl {
        op: Ctrl,
        host: String,
        uid: u32,
        user: String,
        message: String,
        /// Our tail: the lock ID that it attaches or takes away; empty: none.
        lock: String,
    },
    /// `LSF_GROUP_HOST` (ours): a dynamic host becomes a member of a host group or compute unit,
    /// or is so no longer.
    GroupHost {
        add: bool,
        group: String,
        host: String,
        uid: u32,
        user: String,
        message: String,
    },
    JobGroupAdd(Box<JobGroupRecord>),
    JobGroupModify(Box<JobGroupRecord>),
    /// JGRP_CTRL: a job group is gone, with all below it.
    JobGroupDelete {
        uid: u32,
        user: String,
        path: String,
    },
    MbdStart {
        master: String,
        cluster: String,
        hosts: u32,
        queues: u32,
    },
    MbdDie {
        master: String,
        removed: u32,
        code: i32,
        message: String,
    },
    LogSwitch {
        last_job: u32,
    },
    LoadIndex {
        names: Vec<String>,
    },
    /// `LSF_HOLD` (ours): the history of this job is incomplete; it is not dispatched until an
    /// administrator releases it.
    Hold {
        at: JobRef,
        why: String,
    },
    /// `LSF_RELEASE` (ours): an administrator let a held job go.
    Release {
        at: JobRef,
        uid: u32,
        user: String,
    },
    /// `LSF_SWITCHED` (ours): head of a switched log: numbers that must not go back.
    Carried {
        next_job: u32,
        epoch: u64,
    },
    /// `LSF_SUBMITTED` (ours): a submission whose job has left memory; a switched log keeps its
    /// request ID, so that a retry of it makes no second job.
    Submitted {
        job: u32,
        submit_time: i64,
        request: String,
    },
    /// `LSF_ELIGIBLE` (ours): a pending job or element can be dispatched from now on as soon as
    /// there is room, or no longer (TRACK_ELIGIBLE_PENDINFO). One without such a record could
    /// always; idx 0 of an array: the elements without one of their own.
    Eligible {
        at: JobRef,
        on: bool,
    },
    ShareUsed(Box<ShareUsed>),
    /// `LSF_HOST_STARTS` (ours): these hosts were given jobs at the second of the record.
    HostStarts {
        hosts: Vec<String>,
    },
    /// `LSF_RESERVATION` (ours): an advance reservation as it is from now on.
    Reservation(Box<Reservation>),
    /// `LSF_RESERVATION_END` (ours): an advance reservation was deleted, or is over.
    ReservationEnd {
        id: String,
        uid: u32,
        user: String,
    },
    /// `LSF_RESERVATION_NEXT` (ours): the number of the next reservation of an owner, at least.
    ReservationNext {
        owner: String,
        next: u32,
    },
    /// A record of another LSF that is read and kept but not acted on.
    Foreign {
        name: String,
    },
}

/// JOB_FINISH of lsb.acct: derived from the state when a job ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    pub event_time: i64,
    pub at: JobRef,
    pub uid: u32,
    pub user: String,
    pub submit_time: i64,
    /// 0 when never started.
    pub start_time: i64,
    /// When its slots changed last; 0: they never did.
    pub last_resize: i64,
    pub spec: JobSpec,
    /// `name[list]` for an array, as JOB_NEW has it.
    pub exec_hosts: Vec<(String, u32)>,
    /// The record has the hosts as `n*host` (SHORT_EVENTFILE).
    pub short_hosts: bool,
    /// EXIT or DONE.
    pub status: LoggedStatus,
    pub host_factor: f64,
    pub usage: Option<Usage>,
    /// The usage on each of its hosts, where these are several.
    pub hosts_used: Box<[HostUsage]>,
    pub exit_status: i32,
    pub exit_info: u32,
    /// [`crate::model::job::except`] bits.
    pub exceptions: u32,
    pub eff_res_req: String,
    pub attempt: u32,
    pub unknown_end: bool,
    /// The share account that was charged, `/group/user`; empty none.
    pub charged: String,
    /// Seconds of waiting in which room was not all that was missing; None: not tracked.
    pub ineligible_secs: Option<i64>,
}
