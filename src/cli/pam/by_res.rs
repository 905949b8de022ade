//! Signals for tasks whose TaskStarter is cut off from pam: blaunch starts another TaskStarter on
//! their host (`TaskStarter -k`), which sends them.
//!
//! Invariants: a process whose start is another one has no signal; the signals are those of the
//! user, whom the kernel asks for the right to send them; no such blaunch ends the job, whatever
//! becomes of it.

use crate::pam::TaskProcess;
use crate::sys::process_table::see;
use crate::sys::raw::{self, SignalMask};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Most calls of blaunch at once; further ones wait.
const CALLS_MAX: usize = 64;
/// Most calls that wait; further signals are not sent, as if the host had refused them.
const WAITING_MAX: usize = 4096;
/// The time that blaunch has: its host may be down.
const CALL: Duration = Duration::from_secs(60);
/// Pause between two looks at the calls at the end.
const PAUSE: Duration = Duration::from_millis(10);

/// The calls under way.
pub(super) struct SignalCalls {
    blaunch: PathBuf,
    /// TaskStarter, as its callers name it.
    starter: OsString,
    /// The signals that were blocked before pam blocked its own.
    mask: SignalMask,
    under_way: Vec<(String, Child, Instant)>,
    waiting: VecDeque<(String, Vec<OsString>)>,
    /// The hosts of signals for which there was no room.
    refused: Vec<String>,
}

impl SignalCalls {
    pub(super) fn new(bindir: &str, starter: &str, mask: SignalMask) -> SignalCalls {
        let (blaunch, starter) = (PathBuf::from(bindir).join("blaunch"), starter.into());
        let (under_way, waiting, refused) = (Vec::new(), VecDeque::new(), Vec::new());
        SignalCalls { blaunch, starter, mask, under_way, waiting, refused }
    }

    /// Has these processes signalled as soon as there is room for a call.
    pub(super) fn add(&mut self, host: String, processes: &[TaskProcess], signal: i32) {
        if self.waiting.len() >= WAITING_MAX {
            if !self.refused.contains(&host) {
                self.refused.push(host);
            }
            return;
        }
        let processes = processes.iter().map(|of| format!("{}:{}", of.pid, of.ticks).into());
        let words = [OsString::from("-k"), signal.to_string().into()];
        self.waiting.push_back((host, words.into_iter().chain(processes).collect()));
    }

    /// Begins calls, and takes note of those that are over; the hosts of those that have failed.
    pub(super) fn turn(&mut self) -> Vec<String> {
        let mut failed = std::mem::take(&mut self.refused);
        self.under_way.retain_mut(|(host, child, since)| match child.try_wait() {
            Ok(None) if since.elapsed() < CALL => true,
            Ok(Some(status)) if status.success() => false,
            done => {
                if matches!(done, Ok(None)) {
                    let _ = child.kill();
                    let _ = child.wait();
                }
                failed.push(std::mem::take(host));
                false
            }
        });
        while self.under_way.len() < CALLS_MAX
            && let Some((host, words)) = self.waiting.pop_front()
        {
            match self.command(&host, &words).spawn() {
                Ok(child) => self.under_way.push((host, child, Instant::now())),
                Err(_) => failed.push(host),
            }
        }
        failed
    }

    /// Waits for the calls that are left, some time at most; the hosts of those that have failed or
    /// are not over.
    pub(super) fn finish(&mut self, wait: Duration) -> Vec<String> {
        let (until, mut failed) = (Instant::now() + wait, self.turn());
        while !self.under_way.is_empty() && Instant::now() < until {
            std::thread::sleep(PAUSE);
            failed.extend(self.turn());
        }
        failed.extend(self.under_way.drain(..).map(|call| call.0));
        failed.extend(self.waiting.drain(..).map(|call| call.0));
        failed
    }

    fn command(&self, host: &str, words: &[OsString]) -> Command {
        let mut command = Command::new(&self.blaunch);
        command.args(["-n", "-no-shell", host]).arg(&self.starter).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // neither its end nor the loss of the host is one of a task of the job
        command.env("LSF_PAM_PID", std::process::id().to_string());
        command.env("LSB_DJOB_COMMFAIL_ACTION", "KILL_TASKS");
        command.process_group(0);
        raw::with_mask(&mut command, self.mask);
        command
    }
}

/// `TaskStarter -k`: sends a signal to the process groups that these processes lead, and to those
/// that lead none; words: `pid:start`. A process that
/// is gone has no signal.
///
/// # Errors
/// A word or a number that is none; no signal was sent.
pub fn signal_processes(signal: i32, words: &[OsString]) -> Result<(), String> {
    let named = Signal::from_named_raw(signal).ok_or_else(|| format!("-k {signal}: no signal"))?;
    if words.is_empty() {
        return Err("-k: no process".into());
    }
    let mut processes = Vec::with_capacity(words.len());
    for word in words {
        let text = word.to_string_lossy();
        let parts = text.split_once(':').and_then(|(pid, ticks)| {
            let pid = pid.parse().ok().filter(|pid| *pid > 1)?;
            Some((Pid::from_raw(pid)?, ticks.parse::<u64>().ok()?))
        });
        let of = parts.ok_or_else(|| format!("{}: not pid:start", text.escape_debug()))?;
        processes.push(of);
    }
    for (pid, ticks) in processes {
        let number = pid.as_raw_nonzero().get() as u32;
        // the user has nothing to lose by a number that changes its owner just now: it is the
        // user's own process that would be signalled
        let Some(seen) = see(number).filter(|seen| seen.start == ticks) else { continue };
        let _ = match seen.pgrp == number {
            true => kill_process_group(pid, named),
            false => kill_process(pid, named),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_beyond_those_that_may_wait_are_told_as_not_sent() {
        let mut calls = SignalCalls::new("/nowhere", "x", SignalMask::now().unwrap());
        let process = [TaskProcess { pid: 5, ticks: 1 }];
        for _ in 0..WAITING_MAX {
            calls.add("h1".into(), &process, 10);
        }
        for host in ["h2", "h3", "h2"] {
            calls.add(host.into(), &process, 10);
        }
        assert_eq!((calls.waiting.len(), calls.refused.len()), (WAITING_MAX, 2));
        // no blaunch can be begun there
        let failed = calls.turn();
        assert_eq!((failed[..2].concat(), failed.len()), ("h2h3".into(), WAITING_MAX + 2));
    }

    #[test]
    fn process_with_another_start_and_a_word_that_is_no_process_are_not_signalled() {
        let mut child = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let start = see(child.id()).unwrap().start;
        let word = |ticks: u64| OsString::from(format!("{}:{ticks}", child.id()));
        let (right, wrong) = (word(start), word(start + 1));
        signal_processes(9, std::slice::from_ref(&wrong)).unwrap();
        for bad in ["1", "1:2", "0:5", "-7:1", "x:1", "7:", "7:-1"] {
            let words = [right.clone(), bad.into()];
            assert_eq!(signal_processes(9, &words), Err(format!("{bad}: not pid:start")));
        }
        assert_eq!(signal_processes(99, &[]), Err("-k 99: no signal".into()));
        assert_eq!(signal_processes(9, &[]), Err("-k: no process".into()));
        std::thread::sleep(Duration::from_millis(50));
        assert!(child.try_wait().unwrap().is_none());
        signal_processes(9, &[wrong, right]).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }
}
