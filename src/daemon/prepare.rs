//! The work of a starter once it has become its user: the working directory, input and job file of
//! a job, and its environment, until it only has to be exec'ed.
//!
//! Invariants: nothing here runs with another's rights, so that no path is followed for somebody
//! who may not; no open waits; below /tmp only directories of the user's own are used.

use super::eexecd::{self, When};
use super::handover::DEFAULT_PATH;
use super::job_files::{JobFiles, beside, open, path_of, remove, remove_all};
use super::step::{Failed, SetupResult, at, note};
use super::task::ReadyTask;
use super::{attach, hooks, hostfile, job_directory, output};
use crate::exec::job_starter::{command_line, job_file_text};
use crate::exec::plan::map_home;
use crate::model::ByteStr;
use crate::proto::launch::{Eexec, JobDirectory, JobPlan, Ready, SetupStage};
use crate::sys::users::User;
use crate::sys::words;
use rustix::fs::OFlags;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The variable with the temporary directory of a job.
const JOB_TMPDIR: &str = "LSB_JOB_TMPDIR";

/// Opens and makes what the job needs.
/// `eexec`: where it is asked for as another user. `begun` is called when PRE_EXEC of the queue has
/// succeeded.
pub fn prepare(
    job: &JobPlan,
    user: &User,
    ready: &mut Ready,
    eexec: Option<UnixStream>,
    begun: &mut dyn FnMut(&Ready),
) -> SetupResult<ReadyTask> {
    let cwd = enter(job, user, ready)?;
    if let Some(attach) = &job.attach {
        let mut env = environment(job, user, &cwd, None);
        temporary(job, ready, &mut env, job_directory::make_shared);
        without_temporary(&mut env);
        return attach::prepare(attach, user, env, eexec).inspect_err(|_| clear(ready));
    }
    let stdin = input(job)?;
    let store = JobFiles::new(user, job);
    let out_dir = out_dir(job, user, &cwd, ready);
    let (stdout, stderr) = match &job.interactive {
        Some(_) => output::open_named(job, &out_dir, &store, ready)?,
        None => output::open_all(job, &out_dir, &store, ready)?,
    };
    let argv = program(job, &store, ready)?;
    let mut env = environment(job, user, &cwd, Some(&store));
    if let Some(path) = host_file(&env, job.own_host_file, &store, ready) {
        for name in ["LSB_DJOB_HOSTFILE", "LSB_DJOB_RANKFILE"] {
            env.push((name.into(), path.clone().into_os_string()));
        }
    }
    if let Some(path) = affinity_file(job, &store, ready) {
        env.push(("LSB_AFFINITY_HOSTFILE".into(), path.into_os_string()));
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
    let direct = job.script.is_empty() && job.starter.is_empty();
    if arg0.is_none() && direct && !job.words.is_empty() {
        let word = |w: &ByteStr| OsStr::from_bytes(&w.0).to_owned();
        or_else = std::mem::replace(&mut argv, job.words.iter().map(word).collect());
    }
    let (control, gate, env_script) = (None, None, job.env_script.clone());
    let mut task =
        ReadyTask { stdin, stdout, stderr, argv, or_else, arg0, env, control, gate, env_script };
    let eexec = |task: &ReadyTask, ready: &mut Ready| {
        let Eexec { program, data } = &job.eexec;
        let ran = eexecd::run_for(eexec, user, &task.env, (program, data), When::Start, None);
        ready.eexec = ran.map_err(at(SetupStage::PreExec, "eexec"))?;
        Ok(())
    };
    let set_up = hooks::before(job, &task, &mut || begun(ready))
        .and_then(|()| eexec(&task, ready).map_err(Failed::begun));
    // the commands before a job, some of which run under other accounts, do not see it
    let set_up =
        set_up.inspect(|()| temporary(job, ready, &mut task.env, job_directory::make_private));
    let joined = set_up.and_then(|()| match &job.interactive {
        Some(attach) => attach::join(attach, job, &mut task).map_err(Failed::begun),
        None => Ok(()),
    });
    ready.interactive = job.interactive.is_some();
    ready.env_script = job.env_script.clone();
    joined.inspect_err(|_| clear(ready))?;
    Ok(task)
}

/// Removes the files of a job that is begun anew, or never.
fn clear(ready: &Ready) {
    let _ = remove_all(&ready.script);
    let kept = if ready.kept { ready.out.clone() } else { ByteStr::default() };
    for file in [&kept, &ready.buffer, &ready.err_buffer] {
        let _ = remove(file);
    }
    if let Some(made) = ready.directory.as_ref().filter(|d| d.new) {
        // only if it is empty
        let _ = std::fs::remove_dir(path_of(&made.path.0));
    }
    if let Some(made) = ready.temporary.as_ref().filter(|made| made.new) {
        let _ = std::fs::remove_dir(path_of(&made.path.0));
    }
}

/// Makes the directory for the temporary files of the job, and tells the job or task of it.
fn temporary(
    job: &JobPlan,
    ready: &mut Ready,
    env: &mut Vec<(OsString, OsString)>,
    make: fn(&Path) -> Result<JobDirectory, String>,
) {
    let Some(wanted) = &job.temporary else { return };
    let path = path_of(&wanted.path.0);
    match make(path) {
        Ok(made) => {
            // of two of a name the later one counts
            env.push((JOB_TMPDIR.into(), path.into()));
            if !wanted.variable.is_empty() {
                env.push((wanted.variable.clone().into(), path.into()));
            }
            ready.temporary = Some(Box::new(made));
        }
        Err(why) => note(ready, format!("temporary directory <{}>: {why}", path.display())),
    }
}

/// A task that its caller tells of a temporary directory has none where it is not on this host, or
/// another user has made it there.
fn without_temporary(env: &mut Vec<(OsString, OsString)>) {
    let dir = env.iter().rfind(|(name, _)| name == JOB_TMPDIR).map(|(_, dir)| dir.clone());
    if let Some(dir) = dir.filter(|dir| !job_directory::is_own(Path::new(dir))) {
        env.retain(|(_, value)| *value != dir);
    }
}

/// Enters the working directory, or /tmp.
fn enter(job: &JobPlan, user: &User, ready: &mut Ready) -> SetupResult<PathBuf> {
    let want = map_home(&job.cwd.0, &job.home.0, user.home.as_bytes());
    let want = path_of(&want);
    if job.make_cwd && want.is_absolute() {
        ready.directory = job_directory::make(want).map(Box::new);
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
                return Err(Failed::new(SetupStage::Cwd, text));
            }
            note(ready, format!("{text}; </tmp> is used"));
            let tmp = Path::new("/tmp");
            rustix::process::chdir(tmp).map_err(|e| at(SetupStage::Cwd, "/tmp")(e.into()))?;
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

fn input(job: &JobPlan) -> SetupResult<OwnedFd> {
    let name: &[u8] = if job.in_file.is_empty() { b"/dev/null" } else { &job.in_file.0 };
    let path = path_of(name);
    let opened = open(path, OFlags::RDONLY, 0).map(|f| f.0);
    opened.map_err(at(SetupStage::Input, format!("input file <{}>", path.display())))
}

/// The program to execute: the command under the shell, the script's file under its interpreter, or
/// the job starter with the file of either.
fn program(job: &JobPlan, store: &JobFiles, ready: &mut Ready) -> SetupResult<Vec<OsString>> {
    let word = |b: &[u8]| OsString::from_vec(b.to_vec());
    let started = !job.starter.is_empty();
    if job.script.is_empty() && !started {
        return Ok(vec!["/bin/sh".into(), "-c".into(), word(&job.command.0)]);
    }
    let path = store.file("").map_err(at(SetupStage::JobFile, "job file directory"))?;
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
    let (fd, _) = open(&path, how, 0o700).map_err(at(SetupStage::JobFile, path.display()))?;
    let text = if job.script.is_empty() { &job.command.0 } else { &job.script.0 };
    let text =
        if started { Cow::Owned(job_file_text(text)) } else { Cow::Borrowed(text.as_slice()) };
    File::from(fd).write_all(&text).map_err(at(SetupStage::JobFile, path.display()))?;
    ready.script = path.as_os_str().as_bytes().to_vec().into();
    if started {
        let line = command_line(&job.starter.0, &ready.script.0);
        return Ok(vec!["/bin/sh".into(), "-c".into(), word(&line)]);
    }
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
fn host_file(
    env: &[(OsString, OsString)],
    own: bool,
    store: &JobFiles,
    ready: &mut Ready,
) -> Option<PathBuf> {
    let hosts = env.iter().rfind(|(name, _)| name == "LSB_MCPU_HOSTS")?;
    let hosts = hostfile::slots(hosts.1.as_bytes());
    let job_file = store.file("").ok()?;
    let (path, made) = match hostfile::shared(&hosts).filter(|_| !own) {
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

/// Makes the file of the processors of each task, where they have some of their own; removed with
/// the job file.
fn affinity_file(job: &JobPlan, store: &JobFiles, ready: &mut Ready) -> Option<PathBuf> {
    let text = job.binding.as_ref().map(|binding| &binding.host_file);
    let text = text.filter(|text| !text.is_empty())?;
    ready.script = store.file("").ok()?.as_os_str().as_bytes().to_vec().into();
    let path = path_of(&beside(&ready.script, hostfile::AFFINITY_EXT).0).to_path_buf();
    match hostfile::write(&path, text) {
        Ok(()) => Some(path),
        Err(why) => {
            note(ready, why);
            None
        }
    }
}

/// Makes the file of ranks where they have an order of their own; removed with the job file.
fn rank_file(job: &JobPlan, store: &JobFiles, ready: &mut Ready) -> Option<PathBuf> {
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

fn environment(
    job: &JobPlan,
    user: &User,
    cwd: &Path,
    store: Option<&JobFiles>,
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
    let Some(store) = store else {
        if env.iter().any(|(name, _)| name == "LSB_JOBRES_PID") {
            env.push(("LSB_JOBRES_PID".into(), std::process::id().to_string().into()));
        }
        return env;
    };
    let file = store.name("").into_os_string();
    put("LSB_OUTDIR", cwd.as_os_str().into(), false);
    put("LSB_JOBRES_PID", std::process::id().to_string().into(), true);
    put("LSB_JOBFILENAME", file.clone(), true);
    put("LSB_CHKFILENAME", file, true);
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreter_of_a_script_is_its_first_line() {
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
    fn task_keeps_no_temporary_directory_that_another_may_have_made() {
        let top = std::env::temp_dir().join(format!("lsf-prepare-{}", std::process::id()));
        std::fs::create_dir_all(top.join("own")).unwrap();
        std::os::unix::fs::symlink("own", top.join("link")).unwrap();
        for (name, kept) in [("own", true), ("link", false), ("none", false)] {
            let dir = top.join(name).into_os_string();
            let mut env = vec![(JOB_TMPDIR.into(), dir.clone()), ("TMPDIR".into(), dir)];
            env.push(("HOME".into(), "/".into()));
            without_temporary(&mut env);
            assert_eq!(env.len(), if kept { 3 } else { 1 }, "{name}");
        }
        std::fs::remove_dir_all(&top).unwrap();
    }
}
