//! A command's side of a remote task: starts it at a host's res, carries terminal, input, output
//! and signals, and ends as it ended (lsrun(1)).
//!
//! Invariants: input is read only as the task takes it; output is written in the order it came;
//! the terminal has its own modes back whenever this process stops or ends.

use super::client::{self, Client, ClientError};
use super::local_output::{LocalOutput, OUTPUTS, widen};
use super::resume::{AGAIN, KeptInput, LostRes, TaskThread, Tried};
use super::site::LocalSite;
use super::stop_self::stop_unless_continued;
use crate::daemon::attach::LIMITS;
use crate::model::ByteStr;
use crate::proto::Msg;
use crate::proto::res::{CREDIT, DATA_MAX, Data, IN, OUT, Pty, ResMsg, RunTask, WINDOW};
use crate::sys::files::unsafe_program;
use crate::sys::raw::{self, SignalFd};
use crate::sys::{term, words};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use rustix::stdio;
use rustix::termios::Termios;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Exit code where LSF, not the task, failed (C's `exit(-10)`).
pub const LSF_ERROR: i32 = 246;
/// The exit code by which esub refuses.
const ESUB_ABORT: i32 = 97;
/// Seconds that res has for an answer where LSF_RES_TIMEOUT says nothing.
const ANSWER: u64 = 15;
/// How long res has to send the last output of a task of which it is known that it is over.
const LAST_OUTPUT: Duration = Duration::from_secs(10);
/// Longest heartbeat, minutes.
const MINUTES_MAX: f64 = 1e6;
/// Signals that are for the task.
const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// How a task is run.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// The task gets a pseudo-terminal.
    pub pty: bool,
    /// The task leads the session of its terminal, as a shell does.
    pub shell: bool,
    /// The command that asks, for esub and for RES.
    pub name: &'static str,
    /// The task starts in the user's home instead of this directory.
    pub home: bool,
}

/// How a task ended: its raw wait status, where that is known.
pub type WaitStatus = Option<i32>;

/// The task that these words make here and now: environment, directory, limits and all.
pub fn task(site: &LocalSite, argv: &[OsString], how: &How) -> Result<RunTask, String> {
    let pty = how.pty.then(|| Pty { shell: how.shell, ..terminal() });
    Ok(RunTask {
        argv: started(argv).into_iter().map(|word| ByteStr(word.into_vec())).collect(),
        pty,
        eexec: esub(site, how.name)?.into(),
        via: how.name.to_owned(),
        ..surroundings(how.home)
    })
}

/// A task without words that has the environment, directory and limits of this process. `home`: it
/// starts in the user's home instead of this directory.
pub fn surroundings(home: bool) -> RunTask {
    let bytes = |s: OsString| ByteStr(s.into_vec());
    let at_home = home;
    let mut env = Vec::new();
    for (name, value) in std::env::vars_os().filter(|(n, _)| n != "LSF_LOCAL_HOST") {
        if !env.is_empty() {
            env.push(0);
        }
        env.extend_from_slice(name.as_bytes());
        env.push(b'=');
        env.extend_from_slice(value.as_bytes());
    }
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    let home = std::env::var_os("HOME").unwrap_or_default();
    let here = || std::env::current_dir().unwrap_or_else(|_| "/".into()).into_os_string();
    let cwd = if at_home { home.clone() } else { here() };
    let rlimits = LIMITS.iter().map(|(number, what)| {
        let Rlimit { current, maximum } = rustix::process::getrlimit(*what);
        (*number, current, maximum)
    });
    RunTask {
        cwd: bytes(cwd),
        home: bytes(home),
        env: env.into(),
        umask: mask.as_raw_mode(),
        rlimits: rlimits.collect(),
        ..RunTask::default()
    }
}

/// Becomes the task, here: for one that need not travel. Returns where that cannot be.
pub fn here(site: &LocalSite, argv: &[OsString]) -> (i32, String) {
    let argv = started(argv);
    let mut c = Command::new(&argv[0]);
    c.args(&argv[1..]).env("LSF_ENVDIR", &site.envdir);
    if site.shared_machine {
        c.env("LSF_LOCAL_HOST", &site.host);
    }
    let e = c.exec();
    let code = if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (code, format!("{}: {}", argv[0].display(), words(&e)))
}

/// Whether the site has a say in every task: its esub or eexec.
pub fn has_programs(site: &LocalSite) -> bool {
    let dir = site.lsf.serverdir().map(Path::new);
    dir.is_some_and(|d| d.join("esub").is_file() || d.join("eexec").is_file())
}

/// Under LSF_JOB_STARTER the command is that program's last argument.
fn started(argv: &[OsString]) -> Vec<OsString> {
    let starter = std::env::var("LSF_JOB_STARTER").unwrap_or_default();
    let mut words: Vec<OsString> = starter.split_whitespace().map(Into::into).collect();
    if words.is_empty() {
        return argv.to_vec();
    }
    words.push(argv.join(OsStr::new(" ")));
    words
}

/// The output of the site's esub, for its eexec.
fn esub(site: &LocalSite, caller: &str) -> Result<Vec<u8>, String> {
    let Some(dir) = site.lsf.serverdir() else { return Ok(Vec::new()) };
    let path = Path::new(dir).join("esub");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    if let Some(why) = unsafe_program(&path) {
        return Err(why);
    }
    let mut command = Command::new(path);
    command.env("LSF_INVOKE_CMD", caller).env("LSB_SUB_ABORT_VALUE", ESUB_ABORT.to_string());
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    match command.output() {
        Ok(o) if o.status.code() == Some(ESUB_ABORT) => Err("Request aborted by esub".into()),
        Ok(o) => Ok(o.stdout),
        Err(_) => Ok(Vec::new()),
    }
}

/// Our terminal as the task is to have it.
fn terminal() -> Pty {
    let fds = [stdio::stdin(), stdio::stdout(), stdio::stderr()];
    let like = term::read(fds[0]);
    let size = fds.into_iter().find_map(term::size).unwrap_or((24, 80));
    let mut pty = like.unwrap_or_default();
    (pty.rows, pty.cols) = size;
    pty
}

/// Runs a task at a host and stays with it until it has ended.
pub fn run(site: &LocalSite, host: &str, task: RunTask) -> Result<WaitStatus, ClientError> {
    run_at(site, client::res_of(site, host)?, task)
}

/// Runs like [`run`], over a connection to the host's res.
pub fn run_at(
    site: &LocalSite,
    mut client: Client,
    task: RunTask,
) -> Result<WaitStatus, ClientError> {
    let (pty, via) = (task.pty.is_some(), task.via.clone());
    // one of a job waits until RES knows the job, and takes nothing before
    let started = task.job.is_none();
    client.send(&Msg::Res(ResMsg::Run(Box::new(task))))?;
    let heart = Heart::of(site);
    let relay = Relay::new(site, client, pty, heart);
    let mut relay = relay.map_err(|e| ClientError::Lost(words(&e)))?;
    (relay.started, relay.command) = (started, via);
    relay.run()
}

/// Asks the res of a job's host for the terminal of the caller's interactive job. Answered by
/// `ResMsg::Joined` when the job is there, which may take as long as its pre-execution commands.
pub fn ask_to_join(client: &mut Client, job: u32, pty: bool) -> Result<(), ClientError> {
    let pty = pty.then(terminal);
    client.send(&Msg::Res(ResMsg::Join { job, pty }))
}

/// Another source of news while a task runs.
pub struct Aside<'a> {
    /// Readable when there is something to hear.
    pub fd: BorrowedFd<'a>,
    pub hear: &'a mut dyn FnMut() -> Heard,
}

/// News from the side.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Nothing,
    /// A line for standard error.
    Words(String),
    /// The task is over, and res is to say so soon.
    Over,
}

/// How an interactive job ended that was joined.
#[derive(Clone, Copy, Debug)]
pub struct Stayed {
    pub status: WaitStatus,
    /// Output of the job could not be written, which was said.
    pub unwritten: bool,
}

/// Stays with an interactive job that was joined. `merged`: its error output goes where its
/// output goes.
pub fn stay<'a>(
    site: &'a LocalSite,
    client: Client,
    pty: bool,
    merged: bool,
    aside: Aside<'a>,
) -> Result<Stayed, ClientError> {
    let relay = Relay::new(site, client, pty, Heart::of(site));
    let mut relay = relay.map_err(|e| ClientError::Lost(words(&e)))?;
    (relay.aside, relay.merged, relay.command) = (Some(aside), merged, "bsub".into());
    let status = relay.run()?;
    Ok(Stayed { status, unwritten: relay.unwritten })
}

/// LSF_NIOS_RES_HEARTBEAT: after so long without a word res is asked for one, which it has so
/// long to say.
struct Heart {
    beat: Option<Duration>,
    answer: Duration,
    heard: Instant,
    asked: bool,
}

impl Heart {
    fn of(site: &LocalSite) -> Heart {
        let minutes = site.lsf.get("LSF_NIOS_RES_HEARTBEAT").and_then(|v| v.parse::<f64>().ok());
        let beat = minutes.filter(|m| *m > 0.0 && *m < MINUTES_MAX);
        Heart {
            beat: beat.map(|m| Duration::from_secs_f64(60.0 * m)),
            answer: Duration::from_secs(site.lsf.int("LSF_RES_TIMEOUT", ANSWER).max(1)),
            heard: Instant::now(),
            asked: false,
        }
    }

    fn left(&self) -> Option<Duration> {
        let wait = if self.asked { self.answer } else { self.beat? };
        Some(wait.saturating_sub(self.heard.elapsed()))
    }

    fn heard(&mut self) {
        if self.beat.is_some() {
            (self.heard, self.asked) = (Instant::now(), false);
        }
    }
}

/// Ends this process as the task has ended; returns where that is by an exit code.
pub fn end(ended: WaitStatus) -> i32 {
    let Some(status) = ended else { return LSF_ERROR };
    let number = status & 0x7f;
    if number == 0 {
        return (status >> 8) & 0xff;
    }
    // the core file, if any, is the task's
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = raw::set_signal(number, false);
    let _ = raw::unblock_signals();
    if let Some(signal) = Signal::from_named_raw(number) {
        let _ = kill_process(getpid(), signal);
    }
    128 + number
}

struct Relay<'a> {
    site: &'a LocalSite,
    client: Client,
    /// The name of the command, for its words.
    command: String,
    /// The facts needed to go on after the end of res.
    thread: TaskThread,
    kept_input: KeptInput,
    signals: SignalFd,
    outs: [LocalOutput; 2],
    input: bool,
    /// The task takes input and signals.
    started: bool,
    /// Input that may still be sent; output handed on and not yet told.
    room: usize,
    credit: usize,
    pty: bool,
    heart: Heart,
    /// The modes to go back to.
    modes: Option<Termios>,
    raw: bool,
    ended: Option<WaitStatus>,
    /// An output could not be written.
    unwritten: bool,
    chunk: Vec<u8>,
    aside: Option<Aside<'a>>,
    /// Error output goes where output goes.
    merged: bool,
    /// The task is over; res has until then to say so.
    leave_at: Option<Instant>,
}

impl Drop for Relay<'_> {
    fn drop(&mut self) {
        self.cooked();
    }
}

impl<'a> Relay<'a> {
    fn new(site: &'a LocalSite, client: Client, pty: bool, heart: Heart) -> io::Result<Relay<'a>> {
        let more = [libc::SIGTSTP, libc::SIGWINCH, libc::SIGCONT];
        let signals = SignalFd::new(&[&FORWARDED[..], &more].concat())?;
        let outs = [LocalOutput::new(stdio::stdout())?, LocalOutput::new(stdio::stderr())?];
        let raw = pty && term::size(stdio::stdin()).is_some();
        let mut me = Relay {
            site,
            client,
            command: String::new(),
            thread: TaskThread::default(),
            kept_input: KeptInput::default(),
            signals,
            outs,
            input: true,
            started: true,
            room: WINDOW,
            credit: 0,
            pty,
            heart,
            modes: None,
            raw,
            ended: None,
            unwritten: false,
            chunk: vec![0; DATA_MAX],
            aside: None,
            merged: false,
            leave_at: None,
        };
        me.rawly();
        widen(stdio::stdin());
        Ok(me)
    }

    fn rawly(&mut self) {
        if self.raw {
            self.modes = term::raw(stdio::stdin()).ok();
        }
    }

    fn cooked(&mut self) {
        if let Some(modes) = self.modes.take() {
            term::restore(stdio::stdin(), &modes);
        }
    }

    fn send(&mut self, msg: ResMsg) -> Result<(), ClientError> {
        self.client.send(&Msg::Res(msg))
    }

    fn eof(&mut self) {
        self.input = false;
        // a connection that is lost is seen when it is read
        let _ = self.client.send(&Msg::Data(Data { port: IN, bytes: Vec::new() }));
    }

    fn run(&mut self) -> Result<WaitStatus, ClientError> {
        let mut turned = self.messages().map(|()| None);
        loop {
            match turned {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) => {}
                Err(why) => self.resume(why)?,
            }
            turned = self.turn();
        }
    }

    /// The end of a line of our own.
    fn line_end(&self) -> &'static str {
        if self.modes.is_some() { "\r\n" } else { "\n" }
    }

    /// Says that an output could not be written, if so and not said yet: the exit code is ours
    /// then, as the task may have died of SIGPIPE only because we read no more.
    fn says_unwritten(&mut self) -> bool {
        let mut all = self.outs.iter_mut().zip(OUTPUTS);
        let Some((name, why)) = all.find_map(|(out, name)| Some((name, out.take_failure()?)))
        else {
            return false;
        };
        let end = self.line_end();
        self.outs[1].put(format!("{}: {name}: {why}{end}", self.command).as_bytes());
        self.ended = Some(Some((LSF_ERROR & 0xff) << 8));
        self.unwritten = true;
        true
    }

    /// Waits for something and does it; how the task has ended, if that was the last.
    fn turn(&mut self) -> Result<Option<WaitStatus>, ClientError> {
        if let Some(ended) = self.ended.filter(|_| self.outs.iter().all(|o| o.queue.is_empty())) {
            return Ok(if self.says_unwritten() { None } else { Some(ended) });
        }
        let ready = self.wait().map_err(|e| ClientError::Lost(words(&e)))?;
        if ready[0] {
            self.signalled()?;
        }
        if ready[3] {
            self.hear();
        }
        if self.leaves(ready[1]) {
            return Ok(Some(None));
        }
        if !ready[1] && self.heart.left().is_some_and(|left| left.is_zero()) {
            self.beat()?;
        }
        if ready[1] && self.ended.is_none() {
            self.heart.heard();
            self.client.fill()?;
            self.messages()?;
        }
        self.flush()?;
        if ready[2] && self.input {
            self.feed()?;
        }
        Ok(None)
    }

    /// The connection is lost: goes on with the task over another one, where the next res has it.
    /// Signals that come meanwhile wait for that.
    fn resume(&mut self, why: ClientError) -> Result<(), ClientError> {
        let lost = LostRes::new(&why, &self.thread).filter(|_| self.ended.is_none());
        let Some(mut lost) = lost else { return Err(why) };
        // what was sent before the end may not have been read yet
        while self.client.fill().is_ok() {
            self.messages()?;
        }
        if self.ended.is_some() {
            return Ok(());
        }
        let host = self.client.server().to_owned();
        loop {
            let input = (&self.kept_input, !self.input);
            match LostRes::try_again(self.site, &host, &self.thread, input) {
                Tried::Resumed(resumed) => {
                    let doubts = resumed.doubts(&self.command, &host);
                    let end = self.line_end();
                    self.outs[1].put(doubts.replace('\n', end).as_bytes());
                    (self.client, self.room) = (resumed.client, resumed.room);
                    self.kept_input.forget_before(resumed.written);
                    break;
                }
                Tried::Later if lost.put_off() => std::thread::sleep(AGAIN),
                Tried::Later | Tried::Gone => return Err(lost.why),
            }
        }
        self.credit = 0;
        for out in &mut self.outs {
            out.told = false;
        }
        self.heart.heard();
        self.messages()
    }

    /// Asks res for a sign of life, or gives it up.
    fn beat(&mut self) -> Result<(), ClientError> {
        if self.heart.asked {
            return Err(ClientError::Timeout("RES does not answer".into()));
        }
        self.heart = Heart { asked: true, heard: Instant::now(), ..self.heart };
        self.client.send(&Msg::Ping { n: 0 })
    }

    /// Whether res has had its time for the last output of a task that is over. That begins anew
    /// with everything that res sends, and while our own reader is behind.
    fn leaves(&mut self, heard: bool) -> bool {
        let Some(at) = self.leave_at else { return false };
        if heard || self.outs.iter().any(|out| !out.queue.is_empty()) {
            self.leave_at = Some(Instant::now() + LAST_OUTPUT);
            return false;
        }
        at <= Instant::now()
    }

    /// Takes the news from the side.
    fn hear(&mut self) {
        let Some(aside) = &mut self.aside else { return };
        match (aside.hear)() {
            Heard::Nothing => {}
            Heard::Words(line) => {
                let end = self.line_end();
                // our own words cost res no credit
                self.outs[1].put(format!("{line}{end}").as_bytes());
            }
            Heard::Over => {
                self.aside = None;
                self.leave_at = Some(Instant::now() + LAST_OUTPUT);
            }
        }
    }

    /// Waits until one of these is ready, and says which are: a signal, the connection, our input,
    /// news from the side.
    fn wait(&self) -> io::Result<[bool; 4]> {
        let (r, w) = (PollFlags::IN, PollFlags::OUT);
        let when = |on: bool, flags| if on { flags } else { PollFlags::empty() };
        let stdin = stdio::stdin();
        let mut fds = vec![PollFd::new(&self.signals, r)];
        fds.push(PollFd::new(&self.client, when(self.ended.is_none(), r)));
        let feeding = self.input && self.started && self.room > 0 && self.ended.is_none();
        if feeding {
            fds.push(PollFd::from_borrowed_fd(stdin, r));
        }
        let at = fds.len();
        let aside = self.aside.as_ref().filter(|_| self.ended.is_none());
        if let Some(aside) = aside {
            fds.push(PollFd::from_borrowed_fd(aside.fd, r));
        }
        for out in self.outs.iter().filter(|o| !o.queue.is_empty()) {
            fds.push(PollFd::new(&out.fd, w));
        }
        let leave = self.leave_at.map(|at| at.saturating_duration_since(Instant::now()));
        let left = self.heart.left().into_iter().chain(leave).min();
        let left = left.filter(|_| self.ended.is_none());
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok([false; 4]),
            got => got?,
        };
        let on = |i: usize| !fds[i].revents().is_empty();
        Ok([on(0), on(1), feeding && on(2), aside.is_some() && on(at)])
    }

    fn messages(&mut self) -> Result<(), ClientError> {
        loop {
            let (outs, credit, merged) = (&mut self.outs, &mut self.credit, self.merged);
            let thread = &mut self.thread;
            let msg = self.client.take(&mut |port, bytes| {
                thread.count(port, bytes);
                let port = if merged { OUT } else { port };
                if let Some(out) = outs.get_mut(usize::from(port).wrapping_sub(1)) {
                    *credit += out.put(bytes);
                }
            })?;
            let Some(msg) = msg else { return Ok(()) };
            match msg {
                Msg::Res(ResMsg::Credit { bytes }) => {
                    self.room += bytes as usize;
                    // what is under way is no more than the credit that is used
                    let under_way = WINDOW.saturating_sub(self.room) as u64;
                    self.kept_input.forget_before(self.kept_input.end() - under_way);
                }
                Msg::Res(ResMsg::Kept { task }) => self.thread.kept = Some(task),
                Msg::Res(ResMsg::Ended { status }) => self.ended = Some(status),
                Msg::Res(ResMsg::Started { .. }) => self.started = true,
                Msg::Res(ResMsg::Stopped) => self.stop(true)?,
                _ => {}
            }
        }
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        for at in 0..2 {
            let out = &mut self.outs[at];
            self.credit += out.flush();
            if out.closed && !std::mem::replace(&mut out.told, out.closed) && self.ended.is_none() {
                self.send(ResMsg::Close { port: at as u8 + OUT })?;
            }
        }
        if self.credit >= CREDIT && self.ended.is_none() {
            let bytes = std::mem::take(&mut self.credit) as u32;
            self.send(ResMsg::Credit { bytes })?;
        }
        Ok(())
    }

    fn feed(&mut self) -> Result<(), ClientError> {
        let most = self.chunk.len().min(self.room);
        match rustix::io::read(stdio::stdin(), &mut self.chunk[..most]) {
            Ok(n) if n > 0 => {
                self.room -= n;
                self.kept_input.push(&self.chunk[..n]);
                self.client.send_data(IN, &self.chunk[..n])
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(()),
            _ => {
                self.eof();
                Ok(())
            }
        }
    }

    fn signalled(&mut self) -> Result<(), ClientError> {
        while let Ok(Some(signal)) = self.signals.take() {
            match signal {
                libc::SIGTSTP => self.stop(false)?,
                libc::SIGWINCH if self.pty => {
                    let Pty { rows, cols, .. } = terminal();
                    self.send(ResMsg::Resize { rows, cols })?;
                }
                signal if FORWARDED.contains(&signal) && !self.started => {
                    self.ended = Some(Some(signal));
                }
                signal if FORWARDED.contains(&signal) => self.send(ResMsg::Signal { signal })?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Stops with the task, and continues with it. `told`: the task has stopped already, and who
    /// started us together with others is to see all of us stopped.
    fn stop(&mut self, told: bool) -> Result<(), ClientError> {
        if !told {
            self.send(ResMsg::Signal { signal: libc::SIGSTOP })?;
        }
        self.cooked();
        if told {
            let _ = rustix::process::kill_current_process_group(Signal::TSTP);
        }
        stop_unless_continued();
        while let Ok(Some(libc::SIGTSTP | libc::SIGCONT)) = self.signals.take() {}
        self.rawly();
        if self.pty {
            let Pty { rows, cols, .. } = terminal();
            self.send(ResMsg::Resize { rows, cols })?;
        }
        self.send(ResMsg::Signal { signal: libc::SIGCONT })
    }
}

/// Reads a file of host names, one a line; what follows `#` is left.
pub fn host_file(path: &str) -> Result<Vec<String>, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|mut f| f.read_to_string(&mut text));
    read.map_err(|e| format!("{path}: {}", words(&e)))?;
    let names = text.lines().filter_map(|l| l.split('#').next()?.split_whitespace().next());
    Ok(names.map(str::to_owned).collect())
}
