//! The start of every daemon before its loop: find the cluster, read its configuration, learn
//! which host this is and its address, open the log, load the key.
//!
//! Invariant: no key, no start. A personal cluster stays on loopback.

use super::boot_error::BootError;
use super::delegate::conf_files;
use super::guard;
use super::handover::{EAUTH_USER, LAUNCHER_SIGNALS};
use super::heartbeat::Heartbeat;
use super::logging::{self, LogHandle};
use super::members::Follower;
use super::shell::{Ports, ShellConfig};
use crate::auth::{HostLookup, KeyRing, Ways};
use crate::conf::{BaseConf, Diag, Files, Severity, load};
use crate::model::sort::sort_by_key;
use crate::net::SharedHosts;
use crate::proto::Daemon;
use crate::sys::files::RealFiles;
use crate::sys::raw;
use crate::sys::site::{self, Around, LocalSite};
use crate::sys::users::User;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time spent on asking the name service for addresses at start.
const RESOLVE_ALL: Duration = Duration::from_secs(20);

/// A daemon's surroundings.
pub struct Boot {
    pub site: LocalSite,
    pub conf: BaseConf,
    /// This host's canonical name.
    pub host: String,
    /// This host's own address.
    pub addr: Option<IpAddr>,
    pub ring: Option<Arc<KeyRing>>,
    pub hosts: SharedHosts,
    pub log: LogHandle,
    /// The user that root's launcher runs its daemons as, if that is not root.
    pub admin: Option<User>,
}

impl Boot {
    /// The variables by which a program that a daemon starts finds the site.
    pub fn named(&self) -> Vec<(&'static str, String)> {
        let lsf = &self.conf.lsf;
        let named = [
            ("LSF_ENVDIR", Some(self.site.envdir.as_str())),
            ("LSF_BINDIR", lsf.bindir()),
            ("LSF_SERVERDIR", lsf.serverdir()),
            ("LSF_LIBDIR", lsf.libdir()),
            ("LSF_CONFDIR", Some(lsf.confdir())),
            ("LSF_LOCAL_HOST", self.site.shared_machine.then_some(self.host.as_str())),
        ];
        named.into_iter().filter_map(|(n, v)| Some((n, v?.to_owned()))).collect()
    }

    /// Gets everything ready, with the directory of lsf.conf given by an option. Signals are taken
    /// as by a program started by hand; those that must not end the daemon wait for its loop. The
    /// launcher has no key: it never speaks to the network. The launcher alone can be root where
    /// others write the configuration; then it has one of them read it.
    pub fn from_dir(daemon: Daemon, envdir: Option<&str>) -> Result<Boot, BootError> {
        let wait = if daemon == Daemon::Launcher { &LAUNCHER_SIGNALS[..] } else { &[libc::SIGHUP] };
        raw::begin_signals(wait)
            .map_err(|e| BootError(format!("signals: {}", crate::sys::words(&e))))?;
        let files: Box<dyn Files> = match daemon {
            Daemon::Launcher => conf_files(),
            _ => Box::new(RealFiles),
        };
        let mut around = Around::process();
        around.envdir = envdir.map(Into::into).or(around.envdir);
        let (mut site, mut conf, diags) = read(&*files, &around)?;
        drop(files);
        let Some(host) = conf.hosts.canonical(&site.host).map(str::to_owned) else {
            let words = format!("host {} is not in lsf.cluster.{}", site.host, conf.name);
            return Err(BootError(words));
        };
        site.host = host.clone();
        resolve_missing(&mut conf, &host);
        let addr = conf.hosts.addr_of(&host);
        if site.lsf.personal() && !addr.is_none_or(|a| a.is_loopback()) {
            let words = format!("host {host}: a personal cluster listens on loopback only");
            return Err(BootError(words));
        }
        let admin = match daemon {
            Daemon::Launcher => guard::admin(&site, &conf)?,
            _ => None,
        };
        let log = logging::start(&conf.lsf, daemon.name(), &host, admin.as_ref())
            .map_err(|e| BootError(format!("log: {}", crate::sys::words(&e))))?;
        for d in &diags {
            log::warn!("{d}");
        }
        let ring = match daemon {
            Daemon::Launcher => None,
            _ => Some(Arc::new(load_ring(&site)?)),
        };
        if ring.is_some() {
            no_core_file();
        }
        let hosts: SharedHosts = Arc::new(conf.hosts.clone());
        Ok(Boot { site, conf, host, addr, ring, hosts, log, admin })
    }

    /// Whether a launcher that takes this one's place would find a configuration.
    pub fn readable(&self) -> Result<(), BootError> {
        let envdir = Some(self.site.envdir.clone().into());
        read(&*conf_files(), &Around { envdir, ..Around::process() }).map(|_| ())
    }

    /// Makes the directories of this host's sockets and journals, where the launcher is no
    /// other user than the daemons.
    pub fn make_rundir(&self) -> Result<PathBuf, BootError> {
        let rundir = self.site.rundir();
        let dir = rundir.join("authd");
        std::fs::create_dir_all(&dir)
            .map_err(|e| BootError(format!("{}: {}", dir.display(), crate::sys::words(&e))))?;
        Ok(rundir)
    }

    /// A personal cluster's only uid.
    pub fn only_uid(&self) -> Option<u32> {
        self.conf.lsf.personal().then(crate::sys::euid)
    }

    /// The shell's configuration for a daemon with a TCP listener (and for lim a datagram
    /// socket); the launcher gets neither. Unix listeners are the caller's to add.
    pub fn shell(&self, daemon: Daemon) -> ShellConfig {
        let mut ways = Ways::of_daemon(&self.conf.lsf, &self.conf.name, &self.host);
        // No user can set a daemon's environment.
        if std::env::var_os(EAUTH_USER).is_some() {
            ways.eauthd = Some(self.site.eauthd_socket());
        }
        ShellConfig {
            daemon,
            host: self.host.clone(),
            addr: self.addr,
            tcp: !matches!(daemon, Daemon::Launcher | Daemon::Ccollect),
            udp: daemon == Daemon::Lim,
            unix: None,
            ports: Ports::of(&self.conf.lsf),
            ring: self.ring.clone(),
            hosts: self.hosts.clone(),
            launcher_socket: self.site.launcher_socket(),
            only_uid: self.only_uid(),
            ways,
            key_file: self.ring.is_some().then(|| self.site.lsf.key_file().to_owned()),
            log: Some(self.log.clone()),
            members: Follower::of(&self.conf, &self.host).filter(|_| daemon != Daemon::Launcher),
            heartbeat: Heartbeat::of(&self.conf.lsf, self.site.launcher_socket(), daemon),
            silence: None,
        }
    }
}

/// Reads what every daemon goes by, as far as it can be read.
fn read(files: &dyn Files, around: &Around) -> Result<(LocalSite, BaseConf, Vec<Diag>), BootError> {
    let site = site::find_with(files, around).map_err(|e| BootError(e.to_string()))?;
    let (conf, diags) = load::load_base_lenient(files, &site.envdir, Some(&site.host));
    let errors = diags.iter().filter(|d| d.severity == Severity::Error);
    let words: Vec<String> = errors.map(|d| d.to_string()).collect();
    let conf = conf.ok_or_else(|| BootError(words.join("; ")))?;
    Ok((site, conf, diags))
}

/// The key must not end up in a core file; no daemon that holds one starts a job.
fn no_core_file() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Core);
    // Lowering a soft limit cannot fail.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..limit });
}

/// Loads the key of this site as the process's own uid.
pub fn load_ring(site: &LocalSite) -> Result<KeyRing, BootError> {
    KeyRing::load(site.lsf.key_file(), &site.host, crate::sys::euid())
        .map_err(|e| BootError(e.to_string()))
}

/// Asks the name service for the hosts that the files give no address; this host first.
pub fn resolve_missing(conf: &mut BaseConf, host: &str) {
    if conf.lsf.personal() {
        return;
    }
    let until = Instant::now() + RESOLVE_ALL;
    let mut missing: Vec<String> = conf
        .hosts
        .entries()
        .iter()
        .filter(|e| e.addrs.is_empty())
        .map(|e| e.name.clone())
        .collect();
    sort_by_key(&mut missing, |name| name != host);
    for name in missing {
        if Instant::now() >= until {
            log::warn!("no time left to look up host {name}");
            continue;
        }
        for addr in site::resolve(&name) {
            conf.hosts.add_address(&name, addr);
        }
    }
}
