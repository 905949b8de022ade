//! The work of a starter once it has become its user: the working directory, input and job file of
//! a job, its environment, its exec.
//!
//! Invariants: nothing here runs with another's rights, so that no path is followed for somebody
//! who may not; no open waits; below /tmp only directories of the user's own are used.

use super::eexecd::{self, When};
use super::starter::DEFAULT_PATH;
use super::{attach, hooks, hostfile, output};
use crate::exec::plan::map_home;
use crate::model::ByteStr;
use crate::proto::launch::{Eexec, JobPlan, Ready, Stage};
use crate::sys::users::User;
use crate::sys::{raw, words};
use rustix::fs::{FileType, Mode, OFlags};
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A step that failed.
pub struct Failed(pub Stage, pub String);

pub type Step<T> = Result<T, Failed>;

/// Words of an error with what they are about.
pub fn at(stage: Stage, what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Failed {
    move |e| Failed(stage, format!("{what}: {}", words(&e)))
}

pub(super) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A job that only has to be exec'ed.
pub struct Task {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) argv: Vec<OsString>,
    /// What becomes the job where `argv` cannot: the shell, which then says why.
    pub(super) or_else: Vec<OsString>,
    /// What the program is told as its name, where that is not the first word.
    pub(super) arg0: Option<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    /// Of a task of res on a terminal: the way to res.
    pub(super) control: Option<UnixStream>,
}

/// Opens and makes what the job needs.
/// `eexec`: where it is asked for as another user.
pub fn prepare(
    job: &JobPlan,
    user: &User,
    ready: &mut Ready,
    eexec: Option<UnixStream>,
) -> Step<Task> {
    let cwd = enter(job, user, ready)?;
    if let Some(attach) = &job.attach {
        let env = environment(job, user, &cwd, None);
        return attach::prepare(attach, user, env, eexec);
    }
    let stdin = input(job)?;
    let store = Store::new(user, job);
    let out_dir = out_dir(job, user, &cwd, ready);
    let (stdout, stderr) = output::open_all(job, &out_dir, &store, ready)?;
    let argv = program(job, &store, ready)?;
    let mut env = environment(job, user, &cwd, Some(&store));
    if let Some(path) = host_file(&env, &store, ready) {
        for name in ["LSB_DJOB_HOSTFILE", "LSB_DJOB_RANKFILE", "LSB_AFFINITY_HOSTFILE"] {
            env.push((name.into(), path.clone().into_os_string()));
        }
    }
    if let Some(path) = rank_file(job, &store, ready) {
        // of two of a name the later one counts
        env.push(("LSB_DJOB_RANKFILE".into(), path.into_os_string()));
    }
    if !job.out_dir.is_empty() {
        env.push(("LSB_OUTDIR".into(), out_dir.into_os_string()));
    }
    let (mut argv, arg0) = hooks::under_login_shell(&job.login_shell, argv)?;
    let mut or_else = Vec::new();
    if arg0.is_none() && job.script.is_empty() && !job.words.is_empty() {
        let word = |w: &ByteStr| OsStr::from_bytes(&w.0).to_owned();
        or_else = std::mem::replace(&mut argv, job.words.iter().map(word).collect());
    }
    let task = Task { stdin, stdout, stderr, argv, or_else, arg0, env, control: None };
    let eexec = |ready: &mut Ready| {
        let Eexec { program, data } = &job.eexec;
        let ran = eexecd::run_for(eexec, user, &task.env, (program, data), When::Start, None);
        ready.eexec = ran.map_err(at(Stage::PreExec, "eexec"))?;
        Ok(())
    };
    hooks::before(job, &task).and_then(|()| eexec(ready)).inspect_err(|_| {
        // it is begun anew, or never
        let _ = remove_all(&ready.script);
        let kept = if ready.kept { ready.out.clone() } else { ByteStr::default() };
        for file in [&kept, &ready.buffer, &ready.err_buffer] {
            let _ = remove(file);
        }
    })?;
    Ok(task)
}

impl Task {
    /// Becomes the job; returns only where that cannot be, with the exit status for it.
    pub fn exec(mut self) -> Step<i32> {
        let std = |r: rustix::io::Result<()>| r.map_err(|e| at(Stage::Output, "stdio")(e.into()));
        std(rustix::stdio::dup2_stdin(&self.stdin))?;
        std(rustix::stdio::dup2_stdout(&self.stdout))?;
        std(rustix::stdio::dup2_stderr(&self.stderr))?;
        let e = match self.control.take() {
            None => self.replace(),
            Some(control) => match attach::supervise(self.command(), control) {
                Ok(code) => return Ok(code),
                Err(e) => e,
            },
        };
        if !self.or_else.is_empty() {
            // what the kernel does not run, a shell may: a script without #!
            return Task { argv: self.or_else, or_else: Vec::new(), ..self }.exec();
        }
        let _ = writeln!(io::stderr(), "{}: {}", self.argv[0].display(), words(&e));
        Ok(if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(name) = &self.arg0 {
            command.arg0(name);
        }
        command
    }

    /// Becomes the program; only a task of res has to have its own looked for. Each job comes
    /// through here, and `Command` takes a tree of variables for what is a list.
    fn replace(&self) -> io::Error {
        if !self.argv[0].as_bytes().contains(&b'/') {
            return self.command().exec();
        }
        let text = |parts: &[&OsStr]| {
            let parts: Vec<&[u8]> = parts.iter().map(|p| p.as_bytes()).collect();
            CString::new(parts.concat())
        };
        let name = self.arg0.as_ref().unwrap_or(&self.argv[0]);
        let argv = [name].into_iter().chain(&self.argv[1..]).map(|w| text(&[w]));
        // of two of a name the later one counts
        let mut seen = BTreeSet::new();
        let env = self.env.iter().rev().filter(|(name, _)| seen.insert(name));
        let env = env.map(|(name, value)| text(&[name, OsStr::new("="), value]));
        match (text(&[&self.argv[0]]), argv.collect::<Result<Vec<_>, _>>(), env.collect()) {
            (Ok(program), Ok(argv), Ok(env)) => raw::execve(&program, &argv, env),
            _ => io::ErrorKind::InvalidInput.into(),
        }
    }
}

/// Words to show with the job.
pub fn note(ready: &mut Ready, text: String) {
    if !ready.note.is_empty() {
        ready.note.push_str("; ");
    }
    ready.note.push_str(&text);
}

/// Enters the working directory, or /tmp.
fn enter(job: &JobPlan, user: &User, ready: &mut Ready) -> Step<PathBuf> {
    let want = map_home(&job.cwd.0, &job.home.0, user.home.as_bytes());
    let want = path_of(&want);
    if job.make_cwd && want.is_absolute() {
        // what it cannot make it cannot enter either
        let _ = std::fs::create_dir_all(want);
    }
    let cwd = match rustix::process::chdir(want) {
        Ok(()) if want.is_absolute() => want,
        got => {
            let why = got.err().map_or("not absolute".into(), |e| words(&e.into()));
            let text = format!(
                "current working directory <{}> is not accessible or does not exist on the \
                 execution host: {why}",
                want.display()
            );
            if job.need_cwd {
                return Err(Failed(Stage::Cwd, text));
            }
            note(ready, format!("{text}; </tmp> is used"));
            let tmp = Path::new("/tmp");
            rustix::process::chdir(tmp).map_err(|e| at(Stage::Cwd, "/tmp")(e.into()))?;
            tmp
        }
    };
    ready.cwd = cwd.to_string_lossy().into_owned();
    Ok(cwd.to_path_buf())
}

/// The directory of -outdir, made where it is missing; the working directory where there is none.
fn out_dir(job: &JobPlan, user: &User, cwd: &Path, ready: &mut Ready) -> PathBuf {
    if job.out_dir.is_empty() {
        return cwd.to_path_buf();
    }
    let dir = cwd.join(path_of(&map_home(&job.out_dir.0, &job.home.0, user.home.as_bytes())));
    match std::fs::create_dir_all(&dir) {
        Ok(()) => dir,
        Err(e) => {
            note(ready, format!("output directory <{}>: {}", dir.display(), words(&e)));
            cwd.to_path_buf()
        }
    }
}

/// Opens a file as the user without ever waiting for one; only regular files and character
/// devices are files to read from or write to.
pub(super) fn open(path: &Path, flags: OFlags, mode: u32) -> io::Result<(OwnedFd, bool)> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(mode))?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::CharacterDevice) {
        return Err(io::Error::other("neither a file nor a character device"));
    }
    rustix::fs::fcntl_setfl(&fd, flags.difference(OFlags::NONBLOCK) & OFlags::APPEND)?;
    Ok((fd, kind == FileType::RegularFile))
}

fn input(job: &JobPlan) -> Step<OwnedFd> {
    let name: &[u8] = if job.in_file.is_empty() { b"/dev/null" } else { &job.in_file.0 };
    let path = path_of(name);
    let opened = open(path, OFlags::RDONLY, 0).map(|f| f.0);
    opened.map_err(at(Stage::Input, format!("input file <{}>", path.display())))
}

/// What to exec: the command under the shell, or the script's file under its interpreter.
fn program(job: &JobPlan, store: &Store, ready: &mut Ready) -> Step<Vec<OsString>> {
    let word = |b: &[u8]| OsString::from_vec(b.to_vec());
    if job.script.is_empty() {
        return Ok(vec!["/bin/sh".into(), "-c".into(), word(&job.command.0)]);
    }
    let path = store.file("").map_err(at(Stage::JobFile, "job file directory"))?;
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
    let (fd, _) = open(&path, how, 0o700).map_err(at(Stage::JobFile, path.display()))?;
    File::from(fd).write_all(&job.script.0).map_err(at(Stage::JobFile, path.display()))?;
    ready.script = path.as_os_str().as_bytes().to_vec().into();
    let mut argv: Vec<OsString> = interpreter(&job.script.0).into_iter().map(word).collect();
    argv.push(path.into_os_string());
    Ok(argv)
}

/// The words of a script's `#!` line as the kernel reads them: the interpreter and at most one
/// argument; /bin/sh where there is none.
fn interpreter(script: &[u8]) -> Vec<&[u8]> {
    let line = script.strip_prefix(b"#!").and_then(|rest| rest.split(|&b| b == b'\n').next());
    let line = line.unwrap_or_default().trim_ascii();
    let blank = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (program, arg) = (&line[..blank], line[blank..].trim_ascii_start());
    match (program.is_empty(), arg.is_empty()) {
        (true, _) => vec![b"/bin/sh"],
        (false, true) => vec![program],
        (false, false) => vec![program, arg],
    }
}

/// Makes the file of the job's hosts. One of its own is removed with the job file.
fn host_file(env: &[(OsString, OsString)], store: &Store, ready: &mut Ready) -> Option<PathBuf> {
    let hosts = env.iter().rfind(|(name, _)| name == "LSB_MCPU_HOSTS")?;
    let hosts = hostfile::slots(hosts.1.as_bytes());
    let job_file = store.file("").ok()?;
    let (path, made) = match hostfile::shared(&hosts) {
        Some(name) => {
            let path = job_file.with_file_name(name);
            let made = hostfile::make_shared(&path, &hosts);
            (path, made)
        }
        None => {
            ready.script = job_file.as_os_str().as_bytes().to_vec().into();
            let path = path_of(&beside(&ready.script, hostfile::EXT).0).to_path_buf();
            let made = hostfile::make(&path, &hosts);
            (path, made)
        }
    };
    match made {
        Ok(()) => Some(path),
        Err(why) => {
            note(ready, why);
            None
        }
    }
}

/// Makes the file of ranks where they have an order of their own; removed with the job file.
fn rank_file(job: &JobPlan, store: &Store, ready: &mut Ready) -> Option<PathBuf> {
    if job.ranks.is_empty() {
        return None;
    }
    ready.script = store.file("").ok()?.as_os_str().as_bytes().to_vec().into();
    let path = path_of(&beside(&ready.script, hostfile::RANK_EXT).0).to_path_buf();
    match hostfile::make(&path, &job.ranks) {
        Ok(()) => Some(path),
        Err(why) => {
            note(ready, why);
            None
        }
    }
}

/// The host file of a job file, or another that goes with it; empty for none.
fn beside(job_file: &ByteStr, ext: &str) -> ByteStr {
    match job_file.is_empty() {
        true => ByteStr::default(),
        false => ByteStr([&job_file.0, ext.as_bytes()].concat()),
    }
}

/// A job file and what goes with it.
pub(super) fn remove_all(job_file: &ByteStr) -> io::Result<()> {
    let others = [hostfile::EXT, hostfile::RANK_EXT].map(|ext| remove(&beside(job_file, ext)));
    others.into_iter().fold(remove(job_file), |all, one| all.and(one))
}

fn environment(
    job: &JobPlan,
    user: &User,
    cwd: &Path,
    store: Option<&Store>,
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    for entry in job.env.0.split(|&b| b == 0) {
        if let Some(eq) = entry.iter().position(|&b| b == b'=').filter(|&eq| eq > 0) {
            let (name, value) = (&entry[..eq], &entry[eq + 1..]);
            env.push((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())));
        }
    }
    let mut put = |name: &str, value: OsString, always: bool| {
        if always || !env.iter().any(|(n, _)| n == name) {
            // of two of a name the later one counts
            env.push((name.into(), value));
        }
    };
    put("HOME", user.home.clone().into(), true);
    put("USER", user.name.clone().into(), true);
    put("LOGNAME", user.name.clone().into(), false);
    put("PATH", DEFAULT_PATH.into(), false);
    put("PWD", cwd.as_os_str().into(), true);
    put("LS_JOBPID", std::process::id().to_string().into(), true);
    let Some(store) = store else { return env };
    let file = store.name("").into_os_string();
    put("LSB_OUTDIR", cwd.as_os_str().into(), false);
    put("LSB_JOBRES_PID", std::process::id().to_string().into(), true);
    put("LSB_JOBFILENAME", file.clone(), true);
    put("LSB_CHKFILENAME", file, true);
    env
}

// ---- files of our own ----

/// Where job files and kept output lie: ~/.lsbatch, else /tmp/.lsbtmpUID.
pub(super) struct Store {
    home: PathBuf,
    uid: u32,
    base: String,
}

impl Store {
    fn new(user: &User, job: &JobPlan) -> Self {
        Store::of(user, (job.job, job.idx, job.submit_time), &job.tag)
    }

    /// Of a job by its number, its index and the time of its submission.
    pub(super) fn of(user: &User, (job, idx, submit_time): (u32, u32, i64), tag: &str) -> Self {
        let idx = if idx == 0 { String::new() } else { format!(".{idx}") };
        let base = format!("{submit_time}.{job}{idx}{tag}");
        Store { home: PathBuf::from(&user.home), uid: user.uid, base }
    }

    /// The directories in which there may be files of the user's jobs.
    pub(super) fn dirs(&self) -> [PathBuf; 2] {
        [self.home.join(".lsbatch"), PathBuf::from(format!("/tmp/.lsbtmp{}", self.uid))]
    }

    fn name(&self, ext: &str) -> PathBuf {
        self.home.join(".lsbatch").join(format!("{}{ext}", self.base))
    }

    /// The path of a file of this job, in a directory that is the user's alone.
    pub(super) fn file(&self, ext: &str) -> io::Result<PathBuf> {
        let [mut dir, other] = self.dirs();
        if !self.home.is_absolute() || self.own(&dir, false).is_err() {
            dir = other;
            self.own(&dir, true)?;
        }
        Ok(dir.join(format!("{}{ext}", self.base)))
    }

    /// The same below /tmp, for when the home has no room.
    pub(super) fn file_below_tmp(&self, ext: &str) -> io::Result<PathBuf> {
        let [_, dir] = self.dirs();
        self.own(&dir, true)?;
        Ok(dir.join(format!("{}{ext}", self.base)))
    }

    /// Whether such a directory is there, and the user's.
    pub(super) fn is_own(&self, dir: &Path) -> bool {
        let meta = std::fs::symlink_metadata(dir);
        self.home.is_absolute() && meta.is_ok_and(|m| m.is_dir() && m.uid() == self.uid)
    }

    /// Makes the directory; refuses one that is a link or another's, and below /tmp one that
    /// others may enter.
    fn own(&self, dir: &Path, private: bool) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let meta = std::fs::symlink_metadata(dir)?;
        let open = private && meta.mode() & 0o077 != 0;
        if !meta.is_dir() || meta.uid() != self.uid || open {
            return Err(io::Error::other(format!("{} is not safe", dir.display())));
        }
        rustix::fs::access(dir, rustix::fs::Access::WRITE_OK)?;
        Ok(())
    }
}

/// Removes a file that need not be there; an empty path names none.
pub(super) fn remove(file: &ByteStr) -> io::Result<()> {
    match std::fs::remove_file(path_of(&file.0)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound && !file.is_empty() => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters() {
        let of = |s: &str| -> Vec<String> {
            let words = interpreter(s.as_bytes());
            words.iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect()
        };
        assert_eq!(of("echo"), ["/bin/sh"]);
        assert_eq!(of("#!/bin/bash\nx"), ["/bin/bash"]);
        assert_eq!(of("#! /usr/bin/env  python3 -u \r\nx"), ["/usr/bin/env", "python3 -u"]);
        assert_eq!(of("#!\nx"), ["/bin/sh"]);
        assert_eq!(of("\n#!/bin/bash\n"), ["/bin/sh"]);
    }

    #[test]
    fn only_files_are_opened_and_nothing_hangs() {
        let n = u32::from_ne_bytes(crate::sys::random::<4>().unwrap());
        let dir = std::env::temp_dir().join(format!("lsf-starter-{n}"));
        std::fs::create_dir(&dir).unwrap();
        let fifo = dir.join("fifo");
        let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        assert!(open(&fifo, OFlags::RDONLY, 0).is_err());
        assert!(open(&fifo, output::WRITE, 0o600).is_err());
        assert!(open(&dir, OFlags::RDONLY, 0).is_err());
        assert!(!open(Path::new("/dev/null"), output::WRITE, 0o600).unwrap().1);
        let (fd, regular) = open(&dir.join("f"), output::WRITE, 0o600).unwrap();
        assert!(regular);
        let flags = rustix::fs::fcntl_getfl(&fd).unwrap();
        assert!(flags.contains(OFlags::APPEND) && !flags.contains(OFlags::NONBLOCK));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn directories_of_others_and_links_are_refused() {
        let n = u32::from_ne_bytes(crate::sys::random::<4>().unwrap());
        let dir = std::env::temp_dir().join(format!("lsf-store-{n}"));
        std::fs::create_dir(&dir).unwrap();
        let user = User {
            name: "u".into(),
            uid: crate::sys::euid(),
            gid: 0,
            home: dir.to_string_lossy().into_owned(),
            shell: String::new(),
        };
        let job = JobPlan { job: 7, idx: 2, submit_time: 99, ..JobPlan::default() };
        let store = Store::new(&user, &job);
        assert_eq!(store.file(".out").unwrap(), dir.join(".lsbatch/99.7.2.out"));
        let link = dir.join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(store.own(&link, false).is_err());
        let loose = dir.join("loose");
        DirBuilder::new().mode(0o755).create(&loose).unwrap();
        assert!(store.own(&loose, false).is_ok() && store.own(&loose, true).is_err());
        let other = Store { uid: store.uid + 1, ..store };
        assert!(other.own(&loose, false).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
