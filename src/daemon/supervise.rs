//! The parent of a task of res that runs on a terminal: it stays as the leader of the session, so
//! that the task can be stopped and continued as below a shell.

use crate::sys::raw::{self, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, kill_process_group,
    setrlimit, waitpid,
};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

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

/// The state of the task: an exit code to end with, a stop to report, or nothing new.
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
