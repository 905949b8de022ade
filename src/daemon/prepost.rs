//! The helper of a starter that runs the commands of queues as LSB_PRE_POST_EXEC_USER of
//! lsf.sudoers (lsf.sudoers(5)). See `daemon::prepost_helper` for the starter's side.
//!
//! Invariants: the helper is the other user, and no other, before it runs anything; of the
//! environment of a job only LSB_* and LS_* reach a command, so that no user decides what runs
//! here; where the other user is root, a command is a program that lsf.sudoers names, root's alone
//! to write, and words without a shell.

use super::change_user::{USER_WAIT, become_user};
use super::commands::{run_command, variables};
use super::hooks::{QUEUE_PATH, command, name_of};
pub use super::prepost_helper::NAME;
use super::prepost_helper::{GO, HelperFailure, Request};
use super::starter::PLAN_MAX;
use crate::proto::launch::Hook;
use crate::sys::files::only;
use crate::sys::users::{User, UserDatabase};
use crate::sys::{raw, words};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// Exit status of a helper that has not run its commands.
const EXIT_NOTHING: i32 = 125;

/// Serves one starter; the exit status.
pub fn serve(user: &OsStr) -> i32 {
    let Ok((request, mut link)) = begin() else { return EXIT_NOTHING };
    let ran =
        become_other(&user.to_string_lossy()).and_then(|user| run(&user, &request, &mut link));
    let Err(failed) = ran else { return 0 };
    let told = serde_json::to_vec(&failed).is_ok_and(|text| link.write_all(&text).is_ok());
    if told { failed.status() } else { EXIT_NOTHING }
}

/// Reads the commands; nothing is left open but the way to the starter.
fn begin() -> io::Result<(Request, UnixStream)> {
    raw::cloexec_from(3)?;
    let text = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let link = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let request = serde_json::from_reader(File::from(text).take(PLAN_MAX))?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok((request, UnixStream::from(link)))
}

fn failure(why: impl Into<String>) -> HelperFailure {
    HelperFailure { exit: 0, why: why.into() }
}

/// Becomes the user that lsf.sudoers names, who may be root.
fn become_other(name: &str) -> Result<User, HelperFailure> {
    let found = UserDatabase::default().find_name(name, USER_WAIT);
    let why = || failure(format!("LSB_PRE_POST_EXEC_USER: user {name} is not known here"));
    let user = found.ok_or_else(why)?;
    become_user(&user).map_err(|failed| failure(failed.why))?;
    Ok(user)
}

fn run(user: &User, request: &Request, link: &mut UnixStream) -> Result<(), HelperFailure> {
    let mut word = [0];
    if !(matches!(link.read(&mut word), Ok(1)) && word[0] == GO) {
        return Ok(());
    }
    let env = environment(user, &request.env.0);
    let mut all = Ok(());
    for hook in &request.hooks {
        let ended = one(user, request, hook, &env);
        all = all.and(ended);
        if all.is_err() && !request.after {
            break;
        }
    }
    all
}

fn one(
    user: &User,
    request: &Request,
    hook: &Hook,
    env: &[(OsString, OsString)],
) -> Result<(), HelperFailure> {
    let whose = name_of(hook.of);
    let command = match user.uid {
        0 => of_root(&hook.text.lossy(), &request.programs, env).map_err(failure)?,
        _ => command(hook, env, None),
    };
    match run_command(request.limit_secs, command) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let exit = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(0);
            Err(HelperFailure { exit, why: format!("{whose}: {status}") })
        }
        Err(e) => Err(failure(format!("{whose}: {}", words(&e)))),
    }
}

/// The command of root's that a queue asks for: a program that lsf.sudoers names, with its words.
fn of_root(
    text: &str,
    programs: &[String],
    env: &[(OsString, OsString)],
) -> Result<Command, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./,:+@%=- ".contains(c);
    let mut words_of = text.split(' ').filter(|word| !word.is_empty());
    let program = words_of.next().unwrap_or_default();
    if !text.chars().all(plain) || !programs.iter().any(|named| named == program) {
        return Err(format!(
            "root runs only a program of LSB_PRE_POST_EXEC_PROGRAMS in lsf.sudoers, without a \
             shell; not <{text}>"
        ));
    }
    let path = std::fs::canonicalize(program);
    let path = path.and_then(|path| only(Path::new(&path), &[0]).map(|()| path));
    let mut command = Command::new(path.map_err(|e| format!("{program}: {}", words(&e)))?);
    command.args(words_of).current_dir("/tmp");
    command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// The environment of the commands.
fn environment(user: &User, env: &[u8]) -> Vec<(OsString, OsString)> {
    let plain = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    let passes = |name: &[u8]| {
        (name.starts_with(b"LSB_") || name.starts_with(b"LS_")) && name.iter().all(plain)
    };
    let mut all = variables(env);
    all.retain(|(name, _)| passes(name.as_bytes()) || name == "LSFUSER");
    let own = [("PATH", QUEUE_PATH), ("HOME", &user.home), ("USER", &user.name)];
    all.extend(own.map(|(name, value)| (name.into(), value.into())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_runs_only_named_programs_without_a_shell() {
        let evil = format!("/tmp/lsf-evil-{}", std::process::id());
        let programs = ["/bin/true".to_string(), evil.clone()];
        let ask = |text: &str| of_root(text, &programs, &[]).map(|_| ());
        assert_eq!(ask("/bin/true a -b --c=d"), Ok(()));
        for text in ["true", "/bin/false", "/bin/true; id", "/bin/true $(id)", "", "/bin/true\nid"]
        {
            let why = ask(text).unwrap_err();
            assert!(why.starts_with("root runs only a program"), "{text}: {why}");
        }
        std::fs::write(&evil, "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&evil, mode).unwrap();
        assert!(ask(&evil).unwrap_err().contains("can be changed by users other than root"));
        std::fs::remove_file(&evil).unwrap();
    }

    #[test]
    fn only_variables_of_the_batch_system_pass() {
        let env = b"LSB_JOBID=7\0LD_PRELOAD=/evil.so\0LSB_x=1\0PATH=/evil\0LSFUSER=ann\0HOME=/h\0";
        let user = User { name: "bob".into(), home: "/b".into(), ..User::default() };
        let text = |s: &OsString| s.to_string_lossy().into_owned();
        let got: Vec<String> = environment(&user, env)
            .iter()
            .map(|(n, v)| format!("{}={}", text(n), text(v)))
            .collect();
        let path = format!("PATH={QUEUE_PATH}");
        assert_eq!(got, ["LSB_JOBID=7", "LSFUSER=ann", &path, "HOME=/b", "USER=bob"]);
    }
}
