//! The ways in which a user can prove who he is at this site: LSF_AUTH of lsf.conf.
//!
//! Invariants: daemons prove themselves by the cluster key, always; a way that lsf.conf does not
//! name is refused by the server and not taken by the client, whatever the other side says; a word
//! that is not understood enables nothing. See LSF_AUTH and LSF_USE_HOSTEQUIV in lsf.conf(5), and
//! eauth(8).

use crate::conf::LsfConf;
use crate::conf::equiv::Equiv;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A way to prove who one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The credential that authd signs: proves both sides, protects every frame.
    Key,
    /// A site's own `eauth` in LSF_SERVERDIR.
    Eauth,
    /// RFC 1413: the client's host is asked.
    Ident,
    /// A port below 1024 at a host of the cluster.
    Setuid,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Key => "key",
            Way::Eauth => "eauth",
            Way::Ident => "ident",
            Way::Setuid => "setuid",
        }
    }

    /// Finds a way by its name on the wire; the empty name is the built-in credential.
    pub fn of(name: &str) -> Option<Way> {
        Some(match name {
            "" | "key" => Way::Key,
            "eauth" => Way::Eauth,
            "ident" => Way::Ident,
            "setuid" => Way::Setuid,
            _ => return None,
        })
    }
}

/// The ways of a site, as one host has them.
#[derive(Clone, Debug)]
pub struct Ways {
    list: Vec<Way>,
    /// The site's own eauth.
    pub eauth: PathBuf,
    /// The socket to run it as LSF_EAUTH_USER, when lsf.sudoers names one.
    pub eauthd: Option<PathBuf>,
    /// LSF_IDENT_PORT.
    pub ident_port: u16,
    /// LSF_ENVDIR and LSF_SERVERDIR, for eauth.
    pub dirs: [String; 2],
    /// The cluster's and this host's name, for eauth.
    pub cluster: String,
    pub host: String,
    /// hosts.equiv, where LSF_USE_HOSTEQUIV asks for it.
    pub equiv: Option<Arc<Equiv>>,
}

impl Default for Ways {
    /// The built-in credential alone.
    fn default() -> Ways {
        let (eauth, eauthd, dirs, cluster, host) = Default::default();
        let (list, equiv) = (vec![Way::Key], None);
        Ways { list, eauth, eauthd, ident_port: 113, dirs, cluster, host, equiv }
    }
}

impl Ways {
    /// The methods that this host's lsf.conf enables.
    pub fn of(lsf: &LsfConf) -> Ways {
        let serverdir = lsf.serverdir().unwrap_or_default();
        let mut ways = Ways {
            list: Vec::new(),
            eauth: Path::new(serverdir).join("eauth"),
            eauthd: None,
            ident_port: lsf.ident_port(),
            dirs: [lsf.envdir.clone(), serverdir.to_owned()],
            cluster: String::new(),
            host: String::new(),
            equiv: None,
        };
        for word in lsf.auth() {
            ways.list.extend(match word {
                "eauth" if !serverdir.is_empty() && foreign(&ways.eauth) => Some(Way::Eauth),
                "eauth" => Some(Way::Key),
                "ident" => Some(Way::Ident),
                "setuid" => Some(Way::Setuid),
                _ => None,
            });
        }
        ways
    }

    /// The ways of [`Ways::of`], with the additional settings of a daemon.
    pub fn of_daemon(lsf: &LsfConf, cluster: &str, host: &str) -> Ways {
        let mut ways = Ways::of(lsf);
        (ways.cluster, ways.host) = (cluster.to_owned(), host.to_owned());
        if lsf.yes("LSF_USE_HOSTEQUIV") {
            let path = lsf.get("LSF_HOSTS_EQUIV").unwrap_or("/etc/hosts.equiv");
            ways.equiv = Some(Arc::new(equiv(path)));
        }
        ways
    }

    #[cfg(test)]
    pub fn enable(&mut self, way: Way) {
        self.list.push(way);
    }

    pub fn allows(&self, way: Way) -> bool {
        self.list.contains(&way)
    }

    /// The names that a Hello announces; empty where there is the built-in credential alone.
    pub fn words(&self) -> String {
        if self.list == [Way::Key] {
            return String::new();
        }
        // Something must stand there, or it would mean the built-in credential.
        let names: Vec<&str> = self.list.iter().map(|w| w.name()).collect();
        if names.is_empty() { "none".into() } else { names.join(" ") }
    }
}

/// The lines of hosts.equiv; a file that must not be trusted admits nobody.
fn equiv(path: &str) -> Equiv {
    match crate::sys::equiv::read(path, &[0, crate::sys::euid()]) {
        Ok(text) => Equiv::parse(&text),
        Err(why) => {
            log::warn!("{path}: {why}: LSF_USE_HOSTEQUIV lets nobody in by it");
            Equiv::default()
        }
    }
}

/// Whether there is an executable that is not this very program under another name.
fn foreign(eauth: &Path) -> bool {
    let Ok(there) = std::fs::metadata(eauth) else { return false };
    let own = std::fs::metadata("/proc/self/exe").ok();
    let same = own.is_some_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()));
    !same && there.is_file() && there.mode() & 0o111 != 0 && !ours(eauth)
}

/// Another copy of this program, as an upgrade leaves it: a link whose target is called `lsf`.
fn ours(eauth: &Path) -> bool {
    let real = std::fs::canonicalize(eauth);
    real.is_ok_and(|real| real.file_name().is_some_and(|name| name == "lsf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conf(pairs: &[(&str, &str)]) -> LsfConf {
        let mut lsf = LsfConf::default();
        pairs.iter().for_each(|(name, value)| lsf.set(name, value));
        lsf
    }

    #[test]
    fn lsf_auth_enables_what_it_names_and_nothing_else() {
        let words = |pairs: &[(&str, &str)]| Ways::of(&conf(pairs)).words();
        assert_eq!(words(&[]), "");
        assert_eq!(words(&[("LSF_AUTH", "eauth")]), "");
        assert_eq!(words(&[("LSF_AUTH", "ident")]), "ident");
        assert_eq!(words(&[("LSF_AUTH", "eauth setuid")]), "key setuid");
        assert_eq!(words(&[("LSF_AUTH", "none")]), "none");
        let none = Ways::of(&conf(&[("LSF_AUTH", "none")]));
        assert!(![Way::Key, Way::Eauth, Way::Ident, Way::Setuid].iter().any(|w| none.allows(*w)));
    }

    #[test]
    fn eauth_of_the_site_replaces_the_built_in_one() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = std::env::temp_dir().join(format!("lsf-ways-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let eauth = dir.join("eauth");
        let words = || Ways::of(&conf(&[("LSF_SERVERDIR", dir.to_str().unwrap())])).words();
        assert_eq!(words(), "");
        symlink(std::env::current_exe().unwrap(), &eauth).unwrap();
        assert_eq!(words(), "");
        std::fs::remove_file(&eauth).unwrap();
        std::fs::write(&eauth, "#!/bin/sh\n").unwrap();
        assert_eq!(words(), "", "it cannot be run");
        std::fs::set_permissions(&eauth, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(words(), "eauth");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
