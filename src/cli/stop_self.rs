//! The stop of this process by its own hand, after it has done what SIGTSTP asks of it.
//!
//! A SIGSTOP of another process may come before that, while SIGTSTP is still dealt with: then this
//! process stands still there, and goes on by the SIGCONT that was to end both stops. It must not
//! stop again, as nobody would continue it.

use rustix::process::{Signal, getpid, kill_process};

/// Stops this process, unless a SIGCONT is pending, which must be a blocked signal here.
pub(super) fn stop_unless_continued() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !is_pending(&status, Signal::CONT.as_raw()) {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// Is a signal to the whole process pending, by the text of /proc/PID/status?
fn is_pending(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_signals_are_read_from_the_mask_of_the_process() {
        let status = "Name:\tx\nSigPnd:\t0000000000020000\nShdPnd:\t0000000000000001\n";
        assert!(is_pending(status, 1) && !is_pending(status, 18));
        assert!(is_pending("ShdPnd:\t0000000000020000\n", 18));
        assert!(!is_pending("", 18));
    }
}
