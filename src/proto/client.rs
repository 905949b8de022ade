//! A command and mbatchd.

pub use super::admin_ops::{AdminLine, AdminOp, QueueOp};
pub use super::application_rows::ApplicationInfo;
use super::dependency::{Dependencies, DependencyRequest};
use super::force::Force;
use super::job_group::{JobGroupInfo, JobGroupRequest};
use super::job_message::{MessageInfo, MessageRequest};
use super::limit_rows::{LimitListing, LimitQuery};
pub use super::queue_rows::QueueInfo;
use super::reservation::{ReservationInfo, ReservationPolicyInfo, ReservationRequest};
pub use super::share_rows::{PartitionInfo, ShareRow, ShareTable};
pub use super::slot_windows::SlotWindow;
pub use super::user_rows::{GroupInfo, UserInfo};
use crate::model::checkpoint::CheckpointOrder;
use crate::model::resize::ResizeRequest;
use crate::model::specfield::SpecField;
use crate::model::{ByteStr, JobRef, job::JobSpec};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ClientMsg {
    Submit(Box<Submit>),
    Submitted {
        job: u32,
        queue: String,
        default_queue: bool,
        /// The environment is kept: another submission may name it by its hash.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        env_kept: bool,
        /// The job names a service class and none is configured: the name has no effect.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        class_ignored: bool,
        /// No server of the load balancer is heard: what the job asks of one was not checked.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        nlb_unchecked: bool,
    },
    Control(Box<Control>),
    Controlled {
        outcomes: Vec<Outcome>,
        /// Further ones follow: only to who asked for pieces.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        more: bool,
    },
    /// Answered by `Controlled` with one outcome, or refused.
    Modify(Box<Modify>),
    /// bpeek: the job named, or the newest started one that the filters let through.
    Peek(Box<JobSelect>),
    Peeked(Box<PeekInfo>),
    /// bjobs -env, -script: what is kept of a submission; answered by `SbdMsg::Blob`. Of a job
    /// without a script that is its command.
    Stored {
        id: IdSel,
        script: bool,
    },
    Jobs(Box<JobQuery>),
    /// `array`: one row an array (bjobs -A).
    Queues {
        names: Vec<String>,
        user: String,
        host: String,
    },
    QueueRows {
        rows: Vec<QueueInfo>,
    },
    /// bhpart: these host partitions; none: all.
    Partitions {
        names: Vec<String>,
    },
    PartitionRows {
        rows: Vec<PartitionInfo>,
    },
    /// bapp: these application profiles; none: all.
    Applications {
        names: Vec<String>,
    },
    ApplicationRows {
        rows: Vec<ApplicationInfo>,
    },
    /// blimits, bresources.
    Limits(Box<LimitQuery>),
    LimitRows(Box<LimitListing>),
    Hosts {
        names: Vec<String>,
        res_req: String,
    },
    HostRows {
        rows: Vec<HostInfo>,
    },
    /// A slice of the answer to `Jobs`: a JSON array of arrays, one inner array a job, in the
    /// order of the columns asked for. The last slice has `more` false.
    Rows {
        rows: Box<RawValue>,
        more: bool,
    },
    /// Answered by `Waited` when `expr` becomes true, can never be, or the time is over.
    Wait(Wait),
    Waited(Waited),
    Admin(AdminOp),
    /// One line an object; `ok` false where it failed.
    AdminDone {
        lines: Vec<AdminLine>,
    },
    /// busers: these users and user groups; none: all.
    Users {
        names: Vec<String>,
    },
    UserRows {
        rows: Vec<UserInfo>,
    },
    /// bslots: of the hosts that satisfy this requirement; empty: of all.
    Slots {
        res_req: String,
    },
    SlotRows {
        rows: Vec<SlotWindow>,
    },
    /// bugroup, bmgroup: these groups; none: all.
    Groups {
        hosts: bool,
        names: Vec<String>,
        /// -r: what the groups within a group stand for.
        expand: bool,
        /// bmgroup -cu: compute units instead of host groups.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        units: bool,
    },
    GroupRows {
        rows: Vec<GroupInfo>,
    },
    /// Values of lsb.params and of the cluster that commands need (name, value).
    Params,
    /// bpost, bread, bstatus.
    Message(Box<MessageRequest>),
    Messages(Vec<MessageInfo>),
    /// bjdepinfo.
    Dependencies(Box<DependencyRequest>),
    DependencyRows(Box<Dependencies>),
    /// bgadd, bgmod, bgdel, bjgroup.
    JobGroup(Box<JobGroupRequest>),
    JobGroups(Vec<JobGroupInfo>),
    /// brsvadd, brsvmod, brsvdel, brsvsub, brsvs.
    Reservation(Box<ReservationRequest>),
    Reservations(Vec<ReservationInfo>),
    ReservationPolicies(Vec<ReservationPolicyInfo>),
    ParamRows {
        values: Vec<(String, String)>,
    },
}

/// bsub.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Submit {
    /// The number of the request, which the client makes: a retry repeats it, completes the request
    /// and gets all its results. Empty: none.
    pub request: String,
    /// `spec.queue` empty: the default queue. `spec.queue` may hold several names.
    pub spec: JobSpec,
    /// `NAME=value` NUL-separated.
    pub env: ByteStr,
    /// Instead of `env`: [`env_hash`] of one that this user submitted with before, once
    /// `Submitted` has said that it is kept. Refused with `err::ENV_GONE` where it is not any
    /// more.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub env_hash: String,
    /// Script text for stdin or file submissions; empty otherwise.
    pub script: ByteStr,
    /// Submissions of one number on one connection are taken as far as the first that is
    /// refused; those after it are refused with `err::CHAIN`. 0: each by itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub chain: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// SHA-256 of an environment, hexadecimal.
pub fn env_hash(env: &ByteStr) -> String {
    use sha2::{Digest, Sha256};
    use std::fmt::Write;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(env.as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The jobs that a command means. An empty field is no condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSelect {
    /// Job operands; empty with `all` false means the caller's last matching job (bkill) or
    /// every matching one (bjobs).
    pub ids: Vec<IdSel>,
    /// The operand `0`.
    pub all: bool,
    /// -u; empty: the caller; `all`: everybody.
    pub user: String,
    pub queue: String,
    pub host: String,
    /// -J: `name`, `name*`, `name[idx]`.
    pub name: String,
    pub project: String,
    /// Further filters, (option, value): `G`, `Jd`, and what [`JobSpec::further`] holds (`g`,
    /// `app`, `sla`, `Lp`).
    pub given: Vec<(String, String)>,
    /// The states of the jobs to act on; none set: every state that the action is for.
    #[serde(skip_serializing_if = "Which::unset")]
    pub states: Which,
}

/// `123`, `123[1-4,6]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdSel {
    pub job: u32,
    /// (first, last, step); empty: the job, or every element.
    pub elems: Vec<(u32, u32, u32)>,
}

impl IdSel {
    /// How many elements its ranges name.
    pub fn named(&self) -> u64 {
        let len = |&(a, b, step): &(u32, u32, u32)| match b.checked_sub(a) {
            Some(far) => u64::from(far / step.max(1)) + 1,
            None => 0,
        };
        self.elems.iter().map(len).fold(0, u64::saturating_add)
    }

    /// Does this operand name the element?
    pub fn has(&self, r: JobRef) -> bool {
        self.job == r.job
            && (self.elems.is_empty()
                || self.elems.iter().any(|&(a, b, s)| {
                    r.idx >= a && r.idx <= b && (r.idx - a).is_multiple_of(s.max(1))
                }))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verb {
    /// INT, TERM, KILL.
    Kill,
    /// -r: out of the system without waiting.
    Remove,
    Signal {
        number: i32,
        name: String,
    },
    Stop,
    Resume,
    /// bswitch.
    Switch {
        queue: String,
    },
    /// btop, bbot: to this position, from 1.
    Move {
        top: bool,
        position: u32,
    },
    /// brequeue.
    Requeue(Requeue),
    /// brun.
    Force(Force),
    /// bchkpnt.
    Checkpoint(CheckpointOrder),
    /// bresize.
    Resize(ResizeRequest),
    /// bmig. `force`: -f, which is for checkpoints.
    Migrate {
        force: bool,
    },
}

/// The states in which brequeue takes jobs, and whether they are held afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requeue {
    /// -d.
    pub done: bool,
    /// -e.
    pub exit: bool,
    /// -r, and where no state is named: started ones.
    pub run: bool,
    /// -p.
    pub pend: bool,
    /// -H: they wait suspended.
    pub hold: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Control {
    pub verb: Verb,
    pub select: JobSelect,
    /// -C: why, up to [`MAX_REASON`] characters; empty none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// bkill -d: DONE, however it ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
    /// bkill -b: what waits leaves memory at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bulk: bool,
    /// The number of the request, which the client makes: a retry repeats it, completes the request
    /// and gets all its results. Empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The answer may come in several messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pieces: bool,
    /// A blaunch of the jobs has lost a host of theirs: they end for that reason, and what does not
    /// run stays as it is. With [`Verb::Kill`] alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_host: bool,
    /// With `lost_host`: the attempt that the blaunch is of; another one, which a rerun has started
    /// meanwhile, goes on. 0: any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
}

/// Characters of what is given with -C to bkill, bstop and bresume.
pub const MAX_REASON: usize = 4095;

impl Control {
    /// An action without options.
    pub fn of(verb: Verb, select: JobSelect) -> Self {
        let (reason, request, lost_host) = (String::new(), String::new(), false);
        Control {
            verb,
            select,
            reason,
            done: false,
            bulk: false,
            request,
            pieces: false,
            lost_host,
            attempt: 0,
        }
    }
}

/// The place of a started job's output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeekInfo {
    pub id: JobRef,
    pub host: String,
    pub submit_time: i64,
    /// The output file on the host, with numbers in place of %J and %I; empty: not given.
    pub out_file: ByteStr,
    pub err_file: ByteStr,
    pub cwd: String,
    /// The directory of -outdir there, by `cwd`; empty: not given.
    #[serde(skip_serializing_if = "ByteStr::is_empty")]
    pub out_dir: ByteStr,
    pub home: String,
    pub uid: u32,
    /// The job's first process; 0 not known.
    pub pid: u32,
}

/// bmod of one job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Modify {
    pub id: IdSel,
    /// The values of `fields`; other values are ignored.
    pub spec: JobSpec,
    pub fields: Vec<SpecField>,
    /// The script itself, where `fields` has `Script`; `Script` with an empty command: the script
    /// given at submission.
    #[serde(default, skip_serializing_if = "ByteStr::is_empty")]
    pub script: ByteStr,
    /// The environment, where `fields` has `Env`: `NAME=value`, NUL-separated; `None`: the
    /// environment given at submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<ByteStr>,
}

/// The result for one job of a [`Control`]; `code` is an lsberrno, 0 done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The job, named in messages as `123` or `123[4]`.
    pub id: JobRef,
    pub code: i32,
    /// btop, bbot: the position reached.
    #[serde(default)]
    pub place: u32,
}

impl Outcome {
    /// The outcome of anything but a move.
    pub fn new(id: JobRef, code: i32) -> Self {
        Outcome { id, code, place: 0 }
    }
}

/// The states that bjobs asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Which {
    /// -a.
    pub all: bool,
    /// -d.
    pub done: bool,
    /// -p.
    pub pend: bool,
    /// -r.
    pub run: bool,
    /// -s.
    pub susp: bool,
    /// Besides: what has ended, where commands still run after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exiting: bool,
}

impl Which {
    /// Is nothing asked for?
    pub fn unset(&self) -> bool {
        *self == Which::default()
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobQuery {
    pub select: JobSelect,
    pub which: Which,
    pub cols: Vec<Col>,
    /// One row an array with [`Col::Counters`].
    pub arrays: bool,
    /// Only jobs that the caller may see whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
    /// [`Col::PendReasons`] without the names of hosts: a job may wait for each of 10,000.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reason_counts: bool,
}

impl JobQuery {
    /// These columns of jobs and elements, of pending reasons without the names of hosts.
    pub fn of(select: JobSelect, which: Which, cols: &[Col]) -> JobQuery {
        JobQuery { select, which, cols: cols.to_vec(), reason_counts: true, ..JobQuery::default() }
    }
}

/// The columns of a job row, with the JSON type of their values. Times are seconds since the
/// epoch, 0 none. Byte strings follow `ByteStr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Col {
    /// int
    Job,
    /// int, 0 outside an array
    Idx,
    /// `PEND` ...
    Stat,
    User,
    UserGroup,
    Queue,
    /// `name`, or `name[idx]` for an element; the command where no name was given
    Name,
    /// the -J text as given, list included; empty none
    GivenName,
    Project,
    Description,
    /// byte string
    Command,
    FromHost,
    /// [[host, slots]...], first execution host first; [] before dispatch
    ExecHosts,
    MinSlots,
    MaxSlots,
    SubmitTime,
    StartTime,
    EndTime,
    BeginTime,
    TermTime,
    /// exit code as shown (128+signal), null while unfinished or unknown
    ExitCode,
    /// raw wait status, null while unfinished or unknown
    WaitStatus,
    /// TERM_ number; 0 none
    ExitInfo,
    /// [[code, number of hosts or 0, [host...]]...]
    PendReasons,
    /// code; 0 none
    SuspReason,
    Pid,
    Pgid,
    /// [int...]
    Pids,
    /// float seconds
    CpuUsed,
    Utime,
    Stime,
    MemKb,
    MaxMemKb,
    AvgMemKb,
    SwapKb,
    NThreads,
    /// seconds running so far or altogether, suspended time not counted
    RunTime,
    /// seconds pending
    PendTime,
    /// as given to -R, merged
    ResReq,
    /// job, queue and defaults
    CombinedResReq,
    /// as dispatched; empty before
    EffectiveResReq,
    /// [word...]
    AskedHosts,
    Depend,
    InFile,
    OutFile,
    ErrFile,
    /// absolute submission directory, byte string
    Cwd,
    /// submitter's home, byte string
    Home,
    ExecCwd,
    ExecHome,
    ExecUser,
    /// object of `Limits`
    Limits,
    LimitSpec,
    /// `opt` bits
    Options,
    /// `opt2` bits
    Options2,
    MailUser,
    LoginShell,
    PreExec,
    PostExec,
    /// among the jobs of the queue: -sp, or half of MAX_USER_PRIORITY; 0 none
    Priority,
    Attempt,
    /// [njobs pend done run exit ssusp ususp psusp]
    Counters,
    /// array's running limit; 0 none
    ArrayLimit,
    /// [[index, sched or null, stop or null] * 11] in the order of the load indices
    Thresholds,
    /// seconds; last usage report
    UsageTime,
    /// true: -H and not yet released
    Held,
    /// what could not be done as asked; empty none
    ExecNote,
    /// object: what is kept of further options ([`JobSpec::further`])
    Extra,
    /// words: overrun, underrun, idle; empty none
    Exceptions,
    /// float; CPU factor of the first execution host, 0 none
    HostFactor,
    /// the share account that a started job is charged to, `/group/user`; empty none
    Charged,
    /// float; most processors used at a time, null unknown
    CpuPeak,
    /// seconds after its start when that was, null unknown
    CpuPeakSecs,
    /// `run`, `done`, `err`: the commands after a job that has ended, where it has some
    Post,
    /// the last requests of bkill, bstop and bresume: [[host, reason] * 3]; both empty where there
    /// was none, the reason also where none was given
    Issued,
    /// seconds pending without being eligible; null while that is not tracked
    IneligibleTime,
    /// [seconds or null * 2]: PEND_TIME_LIMIT and ELIGIBLE_PEND_TIME_LIMIT of the queue
    PendLimits,
    /// [[name, `sched/stop`]...]: of external indices, the tighter of the queue's and the host's
    ExternalThresholds,
    /// -sp as given; 0 where it was not
    UserPriority,
    /// [int...]: the process group of each of the processes; [] where there is one
    PidGroups,
    /// [[index, user, time, text, 1 where data came with it]...]: the external messages, by index
    Messages,
    /// the smallest changes after which a pending job could start: [[[host or null, [[number,
    /// name]...]]...]...]: so many slots (empty name), so much of a resource, or, of a negative
    /// number, the pending reason that no longer holds and the resource that it is about
    StartNeeds,
    /// the processor units of a started job ([`crate::model::affinity::JobUnits`]); empty none
    ProcessorUnits,
    /// [when it began, when the job starts or 0, [[host, slots]...]]: the slots reserved, or null
    Reservation,
    /// null, or [absolute priority, set as a whole, number of `admin`, [`ApsFactor::ALL`...]]
    AbsolutePriority,
    /// The requirements that bjobs -l shows (BJOBS_RES_REQ_DISPLAY): null: combined and effective;
    /// ["none"]; ["full", RES_REQ of the application profile, RES_REQ of the queue]
    ResReqLevels,
    /// of the host of a started job ([`crate::model::nqs::NlbPlacement`]); empty none
    NlbPlacement,
    /// the external index for which a job is suspended; empty none
    SuspIndex,
    /// [[host, KB of memory, KB of swap, seconds of CPU time as float, [pid...], [process
    /// group...]]...]: what a started job on several hosts uses on each of them; [] else
    HostUsage,
    /// the next try to route a request of a pipe queue; 0 none
    NextTry,
    /// as PendReasons, whatever CONDENSE_PENDING_REASONS says
    AllPendReasons,
    /// as ExecHosts, with host groups and compute units that have CONDENSE in place of their hosts
    CondensedHosts,
    /// [seconds, true: by the run limit of `Limits`]: the limit that a started job reaches first
    /// where it runs; of a pending job the base of EXTENDABLE_RUNLIMIT; null none
    RunLimit,
}

/// bhosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostInfo {
    pub name: String,
    /// The long form: `ok`, `closed_Adm`, `unavail`, `unreach` ...
    pub status: String,
    pub cpu_factor: f64,
    pub jl_u: Option<u64>,
    pub max: Option<u64>,
    pub njobs: u64,
    pub run: u64,
    pub ssusp: u64,
    pub ususp: u64,
    pub rsv: u64,
    pub dispatch_window: String,
    pub load: Option<crate::proto::lim::HostLoad>,
    /// Reserved by jobs, by built-in index.
    pub reserved: Vec<f64>,
    /// Reserved of other resources by name; those of which nothing is are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reserved_external: Vec<(String, String)>,
    pub thresholds: Vec<(Option<f64>, Option<f64>)>,
    /// `sched/stop` of external indices by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<(String, String)>,
    pub admin_comment: String,
    /// MIG, minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration: Option<u64>,
    /// Columns of lsb.hosts that nothing acts on, as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_acted_on: Vec<(String, String)>,
    /// AFFINITY of lsb.hosts; `None`: N.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Box<HostUnits>>,
    /// The exits of jobs that are no exception, and those of the last time (EXIT_RATE); `None`:
    /// any number is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_rate: Option<(u32, u32)>,
    /// The host groups and compute units that are shown in place of the host (CONDENSE).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub condensed: Vec<String>,
}

impl HostInfo {
    /// Have too many jobs exited on the host lately?
    pub fn is_exceptional(&self) -> bool {
        self.exit_rate.is_some_and(|(threshold, exits)| exits > threshold)
    }
}

/// The processor units of a host for jobs that ask for some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostUnits {
    /// Numbers of the CPUs that jobs may be given, as `0,2-5`; empty: all.
    pub cpus: String,
    /// The CPUs that jobs have, likewise.
    pub taken: String,
    /// NUMA nodes with the memory that jobs asked for there, MB.
    pub memory: Vec<(u32, u64)>,
}

/// bwait, bsub -K.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Wait {
    pub expr: String,
    /// Seconds; 0 for ever.
    pub timeout: u64,
    /// bjobs --watch, in the place of `expr`: answered by `True` when a job that this lets through
    /// has changed since the last answer. Asked again on the same connection, it goes on there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Box<JobSelect>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waited {
    True,
    Never,
    Timeout,
    /// bsub -K: the job's end (see `Col::ExitCode`); also sent for `ended(ID)` of one job.
    Ended {
        exit_code: Option<i32>,
        status: u32,
        started: bool,
    },
}
