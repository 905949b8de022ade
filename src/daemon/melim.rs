//! The real melim: the machine of `crate::lim::melim` with the elims of LSF_SERVERDIR as its
//! children, and LIM's side of it.
//!
//! LIM starts it with LSF_RESOURCES and LSF_MASTER in its environment and reads its merged
//! reports from a pipe; the other pipe, its standard input, ends when LIM wants it to end or is
//! gone. Each elim is a process group of its own, of which nothing is left when melim ends.
//! Invariant: no elim runs as root, but in a personal cluster of root.

use super::boot::Boot;
use super::boot_error::BootError;
use super::driver::Remote;
use super::logging;
use crate::conf::load;
use crate::lim::melim::{Melim, MelimConf, MelimEffect, MelimInput};
use crate::proto;
use crate::sys::child::{self, Given, Io};
use crate::sys::files::RealFiles;
use crate::sys::raw::{self, SignalFd};
use crate::sys::{site, words};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Pause before a melim that ended is started again.
const AGAIN: Duration = Duration::from_secs(10);
/// How long elims may take to end.
const END_WAIT: Duration = Duration::from_secs(2);
/// The wait for the last output of an ended elim.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// Longest line of an elim's standard error that is logged, bytes.
const SAID_MAX: u64 = 4096;
/// Longest report of melim, bytes.
const REPORT_MAX: u64 = 1 << 20;

// ---- LIM's side ----

/// The melim of this LIM.
pub struct Elims {
    /// The environment of every elim.
    env: Vec<(&'static str, String)>,
    root: bool,
    stdin: Option<ChildStdin>,
    wanted: (Vec<String>, bool),
    /// Number of the melim whose reports count.
    run: Arc<AtomicU64>,
    /// Number of the melim that ended last.
    ended: Arc<AtomicU64>,
}

impl Elims {
    pub fn new(boot: &Boot) -> Elims {
        Elims {
            env: boot.named(),
            root: crate::sys::euid() == 0 && !boot.conf.lsf.personal(),
            stdin: None,
            wanted: (Vec::new(), false),
            run: Arc::default(),
            ended: Arc::default(),
        }
    }

    /// Has melim run for these resources; none: no melim.
    pub fn run(&mut self, resources: Vec<String>, master: bool, remote: Remote) {
        self.stop();
        self.wanted = (resources, master);
        if self.wanted.0.is_empty() {
            return;
        }
        if self.root {
            return log::error!("elims are not run as root: start lim through the launcher");
        }
        let number = self.run.load(Ordering::SeqCst);
        match self.spawn() {
            Ok(mut child) => {
                self.stdin = child.stdin.take();
                let (run, ended) = (self.run.clone(), self.ended.clone());
                std::thread::spawn(move || listen(child, number, &run, &ended, &remote));
            }
            Err(e) => log::error!("melim: {}", words(&e)),
        }
    }

    /// Has melim end; its reports count no more.
    pub fn stop(&mut self) {
        self.stdin = None;
        self.run.fetch_add(1, Ordering::SeqCst);
    }

    /// Starts again what has ended by itself.
    pub fn again(&mut self, remote: Remote) {
        if self.ended.load(Ordering::SeqCst) == self.run.load(Ordering::SeqCst) {
            let (resources, master) = self.wanted.clone();
            self.run(resources, master, remote);
        }
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("melim").env_clear().envs(self.env.iter().cloned());
        for name in ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        let master = if self.wanted.1 { "Y" } else { "N" };
        command.env("LSF_RESOURCES", self.wanted.0.join(" ")).env("LSF_MASTER", master);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.current_dir("/").spawn()
    }
}

/// Hands on the reports of melim `number` until it ends.
fn listen(mut child: Child, number: u64, run: &AtomicU64, ended: &AtomicU64, remote: &Remote) {
    let current = || run.load(Ordering::SeqCst) == number;
    let mut lines = child.stdout.take().map(BufReader::new);
    while let Some(line) = lines.as_mut().and_then(next_line) {
        if current() {
            remote.input(proto::Input::External(line));
        }
    }
    let _ = child.wait();
    if current() {
        log::error!("melim ended; it is started again in {} s", AGAIN.as_secs());
        std::thread::sleep(AGAIN);
        ended.store(number, Ordering::SeqCst);
        remote.wake();
    }
}

fn next_line<R: Read>(from: &mut BufReader<R>) -> Option<String> {
    let mut line = Vec::new();
    from.take(REPORT_MAX).read_until(b'\n', &mut line).ok().filter(|n| *n > 0)?;
    Some(String::from_utf8_lossy(&line).into_owned())
}

// ---- melim ----

/// The messages of its threads.
enum ElimMessage {
    Output(usize, Vec<u8>),
    Said(usize, String),
    Ended(usize, Option<i32>),
    /// LIM wants no more of it, or is gone.
    Stop,
}

struct MelimRuntime {
    machine: Melim,
    files: Vec<PathBuf>,
    args: Vec<String>,
    abort: i32,
    /// Pids of those that run.
    pids: Vec<Option<Pid>>,
    tx: Sender<ElimMessage>,
}

/// The signals that end it, elims and all.
const ENDING: [i32; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// Runs the elims of this host until LIM ends it.
pub fn run() -> Result<i32, BootError> {
    let fail = |e: &dyn std::fmt::Display| BootError(e.to_string());
    raw::begin_signals(&ENDING).map_err(|e| fail(&words(&e)))?;
    let site = site::find().map_err(|e| fail(&e))?;
    let (conf, _) = load::load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let conf = conf.ok_or_else(|| fail(&"the configuration cannot be read"))?;
    if crate::sys::euid() == 0 && !conf.lsf.personal() {
        return Err(fail(&"elims are not run as root"));
    }
    let host = conf.hosts.canonical(&site.host).unwrap_or(&site.host).to_owned();
    logging::start(&conf.lsf, "melim", &host, None).map_err(|e| fail(&words(&e)))?;
    let dir = PathBuf::from(conf.lsf.serverdir().unwrap_or_default());
    let files = elims(&dir);
    log::info!("{} elims in {}", files.len(), dir.display());
    let p = &conf.cluster.params;
    let debug = p.raw.get("LSF_ELIM_DEBUG").is_some_and(|v| v.text.eq_ignore_ascii_case("y"));
    let number = |name: &str| p.raw.get(name).and_then(|v| v.text.trim().parse().ok());
    let block = number("LSF_ELIM_BLOCKTIME").or(debug.then_some(2));
    let expected = std::env::var("LSF_RESOURCES").unwrap_or_default();
    let abort = p.elim_abort_value as i32;
    let machine = MelimConf {
        abort,
        expected: expected.split_whitespace().map(str::to_owned).collect(),
        block,
        restarts: number("LSF_ELIM_RESTARTS").filter(|_| block.is_some()),
        debug,
        shared: conf.shared,
    };
    let name = |f: &PathBuf| f.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let machine = Melim::new(machine, files.iter().map(name).collect());
    let (tx, rx) = channel();
    let signals = SignalFd::new(&ENDING).map_err(|e| fail(&words(&e)))?;
    let stop = tx.clone();
    std::thread::spawn(move || {
        wait_for_the_end(&signals);
        let _ = stop.send(ElimMessage::Stop);
    });
    let args = p.elim_args.split_whitespace().map(str::to_owned).collect();
    let pids = vec![None; files.len()];
    MelimRuntime { machine, files, args, abort, pids, tx }.serve(&rx);
    Ok(0)
}

/// Waits until LIM closes our input, or a signal ends us.
fn wait_for_the_end(signals: &SignalFd) {
    let input = rustix::stdio::stdin();
    loop {
        let mut fds = [PollFd::new(&input, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        let looked = poll(&mut fds, None);
        let [said, signalled] = fds.map(|fd| !fd.revents().is_empty());
        let closed = said && matches!(rustix::io::read(input, &mut [0u8; 64]), Ok(0) | Err(_));
        if closed || signalled || !matches!(looked, Ok(_) | Err(rustix::io::Errno::INTR)) {
            return;
        }
    }
}

/// `elim` and `elim.NAME`, where they can be executed.
fn elims(dir: &Path) -> Vec<PathBuf> {
    let is_elim = |p: &PathBuf| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let file = p.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
        (name == "elim" || name.starts_with("elim.")) && file
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|e| e.path()).filter(is_elim).collect();
    found.sort_unstable();
    found
}

impl MelimRuntime {
    fn serve(&mut self, rx: &Receiver<ElimMessage>) {
        let began = Instant::now();
        let now = || began.elapsed().as_micros() as u64 + 1;
        let mut effects = Vec::new();
        self.machine.step(now(), MelimInput::Tick, &mut effects);
        loop {
            for effect in std::mem::take(&mut effects) {
                if !self.carry_out(effect) {
                    return self.end(rx);
                }
            }
            let left = self.machine.deadline().map(|at| at.saturating_sub(now()));
            let wait = left.map_or(Duration::from_secs(3600), Duration::from_micros);
            let input = match rx.recv_timeout(wait) {
                Ok(ElimMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return self.end(rx),
                Ok(ElimMessage::Said(i, text)) => {
                    log::info!("{} says: {text}", self.files[i].display());
                    continue;
                }
                Ok(ElimMessage::Output(i, ref bytes)) => {
                    self.machine.step(now(), MelimInput::Output(i, bytes), &mut effects);
                    continue;
                }
                Ok(ElimMessage::Ended(i, code)) => {
                    self.signal(i, Signal::KILL);
                    self.pids[i] = None;
                    MelimInput::Ended(i, code)
                }
                Err(RecvTimeoutError::Timeout) => MelimInput::Tick,
            };
            self.machine.step(now(), input, &mut effects);
        }
    }

    /// False: LIM is gone.
    fn carry_out(&mut self, effect: MelimEffect) -> bool {
        match effect {
            MelimEffect::Start(i) => self.start(i),
            MelimEffect::Kill(i) => self.signal(i, Signal::KILL),
            MelimEffect::Say(level, text) => log::log!(level, "{text}"),
            MelimEffect::Report(line) => {
                log::debug!("reported: {line}");
                let mut out = io::stdout().lock();
                return writeln!(out, "{line}").and_then(|()| out.flush()).is_ok();
            }
        }
        true
    }

    fn start(&mut self, i: usize) {
        let mut command = Command::new(&self.files[i]);
        command.args(&self.args).env("ELIM_ABORT_VALUE", self.abort.to_string());
        let stdio = [Io::Null, Io::Pipe, Io::Pipe];
        match child::start(&command, Given { env: true, group: true, stdio }) {
            Ok(child) => {
                self.pids[i] = Some(child.pid());
                watch(child, i, &self.tx);
            }
            Err(e) => {
                log::error!("{}: {}", self.files[i].display(), words(&e));
                let _ = self.tx.send(ElimMessage::Ended(i, None));
            }
        }
    }

    /// Sends a signal to the whole group of an elim.
    fn signal(&self, i: usize, signal: Signal) {
        if let Some(pid) = self.pids[i] {
            // one that is empty by now needs none
            let _ = kill_process_group(pid, signal);
        }
    }

    fn end(&mut self, rx: &Receiver<ElimMessage>) {
        let until = Instant::now() + END_WAIT;
        let all = 0..self.pids.len();
        all.clone().for_each(|i| self.signal(i, Signal::TERM));
        while self.pids.iter().any(Option::is_some) {
            match rx.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(ElimMessage::Ended(i, _)) => {
                    self.signal(i, Signal::KILL);
                    self.pids[i] = None;
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        all.for_each(|i| self.signal(i, Signal::KILL));
    }
}

/// Listens to an elim and waits for its end.
fn watch(mut child: child::Child, i: usize, tx: &Sender<ElimMessage>) {
    if let Some(mut from) = child.from.take() {
        let tx = tx.clone();
        std::thread::spawn(move || {
            let mut chunk = [0u8; 4096];
            while let Ok(n @ 1..) = from.read(&mut chunk) {
                if tx.send(ElimMessage::Output(i, chunk[..n].to_vec())).is_err() {
                    return;
                }
            }
        });
    }
    if let Some(from) = child.errors.take() {
        let tx = tx.clone();
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            while let Ok(1..) = from.by_ref().take(SAID_MAX).read_until(b'\n', &mut line) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if tx.send(ElimMessage::Said(i, text)).is_err() {
                    return;
                }
            }
        });
    }
    let tx = tx.clone();
    std::thread::spawn(move || {
        let code = child.wait().ok().and_then(|s| s.code());
        std::thread::sleep(LAST_WORDS);
        let _ = tx.send(ElimMessage::Ended(i, code));
    });
}
