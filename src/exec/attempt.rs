//! One attempt of a job on this host: its state, the part of it that survives sbatchd (the note
//! kept by the launcher), how it is killed, and its resource usage.

use crate::exec::clock_steps::ClockMark;
use crate::exec::host_commands::HostsAsked;
use crate::exec::host_limits::{cpu, exceeds, memory, memory_of_each, waits_for_host};
use crate::exec::others_usage::ReportWait;
use crate::exec::report;
use crate::model::checkpoint::{CheckpointEnd, CheckpointOrder};
use crate::model::further::{CHKPNT, SignalNumber, WarnAction, WarnTime};
use crate::model::job::{End, Usage, opt};
use crate::model::job_control::ControlVerb;
use crate::model::limits::LimitEnforcement;
use crate::model::reason::term;
use crate::model::resize::{ResizeOrder, ResizeTold};
use crate::model::signals::IGNORED_SIGNALS;
use crate::model::{Now, time::US};
use crate::proto::launch::{
    Plan, Ready, Setup, TaskEnd, TaskGroup, TaskId, TaskIdentity, TaskProcesses, TaskStep,
};
use crate::proto::sbd::{AttemptPhase, Post, StartJob, TaskState};
use serde::{Deserialize, Serialize};

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGUSR2: i32 = 12;
const SIGTERM: i32 = 15;
const SIGSTOP: i32 = 19;
const SIGTSTP: i32 = 20;
const SIGXCPU: i32 = 24;

/// The time between SIGUSR2 and SIGKILL once a termination deadline (-t) has passed, seconds.
pub const DEADLINE_GRACE: u64 = 600;
/// First look at what a new job uses, microseconds after its start.
pub const FIRST_SAMPLE: u64 = US;
/// Interval between two measurements of a job with a limit on its usage, microseconds.
pub const LIMIT_SAMPLE: u64 = US;

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptStage {
    /// Waiting for its environment or script.
    Blobs,
    /// Asked of the launcher.
    Launching,
    /// Running or suspended.
    Running,
    /// Over; the report is being written.
    Finishing,
    /// Over, told to mbatchd, waiting to be forgotten.
    Over,
}

/// Signals still to be sent, one by one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kill {
    /// The last one is repeated until the job is gone.
    pub signals: Vec<i32>,
    /// Seconds between two.
    pub pause: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn i32_is_zero(n: &i32) -> bool {
    *n == 0
}

fn i64_is_zero(n: &i64) -> bool {
    *n == 0
}

/// A command of JOB_CONTROLS that runs, or is to run as soon as the environment of the job is here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningControl {
    pub verb: ControlVerb,
    /// Seconds since the epoch.
    pub since: i64,
    /// The suspending reason.
    #[serde(default)]
    pub why: u32,
    /// The request that follows, with its suspending reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<(ControlVerb, u32)>,
}

/// A checkpoint that is to be made or is being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WantedCheckpoint {
    pub order: CheckpointOrder,
    /// The order is of bchkpnt, not of the period.
    pub asked: bool,
    pub running: bool,
    /// JOB_CONTROLS asks for it: the request that follows, with its suspending reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<(ControlVerb, u32)>,
}

/// The end of a job that is told when its checkpoint has ended.
#[derive(Clone, Debug)]
pub struct HeldEnd {
    pub setup: Option<Setup>,
    pub ended: Box<TaskEnd>,
}

/// State that changes and must survive sbatchd.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptMark {
    /// The last order acted on, by an older mbatchd's number and by its own.
    pub seq: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub order: u64,
    /// TERM_ number; 0 none.
    pub exit_info: u32,
    pub kill: Option<Kill>,
    /// The signal of bkill -s that came before the job itself began; 0 none.
    #[serde(skip_serializing_if = "i32_is_zero")]
    pub signalled: i32,
    /// Suspended since; 0: not.
    pub susp_since: i64,
    /// Seconds suspended before.
    pub susp_secs: i64,
    /// How this host's clock was set meanwhile.
    pub clock: ClockMark,
    /// When SIGSTOP follows the signal that suspended it, seconds since the epoch; 0: none does.
    #[serde(skip_serializing_if = "i64_is_zero")]
    pub stop_by: i64,
    /// The warning action of -wa was taken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warned: bool,
    /// The command of JOB_CONTROLS that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<RunningControl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<WantedCheckpoint>,
    /// The order that came while a checkpoint of the period was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_wanted: Option<CheckpointOrder>,
    /// The last checkpoint.
    #[serde(skip_serializing_if = "CheckpointEnd::is_none")]
    pub checkpoint: CheckpointEnd,
    /// The job ends together with its post-execution commands.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_post: bool,
    /// The change of its slots that is ordered, and the last one that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<Box<ResizeOrder>>,
    #[serde(skip_serializing_if = "ResizeTold::is_none")]
    pub resized: ResizeTold,
    /// The report is written by a task of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub report_apart: bool,
}

/// The note the launcher keeps: an sbatchd that starts again knows all from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    pub order: StartJob,
    /// The part of the command or script that the report shows.
    pub shown: String,
    pub mark: AttemptMark,
}

/// The warning action of -wa.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    Signal(i32),
    /// Shell text.
    Command(String),
    Checkpoint,
}

/// The last report of an attempt's usage.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub usage: Usage,
    /// Sorted.
    pub pids: Vec<u32>,
}

/// Why a kill was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// bkill and its kin.
    Asked(u32),
    RunLimit,
    CpuLimit,
    Deadline,
    /// Memory, swap, processes, threads: the TERM_ number.
    Limit(u32),
    /// mbatchd no longer wants to hear of it.
    Forgotten,
}

impl Cause {
    /// SIGKILL at once.
    pub fn by_force(self) -> bool {
        match self {
            Cause::Asked(info) => matches!(info, term::FORCE_OWNER | term::FORCE_ADMIN),
            Cause::Forgotten => true,
            _ => false,
        }
    }
}

/// An attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub note: Note,
    pub stage: AttemptStage,
    /// Kept until it runs, to be sent again to a launcher that lost the first.
    pub plan: Option<Box<Plan>>,
    /// Seconds since the epoch.
    pub accepted: i64,
    pub started: i64,
    pub pid: u32,
    /// Start of that process in clock ticks since boot, and the control group of the job.
    pub ticks: u64,
    pub group: Option<Box<TaskGroup>>,
    pub ready: Ready,
    /// Set once over.
    pub outcome: Option<(AttemptPhase, i64)>,
    /// The troubles of its report, output or transfers.
    pub after: String,
    pub post: Post,
    /// The job never ran, but PRE_EXEC of its queue had succeeded: POST_EXEC follows.
    pub begun: bool,
    /// The exit value of the pre-execution command that failed; 0: none has.
    pub pre_exit: u8,
    /// The other host where that was; empty: this one.
    pub pre_host: String,
    /// The other hosts whose command is waited for.
    pub hosts: Option<Box<HostsAsked>>,
    /// HOST_PRE_EXEC has succeeded on the other hosts.
    pub hosts_ready: bool,
    /// Suspend before it runs: done when it does.
    pub suspend_asked: bool,
    /// The reason of the last order to suspend it.
    pub suspend_why: u32,
    /// Monotonic instants, microseconds.
    pub kill_at: Option<u64>,
    /// When SIGSTOP follows the signal that suspended it.
    pub stop_at: Option<u64>,
    pub run_at: Option<u64>,
    pub warn_at: Option<u64>,
    /// When the environment for a command of JOB_CONTROLS is searched again, and when that command
    /// is given up.
    pub control_at: Option<u64>,
    pub control_by: Option<u64>,
    /// When the next checkpoint of the period is due.
    pub checkpoint_at: Option<u64>,
    pub held_end: Option<HeldEnd>,
    /// The notification command that runs.
    pub resize_runs: ResizeTold,
    pub sample_at: Option<u64>,
    pub report: ReportWait,
    pub finish_by: Option<u64>,
    /// The end of the time that a script has to clean up, before the report is written.
    pub cleans_until: Option<u64>,
    /// When what runs after it is killed.
    pub post_by: Option<u64>,
    pub sim_end: Option<u64>,
    pub usage: Usage,
    /// The last report about the attempt.
    pub told: Option<Told>,
    pub report_at: u64,
    pub pids: Vec<u32>,
    pub pgids: Vec<u32>,
    /// The process group of each of `pids`.
    pub groups: Vec<u32>,
    pub max_procs: u32,
    pub max_threads: u32,
    samples: u64,
    mem_sum: u64,
    /// The last measurement for the peak of CPU time: its time, and the CPU time then,
    /// microseconds.
    looked: Option<(u64, u64)>,
}

impl Attempt {
    pub fn new(order: StartJob, now: Now) -> Self {
        let shown = report::shown(&order.spec.command.0);
        let mark = AttemptMark { clock: ClockMark::begin(now), ..AttemptMark::default() };
        Attempt::noted(Note { order, shown, mark }, now)
    }

    /// Rebuilds an attempt from the note that the launcher keeps of it.
    pub fn noted(note: Note, now: Now) -> Self {
        let report = ReportWait::of(note.mark.report_apart);
        Attempt {
            note,
            stage: AttemptStage::Blobs,
            plan: None,
            accepted: now.secs(),
            started: 0,
            pid: 0,
            ticks: 0,
            group: None,
            ready: Ready::default(),
            outcome: None,
            after: String::new(),
            post: Post::None,
            begun: false,
            pre_exit: 0,
            pre_host: String::new(),
            hosts: None,
            hosts_ready: false,
            suspend_asked: false,
            suspend_why: 0,
            kill_at: None,
            stop_at: None,
            run_at: None,
            warn_at: None,
            control_at: None,
            control_by: None,
            checkpoint_at: None,
            held_end: None,
            resize_runs: ResizeTold::default(),
            sample_at: None,
            report,
            finish_by: None,
            cleans_until: None,
            post_by: None,
            sim_end: None,
            usage: Usage::default(),
            told: None,
            report_at: 0,
            pids: Vec::new(),
            pgids: Vec::new(),
            groups: Vec::new(),
            max_procs: 0,
            max_threads: 0,
            samples: 0,
            mem_sum: 0,
            looked: None,
        }
    }

    /// The attributes by which the processes of the job are found.
    pub fn identity(&self) -> TaskIdentity {
        let id = TaskId { key: self.note.order.key, step: TaskStep::Job };
        let (uid, group) = (self.note.order.uid, self.group.clone());
        TaskIdentity { id, uid, pid: self.pid, ticks: self.ticks, group, child: false }
    }

    /// The attempt is neither over nor about to be.
    pub fn live(&self) -> bool {
        matches!(self.stage, AttemptStage::Launching | AttemptStage::Running)
    }

    /// The account of ~/.lsfhosts that the job runs or ran under; empty: that of its user.
    pub fn account(&self) -> String {
        let accepted = |account: &&String| self.ready.user == **account;
        Some(&self.note.order.account).filter(accepted).cloned().unwrap_or_default()
    }

    /// Remembers a signal of bkill -s that reaches a command before the job.
    pub fn note_signal(&mut self, number: i32) {
        if self.stage == AttemptStage::Launching && !IGNORED_SIGNALS.contains(&number) {
            self.note.mark.signalled = number;
        }
    }

    pub fn suspended(&self) -> bool {
        self.note.mark.susp_since != 0
    }

    /// Seconds it has run by `secs`, suspended time not counted.
    pub fn run_secs(&self, secs: i64) -> i64 {
        let m = &self.note.mark;
        let now = if m.susp_since != 0 { m.susp_since } else { secs };
        (now - self.started - m.susp_secs - m.clock.set_by()).max(0)
    }

    /// Takes into account by how much the clock was set; false: it was not.
    pub fn follow_clock(&mut self, now: Now) -> bool {
        let mark = &mut self.note.mark;
        let by = mark.clock.follow(now);
        if mark.susp_since != 0 {
            mark.susp_since = mark.susp_since.saturating_add(by);
        }
        by != 0
    }

    /// The job runs: its limits count from now on.
    pub fn arm(&mut self, now: Now) {
        let limits = &self.note.order.limits;
        let left = limits.run.map(|l| (l as i64).saturating_sub(self.run_secs(now.secs())));
        self.run_at = left.map(|left| now.mono_of_wall(now.secs().saturating_add(left)));
        if self.suspended() || self.note.mark.kill.is_some() {
            self.run_at = None;
        }
        self.arm_stop(now);
        let term = self.note.order.spec.term_time;
        if term > 0 && self.note.mark.kill.is_none() {
            let at = now.mono_of_wall(term);
            self.run_at = Some(self.run_at.map_or(at, |r| r.min(at)));
        }
        self.warn_at = match (self.run_at, self.warning()) {
            (Some(at), Some((_, lead))) if !self.note.mark.warned => {
                Some(at.saturating_sub(lead.saturating_mul(US)))
            }
            _ => None,
        };
        if self.sample_at.is_none() {
            self.sample_at = Some(now.mono_us + FIRST_SAMPLE);
        }
        if let Some(kill) = self.note.mark.kill.as_ref().filter(|kill| !kill.signals.is_empty())
            && self.note.mark.control.is_none()
            && self.kill_at.is_none()
        {
            self.kill_at = Some(now.after(kill.pause));
        }
    }

    /// Whether the end of the job is told later: while it is checkpointed to be killed.
    pub fn holds_end(&mut self, setup: &Option<Setup>, ended: &TaskEnd) -> bool {
        let mark = &self.note.mark;
        let kills = mark.wanted.is_some_and(|w| w.running && w.order.kill);
        let checkpoints = mark.control.is_some_and(|c| c.verb == ControlVerb::Checkpoint);
        if !kills || !checkpoints || self.stage != AttemptStage::Running {
            return false;
        }
        let (setup, ended) = (setup.clone(), Box::new(*ended));
        self.held_end = Some(HeldEnd { setup, ended });
        true
    }

    /// Sets the time of the SIGSTOP that follows another signal.
    pub fn arm_stop(&mut self, now: Now) {
        let stop_by = self.note.mark.stop_by;
        self.stop_at = (stop_by != 0 && self.suspended()).then(|| now.mono_of_wall(stop_by));
    }

    /// Sets the time of the next checkpoint of the period.
    pub fn arm_checkpoint(&mut self, now: Now) {
        let last = &self.note.mark.checkpoint;
        let submitted = self.note.order.spec.further.checkpoint.as_deref();
        let of_job = submitted.and_then(|c| c.period);
        let period = last.period.or(of_job).filter(|minutes| *minutes > 0);
        let first = submitted.and_then(|c| c.init).filter(|_| last.period.is_none());
        let minutes = if last.number == 0 { first.or(period) } else { period };
        let wait = minutes.filter(|_| submitted.is_some()).map(|m| i64::from(m) * 60);
        let begun =
            if last.number == 0 && last.period.is_none() { self.started } else { now.secs() };
        self.checkpoint_at = wait.map(|secs| now.mono_of_wall(begun.saturating_add(secs)));
    }

    /// The warning action of -wa, and how many seconds before the limit or deadline it is due.
    pub fn warning(&self) -> Option<(Warning, u64)> {
        let o = &self.note.order;
        let action = match o.spec.further.warn_action.as_ref()? {
            WarnAction::Signal(SignalNumber(number)) => Warning::Signal(*number),
            WarnAction::Command(command) if &**command == CHKPNT => Warning::Checkpoint,
            WarnAction::Command(command) => Warning::Command(command.to_string()),
        };
        let lead = match o.spec.further.warn_time? {
            WarnTime::Percent(share) => {
                let limit = o.limits.run.or_else(|| {
                    let term = o.spec.term_time.checked_sub(self.started)?;
                    u64::try_from(term).ok()
                })?;
                limit.saturating_mul(share) / 100
            }
            WarnTime::Seconds(lead) => lead,
        };
        Some((action, lead))
    }

    /// The time limit that has passed, if one has.
    pub fn overdue(&self, now: Now) -> Option<Cause> {
        let o = &self.note.order;
        if o.limits.run.is_some_and(|limit| self.run_secs(now.secs()) >= limit as i64) {
            return Some(Cause::RunLimit);
        }
        (o.spec.term_time > 0 && now.secs() >= o.spec.term_time).then_some(Cause::Deadline)
    }

    fn parallel(&self) -> bool {
        self.note.order.hosts.iter().map(|h| h.1.max(1)).sum::<u32>() > 1
    }

    /// The signal that suspends it; `named`: LSB_SIGSTOP.
    pub fn stop_signal(&self, named: Option<i32>) -> i32 {
        let interactive = self.note.order.spec.options & opt::INTERACTIVE != 0;
        named.unwrap_or(if self.parallel() || interactive { SIGTSTP } else { SIGSTOP })
    }

    /// Begins to kill; the first signal is due at once. False: it is being killed already.
    pub fn start_termination(&mut self, cause: Cause, interval: u64, now: Now) -> bool {
        let force = cause.by_force();
        // the action of the queue is taken for each request
        let again = |kill: &Kill| kill.signals.is_empty() && matches!(cause, Cause::Asked(_));
        if self.note.mark.kill.as_ref().is_some_and(|kill| !force && !again(kill)) {
            return false;
        }
        let (exit_info, first) = match cause {
            Cause::Asked(info) => (info, None),
            Cause::RunLimit => (term::RUNLIMIT, Some(SIGUSR2)),
            Cause::CpuLimit => (term::CPULIMIT, Some(SIGXCPU)),
            Cause::Deadline => (term::DEADLINE, Some(SIGUSR2)),
            Cause::Limit(info) => (info, None),
            Cause::Forgotten => (self.note.mark.exit_info, None),
        };
        let (mut signals, mut pause) = (vec![SIGINT, SIGTERM, SIGKILL], interval.max(1));
        if force || (self.parallel() && matches!(cause, Cause::Asked(_))) {
            signals = vec![SIGKILL];
        } else if cause == Cause::Deadline {
            (signals, pause) = (vec![SIGKILL], DEADLINE_GRACE);
        }
        if let Some(first) = first {
            signals.insert(0, first);
        }
        self.note.mark.exit_info = exit_info;
        self.note.mark.kill = Some(Kill { signals, pause });
        self.kill_at = Some(now.mono_us);
        (self.run_at, self.warn_at) = (None, None);
        true
    }

    /// The next signal of the kill under way; the last one stays.
    pub fn next_signal(&mut self, now: Now) -> Option<i32> {
        let kill = self.note.mark.kill.as_mut()?;
        let signal = *kill.signals.first()?;
        if kill.signals.len() > 1 {
            kill.signals.remove(0);
        }
        self.kill_at = Some(now.after(kill.pause));
        Some(signal)
    }

    /// Takes a look at its processes; says which limit they are over.
    pub fn sampled(
        &mut self,
        now: Now,
        s: &TaskProcesses,
        enforced: LimitEnforcement,
    ) -> Option<Cause> {
        let waits = waits_for_host(&self.note.order, enforced);
        let u = &mut self.usage;
        let (max_mem, max_swap) = (u.max_mem_kb, u.max_swap_kb);
        let (cpu_peak, cpu_peak_secs) = (u.cpu_peak, u.cpu_peak_secs);
        *u = Usage { cpu_peak, cpu_peak_secs, ..s.usage };
        self.note_peak(now);
        let u = &mut self.usage;
        u.max_mem_kb = max_mem.max(u.mem_kb);
        u.max_swap_kb = max_swap.max(u.swap_kb);
        self.samples += 1;
        self.mem_sum += u.mem_kb;
        u.avg_mem_kb = self.mem_sum / self.samples;
        self.pids.clone_from(&s.pids);
        self.pgids.clone_from(&s.pgids);
        self.groups.clone_from(&s.groups);
        self.max_procs = self.max_procs.max(u.nprocs);
        self.max_threads = self.max_threads.max(u.nthreads);
        let l = &self.note.order.limits;
        let over = |limit: Option<u64>, used: u64| limit.is_some_and(|l| used > l);
        // the kernel counts the pages that processes share once
        let by_kernel = self.group.as_ref().is_some_and(|group| !group.memory.is_empty());
        let measured = memory(l, enforced).filter(|_| !by_kernel && !waits);
        if s.out_of_memory || over(measured, u.mem_kb) || exceeds(l, s) {
            Some(Cause::Limit(term::MEMLIMIT))
        } else if over(l.swap, u.swap_kb) {
            Some(Cause::Limit(term::SWAP))
        } else if over(cpu(l, enforced), (u.utime_us + u.stime_us) / US) {
            Some(Cause::CpuLimit)
        } else if over(l.process, u64::from(u.nprocs)) {
            Some(Cause::Limit(term::PROCESSLIMIT))
        } else if over(l.thread, u64::from(u.nthreads)) {
            Some(Cause::Limit(term::THREADLIMIT))
        } else {
            None
        }
    }

    /// Keeps the most processors used between two looks, the first being at its start.
    fn note_peak(&mut self, now: Now) {
        let u = &mut self.usage;
        let cpu = u.utime_us + u.stime_us;
        let ran = u64::try_from(now.secs() - self.started).unwrap_or(0);
        let (used, passed) = match self.looked {
            // the start is known by the second
            None => (cpu, (ran + 1) * US),
            Some((at, before)) => (cpu.saturating_sub(before), now.mono_us.saturating_sub(at)),
        };
        if passed < US {
            return;
        }
        self.looked = Some((now.mono_us, cpu));
        let peak = u32::try_from(used.saturating_mul(100) / passed).unwrap_or(u32::MAX);
        if peak > u.cpu_peak {
            (u.cpu_peak, u.cpu_peak_secs) = (peak, u32::try_from(ran).unwrap_or(u32::MAX));
        }
    }

    /// How long until the next look, microseconds; `usual`: that of a job without limits on its
    /// usage, seconds.
    pub fn sample_pause(&self, usual: u64, enforced: LimitEnforcement) -> u64 {
        let l = &self.note.order.limits;
        let each = memory_of_each(l);
        let all = [memory(l, enforced), each, l.swap, cpu(l, enforced), l.process, l.thread];
        let limited = all.iter().any(Option::is_some);
        let usual = usual.max(1) * US;
        if limited { usual.min(LIMIT_SAMPLE) } else { usual }
    }

    /// The usage differs by more than `share` from the one reported last, or a process is new; a
    /// new process group begins with a new process.
    pub fn news(&self, share: f64) -> bool {
        let Some(Told { usage: old, pids }) = &self.told else { return true };
        let changed = |a: u64, b: u64| a.abs_diff(b) as f64 > share * a.max(b) as f64;
        let new = &self.usage;
        changed(old.mem_kb, new.mem_kb)
            || changed(old.swap_kb, new.swap_kb)
            || changed(old.utime_us + old.stime_us, new.utime_us + new.stime_us)
            || self.pids.iter().any(|pid| pids.binary_search(pid).is_err())
    }

    /// Joins what the system counted at the end.
    pub fn final_usage(&mut self, now: Now, end: Usage) {
        let u = &mut self.usage;
        if end.utime_us + end.stime_us >= u.utime_us + u.stime_us {
            (u.utime_us, u.stime_us) = (end.utime_us, end.stime_us);
        }
        self.note_peak(now);
        let u = &mut self.usage;
        u.max_mem_kb = u.max_mem_kb.max(end.max_mem_kb);
        if u.avg_mem_kb == 0 {
            u.avg_mem_kb = end.max_mem_kb;
        }
        let max_mem_kb = u.max_mem_kb;
        let (utime_us, stime_us) = (u.utime_us, u.stime_us);
        *u = Usage {
            utime_us,
            stime_us,
            max_mem_kb,
            avg_mem_kb: u.avg_mem_kb,
            max_swap_kb: u.max_swap_kb,
            nthreads: self.max_threads,
            nprocs: self.max_procs,
            cpu_peak: u.cpu_peak,
            cpu_peak_secs: u.cpu_peak_secs,
            ..end
        };
    }

    /// Whether the job of the attempt never ran.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Some((AttemptPhase::Failed { .. }, _)))
    }

    /// The attempt's state in the form that is reported to mbatchd.
    pub fn state(&self) -> TaskState {
        let o = &self.note.order;
        let mark = &self.note.mark;
        let (phase, time) = match (&self.outcome, self.stage) {
            (Some((phase, time)), AttemptStage::Over) => (phase.clone(), *time),
            (Some((AttemptPhase::Failed { .. }, _)), _) => (AttemptPhase::Starting, self.accepted),
            (_, AttemptStage::Blobs | AttemptStage::Launching) => {
                (AttemptPhase::Starting, self.accepted)
            }
            _ if mark.susp_since != 0 => (AttemptPhase::Suspended, mark.susp_since),
            _ => (AttemptPhase::Running, self.started),
        };
        TaskState {
            key: o.key,
            phase,
            time,
            pid: self.pid,
            pgid: self.pid,
            uid: if self.ready.uid == 0 { o.uid } else { self.ready.uid },
            exec_user: self.ready.user.clone(),
            exec_cwd: self.ready.cwd.clone(),
            exec_home: self.ready.home.clone(),
            note: self.ready.note.clone(),
            after: self.after.clone(),
            usage: self.usage,
            // that of an attempt that never ran is no part of the job's story
            post: if self.failed() { Post::None } else { self.post },
            pre_exit: self.pre_exit,
            pre_host: self.pre_host.clone(),
            checkpoint: mark.checkpoint,
            resize: if self.resize_runs.is_none() { mark.resized } else { self.resize_runs },
        }
    }

    /// The end of the attempt, if its job ran: how, the TERM_ number, when.
    pub fn end(&self) -> Option<(End, u32, i64)> {
        match self.outcome {
            Some((AttemptPhase::Ended { end, exit_info }, time)) => Some((end, exit_info, time)),
            _ => None,
        }
    }
}
