//! Puts a site's tree on disk (`lsfinstall`) and its key on a host (`lsfinstall`, `hostsetup`).
//!
//! Invariants: nothing that exists is overwritten; lsf.conf comes last, so that a tree with one is
//! whole; root writes only where nobody else can have put a link, and gives away what is the
//! administrator's at the end. See lsfinstall(8).

use super::links::{self, own_binary};
use super::mpi_files;
use super::personal::{at, write_file};
use crate::auth::ring::new_key;
use crate::conf::generate::{SitePlan, generate};
use crate::daemon::guard;
use crate::model::sort::sort_by_key;
use crate::sys::files::{follow, regular};
use crate::sys::users::User;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Directories of the tree that root keeps.
const ROOTS: [&str; 5] = ["", "bin", "etc", "lib", "include"];

/// The directories that become the administrator's, parents before what is in them.
fn owned(plan: &SitePlan) -> Vec<String> {
    let c = &plan.cluster;
    [
        "conf".to_owned(),
        "conf/lsbatch".to_owned(),
        format!("conf/lsbatch/{c}"),
        format!("conf/lsbatch/{c}/configdir"),
        "log".to_owned(),
        "work".to_owned(),
        format!("work/{c}"),
        format!("work/{c}/logdir"),
    ]
    .into()
}

/// Writes the tree of a site; `names` are the applets to link.
pub fn write_tree(plan: &SitePlan, admin: &User, names: &[&str]) -> Result<(), String> {
    let top = Path::new(&plan.top);
    let mut files = generate(plan);
    for (path, text, _) in &files {
        refuse_other(&top.join(path), text)?;
    }
    let owned = owned(plan);
    for dir in ROOTS.into_iter().chain(owned.iter().map(String::as_str)) {
        directory(&top.join(dir))?;
    }
    copy_binary(&top.join("bin/lsf"))?;
    for dir in ["bin", "etc"] {
        let target = Path::new(if dir == "bin" { "lsf" } else { "../bin/lsf" });
        links::point(&top.join(dir), target, names.iter().copied())?;
    }
    mpi_files::write(top)?;
    // with lsf.conf the site exists
    sort_by_key(&mut files, |(path, ..)| path == "conf/lsf.conf");
    for (path, text, mode) in &files {
        let path = top.join(path);
        write_file(&path, text.as_bytes(), *mode)?;
        // whatever the caller's umask
        let wide = fs::set_permissions(&path, PermissionsExt::from_mode(*mode));
        wide.map_err(|e| at(&path, &e))?;
    }
    if crate::sys::euid() == 0 {
        let files = files.iter().map(|(path, ..)| path);
        for path in files.chain(owned.iter().rev()) {
            let path = top.join(path);
            guard::give(&path, admin).map_err(|e| at(&path, &e))?;
        }
    }
    Ok(())
}

/// An existing file with other contents is left alone.
fn refuse_other(path: &Path, text: &str) -> Result<(), String> {
    let mut found = String::new();
    let read = regular(path).and_then(|(file, _)| {
        // one byte more is another text
        file.take(text.len() as u64 + 1).read_to_string(&mut found)
    });
    match read {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(_) if found == text && !path.ends_with("lsf.conf") => Ok(()),
        Ok(_) => Err(format!("{}: exists; nothing was changed", path.display())),
        Err(e) => Err(at(path, &e)),
    }
}

/// A directory that everybody may read; its parent is there, but for that of the tree itself.
fn directory(path: &Path) -> Result<(), String> {
    if crate::sys::euid() == 0 {
        let strange = follow(path, &[0]).map_err(|e| at(path, &e))?.strange;
        if let Some((part, _)) = strange {
            return Err(format!(
                "{}: {} can be changed by users other than root; root writes nothing there: run \
                 lsfinstall as the primary administrator",
                path.display(),
                part.display()
            ));
        }
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    made.map_err(|e| at(path, &e))?;
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).map_err(|e| at(path, &e))
}

fn copy_binary(to: &Path) -> Result<(), String> {
    let exe = own_binary()?;
    if fs::canonicalize(to).is_ok_and(|known| known == exe) {
        return Ok(());
    }
    let bytes = fs::read(&exe).map_err(|e| at(&exe, &e))?;
    write_file(to, &bytes, 0o755)?;
    fs::set_permissions(to, PermissionsExt::from_mode(0o755)).map_err(|e| at(to, &e))
}

/// The result for the key on this host.
#[derive(Debug, PartialEq, Eq)]
pub enum KeyOutcome {
    /// The key existed.
    Kept,
    /// The key was created.
    Made,
    /// The key is missing, and only root can create it.
    ForRoot,
}

/// Sees that there is a key file; a new one is the administrator's alone.
pub fn new_key_file(path: &str, admin: &User) -> Result<KeyOutcome, String> {
    let file = PathBuf::from(path);
    if fs::symlink_metadata(&file).is_ok() {
        return Ok(KeyOutcome::Kept);
    }
    let text = new_key().map_err(|e| at(&file, &e))?;
    match put_key(&file, &text, admin) {
        Ok(()) => Ok(KeyOutcome::Made),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Ok(KeyOutcome::ForRoot),
        Err(e) => Err(at(&file, &e)),
    }
}

/// Writes a key file, which must not exist, and makes it the administrator's.
pub fn put_key(path: &Path, text: &str, admin: &User) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let dir = path.parent().unwrap_or(Path::new("/"));
    if crate::sys::euid() == 0
        && let Some((part, _)) = follow(dir, &[0])?.strange
    {
        let text = format!("{} can be changed by users other than root", part.display());
        return Err(std::io::Error::other(text));
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let given = written.and_then(|()| match crate::sys::euid() {
        0 => guard::give(path, admin),
        _ => Ok(()),
    });
    if given.is_err() {
        // half a key would be found wrong only by the daemons
        let _ = fs::remove_file(path);
    }
    given
}
