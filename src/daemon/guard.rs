//! What the launcher makes sure of where it is root, before it does as files say that others
//! can write (design §1): whom the daemons run as, and that no directory or file it uses can be
//! exchanged under it.
//!
//! Invariants: no daemon of a cluster of several users is root; everything runs as root only
//! where root itself wrote lsf.conf.

use super::boot::{Boot, BootError};
use crate::conf::lsfsudoers::LsfSudoers;
use crate::proto::Daemon;
use crate::sys::users::{User, Users};
use crate::sys::{files, sudoers, words};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

/// Longest wait for the name service.
const ADMIN_WAIT: Duration = Duration::from_secs(30);

/// Whom the daemons run as; `None`: as the launcher itself.
pub fn admin(boot: &Boot) -> Result<Option<User>, BootError> {
    if crate::sys::euid() != 0 {
        return Ok(None);
    }
    let conf = Path::new(&boot.site.envdir).join("lsf.conf");
    if boot.conf.lsf.personal() {
        let why = |e| BootError(format!("a personal cluster of root: {}", words(&e)));
        return safe(&conf).map(|()| None).map_err(why);
    }
    let file = format!("lsf.cluster.{}", boot.conf.name);
    let name = boot.conf.cluster.admins.first().map_or("", String::as_str);
    match Users::default().find_name(name, ADMIN_WAIT) {
        Some(user) if user.uid != 0 => Ok(Some(user)),
        Some(_) => Err(BootError(format!("{file}: the primary administrator must not be root"))),
        None => Err(BootError(format!(
            "{file}: the primary administrator <{name}> is not known on this host"
        ))),
    }
}

/// Makes root's own directory for sockets and journals, and the one below it in which daemons of
/// `admin` make theirs.
pub fn directories(rundir: &Path, admin: &User) -> io::Result<()> {
    let named = |path: &Path, e: io::Error| {
        io::Error::new(e.kind(), format!("{}: {}", path.display(), words(&e)))
    };
    // a link in its name is followed once, and what it leads to is looked at
    if let Some(top) = rundir.parent() {
        std::fs::create_dir_all(top).map_err(|e| named(top, e))?;
        safe(&std::fs::canonicalize(top).map_err(|e| named(top, e))?)?;
    }
    let own = rundir.join("authd");
    for dir in [rundir, &own] {
        match std::fs::DirBuilder::new().mode(0o755).create(dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(named(dir, e)),
            _ => {}
        }
    }
    let meta = std::fs::symlink_metadata(rundir).map_err(|e| named(rundir, e))?;
    if !meta.is_dir() || meta.uid() != 0 || meta.mode() & 0o022 != 0 {
        let text = format!("{}: not a directory of root's alone", rundir.display());
        return Err(io::Error::other(text));
    }
    give(&own, admin)
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

/// Whom lsf.sudoers has daemons run as. One who cannot be is told of here and never becomes one:
/// what the daemon is there for is refused then.
pub fn users(sudoers: &LsfSudoers) -> BTreeMap<Daemon, String> {
    let all = [(Daemon::Eauthd, "LSF_EAUTH_USER"), (Daemon::Eexecd, "LSF_EEXEC_USER")];
    let named =
        all.into_iter().filter_map(|(daemon, name)| Some((daemon, name, sudoers.get(name)?)));
    let look = |(daemon, name, user): (Daemon, &str, &str)| {
        let path = sudoers::PATH;
        match Users::default().find_name(user, ADMIN_WAIT) {
            Some(found) if found.uid != 0 => {}
            Some(_) => log::error!("{path}: {name}: <{user}> is root, which it must not be"),
            None => log::error!("{path}: {name}: user <{user}> is not known on this host"),
        }
        (daemon, user.to_owned())
    };
    named.map(look).collect()
}

/// Makes what lies in a directory of root's the administrator's.
pub fn give(path: &Path, admin: &User) -> io::Result<()> {
    let (uid, gid) = (rustix::fs::Uid::from_raw(admin.uid), rustix::fs::Gid::from_raw(admin.gid));
    let how = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(rustix::fs::CWD, path, Some(uid), Some(gid), how)?;
    Ok(())
}

/// Refuses a file or directory that anybody but root could have put there.
pub fn safe(path: &Path) -> io::Result<()> {
    files::only(path, &[0])
}
