//! A personal cluster on disk: where its parts are, and who runs (`lsf up`, `down`, `status`).
//!
//! Invariants: a launcher is known by its own socket and lock, whoever started it, and what one
//! that was killed has left by its journal (`state`); up and down of one directory exclude each
//! other by a lock that dies with its holder. See lsf(1).

pub mod create;
pub mod nlb;
pub mod run;
mod state;

pub use state::RunningLaunchers;

use crate::cli::site::LocalSite;
use crate::conf::generate::MAX_PERSONAL_HOSTS;
use crate::conf::{BaseConf, load_base};
use crate::net::sock::with_unix_path;
use crate::sys::files::RealFiles;
use crate::sys::words;
use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The directory of a personal cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonalDir {
    pub top: PathBuf,
}

impl PersonalDir {
    /// `--dir`, else ~/.lsf. The directory need not exist.
    pub fn find(dir: Option<&str>) -> Result<PersonalDir, String> {
        let given = match (dir, std::env::var_os("HOME")) {
            (Some(dir), _) => PathBuf::from(dir),
            (None, Some(home)) if !home.is_empty() => Path::new(&home).join(".lsf"),
            _ => return Err("HOME is not set: name a directory with --dir".to_owned()),
        };
        let top = fs::canonicalize(&given).or_else(|_| std::path::absolute(&given));
        top.map(|top| PersonalDir { top }).map_err(|e| at(&given, &e))
    }

    /// LSF_ENVDIR.
    pub fn conf(&self) -> PathBuf {
        self.top.join("conf")
    }

    /// The file to source.
    pub fn profile(&self) -> PathBuf {
        self.conf().join("profile.lsf")
    }

    /// Is there a cluster here? The directory must belong to the caller.
    pub fn exists(&self) -> Result<bool, String> {
        match fs::metadata(&self.top) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(at(&self.top, &e)),
            Ok(m) if !m.is_dir() => {
                return Err(format!("{}: not a directory", self.top.display()));
            }
            Ok(m) if m.uid() != crate::sys::euid() => {
                let text = format!("{}: belongs to another user", self.top.display());
                return Err(text);
            }
            Ok(_) => {}
        }
        Ok(self.conf().join("lsf.conf").exists())
    }

    /// The configuration, which must be that of a personal cluster.
    pub fn read(&self) -> Result<BaseConf, String> {
        let envdir = self.conf();
        let (conf, diags) = load_base(&RealFiles, &envdir.to_string_lossy());
        let Some(conf) = conf else {
            let lines: Vec<String> = diags
                .iter()
                .filter(|d| d.severity == crate::conf::Severity::Error)
                .map(|d| format!("\n  {d}"))
                .collect();
            return Err(format!("configuration errors:{}", lines.concat()));
        };
        if !conf.lsf.personal() {
            let file = envdir.join("lsf.conf");
            return Err(format!("{}: not of a personal cluster", file.display()));
        }
        Ok(conf)
    }

    /// Keeps every other up and down of this directory away until dropped.
    pub fn lock(&self) -> Result<OwnedFd, String> {
        let path = self.conf().join("up.lock");
        let file = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let fd = OwnedFd::from(file.map_err(|e| at(&path, &e))?);
        let op = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        match rustix::fs::flock(&fd, op) {
            Ok(()) => Ok(fd),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(format!(
                "another `lsf up` or `lsf down` is at work in {}: wait until it is through",
                self.top.display()
            )),
            Err(e) => Err(at(&path, &e.into())),
        }
    }
}

/// `path: words`.
pub fn at(path: &Path, e: &std::io::Error) -> String {
    format!("{}: {}", path.display(), words(e))
}

/// A directory and its parents, for the owner alone where it is new.
pub fn make_dir(path: &Path) -> Result<(), String> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| at(path, &e))
}

/// Writes a file whole: beside it, then in its place.
pub fn write_file(path: &Path, text: &[u8], mode: u32) -> Result<(), String> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || -> std::io::Result<()> {
        let _ = fs::remove_file(&new);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|e| at(path, &e))
}

/// The words about a personal cluster of which no launcher runs: nobody starts what is missing, so
/// that waiting for it is in vain. None: it runs, or it is no personal cluster.
pub fn stopped(site: &LocalSite) -> Option<String> {
    if !site.lsf.personal() {
        return None;
    }
    let rundir = Path::new(site.lsf.rundir());
    let listens = |dir: PathBuf| {
        with_unix_path(&dir.join("launcher.sock"), |path| UnixStream::connect(path)).is_ok()
    };
    let hosts = fs::read_dir(rundir).into_iter().flatten().flatten();
    if hosts.take(MAX_PERSONAL_HOSTS as usize).any(|host| listens(host.path())) {
        return None;
    }
    let top = Path::new(&site.envdir).parent().unwrap_or(Path::new("/")).display();
    Some(format!("The cluster in {top} is not running; `lsf up --dir {top}` starts it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lsf_up_runs_one_at_a_time() {
        let dir = std::env::temp_dir().join(format!("lsf-uplock-{}", std::process::id()));
        let place = PersonalDir { top: dir.clone() };
        make_dir(&place.conf()).unwrap();
        let held = place.lock().unwrap();
        assert!(place.lock().unwrap_err().contains("is at work in"));
        drop(held);
        place.lock().unwrap();
        fs::remove_dir_all(&dir).unwrap();
    }
}
