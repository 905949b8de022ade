//! The output of a job, as its user: where it goes while the job runs; at the end the report, the
//! mail, the transfers back and what is removed (bsub(1), starter(8)).
//!
//! With LSB_STDOUT_DIRECT output goes to its files at once and the report below it. Without, it is
//! kept in the user's directory until the end and follows the report. A report that its file cannot
//! take is mailed, or kept beside job files; words about it are shown with the job.
//!
//! Invariants: as in [`super::task`]; output is removed only when it stands elsewhere.

use super::job_files::{JobFiles, open, path_of, remove, remove_all};
use super::step::{SetupResult, at, note};
use super::{env_script, hooks, job_directory, mail, nqshosts};
use crate::model::ByteStr;
use crate::proto::launch::{FinishPlan, JobPlan, Mail, Ready, Setup, SetupStage, Tidy};
use crate::sys::users::User;
use crate::sys::words;
use rustix::fs::{Access, FlockOperation, Mode, OFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub(super) const WRITE: OFlags = OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::CREATE);

/// Most files examined in a directory that is tidied.
const TIDY_MAX: usize = 100_000;

/// One of a job's two output files, as it was asked for.
struct OutputRequest<'a> {
    name: &'a ByteStr,
    over: bool,
    ext: &'static str,
}

/// An output file that is open: where it writes to, and where that goes at the end. Empty paths:
/// no regular file; nowhere else.
struct Opened {
    fd: OwnedFd,
    path: PathBuf,
    buffer: PathBuf,
}

/// Output and error output of a job.
pub(super) fn open_all(
    job: &JobPlan,
    dir: &Path,
    store: &JobFiles,
    ready: &mut Ready,
) -> SetupResult<(OwnedFd, OwnedFd)> {
    let bytes = |path: PathBuf| ByteStr(path.into_os_string().into_vec());
    let out = OutputRequest { name: &job.out_file, over: job.out_over, ext: "out" };
    let out = match asked(job, dir, store, &out, ready) {
        Some(out) => out,
        None => kept(job, store, ready)?,
    };
    (ready.out, ready.buffer) = (bytes(out.path), bytes(out.buffer));
    let err = OutputRequest { name: &job.err_file, over: job.err_over, ext: "err" };
    let err = match asked(job, dir, store, &err, ready) {
        Some(err) => {
            (ready.err, ready.err_buffer) = (bytes(err.path), bytes(err.buffer));
            err.fd
        }
        None => out.fd.try_clone().map_err(at(SetupStage::Output, "error output"))?,
    };
    Ok((out.fd, err))
}

/// Output and error output of an interactive job, as far as they are not its terminal's.
pub(super) fn open_named(
    job: &JobPlan,
    dir: &Path,
    store: &JobFiles,
    ready: &mut Ready,
) -> SetupResult<(OwnedFd, OwnedFd)> {
    if !job.out_file.is_empty() {
        return open_all(job, dir, store, ready);
    }
    let null = || {
        let opened = open(Path::new("/dev/null"), OFlags::WRONLY, 0);
        opened.map(|f| f.0).map_err(at(SetupStage::Output, "/dev/null"))
    };
    let err = OutputRequest { name: &job.err_file, over: job.err_over, ext: "err" };
    let err = match asked(job, dir, store, &err, ready) {
        Some(err) => {
            let bytes = |path: PathBuf| ByteStr(path.into_os_string().into_vec());
            (ready.err, ready.err_buffer) = (bytes(err.path), bytes(err.buffer));
            err.fd
        }
        None => null()?,
    };
    Ok((null()?, err))
}

/// Opens a file that was asked for; `None`, with words for the user, where that cannot be.
fn asked(
    job: &JobPlan,
    dir: &Path,
    store: &JobFiles,
    one: &OutputRequest,
    ready: &mut Ready,
) -> Option<Opened> {
    if one.name.is_empty() {
        return None;
    }
    let got = place(job, dir, one).and_then(|path| match job.buffered {
        false => direct(path, one.over),
        true => buffered(path, one, store),
    });
    if let Err(e) = &got {
        note(ready, format!("output file <{}>: {}", one.name.lossy(), words(e)));
    }
    got.ok()
}

/// Output without a file of its own.
fn kept(job: &JobPlan, store: &JobFiles, ready: &mut Ready) -> SetupResult<Opened> {
    let (fd, path) = own(store, "out").map_err(at(SetupStage::Output, "output directory"))?;
    ready.kept = true;
    match mail::possible(&job.mail_program.0) {
        false => note(ready, format!("output is kept in <{}>", path.display())),
        true if !job.out_file.is_empty() => note(ready, "output is mailed".into()),
        true => {}
    }
    Ok(Opened { fd, path, buffer: PathBuf::new() })
}

/// The path of a file that was asked for. A name that ends in `/` is a directory, made where it is
/// missing; a directory gets a file named by the job.
fn place(job: &JobPlan, dir: &Path, one: &OutputRequest) -> io::Result<PathBuf> {
    let mut path = dir.join(path_of(&one.name.0));
    if one.name.0.ends_with(b"/") {
        std::fs::create_dir_all(&path)?;
    }
    if path.is_dir() {
        let idx = if job.idx == 0 { String::new() } else { format!(".{}", job.idx) };
        path.push(format!("{}{idx}.{}", job.job, one.ext));
    }
    Ok(path)
}

/// Opens an output file. The target of a link must be the user's own, whatever its mode.
fn target(path: &Path, how: OFlags) -> io::Result<(OwnedFd, bool)> {
    match open(path, how | OFlags::NOFOLLOW, 0o666) {
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            let (fd, regular) = open(path, how, 0o666)?;
            if regular && rustix::fs::fstat(&fd)?.st_uid != crate::sys::euid() {
                return Err(io::Error::other("a link to a file of another user"));
            }
            Ok((fd, regular))
        }
        got => got,
    }
}

fn direct(path: PathBuf, over: bool) -> io::Result<Opened> {
    let (fd, regular) = target(&path, WRITE)?;
    if over && regular {
        rustix::fs::ftruncate(&fd, 0)?;
    }
    let path = if regular { path } else { PathBuf::new() };
    Ok(Opened { fd, path, buffer: PathBuf::new() })
}

/// An output file that is written at the end of the job. Write permission is checked before the job
/// runs.
fn buffered(path: PathBuf, one: &OutputRequest, store: &JobFiles) -> io::Result<Opened> {
    match target(&path, WRITE.difference(OFlags::CREATE)) {
        Ok((_, false)) => return direct(path, one.over),
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let dir = path.parent().unwrap_or(Path::new("/"));
            rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK)?;
        }
        Err(e) => return Err(e),
    }
    let (fd, buffer) = own(store, one.ext)?;
    Ok(Opened { fd, path, buffer })
}

/// A file of our own for output. The job holds a lock on it by its open output: a job of another
/// cluster that has the same number and second, and the same home, takes another name.
fn own(store: &JobFiles, ext: &str) -> io::Result<(OwnedFd, PathBuf)> {
    let make = |ext: &str| {
        let path = store.file(ext)?;
        let (fd, _) = open(&path, WRITE | OFlags::NOFOLLOW, 0o600)
            .map_err(|e| io::Error::other(format!("{}: {}", path.display(), words(&e))))?;
        Ok((fd, path))
    };
    let (fd, path) = make(&format!(".{ext}"))?;
    match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => make(&format!(".{}.{ext}", std::process::id())),
        _ => Ok((fd, path)),
    }
}

// ---- after the end ----

/// Does what is left after the end of a job, and tells what of it did not go as it should.
pub fn finished(plan: &FinishPlan, user: &User) -> Setup {
    let mut ready = Ready::default();
    if let Some(what) = &plan.tidy {
        ready.kept = tidy(what, &JobFiles::of(user, (0, 0, 0), ""));
        return Setup::Ready(Box::new(ready));
    }
    if let Some(directory) = &plan.remove_directory {
        if let Err(e) = job_directory::remove(directory) {
            note(&mut ready, words(&e));
        }
        return Setup::Ready(Box::new(ready));
    }
    if !plan.validate.is_empty() {
        nqshosts::look(&plan.validate, user, &mut ready);
        return Setup::Ready(Box::new(ready));
    }
    if let Some(mask) = plan.umask {
        rustix::process::umask(Mode::from_raw_mode(mask & 0o777));
    }
    let store = JobFiles::of(user, plan.kept_as.unwrap_or_default(), &plan.tag);
    if let Some(cleanup) = &plan.cleanup
        && let Some(why) = env_script::clean_up(plan, cleanup, &store, of_ended(plan))
    {
        note(&mut ready, why);
    }
    if !plan.report_apart {
        report(plan, &store, &mut ready);
        error_output(plan, &mut ready);
    }
    // transfers may take long, and be ended
    if let Err(e) = remove_all(&plan.remove) {
        note(&mut ready, format!("<{}>: {}", plan.remove.lossy(), words(&e)));
    }
    hooks::copy_back(plan, &mut ready);
    Setup::Ready(Box::new(ready))
}

/// Output and error output of a job that has ended, as far as files have them, for what is part of
/// it still.
fn of_ended(plan: &FinishPlan) -> (Option<OwnedFd>, Option<OwnedFd>) {
    let file = |buffer: &ByteStr, named: &ByteStr| {
        let path = if buffer.is_empty() { named } else { buffer };
        let opened = target(path_of(&path.0), WRITE.difference(OFlags::CREATE));
        opened.ok().filter(|_| !path.is_empty()).map(|(fd, _)| fd)
    };
    let out = file(&plan.buffer, &plan.append_to);
    let one = plan.err_buffer.is_empty() && plan.err.is_empty();
    let err = match &out {
        Some(out) if one => out.try_clone().ok(),
        _ => file(&plan.err_buffer, &plan.err),
    };
    (out, err)
}

/// Mails what is to be mailed, and writes the report.
fn report(plan: &FinishPlan, store: &JobFiles, ready: &mut Ready) {
    let out = path_of(&plan.append_to.0);
    let mailed = plan.mail.as_deref().map_or(Ok(false), |mail| send(mail, out));
    match mailed {
        Ok(true) => return cleared(&plan.append_to, ready),
        Ok(false) => {}
        Err(e) => note(ready, format!("mail: {}", words(&e))),
    }
    if out.as_os_str().is_empty() {
        return;
    }
    let wrote = if plan.buffer.is_empty() { append(out, &plan.text) } else { deliver(plan, out) };
    match wrote {
        Ok(()) => cleared(&plan.buffer, ready),
        Err(e) => unwritten(plan, store, &e, ready),
    }
}

/// Sends a mail where there is a program for it; whether the output is in it.
fn send(mail: &Mail, output: &Path) -> io::Result<bool> {
    match mail::possible(&mail.program.0) {
        true => mail::send(mail, mail.output.then_some(output)),
        false => Ok(false),
    }
}

fn cleared(file: &ByteStr, ready: &mut Ready) {
    if let Err(e) = remove(file) {
        note(ready, format!("<{}>: {}", file.lossy(), words(&e)));
    }
}

/// Writes the report below output that is there already.
fn append(to: &Path, text: &ByteStr) -> io::Result<()> {
    match open(to, OFlags::WRONLY | OFlags::APPEND, 0) {
        Ok((fd, true)) => File::from(fd).write_all(&text.0),
        Ok((_, false)) => Ok(()),
        // a file that the job removed is not made again
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Writes the report and behind it the output that was kept until now.
fn deliver(plan: &FinishPlan, to: &Path) -> io::Result<()> {
    let mut file = emptied(to, plan.over)?;
    file.write_all(&plan.text.0)?;
    copy(&plan.buffer, &mut file)?;
    file.write_all(&plan.tail.0)
}

fn emptied(path: &Path, over: bool) -> io::Result<File> {
    let (fd, regular) = target(path, WRITE)?;
    if over && regular {
        rustix::fs::ftruncate(&fd, 0)?;
    }
    Ok(File::from(fd))
}

fn copy(buffer: &ByteStr, to: &mut File) -> io::Result<()> {
    let (from, _) = open(path_of(&buffer.0), OFlags::RDONLY | OFlags::NOFOLLOW, 0)?;
    io::copy(&mut File::from(from), to).map(|_| ())
}

/// Whether both names lead to the same file.
fn same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().map(|m| (m.dev(), m.ino())).ok();
    id(one).is_some_and(|one| id(other) == Some(one))
}

fn error_output(plan: &FinishPlan, ready: &mut Ready) {
    if plan.err_buffer.is_empty() {
        return;
    }
    let err = path_of(&plan.err.0);
    // one file for both has the output by now
    let over = plan.err_over && !same_file(err, path_of(&plan.append_to.0));
    let wrote = emptied(err, over).and_then(|mut file| copy(&plan.err_buffer, &mut file));
    match wrote {
        Ok(()) => cleared(&plan.err_buffer, ready),
        Err(e) => {
            let (err, kept) = (err.display(), plan.err_buffer.lossy());
            note(
                ready,
                format!("error output file <{err}>: {}; it is kept in <{kept}>", words(&e)),
            );
        }
    }
}

/// The output file does not take the report: it is mailed, else kept.
fn unwritten(plan: &FinishPlan, store: &JobFiles, why: &io::Error, ready: &mut Ready) {
    let told =
        format!("the report cannot be written to <{}>: {}", plan.append_to.lossy(), words(why));
    if let Some(mail) = plan.unwritten.as_deref().filter(|m| mail::possible(&m.program.0)) {
        match send(mail, path_of(&plan.buffer.0)) {
            Ok(with_output) => {
                note(ready, format!("{told}; it is mailed"));
                return match with_output {
                    true => cleared(&plan.buffer, ready),
                    false => also_kept(plan, ready),
                };
            }
            Err(e) => note(ready, format!("mail: {}", words(&e))),
        }
    }
    match keep(store, &plan.text) {
        Ok(path) => note(ready, format!("{told}; it is kept in <{}>", path.display())),
        Err(e) => note(ready, format!("{told}; it is lost: {}", words(&e))),
    }
    also_kept(plan, ready);
}

fn also_kept(plan: &FinishPlan, ready: &mut Ready) {
    if !plan.buffer.is_empty() {
        note(ready, format!("output is kept in <{}>", plan.buffer.lossy()));
    }
}

/// Keeps a report in the first of the user's directories that takes it.
fn keep(store: &JobFiles, text: &ByteStr) -> io::Result<PathBuf> {
    let write = |path: PathBuf| {
        let mut how = OpenOptions::new();
        how.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let wrote = how.open(&path).and_then(|mut file| file.write_all(&text.0));
        match wrote {
            Ok(()) => Ok(path),
            Err(e) => {
                // half a report is of no use
                let _ = std::fs::remove_file(&path);
                Err(e)
            }
        }
    };
    let first = store.file(".report").and_then(write);
    first.or_else(|_| store.file_below_tmp(".report").and_then(write))
}

// ---- what jobs leave ----

/// Removes the host files of this host and kept output that has become old; whether some is left.
fn tidy(what: &Tidy, store: &JobFiles) -> bool {
    let old = Duration::from_secs(what.keep_secs);
    let hosts = format!(".hosts.{}.", what.host);
    let mut left = false;
    for dir in store.dirs() {
        if !store.is_own(&dir) {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.take(TIDY_MAX).flatten() {
            let name = entry.file_name();
            let name = name.as_bytes();
            // never followed: what a link leads to is not looked at
            let Ok(meta) = entry.path().symlink_metadata() else { continue };
            let age = meta.modified().ok().and_then(|t| SystemTime::now().duration_since(t).ok());
            let kept = is_kept(name);
            let aged = kept && age.is_some_and(|a| a >= old);
            let gone = name.starts_with(hosts.as_bytes()) || aged && !in_use(&entry.path());
            if gone && meta.is_file() && meta.uid() == crate::sys::euid() {
                let _ = std::fs::remove_file(entry.path());
            } else {
                left |= kept;
            }
        }
    }
    left
}

/// Whether a job has such a file as its output: one on another host, or of another cluster.
fn in_use(path: &Path) -> bool {
    let Ok((fd, _)) = open(path, OFlags::RDONLY | OFlags::NOFOLLOW, 0) else { return false };
    let lock = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive);
    lock == Err(rustix::io::Errno::WOULDBLOCK)
}

/// `TIME.JOB[.INDEX][-TAG][.PID].out`, or the like: output or a report that is kept.
fn is_kept(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let Some((base, ext)) = name.rsplit_once('.') else { return false };
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let mut tags = 0;
    let part = |part: &str| match part.split_once('-') {
        Some((part, tag)) => {
            tags += 1;
            number(part) && tag.len() == 8 && tag.bytes().all(|b| b.is_ascii_hexdigit())
        }
        None => number(part),
    };
    let parts = base.split('.').count();
    matches!(ext, "out" | "err" | "report")
        && (2..=4).contains(&parts)
        && base.split('.').all(part)
        && tags <= 1
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
