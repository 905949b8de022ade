//! Checks of a launcher that is root, before it does as files say that others can write: whom the
//! daemons run as, and that no directory or file it uses can be exchanged under it.
//!
//! Invariants: no daemon of a cluster of several users is root; everything runs as root only
//! where root itself wrote lsf.conf.

use super::boot_error::BootError;
use super::handover::{EAUTH_KEY_FD, PRE_POST_PROGRAMS, PRE_POST_USER};
use crate::conf::BaseConf;
use crate::conf::lsf_sudoers::LsfSudoers;
use crate::proto::Daemon;
use crate::sys::site::LocalSite;
use crate::sys::users::{User, UserDatabase};
use crate::sys::{files, sudoers, words};
use rustix::fs::{AtFlags, CWD, Dir, Gid, Mode, OFlags, Uid};
use rustix::fs::{fchmod, fchown, fstat, mkdirat, openat, unlinkat};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest wait for the name service.
const ADMIN_WAIT: Duration = Duration::from_secs(30);
/// The names that root's launcher gives its directories under /run. Anywhere else an administrator
/// makes the directory: other names may mean something to other programs.
const OWN_BELOW: &str = "/run";
const OWN_NAME: &str = "lsf";
/// How a directory is opened: no link is followed.
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The launcher's lock: a directory that has one is a launcher's.
pub const LOCK: &str = "launcher.lock";

/// The user of the daemons; `None`: the launcher's own.
pub fn admin(site: &LocalSite, conf: &BaseConf) -> Result<Option<User>, BootError> {
    if crate::sys::euid() != 0 {
        return Ok(None);
    }
    if conf.lsf.personal() {
        let why = |e| BootError(format!("a personal cluster of root: {}", words(&e)));
        return safe(&Path::new(&site.envdir).join("lsf.conf")).map(|()| None).map_err(why);
    }
    if site.shared_machine && !files::is_part(&site.host) {
        return Err(BootError(format!("host <{}>: cannot name a directory", site.host)));
    }
    let exe = std::fs::read_link("/proc/self/exe").and_then(|exe| safe(&exe));
    exe.map_err(|e| BootError(format!("root must not run this program: {}", words(&e))))?;
    let file = format!("lsf.cluster.{}", conf.name);
    let name = conf.cluster.admins.first().map_or("", String::as_str);
    match UserDatabase::default().find_name(name, ADMIN_WAIT) {
        Some(user) if user.uid != 0 => Ok(Some(user)),
        Some(_) => Err(BootError(format!("{file}: the primary administrator must not be root"))),
        None => Err(BootError(format!(
            "{file}: the primary administrator <{name}> is not known on this host"
        ))),
    }
}

/// Makes root's own directory for sockets and journals, and the one below it in which daemons of
/// `admin` make theirs; gives its path without links.
pub fn directories(site: &LocalSite, admin: &User) -> Result<PathBuf, BootError> {
    let top = Path::new(site.lsf.rundir());
    let named = |path: &Path, e: io::Error| {
        BootError(format!("LSF_RUNDIR: {}: {}", path.display(), words(&e)))
    };
    let (mut path, mut dir) = own_directory(top).map_err(|e| named(top, e))?;
    if site.shared_machine {
        dir = made(&dir, &site.host).and_then(marked).map_err(|e| named(&path, e))?;
        path.push(&site.host);
    }
    given(&dir, "authd", admin).map_err(|e| named(&path.join("authd"), e))?;
    Ok(path)
}

/// Opens a directory that no link of another user leads to; makes it when it is missing.
fn own_directory(path: &Path) -> io::Result<(PathBuf, OwnedFd)> {
    if !path.is_absolute() {
        return Err(io::Error::other("not an absolute path"));
    }
    let found = files::follow(path, &[0])?;
    if let Some((part, _)) = &found.strange {
        let text = format!("{} can be changed by users other than root", part.display());
        return Err(io::Error::other(text));
    }
    let path = found.path.join(found.missing.iter().collect::<PathBuf>());
    if !found.missing.is_empty() && !is_own(&path) {
        let text = "not there; root makes only directories below";
        let text = format!("{text} {OWN_BELOW}/{OWN_NAME}*: mkdir -m 755 it");
        return Err(io::Error::other(text));
    }
    let mut dir = match found.missing.is_empty() {
        true => opened(CWD, &found.path)?,
        false => openat(CWD, &found.path, DIRECTORY, Mode::empty())?,
    };
    for part in &found.missing {
        dir = made(&dir, part)?;
    }
    // the administrator chooses the path: an empty directory of root's may be any program's, which
    // would take the launcher's files for its own
    if !is_own(&path) && !is_marked(&dir) {
        let text = format!("not made by a launcher: touch {}/{LOCK}", path.display());
        return Err(io::Error::other(text));
    }
    Ok((path, marked(dir)?))
}

/// Whether a path without links has a name that is the launcher's to take.
fn is_own(path: &Path) -> bool {
    let below = path.strip_prefix(OWN_BELOW).ok();
    let name = below.and_then(|below| below.components().next());
    name.is_some_and(|name| name.as_os_str().as_encoded_bytes().starts_with(OWN_NAME.as_bytes()))
}

/// Opens a directory of root's alone; no link is followed.
fn opened(at: impl std::os::fd::AsFd, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let dir = openat(at, path, DIRECTORY, Mode::empty())?;
    let stat = fstat(&dir)?;
    if stat.st_uid != 0 || stat.st_mode & 0o022 != 0 {
        return Err(io::Error::other("not owned by root and writable only by root"));
    }
    Ok(dir)
}

/// Opens a directory within one of root's, made where it is missing.
fn made(dir: &OwnedFd, name: impl rustix::path::Arg + Copy) -> io::Result<OwnedFd> {
    let new = match mkdirat(dir, name, Mode::RWXU) {
        Err(rustix::io::Errno::EXIST) => false,
        made => made.map(|()| true)?,
    };
    let own = opened(dir, name)?;
    if new {
        // whatever the mask of the process
        fchmod(&own, Mode::from_raw_mode(0o755))?;
    }
    Ok(own)
}

/// Whether a launcher's lock is there.
fn is_marked(dir: &OwnedFd) -> bool {
    let lock = rustix::fs::statat(dir, LOCK, AtFlags::SYMLINK_NOFOLLOW);
    let kind = lock.map(|s| rustix::fs::FileType::from_raw_mode(s.st_mode));
    kind.is_ok_and(|kind| kind == rustix::fs::FileType::RegularFile)
}

/// Refuses a directory that another program uses: one with files and without a lock.
fn marked(dir: OwnedFd) -> io::Result<OwnedFd> {
    let how = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    if is_marked(&dir) {
        return Ok(dir);
    }
    for entry in Dir::read_from(&dir)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            let text = "it contains other files: name an empty or a new directory";
            return Err(io::Error::other(text));
        }
    }
    openat(&dir, LOCK, how, Mode::RUSR | Mode::WUSR)?;
    Ok(dir)
}

/// Makes a directory of the administrator's within one of root's. An existing directory never
/// changes its owner.
fn given(dir: &OwnedFd, name: &str, admin: &User) -> io::Result<()> {
    let mut made = mkdirat(dir, name, Mode::RWXU);
    if matches!(made, Err(rustix::io::Errno::EXIST)) {
        let own = fstat(openat(dir, name, DIRECTORY, Mode::empty())?)?.st_uid;
        if own == admin.uid {
            return Ok(());
        }
        // an empty one was left by a launcher that ended before it was given
        made =
            unlinkat(dir, name, AtFlags::REMOVEDIR).and_then(|()| mkdirat(dir, name, Mode::RWXU));
        let admin = &admin.name;
        made.map_err(|_| {
            io::Error::other(format!("its owner is uid {own} instead of {admin}: remove it"))
        })?;
    }
    made?;
    let own = openat(dir, name, DIRECTORY, Mode::empty())?;
    fchown(&own, Some(Uid::from_raw(admin.uid)), Some(Gid::from_raw(admin.gid)))?;
    fchmod(&own, Mode::from_raw_mode(0o755))?;
    Ok(())
}

/// lsf.sudoers, where it is root's alone.
pub fn sudoers() -> Option<LsfSudoers> {
    match sudoers::load(sudoers::PATH, 0) {
        Ok(found) => found.map(|(conf, notices)| {
            notices.iter().for_each(|n| log::warn!("{n}"));
            conf
        }),
        Err(why) => {
            log::error!("{why}; the file is not believed");
            None
        }
    }
}

/// The user of lsf.sudoers for daemons. An unsuitable user is logged and never becomes one: the
/// requests for that daemon are then refused.
pub fn users(sudoers: &LsfSudoers) -> BTreeMap<Daemon, String> {
    let all = [(Daemon::Eauthd, "LSF_EAUTH_USER"), (Daemon::Eexecd, "LSF_EEXEC_USER")];
    let named =
        all.into_iter().filter_map(|(daemon, name)| Some((daemon, name, sudoers.get(name)?)));
    let look = |(daemon, name, user): (Daemon, &str, &str)| {
        let path = sudoers::PATH;
        match UserDatabase::default().find_name(user, ADMIN_WAIT) {
            Some(found) if found.uid != 0 => {}
            Some(_) => log::error!("{path}: {name}: <{user}> is root, which it must not be"),
            None => log::error!("{path}: {name}: user <{user}> is not known on this host"),
        }
        (daemon, user.to_owned())
    };
    named.map(look).collect()
}

/// LSB_PRE_POST_EXEC_USER and LSB_PRE_POST_EXEC_PROGRAMS, as variables for starters.
pub fn pre_post(sudoers: &LsfSudoers) -> Vec<(&'static str, String)> {
    let Some(user) = sudoers.get(PRE_POST_USER) else { return Vec::new() };
    let programs = sudoers.get(PRE_POST_PROGRAMS).unwrap_or_default().to_owned();
    let path = sudoers::PATH;
    match UserDatabase::default().find_name(user, ADMIN_WAIT) {
        Some(found) if found.uid == 0 && programs.is_empty() => {
            log::error!("{path}: {PRE_POST_USER}: root runs only what {PRE_POST_PROGRAMS} names")
        }
        Some(_) => {}
        None => log::error!("{path}: {PRE_POST_USER}: user <{user}> is not known on this host"),
    }
    vec![(PRE_POST_USER, user.to_owned()), (PRE_POST_PROGRAMS, programs)]
}

/// Makes what lies in a directory of root's the administrator's.
pub fn give(path: &Path, admin: &User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(admin.uid), Gid::from_raw(admin.gid));
    rustix::fs::chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

/// Refuses a file or directory that a user other than root could have made.
pub fn safe(path: &Path) -> io::Result<()> {
    files::only(path, &[0])
}

/// Gives authd LSF_EAUTH_KEY of lsf.sudoers as it is now: in a pipe, which holds the longest and
/// of which nothing is left once it is read.
pub(super) fn hand_key(authd: &mut Command) -> io::Result<()> {
    let sudoers = sudoers();
    let Some(key) = sudoers.as_ref().and_then(|s| s.eauth_key()) else { return Ok(()) };
    let (from, mut to) = io::pipe()?;
    to.write_all(key.as_bytes())?;
    authd.stdin(from).env(EAUTH_KEY_FD, "0");
    Ok(())
}
