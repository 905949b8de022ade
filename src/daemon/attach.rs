//! What a starter does for a task of res once it has become the user: limits, terminal or pipes,
//! whose other ends go to res over its Unix socket; eexec; and on a terminal it stays as the
//! leader of the session, so that the task can be stopped and continued as below a shell.
//!
//! Invariant: nothing here runs with another's rights; the terminal is the user's own.

use super::eexecd::{self, When};
use super::task::{Step, Task, at};
use crate::net::sock::{send_fds, with_unix_path};
use crate::proto::launch::{Attach, Stage};
use crate::proto::res::Rlim;
use crate::sys::raw::{self, SignalFd};
use crate::sys::term;
use crate::sys::users::User;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, getrlimit, kill_process,
    kill_process_group, setrlimit, waitpid,
};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The limits that travel, with the system's numbers.
pub const LIMITS: [(u8, Resource); 8] = [
    (0, Resource::Cpu),
    (1, Resource::Fsize),
    (2, Resource::Data),
    (3, Resource::Stack),
    (4, Resource::Core),
    (5, Resource::Rss),
    (7, Resource::Nofile),
    (9, Resource::As),
];

type Env = Vec<(OsString, OsString)>;

/// Makes the task's descriptors and hands the other ends to res.
pub fn prepare(attach: &Attach, user: &User, env: Env, other: Option<UnixStream>) -> Step<Task> {
    limit(&attach.rlimits);
    let fail = |e: io::Error| at(Stage::Output, "terminal or pipes")(e);
    let (stdin, stdout, stderr, theirs) = match &attach.pty {
        Some(_) => terminal(attach).map_err(fail)?,
        None => pipes().map_err(|e| fail(e.into()))?,
    };
    let theirs: Vec<BorrowedFd<'_>> = theirs.iter().map(AsFd::as_fd).collect();
    let control = hand_over(attach, &theirs).map_err(at(Stage::Output, "RES"))?;
    let eexec = (&attach.eexec, &attach.eexec_data);
    eexecd::run_for(other, user, &env, eexec, When::Start, None)
        .map_err(at(Stage::PreExec, "eexec as LSF_EEXEC_USER"))?;
    let argv = attach.argv.iter().map(|w| OsString::from_vec(w.0.clone())).collect();
    // a shell leads the session itself
    let watched = attach.pty.as_ref().is_some_and(|p| !p.shell);
    let control = watched.then_some(control);
    Ok(Task { stdin, stdout, stderr, argv, or_else: Vec::new(), arg0: None, env, control })
}

/// The caller's limits, as far as a user may have them here.
fn limit(limits: &[Rlim]) {
    for (number, soft, hard) in limits {
        let Some((_, what)) = LIMITS.iter().find(|l| l.0 == *number) else { continue };
        let top = getrlimit(*what).maximum.unwrap_or(u64::MAX);
        let hard = hard.unwrap_or(u64::MAX).min(top);
        let soft = soft.unwrap_or(u64::MAX).min(hard);
        let given = |n: u64| (n != u64::MAX).then_some(n);
        // none is above what is allowed already
        let _ = setrlimit(*what, Rlimit { current: given(soft), maximum: given(hard) });
    }
}

type Ends = (OwnedFd, OwnedFd, OwnedFd, Vec<OwnedFd>);

fn pipes() -> rustix::io::Result<Ends> {
    let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    let ((stdin, a), (b, stdout), (c, stderr)) = (pipe()?, pipe()?, pipe()?);
    for end in [&a, &b] {
        // slower, but working, where it may not be
        let _ = rustix::pipe::fcntl_setpipe_size(end, 256 << 10);
    }
    Ok((stdin, stdout, stderr, vec![a, b, c]))
}

fn terminal(attach: &Attach) -> io::Result<Ends> {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let how = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(&name, how, Mode::empty())?;
    if let Some(pty) = &attach.pty {
        term::apply(slave.as_fd(), pty)?;
    }
    rustix::process::ioctl_tiocsctty(&slave)?;
    Ok((slave.try_clone()?, slave.try_clone()?, slave, vec![master]))
}

fn hand_over(attach: &Attach, fds: &[BorrowedFd<'_>]) -> io::Result<UnixStream> {
    let path = Path::new(OsStr::from_bytes(&attach.socket.0));
    let sock = with_unix_path(path, |p| UnixStream::connect(p))?;
    send_fds(&sock, &attach.token.0, fds)?;
    Ok(sock)
}

/// Runs the task in a process group of its own in front of the terminal, tells res when it has
/// stopped, continues it when res says so; ends as the task has ended.
pub fn supervise(mut command: Command, mut control: UnixStream) -> Result<i32, io::Error> {
    let all: Vec<i32> = (1..=31).filter(|s| ![4, 5, 7, 8, 9, 11, 19].contains(s)).collect();
    // blocked here and not in the child, which takes them again: they are meant for the task
    let signals = SignalFd::new(&all)?;
    raw::in_front(&mut command);
    let child = command.process_group(0).spawn()?;
    let pid = Pid::from_child(&child);
    let mut open = true;
    loop {
        if let Some(code) = look(pid, &mut control)? {
            return Ok(code);
        }
        let mut fds = vec![PollFd::new(&signals, PollFlags::IN)];
        if open {
            fds.push(PollFd::new(&control, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            got => got?,
        };
        let told = open && !fds[1].revents().is_empty();
        drop(fds);
        while let Ok(Some(_)) = signals.take() {}
        if told {
            match control.read(&mut [0u8; 16]) {
                Ok(n) if n > 0 => front(pid),
                _ => {
                    open = false;
                    let _ = kill_process_group(pid, Signal::HUP);
                    front(pid);
                }
            }
        }
    }
}

/// Puts the task before the terminal and lets it go on.
fn front(pid: Pid) {
    // both fail only where the task is gone
    let _ = rustix::termios::tcsetpgrp(rustix::stdio::stdin(), pid);
    let _ = kill_process_group(pid, Signal::CONT);
}

/// What has become of the task: an exit code to end with, a stop to tell, or nothing new.
fn look(pid: Pid, control: &mut UnixStream) -> io::Result<Option<i32>> {
    let how = WaitOptions::NOHANG | WaitOptions::UNTRACED;
    let Some((_, status)) = waitpid(Some(pid), how)? else { return Ok(None) };
    if status.stopped() {
        // res that is gone is seen when it is read from
        let _ = control.write_all(b"s");
        return Ok(None);
    }
    if let Some(code) = status.exit_status() {
        return Ok(Some(code));
    }
    let Some(number) = status.terminating_signal() else { return Ok(None) };
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    raw::set_signal(number, false).or_else(|e| if number == 9 { Ok(()) } else { Err(e) })?;
    raw::unblock_signals()?;
    if let Some(signal) = Signal::from_named_raw(number) {
        kill_process(getpid(), signal)?;
    }
    Ok(Some(128 + number))
}
