//! Commands that run beside a job: their environment, and the time that they may take.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Pause between two looks at a command with a time limit.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// The variables of NUL-separated `NAME=value`.
pub fn variables(env: &[u8]) -> Vec<(OsString, OsString)> {
    let entries = env.split(|&b| b == 0);
    let pair = |entry: &[u8]| {
        let eq = entry.iter().position(|&b| b == b'=').filter(|&eq| eq > 0)?;
        let word = |b: &[u8]| OsString::from_vec(b.to_vec());
        Some((word(&entry[..eq]), word(&entry[eq + 1..])))
    };
    entries.filter_map(pair).collect()
}

/// Runs a command without input and output, which may take so many seconds (0: any); then the whole
/// process group of this process is killed.
pub fn run_command(limit_secs: u64, mut command: Command) -> io::Result<ExitStatus> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if limit_secs == 0 {
        return command.status();
    }
    let mut child = command.spawn()?;
    let until = Instant::now() + Duration::from_secs(limit_secs);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= until {
            rustix::process::kill_current_process_group(rustix::process::Signal::KILL)?;
        }
        std::thread::sleep(LOOK_PAUSE);
    }
}

/// Runs a command in a process group of its own, which is killed after so many seconds; `None`: it
/// was.
pub fn run_in_group(mut command: Command, limit_secs: u64) -> io::Result<Option<ExitStatus>> {
    let mut child = command.process_group(0).spawn()?;
    let until = Instant::now() + Duration::from_secs(limit_secs);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            let group = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL)?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_PAUSE);
    }
}
