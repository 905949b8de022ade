//! eexecd: has a site's eexec run as LSF_EEXEC_USER of lsf.sudoers, where there is one.
//!
//! Starters are their job's user when eexec is due and cannot become another one; the launcher can.
//! The launcher starts eexecd as that user, with a listener as standard input that root alone can
//! reach: a starter connects while it is still root and asks later. Each connection is one eexec,
//! whose end is the answer; when a starter hangs up before that, its eexec is killed.
//!
//! Invariants: the program is LSF_SERVERDIR/eexec and nobody's but root's, this user's or the
//! owner's of lsf.conf; of the environment of a task only LSB_* and LS_* reach it, so that no user
//! decides what runs here. See lsf.sudoers(5).

use crate::model::ByteStr;
use crate::net::sock::peer_cred;
use crate::sys::child::{self, Child, Given, Io};
use crate::sys::files::only;
use crate::sys::users::User;
use crate::sys::{raw, site, words};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Most eexecs at once; others wait.
const AT_ONCE: usize = 32;
/// Largest request, bytes: an environment and what esub printed.
const ASKED_MAX: u64 = 64 << 20;
/// Longest answer, bytes.
const ANSWER_MAX: u64 = 4096;
/// The answer when eexec has ended.
const DONE: &str = "done";
/// Pause after a connection that could not be taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// When an eexec runs: LS_EXEC_T.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    #[default]
    Start,
    /// The job is checkpointed.
    Checkpoint,
    End,
}

impl When {
    fn word(self) -> &'static str {
        match self {
            When::Start => "START",
            When::Checkpoint => "CHKPNT",
            When::End => "END",
        }
    }
}

/// The request of a starter.
#[derive(Serialize, Deserialize)]
struct EexecRequest {
    #[serde(default)]
    when: When,
    /// The task's user here.
    user: String,
    uid: u32,
    gid: u32,
    env: Vec<(ByteStr, ByteStr)>,
    /// The output of esub.
    data: ByteStr,
}

// ---- the starter's side ----

/// Runs the site's eexec, with what esub printed, and waits for its end: over `link` as another
/// user, else as ourselves, in `cwd` where that is given. Returns whether there is an eexec.
/// Failing to run it is an error only where another user was to run it.
pub fn run_for(
    link: Option<UnixStream>,
    user: &User,
    env: &[(OsString, OsString)],
    (program, data): (&ByteStr, &ByteStr),
    when: When,
    cwd: Option<&Path>,
) -> io::Result<bool> {
    if let Some(link) = link {
        return ask(link, user, env, data, when).map(|()| true);
    }
    let path = Path::new(OsStr::from_bytes(&program.0));
    if program.is_empty() || !path.is_file() {
        return Ok(false);
    }
    let mut command = Command::new(path);
    // a job has its own; the end of one is told of by the process that writes its report
    command.env_clear().env("LS_JOBPID", std::process::id().to_string());
    command.envs(env.iter().cloned()).env("LS_EXEC_T", when.word());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(dir) = cwd {
        command.current_dir(if dir.is_dir() { dir } else { Path::new("/tmp") });
    }
    let Ok(mut child) = command.spawn() else { return Ok(false) };
    if let Some(mut input) = child.stdin.take() {
        // it need not read
        let _ = input.write_all(&data.0);
    }
    let _ = child.wait();
    Ok(true)
}

/// Has eexec run for this task and waits for its end.
fn ask(
    mut link: UnixStream,
    user: &User,
    env: &[(OsString, OsString)],
    data: &ByteStr,
    when: When,
) -> io::Result<()> {
    let bytes = |s: &OsString| ByteStr(s.clone().into_vec());
    let env = env.iter().map(|(name, value)| (bytes(name), bytes(value))).collect();
    let User { name, uid, gid, .. } = user;
    let (user, data) = (name.clone(), data.clone());
    let asked = EexecRequest { when, user, uid: *uid, gid: *gid, env, data };
    link.write_all(&serde_json::to_vec(&asked)?)?;
    let mut answer = String::new();
    link.take(ANSWER_MAX).read_to_string(&mut answer)?;
    match answer.as_str() {
        DONE => Ok(()),
        "" => Err(io::Error::other("eexecd has ended")),
        why => Err(io::Error::other(why.to_owned())),
    }
}

/// Whether a variable of a task reaches an eexec of another user.
fn passed(name: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    (name.starts_with(b"LSB_") || name.starts_with(b"LS_")) && name.iter().all(plain)
}

// ---- the other user's side ----

/// The program, and the directories of the site.
struct Program {
    path: PathBuf,
    /// The permitted owners of the program.
    owners: Vec<u32>,
    envdir: String,
    serverdir: String,
}

/// Serves until it is killed; returns only with the reason why it cannot.
pub fn run() -> String {
    if let Err(e) = raw::begin_signals(&[]) {
        return words(&e);
    }
    let listener = raw::inherited_fd(0).map(UnixListener::from);
    let listener = listener.and_then(|l| l.set_nonblocking(false).map(|()| l));
    match Program::find().and_then(|p| Ok((p, listener.map_err(|e| words(&e))?))) {
        Ok((program, listener)) => std::thread::scope(|all| {
            for _ in 1..AT_ONCE {
                all.spawn(|| serve(&program, &listener));
            }
            serve(&program, &listener)
        }),
        Err(why) => why,
    }
}

fn serve(program: &Program, listener: &UnixListener) -> ! {
    loop {
        match listener.accept() {
            // whom nobody answers sees a connection that ends, and says so
            Ok((sock, _)) => drop(program.answer(sock)),
            Err(_) => std::thread::sleep(ACCEPT_PAUSE),
        }
    }
}

impl Program {
    fn find() -> Result<Program, String> {
        let site = site::find().map_err(|e| e.to_string())?;
        let conf = PathBuf::from(&site.envdir).join("lsf.conf");
        let owner = std::fs::metadata(&conf).map_err(|e| words(&e))?.uid();
        let serverdir = site.lsf.serverdir().ok_or("LSF_SERVERDIR is not set")?.to_owned();
        Ok(Program {
            path: PathBuf::from(&serverdir).join("eexec"),
            owners: vec![0, crate::sys::euid(), owner],
            envdir: site.envdir,
            serverdir,
        })
    }

    /// One eexec and the starter that asks for it.
    fn answer(&self, mut sock: UnixStream) -> io::Result<()> {
        let starter = peer_cred(sock.as_fd())?.2;
        let text = BufReader::new((&sock).take(ASKED_MAX));
        let asked = serde_json::Deserializer::from_reader(text).into_iter::<EexecRequest>().next();
        let Some(Ok(asked)) = asked else { return Ok(()) };
        if !self.path.exists() {
            return sock.write_all(DONE.as_bytes());
        }
        let stdio = [Io::Pipe, Io::Null, Io::Null];
        let given = Given { env: false, group: true, stdio };
        let start = |path| child::start(&self.command(path, &asked, starter), given);
        let started = self.allowed().and_then(start);
        match started {
            Ok(child) => run_beside(child, &asked.data, &mut sock),
            Err(e) => sock.write_all(format!("{}: {}", self.path.display(), words(&e)).as_bytes()),
        }
    }

    /// The file behind the name, where only those could have put it there who may.
    fn allowed(&self) -> io::Result<PathBuf> {
        let path = std::fs::canonicalize(&self.path)?;
        only(&path, &self.owners).map(|()| path)
    }

    fn command(&self, path: PathBuf, asked: &EexecRequest, starter: u32) -> Command {
        let mut command = Command::new(path);
        command.current_dir("/");
        let word = |b: &ByteStr| OsStr::from_bytes(&b.0).to_owned();
        let env = asked.env.iter().filter(|(name, _)| passed(&name.0));
        command.envs(env.map(|(name, value)| (word(name), word(value))));
        command.env("PATH", super::handover::DEFAULT_PATH).env("LSFUSER", &asked.user);
        command.env("LSB_EEXEC_REAL_UID", asked.uid.to_string());
        command.env("LSB_EEXEC_REAL_GID", asked.gid.to_string());
        command.env("LSF_ENVDIR", &self.envdir).env("LSF_SERVERDIR", &self.serverdir);
        command.env("LS_EXEC_T", asked.when.word()).env("LS_JOBPID", starter.to_string());
        command
    }
}

/// Sees a running eexec to its end, or kills it when its starter is gone.
fn run_beside(mut child: Child, data: &ByteStr, sock: &mut UnixStream) -> io::Result<()> {
    let (input, pid) = (child.to.take(), child.pid());
    let mut back = sock.try_clone()?;
    std::thread::scope(|beside| {
        beside.spawn(move || {
            if let Some(mut input) = input {
                // it need not read
                let _ = input.write_all(&data.0);
            }
            // not reaped: its number stays its own until then
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let ended = waitid(WaitId::Pid(pid), how);
            let _ = ended.is_ok() && back.write_all(DONE.as_bytes()).is_ok();
            // this ends the other direction too
            let _ = back.shutdown(Shutdown::Both);
        });
        // nothing is said any more: this waits for the end of one of both
        let _ = sock.read(&mut [0; 1]);
        // what has ended by itself may have left others that watch the job
        if !matches!(waitid_now(pid), Ok(true)) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    });
    child.wait().map(|_| ())
}

/// Whether the process has ended; it is not reaped.
fn waitid_now(pid: Pid) -> rustix::io::Result<bool> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(pid), how).map(|status| status.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    fn program(text: &str, mode: u32) -> Program {
        let n = u32::from_ne_bytes(crate::sys::random::<4>().unwrap());
        let dir = std::env::temp_dir().join(format!("lsf-eexecd-{n}"));
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("eexec");
        crate::sys::testing::program(&path, &text.replace("DIR", dir.to_str().unwrap()), mode);
        let serverdir = dir.to_str().unwrap().to_owned();
        let owners = vec![0, crate::sys::euid()];
        Program { path, owners, envdir: "/conf".into(), serverdir }
    }

    fn ann() -> User {
        let (home, shell) = ("/".into(), "/bin/sh".into());
        User { name: "ann".into(), uid: 71, gid: 72, home, shell }
    }

    fn asked(program: &Program, env: &[(&str, &str)]) -> io::Result<()> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let env: Vec<_> = env.iter().map(|(n, v)| (n.into(), v.into())).collect();
        std::thread::scope(|s| {
            s.spawn(|| program.answer(theirs));
            ask(ours, &ann(), &env, &b"ticket\n".to_vec().into(), When::Start)
        })
    }

    #[test]
    fn eexec_gets_the_data_and_only_harmless_variables() {
        let p = program("#!/bin/sh\n{ cat; env; pwd; } > DIR/said\n", 0o755);
        let env = [
            ("LSB_X", "one"),
            ("LSB_EVIL-", "two"),
            ("LD_PRELOAD", "/evil.so"),
            ("PATH", "/evil"),
            ("LS_JOBPID", "1"),
            ("LS_EXEC_T", "END"),
            ("LSF_ENVDIR", "/evil"),
            ("LSFUSER", "root"),
            ("LSB_EEXEC_REAL_UID", "0"),
        ];
        asked(&p, &env).unwrap();
        let said = std::fs::read_to_string(p.path.with_file_name("said")).unwrap();
        let mut lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines.remove(0), lines.pop()), ("ticket", Some("/")), "{said}");
        lines.retain(|l| !["PWD=", "OLDPWD=", "SHLVL=", "_="].iter().any(|n| l.starts_with(n)));
        lines.sort_unstable();
        let (path, pid) = (crate::daemon::handover::DEFAULT_PATH, std::process::id());
        let want = [
            "LSB_EEXEC_REAL_GID=72".to_owned(),
            "LSB_EEXEC_REAL_UID=71".to_owned(),
            "LSB_X=one".to_owned(),
            "LSFUSER=ann".to_owned(),
            "LSF_ENVDIR=/conf".to_owned(),
            format!("LSF_SERVERDIR={}", p.serverdir),
            "LS_EXEC_T=START".to_owned(),
            format!("LS_JOBPID={pid}"),
            format!("PATH={path}"),
        ];
        assert_eq!(lines, want);
        std::fs::remove_dir_all(&p.serverdir).unwrap();
    }

    #[test]
    fn a_file_of_others_is_refused_and_none_is_none() {
        let p = program("#!/bin/sh\n: > DIR/ran\n", 0o777);
        let why = asked(&p, &[]).unwrap_err().to_string();
        assert!(why.ends_with("can be changed by users other than its owner and root"), "{why}");
        std::fs::set_permissions(&p.path, PermissionsExt::from_mode(0o755)).unwrap();
        let others = Program { owners: vec![crate::sys::euid() + 1], ..p };
        assert!(asked(&others, &[]).is_err());
        assert!(!others.path.with_file_name("ran").exists());
        std::fs::set_permissions(&others.path, PermissionsExt::from_mode(0o644)).unwrap();
        let p = Program { owners: vec![0, crate::sys::euid()], ..others };
        let why = asked(&p, &[]).unwrap_err().to_string();
        assert!(why.ends_with("Permission denied"), "{why}");
        std::fs::remove_file(&p.path).unwrap();
        asked(&p, &[]).unwrap();
        std::fs::remove_dir_all(&p.serverdir).unwrap();
    }

    #[test]
    fn a_starter_that_is_gone_takes_its_eexec_with_it_and_a_watcher_may_stay() {
        let p = program("#!/bin/sh\nsleep 100\n", 0o755);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let begun = Instant::now();
        std::thread::scope(|s| {
            s.spawn(|| p.answer(theirs));
            let (env, data) = (Vec::new(), ByteStr::default());
            let (when, user) = (When::End, "ann".into());
            let asked = EexecRequest { when, user, uid: 71, gid: 72, env, data };
            (&ours).write_all(&serde_json::to_vec(&asked).unwrap()).unwrap();
            drop(ours);
        });
        assert!(begun.elapsed() < Duration::from_secs(50));
        std::fs::remove_dir_all(&p.serverdir).unwrap();
        let p = program("#!/bin/sh\n(sleep 0.2; : > DIR/still) &\n", 0o755);
        asked(&p, &[]).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        assert!(p.path.with_file_name("still").exists());
        std::fs::remove_dir_all(&p.serverdir).unwrap();
    }
}
