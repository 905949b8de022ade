//! The directories that a starter makes for a job: its working directory, and the one for its
//! temporary files.

use crate::model::ByteStr;
use serde::{Deserialize, Serialize};

/// The directory that a job works in, where the name of the directory contains a pattern. It is
/// known by its number, so that nothing else of the name is ever removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobDirectory {
    pub path: ByteStr,
    /// The numbers of its file system and of its inode.
    pub device: u64,
    pub inode: u64,
    /// This attempt has made it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub new: bool,
}

/// The temporary directory of a job (LSB_JOB_TMPDIR), made when the job is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemporaryDirectory {
    pub path: ByteStr,
    /// The variable in which the job has it beside LSB_JOB_TMPDIR; empty none.
    pub variable: String,
}
