//! What runs beside a job as its user: the pre- and post-execution commands of the job and of its
//! queue, the file transfers of -f, the login shell that sets up its environment (commands.md
//! bsub; semantics §12, §17).
//!
//! Invariant: nothing here runs with another's rights; it is all in the session of its task, so
//! that what kills the task kills it too.

use super::eexecd::{self, When};
use super::task::{Failed, Step, Task, note};
use crate::model::ByteStr;
use crate::proto::launch::{
    EXIT_PRE_ABORT, Eexec, FinishPlan, Hook, HookOf, JobPlan, Ready, Stage,
};
use crate::sys::users::User;
use crate::sys::words;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// PATH of the commands of a queue.
const QUEUE_PATH: &str = "/bin:/usr/bin:/sbin:/usr/sbin";

type Env = [(OsString, OsString)];

/// Runs what comes before the job. The job's own command shares the files of the job, that of
/// the queue has none.
pub fn before(job: &JobPlan, task: &Task, ready: &mut Ready) -> Step<()> {
    for hook in &job.pre {
        let files = match hook.of {
            HookOf::Queue => None,
            _ => Some([&task.stdin, &task.stdout, &task.stderr]),
        };
        let (whose, at) = match hook.of {
            HookOf::Queue => ("the queue's pre-exec command", Stage::QueuePreExec),
            _ => ("the pre-exec command", Stage::PreExec),
        };
        let ended = run(hook, &task.env, None, files);
        let how = match &ended {
            Ok(status) if status.success() => continue,
            Ok(status) => status.to_string(),
            Err(e) => words(e),
        };
        if hook.of == HookOf::Copy {
            note(ready, format!("file transfer <{}>: {how}", hook.text.lossy()));
            continue;
        }
        let abort = ended.is_ok_and(|s| s.code() == Some(EXIT_PRE_ABORT));
        return Err(Failed(if abort { Stage::PreAbort } else { at }, format!("{whose}: {how}")));
    }
    Ok(())
}

/// Runs what comes after the job, whatever fails; the exit status for it, in which file transfers
/// and eexec do not count. `eexec`: where that is asked for as another user.
pub fn after(plan: &FinishPlan, user: &User, eexec: Step<Option<UnixStream>>) -> i32 {
    let env: Vec<(OsString, OsString)> = plan
        .env
        .0
        .split(|&b| b == 0)
        .filter_map(|entry| {
            let eq = entry.iter().position(|&b| b == b'=').filter(|&eq| eq > 0)?;
            let word = |b: &[u8]| OsString::from_vec(b.to_vec());
            Some((word(&entry[..eq]), word(&entry[eq + 1..])))
        })
        .collect();
    let cwd = Path::new(OsStr::from_bytes(&plan.cwd.0));
    if let (false, Ok(link)) = (plan.eexec.is_none(), eexec) {
        let Eexec { program, data } = &plan.eexec;
        // nobody is left to whom its failure could be told
        let _ = eexecd::run_for(link, user, &env, (program, data), When::End, Some(cwd));
    }
    let fails = |hook: &&Hook| {
        let failed = !run(hook, &env, Some(cwd), None).is_ok_and(|s| s.success());
        failed && hook.of != HookOf::Copy
    };
    i32::from(plan.post.iter().filter(fails).count() > 0)
}

fn run(
    hook: &Hook,
    env: &Env,
    cwd: Option<&Path>,
    files: Option<[&OwnedFd; 3]>,
) -> io::Result<ExitStatus> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(OsStr::from_bytes(&hook.text.0));
    command.env_clear().envs(env.iter().map(|(n, v)| (n, v)));
    match files {
        Some([input, out, err]) => {
            command.stdin(input.try_clone()?).stdout(out.try_clone()?).stderr(err.try_clone()?)
        }
        None => command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()),
    };
    match (hook.of, cwd) {
        (HookOf::Queue, _) => command.env("PATH", QUEUE_PATH).current_dir("/tmp"),
        (_, Some(dir)) if dir.is_dir() => command.current_dir(dir),
        (_, Some(_)) => command.current_dir("/tmp"),
        (_, None) => &mut command,
    };
    command.status()
}

/// The words of a job as its login shell has to be given them, and the name under which a shell
/// knows that it is one.
pub fn under_login_shell(
    shell: &ByteStr,
    argv: Vec<OsString>,
) -> Step<(Vec<OsString>, Option<OsString>)> {
    if shell.is_empty() {
        return Ok((argv, None));
    }
    let path = Path::new(OsStr::from_bytes(&shell.0));
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).map_err(|e| {
        Failed(Stage::Shell, format!("login shell <{}>: {}", path.display(), words(&e.into())))
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
}
