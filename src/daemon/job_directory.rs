//! The working directory that is made for a job (bsub(1), -cwd), and its removal (JOB_CWD_TTL of
//! lsb.params(5)); both under the account of the job.
//!
//! Invariants: only the last directory of the path is removed, and only if it is still the one that
//! the job had; no symbolic link in its place or below it is followed.

use crate::proto::launch::JobDirectory;
use crate::sys::euid;
use rustix::fs::{AtFlags, Mode, OFlags, open, openat, renameat, statat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Makes the directory where it is missing, for this user alone. `None`: it is no directory of this
/// user.
pub fn make(path: &Path) -> Option<JobDirectory> {
    if let Some(parent) = path.parent() {
        // what cannot be made cannot be entered either
        let _ = std::fs::create_dir_all(parent);
    }
    let new = std::fs::DirBuilder::new().mode(0o700).create(path).is_ok();
    let meta = path.symlink_metadata().ok()?;
    let own = meta.is_dir() && meta.uid() == euid();
    own.then(|| JobDirectory { new, ..of(path, &meta) })
}

/// Makes a directory that is new, for this user alone. A directory that an earlier attempt of the
/// job has left is removed before. The error says why there is none.
pub fn make_private(path: &Path) -> Result<JobDirectory, String> {
    let said = |e: io::Error| crate::sys::words(&e);
    can_hold_own(path)?;
    let made = new(path).or_else(|e| {
        let left = e.kind() == io::ErrorKind::AlreadyExists;
        let meta = path.symlink_metadata().ok().filter(|meta| left && meta.is_dir());
        let own = meta.filter(|meta| meta.uid() == euid()).map(|meta| of(path, &meta));
        let own = own.ok_or(e)?;
        // made while the other is still there, so that the two differ in their numbers
        let beside = path.with_extension(format!("new.{}", std::process::id()));
        new(&beside)?;
        let moved = remove(&own).and_then(|()| std::fs::rename(&beside, path));
        moved.inspect_err(|_| drop(std::fs::remove_dir(&beside)))
    });
    made.map_err(said)?;
    let meta = path.symlink_metadata().map_err(said)?;
    match meta.is_dir() && meta.uid() == euid() {
        true => Ok(JobDirectory { new: true, ..of(path, &meta) }),
        false => Err("another is in its place".to_owned()),
    }
}

/// Makes a directory for this user alone where it is missing: tasks of a job share it. The error
/// says why there is none.
pub fn make_shared(path: &Path) -> Result<JobDirectory, String> {
    let said = |e: io::Error| crate::sys::words(&e);
    can_hold_own(path)?;
    let made = new(path);
    let meta = path.symlink_metadata().map_err(said)?;
    match (made, meta.is_dir() && meta.uid() == euid()) {
        (Ok(()), true) => Ok(JobDirectory { new: true, ..of(path, &meta) }),
        (Err(e), true) if e.kind() == io::ErrorKind::AlreadyExists => Ok(of(path, &meta)),
        (Err(e), _) => Err(said(e)),
        (Ok(()), false) => Err("another is in its place".to_owned()),
    }
}

/// Is this a directory of this user, in whose place nobody can put another?
pub fn is_own(path: &Path) -> bool {
    let own = |meta: std::fs::Metadata| meta.is_dir() && meta.uid() == euid();
    can_hold_own(path).is_ok() && path.symlink_metadata().is_ok_and(own)
}

fn new(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

/// Can nobody but root put another directory in the place of one of this user?
fn can_hold_own(path: &Path) -> Result<(), String> {
    let parent = path.parent().unwrap_or(Path::new("/")).metadata();
    match parent.map_err(|e| crate::sys::words(&e))?.mode() & 0o1002 {
        0o002 => Err("others may put another in its place".to_owned()),
        _ => Ok(()),
    }
}

fn of(path: &Path, meta: &std::fs::Metadata) -> JobDirectory {
    let (device, inode) = (meta.dev(), meta.ino());
    let path = path.as_os_str().as_bytes().to_vec().into();
    JobDirectory { path, device, inode, new: false }
}

/// Removes the directory with all that is in it. It gets another name first, so that a job that
/// makes a directory of the name meanwhile has its own. Nothing is done where
/// it is gone or another is in its place.
pub fn remove(directory: &JobDirectory) -> io::Result<()> {
    let path = Path::new(OsStr::from_bytes(&directory.path.0));
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let parent = match open(parent, DIRECTORY, Mode::empty()) {
        Ok(parent) => parent,
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    let aside = aside_of(name, directory);
    if is_same(&parent, name, directory)? {
        renameat(&parent, name, &parent, &aside)?;
    }
    if !is_same(&parent, &aside, directory)? {
        return Ok(());
    }
    // the standard library follows no link there
    let held = PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd()));
    std::fs::remove_dir_all(held.join(aside))
}

/// The name of a directory while it is removed.
fn aside_of(name: &OsStr, directory: &JobDirectory) -> OsString {
    const NAME_MAX: usize = 200;
    let mut aside = b".".to_vec();
    aside.extend_from_slice(&name.as_bytes()[..name.len().min(NAME_MAX)]);
    aside.extend_from_slice(format!(".removed.{}", directory.inode).as_bytes());
    OsString::from_vec(aside)
}

/// Whether this name is that of the directory. The number of a file system may change when it is
/// mounted again; for root, which could be led to another's, it must be the same.
fn is_same(parent: impl AsFd, name: &OsStr, directory: &JobDirectory) -> io::Result<bool> {
    let parent = parent.as_fd();
    let found = match openat(parent, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(found) => rustix::fs::fstat(found)?,
        // one that its user may not read
        Err(rustix::io::Errno::ACCESS) => statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?,
        Err(_) => return Ok(false),
    };
    let own = found.st_uid == euid() && found.st_ino == directory.inode;
    Ok(own && (found.st_dev == directory.device || euid() != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn place(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("lsf-directory-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        dir
    }

    #[test]
    fn directory_of_a_job_is_removed_with_its_contents_and_links_lead_nowhere() {
        let top = place("made");
        fs::create_dir(top.join("others")).unwrap();
        fs::write(top.join("others/file"), "kept").unwrap();
        let path = top.join("a/b");
        let made = make(&path).unwrap();
        assert!(made.new && !make(&path).unwrap().new);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir(path.join("c")).unwrap();
        fs::write(path.join("c/file"), "x").unwrap();
        symlink(top.join("others"), path.join("c/link")).unwrap();
        remove(&made).unwrap();
        assert!(!path.exists() && top.join("a").exists());
        assert_eq!(fs::read_dir(top.join("a")).unwrap().count(), 0);
        assert_eq!(fs::read(top.join("others/file")).unwrap(), b"kept");
        // gone is as good as removed
        remove(&made).unwrap();
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn private_directory_is_always_a_new_one_of_its_user() {
        let top = place("private");
        let path = top.join("7.tmpdir");
        let made = make_private(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("left"), "x").unwrap();
        // what an earlier attempt has left is gone, and its removal later leaves this one
        let again = make_private(&path).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        assert_ne!(made.inode, again.inode);
        remove(&made).unwrap();
        assert!(path.exists());
        remove(&again).unwrap();
        assert!(!path.exists());
        // no link is followed
        fs::create_dir(top.join("others")).unwrap();
        fs::write(top.join("others/file"), "kept").unwrap();
        symlink(top.join("others"), &path).unwrap();
        assert_eq!(make_private(&path), Err("File exists".to_owned()));
        assert_eq!(fs::read(top.join("others/file")).unwrap(), b"kept");
        fs::remove_file(&path).unwrap();
        fs::set_permissions(&top, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(make_private(&path), Err("others may put another in its place".to_owned()));
        fs::set_permissions(&top, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(make_private(&path).is_ok());
        assert!(make_private(&top.join("none/7.tmpdir")).is_err());
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn another_directory_in_the_place_of_a_job_is_kept() {
        let top = place("other");
        let path = top.join("d");
        let made = make(&path).unwrap();
        fs::rename(&path, top.join("elsewhere")).unwrap();
        symlink(top.join("elsewhere"), &path).unwrap();
        remove(&made).unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        remove(&made).unwrap();
        assert!(path.exists() && top.join("elsewhere").exists());
        // a removal that was cut short is taken up again
        fs::rename(top.join("elsewhere"), top.join(aside_of(OsStr::new("d"), &made))).unwrap();
        remove(&made).unwrap();
        assert_eq!(fs::read_dir(&top).unwrap().count(), 1);
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn directory_that_tasks_share_is_made_once_and_never_where_another_could_be() {
        let top = place("shared");
        let path = top.join("7.tmpdir");
        let made = make_shared(&path).unwrap();
        assert!(made.new && !make_shared(&path).unwrap().new);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        remove(&made).unwrap();
        fs::create_dir(top.join("other")).unwrap();
        symlink(top.join("other"), &path).unwrap();
        assert_eq!(make_shared(&path).unwrap_err(), "File exists");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(make_shared(&path).unwrap_err(), "File exists");
        assert!(make_shared(&top.join("none/7.tmpdir")).is_err());
        fs::remove_file(&path).unwrap();
        fs::set_permissions(&top, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(make_shared(&path).unwrap_err().contains("another in its place") && !path.exists());
        fs::remove_dir_all(&top).unwrap();
    }
}
