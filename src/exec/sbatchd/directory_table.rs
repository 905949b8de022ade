//! The directories of jobs that are to be removed (JOB_CWD_TTL), and when.

use crate::model::{ByteStr, JobKey};
use crate::proto::launch::JobDirectory;
use crate::proto::sbd::StartJob;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Directories of one user that wait for their removal on a host; further ones are kept for good.
/// The launcher keeps them beside the tasks of all jobs, and no user may fill its table.
pub(super) const DIRECTORIES_OF_USER: usize = 256;

/// Temporary directories of one user that wait beside those; they are due at once.
pub(super) const TEMPORARY_OF_USER: usize = 1024;

/// A directory and its account, as the launcher keeps them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptDirectory {
    pub(super) directory: JobDirectory,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) user: String,
    /// The account of ~/.lsfhosts that the job ran under; empty: that of its user.
    pub(super) account: String,
    /// Seconds since the epoch.
    pub(super) due: i64,
}

/// A directory that is to be removed.
#[derive(Clone, Debug)]
pub(super) struct DirectoryEntry {
    pub(super) kept: KeptDirectory,
    /// When it is due; while a starter removes it, when that is ended.
    pub(super) at: u64,
    pub(super) tries: u32,
    pub(super) runs: bool,
}

/// The directories to be removed, by the launcher's keys: no job has the number 0.
#[derive(Debug, Default)]
pub(super) struct DirectoryTable {
    pub(super) entries: BTreeMap<JobKey, DirectoryEntry>,
}

/// Whether this is the key of a directory.
pub(super) fn is_directory(key: JobKey) -> bool {
    key.job == 0 && key.attempt != 0
}

impl KeptDirectory {
    /// Whether `cwd` is this directory or lies below it.
    pub(super) fn holds(&self, cwd: &str) -> bool {
        let below = cwd.as_bytes().strip_prefix(&self.directory.path.0[..]);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }
}

/// Whether the directory is the job's own, whichever attempt has made it: its name contains the
/// number of the job.
pub(super) fn is_own(order: &StartJob) -> bool {
    let pattern = &order.spec.cwd.0;
    let name = pattern.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let has = |words: [&[u8]; 2]| words.iter().any(|w| name.windows(w.len()).any(|n| n == *w));
    has([b"%J", b"%EJ"]) && (order.key.idx == 0 || has([b"%I", b"%EI"]))
}

impl DirectoryTable {
    /// Whether a user has as many as there may be of working directories.
    pub(super) fn is_full(&self, uid: u32) -> bool {
        self.of_user(uid) >= DIRECTORIES_OF_USER
    }

    /// Whether there is no room for a temporary directory either.
    pub(super) fn has_no_room(&self, uid: u32) -> bool {
        self.of_user(uid) >= DIRECTORIES_OF_USER + TEMPORARY_OF_USER
    }

    /// Is a directory of this path to be removed?
    pub(super) fn has(&self, path: &ByteStr) -> bool {
        self.entries.values().any(|entry| entry.kept.directory.path == *path)
    }

    fn of_user(&self, uid: u32) -> usize {
        let key = |attempt| JobKey { job: 0, idx: uid, attempt };
        self.entries.range(key(0)..=key(u32::MAX)).count()
    }

    /// A key that no directory has.
    pub(super) fn free_key(&self, uid: u32) -> JobKey {
        let key = |attempt| JobKey { job: 0, idx: uid, attempt };
        let last = self.entries.range(key(0)..=key(u32::MAX)).next_back();
        let next = last.and_then(|(key, _)| key.attempt.checked_add(1)).unwrap_or(1);
        key(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_one_user_leave_room_for_those_of_others() {
        let mut table = DirectoryTable::default();
        for n in 0..DIRECTORIES_OF_USER {
            assert!(!table.is_full(7), "{n}");
            let path = format!("/home/ann/{n}").into_bytes().into();
            let directory = JobDirectory { path, device: 1, inode: n as u64, new: false };
            let (user, account) = ("ann".to_string(), String::new());
            let kept = KeptDirectory { directory, uid: 7, gid: 7, user, account, due: 0 };
            let entry = DirectoryEntry { kept, at: 0, tries: 0, runs: false };
            table.entries.insert(table.free_key(7), entry);
        }
        assert!(table.is_full(7) && !table.is_full(8));
    }
}
