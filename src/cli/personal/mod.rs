//! A personal cluster on disk: where its parts are, and who runs (`lsf up`, `down`, `status`).
//!
//! Invariants: a launcher is known by boot, pid and start time, and written down before it may
//! do anything, so that `lsf down` stops exactly what `lsf up` started; up and down of one
//! directory exclude each other by a lock that dies with its holder. Document implemented:
//! issue "The binary", design.md section 1.

pub mod create;
pub mod run;

use crate::cli::site::Site;
use crate::conf::generate::MAX_PERSONAL_HOSTS;
use crate::conf::{BaseConf, load_base};
use crate::net::sock::with_unix_path;
use crate::sys::files::RealFiles;
use crate::sys::procs::Proc;
use crate::sys::words;
use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The directory of a personal cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub top: PathBuf,
}

impl Place {
    /// `--dir`, else ~/.lsf. It need not exist.
    pub fn find(dir: Option<&str>) -> Result<Place, String> {
        let given = match (dir, std::env::var_os("HOME")) {
            (Some(dir), _) => PathBuf::from(dir),
            (None, Some(home)) if !home.is_empty() => Path::new(&home).join(".lsf"),
            _ => return Err("HOME is not set: name a directory with --dir".to_owned()),
        };
        let top = fs::canonicalize(&given).or_else(|_| std::path::absolute(&given));
        top.map(|top| Place { top }).map_err(|e| at(&given, &e))
    }

    /// LSF_ENVDIR.
    pub fn conf(&self) -> PathBuf {
        self.top.join("conf")
    }

    /// What to source.
    pub fn profile(&self) -> PathBuf {
        self.conf().join("profile.lsf")
    }

    fn state_file(&self) -> PathBuf {
        self.top.join("conf/up.state")
    }

    /// Is there a cluster here? Its directory must be the caller's.
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
            return Err(format!("the configuration is not right; mend it:{}", lines.concat()));
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

/// The launchers that were started, by host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The boot they were started in.
    pub boot: String,
    pub launchers: Vec<(String, Proc)>,
}

impl State {
    /// Reads what the last `lsf up` wrote; empty where there is none. What was started before
    /// the machine was booted is gone.
    pub fn read(place: &Place) -> State {
        let boot = boot_id();
        let text = fs::read_to_string(place.state_file()).unwrap_or_default();
        let found = State::parse(&text);
        if found.boot == boot { found } else { State { boot, launchers: Vec::new() } }
    }

    fn parse(text: &str) -> State {
        let mut state = State::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["boot", id] => state.boot = (*id).to_owned(),
                ["launcher", host, pid, ticks] => {
                    if let (Ok(pid), Ok(ticks)) = (pid.parse(), ticks.parse()) {
                        state.launchers.push(((*host).to_owned(), Proc { pid, ticks }));
                    }
                }
                _ => {}
            }
        }
        state
    }

    fn text(&self) -> String {
        let mut text = format!("# Written by `lsf up`, read by `lsf down`.\nboot {}\n", self.boot);
        for (host, p) in &self.launchers {
            text.push_str(&format!("launcher {host} {} {}\n", p.pid, p.ticks));
        }
        text
    }

    /// Writes it down.
    pub fn write(&self, place: &Place) -> Result<(), String> {
        write_file(&place.state_file(), self.text().as_bytes(), 0o600)
    }

    /// The launcher of a host, if it lives.
    pub fn alive(&self, host: &str) -> Option<Proc> {
        let found = self.launchers.iter().find(|(h, _)| h == host)?;
        found.1.alive().then_some(found.1)
    }

    /// Names the launcher of a host, in place of an earlier one.
    pub fn set(&mut self, host: &str, p: Proc) {
        self.launchers.retain(|(h, _)| h != host);
        self.launchers.push((host.to_owned(), p));
    }

    /// Forgets the launcher of a host.
    pub fn forget(&mut self, host: &str) {
        self.launchers.retain(|(h, _)| h != host);
    }
}

/// What to tell of a personal cluster of which no launcher runs: nobody starts what is missing, so
/// that waiting for it is in vain. None: it runs, or it is no personal cluster.
pub fn stopped(site: &Site) -> Option<String> {
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

/// Changes with every boot of the machine.
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_comes_back() {
        let mut s = State { boot: "b-1".into(), launchers: vec![] };
        s.set("host1", Proc { pid: 7, ticks: 8 });
        s.set("host2", Proc { pid: 9, ticks: 10 });
        s.set("host1", Proc { pid: 11, ticks: 12 });
        assert_eq!(State::parse(&s.text()), s);
        s.forget("host2");
        assert_eq!(s.launchers, [("host1".to_owned(), Proc { pid: 11, ticks: 12 })]);
        assert_eq!(State::parse("launcher x y 3\nlauncher z\n\nrubbish"), State::default());
    }

    #[test]
    fn another_boot_leaves_nothing() {
        let dir = std::env::temp_dir().join(format!("lsf-state-{}", std::process::id()));
        let place = Place { top: dir.clone() };
        make_dir(&place.conf()).unwrap();
        let me = Proc::of(std::process::id()).unwrap();
        let mut s = State { boot: boot_id(), launchers: vec![("h".into(), me)] };
        s.write(&place).unwrap();
        assert_eq!(State::read(&place).alive("h"), Some(me));
        s.boot = "other".into();
        s.write(&place).unwrap();
        assert_eq!(State::read(&place).launchers, []);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn one_at_a_time() {
        let dir = std::env::temp_dir().join(format!("lsf-uplock-{}", std::process::id()));
        let place = Place { top: dir.clone() };
        make_dir(&place.conf()).unwrap();
        let held = place.lock().unwrap();
        assert!(place.lock().unwrap_err().contains("is at work in"));
        drop(held);
        place.lock().unwrap();
        fs::remove_dir_all(&dir).unwrap();
    }
}
