//! DJOB_ENV_SCRIPT of an application profile: run as the job's user with `setup` before the command
//! of the job, and with `cleanup` after it (lsb.applications(5)).
//!
//! Invariants: a script runs with no rights but the user's, its path is the plan's, and nothing
//! looks for it in PATH.

use super::commands::{run_in_group, variables};
use super::hostfile;
use super::job_files::{JobFiles, beside, path_of};
use crate::model::ByteStr;
use crate::proto::launch::{Cleanup, FinishPlan};
use crate::sys::words;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Exit codes of a job whose script cannot be executed, as a shell has them.
const EXIT_NOT_FOUND: i32 = 127;
const EXIT_NOT_EXECUTABLE: i32 = 126;

type Env = [(OsString, OsString)];

/// Runs a script before the command of the job, whose output is this process's. The error: the exit
/// code that the job has then.
pub fn set_up(script: &ByteStr, env: &Env) -> Result<(), i32> {
    let path = path_of(&script.0);
    let ended = command(path, "setup", env).and_then(|mut command| command.status());
    let code = match &ended {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.code().unwrap_or(128 + status.signal().unwrap_or(0)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => EXIT_NOT_FOUND,
        Err(_) => EXIT_NOT_EXECUTABLE,
    };
    let why = failure(path, "setup", ended.map(Some), 0).unwrap_or_default();
    // the job has no other reader
    let _ = writeln!(io::stderr(), "{why}; the command of the job is not run");
    Err(code)
}

/// Runs a script after the job, with these files of its output; the failure that cannot be told
/// there.
pub fn clean_up(
    plan: &FinishPlan,
    cleanup: &Cleanup,
    store: &JobFiles,
    (out, err): (Option<OwnedFd>, Option<OwnedFd>),
) -> Option<String> {
    let path = path_of(&cleanup.script.0);
    let mut env = variables(&plan.env.0);
    env.extend(variables(&cleanup.env.0));
    env.extend(host_files(plan, store, &env));
    let told = err.as_ref().and_then(|err| err.try_clone().ok());
    let stdio = |fd: Option<OwnedFd>| fd.map_or_else(Stdio::null, Stdio::from);
    let ended = command(path, "cleanup", &env).and_then(|mut command| {
        let dir = path_of(&plan.cwd.0);
        command.current_dir(if dir.is_dir() { dir } else { Path::new("/tmp") });
        command.stdout(stdio(out)).stderr(stdio(err));
        run_in_group(command, cleanup.limit_secs)
    });
    let why = failure(path, "cleanup", ended, cleanup.limit_secs)?;
    let said = told
        .is_some_and(|fd| std::fs::File::from(fd).write_all(format!("{why}\n").as_bytes()).is_ok());
    (!said).then_some(why)
}

/// A script as a command. `env_clear` leaves no PATH in which a name could be looked for.
fn command(path: &Path, word: &str, env: &Env) -> io::Result<Command> {
    if !path.is_absolute() {
        return Err(io::Error::other("neither an absolute path nor a name in LSF_BINDIR"));
    }
    let mut command = Command::new(path);
    command.arg(word).env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null());
    Ok(command)
}

/// The words for a script that failed; `None`: it did not. No status: it took too long.
fn failure(
    path: &Path,
    word: &str,
    ended: io::Result<Option<ExitStatus>>,
    limit_secs: u64,
) -> Option<String> {
    let how = match ended {
        Ok(Some(status)) if status.success() => return None,
        Ok(Some(status)) => status.to_string(),
        Ok(None) => format!("killed after {limit_secs} seconds"),
        Err(e) => words(&e),
    };
    Some(format!("DJOB_ENV_SCRIPT <{} {word}>: {how}", path.display()))
}

/// The variables of the files of hosts, as far as these are there.
fn host_files(plan: &FinishPlan, store: &JobFiles, env: &Env) -> Vec<(OsString, OsString)> {
    let own = |ext: &str| path_of(&beside(&plan.remove, ext).0).to_path_buf();
    let slots = env.iter().rfind(|(name, _)| name == "LSB_MCPU_HOSTS");
    let slots = slots.map(|(_, value)| hostfile::slots(value.as_encoded_bytes()));
    let shared = || store.file("").ok().zip(hostfile::shared(&slots.unwrap_or_default()));
    let there = |path: &PathBuf| path.is_file();
    let hosts = Some(own(hostfile::EXT)).filter(there);
    let hosts =
        hosts.or_else(|| shared().map(|(file, name)| file.with_file_name(name)).filter(there));
    let ranks = Some(own(hostfile::RANK_EXT)).filter(there).or_else(|| hosts.clone());
    let all = [("LSB_DJOB_HOSTFILE", hosts), ("LSB_DJOB_RANKFILE", ranks)];
    all.into_iter().filter_map(|(name, path)| Some((name.into(), path?.into()))).collect()
}
