//! The work of a starter for a task of res after it has become the user: limits, terminal or pipes,
//! whose other ends go to res over its Unix socket; eexec. An interactive job gets its terminal or
//! pipes here, too.
//!
//! Invariant: nothing here runs with another's rights; the terminal is the user's own.

use super::eexecd::{self, When};
use super::step::{SetupResult, at};
use super::task::{Gate, ReadyTask};
use crate::exec::plan::plain_words;
use crate::model::ByteStr;
use crate::net::sock::{send_fds, with_unix_path};
use crate::proto::launch::{Attach, JobPlan, SetupStage};
use crate::proto::res::Rlim;
use crate::sys::term;
use crate::sys::users::User;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The limits that travel, with the system's numbers.
pub const LIMITS: [(u8, Resource); 8] = [
    (0, Resource::Cpu),
    (1, Resource::Fsize),
    (2, Resource::Data),
    (3, Resource::Stack),
    (4, Resource::Core),
    (5, Resource::Rss),
    (7, Resource::Nofile),
    (9, Resource::As),
];

type Env = Vec<(OsString, OsString)>;

/// Makes the task's descriptors and hands the other ends to res.
pub fn prepare(
    attach: &Attach,
    user: &User,
    env: Env,
    other: Option<UnixStream>,
) -> SetupResult<ReadyTask> {
    limit(&attach.rlimits);
    let fail = |e: io::Error| at(SetupStage::Output, "terminal or pipes")(e);
    let (stdin, stdout, stderr, theirs) = match &attach.pty {
        _ if attach.detached => nothing().map_err(fail)?,
        Some(_) => terminal(attach).map_err(fail)?,
        None => pipes().map_err(|e| fail(e.into()))?,
    };
    let theirs: Vec<BorrowedFd<'_>> = theirs.iter().map(AsFd::as_fd).collect();
    let control = match attach.detached {
        true => None,
        false => Some(hand_over(attach, &theirs).map_err(at(SetupStage::Output, "RES"))?),
    };
    let eexec = (&attach.eexec, &attach.eexec_data);
    eexecd::run_for(other, user, &env, eexec, When::Start, None)
        .map_err(at(SetupStage::PreExec, "eexec as LSF_EEXEC_USER"))?;
    let mut argv: Vec<OsString> =
        attach.argv.iter().map(|w| OsString::from_vec(w.0.clone())).collect();
    // a shell leads the session itself
    let watched = attach.pty.as_ref().is_some_and(|p| !p.shell);
    let control = control.filter(|_| watched);
    let (mut or_else, mut arg0, gate) = (Vec::new(), None, None);
    if attach.login_shell {
        let shell = if user.shell.is_empty() { "/bin/sh" } else { &user.shell };
        let name = shell.rsplit('/').next().unwrap_or(shell);
        arg0 = Some(format!("-{name}").into());
        argv = [shell.into(), "-c".into()].into_iter().chain(argv).collect();
    }
    let plain = !attach.login_shell && attach.pty.is_none();
    if let Some(words) = without_shell(&argv).filter(|_| plain) {
        or_else = std::mem::replace(&mut argv, words);
    }
    let env_script = ByteStr::default();
    Ok(ReadyTask { stdin, stdout, stderr, argv, or_else, arg0, env, control, gate, env_script })
}

/// The words of a text for /bin/sh, as blaunch has it, that every shell would run as they stand:
/// the task is then the program itself, and one program less is begun. `None`: the shell is needed.
fn without_shell(argv: &[OsString]) -> Option<Vec<OsString>> {
    let [shell, option, text] = argv else { return None };
    let words = plain_words(text.as_bytes());
    let plain = shell == "/bin/sh" && option == "-c" && !words.is_empty();
    plain.then(|| words.into_iter().map(|word| OsString::from_vec(word.0)).collect())
}

/// Makes the terminal or pipes of an interactive job in the place of the files that it does not
/// name, and hands the other ends to res. The job waits at the gate until its bsub has joined it.
pub fn join(attach: &Attach, job: &JobPlan, task: &mut ReadyTask) -> SetupResult<()> {
    let fail = at(SetupStage::Output, "terminal or pipes");
    let made = if attach.pty.is_some() { terminal(attach) } else { pipes().map_err(Into::into) };
    let (stdin, stdout, stderr, theirs) = made.map_err(fail)?;
    // -i takes the place of the keyboard; -e alone leaves the output on the terminal
    let typed = job.in_file.is_empty();
    if typed {
        task.stdin = stdin;
    }
    if job.out_file.is_empty() {
        task.stdout = stdout;
        if job.err_file.is_empty() {
            task.stderr = stderr;
        }
    }
    let theirs: Vec<BorrowedFd<'_>> = theirs.iter().map(AsFd::as_fd).collect();
    let gate = hand_over(attach, &theirs).map_err(at(SetupStage::Output, "RES"))?;
    // a shell leads the session itself
    let watched = typed && attach.pty.as_ref().is_some_and(|pty| !pty.shell);
    task.gate = Some(Gate { sock: gate, watched });
    Ok(())
}

/// The caller's limits, as far as a user may have them here.
fn limit(limits: &[Rlim]) {
    for (number, soft, hard) in limits {
        let Some((_, what)) = LIMITS.iter().find(|l| l.0 == *number) else { continue };
        let top = getrlimit(*what).maximum.unwrap_or(u64::MAX);
        let hard = hard.unwrap_or(u64::MAX).min(top);
        let soft = soft.unwrap_or(u64::MAX).min(hard);
        let given = |n: u64| (n != u64::MAX).then_some(n);
        // none is above what is allowed already
        let _ = setrlimit(*what, Rlimit { current: given(soft), maximum: given(hard) });
    }
}

type Ends = (OwnedFd, OwnedFd, OwnedFd, Vec<OwnedFd>);

fn pipes() -> rustix::io::Result<Ends> {
    let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    let ((stdin, a), (b, stdout), (c, stderr)) = (pipe()?, pipe()?, pipe()?);
    for end in [&a, &b] {
        // slower, but working, where it may not be
        let _ = rustix::pipe::fcntl_setpipe_size(end, 256 << 10);
    }
    Ok((stdin, stdout, stderr, vec![a, b, c]))
}

/// For a task without input and output.
fn nothing() -> io::Result<Ends> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let null = OwnedFd::from(null);
    Ok((null.try_clone()?, null.try_clone()?, null, Vec::new()))
}

fn terminal(attach: &Attach) -> io::Result<Ends> {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let how = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(&name, how, Mode::empty())?;
    if let Some(pty) = &attach.pty {
        term::apply(slave.as_fd(), pty)?;
    }
    rustix::process::ioctl_tiocsctty(&slave)?;
    Ok((slave.try_clone()?, slave.try_clone()?, slave, vec![master]))
}

fn hand_over(attach: &Attach, fds: &[BorrowedFd<'_>]) -> io::Result<UnixStream> {
    let path = Path::new(OsStr::from_bytes(&attach.socket.0));
    let sock = with_unix_path(path, |p| UnixStream::connect(p))?;
    send_fds(&sock, &attach.token.0, fds)?;
    Ok(sock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_of_a_task_is_left_out_only_where_it_would_change_nothing() {
        let words = |argv: &[&str]| {
            let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
            without_shell(&argv).map(|words| words.join(OsStr::new("|")))
        };
        assert_eq!(words(&["/bin/sh", "-c", "/bin/true a  b"]), Some("/bin/true|a|b".into()));
        for kept in [
            &["/bin/sh", "-c", "\"/opt/proxy\" --id 1"][..],
            &["/bin/sh", "-c", "true"],
            &["/bin/sh", "-c", "/bin/a; /bin/b"],
            &["/bin/bash", "-c", "/bin/true"],
            &["/bin/sh", "-x", "/bin/true"],
            &["/bin/sh", "-c", "/bin/true", "x"],
            &["/bin/true"],
        ] {
            assert_eq!(words(kept), None, "{kept:?}");
        }
    }
}
