//! The cluster that this process belongs to, and the host it is on (lsf.conf(5)).
//!
//! lsf.conf is looked for in LSF_ENVDIR; else in ../conf beside the directory of the command as
//! it was called (a personal cluster and an installed tree); else in /etc; else in ~/.lsf/conf.
//! Only lsf.conf is read here: commands must be quick.

use super::files::RealFiles;
use crate::conf::{Diags, Files, HostTable, LsfConf, lsf_conf};
use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for the name service, for one host.
pub const RESOLVE_WAIT: Duration = Duration::from_secs(5);

/// lsf.conf and this host's name.
#[derive(Clone, Debug)]
pub struct LocalSite {
    /// Directory of lsf.conf.
    pub envdir: String,
    pub lsf: LsfConf,
    /// This host as far as lsf.conf tells: the name by which the daemons here are found. The name
    /// is canonical where `shared_machine`; else authd knows the canonical one.
    pub host: String,
    /// Several hosts live on this machine (LSF_ALLOW_LOCAL_HOST=Y): sockets lie below a directory
    /// of the host's name and connections leave from the host's own address.
    pub shared_machine: bool,
}

/// There is no cluster to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteError {
    pub path: String,
    pub why: String,
    /// There is no such file: the user may not have chosen a cluster yet.
    pub missing: bool,
}

/// The advice to a caller without a cluster.
const NO_CLUSTER: &str = "no cluster was found: `lsf up` makes and starts one of your own, \
    `. DIR/conf/profile.lsf` selects the one in DIR";

impl std::fmt::Display for SiteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.why)?;
        if self.missing { write!(f, "; {NO_CLUSTER}") } else { Ok(()) }
    }
}
impl std::error::Error for SiteError {}

/// The environment of a search; tests make their own.
#[derive(Clone, Debug, Default)]
pub struct Around {
    pub envdir: Option<OsString>,
    pub argv0: Option<OsString>,
    pub path: Option<OsString>,
    pub home: Option<OsString>,
    pub local_host: Option<String>,
    pub nodename: String,
}

impl Around {
    /// This process's.
    pub fn process() -> Around {
        let var = |name| std::env::var_os(name).filter(|v: &OsString| !v.is_empty());
        Around {
            envdir: var("LSF_ENVDIR"),
            argv0: std::env::args_os().next(),
            path: var("PATH"),
            home: var("HOME"),
            local_host: std::env::var("LSF_LOCAL_HOST").ok().filter(|v| !v.is_empty()),
            nodename: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }

    /// The directory that holds lsf.conf.
    fn envdir(&self) -> PathBuf {
        if let Some(dir) = &self.envdir {
            return dir.into();
        }
        let has = |dir: &PathBuf| dir.join("lsf.conf").exists();
        let etc = PathBuf::from(crate::conf::DEFAULT_ENVDIR);
        let beside = self.command_dir().and_then(|d| Some(d.parent()?.join("conf")));
        let home = self.home.as_ref().map(|h| Path::new(h).join(".lsf/conf"));
        let ordered = [beside, Some(etc.clone()), home];
        ordered.into_iter().flatten().find(has).unwrap_or(etc)
    }

    /// The directory the command was called from: that of the word itself, or the one of PATH
    /// in which a shell finds it.
    fn command_dir(&self) -> Option<PathBuf> {
        let word = self.argv0.as_ref()?;
        if word.as_bytes().contains(&b'/') {
            let dir = Path::new(word).parent()?;
            return std::path::absolute(dir).ok();
        }
        let path = self.path.as_ref()?;
        std::env::split_paths(path).find(|dir| dir.is_absolute() && dir.join(word).is_file())
    }
}

/// Finds this process's cluster.
pub fn find() -> Result<LocalSite, SiteError> {
    find_from(&Around::process())
}

/// Finds the cluster for these surroundings.
pub fn find_from(around: &Around) -> Result<LocalSite, SiteError> {
    find_with(&RealFiles, around)
}

/// Finds the site like [`find_from`], with other readers of files.
pub fn find_with(files: &dyn Files, around: &Around) -> Result<LocalSite, SiteError> {
    let envdir = around.envdir().to_string_lossy().into_owned();
    let mut diags = Diags::new();
    let Some(lsf) = lsf_conf::parse(files, &envdir, &mut diags) else {
        let path = format!("{envdir}/lsf.conf");
        let mut why = "Unable to open file lsf.conf".to_owned();
        // what is there needs a reason
        let missing = !RealFiles.exists(&path);
        if !missing && let Err(e) = files.read(&path) {
            why = format!("{why}: {e}");
        }
        return Err(SiteError { path, why, missing });
    };
    let shared_machine = lsf.allow_local_host();
    let named = around.local_host.as_deref().filter(|_| shared_machine).or(lsf.local_host());
    let host = named.unwrap_or(&around.nodename).to_owned();
    Ok(LocalSite { envdir, host, lsf, shared_machine })
}

impl LocalSite {
    /// The directory of this host's sockets and journals: LSF_RUNDIR, or LSF_RUNDIR/HOST where
    /// several hosts share the machine.
    pub fn rundir(&self) -> PathBuf {
        let top = PathBuf::from(self.lsf.rundir());
        if self.shared_machine { top.join(&self.host) } else { top }
    }

    pub fn authd_socket(&self) -> PathBuf {
        self.rundir().join("authd/sock")
    }

    /// The socket on which an `eauth -s` that runs as LSF_EAUTH_USER is asked.
    pub fn eauthd_socket(&self) -> PathBuf {
        self.rundir().join("eauthd.sock")
    }

    pub fn launcher_socket(&self) -> PathBuf {
        self.rundir().join("launcher.sock")
    }

    /// Addresses of these hosts, from LSF's `hosts` and /etc/hosts alone.
    pub fn addresses(&self, hosts: &[&str]) -> HostTable {
        let mut table = HostTable::new(hosts.iter().copied(), &self.lsf.strip_domains());
        let mut diags = Diags::new();
        let files = [(format!("{}/hosts", self.lsf.confdir()), true), ("/etc/hosts".into(), false)];
        for (path, ours) in files {
            if let Ok(text) = crate::conf::Files::read(&RealFiles, &path) {
                table.read(&path, &text, ours, &mut diags);
            }
        }
        table
    }
}

/// The addresses of a host by the system's name service; blocks up to [`RESOLVE_WAIT`].
pub fn resolve(host: &str) -> Vec<IpAddr> {
    if !super::users::is_name(host) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for line in super::users::getent_lines("ahosts", host, RESOLVE_WAIT).unwrap_or_default() {
        let addr = line.split_whitespace().next().and_then(|w| w.parse().ok());
        if let Some(addr) = addr
            && !out.contains(&addr)
        {
            out.push(addr);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> PathBuf {
        let n = super::super::random::<4>().unwrap();
        let dir = std::env::temp_dir().join(format!("lsf-site-{}", u32::from_ne_bytes(n)));
        for d in ["a/conf", "a/bin", "b", "home/.lsf/conf"] {
            std::fs::create_dir_all(dir.join(d)).unwrap();
        }
        let put = |f: &str, text: &str| std::fs::write(dir.join(f), text).unwrap();
        put("a/bin/bsub", "");
        put("a/conf/lsf.conf", "LSF_MASTER_LIST=a\nLSF_ALLOW_LOCAL_HOST=Y\nLSF_LOCAL_HOST=one\n");
        put("b/lsf.conf", "LSF_MASTER_LIST=b\nLSF_LOCAL_HOST=never\nLSF_RUNDIR=/r\n");
        put("home/.lsf/conf/lsf.conf", "LSF_MASTER_LIST=home\n");
        dir
    }

    #[test]
    fn configuration_is_searched_in_the_documented_order() {
        let dir = tree();
        let at = |f: &str| Some(dir.join(f).into_os_string());
        let list = |a: &Around| find_from(a).unwrap().lsf.master_list().join(" ");
        let mut a = Around {
            envdir: at("b"),
            argv0: at("a/bin/bsub"),
            path: at("a/bin"),
            home: at("home"),
            local_host: None,
            nodename: "node".into(),
        };
        assert_eq!(list(&a), "b");
        a.envdir = None;
        assert_eq!(list(&a), "a");
        a.argv0 = Some("bsub".into());
        assert_eq!(list(&a), "a");
        a.argv0 = Some("other".into());
        if !Path::new("/etc/lsf.conf").exists() {
            assert_eq!(list(&a), "home");
            a.home = None;
            let e = find_from(&a).unwrap_err();
            let first = "/etc/lsf.conf: Unable to open file lsf.conf; ";
            assert_eq!(e.to_string(), format!("{first}{NO_CLUSTER}"));
            assert!(NO_CLUSTER.contains("lsf up") && NO_CLUSTER.contains("profile.lsf"));
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_environment_names_the_host_only_where_lsf_conf_allows_it() {
        let dir = tree();
        let around = |sub: &str, local: Option<&str>| Around {
            envdir: Some(dir.join(sub).into_os_string()),
            local_host: local.map(Into::into),
            nodename: "node".into(),
            ..Around::default()
        };
        let host = |sub, local| find_from(&around(sub, local)).unwrap();
        assert_eq!(host("a/conf", Some("two")).host, "two");
        assert_eq!(host("a/conf", None).host, "one");
        assert_eq!(host("b", Some("two")).host, "node");
        assert_eq!(host("b", None).authd_socket(), Path::new("/r/authd/sock"));
        assert!(host("a/conf", None).authd_socket().ends_with("one/authd/sock"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
