//! The descriptors of a command that runs remote tasks: enough of them for a connection of each
//! task, and its own input.

use rustix::process::{Resource, Rlimit, getpgrp, getrlimit, setrlimit};
use rustix::stdio;

/// Descriptors besides those of tasks: standard ones, signals, authd, configuration.
const OTHER_DESCRIPTORS: u64 = 16;

/// Whether our input may be read: on a terminal it is that of the group in the foreground.
pub fn may_read_input() -> bool {
    let input = stdio::stdin();
    !rustix::termios::isatty(input)
        || rustix::termios::tcgetpgrp(input).is_ok_and(|group| group == getpgrp())
}

/// Makes room for a connection of each task.
///
/// # Errors
/// How many descriptors are needed, and how many there may be.
pub fn raise_descriptors(tasks: usize) -> Result<(), String> {
    let need = tasks as u64 + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= need) {
        return Ok(());
    }
    let raised = limit.maximum.is_none_or(|hard| hard >= need)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(need), ..limit }).is_ok();
    let most = limit.maximum.or(limit.current).unwrap_or_default();
    raised
        .then_some(())
        .ok_or_else(|| format!("{tasks} tasks need {need} descriptors, and the limit is {most}"))
}
