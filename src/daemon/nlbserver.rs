//! The real nlbserver: the machine of `crate::nlb` under the shell, with the files of
//! NLB_SERVER_DIR. See nlbserver(8).
//!
//! Invariants: one server has the directory's lock; a file is replaced as a whole, and what is
//! reported as written is durable.

use super::boot::Boot;
use super::boot_error::BootError;
use super::delegate::conf_files;
use super::driver::{DaemonDriver, ShellControl};
use super::shell;
use crate::conf::diag::Diags;
use crate::conf::nqeinfo::{self, NqeInfo};
use crate::conf::{BaseConf, Severity, nlb_config, nlb_map, nlb_objects};
use crate::lang::nlb;
use crate::log::disk::RealDisk;
use crate::log::replace;
use crate::nlb::{NlbConf, NlbServer, StartFiles, start};
use crate::proto::nlb::{NlbEffect, NlbInput, NlbStored};
use crate::proto::{Daemon, Effect, Input};
use crate::sys::files::RealFiles;
use crate::sys::raw::lock_whole_file;
use crate::sys::words;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Permissions of the files.
const MODE: u32 = 0o644;
/// Name of the policies file.
const POLICIES: &str = "policies";
/// Name of the file that says who may do what.
const CONFIG: &str = "config";

/// The files of one server.
struct NlbDriver {
    dir: PathBuf,
    /// Held as long as the server runs.
    _lock: File,
}

impl DaemonDriver for NlbDriver {
    type M = NlbServer;

    fn effect(&mut self, _: &mut NlbServer, eff: Effect, shell: &mut ShellControl) {
        match eff {
            Effect::Nlb(NlbEffect::Write { n, files }) => {
                let written = files.iter().try_for_each(|(what, text)| self.write(*what, text));
                shell.input(Input::Nlb(NlbInput::Written { n, failed: written.err() }));
            }
            Effect::Nlb(NlbEffect::ReadPolicies { n }) => {
                let read = read(&self.dir.join(POLICIES), nlb::MAX_FILE);
                shell.input(Input::Nlb(NlbInput::Policies { n, read }));
            }
            Effect::Nlb(NlbEffect::ReadConfig { n }) => {
                let read = plain(&self.dir, CONFIG, nlb_config::MAX_FILE);
                shell.input(Input::Nlb(NlbInput::Config { n, read }));
            }
            Effect::Nlb(NlbEffect::Collector(_)) => log::warn!("an order for a collector"),
            other => log::warn!("nlbserver does not carry out an effect: {}", other.name()),
        }
    }
}

impl NlbDriver {
    fn write(&self, what: NlbStored, text: &str) -> Result<(), String> {
        let keeps = what != NlbStored::PoliciesLast;
        replace(&self.dir, what.name(), text, keeps)
    }
}

/// Replaces a file of a directory as a whole, durably; with `keeps`, the one before stays as
/// NAME.prev.
fn replace(dir: &Path, name: &str, text: &str, keeps: bool) -> Result<(), String> {
    let mut disk = RealDisk::existing_dir(dir);
    let done = replace::replace(&mut disk, name, text.as_bytes(), keeps);
    done.map_err(|e| format!("{}: {}", dir.join(name).display(), words(&e)))
}

/// The bytes of a plain file, one more than `max` of a larger one.
fn read(path: &Path, max: usize) -> Result<Vec<u8>, String> {
    let bytes = || -> io::Result<Vec<u8>> {
        // neither a FIFO holds the server up, nor does a link show it a file of another place
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = file.map_err(|e| match e.raw_os_error() {
            Some(libc::ELOOP) => io::Error::other("a symbolic link is not followed"),
            _ => e,
        })?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a plain file"));
        }
        let mut bytes = Vec::new();
        file.take(max as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    bytes().map_err(|e| words(&e))
}

/// A file that may be absent.
fn plain(dir: &Path, name: &str, max: usize) -> Result<Option<Vec<u8>>, String> {
    let path = dir.join(name);
    match path.symlink_metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        _ => read(&path, max).map(Some),
    }
}

/// A file that may be absent, at the start.
fn optional(dir: &Path, name: &str, max: usize) -> Result<Option<Vec<u8>>, BootError> {
    let told = |why| BootError(format!("{}: {why}", dir.join(name).display()));
    plain(dir, name, max).map_err(told)
}

/// Runs the load balancer's server of this host until it is told to end.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let info = info(&boot)?;
    let dir = PathBuf::from(&info.server_dir);
    let lock = lock(&dir, &boot.host)?;
    first_start(&dir, &info)?;
    replace::settle(&mut RealDisk::existing_dir(&dir))
        .map_err(|e| BootError(format!("{}: {}", dir.display(), words(&e))))?;
    let files = StartFiles {
        config: optional(&dir, CONFIG, nlb_config::MAX_FILE)?,
        name_map: optional(&dir, "name_map", nlb_map::MAX_FILE)?,
        objects: optional(&dir, "objects", nlb_objects::MAX_FILE)?,
        policies: read(&dir.join(POLICIES), nlb::MAX_FILE),
        last: optional(&dir, "policies.last", nlb::MAX_FILE)?,
    };
    let begins = start(&info.server_dir, &files).map_err(|faults| BootError(faults.join("\n")))?;
    for note in &begins.notes {
        log::warn!("{note}");
    }
    if begins.new_map {
        let map = NlbStored::NameMap.name();
        replace(&dir, map, &begins.map_text(), false).map_err(BootError)?;
    }
    if begins.new_policies {
        // without it the server serves all the same
        let last = NlbStored::PoliciesLast.name();
        if let Err(why) = replace(&dir, last, begins.policies_text(), false) {
            log::warn!("{why}");
        }
    }
    if info.queue.is_empty() {
        log::warn!("NLB_QUEUE of nqeinfo is not set: hosts that LIM measures have no queue name");
    }
    let cluster = &boot.conf.cluster;
    let servers = cluster.hosts.iter().filter(|h| h.server).map(|h| h.name.clone());
    let conf = NlbConf {
        host: boot.host.clone(),
        dir: info.server_dir.clone(),
        admins: cluster.admins.clone(),
        servers: servers.collect(),
        hosts: boot.conf.hosts.clone(),
        queue: info.queue.clone(),
        zone: crate::sys::zone(),
    };
    let machine = NlbServer::new(conf, begins, crate::sys::now());
    let driver = NlbDriver { dir, _lock: lock };
    let shell_config = boot.shell(Daemon::NlbServer);
    shell::run(shell_config, machine, driver).map_err(|e| BootError(e.to_string()))
}

/// The daemons of the load balancer that nqeinfo has on this host. Without the file there is none.
pub(super) fn of_host(conf: &BaseConf, host: &str) -> Vec<Daemon> {
    let places = nqeinfo::places(&conf.lsf);
    // their own logs name the faults
    let mut diags = Diags::new();
    let files = conf_files();
    let info = nqeinfo::read(&*files, &places, &conf.lsf, &conf.name, host, &mut diags);
    let info = info.unwrap_or_default();
    let own = info.servers.iter().any(|s| conf.hosts.canonical(&s.host) == Some(host));
    let serves = conf.cluster.hosts.iter().any(|h| h.name == host && h.server);
    let server = (own && info.runs_nlb).then_some(Daemon::NlbServer);
    let collects = serves && info.runs_collector && !info.servers.is_empty();
    server.into_iter().chain(collects.then_some(Daemon::Ccollect)).collect()
}

/// The site's nqeinfo.
fn info(boot: &Boot) -> Result<NqeInfo, BootError> {
    let (lsf, mut diags) = (&boot.conf.lsf, Diags::new());
    let places = nqeinfo::places(lsf);
    let found = nqeinfo::read(&RealFiles, &places, lsf, &boot.conf.name, &boot.host, &mut diags);
    for d in diags.list().iter().filter(|d| d.severity >= Severity::Warning) {
        log::warn!("{d}");
    }
    found.ok_or_else(|| BootError(format!("there is no {}", places.join(" and no "))))
}

/// Makes the directory and takes its lock.
fn lock(dir: &Path, host: &str) -> Result<File, BootError> {
    let told = |e: io::Error| BootError(format!("{}: {}", dir.display(), words(&e)));
    std::fs::create_dir_all(dir).map_err(told)?;
    let path = dir.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE)
        .open(&path)
        .map_err(told)?;
    if !lock_whole_file(file.as_fd()).map_err(told)? {
        let mut holder = String::new();
        // without the name the words are still true
        let _ = (&file).take(256).read_to_string(&mut holder);
        let (dir, holder) = (dir.display(), holder.trim());
        return Err(BootError(format!(
            "NLB_SERVER_DIR {dir} is in use by nlbserver of <{holder}>"
        )));
    }
    file.set_len(0).and_then(|()| writeln!(file, "{host}")).map_err(told)?;
    Ok(file)
}

/// Takes the policies of NQE_ETC, else the built-in ones, where there is no policies file yet.
fn first_start(dir: &Path, info: &NqeInfo) -> Result<(), BootError> {
    let stray = Path::new(&info.spool).join(POLICIES);
    if stray.exists() {
        log::warn!("{} is not read: policies are in NLB_SERVER_DIR", stray.display());
    }
    if dir.join(POLICIES).symlink_metadata().is_ok() {
        return Ok(());
    }
    let etc = Path::new(&info.etc);
    let text = match optional(etc, POLICIES, nlb::MAX_FILE)? {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => nlb::BUILT_IN.to_owned(),
    };
    replace(dir, POLICIES, &text, false).map_err(BootError)
}
