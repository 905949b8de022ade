//! Follows the file of the hosts that have joined by themselves: every daemon looks at it from
//! time to time and knows their names and addresses, without being told to read its
//! configuration again. The master's lim writes it.

use crate::conf::members;
use crate::conf::{BaseConf, Files, HostTable, Member};
use crate::net::SharedHosts;
use crate::sys::files::RealFiles;
use crate::sys::words;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Microseconds between two looks.
const LOOK: u64 = 2_000_000;

/// Inode, length and last change of the file.
type FileState = (u64, u64, i64, i64);

/// The state of the file that a daemon knows.
#[derive(Clone, Debug)]
pub struct Follower {
    path: PathBuf,
    host: String,
    table: HostTable,
    members: Vec<Member>,
    seen: Option<FileState>,
    /// The next look, microseconds.
    pub at: u64,
}

impl Follower {
    /// The follower of the members' file; `None`: no host can join this cluster.
    pub fn of(conf: &BaseConf, host: &str) -> Option<Follower> {
        Some(Follower {
            path: conf.hostcache()?.into(),
            host: host.to_owned(),
            table: conf.hosts.clone(),
            members: conf.members.clone(),
            seen: None,
            at: 0,
        })
    }

    /// Members are added to and removed from this table, which contains the members seen last.
    pub fn rebase(&mut self, table: HostTable) {
        self.table = table;
    }

    /// The members and the table with them, where the file is not as it was.
    pub fn look(&mut self, mono_us: u64) -> Option<(Vec<Member>, SharedHosts)> {
        if mono_us < self.at {
            return None;
        }
        self.at = mono_us + LOOK;
        let meta = std::fs::metadata(&self.path).ok()?;
        let looks = Some((meta.ino(), meta.len(), meta.ctime(), meta.ctime_nsec()));
        if looks == self.seen {
            return None;
        }
        let bytes = RealFiles.read(&self.path.to_string_lossy()).ok()?;
        self.seen = looks;
        let mut all = members::parse(&String::from_utf8_lossy(&bytes));
        all.retain(|m| m.name != self.host);
        if all == self.members {
            return None;
        }
        members::merge(&mut self.table, &self.members, &all);
        self.members.clone_from(&all);
        Some((all, Arc::new(self.table.clone())))
    }
}

/// Replaces a file as a whole, durably.
pub fn replace(path: &Path, text: &str) -> Result<(), String> {
    let new = path.with_extension("new");
    let write = || {
        let mut file = std::fs::File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    };
    write().map_err(|e| format!("{}: {}", path.display(), words(&e)))
}
