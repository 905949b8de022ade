//! The checks of `hostsetup` on a host before it may join the cluster: each problem in
//! one line that says what to do. See hostsetup(8).

use super::personal::create::{PORT_NAMES, port_free};
use super::site::LocalSite;
use crate::auth::KeyRing;
use crate::conf::BaseConf;
use crate::daemon::guard;
use crate::log::owner::{LockError, LogLock};
use crate::sys::site::resolve;
use crate::sys::users::{User, getent_lines};
use std::net::{IpAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longest wait for the name service, for one address.
const NAME_WAIT: Duration = Duration::from_secs(5);

/// The subject of the checks.
pub struct HostCheck<'a> {
    pub site: &'a LocalSite,
    pub conf: &'a BaseConf,
    pub admin: &'a User,
    /// The file the launcher is started from.
    pub exe: &'a Path,
}

/// The problems of this host.
pub fn problems(look: &HostCheck) -> Vec<String> {
    let mut found = Vec::new();
    if let Err(e) = jiff::tz::TimeZone::try_system() {
        found.push(format!("the time zone cannot be read ({e}): link /etc/localtime to it"));
    }
    let host = look.conf.hosts.canonical(&look.site.host);
    match host {
        Some(host) => {
            names(look, host, &mut found);
            locks(look, host, &mut found);
        }
        None => found.push(format!(
            "this host is called {}, which is not in lsf.cluster.{}: add it there, or call it as \
             it is there",
            look.site.host, look.conf.name
        )),
    }
    let (key, admin) = (look.site.lsf.key_file(), look.admin);
    if let Err(e) = KeyRing::load(key, host.unwrap_or(&look.site.host), admin.uid) {
        found.push(format!(
            "{e}: bring the cluster's key (hostsetup --key=FILE), owner {}, mode 0600",
            admin.name
        ));
    }
    if crate::sys::euid() == 0
        && let Err(e) = guard::safe(look.exe)
    {
        found.push(format!(
            "root must not run {}: {}; copy it where root alone can write, /usr/local/bin say, \
             and call hostsetup from there",
            look.exe.display(),
            crate::sys::words(&e)
        ));
    }
    found
}

/// The addresses of a host, as the daemons find them.
fn addresses(conf: &BaseConf, host: &str) -> Vec<IpAddr> {
    let known = conf.hosts.addrs(host);
    if known.is_empty() { resolve(host) } else { known.to_vec() }
}

/// Names to addresses and back, and whether the ports at ours are free.
fn names(look: &HostCheck, host: &str, found: &mut Vec<String>) {
    let conf = look.conf;
    let file = format!("{}/hosts", look.site.lsf.confdir());
    for h in &conf.cluster.hosts {
        let addrs = addresses(conf, &h.name);
        if addrs.is_empty() {
            found.push(format!("host {} has no address: add it to {file} or /etc/hosts", h.name));
        }
        for addr in addrs {
            if let Some(back) = wrong_way_back(conf, &h.name, addr) {
                found.push(format!(
                    "{} is {addr}, but {addr} is {back}: mend {file}, /etc/hosts or the name \
                     service",
                    h.name
                ));
            }
            if h.name == host {
                own(look, addr, found);
            }
        }
    }
}

/// The name of an address when it is not that of the host.
fn wrong_way_back(conf: &BaseConf, host: &str, addr: IpAddr) -> Option<String> {
    if let Some(back) = conf.hosts.by_addr(addr) {
        return (back != host).then(|| back.to_owned());
    }
    let lines = getent_lines("hosts", &addr.to_string(), NAME_WAIT).unwrap_or_default();
    let names: Vec<&str> = lines.iter().flat_map(|l| l.split_whitespace().skip(1)).collect();
    if names.iter().any(|n| conf.hosts.canonical(n) == Some(host)) {
        return None;
    }
    Some(names.first().map_or("nobody", |n| n).to_owned())
}

/// Our own address: of this machine, its ports free unless the cluster has them already.
fn own(look: &HostCheck, addr: IpAddr, found: &mut Vec<String>) {
    if let Err(e) = UdpSocket::bind((addr, 0)) {
        let why = crate::sys::words(&e);
        found.push(format!("{addr} is not an address of this machine ({why})"));
        return;
    }
    if super::daemons::running(look.site) {
        return;
    }
    let l = &look.site.lsf;
    let ports = [l.lim_port(), l.res_port(), l.mbd_port(), l.sbd_port()];
    for (name, port) in PORT_NAMES.iter().zip(ports).filter(|(_, p)| !port_free(addr, *p)) {
        found.push(format!(
            "port {port} on {addr} ({name}) is taken: end the program that has it, or choose \
             another in {} for all hosts",
            l.path
        ));
    }
}

/// Whether the administrator can write logs, and a candidate for master lock the event log.
fn locks(look: &HostCheck, host: &str, found: &mut Vec<String>) {
    let lsf = &look.site.lsf;
    let masters = lsf.master_list();
    let first = look.conf.cluster.hosts.first().map(|h| h.name.as_str());
    let named = masters.iter().any(|m| look.conf.hosts.canonical(m) == Some(host));
    let dir = match lsf.batch_logdir(&look.conf.name) {
        Some(dir) if named || (masters.is_empty() && first == Some(host)) => dir,
        _ => String::new(),
    };
    let logs = lsf.logdir().unwrap_or_default();
    // LSB_LOCALDIR must be there; mbatchd makes the directories in it
    let primary = look.conf.primary_logdir(host).and(lsf.localdir()).unwrap_or_default();
    for (dir, lock) in [(logs, false), (primary, false), (dir.as_str(), true)]
        .into_iter()
        .filter(|d| !d.0.is_empty())
    {
        if let Some(why) = probe_as(look.admin, dir, lock) {
            found.push(why);
        }
    }
}

/// Tries a directory as the administrator, in a process of that user's.
fn probe_as(admin: &User, dir: &str, lock: bool) -> Option<String> {
    if crate::sys::euid() == admin.uid {
        return probe(dir, lock);
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0("hostsetup").args(["--probe", dir]).args(lock.then_some("--lock"));
    command.uid(admin.uid).gid(admin.gid).current_dir("/").stdin(Stdio::null());
    match command.output() {
        Ok(out) if out.status.success() => None,
        Ok(out) => Some(String::from_utf8_lossy(&out.stderr).trim().to_owned()),
        Err(e) => Some(format!("{dir}: {}", crate::sys::words(&e))),
    }
}

/// The obstacle to writing in a directory, or with `lock` from locking the event
/// log in it.
pub fn probe(dir: &str, lock: bool) -> Option<String> {
    if lock {
        return match LogLock::take(Path::new(dir)) {
            // who has it, had it granted
            Ok(_) | Err(LockError::Held { .. }) => None,
            Err(e) => Some(format!("{dir}: {e}")),
        };
    }
    let file = Path::new(dir).join(format!(".hostsetup.{}", std::process::id()));
    // others may write there: nothing that is there is written to
    let made = std::fs::File::create_new(&file).and_then(|_| std::fs::remove_file(&file));
    made.err().map(|e| format!("{dir}: the administrator cannot write: {}", crate::sys::words(&e)))
}
