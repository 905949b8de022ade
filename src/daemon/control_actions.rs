//! Runs CONTROL_ACTION of lsb.serviceclasses for mbatchd: a shell of the user that mbatchd runs as,
//! without input, whose output goes nowhere. One thread runs all of them, one after the other, so
//! that a slow command stops no loop.
//!
//! Invariants: a command has a time limit, and few wait; a further one is not run, and that is
//! logged. The log names the service class and never the command.

use super::handover::DEFAULT_PATH;
use crate::sys::child::{Given, Io};
use crate::sys::users::run_bounded;
use crate::sys::words;
use std::process::Command;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Longest time of a command.
const ACTION_WAIT: Duration = Duration::from_secs(300);
/// Most commands that wait for the one that runs.
const MAX_WAITING: usize = 64;

/// Runs `$0`. Descriptor 3 is closed when this shell ends: neither the command nor what it leaves
/// behind in the background has it.
const SCRIPT: &str = "exec 3>&1 >/dev/null 2>&1; /bin/sh -c \"$0\" 3>&-; exit $?";

/// The commands that wait.
#[derive(Debug, Default)]
pub struct ControlActions {
    envdir: String,
    /// To the thread that runs them, once there is one.
    sender: Option<SyncSender<Action>>,
}

/// A command of a service class.
#[derive(Debug)]
struct Action {
    class: String,
    command: String,
    envdir: String,
}

impl ControlActions {
    /// For a cluster with its files there.
    pub fn new(envdir: &str) -> ControlActions {
        ControlActions { envdir: envdir.to_owned(), sender: None }
    }

    /// Has a command run.
    pub fn put(&mut self, class: String, command: String) {
        let sender = match &self.sender {
            Some(sender) => sender.clone(),
            None => match begin_running() {
                Ok(sender) => self.sender.insert(sender).clone(),
                Err(e) => return log::error!("CONTROL_ACTION of service class <{class}>: {e}"),
            },
        };
        let why = match sender.try_send(Action { class, command, envdir: self.envdir.clone() }) {
            Ok(()) => return,
            Err(TrySendError::Full(action)) => (action, "too many commands wait"),
            Err(TrySendError::Disconnected(action)) => {
                self.sender = None;
                (action, "the thread that runs commands has ended")
            }
        };
        log::error!("CONTROL_ACTION of service class <{}> is not run: {}", why.0.class, why.1);
    }
}

/// Begins the thread that runs commands one after the other.
fn begin_running() -> std::io::Result<SyncSender<Action>> {
    let (sender, actions) = sync_channel(MAX_WAITING);
    let run = move || run_all(&actions);
    std::thread::Builder::new().name("control action".into()).spawn(run)?;
    Ok(sender)
}

fn run_all(actions: &Receiver<Action>) {
    for action in actions {
        match action.run(ACTION_WAIT) {
            Ok(true) => log::info!("CONTROL_ACTION of service class <{}> was run", action.class),
            Ok(false) => log::warn!("CONTROL_ACTION of service class <{}> failed", action.class),
            Err(e) => {
                let why = words(&e);
                log::warn!("CONTROL_ACTION of service class <{}>: {why}", action.class);
            }
        }
    }
}

impl Action {
    /// Has a shell run the command; whether it succeeded.
    fn run(&self, wait: Duration) -> std::io::Result<bool> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, &self.command]).current_dir("/");
        command.env("PATH", DEFAULT_PATH).env("LSF_ENVDIR", &self.envdir);
        let stdio = [Io::Null, Io::Pipe, Io::Null];
        let given = Given { stdio, group: true, ..Given::default() };
        run_bounded(&command, given, wait).map(|(_, good)| good)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn action(command: String) -> Action {
        Action { class: "late".into(), command, envdir: "/etc/lsf".into() }
    }

    #[test]
    fn command_is_run_by_a_shell_and_its_exit_is_told() {
        let dir = std::env::temp_dir().join(format!("control-action-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let file = dir.join("told");
        let told = format!("echo noise; echo \"$LSF_ENVDIR [$(pwd)]\" > {}", file.display());
        assert!(action(told).run(ACTION_WAIT).unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "/etc/lsf [/]\n");
        assert!(!action("exit 3".into()).run(ACTION_WAIT).unwrap());
        let begun = Instant::now();
        assert!(action("sleep 20 &".into()).run(ACTION_WAIT).unwrap());
        assert!(begun.elapsed() < Duration::from_secs(15));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn command_that_takes_too_long_is_ended() {
        let begun = Instant::now();
        assert!(action("sleep 60".into()).run(Duration::from_millis(200)).is_err());
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
