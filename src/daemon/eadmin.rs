//! Calls eadmin(8) for mbatchd: the program of a site that is told of exceptional hosts and jobs.
//! One thread calls it, once for all exceptions of a kind that are new, so that a slow program
//! stops no loop.
//!
//! Invariants: a call has a time limit, and few wait; a program that others could exchange is not
//! run. Where there is no program, mbatchd is told so and does what is the default.

use super::driver::Remote;
use super::handover::DEFAULT_PATH;
use crate::model::exception::Exceptions;
use crate::proto::Input;
use crate::sys::child::{Given, Io};
use crate::sys::files::exchangeable;
use crate::sys::users::run_bounded;
use crate::sys::words;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Longest time of a call.
const CALL_WAIT: Duration = Duration::from_secs(60);
/// Most calls that wait for the one that runs.
const MAX_WAITING: usize = 16;

/// The calls that wait.
#[derive(Debug, Default)]
pub struct Eadmin {
    envdir: String,
    /// To the thread that calls, once there is one.
    sender: Option<SyncSender<Call>>,
}

/// A call of eadmin.
#[derive(Debug)]
struct Call {
    program: PathBuf,
    all: Box<Exceptions>,
    envdir: String,
}

/// How a call ended.
#[derive(Debug, PartialEq)]
enum Called {
    Done,
    /// The site has no eadmin.
    Missing,
    Failed(String),
}

impl Eadmin {
    /// For a cluster with its files there.
    pub fn new(envdir: &str) -> Eadmin {
        Eadmin { envdir: envdir.to_owned(), sender: None }
    }

    /// Has the program called; where it is missing, `remote` is told.
    pub fn put(&mut self, program: String, all: Box<Exceptions>, remote: Remote) {
        let sender = match &self.sender {
            Some(sender) => sender.clone(),
            None => match begin_calling(remote) {
                Ok(sender) => self.sender.insert(sender).clone(),
                Err(e) => return log::error!("{program}: {e}"),
            },
        };
        let envdir = self.envdir.clone();
        let why = match sender.try_send(Call { program: program.into(), all, envdir }) {
            Ok(()) => return,
            Err(TrySendError::Full(call)) => (call, "too many calls wait"),
            Err(TrySendError::Disconnected(call)) => {
                self.sender = None;
                (call, "the thread that calls it has ended")
            }
        };
        let (program, kind) = (why.0.program.display(), why.0.all.kind());
        log::error!("{program} is not told of {kind}: {}", why.1);
    }
}

/// Begins the thread that calls the program.
fn begin_calling(remote: Remote) -> std::io::Result<SyncSender<Call>> {
    let (sender, calls) = sync_channel(MAX_WAITING);
    let missing = move |all| {
        remote.input(Input::NoEadmin { all });
        remote.wake();
    };
    let run = move || call_all(&calls, missing);
    std::thread::Builder::new().name("eadmin".into()).spawn(run)?;
    Ok(sender)
}

fn call_all(calls: &Receiver<Call>, missing: impl Fn(Box<Exceptions>)) {
    for call in calls {
        let (program, kind) = (call.program.display(), call.all.kind());
        match call.run(CALL_WAIT) {
            Called::Done => log::info!("{program} was told of {kind}"),
            Called::Failed(why) => log::error!("{program} was told of {kind}: {why}"),
            Called::Missing => missing(call.all),
        }
    }
}

impl Call {
    fn run(&self, wait: Duration) -> Called {
        if !self.program.is_absolute() || is_missing(&self.program) {
            return Called::Missing;
        }
        if let Some(why) = exchangeable(&self.program) {
            return Called::Failed(format!("it is not run: {why}"));
        }
        let mut command = Command::new(&self.program);
        command.args(self.all.words()).current_dir("/");
        command.env("PATH", DEFAULT_PATH).env("LSF_ENVDIR", &self.envdir);
        let stdio = [Io::Null, Io::Pipe, Io::Null];
        let given = Given { stdio, group: true, ..Given::default() };
        match run_bounded(&command, given, wait) {
            Ok((_, true)) => Called::Done,
            Ok((_, false)) => Called::Failed("it failed".to_owned()),
            Err(e) => Called::Failed(words(&e)),
        }
    }
}

fn is_missing(program: &Path) -> bool {
    let found = std::fs::symlink_metadata(program);
    found.is_err_and(|e| matches!(e.kind(), std::io::ErrorKind::NotFound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JobRef;
    use crate::model::exception::{HostException, JobException};
    use crate::sys::testing::program;
    use std::time::Instant;

    fn call(name: &str, script: &str) -> (Call, PathBuf) {
        let dir = std::env::temp_dir().join(format!("lsf-eadmin-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("eadmin");
        program(&path, &format!("#!/bin/sh\n{script}\n"), 0o755);
        let host = HostException { host: "h1".into(), exits: 12, threshold: 10 };
        let all = Box::new(Exceptions::Hosts(vec![host]));
        (Call { program: path, all, envdir: "/conf".to_owned() }, dir)
    }

    #[test]
    fn program_is_told_of_all_exceptions_of_a_kind_by_its_arguments() {
        let script = "echo \"$*\" $(pwd) $LSF_ENVDIR >> ${0%/*}/told";
        let (mut of, dir) = call("told", script);
        assert_eq!(of.run(CALL_WAIT), Called::Done);
        let job = |job, idx, kind| JobException {
            at: JobRef { job, idx },
            kind,
            queue: "night".into(),
            user: "ann".into(),
        };
        *of.all = Exceptions::Jobs(vec![job(7, 0, "overrun"), job(8, 3, "idle")]);
        assert_eq!(of.run(CALL_WAIT), Called::Done);
        let told = std::fs::read_to_string(dir.join("told")).unwrap();
        let jobs = "job overrun:7:night:ann idle:8[3]:night:ann / /conf\n";
        assert_eq!(told, format!("host h1:12:10 / /conf\n{jobs}"));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn program_that_hangs_fails_or_could_be_exchanged_is_named_with_words() {
        use std::os::unix::fs::PermissionsExt;
        let (of, dir) = call("fails", "exit 3");
        assert_eq!(of.run(CALL_WAIT), Called::Failed("it failed".into()));
        std::fs::remove_dir_all(dir).unwrap();
        let (of, dir) = call("hangs", "sleep 64018 & wait");
        let from = Instant::now();
        let Called::Failed(why) = of.run(Duration::from_millis(300)) else { panic!() };
        assert!(why.contains("timed out"), "{why}");
        assert!(from.elapsed() < Duration::from_secs(20));
        std::fs::remove_dir_all(dir).unwrap();
        let (of, dir) = call("exchanged", "echo told > ${0%/*}/told");
        let open = std::fs::Permissions::from_mode(0o775);
        std::fs::set_permissions(&of.program, open).unwrap();
        let Called::Failed(why) = of.run(CALL_WAIT) else { panic!() };
        assert!(why.contains("can be changed by others"), "{why}");
        assert!(!dir.join("told").exists());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn missing_program_is_told_to_the_machine_with_its_exceptions() {
        let (of, dir) = call("missing", "true");
        std::fs::remove_dir_all(dir).unwrap();
        assert_eq!(of.run(CALL_WAIT), Called::Missing);
        let all = of.all.clone();
        let (sender, calls) = sync_channel(1);
        sender.send(of).unwrap();
        drop(sender);
        let (told, heard) = std::sync::mpsc::channel();
        call_all(&calls, move |all| told.send(all).unwrap());
        assert_eq!(heard.recv().unwrap(), all);
    }
}
