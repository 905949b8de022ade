//! Files in memory, for the tests of the readers.

use super::files::{Files, Moment};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;

/// Files by path.
#[derive(Clone, Debug, Default)]
pub struct MapFiles {
    files: BTreeMap<String, Vec<u8>>,
    /// The time, UTC.
    pub at: Option<i64>,
}

impl MapFiles {
    /// One file.
    pub fn one(path: &str, bytes: impl AsRef<[u8]>) -> Self {
        let mut files = MapFiles::default();
        files.put(path, bytes);
        files
    }

    /// Adds or replaces a file.
    pub fn put(&mut self, path: &str, bytes: impl AsRef<[u8]>) {
        self.files.insert(path.to_owned(), bytes.as_ref().to_vec());
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Replaces a piece of text that must be there.
    pub fn edit(&mut self, path: &str, from: &str, to: &str) {
        let text = String::from_utf8_lossy(&self.files[path]).into_owned();
        assert!(text.contains(from), "{from} in {path}");
        self.put(path, text.replacen(from, to, 1));
    }

    /// The paths there are.
    pub fn paths(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }
}

impl Files for MapFiles {
    fn moment(&self) -> Option<Moment> {
        self.at.map(|now| Moment { now, zone: TimeZone::UTC, forced: Vec::new() })
    }
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.files.get(path).cloned().ok_or_else(|| "No such file or directory".to_owned())
    }
}
