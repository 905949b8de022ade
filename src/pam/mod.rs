//! pam as a pure machine: the tasks of a parallel job that its launcher (the PJL) starts through
//! TaskStarters, and what becomes of the job when one of them fails (pam(1)).
//!
//! Signals go to tasks through their TaskStarters, however these were begun. A TaskStarter that
//! ends takes its task with it. Tasks whose TaskStarter is cut off are signalled by RES: it starts
//! a TaskStarter that does this as the user, so that the kernel judges what may be signalled, and
//! RES needs no message of its own for it. Once a TaskStarter tries no longer to come back, its
//! task is killed in this way; it is told as `Unknown`. sbatchd of each host measures the tasks:
//! pam asks nobody for their usage.
//!
//! Time is that in which the job has run, microseconds: while the job is stopped it stands still.
//!
//! Invariants: tasks are numbered in the order in which their starters say hello; a task is over
//! once: by its end, because it could not be started, or because its starter is lost; once the
//! end has begun, no further task is taken; the end takes [`WAIT_END`] at most after the last
//! signal of its own.

pub mod command;
pub mod geometry;
pub mod table;
mod tasks;

pub use tasks::TaskProcess;

use crate::model::JobRef;
use crate::model::time::US;
use crate::proto::machine::ConnId;
use crate::proto::pam::{PamMsg, TASKS_MAX};
use std::collections::BTreeSet;
use tasks::{Task, TaskPhase, Tasks};

/// Between TERM and KILL, microseconds.
pub const TERM_TO_KILL: u64 = 10 * US;
/// After KILL no longer is waited than this, microseconds.
pub const WAIT_END: u64 = 5 * US;
/// How long a TaskStarter whose connection is lost tries to come back, microseconds.
pub const COMES_BACK: u64 = 30 * US;
/// The time that the PJL has to end by itself after a task has ended badly, microseconds.
pub const PJL_GRACE: u64 = 3 * US;
/// The variable in which the PJL, and blaunch in it, finds [`PamConf::usage_ms`].
pub const USAGE_MS: &str = "LSF_PAM_RUSAGE_UPD_MS";
/// Most of it: a day.
pub const USAGE_MS_MAX: u32 = 86_400_000;
/// pam's own exit code where the job could not be run.
pub const FAILED: i32 = 125;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// The settings of a pam.
#[derive(Clone, Debug, Default)]
pub struct PamConf {
    pub job: JobRef,
    /// How many tasks the PJL is to start.
    pub expected: usize,
    /// LSF_HPC_PJL_LOADENV_TIMEOUT, seconds.
    pub register_within: u64,
    /// LSF_PAM_CLEAN_JOB_DELAY, seconds.
    pub clean_delay: u64,
    /// LSF_PAM_RUSAGE_UPD_FACTOR, seconds for each task.
    pub factor: f64,
    /// The hosts on which tasks may be.
    pub hosts: Vec<String>,
    /// Registrations and ends are told.
    pub verbose: bool,
}

impl PamConf {
    /// The time by which the usage of the tasks is measured less often, milliseconds.
    pub fn usage_ms(&self) -> u32 {
        // as many tasks as are expected, whether they are there yet or not
        let ms = self.factor * 1000.0 * self.expected as f64;
        ms.round().clamp(0.0, f64::from(USAGE_MS_MAX)) as u32
    }
}

/// An event.
#[derive(Clone, Debug)]
pub enum PamInput {
    /// A TaskStarter on this host, of the same user, says something.
    Said { conn: ConnId, host: String, msg: PamMsg },
    /// The connection of a TaskStarter is over.
    Closed { conn: ConnId },
    /// Raw wait status.
    PjlEnded { status: i32 },
    /// A signal for the job. The batch system's does not come here: all processes have it.
    Signal { signal: i32 },
    /// RES of a host has not signalled tasks there.
    NotByRes { host: String },
    /// Nothing but time.
    Tick,
}

/// An order to the runner.
#[derive(Clone, Debug, PartialEq)]
pub enum PamEffect {
    Send {
        conn: ConnId,
        msg: PamMsg,
    },
    /// No task of such a TaskStarter is wanted; close.
    Refuse {
        conn: ConnId,
        why: String,
    },
    /// A signal for tasks whose TaskStarters are cut off, by RES of their host.
    SignalByRes {
        host: String,
        processes: Vec<TaskProcess>,
        signal: i32,
    },
    /// A signal for the process group of the PJL.
    SignalPjl {
        signal: i32,
    },
    /// A line for the user.
    Say(String),
    /// The end; [`Pam::table`] is complete.
    End(PamEnd),
}

/// The end of pam.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PamEnd {
    /// The PJL's end: raw wait status.
    AsPjl(i32),
    Code(i32),
}

/// The end that pam takes over.
#[derive(Clone, Copy, Debug)]
enum EndCode {
    Pjl,
    Code(i32),
    /// The PJL's if it ends by then, else this code.
    PjlUntil(u64, i32),
}

/// The job is being ended.
#[derive(Clone, Copy, Debug)]
struct Ending {
    code: EndCode,
    /// TERM for the PJL; already sent: `None`.
    term_pjl_at: Option<u64>,
    /// KILL for all; already sent: `None`.
    kill_at: Option<u64>,
    until: u64,
}

/// The machine.
pub struct Pam {
    conf: PamConf,
    started: u64,
    tasks: Tasks,
    /// When the PJL ended, and its raw wait status.
    pjl: Option<(u64, i32)>,
    /// Fewer tasks than expected are waited for until then.
    register_by: Option<u64>,
    /// A task has ended badly: its number, and when the job is ended for that.
    clean: Option<(usize, u64)>,
    /// When the last task ended.
    last_end: u64,
    ending: Option<Ending>,
    over: bool,
    /// Hosts of which it was said that RES has not taken tasks into the job.
    outside: BTreeSet<String>,
    /// Hosts of which it was said that RES does not signal tasks.
    unreached: BTreeSet<String>,
}

impl Pam {
    /// The PJL has just been started.
    pub fn new(conf: PamConf, now: u64) -> Pam {
        let register_by = Some(now + conf.register_within * US);
        Pam {
            conf,
            started: now,
            tasks: Tasks::default(),
            pjl: None,
            register_by,
            clean: None,
            last_end: now,
            ending: None,
            over: false,
            outside: BTreeSet::new(),
            unreached: BTreeSet::new(),
        }
    }

    /// The rows of the table of tasks; none where no task has registered.
    pub fn table(&self) -> Vec<table::TaskRow> {
        self.tasks.rows()
    }

    /// Takes an input; what is to be done is appended to `out`.
    pub fn step(&mut self, now: u64, input: PamInput, out: &mut Vec<PamEffect>) {
        if let PamInput::NotByRes { host } = input {
            return self.not_by_res(host, out);
        }
        if self.over {
            return;
        }
        match input {
            PamInput::Said { conn, host, msg } => self.said(now, conn, &host, msg, out),
            PamInput::Closed { conn } => self.closed(now, conn, out),
            PamInput::PjlEnded { status } => self.pjl = Some((now, status)),
            PamInput::Signal { signal } => {
                out.push(PamEffect::SignalPjl { signal });
                self.signal_tasks(signal, out);
                self.signal_cut_off(now, (signal, false), out);
            }
            PamInput::Tick | PamInput::NotByRes { .. } => {}
        }
        self.judge(now, out);
        self.due(now, out);
    }

    /// When there is more to do.
    pub fn deadline(&self) -> Option<u64> {
        if self.over {
            return None;
        }
        let Some(ending) = &self.ending else {
            let clean = self.clean.map(|(_, at)| at);
            let all = [self.register_by, clean, self.silent_pjl_at(), self.given_up_at()];
            return all.into_iter().flatten().min();
        };
        let next = [ending.term_pjl_at, ending.kill_at, Some(ending.until)];
        next.into_iter().flatten().min()
    }

    // ---- TaskStarters ----

    fn said(&mut self, now: u64, conn: ConnId, host: &str, msg: PamMsg, out: &mut Vec<PamEffect>) {
        if let PamMsg::Hello { job, again, command, .. } = msg {
            match self.not_wanted(conn, host, job, again) {
                Some(why) => out.push(PamEffect::Refuse { conn, why }),
                None => self.hello(conn, Task::new(host, &command), again, out),
            }
            return;
        }
        let Some(tid) = self.tasks.of_conn(conn) else {
            let why = "no hello".to_owned();
            return out.push(PamEffect::Refuse { conn, why });
        };
        let words = match msg {
            PamMsg::Started { pid, ticks, outside } => {
                self.tasks.get_mut(tid).phase = TaskPhase::Running(TaskProcess { pid, ticks });
                if !outside.is_empty() {
                    self.tell_outside(host, &outside, out);
                }
                if self.ending.is_some() {
                    let msg = PamMsg::Signal { signal: SIGTERM };
                    out.push(PamEffect::Send { conn, msg });
                }
                format!("started, process {pid}")
            }
            PamMsg::Failed { why, .. } => {
                self.last_end = now;
                let words = format!("could not be started: {why}");
                self.tasks.get_mut(tid).phase = TaskPhase::Failed { why };
                words
            }
            PamMsg::Exited { status, time, .. } => {
                out.push(PamEffect::Send { conn, msg: PamMsg::Ack });
                self.exited(now, tid, status, time)
            }
            // those are ours to say
            PamMsg::Hello { .. } | PamMsg::Welcome { .. } | PamMsg::Ack | PamMsg::Signal { .. } => {
                return;
            }
        };
        self.tell(tid, &words, out);
    }

    /// Why a TaskStarter is refused.
    fn not_wanted(
        &self,
        conn: ConnId,
        host: &str,
        job: Option<JobRef>,
        again: Option<u32>,
    ) -> Option<String> {
        if job.is_some_and(|job| job != self.conf.job) {
            return Some(format!("this pam is in job <{}>", self.conf.job));
        }
        if !self.conf.hosts.iter().any(|known| known == host) {
            return Some(format!("host {host} is not for tasks of this pam"));
        }
        let known = |tid: u32| self.tasks.get(tid as usize).is_some_and(|task| task.host == host);
        match again {
            _ if self.tasks.of_conn(conn).is_some() => Some("a second hello".into()),
            Some(tid) if !known(tid) => Some(format!("no task {tid} on host {host}")),
            Some(_) => None,
            None if self.ending.is_some() => Some("the job is being ended".into()),
            None if self.tasks.len() >= TASKS_MAX => {
                Some(format!("too many tasks: {TASKS_MAX} allowed"))
            }
            None => None,
        }
    }

    fn hello(&mut self, conn: ConnId, task: Task, again: Option<u32>, out: &mut Vec<PamEffect>) {
        let tid = match again {
            Some(tid) => {
                self.tasks.connect(tid as usize, conn);
                tid as usize
            }
            None => self.tasks.add(task, conn),
        };
        let (job, pam_ms) = (self.conf.job, Some(self.conf.usage_ms()));
        let msg = PamMsg::Welcome { tid: tid as u32, job, pam_ms };
        out.push(PamEffect::Send { conn, msg });
        let words = if again.is_some() { "connected again" } else { "registered" };
        self.tell(tid, words, out);
    }

    /// A task has ended; the words for that.
    fn exited(&mut self, now: u64, tid: usize, status: i32, time: i64) -> String {
        self.last_end = now;
        let delay = self.conf.clean_delay * US;
        let task = self.tasks.get_mut(tid);
        task.phase = TaskPhase::Exited { status, time };
        let words = task.status();
        if status != 0 && self.clean.is_none() {
            self.clean = Some((tid, now + delay));
        }
        words
    }

    fn closed(&mut self, now: u64, conn: ConnId, out: &mut Vec<PamEffect>) {
        let Some(tid) = self.tasks.disconnect(now, conn) else { return };
        if !self.tasks.get_mut(tid).over() {
            self.tell(tid, "its TaskStarter is lost", out);
        }
    }

    /// Says once of a host that its tasks are not in the job, and why.
    fn tell_outside(&mut self, host: &str, why: &str, out: &mut Vec<PamEffect>) {
        if self.outside.insert(host.to_owned()) {
            out.push(PamEffect::Say(format!(
                "host {host}: tasks are not in the job: its usage and limits do not count them, \
                 and bkill does not reach them: {why}"
            )));
        }
    }

    fn tell(&self, tid: usize, words: &str, out: &mut Vec<PamEffect>) {
        if self.conf.verbose
            && let Some(task) = self.tasks.get(tid)
        {
            out.push(PamEffect::Say(format!("task {tid} on {}: {words}", task.host)));
        }
    }

    fn signal_tasks(&mut self, signal: i32, out: &mut Vec<PamEffect>) {
        let conns = self.tasks.running().filter_map(|task| task.conn);
        out.extend(conns.map(|conn| PamEffect::Send { conn, msg: PamMsg::Signal { signal } }));
    }

    /// Signals the tasks whose TaskStarters were cut off until an instant. `last`: no signal
    /// follows.
    fn signal_cut_off(&mut self, at: u64, (signal, last): (i32, bool), out: &mut Vec<PamEffect>) {
        for (host, processes) in self.tasks.cut_off(at, last) {
            out.push(PamEffect::SignalByRes { host, processes, signal });
        }
    }

    /// Says once of a host that tasks there may be left.
    fn not_by_res(&mut self, host: String, out: &mut Vec<PamEffect>) {
        let words = format!(
            "host {host}: RES does not signal the tasks whose TaskStarter is cut off: they may be \
             left there"
        );
        if self.unreached.insert(host) {
            out.push(PamEffect::Say(words));
        }
    }

    /// When the first TaskStarter that is cut off tries no longer to come back, and its task has
    /// had the time of one that ended badly.
    fn given_up_at(&self) -> Option<u64> {
        self.tasks.first_cut_off().map(|at| at + self.cut_off_time())
    }

    fn cut_off_time(&self) -> u64 {
        COMES_BACK + self.conf.clean_delay * US
    }

    // ---- what follows ----

    /// When the PJL has had its time after the end of all tasks.
    fn silent_pjl_at(&self) -> Option<u64> {
        let all = self.tasks.len() >= self.conf.expected && self.tasks.all_known_over();
        (all && self.pjl.is_none()).then(|| self.last_end + self.conf.register_within * US)
    }

    /// Decides whether the job is to be ended, and why.
    fn judge(&mut self, now: u64, out: &mut Vec<PamEffect>) {
        let reported = self.tasks.reported();
        let enough = reported >= self.conf.expected;
        if enough {
            self.register_by = None;
        }
        if self.ending.is_some() {
            return;
        }
        if let Some((_, status)) = self.pjl {
            if self.tasks.is_empty() && status == 0 {
                out.push(PamEffect::Say("no task registered".into()));
            }
            // complete, whatever the tasks say
            return self.end_all(now, EndCode::Pjl, None, TERM_TO_KILL, out);
        }
        if enough && self.tasks.any_failed() {
            for (tid, host, why) in self.tasks.failed() {
                let text = format!("task {tid} on {host} could not be started: {why}");
                out.push(PamEffect::Say(text));
            }
            return self.end_all(now, EndCode::Code(FAILED), Some(now), TERM_TO_KILL, out);
        }
        if self.register_by.is_some_and(|at| at <= now) {
            let (expected, secs) = (self.conf.expected, self.conf.register_within);
            let text =
                format!("timeout: {reported} of {expected} tasks registered within {secs} seconds");
            out.push(PamEffect::Say(text));
            return self.end_all(now, EndCode::Code(FAILED), Some(now), TERM_TO_KILL, out);
        }
        if let Some((tid, at)) = self.clean
            && at <= now
        {
            let code = EndCode::PjlUntil(now + PJL_GRACE, self.tasks.code(tid));
            let kill = PJL_GRACE + TERM_TO_KILL;
            return self.end_all(now, code, Some(now + PJL_GRACE), kill, out);
        }
        if self.silent_pjl_at().is_some_and(|at| at <= now) {
            out.push(PamEffect::Say("the PJL did not end".into()));
            let code = EndCode::Code(self.tasks.first_code().unwrap_or(FAILED));
            self.end_all(now, code, Some(now), TERM_TO_KILL, out);
        }
    }

    /// Begins the end: TERM for the tasks that run.
    fn end_all(
        &mut self,
        now: u64,
        code: EndCode,
        term_pjl_at: Option<u64>,
        kill_after: u64,
        out: &mut Vec<PamEffect>,
    ) {
        let kill_at = now + kill_after;
        let until = kill_at + WAIT_END;
        self.ending = Some(Ending { code, term_pjl_at, kill_at: Some(kill_at), until });
        self.tasks.note_killed();
        self.signal_tasks(SIGTERM, out);
        // nobody would hear how they end
        self.signal_cut_off(now, (SIGKILL, true), out);
    }

    /// Does what time has brought during the end.
    fn due(&mut self, now: u64, out: &mut Vec<PamEffect>) {
        let Some(mut ending) = self.ending else {
            if let Some(at) = now.checked_sub(self.cut_off_time()) {
                self.signal_cut_off(at, (SIGKILL, true), out);
            }
            return;
        };
        if ending.term_pjl_at.is_some_and(|at| at <= now) {
            ending.term_pjl_at = None;
            if self.pjl.is_none() {
                out.push(PamEffect::SignalPjl { signal: SIGTERM });
            }
        }
        if ending.kill_at.is_some_and(|at| at <= now) {
            ending.kill_at = None;
            self.signal_tasks(SIGKILL, out);
            self.signal_cut_off(now, (SIGKILL, true), out);
            if self.pjl.is_none() {
                out.push(PamEffect::SignalPjl { signal: SIGKILL });
            }
        }
        self.ending = Some(ending);
        let complete = self.pjl.is_some() && self.tasks.all_over();
        if !complete && now < ending.until {
            return;
        }
        for host in self.tasks.unanswered_hosts() {
            out.push(PamEffect::Say(format!(
                "host {host} did not answer: tasks may be left there"
            )));
        }
        let forced = !matches!(ending.code, EndCode::Pjl);
        if forced {
            // what the PJL has left behind in its group
            out.push(PamEffect::SignalPjl { signal: SIGKILL });
        }
        self.over = true;
        out.push(PamEffect::End(match (ending.code, self.pjl) {
            (EndCode::Pjl, Some((_, status))) => PamEnd::AsPjl(status),
            (EndCode::PjlUntil(by, _), Some((at, status))) if at <= by => PamEnd::AsPjl(status),
            (EndCode::PjlUntil(_, code) | EndCode::Code(code), _) => PamEnd::Code(code),
            (EndCode::Pjl, None) => PamEnd::Code(FAILED),
        }));
    }

    /// When the PJL was started.
    pub fn started(&self) -> u64 {
        self.started
    }
}

#[cfg(test)]
mod tests;
