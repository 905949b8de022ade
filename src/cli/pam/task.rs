//! TaskStarter(1): starts one task of a parallel job, tells pam of its process and of its end, and
//! ends as the task has ended, so that the PJL sees what it would have seen without it.
//!
//! Invariants: nothing is started before pam has taken the task; the task is killed by the kernel
//! when this process ends; the task has the descriptors, environment and directory of this
//! process; nothing is written unless something fails.

use super::adopt::{self, Place};
use super::link::PamCall;
use super::shown;
use crate::auth::shake::AuthError;
use crate::cli::client::ClientError;
use crate::cli::many_tasks::WORDS_AHEAD;
use crate::cli::remote::WaitStatus;
use crate::cli::site::LocalSite;
use crate::cli::stop_self::stop_unless_continued;
use crate::model::{JobRef, cut, job::Usage};
use crate::pam::table::COMMAND_MAX;
use crate::proto::pam::PamMsg;
use crate::sys::process_table::see;
use crate::sys::raw::{self, SignalFd, SignalMask, Signalled, wait4};
use crate::sys::words;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long pam is tried to be reached, at the beginning and when its connection was lost.
const REACH: Duration = Duration::from_secs(30);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest wait for one answer of pam.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a task has to stop before we do.
const STOPPED: Duration = Duration::from_secs(1);
/// A signal that comes from pam and from a process of this host within this time is one signal.
const SAME: Duration = Duration::from_secs(1);
/// The exit code where nothing was started.
const NO_PAM: i32 = 125;
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;
/// The signals that are for the task.
const FORWARDED: [i32; 9] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGWINCH,
];

/// A task to be started.
pub struct StarterRun<'a> {
    pub site: &'a LocalSite,
    /// The host of pam, as on the command line.
    pub host: String,
    pub port: u16,
    /// The job of the environment, if it has one.
    pub job: Option<JobRef>,
    pub program: Vec<OsString>,
    /// Tells its steps.
    pub debug: bool,
}

/// The end: that of the task, or a code of our own.
pub enum StarterEnd {
    Task(WaitStatus),
    Code(i32),
}

/// Starts the task and stays with it.
pub fn run(of: StarterRun<'_>, err: &mut dyn Write) -> StarterEnd {
    let made = SignalMask::now().and_then(|mask| {
        let all: Vec<i32> = FORWARDED.into_iter().chain([libc::SIGCHLD]).collect();
        Ok((mask, SignalFd::new(&all)?))
    });
    let (mask, signals) = match made {
        Ok(made) => made,
        Err(e) => {
            let _ = writeln!(err, "TaskStarter: {}", words(&e));
            return StarterEnd::Code(NO_PAM);
        }
    };
    let (call, welcome) = match reached(&of) {
        Ok(reached) => reached,
        Err(e) => {
            let (host, port, why) = (&of.host, of.port, shown(&e));
            let _ = writeln!(err, "TaskStarter: cannot reach pam at {host}:{port}: {why}");
            return StarterEnd::Code(NO_PAM);
        }
    };
    let mut steps = Steps { debug: of.debug, err };
    let PamWelcome { tid, job, pam_ms } = welcome;
    steps.say(&format!("task {tid}"));
    let place = match adopt::take_in(of.site, job, pam_ms) {
        Ok(place) => place,
        Err(why) => {
            let _ = writeln!(steps.err, "TaskStarter: {}: {why}", of.site.host);
            let mut call = call;
            let _ = call.send(&PamMsg::Failed { errno: 0, why });
            return StarterEnd::Code(NO_PAM);
        }
    };
    match place.outside.as_str() {
        "" => steps.say("in the job"),
        why => steps.say(&format!("not in the job: {why}")),
    }
    started(&of, (mask, signals), (call, tid, place), steps)
}

/// The answer of pam to a task that it takes.
struct PamWelcome {
    tid: u32,
    job: JobRef,
    pam_ms: Option<u32>,
}

/// Tells its steps, if that is wanted.
struct Steps<'a> {
    debug: bool,
    err: &'a mut dyn Write,
}

impl Steps<'_> {
    fn say(&mut self, text: &str) {
        if self.debug {
            let _ = writeln!(self.err, "TaskStarter: {text}");
        }
    }
}

/// Calls pam until it takes the task; its number.
fn reached(of: &StarterRun<'_>) -> Result<(PamCall, PamWelcome), ClientError> {
    let until = Instant::now() + REACH;
    loop {
        match hello(of, None) {
            // nobody is there, or not for us
            Err(e @ (ClientError::Timeout(_) | ClientError::Lost(_))) if Instant::now() < until => {
                drop(e);
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

fn hello(of: &StarterRun<'_>, again: Option<u32>) -> Result<(PamCall, PamWelcome), ClientError> {
    let mut call = PamCall::new(of.site, &of.host, of.port, ANSWER)?;
    let command = of.program.join(OsStr::new(" "));
    let command = cut(&command.to_string_lossy(), COMMAND_MAX).to_owned();
    call.send(&PamMsg::Hello { job: of.job, pid: std::process::id(), again, command })?;
    match call.next()? {
        PamMsg::Welcome { tid, job, pam_ms } => Ok((call, PamWelcome { tid, job, pam_ms })),
        _ => Err(ClientError::Unexpected),
    }
}

fn started(
    of: &StarterRun<'_>,
    (mask, signals): (SignalMask, SignalFd),
    (mut call, tid, place): (PamCall, u32, Place),
    mut steps: Steps<'_>,
) -> StarterEnd {
    let terminal = rustix::termios::isatty(rustix::stdio::stdin());
    let (program, args) = match of.program.split_first() {
        Some(words) => words,
        None => return StarterEnd::Code(NOT_RUN),
    };
    let mut command = Command::new(program);
    command.args(args);
    if !terminal {
        command.process_group(0);
    }
    raw::die_with_parent(&mut command);
    raw::with_mask(&mut command, mask);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let (errno, why) = (e.raw_os_error().unwrap_or(0), words(&e));
            let program = program.to_string_lossy();
            let _ = writeln!(steps.err, "TaskStarter: {program}: {why}");
            // the report ends the PJL, by whose tasks the words come to the user
            std::thread::sleep(WORDS_AHEAD);
            let _ = call.send(&PamMsg::Failed { errno, why });
            let missing = e.kind() == ErrorKind::NotFound;
            return StarterEnd::Code(if missing { NOT_FOUND } else { NOT_RUN });
        }
    };
    let Some(pid) = Pid::from_raw(child.id() as i32) else { return StarterEnd::Code(NOT_RUN) };
    let ticks = see(child.id()).map_or(0, |seen| seen.start);
    steps.say(&format!("process {}", child.id()));
    let mut task = OwnTask {
        of,
        tid,
        pid,
        ticks,
        group: !terminal,
        signals,
        call: Some(call),
        lost: None,
        tried: Instant::now(),
        ended: None,
        told: false,
        place,
        last: None,
    };
    task.tell_start();
    while !task.over() {
        if let Err(e) = task.turn() {
            steps.say(&words(&e));
        }
    }
    StarterEnd::Task(task.ended.map(|end| end.0))
}

/// The running task and the connection to pam.
struct OwnTask<'a> {
    of: &'a StarterRun<'a>,
    tid: u32,
    pid: Pid,
    ticks: u64,
    /// The task leads a process group of its own.
    group: bool,
    signals: SignalFd,
    call: Option<PamCall>,
    /// Since when pam is not reached, and when it was tried last.
    lost: Option<Instant>,
    tried: Instant,
    /// Raw wait status, usage, and when that was.
    ended: Option<(i32, Usage, Instant, i64)>,
    /// pam has acknowledged the end.
    told: bool,
    place: Place,
    /// The last signal that the task has had, when, and whether pam sent it.
    last: Option<(i32, Instant, bool)>,
}

impl OwnTask<'_> {
    /// The task has ended, and pam knows or is not to be reached.
    fn over(&self) -> bool {
        let given_up = |since: Option<Instant>| since.is_some_and(|at| at.elapsed() >= REACH);
        let ended = self.ended.as_ref().map(|end| end.2);
        ended.is_some() && (self.told || given_up(self.lost) || given_up(ended))
    }

    fn send(&mut self, msg: &PamMsg) {
        if let Some(call) = &mut self.call
            && call.send(msg).is_err()
        {
            self.lose();
        }
    }

    fn lose(&mut self) {
        self.call = None;
        self.lost.get_or_insert_with(Instant::now);
        self.tried = Instant::now();
    }

    fn tell_start(&mut self) {
        let pid = self.pid.as_raw_nonzero().get() as u32;
        let (ticks, outside) = (self.ticks, self.place.outside.clone());
        self.send(&PamMsg::Started { pid, ticks, outside });
    }

    fn tell_end(&mut self) {
        let Some((status, usage, _, time)) = self.ended else { return };
        self.send(&PamMsg::Exited { status, usage: Box::new(usage), time });
    }

    fn turn(&mut self) -> io::Result<()> {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if let Some(call) = &self.call {
            fds.push(PollFd::new(call, PollFlags::IN));
        }
        let trying = self.lost.is_some_and(|at| at.elapsed() < REACH);
        let wait = (trying || self.ended.is_some()).then_some(PAUSE);
        match poll(&mut fds, wait.and_then(|wait| Timespec::try_from(wait).ok()).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let on: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if on[0] {
            self.signalled()?;
        }
        if on.get(1).is_some_and(|on| *on) {
            self.hear();
        }
        if self.call.is_none() && trying && self.tried.elapsed() >= PAUSE {
            self.reconnect();
        }
        Ok(())
    }

    /// Takes up the connection again where it was lost.
    fn reconnect(&mut self) {
        self.tried = Instant::now();
        match hello(self.of, Some(self.tid)) {
            Ok((call, _)) => {
                (self.call, self.lost) = (Some(call), None);
                match self.ended {
                    Some(_) => self.tell_end(),
                    None => self.tell_start(),
                }
            }
            // that pam does not want us, or another one has its port
            Err(ClientError::Refused(_) | ClientError::Auth(AuthError::Denied { .. })) => {
                self.told = true;
            }
            Err(_) => {}
        }
    }

    fn hear(&mut self) {
        let Some(call) = &mut self.call else { return };
        if call.fill().is_err() {
            return self.lose();
        }
        loop {
            let Some(call) = &mut self.call else { return };
            match call.take() {
                Ok(Some(PamMsg::Signal { signal })) => {
                    if self.first_of(signal, true) {
                        self.signal(signal);
                    }
                }
                Ok(Some(PamMsg::Ack)) => self.told = true,
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(_) => return self.lose(),
            }
        }
    }

    /// Whether the task has not just had this signal from the other side: the PJL may pass on what
    /// pam sends to both.
    fn first_of(&mut self, signal: i32, of_pam: bool) -> bool {
        let same = |last: &(i32, Instant, bool)| {
            last.0 == signal && last.2 != of_pam && last.1.elapsed() < SAME
        };
        let repeated = self.last.as_ref().is_some_and(same);
        self.last = (!repeated).then(|| (signal, Instant::now(), of_pam));
        !repeated
    }

    /// Signals the process group of the task, or the task alone where the group is ours too.
    fn signal(&self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal).filter(|_| self.ended.is_none()) else {
            return;
        };
        let _ = match self.group {
            true => kill_process_group(self.pid, signal),
            false => kill_process(self.pid, signal),
        };
    }

    fn signalled(&mut self) -> io::Result<()> {
        while let Some(Signalled { signal, sender }) = self.signals.take_from()? {
            if signal == libc::SIGCHLD {
                self.reap()?;
                continue;
            }
            // the launcher's signals come to the task too, and those of a terminal to its group
            let has = sender.is_some() && sender == self.place.launcher
                || sender.is_none() && !self.group && signal != libc::SIGCONT;
            if self.first_of(signal, false) && !has {
                self.signal(signal);
            }
            if signal == libc::SIGTSTP {
                self.stop();
            }
        }
        Ok(())
    }

    /// Stops after the task.
    fn stop(&self) {
        let until = Instant::now() + STOPPED;
        let how = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while Instant::now() < until {
            if !matches!(waitid(WaitId::Pid(self.pid), how), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        stop_unless_continued();
    }

    fn reap(&mut self) -> io::Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        let Some(reaped) = wait4(self.pid.as_raw_nonzero().get(), false)? else { return Ok(()) };
        let time = crate::sys::now().secs();
        self.place.measure(self.of.site);
        self.ended = Some((reaped.status, reaped.usage, Instant::now(), time));
        self.tell_end();
        Ok(())
    }
}
