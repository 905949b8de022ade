//! Commands that run beside a job as its user: pre- and post-execution commands of job and
//! queue, the file transfers of -f, the login shell that sets up its environment (bsub(1)).
//!
//! Invariant: nothing here runs with another's rights; it is all in the session of its task, so
//! that what kills the task kills it too.

use super::commands::{run_command, run_in_group, variables};
use super::eexecd::{self, When};
use super::prepost_helper::{Helper, takes};
use super::step::{Failed, SetupResult, note};
use super::task::ReadyTask;
use crate::model::ByteStr;
use crate::proto::launch::{
    EXIT_PRE_ABORT, Eexec, FinishPlan, Hook, HookOf, JobPlan, Ready, SetupStage,
};
use crate::sys::users::User;
use crate::sys::words;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// PATH of the commands of a queue.
pub const QUEUE_PATH: &str = "/bin:/usr/bin:/sbin:/usr/sbin";

/// Most output of a transfer that is read, bytes.
const SAID_MAX: usize = 512;

/// The exit status in the place of a command that has none.
const EXIT_KILLED: i32 = 1;

type Env = [(OsString, OsString)];

/// Runs what comes before the job. The job's own command shares the files of the job, that of
/// the queue has none. A transfer that fails is a failure of pre-execution. `begun` is called when
/// what the queue has is done.
pub fn before(job: &JobPlan, task: &ReadyTask, begun: &mut dyn FnMut()) -> SetupResult<()> {
    for hook in &job.pre {
        if hook.of == HookOf::Job {
            begun();
        }
        if hook.of == HookOf::Copy {
            let copied = transfer(hook, &task.env, None);
            copied.map_err(|why| Failed::new(SetupStage::PreExec, why))?;
            continue;
        }
        let files = match hook.of {
            HookOf::Queue | HookOf::Host => None,
            _ => Some([&task.stdin, &task.stdout, &task.stderr]),
        };
        let whose = if hook.shown.is_empty() { name_of(hook.of) } else { &hook.shown };
        let at = stage_of(hook.of);
        let ended = run(hook, &task.env, job.pre_limit_secs, files);
        let how = match &ended {
            Ok(status) if status.success() => continue,
            Ok(status) => status.to_string(),
            Err(e) => words(e),
        };
        let code = ended.ok().and_then(|status| status.code());
        let at = if code == Some(EXIT_PRE_ABORT) { SetupStage::PreAbort } else { at };
        let exit = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(0);
        let begun = hook.of == HookOf::Job;
        return Err(Failed { at, why: format!("{whose}: {how}"), exit, begun });
    }
    begun();
    Ok(())
}

/// The words for a command before the job.
pub fn name_of(of: HookOf) -> &'static str {
    match of {
        HookOf::Queue => "the queue's pre-exec command",
        HookOf::Host => "the queue's host pre-exec command",
        _ => "the pre-exec command",
    }
}

fn stage_of(of: HookOf) -> SetupStage {
    match of {
        HookOf::Queue | HookOf::Host => SetupStage::QueuePreExec,
        _ => SetupStage::PreExec,
    }
}

/// Copies back what the job was to bring back; all of it, whatever fails.
pub fn copy_back(plan: &FinishPlan, ready: &mut Ready) {
    if plan.copies.is_empty() {
        return;
    }
    let (env, cwd) = (environment(plan), Path::new(OsStr::from_bytes(&plan.cwd.0)));
    for hook in &plan.copies {
        if let Err(why) = transfer(hook, &env, Some(cwd)) {
            note(ready, why);
        }
    }
}

/// Runs a file transfer; the error contains the transfer and its output.
fn transfer(hook: &Hook, env: &Env, cwd: Option<&Path>) -> Result<(), String> {
    let fail = |why: String| format!("file transfer <{}>: {why}", hook.shown);
    let mut said = said_file().map_err(|e| fail(words(&e)))?;
    let mut command = command(hook, env, cwd);
    let err = said.try_clone().map_err(|e| fail(words(&e)))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(err);
    let status = command.status().map_err(|e| fail(words(&e)))?;
    if status.success() {
        return Ok(());
    }
    let mut text = vec![0; SAID_MAX];
    let read = said.rewind().and_then(|()| said.read(&mut text)).unwrap_or(0);
    let text = String::from_utf8_lossy(&text[..read]);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.map(|line| line.strip_prefix("lsrcp: ").unwrap_or(line).to_owned());
    let clean = |line: String| line.replace(char::is_control, "?");
    Err(fail(line.map_or_else(|| status.to_string(), clean)))
}

/// A file without a name for the output of a transfer, which never has to wait for a reader. If the
/// kernel offers none in memory, the output is lost.
fn said_file() -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    match rustix::fs::memfd_create("transfer", flags) {
        Ok(fd) => Ok(File::from(fd)),
        Err(_) => File::options().read(true).write(true).open("/dev/null"),
    }
}

/// Runs what comes after the job, whatever fails; the exit status of the first command that fails,
/// in which eexec does not count, nor the removal of spooled input. `eexec`: where that is asked
/// for as another user; `helper`: runs the commands of the queue as another user.
pub fn after(
    plan: &FinishPlan,
    user: &User,
    eexec: SetupResult<Option<UnixStream>>,
    helper: Option<Helper>,
) -> i32 {
    let env = environment(plan);
    let cwd = Path::new(OsStr::from_bytes(&plan.cwd.0));
    if let (false, Ok(link)) = (plan.eexec.is_none(), eexec) {
        let Eexec { program, data } = &plan.eexec;
        // nobody is left to whom its failure could be told
        let when = if plan.checkpoint { When::Checkpoint } else { When::End };
        let _ = eexecd::run_for(link, user, &env, (program, data), when, Some(cwd));
    }
    let mut first = 0;
    for hook in plan.post.iter().filter(|hook| helper.is_none() || !takes(hook)) {
        let ended = run_within(plan.limit_secs, hook, &env, cwd);
        let code = ended.ok().and_then(|status| status.code()).unwrap_or(EXIT_KILLED);
        if first == 0 && hook.of != HookOf::Copy {
            first = code;
        }
    }
    let other = helper.map_or(0, |helper| helper.go().err().map_or(0, |failed| failed.status()));
    if first == 0 { other } else { first }
}

/// The environment of what runs after a job.
fn environment(plan: &FinishPlan) -> Vec<(OsString, OsString)> {
    variables(&plan.env.0)
}

/// Runs a command that may take so many seconds (0: any); then the whole process group of the task
/// is killed.
fn run_within(limit_secs: u64, hook: &Hook, env: &Env, cwd: &Path) -> io::Result<ExitStatus> {
    run_command(limit_secs, command(hook, env, Some(cwd)))
}

/// Runs a command before the job. A command that takes longer than this (0: any) is killed
/// with its process group, and has failed.
fn run(
    hook: &Hook,
    env: &Env,
    limit_secs: u64,
    files: Option<[&OwnedFd; 3]>,
) -> io::Result<ExitStatus> {
    let mut command = command(hook, env, None);
    match files {
        Some([input, out, err]) => {
            command.stdin(input.try_clone()?).stdout(out.try_clone()?).stderr(err.try_clone()?)
        }
        None => command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()),
    };
    if limit_secs == 0 {
        return command.status();
    }
    run_in_group(command, limit_secs)?.ok_or_else(|| {
        let why = format!("took longer than JOB_PREPROC_TIMEOUT, {limit_secs} seconds");
        io::Error::new(io::ErrorKind::TimedOut, why)
    })
}

pub fn command(hook: &Hook, env: &Env, cwd: Option<&Path>) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(OsStr::from_bytes(&hook.text.0));
    command.env_clear().envs(env.iter().map(|(n, v)| (n, v)));
    match (hook.of, cwd) {
        (HookOf::Queue | HookOf::Host, _) => command.env("PATH", QUEUE_PATH).current_dir("/tmp"),
        (_, Some(dir)) if dir.is_dir() => command.current_dir(dir),
        (_, Some(_)) => command.current_dir("/tmp"),
        (_, None) => &mut command,
    };
    command
}

/// The words of a job as its login shell has to be given them, and the name under which a shell
/// knows that it is one.
pub fn under_login_shell(
    shell: &ByteStr,
    argv: Vec<OsString>,
) -> SetupResult<(Vec<OsString>, Option<OsString>)> {
    if shell.is_empty() {
        return Ok((argv, None));
    }
    let path = Path::new(OsStr::from_bytes(&shell.0));
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).map_err(|e| {
        Failed::new(
            SetupStage::Shell,
            format!("login shell <{}>: {}", path.display(), words(&e.into())),
        )
    })?;
    let name = path.file_name().unwrap_or_default();
    // what the shell runs has to become the job, words and all
    let csh = matches!(name.as_bytes(), b"csh" | b"tcsh");
    let exec: &[&str] = if csh { &["exec $argv:q"] } else { &["exec \"$@\"", "sh"] };
    let mut all: Vec<OsString> = vec![path.into(), "-c".into()];
    all.extend(exec.iter().map(OsString::from));
    all.extend(argv);
    let mut login = OsString::from("-");
    login.push(name);
    Ok((all, Some(login)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::time::{Duration, Instant};

    #[test]
    fn a_login_shell_passes_the_words_on() {
        let words: Vec<OsString> = ["printf", "<%s>", "a b", "it's", "$X"].map(Into::into).into();
        for shell in ["/bin/sh", "/bin/bash", "/bin/tcsh"] {
            if !Path::new(shell).exists() {
                continue;
            }
            let (argv, name) = under_login_shell(&shell.into(), words.clone()).ok().unwrap();
            let out = Command::new(&argv[0]).arg0(name.unwrap()).args(&argv[1..]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&out.stdout), "<a b><it's><$X>", "{shell}");
        }
        assert!(under_login_shell(&"/no/such".into(), words).is_err());
    }

    #[test]
    fn command_before_a_job_that_takes_too_long_is_killed_with_its_children() {
        let hook = |text: &str| Hook::new(HookOf::Queue, text);
        assert!(run(&hook("exit 0"), &[], 60, None).unwrap().success());
        let begun = Instant::now();
        let late = run(&hook("sleep 50 & wait"), &[], 1, None).unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(late.to_string(), "took longer than JOB_PREPROC_TIMEOUT, 1 seconds");
    }
}
