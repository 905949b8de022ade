//! The real LIM: the machine of `crate::lim` under the shell, with this host's measurements.

use super::boot::Boot;
use super::boot_error::BootError;
use super::driver::{DaemonDriver, ShellControl};
use super::melim::Elims;
use super::members as follow;
use super::shell;
use crate::conf::{BaseConf, Files, Member, members};
use crate::lim::{Lim, copies};
use crate::proto::{Daemon, Effect, Input, LockRecord};
use crate::sys::files::RealFiles;
use crate::sys::load::Probe;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

/// LIM's work beyond the shell: measuring.
struct LimDriver {
    probe: Probe,
    conf: BaseConf,
    host: String,
    elims: Elims,
    copies: copies::Copies,
    /// The metadata of the copies when they were read.
    seen: Vec<Option<FileState>>,
    /// The administrator's own directory of this host.
    rundir: PathBuf,
}

/// Device, inode, length and last change of a file; the last in nanoseconds.
type FileState = (u64, u64, u64, i64, i64);

impl LimDriver {
    /// The copies of the configuration, read again where one does not look as it did.
    fn copies(&mut self) -> copies::Copies {
        let looks = |(_, path): &(String, String)| {
            let m = std::fs::metadata(path).ok()?;
            Some((m.dev(), m.ino(), m.len(), m.ctime(), m.ctime_nsec()))
        };
        let seen: Vec<_> = copies::files(&self.conf, &self.host).iter().map(looks).collect();
        if self.copies.is_empty() || seen != self.seen {
            self.copies = copies::read(&RealFiles, &self.conf, &self.host);
            self.seen = seen;
        }
        self.copies.clone()
    }

    /// The path of a record: on this host, or where the next master finds it.
    fn place(&self, what: LockRecord) -> Option<PathBuf> {
        let shared = || self.conf.lsf.batch_logdir(&self.conf.name).map(PathBuf::from);
        match what {
            LockRecord::Lock => Some(self.rundir.join("lim.lock")),
            LockRecord::Locks => Some(shared()?.join("lim.locks")),
        }
    }

    fn keep(&self, what: LockRecord, text: &str) {
        let path = self.place(what);
        if let Some(path) = path.as_ref().filter(|_| text.is_empty()) {
            // what is not there need not go
            let _ = std::fs::remove_file(path);
        } else {
            self.write(path, text);
        }
    }

    fn write(&self, path: Option<PathBuf>, text: &str) {
        if let Some(Err(e)) = path.map(|path| follow::replace(&path, text)) {
            log::error!("{e}");
        }
    }

    fn recall(&self, what: LockRecord) -> String {
        let path = self.place(what).map(|p| p.to_string_lossy().into_owned());
        let bytes = path.and_then(|p| RealFiles.read(&p).ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl DaemonDriver for LimDriver {
    type M = Lim;

    fn effect(&mut self, _: &mut Lim, eff: Effect, shell: &mut ShellControl) {
        match eff {
            Effect::Sample => {
                let mut sample = Box::new(self.probe.sample());
                sample.copies = self.copies();
                shell.input(Input::Sample(sample));
            }
            Effect::Keep { what, text } => self.keep(what, &text),
            Effect::Recall(what) => {
                let text = self.recall(what);
                shell.input(Input::Kept { what, text });
            }
            Effect::Members(all) => {
                let text = members::write(&all);
                let path = self.conf.hostcache().map(PathBuf::from);
                self.write(path, &text);
                self.conf.set_members(&all, &self.host);
                shell.set_hosts(Arc::new(self.conf.hosts.clone()));
            }
            Effect::Melim { resources, master } => {
                self.elims.run(resources, master, shell.remote())
            }
            other => log::warn!("lim does not carry out an effect: {}", other.name()),
        }
    }

    fn start(&mut self, _: &mut Lim, shell: &mut ShellControl) {
        let text = self.recall(LockRecord::Lock);
        shell.input(Input::Kept { what: LockRecord::Lock, text });
    }

    fn members(&mut self, _: &mut Lim, all: Vec<Member>, shell: &mut ShellControl) {
        self.conf.set_members(&all, &self.host);
        shell.input(Input::Members(all));
    }

    fn stopping(&mut self, _: &mut Lim, _: i32) {
        self.elims.stop();
    }

    fn woken(&mut self, _: &mut Lim, shell: &mut ShellControl) {
        self.elims.again(shell.remote());
    }
}

/// Runs LIM for this host until it is told to end.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let cfg = boot.shell(Daemon::Lim);
    let host = LimDriver {
        probe: Probe::new(),
        conf: boot.conf.clone(),
        elims: Elims::new(&boot),
        host: boot.host.clone(),
        copies: Vec::new(),
        seen: Vec::new(),
        rundir: boot.site.rundir().join("authd"),
    };
    let machine = Lim::new(boot.conf, &boot.host).with_zone(crate::sys::zone());
    shell::run(cfg, machine, host).map_err(|e| BootError(e.to_string()))
}
