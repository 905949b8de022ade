//! Several remote tasks of one command at the same time (blaunch(1)): one loop for all of them,
//! which carries input, output and signals, and knows how each has ended.
//!
//! Invariants: everything that a task wrote is out before its end counts; lines of different tasks
//! do not mix where they are shorter than [`LINE_MAX`]; while our own output cannot be written no
//! more is taken from the tasks; a task whose end is not known is a failure, never a success.

use super::client::{self, Client, ClientError};
use super::job_launcher::launcher;
pub use super::local_output::LINE_MAX;
use super::local_output::{LocalOutput, OUTPUTS, local_outputs, whole_lines};
use super::remote::WaitStatus;
use super::resume::{KeptInput, LostRes, Resumed, TaskThread, Tried};
use super::site::LocalSite;
use super::stop_self::stop_unless_continued;
use crate::model::reason::{err, err_text};
use crate::proto::Msg;
use crate::proto::res::{CREDIT, DATA_MAX, Data, IN, OUT, ResMsg, RunTask, WINDOW};
use crate::sys::raw::{SignalFd, Signalled};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio;
use std::io;
use std::time::{Duration, Instant};

/// Most tasks of one command.
pub const TASKS_MAX: usize = 4096;
/// Messages kept for a task that has not started.
const DEFERRED_MAX: usize = 64;
/// Output that may wait for our reader before no more is taken from the tasks, bytes.
const BEHIND_MAX: usize = 1 << 20;
/// The reason of a host where a task has ended and nobody knows how.
const END_UNKNOWN: &str = "a task has ended, and its exit code is not known";
/// Seconds that a task has to end after it was hung up, where LSF_RES_TIMEOUT says nothing.
const HANGUP: u64 = 15;
/// Seconds between two signs of life of a host, where there are few tasks; most seconds.
const BEAT: u64 = 60;
const BEAT_MAX: u64 = 86_400;
/// A second TERM, INT or HUP within this time ends the tasks by force.
const AGAIN: Duration = Duration::from_secs(5);
/// The signals that are for the tasks.
const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// How far the words of a command of a parallel job are ahead of what it has done that ends the
/// process by which they come to the user: an MPI launcher that is ended reads no more.
pub const WORDS_AHEAD: Duration = Duration::from_millis(500);

/// The tasks to be run.
pub struct ManyTasks {
    /// The name of the command, for its words.
    pub command: &'static str,
    /// The host of each, in the order of their numbers, and the task.
    pub tasks: Vec<(String, RunTask)>,
    /// Our input is for them.
    pub input: bool,
    /// Ends as soon as all are started.
    pub no_wait: bool,
    /// The time that a task has to start (LSF_DJOB_TASK_REG_WAIT_TIME).
    pub start_within: Duration,
    /// The loss of a host is no end of the other tasks (IGNORE_COMMFAIL).
    pub ignores_loss: bool,
}

/// How it has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ManyEnds {
    /// The exit code of the first task, in their order, that has not ended with 0.
    pub code: i32,
    /// The hosts that were lost with a task that had started, each once.
    pub lost: Vec<String>,
    /// The hosts that failed, with the reasons.
    pub failed: Vec<(String, String)>,
    /// A task never started.
    pub unstarted: bool,
    /// Our own outputs that could not be written, with the reasons.
    pub unwritten: Vec<(&'static str, String)>,
}

#[derive(Debug)]
enum TaskPhase {
    Starting,
    Running,
    Over(WaitStatus),
    /// Ended as nobody knows: the launcher of the host has died meanwhile.
    Unknown,
    Failed {
        started: bool,
        why: String,
    },
}

struct OneTask {
    host: String,
    client: Option<Client>,
    phase: TaskPhase,
    /// The facts needed to go on after the end of its res; the connection is lost, and is made
    /// again.
    thread: TaskThread,
    lost: Option<LostRes>,
    /// The last words of the connection are being read.
    closing: bool,
    /// Input that may still be sent; output handed on and not yet told.
    room: usize,
    credit: usize,
    /// The beginning of a line of each output.
    begun: [Vec<u8>; 2],
    /// Messages for when it has started: res hears nothing before.
    deferred: Vec<Msg>,
    /// The host was asked for a sign of life and has given none.
    asked: bool,
    /// When it has to have started.
    start_by: Instant,
}

struct Loop<'a> {
    site: &'a LocalSite,
    command: &'static str,
    tasks: Vec<OneTask>,
    /// The input that not all tasks have; all of them get the same.
    kept_input: KeptInput,
    outs: [LocalOutput; 2],
    signals: SignalFd,
    input: bool,
    no_wait: bool,
    several: bool,
    chunk: Vec<u8>,
    hangup: Duration,
    start_within: Duration,
    /// All tasks are being ended: by force at this instant.
    kill_at: Option<Instant>,
    ending: bool,
    beat: Duration,
    beat_at: Instant,
    /// The loss of a host is no end of the other tasks.
    ignores_loss: bool,
    /// When the last signal that asks for the end came.
    asked_to_end: Option<Instant>,
    /// The launcher of this host, whose signals the tasks have from their own.
    launcher: Option<u32>,
    /// The pam that has started this, whose signals its tasks have from their starters.
    pam: Option<u32>,
}

/// Runs the tasks and stays with them until all have ended.
///
/// # Errors
/// The fault of this process itself, such as a lack of descriptors.
pub fn run(site: &LocalSite, many: ManyTasks) -> io::Result<ManyEnds> {
    let all: Vec<i32> = FORWARDED.into_iter().chain([libc::SIGTSTP, libc::SIGCONT]).collect();
    let signals = SignalFd::new(&all)?;
    let count = many.tasks.len();
    let beat = beat(count);
    let mut me = Loop {
        site,
        command: many.command,
        kept_input: KeptInput::default(),
        tasks: Vec::with_capacity(count),
        outs: local_outputs()?,
        signals,
        input: many.input,
        no_wait: many.no_wait,
        several: count > 1,
        chunk: vec![0; DATA_MAX],
        hangup: Duration::from_secs(site.lsf.int("LSF_RES_TIMEOUT", HANGUP).max(1)),
        start_within: many.start_within,
        kill_at: None,
        ending: false,
        beat,
        beat_at: Instant::now() + beat,
        ignores_loss: many.ignores_loss,
        asked_to_end: None,
        launcher: launcher(),
        pam: pam_of(&many.tasks),
    };
    for (host, task) in many.tasks {
        me.begin(host, task);
    }
    if !me.input {
        (0..me.tasks.len()).for_each(|at| me.end_input_of(at));
    }
    me.run()?;
    Ok(me.ends())
}

/// The time between two signs of life of a host: LSB_DJOB_HB_INTERVAL, else by the number of tasks.
fn beat(tasks: usize) -> Duration {
    let own = std::env::var("LSB_DJOB_HB_INTERVAL").ok().and_then(|secs| secs.parse::<u64>().ok());
    let usual = (tasks as u64 * 12).div_ceil(100).max(BEAT);
    Duration::from_secs(own.filter(|secs| (1..=BEAT_MAX).contains(secs)).unwrap_or(usual))
}

/// The pam that signals these tasks by their TaskStarters, if they have any.
fn pam_of(tasks: &[(String, RunTask)]) -> Option<u32> {
    let starter = std::env::var("LSF_TS").ok().filter(|starter| !starter.is_empty())?;
    let word = tasks
        .first()?
        .1
        .argv
        .iter()
        .any(|word| word.0.windows(starter.len()).any(|piece| piece == starter.as_bytes()));
    std::env::var("LSF_PAM_PID").ok().filter(|_| word)?.parse().ok()
}

impl Loop<'_> {
    /// Starts a task; once one has failed no further one is started.
    fn begin(&mut self, host: String, task: RunTask) {
        let phase = TaskPhase::Starting;
        let (begun, deferred, asked) = (<[Vec<u8>; 2]>::default(), Vec::new(), false);
        let start_by = Instant::now() + self.start_within;
        let (client, room, credit) = (None, WINDOW, 0);
        let (thread, lost) = (TaskThread::default(), None);
        let mut one = OneTask {
            host,
            client,
            phase,
            thread,
            lost,
            closing: false,
            room,
            credit,
            begun,
            deferred,
            asked,
            start_by,
        };
        if self.ending && !self.no_wait {
            let why = String::new();
            one.phase = TaskPhase::Failed { started: false, why };
        } else {
            let sent = client::res_of(self.site, &one.host).and_then(|mut client| {
                client.send(&Msg::Res(ResMsg::Run(Box::new(task))))?;
                Ok(client)
            });
            match sent {
                Ok(client) => one.client = Some(client),
                Err(e) => {
                    one.phase = TaskPhase::Failed { started: false, why: reason(&e) };
                    self.end_all();
                }
            }
        }
        self.tasks.push(one);
    }

    /// Hangs up what runs: one of the tasks has failed.
    fn end_all(&mut self) {
        if std::mem::replace(&mut self.ending, true) || self.no_wait {
            return;
        }
        self.kill_at = Some(Instant::now() + self.hangup);
        self.signal_all(&[libc::SIGHUP, libc::SIGCONT]);
    }

    fn live(task: &OneTask) -> bool {
        let connected = task.client.is_some() || task.lost.is_some();
        connected && matches!(task.phase, TaskPhase::Starting | TaskPhase::Running)
    }

    fn starts(task: &OneTask) -> bool {
        Self::live(task) && matches!(task.phase, TaskPhase::Starting)
    }

    fn signal_all(&mut self, signals: &[i32]) {
        for at in 0..self.tasks.len() {
            for &signal in signals {
                self.send(at, &Msg::Res(ResMsg::Signal { signal }));
            }
        }
    }

    /// Sends to a task that is there, as soon as it has started; one whose connection is lost has
    /// failed.
    fn send(&mut self, at: usize, msg: &Msg) {
        let task = &mut self.tasks[at];
        if !Self::live(task) {
            return;
        }
        if matches!(task.phase, TaskPhase::Starting) || task.lost.is_some() {
            // the next res hears all but signals from `resumed`
            let waits = task.lost.is_none() || matches!(msg, Msg::Res(ResMsg::Signal { .. }));
            if waits && task.deferred.len() < DEFERRED_MAX {
                task.deferred.push(msg.clone());
            }
            return;
        }
        if let Some(client) = &mut task.client
            && let Err(e) = client.send(msg)
        {
            self.fail(at, &e);
        }
    }

    fn fail(&mut self, at: usize, e: &ClientError) {
        if self.hears_last_words(at) || self.tasks[at].lost.is_some() {
            return;
        }
        let task = &mut self.tasks[at];
        let started = matches!(task.phase, TaskPhase::Running);
        task.client = None;
        if started {
            task.lost = LostRes::new(e, &task.thread);
            if task.lost.is_some() {
                return;
            }
        }
        task.phase = TaskPhase::Failed { started, why: reason(e) };
        self.flush_line(at);
        if !(started && self.ignores_loss) {
            self.end_all();
        }
    }

    /// The connection to the res of a task that is kept is lost: what was sent before may not have
    /// been read yet. Whether the task has ended with that.
    fn hears_last_words(&mut self, at: usize) -> bool {
        let task = &mut self.tasks[at];
        if task.thread.kept.is_none() || std::mem::replace(&mut task.closing, true) {
            return false;
        }
        while self.tasks[at].client.as_mut().is_some_and(|client| client.fill().is_ok()) {
            self.messages(at);
        }
        !Self::live(&self.tasks[at])
    }

    fn end_input_of(&mut self, at: usize) {
        // a connection that is lost is seen when it is read
        self.send(at, &Msg::Data(Data { port: IN, bytes: Vec::new() }));
    }

    fn run(&mut self) -> io::Result<()> {
        for at in 0..self.tasks.len() {
            self.messages(at);
        }
        loop {
            let live = self.tasks.iter().any(Self::live);
            let waits =
                !self.no_wait || self.tasks.iter().any(|t| matches!(t.phase, TaskPhase::Starting));
            if !(live && waits) && self.outs.iter().all(LocalOutput::is_empty) {
                return Ok(());
            }
            self.turn()?;
        }
    }

    /// Waits for something, and deals with all that has come.
    fn turn(&mut self) -> io::Result<()> {
        let behind = self.outs.iter().map(LocalOutput::waiting).sum::<usize>() > BEHIND_MAX;
        let feeding = self.input && self.room() > 0;
        let ready = self.poll(behind, feeding)?;
        if ready.signal {
            self.signalled();
        }
        for at in ready.tasks {
            self.hear(at);
        }
        self.flush();
        if ready.input {
            self.feed();
        }
        self.due();
        Ok(())
    }

    fn poll(&self, behind: bool, feeding: bool) -> io::Result<Ready> {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let mut whose = Vec::new();
        for (at, task) in self.tasks.iter().enumerate().filter(|(_, t)| !behind && Self::live(t)) {
            if let Some(client) = &task.client {
                whose.push(at);
                fds.push(PollFd::new(client, PollFlags::IN));
            }
        }
        let input = fds.len();
        if feeding {
            fds.push(PollFd::from_borrowed_fd(stdio::stdin(), PollFlags::IN));
        }
        for out in self.outs.iter().filter(|out| !out.is_empty()) {
            fds.push(PollFd::new(out, PollFlags::OUT));
        }
        let starts = self.tasks.iter().filter(|t| Self::starts(t)).map(|t| t.start_by);
        let lost = self.tasks.iter().filter_map(|t| Some(t.lost.as_ref()?.next()));
        let until = self.kill_at.into_iter().chain([self.beat_at]).chain(starts).chain(lost).min();
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
            got => got?,
        };
        let on = |i: usize| !fds[i].revents().is_empty();
        let tasks = whose.iter().enumerate().filter(|(n, _)| on(n + 1)).map(|(_, at)| *at);
        Ok(Ready { signal: on(0), input: feeding && on(input), tasks: tasks.collect() })
    }

    fn hear(&mut self, at: usize) {
        let Some(client) = &mut self.tasks[at].client else { return };
        match client.fill() {
            Ok(()) => {
                self.tasks[at].asked = false;
                self.messages(at);
            }
            Err(e) => self.fail(at, &e),
        }
    }

    /// The messages of a task that were read.
    fn messages(&mut self, at: usize) {
        loop {
            let task = &mut self.tasks[at];
            let Some(client) = &mut task.client else { return };
            let (several, outs) = (self.several, &mut self.outs);
            let (begun, credit, thread) = (&mut task.begun, &mut task.credit, &mut task.thread);
            let msg = client.take(&mut |port, bytes| {
                thread.count(port, bytes);
                let n = usize::from(port).wrapping_sub(1);
                let Some(out) = outs.get_mut(n) else { return };
                *credit += bytes.len();
                match several {
                    false => _ = out.put(bytes),
                    true => whole_lines(&mut begun[n], bytes, &mut |piece| _ = out.put(piece)),
                }
            });
            match msg {
                Ok(None) => return,
                Ok(Some(Msg::Res(ResMsg::Credit { bytes }))) => task.room += bytes as usize,
                Ok(Some(Msg::Res(ResMsg::Kept { task: id }))) => task.thread.kept = Some(id),
                Ok(Some(Msg::Res(ResMsg::Started { .. }))) => {
                    task.phase = TaskPhase::Running;
                    for msg in std::mem::take(&mut task.deferred) {
                        self.send(at, &msg);
                    }
                }
                Ok(Some(Msg::Res(ResMsg::Ended { status }))) => {
                    task.phase = match status {
                        Some(_) => TaskPhase::Over(status),
                        None => TaskPhase::Unknown,
                    };
                    task.client = None;
                    self.flush_line(at);
                    return;
                }
                Ok(Some(_)) => {}
                Err(e) => return self.fail(at, &e),
            }
        }
    }

    /// Writes what has come of the last line of a task that is over.
    fn flush_line(&mut self, at: usize) {
        for (begun, out) in self.tasks[at].begun.iter_mut().zip(&mut self.outs) {
            let _ = out.put(&std::mem::take(begun));
        }
    }

    /// Writes what can be written, and lets tasks write as much again.
    fn flush(&mut self) {
        for out in &mut self.outs {
            let _ = out.flush();
        }
        if !self.outs.iter().all(LocalOutput::is_empty) {
            return;
        }
        for at in 0..self.tasks.len() {
            if self.tasks[at].credit >= CREDIT {
                let bytes = std::mem::take(&mut self.tasks[at].credit) as u32;
                self.send(at, &Msg::Res(ResMsg::Credit { bytes }));
            }
        }
        for (n, port) in [OUT, OUT + 1].into_iter().enumerate() {
            if self.outs[n].take_closed() {
                for at in 0..self.tasks.len() {
                    self.send(at, &Msg::Res(ResMsg::Close { port }));
                }
            }
        }
    }

    /// How much of our input all tasks can take, bytes; none before all have started.
    fn room(&self) -> usize {
        let started = |t: &OneTask| matches!(t.phase, TaskPhase::Running);
        let live = self.tasks.iter().filter(|t| Self::live(t));
        live.map(|t| if started(t) && t.lost.is_none() { t.room } else { 0 }).min().unwrap_or(0)
    }

    /// Gives all tasks what has come of our input.
    fn feed(&mut self) {
        let most = self.room().min(self.chunk.len());
        if most == 0 {
            return;
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        match rustix::io::read(stdio::stdin(), &mut chunk[..most]) {
            Ok(n) if n > 0 => {
                let rooms = self.tasks.iter().filter(|t| Self::live(t)).map(|t| t.room);
                let under_way = WINDOW.saturating_sub(rooms.min().unwrap_or(WINDOW)) as u64;
                self.kept_input.forget_before(self.kept_input.end() - under_way);
                self.kept_input.push(&chunk[..n]);
                for at in 0..self.tasks.len() {
                    let task = &mut self.tasks[at];
                    if !Self::live(task) {
                        continue;
                    }
                    task.room -= n;
                    let sent = task.client.as_mut().map(|c| c.send_data(IN, &chunk[..n]));
                    if let Some(Err(e)) = sent {
                        self.fail(at, &e);
                    }
                }
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            _ => {
                self.input = false;
                (0..self.tasks.len()).for_each(|at| self.end_input_of(at));
            }
        }
        self.chunk = chunk;
    }

    /// Ends by force what has had its time, and asks silent hosts for a sign of life.
    fn due(&mut self) {
        let now = Instant::now();
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = Some(now + self.hangup);
            self.signal_all(&[libc::SIGKILL]);
        }
        for at in 0..self.tasks.len() {
            if Self::starts(&self.tasks[at]) && self.tasks[at].start_by <= now {
                let secs = self.start_within.as_secs();
                let why = format!("the task has not started within {secs} seconds");
                self.fail(at, &ClientError::Timeout(why));
            }
        }
        self.come_back(now);
        if self.beat_at > now {
            return;
        }
        self.beat_at = now + self.beat;
        for at in 0..self.tasks.len() {
            if !Self::live(&self.tasks[at]) || self.tasks[at].lost.is_some() {
                continue;
            }
            if std::mem::replace(&mut self.tasks[at].asked, true) {
                self.fail(at, &ClientError::Timeout("RES does not answer".into()));
            } else {
                self.send(at, &Msg::Ping { n: 0 });
            }
        }
    }

    /// Tries to come back to the tasks whose res is lost; a host that does not answer is not asked
    /// again for its other tasks now.
    fn come_back(&mut self, now: Instant) {
        let mut silent: Vec<String> = Vec::new();
        for at in 0..self.tasks.len() {
            let task = &mut self.tasks[at];
            let Some(lost) = task.lost.as_mut().filter(|lost| lost.next() <= now) else { continue };
            let input = (&self.kept_input, !self.input);
            let tried = match silent.contains(&task.host) {
                true => Tried::Later,
                false => LostRes::try_again(self.site, &task.host, &task.thread, input),
            };
            match tried {
                Tried::Resumed(resumed) => self.resumed(at, *resumed),
                Tried::Later if lost.put_off() => silent.push(task.host.clone()),
                Tried::Later | Tried::Gone => {
                    if let Some(lost) = task.lost.take() {
                        task.thread.kept = None;
                        self.fail(at, &lost.why);
                    }
                }
            }
        }
    }

    /// A task goes on over another connection.
    fn resumed(&mut self, at: usize, resumed: Resumed) {
        let task = &mut self.tasks[at];
        let doubts = resumed.doubts(self.command, &task.host);
        self.outs[1].put(doubts.as_bytes());
        (task.client, task.room) = (Some(resumed.client), resumed.room);
        (task.lost, task.credit, task.asked, task.closing) = (None, 0, false, false);
        for (n, port) in [OUT, OUT + 1].into_iter().enumerate() {
            if self.outs[n].closed {
                self.send(at, &Msg::Res(ResMsg::Close { port }));
            }
        }
        for msg in std::mem::take(&mut self.tasks[at].deferred) {
            self.send(at, &msg);
        }
        self.messages(at);
    }

    /// Whether the tasks have the signals of this process without us.
    fn tasks_have_it(&self, sender: Option<u32>) -> bool {
        sender.is_some() && (sender == self.launcher || sender == self.pam)
    }

    /// Passes signals on, but for those of the batch system, which the tasks have from their own
    /// hosts.
    fn signalled(&mut self) {
        while let Ok(Some(Signalled { signal, sender })) = self.signals.take_from() {
            // CONT without a stop of ours is for tasks that have stopped themselves
            let passes = FORWARDED.contains(&signal) || signal == libc::SIGCONT;
            if signal == libc::SIGTSTP {
                self.stop();
            } else if passes && !self.tasks_have_it(sender) {
                let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal);
                let again = self.asked_to_end.is_some_and(|at| at.elapsed() < AGAIN);
                self.signal_all(&[if ends && again { libc::SIGKILL } else { signal }]);
                if ends {
                    self.asked_to_end = Some(Instant::now());
                }
            }
        }
    }

    /// Stops with the tasks, and continues with them.
    fn stop(&mut self) {
        self.signal_all(&[libc::SIGSTOP]);
        stop_unless_continued();
        while let Ok(Some(libc::SIGTSTP | libc::SIGCONT)) = self.signals.take() {}
        self.beat_at = Instant::now() + self.beat;
        for task in &mut self.tasks {
            (task.asked, task.start_by) = (false, Instant::now() + self.start_within);
        }
        self.signal_all(&[libc::SIGCONT]);
    }

    fn ends(&mut self) -> ManyEnds {
        let mut ends = ManyEnds::default();
        for (out, name) in self.outs.iter_mut().zip(OUTPUTS) {
            ends.unwritten.extend(out.take_failure().map(|why| (name, why)));
        }
        for task in &self.tasks {
            let why = match &task.phase {
                TaskPhase::Over(status) if ends.code == 0 => {
                    ends.code = exit_code(*status);
                    continue;
                }
                TaskPhase::Unknown => END_UNKNOWN,
                TaskPhase::Failed { started, why } => {
                    ends.unstarted |= !started;
                    if *started && !ends.lost.contains(&task.host) {
                        ends.lost.push(task.host.clone());
                    }
                    why
                }
                _ => continue,
            };
            let known = |(host, known): &(String, String)| *host == task.host && known == why;
            if !why.is_empty() && !ends.failed.iter().any(known) {
                ends.failed.push((task.host.clone(), why.to_owned()));
            }
        }
        ends
    }
}

/// The result of a wait.
#[derive(Default)]
struct Ready {
    signal: bool,
    input: bool,
    /// The tasks that have said something.
    tasks: Vec<usize>,
}

/// The exit code of a task by its raw wait status, as a shell has it.
fn exit_code(status: WaitStatus) -> i32 {
    match status {
        None => 0,
        Some(status) if status & 0x7f == 0 => (status >> 8) & 0xff,
        Some(status) => 128 + (status & 0x7f),
    }
}

/// The words for a host that failed.
fn reason(e: &ClientError) -> String {
    let code = match e {
        ClientError::Lost(_) => err::DJOB_RES_IO,
        ClientError::Timeout(_) => err::DJOB_RES_TIMEOUT,
        other => return format!("{other:#}"),
    };
    format!("{} ({})", err_text(code), e.detail())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_of_a_task_is_that_of_a_shell() {
        assert_eq!(exit_code(Some(7 << 8)), 7);
        assert_eq!(exit_code(Some(9)), 137);
        assert_eq!(exit_code(Some(0)), 0);
    }
}
