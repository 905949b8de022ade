//! Reading a whole configuration: which files, in what order, and the checks across them.
//!
//! Pure: files come through [`Files`].

use super::diag::Diag;
use super::types::{BaseConf, ClusterConf};

/// Where the readers get their files.
pub trait Files {
    /// The bytes of a file, or why it cannot be read.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// Reads everything. The value is there only when no diagnostic is an error.
pub fn load(_files: &dyn Files, _envdir: &str) -> (Option<ClusterConf>, Vec<Diag>) {
    (None, Vec::new())
}

/// Reads the lsf.* files: what lim and the commands need.
pub fn load_base(_files: &dyn Files, _envdir: &str) -> (Option<BaseConf>, Vec<Diag>) {
    (None, Vec::new())
}
