//! The commands of queues before and after a job, where LSB_PRE_POST_EXEC_USER of lsf.sudoers names
//! another user than the job's: the starter's side.
//!
//! While a starter is still root it starts a helper (`daemon::prepost`), gives it the commands in
//! an unlinked file, and holds the only word with which they begin: before a job that is when its
//! account has accepted it. The helper becomes the other user before it runs anything.

use super::handover::{PRE_POST_PROGRAMS, PRE_POST_USER};
use super::step::{Failed, SetupResult};
use crate::model::ByteStr;
use crate::proto::launch::{EXIT_PRE_ABORT, FinishPlan, Hook, HookOf, JobPlan, SetupStage};
use crate::sys::words;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendFlags, send};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The first word of a helper's arguments.
pub const NAME: &str = "pre-post";
/// The word that lets the commands after a job begin.
pub const GO: u8 = b'g';
/// Longest answer of a helper, bytes.
const ANSWER_MAX: u64 = 4096;

/// The commands of a helper.
#[derive(Serialize, Deserialize)]
pub struct Request {
    pub hooks: Vec<Hook>,
    /// NUL-separated `NAME=value`.
    pub env: ByteStr,
    /// LSB_PRE_POST_EXEC_PROGRAMS.
    pub programs: Vec<String>,
    /// The time after which a command is killed, seconds; 0 any.
    pub limit_secs: u64,
    /// Each of the commands runs, whatever fails.
    pub after: bool,
}

/// The answer of a helper whose commands did not all succeed.
#[derive(Debug, Serialize, Deserialize)]
pub struct HelperFailure {
    /// The exit value of the first command that failed; 0: it has none.
    pub exit: u8,
    pub why: String,
}

impl HelperFailure {
    fn new(why: String) -> HelperFailure {
        HelperFailure { exit: 0, why }
    }

    /// An exit status that is not 0.
    pub fn status(&self) -> i32 {
        i32::from(self.exit.max(1))
    }
}

/// Whether a command is the other user's to run.
pub fn takes(hook: &Hook) -> bool {
    matches!(hook.of, HookOf::Queue | HookOf::Host)
}

/// A job without the commands that the other user has run.
pub fn own_part(job: &JobPlan, other: bool) -> Cow<'_, JobPlan> {
    let mut own = Cow::Borrowed(job);
    if other && job.pre.iter().any(takes) {
        own.to_mut().pre.retain(|hook| !takes(hook));
    }
    own
}

/// LSB_PRE_POST_EXEC_USER, with LSB_PRE_POST_EXEC_PROGRAMS.
pub struct OtherUser {
    user: String,
    programs: Vec<String>,
}

impl OtherUser {
    /// The user that the launcher has read from lsf.sudoers, where that names one.
    pub fn of_launcher() -> Option<OtherUser> {
        let text = |name: &str| std::env::var(name).ok();
        let programs = text(PRE_POST_PROGRAMS).unwrap_or_default();
        let programs = programs.split_whitespace().map(str::to_owned).collect();
        text(PRE_POST_USER).map(|user| OtherUser { user, programs })
    }

    /// Has the commands of the queue before a job wait for their turn.
    pub fn before(&self, job: &JobPlan) -> Option<Helper> {
        let hooks: Vec<Hook> = job.pre.iter().filter(|hook| takes(hook)).cloned().collect();
        let (env, programs) = (job.env.clone(), self.programs.clone());
        let limit_secs = job.pre_limit_secs;
        let request = Request { hooks, env, programs, limit_secs, after: false };
        (!request.hooks.is_empty()).then(|| self.start(&request))
    }

    /// Has the commands of the queue after a job wait for their turn.
    pub fn after(&self, plan: &FinishPlan) -> Option<Helper> {
        let hooks: Vec<Hook> = plan.post.iter().filter(|hook| takes(hook)).cloned().collect();
        let (env, programs) = (plan.env.clone(), self.programs.clone());
        let limit_secs = plan.limit_secs;
        let request = Request { hooks, env, programs, limit_secs, after: true };
        (!request.hooks.is_empty()).then(|| self.start(&request))
    }

    fn start(&self, request: &Request) -> Helper {
        let started = || -> io::Result<(Child, UnixStream)> {
            let mut text = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?);
            serde_json::to_writer(BufWriter::new(&mut text), request)?;
            text.rewind()?;
            let (ours, theirs) = UnixStream::pair()?;
            let mut command = Command::new("/proc/self/exe");
            command.arg0("starter").args([NAME, &self.user]).env_clear();
            command.stdin(text).stdout(OwnedFd::from(theirs)).stderr(Stdio::null());
            Ok((command.spawn()?, ours))
        };
        Helper(started())
    }
}

/// A helper, or the reason why there is none.
pub struct Helper(io::Result<(Child, UnixStream)>);

impl Helper {
    /// Lets the commands before a job begin, and waits for their end.
    pub fn go_before(self) -> SetupResult<()> {
        self.go().map_err(|HelperFailure { exit, why }| {
            let abort = i32::from(exit) == EXIT_PRE_ABORT;
            let at = if abort { SetupStage::PreAbort } else { SetupStage::QueuePreExec };
            Failed { exit, ..Failed::new(at, why) }
        })
    }

    /// Lets the commands begin, and waits for their end.
    pub fn go(self) -> Result<(), HelperFailure> {
        if let Ok((_, link)) = &self.0 {
            // a helper that has ended has said why
            let _ = send(link, &[GO], SendFlags::NOSIGNAL);
        }
        self.end()
    }

    fn end(self) -> Result<(), HelperFailure> {
        let (mut child, link) = self.0.map_err(|e| HelperFailure::new(words(&e)))?;
        let mut answer = Vec::new();
        let read = link.take(ANSWER_MAX).read_to_end(&mut answer);
        let status = child.wait().map_err(|e| HelperFailure::new(words(&e)))?;
        if status.success() && answer.is_empty() && read.is_ok() {
            return Ok(());
        }
        let text = format!("{PRE_POST_USER}: {status}");
        Err(serde_json::from_slice(&answer).unwrap_or(HelperFailure::new(text)))
    }
}
