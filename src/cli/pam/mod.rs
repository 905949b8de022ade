//! The runner of pam(1): the PJL as a child of its own, the TaskStarters' connections and the
//! signals, all for the machine in `crate::pam`.

mod adopt;
mod by_res;
mod link;
pub mod task;

pub use by_res::signal_processes;

use super::client::ClientError;
use super::job_launcher::launcher;
use super::site::LocalSite;
use crate::auth::HostLookup;
use crate::cli::stop_self::stop_unless_continued;
use crate::pam::command::Starter;
use crate::pam::table::TaskRow;
use crate::pam::{Pam, PamConf, PamEffect, PamEnd, PamInput, USAGE_MS, WAIT_END};
use crate::proto::machine::ConnId;
use crate::proto::pam::{PamMsg, TASKS_MAX};
use crate::sys::raw::{self, SignalFd, SignalMask, Signalled};
use crate::sys::words;
use by_res::SignalCalls;
use link::{EARLY, Link, LinkEnd, Server};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, kill_process_group, waitid};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// Most connections that have not proved themselves; the oldest gives way.
const EARLY_MAX: usize = 256;
/// The longest wait for anything: a longer gap between two looks is time in which we were stopped.
const LOOK: Duration = Duration::from_secs(1);
/// Most wrong connections that are told.
const WRONG_TOLD_MAX: u32 = 20;
/// The signals that are for the job.
const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];
/// Exit codes where the PJL is not there, and where it cannot be run.
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;

/// The command line to be run, and its surroundings.
pub struct PamRun<'a> {
    pub site: &'a LocalSite,
    pub conf: PamConf,
    /// All hosts of the job, those that are left out, too: each hears why it is refused.
    pub known: Vec<String>,
    /// This host as the cluster spells it.
    pub host: String,
    /// LSF_BINDIR: where a PJL is looked for that PATH does not have.
    pub bindir: String,
    /// Further variables of the PJL.
    pub env: &'a [(String, String)],
    /// Makes the words of the PJL, for the port that TaskStarters call.
    pub pjl: &'a dyn Fn(u16) -> Result<(Vec<OsString>, Starter), String>,
}

/// The end of pam.
pub struct PamOutcome {
    pub end: PamEnd,
    pub rows: Vec<TaskRow>,
}

/// The reason why nothing was run: the words, and the exit code.
pub struct PamFault {
    pub words: String,
    pub code: i32,
}

fn fault(words: String) -> PamFault {
    PamFault { words, code: crate::pam::FAILED }
}

/// Runs the PJL and stays with its tasks until the end.
///
/// # Errors
/// Nothing was run.
pub fn run(of: PamRun<'_>, err: &mut dyn Write) -> Result<PamOutcome, PamFault> {
    let words_of = |e: io::Error| fault(words(&e));
    let mut names: Vec<&str> = of.known.iter().map(String::as_str).collect();
    names.push(&of.host);
    let table = of.site.addresses(&names);
    let addr =
        table.addr_of(&of.host).ok_or_else(|| fault(format!("{}: unknown host", of.host)))?;
    let listener = TcpListener::bind(SocketAddr::new(addr, 0)).map_err(words_of)?;
    listener.set_nonblocking(true).map_err(words_of)?;
    let port = listener.local_addr().map_err(words_of)?.port();
    let server = Server::new(of.site, &of.host, port, table).map_err(|e| fault(shown(&e)))?;
    let (pjl, starter) = (of.pjl)(port).map_err(fault)?;
    let all: Vec<i32> =
        FORWARDED.into_iter().chain([libc::SIGTSTP, libc::SIGCONT, libc::SIGCHLD]).collect();
    let mask = SignalMask::now().map_err(words_of)?;
    let signals = SignalFd::new(&all).map_err(words_of)?;
    let front = foreground();
    let usage = (USAGE_MS.to_owned(), of.conf.usage_ms().to_string());
    let env: Vec<(String, String)> = of.env.iter().cloned().chain([usage]).collect();
    let child = start((&pjl, &env), &starter, &of.bindir, (front, mask))?;
    let mut me = Runner {
        server,
        listener,
        signals,
        links: BTreeMap::new(),
        next: 1,
        wrong: 0,
        pjl: child,
        pjl_over: false,
        pam: Pam::new(of.conf, 0),
        now: 0,
        looked: Instant::now(),
        launcher: launcher(),
        calls: SignalCalls::new(&of.bindir, &starter.program, mask),
        end: None,
    };
    let end = me.run(err).map_err(words_of)?;
    me.end_calls(err);
    if front {
        let _ = rustix::termios::tcsetpgrp(rustix::stdio::stdin(), getpgrp());
    }
    Ok(PamOutcome { end, rows: me.pam.table() })
}

/// The words of a failure with its cause.
pub fn shown(e: &ClientError) -> String {
    match e {
        ClientError::Down(why) | ClientError::Timeout(why) | ClientError::Lost(why) => why.clone(),
        other => format!("{other:#}"),
    }
}

/// Whether we are in the foreground of a terminal, which the PJL has then.
fn foreground() -> bool {
    let input = rustix::stdio::stdin();
    rustix::termios::isatty(input)
        && rustix::termios::tcgetpgrp(input).is_ok_and(|group| group == getpgrp())
}

/// Starts the PJL in a process group of its own.
fn start(
    (pjl, env): (&[OsString], &[(String, String)]),
    starter: &Starter,
    bindir: &str,
    (front, mask): (bool, SignalMask),
) -> Result<Pid, PamFault> {
    let word = pjl.first().cloned().unwrap_or_default();
    let mut command = Command::new(found(&word, bindir));
    command.arg0(&word).args(pjl.get(1..).unwrap_or_default()).process_group(0);
    command.envs(env.iter().map(|(name, value)| (name, value)));
    command.env("LSF_TS", &starter.program).env("LSF_TS_OPTIONS", starter.words());
    command.env("LSF_TSOPT_NUM", "0").env("PM_SOURCE", "pam").env("BINARY_TYPE_HPC", "");
    let pid = std::process::id();
    let home = std::env::var("HOME").unwrap_or_default();
    command.env("LSF_PM_MPIARGS", format!("-p4pg {home}/pam_pg.{pid}"));
    command.env("LSF_PAM_PID", pid.to_string());
    if front {
        raw::in_front(&mut command);
    }
    raw::with_mask(&mut command, mask);
    let child = command.spawn().map_err(|e| {
        let code = if e.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
        let word = word.to_string_lossy();
        PamFault { words: format!("cannot start {word}: {}", words(&e)), code }
    })?;
    Pid::from_raw(child.id() as i32).ok_or_else(|| fault("no process".into()))
}

/// A word without a slash is looked for in PATH, then in LSF_BINDIR.
fn found(word: &OsStr, bindir: &str) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let name = std::path::Path::new(word);
    let there = std::path::Path::new(bindir).join(name);
    let in_path = || std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    let plain = !word.as_encoded_bytes().contains(&b'/') && !word.is_empty();
    match plain && !in_path() && there.is_file() {
        true => there.into_os_string(),
        false => word.to_owned(),
    }
}

struct Runner<'a> {
    server: Server<'a>,
    listener: TcpListener,
    signals: SignalFd,
    links: BTreeMap<ConnId, Link>,
    next: ConnId,
    /// Connections that were wrong.
    wrong: u32,
    /// The leader of the PJL's process group; reaped at our end alone, so that the number stays
    /// the group's.
    pjl: Pid,
    pjl_over: bool,
    pam: Pam,
    /// The time that we have run, microseconds.
    now: u64,
    looked: Instant,
    /// The process whose signals all processes of the job have.
    launcher: Option<u32>,
    calls: SignalCalls,
    end: Option<PamEnd>,
}

impl Runner<'_> {
    fn run(&mut self, err: &mut dyn Write) -> io::Result<PamEnd> {
        loop {
            if let Some(end) = self.end {
                return Ok(end);
            }
            self.turn(err)?;
        }
    }

    /// Time since the last look, without that in which we were stopped.
    fn look(&mut self) {
        let passed = self.looked.elapsed().min(2 * LOOK);
        self.looked = Instant::now();
        self.now += passed.as_micros() as u64;
    }

    fn turn(&mut self, err: &mut dyn Write) -> io::Result<()> {
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        let mut whose = Vec::new();
        for (&conn, link) in &self.links {
            let flags = match link.has_output() {
                true => PollFlags::IN | PollFlags::OUT,
                false => PollFlags::IN,
            };
            whose.push(conn);
            fds.push(PollFd::new(link, flags));
        }
        let left = self
            .pam
            .deadline()
            .map_or(LOOK, |at| Duration::from_micros(at.saturating_sub(self.now)).min(LOOK));
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let on: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        self.look();
        for (&conn, _) in whose.iter().zip(&on[2..]).filter(|(_, on)| **on) {
            self.hear(conn, err);
        }
        if on[1] {
            self.accept();
        }
        if on[0] {
            self.signalled(err);
        }
        self.close_early();
        self.step(PamInput::Tick, err);
        for host in self.calls.turn() {
            self.step(PamInput::NotByRes { host }, err);
        }
        Ok(())
    }

    /// Waits for the signals that RES was asked for.
    fn end_calls(&mut self, err: &mut dyn Write) {
        let mut hosts = self.calls.finish(Duration::from_micros(WAIT_END));
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            self.step(PamInput::NotByRes { host }, err);
        }
    }

    fn step(&mut self, input: PamInput, err: &mut dyn Write) {
        let mut out = Vec::new();
        self.pam.step(self.now, input, &mut out);
        for effect in out {
            match effect {
                PamEffect::Send { conn, msg } => self.send(conn, msg),
                PamEffect::Refuse { conn, why } => {
                    let gone = self.links.get_mut(&conn).map(|link| link.refuse(&why));
                    if let Some(Err(_)) = gone {
                        self.links.remove(&conn);
                    }
                }
                PamEffect::SignalByRes { host, processes, signal } => {
                    self.calls.add(host, &processes, signal);
                }
                PamEffect::SignalPjl { signal } => {
                    if let Some(signal) = Signal::from_named_raw(signal) {
                        let _ = kill_process_group(self.pjl, signal);
                    }
                }
                PamEffect::Say(text) => _ = writeln!(err, "pam: {text}"),
                PamEffect::End(end) => self.end = Some(end),
            }
        }
    }

    /// A connection that fails here is heard of when it is read.
    fn send(&mut self, conn: ConnId, msg: PamMsg) {
        if let Some(link) = self.links.get_mut(&conn) {
            let _ = link.send(msg);
        }
    }

    fn hear(&mut self, conn: ConnId, err: &mut dyn Write) {
        let Some(link) = self.links.get_mut(&conn) else { return };
        let gone = link.flush().is_err() || link.closing && !link.has_output();
        let said = if gone { Err(LinkEnd::Closed) } else { link.read(&self.server) };
        let whence = link.whence();
        let host = link.host().map(str::to_owned);
        match said {
            Ok(said) => {
                for msg in said {
                    let host = host.clone().unwrap_or_default();
                    self.step(PamInput::Said { conn, host, msg }, err);
                }
            }
            Err(end) => {
                if let LinkEnd::Wrong(why) = end {
                    self.tell_wrong(&whence, &why, err);
                }
                self.links.remove(&conn);
                self.step(PamInput::Closed { conn }, err);
            }
        }
    }

    /// Says why a connection is closed; everybody may make any number of them.
    fn tell_wrong(&mut self, whence: &str, why: &str, err: &mut dyn Write) {
        self.wrong = self.wrong.saturating_add(1);
        if self.wrong <= WRONG_TOLD_MAX {
            let _ = writeln!(err, "pam: a connection from {whence} is closed: {why}");
        }
        if self.wrong == WRONG_TOLD_MAX {
            let _ = writeln!(err, "pam: further wrong connections are not told");
        }
    }

    fn accept(&mut self) {
        while let Ok((sock, from)) = self.listener.accept() {
            if self.links.len() >= TASKS_MAX + EARLY_MAX {
                continue;
            }
            let Ok(link) = Link::new(&self.server, sock, from.ip()) else { continue };
            self.links.insert(self.next, link);
            self.next += 1;
            let early = |link: &Link| link.early();
            let waiting = self.links.iter().filter_map(|(conn, link)| Some((early(link)?, *conn)));
            let waiting: Vec<(Instant, ConnId)> = waiting.collect();
            if waiting.len() > EARLY_MAX
                && let Some((_, oldest)) = waiting.into_iter().min()
            {
                self.links.remove(&oldest);
            }
        }
    }

    fn close_early(&mut self) {
        self.links.retain(|_, link| link.early().is_none_or(|since| since.elapsed() < EARLY));
    }

    fn signalled(&mut self, err: &mut dyn Write) {
        while let Ok(Some(Signalled { signal, sender })) = self.signals.take_from() {
            let ours = sender.is_none() || sender != self.launcher;
            match signal {
                libc::SIGCHLD => self.pjl_news(err),
                libc::SIGTSTP => {
                    if ours {
                        self.step(PamInput::Signal { signal }, err);
                    }
                    stop_unless_continued();
                }
                libc::SIGCONT if !ours => {}
                signal if ours => self.step(PamInput::Signal { signal }, err),
                _ => {}
            }
        }
    }

    /// The PJL has changed its state.
    fn pjl_news(&mut self, err: &mut dyn Write) {
        if self.pjl_over {
            return;
        }
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let Ok(Some(status)) = waitid(WaitId::Pid(self.pjl), how) else { return };
        let code = status.exit_status().map(|code| code << 8);
        let Some(status) = code.or(status.terminating_signal()) else { return };
        self.pjl_over = true;
        self.step(PamInput::PjlEnded { status }, err);
    }
}
