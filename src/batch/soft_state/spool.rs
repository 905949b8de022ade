//! The place of the next spooled bytes, and the environments that are spooled once for many jobs.

use crate::model::job::SpoolRef;
use std::collections::HashMap;

/// Environments remembered for sharing; beyond it the table starts anew.
pub(crate) const MAX_ENVS: usize = 32_768;

/// The spool file that is written.
#[derive(Debug, Default)]
pub struct Spool {
    file: u32,
    /// The bytes in it.
    end: u64,
    /// Environments in this file, by uid and hash.
    envs: HashMap<(u32, String), SpoolRef>,
}

impl Spool {
    /// The file that is written from now on, with so many bytes in it.
    pub(crate) fn open(&mut self, file: u32, end: u64) {
        *self = Spool { file, end, envs: HashMap::new() };
    }

    /// Begins the next file; gives its number.
    pub(crate) fn switch(&mut self) -> u32 {
        self.open(self.file + 1, 0);
        self.file
    }

    pub(crate) fn file(&self) -> u32 {
        self.file
    }

    /// The place of so many bytes, behind all others.
    pub(crate) fn add(&mut self, len: u32) -> SpoolRef {
        let at = SpoolRef { spool: self.file, at: self.end, len };
        self.end += u64::from(len);
        at
    }

    /// The place of an environment of a user, if this file has it.
    pub(crate) fn env(&self, uid: u32, hash: &str) -> Option<SpoolRef> {
        self.envs.get(&(uid, hash.to_string())).copied()
    }

    /// Remembers the place of an environment of a user.
    pub(crate) fn keep_env(&mut self, uid: u32, hash: String, at: SpoolRef) {
        if self.envs.len() >= MAX_ENVS {
            self.envs.clear();
        }
        self.envs.insert((uid, hash), at);
    }
}
