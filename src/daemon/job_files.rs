//! The files that a starter, as the user, keeps for a job: where they lie, and how files of the
//! user's are opened and removed.
//!
//! Invariants: no open waits; below /tmp only directories of the user's own are used.

use super::hostfile;
use crate::model::ByteStr;
use crate::proto::launch::JobPlan;
use crate::sys::users::User;
use rustix::fs::{FileType, Mode, OFlags};
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

pub(super) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
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

/// The directory of job files and kept output: ~/.lsbatch, else /tmp/.lsbtmpUID.
pub(super) struct JobFiles {
    home: PathBuf,
    uid: u32,
    base: String,
}

impl JobFiles {
    pub(super) fn new(user: &User, job: &JobPlan) -> Self {
        JobFiles::of(user, (job.job, job.idx, job.submit_time), &job.tag)
    }

    /// The files of a job, found by its number, its index and the time of its submission.
    pub(super) fn of(user: &User, (job, idx, submit_time): (u32, u32, i64), tag: &str) -> Self {
        let idx = if idx == 0 { String::new() } else { format!(".{idx}") };
        let base = format!("{submit_time}.{job}{idx}{tag}");
        JobFiles { home: PathBuf::from(&user.home), uid: user.uid, base }
    }

    /// The directories in which there may be files of the user's jobs.
    pub(super) fn dirs(&self) -> [PathBuf; 2] {
        [self.home.join(".lsbatch"), PathBuf::from(format!("/tmp/.lsbtmp{}", self.uid))]
    }

    pub(super) fn name(&self, ext: &str) -> PathBuf {
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

    /// The path of a file of this job below /tmp, for a home without room.
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

    /// Makes the directory; refuses a link, a directory of another user, and below /tmp one that
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

/// The host file of a job file, or another that goes with it; empty for none.
pub(super) fn beside(job_file: &ByteStr, ext: &str) -> ByteStr {
    match job_file.is_empty() {
        true => ByteStr::default(),
        false => ByteStr([&job_file.0, ext.as_bytes()].concat()),
    }
}

/// A job file and what goes with it.
pub(super) fn remove_all(job_file: &ByteStr) -> io::Result<()> {
    let all = [hostfile::EXT, hostfile::RANK_EXT, hostfile::AFFINITY_EXT];
    let others = all.map(|ext| remove(&beside(job_file, ext)));
    others.into_iter().fold(remove(job_file), |all, one| all.and(one))
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
    use crate::daemon::output;
    use std::process::Command;

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
        let store = JobFiles::new(&user, &job);
        assert_eq!(store.file(".out").unwrap(), dir.join(".lsbatch/99.7.2.out"));
        let link = dir.join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(store.own(&link, false).is_err());
        let loose = dir.join("loose");
        DirBuilder::new().mode(0o755).create(&loose).unwrap();
        assert!(store.own(&loose, false).is_ok() && store.own(&loose, true).is_err());
        let other = JobFiles { uid: store.uid + 1, ..store };
        assert!(other.own(&loose, false).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
