//! A job whose setup is done: it only has to be exec'ed.

use super::env_script;
use super::step::{SetupResult, at};
use super::supervise::supervise;
use crate::model::ByteStr;
use crate::net::sock::read_through;
use crate::proto::launch::SetupStage;
use crate::sys::{raw, words};
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// How long an interactive job waits for its bsub: it may have lost the master, and wait for
/// another, before it knows where the job starts.
const JOIN_WAIT: Duration = Duration::from_secs(120);
/// Exit code of an interactive job that no bsub has joined (C's `exit(-10)`).
const EXIT_NOT_JOINED: i32 = 246;

/// A job that only has to be exec'ed.
pub struct ReadyTask {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) argv: Vec<OsString>,
    /// The program executed when `argv` cannot be: the shell, which then reports the reason.
    pub(super) or_else: Vec<OsString>,
    /// The name that the program gets, when it is not the first word.
    pub(super) arg0: Option<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    /// The connection to res, of a task of res on a terminal.
    pub(super) control: Option<UnixStream>,
    /// An interactive job waits here until its bsub has joined it.
    pub(super) gate: Option<Gate>,
    /// DJOB_ENV_SCRIPT; empty none.
    pub(super) env_script: ByteStr,
}

/// The connection to res over which an interactive job is told to go on.
pub struct Gate {
    pub(super) sock: UnixStream,
    /// The job's parent stays, so that the job can be stopped and continued on its terminal.
    pub(super) watched: bool,
}

impl Gate {
    /// Waits to be let through; whether that was.
    fn open(&mut self) -> bool {
        self.sock.set_read_timeout(Some(JOIN_WAIT)).is_ok()
            && matches!(read_through(&mut self.sock, &mut [0]), Ok(1))
            && self.sock.set_read_timeout(None).is_ok()
    }
}

impl ReadyTask {
    /// Becomes the job; returns only where that cannot be, with the exit status for it.
    pub fn exec(mut self) -> SetupResult<i32> {
        if let Some(mut gate) = self.gate.take() {
            if !gate.open() {
                return Ok(EXIT_NOT_JOINED);
            }
            self.control = gate.watched.then_some(gate.sock);
        }
        let std =
            |r: rustix::io::Result<()>| r.map_err(|e| at(SetupStage::Output, "stdio")(e.into()));
        std(rustix::stdio::dup2_stdin(&self.stdin))?;
        std(rustix::stdio::dup2_stdout(&self.stdout))?;
        std(rustix::stdio::dup2_stderr(&self.stderr))?;
        let script = std::mem::take(&mut self.env_script);
        if !script.is_empty()
            && let Err(code) = env_script::set_up(&script, &self.env)
        {
            return Ok(code);
        }
        let e = match self.control.take() {
            None => self.replace(),
            Some(control) => match supervise(self.command(), control) {
                Ok(code) => return Ok(code),
                Err(e) => e,
            },
        };
        if !self.or_else.is_empty() {
            // what the kernel does not run, a shell may: a script without #!
            return ReadyTask { argv: self.or_else, or_else: Vec::new(), ..self }.exec();
        }
        let _ = writeln!(io::stderr(), "{}: {}", self.argv[0].display(), words(&e));
        Ok(if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(name) = &self.arg0 {
            command.arg0(name);
        }
        command
    }

    /// Becomes the program; only a task of res has to have its own looked for. Each job comes
    /// through here, and `Command` takes a tree of variables for what is a list.
    fn replace(&self) -> io::Error {
        if !self.argv[0].as_bytes().contains(&b'/') {
            return self.command().exec();
        }
        let text = |parts: &[&OsStr]| {
            let parts: Vec<&[u8]> = parts.iter().map(|p| p.as_bytes()).collect();
            CString::new(parts.concat())
        };
        let name = self.arg0.as_ref().unwrap_or(&self.argv[0]);
        let argv = [name].into_iter().chain(&self.argv[1..]).map(|w| text(&[w]));
        // of two of a name the later one counts
        let mut seen = BTreeSet::new();
        let env = self.env.iter().rev().filter(|(name, _)| seen.insert(name));
        let env = env.map(|(name, value)| text(&[name, OsStr::new("="), value]));
        match (text(&[&self.argv[0]]), argv.collect::<Result<Vec<_>, _>>(), env.collect()) {
            (Ok(program), Ok(argv), Ok(env)) => raw::execve(&program, &argv, env),
            _ => io::ErrorKind::InvalidInput.into(),
        }
    }
}
